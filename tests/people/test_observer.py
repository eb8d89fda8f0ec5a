"""Observers: the worlds that each holds possible, against enumeration person by person."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import pytest

from optdp import Observer, Population, ProblemError, SingleLTE
from tests.exact_checker import Law, convolve

TENTH = Fraction(1, 10)


def segment(low: Any, high: Any) -> tuple[Law, Law]:
    return [1 - Fraction(low), Fraction(low)], [1 - Fraction(high), Fraction(high)]


def enumerated(people: list[tuple[Law, Law]], known: int) -> set[tuple[int, tuple[Fraction, ...]]]:
    """For every person, known people and ends of the others: the law of the uncertain ones, and the largest shift."""
    found = set()
    for i, person in enumerate(people):
        others = people[:i] + people[i + 1 :]
        for seen in combinations(range(len(others)), known):
            doubtful = [ends for j, ends in enumerate(others) if j not in seen]
            most = len(person[0]) - 1 + sum(len(others[j][0]) - 1 for j in seen)
            for choice in product(*doubtful):
                law: Law = [Fraction(1)]
                for one in choice:
                    law = convolve(law, one)
                found.add((most, tuple(law)))
    return found


def listed(population: Population, observer: Observer) -> set[tuple[int, tuple[Fraction, ...]]]:
    found = set()
    for family in observer.worlds(population).families:
        laws = list(family.laws())
        assert len(laws) == family.size
        for law in laws:
            weights = [Fraction(int(value), family.unit) for value in law.coeffs()]
            found.add((family.shifts, tuple(weights + [Fraction(0)] * (family.last + 1 - len(weights)))))
    return found


A, B = ["0.5", "0.3", "0.2"], ["0.2", "0.2", "0.6"]
CASES: dict[str, tuple[Population, Observer, list[tuple[Law, Law]]]] = {
    "a range": (Population.binomial(5, "0.1"), Observer(("0.05", "0.2")), [segment("0.05", "0.2")] * 5),
    "known": (Population.binomial(4, "0.3"), Observer(known=2), [segment("0.3", "0.3")] * 4),
    "both": (Population.binomial(5, "0.3"), Observer((0, "1/3"), known=1), [segment(0, "1/3")] * 5),
    "everything": (Population.binomial(4, "0.3"), Observer((0, 1)), [segment(0, 1)] * 4),
    "two laws": (
        Population.iid(3, ["0.4", "0.3", "0.3"]),
        Observer((A, B), known=1),
        [([Fraction(v) for v in A], [Fraction(v) for v in B])] * 3,
    ),
    "kinds": (
        Population.independent([["0.9", "0.1"]] * 2 + [["0.4", "0.6"]] * 2),
        Observer(margin="0.15", known=1),
        [segment(0, "0.25")] * 2 + [segment("0.45", "0.75")] * 2,
    ),
    "kinds of contributions": (
        Population.independent([["0.9", "0.1"], ["0.5", "0.3", "0.2"], ["0.5", "0.3", "0.2"]]),
        Observer(known=1),
        [segment("0.1", "0.1")] + [([Fraction(v) for v in A],) * 2] * 2,
    ),
    "kinds that become one": (
        Population.independent([["0.9", "0.1"], ["0.5", "0.5"], ["0.5", "0.5"]]),
        Observer(("0.1", "0.5")),
        [segment("0.1", "0.5")] * 3,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_all_worlds_and_no_others(name: str) -> None:
    population, observer, people = CASES[name]
    assert listed(population, observer) == enumerated(people, int(observer.known))


def test_vertices_are_numbered_as_they_are_listed() -> None:
    population, observer, _ = CASES["kinds"]
    worlds = observer.worlds(population)
    number = 0
    for family in worlds.families:
        every = list(family.laws())
        for inner in range(family.size):
            assert worlds.place(number) == (family, inner)
            assert list(family.laws([inner])) == [every[inner]]
            number += 1
    assert number == worlds.size
    assert "at 0.25" in worlds.describe(0)
    with pytest.raises(IndexError):
        worlds.place(number)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"between": ("0.3", "0.2")}, "the smaller one first. Found 0.3 and 0.2"),
        ({"between": ("0.3", "1.2")}, "two probabilities"),
        ({"between": ("-0.1", "0.2")}, "two probabilities"),
        ({"between": ["0.3"]}, "two probabilities or two laws"),
        ({"between": "ab"}, "two probabilities or two laws"),
        ({"between": ("0.1", ["0.2", "0.8"])}, "not one of each"),
        ({"between": (["0.5", "0.5"], ["0.2", "0.2", "0.6"])}, "same contributions. Found 2 and 3"),
        ({"between": (["0.5", "0.6"], ["0.2", "0.8"])}, "sum to exactly 1"),
        ({"margin": "1.5"}, r"margin must lie in \[0, 1\]"),
        ({"margin": "-0.1"}, "margin must lie"),
        ({"margin": "0.1", "between": (0, 1)}, "either between or margin"),
        ({"known": -1}, 'at least 0, or "all"'),
        ({"known": True}, 'at least 0, or "all"'),
        ({"known": "some"}, 'at least 0, or "all"'),
        ({"known": "all", "margin": "0.1"}, "nobody is uncertain"),
    ],
)
def test_bad_observers(given: dict[str, Any], match: str) -> None:
    with pytest.raises(ProblemError, match=match):
        Observer(**given)


def test_observers_that_do_not_fit_their_population() -> None:
    binomial = Population.binomial(10, "0.1")
    posterior = Population.from_conditionals([[["0.5", "0.5"], ["0.5", "0.5"]]], ["0.5", "0.5"])
    for population, observer, match in (
        (binomial, Observer(known=10), "at most the number of the others, 9. Found 10"),
        (binomial, Observer((A, B)), r"contributions 0\.\.1. Found laws of 0\.\.2"),
        (Population.iid(4, A), Observer(margin="0.1"), "margin is for contributions 0 and 1"),
        (posterior, Observer(("0.1", "0.2")), "independent people"),
        (Population.from_others(["0.5", "0.5"]), Observer(known=1), "independent people"),
        (binomial.conservative("0.5"), Observer(known=1), "conservative"),
        (Population.binomial(5000, "0.1"), Observer(("0.1", "0.2")), "would fit with about 2,449 people"),
        (Population.independent([["0.9", "0.1"]] * 300 + [["0.4", "0.6"]] * 300), Observer(margin="0.1"), "one range"),
    ):
        with pytest.raises(ProblemError, match=match):
            SingleLTE(population, 1, tail="none", observer=observer)
    for wrong, match in (
        ([Observer(epsilon=2)], "The first observer has the problem's epsilon, 1"),
        ([Observer(), Observer(known="all", epsilon="0.5")], "at least the problem's, 1. Found 0.5"),
        ([], "an empty list"),
        ([3], "must be an Observer"),
    ):
        with pytest.raises(ProblemError, match=match):
            SingleLTE(binomial, 1, observer=wrong)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="one population, our own belief"):
        SingleLTE([binomial, binomial], 1, observer=Observer(known=1))
    with pytest.raises(ProblemError, match="does not work with observers"):
        SingleLTE(binomial, 1, method="shifting", observer=Observer(known=1))


def test_observers_are_plain_values() -> None:
    one = Observer(("0.05", "0.15"), known=5, epsilon=1)
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "Observer(between 0.05 and 0.15, 5 known, epsilon 1)"
    assert one.spec() == {"between": ["0.05", "0.15"], "known": 5, "epsilon": "1"}
    assert Observer(**one.spec()) == one
    assert Observer((A, B)).spec() == {"between": [A, B]}
    assert Observer(margin="0.02").knows == "each other person's probability to within 0.02"
    assert Observer(known="all").knows == "exactly what everyone else contributes"


def test_a_belief_outside_the_range_is_said() -> None:
    inside = SingleLTE(Population.binomial(9, "0.1"), 1, observer=Observer(("0.05", "0.1")))
    outside = SingleLTE(Population.binomial(9, "0.2"), 1, observer=Observer(("0.05", "0.1")))
    assert not inside.outside
    assert "outside the observer's range" in outside.outside
    middle = [(Fraction(a) + Fraction(b)) / 2 for a, b in zip(A, B, strict=True)]
    assert not SingleLTE(Population.iid(4, middle), 1, observer=Observer((A, B))).outside
    beside = [middle[0] + TENTH, middle[1] - TENTH, middle[2]]
    assert SingleLTE(Population.iid(4, beside), 1, observer=Observer((A, B))).outside


def test_a_law_by_itself_is_the_one_among_all() -> None:
    """One vertex by powers, and all of them by dividing and multiplying in turn."""
    people = Population.independent([["0.9", "0.1"]] * 4 + [["0.5", "0.5"]] * 3)
    for family in Observer(margin="0.07", known=1).worlds(people).families:
        every = list(family.laws())
        assert [family.law(k) for k in range(family.size)] == every
        assert list(family.laws([0, family.size - 1])) == [every[0], every[-1]]
