"""What is drawn to audit a plan: all parties that the observer has not on its side, and their sum.

An arm is a secret of one party's person. That party's input is drawn from the law of its sum given the secret, the
others' from theirs; every party draws its report, and the sum of the reports is the output. One party's file by itself
claims nothing: whether its reports follow its table is all that can be tested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from optdp.audit.experiment import MARGIN, MOST_CELLS, Arm, Compared, Floats, Inputs, Integers, Space, Trial, inputs_of
from optdp.errors import ProblemError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.mechanism.share_cuts import fits
from optdp.mechanism.shared_noise import SharedNoise
from optdp.numbers.exact import precision, to_fraction
from optdp.numbers.pmf import Pmf
from optdp.numbers.source import Source
from optdp.people.population import Population
from optdp.plan.problem import MultiLTE
from optdp.single.laws import Shape, restrict

REACH = 45.0
"""A share's report may be any integer: its law is cut off where less than e^-REACH is left, which belongs to the bins
beyond."""
MOST_OUTPUTS = 1 << 20
"""Outputs of one party that are told apart, at most."""

Table = NoiseMatrix | SharedNoise | SeededMaps


@dataclass(frozen=True)
class Reported:
    """What a party may report: from `low` on, `law(inputs)` for each output if its input has the law `inputs`."""

    low: int
    width: int
    law: Callable[[Pmf], Floats]


def reports_of(table: Table) -> Reported:
    """The reports of a table; a table with a geometric tail belongs to no plan."""
    if isinstance(table, SharedNoise):
        return _of_share(table)
    if isinstance(table, SeededMaps):
        return reports_of(table.matrix)
    if table.q is not None:
        raise ProblemError("A plan's tables are finite or shares of noise. Found a table with a geometric tail.")
    low, high = table.outputs
    return Reported(low, high - low + 1, lambda law: _of_rows(law, table))


def _of_rows(law: Pmf, table: NoiseMatrix) -> Floats:
    report = np.zeros(table.outputs[1] - table.outputs[0] + 1)
    for weight, row in zip(restrict(law, Shape.of(table))[0], table.rows, strict=True):
        chance = float(weight)
        for s, share in row:
            report[s - table.outputs[0]] += chance * (share / table.denominator)
    return report


def _of_share(table: SharedNoise) -> Reported:
    if not fits(table.beta, table.q):
        raise ProblemError(
            "An audit draws many reports at once. Found noise that is too wide for that: verify the plan."
        )
    wide = math.ceil(REACH / -math.log(table.q))
    ends = sorted((0, table.factor * table.last))
    low, high = ends[0] - wide, ends[1] + wide
    if table.rows:
        low, high = min(low, table.outputs[0]), max(high, table.outputs[1])
    if high - low >= MOST_OUTPUTS:
        raise ProblemError(
            f"An audit tells at most {MOST_OUTPUTS:,} outputs of a party apart. Found {high - low + 1:,}: the noise is "
            "too wide. Verify the plan instead."
        )
    return Reported(low, high - low + 1, lambda law: _share_law(law, table, low, high, wide))


def _share_law(law: Pmf, table: SharedNoise, low: int, high: int, wide: int) -> Floats:
    """Inputs without a row, and noise that leaves the outputs, follow the contraction and the noise; the rest the rows.

    The noise of inputs that have a row is added up first, and within the outputs it is replaced by the rows.
    """
    chances = [float(value) for value in law.balls(0, table.last)]
    noise = _noise(table, wide)
    span = abs(table.factor) * table.last + 1
    centres = np.zeros((2, span))  # of inputs without a row, and of those with one
    start = min(0, table.factor * table.last)
    inside = np.zeros(high - low + 1)
    below = np.concatenate(([0.0], np.cumsum(noise)))
    for x, chance in enumerate(chances):
        row = table.row(x)
        moved = [(table.factor * y, weight / table.contraction_denominator) for y, weight in table.contracted(x)]
        for place, share in moved:
            centres[int(row is not None), place - start] += chance * share
        if row is not None:
            first, last = (s + wide for s in table.outputs)
            mass = sum(
                share * (below[_clip(last - place + 1, below)] - below[_clip(first - place, below)])
                for place, share in moved
            )
            for s, weight in row:
                inside[s - low] += chance * mass * (weight / table.denominator)
    shift = start - wide - low
    spread = np.zeros((2, high - low + 1))
    for line, centre in zip(spread, centres, strict=True):
        line[shift : shift + span + len(noise) - 1] = np.convolve(centre, noise)
    if table.rows:
        spread[1, table.outputs[0] - low : table.outputs[1] - low + 1] = 0.0
    return np.asarray(spread.sum(axis=0) + inside)


def _clip(place: int, ends: Floats) -> int:
    return min(max(place, 0), len(ends) - 1)


@lru_cache(maxsize=4)
def _noise(table: SharedNoise, wide: int) -> Floats:
    """`Pr[e]` for `|e| <= wide`."""
    half = np.array([float(value) for value in table.noise.balls(0, wide)])
    return np.concatenate((half[:0:-1], half))


# ---------------------------------------------------------------------- trials

LONG = 2000
"""Laws of so many outputs are added by Fourier transforms."""
ABSENT = -1
"""The input of a party that takes no part in a draw: it is on the observer's side."""


