"""One declaration of a problem, for Python and for files alike.

A problem is an attrs class. Its fields convert and check what they are given, and say with `entry` how they are written
in a file. `file_model` makes the strict pydantic model of the file from that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

import attrs
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError, create_model

from optdp.errors import ProblemError
from optdp.files.atomic import name_of
from optdp.kind import at
from optdp.numbers.exact import show, shown, to_fraction

if TYPE_CHECKING:
    from optdp.programs.program import LinearProgram

LARGEST_FILE = 64 * 1024 * 1024

Exact = Annotated[StrictInt | StrictStr, Field(description='An exact number: an integer, or "0.3", "1e-3", "1/3".')]
Law = Annotated[list[Exact], Field(description="Probabilities that sum to exactly 1.")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def build(self) -> Any:
        """What it describes."""
        raise NotImplementedError


class Sweep(Strict):
    """A curve: the problem at many values of one of its numbers, for `optdp curve`."""

    over: StrictStr = Field(description="The number that moves, such as n.")
    values: list[Exact] | None = None
    start: Exact | None = Field(None, alias="from")
    stop: Exact | None = Field(None, alias="to")
    points: StrictInt = 25
    scale: Literal["log", "linear"] = "log"
    tie: dict[str, StrictStr] = Field(
        default_factory=dict, description='What moves along, as a power: delta = "n^-2", randomizer.k = "n^(1/3)".'
    )
    series: list[dict[str, Any]] = Field(
        default_factory=list, description="One curve each: a label, and what differs from the problem above."
    )
    y_scale: Literal["log", "linear"] = "log"


class Documented(Strict):
    """Where a problem comes from, and what its solution must be: the tests hold it to that."""

    title: StrictStr = ""
    source: StrictStr = ""
    notes: StrictStr = ""
    expect: dict[str, Any] = Field(default_factory=dict)
    sweep: Sweep | None = None


S = TypeVar("S")


@attrs.frozen(eq=False, repr=False, slots=False)
class Problem(Generic[S]):
    """What every problem is: an attrs class with a kind, whose solution is an `S`. Equal problems ask the same."""

    kind: ClassVar[str]

    title: str = attrs.field(default="", kw_only=True, eq=False, validator=attrs.validators.instance_of(str))
    """What it is about, for people: files and reports carry it."""

    def _asked(self) -> dict[str, Any]:
        """Every field as it is used: where the field keeps what was given, the property of its name."""
        known = attrs.fields(type(self))
        return {item.name.lstrip("_"): getattr(self, item.name.lstrip("_")) for item in known if item.eq}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._asked() == other._asked()

    def __hash__(self) -> int:
        return hash((self.kind, *self._asked().values()))

    def __repr__(self) -> str:
        given = ", ".join(
            f"{item.alias}={_short(getattr(self, item.name))}"
            for item in attrs.fields(type(self))
            if "form" in item.metadata and getattr(self, item.name) != item.default
        )
        return f"{type(self).__name__}({given if len(given) < 240 else given[:237] + '...'})"

    def _repr_html_(self) -> str:
        """A notebook shows this."""
        return f'<div class="optdp"><code>optdp: {escape(repr(self))}</code></div>'

    def changed(self, **changes: Any) -> Self:
        """The same problem with some entries changed."""
        return attrs.evolve(self, **changes)

    def to_program(self, which: str = "") -> LinearProgram:
        """One of its linear programs as sparse arrays, by default the specification; `optdp formulate` lists them."""
        found: LinearProgram = at("optdp.kinds:stated")(self, which).program()
        return found

    def to_cvxpy(self, which: str = "") -> Any:
        """The same program as a CVXPY problem."""
        return at("optdp.kinds:stated")(self, which).model()

    @classmethod
    def from_file(cls, file: Any) -> Self:
        """The problem that a file describes."""
        return cls(**entries(file))


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_short, value[:3]))}{', ...' if len(value) > 3 else ''}]"
    return show(value) if isinstance(value, Fraction) else repr(getattr(value, "describe", value))


def entry(form: Any, about: str = "", required: bool = False) -> dict[str, Any]:
    """The metadata of a problem's field that files have too: the type of its entry, and what it is."""
    return {"form": form, "about": about, "required": required}


_MODELS: dict[type[Any], type[Documented]] = {}


def file_model(problem: type[Problem[Any]]) -> type[Documented]:
    """The model of the files of a kind of problem."""
    if problem in _MODELS:
        return _MODELS[problem]
    known: dict[str, Any] = {"kind": (Literal[problem.kind], ...)}
    for field in attrs.fields(problem):
        if "form" in field.metadata:
            needed = field.metadata["required"] or field.default is attrs.NOTHING
            given = show(field.default) if isinstance(field.default, Fraction) else field.default
            about = field.metadata["about"] or None
            known[field.alias] = (field.metadata["form"], Field(... if needed else given, description=about))
    about = (problem.__doc__ or "").strip().partition("\n\n")[0]
    _MODELS[problem] = create_model(f"{problem.__name__}File", __base__=Documented, __doc__=about, **known)
    return _MODELS[problem]


