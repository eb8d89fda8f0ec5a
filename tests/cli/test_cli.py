"""The command line as a user meets it: output, exit codes, one line for every refusal."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import typer

from optdp.cli.main import app
from optdp.extras import install
from tests.command_line import in_process
from tests.spelling import as_written

ROOT = Path(__file__).resolve().parents[2]
SICK_LEAVE = ROOT / "problems" / "use-cases" / "sick-leave.toml"


def optdp(*args: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return in_process(*args, cwd=cwd)


def process(*args: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "optdp", *map(str, args)], capture_output=True, text=True, cwd=cwd, env=environment,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "sick-leave.json"
    done = optdp("solve", SICK_LEAVE, "--out", path)
    assert done.returncode == 0, done.stderr
    assert "0.943506" in done.stdout
    assert "teach about any person" in done.stdout
    return path


def test_json_has_the_documented_keys() -> None:
    done = optdp("solve", SICK_LEAVE, "--json")
    figures = json.loads(done.stdout)
    keys = "kind status mae baseline_mae lower_bound gap epsilon certified_epsilon backend seconds ordinary_epsilon"
    assert set(keys.split()) <= figures.keys()
    assert figures["mae"] == pytest.approx(0.943506, rel=1e-5)
    assert figures["ordinary_epsilon"] == "infinite"
    assert figures["gap"] < 1e-6
    assert float(figures["certified_epsilon"]) <= 0.3


def test_verify_sample_export(artifact: Path, tmp_path: Path) -> None:
    done = optdp("verify", artifact)
    assert done.returncode == 0
    assert "verified" in done.stdout
    figures = json.loads(optdp("verify", artifact, "--json").stdout)
    assert figures["status"] == "verified"
    assert figures["lower_bound_proved"]
    done = optdp("sample", artifact, "--input", 12, "--count", 5)
    assert done.returncode == 0
    assert len([int(line) for line in done.stdout.split()]) == 5
    seeded = [optdp("sample", artifact, "--input", 12, "--count", 5, "--seed", 7) for _ in range(2)]
    assert seeded[0].stdout == seeded[1].stdout
    assert "not private" in seeded[0].stderr
    for target, name in (("csv", "a.csv"), ("npz", "a.npz")):
        done = optdp("export", artifact, "--to", target, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).stat().st_size > 0
    done = optdp("verify", tmp_path / "a.npz")
    assert done.returncode == 2
    assert ".npz files are exports" in done.stderr


def test_compare_shows_the_real_epsilon_before_and_after() -> None:
    problem = ROOT / "problems" / "paper-a" / "figure-4-p05.toml"
    done = optdp("compare", problem, "--backends", "highs,scipy,cvxpy:CLARABEL", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["backend"]: row for row in json.loads(done.stdout)["rows"]}
    assert set(rows) == {"highs", "scipy", "clarabel"}
    assert rows["scipy"]["raw_epsilon"] == "infinite"
    assert rows["scipy"]["violated"] > 0
    for row in rows.values():
        assert float(row["certified_epsilon"]) <= 0.3
        assert row["mae"] == pytest.approx(0.317242, rel=1e-3)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("solve paper-a/two-h", ["paper-a/two-halls-divisible"]),
        ("init metric", ["metric-shuffle"]),
        ("export a.json --to pa", ["parquet"]),
        ("solve a.toml --backend highs-i", ["highs-ipm"]),
    ],
)
def test_a_shell_completes_names(typed: str, offered: list[str]) -> None:
    program = shutil.which("optdp", path=sysconfig.get_path("scripts"))
    assert program
    words = f"optdp {typed}"
    asked = {"_OPTDP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run([program], capture_output=True, text=True, env={**os.environ, **asked}, check=False)
    assert done.stdout.split() == offered


def test_lists() -> None:
    assert "sick-leave " in optdp("problems").stdout
    assert "single-lte" in optdp("kinds").stdout
    schema = json.loads(optdp("schema").stdout)
    assert "population" in schema["$defs"]["SingleLTEFile"]["properties"]
    assert "parties" in schema["$defs"]["MultiLTEFile"]["properties"]
    assert optdp("--help").returncode == 0
    assert "Did you mean 'kinds'? See: " in optdp("kind").stderr


def test_no_help_has_words_in_square_brackets() -> None:
    """The terminal would take them for markup and leave them out."""
    groups = [typer.main.get_command(app)]
    commands = [command for group in groups for command in group.commands.values()]  # type: ignore[attr-defined]
    commands += [one for command in commands for one in getattr(command, "commands", {}).values()]
    helps = [(c.name, text) for c in commands for text in (c.help, *(getattr(p, "help", "") for p in c.params))]
    assert len(helps) > 100
    assert [(name, text) for name, text in helps if re.search(r"\[[a-z]+\]", text or "")] == []


HEAD = 'kind = "single-lte"\nepsilon = "0.3"\n'
BINOMIAL = '[population]\nkind = "binomial"\nn = 10\np = "0.5"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + 'colour = "red"\n' + BINOMIAL, "colour"),
        (HEAD + BINOMIAL + 'q = "1"\n', "q"),
        ('kind = "nothing"\n', "single-lte"),
        (HEAD, "population is missing"),
        (HEAD.replace('"0.3"', '"0"') + BINOMIAL, "larger than 0"),
        (HEAD.replace('"0.3"', '"-1"') + BINOMIAL, "larger than 0"),
        (HEAD.replace('"0.3"', "nan") + BINOMIAL, "nan"),
        (HEAD.replace('"0.3"', '"nan"') + BINOMIAL, "nan"),
        (HEAD.replace('"0.3"', "true") + BINOMIAL, "epsilon"),
        (HEAD.replace('"0.3"', "1e9999999") + BINOMIAL, "epsilon"),
        (HEAD + 'fallback_epsilon = "0.3"\n' + BINOMIAL, "larger than epsilon"),
        (HEAD + BINOMIAL.replace("0.5", "1.5"), "[0, 1]"),
        (HEAD + BINOMIAL.replace("n = 10", "n = 0"), "at least 1 person"),
        (HEAD + BINOMIAL.replace("n = 10", "n = 10.0"), "n"),
        (HEAD + BINOMIAL.replace("n = 10", "n = 99999999999"), "1,000,000,000"),
        (HEAD + BINOMIAL.replace("binomial", "poisson"), "poisson"),
        (HEAD + '[population]\nkind = "iid"\nn = 5\npmf = ["0.5", "0.4"]\n', "off by -0.1"),
        (HEAD + '[population]\nkind = "iid"\nn = 5\npmf = ["1"]\n', "D at least 1"),
        (HEAD + '[population]\nkind = "iid"\nn = 4000\npmf = ["0.5", "0.25", "0.25"]\n', "5,000"),
        (HEAD + "[population\n", "TOML"),
        ("\x00\xff", "TOML"),
        (HEAD + 'tail = "heavy"\n' + BINOMIAL, "geometric"),
        ('kind = "single-lte"\n' + BINOMIAL, "epsilon is missing"),
        (HEAD + "releases = 12\n" + BINOMIAL, "must come with a total"),
        (HEAD + "total = {epsilon = 4, delta = 1e-6}\n" + BINOMIAL, "Found no releases"),
        (HEAD + "releases = 0\ntotal = {epsilon = 4}\n" + BINOMIAL, "releases must"),
        (HEAD + "releases = 12\ntotal = {epsilon = 4, delta = 1.5}\n" + BINOMIAL, "delta of total must be"),
        (HEAD + 'releases = 12\ntotal = {epsilon = "0.2"}\n' + BINOMIAL, "leaves for each of 12 releases"),
        (HEAD + "releases = 2\ntotal = {epsilon = 4}\nfallback_epsilon = 1\n" + BINOMIAL, "Remove one of them"),
        (HEAD + "releases = 2\ntotal = {delta = 1e-6}\n" + BINOMIAL, "total"),
    ],
)
def test_bad_problems_are_one_line_and_exit_2(text: str, words: str, tmp_path: Path) -> None:
    problem, target = tmp_path / "p.toml", tmp_path / "a.json"
    problem.write_text(text, encoding="latin-1")
    done = optdp("solve", problem, "--out", target)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not target.exists()


def test_bad_options(artifact: Path, tmp_path: Path) -> None:
    for args, code, words in (
        (("solve", tmp_path / "none.toml"), 2, "none.toml"),
        (("solve", tmp_path), 2, "regular file"),
        (("solve", SICK_LEAVE, "--out", tmp_path / "no" / "where.json"), 2, "folder"),
        (("solve", SICK_LEAVE, "--out", tmp_path), 2, "folder"),
        (("solve", SICK_LEAVE, "--backend", "magic"), 2, "highs, highs-simplex"),
        (("solve", SICK_LEAVE, "--backend", "cvxpy:MAGIC"), 2, "Installed here: highs,"),
        (("solve", SICK_LEAVE, "--backend", "mosek"), 2, install(package="Mosek")),
        (("solve", SICK_LEAVE, "--backend", "scipy", "--option", "nonsense=1"), 2, "nonsense"),
        (("solve", SICK_LEAVE, "--backend", "scipy", "--option", "presolve"), 2, "NAME=VALUE"),
        (("solve", SICK_LEAVE, "--option", "presolve=off"), 2, "highs-simplex"),
        (("solve", ROOT / "problems" / "paper-b" / "krr10.toml", "--backend", "scipy"), 2, "single-lte and multi-lte"),
        (("verify", tmp_path / "none.json"), 2, "none.json"),
        (("sample", artifact, "--input", 101), 2, "0..100"),
        (("export", artifact, "--to", "xls", "--out", tmp_path / "a"), 2, "csv"),
        (("compare", SICK_LEAVE, "--backends", "magic"), 2, "highs"),
    ):
        done = optdp(*args)
        assert done.returncode == code, (args, done.stderr)
        assert words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_broken_cvxpy_is_one_helpful_line(tmp_path: Path) -> None:
    (tmp_path / "cvxpy.py").write_text("raise ImportError('hidden')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "optdp", "solve", str(SICK_LEAVE), "--backend", "cvxpy:CLARABEL"],
        capture_output=True, text=True, env=environment, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "CVXPY cannot be loaded: hidden" in done.stderr


def test_less_private_artifacts_exit_1_everywhere(artifact: Path, tmp_path: Path) -> None:
    """A forged file: mass moved to the diagonal, digest made anew."""
    import hashlib

    data = json.loads(artifact.read_text())
    changed = 0
    for x, row in enumerate(data["weights"]):
        for entry in row:
            if entry[0] != x and entry[1] > 10**15 and changed < 3:
                diagonal = next((e for e in row if e[0] == x), None)
                if diagonal is not None:
                    entry[1] -= 10**15
                    diagonal[1] += 10**15
                    changed += 1
    assert changed
    forged = tmp_path / "forged.json"
    body = {key: value for key, value in data.items() if key != "sha256"}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    body["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    forged.write_bytes(as_written(body))
    for args in (("verify", forged), ("sample", forged, "--input", 3), ("export", forged, "--to", "csv", "--out", "x")):
        done = optdp(*args, cwd=tmp_path)
        assert done.returncode == 1, done.stderr
        assert "epsilon" in done.stderr
    assert not (tmp_path / "x").exists()


def test_an_archive_is_no_artifact_and_that_is_said_before_solving(tmp_path: Path) -> None:
    """No solver is even looked for: the one that is named does not exist."""
    problem = ROOT / "problems" / "use-cases" / "sick-leave.toml"
    done = optdp("solve", problem, "--backend", "no such", "--out", tmp_path / "a.npz")
    assert done.returncode == 2
    assert "optdp export a.json --to npz" in done.stderr
    assert not list(tmp_path.iterdir())


def test_changed_artifacts_exit_2(artifact: Path, tmp_path: Path) -> None:
    text = artifact.read_text()
    for name, changed in (
        ("cut", text[: len(text) // 2]),
        ("claim", text.replace('"epsilon": "0.3', '"epsilon": "0.2', 1)),
        ("deep", "[" * 100_000),
        ("nan", text.replace('"version": 1', '"version": NaN')),
        ("twice", text.replace('"version": 1', '"version": 1, "version": 1')),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(changed)
        done = optdp("verify", path)
        assert done.returncode == 2, (name, done.stderr)
        assert len(done.stderr.strip().splitlines()) == 1


def test_formulate_lists_programs_and_writes_one(tmp_path: Path) -> None:
    problem = tmp_path / "p.toml"
    problem.write_text('kind = "single-lte"\nepsilon = 1\npopulation = { kind = "binomial", n = 3, p = 0.5 }\n')
    listed = json.loads(optdp("formulate", problem, "--json").stdout)["programs"]
    assert [one["program"] for one in listed] == ["plain", "core", "pairs"]
    done = optdp("formulate", problem, "--to", "mps", "--program", "core", "--out", tmp_path / "core.mps")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "core.mps").read_text().rstrip().endswith("ENDATA")
    for args, words in (
        (("--to", "xls", "--out", tmp_path / "x"), "mps, lp, cvxpy, npz"),
        (("--to", "mps"), "belong together"),
        (("--to", "mps", "--program", "none", "--out", tmp_path / "x"), "plain, core, pairs"),
        (("--to", "mps", "--out", problem), "the problem"),
    ):
        done = optdp("formulate", problem, *args)
        assert done.returncode == 2, done.stderr
        assert words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not (tmp_path / "x").exists()
