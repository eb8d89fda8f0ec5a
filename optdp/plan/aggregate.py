"""Take part in a plan: draw one report from one's own table and add it to the others' without showing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from optdp.errors import ProblemError
from optdp.plan.format import Member
from optdp.plan.secure_sum import secure_sum

BOUND = 1 << 62
"""No report is larger than this in size: what the parties agree on for the arithmetic of the sum."""


@dataclass(frozen=True)
class Aggregate:
    """What every party learns."""

    total: int
    divisor: Fraction
    identity: str
    """The plan that all parties followed."""

    @property
    def average(self) -> float:
        """The aggregate divided by the plan's public divisor."""
        return float(self.total / self.divisor)


def join(
    member: Member, value: int, addresses: Sequence[str], timeout: float = 60.0, listen: str | None = None
) -> Aggregate:
    """Run the secure sum of a plan as the party whose file is given, all that it needs.

    Before anything is sent the parties compare the plan's identity. Each draws one report from its own table; only the
    sum of all is opened. One call is one release.
    """
    if len(addresses) != len(member.problem.parties):
        raise ProblemError(
            f"--parties must list {len(member.problem.parties)} addresses, one for each party of the plan. "
            f"Found {len(addresses)}."
        )
    party = member.party
    last = member.problem.parties[party].last
    if not 0 <= value <= last:  # no message names the input
        raise ProblemError(f"--input must lie in 0..{last}. Found another. Give the true sum of this party's people.")
    report = member.table.sample(value)[0]
    total = secure_sum(
        report, party=party, addresses=addresses, session=member.identity, bound=BOUND, timeout=timeout, listen=listen
    )
    return Aggregate(total, member.problem.divisor, member.identity)
