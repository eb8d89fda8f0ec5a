"""A sampler in SQL: tables of cuts and views that draw, in the words that PostgreSQL and SQLite have in common.

A lookup is the last cut at or below a number, by an index. The first word of a number decides unless it is equal to a
cut's; then all words are compared as a row of columns. What is not decided by the words that are there is NULL.

Requests are read once, and the words of each by their key: no join of two large tables is left to a planner. What is
rarely needed stands where it is not computed unless it is: in branches of CASE and COALESCE.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from optdp.export.layout import RELEASED, CutList, Layout
from optdp.export.sampler import Sampler, filled, head, single_numbers
from optdp.export.subject import Subject
from optdp.mechanism.cuts import LIMBS, NoiseCuts
from optdp.mechanism.drawing import Drawing

PRIME = 2147483629
"""Checksums are remainders by this prime: a change of one digit changes them."""
SHIFT = 1 << 52
"""Added to what may be negative before a remainder is taken, which the two databases take alike then."""
ALL = (1 << 63) - 1
"""A limit that leaves out no row."""
BLOCK = 500
"""Lines of one INSERT."""
SHAPE = (
    "first_input", "final_input", "last_input", "low", "high", "outside", "slots", "limbs", "base", "top_cuts",
    "sign_cut",
)  # fmt: skip
"""The columns of the one line about the whole table."""

Line = tuple[int | None, ...]


def sampler(subject: Subject) -> dict[str, bytes]:
    """`sampler.sql`."""
    made = Sampler.of(subject)
    laid = made.laid
    drawing, width = laid.drawing, laid.rows.words
    restarts = 4 * drawing.limbs if drawing.noise is not None and drawing.noise.restarts else 0
    last_digit, sign = (laid.noise.lengths[-1] - 1, laid.noise.first[0]) if laid.noise.places else (0, 0)
    shape = [*laid.numbers[:9], last_digit, sign]
    noise = [(slot, k, *place) for slot, k, place in _intervals(laid.noise)]
    values, keys = (*drawing.values, *drawing.centres), _keys(drawing)
    rows = [(keys[i], k, *place, values[i][k]) for i, k, place in _intervals(laid.rows)]
    requests = [(i, v.x, v.released if v.outcome == RELEASED else None) for i, v in enumerate(made.vectors)]
    words = [(i, place, word) for i, v in enumerate(made.vectors) for place, word in sorted(v.words.items())]
    columns = ["slot", "k", *(f"word{j}" for j in range(LIMBS))]
    row_columns = ["input", "k", *(f"word{j}" for j in range(width)), "released"]
    tables: dict[str, tuple[list[str], Sequence[Line]]] = {
        "optdp_noise_cuts": (columns, noise),
        "optdp_rows": (row_columns, rows),
        "optdp_test_requests": (["id", "input", "expected"], requests),
        "optdp_test_words": (["id", "place", "word"], words),
    }
    inserts = [f"INSERT INTO optdp_shape VALUES ('{made.digest}', {', '.join(map(str, shape))});"]
    checks = [_check("optdp_shape", SHAPE, [tuple(shape)])]
    for name, (names, lines) in tables.items():
        inserts += _inserts(name, lines)
        checks.append(_check(name, names, lines))
    text = filled(
        "sampler.sql.in",
        {
            **single_numbers(laid), "HEAD": head(subject, laid, "--"), "RARE": laid.rare,
            "LAST_SLOT": drawing.slots - 1, "MORE": drawing.slots * drawing.limbs + restarts - 1,
            "ROW_COLUMNS": ", ".join(f"word{j} BIGINT NOT NULL" for j in range(width)),
            "INSERTS": "\n".join(inserts), "CHECKS": "\n".join(checks),
            "DRAW": filled("draw.sql.in", _draw(laid, "optdp") | {"EXPECTED": ""}),
            "TEST_DRAW": filled("draw.sql.in", _draw(laid, "optdp_test") | {"EXPECTED": "r.expected, "}),
        },
    )  # fmt: skip
    return {"sampler.sql": text.encode("ascii")}


def _intervals(cuts: CutList) -> Iterable[tuple[int, int, tuple[int, ...]]]:
    """Where each interval between cuts begins: list, number, place; the first begins at 0."""
    for i, (start, end) in enumerate(zip(cuts.start, cuts.start[1:], strict=False)):
        for k, place in enumerate(((0,) * cuts.words, *cuts.places[start : end - 1])):
            yield i, k, place


def _keys(drawing: Drawing) -> list[int]:
    """The inputs of the rows; those of a contraction begin after the last input."""
    first, final = drawing.inputs
    return [*range(first, final + 1), *(drawing.last + 1 + x for x in range(len(drawing.moves)))]


def _inserts(table: str, lines: Sequence[Line]) -> Iterable[str]:
    for start in range(0, len(lines), BLOCK):
        cells = ((str("NULL" if value is None else value) for value in line) for line in lines[start : start + BLOCK])
        shown = ",\n".join(f"({', '.join(line)})" for line in cells)
        yield f"INSERT INTO {table} VALUES\n{shown};"


def _check(table: str, names: Sequence[str], lines: Sequence[Line]) -> str:
    """A SELECT that gives a line if the integers of a table are not these.

    Each line counts as much as its first two columns say, each column as much as its number.
    """
    one, two = (f"({name} + {SHIFT}) % 1009" for name in names[:2])
    weight = f"(({one} * 31 + {two} * 7) % 997 + 1)"
    terms = [f"{i} * ((COALESCE({name}, -7) + {SHIFT}) % {PRIME})" for i, name in enumerate(names, start=1)]
    total = 0
    for line in lines:
        filled_in = [(-7 if entry is None else entry) + SHIFT for entry in line]
        own = sum(i * (entry % PRIME) for i, entry in enumerate(filled_in, start=1))
        total += ((filled_in[0] % 1009 * 31 + filled_in[1] % 1009 * 7) % 997 + 1) * (own % PRIME) % PRIME
    found = f"SELECT COALESCE(SUM({weight} * (({' + '.join(terms)}) % {PRIME}) % {PRIME}), 0) % {PRIME} FROM {table}"
    return f"UNION ALL SELECT 'integers of {table}' WHERE ({found}) <> {total % PRIME}"


def _draw(laid: Layout, name: str) -> dict[str, object]:
    """The views that draw, of the requests and words of tables with this name."""
    drawing, words = laid.drawing, laid.rows.words
    noise, row_value = drawing.noise, _row_value(name, words, "u")
    if noise is None:
        return {
            "NAME": name,
            "BACK": 2,
            "NOISE": "0",
            "FIRST": "",
            "FIRST_WORDS": "",
            "ROW_VALUE": row_value,
            "PLUS": "",
        }
    slots = range(drawing.slots - 1)
    joined = (f"JOIN {name}_words w{slot} ON w{slot}.id = u.id AND w{slot}.place = {slot}" for slot in slots)
    down = " - f.sign" if noise.origin else ""
    return {
        "NAME": name,
        "BACK": 2 + bool(drawing.moves),
        "NOISE": f"COALESCE((1 - 2 * f.sign) * f.size{down}, {_with_all_words(name, noise)}){_centred(drawing)}",
        "FIRST": _with_first_words(len(noise.digits)) + (_centre(name, words, slots[-1]) if drawing.moves else ""),
        "FIRST_WORDS": "".join(f"\n          {join}" for join in joined),
        "ROW_VALUE": row_value,
        "PLUS": " + r.input" if drawing.added else "",
    }


def _centred(drawing: Drawing) -> str:
    """What is added to the noise, for the release is the input plus it: how far its centre is from the input."""
    if drawing.moves:
        return " + f.centre - r.input"
    return "" if drawing.factor == 1 else f" + {drawing.factor - 1} * r.input"


def _centre(name: str, words: int, slot: int) -> str:
    """Where the contraction takes the input: as the output of a row."""
    return (
        f",\n          (SELECT {_row_value(name, words, f'w{slot}')} FROM optdp_rows c\n"
        f"            WHERE c.input = s.last_input + 1 + r.input AND c.word0 <= w{slot}.word\n"
        "            ORDER BY c.word0 DESC, c.k DESC LIMIT 1) AS centre"
    )


def _row_value(name: str, words: int, u: str) -> str:
    """The output of a row for the word `u`: with cuts of several words, all are compared if the first is equal, and
    must be there.
    """
    if words == 1:
        return "c.released"
    place = [
        f"SELECT v.word FROM {name}_words v WHERE v.id = {u}.id AND v.place = {u}.place + {j} * s.slots"
        for j in range(words)
    ]
    number = ", ".join([f"{u}.word", *(f"({word})" for word in place[1:])])
    given = f"SELECT COUNT(*) FROM {name}_words v WHERE v.id = {u}.id AND v.place IN "
    given += f"({', '.join(f'{u}.place + {j} * s.slots' for j in range(words))})"
    cut = ", ".join(f"d.word{j}" for j in range(words))
    return (
        f"CASE WHEN c.k = 0 OR c.word0 < {u}.word THEN c.released ELSE (\n"
        f"          SELECT d.released FROM optdp_rows d WHERE d.input = c.input AND ({given}) = {words}\n"
        f"            AND ({cut}) <= ({number})\n"
        "          ORDER BY d.k DESC LIMIT 1) END"
    )


def _with_first_words(top: int) -> str:
    """The sign and the size of the noise, NULL unless the first words decide and the last digit ends.

    A word is a constant to the lookup of its cut, so the index gives that cut first.
    """
    sign = "CASE WHEN w0.word < s.sign_cut THEN 0 WHEN w0.word > s.sign_cut THEN 1 END AS sign"
    unit, size = "", []
    for slot in range(1, top + 1):
        ends = " AND c.k < s.top_cuts" if slot == top else ""
        size.append(
            f"{unit}(SELECT CASE WHEN (c.k = 0 OR c.word0 < w{slot}.word){ends} THEN c.k END FROM optdp_noise_cuts c\n"
            f"            WHERE c.slot = {slot} AND c.word0 <= w{slot}.word ORDER BY c.word0 DESC, c.k DESC LIMIT 1)"
        )
        unit += "s.base * "
    total = "\n          + ".join(size)
    return f",\n          {sign},\n          {total} AS size"


def _with_all_words(name: str, noise: NoiseCuts) -> str:
    """The noise from all words; NULL if a part is not decided.

    The last digit starts again as long as it lies beyond its last cut. So it is the first start that does not, and no
    start before that may be undecided. A share of noise never starts again: its size is decided or not.
    """
    top = len(noise.digits)
    parts = f"FROM (SELECT q.slot, q.again, q.k FROM {name}_parts q WHERE q.id = r.id LIMIT {ALL}) p"
    sign = "MAX(CASE WHEN p.slot = 0 THEN p.k END)"
    if not noise.restarts:
        decided = f"MAX(CASE WHEN p.slot = {top} AND p.again = 0 THEN p.k END)"
        return f"(\n        SELECT (1 - 2 * {sign}) * {decided}\n        {parts})"
    unit, size = "", []
    for slot in range(1, top):
        size.append(f"{unit}MAX(CASE WHEN p.slot = {slot} THEN p.k END)")
        unit += "s.base * "
    last = f"MIN(CASE WHEN p.slot = {top} AND p.k < s.top_cuts THEN s.top_cuts * p.again + p.k END)"
    undecided = f"MIN(CASE WHEN p.slot = {top} AND p.k IS NULL THEN s.top_cuts * p.again END)"
    size.append(f"{unit}{last}")
    total = "\n          + ".join(size)
    return f"""(
        SELECT CASE WHEN {undecided}
            < {last} THEN NULL
          ELSE (1 - 2 * {sign}) * ({total})
          - {sign} END
        {parts})"""
