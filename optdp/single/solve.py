"""One entity: formulate, solve, repair, certify; nothing leaves uncertified."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import optdp.work as work
from optdp.errors import CertificateError, InfeasibleError, OptdpError, SolverError
from optdp.files.atomic import check_writable
from optdp.kind import at
from optdp.mechanism.added_noise import AddedNoise, plain_noise, table_only
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import decimal_up, precision, show
from optdp.programs.backends import chosen, find, solving
from optdp.programs.residuals import TOLERANCE
from optdp.sheet import Cell, Sheet, bound_words, decimal, ordinary
from optdp.single.added_proof import proved
from optdp.single.additive import SLACKS, draft, priced, rounded
from optdp.single.alternatives import Alternatives
from optdp.single.baseline import CLAMPED_LIMIT, geometric_mechanism
from optdp.single.bound import NO_DUALS, PRICED, Draft, lower_bound
from optdp.single.certify import Certificate, certify, meaning
from optdp.single.designed import Designed, bars, shown_epsilon
from optdp.single.engines import Run, engines
from optdp.single.format import Artifact, check_name, table_of, write
from optdp.single.laws import some_sights
from optdp.single.lp import formulate
from optdp.single.ordinary import prices_of_noise
from optdp.single.over_time import OverTime
from optdp.single.problem import SingleLTE
from optdp.single.repair import repair
from optdp.single.shifting import shift_weights
from optdp.single.truthful import NEGLIGIBLE, solve_truthfully
from optdp.single.window import FULL_LIMIT, ORDINARY_LIMIT, only_noise, only_ordinary
from optdp.work import Progress, silent

NOTHING = 1e-15
"""An error below this is as good as none."""
MARGINS = (1e-9, 1e-6, 1e-5, 1e-3)
"""How much tighter than condition (3) the program's caps are, in turn, until the repaired table keeps the caps."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Solution(Designed[SingleLTE, Certificate]):
    """The solution for one entity: the mechanism, its certificate, and the main figures.

    `status` is "optimal", "heuristic", "baseline", "interrupted", or whatever a solver said. Besides the fields there
    are `mae`, `mse`, `baseline_mae`, `ordinary_mae`, `no_data_mae`, `gap`, `summary()` and `save(path)`.

    Parameters
    ----------
    problem : SingleLTE
        What was asked for.
    mechanism : NoiseMatrix or AddedNoise
        What to deploy.
    certificate : Certificate
        What is proved of it.
    lower_bound : Fraction or None
        No mechanism that the problem admits has a smaller error; None if that was not proved.
    prices : Prices, optional
        The dual solution that proves the lower bound.
    status, note, backend, engine, seconds
        How it was found.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, solve
    >>> solution = solve(SingleLTE(Population.binomial(10, "0.1"), epsilon=1))
    >>> solution.status, round(solution.mae, 4), round(solution.baseline_mae, 4)
    ('optimal', 0.4571, 0.8509)
    """

    mechanism: NoiseMatrix | AddedNoise
    told = ("status", "mae", "baseline_mae", "gap", "certificate.epsilon", "certificate.ordinary_epsilon")
    drawing = "optdp.single.pictures:pictures"

    @property
    def gap(self) -> float | None:
        """How far the objective is at most from the optimum: relative to the objective, or, where that is negligible,
        in its own units."""
        if self.lower_bound is None or not self.negligible:
            return super().gap
        return max(0.0, self.value - float(self.lower_bound))

    @property
    def negligible(self) -> bool:
        """Whether the error is nothing beside that of geometric noise: below 1e-12 of it."""
        return self.value <= NEGLIGIBLE * self.problem.baseline

    @property
    def baseline_mae(self) -> float:
        """The MAE of geometric noise at the same epsilon."""
        return float(self.problem.cap)

    @cached_property
    def alternatives(self) -> Alternatives:
        """The errors of what needs no data, or no assumption about the observer: to compare with, not claimed."""
        return Alternatives.of(self.problem)

    @property
    def no_data_mae(self) -> float | None:
        """The MAE of publishing the prior's median without any data."""
        return self.alternatives.figures["no_data_mae"]

    @property
    def ordinary_mae(self) -> float | None:
        """The least MAE under ordinary differential privacy at the same epsilon; None where it is not known."""
        return self.alternatives.figures["ordinary_mae"]

    @property
    def remarks(self) -> str:
        """What a user should be told: the note, and what does at least as well with less."""
        return "; ".join(filter(None, (self.note, self.alternatives.remark(self.value))))

    @cached_property
    def over_time(self) -> OverTime | None:
        """What all releases together reveal, proved from the ordinary epsilon of one; None without a total."""
        return OverTime.of(self.problem, self.certificate.ordinary_epsilon)

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        certificate = self.certificate
        together = {} if self.over_time is None else {"over_time": self.over_time.summary()}
        return {
            "kind": self.problem.kind,
            "status": self.status,
            "objective": self.problem.objective,
            "mae": self.mae,
            "mse": self.mse,
            "baseline_mae": self.baseline_mae,
            **self.alternatives.figures,
            "lower_bound": None if self.lower_bound is None else float(self.lower_bound),
            "gap": self.gap,
            "epsilon": show(self.problem.epsilon),
            "certified_epsilon": shown_epsilon(certificate.epsilon, self.problem.epsilon),
            "ordinary_epsilon": shown_epsilon(certificate.ordinary_epsilon),
            **together,
            "never_worse": certificate.never_worse,
            "backend": self.backend,
            "engine": self.engine,
            "seconds": round(self.seconds, 4),
            "note": self.remarks,
            "meaning": meaning(self.problem),
        }

    def sheet(self) -> Sheet:
        """What a person is shown."""
        figures, problem = self.summary(), self.problem
        facts: list[tuple[str, Cell | str]] = [
            ("problem", "; ".join(prior.describe for prior in problem.populations)),
            *problem.watchers,
            ("status", f"{self.status}  ({self.backend}, {self.engine}, {self.seconds:.2f} s)"),
            (problem.promise, f"{decimal(figures['certified_epsilon'])}  (wanted {figures['epsilon']})"),
            ("ordinary epsilon", ordinary(figures["ordinary_epsilon"])),
            *([] if self.over_time is None else [("over time", self.over_time.line)]),
            *self.compared("MAE, optdp", self.baseline_mae, self.alternatives.named("mae")),
        ]
        if problem.objective == "mse":
            facts += bars(("MSE, optdp", self.mse), *self.alternatives.named("mse"))
        if self.lower_bound and self.gap is not None:
            facts.append(
                (
                    bound_words(problem.tail, problem.form),
                    f"{float(self.lower_bound):.6f}  (proved; gap {self.gap:.1e})",
                )
            )
        if self.remarks:
            facts.append(("note", self.remarks))
        if problem.advice:
            facts.append(("advice", problem.advice))
        remarks = () if self.over_time is None else (self.over_time.meaning,)
        return Sheet(tuple(facts), remarks=remarks, meaning=figures["meaning"])

    def digest(self) -> str:
        """The `sha256` that its file states."""
        return self.artifact().sha256

    def artifact(self) -> Artifact:
        """The self-contained file for production."""
        certificate, matrix = self.certificate, self.mechanism
        targets = [self.problem.epsilon_of(i) for i in range(len(certificate.observed))]
        observed = [shown_epsilon(a, b) for a, b in zip(certificate.observed, targets, strict=True)]
        claim = {
            "epsilon": shown_epsilon(certificate.epsilon, self.problem.epsilon),
            **({"observed": observed} if len(observed) > 1 else {}),
            "ordinary_epsilon": shown_epsilon(certificate.ordinary_epsilon),
            **({} if self.over_time is None else {"over_time": self.over_time.claim()}),
            "mae": decimal_up(certificate.mae),
            "mse": decimal_up(certificate.mse),
            "worst_error": decimal_up(certificate.worst_error),
            "never_worse": certificate.never_worse,
            "baseline_mae": decimal_up(self.problem.cap),
            "lower_bound": self.bound_claim(),
            "meaning": meaning(self.problem),
            "explained": "docs/guarantee.md",
        }
        provenance = self.provenance(version("optdp")) | self.bound_proof()
        return replace(
            table_of(matrix), problem=self.problem.settled.spec(), claim=claim, provenance=provenance, sha256=""
        )

    def save(self, path: str | Path) -> None:
        """Write the artifact, atomically."""
        write(self.artifact(), Path(path))

    def to_opendp(self, T: str = "int") -> Any:
        """A measurement of OpenDP with the ordinary epsilon (extra `[opendp]`); see `optdp.bridges.opendp`."""
        return at("optdp.bridges.opendp:measurement")(table_only(self.mechanism, "OpenDP"), self.problem.largest, T)

    def to_pld(self, discretization: float = 1e-4) -> Any:
        """A pessimistic privacy loss distribution of dp-accounting (`[accounting]`); see `optdp.bridges.accounting`."""
        return at("optdp.bridges.accounting:pld")(
            table_only(self.mechanism, "dp-accounting"), self.problem.largest, discretization
        )


