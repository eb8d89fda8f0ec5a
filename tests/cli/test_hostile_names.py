"""Names, titles and messages of others are printed as they are: no markup, no emoji codes, no control codes."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from optdp import ProblemError
from optdp.cli import printing
from optdp.comparison.rows import Row
from tests.command_line import Done

NAMES = ["[bold]", ":x:", "[/red]:smile:", "a[/]b", "[link=x]\\y", "[@click=f]", "root:x:0:0"]
ORDER = 'kind = "order-shuffle"\nalpha = 1\nordering = "rcm"\n[groups]\ndata = "d.csv"\ncolumn = "y"\n'
SINGLE = 'kind = "single-lte"\nepsilon = 1\npopulation = { kind = "binomial", n = 2, p = 0.5 }\n'
LABELS = 'kind = "shuffle-histogram"\nn = 100\ndelta = 1e-2\nepsilon = 2\n'


@pytest.fixture
def call(command: Callable[..., Done]) -> Callable[..., Done]:
    return command


@pytest.mark.parametrize("name", NAMES)
def test_names_of_files(name: str, tmp_path: Path, call: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    """What every command wrote and read is named as it is."""
    name = name.replace("/", "-")
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SINGLE)
    Path("o.toml").write_text(ORDER)
    Path("h.toml").write_text(LABELS + "k = 2\n")
    Path("c.toml").write_text(LABELS + 'k = 2\n[sweep]\nover = "n"\nvalues = [100]\n')
    Path("p.toml").write_text(
        'kind = "multi-lte"\nepsilon = 1\nmethod = "geometric"\n'
        + '[[parties]]\nkind = "binomial"\nn = 2\np = 0.5\n' * 2
    )
    Path("d.csv").write_text("y\n" + "1\n" * 99 + "0\n")
    for command in (
        ("solve", "s.toml", "--out", f"{name}.json"),
        ("verify", f"{name}.json"),
        ("report", f"{name}.json", "--out", f"{name}.html"),
        ("export", f"{name}.json", "--to", "python", "--out", f"{name}-folder"),
        ("sign", f"{name}.json", "--key", f"{name}.pem", "--create-key"),
        ("verify", f"{name}.json", "--key", f"{name}.pub.pem"),
        ("audit", f"{name}.json", "--samples", 100),
        ("solve", "p.toml", "--out", f"{name}-plan"),
        ("verify", f"{name}-plan"),
        ("solve", "o.toml", "--out", f"{name}-order.json"),
        ("verify", f"{name}-order.json"),
        ("shuffle", f"{name}-order.json", "--data", "d.csv", "--column", "y", "--out", f"{name}.csv"),
        ("run", "h.toml", "--data", "d.csv", "--column", "y", "--out", f"{name}-e.json"),
        ("sweep", "s.toml", "--grid", "epsilon=1", "--out", f"{name}.jsonl", "--workers", 0),
        ("curve", "c.toml", "--out", f"{name}-c.csv"),
    ):
        done = call(*command)
        assert done.code == 0, done
        assert name in done.out, (command, done.out)
    for command in (
        ("solve", f"{name}.toml"),
        ("verify", f"no-{name}"),
        ("solve", "s.toml", "--out", f"no-{name}/a.json"),
        ("solve", "s.toml", "extra", name),
        ("export", f"{name}.json", "--to", f"to{name}", "--out", "x"),
        ("run", "h.toml", "--data", "d.csv", "--column", f"y{name}", "--out", "x"),
        ("sweep", "s.toml", "--grid", "epsilon=1", "--out", f"x{name}"),
    ):
        done = call(*command)
        done.refused("optdp: ")
        assert name in done.err.replace("\\\\", "\\"), (command, done.err)


@pytest.mark.parametrize("name", NAMES)
def test_titles_labels_and_columns(
    name: str, tmp_path: Path, call: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "p.toml").write_text(f"title = '{name}'\nsource = 'by {name}'\n{SINGLE}")
    monkeypatch.setattr("optdp.library.FOLDER", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert call("problems").out.count(name) == 2
    (tmp_path / "h.toml").write_text(LABELS + f"labels = ['{name}', 'b']\n")
    (tmp_path / "d.csv").write_text(f'"{name}"\n' + f'"{name}"\n' * 50 + "b\n" * 50)
    done = call("run", "h.toml", "--data", "d.csv", "--column", name, "--out", "e.json")
    assert done.out.count(name) == 1, "at its bar"


@pytest.mark.parametrize("name", NAMES)
def test_messages_of_others(name: str, tmp_path: Path, call: Callable[..., Done], monkeypatch: Any) -> None:
    (tmp_path / "p.toml").write_text(SINGLE)
    row = Row(problem="p", backend=name, status=f"s{name}", seconds=1.0, note=f"n{name}")
    monkeypatch.setattr("optdp.comparison.run.compare_all", lambda *_: [row])
    done = call("compare", tmp_path / "p.toml")
    assert done.out.count(name) == 4, done.out

    def fail(*_: object, **__: object) -> None:
        raise ProblemError(f"it says {name}")

    monkeypatch.setattr("optdp.kinds.solve", fail)
    assert call("solve", tmp_path / "p.toml").err == f"optdp: it says {name}\n"


def test_control_codes_never_reach_the_terminal(tmp_path: Path, call: Callable[..., Done], monkeypatch: Any) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "p.toml").write_text('title = "a\\u001b[31m\\u0007\\u202e"\nsource = "s"\n' + SINGLE)
    monkeypatch.setattr("optdp.library.FOLDER", tmp_path)
    monkeypatch.chdir(tmp_path)
    done = call("problems")
    assert "a?[31m??" in done.out
    assert "\x1b" not in done.out + call("solve", "\x1b[31m.toml").err


def test_progress_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100, emoji=False)
    monkeypatch.setattr(printing, "err", console)
    monkeypatch.setattr(printing, "quiet", False)
    with printing.progress() as say:
        say("curve [bold] :x: of [/x]")
    assert "curve [bold] :x: of [/x]" in shown.getvalue()
