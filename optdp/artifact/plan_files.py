"""A plan of several entities: a folder with `plan.json` and one artifact `party-i.json` for each party.

`plan.json` holds the problem, the joint claim and the digest of every party's file. Each party's file carries the
plan's identity: the SHA-256 of the problem and of all tables. So a file of another plan, or of another party, is told
by either. The digests tell accidents, not attackers: `plan_verify` recomputes the joint claim from the tables.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optdp.artifact import files, spelling, strict_json
from optdp.artifact.format import Artifact, bare_digest, read
from optdp.artifact.tails import refused
from optdp.errors import ArtifactError, ProblemError
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.multi import MultiLTE
from optdp.noise.shared_noise import SharedNoise
from optdp.problem import from_spec

if TYPE_CHECKING:
    from optdp.problem import Problem

FORMAT, VERSION = "optdp/plan", 1
KEYS = ("format", "version", "plan", "claim", "problem", "provenance", "parties")
"""The keys of `plan.json`; `sha256` follows."""

Table = NoiseMatrix | SharedNoise


def party_file(i: int) -> str:
    """The name of a party's file."""
    return f"party-{i}.json"


def identity_of(spec: Mapping[str, Any], tables: Sequence[Artifact]) -> str:
    """The identity of a plan: the SHA-256 of its problem and of all tables, whatever else their files say."""
    content = {"problem": strict_json.normal(dict(spec)), "tables": [bare_digest(table) for table in tables]}
    return hashlib.sha256(strict_json.canonical(content).encode("ascii")).hexdigest()


def digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 of `plan.json` but for `sha256` itself."""
    return hashlib.sha256(strict_json.canonical({key: document[key] for key in KEYS}).encode("ascii")).hexdigest()


def spelled(document: Mapping[str, Any]) -> Iterator[str]:
    """The text of `plan.json` in pieces: one line for each key."""
    yield "{\n"
    for key in KEYS:
        yield f'"{key}": {strict_json.friendly(document[key])},\n'
    yield f'"sha256": {strict_json.friendly(document["sha256"])}\n}}\n'


@dataclass(frozen=True)
class Member:
    """One party's own file: all that a party needs to take part."""

    artifact: Artifact
    problem: MultiLTE
    party: int
    table: Table
    identity: str


def is_party(path: str | Path) -> bool:
    """Whether a file is one party's part of a plan, as far as its problem says."""
    return read(Path(path)).problem.get("kind") == MultiLTE.kind


def open_party(path: str | Path, plan: tuple[Mapping[str, Any], MultiLTE] | None = None) -> Member:
    """Read one party's file; format and digest are checked, the joint claim cannot be from one file alone.

    `plan` is the problem of the plan that the file should belong to, as it is written and as it was read, if that is
    known: it is then not made again for every party.
    """
    artifact = read(Path(path))
    with named(path):
        known = plan is not None and artifact.problem == plan[0]
        problem = plan[1] if known and plan is not None else from_spec(artifact.problem)
        return _member(artifact, problem)


@contextlib.contextmanager
def named(path: str | Path, words: str = "") -> Iterator[None]:
    """What is wrong with a file names it."""
    try:
        yield
    except (ArithmeticError, ArtifactError, ProblemError) as error:
        text = "".join(sign if sign.isprintable() else "?" for sign in str(error)[:1000])
        raise ArtifactError(f"{files.name_of(path)}: {words}{text}") from None


def _member(artifact: Artifact, problem: Problem) -> Member:
    if not isinstance(problem, MultiLTE):
        raise refused("A party's file must be of a problem of several entities", shown_kind(artifact.problem))
    party, identity = artifact.claim.get("party"), artifact.claim.get("plan")
    if type(party) is not int or not 0 <= party < len(problem.parties):
        raise refused(f"party must be 0 to {len(problem.parties) - 1}", strict_json.shown(party))
    if not isinstance(identity, str) or not re.fullmatch("[0-9a-f]{64}", identity):
        raise refused("plan must be 64 hexadecimal digits", strict_json.shown(identity))
    return Member(artifact, problem, party, _table(artifact, problem, party), identity)