def check_target(problem: SingleLTE, path: Path) -> None:
    """Refuse before a long solve what could not be written after it."""
    check_name(path)
    check_writable(path)


PROVED = 1e-6
"""A gap below which geometric noise counts as the optimum itself."""
BEST_AS_IT_IS = "geometric noise: no mechanism of this kind is more accurate"
ONLY_NOISE = "with these tails and never_worse, ordinary privacy allows nothing better than geometric noise"
CROWDED = (
    "With ordinary privacy at epsilon itself and outputs in 0..n, the error of an input in the middle can be smaller "
    "than with geometric noise by a factor of about e^(-n epsilon / 2D) at most, which is less than rounding needs."
)
FORCED = (
    f"geometric noise: above {FULL_LIMIT:,}, sums without a row of their own get it, and ordinary privacy then "
    "requires it for all others too"
)


def solve_single(problem: SingleLTE, backend: str = "", progress: Progress = silent) -> Solution:
    """The best certified mechanism for `problem`; without the name of a backend by the one that is chosen here.

    Interrupted (Ctrl-C), it returns the best that is certified so far, which may be the baseline; `status` says so.
    """
    who = chosen.get().backend
    if backend and find(backend) != who:
        with solving(backend):
            return solve_single(problem, progress=progress)
    begin = time.perf_counter()
    with precision():
        if problem.method == "geometric":
            return _baseline(problem, begin, "baseline", "")
        if problem.last > FULL_LIMIT and problem.tail == "geometric" and only_ordinary(problem):
            return _baseline(problem, begin, "baseline", FORCED)
        try:
            if problem.tail == "geometric" and only_noise(problem):
                return _only_noise(problem, progress, begin)
            if problem.form == "additive":
                return _added(problem, progress, begin)
            return _designed(problem, who.name, engines(problem), progress, begin)
        except KeyboardInterrupt:
            if problem.tail == "none" and problem.last > CLAMPED_LIMIT:
                raise  # nothing was found so far, and geometric noise is not written out at this size
            return _baseline(problem, begin, "interrupted", "interrupted before a better mechanism was found")


