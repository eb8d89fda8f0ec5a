"""The second checker against the first: on what was solved, on what was forged, and on bytes that are no artifact."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

import optdp.recheck
from optdp import MultiLTE, Population, SingleLTE, solve
from optdp.recheck import Failed, Refused, recheck
from optdp.recheck.__main__ import main
from tests.artifact import forgeries, mutations
from tests.artifact import test_plan as plans
from tests.checkers import agrees, both_agree, second_opinion
from tests.exact_checker import Checked
from tests.shared import shared_solution

binomial, iid = Population.binomial, Population.iid
DEPENDENT = Population.from_conditionals(
    [
        [["0.5", "0.3", "0.2"], ["0.2", "0.3", "0.5"]],
        [["0.4", "0.3", "0.3"], ["0.3", "0.3", "0.4"], ["0.1", "0.6", "0.3"]],
    ],
    ["0.35", "0.3", "0.35"],
)
MIXED = Population.independent([["0.5", "0.5"]] * 3 + [["0.2", "0.5", "0.3"]] * 2 + [["0", "0.9", "0.1"]])

SINGLE = {
    "binomial": SingleLTE(binomial(12, "0.3"), "0.4"),
    "binomial, certain": SingleLTE(binomial(5, "1"), "0.4"),
    "no tail": SingleLTE(binomial(12, "0.3"), "0.4", tail="none"),
    "fallback": SingleLTE(binomial(10, "0.5"), "0.3", fallback_epsilon="2"),
    "fallback, all": SingleLTE(iid(4, ["0.5", "0.3", "0.2"]), "0.5", fallback_epsilon="2", adjacency="all"),
    "iid": SingleLTE(iid(6, ["0.4", "0.3", "0.1", "0.1", "0.1"]), "0.7"),
    "iid, all": SingleLTE(iid(6, ["0.4", "0.3", "0.1", "0.1", "0.1"]), "0.7", adjacency="all"),
    "iid, at least one": SingleLTE(iid(5, ["0", "0.5", "0", "0.5"]), "0.7"),
    "kinds": SingleLTE(MIXED, "0.8"),
    "kinds, all": SingleLTE(MIXED, "0.8", adjacency="all", tail="none"),
    "counts": SingleLTE(Population.from_counts([30, 5, 0], 8, "1/2"), "0.5"),
    "others": SingleLTE(Population.from_others(["0.1", "0.2", "0.4", "0.2", "0.1"], ["0.2", "0.3", "0.5"]), "0.6"),
    "others, D": SingleLTE(Population.from_others(["0.1", "0.2", "0.4", "0.2", "0.1"], 3), "0.6", tail="none"),
    "dependent": SingleLTE(DEPENDENT, "0.5", tail="none"),
    "conservative": SingleLTE(binomial(20, "0.3").conservative("0.45"), "0.4"),
    "conservative, kinds": SingleLTE(MIXED.conservative("0.4"), "0.8", tail="none"),
    "two priors": SingleLTE([binomial(9, "0.5"), binomial(9, "0.4")], "0.5", weights=["0.25", "0.75"]),
    "unlike priors": SingleLTE([binomial(9, "0.5"), iid(3, ["0.25", "0.5", "0.25"])], "0.9"),
    "squared": SingleLTE(binomial(15, "0.2"), "0.5", objective="mse", never_worse=False),
    "shifting": SingleLTE(binomial(30, "0.3"), "0.4", method="shifting"),
    "geometric": SingleLTE(binomial(10, "0.3"), "0.4", method="geometric"),
    "geometric, clamped": SingleLTE(binomial(10, "0.3"), "0.4", method="geometric", tail="none"),
    "one person": SingleLTE(binomial(1, "0.3"), "0.4"),
    "small epsilon": SingleLTE(binomial(8, "0.3"), "0.001"),
    "large epsilon": SingleLTE(binomial(8, "0.3"), "8"),
    "hundred": SingleLTE(binomial(100, "0.1"), "0.3"),
}

PLANS = {
    "joint": MultiLTE([binomial(3, "0.5"), binomial(2, "0.4")], "0.5", method="joint"),
    "two of three": MultiLTE(
        [binomial(2, "0.5"), binomial(2, "0.5"), binomial(1, "0.3")], "0.6", honest=2, method="joint"
    ),
    "weighted": MultiLTE([binomial(2, "0.5"), iid(2, ["0.5", "0.3", "0.2"])], "0.6", f=[2, -1], method="joint"),
    "two guarantees": MultiLTE([binomial(4, "0.5"), binomial(4, "0.5")], "0.6", fallback_epsilon="3", method="joint"),
    "two worlds": MultiLTE(
        [binomial(2, "0.5"), binomial(2, "0.4")], "0.6", also=[[binomial(2, "0.45")] * 2], method="joint"
    ),
    "alone": MultiLTE([binomial(3, "0.5"), binomial(2, "0.4")], "0.6", honest=1, method="joint"),
    "inside": MultiLTE([binomial(4, "0.5"), binomial(3, "0.4"), binomial(3, "0.4")], "0.6", method="inside", honest=2),
    "divisible": MultiLTE([binomial(8, "0.5")] * 2, "0.5", method="divisible"),
    "divisible, weighted": MultiLTE([binomial(6, "0.5"), binomial(5, "0.5")], "0.5", method="divisible", f=[2, -1]),
    "divisible, kinds": MultiLTE([binomial(5, "0.5"), MIXED, binomial(5, "0.5")], "0.9", method="divisible", honest=2),
    "no contraction": MultiLTE([binomial(8, "0.5"), binomial(6, "0.5")], "0.8", method="divisible", contraction="none"),
    "shifts": MultiLTE([binomial(8, "0.5"), binomial(8, "0.3")], "0.8", method="divisible", contraction="shifts"),
    "shares": MultiLTE([binomial(8, "0.5"), iid(5, ["0.5", "0.3", "0.2"])], "0.5", method="geometric", f=[3, -2]),
    "shares, half honest": MultiLTE([binomial(8, "0.5")] * 4, "0.5", method="geometric", honest=2),
}


@pytest.mark.parametrize("name", SINGLE)
def test_both_accept_what_was_solved(name: str, tmp_path: Path) -> None:
    solve(SINGLE[name]).save(tmp_path / "a.json")
    assert both_agree(tmp_path / "a.json") == 0


@pytest.mark.parametrize("adjacency", ["unit", "all"])
@pytest.mark.parametrize("tail", ["geometric", "none"])
def test_bounds_with_a_fallback_are_proved(tail: Any, adjacency: Any, tmp_path: Path) -> None:
    """By both checkers, from the prices of the fallback too: without those the same bound is not proved."""
    people = Population.iid(4, ["0.4", "0.3", "0.2", "0.1"])
    path = tmp_path / "a.json"
    solve(SingleLTE(people, "0.5", fallback_epsilon="2", tail=tail, adjacency=adjacency, never_worse=False)).save(path)
    assert both_agree(path) == 0
    assert recheck(path).unchecked == ()
    document = json.loads(path.read_text())
    untrue = copy.deepcopy(document)
    untrue["claim"]["lower_bound"] = str(Fraction(document["claim"]["lower_bound"]) * Fraction(1001, 1000) // 1 + 9)
    unproved = copy.deepcopy(document)
    del unproved["provenance"]["prices"]["v"]
    barely = copy.deepcopy(document)
    barely["provenance"]["prices"]["v"][0] = "0.0 " * 12 + "0.0"
    for forged in (untrue, unproved):
        path.write_bytes(forgeries.sealed(forged))
        assert both_agree(path) == 1
    path.write_bytes(forgeries.sealed(barely))
    assert both_agree(path) in (0, 1)


@pytest.mark.parametrize(("tail", "outside"), [("geometric", "geometric"), ("none", "clamp")])
def test_tables_for_the_likely_inputs_only(
    tail: Any, outside: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("optdp.single.window.FULL_LIMIT", 100)
    monkeypatch.setattr("optdp.recheck.bounds.LARGEST", 100)  # beyond it a bound is left to verify
    monkeypatch.setattr("optdp.single.window.likely_inputs", lambda problem, share: (90, 210))
    solution = solve(SingleLTE(binomial(300, "0.5"), "2", tail=tail, never_worse=False))
    assert solution.mechanism.outside == outside
    solution.save(tmp_path / "a.json")
    assert both_agree(tmp_path / "a.json") == 0


def test_two_thousand_people(tmp_path: Path) -> None:
    solution = solve(SingleLTE(binomial(2000, "0.1"), "0.1"))
    solution.save(tmp_path / "a.json")
    agrees(tmp_path / "a.json", solution.certificate)


@pytest.mark.parametrize("name", PLANS)
def test_both_accept_plans(name: str, tmp_path: Path) -> None:
    solve(PLANS[name]).save(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 0


# ---------------------------------------------------------------------- forged with care


def test_both_judge_forged_artifacts_alike(tmp_path: Path) -> None:
    """Weights moved, rows exchanged, claims a hair too low, other priors and tails; every digest made anew."""
    random, codes = Random(11), [0, 0, 0]
    every, path = forgeries.originals(), tmp_path / "a.json"
    for turn in range(400):
        document = forgeries.forged(every, turn, random)
        if random.random() < 0.3:
            forgeries.at_the_edge(document, random, path)
        path.write_bytes(forgeries.sealed(document))
        codes[both_agree(path)] += 1
    assert min(codes) > 30


def test_both_judge_damaged_files_alike(tmp_path: Path) -> None:
    """Tables in both formats, plans and an order, bytes changed by accident."""
    random, codes = Random(15), [0, 0, 0]
    things = mutations.material(tmp_path)
    every = [path for thing in things for path in thing.files]
    data = {path: path.read_bytes() for path in every}
    whole = {path: thing.files[0] if len(thing.files) == 1 else path.parent for thing in things for path in thing.files}
    for place in set(whole.values()):
        assert both_agree(place) == 0
    for _ in range(150):
        path = random.choice(every)
        path.write_bytes(mutations.mutated(data[path], random, data[random.choice(every)]))
        codes[both_agree(whole[path])] += 1
        path.write_bytes(data[path])
    assert codes[2] > 120


CLAIMS = ("epsilon", "ordinary_epsilon", "mae", "mse", "worst_error", "baseline_mae")


@pytest.mark.parametrize("name", ["binomial", "fallback", "kinds", "squared", "others"])
def test_a_claim_that_is_a_little_lower_is_refused_by_both(name: str, tmp_path: Path) -> None:
    solution, path = solve(SINGLE[name]), tmp_path / "a.json"
    solution.save(path)
    document = json.loads(path.read_bytes())
    for claim in CLAIMS:
        if document["claim"][claim] == "infinite":
            continue
        lower = copy.deepcopy(document)
        value = {**recheck_figures(path), "baseline_mae": solution.problem.cap}[claim]
        lower["claim"][claim] = str(round(value * (1 - Fraction(1, 10**9)) * 10**40)) + "e-40"
        (tmp_path / "lower.json").write_bytes(forgeries.sealed(lower))
        assert both_agree(tmp_path / "lower.json") == 1, claim


def recheck_figures(path: Path) -> dict[str, Any]:
    return dict(recheck(path).figures)


def test_both_judge_forged_plans_alike(tmp_path: Path) -> None:
    random, codes = Random(12), [0, 0, 0]
    homes = {}
    for method in ("joint", "divisible", "geometric"):
        homes[method] = tmp_path / method
        shared_solution(MultiLTE(plans.PEOPLE, "0.5", method=method)).save(homes[method])
    for turn in range(60):
        method = "joint" if turn % 3 else random.choice(["divisible", "geometric"])
        forgery = plans.Forgery(homes[method])
        change = random.choice(plans.STRUCTURED if method == "joint" else plans.SHARES)
        if change is not plans.swap_rows or all(len(party["weights"]) > 1 for party in forgery.parties):
            change(forgery, random)
        if random.random() < 0.7:
            plans.modest(forgery, random)
        place = tmp_path / "forged"
        place.mkdir()
        forgery.seal().write(place)
        codes[both_agree(place)] += 1
        shutil.rmtree(place)
    assert min(codes) > 3


def test_it_finds_what_fractions_find(tmp_path: Path) -> None:
    """The figures themselves, against a third derivation: plain fractions and enumerated people."""
    path = tmp_path / "a.json"
    for name in ("kinds", "iid, all", "no tail", "fallback", "others"):
        solve(SINGLE[name]).save(path)
        found, truth = recheck(path).figures, Checked(path)
        epsilon, mae = found["epsilon"], found["mae"]
        assert epsilon is not None
        assert mae is not None
        assert truth.private(epsilon + Fraction(1, 10**50))
        assert epsilon < Fraction(1, 10**20) or not truth.private(epsilon * (1 - Fraction(1, 10**12)))
        assert 0 <= mae - truth.mae() < Fraction(1, 10**50)


# ---------------------------------------------------------------------- alone


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Python in a folder from which it may import, and with nothing that is installed: no site, no variables."""
    return subprocess.run(
        [sys.executable, "-E", "-s", "-S", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


LOADED = "import sys, {}; print(*sys.modules)"


def test_it_runs_as_a_lone_folder_with_the_standard_library_only(tmp_path: Path) -> None:
    home, path = tmp_path / "alone", tmp_path / "a.json"
    shutil.copytree(Path(optdp.recheck.__file__).parent, home / "recheck", ignore=shutil.ignore_patterns("__pycache__"))
    solve(SINGLE["binomial"]).save(path)

    done = python("-m", "recheck", str(path), folder=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"PASS {path}\n")
    assert "epsilon                    0.39" in done.stdout or "epsilon                    0.4" in done.stdout
    modules = python("-c", LOADED.format("recheck.__main__"), folder=home).stdout.split()
    loaded = {name.partition(".")[0] for name in modules}
    assert {"json", "fractions", "recheck"} <= loaded <= {*sys.stdlib_module_names, "__main__", "recheck"}

    document = json.loads(path.read_bytes())
    document["claim"]["mae"] = "0.001"
    path.write_bytes(forgeries.sealed(document))
    done = python("-m", "recheck", str(path), folder=home)
    assert done.returncode == 1
    assert done.stderr.startswith("FAIL")
    assert "mae" in done.stderr
    path.write_bytes(path.read_bytes()[:-9])
    done = python("-m", "recheck", str(path), folder=home)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_within_optdp_it_imports_the_standard_library_and_itself() -> None:
    repository = Path(optdp.recheck.__file__).parents[2]
    done = python("-c", LOADED.format("optdp.recheck.__main__"), folder=repository)
    assert done.returncode == 0, done.stderr
    foreign = {name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    own = {f"optdp.recheck.{path.stem}" for path in Path(optdp.recheck.__file__).parent.glob("[!_]*.py")}
    assert foreign == own | {"__main__", "optdp", "optdp.recheck", "optdp.recheck.__main__"}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared_solution(MultiLTE([binomial(4, "0.5")] * 2, "0.6", method="joint")).save(tmp_path / "plan")
    assert main([str(tmp_path / "plan")]) == 0
    printed = capsys.readouterr().out
    assert "party 1: ordinary_epsilon" in printed
    assert "not checked here" not in printed
    for arguments in ([], ["a", "b"], ["--help"], [str(tmp_path / "none.json")], [str(tmp_path)]):
        assert main(arguments) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_more_work_than_a_minute_is_refused_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solve(SINGLE["hundred"]).save(tmp_path / "a.json")
    monkeypatch.setattr("optdp.recheck.verdict.MOST_WORK", 10**6)
    with pytest.raises(Refused, match="optdp verify"):
        recheck(tmp_path / "a.json")


# ---------------------------------------------------------------------- hostile


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff\xfe", b"null", b"[]", b"{}", b"[" * 10**6, b'{"a":' * 10**5, b"NaN", b'{"a": Infinity}',
        b'{"a": 1e999}', b'{"a": 1, "a": 2}', b"1" * 10**6, b'{"a": ' + b"9" * 2000 + b"}",
        b'{"format": "\\ud800"}', b"PK\x03\x04" * 9,
        b'{"format": "optdp/noise-matrix"}', b'{"format": "optdp/noise-matrix", "version": true}',
        b"\x80\x04\x95.", b'{"x": ' + b"[" * 60 + b"]" * 60 + b"}",
    ],
)  # fmt: skip
def test_bytes_that_are_no_artifact(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(data)
    code, said, _ = second_opinion(tmp_path / "a.json")
    assert code == 2
    assert said.isprintable()
    assert len(said) < 600
    (tmp_path / "plan.json").write_bytes(data)
    assert second_opinion(tmp_path)[0] == 2


ODD: list[Any] = [
    None, True, -1, 0, 10**9, 10**1200, 0.5, 1e300, "", "0", "-1", "1/0", "1e999", "1e-1000", "9" * 400, "x" * 9000, [],
    {}, [[]], [None], {"kind": "binomial"}, "geometric", "\ud7ff\x00\n",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document where something stands."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in items for place in places(inner, (*path, key)))]


def test_odd_values_anywhere_are_refused_in_one_line(tmp_path: Path) -> None:
    """Every digest made anew, so that nothing but the rules themselves can refuse."""
    random, path, codes = Random(13), tmp_path / "a.json", [0, 0, 0]
    originals = forgeries.originals()
    for turn in range(600):
        document = copy.deepcopy(originals[turn % len(originals)])
        *way, last = random.choice([place for place in places(document) if place and place[0] != "sha256"])
        inner = document
        for key in way:
            inner = inner[key]
        if random.random() < 0.1:
            del inner[last]
        else:
            inner[last] = random.choice(ODD)
        path.write_bytes(forgeries.sealed(document))
        code, said, _ = second_opinion(path)
        assert said.isprintable()
        assert len(said) < 1000
        codes[code] += 1
    assert codes[2] > 300


def test_what_is_needed_may_not_be_null(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    solve(SingleLTE(Population.binomial(10, "0.5"), "1")).save(path)
    document = json.loads(path.read_bytes())
    document["problem"]["population"]["n"] = None
    path.write_bytes(forgeries.sealed(document))
    code, said, _ = second_opinion(path)
    assert code == 2
    assert "n must be" in said


@pytest.mark.parametrize("method", ["joint", "divisible", "geometric"])
def test_odd_values_anywhere_in_a_plan(method: str, tmp_path: Path) -> None:
    random, home, codes = Random(14), tmp_path / "plan", [0, 0, 0]
    shared_solution(MultiLTE(plans.PEOPLE, "0.5", method=method)).save(home)
    for turn in range(100):
        forgery = plans.Forgery(home)
        document = forgery.plan if turn % 3 == 0 else random.choice(forgery.parties)
        *way, last = random.choice(
            [place for place in places(document) if place and place[0] in ("problem", "tail", "claim")]
        )
        inner = document
        for key in way:
            inner = inner[key]
        inner[last] = random.choice(ODD)
        place = tmp_path / "forged"
        place.mkdir()
        try:
            forgery.seal().write(place)
        except (TypeError, ValueError, AttributeError, KeyError):  # it cannot even be sealed
            shutil.rmtree(place)
            continue
        code, said, _ = second_opinion(place)
        assert said.isprintable()
        codes[code] += 1
        shutil.rmtree(place)
    assert codes[2] > 20


def test_a_claim_that_fails_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    solve(SINGLE["no tail"]).save(path)
    document = json.loads(path.read_bytes())
    document["problem"]["epsilon"] = "0.3"
    path.write_bytes(forgeries.sealed(document))
    with pytest.raises(Failed, match=r"epsilon under the prior must be at most 0\.3\. Found 0\.39"):
        recheck(path)
