"""Every script in `examples/` runs, quickly, from anywhere, and prints what its question asks for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

SAYS = {
    "account_for_releases.py": ["the whole profile", "100        50.00     28."],
    "aggregate_locally.py": ["every office opened the same sum: True"],
    "federated_epochs.py": [
        "plan for a share of 0.40: error of the sum 1.929",
        "geometric noise in each hospital 2.242, one noise shared by all 1.126",
        "spent 4.0 of 4",
        "training ends before epoch 6: Releasing ",
    ],
    "figure_2.py": [
        "the paper's search (VI-D): error of the sum of all four 1.711, of geometric noise 3.284",
        "moved and with noise 0.0189",
        "Eq. (7): the deployed table keeps that law: True",
        "1.19, at 19..31",
    ],
    "figure_5.py": ["m = 5, p = 0.05", "geometric 3.284"],
    "figure_6.py": ["plan for both", "geometric 3.284"],
    "figure_7.py": [
        "one: central model, geometric noise  error  13.3208",
        "one: single party, optimum",
        "all: local model, shares of noise    error  13.3208",
        "all: one plan",
    ],
    "figure_8.py": ["on average", "geometric 13.321"],
    "plan_two_offices.py": ["shared geometric noise 1.919", "verified two-offices", "we publish"],
    "wrong_world.py": ["0.5 away, half known", "geometric 1.919"],
    "compare_backends.py": ["epsilon as returned", "highs        optimal"],
    "emails_up_to_four.py": ["unit", "all", "geometric 3.959"],
    "figure_1.py": ["geometric", "quotients"],
    "figure_4.py": ["Bin(100, 0.1): error 0.944, geometric 3.284", "Bin(100, 0.5): error 0.317, geometric 3.284"],
    "hospital_every_month.py": [
        "12 releases: 4 together at delta 0.000001 (proved; the total is 4, so 0.3333878667 for each)",
        "of geometric noise 2.945",
        "December   we publish",
        "hospital.json would bring the epsilon spent from 4 to 4.33",
    ],
    "learn_the_prior.py": ["0.1000", "the estimate and its band"],
    "outputs_in_range.py": ["0.944", "0.317", "in range"],
    "people_that_differ.py": ["175 people, 3 kinds", "epsilon for everybody: 0.5"],
    "second_release.py": ["a matrix for the posterior: epsilon 0.30"],
    "several_priors.py": ["one prior 0.944", "geometric 3.284"],
    "opendp_context.py": ["seven people are away, we publish", "a third query is refused: Privacy allowance"],
    "prio_sum.py": ["error 2.139, of geometric noise 3.284", "whatever the sum: True", "chance is 0.2: 0.300"],
    "release_in_duckdb.py": ["self test: fine", "20 offices released, of type BIGINT"],
    "release_in_spark.py": ["20 offices released, the same when read again"],
    "solve_and_deploy.py": [
        "mean absolute error 0.944, geometric noise 3.284",
        "verified sick-leave.json",
        "we publish",
    ],
    "two_guarantees.py": ["0.575", "0.609", "0.824", "1.261", "3.284"],
    "blanket_picture.py": ["1-LDP Laplace noise: gamma 0.6065"],
    "calibrate_shuffled_survey.py": ["5,000    3.6190", "at eps0 = 3: 2,243 people are enough"],
    "observer_ladder.py": ["everybody else exactly         1.909", "geometric noise                3.284"],
    "one_count_or_all.py": ["2.606e-08", "1.150e-03"],
    "own_channel.py": ["eps0 of one report alone: 1.9459", "delta lies between"],
    "rounds.py": ["7      0.2261", "30     0.4921"],
    "what_shuffling_buys.py": ["epsilon 0.079804, by the bound blanket", "bennett-k-rr       0.094980"],
    "metric_sum.py": ["eps_geo = 0.9228, padding 18, 536 bits each", "20         0.2000", "95 in 100 times within 41"],
    "which_mechanism.py": ["sgdl          5.802         9.98", "geo-central   everything    9.98"],
    "if_the_shuffler_fails.py": ["Geo-Shuffle   1.043         10.33", "SGDL-Shuffle  4.801         4.97"],
    "sweep_epsilon.py": ["0.4       0.5   0.220   2.435", "needs epsilon 0.4; every row is certified: True"],
    "shuffled_histogram.py": ["epsilon 1.4006 for the whole histogram", "gaussian-projected"],
    "release_through_opendp.py": ["refused: This table's ordinary epsilon is infinite", "epsilon 1.2500", "we publish"],
    "real_sum.py": ["messages 0..10, 1.45% of them random", "the constants of Theorem 1:   50.4"],
    "order_attack.py": ["3,000 people, 8 values, eps = 2.5, alpha = 4", "uniform shuffle                      0.000"],
    "order_friends.py": ["2,000 people with 10.9 friends on average, at most 23", "theta is 13.0 times"],
    "order_granularity.py": [
        "4,000 records, eps = 2.55, alpha = 4",
        "no shuffle        0.972       0.999         1.000",
    ],
    "wrong_prior.py": ["0.1 away               0.30           0.30", "half known"],
}
"""What each script must print, at least. The geometric errors follow from 2q/(1-q^2)."""


def run(script: Path, folder: Path, *arguments: str, **environment: str) -> str:
    # A script is run as a user runs it: warnings of third parties are not errors there.
    surroundings = {key: value for key, value in os.environ.items() if key != "PYTHONWARNINGS"}
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=folder,
        env=surroundings | {"MPLBACKEND": "agg", "MPLCONFIGDIR": str(folder)} | environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_script_is_listed() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} - {"pictures.py"} == SAYS.keys()  # which the others draw with


NEEDS = {"release_in_duckdb.py": "duckdb", "release_in_spark.py": "pyspark"}
"""What an example needs that is no extra of ours."""
OFTEN = {"metric_sum.py", "order_friends.py", "real_sum.py", "second_release.py", "shuffled_histogram.py",
         "solve_and_deploy.py", "what_shuffling_buys.py"}  # fmt: skip
"""One of each kind; the others are slow, as each is a process of its own."""
SMALLER = {"figure_5.py": ("figure-5.svg", "5"), "figure_6.py": ("figure-6.svg", "5")}
"""Arguments of those that take a minute without."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.slow) for name in sorted(SAYS)]
)
def test_example(name: str, tmp_path: Path) -> None:
    pytest.importorskip(NEEDS.get(name, "optdp"))
    script = EXAMPLES / name
    assert script.read_text(encoding="utf-8").startswith('"""'), "an example opens with the question that it answers"
    printed = run(script, tmp_path, *SMALLER.get(name, ()))
    for words in SAYS[name]:
        assert words in printed


@pytest.mark.parametrize("name", ["figure_1.py", "figure_4.py"])
def test_a_figure_goes_where_it_is_told(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert "wrote here.svg" in run(EXAMPLES / name, tmp_path, "here.svg")
    picture = (tmp_path / "here.svg").read_text(encoding="utf-8")
    assert "<svg" in picture
    assert len(picture) < 60_000


@pytest.mark.parametrize("name", ["figure_1.py", "figure_4.py"])
def test_a_figure_without_matplotlib_says_so(name: str, tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ImportError\n", encoding="utf-8")
    printed = run(EXAMPLES / name, tmp_path, PYTHONPATH=str(tmp_path))
    assert "no picture: matplotlib is not installed" in printed
    assert not list(tmp_path.glob("*.svg"))
