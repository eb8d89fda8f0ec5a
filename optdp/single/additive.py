"""The best noise that does not depend on the input: one law `f` for all, with geometric tails (`form = "additive"`).

    minimise    sum over e of  loss(e) f(e)
    subject to  f >= 0,  sum over e of f(e) = 1,  f(e) = (1-q)/(1+q) q^|e| for |e| > reach
                h(t + d) <= e^eps h(t)  and  h(t) <= e^eps h(t + d)                 every integer t, every step d
                f(e + d) <= e^fallback f(e)  and the other way round                with a `fallback_epsilon`
                sum over e of |e| f(e) <= 2q / (1 - q^2)                            `never_worse`, for the MSE

where `h = g * f` and `g` is the law of what all but one person contribute (`added`); each kind of person has its own.

**Scale.** Probabilities of outputs range over hundreds of orders of magnitude, and no solver takes that. Let `L` be the
geometric law and `G = g * L`. The variables are `u(e) = f(e) / L(e)`, and the row of `t` is divided by `G(t)`: then
`h(t) / G(t)` is the mean of `u` under the posterior of the noise given `t`, and `u = 1`, geometric noise, keeps every
row. Rows are written where they are needed alone: after each solution, at the outputs that break the rule most. Where
the sum of the others spreads far, noise that is a multiple of a much smaller number is as good as any.

**Tails.** Towards either side `h` rises and falls by at most `e^eps` a step, so that the tails limit how large it can
be in the middle: if they fall by `e^-eps` a step, the error of `Bin(100, .1)` at .3 is 2.241 instead of 2.139. So they
fall a little slower, `q = e^(-.85 eps)`, which costs what lies beyond the reach, next to nothing.

**Slack.** The program is solved for a slightly smaller epsilon, so that the rounding of solver and integers stays
within what is asked for; if the certificate does not agree, the slack is made larger.
The reach grows until that gains nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import highspy
import numpy as np
import numpy.typing as npt
from scipy import sparse

import optdp.work as work
from optdp.errors import SolverError
from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.cuts import WORD
from optdp.numbers.exact import geometric_ratio, log
from optdp.numbers.ordered import dot, exp, exps, log_sum, log_sums, logs, powers
from optdp.numbers.pmf import BinomialPmf, ExactPmf
from optdp.programs.backends import chosen
from optdp.programs.growing import solved
from optdp.programs.highs import model_of, new_highs
from optdp.programs.program import LinearProgram
from optdp.single.added import PersonKind, kinds_of, span_of
from optdp.single.added_proof import LONGEST, NoisePrices, Rule
from optdp.single.problem import SingleLTE
from optdp.work import Progress

Array = npt.NDArray[np.float64]

SLACKS = (1e-6, 1e-5, 1e-4, 3e-4, 1e-3)
"""By how much smaller the program's epsilon is, in turn, until the certificate agrees."""
GAIN = 1e-5
"""The reach grows while that lowers the error by more than this share."""
NOTHING = 1e-13
"""An error below this share of that of geometric noise is not made smaller."""
START, GROWTH, DEEPEST, FARTHEST = 18.0, 1.5, 60.0, 20_000
"""The first reach, in units of `1/log(1/q)`; by what factor it grows; where that ends, in these units and as it is."""
FALL = Fraction(17, 20)
"""By how much the logarithm of the tails falls with each step, in units of epsilon."""
COLUMNS, FINE = 250, 16
"""With a longer reach the noise keeps to multiples of a number, if many of these fit into the others' spread."""
SPARE = 40
"""Bits that the weights have beyond what the rarest noise needs."""
ROUNDS = 60
"""So many times rows are added, at most."""


@dataclass(frozen=True)
class Drafted:
    """A law of noise in floating point: `u(e) = f(e) / L(e)` for `-reach <= e <= reach`."""

    q: Fraction
    reach: int
    u: Array
    value: float
    """Its error, as the solver says."""
    status: str = "optimal"


