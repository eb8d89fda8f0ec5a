"""What an artifact says of outputs that its table does not decide: nothing, geometric noise, or a share of it.

`null`; `{"law": "geometric", "q": [..]}`; or `{"law": "sgdl", "q": [..], "beta": [..], "factor": f, "contraction": ..,
"contraction_denominator": ".."}` as `SharedNoise` says: draw `y` from the contraction's row of the input (the input
itself if it is null) and `e` from SGDL_beta(q); `f y + e` is the output if it lies outside `outputs`.

`{"law": "added", "q": [..]}` is noise that is added to every input, as `AddedNoise` says. Its one row, that of the
input 0, is for the noise `outputs = [-reach, reach]`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import gcd
from operator import index, lt
from pathlib import Path
from typing import Any, get_args

from optdp.errors import ArtifactError, ProblemError
from optdp.files import atomic, canonical
from optdp.files.canonical import refused, shown
from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.matrix import NoiseMatrix, Outside, Row
from optdp.objects import Public

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


@dataclass(frozen=True)
class Added:
    """Says that the noise is added to every input."""


def tail_document(q: Fraction | None, share: Share | Added | None) -> dict[str, Any] | None:
    """The tail as JSON has it."""
    if q is None:
        return None
    if isinstance(share, Added):
        return {"law": "added", "q": _pair(q)}
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


_TAILS = {
    "geometric": {"law", "q"},
    "sgdl": {"law", "q", "beta", "factor", "contraction", "contraction_denominator"},
    "added": {"law", "q"},
}
"""What each law of a tail states."""


def parse_tail(
    tail: Any, row: Callable[[Any, int, tuple[int, int], int], Row]
) -> tuple[Fraction | None, Share | Added | None]:
    """The tail of a document; `row` checks one row of pairs."""
    if tail is None:
        return None, None
    law = tail.get("law") if isinstance(tail, dict) else None
    if not isinstance(tail, dict) or not isinstance(law, str) or tail.keys() != _TAILS.get(law):
        raise refused(
            'tail must be null, {"law": "geometric", "q": ..}, {"law": "sgdl", "q": .., "beta": .., ..} or '
            '{"law": "added", "q": ..}',
            shown(tail),
        )
    q = _ratio(tail["q"], "q")
    if q >= 1:
        raise refused("q must lie between 0 and 1, in lowest terms", shown(tail["q"]))
    if law == "geometric":
        return q, None
    if law == "added":
        return q, Added()
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
    if not isinstance(text, str) or len(text) > canonical.MAX_DIGITS or not _DECIMAL.fullmatch(text):
        raise refused(f"{name} must be a positive integer as a decimal string", shown(text))
    value = int(text)
    if value > 1 << MAX_BITS:
        raise refused(f"{name} may be 2^{MAX_BITS}", "more")
    return value


def _pair(value: Fraction) -> list[str]:
    return [str(value.numerator), str(value.denominator)]


def _ratio(pair: Any, name: str) -> Fraction:
    if not isinstance(pair, list) or len(pair) != 2:
        raise refused(f"{name} must be [numerator, denominator]", shown(pair))
    top, bottom = whole(pair[0], f"{name}'s numerator"), whole(pair[1], f"{name}'s denominator")
    if gcd(top, bottom) > 1:
        raise refused(f"{name} must be in lowest terms", shown(pair))
    return Fraction(top, bottom)


FORMAT, VERSION = "optdp/noise-matrix", 1
MAX_INDEX = 1 << 53
"""Inputs and outputs lie within plus or minus this, so that every language reads them as they are."""

HEAD = ("format", "version", "inputs", "outputs", "denominator", "outside", "tail")
KEYS = (*HEAD, "claim", "problem", "provenance")
"""The top-level keys in the order of a file; `sha256` and `weights` follow."""

_PAIRS = frozenset((list, tuple))


@dataclass(frozen=True)
class Artifact(Public):
    """What a file holds. Made without a `sha256`, it is checked, copied, and given its digest."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    denominator: int
    rows: tuple[Row, ...]
    outside: Outside
    q: Fraction | None
    problem: dict[str, Any]
    claim: dict[str, Any]
    provenance: dict[str, Any]
    sha256: str = ""
    share: Share | Added | None = None

    def __post_init__(self) -> None:
        if not self.sha256:
            try:  # numpy's integers are welcome here; those of a file are of one type already
                rows = [[(index(s), index(weight)) for s, weight in row] for row in self.rows]
            except (TypeError, ValueError) as error:
                raise refused("rows must be pairs of integers", str(error), "Round before.") from None
            checked = _checked({**_document(self), "weights": rows}, sealed=False)
            for name, value in vars(checked).items():
                object.__setattr__(self, name, value)

    def matrix(self, last: int) -> NoiseMatrix | AddedNoise:
        """What is ready to draw from; `last` is the largest input of the problem, which may have no row."""
        if isinstance(self.share, Added):
            low, high = self.outputs
            if self.inputs != (0, 0) or low != -high or self.outside != "geometric" or self.q is None:
                raise refused("Added noise must have one row, for noise from -reach to reach", "another table")
            noise = AddedNoise(last, self.q, high, self.denominator, self.rows[0])
            noise.check()
            return noise
        if self.share is not None:
            raise refused("The tail of a single entity's table must be geometric", "a share of it")
        return NoiseMatrix(self.inputs, self.outputs, self.denominator, self.rows, self.q, self.outside, last)


