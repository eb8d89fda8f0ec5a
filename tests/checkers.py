"""Both checkers of a file at once: `optdp verify`, in balls, and `optdp.recheck`, in integers; they must agree."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from optdp import Certificate
from optdp.artifact import OpenedMatrix, OpenedOrder, OpenedPlan, OpenedShuffle, open_artifact
from optdp.errors import CertificateError, OptdpError
from optdp.order.format import VerifiedOrder
from optdp.plan.certificate import PlanCertificate
from optdp.recheck import Failed, Findings, Refused, recheck
from optdp.shuffle.format import VerifiedShuffle

CLOSE = Fraction(1, 10**12)
HAIR = Fraction(1, 10**30)
"""Errors of shares of noise are bounded in both, so that either may be the larger one."""

Verified = Certificate | PlanCertificate | VerifiedOrder | VerifiedShuffle


def second_opinion(path: Path) -> tuple[int, str, Findings | None]:
    """The exit code of `optdp.recheck`, what it says, and what it found."""
    try:
        return 0, "", recheck(path)
    except Failed as error:
        return 1, str(error), None
    except Refused as error:
        return 2, str(error), None


def first_opinion(path: Path) -> tuple[int, str, Verified | None]:
    """The same of `optdp verify`."""
    try:
        found = open_artifact(path, OpenedMatrix, OpenedPlan, OpenedOrder, OpenedShuffle)
        whole = isinstance(found, OpenedOrder | OpenedShuffle)
        return 0, "", found.verified if whole else found.verified.certificate
    except CertificateError as error:
        return 1, str(error), None
    except OptdpError as error:
        return 2, str(error), None


def both_agree(path: Path) -> int:
    """Whether both accept, or both do not, and find the same: the exit code of `optdp verify`.

    Of a file that is not accepted the two may name different faults.
    """
    code, said, certificate = first_opinion(path)
    if certificate is not None:
        agrees(path, certificate)
    else:
        other, answer, _ = second_opinion(path)
        assert other != 0, f"{path.name}: {said!r} against {answer!r}"
    return code


def agrees(path: Path, certificate: Verified) -> None:
    """Whether the second checker accepts a file and finds the figures of its certificate."""
    code, said, findings = second_opinion(path)
    assert findings is not None, f"{code}: {said}"
    for name, value in figures_of(certificate).items():
        found = findings.figures[name]
        if value is None or found is None or isinstance(value, bool):
            assert found is value, name
        else:
            room = Fraction(0) if name.endswith("epsilon") else HAIR
            assert value - CLOSE <= found <= value + room, name


def figures_of(certificate: Verified) -> dict[str, Fraction | bool | None]:
    """The figures by the names that the second checker gives them."""
    if isinstance(certificate, Certificate):
        found = dict(vars(certificate))
        observed = found.pop("observed")
        return found | {f"observer {i}: epsilon": value for i, value in enumerate(observed, 1) if len(observed) > 1}
    if isinstance(certificate, VerifiedOrder):
        width = Fraction(certificate.artifact.claim["width"])
        return {"alpha": certificate.alpha, "sensitivity": Fraction(certificate.sensitivity), "width": width}
    figures = {"epsilon": certificate.epsilon, "mae": certificate.mae, "mse": certificate.mse}
    for i, alone in enumerate(zip(certificate.epsilons, certificate.ordinary, certificate.own_mae, strict=True)):
        for name, value in zip(("epsilon", "ordinary_epsilon", "mae"), alone, strict=True):
            figures[f"party {i}: {name}"] = value
    return dict(figures)
