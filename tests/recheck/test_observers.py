"""Observers in the second checker: against people enumerated one by one, random beliefs, forged and malformed files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from optdp import Population, SingleLTE
from optdp.recheck import Failed, Refused, boxes, recheck
from optdp.recheck.entity import read_table
from optdp.recheck.observers import Kind, corners, read_observers
from optdp.recheck.priors import read_prior
from optdp.recheck.single import read_problem, recomputed
from optdp.recheck.verdict import work
from tests.artifact import forgeries
from tests.exact_checker import Checked, Law, convolve, people

Document = dict[str, Any]
NARROW = Fraction(1, 2**190)

BINOMIAL = {"kind": "binomial", "n": 4, "p": "0.3"}
IID = {"kind": "iid", "n": 3, "pmf": ["0.5", "0.3", "0.2"]}
COUNTS = {"kind": "counts", "counts": [6, 2, 2], "smoothing": 0, "n": 3}
PAIRS = {
    "kind": "independent",
    "people": [{"pmf": ["0.5", "0.5"], "count": 2}, {"pmf": ["0.8", "0.2"], "count": 2}],
}
MIXED = {
    "kind": "independent",
    "people": [{"pmf": ["0.5", "0.5"], "count": 2}, {"pmf": ["0.2", "0.5", "0.3"], "count": 1}],
}
LAWS = [["0.6", "0.3", "0.1"], ["0.2", "0", "0.8"]]

WATCHED: dict[str, tuple[Document, Document]] = {
    "range": (BINOMIAL, {"between": ["0.2", "0.45"]}),
    "range, one known": (BINOMIAL, {"between": ["0.2", "0.45"], "known": 1}),
    "range, two known": (BINOMIAL, {"between": ["1/7", "1/3"], "known": 2}),
    "range, three known": (BINOMIAL, {"between": ["0.2", "0.45"], "known": 3}),
    "no range": (BINOMIAL, {"between": ["0.25", "0.25"]}),
    "no range, two known": (BINOMIAL, {"known": 2}),
    "anything": (BINOMIAL, {"between": [0, 1]}),
    "at least": (BINOMIAL, {"between": ["0.6", "1"], "known": 1}),
    "at most": (BINOMIAL, {"between": ["0", "0.1"]}),
    "certain": (BINOMIAL, {"between": [1, 1], "known": 1}),
    "margin": (BINOMIAL, {"margin": "0.07"}),
    "laws of two": (BINOMIAL, {"between": [["0.8", "0.2"], ["0.5", "0.5"]]}),
    "laws, downwards": (BINOMIAL, {"between": [["0.5", "0.5"], ["0.8", "0.2"]], "known": 1}),
    "kinds": (PAIRS, {"margin": "0.1"}),
    "kinds, one known": (PAIRS, {"margin": "0.1", "known": 1}),
    "kinds, two known": (PAIRS, {"known": 2}),
    "kinds that become one": (PAIRS, {"margin": 1, "known": 1}),
    "kinds, one range": (PAIRS, {"between": ["0.1", "0.4"], "known": 1}),
    "larger": (IID, {"between": LAWS}),
    "larger, one known": (IID, {"between": LAWS, "known": 1}),
    "larger, fixed, one known": (IID, {"known": 1}),
    "counts": (COUNTS, {"between": LAWS}),
    "mixed, one known": (MIXED, {"known": 1}),
    "mixed, two known": (MIXED, {"known": 2}),
}


# ---------------------------------------------------------------------- people one by one


def segments(population: Document, observer: Document) -> list[tuple[Law, Law]]:
    """The two ends of everybody's law."""
    everybody = people({**population, "people": [{"count": 1, **group} for group in population.get("people", [])]})
    if "between" in observer:
        ends = observer["between"]
        if not isinstance(ends[0], list):
            ends = [[1 - Fraction(p), Fraction(p)] for p in ends]
        low, high = ([Fraction(p) for p in end] for end in ends)
        return [(low, high)] * len(everybody)
    margin = Fraction(observer.get("margin", 0))
    if not margin:
        return [(law, law) for law in everybody]
    chances = [(max(law[1] - margin, Fraction(0)), min(law[1] + margin, Fraction(1))) for law in everybody]
    return [([1 - low, low], [1 - high, high]) for low, high in chances]


