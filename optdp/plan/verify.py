"""Verify a plan: recompute its joint claim from the files of its folder alone. Needs no solver and no numpy."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.files import atomic, canonical
from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.shared_noise import SharedNoise
from optdp.plan.certificate import PlanCertificate
from optdp.plan.certify import EXPLICIT, MOST_SETS, certify_plan, number_of_sets
from optdp.plan.divisible_certify import certify_shared, table_reach
from optdp.plan.format import FORMAT, VERSION, Plan, Table, digest, identity_of, named, party_file, spelled
from optdp.plan.merged import bounding
from optdp.plan.problem import MultiLTE
from optdp.single.claims import at_most, check_keys, proves
from optdp.single.format import Artifact, Share, to_json

if TYPE_CHECKING:
    from optdp.plan.solve import PlanSolution


OWN = {"epsilon", "ordinary_epsilon", "mae"}
"""What is claimed of each party."""
KEYS = {"epsilon", "mae", "mse", "baseline_mae", "lower_bound", "parties", "meaning", "explained"}
"""All that the claim of a plan may say."""
MOST_PLACES, MOST_STEPS = 1 << 24, 1 << 26
"""How much may be written out, and how much work may be done, to measure a plan: a short file can ask for more."""
MOST_BALLS = 1 << 21
"""The most places of the law of an aggregate of finite tables, each of which is a ball."""


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
    sha256: str
    """The digest of `plan.json`, which lists those of the parties' files."""


def verify_tables(plan: Plan, place: Path, begin: float) -> VerifiedPlan:
    """Recompute everything that the plan of the folder `place` claims, and raise unless all of it holds."""
    problem, tables, document, claim = plan.problem, plan.tables, plan.document, plan.claim
    with named(place / "plan.json"):
        check_keys(claim, KEYS)
    with named(place, "the plan cannot be measured: "):
        certificate, baseline = certify_tables(problem, tables), problem.baseline_mae
    certificate.check(problem)
    with named(place / "plan.json"):
        at_most("epsilon", certificate.epsilon, claim.get("epsilon"))
        truth = {"mae": certificate.mae, "mse": certificate.mse, "baseline_mae": baseline}
        for name, value in truth.items():
            at_most(name, value, claim.get(name))
        stated = claim.get("parties")
        if not isinstance(stated, list) or len(stated) != len(tables):
            raise ArtifactError(f"The claim must speak of {len(tables)} parties. Found {canonical.shown(stated)}.")
        for i, own in enumerate(stated):
            _check_own(certificate, i, own, OWN)
        value = certificate.mae if problem.objective == "mae" else certificate.mse
        whole = None if claim.get("lower_bound") is None else bounding(problem)
        bound = proves(whole, claim.get("lower_bound"), document["provenance"], value)
    for i, artifact in enumerate(plan.artifacts):
        with named(place / party_file(i)):
            _check_own(certificate, i, artifact.claim, OWN | {"plan", "party", "meaning", "explained"})
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
    shared = [table for table in tables if isinstance(table, SharedNoise)]
    if len(finite) == len(tables):
        return certify_plan(problem, finite)
    if len(shared) == len(tables):
        return certify_shared(problem, shared)
    raise CertificateError("The tables of a plan must be all finite or all with shares of noise. Found both.")


def check_size(problem: MultiLTE, tables: Sequence[Table]) -> None:
    """Refuse what would take hours, or all memory, to measure."""
    length = total = steps = balls = secrets = 0
    kinds = Counter((str(party.spec), table.rows) for party, table in zip(problem.parties, tables, strict=True))
    for factor, population, table in zip(problem.f, problem.parties, tables, strict=True):
        outputs, inputs = table.outputs[1] - table.outputs[0] + 1, population.last + 1
        laws = 1 + sum(len(person.conditionals) for person in population.people)
        if isinstance(table, NoiseMatrix):
            inputs = min(inputs, len(table.rows) + 2 * EXPLICIT)
            length, total = length + outputs * laws + abs(factor) * inputs, total + outputs
            balls, secrets = balls + outputs + abs(factor) * inputs, max(secrets, laws)
        elif table.rows:  # equal parties are looked at once
            length = max(length, table_reach(table), outputs * max(laws, inputs))
        steps = max(steps, inputs * max(map(len, table.rows), default=0))
    steps = max(steps, total * total * len(kinds) // 512)
    if total:  # every set of honest parties is looked at, in every world
        sets = number_of_sets(problem.honest, list(kinds.values()))
        steps = max(steps, min(sets, MOST_SETS) * len(problem.worlds) * problem.honest * secrets * total)
    if length > MOST_PLACES or steps > MOST_STEPS or balls > MOST_BALLS:
        raise ProblemError(
            "A plan must be small enough to be measured: fewer or shorter rows, fewer outputs, smaller coefficients. "
            f"Found about {max(length, steps, balls):,} entries."
        )


_NAMES = re.compile(r"plan\.json|party-[0-9]+\.json")
"""The files of a plan's folder."""


def write_plan(solution: PlanSolution, folder: Path) -> None:
    """Write the folder under a temporary name and rename it: a crash leaves the old plan, or the new one."""
    check_target(folder)
    document, members = plan_files(solution)
    contents = {"plan.json": "".join(spelled(document)).encode("ascii")}
    contents |= {party_file(i): to_json(member) for i, member in enumerate(members)}
    atomic.write_folder(folder, contents)


def plan_files(solution: PlanSolution) -> tuple[dict[str, Any], list[Artifact]]:
    """What `plan.json` says, and the parties' files."""
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


def check_target(folder: Path) -> None:
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


def bare_table(table: Table) -> Artifact:
    """The table alone, without problem, claim and provenance: what the identity of a plan is made of."""
    if isinstance(table, NoiseMatrix):
        return Artifact(table.inputs, table.outputs, table.denominator, table.rows, table.outside, table.q, {}, {}, {})
    share = Share(table.beta, table.factor, table.contraction, table.contraction_denominator)
    inputs, outputs, denominator, rows = table.inputs, table.outputs, table.denominator, table.rows
    if not rows:  # a table of one output changes nothing: it is drawn where it was drawn already
        inputs, outputs, denominator, rows = (0, 0), (0, 0), 2, (((0, 2),),)
    return Artifact(inputs, outputs, denominator, rows, "geometric", table.q, {}, {}, {}, share=share)
