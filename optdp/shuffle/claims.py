"""What is claimed of a deployed shuffle protocol, recomputed from the integers of its clients.

A figure is stated with nine digits, rounded up. What a computation in floats rounds up by itself may pass it by one
part in 2^44; a delta may not.

`client.lacking`, a chance `eta` that a person does not do as the ideal law says, is paid from delta. Errors have a part
for it, too: no message is further from its value than `R`, so that with `m = n eta R` the mean error of the sum grows
by at most `2m`, its bias as well, and its variance by `5 m R`: the variance of a mixture is that of its parts and of
their means. The chance of a truncation grows by `n eta`. What an interval misses does as well, but `eta` is at most
`ROUNDED`, and that is round-off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from optdp.errors import CertificateError
from optdp.numbers.exact import down, log_upper, up
from optdp.shuffle.client import Flips, Padded, Response
from optdp.shuffle.gamma import promised_delta
from optdp.shuffle.histogram import standard_error
from optdp.shuffle.metric.accuracy import accuracy
from optdp.shuffle.metric.design import Design, local_epsilon, local_losses, losses
from optdp.shuffle.metric.released import Shares
from optdp.shuffle.summation import mse
from optdp.work import Progress, silent
from optdp.work.account import spend

CLOSE = Fraction(1, 1 << 44)
"""How far a figure may lie above what is stated, relatively: the round-off of its upper bound."""
ROUNDED = Fraction(1, 1 << 76)
"""More than this is no rounding: laws of up to 2^22 numbers, none of them in the middle below 2^-18, lack far less."""
_SHAVED = 1 - Fraction(1, 1 << 46)
_DIGITS = Context(prec=9, rounding=ROUND_CEILING)

Figures = dict[str, Any]
"""Figures by their names, lists of figures, and words."""


def stated(value: float | Fraction) -> str:
    """A figure as a claim states it."""
    exact = Fraction(value) * _SHAVED
    found = _DIGITS.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    near = -9 < found.adjusted() < 15
    return format(found.normalize(), "f") if near else str(found.normalize())


def covers(claimed: Fraction, found: float | Fraction) -> bool:
    """Whether a claimed figure is at least what was found."""
    return found <= claimed * (1 + CLOSE)


# ---------------------------------------------------------------------- sums with metric privacy


def design_of(client: Flips | Padded, n: int, honest: int | None = None) -> Design:
    """The design whose laws the clients' integers stand for, its noise enclosed in balls."""
    if isinstance(client, Flips):
        return Design("rr", n, client.bits, dimensions=client.dimensions, flip=client.chance, honest=honest)
    shares = Shares(n, client.beta, client.q, proved=True)
    c, sides = client.padding, client.dimensions
    return Design(client.mechanism, n, client.k, client.grain, sides, shares=shares, c=c, honest=honest)


def metric_figures(
    client: Flips | Padded,
    n: int,
    delta: Fraction,
    furthest: int,
    shuffler: str,
    query: str,
    least: int | None = None,
    progress: Progress = silent,
) -> Figures:
    """The profile at what rounding leaves of delta if `least` people add their noise, what one message gives away, and
    the errors, if all do.
    """
    design, honest = design_of(client, n, least), shuffler == "honest"
    left = delta - (n if honest else 1) * client.lacking
    if left <= 0 or client.lacking > ROUNDED:
        raise CertificateError(
            "The clients' law must be that of its beta and q, but for rounding. Found another, up to "
            f"{float(client.lacking):.3g} of a probability less. Do not use it."
        )
    if isinstance(client, Flips):
        spend(min(2e7, 40.0 * n * client.bits), "the loss of flipped bits")
    seen = (losses if honest else local_losses)(design, down(left), furthest, progress=progress)
    alone, alone_delta = local_epsilon(design, down(left), furthest, progress)
    clamped = Fraction(0) if isinstance(client, Flips) else design.noise.exceeding(client.padding)
    return {
        "profile": [loss / distance for distance, loss in seen],
        "epsilon": max(loss / distance for distance, loss in seen),
        "local_epsilon": alone,
        "local_delta": Fraction(alone_delta) + client.lacking,
        "truncation": min(Fraction(1), client.dimensions * clamped + n * client.lacking),
        **metric_errors(client, n, query),
    }


def metric_errors(client: Flips | Padded, n: int, query: str) -> Figures:
    """The errors of what is asked, if n people add their noise."""
    errors, people = accuracy(design_of(client, n)), n if query == "average" else 1
    furthest_off = 0 if isinstance(client, Flips) else client.reach * client.grain * client.dimensions
    off = float(n * client.lacking * furthest_off)
    return {
        "mae": (errors.mae + 2.0 * off) / people,
        "rmse": math.hypot(errors.rmse + 2.0 * off, math.sqrt(5.0 * off * furthest_off)) / people,
        "within_95": errors.within_95 / people,
    }


# ---------------------------------------------------------------------- randomized response


def response_delta(client: Response, n: int, epsilon: Fraction, least: int, progress: Progress = silent) -> Fraction:
    """The delta that is proved at an epsilon if `least` people randomize; with 1 nothing is."""
    spend(2e6, "the bound of delta")
    found = promised_delta(least, client.values, client.gamma, epsilon, progress)
    return Fraction(found) + n * client.lacking


def response_local(client: Response) -> float:
    """What one message gives away by itself, with delta 0."""
    return up(log_upper(client.local_ratio))


def histogram_error(client: Response, n: int) -> float:
    """The standard error of a count, for equal shares."""
    return standard_error(n / client.values, n, client.values, float(client.gamma))


def sum_error(client: Response, n: int, width: Fraction) -> float:
    """The mean squared error of the sum, for the data for which it is largest."""
    return float(mse(n, client.values - 1, float(client.gamma))) * float(width) ** 2


# ---------------------------------------------------------------------- what must hold


def check_figures(claim: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Every figure that is claimed must be at least the one found."""
    for name, value in found.items():
        if isinstance(value, list):
            if len(claim[name]) != len(value):
                raise CertificateError(
                    f"{name} must have an entry for each of {len(value)} distances. Found {len(claim[name])}. "
                    "Do not use it."
                )
            worst = [i for i, (said, one) in enumerate(zip(claim[name], value, strict=True)) if not _held(said, one)]
            if worst:
                raise _broken(f"{name}, entry {worst[0] + 1},", claim[name][worst[0]], value[worst[0]])
        elif not _held(claim[name], value):
            raise _broken(name, claim[name], value)


def _held(said: str, found: float | Fraction) -> bool:
    return covers(Fraction(said), found)


def _broken(name: str, said: str, found: float | Fraction) -> CertificateError:
    return CertificateError(f"{name} is claimed to be {said}. Found {float(found):.9g}. Do not use it.")
