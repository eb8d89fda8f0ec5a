"""What samplers share: templates filled with a table's integers, in one order, their vectors, their checksum."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from optdp.export.layout import Layout, Vector, checksum, vectors
from optdp.export.subject import Subject
from optdp.mechanism.drawing import Drawing

WIDTH = 118
NAMES = (
    "FIRST", "FINAL", "LAST", "LOW", "HIGH", "OUTSIDE",
    "SLOTS", "LIMBS", "BASE", "TOP_LIMIT", "ROW_WORDS", "ROW_STEPS",
)  # fmt: skip
"""What templates call the numbers of `Layout.numbers`."""


def filled(name: str, values: Mapping[str, object]) -> str:
    """A template with every @NAME@ replaced, once: what is put in is not looked at again."""
    template = files("optdp.export").joinpath("templates", name).read_text(encoding="ascii")
    return re.sub("@([A-Z_]+)@", lambda match: str(values[match[1]]), template)


def numbers(entries: Iterable[int]) -> str:
    """Integers with commas between, over as many lines as they take."""
    text = ", ".join(map(str, entries))
    if len(text) <= WIDTH - 40:
        return text
    lines, line = [], "    "
    for entry in text.split(" "):
        if len(line) + len(entry) > WIDTH:
            lines.append(line.rstrip())
            line = "    "
        line += entry + " "
    return "\n" + "\n".join([*lines, line.rstrip()]) + "\n"


def pieces(laid: Layout, template: str, call: str) -> dict[str, object]:
    """What differs in a sampler's code with the noise; `call` is how it asks `template` where the contraction goes."""
    drawing = laid.drawing
    noise, moved = drawing.noise, bool(drawing.moves)
    return {
        "NOISE_NAME": "Geometric noise" if noise is None or noise.restarts else "A share of geometric noise",
        "ORIGIN": -1 if noise is None else noise.origin,
        "TOP": f"SLOTS - {2 + moved}",
        "NOISE_END": f"SLOTS - {1 + moved}",
        "CENTRE": call if moved else {0: "0", 1: "x"}.get(drawing.factor, f"{drawing.factor} * x"),
        "PLUS": " + x" if drawing.added else "",
        "COMMON": int(drawing.common),
        "MOVED": filled(template, {}) if moved else "",
    }


def head(subject: Subject, laid: Layout, mark: str) -> str:
    """What stands at the top of a sampler, as comment lines after `mark`."""
    drawing = laid.drawing
    lines = (
        "Exact private sampler, made by optdp. Do not edit it: the self test would fail.",
        "",
        *subject.claims(),
        f"inputs: 0..{drawing.last}; {_outputs(drawing)}",
        f"Every draw takes {drawing.slots} random words and the same number of looks into the tables, whatever the "
        f"input and the release, but for events of chance below 2^-{laid.rare}.",
        f"sha256 of the artifact: {subject.artifact.sha256}",
    )
    wrapped = [part for line in lines for part in textwrap.wrap(harmless(line), WIDTH - 4) or [""]]
    return "\n".join(f"{mark} {line}".rstrip() for line in wrapped)


def _outputs(drawing: Drawing) -> str:
    (low, high), noise = drawing.outputs, drawing.noise
    if drawing.added:
        return f"added noise: {low}..{high} from the table, beyond them geometric"
    table = f"outputs of the table: {low}..{high}"
    if noise is None:
        return table
    if noise.restarts and drawing.factor == 1 and not drawing.moves and low <= high:
        return f"{table}, beyond them geometric noise"
    centre = f"{drawing.factor} times the input" if drawing.factor != 1 else "the input"
    where = f"around {centre}{', contracted' if drawing.moves else ''}"
    name = "geometric noise" if noise.restarts else "a share of geometric noise"
    return f"{table}, beyond them {name} {where}" if low <= high else f"every output is {name} {where}"


def harmless(text: str) -> str:
    """Text as one line of printable ASCII that ends no comment, continues no line and nests nothing."""
    plain = "".join(sign if " " <= sign <= "~" else "?" for sign in text)
    return plain.replace("\\", "/").replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")


def single_numbers(laid: Layout) -> dict[str, object]:
    """The single numbers by the names that templates have for them."""
    return dict(zip(NAMES, laid.numbers, strict=True))


# ---------------------------------------------------------------------- Python, C and JavaScript


