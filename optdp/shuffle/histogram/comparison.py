"""Shuffled histograms beside central ones, on real counts (C, section 5 and appendix B; Tables 4, 5, Figs. 1 to 3).

- *Individual* utility of a value `x0`: the mean of `|estimated share - true share|`.
- *Community* utility: half the sum of that over all values, for each run (the total variation distance).

For the shuffle model: the reports as they are, and the three estimators. For the central one: Gaussian noise with the
same epsilon and delta (sensitivity `sqrt(2)`), as it is and projected to the simplex; and geometric noise of
`q = e^(-eps/2)`, which keeps epsilon with delta 0.

C takes delta from its Theorem 1: for one `x0`, individually; the largest over all `x0`, for the community. **That is
the delta of somebody who sees the count of `x0` alone.** Give `delta` to compare at one that is proved for the
histogram. At epsilon = eps0, as in Tables 4 and 5, Theorem 1 gives 0, which no Gaussian noise reaches: 1e-300 stands
for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdp.amplification.counts import CountSetting, count_delta
from optdp.amplification.problem import KRRCount
from optdp.errors import ProblemError
from optdp.numbers.divergence import gaussian_sigma
from optdp.numbers.exact import Number, check_between, check_whole, to_fraction
from optdp.shuffle.gamma import deployed, gamma_of
from optdp.shuffle.histogram.estimators import ESTIMATORS, Array, Response, project

LEAST_DELTA = 1e-300
CENTRAL = ("gaussian", "gaussian-projected", "geometric")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The utilities of every mechanism by its name: `reports`, the estimators, and the central ones."""

    shares: Array
    individual_delta: Array  # for each value, the delta at which the Gaussian mechanism stands in `individual`
    community_delta: float
    individual: dict[str, Array]  # for each value the mean absolute error of its share
    community: dict[str, Array]  # for each run the total variation distance

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return {
            "individual": {name: errors.tolist() for name, errors in self.individual.items()},
            "individual_delta": self.individual_delta.tolist(),
            "community": {
                name: {"mean": float(runs.mean()), "quartiles": np.quantile(runs, (0.25, 0.5, 0.75)).tolist()}
                for name, runs in self.community.items()
            },
            "community_delta": self.community_delta,
        }


def count_deltas(counts: Sequence[int], eps0: Number, epsilon: Number) -> Array:
    """C, Theorem 1, for each value as `x0`: what somebody learns who sees its count alone. Nobody holds it: 0."""
    problem = KRRCount(counts=list(counts), eps0=eps0, epsilon=epsilon)
    found = {
        held: count_delta(CountSetting(problem.n, held, eps0, problem.k), epsilon).upper for held in set(problem.held)
    }
    return np.array([found.get(count - 1, 0.0) for count in counts])


def compare_with_central(
    counts: Sequence[int], eps0: Number, epsilon: Number, delta: Number | None = None, runs: int = 100, seed: int = 1
) -> Comparison:
    """Simulate shuffled and central histograms of the same data.

    Parameters
    ----------
    counts : sequence of int
        `counts[x]` people hold the value `x`.
    eps0 : number
        The local epsilon of randomized response.
    epsilon : number
        The epsilon of the central mechanisms.
    delta : number, optional
        Their delta; by default that of C, Theorem 1, which holds for somebody who sees one count alone.
    runs : int
        How many runs are simulated.
    seed : int
        Makes the runs repeatable.

    Returns
    -------
    Comparison
        The errors of each mechanism, by its name.

    Examples
    --------
    >>> from optdp import compare_with_central
    >>> found = compare_with_central([60, 30, 10], eps0=2, epsilon=1, runs=20)
    >>> bool(found.community["likelihood"].mean() < found.community["reports"].mean())
    True
    """
    check_whole(runs, "runs", 1, 10**6)
    KRRCount(counts=list(counts), eps0=eps0, epsilon=epsilon)  # which refuses what makes no sense
    level, local = float(to_fraction(epsilon, "epsilon")), float(to_fraction(eps0, "eps0"))
    if delta is None:
        own = count_deltas(counts, eps0, epsilon)
    else:
        check_between(float(to_fraction(delta, "delta")), "delta", 0.0, 1.0)
        own = np.full(len(counts), float(to_fraction(delta, "delta")))
    if not (own < 1.0).all():
        raise ProblemError(f"delta must be below 1. Found {own.max():g}.")
    rng = np.random.default_rng(seed)
    held = np.asarray(counts, dtype=np.int64)
    n, k, shares = int(held.sum()), len(held), held / held.sum()
    gamma = deployed(gamma_of(local, k))
    sigmas = {value: math.sqrt(2.0) * gaussian_sigma(level, max(value, LEAST_DELTA)) for value in set(own.tolist())}
    each, worst = np.array([sigmas[value] for value in own.tolist()]), sigmas[float(own.max())]
    names = ("reports", *ESTIMATORS, *CENTRAL)
    individual = {name: np.zeros(k) for name in names}
    community = {name: np.zeros(runs) for name in names}
    for run in range(runs):
        reported = _reported(rng, held, float(gamma))
        noise, q = rng.standard_normal(k), math.exp(-level / 2.0)
        geometric = rng.geometric(1.0 - q, k) - rng.geometric(1.0 - q, k)
        found = {"reports": reported / n}
        found |= {name: estimate(Response(k, gamma), reported) for name, estimate in ESTIMATORS.items()}
        found |= {
            "gaussian": (held + worst * noise) / n,
            "gaussian-projected": project((held + worst * noise) / n),
            "geometric": (held + geometric) / n,
        }
        for name, law in found.items():
            errors = np.abs(law - shares)
            community[name][run] = 0.5 * errors.sum()
            individual[name] += errors / runs
        # one value is looked at, so that its noise is that of its own delta; to project it all others are needed
        individual["gaussian"] += (np.abs(each * noise) - np.abs(worst * noise)) / n / runs
    return Comparison(shares, own, float(own.max()), individual, community)


def _reported(rng: np.random.Generator, held: Any, gamma: float) -> Any:
    """How many of the shuffled reports name each value: who answers truthfully stays, the others are uniform."""
    kept = rng.binomial(held, 1.0 - gamma)
    return kept + rng.multinomial(int((held - kept).sum()), np.full(len(held), 1.0 / len(held)))
