"""Cells: a shuffled comparison in its simplest form, to which every analysis here is reduced.

One person reports among `n`. The messages fall into cells `j`. That person's message is in cell `j` with probability
`first[j]` if their value is `x`, and `second[j]` if it is `x'`. Each of the other `n-1` messages is in cell `j` with
probability `others[j]`, and in none of them (it hides nobody) with the probability that is left. Who sees how many
messages are in each cell can tell `x` from `x'` with the hockey-stick divergence

    delta(eps) = E[Z_1 + ... + Z_n]_+ / n,
    Z = (first[j] - e^eps second[j]) / others[j] with probability others[j], else 0,

with independent copies `Z_i` (B, Lemma 8 with its prefactor corrected to `1/(gamma n)`; here gamma is in `others`).
Proof: given the counts `c`, the two likelihoods are `sum_j c_j first[j]/others[j]` and the same with `second`, both
over `n` and relative to `n` messages of `others`.

- With `others[j] = inf_x R(x)(j)`, the blanket, this is an **upper** bound for every data set (B, Lemma 8).
- With `others = R(y)` it is exact for the data set in which all others hold `y`: a **lower** bound of the worst case.
- `delta` is convex in the law of `Z`: splitting a cell so that the sums of `first`, `second` and `others` are kept can
  only raise it, merging cells can only lower it, and so does any gain of `others` at the cost of the mass left over.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from optdp.numbers.positive_part import LogEnclosure, log_positive_part

Floats = NDArray[np.float64]
ROUND_OFF = 2.0**-49  # more than the entries of cells and `e^eps` are wrong by, relatively


@dataclass(frozen=True)
class Cells:
    """Two laws of one message and what the others' messages hide of it, cell by cell."""

    first: Floats
    second: Floats
    others: Floats
    slack: float = 0.0
    """Probability of the messages that were left out of the cells: it is added to an upper bound of delta."""

    def values(self, epsilon: float, units: float = 0.0) -> Floats:
        """`Z` of every cell, moved by so many units of what round-off may have done to it."""
        scale = math.exp(epsilon)
        moved = units * ROUND_OFF * (self.first + scale * self.second)
        values: Floats = (self.first - scale * self.second + moved) / self.others
        return values

    def log_upper(self, n: int, epsilon: float, grid: int) -> float:
        """An upper bound of `log delta(epsilon)` among `n` messages; `grid` is the length of the FFTs."""
        more = ROUND_OFF * float(self.others.sum())
        upper = log_positive_part(self.values(epsilon, 1.0), self.others, n, grid, more).upper - math.log(n)
        return min(0.0, upper if self.slack == 0.0 else float(np.logaddexp(upper, math.log(self.slack))))

    def log_lower(self, n: int, epsilon: float, grid: int) -> float:
        """A lower bound of the same; what was left out of the cells adds nothing to it."""
        less = -ROUND_OFF * float(self.others.sum())
        return log_positive_part(self.values(epsilon, -1.0), self.others, n, grid, less).lower - math.log(n)

    def log_delta(self, n: int, epsilon: float, grid: int) -> LogEnclosure:
        """Both."""
        return LogEnclosure(self.log_lower(n, epsilon, grid), self.log_upper(n, epsilon, grid))


def cells(first: object, second: object, others: object, slack: float = 0.0) -> Cells:
    """Cells from anything that numpy reads; those that no message reaches are left out."""
    a, b, m = (np.asarray(part, dtype=np.float64) for part in (first, second, others))
    used = (a > 0) | (b > 0)
    return Cells(a[used], b[used], m[used], slack)


LARGEST_EPS0 = 40.0
TAIL = 1e-12


@dataclass(frozen=True)
class Ratios:
    """Variation-ratio parameters."""

    p: float
    beta: float
    q: float


@runtime_checkable
class Randomizer(Hashable, Protocol):
    """What every randomizer offers. `own_eps0` is None where `eps0` picks the member of the family."""

    kind: ClassVar[str]

    @property
    def own_eps0(self) -> float | None: ...

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]: ...

    def data_sets(self, eps0: float) -> list[Cells]: ...

    def ratios(self, eps0: float) -> Ratios | None: ...


@dataclass(frozen=True)
class Family:
    """What randomizers have in common of which `eps0` picks a member."""

    @property
    def own_eps0(self) -> float | None:
        return None


def described(randomizer: Randomizer) -> str:
    """The kind and its numbers, in words."""
    if randomizer.kind == "channel":
        return str(randomizer)
    numbers = [(part.name, getattr(randomizer, part.name)) for part in fields(cast(Any, randomizer))]
    return ", ".join([randomizer.kind, *(f"{name} = {value:g}" for name, value in numbers if value)])


def variation_cells(ratios: Ratios) -> Cells:
    """The worst cells of any two laws with these ratios; a theorem, proved in docs/mathematics.md.

    Where two laws have densities `a` and `b`, every other input has at least `max(a, b)/q`. Splitting every output into
    parts with `a/b` in {p, 1, 1/p} keeps the sums and spreads `Z`; so does trading the parts with `a = b` for more of
    the other two. What is left are two informative cells of mass `alpha = beta/(p-1)` and a common one.
    """
    p, q = ratios.p, ratios.q
    alpha = min(ratios.beta / (p - 1.0), 1.0 / (p + 1.0))
    common = max(0.0, 1.0 - alpha * (p + 1.0))
    return cells((p * alpha, alpha, common), (alpha, p * alpha, common), (alpha * p / q, alpha * p / q, common / q))
