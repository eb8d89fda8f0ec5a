"""The command that checks a file or a plan's folder, and shows where its epsilon is reached."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from optdp.arguments import AsJson
from optdp.errors import ArtifactError, CertificateError, OptdpError, ProblemError
from optdp.math.effort import aside
from optdp.order_commands import is_order, show_verified_order
from optdp.printing import (
    bound_words,
    decimal,
    explain,
    ordinary,
    out,
    print_json,
    show_further,
    show_parties,
)

if TYPE_CHECKING:
    from optdp.artifact.explain import Explanation, Sight, WorstInputs, WorstSecrets
    from optdp.artifact.explain_plan import PlanExplanation, WorstAggregate


def verify(
    artifact: Annotated[Path, typer.Argument(help="An artifact, or the folder of a plan, that `solve --out` wrote.")],
    reason: Annotated[
        bool, typer.Option("--explain", help="Also show the worst output, and its probability under two secrets.")
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option("--key", "-k", help="Also check the signature beside it (<name>.sig) with this public key (PEM)."),
    ] = None,
    second: Annotated[
        bool, typer.Option("--recheck", help="Also ask the second checker, which shares no code with this one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recompute every claim of an artifact or of a plan's folder from the files alone; exit 1 if one does not hold.

    Of an order the groups are made again from the files that it names.
    """

    def further(digest: str) -> dict[str, Any]:
        return _signed(artifact, digest, key) | (_rechecked(artifact, digest) if second else {})

    if os.path.isdir(artifact):
        _explained(artifact, reason, as_json, _verify_plan, _explain_plan, further)
    elif is_order(artifact):
        if reason:
            raise ProblemError("--explain is for noise matrices and plans. Found an order.")
        show_verified_order(artifact, as_json, further)
    else:
        _explained(artifact, reason, as_json, _verify_single, _explain_single, further)


def _signed(path: Path, digest: str, key: Path | None) -> dict[str, Any]:
    """Check the signature of what was verified, if a key is given."""
    if key is None:
        return {}
    from optdp.artifact.signature import check_signature

    check_signature(path, digest, key)
    return {"signature": f"valid for {key}"}


def _rechecked(path: Path, digest: str) -> dict[str, Any]:
    """Ask the second checker about what was verified."""
    from optdp.recheck import Failed, Refused, recheck

    try:
        found = recheck(path)
    except Refused as error:
        raise ArtifactError(f"verify holds, but the second checker does not read it: {error}") from None
    except Failed as error:
        raise CertificateError(f"The second checker disagrees: {error}") from None
    if found.sha256 != digest:
        raise ArtifactError("A file must hold still while it is checked. Found another one. Verify it again.")
    rest = f" (not looked at: {', '.join(found.unchecked)})" if found.unchecked else ""
    how = "the groups made again" if found.kind == "order" else "by integers alone"
    return {"second_opinion": f"agrees, {how}{rest}"}


Further = Callable[[str], dict[str, Any]]
Check = Callable[[Path, bool, dict[str, Any], Further], None]
Why = Callable[[Path], "Explanation | PlanExplanation"]


def _explained(path: Path, reason: bool, as_json: bool, check: Check, why: Why, further: Further) -> None:
    """Check, then explain; what does not hold is explained as well, for that is when it matters."""
    try:
        with aside():
            found = why(path) if reason else None
    except (ArithmeticError, OptdpError):
        found = None  # it cannot be measured: the check says why
    document = {} if found is None else {"explain": found.document()}
    try:
        check(path, as_json, document, further)
    except CertificateError as error:
        if found is not None and as_json:
            print_json({"file": str(path), "status": "does not hold", "reason": str(error)} | document)
        elif found is not None:
            _show(found)
        raise
    if found is not None and not as_json:
        _show(found)


# ---------------------------------------------------------------------- one entity


def _verify_single(artifact: Path, as_json: bool, more: dict[str, Any], further: Further) -> None:
    from optdp.artifact.verify import verify as check
    from optdp.math.exact import show
    from optdp.noise.certify import EXPLANATION

    found = check(artifact)
    certificate, claim, problem = found.certificate, found.artifact.claim, found.problem
    figures = {
        "file": str(artifact),
        "status": "verified",
        "epsilon": show(problem.epsilon),
        "certified_epsilon": claim["epsilon"],
        "ordinary_epsilon": claim["ordinary_epsilon"],
        "mae": float(certificate.mae),
        "baseline_mae": float(problem.cap),
        "never_worse": certificate.never_worse,
        "lower_bound": claim["lower_bound"] if found.bound_proved else None,
        "lower_bound_proved": found.bound_proved,
        "sha256": found.artifact.sha256,
        "seconds": round(found.seconds, 3),
    } | further(found.artifact.sha256)
    if as_json:
        print_json(figures | {"meaning": EXPLANATION} | more)
        return
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_row("[bold green]verified[/]", escape(str(artifact)))
    table.add_row("epsilon under the prior", f"{decimal(claim['epsilon'])}  (wanted {figures['epsilon']})")
    table.add_row("ordinary epsilon", ordinary(claim["ordinary_epsilon"]))
    table.add_row("mean absolute error", f"{figures['mae']:.6f}  (geometric {figures['baseline_mae']:.6f})")
    if found.bound_proved:
        table.add_row(bound_words(problem.tail), f"{float(Fraction(claim['lower_bound'])):.6f}  (proved again)")
    out.print(table)
    show_further(figures)
    print(f"  sha256  {found.artifact.sha256}")
    explain(EXPLANATION)


def _explain_single(artifact: Path) -> Explanation:
    from optdp.artifact.explain import explain as look
    from optdp.artifact.verify import open_artifact

    _, problem, matrix = open_artifact(artifact)
    return look(problem, matrix)


