"""What many rows say together.

A backend has **solved** a problem at tolerance `t` if it says so itself (optimal, or what amounts to it), its own
numbers miss no row of the program by more than `t`, and they cost what the optimum costs up to a share `t`. Its answer
is **private as returned** if the real epsilon of those numbers is at most `(1 + t)` of what was asked for, and
**private after repair** if a certified table came out of them at all whose error is within a share `t` of the optimum:
of that epsilon there is no tolerance. The optimum is taken to be the best lower bound that any row of the problem has
proved. Of a plan of several entities of which nobody has proved so much, an error within 1 % of the least that any row
has will do.

Times are compared as Dolan and More do (Mathematical Programming 91, 2002): the profile of a backend at `r` is the
share of problems that it has done within `r` times the time of the fastest; "done" is private after repair. Means are
shifted geometric means, `exp(mean(log(t + s))) - s`; what was not done counts as the whole time limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from optdp.comparison.rows import ONE_ENTITY, Row, number

TOLERANCES = (1e-3, 1e-6, 1e-9)
"""At which success is counted."""
TOLERANCE = 1e-6
"""At which times are compared."""
ALIKE = 0.01
"""Plans whose errors differ by no more than this share are equally good, where no optimum is proved."""
SHIFT = 0.01
"""Seconds: times far below it count alike."""
SEVERAL = "multi-lte"
"""The kind of problem whose optimum is rarely proved."""
OURS = "highs"
"""The backend that is optdp's own engines."""
SMALL = 1e-12
"""A value below it is as good as none, and its share of anything means nothing."""


@dataclass(frozen=True)
class Comparison:
    """All rows, by problem and by backend. Rows of one backend on one problem by several runs count as several."""

    rows: tuple[Row, ...]

    @cached_property
    def problems(self) -> dict[str, list[Row]]:
        """The rows of each problem, in order; two problems of one name are told apart by their digest."""
        digests: dict[str, set[str]] = {}
        for row in self.rows:
            digests.setdefault(row.problem, set()).add(row.digest)
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            several = len(digests[row.problem] - {""}) > 1
            found.setdefault(f"{row.problem} ({row.digest[:6]})" if several else row.problem, []).append(row)
        return found

    @cached_property
    def backends(self) -> list[str]:
        """Everybody who was tried, with options."""
        return list(dict.fromkeys(row.who for row in self.rows))

    @cached_property
    def bounds(self) -> dict[Row, float]:
        """For each row the best lower bound of its problem; 0 where none was proved."""
        found: dict[Row, float] = {}
        for rows in self.problems.values():
            best = max((row.lower_bound for row in rows if row.lower_bound is not None), default=0.0)
            found |= dict.fromkeys(rows, best)
        return found

    @cached_property
    def least(self) -> dict[Row, float]:
        """For each row the least certified value of its problem."""
        found: dict[Row, float] = {}
        for rows in self.problems.values():
            values = [row.value for row in rows if row.value is not None and row.certified_epsilon != "infinite"]
            found |= dict.fromkeys(rows, min(values, default=math.inf))
        return found

    @cached_property
    def uneven(self) -> bool:
        """Whether some backends were given other problems than others."""
        given: dict[str, set[str]] = {}
        for name, rows in self.problems.items():
            for row in rows:
                given.setdefault(row.who, set()).add(name)
        return len(set(map(frozenset, given.values()))) > 1

    # ------------------------------------------------------------------------------------------- one row

    def solved(self, row: Row, tolerance: float) -> bool:
        if row.status not in ("optimal", "feasible") or row.objective is None or row.primal_residual is None:
            return False
        return row.primal_residual <= tolerance and abs(self._above(row, row.objective)) <= tolerance

    def private_as_returned(self, row: Row, tolerance: float) -> bool:
        found, wanted = number(row.raw_epsilon), number(row.epsilon or None)
        return found is not None and wanted is not None and found <= wanted * (1 + tolerance)

    def private_after_repair(self, row: Row, tolerance: float) -> bool:
        if row.status not in ("optimal", "feasible", "limit") or row.value is None or row.certified_epsilon is None:
            return False
        return row.certified_epsilon != "infinite" and self._good(row, row.value, tolerance)

    def _good(self, row: Row, value: float, tolerance: float) -> bool:
        """Whether a value is within the tolerance of the optimum, as far as that is known."""
        best = self.least[row]
        if row.kind == SEVERAL and abs(best) > SMALL and best - self.bounds[row] > max(tolerance, TOLERANCE) * best:
            return value <= best * (1 + ALIKE)
        return self._above(row, value) <= tolerance

    def _above(self, row: Row, value: float) -> float:
        """By what share of itself a value is above the optimum."""
        return (value - self.bounds[row]) / value if abs(value) > SMALL else 0.0

    def wrong(self, row: Row) -> str:
        """What another row of the same problem disproves of what this one says."""
        others = [other for other in self.rows if other.digest == row.digest and other.problem == row.problem]
        if row.status == "infeasible" and any(other.certified_epsilon is not None for other in others):
            return "says infeasible, and others have a table"
        if row.status == "optimal" and row.value is not None and self._above(row, row.value) > 2 * TOLERANCE:
            return "says optimal, and is not the best"
        return ""

    # ------------------------------------------------------------------------------------------- one backend

    def of(self, who: str) -> list[Row]:
        return [row for row in self.rows if row.who == who]

    def rate(self, who: str, test: Callable[[Row, float], bool], tolerance: float) -> float:
        """The share of its rows that pass. Of plans and orders there is no table of the solver to look at: only what
        became of them counts."""
        rows = [row for row in self.of(who) if row.kind in ("", ONE_ENTITY) or test == self.private_after_repair]
        return sum(test(row, tolerance) for row in rows) / max(len(rows), 1)

    def mean_seconds(self, who: str, tolerance: float = TOLERANCE) -> float | None:
        """The shifted geometric mean; None where something was not done and no limit says for how much to count it."""
        times = [self.time(row, tolerance) for row in self.of(who)]
        known = [time if done else row.limit for row, (time, done) in zip(self.of(who), times, strict=True)]
        return None if None in known else shifted_mean([value for value in known if value is not None], SHIFT)

    def time(self, row: Row, tolerance: float = TOLERANCE) -> tuple[float | None, bool]:
        """How long it took, and whether it was done."""
        done = row.seconds is not None and self.private_after_repair(row, tolerance)
        return row.seconds, done

    def profile(self, who: str, tolerance: float = TOLERANCE) -> list[float]:
        """For each problem that it has done, how many times the time of the fastest it took; sorted."""
        found = []
        for rows in self.problems.values():
            best = self._best(rows, tolerance)
            mine = self._best([row for row in rows if row.who == who], tolerance)
            if mine is not None and best is not None:
                found.append(mine / best)
        return sorted(found)

    def _best(self, rows: Iterable[Row], tolerance: float) -> float | None:
        times = [row.seconds for row in rows if self.time(row, tolerance)[1] and row.seconds is not None]
        return max(min(times), 1e-9) if times else None

    # ------------------------------------------------------------------------------------------- ours and the others

    def against(self, ours: str = OURS, tolerance: float = TOLERANCE) -> list[Against]:
        """Our engines against the fastest of the others that has done the same problem, in the same run."""
        found = []
        for name, rows in self.problems.items():
            for run in dict.fromkeys(row.run for row in rows):
                together = [row for row in rows if row.run == run]
                done = [row for row in together if self.time(row, tolerance)[1]]
                mine = _fastest([row for row in done if row.who == ours])
                others = [row for row in together if row.backend != ours]
                best = _fastest([row for row in done if row in others])
                found.append(Against(name, mine, best, _limit(others)))
        return found


