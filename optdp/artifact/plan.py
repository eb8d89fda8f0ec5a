"""A plan of several entities: a folder with `plan.json` and one artifact `party-i.json` for each party.

`plan.json` holds the problem, the joint claim and the digest of every party's file. Each party's file carries the
plan's identity: the SHA-256 of the problem and of all tables. So a file of another plan, or of another party, is told
by either. The digests tell accidents, not attackers: `verify_plan` recomputes the joint claim from the tables.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optdp.artifact import files, strict_json
from optdp.artifact.claims import at_most, prices_of, proved, stored
from optdp.artifact.format import Artifact, read, to_json
from optdp.artifact.tails import Share, refused
from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.noise.joint_certify import EXPLICIT, certify_plan
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.multi import MultiLTE
from optdp.noise.plan_certificate import PlanCertificate
from optdp.noise.shared_error import table_reach
from optdp.noise.shared_noise import SharedNoise
from optdp.problem import from_spec

if TYPE_CHECKING:
    from optdp.plan import PlanSolution
    from optdp.problem import Problem

FORMAT, VERSION = "optdp/plan", 1
KEYS = ("format", "version", "plan", "claim", "problem", "provenance", "parties")
"""The keys of `plan.json`; `sha256` follows."""
MOST_PLACES, MOST_STEPS = 1 << 24, 1 << 26
"""How much may be written out, and how much work may be done, to measure a plan: a short file can ask for more."""

Table = NoiseMatrix | SharedNoise


@dataclass(frozen=True)
class VerifiedPlan:
    """A plan whose joint claim holds."""

    problem: MultiLTE
    tables: tuple[Table, ...]
    certificate: PlanCertificate
    claim: Mapping[str, Any]
    identity: str
    bound_proved: bool
    """Whether the folder carries prices that prove its lower bound again."""
    seconds: float


def party_file(i: int) -> str:
    """The name of a party's file."""
    return f"party-{i}.json"


# ---------------------------------------------------------------------- writing


