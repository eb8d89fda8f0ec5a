"""Files of shuffle protocols: laws in integers, claims against brute force, forgeries, both checkers."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optdp import MetricShuffle, RealSum, ShuffleHistogram, solve
from optdp.artifact import OpenedShuffle, open_artifact
from optdp.errors import ArtifactError, CertificateError, OptdpError, ProblemError
from optdp.numbers.source import Source
from optdp.recheck import Failed, Refused, recheck
from optdp.shuffle.claims import metric_figures
from optdp.shuffle.client import ALL, FINE, FINE_GRAIN, WORD, Flips, Padded, Response, below
from optdp.shuffle.format import Deployed, read_design, verify_design
from tests.artifact.two_opinions import explained

PROBLEMS: dict[str, Any] = {
    "geo": MetricShuffle("geo", n=3, k=2, delta="0.02", epsilon="0.6", max_distance=2),
    "sgdl": MetricShuffle("sgdl", n=3, k=2, delta="0.02", epsilon="0.8", max_distance=2),
    "hybrid": MetricShuffle("hybrid", n=3, k=2, delta="0.02", epsilon="0.8", local_epsilon="1.2", max_distance=2),
    "coarse": MetricShuffle("geo", n=3, k=4, delta="0.02", epsilon="0.6", max_distance=2, quantum=2),
    "rr": MetricShuffle("rr", n=3, k=2, delta="0.02", epsilon="1.5", max_distance=2),
    "plane": MetricShuffle("geo", n=3, k=2, delta="0.02", epsilon="0.8", max_distance=1, dimensions=2),
    "alone": MetricShuffle("geo", n=3, k=2, delta="0.02", eps_geo="0.7", c=3, max_distance=2, shuffler="compromised"),
    "histogram": ShuffleHistogram(3, n=4, epsilon="1.5", delta="0.05"),
    "labels": ShuffleHistogram(labels=["yes", "no"], n=50, eps0=2, delta="0.01"),
    "sum": RealSum(n=4, k=3, gamma="0.5", delta="0.05", low=-1, high=3),
}
METRIC = ("geo", "sgdl", "hybrid", "coarse", "rr", "alone")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for each problem."""
    made = tmp_path_factory.mktemp("protocols")
    for name, problem in PROBLEMS.items():
        solve(problem).save(made / f"{name}.json")
    return made


