"""What is measured of one backend on one problem, within its own process.

For one entity every stage has its own clock, and what the solver returned is looked at as it is: which rows it misses,
and its real epsilon, in exact arithmetic. For several entities `solve` runs as it does for a user, each block through
the backend; there is no single answer of the solver to look at then.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from optdp.comparison.rows import STAGES
from optdp.errors import CertificateError, OptdpError
from optdp.files.models import Problem
from optdp.kinds import KINDS, find, kind_of, problem_class, solve
from optdp.loading import built
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import precision
from optdp.order.mechanism import Groups
from optdp.people.population import Population
from optdp.programs.backends import Chosen, solving
from optdp.programs.backends import find as backend_of
from optdp.programs.program import Answer, Options
from optdp.programs.residuals import residuals
from optdp.single.bound import NO_DUALS, PRICED, Draft, lower_bound
from optdp.single.certify import Certificate, certify, epsilon_of
from optdp.single.designed import shown_epsilon
from optdp.single.engines import engine
from optdp.single.lp import NoiseLP, formulate
from optdp.single.posed import Posed, pose
from optdp.single.problem import SingleLTE
from optdp.single.repair import repair
from optdp.single.solve import MARGINS
from optdp.work import silent

RAW_BITS = 1074
"""Floats are multiples of 2^-1074: a solver's answer is measured as the numbers it is."""
OPTIMAL = 1e-6
"""The largest gap that is called optimal, of the value, or of the baseline where the value is next to nothing."""
BEYOND = 1e-9
"""A privacy row counts as violated if it is by more than this share of epsilon."""
SHORT = 1.0
"""A first run of fewer seconds of the processor is a warm-up: much of it may be what is loaded for this form alone."""
Figures = dict[str, Any]


def measured(request: Mapping[str, Any]) -> Iterator[Figures]:
    """What becomes known of a backend, as columns of its row."""
    problem, name, options = told(request["problem"]), str(request["backend"]), dict(request["options"])
    begin = time.perf_counter()
    try:
        Single(SingleLTE(Population.binomial(2, "0.5"), 1), name, options, request["form"]).once()
    except OptdpError as error:
        yield {"status": "failed", "note": line(f"on a program of two people: {error}")}
        return
    yield {"warm_up": time.perf_counter() - begin}
    measure = find(kind_of(problem), "measure")(problem, name, options, request["form"])
    runs: list[Mapping[str, float]] = []
    spent: list[float] = []
    warm = False
    try:
        while len(runs) < request["repeat"]:
            began, run = time.process_time(), measure.once()
            used = time.process_time() - began
            if not warm and used < SHORT:
                yield {"warm_up": time.perf_counter() - begin}
            else:
                runs.append(run)
                spent.append(used)
                yield {**measure.figures(), **seconds_of(runs), "cpu": statistics.median(spent), "repeats": len(runs)}
            warm = True
        yield from measure.further()
    except OptdpError as error:
        yield {**measure.figures(), "status": measure.status_of(error), "note": line(str(error))}


def told(spec: Mapping[str, Any]) -> Problem[Any]:
    """The problem that `run.given` says."""
    if "lists" not in spec.get("groups", {}):
        return built(spec)
    found = dict(spec)
    kind, groups, n = found.pop("kind"), found.pop("groups"), found.pop("n")
    declared: Any = problem_class(KINDS[kind])
    made: Problem[Any] = declared(Groups.of(groups["lists"], n), **found)
    return made


def line(text: str) -> str:
    """A message of others in one line."""
    return " ".join(text.split())[:300]


def seconds_of(runs: list[Mapping[str, float]]) -> Figures:
    """Medians and spreads."""
    found: Figures = {}
    for stage in (*STAGES, "seconds"):
        times = [
            math.fsum(run.values()) if stage == "seconds" else run[stage] for run in runs if stage in {*run, "seconds"}
        ]
        if times:
            found |= {stage: statistics.median(times), f"{stage}_spread": max(times) - min(times)}
    return found


# --------------------------------------------------------------------------------------------------------- one entity


