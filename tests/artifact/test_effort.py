"""What a file asks for is counted before it is done; `--patience` says how much may be."""

from __future__ import annotations

import json
import os
import signal
import tomllib
from pathlib import Path

import pytest

from optdp import Population, SingleLTE, solve, verify
from optdp.errors import ProblemError
from optdp.loading import load
from optdp.people import files
from optdp.work import account as effort
from tests.artifact import hostile_files
from tests.artifact.hostile_files import Answer, answer
from tests.artifact.hostile_forms import plan_documents


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("effort") / "small.json"
    solve(SingleLTE(Population.binomial(20, "0.5"), "0.5")).save(path)
    return path


def said(*argv: str) -> Answer:
    found = answer(0, "", list(argv))
    assert effort.left() == float("inf")  # a command leaves no limit behind
    return found


def steps_of(path: Path) -> float:
    """What it takes to verify a file."""
    with effort.limited(1):
        verify(path)
        return effort.STEPS - effort.left()


def test_work_is_counted_only_where_that_was_asked_for() -> None:
    effort.spend(1e12, "anything")
    with effort.limited(2):
        effort.spend(2 * effort.STEPS, "as much as may be")
        with pytest.raises(effort.EffortError) as caught:
            effort.spend(1, "a little more")
    assert "a little more" in str(caught.value)
    assert "optdp --patience" in str(caught.value)
    assert "\n" not in str(caught.value)
    effort.spend(1e12, "anything again")


def test_what_was_refused_is_not_charged() -> None:
    """Whoever can do without goes on; work aside takes nothing away."""
    with effort.limited(1):
        with pytest.raises(effort.EffortError):
            effort.spend(2 * effort.STEPS, "too much")
        effort.spend(0.6 * effort.STEPS, "enough")
        with effort.aside():
            effort.spend(0.3 * effort.STEPS, "besides")
            with pytest.raises(effort.EffortError):
                effort.spend(0.2 * effort.STEPS, "too much besides")
        effort.spend(0.4 * effort.STEPS, "all that is left")
    with effort.aside():
        effort.spend(1e12, "anything")


def test_an_explanation_takes_nothing_from_the_check(small: Path) -> None:
    seconds = 1.1 * steps_of(small) / effort.STEPS
    assert said("--patience", str(seconds), "verify", str(small)).code == 0
    assert said("--patience", str(seconds), "verify", str(small), "--explain").code == 0


def test_a_report_does_not_leave_out_worlds(small: Path, tmp_path: Path) -> None:
    """With less patience it is refused, or it is the same page."""
    pages = set()
    for seconds in (0.02, 0.05, 0.1, 0.2, 0.4, 5.0):
        page = tmp_path / "a.html"
        code = said("--patience", str(seconds), "report", str(small), "--out", str(page)).code
        assert code == (0 if page.exists() else 2)
        pages |= {page.read_bytes()} if page.exists() else set()
        page.unlink(missing_ok=True)
    assert len(pages) == 1


def test_a_limit_within_a_limit_is_its_own() -> None:
    with effort.limited(1):
        effort.spend(1000, "this")
        with effort.limited(3):
            assert effort.left() == 3 * effort.STEPS
        assert effort.left() == effort.STEPS - 1000
    with pytest.raises(ProblemError, match="above 0"), effort.limited(0):
        pass


@pytest.mark.parametrize("command", ["verify", "report", "export", "sample", "audit", "sign"])
def test_every_command_refuses_and_is_patient(
    command: str, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {
        "report": ["--out", str(tmp_path / "a.html")],
        "export": ["--to", "csv", "--out", str(tmp_path / "a.csv")],
        "sample": ["--input", "3"],
        "audit": ["--samples", "100"],
        "sign": ["--key", str(tmp_path / "k.pem"), "--create-key"],
    }
    if command == "sign":
        pytest.importorskip("cryptography")
    argv = [command, str(small), *more.get(command, [])]
    found = said("--patience", "0.0005", *argv)
    assert found.code == 2
    assert "limit is about 0.0005" in found.words
    monkeypatch.setenv("OPTDP_PATIENCE", "0.0006")
    assert "limit is about 0.0006" in said(*argv).words
    assert said("--patience", "5", *argv).code == 0


def test_what_is_left_alone_is_the_bound(small: Path, tmp_path: Path) -> None:
    """A table that can be measured is verified, whether or not there are steps left for the proof of the bound."""
    document = json.loads(small.read_bytes())
    assert document["provenance"]["prices"]
    document["provenance"], document["claim"]["lower_bound"], document["sha256"] = {}, None, ""
    bare = tmp_path / "bare.json"
    from tests.artifact.forgeries import sealed

    bare.write_bytes(sealed({key: value for key, value in document.items() if key != "sha256"}))
    enough = steps_of(bare) * 1.2
    assert verify(small).bound_proved
    with effort.limited(enough / effort.STEPS):
        assert not verify(small).bound_proved


def test_the_library_of_problems_is_far_from_the_limit() -> None:
    """What optdp makes of its own problems is verified without patience."""
    for name in ("sick-leave.toml", "two-priors.toml"):
        path = Path(__file__).parents[2] / "problems" / "use-cases" / name
        problem = load(path)
        assert isinstance(problem, SingleLTE)
        with effort.limited(1):
            solve(problem)
            assert effort.left() > effort.STEPS / 3


def test_many_populations_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'kind = "multi-lte"\nepsilon = "1"\n' + "".join(
        f'[[parties]]\nkind = "binomial"\nn = 40\np = "0.{i:02d}"\n' for i in range(10, 60)
    )
    path = tmp_path / "p.toml"
    path.write_text(text)
    assert len(load(path).parties) == 50  # type: ignore[union-attr]
    monkeypatch.setattr(files, "MOST_BYTES", 30 * Population.binomial(40, "0.11").bytes_needed)
    with pytest.raises(ProblemError, match=r"first 3[0-9] of 50"):
        load(path)


@pytest.mark.parametrize("text", ["a = [" + "1," * 400_000 + "]", 'a = "' + "x" * 9_000_000 + '"', "[a]\n" * 200_000])
def test_problem_files_of_megabytes_are_not_parsed(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    monkeypatch.setattr(tomllib, "loads", None)
    with pytest.raises(ProblemError, match="200,000 numbers"):
        load(path)


# ---------------------------------------------------------------------- the harness itself


def test_whoever_is_killed_is_killed_for_its_own_file(tmp_path: Path) -> None:
    def busy() -> str:
        while True:
            pass

    assert hostile_files._apart(busy, 0.3)[:2] == ("", -signal.SIGKILL)
    assert hostile_files._apart(lambda: "x" * 200_000, 5.0)[:2] == ("x" * 200_000, 0)
    assert hostile_files._apart(lambda: str(os.getpid()), 5.0)[0] != str(os.getpid())


def test_plans_start_from_the_same_documents() -> None:
    one, other = plan_documents(), plan_documents()
    one.plan["claim"]["epsilon"] = "7"
    assert other.plan["claim"]["epsilon"] != "7"
