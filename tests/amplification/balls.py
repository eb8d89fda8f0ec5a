"""The divergence of shuffled cells as a ball: a number and a radius that is proved to cover the truth.

With the kinds `j` of messages (the cells, and the messages in no cell, whose value is 0), their values
`v_j = (first[j] - e^eps second[j]) / others[j]`, their masses `m_j` and the counts `N ~ Multinomial(n, m)`,

    delta(eps) = E[sum_j N_j v_j]_+ / n + sum of (first[j] - e^eps second[j])_+ over cells with others[j] = 0;

a message of the last sort can only be the one person's and is seen at once. All is computed in the balls of
python-flint, so rounding is covered. What is decided or left out on the way is added to the radius:

- **Values alike.** Kinds whose values cannot be told apart become one kind with the ball around both values. The
  expectation does not fall where a value rises, so it is between those at the two ends of that ball, which the result
  covers.
- **The last three kinds** `v_a > v_0 > v_b` take one loop instead of two. Relative to `v_0`, with `A = v_a - v_0 > 0`
  and `B = v_b - v_0 < 0`, the sum is `s + A N_a + B (C - N_a)` where `C = N_a + N_b` is binomial and `N_a` given `C` is
  `Bin(C, rho)`. It is positive if and only if `N_a > x = -(s + B C)/(A - B)`, and with `t = floor(x) + 1`

      E[(...)_+ | C] = (s + (rho A + (1-rho) B) C) T(C,t) + (A - B) (1-rho) t f(C,t),

  `f` the probabilities and `T(C,t) = P(Bin(C,rho) >= t)`. Since `0 < -B/(A-B) < 1`, `t` stays or grows by one from `C`
  to `C+1`, and `f` and `T` follow in a few operations: `T(C+1,t) = T(C,t) + f(C+1,t) t/(C+1)`,
  `T(C,t+1) = T(C,t) - f(C,t)`.
- **The sign.** `t` is taken from a fixed-point `x` that is wrong by at most `d`. Counts on the wrong side of it have
  `|N_a - x| <= d`: a sum of size at most `(A - B) d` is counted where 0 is right, or 0 where it is. What is counted is
  below the expectation of the positive part by at most `(A - B) d`.
- **Counts left out.** Those far out in a binomial law are skipped. Their probability is one minus the sum of all that
  were not, and at most the largest value times that is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from flint import arb, fmpz

from optdp import ProblemError
from optdp.amplification.randomizers import Cells
from optdp.numbers.exact import Number, ball, precision, to_fraction

BITS = 400
"""Bits of the balls. Counts of a probability below `2^-(bits/2)` are left out: delta is good to about 60 places."""

BUDGET = 20_000_000
"""Steps of a few microseconds each that one divergence may take."""

KINDS = 100
"""Kinds of messages that one divergence may have; beyond a handful they are for few people."""


@dataclass(frozen=True)
class BallCells:
    """Cells (see `cells`) whose numbers are balls; an `others` that is exactly 0 is a cell that hides nobody."""

    first: tuple[arb, ...]
    second: tuple[arb, ...]
    others: tuple[arb, ...]


@dataclass(frozen=True)
class _Kind:
    """One kind of message: what it adds to the sum and how often another message is of it."""

    value: arb
    mass: arb


def ball_cells(
    first: Sequence[arb | Fraction | int],
    second: Sequence[arb | Fraction | int],
    others: Sequence[arb | Fraction | int],
    bits: int = BITS,
) -> BallCells:
    """Cells from balls or rationals; those that the person's message never reaches are left out."""
    with precision(bits):
        rows = [tuple(_ball(number) for number in row) for row in zip(first, second, others, strict=True)]
        used = [row for row in rows if not (row[0].is_zero() and row[1].is_zero())]
        return BallCells(tuple(r[0] for r in used), tuple(r[1] for r in used), tuple(r[2] for r in used))


def generic(eps0: Number | arb, bits: int = BITS) -> BallCells:
    """The pair that bounds every eps0-LDP randomizer: `(p, 1)/(p+1)` against `(1, p)/(p+1)`, others `1/(p+1)` each."""
    with precision(bits):
        p = _exponential(eps0, "eps0")
        c = 1 / (p + 1)
        return ball_cells((p * c, c), (c, p * c), (c, c), bits)


