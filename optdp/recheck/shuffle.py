"""A shuffle protocol: the integers of its clients, what one message reveals, and what all of them do.

**Response** on `m` values: with probability `gamma` a uniform answer, `u m >> 124` for a uniform `u` of 124 bits. It is
`lambda = m floor(2^124/m) / 2^124` times the ideal law or more, so that `1 - lambda` for each person is paid from
delta. One message: the likeliest quotient is `1 + (1-gamma)/(gamma floor(2^124/m) / 2^124)`. All of them (B, Lemma 8):
of n people let `a` answer `x` at random, `b` answer `x'` at random, `t` something else at random; then

    delta <= 1/(gamma n) E[A a - B b - C (a+b+t)]_+,    A = m (1-gamma),  B = e^epsilon A,  C = gamma (e^epsilon - 1).

`s = a + b` is binomial, `a` given `s` is a fair coin's, `t` given `s` is binomial. Laws are cut where less than `CUT`
is left on a side; what is cut counts with the largest value that there is, `A n`. With two values the claim rests on a
search over all data sets, which is left to `optdp verify`.

**Padded noise** is taken as its integer weights, whatever law they stand for. Let `t` be the chance of noise beyond the
padding `c`, `g_v` the law of the sum of `v` people's noise within `c` (its mass is `(1-t)^v`). Tell the reader who
exceeded `c`, and their messages. If `m` people differ, and the sums are `s` apart,

    delta(L) <= m t + D_n(s) + (n-m) t D_(n-1)(s) + n^2 t^2 / 2,    D_v(s) = sum over x of [g_v(x) - e^L g_v(x-s)]_+.

At distance d it is largest for `m = d` (or n), as `D <= 1`; `s` is anything up to d. If only `h` of `n` people add
noise, what they hide is a bound: `v` is `h` (the others' messages are known, and taken off; of more honest people some
are as good as known). More than `h` who differ all add noise, and what `h` of them hide is a bound, too. Where that
does not do, one message's epsilon does, and rounding is paid from delta as above: the weights against enclosures of
SGDL(beta, q). One message: `log f(0)/f(1)`, as quotients of that law fall with the distance from the middle for
`beta <= 1`.

Coarse messages, two coordinates and flipped bits are looked at as files, and so are the integers of their noise; their
profiles are left to `optdp verify`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate
from typing import Any

from .claims import as_decimal
from .devices import ALL, Padded, figures_of, metric_of, profile_of, response_of, width_of
from .enclosures import Geometric, Pair, Shares, bits_lost, exponential, log_above, within
from .fields import one_of, whole_number
from .laws import multiplied
from .reading import check_head
from .verdict import Failed, Findings, Refused, must, printable, shown, spend

UNIT = 1 << 256
"""Laws of sums are enclosed in multiples of `1/UNIT`."""
CUT = UNIT >> 160
CLOSE = 1 + Fraction(1, 1 << 44)
"""A figure may be above what is claimed by the round-off of `optdp verify`, relatively."""
ROUNDED = Fraction(1, 1 << 76)
"""So much of a probability may be lacking for rounding: what is claimed of errors is that of the law stood for."""
OF_PRIVACY = ("epsilon", "local_epsilon", "local_delta", "delta")
OF_ERRORS = ("mae", "rmse", "within_95", "truncation")
LONGEST = 20_000
"""The longest law of one person's noise that is convolved, or enclosed."""
Side = tuple[list[int], list[int], int]
"""A law on `-w..w`, from below and from above, and what of it was cut."""
Figures = dict[str, Fraction | bool | None]


def recheck_shuffle(path: str | os.PathLike[str], document: Mapping[str, Any]) -> Findings:
    try:
        check_head(document, "optdp/shuffle", "format version kind people client data claim provenance sha256")
        kind = one_of(document["kind"], "kind", "metric-shuffle shuffle-histogram real-sum")
        figures, unchecked = (_metric if kind == "metric-shuffle" else _response)(document)
        return Findings("PASS", kind, figures, unchecked, document["sha256"])
    except (Refused, Failed) as error:
        raise type(error)(f"{printable(path)}: {error}") from None


def _held(claim: Mapping[str, Any], name: str, holds: bool, found: Fraction | None) -> None:
    if not holds:
        raise Failed(f"the claim {name} = {shown(claim[name])} does not hold. Found {as_decimal(found)}.")


# ---------------------------------------------------------------------- randomized response


