"""Verify: recompute every claim of an artifact from the file alone. Needs no solver."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optdp.artifact.format import Artifact, read
from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.math.exact import precision, to_fraction
from optdp.noise.certify import Certificate, certify
from optdp.noise.matrix import NoiseMatrix
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
    _at_most("epsilon", certificate.epsilon, claim.get("epsilon"))
    _at_most("ordinary_epsilon", certificate.ordinary_epsilon, claim.get("ordinary_epsilon"))
    truth = {"baseline_mae": problem.cap} | {name: getattr(certificate, name) for name in CLAIMS[:3]}
    for name in CLAIMS:
        if name in claim:
            _at_most(name, truth[name], claim[name])
    if claim.get("never_worse") and not certificate.never_worse:
        raise CertificateError("The claim never_worse does not hold: an input has a larger error than geometric noise.")
    proved = _prove_bound(artifact, problem)
    return Verified(artifact, problem, matrix, certificate, proved, time.perf_counter() - begin)


def _at_most(name: str, found: Fraction | None, claimed: Any) -> None:
    """A recomputed figure must not exceed the claimed one."""
    if claimed == "infinite" and name == "ordinary_epsilon":
        return
    limit = _number(claimed, name)
    if found is None or found > limit:
        shown = "infinite" if found is None else f"{float(found):.15g}"
        raise CertificateError(f"The claim {name} <= {claimed[:40]} does not hold. Found {shown}.")


def _number(text: Any, name: str) -> Fraction:
    if not isinstance(text, str):
        raise ArtifactError(f"The claim must state {name} as a decimal string. Found {text!r}.")
    try:
        return to_fraction(text, name)
    except ProblemError as error:
        raise ArtifactError(str(error)) from None


def _prove_bound(artifact: Artifact, problem: SingleLTE) -> bool:
    """Prove the claimed lower bound again from the stored prices, if there are any."""
    claimed, stored = artifact.claim.get("lower_bound"), artifact.provenance.get("prices")
    if claimed is None or stored is None:
        return False
    limit = _number(claimed, "lower_bound")
    from optdp.noise.bound import Prices, lower_bound
    from optdp.noise.lp import formulate

    try:
        z = np.array(stored["z"].split(), dtype=float)
        u = np.array([row.split() for row in stored["u"]], dtype=float)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ArtifactError("The stored prices must be numbers. The file was changed.") from None
    if not (np.isfinite(z).all() and np.isfinite(u).all()):
        raise ArtifactError("The stored prices must be finite. The file was changed.")
    with precision():
        lp = formulate(problem)
        if z.shape != lp.inputs.shape or u.shape != lp.gaps[:, : len(z)].shape:
            raise ArtifactError("The stored prices must fit the problem. The file was changed.")
        found = lower_bound(lp, Prices(z, u))
    if found < limit:
        raise CertificateError(f"The claimed lower bound {claimed[:40]} is not proved. Found {float(found):.15g}.")
    return True