def clones(eps0: Number | arb, bits: int = BITS) -> BallCells:
    """As `generic`, with the others of the clone argument: `1/(2p)` each."""
    with precision(bits):
        p = _exponential(eps0, "eps0")
        c = 1 / (p + 1)
        return ball_cells((p * c, c), (c, p * c), (1 / (2 * p), 1 / (2 * p)), bits)


def krr_blanket(eps0: Number | arb, k: int, bits: int = BITS) -> BallCells:
    """k-ary randomized response and its blanket: an upper bound for every data set."""
    _at_least(k, 2)
    with precision(bits):
        true, false = _answers(eps0, k)
        rest = false * (k - 2)
        return ball_cells((true, false, rest), (false, true, rest), (false, false, rest), bits)


def krr_alike(eps0: Number | arb, k: int, bits: int = BITS) -> BallCells:
    """k-ary randomized response where all others hold one third value: exact for that data set."""
    _at_least(k, 3)
    with precision(bits):
        true, false = _answers(eps0, k)
        rest = false * (k - 3)
        laws = ((true, false, false, rest), (false, true, false, rest), (false, false, true, rest))
        return ball_cells(*laws, bits)


def _answers(eps0: Number | arb, k: int) -> tuple[arb, arb]:
    """The probabilities of the true answer and of each other one."""
    p = _exponential(eps0, "eps0")
    false = 1 / (p + (k - 1))
    return p * false, false


def channel(matrix: Sequence[Sequence[Fraction]], x: int, x2: int, y: int, bits: int = BITS) -> BallCells:
    """The channel `matrix[value][message]` where all others hold `y`: exact for that data set."""
    _check(matrix)
    return _merged(matrix[x], matrix[x2], matrix[y], bits)


def channel_blanket(matrix: Sequence[Sequence[Fraction]], x: int, x2: int, bits: int = BITS) -> BallCells:
    """The channel `matrix[value][message]` and its blanket, the least of every column: bounds every data set."""
    _check(matrix)
    return _merged(matrix[x], matrix[x2], [min(column) for column in zip(*matrix, strict=True)], bits)


def from_floats(cells: Cells, bits: int = BITS) -> BallCells:
    """Cells of floats, read as the binary fractions that they are.

    `slack` becomes a cell that hides nobody, which adds it to delta: an upper bound. `others` that rounding has made
    more than 1 in all are divided by their sum, which gives the others less and so can only raise delta.
    """
    first, second, others = ([Fraction(float(v)) for v in row] for row in (cells.first, cells.second, cells.others))
    total = sum(others, Fraction(0))
    if 1 < total < 1 + Fraction(1, 10**9):
        others = [mass / total for mass in others]
    if cells.slack > 0:
        first, second, others = [*first, Fraction(cells.slack)], [*second, Fraction(0)], [*others, Fraction(0)]
    return ball_cells(first, second, others, bits)


def delta_ball(exact_cells: BallCells, n: int, epsilon: Number | arb, bits: int = BITS) -> arb:
    """A ball that covers `delta(epsilon)` of the cells shuffled among `n` people."""
    if n < 1:
        raise ProblemError(f"n must be at least 1, the person whose value is asked about. Found {n}.")
    with precision(bits):
        factor = _exponential(epsilon, "epsilon")
        bare, kinds = arb(0), []
        for a, b, mass in zip(exact_cells.first, exact_cells.second, exact_cells.others, strict=True):
            if mass.is_zero():
                bare += (a - factor * b).max(arb(0))
            elif mass > 0:
                kinds.append(_Kind((a - factor * b) / mass, mass))
            else:
                raise ProblemError(f"others must be positive or exactly 0 in every cell. Found {mass.str(5)}.")
        left = 1 - sum((kind.mass for kind in kinds), arb(0))
        if left < 0:
            raise ProblemError(f"others must sum to at most 1. Found {(1 - left).str(20)}.")
        if left > 0:  # what cannot be told from 0 is left out, and so is in the mass that is missing
            kinds.append(_Kind(arb(0), left))
        most = reduce(arb.max, (kind.value for kind in kinds), arb(0))
        kinds = sorted(_apart(kinds), key=lambda kind: float(kind.mass.mid()))
        _affordable(kinds, n, bits)
        value, counted = _expectation(kinds, n, bits)
        missing = (1 - counted).max(arb(0)).upper() * most.upper()
        return value / n + _up_to(missing) + bare


