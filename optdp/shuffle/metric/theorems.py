"""D's theorems as they are printed, for comparison only: none of them is ever the source of a claim.

What each is worth was recomputed (docs/papers.md): the exact profiles are in `optdp.shuffle.metric.profile`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from scipy.optimize import brentq

from optdp.numbers.exact import geometric_ratio, there, to_fraction
from optdp.shuffle.metric.design import Design
from optdp.shuffle.metric.problem import MetricShuffle
from optdp.shuffle.metric.released import log_ratio, noise_law


@dataclass(frozen=True)
class Theorem:
    """What a theorem of D would say here, and what it is worth: never a claim."""

    name: str
    value: float | None
    worth: str


def theorems_of(problem: MetricShuffle, design: Design) -> tuple[Theorem, ...]:
    """D's own figures for the deployed numbers; in the plane as its appendix D composes them."""
    n, apart = design.fewest, design.dimensions
    delta, scale = float(problem.delta) / apart, math.sqrt(apart) / problem.unit
    if design.flip is not None:
        flips, p = "too large at small distances, too small at large ones", float(2 * design.flip)
        return (
            Theorem("theorem_3_1", _times(theorem_3_1(n * design.k, p, delta), scale), flips),
            Theorem("theorem_7_1", _times(theorem_3_1(design.k, p, delta), scale), flips),  # for one person's bits
            Theorem(
                "theorem_3_2", theorem_3_2(design.n * design.k, p, 0.05),
                "holds: so far off are at most 5 in 100 sums; about twice too far",
            ),
        )  # fmt: skip
    noise = float(there(design.eps_geo))
    if problem.mechanism == "geo":
        worth = "1.2 to 3 times too large at distance 1, too small at large ones; needs n > 4"
        wanted = None if problem.epsilon is None else float(problem.epsilon) / scale
        demanded = None if wanted is None else theorem_4_1_noise(n, wanted, delta)
        return (
            Theorem("theorem_4_1", _times(theorem_4_1(n, noise, delta), scale), worth),
            Theorem("theorem_4_1_noise", demanded, "the eps_geo that it would have people use for this epsilon"),
        )
    if problem.mechanism == "sgdl":
        return (
            # Its proof uses the untruncated law given that nobody truncates, which is another one: with the padding
            # that it allows the claim fails at large distances.
            Theorem("theorem_5_1", noise * scale, "its padding is too short, and so is its proof"),
            Theorem("lemma_c_1", float(lemma_c_1(n, noise, delta)), "a wrong mean: far too small below epsilon 0.7"),
            Theorem("theorem_7_2", theorem_7_2(n, noise) * scale, "holds"),
        )
    return ()


def _times(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


def theorem_3_1(bits: int, p: float, delta: float) -> float | None:
    """RR-Shuffle: the loss per unit of distance. 4 to 6 times too large for small distances, too small for large."""
    lam = p * bits
    if not 14 * math.log(4 / delta) <= lam <= bits:
        return None
    return math.sqrt(32 * math.log(4 / delta) / (lam - math.sqrt(2 * lam * math.log(2 / delta))))


def theorem_3_2(bits: int, p: float, beta: float) -> float | None:
    """RR-Shuffle's utility (also A.2): a sum is further off with a probability below `beta`. It holds, and is about
    twice too large, as it takes `2 lambda` for a variance of `lambda / 2`.
    """
    lam = p * bits
    if not 2 * math.log(2 / beta) <= lam < bits:
        return None
    return bits / (bits - lam) * math.sqrt(2 * lam * math.log(2 / beta))


def theorem_4_1(n: int, eps_geo: float, delta: float) -> float | None:
    """Geo-Shuffle. Needs `n > 4`. From 1.2 to 3 times too large at distance 1, and too small at large distances: the
    worst ratio of the kept interval is not the one that it takes.
    """
    if n <= 4:
        return None
    p, t = math.exp(-eps_geo), 2.0 * eps_geo / math.sqrt(n)
    log_power = n * (2.0 * math.log1p(-p) - math.log1p(-p * math.exp(t)) - math.log1p(-p * math.exp(-t)))
    alpha = math.ceil(-(math.log(delta / 4.0) - log_power) / t)  # the law is on whole numbers
    return -log_ratio(Fraction(n), _ratio(eps_geo), alpha)


def theorem_4_1_noise(n: int, epsilon: float, delta: float) -> float | None:
    """The largest eps_geo to which Theorem 4.1 gives `epsilon`: what it would have people use."""

    def excess(eps_geo: float) -> float:
        return there(theorem_4_1(n, eps_geo, delta)) - epsilon

    if n <= 4:
        return None
    low = high = epsilon
    while excess(low) > 0.0:
        low /= 2.0
    while excess(high) < 0.0:
        high *= 1.5
        if high > 100.0:
            return None
    return float(brentq(excess, low, high, xtol=1e-9))


def lemma_c_1(n: int, epsilon: float, delta: float) -> int:
    """SGDL-Shuffle's padding. It takes `b (1 - e^-epsilon)` for the mean of the negative binomial, so that it is far
    too small below an epsilon of about 0.7, and people truncate often.
    """
    w = 2.0 * n * math.log(-math.expm1(math.log1p(-delta) / n) / 2.0)
    u = 1.0 + (math.sqrt(w * (w - 4.0)) - w) / 2.0
    return math.ceil(u * -math.expm1(-epsilon) / n)


def theorem_7_2(n: int, epsilon: float) -> float:
    """SGDL-Shuffle without its shuffler: `ln f(0)/f(1)`, about `ln n`. It holds, with delta 0."""
    law = noise_law(Fraction(1, n), _ratio(epsilon), 4)
    return float(law.log_p[0] - law.log_p[1])


def _ratio(epsilon: float) -> Fraction:
    return geometric_ratio(to_fraction(f"{epsilon:.15g}", "epsilon"))