def draft(problem: SingleLTE, slack: float, progress: Progress) -> Drafted:
    """The best noise for an epsilon that is smaller by a share of `slack`."""
    share = 1 - Fraction(slack)
    q = geometric_ratio(problem.epsilon / problem.largest * FALL)
    cap = float(problem.baseline)
    width = -log(q)
    reach, best = max(math.ceil(START / width), 6), None
    while True:
        progress(f"the best noise up to {reach}")
        try:
            found = _Program(problem, q, reach, float(share)).solved(progress)
        except KeyboardInterrupt:
            if best is None:
                raise
            return replace(best, status="interrupted")
        if best is not None and found.value > best.value * (1 - GAIN):
            return best if best.value <= found.value else found
        if found.value < NOTHING * cap or reach >= min(FARTHEST, DEEPEST / width):
            return found
        best, reach = found, min(math.ceil(GROWTH * reach), FARTHEST)


def rounded(problem: SingleLTE, drafted: Drafted) -> AddedNoise:
    """The noise with integer weights over a power of two, with bits to spare for the rarest."""
    reach, log_q = drafted.reach, log(drafted.q)
    bits = WORD * math.ceil((SPARE - reach * log_q / log(2)) / WORD)
    places = np.arange(-reach, reach + 1)
    shares = np.maximum(drafted.u, 0.0) * exps(np.abs(places) * log_q)
    exact = [Fraction(value) for value in shares.tolist()]
    total, denominator = sum(exact, Fraction(0)), 1 << bits
    weights = [math.floor(value / total * denominator) for value in exact]
    weights[max(range(len(weights)), key=weights.__getitem__)] += denominator - sum(weights)
    row = tuple((e, weight) for e, weight in zip(places.tolist(), weights, strict=True) if weight)
    return AddedNoise(problem.last, drafted.q, reach, denominator, row)


# ---------------------------------------------------------------------- prices for a lower bound

DEPTH = 17.0
"""Rules are priced at outputs whose probability under geometric noise is at least `e^-17` of the largest."""
MOST_RULES = 3000


def priced(problem: SingleLTE) -> NoisePrices | None:
    """Prices that prove a lower bound for all noise that may be added; None if there would be too many.

    The same program without tails, for all outputs that are not too rare, and noise as far as these can come from.
    """
    crowd = []
    for kind in kinds_of(problem):
        if not isinstance(kind.law, ExactPmf) or kind.law.last >= LONGEST:
            return None
        others = _Others(kind, problem.q, math.ceil((DEPTH + 3) / -log(problem.q)))
        likely = np.flatnonzero(others.plain > others.plain.max() - DEPTH) + others.first
        crowd.append((others, int(likely[0]), int(likely[-1])))
    rules: list[Rule] = [
        (number, t, d, way)
        for number, (others, first, last) in enumerate(crowd)
        for d in others.steps
        for t in range(first, last + 1 - d)
        for way in (0, 1)
    ]
    if len(rules) > MOST_RULES:
        return None
    ends = [_support(others, first, last) for others, first, last in crowd]
    e = np.arange(min(low for low, _ in ends), max(high for _, high in ends) + 1)
    most, rows = exp(float(problem.epsilon / problem.steps)), np.zeros((len(rules), len(e)))
    scales = np.zeros(len(rules))
    for i, (number, t, d, way) in enumerate(rules):
        others = crowd[number][0]
        one, other = (t, t + d) if way == 0 else (t + d, t)
        scale = max(others.plain[one - others.first], others.plain[other - others.first])
        rows[i] = exps(others.at(other - e) - scale) - most * exps(others.at(one - e) - scale)
        scales[i] = scale
    program = sparse.vstack([np.ones((1, len(e))), sparse.csr_array(rows)]).tocsr()
    power = 1 if problem.objective == "mae" else 2
    highs = new_highs(solver="simplex", dual_feasibility_tolerance=1e-10)
    lower, upper = np.r_[1.0, np.full(len(rules), -np.inf)], np.r_[1.0, np.zeros(len(rules))]
    highs.passModel(model_of(LinearProgram(np.abs(e).astype(np.float64) ** power, program, lower, upper)))
    answer = solved(highs)
    if answer.duals is None or (answer.status != "optimal" and chosen.get().own):
        return None
    prices = np.maximum(-answer.duals[1:], 0.0) * exps(-scales)
    kept = np.flatnonzero(np.isfinite(prices) & (prices > 0))
    return NoisePrices(tuple(rules[i] for i in kept), tuple(prices[kept].tolist()))


