"""Which inputs of a problem have a row: all of them, or for very many people those that are likely at all."""

from __future__ import annotations

import math

from optdp.errors import ProblemError
from optdp.math.pmf import BinomialPmf, ExactPmf
from optdp.noise.laws import Shape
from optdp.noise.matrix import Outside
from optdp.noise.single import SingleLTE

FULL_LIMIT = 5000
"""Largest sum for which every input has a row of its own."""


def choose_shape(problem: SingleLTE) -> Shape:
    """The inputs that get a row, and what the others get.

    With geometric tails an input without a row gets plain geometric noise, and so does every output far away.
    """
    last, tail = problem.last, problem.tail == "geometric"
    q = problem.q if tail else None
    if last <= FULL_LIMIT:
        return Shape((0, last), (0, last), q, "error", last)
    if not is_pair_form(problem):
        raise ProblemError(
            f"The program for sums up to {last} has {last * last:,} unknowns and would need about "
            f"{last * last * 400 / 1e9:,.0f} GB. Use coarser contributions, or one kind of people with 0 or 1."
        )
    if not tail and problem.never_worse:
        if last > 20 * FULL_LIMIT:
            raise ProblemError(
                f"A table for {last} people without tails has a row for every input and would need about "
                f'{last * 3000 / 1e9:,.1f} GB. Use tail = "geometric" or never_worse = false.'
            )
        return Shape((0, last), (0, last), None, "error", last)
    low, high = _likely(problem)
    margin = math.ceil(40 / float(problem.epsilon)) if tail else 0
    window = (max(low - margin, 0), min(high + margin, last))
    outside: Outside = "error" if window == (0, last) else "geometric" if tail else "clamp"
    return Shape(window, window, q, outside, last)


def is_pair_form(problem: SingleLTE) -> bool:
    """Whether an output has just two privacy constraints: one prior, one kind of person, contributions 0 and 1."""
    people = problem.populations[0].people
    return (
        len(problem.populations) == 1
        and len(people) == 1
        and people[0].largest == 1
        and problem.fallback_epsilon is None
    )


def _likely(problem: SingleLTE) -> tuple[int, int]:
    """A run of inputs that holds all but a negligible share (below 1e-40) of the prior."""
    law = problem.populations[0].total
    if isinstance(law, BinomialPmf):
        mean, deviation = law.n * law.p + law.shift, math.sqrt(law.n * law.p * (1 - law.p))
        reach = math.ceil(14 * deviation) + 100
        return max(math.floor(mean) - reach, 0), min(math.ceil(mean) + reach, law.last)
    assert isinstance(law, ExactPmf)
    threshold = max(law.weights) // 10**45
    likely = [x for x, chance in enumerate(law.weights) if chance > threshold]
    return likely[0], likely[-1]
