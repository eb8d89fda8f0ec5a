"""The tests of an audit: which claims are refuted, what is proved, and whether the laws are those of the table.

Every test has the same level. How many there may be is known before anything is drawn (`paid`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optdp.auditing import events, intervals
from optdp.auditing.events import Bins, Space
from optdp.auditing.experiment import Comparison, Trial
from optdp.math.exact import exp_bounds, up

FIRST = 0.3
"""The share of the draws that events are chosen from; these events are tested on the others."""
LARGEST = 700
"""Beyond this a claimed epsilon is none that floats can tell from infinity."""
ROUNDING = 1e-9
"""Laws are known in floating point up to this relative error, by which they are enlarged before they are tested."""

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Proved:
    """The largest lower bound of one claimed epsilon that the draws prove."""

    claim: str
    claimed: Fraction
    bound: float
    """The epsilon of the sampler is at least this, unless one of FAMILY happened."""
    refuted: bool
    one: str
    """What is known in the case that makes the event more likely."""
    other: str
    event: str
    outputs: list[tuple[int | None, int | None]]
    hits: tuple[int, int]
    chosen: bool
    """Whether the event was found in a first part of the draws, not fixed by the artifact."""


@dataclass(frozen=True)
class Misfit:
    """An event that the sampler gives more often, or less, than its table allows."""

    arm: str
    event: str
    outputs: list[tuple[int | None, int | None]]
    hits: int
    draws: int
    expected: float
    """The probability of the event by the table."""


@dataclass(frozen=True)
class Counts:
    """How often each arm gave each bin, in the first part of the draws and in the rest."""

    first: Integers
    rest: Integers

    @property
    def all(self) -> Integers:
        return self.first + self.rest

    @staticmethod
    def of(trial: Trial, label: NDArray[np.uint16], outputs: Integers) -> Counts:
        width, cut = trial.space.width, int(FIRST * len(label))
        cells = label.astype(np.int64) * width + trial.space.bins(outputs)
        size = len(trial.arms) * width
        parts = (np.bincount(part, minlength=size).reshape(-1, width) for part in (cells[:cut], cells[cut:]))
        return Counts(*parts)


@dataclass(frozen=True)
class _Test:
    comparison: Comparison
    one: int
    other: int
    event: Bins
    chosen: bool
    hits: tuple[int, int]


@dataclass(frozen=True)
class _Fit:
    arm: int
    event: Bins
    hits: int
    draws: int
    expected: float


def _directions(trial: Trial) -> Iterator[tuple[Comparison, int, int]]:
    for comparison in trial.comparisons:
        yield comparison, comparison.one, comparison.other
        yield comparison, comparison.other, comparison.one


def _step(comparison: Comparison) -> float:
    return float(comparison.epsilon / comparison.factor)


def paid(trial: Trial) -> int:
    """How many tests a trial may make, known before anything is drawn."""
    compared = sum(
        len(events.fixed(trial.arms[one].law, trial.arms[other].law, _step(comparison))) + events.CHOSEN
        for comparison, one, other in _directions(trial)
    )
    return compared + sum(2 * (len(events.fixed_fits(arm.law)) + events.CHOSEN_FITS) for arm in trial.arms)


def _tests(trial: Trial, seen: Counts) -> Iterator[_Test]:
    whole, first, rest = seen.all, seen.first, seen.rest
    for comparison, one, other in _directions(trial):
        laws = trial.arms[one].law, trial.arms[other].law
        for event in events.fixed(*laws, _step(comparison)):
            yield _Test(comparison, one, other, event, False, _hits(whole, one, other, event))
        sizes = int(first[one].sum()), int(first[other].sum())
        for event in events.chosen(first[one], first[other], _step(comparison), laws, sizes):
            yield _Test(comparison, one, other, event, True, _hits(rest, one, other, event))


def _hits(counts: Integers, one: int, other: int, event: Bins) -> tuple[int, int]:
    return int(counts[one][event].sum()), int(counts[other][event].sum())


def _fits(trial: Trial, seen: Counts) -> Iterator[_Fit]:
    for i, arm in enumerate(trial.arms):
        chosen = events.chosen_fits(seen.first[i], arm.law, int(seen.first[i].sum()))
        for counts, listed in ((seen.all[i], events.fixed_fits(arm.law)), (seen.rest[i], chosen)):
            draws = int(counts.sum())
            for event in listed:
                others = np.delete(np.arange(len(arm.law)), event)
                for side in (event, others):
                    expected = min(float(arm.law[side].sum()) * (1 + ROUNDING), 1.0)
                    yield _Fit(i, side, int(counts[side].sum()), draws, expected)


def proved(made: Sequence[Trial], seen: Sequence[Counts], alpha: float) -> tuple[Proved, ...]:
    """For each claim the test that proves most, each test at level `alpha`."""
    best: dict[str, Proved] = {}
    for trial, counts in zip(made, seen, strict=True):
        listed = list(_tests(trial, counts))
        if not listed:
            continue
        hits = np.array([test.hits for test in listed])
        rough = intervals.roughly_lower(hits[:, 0], hits.sum(axis=1), alpha)
        for claim in {test.comparison.claim for test in listed}:
            known = best.get(claim)
            ranked = sorted(
                (i for i, test in enumerate(listed) if test.comparison.claim == claim),
                key=lambda i: -intervals.log_quotient(float(rough[i])) * listed[i].comparison.factor,
            )
            found = _certified(trial, listed[ranked[0]], alpha)
            if known is None or (found.refuted, found.bound) > (known.refuted, known.bound):
                best[claim] = found
    return tuple(best.values())


def _certified(trial: Trial, test: _Test, alpha: float) -> Proved:
    one, other = test.hits
    comparison = test.comparison
    share = intervals.lower_share(one, one + other, alpha)
    bound = max(intervals.log_quotient(share) * float(comparison.factor) * (1 - 1e-12), 0.0)
    claimed = comparison.epsilon / comparison.factor
    refuted = False  # a claim beyond all floats cannot be
    if claimed < LARGEST:
        ratio = exp_bounds(claimed)[1]
        refuted = intervals.surely_rare(one, one + other, up(ratio / (1 + ratio)), alpha)
    return Proved(
        comparison.claim, comparison.epsilon, bound, refuted, trial.arms[test.one].words, trial.arms[test.other].words,
        trial.space.words(test.event), trial.space.runs(test.event), test.hits, test.chosen,
    )  # fmt: skip


def misfit(made: Sequence[Trial], seen: Sequence[Counts], alpha: float) -> Misfit | None:
    """The event that the table explains worst, if it is proved not to; each test at level `alpha`."""
    worst: tuple[float, Space, str, _Fit] | None = None
    for trial, counts in zip(made, seen, strict=True):
        listed = list(_fits(trial, counts))
        rough = intervals.roughly_lower(
            np.array([fit.hits for fit in listed]), np.array([fit.draws for fit in listed]), alpha
        )
        for fit, lower in zip(listed, rough.tolist(), strict=True):
            spread = math.sqrt(fit.draws * fit.expected * (1 - fit.expected)) + 1e-9
            away = (fit.hits - fit.draws * fit.expected) / spread
            if lower < fit.expected * (1 - 1e-6) or (worst is not None and away <= worst[0]):
                continue
            if intervals.surely_rare(fit.hits, fit.draws, fit.expected, alpha):
                worst = away, trial.space, trial.arms[fit.arm].words, fit
    if worst is None:
        return None
    _, space, words, fit = worst
    return Misfit(words, space.words(fit.event), space.runs(fit.event), fit.hits, fit.draws, fit.expected)
