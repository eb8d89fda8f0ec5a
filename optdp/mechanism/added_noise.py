"""AddedNoise: one law of noise for every input.

The law of one release of input `x`:

    d   discrete Laplace noise, `Pr[d] = (1-q)/(1+q) q^|d|`
    e   `d` itself if `|d| > reach`; otherwise drawn from the row, integers over a power of two, within `reach` of 0
    s   `x + e`

So the noise has the law `f(e) = c W(e) / denominator` for `|e| <= reach`, where `c = 1 - 2 q^(reach+1)/(1+q)`, and
beyond it geometric tails, `(1-q)/(1+q) q^|e|`. It is drawn as a `NoiseMatrix` with one row, that of input 0, is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from flint import arb

from optdp.errors import ArtifactError, ProblemError
from optdp.mechanism.drawing import Drawing, Sampled, added_drawing
from optdp.mechanism.matrix import NoiseMatrix, Row
from optdp.numbers.exact import ball
from optdp.objects import Public

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST_REACH = 100_000
"""The noise is decided weight by weight up to here, at most."""
LARGEST_RATIO = 1 - Fraction(1, 10**15)


@dataclass(frozen=True)
class AddedNoise(Sampled, Public):
    """Noise that does not depend on the input: what is deployed for `form = "additive"`.

    Usually `solve(problem).mechanism` or `verify(path).matrix`.

    Parameters
    ----------
    last : int
        The largest input; inputs are `0..last`.
    q : Fraction
        The ratio of the geometric tails.
    reach : int
        The noise is drawn from the row where it is at most so large; beyond, it has geometric tails.
    denominator : int
        A power of two; the weights of the row sum to it.
    row : tuple
        Pairs `(e, weight)` with `-reach <= e <= reach`, increasing, weights positive.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, solve
    >>> noise = solve(SingleLTE(Population.binomial(40, "0.5"), epsilon=1, form="additive")).mechanism
    >>> noise.last, len(noise.to_array()) == 2 * noise.reach + 1
    (40, True)
    >>> release = noise.sample(3)  # secure randomness
    """

    last: int
    q: Fraction
    reach: int
    denominator: int
    row: Row
    told = ("last", "q", "reach", "denominator")

    @property
    def ratio(self) -> arb:
        """`q` as a ball, of the precision in force."""
        return ball(self.q)

    @cached_property
    def weights(self) -> dict[int, int]:
        """The weights of the row by the noise."""
        return dict(self.row)

    @property
    def outputs(self) -> tuple[int, int]:
        """The outputs that the row decides, of any input."""
        return -self.reach, self.last + self.reach

    @property
    def inside_mass(self) -> arb:
        """`c`: the probability that the noise is drawn from the row."""
        return 1 - 2 * self.ratio ** (self.reach + 1) / (1 + self.ratio)

    def noise(self, e: int) -> arb:
        """A ball around `f(e)`."""
        if abs(e) > self.reach:
            return (1 - self.ratio) / (1 + self.ratio) * self.ratio ** abs(e)
        return self.inside_mass * self.weights.get(e, 0) / self.denominator

    def probability(self, x: int, s: int) -> arb:
        """A ball around `Pr[s|x]`."""
        self.known(x)
        return self.noise(s - x)

    def known(self, x: int) -> None:
        """Refuse what is no input."""
        if not 0 <= x <= self.last:
            raise ProblemError(f"An input must lie in 0..{self.last}. Found {x}.")

    def to_array(self) -> npt.NDArray[np.float64]:
        """The law of the noise in floating point, from `-reach` to `reach`. For looking, not for claims."""
        import numpy as np

        return np.array([float(self.noise(e)) for e in range(-self.reach, self.reach + 1)])

    def check(self) -> None:
        """Raise unless this is a law at all: weights that sum to their denominator."""
        if not 0 < self.q <= LARGEST_RATIO or self.last < 0:
            raise ArtifactError(f"Added noise must have 0 < q <= 1 - 1e-15. Found {float(self.q):.17g}.")
        if not 0 <= self.reach <= MOST_REACH:
            raise ArtifactError(f"Added noise must have a reach of at most {MOST_REACH:,}. Found {self.reach}.")
        if self.denominator < 1 or self.denominator & (self.denominator - 1):
            raise ArtifactError(f"The denominator of added noise must be a power of two. Found {self.denominator}.")
        places, weights = [e for e, _ in self.row], [weight for _, weight in self.row]
        if not weights or min(weights) <= 0 or sum(weights) != self.denominator:
            raise ArtifactError("The row of added noise must be positive integers that sum to its denominator.")
        if places != sorted(set(places)) or places[0] < -self.reach or places[-1] > self.reach:
            raise ArtifactError(f"The row of added noise must be for increasing noise within {self.reach} of 0.")

    # ------------------------------------------------------------------ sampling

    @cached_property
    def drawing(self) -> Drawing:
        """The integers that releases are drawn with."""
        return added_drawing(self)


def plain_noise(last: int, q: Fraction) -> AddedNoise:
    """Geometric noise alone: its row has the one entry that the noise has already."""
    return AddedNoise(last, q, 0, 2, ((0, 2),))


def table_only(mechanism: NoiseMatrix | AddedNoise, what: str) -> NoiseMatrix:
    """The table, where nothing else will do."""
    if isinstance(mechanism, AddedNoise):
        raise ProblemError(f'{what} needs a table with a row for each input. Found added noise. Use form = "table".')
    return mechanism
