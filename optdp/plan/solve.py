"""solve for several entities: a method finds certified tables, a lower bound says how far from the best they are."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import decimal_up, precision, show
from optdp.plan.bound import plan_bound
from optdp.plan.bound_proof import PlanPrices
from optdp.plan.certificate import PlanCertificate, Tried, listed_methods, listed_parties, meaning
from optdp.plan.format import Table, plan_files, write_plan
from optdp.plan.methods import METHODS, best
from optdp.plan.problem import MultiLTE
from optdp.programs.backends import chosen, find, solving
from optdp.sheet import Cell, Sheet, decimal
from optdp.single.alternatives import no_data_sum, useless
from optdp.single.bound import PRICED, Prices
from optdp.single.designed import Designed, shown_epsilon
from optdp.single.problem import Objective
from optdp.work import Progress, silent


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanSolution(Designed[MultiLTE, PlanCertificate]):
    """The solution for several entities: a table for each, their joint certificate, and the main figures.

    `status` is "optimal", "local optimum", "work limit", "designed alone", "each alone", "baseline" or "interrupted";
    of a release that is drawn inside, what the solver said, usually "optimal". `bound_for` says of what the lower bound
    holds: of every plan whose reports are added, of whatever sees all data, or of every table of the total.

    Parameters
    ----------
    problem : MultiLTE
        What was asked for.
    tables : tuple of NoiseMatrix, SharedNoise or SeededMaps
        What each party deploys.
    certificate : PlanCertificate
        What is proved of all of them together.
    lower_bound : Fraction or None
        No plan has a smaller error; None if that was not proved.
    prices : Prices or PlanPrices, optional
        The dual solution that proves the lower bound.
    status, note, backend, engine, seconds
        How it was found.
    tried : tuple of Tried, optional
        With method "best": every method, and what came of it.

    Examples
    --------
    >>> from optdp import MultiLTE, Population, solve
    >>> plan = solve(MultiLTE([Population.binomial(4, "0.2")] * 2, epsilon=1, honest=1))
    >>> len(plan.tables), plan.mae < plan.baseline_mae
    (2, True)
    """

    tables: tuple[Table, ...]
    tried: tuple[Tried, ...] = ()
    told = ("status", "mae", "baseline_mae", "gap", "certificate.epsilon", "problem.honest", "tables")
    drawing = "optdp.plan.pictures:pictures"

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

    @property
    def bound_for(self) -> str:
        """Of what the lower bound holds."""
        if isinstance(self.prices, PlanPrices):
            return self.prices.holds_for
        return "every table of the total" if self.problem.method == "inside" else "whatever sees all data"

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
            **({} if certificate.worst_mae is None else {"worst_mae": float(certificate.worst_mae)}),
            **self.no_data,
            "lower_bound": None if self.lower_bound is None else float(self.lower_bound),
            "gap": self.gap,
            "divisor": show(problem.divisor),
            "average_mae": self.mae / float(problem.divisor),
            "epsilon": show(problem.epsilon),
            "certified_epsilon": shown_epsilon(certificate.epsilon, problem.epsilon),
            "parties": self._members(),
            **({"methods": [one.summary() for one in self.tried]} if self.tried else {}),
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
            ("problem", f"{len(problem.parties)} parties, {problem.honest} assumed honest"),
            *problem.watchers,
            ("status", f"{self.status}  ({problem.method}, {self.seconds:.2f} s)"),
            (problem.promise, f"{decimal(figures['certified_epsilon'])}  (wanted {figures['epsilon']})"),
            *self.compared("MAE of the aggregate", self.baseline_mae, without),
        ]
        if "worst_mae" in figures:
            facts.append(("MAE, given any sum", f"at most {figures['worst_mae']:.6f}"))
        if problem.objective == "mse":
            facts.append(("MSE of the aggregate", f"{self.mse:.6f}"))
        if problem.divisor != 1:
            facts.append(("MAE of the average", f"{figures['average_mae']:.6g}"))
        if self.lower_bound is not None:
            facts.append(("lower bound", f"{float(self.lower_bound):.6f}  (proved for {self.bound_for})"))
        if self.remarks:
            facts.append(("note", self.remarks))
        listings = [listed_parties(problem, figures["parties"])]
        if self.tried:
            listings.append(listed_methods(self.tried, problem.method, problem.objective))
        return Sheet(tuple(facts), tuple(listings), meaning=figures["meaning"])

    def written(self, path: Path) -> str:
        """What `save` wrote, in words."""
        return f"{path}/plan.json and {len(self.tables)} party files"

    def digest(self) -> str:
        """The `sha256` that its `plan.json` states."""
        document, _ = plan_files(self)
        stated: str = document["sha256"]
        return stated

    def claim(self) -> dict[str, Any]:
        """What the plan's file states, as decimals rounded to the safe side."""
        certificate = self.certificate
        return {
            "epsilon": shown_epsilon(certificate.epsilon, self.problem.epsilon),
            "mae": decimal_up(certificate.mae),
            "mse": decimal_up(certificate.mse),
            **({} if certificate.worst_mae is None else {"worst_mae": decimal_up(certificate.worst_mae)}),
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


def solve_plan(problem: MultiLTE, backend: str = "", progress: Progress = silent) -> PlanSolution:
    """The best certified plan for `problem`; without the name of a backend by the one that is chosen here.

    Interrupted (Ctrl-C), it returns the best certified plan so far, which may be the baseline; `status` says so.
    """
    who = chosen.get().backend
    if backend and find(backend) != who:
        with solving(backend):
            return solve_plan(problem, progress=progress)
    begin = time.perf_counter()
    with precision():
        tried: tuple[Tried, ...] = ()
        if problem.method == "best":
            problem, found, tried = best(problem, progress)
        else:
            found = METHODS[problem.method].solve(problem, progress)
        note = found.note
        bound: Fraction | None = None
        prices: Prices | PlanPrices | None = None
        if found.bound is not None:
            bound, prices = found.bound
        elif found.status != "interrupted":
            try:
                bounded = plan_bound(problem, progress)
            except KeyboardInterrupt:
                bounded = "interrupted"
            if isinstance(bounded, str):
                note = "; ".join(filter(None, (note, f"no lower bound: {bounded}")))
            else:
                bound, prices = bounded
                note = "; ".join(filter(None, (note, "" if who.duals else PRICED)))
    engine = "blocks" if isinstance(found.tables[0], NoiseMatrix) else "shares"
    engine = "maps" if problem.method == "seeded" else engine
    engine = "together" if problem.watched else engine
    engine = problem.method if problem.method in ("alone", "inside") else engine
    seconds = time.perf_counter() - begin
    return PlanSolution(
        problem=problem, tables=found.tables, certificate=found.certificate, lower_bound=bound, status=found.status,
        note=note, backend=who.name, engine=engine, seconds=seconds, prices=prices, tried=tried,
    )  # fmt: skip