def _response(document: Mapping[str, Any]) -> tuple[Figures, tuple[str, ...]]:
    real, claim, device = document["kind"] == "real-sum", document["claim"], response_of(document)
    n, k, gamma, least = device.n, device.values, device.gamma, Fraction(ALL // device.values, ALL)
    error = "mse" if real else "standard_error"
    honest = whole_number(claim.get("honest"), "honest", 2, n)
    stated = figures_of(claim, document["kind"], f"epsilon delta local_epsilon {error}", "honest")
    ratio = 1 + (1 - gamma) / (gamma * least)
    _held(claim, "local_epsilon", within(ratio, stated["local_epsilon"] * CLOSE), log_above(ratio))
    squared = _sum_error(n, k - 1, gamma) * width_of(document) ** 2 if real else _count_error(n, k, gamma)
    claimed = stated[error] ** (1 if real else 2)
    _held(claim, error, squared <= claimed * CLOSE**2, squared)
    rounding = n * (1 - k * least)
    found: Fraction | None = rounding
    if not within(ratio, stated["epsilon"]):
        found = None if k == 2 else blanket(honest, k, gamma, stated["epsilon"])
        if found is not None:
            found += rounding
            _held(claim, "delta", found <= stated["delta"], found)
    figures: Figures = {"epsilon": stated["epsilon"], "local_epsilon": log_above(ratio)}
    figures |= {"mse" if real else "variance": squared} | ({} if found is None else {"delta": found})
    return figures, () if found is not None else ("epsilon", "delta")


def _sum_error(n: int, k: int, gamma: Fraction) -> Fraction:
    """The largest variance of a message over `x` in `0..k`, which is reached at an end or between two steps."""
    second = Fraction(k * (2 * k + 1), 6)  # of a uniform message
    worst = Fraction(0)
    # with x = j + f: (1-gamma)(x^2 + f(1-f)) + gamma second - ((1-gamma) x + gamma k/2)^2, concave in x within a step
    for j in {0, k // 2, (k - 1) // 2, k - 1}:
        for f in {_best(j, k, gamma), Fraction(0), Fraction(1)}:
            x = j + f
            mean = (1 - gamma) * x + gamma * k / 2
            worst = max(worst, (1 - gamma) * (x * x + f * (1 - f)) + gamma * second - mean * mean)
    return n * worst / (k * (1 - gamma)) ** 2


def _best(j: int, k: int, gamma: Fraction) -> Fraction:
    """Where within step `j` the variance is largest: the derivative `2j + 1 - 2 mean` is 0."""
    f = (Fraction(2 * j + 1) - gamma * k - 2 * (1 - gamma) * j) / (2 * (1 - gamma))
    return min(Fraction(1), max(Fraction(0), f))


def _count_error(n: int, k: int, gamma: Fraction) -> Fraction:
    """The variance of the inverted count of a value that n/k people hold."""
    false, held = gamma / k, Fraction(n, k)
    true = 1 - gamma + false
    return (held * true * (1 - true) + (n - held) * false * (1 - false)) / (1 - gamma) ** 2


def blanket(n: int, k: int, gamma: Fraction, epsilon: Fraction) -> Fraction | None:
    """At least the bound of delta, in fixed point; None if it would take too long."""
    widths = [math.isqrt(int(share * n) + 1) for share in (2 * gamma / k, gamma)]
    if widths[0] * (widths[0] + widths[1]) > 100_000:
        return None
    low, _, bits = exponential(epsilon)
    first = k * (1 - gamma)
    down, cost = first * Fraction(low, 1 << bits), gamma * (Fraction(low, 1 << bits) - 1)
    each = gamma / k
    total, cut = 0, 0
    start, law, left = _binomial(n, 2 * each)
    cut += left
    for s, weight in enumerate(law, start):
        if s:
            total += weight * _given(s, n - s, (gamma - 2 * each) / (1 - 2 * each), first, down, cost) // UNIT + 1
    return (Fraction(total + 1, UNIT) + first * n * Fraction(cut, UNIT)) / (gamma * n)


def _given(s: int, others: int, p: Fraction, up: Fraction, down: Fraction, cost: Fraction) -> int:
    """At least `E[up a - down (s-a) - cost (s + t)]_+` times UNIT, given that `a + b = s`."""
    start, law, left = _binomial(others, p)
    mass = list(accumulate(law, initial=0))
    moment = list(accumulate((t * weight for t, weight in enumerate(law, start)), initial=0))
    first, coins, lost = _binomial(s, Fraction(1, 2))
    found = math.ceil(up * s * (left + lost))
    for a, weight in enumerate(coins, first):
        gain = up * a - down * (s - a) - cost * s
        last = min(len(law), math.floor(gain / cost) - start + 1)  # t below gain/cost
        if gain > 0 and last > 0:
            spend(2, 512)
            # laws are rounded up by less than 1 each, moments by as much times t: what is taken off is rounded down
            inner = math.ceil(gain * mass[last]) - math.floor(cost * (moment[last] - last * (start + last)))
            found += weight * max(inner, 0) // UNIT + 1
    return found


def _binomial(n: int, p: Fraction) -> tuple[int, list[int], int]:
    """`Pr[first..]` of Bin(n, p) times UNIT, rounded up by less than 1, and at least what is left out."""
    if n == 0 or not p:
        return 0, [UNIT], 0
    mode = min(n, int((n + 1) * p))
    odds = p / (1 - p)
    top, bottom = odds.numerator, odds.denominator
    one = 1 << 400  # relative to the largest; then divided by the sum
    right, left = [one], []
    for j in range(mode, n):
        right.append(right[-1] * (n - j) * top // ((j + 1) * bottom))
        if right[-1] < one >> 190:
            break
    value = one
    for j in range(mode, 0, -1):
        value = value * j * bottom // ((n - j + 1) * top)
        left.append(value)
        if value < one >> 190:
            break
    values = left[::-1] + right
    spend(4 * len(values), 500)
    whole = sum(values)  # too small: every quotient is too large, by less than 2^-150 of itself in all
    law = [value * UNIT // whole + 1 for value in values]
    return mode - len(left), law, 4 * CUT


# ---------------------------------------------------------------------- sums with metric privacy


def _metric(document: Mapping[str, Any]) -> tuple[Figures, tuple[str, ...]]:
    claim = document["claim"]
    n, furthest, honest, noise, sides = metric_of(document)
    more = "profile max_distance shuffler honest"
    stated = figures_of(claim, document["kind"], " ".join((*OF_PRIVACY, *OF_ERRORS)), more)
    least = whole_number(claim["honest"], "honest", 1 if honest else n, n)
    profile = profile_of(claim, furthest, sides)
    _held(claim, "epsilon", max(profile) <= stated["epsilon"] * CLOSE, max(profile))
    left = ("profile", *(name for name in OF_PRIVACY if name != "delta"), *OF_ERRORS)
    if noise is None or noise.padding > LONGEST or len(noise.weights) > LONGEST:
        return {}, left
    ideal = _ideal(noise.beta, noise.q)
    lacking = _lacking(noise, ideal)
    must(lacking <= ROUNDED, "weights must be those of beta and q, but for rounding", as_decimal(lacking))
    if not noise.plain:
        return {}, left
    ratio = Fraction(ideal[0][0][1], ideal[0][1][0])
    alone = log_above(ratio)
    _held(claim, "local_epsilon", within(ratio, stated["local_epsilon"] * CLOSE), alone)
    _held(claim, "local_delta", lacking <= stated["local_delta"] * CLOSE, lacking)
    worst = Fraction(0)
    sums = _sums(noise, least) if honest else None
    for d, epsilon in enumerate(profile, 1):
        if within(ratio, epsilon * CLOSE):
            found = (n if honest else 1) * lacking
        else:
            loss = epsilon * CLOSE * d
            found = _shared(sums, least, min(d, n), d, loss) if sums is not None else max(
                _alone(noise, s, loss) for s in range(1, d + 1))  # fmt: skip
        worst = max(worst, found)
        _held(claim, "profile", found <= stated["delta"], found)
    return {"epsilon": stated["epsilon"], "local_epsilon": alone, "delta": worst}, OF_ERRORS


def _ideal(beta: Fraction, q: Fraction) -> tuple[list[Pair], int, Fraction]:
    """SGDL(beta, q) at 0, 1, .. in enclosures over a unit, as far as it matters, and at least what lies beyond."""
    last = (170 + (q.denominator // (q.denominator - q.numerator)).bit_length()) * 64 // bits_lost(q) + 3
    must(last <= LONGEST, f"Noise must reach no further than {LONGEST} here. Use optdp verify", last)
    if beta == 1:
        noise = Geometric(q, last)
        values, unit = [noise.at(x) for x in range(last + 1)], 1 << noise.bits
    else:
        law = Shares(beta, q, last, relative=False)
        values, unit = list(zip(law.below, law.above, strict=True)), 1 << law.bits
    return values, unit, values[-1][1] * q / (1 - q)  # for beta <= 1 no quotient of neighbours is above q


def _lacking(noise: Padded, ideal: tuple[list[Pair], int, Fraction]) -> Fraction:
    """The largest part of a probability of the ideal law, clamped to the reach, that the weights lack."""
    values, unit, beyond = ideal
    weights, reach = noise.weights, noise.reach
    clamped = sum(above for _, above in values[reach:]) + beyond
    wanted = [Fraction(above) for _, above in values[:reach]]
    wanted += [beyond] * (min(len(weights), reach) - len(wanted))
    found = [(weights[x] if x < len(weights) else 1, value) for x, value in enumerate(wanted)]
    found.append((noise.weight(reach), clamped))
    spend(4 * len(found), 600)
    return max([Fraction(0), *(1 - Fraction(weight * unit) / (value * ALL) for weight, value in found if value)])


def _sums(noise: Padded, n: int) -> tuple[Fraction, Side, Side]:
    """The chance of noise beyond the padding; the laws of n, and of n-1 people's noise within it."""
    inside = [noise.weight(x) for x in range(-noise.padding, noise.padding + 1)]
    beyond = Fraction(ALL - sum(inside), ALL)
    exact = [weight * (UNIT // ALL) for weight in inside]
    one: Side = _trimmed((exact, exact, 0))
    return beyond, _power(one, n), _power(one, n - 1)


def _power(one: Side, n: int) -> Side:
    found: Side = ([UNIT], [UNIT], 0)
    for bit in f"{n:b}" if n else "":
        found = _together(found, found)
        if bit == "1":
            found = _together(found, one)
    return found


def _together(one: Side, other: Side) -> Side:
    below = [value // UNIT for value in multiplied(one[0], other[0])]
    above = [-(-value // UNIT) for value in multiplied(one[1], other[1])]
    return _trimmed((below, above, one[2] + other[2] + (one[2] * other[2] // UNIT) + 1))


def _trimmed(law: Side) -> Side:
    """The same without its ends, of at most CUT each."""
    below, above, cut = law
    ends = 0
    for value in accumulate(above):
        if value > CUT or 2 * ends + 2 >= len(above):
            break
        ends += 1
    if not ends:
        return law
    return below[ends:-ends], above[ends:-ends], cut + 2 * sum(above[:ends])


def _shared(sums: tuple[Fraction, Side, Side], n: int, m: int, d: int, loss: Fraction) -> Fraction:
    """At least delta at a distance and a loss, the shuffler honest, if n people add noise and up to m people differ."""
    t, all_of, less = sums
    rest = max(0, n - m)
    worst = max(_stick(all_of, s, loss) + rest * t * _stick(less, s, loss) for s in range(1, d + 1))
    return m * t + worst + max(n, m) ** 2 * t * t / 2


def _stick(law: Side, shift: int, loss: Fraction) -> Fraction:
    """At least `sum over x of [g(x) - e^loss g(x - shift)]_+`."""
    below, above, cut = law
    low, _, bits = exponential(loss)
    size = len(above)
    spend(2 * size, 300)
    total = cut
    for x in range(size):
        other = below[x - shift] if x - shift >= 0 else 0
        total += max(0, above[x] - (other * low >> bits))
    return Fraction(total, UNIT)


def _alone(noise: Padded, shift: int, loss: Fraction) -> Fraction:
    """The same of one message, for any two values so far apart; what is clamped is one message, 0 or the largest."""
    low, _, bits = exponential(loss)
    reach, padding = noise.reach, noise.padding
    spend(6 * reach, 300)
    law = [noise.weight(x) for x in range(-reach, reach + 1)]
    below = list(accumulate(law, initial=0))  # below[i]: noise under i - reach

    def less(x: int) -> int:
        return below[min(max(x + reach, 0), len(law))]

    def more(one: int, other: int) -> int:
        return max(0, (one << bits) - other * low)

    gains = [more(law[i], law[i - shift] if i >= shift else 0) for i in range(len(law))]
    sums = list(accumulate(gains, initial=0))
    worst, steps = 0, reach - padding
    for v in range(steps - shift + 1):  # the values v and v + shift
        first, last = 1 - padding - v, steps + padding - v  # noise whose message is not clamped: first..last-1
        inner = sums[min(last + reach, len(law))] - sums[max(first + reach, 0)]
        ends = more(less(first), less(first - shift)) + more(ALL - less(last), ALL - less(last - shift))
        worst = max(worst, inner + ends)
    return Fraction(worst, ALL << bits)
