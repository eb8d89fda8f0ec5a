"""What is exported: a verified artifact, one party's file, or every party of a plan's folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil
from pathlib import Path

from optdp.artifact import Opened, OpenedMatrix, OpenedParty, OpenedPlan, OpenedShuffle, open_artifact
from optdp.errors import ProblemError
from optdp.export.layout import Layout, layout
from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.mechanism.shared_noise import SharedNoise
from optdp.numbers.exact import decimal_up, show
from optdp.plan import certificate
from optdp.plan.format import Member, Plan, bare_table, check_drawn, party_file
from optdp.plan.problem import MultiLTE
from optdp.plan.seeded_format import PartyArtifact
from optdp.shuffle.format import Deployed
from optdp.single import certify
from optdp.single.format import Artifact, table_of
from optdp.single.verify import Verified

STOPS = 230
"""A sampler is undecided with a chance below 2^-STOPS: each of its at most 2^17 + 1 cuts has a cell of 2^-248."""
SECRET_REPORT = "one party's report: private only inside the secure sum of its plan; never publish it"
"""What is said of every sampler of a party."""


COMMON_WORD = (
    "Every report is looked up with the one word of 62 bits that all parties of the plan share: fresh for each "
    "release, uniform, and known to nobody else. A word that this party draws alone gives no privacy."
)
"""What is said of every sampler of a party with maps."""


@dataclass(frozen=True)
class Subject:
    """One table, and what may be said of it."""

    artifact: PartyArtifact
    table: NoiseMatrix | AddedNoise | SharedNoise | SeededMaps | None
    """What is drawn from; None if the problem, and so the largest input, is not known."""
    claims: Callable[[], tuple[str, ...]] = tuple
    """Lines for the head of a sampler; to make them may show that there can be none."""
    folder: str = ""
    """The part of a plan's export that is this party's."""
    warning: str = ""

    def layout(self) -> Layout:
        """The integers of a sampler of this table."""
        if self.table is None:
            raise ProblemError("A sampler needs the table's problem. Export a file that optdp solve wrote.")
        return layout(self.table.drawing)


@dataclass(frozen=True)
class Protocol:
    """A shuffle protocol, of which the client is exported."""

    artifact: Deployed
    folder: str = ""
    warning: str = ""


def subjects(source: str | Path | Opened) -> list[Subject] | list[Protocol]:
    """What is in a file or in a plan's folder, every claim verified as far as the files allow."""
    match open_artifact(source, OpenedMatrix, OpenedPlan, OpenedParty, OpenedShuffle):
        case OpenedShuffle() as found:
            return [Protocol(found.verified.deployed)]
        case OpenedMatrix() as found:
            return [_single(found.verified)]
        case OpenedParty() as found:
            check_drawn(found.member.problem)
            return [_party(found.member)]
        case OpenedPlan() as found:
            check_drawn(found.plan.problem)
            return _parties(found.plan, found.verified.identity)
    raise AssertionError


def of_table(table: Artifact | NoiseMatrix | AddedNoise | SharedNoise | SeededMaps) -> Subject:
    """A table about which nothing is claimed."""
    if isinstance(table, Artifact):
        return Subject(table, None)
    bare = table_of(table) if isinstance(table, AddedNoise) else bare_table(table)
    artifact = replace(bare, provenance={"last": table.last}, sha256="")
    return Subject(artifact, table, lambda: ("Nothing is claimed about this table.",))


def _single(found: Verified) -> Subject:
    problem, claim, measured = found.problem, found.artifact.claim, found.certificate

    def claims() -> tuple[str, ...]:
        more = stop_cost(found.matrix, problem.largest)
        return (
            f"{problem.promise}: {_epsilon(measured.epsilon, claim['epsilon'], more)}",
            f"ordinary epsilon: {_epsilon(measured.ordinary_epsilon, claim['ordinary_epsilon'], more)}",
            f"the prior: {'; '.join(prior.describe for prior in problem.populations)}",
            *(f"{name}: {known}" for name, known in problem.watchers),
            certify.meaning(problem),
            "Publish one release for each data set: a second one is not covered.",
        )

    return Subject(found.artifact, found.matrix, claims)