@dataclass(frozen=True)
class _Party:
    """One party in one world: how its input is drawn, and the law of its report from the first output on."""

    population: Population
    inputs: Inputs
    low: int
    report: Floats


def plan_trials(problem: MultiLTE, tables: Sequence[Table], claim: Mapping[str, Any]) -> list[Trial]:
    """Every party's people in every world, against whoever sees the sum of `honest` parties."""
    seeded = [table for table in tables if isinstance(table, SeededMaps)]
    if seeded:
        return _seeded_trials(problem, seeded, claim)
    reports = [reports_of(table) for table in tables]
    found: list[Trial] = []
    for number, world in enumerate(problem.worlds):
        with precision():
            parties = [
                _Party(one, inputs_of(one.total), own.low, own.law(one.total))
                for one, own in zip(world, reports, strict=True)
            ]
        for party, chosen in _sets(problem, tables, world):
            stated = to_fraction(claim["parties"][party]["epsilon"], "epsilon")
            if problem.outside:  # nothing is promised where the belief lies: only the reports are tested
                found.append(party_trial(problem, party, tables[party]))
                continue
            words = f"world {number}, " if problem.also else ""
            found += _people(problem, reports, parties, party, chosen, stated, f"{words}party {party}")
    return found


def _seeded_trials(problem: MultiLTE, tables: Sequence[SeededMaps], claim: Mapping[str, Any]) -> list[Trial]:
    """The same of a plan with a common word: the law of the sum is a mixture over the cells of the word."""
    cells = [[reports_of(table.column(cell)) for table in tables] for cell in range(len(tables[0].cuts))]
    shares = [weight / tables[0].denominator for weight in tables[0].weights]
    low = sum(table.outputs[0] for table in tables)
    found: list[Trial] = []
    for number, world in enumerate(problem.worlds):
        for party, everybody in _sets(problem, tables, world):
            others = [i for i in everybody if i != party]
            with precision():
                around = [reduce(_added, (own[i].law(world[i].total) for i in others), np.ones(1)) for own in cells]
                parties = [_Party(one, inputs_of(one.total), 0, np.zeros(0)) for one in world]
            epsilon = to_fraction(claim["parties"][party]["epsilon"], "epsilon")
            factor = Fraction(problem.sensitivity, abs(problem.f[party]))
            for kind, person in enumerate(world[party].people):
                arms = []
                for w, law in enumerate(person.conditionals):
                    with precision():
                        laws = [_added(own[party].law(law), rest) for own, rest in zip(cells, around, strict=True)]
                    mixed = sum((share * one for share, one in zip(shares, laws, strict=True)), np.zeros(len(laws[0])))
                    inputs = _together(len(tables), parties, others, party, inputs_of(law))
                    who = f"person of kind {kind}" if kind else "a person"
                    words = f"world {number}, " if problem.also else ""
                    arms.append(Arm(f"{words}party {party}, {who} contributes {w}", inputs, _binned(mixed)))
                space = Space(low - MARGIN, low + len(arms[0].law) - 3 - MARGIN)
                steps = tuple(Compared((w, w + 1), epsilon, factor, problem.promise) for w in range(person.largest))
                found.append(Trial(space, tuple(arms), steps))
    return found


def party_trial(problem: MultiLTE, party: int, table: Table) -> Trial:
    """One party's reports, against its table."""
    own, population = reports_of(table), problem.parties[party]
    with precision():
        report = own.law(population.total)
    arm = Arm(f"the report of party {party}", inputs_of(population.total), _binned(report))
    return Trial(Space(own.low - MARGIN, own.low + own.width - 1 + MARGIN), (arm,), ())


