"""A, section VI-E: "privacy for a prior implies privacy for its convolution with anything".

True if noise is added; false for a matrix, which treats inputs differently. Both are proved here in exact arithmetic.
"""

from fractions import Fraction
from random import Random

import pytest

from optdp import Population, SingleLTE, epsilon_under, solve
from tests.exact_checker import convolve, exp_below

Law = list[Fraction]
Table = list[dict[int, Fraction]]


def outputs_given(others: Law, table: Table, contribution: int) -> dict[int, Fraction]:
    """`Pr[s | w]`: the others' sum plus `w` goes through the table."""
    found: dict[int, Fraction] = {}
    for y, chance in enumerate(others):
        for s, value in table[y + contribution].items():
            found[s] = found.get(s, Fraction(0)) + chance * value
    return {s: value for s, value in found.items() if value}


def worst_quotient(others: Law, table: Table) -> Fraction | None:
    """The largest quotient of the two secrets 0 and 1 over all outputs; None if it is infinite."""
    zero, one = outputs_given(others, table, 0), outputs_given(others, table, 1)
    if zero.keys() != one.keys():
        return None
    return max(max(zero[s] / one[s], one[s] / zero[s]) for s in zero)


def table_of(matrix) -> Table:
    """The rows of a matrix without a tail, as the rationals they are."""
    assert matrix.q is None
    return [{s: Fraction(weight, matrix.denominator) for s, weight in row} for row in matrix.rows]


def binomial(n: int, p: Fraction) -> Law:
    law = [Fraction(1)]
    for _ in range(n):
        law = convolve(law, [1 - p, p])
    return law


def test_smallest_counterexample():
    """Two answers, four inputs: perfectly private under the concentrated prior, quotient 3 under the wider one."""
    half = [Fraction(1, 2), Fraction(1, 2)]
    table = [{0: Fraction(9, 10), 1: Fraction(1, 10)}] * 3 + [{0: Fraction(1, 10), 1: Fraction(9, 10)}]
    assert worst_quotient(half, table) == 1
    assert worst_quotient(convolve(half, half), table) == 3


def test_counterexample_on_a_common_range():
    """No input is new under the wider prior but the last, which gets the row of its neighbour. Still false."""
    concentrated = [Fraction(v, 10) for v in (1, 8, 1)]
    wider = convolve(concentrated, [Fraction(1, 2), Fraction(1, 2)])
    # One output's column; the other takes the rest. Under the first prior the secrets meet a quotient of 2 or less.
    column = [Fraction(v, 100) for v in (40, 10, 20, 100, 100)]
    table = [{0: value, 1: 1 - value} if value < 1 else {0: value, 1: Fraction(0)} for value in column]
    assert worst_quotient(concentrated, table) == Fraction(27, 14)
    assert worst_quotient(wider, table) == Fraction(119, 41)


@pytest.mark.parametrize("n", [4, 10, 20])
def test_designed_matrix_is_not_private_under_the_wider_prior(n):
    """The matrix for half of the people uncertain, and the prior with all of them uncertain: infinite epsilon."""
    full = Population.binomial(n, "0.5")
    problem = SingleLTE(full.conservative("0.5"), "0.5", tail="none")
    solution = solve(problem)
    assert solution.status == "optimal"
    known = round(Fraction(n, 4))
    concentrated = [Fraction(0)] * known + binomial(n // 2 - 1, Fraction(1, 2))
    table = table_of(solution.mechanism)
    quotient = worst_quotient(concentrated, table)
    assert quotient is not None
    assert quotient <= exp_below(Fraction(1, 2))
    assert worst_quotient(binomial(n - 1, Fraction(1, 2)), table) is None
    assert epsilon_under(problem, solution.mechanism, full) is None


def test_finite_counterexample():
    """With a fallback of 2 every output is possible for every input. Designed at 0.3, really above 1.3."""
    full = Population.binomial(20, "0.5")
    problem = SingleLTE(full.conservative("0.5"), "0.3", fallback_epsilon="2", tail="none")
    solution = solve(problem)
    table = table_of(solution.mechanism)
    concentrated = [Fraction(0)] * 5 + binomial(9, Fraction(1, 2))
    before, after = worst_quotient(concentrated, table), worst_quotient(binomial(19, Fraction(1, 2)), table)
    assert before is not None
    assert before <= exp_below(Fraction(3, 10))
    assert after is not None
    assert after > exp_below(Fraction(13, 10))
    found = epsilon_under(problem, solution.mechanism, full)
    assert found is not None
    assert found > Fraction(13, 10)


@pytest.mark.parametrize("seed", range(20))
def test_added_noise_stays_private_under_any_wider_prior(seed):
    """`Pr[s | w]` under the wider prior is a mixture of shifts of the old one, so no quotient can grow."""
    random = Random(seed)

    def law(size: int) -> Law:
        weights = [random.randint(0, 9) for _ in range(size - 1)] + [random.randint(1, 9)]
        return [Fraction(weight, sum(weights)) for weight in weights]

    concentrated, extra = law(random.randint(1, 5)), law(random.randint(1, 4))
    wider, q = convolve(concentrated, extra), Fraction(random.randint(1, 9), 10)

    def worst(others: Law) -> Fraction:
        """The largest quotient of geometric noise; outside the range of inputs it is constant (A, Lemma 3)."""
        found = Fraction(1)
        for s in range(-2, len(others) + 3):
            zero = sum((v * q ** abs(s - y) for y, v in enumerate(others)), Fraction(0))
            one = sum((v * q ** abs(s - y - 1) for y, v in enumerate(others)), Fraction(0))
            found = max(found, zero / one, one / zero)
        return found

    assert worst(wider) <= worst(concentrated) <= 1 / q


def test_several_priors_keep_both():
    """What does help: the guarantee is asked for under both priors."""
    full = Population.binomial(20, "0.5")
    concentrated = full.conservative("0.5")
    solution = solve(SingleLTE([full, concentrated], "0.3", tail="none"))
    table = table_of(solution.mechanism)
    for others in (binomial(19, Fraction(1, 2)), [Fraction(0)] * 5 + binomial(9, Fraction(1, 2))):
        quotient = worst_quotient(others, table)
        assert quotient is not None
        assert quotient <= exp_below(Fraction(3, 10))