def shown_kind(spec: Mapping[str, Any]) -> str:
    """The kind that a problem says it is of."""
    return strict_json.shown(spec.get("kind"))


def _table(artifact: Artifact, problem: MultiLTE, party: int) -> Table:
    last = problem.parties[party].last
    first, final = artifact.inputs
    if first < 0 or final > last:
        raise refused(f"Rows must be for inputs 0..{last}", f"rows for {first}..{final}")
    if artifact.share is None:
        if artifact.q is not None:
            raise refused("The tables of a joint plan must be finite", "a geometric tail")
        if artifact.outside == "error" and (first, final) != (0, last):
            raise refused(f"Every input 0..{last} must have a row", f"rows for {first}..{final} only")
        return artifact.matrix(last)
    share = artifact.share
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
    return noise


def read_plan(folder: Path) -> tuple[MultiLTE, tuple[Table, ...], dict[str, Any], tuple[Artifact, ...]]:
    """The plan in a folder: problem, tables, `plan.json` and the parties' files; all but the claim is checked."""
    path = folder / "plan.json"
    data = files.read_bytes(path)
    with named(path):
        document = _checked(strict_json.parse(data))
        spelling.check(data, document, spelled)
        problem = from_spec(document["problem"])
        if not isinstance(problem, MultiLTE):
            raise refused("The problem of a plan must be of several entities", shown_kind(document["problem"]))
        if len(document["parties"]) != len(problem.parties):
            raise refused(f"A plan must have {len(problem.parties)} parties", str(len(document["parties"])))
    members = []
    for i, entry in enumerate(document["parties"]):
        place = folder / party_file(i)
        if not place.exists():
            raise ArtifactError(f"{files.name_of(place)} is missing: the plan has {len(problem.parties)} parties.")
        member = open_party(place, (document["problem"], problem))
        if member.party != i:
            raise ArtifactError(f"{files.name_of(place)}: this is the file of party {member.party}, not of party {i}.")
        if member.identity != document["plan"] or member.artifact.problem != document["problem"]:
            raise ArtifactError(f"{files.name_of(place)}: this file belongs to another plan.")
        if member.artifact.sha256 != entry["sha256"]:
            raise ArtifactError(f"{files.name_of(place)}: the file is not the one that plan.json lists.")
        members.append(member)
    tables = tuple(member.table for member in members)
    artifacts = tuple(member.artifact for member in members)
    if identity_of(document["problem"], artifacts) != document["plan"]:
        raise ArtifactError(f"{files.name_of(path)}: the identity of the plan does not fit its tables.")
    return problem, tables, document, artifacts


def _checked(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else document
        raise refused(f'format must be "{FORMAT}"', strict_json.shown(found), "Give a folder that optdp wrote.")
    if type(document.get("version")) is not int or document["version"] != VERSION:
        raise refused(f"version must be {VERSION}", strict_json.shown(document.get("version")))
    if document.keys() != {*KEYS, "sha256"}:
        raise refused("plan.json has its 8 keys and no other", strict_json.shown(sorted(document)))
    for name in ("problem", "claim", "provenance"):
        if not isinstance(document[name], dict):
            raise refused(f"{name} must be a table", strict_json.shown(document[name]))
    entries = document["parties"]
    if not isinstance(entries, list) or any(
        not isinstance(entry, dict) or entry != {"file": party_file(i), "sha256": entry.get("sha256")}
        for i, entry in enumerate(entries)
    ):
        raise refused("parties must list party-0.json, party-1.json, .. with their digests", strict_json.shown(entries))
    if document["sha256"] != digest(document):
        raise refused("sha256 must be the digest of the content", "another", "The file was changed or cut.")
    return document
