"""Verify: recompute every claim of an artifact from the file alone. Needs no solver."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from optdp.artifact.claims import at_most, prices_of, proved
from optdp.artifact.files import name_of
from optdp.artifact.format import Artifact, read
from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.noise.certify import Certificate, certify
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.multi import MultiLTE
from optdp.noise.single import SingleLTE
from optdp.problem import from_spec

CLAIMS = ("mae", "mse", "worst_error", "baseline_mae")
"""Upper bounds that a claim may state besides its epsilons, and that are recomputed."""


@dataclass(frozen=True)
class Verified:
    """An artifact whose claims hold."""

    artifact: Artifact
    problem: SingleLTE
    matrix: NoiseMatrix
    certificate: Certificate
    bound_proved: bool
    """Whether the file carries prices that prove its lower bound again."""
    seconds: float


def open_artifact(path: str | Path) -> tuple[Artifact, SingleLTE, NoiseMatrix]:
    """Read an artifact and put its matrix together; the format and digest are checked, the claims are not."""
    artifact = read(Path(path))
    try:
        problem = from_spec(artifact.problem)
    except ProblemError as error:
        raise ArtifactError(f"The artifact's problem must be a valid one. Found: {error}") from None
    if not isinstance(problem, SingleLTE | MultiLTE):
        raise ArtifactError(f"A noise matrix must have a problem of an entity. Found kind {problem.kind!r}.")
    if not isinstance(problem, SingleLTE):
        raise ArtifactError(
            f"{name_of(path)} is one party's part of a plan, which is private only as a whole. Verify its folder."
        )
    first, last = artifact.inputs
    if first < 0 or last > problem.last:
        raise ArtifactError(f"Rows must be for inputs 0..{problem.last}. Found rows for {first}..{last}.")
    if artifact.outside == "error" and (first, last) != (0, problem.last):
        raise ArtifactError(f"Every input 0..{problem.last} must have a row. Found rows for {first}..{last} only.")
    return artifact, problem, artifact.matrix(problem.last)


def verify(path: str | Path) -> Verified:
    """Recompute everything that the artifact claims, and raise unless all of it holds."""
    begin = time.perf_counter()
    artifact, problem, matrix = open_artifact(path)
    try:
        certificate = certify(problem, matrix)
    except (ArithmeticError, ProblemError) as error:
        raise ArtifactError(f"The table cannot be measured: {error}") from None
    certificate.check(problem)
    claim = artifact.claim
    at_most("epsilon", certificate.epsilon, claim.get("epsilon"))
    at_most("ordinary_epsilon", certificate.ordinary_epsilon, claim.get("ordinary_epsilon"))
    truth = {"baseline_mae": problem.cap} | {name: getattr(certificate, name) for name in CLAIMS[:3]}
    for name in CLAIMS:
        if name in claim:
            at_most(name, truth[name], claim[name])
    if claim.get("never_worse") and not certificate.never_worse:
        raise CertificateError("The claim never_worse does not hold: an input has a larger error than geometric noise.")
    proved = _prove_bound(artifact, problem)
    return Verified(artifact, problem, matrix, certificate, proved, time.perf_counter() - begin)


def _prove_bound(artifact: Artifact, problem: SingleLTE) -> bool:
    """Prove the claimed lower bound again from the stored prices, if there are any."""
    claimed, prices = artifact.claim.get("lower_bound"), prices_of(artifact.provenance)
    return claimed is not None and prices is not None and proved(problem, claimed, prices)
