"""A plan of several entities: a folder with `plan.json` and one artifact `party-i.json` for each party.

`plan.json` holds the problem, the joint claim and the digest of every party's file. Each party's file carries the
plan's identity, the SHA-256 of the problem and of all tables, and the digests of these tables: so the identity is
recomputed from any file, and a file of another plan, or of another party, is told. The digests tell accidents, not
attackers: `verify_tables` recomputes the joint claim from the tables alone, without a solver and without numpy.
The folder may also have `parties.toml`, which says where the parties are.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.files import atomic, canonical
from optdp.files.canonical import refused
from optdp.mechanism.added_noise import table_only
from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.mechanism.shared_noise import SharedNoise
from optdp.numbers.exact import show
from optdp.objects import Public
from optdp.plan.bound_proof import bound_proves
from optdp.plan.certificate import PlanCertificate
from optdp.plan.certify import (
    EXPLICIT,
    MOST_SETS,
    certify_plan,
    number_of_sets,
    ordinary_of,
    own_epsilon,
    stands_alone,
)
from optdp.plan.divisible_certify import certify_shared, table_reach
from optdp.plan.inside import certify_inside
from optdp.plan.problem import MultiLTE
from optdp.plan.seeded_certify import certify_seeded
from optdp.plan.seeded_format import PartyArtifact, SeededArtifact, bare_digest, to_json
from optdp.single.claims import at_most, check_keys
from optdp.single.format import Added, Artifact, Share

if TYPE_CHECKING:
    from optdp.plan.solve import PlanSolution

FORMAT, VERSION = "optdp/plan", 1
KEYS = ("format", "version", "plan", "claim", "problem", "provenance", "parties")
"""The keys of `plan.json`; `sha256` follows."""

BEYOND = 40
"""How far outputs of a finite table may leave the range of `f x`, times epsilon for a unit: geometric noise is rarer
than e^-40 there."""

Table = NoiseMatrix | SharedNoise | SeededMaps
_DIGEST = re.compile("[0-9a-f]{64}")


def party_file(i: int) -> str:
    """The name of a party's file."""
    return f"party-{i}.json"


def identity_of(spec: Mapping[str, Any], tables: Sequence[str]) -> str:
    """The identity of a plan: the SHA-256 of its problem and of the bare digests of all tables."""
    content = {"problem": canonical.normal(dict(spec)), "tables": list(tables)}
    return hashlib.sha256(canonical.canonical(content).encode("ascii")).hexdigest()


def digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 of `plan.json` but for `sha256` itself."""
    return hashlib.sha256(canonical.canonical({key: document[key] for key in KEYS}).encode("ascii")).hexdigest()


def spelled(document: Mapping[str, Any]) -> Iterator[str]:
    """The text of `plan.json` in pieces: one line for each key."""
    yield "{\n"
    for key in KEYS:
        yield f'"{key}": {canonical.friendly(document[key])},\n'
    yield f'"sha256": {canonical.friendly(document["sha256"])}\n}}\n'


@dataclass(frozen=True)
class Member(Public):
    """One party's own file: all that a party needs to take part."""

    artifact: PartyArtifact
    problem: MultiLTE
    party: int
    table: Table
    identity: str


def check_drawn(problem: MultiLTE) -> None:
    """Refuse to draw, party by party, what all parties draw together."""
    if problem.method == "inside":
        raise ProblemError(
            'With method = "inside" no party draws by itself: there is nothing to sample or to export. All parties '
            "draw the release together, with optdp aggregate."
        )


@dataclass(frozen=True)
class Plan(Public):
    """The files of a folder, which belong together: `document` is what `plan.json` says; the claims are not checked."""

    problem: MultiLTE
    tables: tuple[Table, ...]
    document: Mapping[str, Any]
    artifacts: tuple[PartyArtifact, ...]

    @property
    def claim(self) -> Mapping[str, Any]:
        """The joint claim."""
        found: Mapping[str, Any] = self.document["claim"]
        return found


@contextlib.contextmanager
def named(path: str | Path, words: str = "") -> Iterator[None]:
    """What is wrong with a file names it."""
    try:
        yield
    except (ArithmeticError, ArtifactError, ProblemError) as error:
        text = "".join(sign if sign.isprintable() else "?" for sign in str(error)[:1000])
        raise ArtifactError(f"{atomic.name_of(path)}: {words}{text}") from None


