"""What an artifact says of outputs that its table does not decide: nothing, geometric noise, or a share of it.

`null`; `{"law": "geometric", "q": [..]}`; or `{"law": "sgdl", "q": [..], "beta": [..], "factor": f, "contraction": ..,
"contraction_denominator": ".."}` as `SharedNoise` says: draw `y` from the contraction's row of the input (the input
itself if it is null) and `e` from SGDL_beta(q); `f y + e` is the output if it lies outside `outputs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any

from optdp.artifact import strict_json
from optdp.artifact.strict_json import shown
from optdp.errors import ArtifactError
from optdp.noise.matrix import Row

MAX_BITS = 4096
"""Denominators, and numerators and denominators of `q` and `beta`, are at most 2^MAX_BITS."""
_DECIMAL = re.compile(r"[1-9][0-9]*")


@dataclass(frozen=True)
class Share:
    """A share of geometric noise around a contracted input."""

    beta: Fraction
    factor: int
    contraction: tuple[Row, ...] | None
    contraction_denominator: int


def document(q: Fraction | None, share: Share | None) -> dict[str, Any] | None:
    """The tail as JSON has it."""
    if q is None:
        return None
    if share is None:
        return {"law": "geometric", "q": _pair(q)}
    return {
        "law": "sgdl",
        "q": _pair(q),
        "beta": _pair(share.beta),
        "factor": share.factor,
        "contraction": None
        if share.contraction is None
        else [[list(pair) for pair in row] for row in share.contraction],
        "contraction_denominator": str(share.contraction_denominator),
    }


def parse(tail: Any, row: Callable[[Any, int, tuple[int, int], int], Row]) -> tuple[Fraction | None, Share | None]:
    """The tail of a document; `row` checks one row of pairs."""
    if tail is None:
        return None, None
    law = tail.get("law") if isinstance(tail, dict) else None
    keys = {"geometric": {"law", "q"}}.get(
        str(law), {"law", "q", "beta", "factor", "contraction", "contraction_denominator"}
    )
    if not isinstance(tail, dict) or law not in ("geometric", "sgdl") or tail.keys() != keys:
        raise refused(
            'tail must be null, {"law": "geometric", "q": ..} or {"law": "sgdl", "q": .., "beta": .., ..}', shown(tail)
        )
    q = _ratio(tail["q"], "q")
    if q >= 1:
        raise refused("q must lie between 0 and 1, in lowest terms", shown(tail["q"]))
    if law == "geometric":
        return q, None
    beta, factor = _ratio(tail["beta"], "beta"), tail["factor"]
    if beta > 1:
        raise refused("beta must be at most 1", shown(tail["beta"]))
    if type(factor) is not int or not 1 <= abs(factor) <= 1000:
        raise refused("factor must be an integer from 1 to 1000 or its negative", shown(factor))
    denominator = whole(tail["contraction_denominator"], "contraction_denominator")
    if denominator & (denominator - 1):
        raise refused("contraction_denominator must be a power of two", shown(tail["contraction_denominator"]))
    moved = tail["contraction"]
    if moved is not None:
        if not isinstance(moved, list | tuple):
            raise refused("contraction must be null or a list of rows", shown(moved))
        moved = tuple(row(line, x, (0, len(moved) - 1), denominator) for x, line in enumerate(moved))
    return q, Share(beta, factor, moved, denominator)


def whole(text: Any, name: str) -> int:
    """A positive integer of at most 2^MAX_BITS from its decimal string, which must be the usual one."""
    if not isinstance(text, str) or len(text) > strict_json.MAX_DIGITS or not _DECIMAL.fullmatch(text):
        raise refused(f"{name} must be a positive integer as a decimal string", shown(text))
    value = int(text)
    if value > 1 << MAX_BITS:
        raise refused(f"{name} may be 2^{MAX_BITS}", "more")
    return value


def refused(rule: str, found: str, remedy: str = "Get the file as optdp wrote it.") -> ArtifactError:
    """Why a file is not accepted."""
    return ArtifactError(f"{rule}. Found {found}. {remedy}")


def _pair(value: Fraction) -> list[str]:
    return [str(value.numerator), str(value.denominator)]


def _ratio(pair: Any, name: str) -> Fraction:
    if not isinstance(pair, list) or len(pair) != 2:
        raise refused(f"{name} must be [numerator, denominator]", shown(pair))
    top, bottom = whole(pair[0], f"{name}'s numerator"), whole(pair[1], f"{name}'s denominator")
    if gcd(top, bottom) > 1:
        raise refused(f"{name} must be in lowest terms", shown(pair))
    return Fraction(top, bottom)