def _support(others: _Others, first: int, last: int) -> tuple[int, int]:
    """The noise that takes a sum which is not next to impossible to one of the outputs `first..last`."""
    floor = others.plain.max() - DEPTH - 30
    likely = np.flatnonzero(others.others > floor) + others.start
    return first - int(likely[-1]), last - int(likely[0])


# ---------------------------------------------------------------------- the program


class _Others:
    """One kind of person: the laws of the others, and of what is seen under geometric noise, as logarithms."""

    def __init__(self, kind: PersonKind, q: Fraction, reach: int) -> None:
        span, self.steps = span_of(kind, reach, q), kind.steps
        self.first, self.last, self.reach = span.first, span.last, reach
        self.start = span.first - reach - 1
        end = span.last + reach + 1
        self.log_q = log(q)
        self.log_c = log(1 - q) - log(1 + q)
        self.others = _logs(kind, self.start, end)
        places = np.arange(self.start, end + 1).astype(np.float64)
        with np.errstate(invalid="ignore"):
            self.below = log_sums(self.others - places * self.log_q)
            self.above = log_sums((self.others + places * self.log_q)[::-1])[::-1]
        chances = exps(self.others - self.others.max())
        mean = dot(chances, places) / chances.sum()
        self.spread = math.sqrt(dot(chances, np.square(places - mean)) / chances.sum())
        """The standard deviation of what the others contribute."""
        t = np.arange(self.first, self.last + 1)
        self.plain = log_sum(self._left(t, 0), self._right(t, 1)) + self.log_c

    def at(self, x: npt.NDArray[np.int64]) -> Array:
        """The logarithms of the law of the others, at any places."""
        inside = (x >= self.start) & (x - self.start < len(self.others))
        found: Array = np.where(inside, self.others[np.where(inside, x - self.start, 0)], -np.inf)
        return found

    def _left(self, t: npt.NDArray[np.int64], reach: int) -> Array:
        """The logarithm of the sum over `x <= t - reach` of `g(x) q^(t-x)`."""
        found: Array = self.below[t - reach - self.start] + t * self.log_q
        return found

    def _right(self, t: npt.NDArray[np.int64], reach: int) -> Array:
        found: Array = self.above[t + reach - self.start] - t * self.log_q
        return found

    def tails(self, t: npt.NDArray[np.int64]) -> Array:
        """What the tails add to `h(t) / G(t)`."""
        beyond = log_sum(self._left(t, self.reach + 1), self._right(t, self.reach + 1)) + self.log_c
        found: Array = exps(beyond - self.plain[t - self.first])
        return found

    def posterior(self, t: npt.NDArray[np.int64], e: npt.NDArray[np.int64]) -> Array:
        """`g(t - e) L(e) / G(t)`, a row for each `t`."""
        shares = self.others[t[:, None] - e - self.start] + np.abs(e) * self.log_q + self.log_c
        found: Array = exps(shares - self.plain[t - self.first][:, None])
        return found

    def seen(self, u: Array) -> Array:
        """`h(t) / G(t)` for all outputs of the span."""
        t = np.arange(self.first, self.last + 1)
        found = self.tails(t)
        for e in (np.flatnonzero(u > 0) - self.reach).tolist():
            shares = self.others[t - e - self.start] + (abs(e) * self.log_q + self.log_c) - self.plain
            found += u[e + self.reach] * exps(shares)
        return found


