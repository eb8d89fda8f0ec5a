"""solve for several entities: start, descend, round, certify; nothing leaves uncertified."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from optdp.errors import CertificateError, OptdpError, ProblemError, SolverError
from optdp.math.exact import decimal_down, decimal_up, precision, show
from optdp.noise.block import Effort
from optdp.noise.bound import Prices
from optdp.noise.divisible import design, geometric
from optdp.noise.joint import Draft, check_people, descend, rounded, starts
from optdp.noise.joint_certify import certify_plan
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.merged import bounding
from optdp.noise.multi import MultiLTE
from optdp.noise.plan_certificate import EXPLANATION, PlanCertificate
from optdp.noise.shared_noise import SharedNoise
from optdp.noise.single import SingleLTE
from optdp.outcome import Outcome, shown_epsilon

RESERVE = Fraction(996, 1000)
"""The share of epsilon that the first plan spends, so that the programs have room."""
MORE_TRIES, DESCENT = 100_000_000, 2_500_000_000
"""Work (`Effort`) after which no further start is tried, and after which a descent ends with what it has."""
MOST_PARTIES = 64
"""With more parties each designs its noise alone."""
BITS = (62, 128)
"""Denominators of the tables, in turn, until the rounded plan is private."""

Progress = Callable[[str], None]
Table = NoiseMatrix | SharedNoise
Found = tuple[tuple[Table, ...], PlanCertificate, str, str]
"""Tables, their certificate, the status and a note."""


@dataclass(frozen=True, kw_only=True)
class PlanSolution(Outcome[MultiLTE, PlanCertificate]):
    """What came out for several entities: a table for each, their joint certificate, and the numbers asked for first.

    `status` is "local optimum", "work limit", "designed alone", "baseline" or "interrupted". The lower bound holds
    for every plan, and for one entity that holds all data.
    """

    tables: tuple[Table, ...]

    @property
    def baseline_mae(self) -> float:
        """The MAE of shared geometric noise at the same epsilon."""
        return float(self.problem.baseline_mae)

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        certificate, problem = self.certificate, self.problem
        parties = [
            {
                "certified_epsilon": shown_epsilon(certificate.epsilons[i], problem.epsilon),
                "ordinary_epsilon": shown_epsilon(certificate.ordinary[i]),
                "mae": float(certificate.own_mae[i]),
                "baseline_mae": float(problem.share_mae),
                "lower_bound": 0.0,
            }
            for i in range(len(self.tables))
        ]
        return {
            "kind": problem.kind,
            "method": problem.method,
            "status": self.status,
            "objective": problem.objective,
            "honest": problem.honest,
            "mae": self.mae,
            "mse": self.mse,
            "baseline_mae": self.baseline_mae,
            "lower_bound": None if self.lower_bound is None else float(self.lower_bound),
            "gap": self.gap,
            "divisor": show(problem.divisor),
            "average_mae": self.mae / float(problem.divisor),
            "epsilon": show(problem.epsilon),
            "certified_epsilon": shown_epsilon(certificate.epsilon, problem.epsilon),
            "parties": parties,
            "backend": self.backend,
            "engine": self.engine,
            "seconds": round(self.seconds, 4),
            "note": self.note,
            "meaning": EXPLANATION,
        }

    def _repr_html_(self) -> str:
        """A notebook shows this."""
        from optdp.page.notebook import of_plan

        return of_plan(self)

    def claim(self) -> dict[str, Any]:
        """What the plan's file states, as decimals rounded to the safe side."""
        certificate, summary = self.certificate, self.summary()
        return {
            "epsilon": summary["certified_epsilon"],
            "mae": decimal_up(certificate.mae),
            "mse": decimal_up(certificate.mse),
            "baseline_mae": decimal_up(self.problem.baseline_mae),
            "lower_bound": None if self.lower_bound is None else decimal_down(self.lower_bound),
            "parties": [
                {
                    "epsilon": party["certified_epsilon"],
                    "ordinary_epsilon": party["ordinary_epsilon"],
                    "mae": decimal_up(own),
                }
                for party, own in zip(summary["parties"], certificate.own_mae, strict=True)
            ],
            "meaning": EXPLANATION,
            "explained": "docs/guarantee.md",
        }

    def save(self, folder: str | Path) -> None:
        """Write the plan's folder, whole or not at all: `plan.json` and one artifact for each party."""
        from optdp.artifact.plan import write_plan

        write_plan(self, Path(folder))


