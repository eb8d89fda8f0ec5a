"""How results look in a terminal: tables, bars, progress."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from optdp.amplification.solve import AmplificationSolution
    from optdp.noise.multi import MultiLTE
    from optdp.plan import PlanSolution
    from optdp.solution import Solution

out = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 160)
err = Console(stderr=True, soft_wrap=True)


def print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, indent=2))


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    if quiet or not err.is_terminal:
        yield lambda _: None
        return
    with err.status("working") as status:
        yield lambda text: status.update(text)


def ordinary(epsilon: str) -> str:
    if epsilon == "infinite":
        return "infinite: nothing is promised without the prior"
    return f"{decimal(epsilon)}  (whatever anybody knows; composes)"


def decimal(text: str) -> str:
    if text == "infinite":
        return text
    value = Fraction(text)
    return f"{float(value):.12g}" if value < 10**9 else "more than 1e9"


def bound_words(tail: str) -> str:
    """What the lower bound speaks of: the mechanisms that the problem admits."""
    return "none with these tails is below" if tail == "geometric" else "no mechanism is below"


def explain(meaning: str) -> None:
    out.print(f"[dim]{meaning} More: docs/guarantee.md[/]")


def show_solution(solution: Solution, saved: Path | None) -> None:
    figures = solution.summary()
    table = Table(show_header=False, box=None, padding=(0, 2))
    worst = max(solution.baseline_mae, solution.mae)
    table.add_row("[bold]problem[/]", "; ".join(prior.describe for prior in solution.problem.populations))
    table.add_row("status", f"{solution.status}  ({solution.backend}, {solution.engine}, {solution.seconds:.2f} s)")
    certified = decimal(figures["certified_epsilon"])
    table.add_row("epsilon under the prior", f"{certified}  (wanted {figures['epsilon']})")
    table.add_row("ordinary epsilon", ordinary(figures["ordinary_epsilon"]))
    table.add_row("MAE, optdp", f"{solution.mae:10.6f}  [green]{bar(solution.mae / worst)}[/]")
    table.add_row("MAE, geometric", f"{solution.baseline_mae:10.6f}  [blue]{bar(solution.baseline_mae / worst)}[/]")
    if solution.problem.objective == "mse":
        table.add_row("MSE", f"{solution.mse:10.6f}")
    if solution.lower_bound and solution.gap is not None:
        words, bound = bound_words(solution.problem.tail), float(solution.lower_bound)
        table.add_row(words, f"{bound:10.6f}  (proved; gap {solution.gap:.1e})")
    if solution.note:
        table.add_row("note", solution.note)
    if saved is not None:
        table.add_row("written", str(saved))
    out.print(table)
    explain(figures["meaning"])


def show_plan(solution: PlanSolution, saved: Path | None) -> None:
    figures, problem = solution.summary(), solution.problem
    table = Table(show_header=False, box=None, padding=(0, 2))
    worst = max(solution.baseline_mae, solution.mae)
    table.add_row("[bold]problem[/]", f"{len(problem.parties)} parties, {problem.honest} surely honest")
    table.add_row("status", f"{solution.status}  ({problem.method}, {solution.seconds:.2f} s)")
    certified = decimal(figures["certified_epsilon"])
    table.add_row("epsilon under the priors", f"{certified}  (wanted {figures['epsilon']})")
    table.add_row("MAE of the aggregate", f"{solution.mae:10.6f}  [green]{bar(solution.mae / worst)}[/]")
    table.add_row("MAE, geometric", f"{solution.baseline_mae:10.6f}  [blue]{bar(solution.baseline_mae / worst)}[/]")
    if problem.objective == "mse":
        table.add_row("MSE of the aggregate", f"{solution.mse:10.6f}")
    if problem.divisor != 1:
        table.add_row("MAE of the average", f"{figures['average_mae']:10.6g}")
    if solution.lower_bound is not None:
        table.add_row("no plan is below", f"{float(solution.lower_bound):10.6f}  (proved: one entity with all data)")
    if solution.note:
        table.add_row("note", solution.note)
    if saved is not None:
        table.add_row("written", f"{saved}/plan.json and {len(problem.parties)} party files")
    out.print(table)
    show_parties(problem, figures["parties"])
    explain(figures["meaning"])


def show_further(figures: Mapping[str, Any]) -> None:
    """What else was asked for and holds: the signature, a second opinion."""
    for name in ("signature", "second_opinion"):
        if name in figures:
            out.print(f"  [bold green]{name.replace('_', ' ')}[/]  {escape(str(figures[name]))}")


def show_parties(problem: MultiLTE, parties: list[dict[str, Any]]) -> None:
    listed = Table("party", "people", "own MAE", "epsilon", "ordinary epsilon", box=None, padding=(0, 2))
    for i, (population, figures) in enumerate(zip(problem.parties, parties, strict=True)):
        epsilon, ordinary = decimal(figures["certified_epsilon"]), decimal(figures["ordinary_epsilon"])
        listed.add_row(str(i), population.describe, f"{float(figures['mae']):.6f}", epsilon, ordinary)
    out.print(listed)


def show_answer(solution: AmplificationSolution) -> None:
    """What shuffling buys: the answer, a bar from what is excluded to what is promised, and every bound."""
    unknown = solution.unknown
    table = Table(show_header=False, box=None, padding=(0, 2))
    given = ", ".join(f"{name} = {value}" for name, value in solution.problem.figures().items())
    table.add_row("[bold]problem[/]", f"{given}; {unknown} is found")
    table.add_row(f"[bold]{unknown}[/]", f"[bold green]{figure(solution.value)}[/]  ({solution.method})")
    if solution.lower is not None and solution.lower > 0:
        table.add_row("no analysis can pass", f"{figure(solution.lower)}  (a data set breaks it)")
    numbers = [row.value for row in solution.bounds if row.value]
    low, high = (min(numbers), max(numbers)) if numbers else (1.0, 1.0)
    table.add_row("status", f"{solution.status}, {solution.seconds:.2f} s")
    if solution.note:
        table.add_row("note", solution.note)
    out.print(table)
    listed = Table("bound", "side", unknown, "", "source", box=None, padding=(0, 2))
    silent, spread = [], high / low > 1.0001
    for row in solution.bounds:
        if row.value is None:
            silent.append(row.method)
            continue
        colour = "green" if row.side == "upper" else "blue"
        length = math.log(row.value / low) / math.log(high / low) if row.value > 0 and spread else 1.0
        best = "bold " if row.method == solution.method else ""
        listed.add_row(
            f"[{best}]{row.method}[/]" if best else row.method, row.side, figure(row.value),
            f"[{colour}]{bar(0.08 + 0.92 * length)}[/]" if row.value > 0 else "", f"[dim]{row.source}[/]",
        )  # fmt: skip
    if solution.bounds:
        out.print(listed)
    if silent:
        out.print(f"[dim]not for this problem: {', '.join(silent)}  (--json tells why)[/]")
    explain(solution.problem.meaning)


def figure(value: float) -> str:
    """A number with the digits that matter."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.9g}"


def bar(share: float) -> str:
    return "█" * max(1, round(24 * share))
