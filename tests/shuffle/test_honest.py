"""People who stay away, people who collude: what the others hide, in designs, in files, in what analysts publish."""

from __future__ import annotations

import json
import math
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import pytest

from optdp import MetricShuffle, RealSum, ShuffleHistogram, load_problem, solve
from optdp.errors import CertificateError, OptdpError, ProblemError
from optdp.recheck import Failed, recheck
from optdp.shuffle.format import read_design, verify_design
from optdp.shuffle.metric.design import largest_epsilon, losses, worst_epsilon
from tests.command_line import in_process
from tests.shuffle.test_deployed import forged

COUNTED_ON: dict[str, Any] = {
    "geo": MetricShuffle("geo", n=10, k=4, delta="0.01", epsilon="0.7", max_distance=3, honest="0.8"),
    "rr": MetricShuffle("rr", n=10, k=2, delta="0.01", epsilon="1.2", max_distance=2, honest=7),
    "histogram": ShuffleHistogram(3, n=100, epsilon=1, delta="1e-4", honest="0.75"),
    "sum": RealSum(n=100, epsilon=1, delta="1e-4", honest=80),
}
FEWEST = {"geo": 8, "rr": 7, "histogram": 75, "sum": 80}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("honest")
    for name, problem in COUNTED_ON.items():
        solve(problem).save(made / f"{name}.json")
    return made


@pytest.mark.parametrize(
    ("name", "wanted"), [("sgdl-shuffle", (0.262, 0.451, 0.765)), ("geo-shuffle", (0.212, 0.241, 0.286))]
)
def test_ninety_seventy_and_fifty_of_a_hundred(name: str, wanted: tuple[float, ...]) -> None:
    """What a design at 0.2 for a hundred people gives away; figures that were computed elsewhere."""
    turnout = dict(solve(load_problem(f"paper-d/{name}")).turnout)
    assert turnout[100] <= 0.2 * (1 + 1e-8)
    assert [turnout[count] for count in (90, 70, 50)] == pytest.approx(wanted, abs=6e-4)


@pytest.mark.parametrize("mechanism", ["geo", "sgdl", "rr"])
def test_as_little_noise_as_possible(mechanism: str) -> None:
    """So few people keep epsilon with the noise that is found, and not with a little less; more people keep less."""
    found = solve(MetricShuffle(mechanism, n=40, k=3, delta="1e-4", epsilon="0.5", max_distance=2, honest="0.6"))
    assert found.design.fewest == 24
    assert 0.5 * (1 - 2e-3) <= found.epsilon <= 0.5 * (1 + 1e-12)
    epsilons = [epsilon for _, epsilon in found.turnout]
    assert epsilons == sorted(epsilons)
    assert found.mae > solve(found.problem.changed(honest=None)).mae
    if mechanism == "sgdl":
        assert found.beta == pytest.approx(1 / 24)


@pytest.mark.parametrize("given", [
    {"mechanism": "geo", "eps_geo": "0.8", "c": 13, "max_distance": 60},
    {"mechanism": "sgdl", "eps_geo": "0.3", "c": 60, "max_distance": 25},
    {"mechanism": "geo", "eps_geo": "0.9", "c": 8, "quantum": 3, "max_distance": 9},
    {"mechanism": "rr", "p": "0.3", "max_distance": 9}, {"mechanism": "geo", "eps_geo": "2", "c": 20, "max_distance": 4,
                                                         "dimensions": 2},
])  # fmt: skip
def test_the_worst_epsilon_is_that_of_the_whole_profile(given: dict[str, Any]) -> None:
    """It is looked for at a few distances."""
    design = solve(MetricShuffle(n=30, k=20, delta="1e-3", honest="0.5", **given)).design.proved()
    whole = largest_epsilon(losses(design, 1e-3, given["max_distance"]))
    assert whole <= worst_epsilon(design, 1e-3, given["max_distance"]) <= whole * (1 + 1e-8)


