"""Populations against enumeration of every data set."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from optdp import Population, ProblemError
from optdp.numbers.exact import ball, precision, show, significant, to_fraction
from optdp.numbers.pmf import BinomialPmf, ExactPmf

laws = (
    st.lists(st.integers(0, 9), min_size=2, max_size=4)
    .filter(any)
    .map(lambda weights: [Fraction(weight, sum(weights)) for weight in weights])
)


def enumerate_sums(crowd: list[list[Fraction]]) -> dict[int, Fraction]:
    sums: dict[int, Fraction] = {}
    for values in itertools.product(*(range(len(law)) for law in crowd)):
        chance = Fraction(1)
        for law, value in zip(crowd, values, strict=True):
            chance *= law[value]
        sums[sum(values)] = sums.get(sum(values), Fraction(0)) + chance
    return sums


@given(st.lists(laws, min_size=1, max_size=4))
def test_independent_people_against_enumeration(crowd: list[list[Fraction]]) -> None:
    population = Population.independent(crowd)
    total = enumerate_sums(crowd)
    assert isinstance(population.total, ExactPmf)
    assert all(population.total.fraction(x) == total.get(x, 0) for x in range(population.last + 1))
    kinds = {tuple(law) for law in crowd}
    assert len(population.people) == len(kinds)
    assert sum(person.count for person in population.people) == len(crowd)
    found = {
        tuple(law.fraction(x) for x in range(population.last + 1))  # type: ignore[attr-defined]
        for person in population.people
        for law in person.conditionals
    }
    for law in kinds:
        rest = list(crowd)
        rest.remove(list(law))
        others = enumerate_sums(rest)
        for w in range(len(law)):
            assert tuple(others.get(x - w, Fraction(0)) for x in range(population.last + 1)) in found


def test_constructors_agree() -> None:
    a = Population.binomial(7, "0.3")
    b = Population.iid(7, ["0.7", "0.3"])
    c = Population.independent([["7/10", "3/10"]] * 7)
    d = Population.from_counts([7, 3], 7, smoothing=0)
    e = Population.from_samples([0] * 7 + [1] * 3, 7, smoothing=0)
    assert a.total == b.total == c.total == d.total == e.total
    assert a.people == b.people == c.people == d.people == e.people
    others = [a.people[0].conditionals[0].fraction(x) for x in range(7)]  # type: ignore[attr-defined]
    f = Population.from_others(others, ["0.7", "0.3"])
    assert f.people[0].conditionals == a.people[0].conditionals
    assert [f.total.fraction(x) for x in range(8)] == [a.total.fraction(x) for x in range(8)]  # type: ignore[attr-defined]


def test_floats_are_the_binary_fractions_they_are() -> None:
    assert to_fraction(0.1, "p") == Fraction(3602879701896397, 36028797018963968)
    assert to_fraction("0.1", "p") == Fraction(1, 10)


@given(st.fractions())
def test_show_reads_back(value: Fraction) -> None:
    assert Fraction(show(value)) == value


@given(st.fractions(min_value=0, max_value=1))
def test_significant_digits(value: Fraction) -> None:
    assert abs(significant(value, 20) - value) <= value / 10**19


@pytest.mark.parametrize(("n", "p", "shift"), [(40, "0.5", 0), (200, "0.07", 3), (1000, "0.9", 0)])
def test_closed_form_of_the_binomial(n: int, p: str, shift: int) -> None:
    exact = Population.binomial(n, p).total
    assert isinstance(exact, ExactPmf)
    exact = exact.shifted(shift, n + shift)
    closed = BinomialPmf(n, Fraction(p), shift, n + shift)
    with precision():
        for a, b in zip(exact.balls(0, n + shift), closed.balls(0, n + shift), strict=True):
            assert a.overlaps(b)
            assert b == 0 or b.rel_accuracy_bits() > 200
        for edge in (-7, -1, 0, shift, n // 3, n // 2, n + shift, n + shift + 1, n + shift + 9):
            for q in (arb(1), ball(Fraction(9, 10))):
                for upwards in (True, False):
                    beyond = range(edge + 1, n + shift + 1) if upwards else range(edge)
                    direct = sum((ball(exact.fraction(x)) * q ** abs(x - edge) for x in beyond), arb(0))
                    assert direct.overlaps(closed.geometric_sum(edge, q, upwards))
                    assert direct.overlaps(exact.geometric_sum(edge, q, upwards))
        q = ball(Fraction(4, 5))
        assert exact.power_mean(q).overlaps(closed.power_mean(q))


def test_conservative_keeps_inputs_and_concentrates() -> None:
    full = Population.binomial(40, "0.5")
    narrow = full.conservative("0.25")
    assert narrow.last == 40
    assert isinstance(narrow.total, ExactPmf)
    mean = sum(x * narrow.total.fraction(x) for x in range(41))
    variance = sum(x * x * narrow.total.fraction(x) for x in range(41)) - mean**2
    assert (mean, variance) == (20, Fraction(10, 4))
    assert narrow.spec["conservative"] == "0.25"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Population.binomial(0, "0.5"), "at least 1 person"),
        (lambda: Population.binomial(10, "1.5"), r"\[0, 1\]"),
        (lambda: Population.binomial(10, float("nan")), "finite"),
        (lambda: Population.binomial(10, "nan"), "decimal"),
        (lambda: Population.binomial(10, "1e-99999"), "decimal|exponent"),
        (lambda: Population.binomial(10.5, "0.5"), "whole"),  # type: ignore[arg-type]
        (lambda: Population.binomial(True, "0.5"), "whole"),
        (lambda: Population.iid(10, ["0.5", "0.4"]), r"off by -0\.1"),
        (lambda: Population.iid(10, [0.1] * 10), r"off by \+"),
        (lambda: Population.iid(10, ["1.5", "-0.5"]), "negative"),
        (lambda: Population.iid(10, ["1"]), "D at least 1"),
        (lambda: Population.iid(10**6, ["0.2"] * 5), "GB"),
        (lambda: Population.independent([]), "at least one person"),
        (lambda: Population.from_counts([0, 0], smoothing=0), "not all 0"),
        (lambda: Population.from_counts([3, -1]), "at least 0"),
        (lambda: Population.from_samples([], 5), "at least one"),
        (lambda: Population.from_samples([3], 5, largest=2), "at most"),
        (lambda: Population.from_others(["0.5", "0.5"], 0), "at least 1"),
        (lambda: Population.from_others(["0.5", "0.5"]).conservative("0.5"), "independent people"),
        (lambda: Population.binomial(10, "0.5").conservative("0"), r"\(0, 1\]"),
    ],
)
def test_bad_input(make: object, words: str) -> None:
    with pytest.raises(ProblemError, match=words) as caught:
        make()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