@dataclass(frozen=True)
class Against:
    """One problem: our row, and that of the fastest other backend."""

    problem: str
    mine: Row | None
    other: Row | None
    limit: float | None = None
    """Where all the others ran into their time limit: the least of these."""

    @property
    def ours(self) -> float | None:
        """Our seconds."""
        return None if self.mine is None else self.mine.seconds

    @property
    def best(self) -> float | None:
        """Theirs."""
        return None if self.other is None else self.other.seconds

    @property
    def who(self) -> str:
        """Who is the fastest of the others."""
        return "" if self.other is None else self.other.who

    @property
    def ratio(self) -> float | None:
        """How many times faster ours is, at least that if the others ran into their limit."""
        return _quotient(self.limit if self.other is None else self.best, self.ours)

    @property
    def more(self) -> bool:
        """Whether the ratio says "more than"."""
        return self.other is None and self.ratio is not None

    @property
    def cpu_ratio(self) -> float | None:
        """How many times less of the processors ours takes: what else the machine did counts for little."""
        if self.mine is None or self.other is None:
            return None
        return _quotient(self.other.cpu, self.mine.cpu)


def _quotient(one: float | None, other: float | None) -> float | None:
    return one / max(other, 1e-9) if one is not None and other is not None else None


def _fastest(rows: Sequence[Row]) -> Row | None:
    return min(rows, key=lambda row: math.inf if row.seconds is None else row.seconds, default=None)


def _limit(rows: Sequence[Row]) -> float | None:
    """The least time limit of rows that all ran into theirs."""
    limits = [row.limit for row in rows if row.status == "timeout" and row.limit is not None]
    return min(limits) if limits and len(limits) == len(rows) else None


def shifted_mean(values: Sequence[float], shift: float) -> float:
    """`exp(mean(log(t + s))) - s`."""
    return math.exp(math.fsum(math.log(value + shift) for value in values) / len(values)) - shift


def ratios(found: Sequence[Against]) -> Mapping[str, float]:
    """The geometric mean and the least of the ratios, of times and of CPU times; empty without any.

    Of times, "more than" counts as that much. Of CPU times there is none where the others were ended.
    """
    told: dict[str, float] = {}
    for words, values in (
        ("", [one.ratio for one in found]),
        (", CPU", [one.cpu_ratio for one in found]),
    ):
        if known := [value for value in values if value is not None]:
            told |= {f"geometric mean{words}": shifted_mean(known, 0.0), f"least{words}": min(known)}
    return told
