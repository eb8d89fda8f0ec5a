"""Problem files: TOML in, validated problems out; the registry of kinds; their JSON Schema.

Decimals are read as the decimals they are. Besides the problem a file may say where it comes from (`title`, `source`,
`notes`) and what to expect (`[expect]`), which the tests hold it to.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from pydantic import TypeAdapter, ValidationError

from optdp.errors import ProblemError
from optdp.file_models import Documented, read_text
from optdp.math.exact import shown

if TYPE_CHECKING:
    from optdp.amplification.count import KRRCount
    from optdp.amplification.problem import Amplification
    from optdp.mallows.problem import OrderShuffle
    from optdp.noise.multi import MultiLTE
    from optdp.noise.single import SingleLTE
    from optdp.shuffle.histogram import ShuffleHistogram
    from optdp.shuffle.metric import MetricShuffle
    from optdp.shuffle.summation import RealSum

    Shuffle = MetricShuffle | ShuffleHistogram | RealSum
    Problem = SingleLTE | MultiLTE | Amplification | KRRCount | Shuffle | OrderShuffle


class _File(Protocol):
    """What every kind of file can do."""

    title: str
    source: str
    expect: dict[str, Any]

    def build(self) -> Problem: ...


@dataclass(frozen=True)
class Kind:
    """A kind of problem: how its file is checked, and what it is for."""

    home: str
    """Where its file is described; imported when it is needed, so that checking one kind needs nothing of another."""
    purpose: str

    @property
    def model(self) -> type[Documented]:
        module, _, name = self.home.partition(":")
        found: type[Documented] = getattr(import_module(f"optdp.{module}"), name)
        return found


KINDS: dict[str, Kind] = {
    "single-lte": Kind("noise.files:SingleLTEFile", "the best certified noise matrix for one locally trusted entity"),
    "multi-lte": Kind(
        "noise.files:MultiLTEFile", "the best certified plan for several entities of whom only the sum is seen"
    ),
    "amplification": Kind(
        "amplification.files:AmplificationFile", "what shuffling buys: the missing one of epsilon, delta, eps0, n"
    ),
    "krr-count": Kind(
        "amplification.files:KRRCountFile", "what an observer of one count of shuffled randomized response learns"
    ),
    "metric-shuffle": Kind(
        "shuffle.metric_files:MetricShuffleFile", "a shuffled sum with metric privacy: its noise, its exact profile"
    ),
    "shuffle-histogram": Kind(
        "shuffle.files:ShuffleHistogramFile",
        "a shuffled histogram by randomized response, as accurate as epsilon allows",
    ),
    "real-sum": Kind("shuffle.files:RealSumFile", "the sum of numbers by one shuffled message from everybody"),
    "order-shuffle": Kind(
        "mallows.files:OrderShuffleFile", "a shuffle within groups that keeps trends: the order of least sensitivity"
    ),
}
"""Every kind of problem that optdp solves."""


@dataclass(frozen=True)
class ProblemFile:
    """A problem together with what its file says about it."""

    title: str
    source: str
    expect: Mapping[str, Any]
    data: Mapping[str, Any]
    """The file as it was read."""
    file: _File

    @cached_property
    def problem(self) -> Problem:
        """Made when it is asked for: it may read other files, which need not be there to list problems."""
        return self.file.build()


_MOST_PARTS = 64
_LONGEST = 800_000
"""The most that a file may hold, counted in signs, of which those weigh more that take longer to read."""
_WEIGHTS = {",": 3.0, "=": 7.0, "[": 5.0, "{": 6.0, "\n": 0.3, "\\": 0.7}
_DOTTED = re.compile(r"""(?:\.[ \t]*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+)++""")


def load(path: str | Path) -> Problem:
    """The problem in a TOML file."""
    return load_file(path).problem


def load_file(path: str | Path) -> ProblemFile:
    """The problem in a TOML file, with its title, source and expectations."""
    place = Path(path)
    text = read_text(place, "TOML")
    if 0.1 * len(text) + sum(weight * text.count(sign) for sign, weight in _WEIGHTS.items()) > _LONGEST:
        raise ProblemError(
            f"A problem file may hold about 200,000 numbers, or 8 MB of text. Found more in {place}. "
            "Make the problem in Python: docs/reference.md."
        )
    if any(
        run[0].count(".") > _MOST_PARTS for run in _DOTTED.finditer(text)
    ):  # its tables would be opened one within the other, for each of its parts again
        raise ProblemError(f"{place} is not a problem file: a key has more than {_MOST_PARTS} parts.")
    try:
        data = tomllib.loads(text, parse_float=str)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ProblemError(f"{place} is not a TOML file: {str(error).splitlines()[0]}.") from None
    beside(data, place.parent)
    file = validated(data)
    return ProblemFile(file.title, file.source, file.expect, data, file)


def beside(data: dict[str, Any], folder: Path) -> None:
    """Files that a problem names lie beside it."""
    sweep = data.get("sweep")
    series = sweep.get("series") if isinstance(sweep, dict) else None
    for table in (data, *(series if isinstance(series, list) else ())):
        randomizer = table.get("randomizer") if isinstance(table, dict) else None
        groups, study = (table.get(name) if isinstance(table, dict) else None for name in ("groups", "study"))
        named_files = ((randomizer, ("csv",)), (groups, ("points", "graph", "data", "file")), (study, ("data",)))
        for part, names in named_files:
            if isinstance(part, dict):
                named = {name: str(folder / part[name]) for name in names if isinstance(part.get(name), str)}
                part.update(named)


def from_spec(data: object) -> Problem:
    """The problem in a mapping, such as the one that an artifact carries."""
    return validated(data).build()


def validated(data: object) -> _File:
    kind = data.get("kind") if isinstance(data, Mapping) else data
    if not isinstance(data, Mapping) or not isinstance(kind, str) or kind not in KINDS:
        raise ProblemError(f"kind must be one of {', '.join(KINDS)}. Found {shown(kind)}.")
    try:
        return cast(_File, KINDS[kind].model.model_validate(dict(data)))
    except ValidationError as error:
        raise ProblemError(_first_line(error)) from None


def _first_line(error: ValidationError) -> str:
    """The first defect as one line: where, what is wrong, what was found."""
    first = error.errors(include_url=False)[0]
    tags = ("binomial", "iid", "independent", "counts", "others", "conditionals", "list[tagged-union")
    steps = [str(step) for step in first["loc"] if not str(step).startswith(tags) and "union" not in str(step)]
    steps = [step for before, step in zip(["", *steps], steps, strict=False) if before != "randomizer"]
    where = _printable(".".join(steps)) or "the problem"
    if first["type"] == "extra_forbidden":
        return f"Unknown key {where!r}. Remove it, or see: optdp schema."
    if first["type"] == "union_tag_invalid":
        context = first.get("ctx", {})
        known = str(context.get("expected_tags", "")).replace("'", "")
        return f"{where}.kind must be one of {known}. Found {shown(context.get('tag'))}."
    if first["type"] == "missing":
        return f"{where} is missing. Add it; see: optdp schema."
    return f"{where}: {_printable(first['msg'])}. Found {shown(first.get('input'))}."


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text[:300])


def schema() -> dict[str, Any]:
    """The JSON Schema of all problem files."""
    models = [kind.model for kind in KINDS.values()]
    return TypeAdapter(reduce(or_, models)).json_schema()


def library() -> list[Path]:
    """The problem files of the instance library: `problems/` here, or beside the package."""
    find: Callable[[Path], list[Path]] = lambda root: sorted((root / "problems").rglob("*.toml"))  # noqa: E731
    return find(Path.cwd()) or find(Path(__file__).resolve().parent.parent)