def _party(member: Member) -> Subject:
    lines = (
        SECRET_REPORT.capitalize() + ".",
        "The plan's claim cannot be checked from one party's file.",
        *(_share_claims(member.problem, None) if isinstance(member.table, SharedNoise) else ()),
        *((COMMON_WORD,) if isinstance(member.table, SeededMaps) else ()),
        f"party {member.party} of plan {member.identity}",
    )
    warning = f"{SECRET_REPORT}. The plan's claim was not checked: export its folder for that"
    return Subject(member.artifact, member.table, lambda: lines, warning=warning)


def _parties(plan: Plan, identity: str) -> list[Subject]:
    listed = []
    for i, (artifact, table) in enumerate(zip(plan.artifacts, plan.tables, strict=True)):
        claim = plan.claim["parties"][i]
        lines: tuple[str, ...] = (
            SECRET_REPORT.capitalize() + ".",
            f"{plan.problem.promise} of this party's people, of the sum: {_stated(claim['epsilon'])}",
            *(f"{name}: {known}" for name, known in plan.problem.watchers),
            f"ordinary epsilon of this report: {_stated(claim['ordinary_epsilon'])}",
            certificate.meaning(plan.problem),
            f"party {i} of plan {identity}",
        )
        if isinstance(table, SeededMaps):
            lines += (COMMON_WORD,)
        if isinstance(table, SharedNoise):
            lines += _share_claims(plan.problem, claim["epsilon"])
        name = party_file(i).removesuffix(".json")
        listed.append(Subject(artifact, table, partial(tuple, lines), name, f"each is {SECRET_REPORT}"))
    return listed


def _share_claims(problem: MultiLTE, claimed: str | None) -> tuple[str, ...]:
    """What a share of noise is worth, and the delta of samplers that may stop; the proof is in docs/deployment.md."""
    count = len(problem.parties)
    who = f"all {count} parties" if problem.honest == count else f"at least {problem.honest} of the {count} parties"
    stops = f"A sampler stops and gives nothing with a chance below 2^-{STOPS}, whatever the input"
    if claimed is not None and claimed != "infinite":
        bits = ceil(Fraction(claimed.strip()) * Fraction(3, 2))  # 3/2 > 1/log(2)
        delta = max(STOPS - 1 - (count - 1).bit_length() - bits, 0)
        stops += f"; counted as a delta beside the epsilon of the sum, that is at most 2^-{delta}"
    return (
        "A report has only its share of the noise: what is claimed is claimed of the sum, not of the report, and if "
        f"{who} follow the plan and show their reports to nobody.",
        f"{stops}.",
    )


def stop_cost(matrix: NoiseMatrix | AddedNoise, largest: int) -> Fraction:
    """What it adds to epsilon, at most, that a sampler gives no release where four words of a cut are not enough.

    The proof is in docs/deployment.md. No noise, no cost: rows are never undecided.
    """
    if matrix.q is None:
        return Fraction(0)
    layout(matrix.drawing)  # refuses a q that four words are too few for
    noise = matrix.drawing.noise
    assert noise is not None
    again = 3 + matrix.last + max(map(abs, matrix.outputs))
    cost = 2 * largest * again * noise.blur
    if cost > Fraction(1, 1000):
        raise ProblemError("Exported samplers need noise that four words of 62 bits can tell apart. Found q too small.")
    return cost


def _epsilon(found: Fraction | None, claimed: str, more: Fraction) -> str:
    """The claim if it covers the sampler too, else a larger one."""
    if found is None or claimed == "infinite" or found + more <= Fraction(claimed.strip()):
        return _stated(claimed)
    return decimal_up(found + more)


def _stated(claimed: str) -> str:
    if claimed == "infinite":
        return "infinite, so nothing is promised without the prior"
    return show(Fraction(claimed.strip()))
