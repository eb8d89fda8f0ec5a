"""Ten tasks of new users, done as docs/tasks.md says: in an empty folder, and what comes out is looked at."""

from __future__ import annotations

import csv
import json
import random
import re
import shlex
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optdp import Population, SingleLTE, load, solve
from tests.command_line import Done

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks.md"
TASKS = {
    part.splitlines()[0]: part for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
}  # fmt: skip
_BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)

Journey = Callable[[str], list[Done]]


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., Done]) -> Journey:
    """Runs what the page says for a task, in a folder that holds just what the task speaks of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "svg")

    def run(title: str) -> list[Done]:
        ((language, text),) = _BLOCK.findall(TASKS[title])
        lines = [line for line in text.splitlines() if line.strip()]
        if language == "python":
            assert len(lines) <= 10
            exec(compile(text, title, "exec"), {"__name__": "a notebook"})
            return []
        assert len(lines) <= 3
        found = []
        for line in lines:
            program, *arguments = shlex.split(line)
            assert program == "optdp"
            found.append(command(*arguments))
            assert found[-1].code == 0, found[-1]
        return found

    return run


def table(name: str, columns: dict[str, list[Any]]) -> None:
    with open(name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def test_there_are_ten_tasks_and_each_says_what_somebody_wants() -> None:
    assert len(TASKS) == 10
    for title, text in TASKS.items():
        assert "\n> " in text, title
        assert len(_BLOCK.findall(text)) == 1, title


def test_three_hospitals_every_month(go: Journey, command: Callable[..., Done]) -> None:
    go("Three hospitals, every month")
    assert {path.name for path in Path("plan").iterdir()} == {"plan.json", *(f"party-{i}.json" for i in range(3))}
    for number in range(11):
        done = command("ledger", "add", "year.jsonl", "plan", "--about", f"month {number + 2}")
        assert done.code == 0, done
    command("ledger", "add", "year.jsonl", "plan", "--about", "a thirteenth").refused("4", code=1)


def test_a_survey_from_phones(go: Journey) -> None:
    answers = [value for value in range(8) for _ in range(100 + 150 * value)]
    answers = answers[:5000]
    table("answers.csv", {"answer": answers})
    _, solved, _ = go("A survey from 5,000 phones")
    assert "3.619" in solved.out, "the local epsilon that the page names"
    estimate = json.loads(Path("estimate.json").read_text())
    error = float(re.search(r"error of a bin +([\d.]+)", solved.out)[1])  # type: ignore[index]
    true = Counter(answers)
    found = {int(one["value"]): one["count"] for one in estimate["estimate"]["bins"]}
    assert set(found) == set(range(8))
    assert all(abs(found[value] - true[value]) < 8 * error for value in found), (found, true)


def test_daily_steps(go: Journey) -> None:
    draw = random.Random(1)
    steps = [draw.randint(0, 300) for _ in range(1000)]
    table("steps.csv", {"steps": steps})
    go("Daily steps of 1,000 users")
    estimate = json.loads(Path("estimate.json").read_text())
    assert abs(estimate["estimate"]["average"] - sum(steps) / 1000) < 0.5, "about 14 times the mean error"
    assert load("steps.toml").local_epsilon == 2


def test_shuffled_within_districts(go: Journey) -> None:
    draw = random.Random(2)
    districts = [name for name in ["north", "south", "east", "west", "centre"] for _ in range(8)]
    answers = [draw.choice(["yes", "no"] if name > "f" else ["yes", "yes", "yes", "no"]) for name in districts]
    table("people.csv", {"district": districts, "answer": answers})
    before = Path("people.csv").read_bytes()
    go("Shuffle within districts")
    with open("shuffled.csv", newline="") as file:
        shuffled = [row["answer"] for row in csv.DictReader(file)]
    assert Counter(shuffled) == Counter(answers)
    assert Path("people.csv").read_bytes() == before


def test_solvers_compared_and_samplers_deployed(go: Journey, capsys: pytest.CaptureFixture[str]) -> None:
    go("Compare solvers, deploy in C and PostgreSQL")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [["highs", "optimal"], ["scipy", "optimal"]]
    if shutil.which("cc"):
        subprocess.run(["cc", "-std=c99", "-DSAMPLER_MAIN", "-o", "sampler", "sampler-c/sampler.c"], check=True)
        subprocess.run(["./sampler", "--self-test"], check=True)
    script = Path("sampler-sql/sampler.sql").read_text()
    with sqlite3.connect(":memory:") as base:
        base.executescript(script)
        assert base.execute("SELECT * FROM optdp_self_test").fetchall() == []
        base.execute("INSERT INTO optdp_requests (id, input) VALUES (1, 12)")
        base.executemany("INSERT INTO optdp_words (id, place, word) VALUES (1, ?, ?)", enumerate((2**61, 5, 7)))
        assert len(base.execute("SELECT id, released FROM optdp_released").fetchall()) == 1


def test_a_sweep_and_a_plot(go: Journey) -> None:
    go("A sweep and a plot in a notebook")
    drawn = Path("errors.svg").read_text()
    assert "<!-- optdp -->" in drawn
    assert "<!-- geometric noise -->" in drawn


def test_a_strangers_file(go: Journey, command: Callable[..., Done]) -> None:
    solution = solve(SingleLTE(Population.binomial(30, "0.2"), "0.3", tail="none"))
    solution.save("stranger.json")
    first, second, _ = go("Check a stranger's file")
    assert "verified" in first.out
    assert "0.3" in second.out
    assert "<html" in Path("stranger.html").read_text()
    text = Path("stranger.json").read_text()
    Path("stranger.json").write_text(text.replace('"epsilon": "0.3', '"epsilon": "0.2', 1))
    line = next(line for line in TASKS["Check a stranger's file"].splitlines() if line.startswith("optdp"))
    assert command(*shlex.split(line)[1:]).code == 2


def test_a_sum_of_transfers(go: Journey, capsys: pytest.CaptureFixture[str]) -> None:
    go("A sum of transfers whose ranges are known")
    ours, noise, epsilon = (float(eval(word, {"__builtins__": {}})) for word in capsys.readouterr().out.split())
    assert ours < noise
    assert 0.79 < epsilon <= 0.8
    assert Path("transfers.json").is_file()


def test_a_second_release(go: Journey, command: Callable[..., Done]) -> None:
    from optdp import Observer

    people = Population.binomial(30, "0.2")
    solve(SingleLTE(people, "0.4", observer=Observer(known="all"), tail="none", never_worse=False)).save("first.json")
    done = go("A second release")
    assert "0.8" in done[-1].out
    command("ledger", "add", "account.jsonl", "first.json", "--about", "May").refused("1", code=1)


def test_eps0_is_chosen(go: Journey) -> None:
    (done,) = go("Choose eps0")
    assert float(re.search(r"eps0 +([\d.]+)", done.out)[1]) == pytest.approx(3.61903, abs=2e-5)  # type: ignore[index]
