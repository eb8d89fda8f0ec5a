"""Clients of a shuffle protocol in Python, C and JavaScript: the integers of its file, and vectors for a self test.

A client has the cuts of the noise up to where every weight is 1; from there on each number is one more. A vector is a
value, words, and the message that optdp makes of them: chance, the smallest and the largest words, and both sides of
cuts.
"""

from __future__ import annotations

import json
import random
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optdp.errors import ProblemError
from optdp.export.layout import checksum
from optdp.export.sampler import WIDTH, filled, harmless, numbers
from optdp.shuffle.analysis import messages_of
from optdp.shuffle.client import WORD, Flips, Padded, Response
from optdp.shuffle.format import Deployed

MOST_CUTS, MOST_WORDS = 1 << 17, 1 << 14
"""More cuts, or more words of a message, are no source code."""
TESTED = 16_000  # how many numbers of vectors there are, about
LAWS = {Response: 0, Flips: 1, Padded: 2}
Vector = tuple[list[int], list[int], list[int]]


@dataclass(frozen=True)
class Source:
    """A design ready to be written as source code."""

    design: Deployed
    high: tuple[int, ...]
    low: tuple[int, ...]
    vectors: tuple[Vector, ...]

    @classmethod
    def of(cls, design: Deployed) -> Source:
        client = design.client
        count = client.words * client.dimensions
        known = 2 * len(client.weights) - 1 if isinstance(client, Padded) else 0
        if known > MOST_CUTS or count > MOST_WORDS:
            raise ProblemError(
                f"Exported clients have up to {MOST_CUTS:,} cuts and {MOST_WORDS:,} words a message. Found {known:,} "
                f"and {count:,}. Use `optdp randomize`, or count in larger units."
            )
        cuts = client.cuts[:known] if isinstance(client, Padded) else []
        high, low = (cut >> WORD for cut in cuts), (cut & ((1 << WORD) - 1) for cut in cuts)
        return cls(design, tuple(high), tuple(low), tuple(_vectors(design, cuts)))

    def values(self, head: str) -> dict[str, object]:
        """What all templates ask for."""
        client, digest, data = self.design.client, self.design.sha256, self.design.data
        chance = client.blank if isinstance(client, Response) else client.flip if isinstance(client, Flips) else 0
        padding = client.padding if isinstance(client, Padded) else 0
        single = [LAWS[type(client)], client.dimensions, client.words, client.inputs, client.grain, client.largest]
        single += [self.design.unit, chance, padding]
        names = ("LAW", "DIMENSIONS", "WORDS", "INPUTS", "GRAIN", "LARGEST", "UNIT", "CHANCE", "PADDING")
        ends = [float(Fraction(data[end])) for end in ("low", "high")] if "low" in data else None
        tested = [number for vector in self.vectors for part in vector for number in part]
        total = checksum([*single, *self.high, *self.low, *tested, *digest.encode("ascii")])
        return dict(zip(names, single, strict=True)) | {
            "HEAD": head, "DIGEST": digest, "CHECKSUM": total, "RANGE": ends, "LABELS": data.get("labels"),
            "ALL_WORDS": client.words * client.dimensions, "COUNT": len(self.high), "TESTS": len(self.vectors),
            "REAL": int(ends is not None), "ENDS": ", ".join(map(repr, ends or (0.0, 1.0))),
        }  # fmt: skip


def python_client(design: Deployed) -> dict[str, bytes]:
    """`client.py`."""
    made = Source.of(design)
    values = made.values(_head(design, "# "))
    values |= {"HIGH": _listed(made.high, ""), "LOW": _listed(made.low, "")}
    values |= {"LABELS": ascii(values["LABELS"]), "RANGE": None if values["RANGE"] is None else f"({values['ENDS']})"}
    values["VECTORS"] = _rows(made.vectors, lambda given, words, sent: f"({given}, {words}, {sent})")
    return {"client.py": filled("client.py.in", values).encode("ascii")}


