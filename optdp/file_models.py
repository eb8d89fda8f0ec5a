"""What all problem files share: strictness, exact numbers, what a file says about itself, sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from optdp.errors import ProblemError
from optdp.math.exact import shown, to_fraction

LARGEST_FILE = 64 * 1024 * 1024

Exact = Annotated[StrictInt | StrictStr, Field(description='An exact number: an integer, or "0.3", "1e-3", "1/3".')]
Law = Annotated[list[Exact], Field(description="Probabilities that sum to exactly 1.")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Documented(Strict):
    """Where a problem comes from, and what its solution must be: the tests hold it to that."""

    title: StrictStr = ""
    source: StrictStr = ""
    notes: StrictStr = ""
    expect: dict[str, Any] = Field(default_factory=dict)


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


def read_text(place: Path, form: str) -> str:
    """The text of a regular file of a reasonable size, which should be of the form TOML or CSV."""
    try:
        if not place.is_file():
            hint = " See: optdp problems." if form == "TOML" else ""
            raise ProblemError(f"A {form} file must be a regular file. Found none at {place}.{hint}")
        if place.stat().st_size > LARGEST_FILE:
            raise ProblemError(f"A {form} file must be smaller than {LARGEST_FILE >> 20} MiB. Found {place}.")
        return place.read_text(encoding="utf-8")
    except OSError as error:
        raise ProblemError(f"Cannot read {place}: {error.strerror}.") from None
    except ValueError as error:
        raise ProblemError(f"{place} is not a {form} file: {str(error).splitlines()[0]}.") from None


def plain_number(value: int | str, name: str) -> float:
    """An exact number as a float, if it has a reasonable size."""
    exact = to_fraction(value, name)
    if abs(exact) > 10**300:
        raise ProblemError(f"{name} must be a number of a reasonable size. Found {shown(value)}.")
    return float(exact)
