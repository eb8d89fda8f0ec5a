"""What several releases reveal together, from nothing but the ordinary epsilon of each.

Release `i` is `e_i`-differentially private. Three upper bounds on the epsilon of all of them together, at one delta:

- `basic`: the sum of the `e_i`, at delta 0.
- `adaptive`: `e`-DP implies `e^2/2`-zCDP (Bun and Steinke 2016, Proposition 1.4). These add up to `rho`, and `rho`-zCDP
  implies `(a rho + (log(1/delta) - log a) / (a - 1) + log(1 - 1/a), delta)`-DP for every order `a > 1` (Canonne, Kamath
  and Steinke 2020).
- `optimal`: randomized response at `e_i` in place of each release. Every `e_i`-DP mechanism is a function of its answer
  (Kairouz, Oh and Viswanath 2015, from the proof of Theorem 3.3), so that nothing is worse, and it is itself
  `e_i`-DP, so that no smaller number holds for all. With the loss `+-e_i`, `Pr[+] = e^(e_i) / (1 + e^(e_i))`,

      delta(eps) = sum over signs of Pr * max(0, 1 - e^(eps - loss))        (Murtagh and Vadhan 2016).

**When each may be used.** Whoever looks at what was released may decide by it what to release next. A rule that stops
before a total is exceeded is then valid for `basic`, for `adaptive` (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers
and Wu 2023) and for the smaller of the two, but not for `optimal`, which needs epsilons that were fixed beforehand.
docs/ledger.md has the proofs; `tests/numbers/test_composition.py` has a case in which `optimal` fails.

All is computed in balls and rounded up.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache

from flint import arb, arb_poly

from optdp.errors import ProblemError
from optdp.numbers.exact import Number, ball, log_of, precision, shown, to_fraction, upper_fraction

Releases = Mapping[Fraction, int]
"""How many releases there are of each epsilon."""

TERMS = 20_000
"""Losses that are told apart exactly; beyond, each epsilon is rounded up to a multiple of one step."""
GRID = 1 << 15
"""Steps of all epsilons together, then."""
ORDERS = tuple(Fraction(number) * Fraction(2) ** power for power in range(-17, 20) for number in range(128, 256))
"""The orders of Renyi divergences that are looked at, less 1."""
FLOATS = tuple(map(float, ORDERS))
LARGEST = 1000
"""Beyond this sum of epsilons only the sum is looked at. No total is larger."""
DIGITS = 10
"""Of an epsilon that is searched for: rounded down, so that it is a short decimal."""


def total_of(epsilon: Number, delta: Number, whose: str = "") -> tuple[Fraction, Fraction]:
    """A total that several releases may have together; errors call its numbers epsilon and delta `whose`."""
    most, small = to_fraction(epsilon, f"epsilon{whose}"), to_fraction(delta, f"delta{whose}")
    if not 0 < most <= LARGEST:
        raise ProblemError(f"epsilon{whose} must be above 0 and at most {LARGEST:,}. Found {shown(str(epsilon))}.")
    if not 0 <= small < 1 or 0 < small < Fraction(1, 10**100):
        raise ProblemError(f"delta{whose} must be 0, or from 1e-100 to below 1. Found {shown(str(delta))}.")
    return most, small


def basic(releases: Releases) -> Fraction:
    """The sum of the epsilons."""
    return sum((epsilon * count for epsilon, count in releases.items()), Fraction(0))


def adaptive(releases: Releases, delta: Fraction) -> Fraction:
    """By way of zCDP; the sum of the epsilons if that is smaller."""
    total = basic(releases)
    rho = sum((epsilon * epsilon * count for epsilon, count in releases.items()), Fraction(0)) / 2
    if delta == 0 or rho == 0 or total > LARGEST:
        return total
    with precision():
        log = -ball(delta).log()
        for less in _orders(rho, delta):
            a = ball(1 + less)
            bound = upper_fraction(a * ball(rho) + (log - a.log()) / ball(less) + (1 - 1 / a).log())
            total = min(total, max(bound, Fraction(0)))
    return total


def optimal(releases: Releases, delta: Fraction) -> Fraction:
    """By randomized response in place of each release; never above the other two."""
    return _optimal(tuple(sorted(releases.items())), delta)


def largest_each(count: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest epsilon of each of `count` planned releases, all alike, that together keep a total. The program:

        maximise    e
        subject to  optimal({e: count}, delta) <= epsilon

    The left side never falls as `e` grows, and `epsilon / count` is always allowed. So the best `e` is found by
    bisection, among decimals of `DIGITS` significant digits; a larger one of these is not allowed.
    """
    low = epsilon / count
    unit: Fraction = Fraction(1)
    while unit > low:
        unit /= 10
    while 10 * unit <= low:
        unit *= 10
    unit /= 10 ** (DIGITS - 1)

    def keeps(steps: int) -> bool:
        return optimal({steps * unit: count}, delta) <= epsilon

    good = math.floor(low / unit)
    if delta == 0:
        return good * unit
    bad = 2 * good + 2
    while keeps(bad):
        good, bad = bad, 2 * bad
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if keeps(middle) else (good, middle)
    return good * unit