@dataclass
class Single:
    """One entity; what the last repeat found is kept."""

    problem: SingleLTE
    backend: str
    options: Options
    form: str
    lp: NoiseLP | None = None
    posed: Posed | None = None
    answer: Answer | None = None
    draft: Draft | None = None
    certificate: Certificate | None = None
    bound: float | None = None
    bound_by: str = ""
    missed: str = ""
    """What the certified table does not keep, though it is private."""

    def once(self) -> Mapping[str, float]:
        """Formulate, build, solve, repair, certify; the seconds of each.

        As `solve` does, with caps that are tighter each time until the repaired table keeps them.
        """
        seconds = dict.fromkeys(STAGES, 0.0)
        with precision():
            for margin in MARGINS:
                self._try(margin, seconds)
                if not self.missed:
                    break
        return seconds

    def _try(self, margin: float, seconds: dict[str, float]) -> None:
        self.lp = self.posed = self.answer = self.draft = self.certificate = self.bound = None
        self.bound_by = ""
        begin = time.perf_counter()
        self.lp = lp = formulate(self.problem, margin)
        seconds["formulate"] += _passed(begin)
        draft = self._drafted(lp, seconds)
        begin = time.perf_counter()
        matrix = repair(lp, draft)
        seconds["repair"] += _passed(begin)
        begin = time.perf_counter()
        self.certificate = certify(self.problem, matrix)
        if draft.prices is not None:
            self.bound, self.bound_by = float(lower_bound(lp, draft.prices)), self.backend
        seconds["certify"] += _passed(begin)
        try:
            self.certificate.check(self.problem)
            self.missed = ""
        except CertificateError as error:
            self.missed = f"after repair {error}"

    def _drafted(self, lp: NoiseLP, seconds: dict[str, float]) -> Draft:
        who, begin = Chosen(backend_of(self.backend), self.options), time.perf_counter()
        if who.own or lp.problem.watched:  # many programs, one after the other
            with solving(self.backend, self.options):
                self.draft = engine()(lp, silent)
            seconds["solve"] += _passed(begin)
            return self.draft
        self.posed = posed = pose(lp, self.form)
        self.answer = answer = who.solve(posed.program)
        seconds["solve"] += answer.solve_seconds
        seconds["build"] += max(_passed(begin) - answer.solve_seconds, 0.0)
        begin = time.perf_counter()
        self.draft = posed.draft(answer)
        seconds["certify"] += _passed(begin)
        return self.draft

    @property
    def value(self) -> float | None:
        """The objective of the certified table."""
        if self.certificate is None:
            return None
        return float(self.certificate.mae if self.problem.objective == "mae" else self.certificate.mse)

    @property
    def gap(self) -> float | None:
        if self.value is None or self.bound is None:
            return None
        whole = self.value if self.value > 1e-12 * self.problem.baseline else float(self.problem.baseline)
        return max(self.value - self.bound, 0.0) / whole

    @property
    def status(self) -> str:
        """What the answer is worth; "optimal" is proved."""
        if self.answer is not None and self.answer.status not in ("optimal", "feasible"):
            return self.answer.status
        if self.certificate is None:
            return "failed"
        if self.missed:
            return "limit"
        return "optimal" if self.gap is not None and self.gap <= OPTIMAL else "feasible"

    def status_of(self, error: OptdpError) -> str:
        """That of a run that ended so."""
        found = self.status
        return "failed" if found in ("optimal", "feasible") or "memory" in str(error) else found

    def figures(self) -> Figures:
        """What is known without any long calculation."""
        found: Figures = {"status": self.status, "note": self._note()}
        found["theirs"] = self.answer.said if self.answer else self.draft.status if self.draft else ""
        if self.lp is not None:
            found |= size_of(self.lp)
        if self.answer is not None:
            found["iterations"] = self.answer.iterations
        if self.lp is not None and self.draft is not None:
            found |= _finite({"objective": self.draft.objective(self.lp), **_looked_at(self.lp, self.draft)})
        if self.posed is not None and self.answer is not None and self.answer.x is not None:
            dual = residuals(self.posed.program, self.answer.x, self.answer.duals).dual
            found |= _finite({"dual_residual": dual})
        if self.certificate is not None and self.value is not None:
            found |= {
                "value": self.value,
                "mae": float(self.certificate.mae),
                "certified_epsilon": shown_epsilon(self.certificate.epsilon, self.problem.epsilon),
                "lower_bound": self.bound,
                "bound_by": self.bound_by if self.bound is not None else "",
                "gap": self.gap,
            }
            if self.draft is not None and self.lp is not None and self.value > 0:
                found |= _finite({"repair_cost": (self.value - self.draft.objective(self.lp)) / self.value})
        return found

    def _note(self) -> str:
        if self.missed:
            return self.missed
        if self.certificate is not None and self.bound_by != self.backend:
            return PRICED if self.bound is not None else NO_DUALS
        return ""

    def further(self) -> Iterator[Figures]:
        """What takes exact arithmetic, or another solver."""
        lp, draft = self.lp, self.draft
        if lp is None or draft is None:
            return
        with precision():
            yield {"raw_epsilon": _text(raw_epsilon(lp, draft)), "violated": violated(lp, draft)}
            if self.bound is None:
                own = engine()(lp, silent)
                if own.prices is not None:
                    self.bound, self.bound_by = float(lower_bound(lp, own.prices)), "highs"
                    yield self.figures()


def _passed(begin: float) -> float:
    return time.perf_counter() - begin


def _finite(figures: Mapping[str, float | None]) -> Figures:
    return {name: value for name, value in figures.items() if value is not None and math.isfinite(value)}


