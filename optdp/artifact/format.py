"""The artifact, version 1: the file that goes to production, and what is refused when it comes back.

`Pr[s|x] = weight / denominator`, or with a tail as `NoiseMatrix` says. A file is JSON, or `.npz` with the
same content and the same digest: the SHA-256 of the canonical JSON (sorted keys, no spaces, ASCII) of
everything but `sha256`. The digest tells a file that was cut or changed by accident; it is no signature:
whoever changes a file on purpose can compute it anew. `verify` recomputes the claim itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from operator import index, lt
from pathlib import Path
from typing import Any, get_args

from optdp.artifact import files, npz, spelling, strict_json, tails
from optdp.artifact.strict_json import shown
from optdp.artifact.tails import MAX_BITS, Share, refused, whole
from optdp.errors import ArtifactError
from optdp.noise.matrix import NoiseMatrix, Outside, Row

FORMAT, VERSION = "optdp/noise-matrix", 1
MAX_INDEX = 1 << 53
"""Inputs and outputs lie within plus or minus this, so that every language reads them as they are."""

HEAD = ("format", "version", "inputs", "outputs", "denominator", "outside", "tail")
KEYS = (*HEAD, "claim", "problem", "provenance")
"""The top-level keys in the order of a file; `sha256` and `weights` follow."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_PAIRS = frozenset((list, tuple))


@dataclass(frozen=True)
class Artifact:
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
    share: Share | None = None

    def __post_init__(self) -> None:
        if not self.sha256:
            try:  # numpy's integers are welcome here; those of a file are of one type already
                rows = [[(index(s), index(weight)) for s, weight in row] for row in self.rows]
            except (TypeError, ValueError) as error:
                raise refused("rows must be pairs of integers", str(error), "Round before.") from None
            checked = _checked({**_document(self), "weights": rows}, sealed=False)
            for name, value in vars(checked).items():
                object.__setattr__(self, name, value)

    def matrix(self, last: int) -> NoiseMatrix:
        """The table ready to draw from; `last` is the largest input of the problem, which may have no row."""
        if self.share is not None:
            raise refused("The tail of a single entity's table must be geometric", "a share of it")
        return NoiseMatrix(self.inputs, self.outputs, self.denominator, self.rows, self.q, self.outside, last)


def write(artifact: Artifact, path: str | Path) -> None:
    """Write what `read` will accept: `.npz` if the name ends so, else JSON; whole or not at all."""
    files.write_bytes(path, to_npz(artifact) if _is_npz(path) else to_json(artifact))


def read(path: str | Path) -> Artifact:
    """Read and check everything but the claim; any defect is an ArtifactError that names the file."""
    data = files.read_bytes(path)
    try:
        return from_npz(data) if _is_npz(path) else from_json(data)
    except ArtifactError as error:
        raise ArtifactError(f"{files.name_of(path)}: {error}") from None
    except MemoryError:
        raise ArtifactError(f"cannot read {files.name_of(path)}: it does not fit into memory") from None


def to_json(artifact: Artifact) -> bytes:
    """The bytes of a JSON file: one line for each top-level key and for each row, the table last."""
    return "".join(_spelled(_sealed(artifact))).encode("ascii")


def from_json(data: bytes) -> Artifact:
    """The artifact that JSON bytes hold."""
    document = strict_json.parse(data)
    artifact = _checked(document)
    spelling.check(data, document, _spelled)
    return artifact


def to_npz(artifact: Artifact, probabilities: bool = False) -> bytes:
    """The bytes of a `.npz` file; with `probabilities` it also has each weight over the denominator as a float."""
    return npz.pack(_sealed(artifact), probabilities)


def from_npz(data: bytes) -> Artifact:
    """The artifact that the bytes of a `.npz` file hold."""
    document = npz.unpack(data)
    artifact = _checked(document)
    if not npz.is_packed(data, document):
        rule = "Every byte of a .npz file must be as optdp or numpy.savez writes it"
        raise refused(rule, "other bytes around the same content")
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
    document: dict[str, Any] = strict_json.normal(
        {
            "format": FORMAT,
            "version": VERSION,
            "inputs": [index(x) for x in artifact.inputs],
            "outputs": [index(s) for s in artifact.outputs],
            "denominator": str(numbers[0]),
            "outside": artifact.outside,
            "tail": tails.document(artifact.q, artifact.share),
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
        yield f'"{key}": {strict_json.friendly(document[key])},\n'
    yield '"weights": ['
    for i, line in enumerate(_lines(document["weights"])):
        yield f",\n{line}" if i else f"\n{line}"
    yield "\n]\n}\n"


def _lines(rows: Iterable[Row]) -> Iterable[str]:
    """Canonical JSON of each row (integers only, so that a format string will do, and it is fast)."""
    return ("[" + ("[%d,%d]," * len(row))[:-1] % tuple(chain.from_iterable(row)) + "]" for row in rows)


def _digest(document: Mapping[str, Any], rows: Iterable[Row]) -> str:
    """SHA-256 of the canonical JSON of everything but `sha256`; of its keys, `weights` sorts last."""
    head = strict_json.canonical({key: document[key] for key in KEYS})
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
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else document
        remedy = "An order is for `optdp shuffle`." if found == "optdp/order" else "Give a file that `solve` wrote."
        raise refused(f'format must be "{FORMAT}"', shown(found), remedy)
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise refused(f"version must be {VERSION}", shown(version), "Use the optdp that wrote it.")
    expected = {*KEYS, "weights", *(("sha256",) if sealed else ())}
    if document.keys() != expected:
        extra, lacking = document.keys() - expected, expected - document.keys()
        found = f"unknown {shown(sorted(extra))}" if extra else f"no {', '.join(sorted(lacking))}"
        raise refused("An artifact has its 12 keys and no other", found)
    inputs, outputs = _range(document, "inputs"), _range(document, "outputs")
    denominator = whole(document["denominator"], "denominator")
    if denominator & (denominator - 1):
        raise refused("denominator must be a power of two", shown(document["denominator"]))
    (q, share), outside = tails.parse(document["tail"], _row), document["outside"]
    if outside not in get_args(Outside):
        raise refused(f"outside must be one of {', '.join(get_args(Outside))}", shown(outside))
    if outside == "geometric" and q is None:
        raise refused('outside = "geometric" needs a tail', "tail null")
    for name in ("problem", "claim", "provenance"):
        if not isinstance(document[name], dict):
            raise refused(f"{name} must be a table", shown(document[name]))
    rows = _rows(document["weights"], inputs, outputs, denominator)
    digest = _digest(document, rows)
    if sealed:
        stated = document["sha256"]
        if not isinstance(stated, str) or not _DIGEST.fullmatch(stated):
            raise refused("sha256 must be 64 hexadecimal digits", shown(stated))
        if stated != digest:
            raise refused("sha256 must be the digest of the content", "another", "The file was changed or cut.")
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


def _range(document: Mapping[str, Any], name: str) -> tuple[int, int]:
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


def _is_npz(path: str | Path) -> bool:
    return str(path).lower().endswith(".npz")
