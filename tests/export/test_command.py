"""`optdp export`: verified first, written whole, and what a plan's parties may do with their part."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from optdp import MultiLTE, Population, ProblemError, SingleLTE, solve, verify
from optdp.export import TARGETS, export, write
from optdp.export.subject import stop_cost, subjects
from optdp.single.format import write as save
from tests.command_line import in_process
from tests.export.languages import load, run
from tests.shared import shared_solution

PEOPLE = Population.binomial(6, "0.5")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One entity with a tail, a joint plan, and a plan with shares of noise."""
    folder = tmp_path_factory.mktemp("home")
    solve(SingleLTE(PEOPLE, "0.5", fallback_epsilon=2)).save(folder / "one.json")
    shared_solution(MultiLTE((PEOPLE, PEOPLE), "1", method="joint")).save(folder / "plan")
    shared_solution(MultiLTE((PEOPLE, PEOPLE), "1", method="divisible")).save(folder / "shares")
    return folder


def optdp(*args: object) -> subprocess.CompletedProcess[str]:
    return in_process(*args)


def test_a_sampler_says_what_it_is_and_how_to_test_it(home: Path, tmp_path: Path) -> None:
    done = optdp("export", home / "one.json", "--to", "python", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    path = tmp_path / "out" / "sampler.py"
    assert done.stdout.splitlines() == [
        f"wrote {path}",
        f"next: python {shlex.quote(str(path.parent))}/{path.name} --self-test",
    ]
    found = verify(home / "one.json")
    text = path.read_text().replace("\n# ", " ")
    claim = found.artifact.claim
    for said in (
        found.artifact.sha256,
        f"epsilon under the prior: {claim['epsilon']}",
        f"ordinary epsilon: {claim['ordinary_epsilon']}",
        "no promise against someone who knows more about the others, nor for a second release",
        "one release for each data set",
        "6 people, p = 0.5",
    ):
        assert said in text, said
    sampler = load(path)
    assert sampler["DIGEST"] == sampler["self_test"]() == found.artifact.sha256
    assert isinstance(sampler["release"](3), int)


def test_json(home: Path, tmp_path: Path) -> None:
    done = optdp("export", home / "one.json", "--to", "c", "--out", tmp_path, "--json")
    figures = json.loads(done.stdout)
    assert [Path(name).name for name in figures["written"]] == ["sampler.c", "sampler.h"]
    assert figures["sha256"] == [verify(home / "one.json").artifact.sha256]
    assert "-DSAMPLER_MAIN" in figures["test"][0]


def test_the_stated_epsilons_cover_that_a_sampler_may_stop(home: Path) -> None:
    """The cost is far below the last digit of a claim, and not nothing where there is noise."""
    found = verify(home / "one.json")
    cost = stop_cost(found.matrix, 1)
    assert 0 < cost < Fraction(1, 10**40)
    lines = subjects(home / "one.json")[0].claims()
    assert found.certificate.epsilon is not None
    assert found.certificate.epsilon + cost <= Fraction(lines[0].split(": ")[1])
    assert found.certificate.ordinary_epsilon is not None
    assert found.certificate.ordinary_epsilon + cost <= Fraction(lines[1].split(": ")[1])


def test_a_plan_gets_a_sampler_for_each_party(home: Path, tmp_path: Path) -> None:
    done = optdp("export", home / "plan", "--to", "python", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "private only inside the secure sum" in done.stderr
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.py")) == [
        "party-0/sampler.py",
        "party-1/sampler.py",
    ]
    for i in range(2):
        text = (tmp_path / f"party-{i}" / "sampler.py").read_text().replace("\n# ", " ")
        assert "never publish it" in text
        assert f"party {i} of plan" in text
        assert "or sees a single report" in text
        document = json.loads((home / "plan" / f"party-{i}.json").read_text())
        sampler = load(tmp_path / f"party-{i}" / "sampler.py")
        assert sampler["self_test"]() == document["sha256"]
        low, high = document["outputs"]
        assert all(low <= s <= high for s in sampler["release_many"](range(7)))
    with pytest.raises(ProblemError, match="must go to a folder"):
        write(subjects(home / "plan"), TARGETS["csv"], tmp_path / "a.csv")


def test_a_party_alone(home: Path, tmp_path: Path) -> None:
    done = optdp("export", home / "plan" / "party-1.json", "--to", "python", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "never publish it" in done.stderr
    assert "was not checked" in done.stderr
    assert "cannot be checked from one party's file" in (tmp_path / "sampler.py").read_text().replace("\n# ", " ")


def test_shares_of_noise_say_what_they_are_worth(home: Path, tmp_path: Path) -> None:
    done = optdp("export", home / "shares", "--to", "python", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "private only inside the secure sum" in done.stderr
    for i in range(2):
        path = tmp_path / f"party-{i}" / "sampler.py"
        text = path.read_text().replace("\n# ", " ")
        for said in (
            "never publish it",
            f"party {i} of plan",
            "only its share of the noise: what is claimed is claimed of the sum, not of the report",
            "if all 2 parties follow the plan and show their reports to nobody",
            "with a chance below 2^-230, whatever the input; counted as a delta beside the epsilon of the sum, "
            "that is at most 2^-226",
            "beyond them a share of geometric noise around the input, contracted",
        ):
            assert said in text, said
        document = json.loads((home / "shares" / f"party-{i}.json").read_text())
        sampler = load(path)
        assert sampler["self_test"]() == document["sha256"]
        assert len(sampler["release_many"](range(7))) == 7
    assert Fraction(document["claim"]["epsilon"]) <= 1
    e = Fraction(271828183, 10**8)
    assert e * 2 * 2 * Fraction(1, 1 << 230) < Fraction(1, 1 << 226), "e^eps times both parties' chances, and room"


def test_one_share_of_noise_alone(home: Path, tmp_path: Path) -> None:
    done = optdp("export", home / "shares" / "party-0.json", "--to", "c", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "was not checked" in done.stderr
    text = (tmp_path / "sampler.h").read_text().replace("\n * ", " ")
    assert "cannot be checked from one party's file" in text
    assert "claimed of the sum, not of the report" in text
    assert "a delta" not in text


def test_the_tables_of_a_share(home: Path, tmp_path: Path) -> None:
    """The table and the contraction, in files of one form."""
    parquet = pytest.importorskip("pyarrow.parquet")
    document = json.loads((home / "shares" / "party-0.json").read_text())
    for target in ("csv", "npz", "parquet"):
        written = export(home / "shares" / "party-0.json", target, tmp_path / f"t.{target}")
        names = ["t.csv.contraction.csv", "t.csv.meta.json"] if target == "csv" else ["t.parquet.contraction.parquet"]
        assert [path.name for path in written] == [f"t.{target}", *(() if target == "npz" else names)]
    for suffix, rows, first in (("", document["weights"], 0), (".contraction", document["tail"]["contraction"], 0)):
        entries = [(x, s, weight) for x, row in enumerate(rows, first) for s, weight in row]
        lines = (tmp_path / f"t.csv{suffix}{'.csv' if suffix else ''}").read_text().splitlines()[1:]
        assert [tuple(map(int, line.split(",")[:3])) for line in lines] == entries
        found = parquet.read_table(tmp_path / f"t.parquet{suffix}{'.parquet' if suffix else ''}").to_pydict()
        assert list(zip(found["input"], found["output"], map(int, found["weight"]), strict=True)) == entries


def test_a_forged_claim_writes_nothing(home: Path, tmp_path: Path) -> None:
    from optdp.single.format import Artifact, read

    true = read(home / "one.json")
    forged = Artifact(
        true.inputs, true.outputs, true.denominator, true.rows, true.outside, true.q, true.problem,
        {**true.claim, "epsilon": "0.1"}, true.provenance,
    )  # fmt: skip
    save(forged, tmp_path / "forged.json")
    done = optdp("export", tmp_path / "forged.json", "--to", "c", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert not (tmp_path / "out").exists()


def test_the_current_folder_and_names_that_a_shell_would_run(home: Path, tmp_path: Path) -> None:
    """What is said to be the next command tests the sampler, and nothing else, whatever the folder is called."""
    odd = tmp_path / "x;touch ran;y z"
    odd.mkdir()
    code = [sys.executable, "-m", "optdp", "export", home / "one.json", "--to"]
    here = run(*code, "npz", "--out", ".", cwd=odd)
    assert here.returncode == 0, here.stderr
    assert (odd / "matrix.npz").exists()
    assert "earlier export of this form" in run(*code, "csv", "--out", ".", cwd=odd).stderr
    assert run(*code, "c", "--out", "/", cwd=odd).stderr.count("Traceback") == 0
    for target in ("python", "sql"):
        figures = json.loads(run(*code, target, "--out", odd, "--json").stdout)
        (test,) = figures["test"]
        done = run("sh", "-c", test.replace("python ", f"{shlex.quote(sys.executable)} "), cwd=tmp_path)
        assert (done.returncode, (tmp_path / "ran").exists()) == (0, False), done.stderr
        assert done.stdout.strip() == ("" if target == "sql" else f"ok {verify(home / 'one.json').artifact.sha256}")


def test_a_wide_table_takes_no_more_than_it_holds(home: Path, tmp_path: Path) -> None:
    """Outputs up to 2^30, of which the rows use one: no vector goes there step by step."""
    found = verify(home / "one.json").matrix
    rows = tuple(((0, found.denominator),) for _ in found.rows)
    (path,) = export(replace(found, outputs=(0, 2**30), rows=rows), "python", tmp_path)
    assert path.stat().st_size < 100_000
    assert re.fullmatch("[0-9a-f]{64}", load(path)["self_test"]())


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc here")
def test_the_program_in_c_refuses_lines_that_are_not_one_number(home: Path, tmp_path: Path) -> None:
    optdp("export", home / "one.json", "--to", "c", "--out", tmp_path)
    program = tmp_path / "sampler"
    assert run("gcc", "-std=c99", "-DSAMPLER_MAIN", "-o", program, tmp_path / "sampler.c").returncode == 0
    for line in ("3" + " " * 70 + "4\n", "3\0 4\n", "3 4\n", "-1\n", "\n"):
        done = subprocess.run([program], input=line.encode(), capture_output=True, timeout=20, check=False)
        assert (done.returncode, done.stdout) == (2, b""), line
    with open("/dev/full", "w") as full:
        assert subprocess.run([program, "3", "3"], stdout=full, timeout=20, check=False).returncode == 1


# ---------------------------------------------------------------------- whole or not at all


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("target", ["c", "csv"])
def test_an_export_replaces_an_earlier_one_and_nothing_else(target: str, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    of_one = ["sampler.c", "sampler.h"] if target == "c" else ["matrix.csv", "matrix.csv.meta.json"]
    export(home / "one.json", target, out)
    assert names(out) == of_one
    before = {name: (out / name).read_bytes() for name in of_one}
    if target == "c":  # what the next command makes goes with the sampler that it was made from
        (out / "sampler").write_bytes(b"program")
    export(verify(home / "one.json").matrix, target, out)
    assert names(out) == of_one
    assert {name: (out / name).read_bytes() for name in of_one} != before
    export(home / "shares", target, tmp_path / "plan")
    many = names(tmp_path / "plan")
    assert {name.split("/")[0] for name in many} == {"party-0", "party-1"}
    export(home / "plan", target, tmp_path / "plan")
    assert len(names(tmp_path / "plan")) == 4, "a contraction of before is gone"
    assert names(tmp_path) == sorted(
        [f"out/{name}" for name in of_one] + [f"plan/{n}" for n in names(tmp_path / "plan")]
    )


@pytest.mark.parametrize("target", ["c", "csv"])
def test_a_folder_of_others_is_left_alone(target: str, home: Path, tmp_path: Path) -> None:
    first = "sampler.c" if target == "c" else "matrix.csv"
    for number, foreign in enumerate(
        (["notes.txt"], [first], ["sampler.py"], [first, "notes.txt"], [".hidden"], ["party-0/mine"], [first, "deep/a"])
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in foreign:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("mine")
        with pytest.raises(ProblemError, match="earlier export of this form"):
            export(home / "one.json", target, folder)
        assert {name: (folder / name).read_text() for name in names(folder)} == dict.fromkeys(sorted(foreign), "mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "0")
    for name in ("file", "link"):
        with pytest.raises(ProblemError, match="is written to a folder"):
            export(home / "one.json", target, tmp_path / name)
    export(home / "one.json", "python", tmp_path / "0")  # one file is whole by itself
    assert names(tmp_path / "0") == ["notes.txt", "sampler.py"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_failure_leaves_what_was_there(
    target: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full at the n-th file: the earlier export, or none; no new folder, no temporary name."""
    if target == "parquet":
        pytest.importorskip("pyarrow")
    for source, earlier in (("one.json", None), ("plan", None), ("one.json", "one.json"), ("plan", "shares")):
        for failing in range(1, 4):
            folder = tmp_path / f"{source}-{earlier}-{failing}"
            folder.mkdir()
            if earlier:
                export(home / earlier, target, folder / "out")
            before = {name: (folder / name).read_bytes() for name in names(folder)}
            found, count = subjects(home / source), 0

            def full(handle: int, sync: Callable[[int], None] = os.fsync, failing: int = failing) -> None:
                nonlocal count
                count += stat.S_ISREG(os.fstat(handle).st_mode)
                if count == failing:
                    raise OSError(28, "No space left on device")
                sync(handle)

            failed = None
            with monkeypatch.context() as patched:
                patched.setattr(os, "fsync", full)
                try:
                    written = write(found, TARGETS[target], folder / "out")
                except ProblemError as error:
                    failed = error
            if failed is None:
                assert count < failing
                assert sorted(str(path.relative_to(folder)) for path in written) == names(folder)
                continue
            assert "no space left" in str(failed).lower()
            assert {name: (folder / name).read_bytes() for name in names(folder)} == before
            assert [item.name for item in folder.iterdir()] == (["out"] if earlier else [])


def test_a_table_is_there_only_with_what_describes_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a file among others it cannot be replaced together with its description: then the table goes first."""
    export(home / "one.json", "csv", tmp_path / "t.csv")
    assert names(tmp_path) == ["t.csv", "t.csv.meta.json"]

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(ProblemError, match="no space"):
            export(home / "one.json", "csv", tmp_path / "t.csv")
    assert names(tmp_path) == ["t.csv.meta.json"]