def member_of(artifact: PartyArtifact, problem: MultiLTE) -> Member:
    """The part that a file has in a plan; its claim cannot be checked from one file alone."""
    if problem.method == "best":
        raise refused("A plan must say by which method it was found", problem.method)
    party, identity, tables = (artifact.claim.get(name) for name in ("party", "plan", "tables"))
    if type(party) is not int or not 0 <= party < len(problem.parties):
        raise refused(f"party must be 0 to {len(problem.parties) - 1}", canonical.shown(party))
    if not isinstance(identity, str) or not _DIGEST.fullmatch(identity):
        raise refused("plan must be 64 hexadecimal digits", canonical.shown(identity))
    if not isinstance(tables, list) or not all(isinstance(one, str) and _DIGEST.fullmatch(one) for one in tables):
        raise refused("tables must be the digests of all tables", canonical.shown(tables))
    if len(tables) != len(problem.parties) or identity_of(artifact.problem, tables) != identity:
        raise refused("plan must be the digest of the problem and of all tables", canonical.shown(identity))
    if bare_digest(artifact) != tables[party]:
        raise refused(f"The table must be the one that the plan has for party {party}", "another")
    return Member(artifact, problem, party, _table(artifact, problem, party), identity)


def check_alone(member: Member, document: Mapping[str, Any] | None) -> None:
    """What a party can check without the others' files: that its own is the one that `plan.json` lists, if that is
    there, that its table has the ordinary epsilon that it claims and the problem asks for, and the epsilon under the
    priors wherever that is a matter of this table alone."""
    if document is not None:
        entry = document["parties"][member.party] if member.party < len(document["parties"]) else {"sha256": None}
        if member.identity != document["plan"] or member.artifact.sha256 != entry["sha256"]:
            raise refused("The file must be the one that plan.json beside it lists", "another")
    if isinstance(member.table, NoiseMatrix):
        found = ordinary_of(member.problem, member.party, member.table)
        at_most("ordinary_epsilon", found, member.artifact.claim.get("ordinary_epsilon"))
        if member.problem.fallback_epsilon is not None:
            at_most("fallback_epsilon", found, show(member.problem.fallback_epsilon))
        _check_by_itself(member, member.table)


def _check_by_itself(member: Member, table: NoiseMatrix) -> None:
    """Of a release that is drawn inside, all have this one table; other tables may protect a party's people alone."""
    problem, party, claim = member.problem, member.party, member.artifact.claim
    if problem.method == "inside":
        if len(set(claim["tables"])) > 1:
            raise refused('With method = "inside" all parties must have the same table', "digests of several")
        certificate = certify_inside(problem, [table] * len(problem.parties))
        certificate.check(problem)
        _check_own(certificate, party, claim, OF_PARTY)
    elif stands_alone(problem):
        found = own_epsilon(problem, party, table)
        at_most("epsilon", found, claim.get("epsilon"))
        at_most("epsilon", found, show(problem.epsilon))


def _table(artifact: PartyArtifact, problem: MultiLTE, party: int) -> Table:
    last = problem.merged.last if problem.method == "inside" else problem.parties[party].last
    first, final = artifact.inputs
    if first < 0 or final > last:
        raise refused(f"Rows must be for inputs 0..{last}", f"rows for {first}..{final}")
    if isinstance(artifact, SeededArtifact) != (problem.method == "seeded"):
        raise refused('Parties have maps of a common word with method = "seeded" and no other', problem.method)
    if isinstance(artifact, SeededArtifact):
        _check_reach(problem, party, artifact.outputs, last)
        return artifact.table(last)
    if artifact.share is None:
        if artifact.q is not None:
            raise refused("The tables of a joint plan must be finite", "a geometric tail")
        if problem.method not in ("joint", "alone", "inside"):
            raise refused(f'With method = "{problem.method}" every party must add a share of noise', "a finite table")
        if artifact.outside == "error" and (first, final) != (0, last):
            raise refused(f"Every input 0..{last} must have a row", f"rows for {first}..{final} only")
        _check_reach(problem, party, artifact.outputs, last)
        return table_only(artifact.matrix(last), "A plan")
    share = artifact.share
    if isinstance(share, Added):
        raise refused("A party must add a share of noise or have a finite table", "noise that is added whole")
    if problem.method in ("alone", "inside") or problem.watched:
        raise refused(
            'With an observer, or with method = "alone" or "inside", every party must have a finite table',
            "a share of noise",
        )
    if problem.finite:
        raise refused(f"With {problem.finite} every party must have a finite table", "a share of noise")
    if artifact.outside != "geometric":
        raise refused('outside must be "geometric" with a share of noise', artifact.outside)
    noise = SharedNoise(last, artifact.q or Fraction(1, 2), share.beta, share.factor, share.contraction,
                        share.contraction_denominator)  # fmt: skip
    if artifact.outputs[0] < artifact.outputs[1]:
        noise = replace(
            noise, inputs=artifact.inputs, outputs=artifact.outputs, denominator=artifact.denominator,
            rows=artifact.rows,
        )  # fmt: skip
    noise.check()
    if problem.method == "geometric" and (noise.q, noise.beta) != (problem.q, Fraction(1, problem.honest)):
        raise refused(f"Each party must add 1/{problem.honest} of the noise of its epsilon", "another share")
    if problem.method == "geometric" and (noise.contraction is not None or noise.rows):
        raise refused('With method = "geometric" noise must be added and nothing else done', "a table or a contraction")
    return noise


