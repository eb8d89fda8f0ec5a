"""A lower bound for noise that is added, proved from prices (weak duality), in balls.

For any law `f` of noise on the integers that keeps the rules of `additive`, and prices `y >= 0` of some of them,

    E[loss(e)] >= E[loss(e)] - sum of y (e^eps h(t) - h(t + d))  =  sum over e of f(e) (loss(e) - L(e))
               >= min over e of (loss(e) - L(e)),          L(e) = sum of y (e^eps g(t - e) - g(t + d - e)),

and the same with `t` and `t + d` exchanged for rules of the other way. No more is asked of `f`: no form of its tails,
no reach. `L` vanishes where no `t - e` is in the support of `g`, so that the minimum is over finitely many `e`, and
the smallest loss beyond them. The bound also holds with further rules (`never_worse`, a fallback).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Any

from flint import arb

from optdp.errors import ArtifactError
from optdp.numbers.exact import ball, lower_fraction, precision
from optdp.numbers.pmf import ExactPmf
from optdp.single.added import kinds_of
from optdp.single.problem import SingleLTE
from optdp.work.account import spend

MOST = 20_000
"""The most prices."""
LONGEST = 5001
"""The longest law of the others for which a bound is proved."""
FARTHEST = 1 << 20
"""How far from 0 the output of a rule may be."""

Rule = tuple[int, int, int, int]
"""Which kind of person, the output `t`, the step `d`, and the way: 0 for `h(t+d) <= e^eps h(t)`, 1 for the other."""


@dataclass(frozen=True)
class NoisePrices:
    """A price for each of some rules: any that are not negative prove a bound."""

    at: tuple[Rule, ...]
    u: tuple[float, ...]

    def document(self) -> dict[str, Any]:
        """As a file has them."""
        return {"at": [list(rule) for rule in self.at], "u": " ".join(map(repr, self.u))}


def parse_prices(found: Mapping[str, Any]) -> NoisePrices:
    """The prices of a file."""
    try:
        at, u = found["at"], tuple(float(number) for number in found["u"].split())
        right = found.keys() == {"at", "u"} and len(at) == len(u) <= MOST and all(0 <= price < 1e200 for price in u)
        if not right or any(type(rule) is not list or [*map(type, rule)] != [int] * 4 for rule in at):
            raise ValueError
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ArtifactError(
            "Prices of added noise must be lists of four and as many numbers of at least 0. Found others. "
            "The file was changed."
        ) from None
    return NoisePrices(tuple((kind, t, d, way) for kind, t, d, way in at), u)


def proved(problem: SingleLTE, prices: NoisePrices) -> Fraction:
    """A number that no noise which the problem admits has a smaller error than; at least 0."""
    kinds, power = kinds_of(problem), 1 if problem.objective == "mae" else 2
    laws: list[ExactPmf] = []
    for kind in kinds:
        if not isinstance(kind.law, ExactPmf) or kind.law.last >= LONGEST:
            return Fraction(0)
        laws.append(kind.law)
    with precision():
        most = (ball(problem.epsilon) / problem.steps).exp()
        weights: dict[tuple[int, int], arb] = {}
        for (number, t, d, way), price in zip(prices.at, prices.u, strict=True):
            if not (0 <= number < len(kinds) and d in kinds[number].steps and way in (0, 1) and abs(t) <= FARTHEST):
                raise ArtifactError("A price must be of a rule of the problem. Found another. The file was changed.")
            one, other = ((number, t), (number, t + d)) if way == 0 else ((number, t + d), (number, t))
            value = arb(price)
            weights[one] = weights.get(one, arb(0)) + value * most
            weights[other] = weights.get(other, arb(0)) - value
        return max(Fraction(0), _least(laws, weights, power))


def _least(laws: Sequence[ExactPmf], weights: Mapping[tuple[int, int], arb], power: int) -> Fraction:
    """`min over e of (|e|^power - L(e))`, rounded down."""
    if not weights:
        return Fraction(0)
    spend(0.6 * sum(laws[number].last + 1 for number, _ in weights), "a lower bound of added noise")
    chances = [law.balls(0, law.last) for law in laws]
    taken: dict[int, arb] = {}
    for (number, t), weight in weights.items():
        for x, chance in enumerate(chances[number]):
            taken[t - x] = taken.get(t - x, arb(0)) + weight * chance
    inside = min(lower_fraction(arb(abs(e) ** power) - value) for e, value in taken.items())
    nearest = next(e for e in count() if not (e in taken and -e in taken))
    return min(inside, Fraction(nearest**power))
