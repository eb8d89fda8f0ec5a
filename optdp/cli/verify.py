"""The command that checks a file or a plan's folder, and shows where its epsilon is reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from optdp.cli.arguments import AllowOutside, AsJson
from optdp.cli.printing import (
    drawn,
    out,
    plain,
    print_json,
    show,
    show_further,
    show_parties,
)
from optdp.errors import ArtifactError, CertificateError, OptdpError, ProblemError
from optdp.sheet import Sheet, bound_words, decimal, ordinary
from optdp.work.account import aside

if TYPE_CHECKING:
    from optdp.artifact import Opened, OpenedMatrix, OpenedPlan
    from optdp.order.format import VerifiedOrder
    from optdp.plan.explain import PlanExplanation, WorstAggregate
    from optdp.plan.format import VerifiedPlan
    from optdp.shuffle.format import VerifiedShuffle
    from optdp.single.explain import Explanation, Sight, WorstInputs, WorstSecrets
    from optdp.single.verify import Verified


def verify(
    artifact: Annotated[
        Path, typer.Argument(help="An artifact, a plan's folder, or an order, as written by `solve --out`.")
    ],
    reason: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also show the worst output under two secrets; of a protocol, what fewer people hide.",
        ),
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", "-k", help="Also check the signature next to it (<name>.sig) with this public key (PEM)."
        ),
    ] = None,
    second: Annotated[
        bool, typer.Option("--recheck", help="Also run the second checker, which shares no code with this one.")
    ] = False,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Recompute every claim of an artifact from its files alone; exit 1 if one does not hold.

    For an order, the groups are computed again from the files that it names.
    """

    from optdp.artifact import OpenedMatrix, OpenedOrder, OpenedPlan, OpenedShuffle, open_artifact

    kinds = (OpenedMatrix, OpenedPlan, OpenedOrder, OpenedShuffle)
    found = open_artifact(artifact, *kinds, allow_outside=allow_outside, check=False)
    if reason and isinstance(found, OpenedOrder):
        raise ProblemError(f"--explain is for noise matrices, plans and shuffle protocols. Found {found.noun}.")
    why = _explained(found) if isinstance(found, OpenedMatrix | OpenedPlan) and reason else None
    more = {} if why is None else {"explain": why.document()}
    try:
        digest, checked = found.sha256, found.verified
        further: dict[str, str] = {}
        if key is not None:
            from optdp.files.signature import check_signature

            check_signature(artifact, digest, key)
            further["signature"] = f"valid for {key}"
        if second:
            further["second_opinion"] = _rechecked(artifact, digest, allow_outside)
    except CertificateError as error:  # what does not hold is explained as well, for that is when it matters
        if why is not None and as_json:
            print_json({"file": str(artifact), "status": "does not hold", "reason": str(error)} | more)
        elif why is not None:
            _show(why)
        raise
    say: dict[type[Opened], Callable[[Any, Path], Said]]
    say = {OpenedMatrix: _matrix, OpenedPlan: _plan, OpenedOrder: _order, OpenedShuffle: _shuffle}
    figures, table, meaning = say[type(found)](checked, artifact)
    figures |= {"sha256": digest, "seconds": round(checked.seconds, 3)} | further
    if reason and isinstance(found, OpenedShuffle):
        more = {"explain": found.verified.explain()}
    if as_json:
        print_json(figures | ({} if isinstance(found, OpenedOrder) else {"meaning": meaning}) | more)
        return
    out.print(table)
    if isinstance(found, OpenedPlan):
        show_parties(found.plan.problem, figures["parties"])
    show_further(further)
    for name in ("plan", "sha256"):
        if name in figures:
            print(f"  {name:<6}  {figures[name]}")
    show(Sheet((), meaning=meaning))
    if reason and isinstance(found, OpenedShuffle):
        show(found.verified.reasons())
    if why is not None:
        _show(why)


def _explained(found: OpenedMatrix | OpenedPlan) -> Explanation | PlanExplanation | None:
    try:
        with aside():
            return found.explain()
    except (ArithmeticError, OptdpError):
        return None  # it cannot be measured: the check says why


