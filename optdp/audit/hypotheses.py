"""Exact binomial tests (Clopper and Pearson, 1934), and one for the quotient of two probabilities.

Of `m` independent events of probability `share`, `k` happened. The Clopper-Pearson lower bound at level `alpha` is the
`t` with `Pr[Bin(m, t) >= k] = alpha`; it lies above `share` with probability at most `alpha`. What is returned here is
never above that `t`: it is proved in balls that `Pr[Bin(m, t) >= k] <= alpha`.

If every draw belongs to one of two arms by a fair coin, then of the draws that fall into an event each is of the first
arm with probability `p / (p + p')`, independently: `p <= r p'` says that this share is at most `r / (1 + r)`. One
interval does for both probabilities, which is narrower than one for each.

Events are fixed in advance by what the artifact says, or chosen from a first part of the draws and tested on the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from flint import arb
from numpy.typing import NDArray
from scipy.special import betaincinv

from optdp.audit.experiment import Bins, Compared, Floats, Integers, Space, Trial
from optdp.numbers.exact import exp_bounds, precision, up

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
FIRST = 0.3
"""The share of the draws that events are chosen from; these events are tested on the others."""
LARGEST = 700
"""Beyond this a claimed epsilon is none that floats can tell from infinity."""
ROUNDING = 1e-9
"""Laws are known in floating point up to this relative error, by which they are enlarged before they are tested."""


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


# ---------------------------------------------------------------------- tests of events

BITS = 192
"""Of the balls: the logarithms of large factorials cancel."""


def surely_rare(hits: int, trials: int, share: float, alpha: float) -> bool:
    """Whether `Pr[Bin(trials, share) >= hits] <= alpha` is proved.

    From `hits` on every term is at most `ratio` times the one before: a geometric series bounds the sum, closely where
    the sum is small.
    """
    if hits <= 0 or share >= 1:
        return alpha >= 1
    if share <= 0:
        return True
    with precision(BITS):
        t, k, m = arb(share), arb(hits), arb(trials)
        ratio = (m - k) / (k + 1) * t / (1 - t)
        if not ratio < 1:
            return False
        choose = (m + 1).lgamma() - (k + 1).lgamma() - (m - k + 1).lgamma()
        term = (choose + k * t.log() + (m - k) * (1 - t).log()).exp()
        return bool(term / (1 - ratio) <= arb(alpha))


def roughly_lower(hits: Integers, trials: Integers, alpha: float) -> Floats:
    """Clopper-Pearson lower bounds of many shares in floating point: for looking, not for claims."""
    k, m = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    found: Floats = np.where(k > 0, betaincinv(np.maximum(k, 1), m - np.maximum(k, 1) + 1, alpha), 0.0)
    return np.nan_to_num(found)


def lower_share(hits: int, trials: int, alpha: float) -> float:
    """A proved lower bound of the share, next to that of Clopper and Pearson."""
    if hits <= 0:
        return 0.0
    start = float(roughly_lower(np.array([hits]), np.array([trials]), alpha)[0])
    step = min(0.001 * math.sqrt(start * (1 - start) / trials), 0.001 * start) + 1e-12 * start
    while start > 0:
        if surely_rare(hits, trials, start, alpha):
            return start
        start, step = max(start - step, 0.0), 1.5 * step
    return 0.0


def log_quotient(share: float) -> float:
    """A lower bound of `log(p / p')` from one of `p / (p + p')`."""
    if share <= 0:
        return -math.inf
    value = math.log(share) - math.log1p(-share) if share < 1 else math.inf
    return value - 1e-12 * max(1.0, abs(value))


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
class Tally:
    """How often each arm gave each bin, in the first part of the draws and in the rest."""

    first: Integers
    rest: Integers

    @staticmethod
    def of(trial: Trial, label: NDArray[np.uint16], outputs: Integers) -> Tally:
        width, cut = trial.space.width, int(FIRST * len(label))
        cells = label.astype(np.int64) * width + trial.space.bins(outputs)
        size = len(trial.arms) * width
        parts = (np.bincount(part, minlength=size).reshape(-1, width) for part in (cells[:cut], cells[cut:]))
        return Tally(*parts)


@dataclass(frozen=True)
class _Test:
    comparison: Compared
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


def _directions(trial: Trial) -> Iterator[tuple[Compared, int, int]]:
    for comparison in trial.comparisons:
        one, other = comparison.arms
        yield from ((comparison, one, other), (comparison, other, one))


def _step(comparison: Compared) -> float:
    return float(comparison.epsilon / comparison.factor)


def paid(trial: Trial) -> int:
    """How many tests a trial may make, known before anything is drawn."""
    compared = sum(
        len(fixed(trial.arms[one].law, trial.arms[other].law, _step(comparison))) + CHOSEN
        for comparison, one, other in _directions(trial)
    )
    return compared + sum(2 * (len(fixed_fits(arm.law)) + CHOSEN_FITS) for arm in trial.arms)


def _tests(trial: Trial, seen: Tally) -> Iterator[_Test]:
    first, rest = seen.first, seen.rest
    whole = first + rest
    for comparison, one, other in _directions(trial):
        laws = trial.arms[one].law, trial.arms[other].law
        for event in fixed(*laws, _step(comparison)):
            yield _Test(comparison, one, other, event, False, _hits(whole, one, other, event))
        sizes = int(first[one].sum()), int(first[other].sum())
        for event in chosen(first[one], first[other], _step(comparison), laws, sizes):
            yield _Test(comparison, one, other, event, True, _hits(rest, one, other, event))


def _hits(counts: Integers, one: int, other: int, event: Bins) -> tuple[int, int]:
    return int(counts[one][event].sum()), int(counts[other][event].sum())


def _fits(trial: Trial, seen: Tally) -> Iterator[_Fit]:
    for i, arm in enumerate(trial.arms):
        chosen = chosen_fits(seen.first[i], arm.law, int(seen.first[i].sum()))
        for counts, listed in ((seen.first[i] + seen.rest[i], fixed_fits(arm.law)), (seen.rest[i], chosen)):
            draws = int(counts.sum())
            for event in listed:
                others = np.delete(np.arange(len(arm.law)), event)
                for side in (event, others):
                    expected = min(float(arm.law[side].sum()) * (1 + ROUNDING), 1.0)
                    yield _Fit(i, side, int(counts[side].sum()), draws, expected)


def proved(made: Sequence[Trial], seen: Sequence[Tally], alpha: float) -> tuple[Proved, ...]:
    """For each claim the test that proves most, each test at level `alpha`."""
    best: dict[str, Proved] = {}
    for trial, counts in zip(made, seen, strict=True):
        listed = list(_tests(trial, counts))
        if not listed:
            continue
        hits = np.array([test.hits for test in listed])
        rough = roughly_lower(hits[:, 0], hits.sum(axis=1), alpha)
        for claim in {test.comparison.claim for test in listed}:
            known = best.get(claim)
            ranked = sorted(
                (i for i, test in enumerate(listed) if test.comparison.claim == claim),
                key=lambda i: -log_quotient(float(rough[i])) * listed[i].comparison.factor,
            )
            found = _certified(trial, listed[ranked[0]], alpha)
            if known is None or (found.refuted, found.bound) > (known.refuted, known.bound):
                best[claim] = found
    return tuple(best.values())


def _certified(trial: Trial, test: _Test, alpha: float) -> Proved:
    one, other = test.hits
    comparison = test.comparison
    share = lower_share(one, one + other, alpha)
    bound = max(log_quotient(share) * float(comparison.factor) * (1 - 1e-12), 0.0)
    claimed = comparison.epsilon / comparison.factor
    refuted = False  # a claim beyond all floats cannot be
    if claimed < LARGEST:
        ratio = exp_bounds(claimed)[1]
        refuted = surely_rare(one, one + other, up(ratio / (1 + ratio)), alpha)
    return Proved(
        comparison.claim, comparison.epsilon, bound, refuted, trial.arms[test.one].words, trial.arms[test.other].words,
        trial.space.words(test.event), trial.space.runs(test.event), test.hits, test.chosen,
    )  # fmt: skip


def misfit(made: Sequence[Trial], seen: Sequence[Tally], alpha: float) -> Misfit | None:
    """The event that the table explains worst, if it is proved not to; each test at level `alpha`."""
    worst: tuple[float, Space, str, _Fit] | None = None
    for trial, counts in zip(made, seen, strict=True):
        listed = list(_fits(trial, counts))
        rough = roughly_lower(np.array([fit.hits for fit in listed]), np.array([fit.draws for fit in listed]), alpha)
        for fit, lower in zip(listed, rough.tolist(), strict=True):
            spread = math.sqrt(fit.draws * fit.expected * (1 - fit.expected)) + 1e-9
            away = (fit.hits - fit.draws * fit.expected) / spread
            if lower < fit.expected * (1 - 1e-6) or (worst is not None and away <= worst[0]):
                continue
            if surely_rare(fit.hits, fit.draws, fit.expected, alpha):
                worst = away, trial.space, trial.arms[fit.arm].words, fit
    if worst is None:
        return None
    _, space, words, fit = worst
    return Misfit(words, space.words(fit.event), space.runs(fit.event), fit.hits, fit.draws, fit.expected)
