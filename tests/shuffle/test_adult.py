"""The protocols on people who exist: the Adult census sample, if it lies beside the repository."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.test_cli import optdp

ADULT = Path(__file__).resolve().parents[3] / "shared" / "data" / "adult.csv"

pytestmark = pytest.mark.skipif(not ADULT.is_file(), reason="the Adult data is not beside the repository")


@pytest.fixture(scope="module")
def people() -> list[dict[str, str]]:
    with ADULT.open(newline="") as file:
        return list(csv.DictReader(file))


def run(tmp_path: Path, problem: str, *arguments: str) -> dict[str, object]:
    (tmp_path / "problem.toml").write_text(problem)
    out = tmp_path / "estimate.json"
    done = optdp("run", tmp_path / "problem.toml", "--data", ADULT, "--out", out, "--seed", 5, *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(out.read_text())["estimate"]
    return found


@pytest.mark.parametrize("mechanism", ["rr", "geo", "sgdl"])
def test_hours_by_metric_shuffles(tmp_path: Path, people: list[dict[str, str]], mechanism: str) -> None:
    problem = f'kind = "metric-shuffle"\nmechanism = "{mechanism}"\nk = 99\ndelta = 1e-6\nepsilon = 0.1\n'
    found = run(tmp_path, problem + f"max_distance = 4\nn = {len(people)}\n", "--column", "hours_per_week")
    truth = sum(int(row["hours_per_week"]) for row in people)
    assert isinstance(found["sum"], float)
    assert isinstance(found["rmse"], float)
    assert abs(found["sum"] - truth) < 6 * found["rmse"]
    assert found["rmse"] < 1e-4 * truth


def test_two_coordinates_at_once(tmp_path: Path, people: list[dict[str, str]]) -> None:
    problem = 'kind = "metric-shuffle"\nmechanism = "geo"\nk = 99\ndelta = 1e-6\nepsilon = 0.1\ndimensions = 2\n'
    found = run(tmp_path, problem + f"n = {len(people)}\n", "--column", "age", "--column", "hours_per_week")
    assert isinstance(found["average"], list)
    for average, column in zip(found["average"], ("age", "hours_per_week"), strict=True):
        assert average == pytest.approx(sum(int(row[column]) for row in people) / len(people), abs=0.02)


def test_marital_status_by_randomized_response(tmp_path: Path, people: list[dict[str, str]]) -> None:
    truth = Counter(row["marital_status"] for row in people)
    labels = json.dumps(sorted(truth))
    problem = f'kind = "shuffle-histogram"\nn = {len(people)}\nepsilon = 0.5\ndelta = 1e-6\nlabels = {labels}\n'
    found = run(tmp_path, problem, "--column", "marital_status")
    assert isinstance(found["bins"], list)
    for held in found["bins"]:
        assert abs(held["inversion"] - truth[held["value"]]) < 5 * held["standard_error"]
        assert held["count"] >= 0


def test_hours_as_real_numbers(tmp_path: Path, people: list[dict[str, str]]) -> None:
    problem = f'kind = "real-sum"\nn = {len(people)}\nepsilon = 0.5\ndelta = 1e-6\nlow = 0\nhigh = 99\n'
    found = run(tmp_path, problem, "--column", "hours_per_week")
    truth = sum(int(row["hours_per_week"]) for row in people)
    assert isinstance(found["sum"], float)
    assert isinstance(found["standard_error"], float)
    assert abs(found["sum"] - truth) < 5 * found["standard_error"]
