"""A plan of several entities: how its folder is written. `plan_files` reads it, `plan_verify` verifies it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optdp.artifact import files, strict_json, temporaries
from optdp.artifact.claims import stored
from optdp.artifact.format import Artifact, to_json
from optdp.artifact.plan_files import FORMAT, VERSION, Table, digest, identity_of, spelled
from optdp.artifact.plan_files import Member as Member
from optdp.artifact.plan_files import is_party as is_party
from optdp.artifact.plan_files import open_party as open_party
from optdp.artifact.plan_files import party_file as party_file
from optdp.artifact.plan_files import read_plan as read_plan
from optdp.artifact.plan_verify import VerifiedPlan as VerifiedPlan
from optdp.artifact.plan_verify import certify_tables as certify_tables
from optdp.artifact.plan_verify import check_size
from optdp.artifact.plan_verify import verify_plan as verify_plan
from optdp.artifact.tails import Share
from optdp.errors import ArtifactError, ProblemError
from optdp.noise.matrix import NoiseMatrix

if TYPE_CHECKING:
    from optdp.plan import PlanSolution


def write_plan(solution: PlanSolution, folder: Path) -> None:
    """Write the folder under a temporary name and rename it: a crash leaves the old plan, or the new one."""
    check_target(folder)
    check_size(solution.problem, solution.tables)  # nobody could verify it
    claim = solution.claim()
    bare = [bare_table(table) for table in solution.tables]
    identity = identity_of(solution.problem.spec(), bare)
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
    document["sha256"] = digest(document)
    contents = {"plan.json": "".join(spelled(document)).encode("ascii")}
    contents |= {party_file(i): to_json(member) for i, member in enumerate(members)}
    files.write_folder(folder, contents)


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
    while True:
        seen = folder.stat().st_ino
        found = _holds_a_plan(folder)
        if found or folder.stat().st_ino == seen:  # otherwise another writer replaced it meanwhile: look again
            return found


def _holds_a_plan(folder: Path) -> bool:
    found = list(folder.iterdir())
    if not found or not all(map(temporaries.is_ours, found)):
        return not found
    try:
        document = strict_json.parse(files.read_bytes(folder / "plan.json"))
    except ArtifactError:
        return False
    return isinstance(document, dict) and document.get("format") == FORMAT


def bare_table(table: Table) -> Artifact:
    """The table alone, without problem, claim and provenance: what the identity of a plan is made of."""
    if isinstance(table, NoiseMatrix):
        return Artifact(table.inputs, table.outputs, table.denominator, table.rows, table.outside, table.q, {}, {}, {})
    share = Share(table.beta, table.factor, table.contraction, table.contraction_denominator)
    inputs, outputs, denominator, rows = table.inputs, table.outputs, table.denominator, table.rows
    if not rows:  # a table of one output changes nothing: it is drawn where it was drawn already
        inputs, outputs, denominator, rows = (0, 0), (0, 0), 2, (((0, 2),),)
    return Artifact(inputs, outputs, denominator, rows, "geometric", table.q, {}, {}, {}, share=share)