def beliefs(others: list[tuple[Law, Law]], known: int) -> Iterator[list[Law]]:
    """Every set of known people with all that they may contribute, the rest at either end of their segments."""
    for chosen in itertools.combinations(range(len(others)), known):
        choices: list[list[Law]] = []
        for j, (low, high) in enumerate(others):
            points = [[Fraction(w == v) for w in range(len(low))] for v in range(len(low))]
            choices.append(points if j in chosen else [low] if low == high else [low, high])
        yield from map(list, itertools.product(*choices))


def quotient(truth: Checked, others: list[Law], largest: int, reach: int) -> Fraction | None:
    """The largest for one person who contributes `0..largest`; None if it is infinite."""
    size = sum(len(law) - 1 for law in others) + largest
    table, base = truth.table(size), [Fraction(1)]
    for law in others:
        base = convolve(base, law)
    columns = []
    for w in range(largest + 1):
        column: dict[int, Fraction] = {}
        for x, chance in enumerate(base, start=w):
            for s, value in table[x].items() if chance else ():
                column[s] = column.get(s, Fraction(0)) + chance * value
        columns.append(column)
    worst = Fraction(1) if truth.q is None else 1 / truth.q ** min(reach, largest)
    for i, j in itertools.permutations(range(largest + 1), 2):
        if abs(i - j) <= reach:
            if columns[i].keys() - columns[j].keys():
                return None
            worst = max([worst, *(value / columns[j][s] for s, value in columns[i].items())])
    return worst


def brute(path: Path, observer: Document) -> Fraction | None:
    """The largest quotient over all persons and beliefs."""
    truth, worst = Checked(path), Fraction(1)
    everybody = segments(truth.specs[0], observer)
    done = set()
    for i, (low, _) in enumerate(everybody):
        others = everybody[:i] + everybody[i + 1 :]
        for laws in beliefs(others, observer.get("known", 0)):
            key = len(low), tuple(sorted(map(tuple, laws)))
            if key not in done:
                done.add(key)
                found = quotient(truth, laws, len(low) - 1, len(low) if truth.problem["adjacency"] == "all" else 1)
                if found is None:
                    return None
                worst = max(worst, found)
    return worst


def found_quotient(document: Document) -> Fraction | None:
    """What the second checker finds, before anything is demanded."""
    token = work.set([0])
    try:
        table, problem = read_table(document), read_problem(document["problem"])
        return recomputed(problem, table).observed[0]
    finally:
        work.reset(token)


def random_file(path: Path, name: str, tail: str, adjacency: str, outside: str, random: Random) -> Document:
    """A table of no purpose, under the eyes of an observer."""
    population, observer = WATCHED[name]
    last = sum(len(low) - 1 for low, _ in segments(population, {}))
    first, final = (0, last) if outside == "error" else (1, last - 1)
    low, high = (0, last) if outside != "geometric" else (first, final)
    size = 1 << 20
    rows = []
    for _ in range(first, final + 1):
        parts = [random.randrange(1, 2000) for _ in range(low, high + 1)]
        parts[random.randrange(len(parts))] += size - sum(parts)
        rows.append([[s, weight] for s, weight in enumerate(parts, start=low)])
    if random.random() < 0.1:  # an output that one input never gives
        row = random.choice(rows)
        if len(row) > 1:
            row[0][1] += row.pop()[1]
    document: Document = {
        "format": "optdp/noise-matrix", "version": 1, "inputs": [first, final], "outputs": [low, high],
        "denominator": str(size), "outside": outside, "claim": {}, "provenance": {}, "weights": rows,
        "tail": {"law": "geometric", "q": ["5", "8"]} if tail == "geometric" else None,
        "problem": {"kind": "single-lte", "epsilon": "0.5", "population": population, "observer": observer,
                    "adjacency": adjacency, "tail": tail},
    }  # fmt: skip
    path.write_bytes(forgeries.sealed(document))
    found: Document = json.loads(path.read_bytes())
    return found


