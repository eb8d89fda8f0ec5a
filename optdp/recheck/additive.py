"""Noise that is added to every input, and the same for all: `form = "additive"`.

The table has one row, for the noise `-reach..reach`; larger noise has the law `G(e) = (1-q)/(1+q) q^|e|`. With `c` the
mass that `G` leaves inside, the noise has the law `f(e) = c weight/denominator` there.

**Privacy.** Let `g` be the law of what all but one person contribute: `h = g * f` is the law of a release if that one
contributes nothing, and `h(s - w)` that with a contribution of `w`. So `h(t)` and `h(t + d)` are compared, for each
step `d` and every integer `t`. `h(t)` is a finite sum over the row and two sums over the tails, which follow from their
neighbours, each term positive:

    u(t) = sum over x < t - reach of g(x) q^(t-x)        u(t + 1) = q (u(t) + q^reach g(t - reach))

and the same mirrored. That is done for all `t` from `a` to `b`.

**Below `a`, above `b`.** If `g` ends somewhere, only tails are left farther out than `reach`, and a step changes `h` by
the factor `q`. Of very many people who contribute 0 or 1, `g(x+1) / g(x)` falls with `x`. Let it be at least `q^-2` at
some `z`, and `k >= 0`. For `t <= z - 2 reach - k` both sums over noise up to `reach`, of `f` and of `G`, are at most
`g(t + reach)`, as `g` rises up to there; all of `G` gives `(g * G)(t) >= G(2 reach + k) g(t + 2 reach + k)`, and
`g(t + 2 reach + k) >= q^(-2 reach - 2k) g(t + reach)`. So `h(t)` and `(g * G)(t)` differ by at most the share

    eta = (1+q)/(1-q) q^k

of the latter, and as a step `d` changes `g * G` by at most `q^-d`, it changes `h` by at most `(1+eta)/(1-eta) q^-d`.

**Lower bounds.** `at[i] = [kind, t, d, way]` names a rule, `h(t + d) <= E h(t)` for way 0 and the converse for way 1,
and `u[i]` its price. For any `E >= e^eps` and any law of noise that keeps the rules its error is at least the minimum
over `e` of `|e|^p - sum of price (E g(t - e) - g(t + d - e))`; where no sum is possible, `|e|^p` alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from .bounds import FINE, price_lines
from .claims import as_decimal, figure, stated
from .enclosures import exponential, worst_of
from .entity import Table
from .laws import WIDTH, Law, Number, Wide, added, largest_quotient, multiplied, powers, times, trimmed, widened
from .priors import Prior
from .verdict import GUARD, Failed, Refused, must, spend

LONGEST = 5001
"""The longest law of the others of which a bound is looked at here."""


@dataclass(frozen=True)
class Noise:
    """The law `f`."""

    reach: int
    denominator: int
    row: Sequence[Sequence[int]]
    q: Fraction

    @cached_property
    def powers(self) -> list[Number]:
        return powers(self.q, self.reach + 1)

    @cached_property
    def inside(self) -> Number:
        """`c`."""
        low, high, e = times(self.powers[-1], 2 * self.q.denominator, self.q.denominator + self.q.numerator)
        whole = 1 << WIDTH
        shift = e + WIDTH
        below, above = (low << shift, high << shift) if shift >= 0 else (low >> -shift, -(-high >> -shift))
        return max(0, whole - above), whole - below, -WIDTH

    @cached_property
    def outside(self) -> Number:
        """`(1-q)/(1+q) q^(reach+1)`."""
        return times(self.powers[-1], self.q.denominator - self.q.numerator, self.q.denominator + self.q.numerator)

    def ordinary(self, reach: int) -> Fraction | None:
        """The largest quotient of two inputs that are up to `reach` apart."""
        if len(self.row) < 2 * self.reach + 1:
            return None
        q = self.q
        found: list[Fraction | None] = [_inverse(self.q, reach)]
        if self.reach:
            tail = [self.outside]
            for _ in range(reach):
                tail.append(times(tail[-1], q.numerator, q.denominator))
            middle = [_product(self.inside, trimmed(weight, weight, 0)) for _, weight in self.row]
            middle = [times(number, 1, self.denominator) for number in middle]
            law = [*tail[::-1], *middle, *tail]
            found += [worst for d in range(1, reach + 1) for worst in _compared(law, d)]
        return worst_of(found)

    def error(self, power: int) -> Fraction:
        """At least the mean of `|e|^power`: `sum over k >= d of k^p q^k` by differentiating a geometric series."""
        d, q = self.reach + 1, self.q
        if power == 1:
            series = d / (1 - q) + q / (1 - q) ** 2
        else:
            series = d * d / (1 - q) + 2 * d * q / (1 - q) ** 2 + q * (1 + q) / (1 - q) ** 3
        tails = _above(self.outside) * 2 * series
        row = Fraction(sum(weight * abs(e) ** power for e, weight in self.row), self.denominator)
        return _above(self.inside) * row + tails

    def quotient(self, prior: Prior, every: bool) -> Fraction | None:
        """The largest quotient of two contributions that are a step apart, of anybody."""
        if self.reach == 0:  # geometric noise itself
            return _inverse(self.q, prior.largest if every else 1)
        kept, eta = self._window(prior)
        found: list[Fraction | None] = []
        for i, size in enumerate(prior.sizes):
            others = prior.wide_people(kept)[i][0] if prior.wide else widened(prior.people[i][0])
            top = size - 1 if every else min(size - 1, 1)
            if not top:
                continue
            values = self._seen(others, top, kept)
            found += [worst for d in range(1, top + 1) for worst in _compared(values, d)]
            found.append((1 + eta) / (1 - eta) * _inverse(self.q, top))
        return worst_of(found)

    def _window(self, prior: Prior) -> tuple[range | None, Fraction]:
        """The sums near which every release is looked at, if not all, and `eta`."""
        if not prior.wide or prior.crowd is None:
            return None, Fraction(0)
        n, f0, f1, shift = prior.crowd
        k, power, whole = 0, powers(self.q, 1)[0], Fraction(1 + self.q) / (1 - self.q)
        while whole * _above(power) > Fraction(1, 2**100):
            k, power = k + 1, times(power, self.q.numerator, self.q.denominator)
            spend(4, WIDTH + self.q.denominator.bit_length())
        near, square = 2 * self.reach + k + 2, self.q * self.q
        ends = []
        for zero, one in ((f0, f1), (f1, f0)):  # the others are n - 1
            z = math.floor(((n - 1) * one * square - zero) / (zero + one * square))
            ends.append(z - near - self.reach)
        low, high = ends[0], n - 1 - ends[1]
        return range(shift + low, shift + high + 1), whole * _above(power)

    def _seen(self, others: Wide, step: int, kept: range | None) -> list[Number]:
        """`h`, times a number, for the releases that have to be looked at, and a step more on both sides."""
        end = others.first + len(others.numbers) - 1
        first, last = others.first - self.reach - 1 - step, end + self.reach + 1 + step
        if kept is not None:  # what was cut off of `others` stands more than `reach` beyond what is looked at
            first, last = max(first, kept[0] + self.reach + 1), min(last, kept[-1] - self.reach - 1)
        count = last - first + 1
        spend(count * (len(self.row) + 12), 2 * WIDTH)
        q, reach, g = self.q, self.reach, others.numbers

        def at(x: int) -> Number:
            return g[x - others.first] if 0 <= x - others.first < len(g) else (0, 0, 0)

        below: Number = (0, 0, 0)  # sums over x < t - reach of g(x) q^(t - reach - 1 - x)
        for x in range(others.first, first - reach):
            below = added([times(below, q.numerator, q.denominator), at(x)])
        above: Number = (0, 0, 0)
        for x in range(end, last + reach, -1):
            above = added([times(above, q.numerator, q.denominator), at(x)])
        left, right = [below], [above]
        for t in range(first + 1, last + 1):
            left.append(_next(left[-1], q, at(t - reach - 1)))
        for t in range(last - 1, first - 1, -1):
            right.append(_next(right[-1], q, at(t + reach + 1)))
        values = []
        for t, u, v in zip(range(first, last + 1), left, reversed(right), strict=True):
            row = self._row_sum(t, at)
            tails = _product(self.outside, added([u, v]))
            values.append(added([times(_product(self.inside, row), 1, self.denominator), tails]))
        return values

    def _row_sum(self, t: int, at: Any) -> Number:
        """`sum over e of weight(e) g(t - e)`."""
        return added([(low * weight, high * weight, e) for (low, high, e), weight in
                      ((at(t - place), weight) for place, weight in self.row) if high] or [(0, 0, 0)])  # fmt: skip


def read_noise(table: Table) -> Noise:
    """The noise of a table whose tail says that it is added."""
    right = (table.first, table.final, table.low) == (0, 0, -table.high) and table.outside == "geometric"
    must(right, "Added noise must have one row, for noise from -reach to reach", [table.low, table.high])
    must(table.high <= 100_000, "The reach of added noise must be at most 100,000", table.high)
    must(table.q is not None, "Added noise must have a tail", None)
    return Noise(table.high, table.denominator, table.rows[0], table.q or Fraction(1, 2))


def check_noise_bound(
    claim: Mapping[str, Any], provenance: Mapping[str, Any], value: Fraction, priors: Sequence[Prior],
    every: bool, power: int, epsilon: Fraction,
) -> tuple[str, ...]:  # fmt: skip
    """The claimed bound must be at most the error, `value`, and be proved; its name if it is not looked at here.

    `epsilon` is what a step may reveal.
    """
    if claim.get("lower_bound") is None:
        return ()
    limit = stated(claim, "lower_bound")
    if limit > figure(value):
        raise Failed(f"a lower bound must be at most the objective, {as_decimal(value)}. Found {as_decimal(limit)}.")
    kinds = [(prior, i, size - 1 if every else 1) for prior in priors for i, size in enumerate(prior.sizes) if size > 1]
    if any(prior.last >= LONGEST for prior, _, _ in kinds):
        return ("lower_bound",)
    prices = provenance.get("prices")
    if not (isinstance(prices, dict) and prices.keys() == {"at", "u"}):
        raise Refused("A lower bound must come with prices that prove it. Found None.")
    (u,), at = price_lines([prices["u"]], prices["u"]), prices["at"]
    right = isinstance(at, list) and len(at) == len(u) and all(isinstance(rule, list) and len(rule) == 4 for rule in at)
    must(right and all(type(number) is int for rule in at for number in rule), "at must name a rule for each price", at)
    growth, bits = exponential(epsilon)[1:]
    lines: dict[int, dict[int, int]] = {}
    for (number, t, d, way), price in zip(at, u, strict=True):
        right = 0 <= number < len(kinds) and 1 <= d <= kinds[number][2] and way in (0, 1) and abs(t) <= 1 << 20
        must(right, "Prices must be of rules of the problem", [number, t, d, way])
        line, whole = lines.setdefault(number, {}), math.floor(price * 2**FINE)
        one, other = (t, t + d) if way == 0 else (t + d, t)
        line[one] = line.get(one, 0) + whole * growth
        line[other] = line.get(other, 0) - (whole << bits)
    others = [prior.people[i][0] for prior, i, _ in kinds]
    found = _least([(others[number], line) for number, line in lines.items()], power, bits)
    if Fraction(math.floor(found * 10**20), 10**20) < limit:
        raise Failed(f"the claimed lower bound {claim['lower_bound'][:40]} is not proved. Found {as_decimal(found)}.")
    return ()


def _least(lines: Sequence[tuple[Law, Mapping[int, int]]], power: int, bits: int) -> Fraction:
    """The minimum over `e`, rounded down; what is subtracted is a product of polynomials for each kind of person."""
    taken: dict[int, Fraction] = {}
    for law, line in lines:
        first, size = min(line), max(line) - min(line) + 1
        must(size <= 1 << 21, "Prices must be of releases near the likely ones", size)
        back = law.below[::-1]  # back[i] is g at law.first + len - 1 - i
        start = first - law.first - len(back) + 1
        totals = [0] * (size + len(back) - 1)
        for sign in (1, -1):
            part = [max(sign * line.get(t, 0), 0) for t in range(first, first + size)]
            if any(part):
                totals = [a + sign * b for a, b in zip(totals, multiplied(part, back), strict=True)]
        unit = law.unit << (FINE + bits)
        for e, total in enumerate(totals, start):
            share = Fraction(-(-(total << GUARD) // unit), 1 << GUARD)
            taken[e] = taken.get(e, Fraction(0)) + share
    beyond = 0
    while beyond in taken and -beyond in taken:
        beyond += 1
    found = min([Fraction(abs(e) ** power) - share for e, share in taken.items()] + [Fraction(beyond**power)])
    return max(found, Fraction(0))


def _product(one: Number, other: Number) -> Number:
    (a, b, e), (c, d, f) = one, other
    return trimmed(a * c, b * d, e + f)


def _next(before: Number, q: Fraction, more: Number) -> Number:
    """`q before + more`."""
    return added([times(before, q.numerator, q.denominator), more])


def _compared(values: Sequence[Number], d: int) -> list[Fraction | None]:
    """The largest quotients of two numbers that stand `d` apart, both ways."""
    one, other = values[:-d], values[d:]
    return [largest_quotient(one, other), largest_quotient(other, one)]


def _inverse(q: Fraction, d: int) -> Fraction:
    return Fraction(q.denominator**d, q.numerator**d)


def _above(number: Number) -> Fraction:
    _, high, e = number
    return Fraction(high << max(e, 0), 1 << max(-e, 0))
