"""solve(problem) -> Solution: the one verb. Formulate, solve, repair, certify; nothing leaves uncertified."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from optdp.artifact.claims import stored
from optdp.artifact.format import Artifact, write
from optdp.errors import CertificateError, InfeasibleError, OptdpError, ProblemError, SolverError
from optdp.math.exact import decimal_down, decimal_up, precision, show, shown
from optdp.noise.baseline import CLAMPED_LIMIT, geometric_mechanism
from optdp.noise.bound import Prices, lower_bound
from optdp.noise.certify import EXPLANATION, Certificate, certify
from optdp.noise.draft import Draft
from optdp.noise.engines import engine
from optdp.noise.lp import NoiseLP, formulate
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.multi import MultiLTE
from optdp.noise.repair import repair
from optdp.noise.shifting import shift_weights
from optdp.noise.single import SingleLTE
from optdp.outcome import Outcome, shown_epsilon

if TYPE_CHECKING:
    from optdp.amplification.count import KRRCount
    from optdp.amplification.problem import Amplification
    from optdp.amplification.solve import AmplificationSolution
    from optdp.mallows.problem import OrderShuffle
    from optdp.mallows.solve import OrderSolution
    from optdp.plan import PlanSolution
    from optdp.problem import Problem
    from optdp.shuffle.histogram import HistogramSolution, ShuffleHistogram
    from optdp.shuffle.metric import MetricShuffle
    from optdp.shuffle.metric_solve import MetricSolution
    from optdp.shuffle.sum_solution import RealSumSolution
    from optdp.shuffle.summation import RealSum

    ShuffleSolution = AmplificationSolution | MetricSolution | HistogramSolution | RealSumSolution | OrderSolution

MARGINS = (1e-9, 1e-6, 1e-3)
"""How much tighter than condition (3) the program's caps are, in turn, until the repaired table keeps the caps."""

Progress = Callable[[str], None]

_SHUFFLED = {
    "amplification": "amplification.solve:solve_shuffled",
    "krr-count": "amplification.solve:solve_shuffled",
    "metric-shuffle": "shuffle.metric_solve:solve_metric",
    "shuffle-histogram": "shuffle.histogram:solve_histogram",
    "real-sum": "shuffle.sum_solution:solve_real_sum",
    "order-shuffle": "mallows.solve:solve_order",
}
"""Who solves the kinds about shuffling; imported when they are needed."""