def _only_noise(problem: SingleLTE, progress: Progress, begin: float) -> Solution:
    """Geometric noise where it is the optimum, with the bound that proves it."""
    found = _baseline(problem, begin, "baseline", ONLY_NOISE)
    if problem.last > ORDINARY_LIMIT:
        return found
    progress("proving a lower bound")
    lp = formulate(problem, progress=progress)
    sights = tuple(some_sights(problem)[:1]) if problem.watched else None
    prices = prices_of_noise(lp if sights is None else lp.seen(sights), sights)
    return replace(
        found, lower_bound=lower_bound(lp, prices), prices=prices, status="optimal", seconds=time.perf_counter() - begin
    )


def _designed(problem: SingleLTE, backend: str, runs: Sequence[Run], progress: Progress, begin: float) -> Solution:
    failure, status, kept = "", "baseline", None
    truthful = solve_truthfully(problem, progress)
    if truthful is not None:
        return Solution(
            problem=problem, mechanism=truthful[0], certificate=truthful[1], lower_bound=Fraction(0), status="optimal",
            note=_note(problem, truthful[1]), backend="optdp", engine="truthful", seconds=time.perf_counter() - begin,
        )  # fmt: skip
    for run, margin in product(runs, MARGINS):
        progress("formulating")
        lp = formulate(problem, margin, progress)
        try:
            draft = shift_weights(lp, progress) if problem.method == "shifting" else run(lp, progress)
        except SolverError as error:
            if backend != "highs":
                raise
            failure = str(error)
            break
        progress("proving a lower bound")
        bound = None if draft.prices is None else lower_bound(lp, draft.prices)
        if bound is not None and (kept is None or bound > kept[0]):
            kept = bound, draft.prices
        progress("repairing and certifying")
        try:
            with work.certifying():
                matrix = repair(lp, draft, progress)
                certificate = certify(problem, matrix, progress)
            certificate.check(problem)
        except CertificateError as error:
            failure = str(error)
            if draft.status == "interrupted" or work.stopped() is not None:
                status = "interrupted"
                break
            continue
        value = certificate.mae if problem.objective == "mae" else certificate.mse
        if problem.tail == "geometric" and value > problem.baseline:
            failure = "geometric noise is at least as accurate as what the solver found"
            if draft.status == "interrupted" or work.stopped() is not None:
                status = "interrupted"
                break
            continue
        seconds = time.perf_counter() - begin
        status = draft.status
        bound, prices = (bound, draft.prices) if kept is None else kept
        foreign = backend != "highs" or draft.engine == "plain"
        if foreign and status == "optimal" and not _shown_optimal(value, bound):
            status = "feasible"
        if bound is not None and draft.note == NO_DUALS:  # another draft has prices
            draft = replace(draft, note="")
        used = "optdp" if problem.method == "shifting" or draft.engine in ("chain", "ordinary") else backend
        found = Solution(
            problem=problem, mechanism=matrix, certificate=certificate, lower_bound=bound, status=status,
            note=_note(problem, certificate, draft), backend=used, engine=draft.engine, seconds=seconds,
            prices=prices,
        )  # fmt: skip
        return _not_worse_than_clamped(found, begin)
    noise = _baseline(problem, begin, status, f"geometric noise instead of the solver's answer: {failure}")
    if kept is None:
        return noise
    noise = replace(noise, lower_bound=kept[0], prices=kept[1])
    if status == "baseline" and noise.gap is not None and noise.gap < PROVED:
        return replace(noise, status="optimal", note=_note(problem, noise.certificate) or BEST_AS_IT_IS)
    return noise