def table_of(mechanism: NoiseMatrix | AddedNoise) -> Artifact:
    """The numbers of a mechanism, without problem, claim and provenance."""
    if isinstance(mechanism, AddedNoise):
        outputs = (-mechanism.reach, mechanism.reach)
        return Artifact(
            (0, 0),
            outputs,
            mechanism.denominator,
            (mechanism.row,),
            "geometric",
            mechanism.q,
            {},
            {},
            {},
            share=Added(),
        )
    return Artifact(
        mechanism.inputs, mechanism.outputs, mechanism.denominator, mechanism.rows, mechanism.outside, mechanism.q,
        {}, {}, {},
    )  # fmt: skip


def write(artifact: Artifact, path: str | Path) -> None:
    """Write what `read` will accept, whole or not at all."""
    check_name(path)
    atomic.write_bytes(path, to_json(artifact))


def check_name(path: str | Path) -> None:
    """Refuse a name that says it is something else than the JSON that is written."""
    if str(path).lower().endswith(".npz"):
        raise ProblemError(
            f"Artifacts are JSON. Found the name {atomic.name_of(path)}. Write a .json, and turn it into .npz with "
            "`optdp export a.json --to npz`."
        )


def read(path: str | Path, data: bytes | None = None) -> Artifact:
    """Read and check everything but the claim; any defect is an ArtifactError that names the file.

    `data` are its bytes, if they were read already.
    """
    found = atomic.read_bytes(path) if data is None else data
    try:
        return from_json(found)
    except ArtifactError as error:
        raise ArtifactError(f"{atomic.name_of(path)}: {error}") from None
    except MemoryError:
        raise ArtifactError(f"cannot read {atomic.name_of(path)}: it does not fit into memory") from None


def to_json(artifact: Artifact) -> bytes:
    """The bytes of a JSON file: one line for each top-level key and for each row, the table last."""
    return "".join(_spelled(_sealed(artifact))).encode("ascii")


def from_json(data: bytes) -> Artifact:
    """The artifact that JSON bytes hold."""
    document = canonical.parse(data)
    artifact = _checked(document)
    canonical.check(data, _spelled(document))
    return artifact


def fields(artifact: Artifact) -> dict[str, Any]:
    """Everything that the file of a right artifact holds except its `weights`."""
    document = _sealed(artifact)
    return {key: document[key] for key in (*KEYS, "sha256")}


# ---------------------------------------------------------------------- the document and its digest


def _document(artifact: Artifact) -> dict[str, Any]:
    """The artifact as JSON has it, not checked yet, without digest and weights."""
    numbers = [index(artifact.denominator)]
    if artifact.q is not None:
        numbers += [artifact.q.numerator, artifact.q.denominator]
    if any(number.bit_length() > MAX_BITS + 1 for number in numbers):  # Python may refuse to print these
        rule = f"The denominator and q may have {MAX_BITS} bits"
        raise refused(rule, "more", "Use a smaller power of two.")
    document: dict[str, Any] = canonical.normal(
        {
            "format": FORMAT,
            "version": VERSION,
            "inputs": [index(x) for x in artifact.inputs],
            "outputs": [index(s) for s in artifact.outputs],
            "denominator": str(numbers[0]),
            "outside": artifact.outside,
            "tail": tail_document(artifact.q, artifact.share),
            "claim": artifact.claim,
            "problem": artifact.problem,
            "provenance": artifact.provenance,
        }
    )
    return document


def _sealed(artifact: Artifact) -> dict[str, Any]:
    """The document of an artifact that `read` would accept."""
    document = {**_document(artifact), "weights": artifact.rows, "sha256": artifact.sha256}
    _checked(document)
    return document


def _spelled(document: Mapping[str, Any]) -> Iterator[str]:
    """The text of a file in pieces."""
    yield "{\n"
    for key in (*KEYS, "sha256"):
        yield f'"{key}": {canonical.friendly(document[key])},\n'
    yield '"weights": ['
    for i, line in enumerate(_lines(document["weights"])):
        yield f",\n{line}" if i else f"\n{line}"
    yield "\n]\n}\n"