def _rechecked(path: Path, digest: str, allow_outside: bool) -> str:
    """Ask the second checker about what was verified."""
    from optdp.recheck import Failed, Refused, recheck

    try:
        found = recheck(path, allow_outside=allow_outside)
    except Refused as error:
        raise ArtifactError(f"The first checker accepts it, but the second cannot read it: {error}") from None
    except Failed as error:
        raise CertificateError(f"The second checker disagrees: {error}") from None
    if found.sha256 != digest:
        raise ArtifactError("The file changed while it was being checked. Verify it again.")
    rest = f" (not checked: {', '.join(found.unchecked)})" if found.unchecked else ""
    how = "the groups computed again" if found.kind == "order" else "with integers alone"
    return f"agrees, {how}{rest}"


# ---------------------------------------------------------------------- what was recomputed

Said = tuple[dict[str, Any], Table, str]
"""The figures, the table that shows them, and what they mean."""


def _table(path: Path, more: str, rows: Sequence[tuple[str, str]]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_row("[bold green]verified[/]", plain(f"{path}{more}"))
    for row in rows:
        table.add_row(*row)
    return table


def _proved(words: str, claim: Mapping[str, Any], proved: bool) -> list[tuple[str, str]]:
    return [(words, f"{float(Fraction(claim['lower_bound'])):.6f}  (proved again)")] if proved else []


def _matrix(found: Verified, path: Path) -> Said:
    from optdp.numbers.exact import show
    from optdp.single import over_time
    from optdp.single.certify import meaning

    certificate, claim, problem = found.certificate, found.artifact.claim, found.problem
    figures = {
        "file": str(path),
        "status": "verified",
        "epsilon": show(problem.epsilon),
        "certified_epsilon": claim["epsilon"],
        "ordinary_epsilon": claim["ordinary_epsilon"],
        **({"over_time": claim["over_time"]} if "over_time" in claim else {}),
        "mae": float(certificate.mae),
        "baseline_mae": float(problem.cap),
        "never_worse": certificate.never_worse,
        "lower_bound": claim["lower_bound"] if found.bound_proved else None,
        "lower_bound_proved": found.bound_proved,
    }
    rows = [
        *problem.watchers,
        (problem.promise, f"{decimal(claim['epsilon'])}  (wanted {figures['epsilon']})"),
        ("ordinary epsilon", ordinary(claim["ordinary_epsilon"])),
        *([("over time", over_time.line(claim["over_time"]))] if "over_time" in claim else []),
        ("mean absolute error", f"{figures['mae']:.6f}  (geometric {figures['baseline_mae']:.6f})"),
        *_proved(bound_words(problem.tail, problem.form), claim, found.bound_proved),
    ]
    return figures, _table(path, "", rows), meaning(problem)


def _plan(found: VerifiedPlan, folder: Path) -> Said:
    from optdp.numbers.exact import show
    from optdp.plan.certificate import meaning

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
    }
    rows = [
        *problem.watchers,
        (problem.promise, f"{decimal(claim['epsilon'])}  (wanted {figures['epsilon']})"),
        ("MAE of the aggregate", f"{figures['mae']:.6f}  (geometric {figures['baseline_mae']:.6f})"),
        *_proved(f"no {'table' if problem.method == 'inside' else 'plan'} is below", claim, found.bound_proved),
    ]
    return figures, _table(folder, f": plan.json and {len(parties)} party files", rows), meaning(problem)


def _order(found: VerifiedOrder, path: Path) -> Said:
    from optdp.numbers.exact import decimal_up, finite
    from optdp.order.mechanism import meaning

    claim = found.artifact.claim
    figures = {
        "file": str(path), "status": "verified", "n": found.artifact.n, "alpha": claim["alpha"],
        "certified_alpha": float(found.alpha), "theta": finite(found.theta), "sensitivity": found.sensitivity,
        "width": claim["width"], "groups": found.artifact.digest,
    }  # fmt: skip
    values = found.artifact.values
    rows = [
        ("alpha", f"{decimal_up(found.alpha, 12)}  (claimed {claim['alpha']})"),
        ("sensitivity", f"{found.sensitivity:,}, recomputed from {len(found.groups):,} groups"),
    ]
    if values is not None:
        figures["values"] = values
        rows.append(("values", f"at most {values:,} different answers"))
    return figures, _table(path, "", rows), meaning(values)


