"""solve for several entities: start, descend, round, certify; nothing leaves uncertified."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import optdp.work as work
from optdp.errors import CertificateError, OptdpError, ProblemError, SolverError
from optdp.mechanism.added_noise import table_only
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import decimal_up, precision, show
from optdp.plan.certificate import PlanCertificate, bounding, listed_parties, meaning
from optdp.plan.certify import certify_plan
from optdp.plan.divisible import design, geometric
from optdp.plan.format import Table, plan_files, write_plan
from optdp.plan.joint import MOST_PRODUCTS, NARROW, ROOM, PlanDraft, Size, check_cells, descend, rounded, starts
from optdp.plan.problem import MultiLTE, each_once
from optdp.plan.together import designed
from optdp.plan.together import rounded as written
from optdp.sheet import Cell, Sheet, decimal
from optdp.single.added_proof import NoisePrices
from optdp.single.alternatives import no_data_sum, useless
from optdp.single.bound import Prices
from optdp.single.designed import Designed, shown_epsilon
from optdp.single.problem import Objective, SingleLTE
from optdp.single.solve import Solution, solve_single
from optdp.work import Progress, announce, silent
from optdp.work.account import Effort

RESERVES = {ROOM: Fraction(94, 100), NARROW: Fraction(996, 1000)}
"""The share of epsilon that the first plan spends, so that the programs have room for a slack."""
MORE_TRIES, DESCENT = 100_000_000, 300_000_000
"""Work (`Effort`) after which no further start is tried, and after which a descent ends with what it has."""
RESERVE, REPAIRS = 1 - 1e-9, 12
"""The share of epsilon that a plan against observers spends; how often what it leaves to repair is looked at."""
FITS = 'Use fewer or alike parties, a larger epsilon, or method = "divisible".'
BITS = (62, 128)
"""Denominators of the tables, in turn, until the rounded plan is private."""

Found = tuple[tuple[Table, ...], PlanCertificate, str, str]
"""Tables, their certificate, the status and a note."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanSolution(Designed[MultiLTE, PlanCertificate]):
    """What came out for several entities: a table for each, their joint certificate, and the numbers asked for first.

    `status` is "local optimum", "work limit", "designed alone", "each alone", "baseline" or "interrupted". The lower
    bound holds for every plan, and for one entity that holds all data.

    Parameters
    ----------
    problem : MultiLTE
        What was asked for.
    tables : tuple of NoiseMatrix or SharedNoise
        What each party deploys.
    certificate : PlanCertificate
        What is proved of all of them together.
    lower_bound : Fraction or None
        No plan has a smaller error; None if that was not proved.
    prices : Prices, optional
        The dual solution that proves the lower bound.
    status, note, backend, engine, seconds
        How it was found.

    Examples
    --------
    >>> from optdp import MultiLTE, Population, solve
    >>> plan = solve(MultiLTE([Population.binomial(4, "0.2")] * 2, epsilon=1, honest=1))
    >>> len(plan.tables), plan.mae < plan.baseline_mae
    (2, True)
    """

    tables: tuple[Table, ...]
    told = ("status", "mae", "baseline_mae", "gap", "certificate.epsilon", "problem.honest", "tables")

    @property
    def baseline_mae(self) -> float:
        """The MAE of shared geometric noise at the same epsilon."""
        return float(self.problem.baseline_mae)

    @cached_property
    def no_data(self) -> dict[str, float | None]:
        """The errors of the best constant, published without any data; None if the law of the sum is too long."""
        problem = self.problem
        objectives: tuple[Objective, ...] = ("mae",) if problem.objective == "mae" else ("mae", "mse")
        return {f"no_data_{name}": no_data_sum(problem.parties, problem.f, name) for name in objectives}

    @property
    def remarks(self) -> str:
        """What a user should be told: the note, and whether publishing without any data does as well."""
        objective = self.problem.objective
        return "; ".join(
            filter(None, (self.note, useless(self.value, self.no_data[f"no_data_{objective}"], objective)))
        )

    def _members(self) -> list[dict[str, Any]]:
        """The figures of each party."""
        certificate, problem = self.certificate, self.problem
        return [
            {
                "certified_epsilon": shown_epsilon(certificate.epsilons[i], problem.epsilon),
                "ordinary_epsilon": shown_epsilon(certificate.ordinary[i]),
                "mae": float(certificate.own_mae[i]),
                "baseline_mae": float(problem.share_mae),
                "lower_bound": 0.0,
            }
            for i in range(len(self.tables))
        ]

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        certificate, problem = self.certificate, self.problem
        return {
            "kind": problem.kind,
            "method": problem.method,
            "status": self.status,
            "objective": problem.objective,
            "honest": problem.honest,
            "mae": self.mae,
            "mse": self.mse,
            "baseline_mae": self.baseline_mae,
            **self.no_data,
            "lower_bound": None if self.lower_bound is None else float(self.lower_bound),
            "gap": self.gap,
            "divisor": show(problem.divisor),
            "average_mae": self.mae / float(problem.divisor),
            "epsilon": show(problem.epsilon),
            "certified_epsilon": shown_epsilon(certificate.epsilon, problem.epsilon),
            "parties": self._members(),
            "backend": self.backend,
            "engine": self.engine,
            "seconds": round(self.seconds, 4),
            "note": self.remarks,
            "meaning": meaning(problem),
        }

    def sheet(self) -> Sheet:
        """What a person is shown."""
        figures, problem = self.summary(), self.problem
        without = [] if figures["no_data_mae"] is None else [("MAE, without data", figures["no_data_mae"])]
        facts: list[tuple[str, Cell | str]] = [
            ("problem", f"{len(problem.parties)} parties, {problem.honest} surely honest"),
            *problem.watchers,
            ("status", f"{self.status}  ({problem.method}, {self.seconds:.2f} s)"),
            (problem.promise, f"{decimal(figures['certified_epsilon'])}  (wanted {figures['epsilon']})"),
            *self.compared("MAE of the aggregate", self.baseline_mae, without),
        ]
        if problem.objective == "mse":
            facts.append(("MSE of the aggregate", f"{self.mse:.6f}"))
        if problem.divisor != 1:
            facts.append(("MAE of the average", f"{figures['average_mae']:.6g}"))
        if self.lower_bound is not None:
            bound = f"{float(self.lower_bound):.6f}  (proved: one entity with all data)"
            facts.append(("no plan is below", bound))
        if self.remarks:
            facts.append(("note", self.remarks))
        listing = listed_parties(problem, figures["parties"])
        return Sheet(tuple(facts), (listing,), meaning=figures["meaning"])

    def written(self, path: Path) -> str:
        """What `save` wrote, in words."""
        return f"{path}/plan.json and {len(self.tables)} party files"

    def digest(self) -> str:
        """The `sha256` that its `plan.json` states."""
        document, _ = plan_files(self)
        stated: str = document["sha256"]
        return stated

    def _repr_html_(self) -> str:
        """A notebook shows this."""
        from optdp.report.notebook import of_plan

        return of_plan(self)

    def claim(self) -> dict[str, Any]:
        """What the plan's file states, as decimals rounded to the safe side."""
        certificate = self.certificate
        return {
            "epsilon": shown_epsilon(certificate.epsilon, self.problem.epsilon),
            "mae": decimal_up(certificate.mae),
            "mse": decimal_up(certificate.mse),
            "baseline_mae": decimal_up(self.problem.baseline_mae),
            "lower_bound": self.bound_claim(),
            "parties": [
                {
                    "epsilon": party["certified_epsilon"],
                    "ordinary_epsilon": party["ordinary_epsilon"],
                    "mae": decimal_up(own),
                }
                for party, own in zip(self._members(), certificate.own_mae, strict=True)
            ],
            "meaning": meaning(self.problem),
            "explained": "docs/guarantee.md",
        }

    def save(self, folder: str | Path) -> None:
        """Write the plan's folder, whole or not at all: `plan.json` and one artifact for each party."""
        write_plan(self, Path(folder))


