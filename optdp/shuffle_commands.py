"""The commands about shuffling: what it buys, and curves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optdp.arguments import AsJson, ProblemPath, check_apart, check_writable
from optdp.errors import ProblemError
from optdp.printing import out, print_json, progress

if TYPE_CHECKING:
    from optdp.problem import Problem


def amplify(
    randomizer: Annotated[
        str,
        typer.Option(
            help="generic, k-rr, laplace, gaussian, channel; or subset-selection, local-hash, hadamard, rappor, "
            "unary-encoding, piecewise, planar-laplace, variation-ratio."
        ),
    ],
    eps0: Annotated[
        str | None, typer.Option(help="Local epsilon. Of the four numbers the one left out is found.")
    ] = None,
    n: Annotated[int | None, typer.Option(help="How many people report.")] = None,
    delta: Annotated[str | None, typer.Option(help="Probability of failure.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Epsilon of the shuffled reports.")] = None,
    k: Annotated[
        int | None, typer.Option(help="k-rr: how many values; left out with all else given, it is found.")
    ] = None,
    gamma: Annotated[str | None, typer.Option(help="k-rr: probability of a uniform answer, instead of eps0.")] = None,
    sigma: Annotated[str | None, typer.Option(help="gaussian: standard deviation.")] = None,
    delta0: Annotated[str | None, typer.Option(help="gaussian: (eps0, delta0)-LDP.")] = None,
    csv: Annotated[str | None, typer.Option(help="channel: a CSV file, a row for each input.")] = None,
    d: Annotated[int | None, typer.Option(help="subset-selection: how many values.")] = None,
    size: Annotated[int | None, typer.Option(help="subset-selection: the size of a set.")] = None,
    g: Annotated[int | None, typer.Option(help="local-hash: how many buckets.")] = None,
    messages: Annotated[int | None, typer.Option(help="hadamard: how many messages.")] = None,
    beta: Annotated[str | None, typer.Option(help="variation-ratio: total variation.")] = None,
    q: Annotated[str | None, typer.Option(help="variation-ratio: ratio to other inputs.")] = None,
    method: Annotated[str, typer.Option(help="best, or one bound by its name.")] = "best",
    rounds: Annotated[int, typer.Option(help="The same people report so many times (needs the accounting extra).")] = 1,
    as_json: AsJson = False,
) -> None:
    """What shuffling buys, from the command line: give three of eps0, n, delta, epsilon, and the fourth is found.

    For example:  optdp amplify --randomizer k-rr --k 10 --eps0 2 --n 10000 --delta 1e-6
    """
    from optdp.problem import from_spec

    described = {
        "k": k, "gamma": gamma, "sigma": sigma, "delta0": delta0, "csv": csv, "d": d, "size": size, "g": g,
        "messages": messages, "beta": beta, "q": q,
    }  # fmt: skip
    numbers = {"eps0": eps0, "n": n, "delta": delta, "epsilon": epsilon}
    law = {"kind": randomizer} | {name: value for name, value in described.items() if value is not None}
    given = {name: value for name, value in numbers.items() if value is not None}
    spec = {"kind": "amplification", "randomizer": law, "method": method, "rounds": rounds}
    answer(from_spec(spec | given), as_json)


def curve(
    problem: ProblemPath,
    save: Annotated[Path, typer.Option("--out", "-o", help="A picture (.svg, .png, .pdf) or the numbers (.csv).")],
    points: Annotated[int | None, typer.Option(help="How many points, instead of what the file says.", min=2)] = None,
    as_json: AsJson = False,
) -> None:
    """Sweep one number of a problem, as the sweep table of its file says, and draw or write the curves."""
    from optdp.curve import WRITERS, sweep
    from optdp.problem import load_file

    if save.suffix not in WRITERS:
        raise ProblemError(f"--out must end in {', '.join(WRITERS)}. Found {save.name!r}.")
    check_writable(save)
    file = load_file(problem)
    with progress(as_json) as say:
        found = sweep(file, say, points)
        WRITERS[save.suffix](found, save)
    if as_json:
        print_json(found.summary())
    else:
        missing = sum(value is None for line in found.lines.values() for value in line)
        words = f"; {missing} points have no answer and are left out" if missing else ""
        out.print(f"wrote {save}: {len(found.lines)} curves of {len(found.places)} points{words}")
    if found.interrupted:
        raise typer.Exit(130)


def answer(problem: Problem, as_json: bool, save: Path | None = None) -> None:
    """Solve a question about shuffling, write the order if there is one, and show what came out."""
    from optdp.mallows.groups import FILES
    from optdp.protocol_printing import show_any
    from optdp.solution import solve

    if save is not None:
        if problem.kind != "order-shuffle":
            raise ProblemError(f"kind = {problem.kind!r} has no tables to write. Leave --out, or use --json.")
        check_writable(save)
        spec: Any = getattr(problem, "spec", {})
        check_apart(save, {f"the file of {name}": Path(spec[name]) for name in FILES if name in spec})

    with progress(as_json) as say:
        solution: Any = solve(problem, progress=say)
    if save is not None:
        solution.save(save)
    if as_json:
        print_json(solution.summary())
    else:
        show_any(solution)
        if save is not None:
            out.print(f"wrote {save}", markup=False)
    if solution.status == "interrupted":
        raise typer.Exit(130)


def compare_shuffled(problem: Any, as_json: bool, say: Callable[[str], None]) -> None:
    """Every mechanism of a metric shuffle at the same promise."""
    from optdp.protocol_printing import show_mechanisms
    from optdp.shuffle.metric_solve import compare_mechanisms

    rows = compare_mechanisms(problem, say)
    if as_json:
        print_json({"rows": [row.summary() for row in rows]})
    else:
        show_mechanisms(rows)
