"""How the solutions about shuffling look in a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from optdp.printing import bar, explain, figure, out, show_answer

if TYPE_CHECKING:
    from optdp.mallows.solve import OrderSolution
    from optdp.shuffle.histogram import HistogramSolution
    from optdp.shuffle.metric_solve import MetricSolution
    from optdp.shuffle.sum_solution import RealSumSolution

DRAWN = 14
"""How many distances of a profile are drawn."""


def show_any(solution: Any) -> None:
    """Whatever was solved about shuffling."""
    shows: dict[str, Callable[[Any], None]] = {
        "metric-shuffle": show_metric,
        "shuffle-histogram": show_histogram,
        "real-sum": show_real_sum,
        "order-shuffle": show_order,
    }
    shows.get(solution.problem.kind, show_answer)(solution)


def show_metric(solution: MetricSolution) -> None:
    """The deployed parameters, the error, and the profile as bars."""
    problem, table = solution.problem, _facts(solution)
    parameters = ", ".join(f"{name} = {_number(value)}" for name, value in solution.design.parameters().items())
    table.add_row("[bold]deploy[/]", f"[bold green]{parameters}[/]  (n = {solution.n:,}, values 0..{problem.k:,})")
    wanted = "" if problem.epsilon is None else f"  (wanted {float(problem.epsilon):g})"
    who = "shuffler honest" if problem.shuffler == "honest" else "one message alone, shuffler compromised"
    table.add_row(
        "epsilon per unit", f"{_number(solution.epsilon)}{wanted}, up to distance {problem.max_distance}, {who}"
    )
    table.add_row(
        "without the shuffler", f"{_number(solution.local_epsilon)} per unit  (delta {solution.local_delta:g})"
    )
    table.add_row(
        f"error of the {problem.query}", f"{figure(solution.mae)}  (mean absolute; rms {figure(solution.rmse)})"
    )
    table.add_row("bits per user", f"{solution.bits_per_user:,}")
    if solution.c is not None:
        table.add_row("anybody truncates", f"with probability {solution.truncation:.3g}")
    _close(table, solution)
    if len(solution.profile) > 1:
        _draw_profile(solution.profile)
    if solution.theorems:
        out.print("[dim]the paper's theorems, for comparison and never the source of a claim:[/]")
    for theorem in solution.theorems:
        said = "nothing" if theorem.value is None else figure(theorem.value)
        out.print(f"[dim]{theorem.name} says {said} ({theorem.worth})[/]")
    explain(problem.meaning)


def show_mechanisms(rows: Sequence[MetricSolution]) -> None:
    """One table: what each mechanism gives away, with the shuffler and without, its error, its bits."""
    table = Table("mechanism", "eps honest", "eps compromised", "MAE", "", "bits per user", box=None, padding=(0, 2))
    worst = max(row.mae for row in rows)
    for row in rows:
        table.add_row(
            row.problem.mechanism, _number(row.epsilon), _number(row.local_epsilon), figure(row.mae),
            f"[green]{bar(row.mae / worst)}[/]", f"{row.bits_per_user:,}",
        )  # fmt: skip
    out.print(table)
    first = rows[0].problem
    out.print(
        f"[dim]per unit, up to distance {first.max_distance}, delta {float(first.delta):g}; eps compromised is with "
        "delta 0 but for rr, where it is with this delta[/]"
    )


def show_histogram(solution: HistogramSolution) -> None:
    """Randomized response for a histogram, beside what a trusted curator could do."""
    table, problem = _facts(solution), solution.problem
    table.add_row("[bold]deploy[/]", f"[bold green]gamma = {float(solution.gamma):.9g}[/]  ({problem.k:,} values)")
    table.add_row("epsilon, delta", f"{figure(solution.epsilon)}, {solution.delta:g}")
    table.add_row("without the shuffler", f"{figure(solution.eps0)}  (delta 0)")
    worst = max(solution.standard_error, solution.gaussian_sigma)
    table.add_row(
        "error of a bin", f"{figure(solution.standard_error)}  [green]{bar(solution.standard_error / worst)}[/]"
    )
    table.add_row("by a curator", f"{figure(solution.gaussian_sigma)}  [blue]{bar(solution.gaussian_sigma / worst)}[/]")
    table.add_row("total variation", f"{figure(solution.expected_tv)}  (by a curator {figure(solution.central_tv)})")
    _close(table, solution)
    explain(problem.meaning)


def show_real_sum(solution: RealSumSolution) -> None:
    """The protocol for a sum of numbers, between what the paper's constants give and what nobody can pass."""
    table, problem = _facts(solution), solution.problem
    table.add_row("[bold]deploy[/]", f"[bold green]k = {solution.k}, gamma = {float(solution.gamma):.9g}[/]")
    table.add_row("epsilon, delta", f"{figure(solution.epsilon)}, {solution.delta:g}")
    table.add_row("without the shuffler", f"{figure(solution.local_epsilon)}  (delta 0)")
    lines = {
        "MSE of the sum": solution.mse,
        "Theorem 1's constants": solution.theorem_1_mse,
        "nobody is below": solution.lower_mse,
        "by a curator": solution.central_mse,
    }
    known = {name: value for name, value in lines.items() if value}
    low, high = math.log(min(known.values())), math.log(max(known.values()))
    for name, value in known.items():
        share = 0.08 + 0.92 * (math.log(value) - low) / max(high - low, 1e-9)
        table.add_row(name, f"{value:12.6g}  [{'green' if name.startswith('MSE') else 'blue'}]{bar(share)}[/]")
    table.add_row("bits per user", str(solution.bits_per_user))
    _close(table, solution)
    explain(problem.meaning)


