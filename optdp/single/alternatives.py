"""What a mechanism has to be better than: publishing without any data, and ordinary differential privacy.

Neither assumes anything about who is watching, so that each is an honest figure beside the error under a prior.

**Without data** the best that can be published is a constant: the median of the belief about the sum for the mean
absolute error, the whole number next to its mean for the mean squared error.

**Under ordinary differential privacy** the prior enters the objective alone:

    minimise    sum over x, s of  prior(x) loss(x - s) r(x, s)
    subject to  sum over s of r(x, s) = 1                                        every input x
                r(x, s) <= e^eps r(x + 1, s)  and  r(x + 1, s) <= e^eps r(x, s)  every two neighbours, every output s

Where neighbours differ by one unit the optimum is geometric noise, and then the best reading of its output `t`: the
number with the least mean loss under the posterior `prior(x) q^|x - t|`, its median or its rounded mean (Ghosh,
Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms", SIAM J. Comput. 41, 2012). For a
convex loss there is a short proof. Let `f_k(x) = Pr[S <= k | x]`. The error is a constant plus the sum over `k` of

    -(sum over x of prior(x) d_k(x) f_k(x))     with     d_k(x) = loss(x - k - 1) - loss(x - k),

which is positive for `x <= k`, negative beyond, and grows with `k`. Take each `k` by itself. Both `f_k` and `1 - f_k`
keep the constraints, so that `f_k(x + 1) >= D(f_k(x))` with `D(a) = max(q a, 1 - (1 - a)/q)`. Best is the steepest way
down, `f_k(x + 1) = D(f_k(x))`; and as `D` is convex, what is left is convex and piecewise linear in `f_k(k)`. So it is
least at a corner, which is where the chain `f_k(0), f_k(1), ...` meets `1/(1 + q)`, the corner of `D`; or where the
chain is constantly 0 or 1. Such a chain is `Pr[x + noise <= t]` for geometric noise and some `t`. As `d_k` grows with
`k`, so does the best `t`: one map of the noisy count is best for all `k` at once. Outputs beyond `0..last` do not help,
for the nearest number inside is at least as near to every input. With unit steps at `epsilon/D` it is
`q = e^(-eps/D)`.

**How it is computed.** Let `w(i)` be the prior on a run of inputs and `U(k) = sum over i <= k of w(i) q^(k-i)`, which
is `w(k) + q U(k-1)`; let `V` be the same from the other side, and `P`, `S` the sums with a further factor `|k - i|`.
Given `t` the inputs up to `c <= t` have the weight `q^(t-c) U(c)` and those from `c >= t` on `q^(c-t) V(c)`. So one
search finds all medians `c(t)`, and the error is, for `c <= t` and in the other case the other way round,

    sum over i of w(i) q^|i-t| |i-c|  =  2 q^(t-c) P(c) + (t-c) (U(t) + V(t) - w(t)) - P(t) + S(t).

No prior is written out further than it counts, and all outputs below the run (or above it) share one posterior.
These are figures to compare with, in floating point, right to about ten digits; no claim rests on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optdp.numbers.exact import geometric_ratio, precision, show, there
from optdp.numbers.ordered import Array, convolve, dot, geometric
from optdp.numbers.pmf import BinomialPmf, Pmf
from optdp.people.population import Population
from optdp.single.problem import Objective, SingleLTE
from optdp.single.window import likely

Whole = NDArray[np.int64]

SHARE = 1e-42
"""What a closed form may leave out on either side."""
TINY = 1e-280
"""What is below this share of the largest probability is left out at both ends."""
BLOCK = 4096
"""Probabilities of a closed form that follow from one another before the next is computed afresh."""
EQUAL = 1e-9
"""Errors that differ by this share are not told apart."""
LONGEST = 4_000_000
"""The longest run of inputs for which ordinary privacy is computed."""
MOST_PRODUCTS = 30_000_000
"""The most products for which the laws of two parties are added up."""


def no_data(problem: SingleLTE, objective: Objective | None = None) -> float:
    """The error of the best constant: what can be published without looking at any data.

    Parameters
    ----------
    problem : SingleLTE
        The belief about the sum is that of its objective: all its priors with their weights.
    objective : "mae" or "mse", optional
        Which error; by default the problem's own.

    Returns
    -------
    float
        The mean error under the belief.

    Examples
    --------
    >>> from optdp import Population, SingleLTE
    >>> from optdp.single.alternatives import no_data
    >>> round(no_data(SingleLTE(Population.binomial(100, "0.1"), epsilon="0.3")), 6)
    2.373576
    """
    return best_guess(problem, objective)[1]


def best_guess(problem: SingleLTE, objective: Objective | None = None) -> tuple[int, float]:
    """What somebody publishes who looks at no data, and its mean error: the median, for "mse" the mean, rounded."""
    return _best_constant(*_belief(problem), objective or problem.objective)


def no_data_sum(parties: Sequence[Population], factors: Sequence[int], objective: Objective) -> float | None:
    """The same for a weighted sum of independent parties; None if its law is too long to be written out quickly.

    Examples
    --------
    >>> from optdp import Population
    >>> from optdp.single.alternatives import no_data_sum
    >>> round(no_data_sum([Population.binomial(40, "0.1"), Population.binomial(60, "0.1")], [1, 1], "mae"), 6)
    2.373576
    """
    total: Array | None = np.ones(1)
    known = {id(party.total): party.total for party in parties}
    alike = Counter((id(party.total), factor) for party, factor in zip(parties, factors, strict=True))
    for (name, factor), count in alike.items():
        part = _stretched(known[name], factor)
        while count:  # alike parties by powers of two
            total = _added(total, part) if count & 1 else total
            count >>= 1
            part = _added(part, part) if count else part
    return None if total is None else _best_constant(np.arange(len(total)), total, objective)[1]


def _stretched(law: Pmf, factor: int) -> Array | None:
    """The law of `factor X`, from its least value on: where it begins does not matter to the best constant."""
    _, chances = _probabilities(law)
    if len(chances) * abs(factor) > LONGEST:
        return None
    spread: Array = np.zeros((len(chances) - 1) * abs(factor) + 1)
    spread[:: abs(factor)] = chances if factor > 0 else chances[::-1]
    return spread[_counting(spread)]


def _added(one: Array | None, other: Array | None) -> Array | None:
    """The law of the sum of two that are independent."""
    if one is None or other is None or len(one) * len(other) > MOST_PRODUCTS:
        return None
    law: Array = convolve(one, other)
    return law[_counting(law)]


def _best_constant(inputs: Whole, weights: Array, objective: Objective) -> tuple[int, float]:
    half = np.searchsorted(np.add.accumulate(weights), np.add.reduce(weights) / 2)
    guess = int(inputs[min(int(half), len(inputs) - 1)])
    apart = (inputs - guess).astype(np.float64)
    if objective == "mae":
        return guess, dot(weights, np.abs(apart))
    mean = round(dot(weights, apart))
    apart -= mean
    return guess + mean, dot(weights, apart * apart)


def ordinary_best(problem: SingleLTE, objective: Objective | None = None) -> float | None:
    """The least error of any mechanism with ordinary differential privacy at the problem's epsilon.

    It is what geometric noise can be turned into by whoever knows the prior, and promises the same as geometric noise.
    It need not be as accurate as geometric noise for every input (`never_worse`).

    Parameters
    ----------
    problem : SingleLTE
        The prior, epsilon and adjacency.
    objective : "mae" or "mse", optional
        Which error; by default the problem's own.

    Returns
    -------
    float or None
        None where no formula is known: contributions above 1 with adjacency "all"; or where the prior is too wide.

    Examples
    --------
    >>> from optdp import Population, SingleLTE
    >>> from optdp.single.alternatives import ordinary_best
    >>> round(ordinary_best(SingleLTE(Population.binomial(100, "0.1"), epsilon="0.3")), 4)
    1.909
    """
    found = _Posteriors.of(problem)
    if found is None:
        return None
    targets = found.targets(objective or problem.objective)
    errors = found.errors(targets, objective or problem.objective)
    return dot(found.chances, errors)


def readings(problem: SingleLTE, first: int, size: int) -> Whole:
    """What the best ordinary mechanism makes of the outputs `first, first + 1, ...` of geometric noise."""
    found = there(_Posteriors.of(problem))
    targets = found.targets(problem.objective) + found.first
    outputs = np.arange(first, first + size) - found.first
    return np.asarray(targets[np.clip(outputs, 0, len(targets) - 1)])


@dataclass(frozen=True)
class Alternatives:
    """The errors that a solution of a problem is shown beside."""

    problem: SingleLTE
    figures: dict[str, float | None]
    """By the names that `--json` has: the MAE, and where the MSE was minimised that too; None where it is not known."""

    @classmethod
    def of(cls, problem: SingleLTE) -> Alternatives:
        """All of them; this takes milliseconds, and about a second for a thousand million people."""
        figures: dict[str, float | None] = {}
        objectives: tuple[Objective, ...] = ("mae",) if problem.objective == "mae" else ("mae", "mse")
        for objective in objectives:
            if objective == "mse":  # `baseline_mae` is a figure of every solution
                figures["baseline_mse"] = geometric_error(problem.q, objective)
            if problem.fallback_epsilon is not None:
                q = geometric_ratio(problem.fallback_epsilon / problem.largest)
                figures[f"fallback_geometric_{objective}"] = geometric_error(q, objective)
            figures[f"ordinary_{objective}"] = ordinary_best(problem, objective)
            figures[f"no_data_{objective}"] = no_data(problem, objective)
        return cls(problem, figures)

    def named(self, objective: Objective) -> list[tuple[str, float]]:
        """The figures that there are, by the names that a person is shown."""
        fallback = self.problem.fallback_epsilon
        names = {
            "baseline": "geometric",
            "fallback_geometric": f"geometric at {'' if fallback is None else show(fallback)}",
            "ordinary": "best ordinary DP",
            "no_data": "without data",
        }
        found = [(name, self.figures.get(f"{key}_{objective}")) for key, name in names.items()]
        return [(f"{objective.upper()}, {name}", value) for name, value in found if value is not None]

    def remark(self, value: float) -> str:
        """What has to be said of a mechanism with this error: who sees nothing, or assumes less, does as well."""
        problem, name = self.problem, self.problem.objective
        found = useless(value, self.figures[f"no_data_{name}"], name)
        ordinary = self.figures[f"ordinary_{name}"]
        assumes_nothing = problem.method == "geometric" or problem.chain_epsilon == problem.epsilon
        if not found and ordinary is not None and value >= ordinary * (1 - EQUAL) and not assumes_nothing:
            found = (
                "no more accurate than the best mechanism with ordinary differential privacy at the same epsilon, "
                f"which assumes nothing about the observer and has {name.upper()} {ordinary:.6g}"
            )
        bound = problem.method == "lp" and (problem.tail == "geometric" or problem.never_worse)
        better = 'form = "table"' if problem.form == "additive" else 'tail = "none" with never_worse = false'
        return f"{found}; {better} may do better" if found and bound else found


def useless(value: float, constant: float | None, objective: Objective) -> str:
    """What has to be said of an error that the best constant has too; else nothing."""
    if constant is None or value < constant * (1 - EQUAL):
        return ""
    what = "median" if objective == "mae" else "rounded mean"
    return (
        f"no more accurate than publishing a constant without looking at any data: the {what} of the sum under the "
        f"prior has {objective.upper()} {constant:.6g}"
    )


def geometric_error(q: Fraction, objective: Objective) -> float:
    """The error of geometric noise."""
    return float(2 * q / (1 - q * q) if objective == "mae" else 2 * q / (1 - q) ** 2)


class _Posteriors(NamedTuple):
    """What each output of geometric noise that is clamped to a run of inputs tells; see the head of this module."""

    first: int
    q: float
    rest: float
    """`1 - q`, also where `q` is next to one."""
    prior: Array
    below: Array
    """`U`."""
    above: Array
    """`V`."""
    powers: Array

    @classmethod
    def of(cls, problem: SingleLTE) -> _Posteriors | None:
        if problem.adjacency == "all" and problem.largest > 1:
            return None
        inputs, weights = _belief(problem)
        first, size = int(inputs[0]), int(inputs[-1] - inputs[0]) + 1
        if size > LONGEST:
            return None
        prior = np.asarray(np.bincount(inputs - first, weights, size), dtype=np.float64)
        q = float(problem.q)
        return cls(
            first, q, float(1 - problem.q), prior, _running(prior, q), _running(prior[::-1], q)[::-1],
            geometric(q, size),
        )  # fmt: skip

    @property
    def totals(self) -> Array:
        """The weight of all inputs given each output."""
        found: Array = self.below + (self.above - self.prior)
        return found

    @property
    def chances(self) -> Array:
        """What `q^|x - t|` is multiplied by to be a probability: the ends have all that is clamped to them."""
        if len(self.prior) == 1:
            return np.ones(1)
        found = np.full(len(self.prior), self.rest / (1 + self.q))
        found[0] = found[-1] = 1 / (1 + self.q)
        return found

    def distances(self, power: int) -> tuple[Array, Array]:
        """The sums of `w(i) q^|k-i| |k-i|^power` over the inputs up to each `k`, and from it on; power 1 or 2."""
        found = []
        for turn in (slice(None), slice(None, None, -1)):
            before = self.q * np.concatenate(([0.0], _running(self.prior[turn], self.q)[:-1]))
            sums = _running(before, self.q)  # each step further adds the weight of all that is there already
            if power == 2:
                earlier = np.concatenate(([0.0], sums[:-1]))
                sums = _running(before + 2 * self.q * earlier, self.q)
            found.append(sums[turn])
        return found[0], found[1]

    def targets(self, objective: Objective) -> Whole:
        """What each output is mapped to, counted from `first`: the median of its posterior, or the rounded mean."""
        outputs, totals = np.arange(len(self.prior)), self.totals
        if objective == "mse":
            left, right = self.distances(1)
            means = np.divide(right - left, totals, out=np.zeros(len(totals)), where=totals > 0)
            return np.clip(outputs + np.rint(means).astype(np.int64), 0, len(outputs) - 1)
        low, high = np.zeros_like(outputs), np.full_like(outputs, len(outputs) - 1)
        while np.any(low < high):
            middle = (low + high) // 2
            enough = self._reaches_half(outputs, middle, totals / 2)
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        return np.where(totals > 0, low, outputs)

    def _reaches_half(self, outputs: Whole, places: Whole, half: Array) -> NDArray[np.bool_]:
        """Whether the inputs up to each place have half of the weight, given each output."""
        following = np.minimum(places + 1, len(outputs) - 1)
        left = self.powers[np.abs(outputs - places)] * self.below[places]
        right = self.powers[np.abs(following - outputs)] * self.above[following]
        right[places == len(outputs) - 1] = 0.0
        found: NDArray[np.bool_] = np.where(places <= outputs, left >= half, right <= half)
        return found

    def errors(self, targets: Whole, objective: Objective) -> Array:
        """The sum of `w(i) q^|i-t| loss(i - target)` for each output `t`."""
        left, right = self.distances(1)
        shift = (targets - np.arange(len(targets))).astype(np.float64)
        if objective == "mse":
            squares, others = self.distances(2)
            found: Array = squares + others - 2 * shift * (right - left) + shift * shift * self.totals
        else:
            far = self.powers[np.abs(shift).astype(np.int64)]
            beyond = 2 * far * np.where(shift <= 0, left[targets], right[targets])
            found = beyond + np.abs(shift) * self.totals + np.where(shift <= 0, right - left, left - right)
        return np.maximum(found, 0.0)


def _running(values: Array, q: float) -> Array:
    """`u(k) = values(k) + q u(k-1)`."""
    return np.fromiter(accumulate(values.tolist(), lambda sum_, value: value + q * sum_), np.float64, len(values))


def _belief(problem: SingleLTE) -> tuple[Whole, Array]:
    """The inputs that count, in order, and how likely each is; an input may stand there once for each prior."""
    runs = [
        (law.total, float(weight)) for weight, law in zip(problem.weights, problem.populations, strict=True) if weight
    ]
    parts = [(first, weight * chances) for law, weight in runs for first, chances in (_probabilities(law),)]
    inputs = np.concatenate([np.arange(first, first + len(chances)) for first, chances in parts])
    weights = np.concatenate([chances for _, chances in parts])
    order = np.argsort(inputs, kind="stable")
    kept = _counting(weights[order])
    return inputs[order][kept], weights[order][kept]


def _counting(weights: Array) -> slice:
    """All but what is next to nothing at either end."""
    places = np.flatnonzero(weights > TINY * weights.max())
    return slice(int(places[0]), int(places[-1]) + 1)


def _probabilities(law: Pmf) -> tuple[int, Array]:
    """The first value that counts, and the probabilities from there on."""
    if not isinstance(law, BinomialPmf):
        with precision():
            return 0, np.array([float(value) for value in law.balls(0, law.last)])
    low, high = likely(law, SHARE)
    odds = float(law.p / (1 - law.p))
    k = np.arange(low - law.shift, high - law.shift + 1).astype(np.float64)
    steps = np.ones(len(k))  # from each probability to the next
    steps[1:] = (law.n - k[:-1]) / k[1:] * odds
    for start in range(0, len(k), BLOCK):
        steps[start] = float(law.balls(low + start, low + start)[0])
        np.multiply.accumulate(steps[start : start + BLOCK], out=steps[start : start + BLOCK])
    return low, steps