def solve_plan(problem: MultiLTE, backend: str = "highs", progress: Progress = silent) -> PlanSolution:
    """The best certified plan for `problem`.

    Interrupted (Ctrl-C), it returns the best certified plan so far, which may be the baseline; `status` says so.
    """
    if backend != "highs":
        raise ProblemError(f'A plan of several entities is solved by the backend "highs". Found {backend!r}.')
    begin = time.perf_counter()
    with precision():
        tables, certificate, status, note = METHODS[problem.method](problem, progress)
        engine = "blocks" if isinstance(tables[0], NoiseMatrix) else "shares"
        engine = "alone" if problem.method == "alone" else "together" if problem.watched else engine
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
    status = "interrupted" if plan.interrupted else "designed alone"
    return plan.parties, plan.certificate, status, ""


def _bound(problem: MultiLTE, progress: Progress) -> tuple[Fraction | None, Prices | None]:
    """What one entity with all data could do at best."""
    progress("a bound: one entity with everybody's data")
    whole = bounding(problem)
    try:
        found = None if whole is None else solve_single(whole)
    except OptdpError:
        return None, None
    if found is None:
        return None, None
    if found.status == "interrupted" and found.lower_bound is None:
        raise KeyboardInterrupt
    return found.lower_bound, None if isinstance(found.prices, NoisePrices) else found.prices


