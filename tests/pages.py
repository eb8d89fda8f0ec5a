"""README and docs as programs: commands and Python blocks are run in order, and held to what the page shows.

A fence without a language (or `console`) that has lines `$ command` is a session: the lines after a command are what it
prints. A fence `python` is run in the page's own namespace; what an expression or a print gives is shown in a comment
that begins with a number, or, for all that the block prints, in a fence `text` right after it. A fence with a title,
`toml title="sick-leave.toml"`, is a file that the reader saves.

What is shown must be printed, line by line, in this order; `...` is anything. Numbers agree to the digits shown.
These may differ: times, sizes in kB, digests, bars, a column `seconds`, and whatever a command draws at random.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tokenize
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from tests.command_line import ROOT, in_process

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')
PROMPT = re.compile(r"^(?:[\w-]+)?\$ ", re.MULTILINE)

NUMBER = r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])"
PARTS = re.compile(
    rf"(?P<time>\d{{4}}-\d\d-\d\dT[\d:]+Z|{NUMBER} (?:s|min|kB|MB)\b)|(?P<digest>\b(?=\w*\d)[0-9a-f]{{12,}}\b)"
    rf"|(?P<number>{NUMBER})|(?P<any>\.\.\.|…)|(?P<space>\s+)"
)
FREE = {"time": r"[-\d.,:TZe+]+(?: (?:s|min|kB|MB))?", "digest": "[0-9a-f]{12,}", "any": ".*", "space": r"\s+"}
BARS = re.compile("[▏▎▍▌▋▊▉█]+")
DRAWN = ("sample", "run", "aggregate", "audit")
"""Commands whose numbers are random."""


class Fence(NamedTuple):
    kind: str
    title: str
    body: str
    line: int


class Command(NamedTuple):
    line: str
    shown: str

    @property
    def plain(self) -> str:
        """Without a comment."""
        return re.sub(r"\s+# .*$", "", self.line)


def fences(text: str) -> list[Fence]:
    found = []
    for match in FENCE.finditer(text):
        kind, _, rest = match["info"].strip().partition(" ")
        title = TITLE.search(rest)
        if kind in ("", "console"):
            kind = "session"
        found.append(Fence(kind, title[1] if title else "", match["body"], text[: match.start()].count("\n") + 1))
    return found


def commands(session: str) -> list[Command]:
    if not PROMPT.search(session):  # commands alone
        return [Command(line, "") for line in session.splitlines()]
    parts = PROMPT.split(session.replace("\\\n", " "))
    assert not parts[0].strip(), f"A session begins with a command. Found {parts[0]!r}."
    return [Command(*(part.partition("\n")[::2])) for part in parts[1:]]


def value(number: str) -> float:
    return float(number.replace(",", ""))


def near(shown: str, found: str) -> bool:
    """Whether a number was rounded, up, down or to the nearest, to the one that is shown."""
    digits, _, exponent = shown.partition("e")
    decimals = len(digits.partition(".")[2])
    if not decimals and not exponent:
        return round(value(found)) == value(shown)
    return abs(value(shown) - value(found)) < 1.000001 * 10.0 ** (int(exponent or 0) - decimals)


def line_agrees(shown: str, found: str, drawn: bool = False) -> bool:
    """Whether a line that is shown may stand for a line that was printed."""
    pattern, numbers, at = "", [], 0
    for part in PARTS.finditer(shown):
        pattern += re.escape(shown[at : part.start()])
        at = part.end()
        if part.lastgroup == "number":
            numbers.append(part[0])
            pattern += rf"({NUMBER})"
        else:
            pattern += FREE[str(part.lastgroup)]
    match = re.fullmatch(pattern + re.escape(shown[at:]), found)
    return match is not None and (drawn or all(map(near, numbers, match.groups())))


def lines(text: str) -> list[str]:
    cut = (BARS.sub("", line).strip() for line in text.splitlines())
    return [line for line in cut if line]


def without_seconds(shown: list[str]) -> list[str]:
    """A column of times is whatever it is."""
    tables = [re.split(r"\s{2,}", line) for line in shown]
    heading = next((cells for cells in tables if "seconds" in cells), None)
    if heading is None:
        return shown
    at = heading.index("seconds")
    return [
        "  ".join([*cells[:at], "...", *cells[at + 1 :]]) if len(cells) == len(heading) and cells != heading else line
        for cells, line in zip(tables, shown, strict=True)
    ]


def held(shown: str, found: str, where: str, drawn: bool = False) -> None:
    """Hold what a page shows to what was printed: each line is, in this order; others may be left out."""
    printed = lines(found)
    left = iter(printed)
    for line in without_seconds(lines(shown)):
        if line != "..." and not any(line_agrees(line, one, drawn) for one in left):
            why = "in this order" if any(line_agrees(line, one, drawn) for one in printed) else "at all"
            everything = "\n".join(f"  {one}" for one in printed)
            raise AssertionError(f"{where} does not print {why}\n  {line}\nbut\n{everything}")


class Reader:
    """Who reads a page, types its commands in one folder, and has at hand what pages take as given."""

    def __init__(self, folder: Path, given: dict[str, str], cache: Path) -> None:
        self.folder, self.given, self.cache = folder, given, cache
        self.code = 0
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def prepare(self, line: str) -> None:
        """Bring what the line reads and nobody has made: `given` says how."""
        words = re.split(r"[\s'\"=(),]+", line)
        for at, name in enumerate(word.removeprefix("./").partition("/")[0] for word in words):
            if name not in self.given or (self.folder / name).exists() or words[at - 1] in ("--out", "-o", ">"):
                continue
            made = self.cache / name
            if not made.exists():
                others = {other: way for other, way in self.given.items() if other != name}
                maker = Reader(self.cache, others, self.cache)
                maker.type(self.given[name])
                assert maker.code == 0, f"{name} could not be made."
            if self.folder != self.cache:
                subprocess.run(["cp", "-r", made, self.folder / name], check=True)

    def type(self, line: str) -> str:
        """What the terminal shows after this line."""
        self.prepare(line)
        if re.match(r"optdp\s[^|<>;&*$]*$", line):
            done = in_process(*shlex.split(line)[1:], cwd=self.folder)
        else:
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                ["bash", "-c", f"(exit {self.code}); {line}"],
                cwd=self.folder, env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
                capture_output=True, text=True, timeout=280, check=False,
            )  # fmt: skip
        self.code = done.returncode
        return done.stdout + done.stderr

    def session(self, body: str, skipped: dict[str, str], where: str) -> None:
        asked = commands(body)
        for command, after in zip(asked, [*asked[1:], None], strict=True):
            if any(re.match(beginning, command.plain) for beginning in skipped):
                continue
            printed = self.type(command.plain)
            place = f"{where}: {command.plain!r}"
            fails = command.shown.startswith("optdp: ") or (after is not None and after.plain == "echo $?")
            assert fails or self.code == 0, f"{place} failed with {self.code}:\n{printed}"
            if command.shown.strip():
                held(command.shown, printed, place, any(word in command.plain.split() for word in DRAWN))

    def python(self, body: str, shown: str | None, where: str) -> None:
        """Run a block statement by statement, with what each is said to give."""
        self.prepare(body)
        remarks = {
            token.start[0]: token.string.lstrip("# ")
            for token in tokenize.generate_tokens(io.StringIO(body).readline)
            if token.type == tokenize.COMMENT
        }
        tree, everything = ast.parse(body), ""
        for statement, after in zip(tree.body, [*tree.body[1:], None], strict=True):
            end = statement.end_lineno or 0
            last = after.lineno if after else body.count("\n") + 2
            printed, result = self.statement(statement)
            everything += printed
            for number in range(end, last):
                given = re.match(rf"({NUMBER}(?:\.\.\.|…)?(?:[,:]? |$|(?=[;,:])))+", remarks.get(number, ""))
                if not given or (number == end and not isinstance(statement, ast.Expr)):
                    continue
                said = re.findall(NUMBER, given[0])
                found = re.findall(
                    NUMBER, printed.splitlines()[number - end - 1] if number > end else printed or result
                )
                assert len(found) >= len(said), f"{where}: {remarks[number]!r} is shown, and {found} was found."
                assert all(map(near, said, found)), f"{where}: {remarks[number]!r} is shown, and {found} was found."
        if shown is not None:
            held(shown, everything, where)

    def statement(self, statement: ast.stmt) -> tuple[str, str]:
        out, result = io.StringIO(), None
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a reader sees them, and goes on
            if isinstance(statement, ast.Expr):
                result = eval(compile(ast.Expression(statement.value), "page", "eval"), self.names)
            else:
                exec(compile(ast.Module([statement], []), "page", "exec"), self.names)
        return out.getvalue(), " ".join(map(spelled, result)) if isinstance(result, tuple) else spelled(result)


def spelled(result: object) -> str:
    return str(float(result)) if isinstance(result, Fraction) else str(result)