def _expectation(kinds: Sequence[_Kind], n: int, bits: int) -> tuple[arb, arb]:
    """`E[sum_j N_j v_j]_+` over the counts that are not left out, and their probability."""
    total = sum((kind.mass for kind in kinds), arb(0)) ** n
    outer, inner = kinds[:-3], sorted(kinds[-3:], key=lambda kind: float(kind.value.mid()))
    if len(inner) == 1:
        return n * inner[0].value.max(arb(0)) * total, total
    low, high, middle = inner[0], inner[-1], inner[1] if len(inner) == 3 else _Kind(inner[0].value, arb(0))
    core = _Core(low.value - middle.value, high.value - middle.value, low.mass, high.mass, middle.mass)
    value = counted = arb(0)
    for left, offset, weight in _counts(outer, low.mass + high.mass + middle.mass, n, bits):
        part, mass = core.positive(left, offset + left * middle.value, bits)
        value += weight * part
        counted += weight * mass
    return value * total, counted * total


@dataclass(frozen=True)
class _Core:
    """Two kinds of values `low < 0 < high` and one of value 0 (or, where `none` is 0, two of `low = 0 < high`)."""

    low: arb
    high: arb
    lows: arb
    highs: arb
    none: arb

    def positive(self, n: int, offset: arb, bits: int) -> tuple[arb, arb]:
        """`E[offset + low N_b + high N_a]_+` of `n` messages, and the probability of the counts `C` not left out."""
        both, gap = self.lows + self.highs, self.high - self.low
        rho, stay, odds = self.highs / both, self.lows / both, self.highs / self.lows
        mean, lift = rho * self.high + stay * self.low, gap * stay
        start, wrong_start = _fixed(-offset / gap, bits)
        slope, wrong_slope = _fixed(-self.low / gap, bits)
        slope = min(max(slope, 0), 1 << bits)  # no further from the truth, which is between 0 and 1
        value = mass = f = tail = arb(0)
        t = 0  # 0 until the threshold is first among 1..C
        for c, weight in _binomial(n, both / (both + self.none), self.none / (both + self.none), bits):
            mass += weight
            need = ((start + slope * c) >> bits) + 1
            if need > c:
                continue
            if need <= 0:
                value += weight * (offset + mean * c)
                continue
            if t == 0:
                t, (f, tail) = need, _tail(c, need, rho, stay)
            else:
                f = f * stay * c / (c - t)
                tail += f * t / c
                if need > t:
                    tail -= f
                    f = f * odds * (c - t) / (t + 1)
                    t += 1
            value += weight * ((offset + mean * c) * tail + lift * f * t)
        return value + _up_to(gap * (wrong_start + n * wrong_slope)), mass


def _counts(outer: Sequence[_Kind], inner: arb, n: int, bits: int) -> Iterator[tuple[int, arb, arb]]:
    """Every count of the outer kinds: the messages left for the inner ones, the sum so far and the probability."""
    if not outer:
        yield n, arb(0), arb(1)
        return
    kind, rest = outer[0], sum((k.mass for k in outer[1:]), inner)
    for count, weight in _binomial(n, kind.mass / (kind.mass + rest), rest / (kind.mass + rest), bits):
        for left, offset, more in _counts(outer[1:], inner, n - count, bits):
            yield left, offset + count * kind.value, weight * more


def _binomial(n: int, yes: arb, no: arb, bits: int) -> Iterator[tuple[int, arb]]:
    """The law of `Bin(n, yes)` but for its far tails; `no` is `1 - yes`."""
    if no.is_zero():
        yield n, arb(1)
        return
    low, high = _window(n, float(yes.mid()), bits)
    weight, odds = arb.bin_uiui(n, low) * yes**low * no ** (n - low), yes / no
    for count in range(low, high + 1):
        yield count, weight
        weight = weight * odds * (n - count) / (count + 1)