def _shuffle(found: VerifiedShuffle, path: Path) -> Said:
    deployed, sheet = found.deployed, found.sheet()
    claim = {name: value for name, value in deployed.claim.items() if name != "meaning"}
    figures = {"file": str(path), "status": "verified", "kind": deployed.kind, "n": deployed.n} | claim
    rows = [(name, drawn(cell)) for name, cell in sheet.facts]
    return figures, _table(path, "", rows), deployed.claim["meaning"]


# ---------------------------------------------------------------------- the worst output, in words


def _show(found: Explanation | PlanExplanation) -> None:
    from optdp.single.explain import Explanation

    if isinstance(found, Explanation):
        _show_secrets("worst output", found.worst)
        if found.in_table != found.worst:
            _show_secrets("worst in the table", found.in_table)
        _show_inputs("without the prior", found.ordinary)
        return
    if found.worst is None:
        out.print("[dim]no finite epsilon is proved for this plan: there is no worst aggregate to show[/]")
    else:
        _show_aggregate(found.worst)
    inside = found.worst is not None and found.worst.seen == "release"
    for i, own in enumerate(found.ordinary):
        _show_inputs("without priors" if inside else f"party {i} without priors", own)


def _show_secrets(title: str, worst: WorstSecrets) -> None:
    who = f"a person of kind {worst.person}" + (f" ({worst.people:,} people)" if worst.people else "")
    who += f", under prior {worst.prior}" if worst.prior else ""
    if worst.world:
        who = f"a person, seen by observer {worst.prior + 1}; {worst.world}"
    cases = [f"  if they contribute {w}" for w in worst.contributions]
    _print_sight(title, ("about", who), cases, worst.sight)


def _show_aggregate(worst: WorstAggregate) -> None:
    who = f"a person of kind {worst.person} of party {worst.party}" + (f", world {worst.world}" if worst.world else "")
    listed = ", ".join(map(str, worst.honest))
    own = f"that party's input with the noise of parties {listed}"
    seen = {
        "aggregate": f"the sum of parties {listed}",
        "report": "that party's report",
        "input with noise": own,
        "release": "the release",
    }
    if worst.seen == "release":
        who = "a person of any party"
    who += f"; the observer sees {seen[worst.seen]}" + (f"; {worst.others}" if worst.others else "")
    cases = [f"  if they contribute {w}" for w in worst.contributions]
    title = "worst point" if worst.seen == "input with noise" else f"worst {worst.seen}"
    _print_sight(title, ("about", who), cases, worst.sight, worst.spread)


def _show_inputs(title: str, worst: WorstInputs) -> None:
    cases = [f"  if the input is {x}" for x in worst.inputs]
    _print_sight(title, ("seen by", "someone who knows everyone else's data"), cases, worst.sight)


def _print_sight(
    title: str, who: tuple[str, str], cases: Sequence[str], sight: Sight, spread: Fraction = Fraction(1)
) -> None:
    from optdp.numbers.exact import show
    from optdp.single.explain import digits

    table = Table(show_header=False, box=None, padding=(0, 2))
    tail = f" and every output {sight.tail}, in the tail, where the quotient is the same" if sight.tail else ""
    table.add_row(f"[bold]{title}[/]", f"{sight.output}{tail}")
    table.add_row(*who)
    for case, chance in zip(cases, sight.probabilities, strict=True):
        table.add_row(case, f"probability {digits(chance)}")
    if sight.quotient is None or sight.log is None or sight.epsilon is None:
        table.add_row("quotient", "infinite: the second never gives this output")
    else:
        rounding = f"  (includes a share of {float(spread - 1):.2g} for rounding)" if spread != 1 else ""
        quotient = f"{float(sight.quotient):.12g}" if sight.quotient < 10**300 else digits(sight.quotient)
        table.add_row("quotient", f"{quotient}, logarithm {float(sight.log):.12g}{rounding}")
        times = f"{show(sight.factor)} times the logarithm, " if sight.factor != 1 else ""
        limit = "no limit was asked for" if sight.limit is None else f"must be at most {show(sight.limit)}"
        table.add_row("epsilon", f"{times}{float(sight.epsilon):.12g}  ({limit})")
    out.print(table)
