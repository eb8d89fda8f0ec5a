"""Take part in a plan: draw one report from one's own table and add it to the others' without showing it; or, where the
release is drawn inside, add one's input to the others' and draw from the table of the total, all without showing it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from optdp.errors import ProblemError, SolverError
from optdp.mechanism.cuts import WORD
from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.plan.format import Member
from optdp.plan.inside_draw import SearchTable, draw, traffic
from optdp.plan.meeting.common_word import Contribution
from optdp.plan.meeting.keys import Key
from optdp.plan.meeting.meeting import Meeting, meet
from optdp.plan.meeting.opening import opened
from optdp.plan.meeting.roster import Place
from optdp.plan.meeting.runs import Run, begin, folder_beside, place_of
from optdp.plan.meeting.sum import secure_sum
from optdp.plan.meeting.terms import Agreement, checked

BOUND = 1 << 62
"""No report is larger than this in size: what the parties agree on for the arithmetic of the sum."""


@dataclass(frozen=True)
class Aggregate:
    """What every party learns."""

    total: int
    divisor: Fraction
    identity: str
    """The plan that all parties followed."""
    run: str
    again: bool = False
    """Whether the run was opened before, and this is what was recorded then."""

    @property
    def average(self) -> float:
        """The aggregate divided by the plan's public divisor."""
        return float(self.total / self.divisor)


def join(
    member: Member,
    value: int,
    *,
    run: str,
    places: Sequence[Place],
    key: Key,
    state: Path | None = None,
    timeout: float = 60.0,
    listen: str | None = None,
    before_report: Callable[[bool], object] = lambda _: None,
) -> Aggregate:
    """Run the secure sum of a plan as the party whose file is given, all that it needs.

    The report of a run is drawn once and recorded in the folder `state` (by default beside the key) before anything is
    sent; a second attempt sends the same. Before any share is sent the parties compare the plan's identity, the run
    and the list of keys. Only the sum of all reports is opened. A run that was opened gives what was recorded then,
    and nobody is met. One run is one release.

    In a plan with a common word this party's contribution to the word is drawn and recorded, and then what all parties
    have committed to, so that a second attempt has the same word and the same report.

    Of a plan whose release is drawn inside nobody draws a report. On record are this party's random bits, so that a
    second attempt draws the same release; only the release is opened.

    `before_report` is called when the arguments have been checked, before anything is drawn or recorded, with whether
    there is a record of this run already: if not, what follows is a new release.
    """
    party, m = member.party, len(member.problem.parties)
    if len(places) != m:
        raise ProblemError(f"The list must have the {m} parties of the plan. Found {len(places)}.")
    last = member.problem.parties[party].last
    if not 0 <= value <= last:  # no message names the input
        raise ProblemError(f"--input must lie in 0..{last}. Found another. Give the true sum of this party's people.")
    folder = folder_beside(key.path) if state is None else state
    inside = _search(member)
    table, look_up = member.table, None
    made: Callable[[], int] = lambda: int(table.sample(value)[0])  # noqa: E731
    if isinstance(table, SeededMaps):  # the contribution to the common word is on record, which gives the report
        look_up, made = partial(table.report, value), partial(secrets.randbits, WORD)
    elif inside is not None:
        made = partial(secrets.randbits, inside.bits)
    known = os.path.lexists(place_of(folder, member.identity, party, run))
    checked(Agreement(member.identity, run, "check"), party, places, key, timeout, listen)
    before_report(known)
    record = begin(folder, member.identity, party, run, value, made)
    divisor, again = member.problem.divisor, record.aggregate is not None
    total = record.aggregate
    if total is None:
        shared = Shared(record, places, key, timeout, listen)
        total = _added(shared, look_up) if inside is None else _drawn(shared, inside, member, value)
    return Aggregate(total, divisor, member.identity, run, again)


@dataclass(frozen=True)
class Shared:
    """What every meeting needs."""

    record: Run
    places: Sequence[Place]
    key: Key
    timeout: float
    listen: str | None


def _added(shared: Shared, look_up: Callable[[int], int] | None) -> int:
    record = shared.record
    assert record.report is not None
    word = None if look_up is None else Contribution(look_up, record.salt, record.commitments, record.committed)
    return secure_sum(
        record.report, bound=BOUND, plan=record.plan, run=record.run, party=record.party, places=shared.places,
        key=shared.key, timeout=shared.timeout, listen=shared.listen, word=word,
        on_opening=record.opening, on_result=record.opened,
    )  # fmt: skip


def _search(member: Member) -> SearchTable | None:
    """The table of the total, if the release is drawn inside."""
    if member.problem.method != "inside":
        return None
    assert isinstance(member.table, NoiseMatrix)  # which the file of such a plan holds
    return SearchTable(member.table)


def _drawn(shared: Shared, search: SearchTable, member: Member, value: int) -> int:
    """Draw the release together with the others; the report on record is this party's random bits."""
    record, sizes = shared.record, [population.last for population in member.problem.parties]

    async def work(meeting: Meeting) -> int:
        return await draw(meeting.rt, search, sizes, value, record.report, partial(_opened, meeting))

    return meet(
        work, agreement=Agreement(record.plan, record.run, "drawn inside 1"), party=record.party, places=shared.places,
        key=shared.key, threshold=(len(sizes) - 1) // 2, allowance=traffic(search, sizes), timeout=shared.timeout,
        listen=shared.listen, on_opening=record.opening, on_result=record.opened,
    )  # fmt: skip


async def _opened(meeting: Meeting, share: Any) -> int:
    """The value of which all parties have committed to a share: so many neighbouring ones as fix it, all agreeing."""
    field, points = type(share), [(j + 1, [one]) for j, one in enumerate(await opened(meeting, share))]
    few = meeting.threshold + 1
    runs = [points[j : j + few] for j in range(len(points) - few + 1)]
    found = {int(meeting.mpyc.thresha.recombine(field, run)[0]) % int(field.modulus) for run in runs}
    if len(found) > 1:
        raise SolverError(
            "All shares of the release must fit together. Found some that do not. Some party did not follow the "
            "protocol: count it as released, and check that all run the same version of optdp."
        )
    return found.pop()