def _window(n: int, share: float, bits: int) -> tuple[int, int]:
    """Counts outside of which `Bin(n, share)` has about `2^-(bits/2)` on either side, by Bernstein's inequality."""
    log = bits / 2 * math.log(2)
    reach = log / 3 + math.sqrt(log * log / 9 + 2 * log * n * share * (1 - share))
    return max(0, math.floor(n * share - reach)), min(n, math.ceil(n * share + reach))


def _tail(c: int, t: int, rho: arb, stay: arb) -> tuple[arb, arb]:
    """`P(Bin(c,rho) = t)` and `P(Bin(c,rho) >= t)` for `1 <= t <= c`, from the end that is nearer."""
    f = arb.bin_uiui(c, t) * rho**t * stay ** (c - t)
    term, tail = f, f
    if 2 * t > c:
        for i in range(t, c):
            term = term * rho * (c - i) / (stay * (i + 1))
            tail += term
        return f, tail
    tail = arb(1)
    for i in range(t, 0, -1):
        term = term * stay * i / (rho * (c - i + 1))
        tail -= term
    return f, tail


def _apart(kinds: Sequence[_Kind]) -> list[_Kind]:
    """Kinds of values that are proved to be different."""
    result: list[_Kind] = []
    for kind in sorted(kinds, key=lambda kind: kind.value.mid().fmpq()):
        last = kind
        while result and not last.value > result[-1].value:
            before = result.pop()
            last = _Kind(before.value.union(last.value), before.mass + last.mass)
        result.append(last)
    return result


def _fixed(number: arb, bits: int) -> tuple[int, arb]:
    """An integer that is about `number * 2^bits`, and the most that it is wrong by, in units of `number`."""
    scale = arb(2) ** bits
    whole = (number * scale).mid().floor().unique_fmpz()
    if whole is None:
        raise ArithmeticError("A ball without bounds has no integer part.")
    return int(whole), abs(number - arb(fmpz(whole)) / scale).upper()


def _affordable(kinds: Sequence[_Kind], n: int, bits: int) -> None:
    """Refuses what would take more than `BUDGET` steps."""
    widths = [high - low + 1 for low, high in (_window(n, float(kind.mass.mid()), bits) for kind in kinds)]
    free = max(len(kinds) - 2, 0)  # every count but those of the last two kinds, which the tails take in
    steps = min(math.prod(sorted(widths)[:free]), math.comb(n + free, free))
    if steps > BUDGET or len(kinds) > KINDS:
        raise ProblemError(
            f"Ball arithmetic takes at most {KINDS} kinds of messages and 10^{math.log10(BUDGET):.1f} steps. Found "
            f"{len(kinds)} kinds among {n} people, 10^{math.log10(steps):.1f} steps. Merge cells, which lowers delta, "
            "or use the bounds in floats."
        )


def _exponential(number: Number | arb, name: str) -> arb:
    """`e^number`."""
    return (number if isinstance(number, arb) else ball(to_fraction(number, name))).exp()


def _ball(number: arb | Fraction | int) -> arb:
    return number if isinstance(number, arb) else ball(number)


def _up_to(bound: arb) -> arb:
    """The ball from 0 to `bound`."""
    return arb(0).union(bound.upper())


def _at_least(k: int, least: int) -> None:
    if k < least:
        raise ProblemError(f"k must be at least {least}. Found {k}.")


def _check(matrix: Sequence[Sequence[Fraction]]) -> None:
    for row in matrix:
        if sum(row) != 1 or min(row) < 0 or len(row) != len(matrix[0]):
            raise ProblemError("Every row of a channel must hold as many probabilities as the first and sum to 1.")


def _merged(first: Sequence[Fraction], second: Sequence[Fraction], others: Sequence[Fraction], bits: int) -> BallCells:
    """Cells of messages; those in the same proportions become one, which changes nothing."""
    sums: dict[tuple[Fraction, ...], list[Fraction]] = {}
    for row in zip(first, second, others, strict=True):
        if row[0] + row[1] > 0:
            whole = sum(row)
            total = sums.setdefault(tuple(part / whole for part in row), [Fraction(0)] * 3)
            for i, part in enumerate(row):
                total[i] += part
    rows = list(sums.values())
    return ball_cells([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], bits)
