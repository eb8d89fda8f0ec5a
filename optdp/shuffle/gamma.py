"""The least randomness that keeps a promise: gamma of shuffled randomized response, proved for the gamma deployed.

With probability `gamma` a person answers uniformly on `k` values (B, Algorithm 1). For n people, epsilon and delta the
program is

    minimise gamma  subject to  bound of delta(n, k, gamma, epsilon) <= delta,

the bound being the best that is proved (see `amplification.bounds`), which falls as gamma grows. What is deployed is a
multiple of 2^-40, rounded to more randomness, and for that very number the bound is evaluated again.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from optdp.amplification.bounds import BOUNDS, FINE, MIDDLE, leader, told
from optdp.amplification.calibrate import answer
from optdp.amplification.problem import Amplification
from optdp.amplification.randomizers import KRR
from optdp.errors import ProblemError
from optdp.numbers.exact import down, log_upper, shown, there, up
from optdp.work import Progress, silent

GRID = 1 << 40  # a deployed gamma is a multiple of 1/GRID
LEAST, MOST = Fraction(2 * GRID // 10**9, GRID), 1 - Fraction(2 * GRID // 10**9, GRID)


def gamma_of(eps0: float, k: int) -> float:
    """The gamma whose reports are eps0-LDP: `k / (e^eps0 + k - 1)`."""
    return k / (math.expm1(eps0) + k)


def eps0_of(gamma: Fraction, k: int) -> float:
    """The eps0 of a gamma, rounded up: `log(1 + k (1-gamma)/gamma)`."""
    return up(log_upper(1 + k * (1 - gamma) / gamma))


def deployed(gamma: float | Fraction) -> Fraction:
    """The multiple of 1/GRID that is next above."""
    found = max(Fraction(math.ceil(Fraction(gamma) * GRID), GRID), LEAST)
    if found > MOST:
        raise ProblemError(
            f"At most all but two in a billion answers may be random. Found gamma = {float(gamma):.12g}. "
            "Take more people, or a larger epsilon or delta."
        )
    return found


def promised_delta(n: int, k: int, gamma: Fraction, epsilon: Fraction, progress: Progress) -> float:
    """The delta that is proved for the deployed gamma: 0 where one report alone is private enough, 1 for nothing."""
    if Fraction(eps0_of(gamma, k)) <= epsilon:
        return 0.0
    return min(_proved(Amplification(KRR(k, float(gamma)), n=n, epsilon=epsilon), progress), default=1.0)


def promised(
    n: int, k: int, gamma: Fraction, epsilon: Fraction | None, delta: Fraction | None, progress: Progress
) -> tuple[float, float]:
    """The epsilon and the delta that are proved for the deployed gamma; the one that is not given is found."""
    if epsilon is None:
        found = _proved(Amplification(KRR(k, float(gamma)), n=n, delta=delta), progress)
        return min(found, default=eps0_of(gamma, k)), float(there(delta))
    proved = promised_delta(n, k, gamma, epsilon, progress)
    if not proved < 1.0:
        raise ProblemError(
            f"Some delta below 1 must be proved at epsilon = {float(epsilon):g}. Found none. Take more people, more "
            "randomness or a larger epsilon."
        )
    return float(epsilon), proved


def _proved(problem: Amplification, progress: Progress) -> list[float]:
    """What the best bound says of the unknown, on two grids: a finer one is mostly tighter."""
    question = problem.question()
    bound = told(BOUNDS[leader(question.setting)], f"proving {problem.unknown}", progress)
    found = (answer(bound, problem.unknown, question, grid) for grid in (MIDDLE, FINE))
    return [value for value in found if value is not None]


def least_gamma(
    n: int, k: int, epsilon: Fraction, delta: Fraction, grid: int = MIDDLE, progress: Progress = silent
) -> float:
    """The least gamma, to some six digits: fast, for a search, and not yet a promise."""
    question = Amplification(KRR(k), n=n, epsilon=epsilon, delta=delta).question()
    found = answer(told(BOUNDS[leader(question.setting)], "finding gamma", progress), "eps0", question, grid)
    return gamma_of(down(epsilon) if found is None else max(found, down(epsilon)), k)


def private_gamma(n: int, k: int, epsilon: Fraction, delta: Fraction, progress: Progress) -> Fraction:
    """The least multiple of 1/GRID, or one next to it, for which (epsilon, delta) is proved."""
    chosen = deployed(min(least_gamma(n, k, epsilon, delta, grid, progress) for grid in (MIDDLE, FINE)))
    step = Fraction(1, GRID)
    while promised_delta(n, k, chosen, epsilon, progress) > delta:
        chosen = deployed(float(chosen + step))
        step *= 2
    return chosen


def check_rows(found: int, n: int) -> None:
    """A design is for so many people: with fewer it would hide less, with more its estimate would be wrong."""
    if found != n:
        raise ProblemError(
            f"The design is for n = {n} people. Found {found} row{'' if found == 1 else 's'}. Change n, or the data."
        )


def check_messages(messages: npt.ArrayLike, k: int) -> npt.NDArray[np.int64]:
    """Messages from `0..k-1`."""
    found = np.asarray(messages)
    if found.ndim != 1 or not len(found):
        raise ProblemError(f"Messages must be a list, not empty. Found {shown(messages)}.")
    if found.dtype.kind not in "iu":
        raise ProblemError(f"Messages must be whole numbers. Found {shown(found[0].item())} among them.")
    wrong = np.flatnonzero((found < 0) | (found >= k))
    if len(wrong):
        raise ProblemError(
            f"Messages must be from 0 to {k - 1}. Found {len(wrong)} outside, first {found[wrong[0]]} at position "
            f"{wrong[0]}. Use the design that they were made with."
        )
    return found.astype(np.int64)