def _check_reach(problem: MultiLTE, party: int, outputs: tuple[int, int], last: int) -> None:
    (low, high), reach = outputs, 2 + math.ceil(BEYOND * problem.sensitivity / problem.epsilon)
    reach = 0 if problem.tail == "none" or problem.method == "inside" else reach
    lowest, highest = sorted((0, problem.f[party] * last))
    if low < lowest - reach or high > highest + reach:
        rule = f"The outputs of party {party} must lie in {lowest - reach}..{highest + reach}"
        raise refused(rule, f"outputs {low}..{high}")


def check_parties(document: Mapping[str, Any], problem: MultiLTE) -> None:
    """The problem of a plan must have as many parties as the plan."""
    if len(document["parties"]) != len(problem.parties):
        raise refused(f"A plan must have {len(problem.parties)} parties", str(len(document["parties"])))


def together(folder: Path, document: Mapping[str, Any], problem: MultiLTE, members: Sequence[Member]) -> Plan:
    """The plan of a folder whose files belong together: each has its own table in the one identity of all."""
    for i, (member, entry) in enumerate(zip(members, document["parties"], strict=True)):
        place = folder / party_file(i)
        if member.party != i:
            raise ArtifactError(f"{atomic.name_of(place)}: this is the file of party {member.party}, not of party {i}.")
        if member.identity != document["plan"] or member.artifact.problem != document["problem"]:
            raise ArtifactError(f"{atomic.name_of(place)}: this file belongs to another plan.")
        if member.artifact.sha256 != entry["sha256"]:
            raise ArtifactError(f"{atomic.name_of(place)}: the file is not the one that plan.json lists.")
    artifacts = tuple(member.artifact for member in members)
    return Plan(problem, tuple(member.table for member in members), document, artifacts)


def plan_document(data: bytes) -> dict[str, Any]:
    """What the bytes of `plan.json` say, its form and digest checked."""
    document = _checked(canonical.parse(data))
    canonical.check(data, spelled(document))
    return document


def _checked(found: Any) -> dict[str, Any]:
    document = canonical.check_head(found, FORMAT, {*KEYS, "sha256"}, "plan.json", "Give a folder that optdp wrote.")
    entries = document["parties"]
    if not isinstance(entries, list) or any(
        not isinstance(entry, dict) or entry != {"file": party_file(i), "sha256": entry.get("sha256")}
        for i, entry in enumerate(entries)
    ):
        raise refused("parties must list party-0.json, party-1.json, .. with their digests", canonical.shown(entries))
    canonical.check_digest(document["sha256"], digest(document))
    return document


OWN = {"epsilon", "ordinary_epsilon", "mae"}
"""What is claimed of each party."""
OF_PARTY = OWN | {"plan", "party", "tables", "meaning", "explained"}
"""All that the claim in a party's file may say."""
CLAIMS = {"epsilon", "mae", "mse", "worst_mae", "baseline_mae", "lower_bound", "parties", "meaning", "explained"}
"""All that the claim of a plan may say."""
MOST_PLACES, MOST_STEPS = 1 << 24, 1 << 26
"""How much may be written out, and how much work may be done, to measure a plan: a short file can ask for more."""
MOST_BALLS = 1 << 21
"""The most places of the law of an aggregate of finite tables, each of which is a ball."""


@dataclass(frozen=True)
class VerifiedPlan(Public):
    """A plan whose joint claim holds."""

    problem: MultiLTE
    tables: tuple[Table, ...]
    certificate: PlanCertificate
    claim: Mapping[str, Any]
    identity: str
    bound_proved: bool
    """Whether the folder carries prices that prove its lower bound again."""
    seconds: float
    sha256: str
    """The digest of `plan.json`, which lists those of the parties' files."""


