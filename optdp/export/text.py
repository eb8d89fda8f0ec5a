"""Templates filled with a table's integers: source code in which no text of an artifact can break out of a comment."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from importlib.resources import files

from optdp.export.layout import Layout
from optdp.export.subject import Subject
from optdp.noise.drawing import Drawing

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


def numbers(entries: Iterable[int], indent: int = 4) -> str:
    """Integers with commas between, over as many lines as they take."""
    text = ", ".join(map(str, entries))
    if len(text) <= WIDTH - 40:
        return text
    pad = " " * indent
    lines, line = [], pad
    for entry in text.split(" "):
        if len(line) + len(entry) > WIDTH:
            lines.append(line.rstrip())
            line = pad
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
        "CENTRE": call if moved else "x" if drawing.factor == 1 else f"{drawing.factor} * x",
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
    table = f"outputs of the table: {low}..{high}"
    if noise is None:
        return table
    if noise.restarts and drawing.factor == 1 and not drawing.moves and low <= high:
        return f"{table}, beyond them geometric noise"
    centre = f"{drawing.factor} times the input" if drawing.factor != 1 else "the input"
    where = f"around {centre}{', contracted' if drawing.moves else ''}"
    name = "geometric noise" if noise.restarts else "a share of geometric noise"
    return f"{table}, beyond them {name} {where}" if low <= high else f"every output is {name} {where}"


def block(comment: str) -> str:
    """Comment lines that start with ` *` as one comment of C and JavaScript."""
    return f"/*\n{comment}\n */"


def harmless(text: str) -> str:
    """Text as one line of printable ASCII that ends no comment, continues no line and nests nothing."""
    plain = "".join(sign if " " <= sign <= "~" else "?" for sign in text)
    return plain.replace("\\", "/").replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")


def single_numbers(laid: Layout) -> dict[str, object]:
    """The single numbers by the names that templates have for them."""
    return dict(zip(NAMES, laid.numbers, strict=True))