@dataclass(frozen=True)
class Sampler:
    """A table ready to be written as source code."""

    subject: Subject
    laid: Layout
    vectors: tuple[Vector, ...]

    @staticmethod
    def of(subject: Subject) -> Sampler:
        """The sampler of what is exported; equal artifacts give equal samplers."""
        laid = subject.layout()
        return Sampler(subject, laid, tuple(vectors(laid.drawing, subject.artifact.sha256)))

    @property
    def digest(self) -> str:
        """The digest of the artifact."""
        return self.subject.artifact.sha256

    def lists(self) -> dict[str, Sequence[int]]:
        """The lists of integers in their order."""
        noise, rows = self.laid.noise, self.laid.rows
        return {
            "NOISE_STEPS": self.laid.noise_steps,
            "NOISE_START": noise.start,
            "NOISE_CUTS": noise.first,
            "NOISE_REST": [word for place in noise.places for word in place[1:]],
            "ROW_START": rows.start,
            "ROW_CUTS": rows.first,
            "ROW_REST": [word for place in rows.places for word in place[1:]],
            "VALUES": self.laid.values,
            "VECTORS": [number for vector in self.vectors for number in flat(vector)],
        }

    def checksum(self) -> int:
        """The checksum of every integer and of the digest."""
        lists = [number for entries in self.lists().values() for number in entries]
        return checksum([*self.laid.numbers, *lists, *self.digest.encode("ascii")])

    def values(self, mark: str, template: str, call: str, lists: dict[str, str]) -> dict[str, object]:
        """All that a template may ask for; `mark` begins the comment lines of its language."""
        comment = head(self.subject, self.laid, mark)
        values = single_numbers(self.laid) | lists | {"DIGEST": self.digest, "CHECKSUM": self.checksum()}
        return values | pieces(self.laid, template, call) | {"HEAD": f"/*\n{comment}\n */" if mark == " *" else comment}


def flat(vector: Vector) -> list[int]:
    """A vector as integers: input, outcome, release, number of words, and the place and value of each word."""
    words = [number for place in sorted(vector.words) for number in (place, vector.words[place])]
    return [vector.x, vector.outcome, vector.released, len(vector.words), *words]


MOVE = """\
    int64_t centre = 0;
    int moving = moved(x, first, word, state, &centre);
    if (moving != SAMPLER_OK)
        return moving;
"""
"""The steps of a draw that a contraction adds."""


def c_sampler(subject: Subject) -> dict[str, bytes]:
    """`sampler.c` and `sampler.h`."""
    made = Sampler.of(subject)
    lists = {name: numbers(entries) for name, entries in made.lists().items()}
    values = made.values(" *", "moved.c.in", "centre", lists) | {"MOVE": MOVE if made.laid.drawing.moves else ""}
    return {name: filled(f"{name}.in", values).encode("ascii") for name in ("sampler.c", "sampler.h")}


_HALF = 31


def js_sampler(subject: Subject) -> dict[str, bytes]:
    """`sampler.mjs`."""
    made = Sampler.of(subject)
    lists = dict(made.lists())
    for name in ("NOISE_CUTS", "NOISE_REST", "ROW_CUTS", "ROW_REST"):
        lists[name] = halves(lists[name])
    lists["VECTORS"] = [number for vector in made.vectors for number in _flat_halves(flat(vector))]
    texts = {name: numbers(entries) for name, entries in lists.items()}
    values = made.values(" *", "moved.mjs.in", "moved(x, words, at, word)", texts)
    return {"sampler.mjs": filled("sampler.mjs.in", values).encode("ascii")}


def halves(words: Iterable[int]) -> list[int]:
    """Each word as its high and its low half."""
    return [half for word in words for half in (word >> _HALF, word % (1 << _HALF))]


def _flat_halves(vector: list[int]) -> list[int]:
    places, words = vector[4::2], vector[5::2]
    return [*vector[:4], *(n for place, word in zip(places, words, strict=True) for n in (place, *halves([word])))]


def python_sampler(subject: Subject) -> dict[str, bytes]:
    """`sampler.py`."""
    made = Sampler.of(subject)
    lists = {name: f"({_tuple(numbers(entries))})" for name, entries in made.lists().items()}
    values = made.values("#", "moved.py.in", "_moved(x, first, word)", lists)
    return {"sampler.py": filled("sampler.py.in", values).encode("ascii")}


def _tuple(text: str) -> str:
    """A comma after the last entry, without which one entry would be no tuple."""
    return text if not text else text[:-1] + ",\n" if text.endswith("\n") else text + ","
