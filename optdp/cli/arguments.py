"""Arguments that several commands share, and how they are checked."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from optdp import library
from optdp.errors import ProblemError


def completed(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What a shell offers for a word that is one of some names."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


def _backends() -> list[str]:
    from optdp.programs.backends import installed

    return [backend.name for backend in installed()]


PROBLEM: dict[str, Any] = {
    "parser": library.place,
    "metavar": "PROBLEM",
    "autocompletion": completed(library.problems),
}
"""An argument that is a problem: a file or a name."""
ProblemPath = Annotated[
    Path, typer.Argument(help="A problem file (TOML), or a name that `optdp problems` lists.", **PROBLEM)
]
ArtifactPath = Annotated[Path, typer.Argument(help="An artifact that `optdp solve --out` wrote.")]
BackendName = Annotated[
    str,
    typer.Option(help="The solver to use; `optdp kinds` lists those installed.", autocompletion=completed(_backends)),
]
Deadline = Annotated[
    float | None,
    typer.Option(help="Stop after this many seconds, with the best found so far.", metavar="SECONDS"),
]
Seed = Annotated[int | None, typer.Option(help="Make the draws repeatable; for tests only: they are NOT private.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]

AllowOutside = Annotated[
    bool,
    typer.Option("--allow-outside", help="Also read files outside the folder of the problem or order that names them."),
]


class Once(TyperGroup):
    """Refuses an option that is given twice and takes one value: the parser would take the last, and say nothing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _check_once(self, ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _check_once(command, type(ctx)(command, info_name=name, parent=ctx), rest)
        return name, command, rest


def _check_once(command: Any, ctx: Any, args: list[str]) -> None:
    usage: Any = typer.BadParameter.__base__
    try:
        _, _, order = command.make_parser(ctx).parse_args(args=list(args))
    except usage:  # the command itself says what is wrong
        return
    for option, times in Counter(order).items():
        if times > 1 and option.param_type_name == "option" and not (option.multiple or option.is_flag):
            raise ProblemError(f"{option.opts[0]} must be given once. Found it {times} times.")


def whole_number(text: str) -> int:
    """The number, or the first line of standard input for `-`: arguments can be read by other users of a machine."""
    given = sys.stdin.readline(100).strip() if text == "-" else text
    try:
        return int(given)
    except ValueError:
        raise ProblemError("--input must be a whole number, or - to read one from standard input.") from None