def split(u: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A number of 124 bits as two words."""
    return np.array([u >> WORD], np.uint64), np.array([u & ((1 << WORD) - 1)], np.uint64)


# ---------------------------------------------------------------------- laws


@pytest.mark.parametrize("m", [1, 2, 3, 7, 1000, 10**7, FINE_GRAIN])
def test_a_uniform_answer_changes_where_a_quotient_does(m: int) -> None:
    for y in {y for y in (1, 2, m // 2, m - 1) if 0 < y < m}:
        first = -(-(y << FINE) // m)  # the least u with u m >= y 2^124
        assert [int(below(m, *split(u))[0]) for u in (first - 1, first)] == [y - 1, y]
    assert int(below(m, *split(ALL - 1))[0]) == m - 1
    assert sum(Response(min(m, 7) + 1, 1 << 60).chance(0, y) for y in range(min(m, 7) + 1)) == 1


@pytest.mark.parametrize(("beta", "padding"), [(Fraction(1), 5), (Fraction(1, 10), 0), (Fraction(2, 3), 400)])
def test_noise_is_drawn_by_its_weights(beta: Fraction, padding: int) -> None:
    """Between two neighbouring cuts lie as many numbers as the weight says, and they give the value it is of."""
    client = Padded.of("geo", 3, 1, padding, 1, beta, Fraction(3, 4))
    assert sum(client.weight(x) for x in range(-client.reach - 2, client.reach + 3)) == ALL
    start = 0
    for x in [0, *(way * size for size in range(1, client.reach + 1) for way in (1, -1))]:
        end = start + client.weight(x)
        assert [int(client.noise(*split(u))[0]) for u in (start, end - 1)] == [x, x]
        start = end
    assert start == ALL


def test_the_weights_are_those_of_geometric_noise() -> None:
    """Exactly: no probability is less than the ideal one but for `lacking`, which is as small as it can be."""
    q = Fraction(3, 4)
    for padding in (0, 6, 700):
        client = Padded.of("geo", 5, 1, padding, 1, Fraction(1), q)
        ideal = [(1 - q) / (1 + q) * q**x for x in range(client.reach)] + [q**client.reach / (1 + q)]
        gaps = [1 - Fraction(client.weight(x), ALL) / value for x, value in enumerate(ideal)]
        assert max(gaps) <= client.lacking < max(gaps) + Fraction(1, 2**200)
        assert client.lacking < Fraction(1, 2**105)


def test_a_coarse_value_keeps_its_mean() -> None:
    client = Padded.of("geo", 1000, 100, 5, 1, Fraction(1), Fraction(1, 2))
    cases = [-(-(r << FINE) // 100) for r in (1, 33, 99)]  # so many u round up a rest of r
    for r, count in zip((1, 33, 99), cases, strict=True):
        words = [[*split(u), *split(0)] for u in (count - 1, count)]
        seen = [int(client.messages(np.array([700 + r]), np.array(row, np.uint64).T)[0]) for row in words]
        assert seen == [8 + 5, 7 + 5]


# ---------------------------------------------------------------------- claims against brute force

Law = Mapping[Any, Fraction]


def metric_laws(client: Flips | Padded) -> list[Law]:
    """The exact law of the message for each value, by the definition of the client."""
    found = []
    for x in range(client.inputs + 1):
        law: dict[int, Fraction] = defaultdict(Fraction)
        if isinstance(client, Flips):
            for flips in product((0, 1), repeat=client.bits):
                chance = math.prod(client.chance if flip else 1 - client.chance for flip in flips)
                law[sum((i < x) ^ flip for i, flip in enumerate(flips))] += chance
        else:
            up = Fraction(-(-((x % client.grain) << FINE) // client.grain), ALL)
            for step, chance in ((1, up), (0, 1 - up)):
                for noise in range(-client.reach, client.reach + 1):
                    message = min(max(x // client.grain + step + noise + client.padding, 0), client.largest)
                    law[message] += chance * Fraction(client.weight(noise), ALL)
        assert sum(law.values()) == 1
        found.append(law)
    return found


def together(laws: list[Law]) -> Law:
    """The law of a sum."""
    found: Law = {0: Fraction(1)}
    for law in laws:
        step: dict[int, Fraction] = defaultdict(Fraction)
        for (s, p), (y, r) in product(found.items(), law.items()):
            step[s + y] += p * r
        found = step
    return found


def stick(one: Law, other: Law, gain: float) -> float:
    return float(sum(max(Fraction(0), p - Fraction(gain) * other.get(s, Fraction(0))) for s, p in one.items()))


@pytest.mark.parametrize("name", METRIC)
def test_no_pair_of_data_sets_is_told_apart_better_than_claimed(name: str, folder: Path) -> None:
    """All data sets of three people, from the integers of the file; and the claim is not far above the worst."""
    design = read_design(folder / f"{name}.json")
    client, claim = design.client, design.claim
    assert isinstance(client, Flips | Padded)
    laws, delta = metric_laws(client), float(claim["delta"])
    people = 3 if claim["shuffler"] == "honest" else 1
    sets = list(product(range(client.inputs + 1), repeat=people))
    sums = {tuple(sorted(values)): together([laws[x] for x in values]) for values in sets}
    worst = 0.0
    for values, others in product(sums, sets):
        distance = sum(abs(x - y) for x, y in zip(values, others, strict=True))
        if 0 < distance <= claim["max_distance"]:
            gain = math.exp(float(claim["profile"][distance - 1]) * distance)
            worst = max(worst, stick(sums[values], sums[tuple(sorted(others))], gain) / delta)
    assert 0.02 < worst <= 1
    alone = math.exp(float(claim["local_epsilon"]) * (1 + 1e-12))
    local = max(stick(one, other, alone) for one, other in (laws[:2], laws[1::-1]))
    assert local <= float(claim["local_delta"]) * (1 + 1e-9) + 1e-30


def test_errors_are_those_of_the_integers() -> None:
    """Noise that is rarer than an integer can say has a weight of 1 all the same, up to the reach."""
    client, n = Padded.of("geo", 2, 1, 40, 1, Fraction(1), Fraction(1, 10**50)), 3
    found = metric_figures(client, n, Fraction(1, 100), 1, "honest", "sum")
    chances = {x: Fraction(client.weight(x), ALL) for x in range(-client.reach, client.reach + 1)}
    assert found["rmse"] ** 2 >= n * sum(x * x * chance for x, chance in chances.items())
    assert found["mae"] >= float(sum(abs(x) * chance for x, chance in chances.items()))
    assert found["truncation"] >= n * sum(chance for x, chance in chances.items() if abs(x) > 40) * (1 - found["mae"])


@pytest.mark.parametrize("name", ["histogram", "sum"])
def test_no_pair_of_multisets_is_told_apart_better_than_claimed(name: str, folder: Path) -> None:
    design = read_design(folder / f"{name}.json")
    client, claim = design.client, design.claim
    assert isinstance(client, Response)
    values = range(client.values)
    laws: list[Law] = [{y: client.chance(x, y) for y in values} for x in values]

    def shuffled(data: tuple[int, ...]) -> Law:
        found: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for messages in product(values, repeat=len(data)):
            found[tuple(sorted(messages))] += math.prod(laws[x][y] for x, y in zip(data, messages, strict=True))
        return found

    gain, worst = math.exp(float(claim["epsilon"])), 0.0
    for rest in combinations_with_replacement(values, design.n - 1):
        seen = [shuffled((x, *rest)) for x in values]
        worst = max([worst, *(stick(one, other, gain) for one in seen for other in seen if one is not other)])
    assert 0.02 * float(claim["delta"]) < worst <= float(claim["delta"])
    quotient = max(laws[x][y] / laws[other][y] for x in values for other in values for y in values)
    assert math.log(quotient) <= float(claim["local_epsilon"]) < math.log(quotient) + 1e-7


@pytest.mark.parametrize("name", ["geo", "coarse", "rr", "histogram", "sum"])
def test_draws_follow_the_exact_law(name: str, folder: Path) -> None:
    """A chi-square far above chance would show the wrong law; one with 30% less noise is found by the same test."""
    client, size = read_design(folder / f"{name}.json").client, 40_000
    words = (Source(11).words(size * client.words) >> np.uint64(2)).reshape(size, -1)
    x = client.inputs // 2
    seen = np.bincount(client.messages(np.full(size, x), words), minlength=client.largest + 1)
    if isinstance(client, Response):
        near, rest = divmod(x, client.grain)
        share = Fraction(rest, client.grain)
        law = [
            float((1 - share) * client.chance(near, y) + share * client.chance(min(near + 1, client.values - 1), y))
            for y in range(client.values)
        ]
    else:
        law = [float(metric_laws(client)[x].get(y, 0)) for y in range(client.largest + 1)]
    likely = [y for y, p in enumerate(law) if p * size > 10]
    square = sum((seen[y] - size * law[y]) ** 2 / (size * law[y]) for y in likely)
    assert square < len(likely) + 6 * math.sqrt(2 * len(likely)) + 12


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_file_verifies_and_both_checkers_agree(name: str, folder: Path) -> None:
    path = folder / f"{name}.json"
    opened = open_artifact(path, OpenedShuffle)
    verified = opened.verified
    assert verified.deployed.claim == opened.claim
    assert recheck(path).sha256 == opened.sha256


def test_what_is_no_protocol_is_refused_before_a_long_search(tmp_path: Path) -> None:
    for name in ("geo-local", "geo-central"):
        solution = solve(MetricShuffle(name, n=5, k=3, delta="1e-3", epsilon=1))
        with pytest.raises(ProblemError, match="baseline"):
            solution.save(tmp_path / "x.json")
    assert not list(tmp_path.iterdir())


Change = Callable[[dict[str, Any]], None]


def client(name: str, value: Any) -> Change:
    return lambda document: document["client"].update({name: value})


def claim(name: str, value: Any) -> Change:
    return lambda document: document["claim"].update({name: value})


def people(document: dict[str, Any]) -> None:
    document["people"] -= 1


def sharper(document: dict[str, Any]) -> None:
    """Less noise: a tenth of what is off the middle goes there."""
    weights = [int(text) for text in document["client"]["weights"]]
    moved = weights[1] // 10
    weights[0], weights[1] = weights[0] + 2 * moved, weights[1] - moved
    document["client"]["weights"] = list(map(str, weights))


def outliers(document: dict[str, Any]) -> None:
    """Rarer than delta, but as far out as noise goes: private, and with larger errors than the law stood for."""
    weights = [int(text) for text in document["client"]["weights"]]
    moved = ALL // 10**5
    weights[0], weights[-1] = weights[0] - 2 * moved, weights[-1] + moved
    document["client"]["weights"] = list(map(str, weights))
    document["claim"].update(local_delta="0.01", profile=["2", "2"], epsilon="2")


FORGED: list[tuple[str, Change]] = [
    ("geo", claim("epsilon", "0.5")),
    ("geo", claim("profile", ["0.2", "0.6"])),
    ("geo", claim("delta", "0.01")),
    ("geo", claim("local_epsilon", "0.1")),
    ("geo", claim("local_delta", "0")),
    ("geo", people),
    ("geo", sharper),
    ("geo", outliers),
    ("geo", client("padding", 1)),
    ("geo", client("q", "1/2")),
    ("geo", client("weights", [])),
    ("geo", client("weights", ["1"])),
    ("geo", client("beta", "1/3")),
    ("geo", client("law", "none")),
    ("geo", claim("meaning", "safe")),
    ("sgdl", client("beta", "1/2")),
    ("alone", claim("epsilon", "0.1")),
    ("alone", sharper),
    ("geo", claim("mae", "1E+9999")),
    ("plane", claim("profile", [])),
    ("plane", claim("profile", ["9"] * 9)),
    ("rr", client("flip", "4194305")),
    ("rr", client("bits", 0)),
    ("rr", claim("shuffler", "whoever")),
    ("histogram", claim("epsilon", "0.1")),
    ("histogram", claim("delta", "0.0001")),
    ("histogram", claim("local_epsilon", "1")),
    ("histogram", claim("standard_error", "0.1")),
    ("histogram", client("blank", str(1 << 40))),
    ("histogram", client("grain", 2)),
    ("histogram", people),
    ("labels", lambda document: document["data"].update(labels=["yes", "yes"])),
    ("labels", lambda document: document["data"].update(labels=["yes"])),
    ("labels", lambda document: document["data"].update(labels=["yes", " no"])),
    ("labels", lambda document: document["data"].update(labels="yes")),
    ("labels", lambda document: document["data"].update(estimator="best")),
    ("labels", claim("delta", "1e-9")),
    ("labels", claim("delta", "-1")),
    ("labels", claim("epsilon", "61")),
    ("coarse", sharper),
    ("plane", sharper),
    ("plane", client("dimensions", 3)),
    ("plane", client("grain", 2)),
    ("coarse", client("mechanism", "rr")),
    ("coarse", client("padding", -1)),
    ("geo", claim("profile", ["0.6"])),
    ("geo", claim("profile", ["0.6", 1])),
    ("geo", claim("profile", ["9", "9"])),
    ("geo", claim("delta", "0.6")),
    ("geo", claim("shuffler", "compromised")),
    ("geo", claim("max_distance", 3)),
    ("geo", client("q", "2/4")),
    ("geo", lambda document: document["client"].update(weights=[*document["client"]["weights"], "1"])),
    ("geo", lambda document: document["data"].update(query="mean")),
    ("sum", lambda document: document["data"].update(high="1e15/3")),
    ("sum", claim("mse", "0.1")),
    ("sum", client("blank", 5)),
    ("sum", lambda document: document["data"].update(low="9")),
    ("sum", lambda document: document["data"].update(high="3", low="3")),
    ("sum", lambda document: document["data"].update(high="+3")),
    ("sum", lambda document: document["data"].update(high=3)),
    ("sum", client("grain", 1)),
    ("sum", client("values", 10**6 + 2)),
    ("sum", lambda document: document.update(kind="shuffle-histogram")),
    ("sum", lambda document: document.update(extra=1)),
]


@pytest.mark.parametrize("number", range(len(FORGED)))
def test_a_forged_file_is_refused_in_one_line(number: int, folder: Path, tmp_path: Path) -> None:
    name, change = FORGED[number]
    document = json.loads((folder / f"{name}.json").read_text())
    change(document)
    path = forged(document, tmp_path / "forged.json")
    with pytest.raises(OptdpError) as error:
        verify_design(path)
    assert "\n" not in str(error.value)
    try:
        left = recheck(path).unchecked
    except (Failed, Refused):
        return
    assert explained(str(error.value), "", left), (str(error.value), left)


def forged(document: dict[str, Any], path: Path) -> Path:
    """A file with the right digest, in the one spelling."""
    keys = ["format", "version", "kind", "people", "client", "data", "claim", "provenance", *document.keys()]
    rest = {key: value for key, value in document.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    whole = {key: rest[key] for key in dict.fromkeys(keys) if key in rest} | {"sha256": digest}
    lines = [f'"{key}": {json.dumps(value, sort_keys=True)}' for key, value in whole.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return path


def test_a_cut_or_respelled_file_is_refused(folder: Path, tmp_path: Path) -> None:
    data = (folder / "geo.json").read_bytes()
    for number, other in enumerate(
        (data[:-20], data.replace(b'"people": 3', b'"people": 4'), data.replace(b", ", b","))
    ):
        path = tmp_path / f"{number}.json"
        path.write_bytes(other)
        with pytest.raises(ArtifactError):
            open_artifact(path)
        with pytest.raises(Refused):
            recheck(path)


def test_weaker_claims_hold_too(folder: Path, tmp_path: Path) -> None:
    document = json.loads((folder / "geo.json").read_text())
    document["claim"]["mae"] = "100"
    found: Deployed = verify_design(forged(document, tmp_path / "weaker.json")).deployed
    assert found.claim["mae"] == "100"
    document["claim"]["mae"] = "0.01"
    stronger = forged(document, tmp_path / "stronger.json")
    with pytest.raises(CertificateError):
        verify_design(stronger)
