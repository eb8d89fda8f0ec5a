"""Events on which two laws are compared: fixed in advance by what the artifact says, or chosen from a first part of
the draws and tested on the rest.

An event is an array of bins. Bins are the outputs `low..high`, and one for everything below and above them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Bins = NDArray[np.int64]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEVELS = (1 - 1e-6, 0.9, 0.75, 0.5, 0.0)
"""Shares of the claimed epsilon: the outputs whose log-quotient is at least that are an event."""
SINGLE, TIGHT, CELLS = 32, 16, 32
"""How many of the likeliest and of the tightest outputs are looked at alone, and into how many parts all are cut."""
CHOSEN = 16
"""The most events that are chosen for each direction of a comparison: so many tests are paid for."""
CHOSEN_FITS = 10
"""The same for the fidelity of one law."""
SCAN = 400
"""Among so many ends the worst interval is looked for."""


@dataclass(frozen=True)
class Space:
    """The bins: 0 is everything below `low`, then one for each output, and the last is everything above `high`."""

    low: int
    high: int

    @property
    def width(self) -> int:
        return self.high - self.low + 3

    def bins(self, outputs: Integers) -> Integers:
        """The bin of each output."""
        return np.clip(outputs, self.low - 1, self.high + 1) - (self.low - 1)

    def words(self, event: Bins) -> str:
        """An event as outputs, in a line."""
        runs = self.runs(event)
        shown = ", ".join(_run(first, last) for first, last in runs[:6])
        return shown if len(runs) <= 6 else f"{shown}, ... ({len(event):,} outputs)"

    def runs(self, event: Bins) -> list[tuple[int | None, int | None]]:
        """An event as runs of outputs; None is without end."""
        found = []
        for part in np.split(event, np.flatnonzero(np.diff(event) > 1) + 1) if len(event) else ():
            first, last = int(part[0]), int(part[-1])
            found.append(
                (None if first == 0 else first + self.low - 1, None if last == self.width - 1 else last + self.low - 1)
            )
        return found


def _run(first: int | None, last: int | None) -> str:
    if first is None:
        return "any" if last is None else f"at most {last}"
    return f"at least {first}" if last is None else str(first) if first == last else f"{first}..{last}"


def fixed(one: Floats, other: Floats, epsilon: float) -> list[Bins]:
    """Events known before anything is drawn, to refute `one <= e^epsilon other`: where the table is tight, the
    likeliest outputs, half-lines, and runs of outputs of equal mass.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(one > 0, np.log(one) - np.log(other), -math.inf)
    events = [np.flatnonzero((quotient >= level * epsilon) & (one > 0)) for level in LEVELS]
    tight = np.lexsort((-one, -np.minimum(quotient, LEVELS[0] * epsilon)))[:TIGHT]
    likely = np.argsort(-(one + other), kind="stable")[:SINGLE]
    events += [np.array([bin]) for bin in dict.fromkeys([*tight.tolist(), *likely.tolist()])]
    events += list(_runs(one + other))
    return [event for event in events if len(event)]


def _runs(mass: Floats) -> Iterator[Bins]:
    """Half-lines, and dyadic runs of cells of about equal mass."""
    inner = np.searchsorted(np.cumsum(mass), np.arange(1, CELLS) / CELLS * mass.sum()) + 1
    edges = np.unique(np.clip(np.concatenate(([0], inner, [len(mass)])), 0, len(mass)))
    for edge in edges[1:-1].tolist():
        yield np.arange(edge)
        yield np.arange(edge, len(mass))
    while len(edges) > 3:
        for first, last in list(pairwise(edges.tolist()))[1:-1]:  # those at the ends are half-lines
            yield np.arange(first, last)
        edges = np.append(edges[:-1:2], edges[-1])