def summed(samplers: Sequence[Callable[[Integers], Integers]]) -> Callable[[Integers], Integers]:
    """The sum of the reports of the parties that take part, a column of inputs for each."""

    def draw(inputs: Integers) -> Integers:
        total = np.zeros(len(inputs), dtype=np.int64)
        for i, sampler in enumerate(samplers):
            places = np.flatnonzero(inputs[:, i] != ABSENT)
            reports = np.asarray(sampler(inputs[places, i])) if len(places) else np.zeros(0, dtype=np.int64)
            if reports.shape != (len(places),) or reports.dtype.kind not in "iu":
                raise ProblemError(f"The sampler of party {i} must return one integer for each input. Found otherwise.")
            total[places] += np.clip(reports, -(2**53), 2**53).astype(np.int64)
        return total

    return draw


def seeded_sum(tables: Sequence[SeededMaps], source: Source) -> Callable[[Integers], Integers]:
    """The sum of the reports of all parties, under a fresh common word for each line of inputs."""
    cuts = np.array(tables[0].cuts[:-1], dtype=np.uint64)
    shift = np.uint64(64 + 1 - tables[0].denominator.bit_length())
    choices = [np.array(table.choices) for table in tables]
    maps = [np.array(table.maps, dtype=np.int64) for table in tables]

    def draw(inputs: Integers) -> Integers:
        cells = np.searchsorted(cuts, source.words(len(inputs)) >> shift, side="right")
        total = np.zeros(len(inputs), dtype=np.int64)
        for i, table in enumerate(tables):
            places = np.clip(inputs[:, i], *table.inputs) - table.inputs[0]
            total += maps[i][choices[i][cells], places]
        return total

    return draw


def _binned(law: Floats) -> Floats:
    """The law with its margins; the bins beyond have what it lacks to 1, and may not be thought impossible."""
    bins = np.pad(law, MARGIN + 1)
    bins[[0, -1]] = max(1.0 - float(law.sum()), 0.0)
    return bins


def _sets(
    problem: MultiLTE, tables: Sequence[Table], world: Sequence[Population]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """For each party that differs from those before it, a set of honest parties that it is in."""
    seen = set()
    for i, (population, table) in enumerate(zip(world, tables, strict=True)):
        key = (str(population.spec), table, abs(problem.f[i]))
        if key not in seen:
            seen.add(key)
            yield i, tuple(sorted((i + step) % len(tables) for step in range(problem.honest)))


def _people(
    problem: MultiLTE, reports: Sequence[Reported], parties: Sequence[_Party], party: int, chosen: Sequence[int],
    epsilon: Fraction, words: str,
) -> Iterator[Trial]:  # fmt: skip
    """A trial for each kind of person of `party`."""
    others = [i for i in chosen if i != party]
    around = reduce(_added, (parties[i].report for i in others), np.ones(1))
    low = sum(parties[i].low for i in chosen)
    factor = Fraction(problem.sensitivity, abs(problem.f[party]))
    for kind, person in enumerate(parties[party].population.people):
        if (len(around) + len(parties[party].report)) * len(person.conditionals) > MOST_CELLS:
            raise ProblemError(f"An audit holds at most {MOST_CELLS:,} probabilities. Found a plan with more.")
        arms = []
        for w, law in enumerate(person.conditionals):
            with precision():
                own = reports[party].law(law)
            inputs = _together(len(reports), parties, others, party, inputs_of(law))
            name = f"{words}, {f'person of kind {kind}' if kind else 'a person'} contributes {w}"
            arms.append(Arm(name, inputs, _binned(_added(own, around))))
        space = Space(low - MARGIN, low + len(arms[0].law) - 3 - MARGIN)
        steps = tuple(Compared((w, w + 1), epsilon, factor, problem.promise) for w in range(person.largest))
        yield Trial(space, tuple(arms), steps)


def _added(one: Floats, other: Floats) -> Floats:
    """The law of a sum; long ones by Fourier transforms, whose errors of 1e-16 change no test."""
    if min(len(one), len(other)) < LONG:
        return np.convolve(one, other)
    size = len(one) + len(other) - 1
    return np.maximum(np.fft.irfft(np.fft.rfft(one, size) * np.fft.rfft(other, size), size), 0.0)


def _together(width: int, parties: Sequence[_Party], others: Sequence[int], party: int, own: Inputs) -> Inputs:
    def draw(source: Source, count: int) -> Integers:
        drawn = np.full((count, width), ABSENT, dtype=np.int64)
        drawn[:, party] = own(source, count)
        for i in others:
            drawn[:, i] = parties[i].inputs(source, count)
        return drawn

    return draw
