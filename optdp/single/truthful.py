"""Where the prior alone hides everybody: likely sums are reported as they are, and no program is solved.

**Very many people.** Take a window `first..last` of inputs, the table `W(x, x) = 1` on it, and geometric noise (or
clamping) for the other inputs. An output `s` of the window tells two secrets apart by no more than
`Pr[s | w] / Pr[s | w']`, but for what the inputs without a row add. So a window does if these quotients are within
epsilon on it, and if all but a negligible share of the prior lies inside it, away from its edges.

**A row for every input.** The table `W(x, x) = 1` for all inputs is not private at unlikely ones. Repair mends that
with a little of the mass of a likely input (see `repair`). If what that takes is negligible, no program is needed.

In both cases what is left of the error is below `NEGLIGIBLE` of that of geometric noise. As anywhere, the certificate
decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from optdp import work
from optdp.errors import CertificateError
from optdp.mechanism.matrix import NoiseMatrix, Outside
from optdp.numbers.pmf import BinomialPmf
from optdp.single.bound import Draft, Prices
from optdp.single.certify import Certificate, certify
from optdp.single.lp import NoiseLP
from optdp.single.problem import SingleLTE
from optdp.single.repair import anchor_of
from optdp.single.window import FULL_LIMIT, is_pair_form, likely_inputs

NEGLIGIBLE = 1e-12
"""An error below this share of that of geometric noise is not worth a program."""
UNLIKELY = 1e-14
"""The share of the prior that may lie beyond the window, on either side."""
DEPTH = 32
"""Geometric noise of e^-DEPTH and less does not count."""
ALMOST = 0.999
"""The share of epsilon that the quotients may take; the rest is for what inputs without a row add."""
ROW_SECONDS = 5e-5
"""What the certificate of a row takes."""


def solve_truthfully(
    problem: SingleLTE, progress: Callable[[str], None] = lambda _: None
) -> tuple[NoiseMatrix, Certificate] | None:
    """The window of likely inputs that report themselves; None unless that is private and its error is negligible.

    To be called within `precision()`.
    """
    window = truthful_window(problem)
    if window is None:
        return None
    (first, last), tail = window, problem.tail == "geometric"
    outside: Outside = "geometric" if tail else "clamp"
    rows = last - first + 1
    progress(f"the prior alone hides everybody: {rows:,} inputs report themselves")
    work.announce(ROW_SECONDS * rows, f"Certifying {rows:,} rows", "Use fewer people.", progress)
    table = tuple(((x, 2),) for x in range(first, last + 1))
    matrix = NoiseMatrix(window, window, 2, table, problem.q if tail else None, outside, problem.last)
    certificate = certify(problem, matrix, progress)
    try:
        certificate.check(problem)
    except CertificateError:
        return None
    value = certificate.mae if problem.objective == "mae" else certificate.mse
    return (matrix, certificate) if value <= NEGLIGIBLE * problem.baseline else None


def truthful_window(problem: SingleLTE) -> tuple[int, int] | None:
    """Inputs that may be reported as they are and hold next to all of the prior; None if there are no such."""
    law, tail = problem.populations[0].total, problem.tail == "geometric"
    if problem.last <= FULL_LIMIT or not is_pair_form(problem) or not isinstance(law, BinomialPmf):
        return None
    if not tail and problem.never_worse:
        return None  # every input has a promise of its own
    low, high = likely_inputs(problem, UNLIKELY)
    depth = math.ceil(DEPTH / float(problem.epsilon)) if tail else 0
    first, last = low - depth, high + depth
    if first < 0 or last > problem.last:
        return None
    for x in (first, last):  # between them the quotient of the two secrets grows with x
        hits, misses = x - law.shift, law.n - (x - law.shift)
        if hits <= 0 or misses <= 0:
            return None
        quotient = hits * (1 - law.p) / (misses * law.p)
        if abs(math.log(quotient.numerator) - math.log(quotient.denominator)) > ALMOST * float(problem.epsilon):
            return None
    return first, last


def truthful_draft(lp: NoiseLP) -> Draft | None:
    """Every input reports itself, if what repair must then add is negligible; else None."""
    anchor = anchor_of(lp)
    if anchor is None:
        return None
    every = np.arange(len(lp.inputs))
    with np.errstate(all="ignore"):
        needed = np.maximum(lp.gaps, 0.0).max(axis=0) / (-lp.gaps[:, anchor]).min()
        moved = float((needed * np.abs(lp.inputs - lp.inputs[anchor]) ** lp.power).sum())
    # Repair takes twice as much as is needed, and more where that is not enough.
    if not 8 * float(lp.cost[anchor]) * moved + lp.constant <= NEGLIGIBLE * float(lp.problem.baseline):
        return None
    return Draft(every, every, np.ones(len(every)), Prices.none(lp), "optimal", "truthful")