def js_client(design: Deployed) -> dict[str, bytes]:
    """`client.mjs`."""
    made = Source.of(design)
    values = made.values(_head(design, " * "))
    values |= {"HIGH": _listed(made.high, "n"), "LOW": _listed(made.low, "n")}
    values |= {name: json.dumps(values[name]) for name in ("LABELS", "RANGE")}
    values["VECTORS"] = _rows(made.vectors, lambda given, words, sent: f"[{given}, [{_listed(words, 'n')}], {sent}]")
    return {"client.mjs": filled("client.mjs.in", values).encode("ascii")}


def c_client(design: Deployed) -> dict[str, bytes]:
    """`client.c` and `client.h`."""
    made = Source.of(design)
    values = made.values(_head(design, " * "))
    values |= {"HIGH": _listed((*made.high, 0), "u"), "LOW": _listed((*made.low, 0), "u")}
    values["VECTORS"] = _rows(made.vectors, lambda *parts: f"{{{_listed([n for part in parts for n in part], 'u')}}}")
    return {name: filled(f"{name}.in", values).encode("ascii") for name in ("client.c", "client.h")}


def _listed(entries: Sequence[int], mark: str) -> str:
    text = numbers(entries)
    if mark:
        text = text.replace(",", f"{mark},").rstrip("\n")
        text = text + mark if text and text[-1].isdigit() else text
    return text + "," if not mark and len(entries) == 1 else text


def _rows(vectors: Sequence[Vector], row: Callable[..., str]) -> str:
    return "\n" + "".join(f"    {row(*vector)},\n" for vector in vectors)


def _head(design: Deployed, mark: str) -> str:
    """What stands at the top, as comment lines."""
    claim = design.claim
    lines = (
        "A client of a shuffle protocol, made by optdp. Do not edit it: the self test would fail.",
        "",
        f"{design.kind} of {design.n:,} people: epsilon {claim['epsilon']}, delta {claim['delta']}; one message alone: "
        f"epsilon {claim['local_epsilon']}",
        claim["meaning"],
        "Send one message for each person, to the shuffler and to nobody else.",
        f"sha256 of the design: {design.sha256}",
    )
    wrapped = [part for line in lines for part in textwrap.wrap(harmless(line), WIDTH - 4) or [""]]
    return "\n".join(f"{mark}{line}".rstrip() for line in wrapped)


def _vectors(design: Deployed, cuts: Sequence[int]) -> Iterator[Vector]:
    """Values, words, and what optdp makes of them; the same for the same design."""
    client, chance = design.client, random.Random(design.sha256)
    count, most = client.words * client.dimensions, (1 << WORD) - 1
    ends = [0, client.inputs, client.inputs // 2, max(0, client.inputs // 2 - 1)]
    total = max(6, min(48, TESTED // count))
    for i in range(total):
        words = [chance.getrandbits(WORD) for _ in range(count)]
        if i < 2:
            words = [(0, most)[i]] * count
        elif i % 2:
            _forced(client, cuts, words, chance)
        given = [ends[i % 4] if i % 3 else chance.randint(0, client.inputs) for _ in range(client.dimensions)]
        given = [value - value % design.unit for value in given]
        sent = messages_of(design, np.array([given]), np.array([words], np.uint64))
        yield given, words, np.atleast_1d(sent[0]).tolist()


def _forced(client: Response | Flips | Padded, cuts: Sequence[int], words: list[int], chance: random.Random) -> None:
    """Words at the edge of what decides: just below a cut or at it."""
    less, first = chance.randint(0, 1), 0 if isinstance(client, Flips) else client.rounding.words
    if isinstance(client, Padded):
        cut = chance.choice(cuts) - less
        words[first : first + 2] = [cut >> WORD, cut & ((1 << WORD) - 1)]
    elif isinstance(client, Flips):
        words[chance.randrange(len(words))] = client.flip - less
    else:
        words[first] = client.blank - less
        edge = -(-(chance.randint(1, client.largest) << 2 * WORD) // client.values) - less
        words[first + 1 : first + 3] = [edge >> WORD, edge & ((1 << WORD) - 1)]
