"""Verify a plan: recompute its joint claim from the files of its folder alone. Needs no solver and no numpy."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optdp.artifact import strict_json
from optdp.artifact.claims import at_most, prices_of, proved
from optdp.artifact.plan_files import Table, named, party_file, read_plan
from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.noise.joint_certify import MOST_SETS, certify_plan, number_of_sets
from optdp.noise.joint_error import EXPLICIT
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.multi import MultiLTE
from optdp.noise.plan_certificate import PlanCertificate
from optdp.noise.shared_error import table_reach
from optdp.noise.shared_noise import SharedNoise

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


def verify_plan(folder: str | Path) -> VerifiedPlan:
    """Recompute everything that a plan claims from its files alone, and raise unless all of it holds."""
    begin = time.perf_counter()
    place = Path(folder)
    problem, tables, document, artifacts = read_plan(place)
    claim = document["claim"]
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
            raise ArtifactError(f"The claim must speak of {len(tables)} parties. Found {strict_json.shown(stated)}.")
        for i, own in enumerate(stated):
            _check_own(certificate, i, own)
        bound = _prove_bound(problem, claim.get("lower_bound"), document["provenance"])
    for i, artifact in enumerate(artifacts):
        with named(place / party_file(i)):
            _check_own(certificate, i, artifact.claim)
    seconds = time.perf_counter() - begin
    return VerifiedPlan(problem, tables, certificate, claim, document["plan"], bound, seconds, document["sha256"])


def _check_own(certificate: PlanCertificate, party: int, claim: Any) -> None:
    if not isinstance(claim, dict):
        raise ArtifactError(f"The claim of party {party} must be a table. Found {strict_json.shown(claim)}.")
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
        from optdp.noise.divisible_certify import certify_shared

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


def _prove_bound(problem: MultiLTE, claimed: Any, provenance: Mapping[str, Any]) -> bool:
    prices = prices_of(provenance)
    if claimed is None or prices is None:
        return False
    from optdp.noise.merged import bounding

    whole = bounding(problem)
    return whole is not None and proved(whole, claimed, prices)