def _shown_optimal(value: Fraction, bound: Fraction | None) -> bool:
    """Whether the bound shows that a table is within the tolerance of the best (or is as good as without noise)."""
    return bound is not None and value - bound <= Fraction(TOLERANCE) * value + Fraction(NOTHING)


def _added(problem: SingleLTE, progress: Progress, begin: float) -> Solution:
    """The best noise that is added to every input."""
    failure, status = "", "baseline"
    for slack in SLACKS:
        try:
            drafted = draft(problem, slack, progress)
        except SolverError as error:
            failure = str(error)
            continue
        progress("rounding and certifying")
        try:
            with work.certifying():
                noise = rounded(problem, drafted)
                certificate = certify(problem, noise, progress)
            if (certificate.mae if problem.objective == "mae" else certificate.mse) >= problem.baseline:
                return _baseline(problem, begin, "baseline", "geometric noise is as accurate as any that was found")
            certificate.check(problem)
        except CertificateError as error:
            failure = str(error)
            if drafted.status == "interrupted" or work.stopped() is not None:
                status = "interrupted"
                break
            continue
        progress("proving a lower bound")
        prices = priced(problem) if drafted.status == "optimal" else None
        bound, who = None if prices is None else proved(problem, prices), chosen.get()
        value = certificate.mae if problem.objective == "mae" else certificate.mse
        status, note = drafted.status, "" if bound is None or who.backend.duals else PRICED
        if status == "optimal" and not (who.own or _shown_optimal(value, bound)):
            status = "feasible"
        return Solution(
            problem=problem, mechanism=noise, certificate=certificate, lower_bound=bound, status=status,
            note="; ".join(filter(None, (_note(problem, certificate), note))), backend=who.backend.name,
            engine="additive", seconds=time.perf_counter() - begin, prices=prices,
        )  # fmt: skip
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


def _note(problem: SingleLTE, certificate: Certificate, draft: Draft | None = None) -> str:
    """What a user of this solution should be told; `draft` is what a solver gave."""
    notes = [problem.outside] if problem.outside else []
    notes += [draft.note] if draft is not None and draft.note else []
    if (certificate.mae if problem.objective == "mae" else certificate.mse) <= NEGLIGIBLE * problem.baseline:
        notes.append(
            "the prior alone hides everybody: the error is below 1e-12 of that of geometric noise, and the gap is "
            "absolute; everything rests on the prior, so consider a fallback_epsilon"
        )
    if all("conservative" in prior.spec for prior in problem.populations):
        notes.append(
            "a concentrated prior alone promises nothing under the full one: list both, or measure epsilon_under"
        )
    return "; ".join(notes)


def _baseline(problem: SingleLTE, begin: float, status: str, note: str) -> Solution:
    additive = problem.form == "additive"
    matrix = plain_noise(problem.last, problem.q) if additive else geometric_mechanism(problem)
    certificate = certify(problem, matrix)
    try:
        certificate.check(problem)
    except CertificateError as error:
        caps = problem.never_worse and "mean absolute error" in str(error)
        if caps and only_noise(problem):  # without tails
            raise InfeasibleError(f"{CROWDED} Set never_worse = false.") from None
        remedy = " Set never_worse = false." if caps else ""
        raise InfeasibleError(
            f"{note or 'Geometric noise is not enough'}; and for geometric noise {error}{remedy}"
        ) from None
    seconds = time.perf_counter() - begin
    return Solution(
        problem=problem, mechanism=matrix, certificate=certificate, lower_bound=None, status=status, note=note,
        backend="optdp", engine="geometric", seconds=seconds,
    )  # fmt: skip