@dataclass(frozen=True, kw_only=True)
class Solution(Outcome[SingleLTE, Certificate]):
    """What came out for one entity: the mechanism, its certificate, and the numbers that a person asks for first.

    `status` is "optimal", "heuristic", "baseline", "interrupted", or whatever a solver said.
    """

    mechanism: NoiseMatrix

    @property
    def baseline_mae(self) -> float:
        """The MAE of geometric noise at the same epsilon."""
        return float(self.problem.cap)

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        certificate = self.certificate
        return {
            "kind": self.problem.kind,
            "status": self.status,
            "objective": self.problem.objective,
            "mae": self.mae,
            "mse": self.mse,
            "baseline_mae": self.baseline_mae,
            "lower_bound": None if self.lower_bound is None else float(self.lower_bound),
            "gap": self.gap,
            "epsilon": show(self.problem.epsilon),
            "certified_epsilon": shown_epsilon(certificate.epsilon, self.problem.epsilon),
            "ordinary_epsilon": shown_epsilon(certificate.ordinary_epsilon),
            "never_worse": certificate.never_worse,
            "backend": self.backend,
            "engine": self.engine,
            "seconds": round(self.seconds, 4),
            "note": self.note,
            "meaning": EXPLANATION,
        }

    def _repr_html_(self) -> str:
        """A notebook shows this."""
        from optdp.page.notebook import of_solution

        return of_solution(self)

    def artifact(self) -> Artifact:
        """The self-contained file for production."""
        summary, certificate, matrix = self.summary(), self.certificate, self.mechanism
        claim = {
            "epsilon": summary["certified_epsilon"],
            "ordinary_epsilon": summary["ordinary_epsilon"],
            "mae": decimal_up(certificate.mae),
            "mse": decimal_up(certificate.mse),
            "worst_error": decimal_up(certificate.worst_error),
            "never_worse": certificate.never_worse,
            "baseline_mae": decimal_up(self.problem.cap),
            "lower_bound": None if self.lower_bound is None else decimal_down(self.lower_bound),
            "meaning": EXPLANATION,
            "explained": "docs/guarantee.md",
        }
        provenance = self.provenance(version("optdp"))
        prices = stored(self.prices)
        if prices is not None:
            provenance["prices"] = prices
        return Artifact(
            inputs=matrix.inputs,
            outputs=matrix.outputs,
            denominator=matrix.denominator,
            rows=matrix.rows,
            outside=matrix.outside,
            q=matrix.q,
            problem=self.problem.spec(),
            claim=claim,
            provenance=provenance,
        )

    def save(self, path: str | Path) -> None:
        """Write the artifact, atomically: JSON, or `.npz` by its name."""
        write(self.artifact(), Path(path))

    def to_opendp(self, T: str = "int") -> Any:
        """A measurement of OpenDP with the ordinary epsilon (extra `[opendp]`); see `optdp.bridges.opendp`."""
        from optdp.bridges.opendp import measurement

        return measurement(self.mechanism, self.problem.largest, T)

    def to_pld(self, discretization: float = 1e-4) -> Any:
        """A pessimistic privacy loss distribution of dp-accounting (`[accounting]`); see `optdp.bridges.accounting`."""
        from optdp.bridges.accounting import pld

        return pld(self.mechanism, self.problem.largest, discretization)


@overload
def solve(problem: SingleLTE, backend: str = ..., progress: Progress = ...) -> Solution: ...


@overload
def solve(problem: MultiLTE, backend: str = ..., progress: Progress = ...) -> PlanSolution: ...


@overload
def solve(problem: Amplification | KRRCount, backend: str = ..., progress: Progress = ...) -> AmplificationSolution: ...


@overload
def solve(problem: MetricShuffle, backend: str = ..., progress: Progress = ...) -> MetricSolution: ...


@overload
def solve(problem: ShuffleHistogram, backend: str = ..., progress: Progress = ...) -> HistogramSolution: ...


@overload
def solve(problem: OrderShuffle, backend: str = ..., progress: Progress = ...) -> OrderSolution: ...


@overload
def solve(problem: RealSum, backend: str = ..., progress: Progress = ...) -> RealSumSolution: ...


def solve(
    problem: Problem, backend: str = "highs", progress: Progress = lambda _: None
) -> Solution | PlanSolution | ShuffleSolution:
    """The best certified mechanism, plan or bound for `problem`, whatever its kind.

    Interrupted (Ctrl-C), it returns the best that is certified so far, which may be the baseline; `status` says so.
    `backend` names who solves linear programs.
    """
    if not isinstance(problem, SingleLTE | MultiLTE):
        home = _SHUFFLED.get(getattr(problem, "kind", ""))
        if home is None:
            raise ProblemError(f"solve needs a problem of optdp's, such as SingleLTE. Found {shown(problem)}.")
        module, _, name = home.partition(":")
        found: ShuffleSolution = getattr(import_module(f"optdp.{module}"), name)(problem, progress)
        return found
    if isinstance(problem, MultiLTE):
        from optdp.plan import solve_plan

        return solve_plan(problem, backend, progress)
    begin = time.perf_counter()
    run = engine(backend)
    alone = problem.method != "geometric" and all(prior.size == 1 for prior in problem.populations)
    with precision():
        if problem.method == "geometric":
            return _baseline(problem, begin, "baseline", "")
        if alone:
            reason = "one person alone is hidden by nobody, so the prior helps nothing: geometric noise"
            return _baseline(problem, begin, "baseline", reason)
        try:
            return _designed(problem, backend, run, progress, begin)
        except KeyboardInterrupt:
            return _baseline(problem, begin, "interrupted", "interrupted before a better mechanism was found")


