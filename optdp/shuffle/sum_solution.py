"""From a wanted sum to the protocol that takes it: k and gamma, the error they give, and what nobody can go below."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optdp.amplification.problem import Amplification
from optdp.amplification.randomizers import KRR
from optdp.amplification.solve import point
from optdp.errors import ProblemError
from optdp.math.gaussian import gaussian_sigma
from optdp.shuffle.gamma import eps0_of, private_gamma, promised_delta, promised_epsilon, worthwhile
from optdp.shuffle.sum_bounds import lower_mse, theorem_3
from optdp.shuffle.sum_protocol import RealSumProtocol
from optdp.shuffle.summation import Chosen, RealSum, best_k, least_n, mse, theorem_1

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class RealSumSolution:
    """The protocol and its figures; mean squared errors are of the sum, in the units of [low, high]."""

    problem: RealSum
    n: int
    k: int
    gamma: Fraction
    epsilon: float
    delta: float
    lower_epsilon: float | None
    """Some data set breaks every smaller epsilon at this delta."""
    mse: float
    lower_mse: float
    """No single-message protocol that is (epsilon, delta)-DP is below."""
    theorem_3: float
    theorem_1: Chosen | None
    printed: Chosen | None
    central_mse: float
    seconds: float
    status: str
    note: str

    @property
    def value(self) -> float:
        return self.mse

    @property
    def unknown(self) -> str:
        return self.problem.unknown

    @property
    def local_epsilon(self) -> float:
        return eps0_of(self.gamma, self.k + 1)

    @property
    def bits_per_user(self) -> int:
        return self.k.bit_length()

    @property
    def theorem_1_mse(self) -> float | None:
        return None if self.theorem_1 is None else self.theorem_1.mse * float(self.problem.width) ** 2

    def protocol(self) -> RealSumProtocol:
        return RealSumProtocol(self.n, self.k, self.gamma, self.problem.low, self.problem.high)

    def privacy(self) -> dict[str, Any]:
        """What is promised, and to whom."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "lower": self.lower_epsilon,
            "local_epsilon": self.local_epsilon,
            "meaning": self.problem.meaning,
        }

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        scale = float(self.problem.width) ** 2
        printed = None if self.printed is None else self.printed.mse * scale
        rmse = math.sqrt(self.mse)
        return {
            "kind": self.problem.kind,
            "status": self.status,
            "unknown": self.unknown,
            "n": self.n,
            "parameters": {"k": self.k, "gamma": float(self.gamma), "eps0": self.local_epsilon},
            "epsilon": self.epsilon,
            "delta": self.delta,
            "lower": self.lower_epsilon,
            "mse": self.mse,
            "rmse": rmse,
            "mae": math.sqrt(2.0 / math.pi) * rmse,
            "average_mse": self.mse / self.n**2,
            "average_rmse": rmse / self.n,
            "theorem_1_mse": self.theorem_1_mse,
            "printed_mse": printed,
            "ratio_to_theorem_1": None if self.theorem_1_mse is None else self.mse / self.theorem_1_mse,
            "lower_mse": self.lower_mse,
            "theorem_3_mse": self.theorem_3,
            "ratio_to_lower": self.mse / self.lower_mse if self.lower_mse else None,
            "central": {"mse": self.central_mse, "mechanism": "analytic Gaussian"},
            "bits_per_user": self.bits_per_user,
            "local_epsilon": self.local_epsilon,
            "given": self.problem.figures(),
            "seconds": round(self.seconds, 4),
            "note": self.note,
            "meaning": self.problem.meaning,
        }


def solve_real_sum(problem: RealSum, progress: Progress = lambda _: None) -> RealSumSolution:
    """The best protocol for `problem`."""
    begin = time.perf_counter()
    progress("k and gamma")
    n, k, gamma, epsilon, delta = _designed(problem)
    scale = float(problem.width) ** 2
    value = mse(n, k, float(gamma)) * scale
    if problem.average_mse is not None and value / n**2 > problem.average_mse:
        least = least_n(problem)
        raise ProblemError(
            f"average_mse = {float(problem.average_mse):g} must be reached by n people. Found n = {n:,}, which reach "
            f"{value / n**2:.3g}. The least n is {least:,}."
        )
    progress("lower bounds")
    promise = max(delta, 1e-300)
    most = (math.nextafter(epsilon, math.inf), math.nextafter(promise, 1.0))
    beneath = (lower_mse(n, *most) * scale, theorem_3(n, *most) * scale)
    below = point(Amplification(KRR(k + 1, float(gamma)), n=n, delta=promise), "lower")
    return RealSumSolution(
        problem=problem, n=n, k=k, gamma=gamma, epsilon=epsilon, delta=delta,
        lower_epsilon=below, mse=value, lower_mse=beneath[0],
        theorem_3=beneath[1], theorem_1=theorem_1(n, epsilon, promise),
        printed=theorem_1(n, epsilon, promise, printed=True),
        central_mse=gaussian_sigma(epsilon, promise) ** 2 * scale, seconds=time.perf_counter() - begin, status="solved",
        note=_note(n, value, scale),
    )  # fmt: skip


def _designed(problem: RealSum) -> tuple[int, int, Fraction, float, float]:
    """n, k, gamma, and the epsilon and delta that are promised for them."""
    if problem.gamma is not None:
        assert problem.n is not None
        assert problem.k is not None
        if problem.epsilon is None:
            assert problem.delta is not None
            found = promised_epsilon(problem.n, problem.k + 1, problem.gamma, problem.delta)
            return problem.n, problem.k, problem.gamma, found, float(problem.delta)
        found = worthwhile(promised_delta(problem.n, problem.k + 1, problem.gamma, problem.epsilon), problem.epsilon)
        return problem.n, problem.k, problem.gamma, float(problem.epsilon), found
    assert problem.epsilon is not None
    assert problem.delta is not None
    n = least_n(problem) if problem.n is None else problem.n
    k = problem.k or best_k(n, problem.epsilon, problem.delta).k
    gamma, _ = private_gamma(n, k + 1, problem.epsilon, problem.delta)
    return n, k, gamma, float(problem.epsilon), float(problem.delta)


def _note(n: int, value: float, scale: float) -> str:
    if value > n**2 / 4.0 * scale:
        return "too few people: who answers with the middle of the range, and asks nobody, errs less"
    return "mae is that of a normal error of this size; the other errors are exact"