def show_order(solution: OrderSolution) -> None:
    """The order's sensitivity between what nobody can pass and E's bound, and the shuffle that it allows."""
    table = _facts(solution)
    groups = solution.problem.groups
    table.add_row("groups", f"{len(groups):,}, the largest of {int(groups.sizes.max(initial=0)):,} records")
    table.add_row("[bold]order[/]", f"[bold green]{solution.ordering}[/], width {solution.width:,}")
    lines = {
        "sensitivity, exact": solution.sensitivity,
        "E's bound for it": solution.paper_sensitivity,
        "no order is below": solution.lower_bound,
    }
    worst = max(1, *lines.values())
    for name, value in lines.items():
        table.add_row(name, f"{value:12,}  [{'green' if 'exact' in name else 'blue'}]{bar(value / worst)}[/]")
    table.add_row("theta", f"{solution.theta:.9g}  (by E's bound {solution.paper_theta:.9g})")
    _close(table, solution)
    explain(solution.problem.meaning)


def _facts(solution: Any) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2))
    given = ", ".join(f"{name} = {value}" for name, value in solution.problem.figures().items())
    table.add_row("[bold]problem[/]", given)
    return table


def _close(table: Table, solution: Any) -> None:
    table.add_row("status", f"{solution.status}, {solution.seconds:.2f} s")
    if solution.note:
        table.add_row("note", solution.note)
    out.print(table)


def _draw_profile(profile: Sequence[tuple[float, float]]) -> None:
    """Some distances, the first and the last among them, and a bar for each epsilon."""
    places = {round((len(profile) - 1) ** (i / (DRAWN - 1))) for i in range(DRAWN)} | {0, len(profile) - 1}
    chosen = [profile[i] for i in sorted(places)]
    worst = max((epsilon for _, epsilon in profile if math.isfinite(epsilon)), default=1.0) or 1.0
    table = Table("distance", "epsilon per unit", "", box=None, padding=(0, 2))
    for distance, epsilon in chosen:
        drawn = f"[green]{bar(epsilon / worst)}[/]" if math.isfinite(epsilon) else ""
        table.add_row(f"{distance:.6g}", _number(epsilon), drawn)
    out.print(table)


def _number(value: float | None) -> str:
    if value is None:
        return "none"
    return figure(value) if math.isfinite(value) else "nothing is hidden"
