"""What a table gives away without any prior, by the distance of the two inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate

from optdp.errors import CertificateError
from optdp.math.exact import check_whole, log_upper, precision
from optdp.noise.certify import row_ratios
from optdp.noise.matrix import NoiseMatrix

WORK = 20_000_000
"""Quotients that are looked at, at most; beyond, only neighbouring inputs are compared."""


@dataclass(frozen=True)
class ByDistance:
    """`steps[d]` is at least `log Pr[s|x] / Pr[s|x']` for every output and any inputs at most `d` apart."""

    steps: tuple[Fraction, ...]

    @property
    def reach(self) -> int:
        return len(self.steps) - 1

    def epsilon(self, distance: int) -> Fraction:
        """The bound for any distance: go in steps of `reach`, and then the rest; the logarithms add up."""
        whole, rest = divmod(distance, self.reach)
        return whole * self.steps[-1] + self.steps[rest]


def by_distance(matrix: NoiseMatrix, largest: int = 1) -> ByDistance:
    """Proved bounds for inputs up to `largest` apart. Raises where some output tells two inputs apart for certain.

    Inputs that are both served by noise alone, or both by the row at one edge of the table, are compared through their
    noise: what is done with the noisy input afterwards is the same for both. Its logarithm is `d log(1/q)`.
    """
    check_whole(largest, "largest", 1)
    width = matrix.outputs[1] - matrix.outputs[0] + 1
    reach = max(min(largest, matrix.last), 1)
    if reach * (len(matrix.rows) + reach) * width > WORK:
        reach = 1
    with precision():
        matrix = replace(matrix)  # so that its balls are of this precision
        step = log_upper(1 / matrix.q) if matrix.q is not None else Fraction(0)
        worst = [d * step for d in range(reach + 1)]
        for d, ratio in row_ratios(matrix, reach):
            if ratio is None:
                raise CertificateError(
                    "This table's ordinary epsilon is infinite: it promises nothing without the prior, and other "
                    "libraries know no priors. Solve the problem with fallback_epsilon, and use that table."
                )
            worst[d] = max(worst[d], log_upper(ratio))
    return ByDistance(tuple(accumulate(worst, max)))
