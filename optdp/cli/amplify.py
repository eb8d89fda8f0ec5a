"""The command that asks what shuffling buys, without a problem file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import optdp.work as work
from optdp.cli.arguments import AsJson, Deadline
from optdp.cli.printing import print_json, show, working


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
    d: Annotated[
        int | None,
        typer.Option(
            help="subset-selection: how many values. For rappor, unary-encoding, local-hash and hadamard it may be "
            "left out; with it the lower bound is better."
        ),
    ] = None,
    size: Annotated[int | None, typer.Option(help="subset-selection: the size of a set.")] = None,
    g: Annotated[int | None, typer.Option(help="local-hash: how many buckets.")] = None,
    messages: Annotated[int | None, typer.Option(help="hadamard: how many messages.")] = None,
    beta: Annotated[str | None, typer.Option(help="variation-ratio: total variation.")] = None,
    q: Annotated[str | None, typer.Option(help="variation-ratio: ratio to other inputs.")] = None,
    method: Annotated[str, typer.Option(help="best, or one bound by its name.")] = "best",
    rounds: Annotated[int, typer.Option(help="The same people report so many times (needs the accounting extra).")] = 1,
    deadline: Deadline = None,
    as_json: AsJson = False,
) -> None:
    """What shuffling buys, from the command line: give three of eps0, n, delta, epsilon, and the fourth is found.

    For example:  optdp amplify --randomizer k-rr --k 10 --eps0 2 --n 10000 --delta 1e-6
    """
    from optdp.kinds import solve
    from optdp.loading import built

    described = {
        "k": k, "gamma": gamma, "sigma": sigma, "delta0": delta0, "csv": csv, "d": d, "size": size, "g": g,
        "messages": messages, "beta": beta, "q": q,
    }  # fmt: skip
    numbers = {"eps0": eps0, "n": n, "delta": delta, "epsilon": epsilon}
    law = {"kind": randomizer} | {name: value for name, value in described.items() if value is not None}
    given = {name: value for name, value in numbers.items() if value is not None}
    spec = {"kind": "amplification", "randomizer": law, "method": method, "rounds": rounds}
    with working(deadline) as (say, clock):
        solution: Any = solve(built(spec | given), progress=say)
    with work.held(later=False):
        if as_json:
            print_json(solution.summary())
        else:
            show(solution.sheet())
    raise typer.Exit(clock.exit_code(solution.status == "interrupted"))
