"""What the file of a shuffle protocol may say: both checkers draw every limit at the same place."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from optdp import MetricShuffle, RealSum, ShuffleHistogram, solve
from optdp.errors import ArtifactError
from optdp.recheck import Refused, devices
from optdp.recheck.shuffle import OF_ERRORS, OF_PRIVACY
from optdp.shuffle.format import read_design
from tests.artifact.shuffle_forgeries import sealed

Document = dict[str, Any]
ALL, WORD, GRID = 1 << 124, 1 << 62, 1 << 22
PROBLEMS: dict[str, Any] = {
    "geo": MetricShuffle("geo", n=3, k=4, delta="0.02", epsilon="0.8", max_distance=2, quantum=2),
    "plane": MetricShuffle("geo", n=3, k=2, delta="0.02", epsilon="0.8", max_distance=1, dimensions=2),
    "rr": MetricShuffle("rr", n=3, k=2, delta="0.02", epsilon="1.5", max_distance=2),
    "histogram": ShuffleHistogram(labels=["yes", "no"], n=50, eps0=2, delta="0.01"),
    "bins": ShuffleHistogram(3, n=4, epsilon="1.5", delta="0.05"),
    "sum": RealSum(n=4, k=3, gamma="0.5", delta="0.05", low=-1, high=3),
}
FIGURES = (
    "1", "1.0", "1.", ".1", "+1", "-1", "1e-12", "1E-12", "1E+2", "1e2", "1E9999", "1E300", "1E301", "1e-999",
    "1e-1000", "1" * 60, "1" * 61, "0." + "1" * 60, "0." + "1" * 61, "", " 1", "1/2", "inf", "1E12345", "\u0661", 1,
    0.5, None,
)  # fmt: skip
EDGES: dict[str, dict[tuple[str, ...], tuple[Any, ...]]] = {
    "geo": {
        ("people",): (0, 1, 10**7, 10**7 + 1, True, "3", 3.0),
        ("client",): (None, [], "flips", {}),
        ("client", "law"): ("padded", "flips", "response", None),
        ("client", "mechanism"): ("geo", "sgdl", "hybrid", "rr", "geo-local", "", None),
        ("client", "k"): (0, 3, 4, 5, 10**6 + 1),
        ("client", "grain"): (0, 1, 2, 3, 4, 5, True),
        ("client", "padding"): (-1, 0, 10**6 + 1, "1"),
        ("client", "dimensions"): (0, 1, 2, 3),
        ("client", "beta"): ("1", "1/10000000", "1/10000001", "2/10000000", "1000001/1000000", "0", "1.0", "1/1", 1),
        ("client", "q"): (
            "1", "99999/100000", "100000/100001", f"1/{10**60}", f"1/{10**60 + 1}", "2/4", "0", "0.5", "1/2", None,
        ),
        ("claim", "delta"): ("0.5", "0.500000001", "0.000000000001", "1E-12", "9E-13", "0"),
        ("claim", "max_distance"): (0, 1, 2, 3, 5000, 5001, True),
        ("claim", "shuffler"): ("honest", "compromised", "", None),
        ("claim", "profile"): (["1", "1"], ["1"], ["1"] * 3, [], "11", None, ["1", 1], ["1", "1e2"]),
        ("claim", "mae"): FIGURES,
        ("claim", "more"): ("1",),
        ("data", "query"): ("sum", "average", "mean", None),
        ("data", "more"): (1,),
        ("client", "more"): (1,),
    },
    "plane": {
        ("client", "grain"): (1, 2),
        ("claim", "profile"): ([], ["1"], ["1"] * 20_000, ["1"] * 20_001),
    },
    "rr": {
        ("client",): (None, [], {"law": "flips"}),
        ("client", "bits"): (0, 1, 10**6, 10**6 + 1, True),
        ("client", "flip"): (
            str(GRID), str(GRID + 1), "0", str(WORD // 2 - GRID), str(WORD // 2), GRID, "0" + str(GRID), "-4194304",
        ),
        ("client", "dimensions"): (0, 1, 2, 3),
        ("client", "more"): (1,),
    },
    "histogram": {
        ("people",): (1, 2, 10**10, 10**10 + 1),
        ("client", "values"): (1, 2, 3),
        ("client", "blank"): (str(GRID), "0", str(WORD - GRID), str(WORD), str(WORD - 1), GRID),
        ("client", "grain"): (1, 2, True, 1 << 32),
        ("client", "law"): ("response", "padded"),
        ("claim", "epsilon"): ("0.000000001", "0.0000000009", "60", "60.000000001", "0"),
        ("claim", "delta"): ("0", "1", "1.000000001"),
        ("data", "labels"): (
            None, ["yes", "no"], ["no", "no"], ["yes", ""], ["yes", "no "], ["yes"], ["a", "b", "c"], "ab", [1, 2], {},
        ),
        ("data", "estimator"): ("likelihood", "projection", "inversion", "", None, "likelihood projection"),
    },
    "bins": {
        ("client", "values"): (1, 2, 10**7, 10**7 + 1),
        ("data", "labels"): (None, ["a", "b"], ["a", "b", "c"]),
    },
    "sum": {
        ("client", "values"): (1, 2, 10**6 + 1, 10**6 + 2),
        ("client", "grain"): (1, 1 << 32, 1 << 33),
        ("data", "low"): (
            "-1", "-1000000000000000", "-1000000000000001", "3", "2.9999999999999999999", "2.999999999", "4", "-0",
            "1/3", "1/0", "1/03", "1.", ".5", "+1", "1e2", "1e-2", "1e-999", "1E-2", -1, None, "0" * 61,
        ),
        ("data", "high"): (
            "1000000000000000", "1000000000000001", "1000000000000000.5", "1e15", "1e16", "-1", "-0.9", "-1.0",
        ),
        ("claim", "mse"): ("1", "-1"),
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    folder = tmp_path_factory.mktemp("devices")
    found = {}
    for name, problem in PROBLEMS.items():
        solve(problem).save(folder / name)
        found[name] = json.loads((folder / name).read_bytes())
    return found


def second(document: Document) -> None:
    """What the second checker asks of the form, before it recomputes anything."""
    kind = document["kind"]
    if kind == "metric-shuffle":
        _, furthest, _, _, sides = devices.metric_of(document)
        more = "profile max_distance shuffler honest"
        stated = devices.figures_of(document["claim"], kind, " ".join((*OF_PRIVACY, *OF_ERRORS)), more)
        assert max(devices.profile_of(document["claim"], furthest, sides)) <= stated["epsilon"] * 2
    else:
        devices.response_of(document)
        error = "mse" if kind == "real-sum" else "standard_error"
        devices.figures_of(document["claim"], kind, f"epsilon delta local_epsilon {error}", "honest")


def alike(document: Document, path: Path) -> bool:
    """Whether both accept the form, or neither does."""
    path.write_bytes(sealed(document))
    try:
        second(document)
        answer = True
    except Refused:
        answer = False
    try:
        read_design(path)
        return answer
    except ArtifactError:
        return not answer


def changed(name: str, document: Document) -> Iterator[tuple[Any, Document]]:
    """The document with each value of `EDGES` in its place; a claimed epsilon is never what is at fault."""
    for place, values in EDGES[name].items():
        for value in values:
            other = copy.deepcopy(document)
            if "profile" in other["claim"]:
                other["claim"]["epsilon"] = "1000"
            inner = other
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            if place == ("people",):
                other["claim"]["honest"] = value  # all of them, as its sentence says
            if place == ("claim", "shuffler"):
                continue  # whose sentence differs; the word itself is below
            yield (place, value), other


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_limit_is_at_the_same_place(name: str, originals: dict[str, Document], tmp_path: Path) -> None:
    document = originals[name]
    assert alike(document, tmp_path / "a.json")
    second(document)
    assert [what for what, other in changed(name, document) if not alike(other, tmp_path / "a.json")] == []


def test_weights_are_what_is_left_of_everything(originals: dict[str, Document], tmp_path: Path) -> None:
    original = originals["geo"]
    weights = [int(text) for text in original["client"]["weights"]]
    steps = -(-original["client"]["k"] // original["client"]["grain"])
    reach = steps + original["client"]["padding"]
    one_less = [weights[0] + 2 * (sum(weights[1:]) - 1), *([] if reach == 1 else [1])]
    cases: list[Any] = [
        weights, [weights[0] + 1, *weights[1:]], [weights[0] - 2, weights[1] + 1, *weights[2:]], weights[:-1], [],
        ["x"], [ALL - 2 * reach], [ALL - 2 * reach + 1], one_less, [ALL], [*weights[:-1], 0], [*weights, 1],
        [weights[0], *weights[1:], *[1] * (reach + 2)],
    ]  # fmt: skip
    for case in cases:
        document = copy.deepcopy(original)
        document["client"]["weights"] = [str(weight) for weight in case]
        assert alike(document, tmp_path / "a.json"), case
    for given in (None, "1", [1], ["1"] * 3, [f"0{ALL - 2 * reach}"]):
        document["client"]["weights"] = given
        assert alike(document, tmp_path / "a.json"), given


def test_the_shuffler_is_named(originals: dict[str, Document]) -> None:
    for word, right in (("honest", True), ("compromised", False)):
        document = copy.deepcopy(originals["geo"])
        document["claim"]["shuffler"] = word
        assert devices.metric_of(document)[2] is right
    document["claim"]["shuffler"] = "both"
    with pytest.raises(Refused):
        devices.metric_of(document)


def test_weights_reach_as_far_as_messages_do(originals: dict[str, Document]) -> None:
    noise = devices.metric_of(originals["geo"])[3]
    assert noise is not None
    assert sum(noise.weight(x) for x in range(-noise.reach - 3, noise.reach + 4)) == ALL
    assert (noise.weight(noise.reach), noise.weight(-noise.reach - 1)) == (noise.weight(-noise.reach), 0)
    assert noise.weight(len(noise.weights)) == (1 if len(noise.weights) <= noise.reach else 0)
    assert devices.width_of(originals["sum"]) == Fraction(4)
    assert not noise.plain