def solve_plan(problem: MultiLTE, backend: str = "highs", progress: Progress = lambda _: None) -> PlanSolution:
    """The best certified plan for `problem`.

    Interrupted (Ctrl-C), it returns the best certified plan so far, which may be the baseline; `status` says so.
    """
    if backend != "highs":
        raise ProblemError(f'A plan of several entities is solved by the backend "highs". Found {backend!r}.')
    begin = time.perf_counter()
    with precision():
        tables, certificate, status, note = METHODS[problem.method](problem, progress)
        engine = "blocks" if isinstance(tables[0], NoiseMatrix) else "shares"
        bound, prices = None, None
        if status not in ("baseline", "interrupted"):
            try:
                bound, prices = _bound(problem, progress)
            except KeyboardInterrupt:
                note = "the bound was interrupted"
    seconds = time.perf_counter() - begin
    return PlanSolution(
        problem=problem, tables=tables, certificate=certificate, lower_bound=bound, status=status, note=note,
        backend=backend, engine=engine, seconds=seconds, prices=prices,
    )  # fmt: skip


def _baseline(problem: MultiLTE, status: str = "baseline", note: str = "") -> Found:
    plan = geometric(problem)
    return plan.parties, plan.certificate, status, note


def _divisible(problem: MultiLTE, progress: Progress) -> Found:
    try:
        plan = design(problem, problem.contraction, progress)
    except KeyboardInterrupt:
        return _baseline(problem, "interrupted", "interrupted before the parties' noise was designed")
    except ArithmeticError as error:
        return _baseline(problem, "baseline", f"what was designed cannot be measured: {error}")
    return plan.parties, plan.certificate, "designed alone", ""


def _bound(problem: MultiLTE, progress: Progress) -> tuple[Fraction | None, Prices | None]:
    """What one entity with all data could do at best."""
    from optdp.solution import solve

    progress("a bound: one entity with everybody's data")
    whole = bounding(problem)
    try:
        found = None if whole is None else solve(whole)
    except OptdpError:
        return None, None
    return (None, None) if found is None else (found.lower_bound, found.prices)


def _joint(problem: MultiLTE, progress: Progress) -> Found:
    if len(problem.parties) > MOST_PARTIES and problem.fallback_epsilon is None and not problem.also:
        found, certificate, status, _ = _divisible(problem, progress)
        return found, certificate, status, f"a joint plan is designed for up to {MOST_PARTIES} parties"
    check_people(problem)
    best: Draft | None = None
    latest: Draft | None = None
    power = 1 if problem.objective == "mae" else 2
    status = "local optimum"
    effort = Effort()
    try:
        alone = _alone(problem, progress)
        for start, paces, patience in starts(problem, alone):
            if best is not None and effort.spent > MORE_TRIES:
                break
            best = best or start
            for plan in descend(start, problem, paces, progress, patience, effort, DESCENT):
                latest = plan
            best, latest = _better(best, latest, power), None
        if effort.spent > DESCENT:
            status = "work limit"
    except KeyboardInterrupt:
        status = "interrupted"
        best = _better(best, latest, power)
    reason = "interrupted before a plan was found"
    if best is not None:
        progress("rounding and certifying")
        for bits in BITS:
            tables = rounded(best, problem, bits)
            certificate = certify_plan(problem, tables)
            try:
                certificate.check(problem)
            except CertificateError as error:
                reason = str(error)
                continue
            value = certificate.mae if power == 1 else certificate.mse
            if problem.fallback_epsilon is not None or value <= (
                problem.baseline_mae if power == 1 else problem.baseline_mse
            ):
                return tables, certificate, status, ""
            reason = "geometric noise is at least as accurate as the plan that was found"
            break
    if problem.fallback_epsilon is not None:
        raise SolverError(f"No plan that keeps the fallback could be certified: {reason}")
    if status == "interrupted" or problem.also:
        state = status if status == "interrupted" else "baseline"
        return _baseline(problem, state, f"shared geometric noise instead of a joint plan: {reason}")
    found, certificate, status, _ = _divisible(problem, progress)
    return found, certificate, status, f"noise that each party designs alone instead of a joint plan: {reason}"


def _better(one: Draft | None, other: Draft | None, power: int) -> Draft | None:
    if one is None or other is None:
        return one or other
    return one if one.error(power) <= other.error(power) else other


def _alone(problem: MultiLTE, progress: Progress) -> list[NoiseMatrix]:
    """For each party a table that is private whatever the others do."""
    from optdp.solution import solve

    found: dict[Any, NoiseMatrix] = {}
    tables = []
    for i in range(len(problem.parties)):
        populations = tuple(world[i] for world in problem.worlds)
        step = problem.step_epsilon(i)
        key = (populations, step)
        if key not in found:
            progress(f"party {i}: a first table that is private alone")
            single = SingleLTE(
                populations,
                step * populations[0].largest * RESERVE,
                fallback_epsilon=None if problem.fallback_epsilon is None else problem.fallback_epsilon * RESERVE,
                tail="none",
                never_worse=False,
            )
            first = solve(single)
            if first.status == "interrupted":
                raise KeyboardInterrupt
            found[key] = first.mechanism
        tables.append(found[key])
    return tables


METHODS: dict[str, Callable[[MultiLTE, Progress], Found]] = {
    "joint": _joint,
    "divisible": _divisible,
    "geometric": lambda problem, _: _baseline(problem),
}
"""How a plan is found."""
