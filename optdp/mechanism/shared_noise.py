"""SharedNoise: what one of several entities deploys when each designs its noise alone, and how to draw from it (A, VI).

The law of one release of input `x`, with `f` the coefficient of a weighted sum:

    y   drawn from row `x` of the contraction `A` (integers over a power of two; `y = x` without a contraction)
    e   drawn from SGDL_beta(q), a share of geometric noise: `1/beta` such shares add up to discrete Laplace noise
    s   `f y + e` if that lies outside `outputs`, or if `x` has no row; otherwise drawn from the row of `x`

so that `Pr[s|x] = sum over y of A(x, y) SGDL(s - f y)`, the *base kernel*, outside `outputs`, and `c(x) W(x, s)`
inside, where `c(x)` is the base kernel's mass there and `W` the integer table.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from flint import arb

from optdp.errors import ArtifactError, ProblemError
from optdp.kind import at
from optdp.mechanism.drawing import Drawing, share_drawing
from optdp.mechanism.matrix import Bits, Row
from optdp.mechanism.share_cuts import fits
from optdp.numbers.exact import check_whole, whole_input
from optdp.numbers.sgdl import SGDL
from optdp.numbers.source import Source
from optdp.objects import Public

NOTHING = (0, -1)
"""The empty range: a plan without a table."""
MOST_CELLS = 5_000_000
LARGEST_RATIO = 1 - Fraction(1, 10**9)


@dataclass(frozen=True)
class SharedNoise(Public):
    """One entity's noise in a plan: a contraction, a share of geometric noise, and a table for a window of outputs.

    Usually one of the `tables` of a plan of method "divisible".

    Parameters
    ----------
    last : int
        The largest input; inputs are `0..last`.
    q, beta : Fraction
        The noise is `SGDL(beta, q)`.
    factor : int
        The coefficient of a weighted sum.
    contraction : tuple, optional
        For each input a row of `(y, weight)`: where it is moved before noise is added.
    contraction_denominator : int
        What the weights of each of these rows sum to.
    inputs, outputs, denominator, rows
        The table, as of a `NoiseMatrix`; without rows the noise alone is released.

    Examples
    --------
    >>> from optdp import MultiLTE, Population, solve
    >>> plan = solve(MultiLTE([Population.binomial(4, "0.2")] * 2, epsilon=1, honest=1, method="divisible"))
    >>> noise = plan.tables[0]
    >>> noise.last, float(noise.beta)
    (4, 1.0)
    >>> release = noise.sample(2)  # secure randomness
    >>> noise.sample(2, size=4, seed=1)  # repeatable, and therefore not private
    [2, 2, 0, 2]
    """

    last: int
    q: Fraction
    beta: Fraction
    factor: int = 1
    contraction: tuple[Row, ...] | None = None
    contraction_denominator: int = 1
    inputs: tuple[int, int] = NOTHING
    outputs: tuple[int, int] = NOTHING
    denominator: int = 1
    rows: tuple[Row, ...] = ()
    told = ("last", "q", "beta", "factor", "inputs", "outputs", "denominator")

    @cached_property
    def noise(self) -> SGDL:
        """The law of the share of noise."""
        return SGDL(self.beta, self.q)

    def row(self, x: int) -> Row | None:
        """The table row of input `x`; None if the base kernel serves it."""
        self._known(x)
        first, final = self.inputs
        return self.rows[x - first] if first <= x <= final else None

    def contracted(self, x: int) -> Row:
        """Where the contraction takes `x`: pairs `(y, weight)` over `contraction_denominator`."""
        self._known(x)
        return ((x, self.contraction_denominator),) if self.contraction is None else self.contraction[x]

    def base(self, x: int, s: int) -> arb:
        """A ball around the base kernel, `sum over y of A(x, y) SGDL(s - f y)`."""
        noise, total = self.noise, arb(0)
        for y, weight in self.contracted(x):
            total += noise.ball(s - self.factor * y) * weight
        return total / self.contraction_denominator

    def inside_mass(self, x: int) -> arb:
        """`c(x)`: the probability that the base kernel takes `x` into `outputs`."""
        low, high = self.outputs
        return sum((self.base(x, s) for s in range(low, high + 1)), arb(0))

    def probability(self, x: int, s: int) -> arb:
        """A ball around `Pr[s|x]`."""
        row, (low, high) = self.row(x), self.outputs
        if row is None or not low <= s <= high:
            return self.base(x, s)
        return self.inside_mass(x) * dict(row).get(s, 0) / self.denominator

    def check(self) -> None:
        """Raise unless this is a mechanism at all: rows of positive integers that sum to their denominators."""
        if not 0 < self.q <= LARGEST_RATIO or not 0 < self.beta <= 1 or self.factor == 0 or self.last < 0:
            raise ArtifactError(
                f"A shared noise must have 0 < q <= {LARGEST_RATIO}, 0 < beta <= 1 and a factor that is not 0. "
                f"Found q = {float(self.q):.9g}, beta = {float(self.beta):.6g}, factor = {self.factor}."
            )
        if self.rows and (self.outputs[1] - self.outputs[0] + 1) * (self.last + 1) > MOST_CELLS:
            raise ArtifactError(
                f"A table may have at most {MOST_CELLS:,} inputs times outputs. "
                f"Found outputs {self.outputs[0]}..{self.outputs[1]} for inputs 0..{self.last}."
            )
        if self.contraction is not None:
            if len(self.contraction) != self.last + 1:
                raise ArtifactError(
                    f"The contraction must have a row for each input 0..{self.last}. Found {len(self.contraction)}."
                )
            _check_rows(self.contraction, self.contraction_denominator, (0, self.last), "contraction")
        (first, final), wanted = self.inputs, max(self.inputs[1] - self.inputs[0] + 1, 0)
        if len(self.rows) != wanted or (wanted and not 0 <= first <= final <= self.last):
            raise ArtifactError(
                f"The table must have a row for each of its inputs, which lie in 0..{self.last}. "
                f"Found {len(self.rows)} rows for {first}..{final}."
            )
        _check_rows(self.rows, self.denominator, self.outputs, "table")

    def _known(self, x: int) -> None:
        if not 0 <= x <= self.last:
            raise ProblemError(f"An input must lie in 0..{self.last}. Found {x}.")

    # ------------------------------------------------------------------ sampling

    @cached_property
    def drawing(self) -> Drawing:
        """The integers that reports are drawn with, those of exported samplers too; refuses noise that is too wide."""
        return share_drawing(self)

    def sample(self, x: int, size: int = 1, seed: int | None = None) -> list[int]:
        """`size` independent releases of input `x`, drawn with integers only.

        Randomness comes from the operating system. A `seed` makes the draws repeatable, for tests: they are then
        **not private**.
        """
        check_whole(size, "size", 0)
        x, source = whole_input(x), Source(seed)
        row, (low, high) = self.row(x), self.outputs
        if fits(self.beta, self.q):
            found: list[int] = at("optdp.mechanism.columns:repeated")(self.drawing, x, size, source)
            return found
        bits = source.bits
        noise = self.noise.sample(size, bits)
        centres = _draw(self.contracted(x), self.contraction_denominator, size, bits)
        released = [self.factor * y + e for y, e in zip(centres, noise, strict=True)]
        if row is None:
            return released
        inside = [i for i, s in enumerate(released) if low <= s <= high]
        for i, s in zip(inside, _draw(row, self.denominator, len(inside), bits), strict=True):
            released[i] = s
        return released


def _draw(row: Row, denominator: int, size: int, bits: Bits) -> list[int]:
    """Draws from a row whose weights sum to `denominator`, a power of two."""
    if len(row) == 1:
        return [row[0][0]] * size
    ends = list(accumulate(weight for _, weight in row))
    width = denominator.bit_length() - 1
    return [row[bisect_right(ends, bits(width))][0] for _ in range(size)]


def _check_rows(rows: Sequence[Row], denominator: int, places: tuple[int, int], name: str) -> None:
    if denominator < 1 or denominator & (denominator - 1):
        raise ArtifactError(f"The denominator of the {name} must be a power of two. Found {denominator}.")
    low, high = places
    for i, row in enumerate(rows):
        values = [place for place, _ in row]
        if any(weight <= 0 for _, weight in row) or sum(weight for _, weight in row) != denominator:
            raise ArtifactError(f"Row {i} of the {name} must be positive integers that sum to its denominator.")
        if values != sorted(set(values)) or values[0] < low or values[-1] > high:
            raise ArtifactError(f"Row {i} of the {name} must have increasing places within {low}..{high}.")