def _lines(rows: Iterable[Row]) -> Iterable[str]:
    """Canonical JSON of each row (integers only, so that a format string will do, and it is fast)."""
    return ("[" + ("[%d,%d]," * len(row))[:-1] % tuple(chain.from_iterable(row)) + "]" for row in rows)


def _digest(document: Mapping[str, Any], rows: Iterable[Row]) -> str:
    """SHA-256 of the canonical JSON of everything but `sha256`; of its keys, `weights` sorts last."""
    head = canonical.canonical({key: document[key] for key in KEYS})
    digest = hashlib.sha256(head[:-1].encode("ascii") + b',"weights":[')
    digest.update(",".join(_lines(rows)).encode("ascii") + b"]}")
    return digest.hexdigest()


def bare_digest(artifact: Artifact) -> str:
    """The digest that a checked artifact would have without problem, claim and provenance."""
    bare = replace(artifact, problem={}, claim={}, provenance={})
    return _digest(_document(bare), bare.rows)


# ---------------------------------------------------------------------- checks


def _checked(document: Any, sealed: bool = True) -> Artifact:
    """The artifact of a document that keeps every rule; if `sealed`, the last is that its digest is right."""
    stated = document.get("format") if isinstance(document, dict) else None
    remedy = "Give the plan's folder." if stated == "optdp/plan" else "Give a file that `solve` wrote."
    keys = {*KEYS, "weights", *(("sha256",) if sealed else ())}
    document = canonical.check_head(document, FORMAT, keys, "An artifact", remedy)
    inputs, outputs = range_of(document, "inputs"), range_of(document, "outputs")
    denominator = whole(document["denominator"], "denominator")
    if denominator & (denominator - 1):
        raise refused("denominator must be a power of two", shown(document["denominator"]))
    (q, share), outside = parse_tail(document["tail"], _row), document["outside"]
    if outside not in get_args(Outside):
        raise refused(f"outside must be one of {', '.join(get_args(Outside))}", shown(outside))
    if outside == "geometric" and q is None:
        raise refused('outside = "geometric" needs a tail', "tail null")
    rows = _rows(document["weights"], inputs, outputs, denominator)
    digest = _digest(document, rows)
    if sealed:
        canonical.check_digest(document["sha256"], digest)
    return Artifact(
        inputs,
        outputs,
        denominator,
        rows,
        outside,
        q,
        document["problem"],
        document["claim"],
        document["provenance"],
        digest,
        share,
    )


def range_of(document: Mapping[str, Any], name: str) -> tuple[int, int]:
    """A pair `[first, last]` of integers that every language reads as they are."""
    pair = document[name]
    if (
        type(pair) is not list
        or [type(value) for value in pair] != [int, int]
        or not -MAX_INDEX <= pair[0] <= pair[1] <= MAX_INDEX
    ):
        rule = f"{name} must be [first, last], integers with -2^53 <= first <= last <= 2^53"
        raise refused(rule, shown(pair))
    return pair[0], pair[1]


def _rows(weights: Any, inputs: tuple[int, int], outputs: tuple[int, int], denominator: int) -> tuple[Row, ...]:
    if type(weights) not in _PAIRS:
        raise refused("weights must be a list of rows", shown(weights))
    if len(weights) != inputs[1] - inputs[0] + 1:
        raise refused(
            f"weights must have a row for each of the inputs {inputs[0]}..{inputs[1]}", f"{len(weights)} rows"
        )
    return tuple(_row(row, inputs[0] + i, outputs, denominator) for i, row in enumerate(weights))


def _row(row: Any, x: int, outputs: tuple[int, int], denominator: int) -> Row:
    """One row of pairs. Every test runs over the whole row in C, which a loop over the entries would not."""
    where = f"The row of input {x} must"
    if type(row) not in _PAIRS or not _PAIRS.issuperset(map(type, row)) or set(map(len, row)) != {2}:
        raise refused(f"{where} be a list of one or more pairs [output, weight]", shown(row))
    flat: Sequence[Any] = tuple(chain.from_iterable(row))
    if set(map(type, flat)) != {int}:
        odd = next(value for value in flat if type(value) is not int)
        raise refused(f"{where} hold integers only", shown(odd))
    where_to, weights = flat[::2], flat[1::2]
    if not all(map(lt, where_to, where_to[1:])):
        raise refused(f"{where} list its outputs in increasing order, each once", "another order")
    if where_to[0] < outputs[0] or where_to[-1] > outputs[1]:
        raise refused(f"{where} stay within the outputs {outputs[0]}..{outputs[1]}", "an output beyond")
    if min(weights) <= 0:
        raise refused(f"{where} have positive weights", "a weight of 0 or less")
    total = sum(weights)
    if total != denominator:
        raise refused(f"{where} sum exactly to the denominator", "less" if total < denominator else "more")
    return tuple(zip(where_to, weights, strict=True))