def verify_tables(plan: Plan, place: Path, begin: float) -> VerifiedPlan:
    """Recompute everything that the plan of the folder `place` claims, and raise unless all of it holds."""
    problem, tables, document, claim = plan.problem, plan.tables, plan.document, plan.claim
    with named(place / "plan.json"):
        check_keys(claim, CLAIMS)
    with named(place, "the plan cannot be measured: "):
        certificate, baseline = certify_tables(problem, tables), problem.baseline_mae
    certificate.check(problem)
    with named(place / "plan.json"):
        at_most("epsilon", certificate.epsilon, claim.get("epsilon"))
        truth = {"mae": certificate.mae, "mse": certificate.mse, "baseline_mae": baseline}
        truth |= {} if certificate.worst_mae is None else {"worst_mae": certificate.worst_mae}
        if certificate.worst_mae is None and "worst_mae" in claim:
            raise ArtifactError("worst_mae is claimed of plans with never_worse. Found it without. Solve again.")
        for name, value in truth.items():
            if name != "baseline_mae" or name in claim:
                at_most(name, value, claim.get(name))
        stated = claim.get("parties")
        if not isinstance(stated, list) or len(stated) != len(tables):
            raise ArtifactError(f"The claim must speak of {len(tables)} parties. Found {canonical.shown(stated)}.")
        for i, own in enumerate(stated):
            _check_own(certificate, i, own, OWN)
        value = certificate.mae if problem.objective == "mae" else certificate.mse
        bound = bound_proves(problem, claim.get("lower_bound"), document["provenance"], value)
    for i, artifact in enumerate(plan.artifacts):
        with named(place / party_file(i)):
            _check_own(certificate, i, artifact.claim, OF_PARTY)
    seconds = time.perf_counter() - begin
    return VerifiedPlan(problem, tables, certificate, claim, document["plan"], bound, seconds, document["sha256"])


def _check_own(certificate: PlanCertificate, party: int, claim: Any, known: Set[str]) -> None:
    if not isinstance(claim, dict):
        raise ArtifactError(f"The claim of party {party} must be a table. Found {canonical.shown(claim)}.")
    check_keys(claim, known)
    at_most("epsilon", certificate.epsilons[party], claim.get("epsilon"))
    at_most("ordinary_epsilon", certificate.ordinary[party], claim.get("ordinary_epsilon"))
    at_most("mae", certificate.own_mae[party], claim.get("mae"))


def certify_tables(problem: MultiLTE, tables: Sequence[Table]) -> PlanCertificate:
    """The certificate of a plan, whatever its method."""
    check_size(problem, tables)
    finite = [table for table in tables if isinstance(table, NoiseMatrix)]
    if problem.method == "inside":
        return certify_inside(problem, finite)
    shared = [table for table in tables if isinstance(table, SharedNoise)]
    seeded = [table for table in tables if isinstance(table, SeededMaps)]
    if len(finite) == len(tables):
        return certify_plan(problem, finite)
    if len(seeded) == len(tables):
        return certify_seeded(problem, seeded)
    if len(shared) == len(tables):
        return certify_shared(problem, shared)
    raise CertificateError(
        "The tables of a plan must be all finite, all with shares of noise, or all maps. Found several kinds."
    )