class _Program:
    """The program for one reach."""

    def __init__(self, problem: SingleLTE, q: Fraction, reach: int, share: float) -> None:
        self.problem, self.q, self.reach, self.share = problem, q, reach, share
        log_q = log(q)
        self.limit = float(problem.epsilon) / problem.steps * share
        """What a step may reveal, as a logarithm."""
        self.crowd = [_Others(kind, q, reach) for kind in kinds_of(problem)]
        stride = 1
        if problem.chain_epsilon is None:
            stride = max(min(reach // COLUMNS, int(min(others.spread for others in self.crowd) / FINE)), 1)
        self.places = np.unique(np.r_[np.arange(0, reach + 1, stride), -np.arange(0, reach + 1, stride)])
        self.geometric = exps(np.abs(self.places) * log_q) * float((1 - q) / (1 + q))
        power = 1 if problem.objective == "mae" else 2
        self.cost = np.abs(self.places) ** power * self.geometric
        self.outer = _tail_error(float(q), reach + 1, power)
        self.highs = new_highs(solver="simplex", primal_feasibility_tolerance=1e-10, dual_feasibility_tolerance=1e-9)

    def solved(self, progress: Progress) -> Drafted:
        """Solve, look for outputs that break the rule, add their rows, and so on."""
        self._begin()
        rows: set[tuple[int, int, int]] = set()
        for others_number, others in enumerate(self.crowd):
            count = others.last - others.first + 1
            t = np.unique(np.linspace(others.first, others.last - others.steps[-1], min(count, 160)).astype(np.int64))
            for d in {others.steps[0], others.steps[-1]}:
                self._add(others, t, d)
                rows |= {(others_number, int(place), d) for place in t}
        for turn in range(ROUNDS):
            work.check()
            u = self._run()
            worst, added = 0.0, 0
            for number, others in enumerate(self.crowd):
                ratios = logs(np.maximum(others.seen(u), 1e-300)) + others.plain
                for d in others.steps:
                    excess = np.abs(ratios[d:] - ratios[:-d]) - self.limit
                    worst = max(worst, float(excess.max()))
                    t = _peaks(excess, 1e-3 * self.limit * SLACKS[0]) + others.first
                    t = np.array([place for place in t.tolist() if (number, place, d) not in rows], dtype=np.int64)
                    if len(t):
                        self._add(others, t, d)
                        rows |= {(number, int(place), d) for place in t}
                        added += len(t)
            progress(f"the best noise up to {self.reach}: {len(rows)} outputs, off by {worst:.1e}, round {turn + 1}")
            if not added:
                break
        value = dot(self.cost, u[self.places + self.reach]) + self.outer
        return Drafted(self.q, self.reach, u, value)

    def _begin(self) -> None:
        inside = 1 - 2 * exp((self.reach + 1) * log(self.q)) / (1 + float(self.q))
        whole = np.array([inside])
        program = LinearProgram(self.cost, sparse.csr_array(self.geometric[None, :]), whole, whole)
        self.highs.passModel(model_of(program))
        problem = self.problem
        if problem.objective == "mse" and problem.never_worse:
            absolute = np.abs(self.places) * self.geometric
            limit = float(problem.cap) * (1 - 1e-9) - _tail_error(float(self.q), self.reach + 1, 1)
            self._rows([absolute], [limit])
        if problem.chain_epsilon is not None:
            self._keep_ordinary(float(problem.chain_epsilon) / problem.steps * self.share)

    def _keep_ordinary(self, limit: float) -> None:
        """`f(e + d) <= e^limit f(e)` and the other way round, divided by the larger one under geometric noise."""
        size = len(self.places)
        for d in range(1, self.problem.largest + 1) if self.problem.adjacency == "all" else (1,):
            for i in range(-d, size):
                j = i + d
                near = abs(i - self.reach), abs(j - self.reach)
                one, other = (exp((place - min(near)) * log(self.q)) for place in near)
                for a, b in (((i, one), (j, other)), ((j, other), (i, one))):
                    row, bound = np.zeros(size), 0.0
                    for (place, value), sign in ((a, 1.0), (b, -exp(limit))):
                        if 0 <= place < size:
                            row[place] += sign * value
                        else:
                            bound -= sign * value
                    self._rows([row], [bound])

    def _add(self, others: _Others, t: npt.NDArray[np.int64], d: int) -> None:
        near, far = others.posterior(t, self.places), others.posterior(t + d, self.places)
        tails, far_tails = others.tails(t), others.tails(t + d)
        rise = exps(others.plain[t + d - others.first] - others.plain[t - others.first])
        most = exp(self.limit)
        scale = np.maximum(rise, 1 / rise)
        up = (rise / scale)[:, None] * far - (most / scale)[:, None] * near
        down = near / scale[:, None] - (most * rise / scale)[:, None] * far
        self._rows(
            [*up, *down],
            [*((most * tails - rise * far_tails) / scale), *((most * rise * far_tails - tails) / scale)],
        )

    def _rows(self, rows: list[Array], limits: list[float]) -> None:
        for row, limit in zip(rows, limits, strict=True):
            places = np.flatnonzero(np.abs(row) > 1e-14)
            self.highs.addRow(-highspy.kHighsInf, limit, len(places), places, row[places])

    def _run(self) -> Array:
        answer = solved(self.highs)
        if answer.x is None or (answer.status != "optimal" and chosen.get().own):
            raise SolverError(f"the solver ended with {answer.said}")
        found = np.zeros(2 * self.reach + 1)
        found[self.places + self.reach] = np.maximum(answer.x, 0.0)
        return found


def _peaks(excess: Array, least: float, blocks: int = 40) -> npt.NDArray[np.int64]:
    """Where it is largest, in each of some blocks, if it is larger than that."""
    size = max(len(excess) // blocks, 1)
    starts = range(0, len(excess), size)
    found = [start + int(np.argmax(excess[start : start + size])) for start in starts]
    return np.array([place for place in found if excess[place] > least], dtype=np.int64)


def _logs(kind: PersonKind, first: int, last: int) -> Array:
    """The logarithms of the probabilities of `first..last`; minus infinity outside the support."""
    law, found = kind.law, np.full(last - first + 1, -np.inf)
    if isinstance(law, ExactPmf):
        whole = log(law.denominator)
        for x in range(max(first, 0), min(last, law.last) + 1):
            if law.weights[x]:
                found[x - first] = log(law.weights[x]) - whole
        return found
    assert isinstance(law, BinomialPmf)
    low, high = max(first - law.shift, 0), min(last - law.shift, law.n)
    mode = min(max(law.mode - law.shift, low), high)
    k = np.arange(low, high).astype(np.float64)
    odds = log(law.p.numerator) - log((1 - law.p).numerator * law.p.denominator // (1 - law.p).denominator)
    steps = logs((law.n - k) / (k + 1)) + odds
    shares = np.zeros(high - low + 1)
    shares[mode - low + 1 :] = np.cumsum(steps[mode - low :])
    shares[: mode - low] = -np.cumsum(steps[: mode - low][::-1])[::-1]
    found[low + law.shift - first : high + law.shift - first + 1] = shares
    return found


def _tail_error(q: float, d: int, power: int) -> float:
    """The error of both tails of geometric noise from `d` on."""
    start = 2 * float(powers(q, d))
    if power == 1:
        return start * (d - (d - 1) * q) / (1 - q * q)
    return start * (d * d + (1 + 2 * d - 2 * d * d) * q + (d - 1) ** 2 * q * q) / ((1 - q) * (1 - q) * (1 + q))