def test_randomized_response_by_brute_force() -> None:
    """Of 5 people 3 are counted on: no two histograms of 3, 4 or 5 people are told apart better than claimed."""
    found = solve(ShuffleHistogram(3, n=5, epsilon="1.5", delta="0.05", honest=3))
    gamma, gain = float(found.gamma), math.exp(1.5)
    laws = [[gamma / 3 + (1 - gamma) * (x == y) for y in range(3)] for x in range(3)]

    def shuffled(data: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        law: dict[tuple[int, ...], float] = {}
        for sent in product(range(3), repeat=len(data)):
            key = tuple(sorted(sent))
            law[key] = law.get(key, 0.0) + math.prod(laws[x][y] for x, y in zip(data, sent, strict=True))
        return law

    worst = 0.0
    for people in (3, 4, 5):
        for rest in combinations_with_replacement(range(3), people - 1):
            seen = [shuffled((x, *rest)) for x in range(3)]
            worst = max(worst, *(sum(max(0.0, p - gain * other[key]) for key, p in one.items())
                                 for one in seen for other in seen))  # fmt: skip
    assert 0.002 < worst <= 0.05


@pytest.mark.parametrize("name", COUNTED_ON)
def test_a_file_counts_on_no_fewer_than_is_proved(name: str, folder: Path, tmp_path: Path) -> None:
    """Both checkers refuse a file that says its claim holds with fewer people, and one that leaves this out."""
    path = folder / f"{name}.json"
    assert verify_design(path).deployed.honest == FEWEST[name]
    document = json.loads(path.read_text())
    both = name != "rr"  # of flipped bits the second checker leaves the profile to the first
    recheck(path)
    document["claim"]["honest"] -= 2
    less = forged(document, tmp_path / "less.json")
    with pytest.raises(CertificateError):
        verify_design(less)
    if both:
        with pytest.raises(Failed):
            recheck(less)
    for changed in ({"honest": document["people"] + 1}, {"honest": "8"}, {"honest": 0}, {"honest": None}):
        with pytest.raises(OptdpError):
            verify_design(forged(document | {"claim": document["claim"] | changed}, tmp_path / "odd.json"))
    del document["claim"]["honest"]
    with pytest.raises(OptdpError):
        read_design(forged(document, tmp_path / "without.json"))


@pytest.mark.parametrize("name", ["geo", "histogram", "sum"])
def test_fewer_messages_are_analyzed_within_the_stated_range(name: str, folder: Path, tmp_path: Path) -> None:
    design, n, least = folder / f"{name}.json", COUNTED_ON[name].n, FEWEST[name]
    (tmp_path / "x.csv").write_text("x\n" + "1\n" * n)
    sent = in_process("-q", "randomize", design, "--data", tmp_path / "x.csv", "--column", "x", "--seed", 5).stdout
    left, said = tmp_path / "s.jsonl", tmp_path / "e.json"
    for count in (least, n, least - 1, n + 1):
        (tmp_path / "m.jsonl").write_text("".join((sent + sent).splitlines(keepends=True)[:count]))
        done = in_process("-q", "shuffle", design, "--messages", tmp_path / "m.jsonl", "--out", left)
        if not least <= count <= n:
            assert done.returncode == 2
            assert f"{least:,} to {n:,} messages. Found {count:,}" in done.stderr
            continue
        assert done.returncode == 0, done.stderr
        assert in_process("-q", "analyze", design, "--messages", left, "--out", said).returncode == 0
        document = json.loads(said.read_text())
        estimate, privacy = document["estimate"], document["privacy"]
        assert estimate["n"] == count
        of_these = privacy["if_all_who_sent_are_honest"]
        assert of_these["people"] == count
        assert (of_these["epsilon"] < float(privacy["epsilon"]) * 0.98) == (count == n)
        assert of_these["epsilon"] <= float(privacy["epsilon"]) * (1 + 1e-8)
        if name == "histogram":
            assert sum(entry["reported"] for entry in estimate["bins"]) == count
            assert sum(entry["inversion"] for entry in estimate["bins"]) == pytest.approx(count)
        else:
            truth = count  # of ones
            assert abs(estimate["sum"] - truth) < 6 * estimate["standard_error"]


def test_who_must_take_part_is_said(folder: Path, tmp_path: Path) -> None:
    shown = in_process("verify", folder / "geo.json", "--explain")
    assert "At least 8 of the 10 people must add their noise" in " ".join(shown.stdout.split())
    assert "5 of 10" in shown.stdout
    solve(COUNTED_ON["geo"].changed(honest=None)).save(tmp_path / "all.json")
    plain = in_process("verify", tmp_path / "all.json")
    assert "All 10 people must add their noise" in " ".join(plain.stdout.split())
    page = in_process("report", folder / "histogram.json", "--out", tmp_path / "page.html")
    assert page.returncode == 0
    assert "50 of 100" in (tmp_path / "page.html").read_text()


def test_the_least_number_of_people_has_a_share_of_honest_ones() -> None:
    given = {"epsilon": "0.5", "delta": "1e-4", "average_mse": "1e-3"}
    all_of, most = solve(RealSum(**given)), solve(RealSum(honest="0.5", **given))
    assert all_of.n < most.n < 2 * all_of.n
    fewer = MetricShuffle("sgdl", None, 10, "1e-4", epsilon="0.5", mae="0.3", query="average", honest="0.5")
    assert solve(fewer).n > solve(fewer.changed(honest=None)).n


@pytest.mark.parametrize("wrong", ["1", "0", "-0.5", "1.5", "11", "nan"])
def test_shares_and_numbers(wrong: str) -> None:
    with pytest.raises(ProblemError, match="honest"):
        MetricShuffle("geo", n=10, k=2, delta="1e-4", epsilon=1, honest=wrong)


def test_where_nobody_else_is_relied_on() -> None:
    for more in ({"mechanism": "geo-local"}, {"mechanism": "geo", "shuffler": "compromised"}):
        with pytest.raises(ProblemError, match="honest is for an honest shuffler"):
            MetricShuffle(n=10, k=2, delta="1e-4", epsilon=1, honest="0.5", **more)
    with pytest.raises(ProblemError, match="must be a share"):
        MetricShuffle("geo", None, 2, "1e-4", epsilon=1, mae=5, honest=5)
    with pytest.raises(ProblemError, match="at least two"):
        ShuffleHistogram(3, n=3, epsilon=1, delta="1e-3", honest="0.2")
