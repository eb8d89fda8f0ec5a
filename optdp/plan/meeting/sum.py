"""A secure sum: m parties add up their integers with MPyC, and nothing but the sum is opened.

Each party splits its value with Shamir's scheme of degree m - 1, so that the shares of all m parties are needed to open
anything; the shares of the sum are committed to before any is revealed. Up to m - 1 parties that put together all they
saw learn the sum, what follows from it and their own values, and nothing else, whether they follow the protocol or not:
every message that they can send stands for some value of theirs, chosen before they see anything of the sum. So m - 1
parties always learn the value of the last one, as the sum less their own; with two parties, each learns the value of
the other. What the sum must not show about a value has to be hidden by noise in it before it comes here.

What is not promised: a party may give any value, and one that has seen the shares of all others may keep its own back.
It then knows the sum and the others do not; all of them name it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from optdp.errors import ProblemError, SolverError
from optdp.plan.meeting.common_word import Contribution, common_word
from optdp.plan.meeting.keys import Key
from optdp.plan.meeting.meeting import Meeting, meet
from optdp.plan.meeting.opening import opened
from optdp.plan.meeting.roster import Place
from optdp.plan.meeting.terms import Agreement

ALLOWANCE = 4096
"""The bytes that one party may send besides 150 for each other party; it sends less than 1,500."""
_SMALLEST_FIELD = 2**64


def secure_sum(
    value: int,
    *,
    bound: int,
    plan: str,
    run: str,
    party: int,
    places: Sequence[Place],
    key: Key,
    timeout: float = 60.0,
    listen: str | None = None,
    word: Contribution | None = None,
    on_opening: Callable[[], object] = lambda: None,
    on_result: Callable[[int], object] = lambda _: None,
) -> int:
    """Return the sum of the values of all parties; the value of this one leaves the process only as random shares.

    All must give the same `bound`, the largest size of a value; `meet` says what the others are. With `word` the value
    is this party's contribution to a common word, and what is added is what is looked up for that word.
    """
    value, bound = operator.index(value), operator.index(bound)  # no NumPy integer, which would wrap
    for right, rule, found, advice in (
        (0 <= bound < 2**128, "bound must be at least 0 and below 2^128", bound, "Take it from the plan"),
        (abs(value) <= bound, f"A value must lie between {-bound} and {bound}", "another", "Use the table of the plan"),
    ):
        if not right:
            raise ProblemError(f"{rule}. Found {found}. {advice}.")

    async def work(meeting: Meeting) -> int:
        own = value if word is None else word.look_up(await common_word(meeting, value, word))
        return await add(meeting, own, bound)

    return meet(
        work,
        agreement=Agreement(plan, run, f"sum 1 bound {bound}{'' if word is None else ' common word'}"),
        party=party, places=places, key=key, threshold=len(places) - 1, allowance=ALLOWANCE + 150 * len(places),
        timeout=timeout, listen=listen, on_opening=on_opening, on_result=on_result,
    )  # fmt: skip


async def add(meeting: Meeting, value: int, bound: int) -> int:
    """Share the value, add up the shares of all parties, open the sum."""
    rt, most = meeting.rt, meeting.m * bound
    number = rt.SecFld(min_order=max(2 * most + 1, _SMALLEST_FIELD))
    field = number.field
    order = int(field.order)
    shared = rt.sum(rt.input(number(value % order)))
    shares = await opened(meeting, await rt.gather(shared))
    points = [(j + 1, [share]) for j, share in enumerate(shares)]
    total = int(meeting.mpyc.thresha.recombine(field, points)[0]) % order
    total = total if total <= most else total - order
    if total < -most:
        raise SolverError(
            f"A sum of {meeting.m} values must lie between {-most} and {most}. Found another one. Some party did not "
            "follow the protocol: count the sum as released, and check that all run the same version of optdp."
        )
    return total