def _text(epsilon: float | None) -> str:
    return "infinite" if epsilon is None else f"{epsilon:.12g}"


def size_of(lp: NoiseLP) -> Figures:
    """Of the plain program, whichever was solved: unknowns, rows, and entries that are not zero."""
    size, gaps = len(lp.inputs), lp.gaps
    rungs = 0 if lp.chain is None else sum(2 * (size - far) * size for far in lp.rungs)
    caps = 0 if lp.cap is None else size
    return {
        "unknowns": size * size,
        "rows": size * (1 + len(gaps)) + caps + rungs,
        "entries": size * size + size * int(np.count_nonzero(gaps)) + caps * max(size - 1, 0) + 2 * rungs,
    }


def _table(lp: NoiseLP, draft: Draft) -> sparse.csr_array:
    size = len(lp.inputs)
    return sparse.csr_array((draft.values, (draft.rows, draft.cols)), shape=(size, size))


def _looked_at(lp: NoiseLP, draft: Draft) -> dict[str, float]:
    """The most by which the numbers miss a row of the plain program or are negative, and how small and large they are.

    A row with a limit `b` is missed by as many times `1 + |b|`.
    """
    table = _table(lp, draft)
    missed = [abs(table.sum(axis=1) - 1.0) / 2.0, lp.gaps @ table]
    if lp.tight_cap is not None:
        away = np.abs(lp.inputs[draft.rows] - lp.inputs[draft.cols]) * draft.values
        errors = np.bincount(draft.rows, away, minlength=len(lp.inputs))
        missed.append((errors - lp.tight_cap) / (1.0 + np.abs(lp.tight_cap)))
    if lp.chain is not None:
        scaled = sparse.diags_array(lp.mass) @ table
        for far in lp.rungs:
            one, other = scaled[:-far], scaled[far:]
            missed += [(one - lp.chain * other).toarray(), (other - lp.chain * one).toarray()]
    worst = max(float(np.max(part, initial=0.0)) for part in missed)
    positive = table.data[table.data > 0]
    return {
        "primal_residual": max(worst, float(-table.data.min(initial=0.0))),
        "smallest": float(positive.min(initial=math.inf)),
        "largest": float(positive.max(initial=0.0)),
    }


def raw_epsilon(lp: NoiseLP, draft: Draft) -> float | None:
    """The real epsilon of a draft's floats, taken as the numbers they are (negative ones as zero); None: infinite."""
    first = int(lp.inputs[0])
    rows: list[dict[int, int]] = [{} for _ in lp.inputs]
    for x, s, value in zip(draft.rows.tolist(), draft.cols.tolist(), draft.values.tolist(), strict=True):
        if value > 0:
            numerator, denominator = value.as_integer_ratio()
            rows[x][first + s] = rows[x].get(first + s, 0) + numerator * ((1 << RAW_BITS) // denominator)
    shape = lp.shape
    table = tuple(tuple(sorted(row.items())) for row in rows)
    matrix = NoiseMatrix(shape.inputs, shape.outputs, 1 << RAW_BITS, table, shape.q, "error", shape.last)
    found = epsilon_of(matrix, lp.laws)
    return None if found is None else float(found)


def violated(lp: NoiseLP, draft: Draft) -> int:
    """How many privacy rows the numbers break, beyond rounding: an output of the table and a step, either way."""
    seen = lp.weights @ _table(lp, draft).maximum(0)
    count = 0
    for step in lp.laws.steps:
        allowed = math.exp(step.epsilon * (1 + BEYOND))
        one, other = seen[step.one], seen[step.other]
        count += int((one > allowed * other).sum() + (other > allowed * one).sum())
    return count


# --------------------------------------------------------------------------------------------------- several entities


@dataclass
class Plan:
    """Several entities: `solve`, with every linear program of the plan through the backend."""

    problem: Any
    backend: str
    options: Options
    form: str = ""
    solution: Any = None

    def once(self) -> Mapping[str, float]:
        begin = time.perf_counter()
        self.solution = solve(self.problem, self.backend, options=self.options)
        return {"solve": _passed(begin)}

    def status_of(self, _: OptdpError) -> str:
        return "failed"

    def figures(self) -> Figures:
        if self.solution is None:
            return {"status": "failed"}
        found, told = self.solution, self.solution.summary()
        proved = found.gap is not None and found.gap <= OPTIMAL
        return {
            "status": "optimal" if proved else "feasible",
            "theirs": found.status,
            "note": line(found.note),
            "value": float(found.value),
            "mae": float(found.mae),
            "certified_epsilon": told["certified_epsilon"],
            "lower_bound": told["lower_bound"],
            "gap": found.gap,
        }

    def further(self) -> Iterator[Figures]:
        """A plan is many programs: there is no one answer of a solver to look at."""
        yield from ()
