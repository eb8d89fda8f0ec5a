"""NoiseMatrix: the integer table that is deployed, and how to draw from it.

Without a tail `Pr[s|x] = weight / denominator`. With one (A, Remark 8): draw `e` from the discrete Laplace law
`Pr[e] = (1-q)/(1+q) q^|e|`; if `x+e` lies outside `outputs`, release it; otherwise draw from the row of `x`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from flint import arb

from optdp.errors import ProblemError
from optdp.mechanism.drawing import Drawing, Sampled, drawing
from optdp.numbers.exact import ball
from optdp.objects import Public

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Row = tuple[tuple[int, int], ...]
Outside = Literal["error", "clamp", "geometric"]
Bits = Callable[[int], int]


@dataclass(frozen=True)
class NoiseMatrix(Sampled, Public):
    """The table of one entity: what is deployed. Usually `solve(problem).mechanism` or `verify(path).matrix`.

    Parameters
    ----------
    inputs : (int, int)
        The first and the last input that has a row.
    outputs : (int, int)
        The first and the last output of the table.
    denominator : int
        A power of two; the weights of each row sum to it.
    rows : tuple
        For each input a tuple of `(output, weight)`, outputs increasing, weights positive.
    q : Fraction, optional
        The ratio of the geometric noise that may leave `outputs`; None keeps every release inside.
    outside : {"error", "clamp", "geometric"}
        What inputs without a row get: an error, the nearest row, or geometric noise alone.
    last : int
        The largest input that exists; inputs are `0..last`.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, solve
    >>> matrix = solve(SingleLTE(Population.binomial(10, "0.1"), epsilon=1)).mechanism
    >>> matrix
    NoiseMatrix(inputs=(0, 10), outputs=(0, 10), last=10, denominator=2**62, q=0.367879, outside='error')
    >>> matrix.to_array().shape
    (11, 11)
    >>> release = matrix.sample(3)  # secure randomness
    >>> matrix.sample(3, size=5, seed=1)  # repeatable, and therefore not private
    [0, 3, 3, 0, 3]
    """

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    denominator: int
    rows: tuple[Row, ...]
    q: Fraction | None = None
    outside: Outside = "error"
    last: int = 0
    told = ("inputs", "outputs", "last", "denominator", "q", "outside")

    @cached_property
    def ratio(self) -> arb:
        """`q` as a ball (of the precision in force when it is first asked for)."""
        return ball(self.q) if self.q is not None else arb(0)

    def known(self, x: int) -> None:
        """Refuse what is no input, or has no row where every input must have one."""
        self.row(x)

    def row(self, x: int) -> Row | None:
        """The table row that serves input `x`; None if `x` gets plain geometric noise."""
        if not 0 <= x <= self.last:
            raise ProblemError(f"An input must lie in 0..{self.last}. Found {x}.")
        first, final = self.inputs
        if first <= x <= final:
            return self.rows[x - first]
        if self.outside == "clamp":
            return self.rows[0 if x < first else -1]
        if self.outside == "geometric":
            return None
        raise ProblemError(f"The table has rows for the inputs {first}..{final} only. Found {x}.")

    def inside_mass(self, x: int) -> arb:
        """`c(x)`: the probability that geometric noise leaves `x` within `outputs` (1 without a tail)."""
        if self.q is None:
            return arb(1)
        q, (low, high) = self.ratio, self.outputs
        if low <= x <= high:
            return 1 - (q ** (high - x + 1) + q ** (x - low + 1)) / (1 + q)
        near, far = (low - x, high - x + 1) if x < low else (x - high, x - low + 1)
        return (q**near - q**far) / (1 + q)

    def probability(self, x: int, s: int) -> arb:
        """A ball around `Pr[s|x]`."""
        row = self.row(x)
        low, high = self.outputs
        if row is None or (self.q is not None and not low <= s <= high):
            if self.q is None:
                return arb(0)
            q = ball(self.q)
            return (1 - q) / (1 + q) * q ** abs(x - s)
        weight = dict(row).get(s, 0)
        return self.inside_mass(x) * weight / self.denominator

    def to_array(self) -> npt.NDArray[np.float64]:
        """`Pr[s|x]` in floating point for each row and each `s` in `outputs`. For looking, not for claims."""
        import numpy as np

        low, high = self.outputs
        table = np.zeros((len(self.rows), high - low + 1))
        for i, row in enumerate(self.rows):
            mass = float(self.inside_mass(self.inputs[0] + i).mid())
            for s, weight in row:
                table[i, s - low] = mass * (weight / self.denominator)
        return table

    # ------------------------------------------------------------------ sampling

    @cached_property
    def drawing(self) -> Drawing:
        """The integers that releases are drawn with."""
        return drawing(self)
