"""Files to start from, one for each kind of problem, and the questions that find the kind.

What is asked, and which file is written, every kind says of itself (`Kind.start`). A file can be written with other
values; the rest of it, comments too, stays as it is.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from optdp.errors import ProblemError
from optdp.files.atomic import check_writable, write_bytes
from optdp.files.models import named_file
from optdp.kind import Kind, Start
from optdp.kinds import KINDS
from optdp.loading import built, named
from optdp.numbers.exact import shown

QUESTIONS = {
    "release": "What do you want to release?",
    "noise": "Who adds the noise?",
    "sees": "Who may see what?",
}
"""In the order in which they are asked; the answers are those of the kinds."""
_TABLE = re.compile(r"\[(\[?)([\w.]+)\]?\]\s*(?:#.*)?")
_LINE = re.compile(r"(?P<off># )?(?P<key>\w+) = (?P<value>\[.*?\]|\"[^\"]*\"|[^#\s]+)(?P<rest>\s*(?:#.*)?)")


def choose(ask: Callable[[str, list[str]], int]) -> Kind:
    """The kind that the answers lead to.

    Parameters
    ----------
    ask : is called with a question and the possible answers, and returns the number of one, counted from 0.
    """
    left = startable()
    for name, question in QUESTIONS.items():
        answers = list(dict.fromkeys(getattr(kind.start, name) for kind in left.values()))
        if len(answers) > 1:
            answer = answers[ask(question, answers)]
            left = {word: kind for word, kind in left.items() if getattr(kind.start, name) == answer}
    (found,) = left.values()
    return found


def startable() -> dict[str, Kind]:
    """The kinds that have a file to start from."""
    return {name: kind for name, kind in KINDS.items() if kind.start is not None}


def start_of(kind: Kind) -> Start:
    if kind.start is None:
        raise ProblemError(f"init is for {', '.join(startable())}. Found kind {kind.name}.")
    return kind.start


def write(kind: Kind, target: Path, values: Mapping[str, str], force: bool = False) -> list[Path]:
    """Write the file of a kind, and the data that it names beside it.

    Parameters
    ----------
    kind : the kind of problem.
    target : the file, ending in .toml.
    values : what shall be different, by dotted key, such as {"population.n": "200"}; an empty value is left out.
    force : whether files that are there may be replaced.

    Returns
    -------
    list of Path
        The files that were written, the problem first.
    """
    if target.suffix != ".toml":
        raise ProblemError(f"--out must end in .toml. Found {shown(target.name)}.")
    package, _, name = start_of(kind).file.partition(":")
    folder = Path(str(files(package)))
    text = (folder / name).read_text(encoding="utf-8")
    for key, value in values.items():
        text = changed(text, key, value)
    made = _data(text)
    own = {}
    for part, key in named(made):
        given = part[key] in values.values()
        if not given:
            own[part[key]] = f"{target.stem}{Path(part[key]).suffix}"
        part[key] = named_file(target.parent if given else folder, part[key], allow_outside=False)
    built(made)  # what is wrong is said before anything is written
    contents = {target.with_name(new): (folder / old).read_bytes() for old, new in own.items()}
    for old, new in own.items():
        text = text.replace(old, new)
    contents = {target: text.replace("FILE", target.name).encode(), **contents}
    for path in contents:
        if not force and path.exists():
            raise ProblemError(f"{path} exists already. Choose another --out, or use --force to overwrite it.")
        check_writable(path)
    for path, data in contents.items():
        write_bytes(path, data)
    return list(contents)


def changed(text: str, key: str, value: str) -> str:
    """A file with another value at a key, which may stand there as a comment; without it if the value is empty."""
    table, seen, found, lines = "", dict[str, int](), [], text.splitlines()
    for number, line in enumerate(lines):
        if head := _TABLE.fullmatch(line):
            table = head[2]
            if head[1]:
                seen[head[2]] = seen.get(head[2], -1) + 1
                table = f"{head[2]}.{seen[head[2]]}"
        elif entry := _LINE.fullmatch(line):
            path = f"{table}.{entry['key']}".removeprefix(".")
            found.append(path)
            if path == key:
                new = f"{entry['key']} = {_written(value) if value else entry['value']}{entry['rest']}"
                lines[number] = new if value else f"# {new}"
                return "\n".join(lines) + "\n"
    there = ", ".join(name for name in dict.fromkeys(found) if name not in ("title", "kind"))
    raise ProblemError(f"--set takes {there}. Found {shown(key)}. Write the file first, and add it there.")


def _written(value: str) -> str:
    """A value as TOML has it: as it stands if that can be read, or else as text."""
    try:
        tomllib.loads(f"x = {value}")
    except tomllib.TOMLDecodeError:
        return json.dumps(value, ensure_ascii=False)
    return value if "\n" not in value else json.dumps(value)


def _data(text: str) -> dict[str, object]:
    return tomllib.loads(text, parse_float=str)


def next_step(path: Path) -> str:
    """The command that a file recommends to solve it."""
    found = re.search(r"optdp solve [^\n(]*", path.read_text(encoding="utf-8"))
    return found[0].strip() if found else f"optdp solve {path.name}"
