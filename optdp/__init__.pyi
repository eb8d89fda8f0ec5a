"""The public names, and where each lives."""

from .amplification.catalogue import Gaussian as Gaussian
from .amplification.catalogue import Laplace as Laplace
from .amplification.compose import composed_epsilon as composed_epsilon
from .amplification.decomposition import decompose as decompose
from .amplification.problem import Amplification as Amplification
from .amplification.problem import KRRCount as KRRCount
from .amplification.randomizers import KRR as KRR
from .amplification.randomizers import Channel as Channel
from .amplification.randomizers import Generic as Generic
from .amplification.solve import AmplificationSolution as AmplificationSolution
from .amplification.solve import profile as profile
from .artifact import open_artifact as open_artifact
from .artifact import verify as verify
from .artifact import verify_plan as verify_plan
from .comparison.run import compare as compare
from .errors import (
    ArtifactError as ArtifactError,
)
from .errors import (
    CertificateError as CertificateError,
)
from .errors import (
    InfeasibleError as InfeasibleError,
)
from .errors import (
    OptdpError as OptdpError,
)
from .errors import (
    ProblemError as ProblemError,
)
from .errors import (
    SolverError as SolverError,
)
from .kinds import solve as solve
from .ledger.book import Ledger as Ledger
from .loading import load as load
from .loading import load_problem as load_problem
from .mechanism.added_noise import AddedNoise as AddedNoise
from .mechanism.matrix import NoiseMatrix as NoiseMatrix
from .mechanism.seeded_maps import SeededMaps as SeededMaps
from .mechanism.shared_noise import SharedNoise as SharedNoise
from .numbers.sgdl import SGDL as SGDL
from .numbers.source import Source as Source
from .order.mechanism import Groups as Groups
from .order.problem import OrderShuffle as OrderShuffle
from .people.learn import iterative_bayesian_update as iterative_bayesian_update
from .people.observer import Observer as Observer
from .people.population import Population as Population
from .plan.problem import MultiLTE as MultiLTE
from .plan.solve import PlanSolution as PlanSolution
from .plan.worlds import caution as caution
from .plan.worlds import epsilon_under as epsilon_under
from .plan.worlds import errors_by_total as errors_by_total
from .shuffle.estimators import compare_with_central as compare_with_central
from .shuffle.histogram import ShuffleHistogram as ShuffleHistogram
from .shuffle.metric.problem import MetricShuffle as MetricShuffle
from .shuffle.metric.solve import compare_mechanisms as compare_mechanisms
from .shuffle.real_sum import RealSum as RealSum
from .single.certify import Certificate as Certificate
from .single.certify import certify as certify
from .single.ladder import ladder as ladder
from .single.measure import errors_by_input as errors_by_input
from .single.measure import posterior as posterior
from .single.measure import quotients as quotients
from .single.over_time import Total as Total
from .single.problem import SingleLTE as SingleLTE
from .single.solve import Solution as Solution
from .sweeps.run import sweep as sweep