def entries(file: Documented, **made: Any) -> dict[str, Any]:
    """What a file says of its problem, tables within it made into what they describe; some may be `made` already."""
    own = set(type(file).model_fields) - set(Documented.model_fields) - {"kind"} - set(made)
    titled = {"title": file.title} if file.title else {}
    return {name: described(getattr(file, name)) for name in own} | titled | made


def described(value: Any) -> Any:
    """What a table describes; lists of them likewise, and all else as it is."""
    if isinstance(value, list):
        return [described(item) for item in value]
    return value.build() if isinstance(value, Strict) else value


def named_file(folder: Path, name: str, allow_outside: bool) -> str:
    """Where a file lies that somebody's file in `folder` names: there or below, wherever links lead, unless allowed.

    So that whoever opens a stranger's problem or order reads no other file of theirs.
    """
    path = folder / name
    try:
        inside = allow_outside or Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):  # ValueError: a zero byte in the name
        inside = False
    if not inside:
        raise ProblemError(
            f"A problem or an order may only name files in its own folder or below it. {name_of(name)[:200]} lies "
            "elsewhere. Move it there, or use --allow-outside (in Python: allow_outside=True)."
        )
    return str(path)


def read_text(place: Path, form: str) -> str:
    """The text of a regular file of a reasonable size, which should be of the form TOML or CSV."""
    try:
        if not place.is_file():
            hint = " See: optdp problems." if form == "TOML" else ""
            found = "Not a regular file" if place.exists() else "No such file"
            raise ProblemError(f"{found}: {place}.{hint}")
        if place.stat().st_size > LARGEST_FILE:
            raise ProblemError(f"A {form} file may have at most {LARGEST_FILE >> 20} MiB. {place} is larger.")
        return place.read_text(encoding="utf-8")
    except OSError as error:
        raise ProblemError(f"Cannot read {place}: {error.strerror}.") from None
    except ValueError as error:
        raise ProblemError(f"{place} is not a {form} file: {str(error).splitlines()[0]}.") from None


def plain_number(value: int | str, name: str) -> float:
    """An exact number as a float, if it has a reasonable size."""
    exact = to_fraction(value, name)
    if abs(exact) > 10**300:
        raise ProblemError(f"{name} is too large. Found {shown(value)}; the most is 1e300.")
    return float(exact)


P = TypeVar("P", bound=Problem[Any])


def checked(problem: type[Problem[Any]], data: Mapping[str, Any]) -> Documented:
    """The file of a problem of this class; one line says what is wrong with it."""
    try:
        return file_model(problem).model_validate(dict(data))
    except ValidationError as error:
        raise ProblemError(_first_line(error)) from None


def from_spec(problem: type[P], data: object) -> P:
    """The problem of this class in a mapping, such as the one that an artifact carries."""
    if not isinstance(data, Mapping) or data.get("kind") != problem.kind:
        found = data.get("kind") if isinstance(data, Mapping) else data
        raise ProblemError(f"kind must be {problem.kind!r} here. Found {shown(found)}.")
    return problem.from_file(checked(problem, data))


def _first_line(error: ValidationError) -> str:
    """The first defect as one line: where, what is wrong, what was found."""
    errors = error.errors(include_url=False)
    first, steps = errors[0], _steps(errors[0]["loc"])
    where = _printable(".".join(steps)) or "the problem"
    if first["type"] == "extra_forbidden":
        return f"Unknown key {where!r}. Check its spelling, or remove it. `optdp schema` lists all keys."
    if first["type"] == "union_tag_invalid":
        context = first.get("ctx", {})
        known = str(context.get("expected_tags", "")).replace("'", "")
        return f"{where}.kind must be one of {known}. Found {shown(context.get('tag'))}."
    if first["type"] == "union_tag_not_found":
        return f"{where}.kind is missing. Add it; `optdp schema` says what it may be."
    if first["type"] == "missing":
        return f"{where} is missing. Add it; `optdp schema` says what it may be."
    other = {e["msg"].removeprefix("Input should be"): None for e in errors[1:] if _steps(e["loc"]) == steps}
    choices = " or".join([first["msg"], *(msg for msg in other if not first["msg"].endswith(msg) and msg[:1] == " ")])
    return f"{where}: {_printable(choices)}. Found {shown(first.get('input'))}."


def _steps(place: tuple[int | str, ...]) -> list[str]:
    """Where a defect is, without the names of the alternatives that were tried."""
    tags = ("binomial", "iid", "independent", "counts", "others", "conditionals", "list[", "Watching", "literal[")
    steps = [str(step) for step in place if not str(step).startswith(tags) and "union" not in str(step)]
    steps = [step for before, step in zip(["", *steps], steps, strict=False) if before != "randomizer"]
    return steps[:-1] if steps[-1:] == ["int"] else steps


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text[:300])