@lru_cache(maxsize=16)
def _optimal(releases: tuple[tuple[Fraction, int], ...], delta: Fraction) -> Fraction:
    known = adaptive(dict(releases), delta)
    counts = {epsilon: count for epsilon, count in releases if epsilon and count}
    if delta == 0 or not counts or basic(counts) > LARGEST:
        return known
    bits = 192 + math.ceil(1.4427 * float(basic(counts))) + delta.denominator.bit_length()
    with precision(bits):
        found = _exact(counts) if math.prod(count + 1 for count in counts.values()) <= TERMS else _rounded(counts)
        return known if found is None else min(known, _least(found, delta))


def _least(law: Iterable[tuple[arb, arb]], delta: Fraction) -> Fraction:
    """The least epsilon at this delta. `law` has each loss's probability under both laws, the largest loss first.

    `delta(eps) = max over sets of P(set) - e^eps Q(set)`, and the sets that count are those of the largest losses.
    """
    allowed, first, second, worst = ball(delta), arb(0), arb(0), arb(1)
    for p, q in law:
        first, second = first + p, second + q
        if not first < allowed:  # below it the set gives nothing away that counts
            worst = worst.max((first - allowed) / second)
    return upper_fraction(worst.log())


def _exact(counts: Releases) -> list[tuple[arb, arb]]:
    """The losses of all releases together."""
    scale = math.lcm(*(epsilon.denominator for epsilon in counts))
    law = {0: arb(1)}
    for epsilon, count in counts.items():
        unit, new = int(epsilon * scale), dict[int, arb]()
        for plus, chance in enumerate(_signs(epsilon, count)):
            for loss, before in law.items():
                place = loss + (2 * plus - count) * unit
                new[place] = new.get(place, arb(0)) + chance * before
        law = new
    return [(law[loss], law[-loss]) for loss in sorted(law, reverse=True)]


def _rounded(counts: Releases) -> list[tuple[arb, arb]] | None:
    """The same with larger epsilons, which are multiples of one step; None if there are too many releases for that."""
    number = sum(counts.values())
    if number > GRID // 2:
        return None
    step = basic(counts) / (GRID - number)
    steps: Counter[int] = Counter()
    for epsilon, count in counts.items():
        steps[math.ceil(epsilon / step)] += count
    laws = deque[arb_poly]()
    for size, count in sorted(steps.items(), key=math.prod):
        spread = [arb(0)] * (size * count + 1)
        spread[::size] = _signs(size * step, count)
        laws.append(arb_poly(spread))
    while len(laws) > 1:  # short ones first
        laws.append(laws.popleft() * laws.popleft())
    chances = [laws[0][i] for i in range(sum(size * count for size, count in steps.items()) + 1)]
    return list(zip(reversed(chances), chances, strict=True))


def _signs(epsilon: Fraction, count: int) -> Iterator[arb]:
    """The probabilities of 0, 1, ..., `count` positive losses among those of `count` releases."""
    odds = ball(epsilon).exp()
    chance = (1 / (1 + odds)) ** count
    for plus in range(count + 1):
        yield chance
        chance = chance * odds * (count - plus) / (plus + 1)


def _orders(rho: Fraction, delta: Fraction) -> tuple[Fraction, ...]:
    """Those around the best one: floats choose it, and may choose its neighbour on another machine."""

    def bound(number: int) -> float:
        a = 1.0 + FLOATS[number]
        return a * float(rho) + (log - math.log(a)) / FLOATS[number] + math.log1p(-1.0 / a)

    log = -log_of(delta)
    best = min(range(len(ORDERS)), key=bound)
    return ORDERS[max(best - 2, 0) : best + 3]
