"""From values to an estimate by the commands: randomize, shuffle, analyze; and files of messages that are at fault."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optdp import MetricShuffle, RealSum, ShuffleHistogram, solve
from optdp.errors import ArtifactError
from optdp.numbers.source import Source
from optdp.shuffle import analysis, messages
from optdp.shuffle.client import FINE_GRAIN
from optdp.shuffle.format import Deployed, read_design
from tests.command_line import in_process

N = 60
PROBLEMS: dict[str, Any] = {
    "geo": MetricShuffle("geo", n=N, k=20, delta="1e-3", eps_geo="0.9", c=12, quantum=2),
    "plane": MetricShuffle("rr", n=N, k=4, delta="1e-2", p="0.4", dimensions=2),
    "histogram": ShuffleHistogram(labels=["car", "bus", "foot"], n=N, eps0=3, delta="0.1"),
    "sum": RealSum(n=N, k=4, gamma="0.25", delta="0.1", low=-10, high=30),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A design for each problem, and the data of its people."""
    made = tmp_path_factory.mktemp("protocols")
    for name, problem in PROBLEMS.items():
        solve(problem).save(made / f"{name}.json")
    rows = [f"{i % 21},{i % 5},{(3 * i) % 5},{('car', 'bus', 'foot')[i % 3]},{i % 40 - 9.75}" for i in range(N)]
    (made / "data.csv").write_text("\n".join(["a,b,c,d,e", *rows]) + "\n")
    return made


def columns(name: str) -> list[str]:
    each = {"geo": "a", "plane": "bc", "histogram": "d", "sum": "e"}[name]
    return [part for letter in each for part in ("--column", letter)]


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_whole_way(name: str, folder: Path, tmp_path: Path) -> None:
    design = folder / f"{name}.json"
    made = in_process("-q", "randomize", design, "--data", folder / "data.csv", *columns(name), "--seed", 3)
    assert made.returncode == 0, made.stderr
    assert "not private" in made.stderr
    sent, left, said = (tmp_path / name for name in ("m.jsonl", "s.jsonl", "e.json"))
    sent.write_text(made.stdout)
    assert len(made.stdout.splitlines()) == N
    assert in_process("-q", "shuffle", design, "--messages", sent, "--out", left).returncode == 0
    assert len(left.read_text().splitlines()) <= 5  # nothing but sums, or how often each message came
    done = in_process("-q", "analyze", design, "--messages", left, "--out", said, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(said.read_text())
    assert document == json.loads(done.stdout)
    found, privacy = document["estimate"], document["privacy"]
    assert privacy["meaning"] == PROBLEMS[name].meaning
    i = np.arange(N)
    if name == "geo":
        low, high = found["interval_95"]
        assert found["sum"] == (low + high) / 2
        assert abs(found["sum"] - (i % 21).sum()) < 5 * found["standard_error"]
    elif name == "plane":
        far = math.hypot(found["sum"][0] - (i % 5).sum(), found["sum"][1] - (3 * i % 5).sum())
        assert far < 5 * found["standard_error"]
    elif name == "histogram":
        assert [held["value"] for held in found["bins"]] == ["car", "bus", "foot"]
        assert sum(held["reported"] for held in found["bins"]) == N
        assert all(abs(held["inversion"] - 20) < 5 * held["standard_error"] for held in found["bins"])
    else:
        assert abs(found["sum"] - (i % 40 - 9.75).sum()) < 5 * found["standard_error"]
        assert found["standard_error"] <= found["worst_standard_error"]


def test_one_person_sends_one_message(folder: Path) -> None:
    for name, given in (("geo", ["20"]), ("plane", ["0", "4"]), ("histogram", ["bus"]), ("sum", ["-9.5"])):
        options = [part for value in given for part in ("--input", value)]
        done = in_process("-q", "randomize", folder / f"{name}.json", *options)
        message = json.loads(done.stdout)
        assert message["design"] == read_design(folder / f"{name}.json").name
        assert done.stderr == ""
    for name, wrong in (
        ("geo", "21"),
        ("geo", "1.5"),
        ("geo", "nan"),
        ("histogram", "Car"),
        ("sum", "30.5"),
        ("sum", ""),
    ):
        done = in_process("-q", "randomize", folder / f"{name}.json", "--input", wrong)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), wrong
    assert "once" in in_process("-q", "randomize", folder / "geo.json", "--input", 1, "--input", 2).stderr
    assert "Either" in in_process("-q", "randomize", folder / "geo.json").stderr


def line(design: Deployed, **message: Any) -> str:
    return json.dumps({"design": design.name} | message) + "\n"


