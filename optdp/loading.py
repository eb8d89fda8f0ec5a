"""Problem files: TOML in, checked problems out; their JSON Schema.

Decimals are read as the decimals they are. Besides the problem a file may say where it comes from (`title`, `source`,
`notes`) and what to expect (`[expect]`), which the tests hold it to.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from optdp import library
from optdp.errors import ProblemError
from optdp.files.models import Documented, Problem, checked, file_model, named_file, read_text
from optdp.kind import Kind
from optdp.kinds import KINDS, problem_class
from optdp.numbers.exact import shown


@dataclass(frozen=True)
class ProblemFile:
    """A problem together with what its file says about it."""

    title: str
    source: str
    expect: Mapping[str, Any]
    data: Mapping[str, Any]
    """The file as it was read."""
    file: Documented

    @property
    def kind(self) -> Kind:
        return KINDS[self.data["kind"]]

    @cached_property
    def problem(self) -> Problem[Any]:
        """Made when it is asked for: it may read other files, which need not be there to list problems."""
        return problem_class(self.kind).from_file(self.file)


_MOST_PARTS = 64
_LONGEST = 800_000
"""The most that a file may hold, counted in signs, of which those weigh more that take longer to read."""
_WEIGHTS = {",": 3.0, "=": 7.0, "[": 5.0, "{": 6.0, "\n": 0.3, "\\": 0.7}
_DOTTED = re.compile(r"""(?:\.[ \t]*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+)++""")


def load(path: str | Path, *, allow_outside: bool = False) -> Problem[Any]:
    """Read the problem in a TOML file.

    Parameters
    ----------
    path : str or Path
        The file.
    allow_outside : bool
        Whether the files that it names may lie outside its folder.

    Returns
    -------
    SingleLTE, MultiLTE, Amplification, ...
        The problem that its `kind` names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from optdp import load
    >>> text = 'kind = "amplification"\\nn = 1000\\neps0 = 2\\ndelta = 1e-6\\nrandomizer = {kind = "k-rr", k = 10}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "problem.toml").write_text(text)
    ...     load(Path(folder, "problem.toml")).unknown
    'epsilon'
    """
    return load_file(path, allow_outside=allow_outside).problem


def load_problem(name: str | Path, *, allow_outside: bool = False) -> Problem[Any]:
    """A problem that comes with optdp, by its name; or the one in a file, as the command line finds it.

    Parameters
    ----------
    name : str or Path
        A name that `optdp problems` lists, or a file, which wins.
    allow_outside : bool
        As for `load`.

    Returns
    -------
    The problem, as `load` returns it.

    Examples
    --------
    >>> from optdp import load_problem
    >>> load_problem("sick-leave").epsilon
    Fraction(3, 10)
    """
    return load(library.place(name), allow_outside=allow_outside)


def load_file(path: str | Path, *, allow_outside: bool = False) -> ProblemFile:
    """The problem in a TOML file, with its title, source and expectations; `allow_outside` as in `load`."""
    place = Path(path)
    text = read_text(place, "TOML")
    if 0.1 * len(text) + sum(weight * text.count(sign) for sign, weight in _WEIGHTS.items()) > _LONGEST:
        raise ProblemError(
            f"A problem file may hold about 200,000 numbers, or 8 MB of text. {place} holds more. "
            "Build the problem in Python instead: docs/reference.md."
        )
    # The tables of a long key would be opened one within the other, for each of its parts again.
    if any(run[0].count(".") > _MOST_PARTS for run in _DOTTED.finditer(text)):
        raise ProblemError(f"{place} is not a problem file: one of its keys has more than {_MOST_PARTS} parts.")
    try:
        data = tomllib.loads(text, parse_float=str)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ProblemError(f"{place} is not a TOML file: {str(error).splitlines()[0]}.") from None
    beside(data, place.parent, allow_outside)
    file = validated(data)
    return ProblemFile(file.title, file.source, file.expect, data, file)


def names_file(kind: Kind, key: str) -> bool:
    """Whether a dotted key of a problem, such as groups.points, names a file."""
    table, _, last = key.rpartition(".")
    return last in kind.files.get(table, ())


def beside(data: dict[str, Any], folder: Path, allow_outside: bool) -> None:
    """Write out in full the files that a problem in `folder` names, refusing those that lie elsewhere."""
    for part, key in named(data):
        part[key] = named_file(folder, part[key], allow_outside)


def named(data: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Each table and key that names a file, also of the series of a curve."""
    known = KINDS.get(str(data.get("kind")))
    sweep = data.get("sweep")
    series = sweep.get("series") if isinstance(sweep, dict) else None
    for table in (data, *(series if isinstance(series, list) else ())):
        for name, keys in (known.files if known else {}).items():
            part = table.get(name) if isinstance(table, Mapping) else None
            if isinstance(part, dict):
                yield from ((part, key) for key in keys if isinstance(part.get(key), str))


def validated(data: object) -> Documented:
    """The file in a mapping, checked."""
    kind = data.get("kind") if isinstance(data, Mapping) else data
    if not isinstance(data, Mapping) or not isinstance(kind, str) or kind not in KINDS:
        raise ProblemError(f"kind must be one of {', '.join(KINDS)}. Found {shown(kind)}.")
    return checked(problem_class(KINDS[kind]), data)


def built(data: Mapping[str, Any]) -> Problem[Any]:
    """The problem in a mapping."""
    file = validated(data)
    return problem_class(KINDS[data["kind"]]).from_file(file)


def schema() -> dict[str, Any]:
    """The JSON Schema of all problem files."""
    models = [file_model(problem_class(kind)) for kind in KINDS.values()]
    return TypeAdapter(reduce(or_, models)).json_schema()
