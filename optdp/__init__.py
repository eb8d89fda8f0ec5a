"""optdp: describe your deployment; get the best private mechanism, a proof of what it gives away, and its tables.

from optdp import Population, SingleLTE, solve
solution = solve(SingleLTE(Population.binomial(100, "0.1"), epsilon="0.3"))
solution.mae, solution.baseline_mae, solution.certificate.epsilon
solution.mechanism.sample(12, size=1000)
solution.save("sick-leave.json")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optdp.amplification.additive import Gaussian as Gaussian
    from optdp.amplification.additive import Laplace as Laplace
    from optdp.amplification.channel import Channel as Channel
    from optdp.amplification.compose import composed_epsilon as composed_epsilon
    from optdp.amplification.count import KRRCount as KRRCount
    from optdp.amplification.decomposition import decompose as decompose
    from optdp.amplification.problem import Amplification as Amplification
    from optdp.amplification.randomizers import KRR as KRR
    from optdp.amplification.randomizers import Generic as Generic
    from optdp.amplification.solve import AmplificationSolution as AmplificationSolution
    from optdp.amplification.solve import profile as profile
    from optdp.artifact.plan_verify import verify_plan as verify_plan
    from optdp.artifact.verify import verify as verify
    from optdp.errors import (
        ArtifactError as ArtifactError,
    )
    from optdp.errors import (
        CertificateError as CertificateError,
    )
    from optdp.errors import (
        InfeasibleError as InfeasibleError,
    )
    from optdp.errors import (
        OptdpError as OptdpError,
    )
    from optdp.errors import (
        ProblemError as ProblemError,
    )
    from optdp.errors import (
        SolverError as SolverError,
    )
    from optdp.mallows.groups import Groups as Groups
    from optdp.mallows.problem import OrderShuffle as OrderShuffle
    from optdp.math.sgdl import SGDL as SGDL
    from optdp.math.source import Source as Source
    from optdp.noise.certify import Certificate as Certificate
    from optdp.noise.certify import certify as certify
    from optdp.noise.learn import iterative_bayesian_update as iterative_bayesian_update
    from optdp.noise.matrix import NoiseMatrix as NoiseMatrix
    from optdp.noise.measure import errors_by_input as errors_by_input
    from optdp.noise.measure import posterior as posterior
    from optdp.noise.measure import quotients as quotients
    from optdp.noise.multi import MultiLTE as MultiLTE
    from optdp.noise.population import Population as Population
    from optdp.noise.shared_noise import SharedNoise as SharedNoise
    from optdp.noise.single import SingleLTE as SingleLTE
    from optdp.plan import PlanSolution as PlanSolution
    from optdp.problem import load as load
    from optdp.reports import caution as caution
    from optdp.reports import errors_by_total as errors_by_total
    from optdp.shuffle.comparison import compare_with_central as compare_with_central
    from optdp.shuffle.histogram import ShuffleHistogram as ShuffleHistogram
    from optdp.shuffle.metric import MetricShuffle as MetricShuffle
    from optdp.shuffle.metric_solve import compare_mechanisms as compare_mechanisms
    from optdp.shuffle.summation import RealSum as RealSum
    from optdp.solution import Solution as Solution
    from optdp.solution import solve as solve
    from optdp.solvers.compare import compare as compare
    from optdp.sweeps.run import sweep as sweep
    from optdp.worlds import epsilon_under as epsilon_under

_HOMES = {
    "Amplification": "amplification.problem",
    "AmplificationSolution": "amplification.solve",
    "ArtifactError": "errors",
    "Channel": "amplification.channel",
    "Gaussian": "amplification.additive",
    "Generic": "amplification.randomizers",
    "Groups": "mallows.groups",
    "KRR": "amplification.randomizers",
    "KRRCount": "amplification.count",
    "Laplace": "amplification.additive",
    "composed_epsilon": "amplification.compose",
    "decompose": "amplification.decomposition",
    "profile": "amplification.solve",
    "Certificate": "noise.certify",
    "CertificateError": "errors",
    "InfeasibleError": "errors",
    "MetricShuffle": "shuffle.metric",
    "MultiLTE": "noise.multi",
    "NoiseMatrix": "noise.matrix",
    "OptdpError": "errors",
    "OrderShuffle": "mallows.problem",
    "Population": "noise.population",
    "ProblemError": "errors",
    "PlanSolution": "plan",
    "RealSum": "shuffle.summation",
    "SGDL": "math.sgdl",
    "SharedNoise": "noise.shared_noise",
    "ShuffleHistogram": "shuffle.histogram",
    "SingleLTE": "noise.single",
    "Solution": "solution",
    "SolverError": "errors",
    "Source": "math.source",
    "caution": "reports",
    "certify": "noise.certify",
    "compare": "solvers.compare",
    "compare_mechanisms": "shuffle.metric_solve",
    "compare_with_central": "shuffle.comparison",
    "epsilon_under": "worlds",
    "errors_by_input": "noise.measure",
    "errors_by_total": "reports",
    "iterative_bayesian_update": "noise.learn",
    "load": "problem",
    "posterior": "noise.measure",
    "quotients": "noise.measure",
    "solve": "solution",
    "sweep": "sweeps.run",
    "verify": "artifact.verify",
    "verify_plan": "artifact.plan_verify",
}
"""Where each public name lives; it is imported when first used, so that checking a file needs no solver."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'optdp' has no attribute {name!r}")
    value = getattr(import_module(f"optdp.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