def test_faults_are_counted_and_the_first_is_named(folder: Path, tmp_path: Path) -> None:
    sums, counts = read_design(folder / "geo.json"), read_design(folder / "histogram.json")
    path = tmp_path / "m.jsonl"
    most = sums.client.largest
    cases = {
        "1 line of 1": line(sums, message=most + 1),
        "not shuffled": "",
        "2 lines of 3": line(sums, message=-1) + line(sums, message=3) + line(sums, message=True),
        "line 2: made by another design": line(sums, message=1) + line(counts, message=1),
        "line 1: no JSON": "{",
        "names no design": "[]\n",
        "the keys": line(sums, message=1, name="Ann"),
        "no JSON": f'{{"design": "{sums.name}", "message": 1, "message": 2}}\n',
        "longer than": f'{{"design": "{sums.name}", "message": {" " * 5000}1}}\n',
        "whole number": line(sums, message=[1]) + line(sums, message=1.0) + line(sums, message="1"),
    }
    for words, text in cases.items():
        path.write_text(text or line(sums, message=1))
        with pytest.raises(ArtifactError, match=words) as error:
            (messages.collected if text else messages.received)(sums, path)
        assert len(str(error.value).splitlines()) == 1
    path.write_text(line(sums, message=most) * 2 + line(sums, message=0))
    assert messages.collected(sums, path) == {"messages": 3, "ones": [2 * most]}
    path.write_text(line(sums, messages=2, ones=2 * most + 1))
    with pytest.raises(ArtifactError, match="ones must be"):
        messages.received(sums, path)
    path.write_text(line(counts, message=2) * 5 + line(counts, message=0))
    assert messages.received(counts, path)["counts"].tolist() == [1, 0, 5]
    path.write_text(line(counts, message=2, times=5) + line(counts, message=0, times=1))
    assert messages.received(counts, path)["counts"].tolist() == [1, 0, 5]
    with pytest.raises(ArtifactError, match=r"2 lines of 2 .* the keys"):  # nobody sends more than one message
        messages.collected(counts, path)
    with pytest.raises(ArtifactError, match="cannot read"):
        messages.collected(sums, tmp_path)


def test_what_was_shuffled_in_parts_is_refused(folder: Path, tmp_path: Path) -> None:
    """Half of the people have half of the noise: the claim is not one of two sums."""
    sums, counts = read_design(folder / "geo.json"), read_design(folder / "histogram.json")
    path = tmp_path / "parts.jsonl"
    for design, text in (
        (sums, line(sums, messages=3, ones=4) * 2),
        (counts, line(counts, message=2, times=3) + line(counts, message=2, times=1)),
        (counts, line(counts, message=2, times=3) + line(counts, message=1)),
    ):
        path.write_text(text)
        with pytest.raises(ArtifactError, match=r"1 line of 2 .* line 2: .* gives away more"):
            messages.received(design, path)


def test_another_number_of_messages_has_another_claim(folder: Path, tmp_path: Path) -> None:
    design = read_design(folder / "geo.json")
    for count, words in ((N - 1, "is not proved of these"), (N + 1, "two")):
        (tmp_path / "m.jsonl").write_text(line(design, message=3) * count)
        done = in_process(
            "-q", "shuffle", folder / "geo.json", "--messages", tmp_path / "m.jsonl", "--out", tmp_path / "s"
        )
        assert done.returncode == 2
        assert words in done.stderr
        assert not (tmp_path / "s").exists()


def test_real_numbers_keep_their_mean_and_their_error(folder: Path) -> None:
    """Over many runs the sum is right in the mean, and its standard error what was said, or a little less."""
    design, source = read_design(folder / "sum.json"), Source(5)
    low, high = -10.0, 30.0
    values = np.linspace(low, high - 3, N)
    assert analysis.fine([low, 0.0, high], low, high, 4 * FINE_GRAIN).tolist() == [0, FINE_GRAIN, 4 * FINE_GRAIN]
    held = analysis.fine(values, low, high, 4 * FINE_GRAIN)[:, None]
    runs = [
        analysis.estimate(design, {"messages": N, "counts": np.bincount(part, minlength=5)})
        for _ in range(600)
        for part in analysis.randomized(design, held, source)
    ]
    sums = np.array([run["sum"] for run in runs])
    said = math.sqrt(np.mean([run["standard_error"] ** 2 for run in runs]))
    assert abs(sums.mean() - values.sum()) < 5 * said / math.sqrt(600)
    assert 0.85 < sums.std() / said < 1.06
    covered = np.mean([run["interval_95"][0] <= values.sum() <= run["interval_95"][1] for run in runs])
    assert covered > 0.93