def _together(problem: MultiLTE, progress: Progress) -> Found:
    """A joint plan against observers with doubts; what the search leaves to repair is repaired step by step."""
    plans = designed(problem, RESERVE, progress)
    plan, status, share = next(plans), "local optimum", 0.0
    try:
        for better in plans:
            plan = better
    except KeyboardInterrupt:
        status = "interrupted"
    with work.certifying():
        for _ in range(REPAIRS):
            progress("rounding and certifying all products of vertices")
            tables = written(plan.blurred(share), problem, BITS[0])
            certificate = certify_plan(problem, tables)
            try:
                certificate.check(problem)
            except CertificateError:
                over = 1.0 if certificate.epsilon is None else float(certificate.epsilon / problem.epsilon) - 1
                share = min(1.0, 2 * share + 2 * over + 1e-9)
                continue
            found: Found = tuple(tables), certificate, status, problem.outside
            baseline = problem.baseline_mae if problem.objective == "mae" else problem.baseline_mse
            return found if _value(problem, certificate) <= baseline else _no_worse(problem, found, progress)
    raise SolverError('No joint plan could be certified against the observer. Use method = "alone".')


def _no_worse(problem: MultiLTE, found: Found, progress: Progress) -> Found:
    """Where geometric noise is better than the plan that was found: tables that are private alone, if that helps."""
    tables, _, status, note = _private_alone(problem.changed(method="alone"), progress)
    finite = [table for table in tables if isinstance(table, NoiseMatrix)]
    with work.certifying():
        certificate = certify_plan(problem, finite)
    if _value(problem, certificate) >= _value(problem, found[1]):
        return found
    certificate.check(problem)
    return tables, certificate, status, note


def _joint(problem: MultiLTE, progress: Progress) -> Found:
    if problem.watched:
        return _together(problem, progress)
    size = Size.of(problem)
    if size.products > MOST_PRODUCTS and problem.fallback_epsilon is None and not problem.also:
        found, certificate, status, note = _divisible(problem, progress)
        reason = f"each party designs alone: a joint plan would compare aggregates of {len(problem.parties)} parties"
        return found, certificate, status, note or f"{reason} of {size.kinds} kinds for hours"
    check_cells(size.cells)
    announce(size.seconds(DESCENT), f"A joint plan of {len(problem.parties)} parties", FITS, progress)
    best: PlanDraft | None = None
    latest: PlanDraft | None = None
    power = 1 if problem.objective == "mae" else 2
    status = "local optimum"
    effort = Effort(most=DESCENT)
    try:
        alone = cache(lambda slack: _alone(problem, RESERVES[slack], progress))
        for attempt in starts(problem, alone, progress):
            if best is not None and effort.spent > MORE_TRIES:
                break
            best = best or attempt.start
            for plan in descend(attempt, problem, progress, effort):
                latest = plan
            best, latest = _better(best, latest, power), None
        if effort.over:
            status = "work limit"
    except KeyboardInterrupt:
        status = "interrupted"
        best = _better(best, latest, power)
    why = "interrupted before a plan was found" if status == "interrupted" else "no start is near a good plan"
    if best is not None:
        try:
            proved = _proved(problem, best, progress)
        except KeyboardInterrupt:  # what was found so far is this plan
            if status == "interrupted":
                raise
            status, proved = "interrupted", _proved(problem, best, progress)
        if not isinstance(proved, str):
            return *proved, status, ""
        why = proved
    if problem.fallback_epsilon is not None:
        raise SolverError(f"No plan that keeps the fallback could be certified: {why}")
    if status == "interrupted" or problem.also:
        state = status if status == "interrupted" else "baseline"
        return _baseline(problem, state, f"shared geometric noise instead of a joint plan: {why}")
    found, certificate, status, _ = _divisible(problem, progress)
    return found, certificate, status, f"noise that each party designs alone instead of a joint plan: {why}"


