"""From shuffled reports back to the histogram: three estimators, and standard errors for every bin.

Person `i` holds `x_i` and reports `y` with probability `R(x_i, y)`; of `n` reports `c_y` were `y`. Wanted are the
shares `pi(x) = n_x / n` of the people who are there, not of a law that they might be drawn from.

- **Inversion** (C, appendix B). With `R G = 1`, `G = R^T (R R^T)^-1`, the estimate `pi = G^T c / n` is unbiased. Shares
  may be negative.
- **Projection.** The point of the simplex nearest to it: `(pi(x) - t)_+`, `t` such that the sum is 1. Nearer to the
  truth than inversion, whatever the truth is, as it is a point of the simplex itself.
- **Likelihood.** The maximum of `sum_y c_y log(sum_x pi(x) R(x, y))` over the simplex.

**Standard errors.** People report independently, and `sum_y R(x,y) G(y,j) = [x = j]`, so that for data that stay fixed

    Var pi(j) = (1/n^2) sum_x n_x (sum_y R(x,y) G(y,j)^2 - [x = j]) = (1/n^2) (sum_y E[c_y] G(y,j)^2 - n_j).

It is linear in what is not known: with `c_y` for `E[c_y]` and the inverted estimate for `n_j` the plug-in variance is
itself unbiased (where it is negative, 0 stands for it). For people drawn from a law add `pi(1-pi)/n`.

**Randomized response** on `k` values, `R = (1-g) 1 + g/k`, needs no matrix: `G = (1 - g/k)/(1-g)`, and the likeliest
law is `pi(x) = (c_x/m - a)_+` with `a = g/(k(1-g))` and `m` such that the sum is 1 (the conditions of Karush, Kuhn and
Tucker). Both take a sort.

**Shuffled histograms beside central ones**, on real counts (C, section 5 and appendix B; Tables 4, 5, Figs. 1 to 3).

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from optdp.amplification.counts import CountSetting, count_delta
from optdp.amplification.problem import KRRCount
from optdp.errors import ProblemError
from optdp.numbers.divergence import gaussian_sigma
from optdp.numbers.exact import Number, check_between, check_whole, to_fraction
from optdp.shuffle.gamma import deployed, gamma_of

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class KRRChannel:
    """Randomized response on `k` values: with probability `gamma` a uniform answer, else the true one."""

    k: int
    gamma: Fraction


def invert(channel: KRRChannel, counts: npt.ArrayLike) -> Array:
    """The unbiased estimate of the shares; they sum to 1, and may be negative."""
    seen, share = np.asarray(counts, dtype=float), float(channel.gamma)
    found: Array = (seen / seen.sum() - share / channel.k) / (1.0 - share)
    return found


def project(law: Array) -> Array:
    """The point of the simplex nearest to `law`, in O(k log k)."""
    falling = np.sort(law)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(law) + 1)
    kept = int(np.flatnonzero(falling > excess)[-1])
    found: Array = np.maximum(law - excess[kept], 0.0)
    return found


def inverted_and_projected(channel: KRRChannel, counts: npt.ArrayLike) -> Array:
    """The projection of the inverted estimate."""
    return project(invert(channel, counts))


def likely(channel: KRRChannel, counts: npt.ArrayLike) -> Array:
    """The law under which the reports are likeliest."""
    seen, share = np.asarray(counts, dtype=float), float(channel.gamma)
    offset = share / (channel.k * (1.0 - share))
    falling = np.sort(seen)[::-1]
    # with the j largest counts above zero: sum of (c/m - a) over them is 1, so m = (their sum) / (1 + j a)
    level = np.cumsum(falling) / (1.0 + offset * np.arange(1, channel.k + 1))
    kept = int(np.flatnonzero(falling > offset * level)[-1])
    found: Array = np.maximum(seen / level[kept] - offset, 0.0)
    found /= found.sum()
    return found


def standard_errors(channel: KRRChannel, counts: npt.ArrayLike) -> Array:
    """For every bin the standard error of its inverted share, for fixed data: the plug-in variance is unbiased."""
    seen, share = np.asarray(counts, dtype=float), float(channel.gamma)
    n, each = seen.sum(), share / channel.k
    squared = (seen * (1.0 - 2.0 * each) + n * each**2) / (1.0 - share) ** 2
    found: Array = np.sqrt(np.maximum(squared - n * invert(channel, seen), 0.0)) / n
    return found


ESTIMATORS: dict[str, Callable[[KRRChannel, npt.ArrayLike], Array]] = {
    "likelihood": likely,
    "projection": inverted_and_projected,
    "inversion": invert,
}
"""Every estimator of the shares by its name."""


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
        found |= {name: estimate(KRRChannel(k, gamma), reported) for name, estimate in ESTIMATORS.items()}
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