def _designed(
    problem: SingleLTE, backend: str, run: Callable[[NoiseLP, Progress], Draft], progress: Progress, begin: float
) -> Solution:
    failure, status = "", "baseline"
    for margin in MARGINS:
        progress("formulating")
        lp = formulate(problem, margin)
        try:
            draft = shift_weights(lp, progress) if problem.method == "shifting" else run(lp, progress)
        except SolverError as error:
            if backend != "highs":
                raise
            failure = str(error)
            break
        progress("repairing and certifying")
        prices, said, caution = draft.prices, draft.status, _caution(problem)
        if prices is not None and problem.fallback_epsilon and problem.adjacency == "all" and problem.largest > 1:
            # The chain of unit steps asks for more than pairs of inputs up to D apart do, so that its prices prove
            # nothing here; those of the other constraints do.
            prices, said = Prices(prices.z, prices.u), "feasible" if said == "optimal" else said
            caution = 'the fallback is kept by unit steps, which is more than adjacency = "all" asks for'
        bound = None if prices is None else lower_bound(lp, prices)
        try:
            matrix = repair(lp, draft)
            certificate = certify(problem, matrix)
            certificate.check(problem)
        except CertificateError as error:
            failure = str(error)
            if draft.status == "interrupted":
                status = "interrupted"
                break
            continue
        value = certificate.mae if problem.objective == "mae" else certificate.mse
        if problem.tail == "geometric" and value > problem.baseline:
            failure = "geometric noise is at least as accurate as what the solver found"
            if draft.status == "interrupted":
                status = "interrupted"
                break
            continue
        seconds = time.perf_counter() - begin
        used = "optdp" if problem.method == "shifting" or draft.engine == "chain" else backend
        found = Solution(
            problem=problem, mechanism=matrix, certificate=certificate, lower_bound=bound, status=said, note=caution,
            backend=used, engine=draft.engine, seconds=seconds, prices=prices,
        )  # fmt: skip
        return _not_worse_than_clamped(found, begin)
    return _baseline(problem, begin, status, f"geometric noise instead of the solver's answer: {failure}")


def _not_worse_than_clamped(found: Solution, begin: float) -> Solution:
    """Without tails, where the optimum is not proved, keep clamped geometric noise if that is better."""
    problem = found.problem
    if problem.tail == "geometric" or problem.last > CLAMPED_LIMIT or (found.gap is not None and found.gap < 1e-2):
        return found
    try:
        other = _baseline(problem, begin, found.status, "clamped geometric noise is better than what the solver found")
    except OptdpError:
        return found
    return other if other.value < found.value else found


def _caution(problem: SingleLTE) -> str:
    """What a user of this problem should be told."""
    if all("conservative" in prior.spec for prior in problem.populations):
        return "a concentrated prior alone promises nothing under the full one: list both, or measure epsilon_under"
    return ""


def _baseline(problem: SingleLTE, begin: float, status: str, note: str) -> Solution:
    matrix = geometric_mechanism(problem)
    certificate = certify(problem, matrix)
    try:
        certificate.check(problem)
    except CertificateError as error:
        remedy = " Set never_worse = false." if problem.never_worse and "mean absolute error" in str(error) else ""
        raise InfeasibleError(
            f"{note or 'Geometric noise does not do'}; and for geometric noise {error}{remedy}"
        ) from None
    seconds = time.perf_counter() - begin
    return Solution(
        problem=problem, mechanism=matrix, certificate=certificate, lower_bound=None, status=status, note=note,
        backend="optdp", engine="geometric", seconds=seconds,
    )  # fmt: skip