# ---------------------------------------------------------------------- plans


def _verify_plan(folder: Path, as_json: bool, more: dict[str, Any], further: Further) -> None:
    from optdp.artifact.plan_verify import verify_plan
    from optdp.math.exact import show
    from optdp.noise.plan_certificate import EXPLANATION

    found = verify_plan(folder)
    claim, certificate, problem = found.claim, found.certificate, found.problem
    parties = [
        {
            "certified_epsilon": stated["epsilon"],
            "ordinary_epsilon": stated["ordinary_epsilon"],
            "mae": float(certificate.own_mae[i]),
            "baseline_mae": float(problem.share_mae),
            "lower_bound": 0.0,
        }
        for i, stated in enumerate(claim["parties"])
    ]
    figures = {
        "folder": str(folder),
        "status": "verified",
        "epsilon": show(problem.epsilon),
        "certified_epsilon": claim["epsilon"],
        "mae": float(certificate.mae),
        "baseline_mae": float(problem.baseline_mae),
        "lower_bound": claim["lower_bound"] if found.bound_proved else None,
        "lower_bound_proved": found.bound_proved,
        "parties": parties,
        "plan": found.identity,
        "sha256": found.sha256,
        "seconds": round(found.seconds, 3),
    } | further(found.sha256)
    if as_json:
        print_json(figures | {"meaning": EXPLANATION} | more)
        return
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_row("[bold green]verified[/]", escape(f"{folder}: plan.json and {len(parties)} party files"))
    table.add_row("epsilon under the priors", f"{decimal(claim['epsilon'])}  (wanted {figures['epsilon']})")
    table.add_row("MAE of the aggregate", f"{figures['mae']:.6f}  (geometric {figures['baseline_mae']:.6f})")
    if found.bound_proved:
        table.add_row("no plan is below", f"{float(Fraction(claim['lower_bound'])):.6f}  (proved again)")
    out.print(table)
    show_parties(problem, parties)
    show_further(figures)
    print(f"  plan    {found.identity}\n  sha256  {found.sha256}")
    explain(EXPLANATION)


def _explain_plan(folder: Path) -> PlanExplanation:
    from optdp.artifact.explain_plan import explain_plan
    from optdp.artifact.plan_files import read_plan
    from optdp.artifact.plan_verify import check_size

    problem, tables, _, _ = read_plan(folder)
    check_size(problem, tables)
    return explain_plan(problem, tables)


# ---------------------------------------------------------------------- the worst output, in words


def _show(found: Explanation | PlanExplanation) -> None:
    from optdp.artifact.explain import Explanation

    if isinstance(found, Explanation):
        _show_secrets("worst output", found.worst)
        if found.in_table != found.worst:
            _show_secrets("worst in the table", found.in_table)
        _show_inputs("without the prior", found.ordinary)
        return
    if found.worst is None:
        out.print("[dim]nothing finite is proved of this plan: there is no worst aggregate to show[/]")
    else:
        _show_aggregate(found.worst)
    for i, own in enumerate(found.ordinary):
        _show_inputs(f"party {i} without priors", own)


def _show_secrets(title: str, worst: WorstSecrets) -> None:
    who = f"a person of kind {worst.person}" + (f" ({worst.people:,} people)" if worst.people else "")
    who += f", under prior {worst.prior}" if worst.prior else ""
    cases = [f"  if they contribute {w}" for w in worst.contributions]
    _print_sight(title, ("about", who), cases, worst.sight)


def _show_aggregate(worst: WorstAggregate) -> None:
    who = f"a person of kind {worst.person} of party {worst.party}" + (f", world {worst.world}" if worst.world else "")
    listed = ", ".join(map(str, worst.honest))
    own = f"that party's input with the noise of the parties {listed}"
    who += "; seen is " + (own if worst.seen != "aggregate" else f"the sum of the parties {listed}")
    cases = [f"  if they contribute {w}" for w in worst.contributions]
    title = "worst aggregate" if worst.seen == "aggregate" else "worst point"
    _print_sight(title, ("about", who), cases, worst.sight, worst.spread)


def _show_inputs(title: str, worst: WorstInputs) -> None:
    cases = [f"  if the input is {x}" for x in worst.inputs]
    _print_sight(title, ("seen by", "somebody who knows everybody else"), cases, worst.sight)


def _print_sight(
    title: str, who: tuple[str, str], cases: Sequence[str], sight: Sight, spread: Fraction = Fraction(1)
) -> None:
    from optdp.artifact.explain import digits
    from optdp.math.exact import show

    table = Table(show_header=False, box=None, padding=(0, 2))
    tail = f" and every output {sight.tail}, in the tail: the quotient is the same" if sight.tail else ""
    table.add_row(f"[bold]{title}[/]", f"{sight.output}{tail}")
    table.add_row(*who)
    for case, chance in zip(cases, sight.probabilities, strict=True):
        table.add_row(case, f"probability {digits(chance)}")
    if sight.quotient is None or sight.log is None or sight.epsilon is None:
        table.add_row("quotient", "infinite: the second never gives this output")
    else:
        rounding = f"  (a share of {float(spread - 1):.2g} is for rounding)" if spread != 1 else ""
        quotient = f"{float(sight.quotient):.12g}" if sight.quotient < 10**300 else digits(sight.quotient)
        table.add_row("quotient", f"{quotient}, logarithm {float(sight.log):.12g}{rounding}")
        times = f"{show(sight.factor)} times the logarithm, " if sight.factor != 1 else ""
        limit = "no limit was asked for" if sight.limit is None else f"must be at most {show(sight.limit)}"
        table.add_row("epsilon", f"{times}{float(sight.epsilon):.12g}  ({limit})")
    out.print(table)
