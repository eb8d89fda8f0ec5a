"""Drawn inside: one table of the total for all parties, certified as that of one entity.

    minimise    E |S - sum over i of x_i|                                        (or its square)
    subject to  sum over s of r(x, s) = 1                                        every total x
                Pr[S | w, C, x_C] <= e^(eps/D) Pr[S | w + 1, C, x_C] and the reverse
                            every coalition C of m - honest parties, what it holds x_C, person outside, and release S
                r(x, s) <= e^(f/D) r(x', s)                                      `fallback_epsilon`, adjacent totals

`plan.merged` says why these are the worlds of known people; so the program, its cutting planes, its bound and its
certificate are those of `single`. The release is drawn by `plan.inside_draw`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from optdp.errors import CertificateError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.plan.certificate import PlanCertificate
from optdp.plan.problem import MultiLTE
from optdp.single.certify import Certificate, certify


def certify_inside(problem: MultiLTE, tables: Sequence[NoiseMatrix]) -> PlanCertificate:
    """Recompute every figure of a plan whose release is drawn inside: all parties must have the same table."""
    return for_all(problem, certify(problem.merged, common(tables)))


def common(tables: Sequence[NoiseMatrix]) -> NoiseMatrix:
    """The table of all parties."""
    if any(table != tables[0] for table in tables[1:]):
        raise CertificateError('With method = "inside" all parties must have the same table. Found others.')
    return tables[0]


def for_all(problem: MultiLTE, found: Certificate) -> PlanCertificate:
    """What is proved of everybody holds for the people of each party."""
    largest = [party.largest for party in problem.parties]
    ordinary = found.ordinary_epsilon
    return PlanCertificate(
        (found.epsilon,) * len(largest),
        tuple(None if ordinary is None else ordinary * Fraction(own, max(largest)) for own in largest),
        (found.mae,) * len(largest), found.mae, found.mse,
    )  # fmt: skip
