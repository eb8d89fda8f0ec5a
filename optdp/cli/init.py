"""The command that writes a problem file to start from."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from optdp.cli.arguments import completed
from optdp.cli.printing import err, out, plain
from optdp.errors import ProblemError


def _kinds() -> Iterable[str]:
    from optdp import templates

    return templates.startable()


def init(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="A kind of problem that `optdp kinds` lists. If you leave it out, optdp asks questions.",
            autocompletion=completed(_kinds),
        ),
    ] = None,
    save: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("problem.toml"),
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="KEY=VALUE, such as population.n=200; KEY= drops the line. May be given several times."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,
) -> None:
    """Write a commented problem file to start from, which can be solved as it is.

    For example:  optdp init single-lte --set population.n=200 --out my.toml
    """
    from optdp import templates

    known = templates.startable()
    if kind is not None and kind not in known:
        raise ProblemError(f"KIND must be one of {', '.join(known)}. Found {kind!r}. `optdp kinds` says what each is.")
    if kind is None and not sys.stdin.isatty():
        raise ProblemError(f"Say which kind: {', '.join(known)}. In a terminal, `optdp init` asks instead.")
    given = dict(map(_pair, values or ()))
    chosen = known[kind] if kind is not None else templates.choose(_ask)
    written = templates.write(chosen, save, given, force)
    out.print(f"written  {plain(', '.join(map(str, written)))}  ({chosen.name}: {chosen.purpose})")
    out.print(f"next     {plain(templates.next_step(save))}")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key.strip() and equals):
        raise ProblemError(f"--set takes KEY=VALUE, such as epsilon=0.5. Found {text!r}.")
    return key.strip(), value.strip()


def _ask(question: str, answers: list[str]) -> int:
    err.print(f"[bold]{plain(question)}[/]")
    for number, answer in enumerate(answers, 1):
        err.print(f"  {number}  {plain(answer)}")
    while True:
        said = str(typer.prompt(f"Your answer, 1 to {len(answers)}", err=True)).strip()
        if said.isascii() and said.isdecimal() and 0 < int(said[:9]) <= len(answers):
            return int(said) - 1
        err.print(f"  Please type a number from 1 to {len(answers)}.")