@pytest.mark.parametrize("name", WATCHED)
@pytest.mark.parametrize(
    ("tail", "outside"), [("none", "error"), ("none", "clamp"), ("geometric", "error"), ("geometric", "geometric")]
)
def test_every_person_and_every_vertex(name: str, tail: str, outside: str, tmp_path: Path) -> None:
    path, infinite = tmp_path / "a.json", 0
    random = Random(f"{name} {tail} {outside}")
    for adjacency in ("unit", "all"):
        document = random_file(path, name, tail, adjacency, outside, random)
        truth, found = brute(path, WATCHED[name][1]), found_quotient(document)
        if truth is None or found is None:
            assert truth is found
            infinite += 1
        else:
            assert 0 <= found / truth - 1 < (NARROW if tail == "geometric" else Fraction(1, 2**700)), adjacency
    assert infinite <= 2


def test_no_belief_within_a_range_is_above_its_vertices(tmp_path: Path) -> None:
    random, path = Random(5), tmp_path / "a.json"
    for name in ("range, one known", "kinds, one known", "larger, one known", "anything"):
        population, observer = WATCHED[name]
        for tail in ("none", "geometric"):
            found = found_quotient(random_file(path, name, tail, "unit", "error", random))
            if found is None:
                continue
            truth, everybody = Checked(path), segments(population, observer)
            for _ in range(40):
                i = random.randrange(len(everybody))
                others: list[Law] = []
                for low, high in everybody[:i] + everybody[i + 1 :]:
                    share = random.choice([Fraction(0), Fraction(1), Fraction(random.randrange(1001), 1000)])
                    others.append([(1 - share) * a + share * b for a, b in zip(low, high, strict=True)])
                for j in random.sample(range(len(others)), random.randint(0, observer.get("known", 0))):
                    value = random.randrange(len(others[j]))
                    others[j] = [Fraction(w == value) for w in range(len(others[j]))]
                inside = quotient(truth, others, len(everybody[i][0]) - 1, 1)
                assert inside is not None
                assert inside <= found


def test_thirty_people(tmp_path: Path) -> None:
    """Beyond what can be enumerated: some of the vertices, each by its own law."""
    path, random = tmp_path / "a.json", Random(8)
    population: Document = {"kind": "binomial", "n": 30, "p": "0.3"}
    WATCHED["thirty"] = population, {"between": ["0.21", "0.37"], "known": 3}
    try:
        document = random_file(path, "thirty", "geometric", "unit", "error", random)
    finally:
        del WATCHED["thirty"]
    found, truth = found_quotient(document), Checked(path)
    assert found is not None
    worst = Fraction(1)
    for v, k in itertools.product(range(4), range(0, 27, 2)):
        known = [[Fraction(0), Fraction(1)]] * v + [[Fraction(1), Fraction(0)]] * (3 - v)
        low, high = ([1 - Fraction(p), Fraction(p)] for p in ("0.21", "0.37"))
        seen = quotient(truth, [*known, *[high] * k, *[low] * (26 - k)], 1, 1)
        assert seen is not None
        assert seen <= found
        worst = max(worst, seen)
    assert found <= worst * Fraction(11, 10)


@pytest.mark.parametrize("adjacency", ["unit", "all"])
def test_where_the_tails_decide(adjacency: str, tmp_path: Path) -> None:
    """Rows that are all alike give nothing away: noise beyond the table does."""
    path = tmp_path / "a.json"
    document = random_file(path, "larger, one known", "geometric", adjacency, "error", Random(1))
    document["weights"] = [document["weights"][0]] * len(document["weights"])
    path.write_bytes(forgeries.sealed(document))
    found = found_quotient(json.loads(path.read_bytes()))
    assert found == brute(path, WATCHED["larger, one known"][1]) == Fraction(8, 5) ** (2 if adjacency == "all" else 1)


