"""`optdp verify` in a process of its own: no solver, no numpy, and few modules that an auditor has to read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from optdp import MultiLTE, Population, SingleLTE, solve
from tests.shared import shared_solution

ABSENT = (
    "numpy", "scipy", "highspy", "cvxpy", "networkx", "matplotlib", "clarabel", "scs", "ecos", "osqp", "pandas",
    "polars", "pyarrow", "opendp", "dp_accounting", "dask",
)  # fmt: skip

LOGIC = {
    "optdp.errors", "optdp.files.models",
    "optdp.numbers", "optdp.numbers.composition", "optdp.numbers.exact", "optdp.numbers.pmf", "optdp.numbers.sgdl",
    "optdp.work", "optdp.work.account",
    "optdp.single", "optdp.plan", "optdp.people.population", "optdp.single.problem",
    "optdp.plan.problem", "optdp.people.files", "optdp.people.observer", "optdp.single.watch",
    "optdp.mechanism.matrix", "optdp.single.laws", "optdp.single.certify", "optdp.single.window",
    "optdp.files", "optdp.people", "optdp.mechanism", "optdp.files.atomic", "optdp.files.canonical",
    "optdp.artifact", "optdp.single.format", "optdp.single.claims", "optdp.objects", "optdp.sheet", "optdp.kind",
    "optdp.mechanism.added_noise", "optdp.single.added", "optdp.single.added_proof",
    "optdp.single.bound_proof", "optdp.single.over_time", "optdp.single.verify", "optdp.single.explain",
}  # fmt: skip
"""What the verdict about one entity's artifact may rest on."""

PLANS = {
    "optdp.plan", "optdp.plan.certify", "optdp.plan.products", "optdp.plan.divisible_certify",
    "optdp.plan.seeded_certify", "optdp.plan.seeded_format", "optdp.mechanism.seeded_maps",
    "optdp.plan.certificate", "optdp.mechanism.shared_noise", "optdp.plan.format", "optdp.plan.explain",
    "optdp.plan.inside", "optdp.plan.merged", "optdp.plan.bound_proof", "optdp.plan.by_total",
}  # fmt: skip
"""What the verdict about a plan rests on besides; loaded with the others."""

SHELL = {"optdp", "optdp.cli", "optdp.library", "optdp.order", "optdp.shuffle"}
"""The command line, the names of problems, and the kinds of orders and shuffle protocols.

Modules of `optdp.cli` import what they need when they run.
"""

DRAWING = {
    "optdp.mechanism.drawing", "optdp.mechanism.cuts", "optdp.mechanism.share_cuts", "optdp.numbers.source",
}  # fmt: skip
"""Sampling: a matrix knows how to draw, but verifying draws nothing."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verified")
    one = solve(SingleLTE(Population.binomial(12, "0.5"), "0.5"))
    one.save(folder / "a.json")
    office = Population.binomial(6, "0.5")
    shared_solution(MultiLTE([office, office], "0.8", method="joint")).save(folder / "joint")
    shared_solution(MultiLTE([office, office], "0.8", method="divisible")).save(folder / "divisible")
    return folder


def run(*args: str) -> tuple[dict[str, object], set[str]]:
    """What the command printed, and the modules that its process had loaded at the end."""
    code = (
        "import json, sys\n"
        "from optdp.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n"
        "    print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
        "    raise\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", *args, "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout), set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("reason", [(), ("--explain",)])
@pytest.mark.parametrize("name", ["a.json", "joint", "divisible"])
def test_verify_loads_few_modules_and_no_solver(name: str, reason: tuple[str, ...], home: Path) -> None:
    figures, loaded = run(str(home / name), *reason)
    assert figures["status"] == "verified"
    assert figures["lower_bound_proved"] is True
    assert ("explain" in figures) == bool(reason)
    assert not loaded & set(ABSENT)
    allowed = LOGIC | PLANS | SHELL | DRAWING
    ours = {module for module in loaded if module.split(".")[0] == "optdp"}
    extra = {module for module in ours - allowed if not module.startswith("optdp.cli.")}
    assert not extra


def test_the_function_needs_no_more_than_the_command(home: Path) -> None:
    """From Python the command line is not loaded either."""
    code = (
        "import json, sys\nfrom optdp import verify, verify_plan\n"
        f"verify({str(home / 'a.json')!r})\n"
        f"verify_plan({str(home / 'joint')!r}), verify_plan({str(home / 'divisible')!r})\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    loaded = set(json.loads(done.stdout))
    assert not loaded & {*ABSENT, "typer", "rich"}
    assert {module for module in loaded if module.startswith("optdp")} <= LOGIC | PLANS | DRAWING | {
        "optdp",
        "optdp.order",
    }


def test_what_does_not_hold_is_explained(home: Path, tmp_path: Path) -> None:
    """A table that is moved by one output, with its digest made anew: exit code 1, and the output that tells."""
    from dataclasses import replace

    from optdp.single.format import read, write

    artifact = read(home / "a.json")
    rows = list(artifact.rows)
    rows[6] = ((12, artifact.denominator),)
    write(replace(artifact, rows=tuple(rows), sha256=""), tmp_path / "b.json")
    command = [sys.executable, "-m", "optdp", "verify", str(tmp_path / "b.json"), "--explain"]
    shown, figures = (
        subprocess.run([*command, *more], capture_output=True, text=True, check=False, timeout=120)
        for more in ([], ["--json"])
    )
    assert shown.returncode == figures.returncode == 1
    assert "worst output" in shown.stdout
    assert "epsilon under the prior must be at most 0.5" in shown.stderr
    found = json.loads(figures.stdout)
    assert found["status"] == "does not hold"
    assert float(found["explain"]["worst"]["epsilon"]) > 0.5
