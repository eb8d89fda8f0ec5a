"""A plan of several entities: a folder with `plan.json` and one artifact `party-i.json` for each party.

`plan.json` holds the problem, the joint claim and the digest of every party's file. Each party's file carries the
plan's identity: the SHA-256 of the problem and of all tables. So a file of another plan, or of another party, is told
by either. The digests tell accidents, not attackers: `optdp.plan.verify` recomputes the joint claim from the tables.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from optdp.errors import ArtifactError, ProblemError
from optdp.files import atomic, canonical
from optdp.files.canonical import refused
from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.shared_noise import SharedNoise
from optdp.plan.problem import MultiLTE
from optdp.single.format import Artifact, bare_digest

FORMAT, VERSION = "optdp/plan", 1
KEYS = ("format", "version", "plan", "claim", "problem", "provenance", "parties")
"""The keys of `plan.json`; `sha256` follows."""

BEYOND = 40
"""How far outputs of a finite table may leave the range of `f x`, times epsilon for a unit: geometric noise is rarer
than e^-40 there."""

Table = NoiseMatrix | SharedNoise


def party_file(i: int) -> str:
    """The name of a party's file."""
    return f"party-{i}.json"


def identity_of(spec: Mapping[str, Any], tables: Sequence[Artifact]) -> str:
    """The identity of a plan: the SHA-256 of its problem and of all tables, whatever else their files say."""
    content = {"problem": canonical.normal(dict(spec)), "tables": [bare_digest(table) for table in tables]}
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
class Member:
    """One party's own file: all that a party needs to take part."""

    artifact: Artifact
    problem: MultiLTE
    party: int
    table: Table
    identity: str


@dataclass(frozen=True)
class Plan:
    """The files of a folder, which belong together; the claims are not checked."""

    problem: MultiLTE
    tables: tuple[Table, ...]
    document: Mapping[str, Any]
    """What `plan.json` says."""
    artifacts: tuple[Artifact, ...]
    """The parties' files."""

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


def member_of(artifact: Artifact, problem: MultiLTE) -> Member:
    """The part that a file has in a plan; its claim cannot be checked from one file alone."""
    party, identity = artifact.claim.get("party"), artifact.claim.get("plan")
    if type(party) is not int or not 0 <= party < len(problem.parties):
        raise refused(f"party must be 0 to {len(problem.parties) - 1}", canonical.shown(party))
    if not isinstance(identity, str) or not re.fullmatch("[0-9a-f]{64}", identity):
        raise refused("plan must be 64 hexadecimal digits", canonical.shown(identity))
    return Member(artifact, problem, party, _table(artifact, problem, party), identity)


def _table(artifact: Artifact, problem: MultiLTE, party: int) -> Table:
    last = problem.parties[party].last
    first, final = artifact.inputs
    if first < 0 or final > last:
        raise refused(f"Rows must be for inputs 0..{last}", f"rows for {first}..{final}")
    if artifact.share is None:
        if artifact.q is not None:
            raise refused("The tables of a joint plan must be finite", "a geometric tail")
        if problem.method != "joint":
            raise refused(f'With method = "{problem.method}" every party must add a share of noise', "a finite table")
        if artifact.outside == "error" and (first, final) != (0, last):
            raise refused(f"Every input 0..{last} must have a row", f"rows for {first}..{final} only")
        (low, high), reach = artifact.outputs, 2 + math.ceil(BEYOND * problem.sensitivity / problem.epsilon)
        lowest, highest = sorted((0, problem.f[party] * last))
        if low < lowest - reach or high > highest + reach:
            rule = f"The outputs of party {party} must lie in {lowest - reach}..{highest + reach}"
            raise refused(rule, f"outputs {low}..{high}")
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
    if problem.method == "geometric" and (noise.q, noise.beta) != (problem.q, Fraction(1, problem.honest)):
        raise refused(f"Each party must add 1/{problem.honest} of the noise of its epsilon", "another share")
    if problem.method == "geometric" and (noise.contraction is not None or noise.rows):
        raise refused('With method = "geometric" noise must be added and nothing else done', "a table or a contraction")
    return noise


def check_parties(document: Mapping[str, Any], problem: MultiLTE) -> None:
    """The problem of a plan must have as many parties as the plan."""
    if len(document["parties"]) != len(problem.parties):
        raise refused(f"A plan must have {len(problem.parties)} parties", str(len(document["parties"])))


def together(folder: Path, document: Mapping[str, Any], problem: MultiLTE, members: Sequence[Member]) -> Plan:
    """The plan of a folder whose files belong together."""
    for i, (member, entry) in enumerate(zip(members, document["parties"], strict=True)):
        place = folder / party_file(i)
        if member.party != i:
            raise ArtifactError(f"{atomic.name_of(place)}: this is the file of party {member.party}, not of party {i}.")
        if member.identity != document["plan"] or member.artifact.problem != document["problem"]:
            raise ArtifactError(f"{atomic.name_of(place)}: this file belongs to another plan.")
        if member.artifact.sha256 != entry["sha256"]:
            raise ArtifactError(f"{atomic.name_of(place)}: the file is not the one that plan.json lists.")
    artifacts = tuple(member.artifact for member in members)
    if identity_of(document["problem"], artifacts) != document["plan"]:
        place = folder / "plan.json"
        raise ArtifactError(f"{atomic.name_of(place)}: the identity of the plan does not fit its tables.")
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