@pytest.mark.parametrize("ends", [("1/20", "3/20"), ("0", "1"), ("7/9", "1"), ("0", "1/1000"), ("2/3", "5/7")])
@pytest.mark.parametrize("full", [True, False])
def test_subdivision_and_laws_give_the_same(ends: tuple[str, str], full: bool) -> None:
    """Sixty people, by triangles or by the laws of their sums; also with every slot as full as it may be."""
    random, size, top, people, secrets = Random(4), 5, (1 << 70) - 1, 60, 4
    numbers = []
    for _ in range(people + secrets):
        values = [top if full else random.randrange(top >> random.randrange(60)) for _ in range(size)]
        numbers.append(int.from_bytes(b"".join(value.to_bytes(9, "little") for value in values), "little"))
    rows = boxes.Slots(numbers, size, 9, top)
    low, high = ((1 - Fraction(p), Fraction(p)) for p in ends)
    kind = Kind(low, high, people)
    token = work.set([0])
    try:
        found = list(boxes._subdivided(rows, kind, secrets))
        expected = [boxes._smoothed(rows, weights, secrets) for weights in boxes._powers(kind, people)]
    finally:
        work.reset(token)
    for one, other in zip(found, expected, strict=True):
        left, right = ([v for number in part.numbers for v in part.values(number)] for part in (one, other))
        assert max(left) <= one.top
        assert max(right) <= other.top
        scale = Fraction(sum(left), sum(right))
        assert left == [scale * value for value in right]


@pytest.mark.parametrize("name", WATCHED)
def test_vertices_are_numbered(name: str) -> None:
    """By the person's kind, then who is known, then who is at the upper end, and no other number is one."""
    population, observer = WATCHED[name]
    everybody = segments(population, observer)
    kinds = [segment for i, segment in enumerate(everybody) if segment not in everybody[:i]]
    expected: list[tuple[list[Law], int]] = []
    for own in kinds:
        counts = [everybody.count(kind) - (kind == own) for kind in kinds]
        for split in itertools.product(*(range(count + 1) for count in counts)):
            if sum(split) != observer.get("known", 0):
                continue
            left = [count - t for count, t in zip(counts, split, strict=True)]
            moved = sum(t * (len(kind[0]) - 1) for t, kind in zip(split, kinds, strict=True))
            for upper in itertools.product(
                *(range(m + 1 if low != high else 1) for m, (low, high) in zip(left, kinds, strict=True))
            ):
                base = [Fraction(1)]
                for m, k, (low, high) in zip(left, upper, kinds, strict=True):
                    for law in [high] * k + [low] * (m - k):
                        base = convolve(base, law)
                size = moved + len(own[0])
                expected.append(([[Fraction(0)] * u + base for u in range(size)], len(own[0]) - 1))
    token = work.set([0])
    try:
        prior = read_prior(population)
        (seen,) = read_observers(observer, population, prior, Fraction(1, 2))
        found = corners(seen, prior, range(len(expected) + 5))
    finally:
        work.reset(token)
    assert sorted(found) == list(range(len(expected)))
    for i, (laws, reach) in enumerate(expected):
        assert found[i][1] == reach
        assert len(found[i][0]) == len(laws)
        for one, law in zip(found[i][0], laws, strict=True):
            assert [Fraction(*one.at(x)) for x in range(len(law) + 3)] == [*law, 0, 0, 0]


# ---------------------------------------------------------------------- whole files


def sealed(document: Document, path: Path) -> Path:
    path.write_bytes(forgeries.sealed(document))
    return path


@lru_cache
def noise_text() -> str:
    """Geometric noise keeps its epsilon whoever watches."""
    problem = SingleLTE(Population.binomial(8, "0.3"), "0.5", method="geometric")
    return json.dumps(forgeries.document_of(problem))


def noise(observer: Any, observed: list[str] | None = None) -> Document:
    document: Document = json.loads(noise_text())
    document["problem"]["observer"] = observer
    if observed is not None:
        document["claim"]["observed"] = observed
    return document


def same(one: Fraction | bool | None, other: Fraction | bool | None) -> bool:
    return isinstance(one, Fraction) and isinstance(other, Fraction) and abs(one - other) < NARROW