def chosen(
    one: Integers, other: Integers, epsilon: float, laws: tuple[Floats, Floats], draws: tuple[int, int]
) -> list[Bins]:
    """At most CHOSEN events that make `one <= e^epsilon other` look worst in the counts of a first part of the draws.

    Sets of outputs with a positive excess (the first maximises the difference), the worst single outputs, half-lines
    and run; and outputs whose counts are far from what the table says, in the direction that would hurt.
    """
    r = math.exp(min(epsilon, 50.0))
    excess, variance = one - r * other, one + r * r * other
    score = excess / np.sqrt(variance + 1)
    events = [np.flatnonzero(score > c) for c in (0, 1, 2, 3, 4)]
    away = _deviation(one, laws[0], draws[0]) - _deviation(other, laws[1], draws[1])
    events += [np.flatnonzero(away > c) for c in (3, 4.5, 6)]
    events += [np.flatnonzero((away > 2) & (score > 0)), np.flatnonzero((away > 3) & (score > 1))]
    events += [np.array([bin]) for bin in np.argsort(-score, kind="stable")[:3].tolist()]
    events += _worst_runs(excess, variance)
    assert len(events) <= CHOSEN
    return [event for event in events if len(event)]


def _deviation(counts: Integers, law: Floats, draws: int) -> Floats:
    found: Floats = (counts - draws * law) / np.sqrt(draws * law * (1 - law) + 1)
    return found


def _worst_runs(excess: Floats, variance: Floats) -> list[Bins]:
    """The half-line of either side and the run with the largest excess in standard deviations."""
    total = np.concatenate(([0.0], np.cumsum(variance)))
    gain = np.concatenate(([0.0], np.cumsum(excess)))
    ends = np.arange(len(total))
    if len(ends) > SCAN:
        ends = np.unique(np.searchsorted(total, np.linspace(0, total[-1], SCAN)))
        ends = np.unique(np.concatenate(([0], np.minimum(ends, len(excess)), [len(excess)])))
    lengths = gain[ends][None, :] - gain[ends][:, None]
    spread = np.sqrt(np.maximum(total[ends][None, :] - total[ends][:, None], 0) + 1)
    scores = np.where(ends[None, :] > ends[:, None], lengths / spread, -np.inf)
    first, last = np.unravel_index(int(np.argmax(scores)), scores.shape)
    up, down = int(np.argmax(scores[0])), int(np.argmax(scores[:, -1]))
    spans = ((ends[first], ends[last]), (0, ends[up]), (ends[down], len(excess)))
    return [np.arange(int(start), int(stop)) for start, stop in spans]


# ---------------------------------------------------------------------- does a sampler follow its table?


def fixed_fits(law: Floats) -> list[Bins]:
    """Events of one law: what cannot happen, the likeliest outputs, the ends, half-lines."""
    never = np.flatnonzero(law == 0)
    likely = np.argsort(-law, kind="stable")[:SINGLE].tolist()
    singles = [np.array([bin]) for bin in dict.fromkeys([*likely, 0, len(law) - 1])]
    edges = np.unique(np.searchsorted(np.cumsum(law), np.arange(1, CELLS) / CELLS) + 1)
    halves = [np.arange(edge) for edge in edges.tolist() if edge < len(law)]
    return [event for event in (never, *singles, *halves) if 0 < len(event) < len(law)]


def chosen_fits(counts: Integers, law: Floats, draws: int) -> list[Bins]:
    """At most CHOSEN_FITS events where a first part of the draws is farthest from the law."""
    away = _deviation(counts, law, draws)
    events = [np.flatnonzero(away > c) for c in (0, 1.5, 3)] + [np.flatnonzero(away < -c) for c in (1.5, 3)]
    events += [np.array([bin]) for bin in np.argsort(-np.abs(away), kind="stable")[:3].tolist()]
    gap = np.abs(np.cumsum(counts) - draws * np.cumsum(law))[:-1]
    events.append(np.arange(int(np.argmax(gap)) + 1))
    assert len(events) <= CHOSEN_FITS
    return [event for event in events if 0 < len(event) < len(law)]
