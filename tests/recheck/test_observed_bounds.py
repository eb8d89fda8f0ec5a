"""Lower bounds with observers in the second checker: true ones, the formula itself in fractions, and tampered prices.

Whoever knows the others up to a vertex is a prior of its own. So a problem that lists all vertices as priors has the
same optimum as one with the observer, and its prices prove the bound there, line by line.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from optdp import Population, SingleLTE
from optdp.recheck import Failed, Refused, recheck
from tests.artifact import forgeries, two_opinions
from tests.checkers import second_opinion
from tests.exact_checker import Checked, Law, conditionals, convolve, exp_below

Document = dict[str, Any]
LAWS = [["0.6", "0.3", "0.1"], ["0.2", "0.2", "0.6"]]


@dataclass(frozen=True)
class Setting:
    """A problem with one observer and, after it, one who knows exactly the population."""

    n: int
    ends: tuple[Any, Any]
    known: int = 0
    options: tuple[tuple[str, Any], ...] = ()
    fallback: str | None = None

    @property
    def laws(self) -> tuple[Law, Law]:
        ends = [end if isinstance(end, list) else [1 - Fraction(end), Fraction(end)] for end in self.ends]
        low, high = ([Fraction(p) for p in end] for end in ends)
        return low, high

    @property
    def largest(self) -> int:
        return len(self.laws[0]) - 1

    @property
    def population(self) -> Population:
        return Population.iid(self.n, [(a + b) / 2 for a, b in zip(*self.laws, strict=True)])

    @property
    def bases(self) -> list[Law]:
        """What the uncertain people contribute, at each vertex."""
        left, (low, high) = self.n - 1 - self.known, self.laws
        found = []
        for k in range(left + 1):
            base = [Fraction(1)]
            for law in [high] * k + [low] * (left - k):
                base = convolve(base, law)
            found.append(base)
        return found

    @property
    def secrets(self) -> int:
        return (self.known + 1) * self.largest + 1


SETTINGS = {
    "range": Setting(6, ("0.2", "0.4"), options=(("never_worse", False),)),
    "never worse": Setting(6, ("0.2", "0.4")),
    "no tail": Setting(7, ("0.3", "0.6"), options=(("tail", "none"), ("never_worse", False))),
    "squares": Setting(6, ("0.2", "0.4"), options=(("objective", "mse"),)),
    "one known": Setting(6, ("0.3", "0.5"), 1),
    "two known": Setting(7, ("0.3", "0.5"), 2, options=(("tail", "none"),)),
    "fallback": Setting(6, ("0.2", "0.4"), fallback="1.2", options=(("never_worse", False),)),
    "larger": Setting(3, (LAWS[0], LAWS[1]), options=(("adjacency", "all"), ("tail", "none"))),
    "larger, unit steps": Setting(3, (LAWS[0], LAWS[1])),
}


@lru_cache
def solved(name: str) -> str:
    """The file of a setting: solved with every vertex as a prior, and written as a problem with observers."""
    setting = SETTINGS[name]
    steps = setting.secrets - 1
    share = Fraction(steps, setting.largest)  # known people make more steps, each of which may give away as much
    if dict(setting.options).get("adjacency") == "all":
        assert share == 1
    listed = [setting.population, *(Population.from_others(base, steps) for base in setting.bases)]
    fallback = None if setting.fallback is None else Fraction(setting.fallback) * share
    problem = SingleLTE(
        listed, Fraction(4, 5) * share, fallback, weights=[1] + [0] * len(setting.bases), **dict(setting.options)
    )
    document = forgeries.document_of(problem)
    stated = document["problem"]
    for key in ("weights", "fallback_epsilon"):
        stated.pop(key, None)
    stated.update(epsilon="0.8", population=stated["population"][0])
    observer: Document = {"between": [[str(p) for p in law] for law in setting.laws], "known": setting.known}
    if setting.largest == 1:
        observer["between"] = list(setting.ends)
    stated["observer"] = [observer, {}]
    if setting.fallback:
        stated["fallback_epsilon"] = setting.fallback
    claim, prices = document["claim"], document["provenance"]["prices"]
    claim.update(epsilon="0.8", observed=["0.8", "0.8"], ordinary_epsilon="infinite")
    every = stated["adjacency"] == "all"
    at = []
    for i, size in [(-1, setting.largest + 1), *((k, setting.secrets) for k in range(len(setting.bases)))]:
        for u, w in itertools.combinations(range(size), 2):
            if every or w == u + 1:
                at += [[int(i < 0), max(i, 0), u, w, way] for way in (0, 1)]
    if "v" in prices:
        last = setting.n * setting.largest
        pairs = [(x, x + d) for d in range(1, setting.largest + 1 if every else 2) for x in range(last + 1 - d)]
        at += [[2, 0, x, y, way] for way in (0, 1) for x, y in pairs]
        prices["u"] += prices.pop("v")
    prices["at"] = at
    return json.dumps(document)


def file_of(name: str) -> Document:
    found: Document = json.loads(solved(name))
    return found


def sealed(document: Document, path: Path) -> Path:
    path.write_bytes(forgeries.sealed(document))
    return path


@pytest.mark.parametrize("name", SETTINGS)
def test_true_bounds_are_proved(name: str, tmp_path: Path) -> None:
    document, path = file_of(name), tmp_path / "a.json"
    assert recheck(sealed(document, path)).unchecked == ()
    claim, prices = document["claim"], document["provenance"]["prices"]
    value = Fraction(claim["mse" if document["problem"]["objective"] == "mse" else "mae"])
    bound = Fraction(claim["lower_bound"])
    assert bound > value * Fraction(999, 1000)  # a bound that says something
    untrue = copy.deepcopy(document)
    untrue["claim"]["lower_bound"] = str(bound + (value - bound) / 2 + Fraction(1, 10**9))
    with pytest.raises(Failed):
        recheck(sealed(untrue, path))
    for i in range(len(document["problem"]["observer"])):  # nobody's constraints can be left out, if they cost anything
        fewer = copy.deepcopy(document)
        kept = [j for j, line in enumerate(prices["at"]) if line[0] != i]
        fewer["provenance"]["prices"].update({key: [prices[key][j] for j in kept] for key in ("u", "at")})
        costs = any(float(price) for j, line in enumerate(prices["u"]) if j not in kept for price in line.split())
        if costs:
            with pytest.raises(Failed, match="not proved"):
                recheck(sealed(fewer, path))
        else:
            recheck(sealed(fewer, path))
    shuffled = copy.deepcopy(document)
    order = Random(name).sample(range(len(prices["u"])), len(prices["u"]))
    shuffled["provenance"]["prices"].update({key: [prices[key][j] for j in order] for key in ("u", "at")})
    recheck(sealed(shuffled, path))


# ---------------------------------------------------------------------- the formula


def law_given(document: Document, name: str, observer: int, vertex: int, secret: int, size: int) -> Law:
    """The law of the sum; for those who know all, of an input."""
    if observer == 2:
        base = [Fraction(1)]
    elif observer == 1:
        base = conditionals(document["problem"]["population"])[0][vertex][0]
        while base[-1] == 0:
            base = base[:-1]
    else:
        base = SETTINGS[name].bases[vertex]
    found = [Fraction(0)] * secret + base
    return found + [Fraction(0)] * (size - len(found))


def formula(document: Document, name: str, path: Path) -> Fraction:
    """The bound that prices prove, as the docstring of `bounds` writes it, in fractions; right to 80 digits."""
    truth, problem, prices = Checked(path), document["problem"], document["provenance"]["prices"]
    size, power = SETTINGS[name].n * SETTINGS[name].largest + 1, 1 if problem["objective"] == "mae" else 2
    share = 1 if problem["adjacency"] == "all" else SETTINGS[name].largest
    q, total = truth.q, conditionals(problem["population"])[1]
    epsilons = [
        Fraction(problem["epsilon"]),
        Fraction(problem["epsilon"]),
        Fraction(problem.get("fallback_epsilon", 0)),
    ]
    growth = [exp_below(epsilon / share, 90) for epsilon in epsilons]
    noise = forged_noise(problem, SETTINGS[name].largest) if q is None else q
    cap = 2 * noise / (1 - noise**2)
    lines = []
    for (observer, vertex, u, w, way), row in zip(prices["at"], prices["u"], strict=True):
        one, other = (law_given(document, name, observer, vertex, secret, size) for secret in (u, w))
        one, other = (other, one) if way else (one, other)
        gaps = [a - growth[observer] * b for a, b in zip(one, other, strict=True)]
        lines.append((gaps, [max(Fraction(float(price)), Fraction(0)) for price in row.split()]))
    z = [max(Fraction(float(price)), Fraction(0)) * problem["never_worse"] for price in prices["z"].split()]
    found = Fraction(0)
    for x in range(size):
        inside, lost = Fraction(1), {1: Fraction(0), 2: Fraction(0)}
        if q is not None:
            inside = sum((truth.geometric(x, s) for s in range(size)), Fraction(0))
            whole = {1: 2 * q / (1 - q * q), 2: 2 * q / (1 - q) ** 2}
            for p in lost:
                lost[p] = whole[p] - sum((truth.geometric(x, s) * abs(x - s) ** p for s in range(size)), Fraction(0))
        costs = [
            total[x] * inside * abs(x - s) ** power
            + z[x] * abs(x - s)
            + inside * sum((gaps[x] * row[s] for gaps, row in lines if gaps[x] and row[s]), Fraction(0))
            for s in range(size)
        ]
        found += min(costs) + total[x] * lost[power] - z[x] * (cap - lost[1]) / inside
    return found


def forged_noise(problem: Document, largest: int) -> Fraction:
    """The `q` of the noise that a table without tails is compared with."""
    epsilon = Fraction(problem["epsilon"]) / largest
    places = 64 + -(-epsilon * Fraction("1.4427") // 1)
    return Fraction(-(-(2**places) // exp_below(epsilon, 90)), 2**places)


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_proved_is_what_the_formula_says(name: str, tmp_path: Path) -> None:
    """With prices that somebody shook: they prove less, and neither more nor less than the formula."""
    path, random, said = tmp_path / "a.json", Random(name), 0
    for strength in (0.0, 0.01, 0.05):
        document = file_of(name)
        prices = document["provenance"]["prices"]
        for j, row in enumerate(prices["u"]):
            prices["u"][j] = " ".join(repr(float(p) * random.uniform(1 - strength, 1)) for p in row.split())
        document["claim"]["lower_bound"] = None
        proved = formula(document, name, sealed(document, path))
        if proved <= Fraction(1, 10**6):
            continue
        said += 1
        document["claim"]["lower_bound"] = decimal(proved - Fraction(1, 10**18))
        assert recheck(sealed(document, path)).unchecked == ()
        document["claim"]["lower_bound"] = decimal(proved + Fraction(1, 10**18))
        with pytest.raises(Failed):
            recheck(sealed(document, path))
    assert said


def decimal(value: Fraction) -> str:
    return f"{value * 10**30 // 1}e-30"


# ---------------------------------------------------------------------- tampered


def tampered(change: Callable[[Document], object]) -> Document:
    document = file_of("fallback")
    change(document["provenance"]["prices"])
    return document


def put(j: int, k: int, value: Any) -> Callable[[Document], object]:
    return lambda prices: prices["at"][j].__setitem__(k, value)


REFUSED: dict[str, Callable[[Document], object]] = {
    "no at": lambda prices: prices.pop("at"),
    "at is null": lambda prices: prices.update(at=None),
    "at is text": lambda prices: prices.update(at="0"),
    "a line less": lambda prices: prices["at"].pop(),
    "a price line less": lambda prices: prices["u"].pop(),
    "a price less": lambda prices: prices["u"].__setitem__(0, prices["u"][0].rpartition(" ")[0]),
    "no price of a cap": lambda prices: prices.update(z=prices["z"].rpartition(" ")[0]),
    "four numbers": lambda prices: prices["at"][0].pop(),
    "six numbers": lambda prices: prices["at"][0].append(0),
    "no list": lambda prices: prices["at"].__setitem__(0, 3),
    "no observer": put(0, 0, 3),
    "observer below 0": put(0, 0, -1),
    "no vertex of the population": put(0, 1, 1),
    "no vertex of the range": put(2, 1, 6),
    "a vertex of those who know all": put(-1, 1, 1),
    "vertex of enormous number": put(2, 1, 10**30),
    "no secret": put(2, 3, 2),
    "the same secret": put(2, 2, 1),
    "the larger secret first": lambda prices: prices["at"].__setitem__(2, [0, 0, 1, 0, 0]),
    "inputs too far apart": lambda prices: prices["at"].__setitem__(-1, [2, 0, 0, 2, 0]),
    "no input": lambda prices: prices["at"].__setitem__(-1, [2, 0, 6, 7, 0]),
    "a third way": put(0, 4, 2),
    "true": put(0, 4, True),
    "text": put(0, 4, "0"),
    "half a vertex": put(0, 1, 0.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_prices_of_no_constraint(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        recheck(sealed(tampered(REFUSED[name]), tmp_path / "a.json"))


def test_prices_of_another_constraint(tmp_path: Path) -> None:
    """The ways exchanged, the vertices in the opposite order, prices ten times as large: nothing is proved."""
    path = tmp_path / "a.json"

    def ways(prices: Document) -> None:
        for line in prices["at"]:
            line[4] = 1 - line[4]

    def order(prices: Document) -> None:
        for line in prices["at"]:
            if line[0] == 0:
                line[1] = 5 - line[1]

    def more(prices: Document) -> None:
        prices["u"] = [" ".join(repr(10 * float(p)) for p in row.split()) for row in prices["u"]]

    for change in (ways, order, more):
        with pytest.raises(Failed, match="not proved"):
            recheck(sealed(tampered(change), path))


def test_a_narrower_range_has_less_to_price(tmp_path: Path) -> None:
    """The bound of a wide range is not that of a narrow one; without an observer nothing is named."""
    document, path = file_of("range"), tmp_path / "a.json"
    document["problem"]["observer"][0]["between"] = ["0.29", "0.31"]
    with pytest.raises(Failed, match="not proved"):
        recheck(sealed(document, path))
    wider = file_of("range")
    wider["problem"]["observer"][0]["between"] = ["0.19", "0.41"]
    with pytest.raises(Failed, match="observer 1 must be at most"):
        recheck(sealed(wider, path))
    plain = file_of("range")
    del plain["problem"]["observer"], plain["claim"]["observed"]
    with pytest.raises(Refused, match="Prices must fit"):
        recheck(sealed(plain, path))


def test_who_names_constraints(tmp_path: Path) -> None:
    """Prices name constraints if, and only if, an observer has a range or knows somebody."""
    path = tmp_path / "a.json"
    document = forgeries.document_of(SingleLTE(Population.binomial(6, "0.3"), "0.5"))
    assert recheck(sealed(document, path)).unchecked == ()
    for observer, at, right in (
        ({}, False, True), ({"known": 0}, False, True), ({"margin": 0}, True, True),
        (None, True, False), ({}, True, False), ({"known": 0}, True, False), ({"margin": 0}, False, False),
    ):  # fmt: skip
        document["problem"]["observer"] = observer
        document["provenance"]["prices"].pop("at", None)
        if at:
            document["provenance"]["prices"]["at"] = [[0, 0, 0, 1, 0], [0, 0, 0, 1, 1]]
        sealed(document, path)
        if right:
            assert recheck(path).unchecked == ()
        else:
            with pytest.raises(Refused, match="Prices must fit"):
                recheck(path)


def test_too_many_prices_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sealed(file_of("range"), tmp_path / "a.json")
    assert recheck(path).unchecked == ()
    for name in ("MOST_TERMS", "MOST_BITS", "LARGEST"):
        with monkeypatch.context() as patch:
            patch.setattr(f"optdp.recheck.bounds.{name}", 5)
            assert recheck(path).unchecked == ("lower_bound",)


def test_odd_values_anywhere_are_answered(tmp_path: Path) -> None:
    """Whatever stands in an observer, in the claim or in prices: accepted, refused or failed, and nothing else."""
    random, path, codes = Random(3), tmp_path / "a.json", [0, 0, 0]
    names = ["fallback", "one known", "larger"]
    for turn in range(300):
        document = file_of(names[turn % 3])
        parts = [document["problem"]["observer"], document["claim"], document["provenance"]["prices"]]
        part = random.choice(parts)
        place = random.choice([place for place in two_opinions.places(part) if place])
        two_opinions.put(part, place, copy.deepcopy(random.choice(two_opinions.ODD)))
        code, said, _ = second_opinion(sealed(document, path))
        codes[code] += 1
        assert code == 0 or said
    assert codes[2] > 100
