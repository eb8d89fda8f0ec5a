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
        str | None, typer.Option(help="Local epsilon of each report. Leave out the number to compute.")
    ] = None,
    n: Annotated[int | None, typer.Option(help="How many people report.")] = None,
    delta: Annotated[str | None, typer.Option(help="Delta of the shuffled reports.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Epsilon of the shuffled reports.")] = None,
    k: Annotated[
        int | None, typer.Option(help="k-rr: how many values. If only this is left out, it is computed.")
    ] = None,
    gamma: Annotated[
        str | None, typer.Option(help="k-rr: probability of a uniformly random answer, instead of eps0.")
    ] = None,
    sigma: Annotated[str | None, typer.Option(help="gaussian: standard deviation.")] = None,
    delta0: Annotated[str | None, typer.Option(help="gaussian: delta of the local (eps0, delta0)-DP.")] = None,
    csv: Annotated[
        str | None, typer.Option(help="channel: a CSV file of probabilities, with one row for each input.")
    ] = None,
    d: Annotated[
        int | None,
        typer.Option(
            help="How many values. Required for subset-selection; for rappor, unary-encoding, local-hash and hadamard "
            "optional, and it improves the lower bound."
        ),
    ] = None,
    size: Annotated[int | None, typer.Option(help="subset-selection: the size of a set.")] = None,
    g: Annotated[int | None, typer.Option(help="local-hash: how many buckets.")] = None,
    messages: Annotated[int | None, typer.Option(help="hadamard: how many messages.")] = None,
    beta: Annotated[str | None, typer.Option(help="variation-ratio: total variation.")] = None,
    q: Annotated[str | None, typer.Option(help="variation-ratio: ratio to other inputs.")] = None,
    method: Annotated[str, typer.Option(help="best, or the name of one bound.")] = "best",
    rounds: Annotated[
        int, typer.Option(help="How often the same people report (above 1 needs the extra accounting).")
    ] = 1,
    rate: Annotated[str, typer.Option(help="The probability with which each person takes part.")] = "1",
    deadline: Deadline = None,
    as_json: AsJson = False,
) -> None:
    """Compute how much privacy shuffling adds: give any three of eps0, n, delta and epsilon to get the fourth.

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
    spec = {"kind": "amplification", "randomizer": law, "method": method, "rounds": rounds, "rate": rate}
    with working(deadline) as (say, clock):
        solution: Any = solve(built(spec | given), progress=say)
    with work.held(later=False):
        if as_json:
            print_json(solution.summary())
        else:
            show(solution.sheet())
    raise typer.Exit(clock.exit_code(solution.status == "interrupted"))