def _proved(problem: MultiLTE, plan: PlanDraft, progress: Progress) -> tuple[tuple[Table, ...], PlanCertificate] | str:
    """The plan in integers with its certificate, or why it is none."""
    reason = ""
    for bits in BITS:
        progress("rounding and certifying")
        with work.certifying():
            tables = rounded(plan, problem, bits)
            certificate = certify_plan(problem, tables)
        try:
            certificate.check(problem)
        except CertificateError as error:
            reason = str(error)
            continue
        value = _value(problem, certificate)
        baseline = problem.baseline_mae if problem.objective == "mae" else problem.baseline_mse
        if problem.fallback_epsilon is not None or value <= baseline:
            return tables, certificate
        return "geometric noise is at least as accurate as the plan that was found"
    return reason


def _better(one: PlanDraft | None, other: PlanDraft | None, power: int) -> PlanDraft | None:
    if one is None or other is None:
        return one or other
    return one if one.error(power) <= other.error(power) * (1 + 1e-9) else other


def _alone(problem: MultiLTE, reserve: Fraction, progress: Progress) -> list[NoiseMatrix]:
    """For each party a table that is private whatever the others do (it need not keep the fallback)."""
    worlds = list(zip(*problem.worlds, strict=True))  # for each party its populations
    steps = [problem.step_epsilon(i) for i in range(len(worlds))]

    def table_of(i: int) -> NoiseMatrix:
        progress(f"party {i}: a first table that is private alone")
        epsilon = steps[i] * worlds[i][0].largest * reserve
        found = solve_single(SingleLTE(worlds[i], epsilon, tail="none", never_worse=False))
        if found.status == "interrupted":
            raise KeyboardInterrupt
        return table_only(found.mechanism, "A plan")

    return each_once(zip(worlds, steps, strict=True), table_of)


def _private_alone(problem: MultiLTE, progress: Progress) -> Found:
    """For each party the best table that is private by itself.

    What is best for a party need not be best for the sum, as errors of many parties add up like squares: tables with
    the least absolute error and such with the least squared one are tried, and those with the better sum are kept.
    """
    best: tuple[tuple[Table, ...], PlanCertificate] | None = None
    status, note = "each alone", "each table is private on its own, so the sum is, whatever the other parties tell"
    if problem.watched and problem.apart:
        note += f"; a joint plan {problem.apart}"
    kinds: tuple[Objective, ...] = ("mae", "mse")
    for kind in kinds if problem.objective == "mae" else kinds[::-1]:
        wholes = [problem.alone(i, kind) for i in range(len(problem.parties))]

        def solved(i: int, wholes: list[SingleLTE] = wholes) -> Solution:
            progress(f"party {i}: a table that is private alone")
            return solve_single(wholes[i], progress=progress)

        found = each_once(map(id, wholes), solved)
        interrupted = any(own.status == "interrupted" for own in found)
        status = "interrupted" if interrupted else status
        if not interrupted or best is None:
            progress("certifying the plan")
            tables = [_times(table_only(own.mechanism, "A plan"), f) for own, f in zip(found, problem.f, strict=True)]
            certificate = certify_plan(problem, tables)
            certificate.check(problem)
            if best is None or _value(problem, certificate) < _value(problem, best[1]):
                best = tuple(tables), certificate
        if interrupted:
            break
    assert best is not None
    baseline = problem.baseline_mae if problem.objective == "mae" else problem.baseline_mse
    shared = ""
    if _value(problem, best[1]) > baseline:
        who = "all parties" if problem.honest == len(problem.parties) else f"{problem.honest} parties"
        shared = f'if {who} are surely honest, shared geometric noise does better: method = "geometric"'
    return *best, status, "; ".join(filter(None, (note, shared, problem.outside)))


def _value(problem: MultiLTE, certificate: PlanCertificate) -> Fraction:
    return certificate.mae if problem.objective == "mae" else certificate.mse


def _times(table: NoiseMatrix, factor: int) -> NoiseMatrix:
    """The same table with every output multiplied."""
    if factor == 1:
        return table
    rows = tuple(tuple(sorted((factor * s, weight) for s, weight in row)) for row in table.rows)
    low, high = sorted(factor * s for s in table.outputs)
    return replace(table, outputs=(low, high), rows=rows)


METHODS: dict[str, Callable[[MultiLTE, Progress], Found]] = {
    "joint": _joint,
    "divisible": _divisible,
    "geometric": lambda problem, _: _baseline(problem),
    "alone": _private_alone,
}
"""How a plan is found."""
