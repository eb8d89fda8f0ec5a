"""A file to start from, for every kind: found by questions, written with comments, solved as it stands."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from optdp import ProblemError, load, solve
from optdp.cli.printing import err
from optdp.kinds import KINDS
from optdp.loading import load_file
from optdp.templates import QUESTIONS, changed, choose, startable, write
from tests.command_line import Done

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", KINDS)
def test_a_new_file_solves_at_once(
    name: str, tmp_path: Path, command: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command("init", name, "--out", "my.toml")
    assert done.code == 0, done
    text = Path("my.toml").read_text()
    assert sum(line.startswith("# ") for line in text.splitlines()) >= 4
    assert "FILE" not in text
    (advice,) = re.findall(r"^next +optdp (.*)$", done.out, re.MULTILINE)
    assert "solve my.toml" in advice
    solved = command(*advice.split(), "--json")
    assert solved.code == 0, solved
    assert load("my.toml").kind == name


def test_answers_lead_to_every_kind() -> None:
    """Whatever is answered, a kind is found; and every kind is."""
    found, most = set(), 0
    for numbers in product(range(8), repeat=len(QUESTIONS)):
        asked: list[str] = []

        def ask(question: str, answers: list[str], numbers: tuple[int, ...] = numbers, asked: Any = asked) -> int:
            assert len(answers) > 1
            asked.append(question)
            return numbers[len(asked) - 1] % len(answers)

        found.add(choose(ask).name)
        most = max(most, len(asked))
        assert asked == [question for question in QUESTIONS.values() if question in asked]
    assert found == set(startable()) == set(KINDS)
    assert most <= 3


def test_every_kind_is_in_the_table_of_the_docs() -> None:
    rows = [line.split("|") for line in (DOCS / "choose.md").read_text().splitlines() if line.startswith("| [")]
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row[4])} >= set(startable())


def test_a_terminal_is_asked(tmp_path: Path, command: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", Terminal("9\nx\n1\n2\n"))
    monkeypatch.setattr(err, "_width", 200)
    done = command("init")
    assert done.code == 0, done
    assert all(question in done.err for question in list(QUESTIONS.values())[:2])
    assert load("problem.toml").kind == "multi-lte"


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("single-lte", ("epsilon=0.7", "population.n=30", "observer.known=2"), {"n": 30, "epsilon": "0.7"}),
        ("multi-lte", ("parties.1.n=11", "honest=1", "method=geometric"), {"n": 11, "honest": 1}),
        ("shuffle-histogram", ("labels=", "k=5"), {"k": 5}),
        ("metric-shuffle", ("n=77", "query=sum"), {"n": 77}),
    ],
)
def test_values_are_set_and_comments_stay(
    name: str, values: tuple[str, ...], expected: dict[str, Any], tmp_path: Path, command: Callable[..., Done]
) -> None:
    target = tmp_path / "my.toml"
    done = command("init", name, "--out", target, *(word for value in values for word in ("--set", value)))
    assert done.code == 0, done
    plain = tmp_path / "plain.toml"
    command("init", name, "--out", plain)
    differing = [
        (one, other)
        for one, other in zip(plain.read_text().splitlines(), target.read_text().splitlines(), strict=True)
        if one.replace("plain.toml", "my.toml") != other
    ]
    assert len(differing) == len(values)
    read = load_file(target).data
    for key, value in expected.items():
        holder = read["parties"][1] if name == "multi-lte" and key == "n" else read.get("population", read)
        assert {**read, **holder}[key] == value


def test_nothing_is_replaced_without_being_asked_to(tmp_path: Path, command: Callable[..., Done]) -> None:
    target = tmp_path / "order.toml"
    for mine in ("order.toml", "order.csv"):
        (tmp_path / mine).write_text("mine")
        command("init", "order-shuffle", "--out", target).refused("--force")
        assert (tmp_path / mine).read_text() == "mine"
        assert len(list(tmp_path.iterdir())) == 1
        (tmp_path / mine).unlink()
    target.write_text("mine")
    assert command("init", "order-shuffle", "--out", target, "--force").code == 0
    assert solve(load(target)).status == "optimal"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), "KIND must be one of single-lte, "),
        ((), "Say which kind: single-lte, "),
        (("single-lte", "--out", "my.json"), ".toml"),
        (("single-lte", "--out", "no/such/my.toml"), "older"),
        (("single-lte", "--set", "epsilon"), "KEY=VALUE"),
        (("single-lte", "--set", "p=1"), "--set takes epsilon, fallback_epsilon, tail, population.kind"),
        (("single-lte", "--set", "epsilon=-1"), "epsilon must be"),
        (("single-lte", "--set", 'epsilon=1\nmethod = "geometric"'), "epsilon"),
        (("single-lte", "--set", "population.n=many"), "population.n"),
        (("order-shuffle", "--set", "groups.data=/etc/passwd"), "elsewhere"),
    ],
)
def test_what_cannot_be_written_is_refused(
    arguments: tuple[str, ...], words: str, tmp_path: Path, command: Callable[..., Done], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    command("init", *arguments).refused(words)
    assert not list(tmp_path.iterdir())


def test_a_kind_without_a_file_is_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.toy import TOY

    monkeypatch.setitem(KINDS, "toy", TOY)
    assert "toy" not in startable()
    with pytest.raises(ProblemError, match="Found kind toy"):
        write(TOY, tmp_path / "my.toml", {})


def test_the_first_of_equal_keys_is_that_of_the_table() -> None:
    text = "a = 1\n[t]\na = 2  # two\n[[p]]\na = 3\n[[p]]\n# a = 4\n"
    assert changed(text, "t.a", "9") == text.replace("a = 2", "a = 9")
    assert changed(text, "p.1.a", "x y") == text.replace("# a = 4", 'a = "x y"')
    assert changed(text, "a", "") == text.replace("a = 1", "# a = 1", 1)