def test_noise_is_private_whoever_watches(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    every: list[Any] = [{"between": ["0.1", "0.9"], "known": 3}, {"margin": "0.1"}, {"known": "all"}, {}, [{}], None]
    for observer in every:
        found = recheck(sealed(noise(observer), path)).figures
        assert same(found["epsilon"], found["ordinary_epsilon"])
    several = [{"between": ["0.1", "0.9"]}, {"known": 2, "epsilon": "0.7"}, {"known": "all", "epsilon": "2"}]
    figures = recheck(sealed(noise(several, ["0.5", "0.5", "0.5"]), path)).figures
    assert figures["observer 1: epsilon"] == figures["epsilon"]
    assert figures["observer 3: epsilon"] == figures["ordinary_epsilon"]
    assert same(figures["observer 2: epsilon"], figures["epsilon"])


@pytest.mark.parametrize("tail", ["none", "geometric"])
def test_a_table_for_the_exact_prior_is_refused(tail: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    document = forgeries.document_of(SingleLTE(Population.binomial(9, "0.3"), "0.5", tail=tail, never_worse=False))
    document["claim"]["lower_bound"] = None
    recheck(sealed(document, path))
    for observer in ({"between": ["0.3", "0.3"]}, {"margin": "0"}, {"known": 0}):
        document["problem"]["observer"] = observer
        recheck(sealed(document, path))
    for observer in ({"between": ["0.2", "0.4"]}, {"margin": "0.01"}, {"known": 1}, {"known": "all"}):
        document["problem"]["observer"] = observer
        with pytest.raises(Failed, match="observer 1 must be at most"):
            recheck(sealed(document, path))
    document["problem"]["observer"] = [{}, {"margin": "0.05", "epsilon": "0.6"}]
    document["claim"]["observed"] = ["0.5", "0.6"]
    with pytest.raises(Failed, match="observer 2 must be at most"):
        recheck(sealed(document, path))
    document["problem"]["observer"][1]["epsilon"] = document["claim"]["observed"][1] = "9"
    found = recheck(sealed(document, path)).figures
    first, second = (found[f"observer {i}: epsilon"] for i in (1, 2))
    assert first is not None
    assert second is not None
    assert found["epsilon"] == first <= Fraction(1, 2) < second


MALFORMED: list[Any] = [
    [], "all", 3, True, [3], [None], [[]], {"n": 3}, {"between": []}, {"between": ["0.1"]}, {"between": "0.1"},
    {"between": ["0.2", "0.1"]}, {"between": ["-0.1", "0.1"]}, {"between": ["0.1", "1.1"]}, {"between": [0.1, 0.2]},
    {"between": ["0.1", "0.2", "0.3"]}, {"between": [["0.9", "0.1"], "0.2"]}, {"between": [["0.9", "0.2"], ["1", "0"]]},
    {"between": [["0.9", "0.1"], ["0.5", "0.3", "0.2"]]}, {"between": [["0.9", "0.1", "0"], ["0.5", "0.3", "0.2"]]},
    {"between": [["1.1", "-0.1"], ["0.5", "0.5"]]}, {"between": {"low": "0.1"}}, {"between": [True, True]},
    {"margin": "-0.1"}, {"margin": "1.1"}, {"margin": 0.1}, {"margin": ["0.1"]}, {"margin": "x"}, {"margin": True},
    {"margin": "0.1", "between": ["0.1", "0.2"]}, {"known": -1}, {"known": 8}, {"known": True}, {"known": "some"},
    {"known": "1"}, {"known": 1.0}, {"known": [1]}, {"known": None}, {"epsilon": "0.5"}, {"known": 1, "epsilon": "1"},
    [{"epsilon": "0.5"}], [{}, {"epsilon": "0.4"}], [{}, {"epsilon": "101"}], [{}, {"epsilon": 0.6}],
    [{}, {"epsilon": "x"}], [{}, {"known": 9}], [{"known": 1}, {}, 4], {"known": "all", "between": ["0.2", "0.1"]},
]  # fmt: skip


@pytest.mark.parametrize("observer", MALFORMED, ids=str)
def test_malformed_observers(observer: Any, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        recheck(sealed(noise(observer, ["1"] * len(observer) if isinstance(observer, list) else None), tmp_path / "a"))


OTHERS = Population.from_others(["0.1", "0.2", "0.4", "0.2", "0.1"])


@pytest.mark.parametrize(
    ("problem", "observer", "word"),
    [
        (SingleLTE(OTHERS, "0.5", method="geometric"), {"known": 1}, "independent"),
        (SingleLTE(OTHERS, "0.5", method="geometric"), {"between": ["0.1", "0.2"]}, "independent"),
        (SingleLTE(OTHERS, "0.5", method="geometric"), {"margin": "0.1"}, "independent"),
        (SingleLTE(Population.binomial(8, "0.5").conservative("0.5"), "0.5", method="geometric"),
         {"known": 1}, "uncertain"),
        (SingleLTE(Population.iid(3, ["0.5", "0.3", "0.2"]), "0.5", method="geometric"), {"margin": "0.1"}, "0 or 1"),
        (SingleLTE(Population.iid(3, ["0.5", "0.3", "0.2"]), "0.5", method="geometric"),
         {"between": ["0.1", "0.2"]}, "two laws"),
        (SingleLTE(Population.independent([["0.5", "0.5"], ["0.2", "0.5", "0.3"]]), "1", method="geometric"),
         {"between": LAWS}, "same largest"),
        (SingleLTE([Population.binomial(6, p) for p in ("0.5", "0.4")], "0.5", method="geometric"),
         {"known": 1}, "one population"),
        (SingleLTE(Population.binomial(6, "0.5"), "1", method="shifting"), {"known": "all"}, "method"),
    ],
)  # fmt: skip
def test_observers_that_do_not_fit_the_population(problem: SingleLTE, observer: Any, word: str, tmp_path: Path) -> None:
    document = forgeries.document_of(problem)
    document["claim"]["lower_bound"] = None
    document["problem"]["observer"] = observer
    with pytest.raises(Refused, match=word):
        recheck(sealed(document, tmp_path / "a.json"))


def test_who_knows_all_needs_no_laws(tmp_path: Path) -> None:
    document = forgeries.document_of(SingleLTE(OTHERS, "0.5", method="geometric"))
    document["problem"]["observer"] = [{"known": "all"}, {"epsilon": "0.6"}]
    document["claim"].update(lower_bound=None, observed=["0.5", "0.5"])
    recheck(sealed(document, tmp_path / "a.json"))


def test_what_is_claimed_of_several_observers(tmp_path: Path) -> None:
    path, several = tmp_path / "a.json", [{"margin": "0.1"}, {"known": "all", "epsilon": "0.7"}]
    recheck(sealed(noise(several, ["0.5", "0.5"]), path))
    for observed in (["0.5", "0.49"], ["0.49", "0.5"]):
        with pytest.raises(Failed, match="observed"):
            recheck(sealed(noise(several, observed), path))
    for odd in (
        None,
        [],
        ["0.5"],
        ["0.5"] * 3,
        "0.5",
        ["0.5", "infinite"],
        ["0.5", 1],
        [["0.5"], "0.5"],
        ["0.5", None],
    ):
        document = noise(several)
        if odd is not None:
            document["claim"]["observed"] = odd
        with pytest.raises(Refused):
            recheck(sealed(document, path))
    for one in ({"margin": "0.1"}, {}, None):
        with pytest.raises(Refused, match="claim must be of"):
            recheck(sealed(noise(one, ["0.5"]), path))


def test_what_would_take_too_long_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for population in (
        Population.binomial(20_000, "0.3"),
        Population.independent([[f"{k}/100", f"{100 - k}/100"] for k in range(30, 70)]),
        Population.independent([[f"{k}/1000", f"{1000 - k}/1000"] for k in range(300, 500)]),
    ):
        document = forgeries.document_of(SingleLTE(population, "0.5", method="geometric"))
        document["claim"]["lower_bound"] = None
        document["problem"]["observer"] = {"margin": "0.001", "known": 1}
        with pytest.raises(Refused, match="optdp verify"):
            recheck(sealed(document, path))
