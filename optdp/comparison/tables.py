"""Rows and what they say together, in a terminal: a line as each row is ready, and sheets below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optdp.comparison.rows import Row
from optdp.comparison.statistics import OURS, SHIFT, TOLERANCE, TOLERANCES, Against, Comparison, ratios
from optdp.sheet import Cell, Listing, Sheet, decimal

HEAD = ("backend", "status", "seconds", "raw value", "raw eps", "MAE", "eps", "gap")
WIDTHS = (16, 12, 9, 10, 10, 10, 10, 9)
LONGEST = 34
"""Characters of a problem's name in a line."""


def cells(row: Row) -> list[str]:
    """A row as a line has it."""
    figures = (row.seconds, row.objective, row.raw_epsilon, row.mae, row.certified_epsilon, row.gap)
    shown = [short(figure) for figure in figures]
    if row.gap is None and row.mae is not None:
        shown[-1] = "no duals"
    return [row.who, row.status, *shown]


def short(figure: float | str | None) -> str:
    """A figure in few characters."""
    if figure is None:
        return "-"
    return decimal(figure)[:9] if isinstance(figure, str) else f"{figure:.4g}"


def line(row: Row | None, several: bool) -> str:
    """A row, or without one the heads of the columns, at places that do not depend on other rows."""
    parts = list(HEAD) if row is None else cells(row)
    first = ("problem" if row is None else row.problem)[:LONGEST]
    fixed = "  ".join(part.ljust(width) for part, width in zip(parts, WIDTHS, strict=True))
    return ("  " + (first.ljust(LONGEST) + "  " if several else "") + fixed).rstrip()


def remarks(rows: Sequence[Row], several: bool) -> tuple[str, ...]:
    """What to know of the columns, and of single rows."""
    notes = [f"{f'{row.problem}, ' if several else ''}{row.who}: {row.note}" for row in rows if row.note]
    return ("raw: as the solver returned it; MAE and eps: after repair, certified", *notes)


def sheet(rows: Sequence[Row]) -> Sheet:
    """All rows of one problem."""
    listing = Listing(HEAD, tuple(tuple(cells(row)) for row in rows))
    return Sheet((), (listing,), remarks(rows, several=False))


def summary(rows: Sequence[Row]) -> Sheet:
    """Success, times, and our engines against the others, over all problems."""
    found = Comparison(tuple(rows))
    told = [listing(found), *against(found)]
    texts = [
        f"{len(found.problems)} problems; a success is counted at a tolerance of {TOLERANCE:g}; eps has none after "
        "repair",
        f"mean: shifted geometric mean with a shift of {SHIFT:g} s; what was not done counts as its time limit",
    ]
    texts += [f"{row.problem}, {row.who}: {said}" for row in rows if (said := found.wrong(row))]
    return Sheet((), tuple(told), tuple(texts))


SUMMARY = ("backend", "solved", "private as returned", "private after repair", "mean seconds", "fastest on")


def listing(found: Comparison) -> Listing:
    """A line for each backend."""
    lines: list[tuple[Cell | str, ...]] = []
    for who in found.backends:
        rates = (
            found.rate(who, test, TOLERANCE)
            for test in (found.solved, found.private_as_returned, found.private_after_repair)
        )
        mean = found.mean_seconds(who)
        first = sum(ratio == 1.0 for ratio in found.profile(who))
        lines.append((who, *(f"{rate:.0%}" for rate in rates), "-" if mean is None else f"{mean:.3g}", str(first)))
    return Listing(SUMMARY, tuple(lines))


def asked(row: Row) -> str:
    """What was asked for, in words."""
    return f"{'alpha' if row.kind == 'order-shuffle' else 'epsilon'} {row.epsilon}"


def times(pair: Against) -> str:
    """How many times faster our engines are."""
    return f"{'> ' if pair.more else ''}{short(pair.ratio)}"


def against(found: Comparison) -> list[Listing]:
    """Our engines against the best other backend, where both were run together."""
    if OURS not in {row.backend for row in found.rows} or len(found.backends) < 2:
        return []
    pairs = found.against()
    lines = [(pair.problem, short(pair.ours), short(pair.best), pair.who or "-", times(pair)) for pair in pairs]
    lines += [("", "", "", name, short(value)) for name, value in ratios(pairs).items()]
    return [Listing(("problem", f"{OURS}, s", "best other, s", "which", "times faster"), tuple(lines))]


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """The same for programs."""
    found = Comparison(tuple(rows))
    backends = {
        who: {
            "runs": len(found.of(who)),
            **{
                name: {f"{tolerance:g}": found.rate(who, test, tolerance) for tolerance in TOLERANCES}
                for name, test in (
                    ("solved", found.solved),
                    ("private_as_returned", found.private_as_returned),
                    ("private_after_repair", found.private_after_repair),
                )
            },
            "mean_seconds": found.mean_seconds(who),
            "profile": found.profile(who),
        }
        for who in found.backends
    }
    pairs = found.against()
    return {
        "problems": len(found.problems),
        "tolerance": TOLERANCE,
        "shift": SHIFT,
        "backends": backends,
        "against": [
            {"problem": one.problem, "ours": one.ours, "best": one.best, "who": one.who, "ratio": one.ratio,
             "more": one.more, "cpu_ratio": one.cpu_ratio}
            for one in pairs
        ],
        "ratios": dict(ratios(pairs)),
        "wrong": [{"problem": row.problem, "backend": row.who, "why": said}
                  for row in rows if (said := found.wrong(row))],
    }  # fmt: skip
