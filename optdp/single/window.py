"""Which inputs of a problem have a row: all of them, or for very many people those that are likely at all."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

from optdp.errors import ProblemError
from optdp.mechanism.matrix import Outside
from optdp.numbers.pmf import BinomialPmf, ExactPmf, Pmf
from optdp.single.laws import Shape
from optdp.single.problem import SingleLTE

FULL_LIMIT = 5000
"""Largest sum for which every input has a row of its own."""

ORDINARY_LIMIT = 1200
"""Most rows of a table with ordinary privacy: each of them has all outputs."""


def choose_shape(problem: SingleLTE) -> Shape:
    """The inputs that get a row, and what the others get.

    With geometric tails an input without a row gets plain geometric noise, and so does every output far away.
    """
    last, tail = problem.last, problem.tail == "geometric"
    q = problem.q if tail else None
    if last > ORDINARY_LIMIT and only_ordinary(problem) and not tail and not problem.never_worse:
        return _clamped(problem)
    if last <= FULL_LIMIT:
        return Shape((0, last), (0, last), q, "error", last)
    if not is_pair_form(problem):
        raise ProblemError(
            f"Larger sums than {FULL_LIMIT:,} are for one prior, one kind of person with contributions 0 and 1, no "
            f"fallback, and an observer who knows exactly the population or, without never_worse, everybody else. "
            f"Found sums up to {last:,}. Use fewer people, or coarser contributions."
        )
    if not tail and problem.never_worse:
        if last > 20 * FULL_LIMIT:
            raise ProblemError(
                f"A table for {last} people without tails has a row for every input and would need about "
                f'{last * 3000 / 1e9:,.1f} GB. Use tail = "geometric" or never_worse = false.'
            )
        return Shape((0, last), (0, last), None, "error", last)
    low, high = likely_inputs(problem, 1e-42)
    margin = math.ceil(40 / float(problem.epsilon)) if tail else 0
    window = (max(low - margin, 0), min(high + margin, last))
    outside: Outside = "error" if window == (0, last) else "geometric" if tail else "clamp"
    return Shape(window, window, q, outside, last)


def _clamped(problem: SingleLTE) -> Shape:
    """For ordinary privacy alone: rows for the likely inputs; others are treated as the nearest of these.

    Neighbours are then treated as neighbours or alike, so that this is as private.
    """
    low, high = likely_inputs(problem, 1e-24)
    if high - low >= ORDINARY_LIMIT:
        raise ProblemError(
            f"A table with ordinary privacy and without tails has at most {ORDINARY_LIMIT:,} rows. "
            f"Found {high - low + 1:,} "
            'likely inputs. Use tail = "geometric": where sums spread so far, geometric noise is next to optimal.'
        )
    return Shape((low, high), (low, high), None, "error" if (low, high) == (0, problem.last) else "clamp", problem.last)


def is_pair_form(problem: SingleLTE) -> bool:
    """Whether an output has just two privacy constraints: one prior, one kind of person, contributions 0 and 1."""
    people = problem.populations[0].people
    return (
        len(problem.populations) == 1
        and len(people) == 1
        and people[0].largest == 1
        and problem.chain_epsilon is None
        and not problem.watched
    )


def only_ordinary(problem: SingleLTE) -> bool:
    """Whether all that is asked for is ordinary privacy, between neighbours that differ by one unit."""
    everybody = all(one.known == "all" for one in problem.observers)
    return everybody and (problem.adjacency == "unit" or problem.largest == 1)


def only_noise(problem: SingleLTE) -> bool:
    """Whether an input can be no better than under geometric noise, but for what is gained at the ends of the range.

    So it is where no input may be worse than that and ordinary privacy at epsilon is asked for. With geometric tails
    nothing is gained at the ends either, and only that noise is left. The proof is in docs/mathematics.md.
    """
    unit = problem.adjacency == "unit" or problem.largest == 1
    return problem.never_worse and unit and problem.chain_epsilon == problem.epsilon


def likely_inputs(problem: SingleLTE, share: float) -> tuple[int, int]:
    """A run of inputs that leaves out at most `share` of any prior that counts, on either side."""
    runs = [
        likely(prior.total, share) for weight, prior in zip(problem.weights, problem.populations, strict=True) if weight
    ]
    return min(low for low, _ in runs), max(high for _, high in runs)


def likely(law: Pmf, share: float) -> tuple[int, int]:
    """The same of one law."""
    if isinstance(law, BinomialPmf):
        return law.shift + _chernoff(law.n, law.p, share, False), law.shift + _chernoff(law.n, law.p, share, True)
    assert isinstance(law, ExactPmf)
    least = int(Fraction(share) * law.denominator)
    low = bisect_right(list(accumulate(law.weights)), least)
    return low, law.last - bisect_right(list(accumulate(reversed(law.weights))), least)


def _chernoff(n: int, p: Fraction, share: float, upwards: bool) -> int:
    """The nearest `k` to the mean for which `exp(-n KL(k/n, p)) <= share`, which bounds what lies beyond it."""
    mean, wanted = math.ceil(n * p) if upwards else math.floor(n * p), -math.log(share)
    inner, outer = 0, (n - mean if upwards else mean)  # away from the mean
    while inner < outer:
        middle = (inner + outer) // 2
        if _divergence(n, p, mean + middle if upwards else mean - middle) >= wanted:
            outer = middle
        else:
            inner = middle + 1
    return mean + outer if upwards else mean - outer


def _divergence(n: int, p: Fraction, k: int) -> float:
    """`n KL(k/n, p)`, with no more cancellation than there must be."""
    hits = n * p
    return _weighted_log(k, hits) + _weighted_log(n - k, n - hits)


def _weighted_log(count: int, mean: Fraction) -> float:
    """`count log(count / mean)`."""
    if count == 0:
        return 0.0
    apart = count / mean - 1
    if abs(apart) < 1:
        return count * math.log1p(apart)
    return count * (math.log(count) - math.log(mean.numerator) + math.log(mean.denominator))