def write_plan(solution: PlanSolution, folder: Path) -> None:
    """Write the folder under a temporary name and rename it: a crash leaves the old plan, or none."""
    check_target(folder)
    _check_size(solution.problem, solution.tables)  # nobody could verify it
    claim = solution.claim()
    bare = [_bare(table) for table in solution.tables]
    identity = _identity(solution.problem.spec(), bare)
    provenance = solution.provenance(version("optdp"))
    members = []
    for i, table in enumerate(bare):
        own = {
            "plan": identity,
            "party": i,
            **claim["parties"][i],
            "meaning": claim["meaning"],
            "explained": claim["explained"],
        }
        problem = solution.problem.spec()
        members.append(replace(table, problem=problem, claim=own, provenance=provenance, sha256=""))
    prices = stored(solution.prices)
    document: dict[str, Any] = strict_json.normal(
        {
            "format": FORMAT,
            "version": VERSION,
            "plan": identity,
            "claim": claim,
            "problem": solution.problem.spec(),
            "provenance": provenance | ({} if prices is None else {"prices": prices}),
            "parties": [{"file": party_file(i), "sha256": member.sha256} for i, member in enumerate(members)],
        }
    )
    document["sha256"] = _digest(document)
    lines = [f'"{key}": {strict_json.friendly(document[key])}' for key in (*KEYS, "sha256")]
    contents = {"plan.json": ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")}
    contents |= {party_file(i): to_json(member) for i, member in enumerate(members)}
    _write_folder(folder, contents)


def check_target(folder: Path) -> None:
    """Refuse before a long solve what could not be written after it."""
    try:
        with contextlib.suppress(FileNotFoundError):
            folder.lstat()
            if not folder.is_dir() or folder.is_symlink():
                raise ProblemError(f"--out must be a folder for a plan. Found {files.name_of(folder)}, which is none.")
            if not _replaceable(folder):
                raise ProblemError(
                    f"--out must be a new folder, an empty one or an earlier plan. Found {files.name_of(folder)} with "
                    "other files."
                )
            if folder.is_mount() or folder.samefile(Path.cwd()) or not os.access(folder, os.W_OK):
                raise ProblemError(
                    f"--out must be a folder that can be replaced. Found {files.name_of(folder)}, which is read-only, "
                    "mounted or the current folder."
                )
        parent = folder.absolute().parent
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise ProblemError(f"--out must lie in a folder that can be written. Found {files.name_of(parent)}.")
    except (OSError, ValueError) as error:
        raise ProblemError(f"--out must be a name that can be written: {error}.") from None


def _replaceable(folder: Path) -> bool:
    """Whether a folder is empty or an earlier plan and nothing else."""
    found = list(folder.iterdir())
    if not found or not all(map(_is_ours, found)):
        return not found
    try:
        document = strict_json.parse(files.read_bytes(folder / "plan.json"))
    except ArtifactError:
        return False
    return isinstance(document, dict) and document.get("format") == FORMAT


def _is_ours(item: Path) -> bool:
    return re.fullmatch(r"plan\.json|party-[0-9]+\.json", item.name) is not None and item.is_file()


def _write_folder(folder: Path, contents: Mapping[str, bytes]) -> None:
    target = folder.absolute()
    mark = secrets.token_hex(8)
    temporary, old = target.parent / f".optdp-{mark}.tmp", target.parent / f".optdp-{mark}.old"
    try:
        temporary.mkdir()
        try:
            for name, data in contents.items():
                files.write_bytes(temporary / name, data)
            try:
                if target.exists():
                    os.rename(target, old)
                os.rename(temporary, target)
            except BaseException:  # also when interrupted from the keyboard
                if old.exists() and not target.exists():
                    os.rename(old, target)
                raise
        finally:
            with contextlib.suppress(OSError):
                shutil.rmtree(temporary, ignore_errors=True)
        _remove_plan(old)
    except OSError as error:
        raise ProblemError(f"cannot write {files.name_of(folder)}: {error.strerror or error}") from None


def _remove_plan(old: Path) -> None:
    """Delete what an earlier plan wrote; a file that somebody put there meanwhile is kept beside the new plan."""
    with contextlib.suppress(OSError):
        for item in [] if old.is_symlink() or not old.exists() else list(old.iterdir()):
            if _is_ours(item):
                item.unlink()
        old.rmdir()


def _bare(table: Table) -> Artifact:
    """The table alone, without problem, claim and provenance: what the identity of a plan is made of."""
    if isinstance(table, NoiseMatrix):
        return Artifact(table.inputs, table.outputs, table.denominator, table.rows, table.outside, table.q, {}, {}, {})
    share = Share(table.beta, table.factor, table.contraction, table.contraction_denominator)
    inputs, outputs, denominator, rows = table.inputs, table.outputs, table.denominator, table.rows
    if not rows:  # a table of one output changes nothing: it is drawn where it was drawn already
        inputs, outputs, denominator, rows = (0, 0), (0, 0), 2, (((0, 2),),)
    return Artifact(inputs, outputs, denominator, rows, "geometric", table.q, {}, {}, {}, share=share)


def _identity(spec: Mapping[str, Any], bare: Sequence[Artifact]) -> str:
    content = {"problem": strict_json.normal(dict(spec)), "tables": [table.sha256 for table in bare]}
    return hashlib.sha256(strict_json.canonical(content).encode("ascii")).hexdigest()


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(strict_json.canonical({key: document[key] for key in KEYS}).encode("ascii")).hexdigest()


# ---------------------------------------------------------------------- reading


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


def open_party(path: str | Path, plan: MultiLTE | None = None) -> Member:
    """Read one party's file; format and digest are checked, the joint claim cannot be from one file alone.

    `plan` is the problem of the plan that the file should belong to, if that is known.
    """
    artifact = read(Path(path))
    with _named(path):
        known = plan is not None and artifact.problem == strict_json.normal(plan.spec())
        problem = plan if known and plan is not None else from_spec(artifact.problem)
        return _member(artifact, problem)


@contextlib.contextmanager
def _named(path: str | Path, words: str = "") -> Iterator[None]:
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
    with _named(path):
        document = _checked(strict_json.parse(data))
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
        member = open_party(place, problem)
        if member.party != i:
            raise ArtifactError(f"{files.name_of(place)}: this is the file of party {member.party}, not of party {i}.")
        if member.identity != document["plan"] or member.artifact.problem != document["problem"]:
            raise ArtifactError(f"{files.name_of(place)}: this file belongs to another plan.")
        if member.artifact.sha256 != entry["sha256"]:
            raise ArtifactError(f"{files.name_of(place)}: the file is not the one that plan.json lists.")
        members.append(member)
    tables = tuple(member.table for member in members)
    artifacts = tuple(member.artifact for member in members)
    bare = [replace(artifact, problem={}, claim={}, provenance={}, sha256="") for artifact in artifacts]
    if _identity(document["problem"], bare) != document["plan"]:
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
    if document["sha256"] != _digest(document):
        raise refused("sha256 must be the digest of the content", "another", "The file was changed or cut.")
    return document


# ---------------------------------------------------------------------- verifying


def verify_plan(folder: str | Path) -> VerifiedPlan:
    """Recompute everything that a plan claims from its files alone, and raise unless all of it holds."""
    begin = time.perf_counter()
    place = Path(folder)
    problem, tables, document, artifacts = read_plan(place)
    claim = document["claim"]
    with _named(place, "the plan cannot be measured: "):
        certificate, baseline = certify_tables(problem, tables), problem.baseline_mae
    certificate.check(problem)
    with _named(place / "plan.json"):
        at_most("epsilon", certificate.epsilon, claim.get("epsilon"))
        truth = {"mae": certificate.mae, "mse": certificate.mse, "baseline_mae": baseline}
        for name, value in truth.items():
            at_most(name, value, claim.get(name))
        stated = claim.get("parties")
        if not isinstance(stated, list) or len(stated) != len(tables):
            raise ArtifactError(f"The claim must speak of {len(tables)} parties. Found {strict_json.shown(stated)}.")
        for i, own in enumerate(stated):
            _check_own(certificate, i, own)
        bound = _prove_bound(problem, claim.get("lower_bound"), document["provenance"])
    for i, artifact in enumerate(artifacts):
        with _named(place / party_file(i)):
            _check_own(certificate, i, artifact.claim)
    return VerifiedPlan(problem, tables, certificate, claim, document["plan"], bound, time.perf_counter() - begin)


def _check_own(certificate: PlanCertificate, party: int, claim: Any) -> None:
    if not isinstance(claim, dict):
        raise ArtifactError(f"The claim of party {party} must be a table. Found {strict_json.shown(claim)}.")
    at_most("epsilon", certificate.epsilons[party], claim.get("epsilon"))
    at_most("ordinary_epsilon", certificate.ordinary[party], claim.get("ordinary_epsilon"))
    at_most("mae", certificate.own_mae[party], claim.get("mae"))


def certify_tables(problem: MultiLTE, tables: Sequence[Table]) -> PlanCertificate:
    """The certificate of a plan, whatever its method."""
    _check_size(problem, tables)
    finite = [table for table in tables if isinstance(table, NoiseMatrix)]
    shared = [table for table in tables if isinstance(table, SharedNoise)]
    if len(finite) == len(tables):
        return certify_plan(problem, finite)
    if len(shared) == len(tables):
        from optdp.noise.divisible_certify import certify_shared

        return certify_shared(problem, shared)
    raise CertificateError("The tables of a plan must be all finite or all with shares of noise. Found both.")


def _check_size(problem: MultiLTE, tables: Sequence[Table]) -> None:
    """Refuse what would take hours, or all memory, to measure."""
    length = total = steps = 0
    kinds = {(str(party.spec), table.rows) for party, table in zip(problem.parties, tables, strict=True)}
    for factor, population, table in zip(problem.f, problem.parties, tables, strict=True):
        outputs, inputs = table.outputs[1] - table.outputs[0] + 1, population.last + 1
        laws = 1 + sum(len(person.conditionals) for person in population.people)
        if isinstance(table, NoiseMatrix):
            inputs = min(inputs, len(table.rows) + 2 * EXPLICIT)
            length, total = length + outputs * laws + abs(factor) * inputs, total + outputs
        elif table.rows:  # equal parties are looked at once
            length = max(length, table_reach(table), outputs * max(laws, inputs))
        steps = max(steps, inputs * max(map(len, table.rows), default=0))
    steps = max(steps, total * total * len(kinds) // 512)
    if length > MOST_PLACES or steps > MOST_STEPS:
        raise ProblemError(
            "A plan must be small enough to be measured: fewer or shorter rows, fewer outputs, smaller coefficients. "
            f"Found about {max(length, steps):,} entries."
        )


def _prove_bound(problem: MultiLTE, claimed: Any, provenance: Mapping[str, Any]) -> bool:
    prices = prices_of(provenance)
    if claimed is None or prices is None:
        return False
    from optdp.noise.merged import bounding

    whole = bounding(problem)
    return whole is not None and proved(whole, claimed, prices)