def check_size(problem: MultiLTE, tables: Sequence[Table]) -> None:
    """Refuse what would take hours, or all memory, to measure."""
    if problem.method == "inside":
        return  # one table of one entity, which `single` measures
    length = total = steps = balls = secrets = 0
    kinds = Counter((str(party.spec), table.rows) for party, table in zip(problem.parties, tables, strict=True))
    for factor, population, table in zip(problem.f, problem.parties, tables, strict=True):
        outputs, inputs = table.outputs[1] - table.outputs[0] + 1, population.last + 1
        laws = 1 + sum(len(person.conditionals) for person in population.people)
        if isinstance(table, SeededMaps):  # every cell of the word is a plan of its own
            inputs, cells = min(inputs, len(table.rows) + 2 * EXPLICIT), len(table.cuts)
            length, total = length + outputs * laws + abs(factor) * inputs, total + outputs
            balls, steps = balls + (outputs + abs(factor) * inputs) * cells, max(steps, cells * inputs * laws)
        elif isinstance(table, NoiseMatrix):
            inputs = min(inputs, len(table.rows) + 2 * EXPLICIT)
            length, total = length + outputs * laws + abs(factor) * inputs, total + outputs
            balls, secrets = balls + outputs + abs(factor) * inputs, max(secrets, laws)
        elif table.rows:  # equal parties are looked at once
            length = max(length, table_reach(table), outputs * max(laws, inputs))
        steps = max(steps, inputs * max(map(len, table.rows), default=0))
    steps = max(steps, total * total * len(kinds) // 512)
    if total and problem.method == "joint":  # every set of honest parties is looked at, in every world
        sets = number_of_sets(problem.honest, list(kinds.values()))
        steps = max(steps, min(sets, MOST_SETS) * len(problem.worlds) * problem.honest * secrets * total)
    if length > MOST_PLACES or steps > MOST_STEPS or balls > MOST_BALLS:
        raise ProblemError(
            "A plan must be small enough to be measured: fewer or shorter rows, fewer outputs, smaller coefficients. "
            f"Found about {max(length, steps, balls):,} entries."
        )


PLACES = "parties.toml"
"""Where the parties are: kept when a plan is replaced."""
_NAMES = re.compile(r"plan\.json|parties\.toml|party-[0-9]+\.json")
"""The files of a plan's folder."""


def write_plan(solution: PlanSolution, folder: Path) -> None:
    """Write the folder under a temporary name and rename it: a crash leaves the old plan, or the new one."""
    check_target(solution.problem, folder)
    document, members = plan_files(solution)
    contents = {"plan.json": "".join(spelled(document)).encode("ascii")}
    contents |= {party_file(i): to_json(member) for i, member in enumerate(members)}
    if (folder / PLACES).is_file():
        contents[PLACES] = atomic.read_bytes(folder / PLACES)
    atomic.write_folder(folder, contents)


def plan_files(solution: PlanSolution) -> tuple[dict[str, Any], list[PartyArtifact]]:
    """What `plan.json` says, and the parties' files."""
    check_size(solution.problem, solution.tables)  # nobody could verify it
    claim = solution.claim()
    bare = [bare_table(table) for table in solution.tables]
    digests = [bare_digest(table) for table in bare]
    identity = identity_of(solution.problem.spec(), digests)
    provenance = solution.provenance(version("optdp"))
    members: list[PartyArtifact] = []
    for i, table in enumerate(bare):
        own = {
            "plan": identity,
            "party": i,
            "tables": digests,
            **claim["parties"][i],
            "meaning": claim["meaning"],
            "explained": claim["explained"],
        }
        problem = solution.problem.spec()
        members.append(replace(table, problem=problem, claim=own, provenance=provenance, sha256=""))
    document: dict[str, Any] = canonical.normal(
        {
            "format": FORMAT,
            "version": VERSION,
            "plan": identity,
            "claim": claim,
            "problem": solution.problem.spec(),
            "provenance": provenance | solution.bound_proof(),
            "parties": [{"file": party_file(i), "sha256": member.sha256} for i, member in enumerate(members)],
        }
    )
    document["sha256"] = digest(document)
    return document, members


def check_target(problem: MultiLTE, folder: Path) -> None:
    """Refuse before a long solve what could not be written after it."""
    atomic.check_folder(folder, "a plan", _is_plan)


def _is_plan(folder: Path) -> bool:
    """Whether a folder holds an earlier plan and nothing else."""
    if not atomic.holds_only(folder, _NAMES):
        return False
    try:
        document = canonical.parse(atomic.read_bytes(folder / "plan.json"))
    except ArtifactError:
        return False
    return isinstance(document, dict) and document.get("format") == FORMAT


def bare_table(table: Table) -> PartyArtifact:
    """The table alone, without problem, claim and provenance: what the identity of a plan is made of."""
    if isinstance(table, SeededMaps):
        return SeededArtifact.of(table)
    if isinstance(table, NoiseMatrix):
        return Artifact(table.inputs, table.outputs, table.denominator, table.rows, table.outside, table.q, {}, {}, {})
    share = Share(table.beta, table.factor, table.contraction, table.contraction_denominator)
    inputs, outputs, denominator, rows = table.inputs, table.outputs, table.denominator, table.rows
    if not rows:  # a table of one output changes nothing: it is drawn where it was drawn already
        inputs, outputs, denominator, rows = (0, 0), (0, 0), 2, (((0, 2),),)
    return Artifact(inputs, outputs, denominator, rows, "geometric", table.q, {}, {}, {}, share=share)
