"""Verify: recompute every claim of an artifact from the file alone. Needs no solver."""

from __future__ import annotations

import time
from dataclasses import dataclass

from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.matrix import NoiseMatrix
from optdp.objects import Public
from optdp.single.certify import Certificate, certify
from optdp.single.claims import at_most, check_keys, check_observed, check_over_time, proves
from optdp.single.format import Artifact
from optdp.single.problem import SingleLTE

CLAIMS = ("mae", "mse", "worst_error", "baseline_mae")
"""Upper bounds that a claim may state besides its epsilons, and that are recomputed."""
KEYS = {
    "epsilon",
    "observed",
    "ordinary_epsilon",
    "over_time",
    *CLAIMS,
    "never_worse",
    "lower_bound",
    "meaning",
    "explained",
}
"""All that a claim may say."""


@dataclass(frozen=True)
class Verified(Public):
    """An artifact whose claims hold."""

    artifact: Artifact
    problem: SingleLTE
    matrix: NoiseMatrix | AddedNoise
    certificate: Certificate
    bound_proved: bool
    """Whether the file carries prices that prove its lower bound again."""
    seconds: float


def fitted(artifact: Artifact, problem: SingleLTE) -> NoiseMatrix | AddedNoise:
    """The mechanism of an artifact that is an answer to its problem; the claims are not checked."""
    matrix = artifact.matrix(problem.last)
    if isinstance(matrix, AddedNoise):
        _check_added(problem, matrix)
    else:
        _check_fit(problem, matrix)
    return matrix


def _check_added(problem: SingleLTE, noise: AddedNoise) -> None:
    """Refuse noise that is no answer to its problem, whatever its figures."""
    if problem.form != "additive":
        raise ArtifactError('Noise that is added is for form = "additive". Found a problem of another form.')
    if noise.q < problem.q:
        raise ArtifactError(
            f"The tails of added noise must have at least the ratio of geometric noise, {float(problem.q):.12g}. "
            f"Found {float(noise.q):.12g}."
        )


def _check_fit(problem: SingleLTE, matrix: NoiseMatrix) -> None:
    """Refuse a table that is no answer to its problem, whatever its figures: the program has no such table."""
    if problem.form == "additive":
        raise ArtifactError('With form = "additive" there is one law of noise for every input. Found a table.')
    (first, last), (low, high) = matrix.inputs, matrix.outputs
    if first < 0 or last > problem.last:
        raise ArtifactError(f"Rows must be for inputs 0..{problem.last}. Found rows for {first}..{last}.")
    if low < 0 or high > problem.last:
        raise ArtifactError(f"Outputs must lie in 0..{problem.last}. Found a table for the outputs {low}..{high}.")
    if matrix.outside == "error" and (first, last) != (0, problem.last):
        raise ArtifactError(f"Every input 0..{problem.last} must have a row. Found rows for {first}..{last} only.")
    if matrix.q != (problem.q if problem.tail == "geometric" else None):
        wanted = "geometric noise of its epsilon" if problem.tail == "geometric" else "no tail"
        found = "no tail" if matrix.q is None else f"noise of ratio {float(matrix.q):.12g}"
        raise ArtifactError(f'A table for tail = "{problem.tail}" must have {wanted}. Found {found}.')
    if matrix.q is not None and matrix.outside == "clamp":
        raise ArtifactError('Inputs without a row must get plain noise if there is a tail. Found outside = "clamp".')
    if matrix.outside == "geometric" and not (first <= low and high <= last):
        raise ArtifactError(
            f"If inputs without a row get plain noise, outputs must lie within {first}..{last}, which have rows. "
            f"Found {low}..{high}."
        )


def verify_matrix(artifact: Artifact, problem: SingleLTE, matrix: NoiseMatrix | AddedNoise, begin: float) -> Verified:
    """Recompute everything that the artifact claims, and raise unless all of it holds."""
    try:
        certificate = certify(problem, matrix)
    except (ArithmeticError, ProblemError) as error:
        raise ArtifactError(f"The table cannot be measured: {error}") from None
    certificate.check(problem)
    claim = artifact.claim
    check_keys(claim, KEYS)
    at_most("epsilon", certificate.epsilon, claim.get("epsilon"))
    at_most("ordinary_epsilon", certificate.ordinary_epsilon, claim.get("ordinary_epsilon"))
    check_observed(certificate.observed, claim.get("observed"))
    check_over_time(certificate.ordinary_epsilon, claim)
    truth = {"baseline_mae": problem.cap} | {name: getattr(certificate, name) for name in CLAIMS[:3]}
    for name in CLAIMS:
        if name in claim:
            at_most(name, truth[name], claim[name])
    if claim.get("never_worse") and not certificate.never_worse:
        raise CertificateError("The claim never_worse does not hold: an input has a larger error than geometric noise.")
    value = certificate.mae if problem.objective == "mae" else certificate.mse
    proved = proves(problem, claim.get("lower_bound"), artifact.provenance, value)
    return Verified(artifact, problem, matrix, certificate, proved, time.perf_counter() - begin)
