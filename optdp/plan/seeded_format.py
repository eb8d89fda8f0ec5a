"""The file of one party in a plan with a common secret word: its maps and the cuts of the word.

`format` "optdp/seeded-maps", `version` 1, `inputs` and `outputs` [first, last], `denominator` (a decimal string, a
power of two up to 2^62), `cuts` (increasing decimal strings, the last is the denominator: where the cells of the word
end), `choices` (for each cell the number of its map, numbered as they first occur), `claim`, `problem`, `provenance`,
`sha256`, and `maps`, a line for each different map: its report for every input. `cuts` are the same in all files of a
plan. A party that knows the common word needs nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from optdp.errors import ArtifactError
from optdp.files import atomic, canonical
from optdp.files.canonical import refused, shown
from optdp.mechanism.cuts import WORD
from optdp.mechanism.matrix import Row
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.objects import Public
from optdp.single import format
from optdp.single.format import Artifact, range_of, whole

FORMAT, VERSION = "optdp/seeded-maps", 1
MARK = b'"optdp/seeded-maps"'
"""What stands near the start of such a file."""
KEYS = (
    "format", "version", "inputs", "outputs", "denominator", "cuts", "choices", "claim", "problem", "provenance",
)  # fmt: skip
"""The top-level keys in the order of a file; `sha256` and `maps` follow."""


@dataclass(frozen=True)
class SeededArtifact(Public):
    """What a file holds. Made without a `sha256`, it is given its digest."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    denominator: int
    cuts: tuple[int, ...]
    choices: tuple[int, ...]
    maps: tuple[tuple[int, ...], ...]
    problem: dict[str, Any]
    claim: dict[str, Any]
    provenance: dict[str, Any]
    sha256: str = ""

    def __post_init__(self) -> None:
        if not self.sha256:
            object.__setattr__(self, "sha256", _digest(self.document()))

    @staticmethod
    def of(table: SeededMaps) -> SeededArtifact:
        """The maps alone, without problem, claim and provenance."""
        return SeededArtifact(
            table.inputs, table.outputs, table.denominator, table.cuts, table.choices, table.maps, {}, {}, {}
        )

    def table(self, last: int) -> SeededMaps:
        """The maps, checked; `last` is the largest input of the problem."""
        found = SeededMaps(self.inputs, self.outputs, self.denominator, self.cuts, self.choices, self.maps, last)
        found.check()
        return found

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The law of a report of each input, for who does not know the word."""
        return self.table(self.inputs[1]).rows

    def document(self) -> dict[str, Any]:
        """Everything but the digest."""
        document: dict[str, Any] = canonical.normal(
            {
                "format": FORMAT,
                "version": VERSION,
                "inputs": self.inputs,
                "outputs": self.outputs,
                "denominator": str(self.denominator),
                "cuts": [str(cut) for cut in self.cuts],
                "choices": self.choices,
                "claim": self.claim,
                "problem": self.problem,
                "provenance": self.provenance,
                "maps": self.maps,
            }
        )
        return document


PartyArtifact = Artifact | SeededArtifact
"""What a party's file may hold."""


def bare_digest(artifact: PartyArtifact) -> str:
    """The digest that a party's table would have without problem, claim and provenance."""
    if isinstance(artifact, Artifact):
        return format.bare_digest(artifact)
    return replace(artifact, problem={}, claim={}, provenance={}, sha256="").sha256


def to_json(artifact: PartyArtifact) -> bytes:
    """The bytes of a party's file."""
    if isinstance(artifact, Artifact):
        return format.to_json(artifact)
    return "".join(_spelled(artifact.document() | {"sha256": artifact.sha256})).encode("ascii")


def read_party(path: str | Path, data: bytes | None = None) -> PartyArtifact:
    """What a party's file holds; everything but the claim is checked."""
    found = atomic.read_bytes(path) if data is None else data
    if MARK not in found[:4096]:
        return format.read(path, found)
    try:
        return from_json(found)
    except ArtifactError as error:
        raise ArtifactError(f"{atomic.name_of(path)}: {error}") from None


def from_json(data: bytes) -> SeededArtifact:
    """The maps that JSON bytes hold."""
    document = canonical.parse(data)
    document = canonical.check_head(
        document, FORMAT, {*KEYS, "sha256", "maps"}, "A file of maps", "Give a file that `solve` wrote."
    )
    inputs, outputs = range_of(document, "inputs"), range_of(document, "outputs")
    denominator, cuts = whole(document["denominator"], "denominator"), document["cuts"]
    if not isinstance(cuts, list) or not cuts:
        raise refused("cuts must be a list of numbers as decimal strings", shown(cuts))
    choices, maps = document["choices"], document["maps"]
    if not isinstance(choices, list) or any(type(choice) is not int for choice in choices):
        raise refused("choices must be a list of integers", shown(choices))
    if list(dict.fromkeys(choices)) != list(range(len(set(choices)))):
        raise refused("choices must number the maps as they first occur", shown(choices))
    if not isinstance(maps, list) or not maps or not all(isinstance(values, list) and values for values in maps):
        raise refused("maps must be a list of lists of reports", shown(maps))
    if any(type(value) is not int for values in maps for value in values):
        raise refused("maps must hold integers only", "another value")
    if denominator > 1 << WORD:
        raise refused(f"denominator may be 2^{WORD}", shown(document["denominator"]))
    canonical.check_digest(document["sha256"], _digest(document))
    canonical.check(data, _spelled(document))
    ends = tuple(whole(cut, "a cut") for cut in cuts)
    found = SeededArtifact(
        inputs, outputs, denominator, ends, tuple(choices), tuple(map(tuple, maps)), document["problem"],
        document["claim"], document["provenance"], document["sha256"],
    )  # fmt: skip
    found.table(inputs[1])
    return found


def fields(artifact: PartyArtifact) -> dict[str, Any]:
    """Everything that a party's file holds except its table."""
    if isinstance(artifact, Artifact):
        return format.fields(artifact)
    document = artifact.document() | {"sha256": artifact.sha256}
    return {key: document[key] for key in (*KEYS, "sha256")}


def _digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 of everything but `sha256` itself."""
    content = {key: document[key] for key in (*KEYS, "maps")}
    return hashlib.sha256(canonical.canonical(content).encode("ascii")).hexdigest()


def _spelled(document: Mapping[str, Any]) -> Iterator[str]:
    """The text of a file in pieces."""
    yield "{\n"
    for key in (*KEYS, "sha256"):
        yield f'"{key}": {canonical.friendly(document[key])},\n'
    lines = ",\n".join(canonical.canonical(values) for values in document["maps"])
    yield f'"maps": [\n{lines}\n]\n}}\n'
