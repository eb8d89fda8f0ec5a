"""People who stay away, and people who collude: how many of n must do as the design says.

The claim of a design with `honest = h` holds if at least `h` of the `n` people add their noise, whoever they are. The
others may stay away, send what they like, and tell everybody what they sent and what they hold; they are not protected
themselves.

**Why `h` people are the worst case.** What the others send depends on nobody's messages, and whoever is told it can
take it off. So what is left are the messages of some `h' >= h` people, and two data sets that differ in `m` of them.
If `m <= h`, take `h` people with these among them: everything is computed from what these `h` release, and from the
messages of the rest, which have one law for both data sets. If `m > h`, which only happens at distances above `h`, take
the `m` who differ, in the same way. A bound for `h` people who hide the difference, and for up to `min(d, n)` who are
in it, holds for all `h'`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from optdp.errors import ProblemError
from optdp.numbers.exact import Number, show, shown, to_fraction

SHARES = ("0.95", "0.9", "0.8", "0.7", "0.6", "0.5")
"""The shares of honest people that a table of epsilon has."""


def honest(value: Number | None) -> Fraction | None:
    """A share of all people, below 1, or a number of them, from 2."""
    if value is None:
        return None
    found = to_fraction(value, "honest")
    if not (0 < found < 1 or (found.denominator == 1 and found >= 2)):
        raise ProblemError(
            "honest must be a share of all people, such as 0.8, or a whole number of them from 2. Found "
            f"{shown(value)}. Leave it out if all of them add their noise."
        )
    return found


def fewest(wanted: Fraction | None, n: int) -> int:
    """How many of n people must add their noise."""
    if wanted is None:
        return n
    found = math.ceil(wanted * n) if wanted < 1 else int(wanted)
    if found > n:
        raise ProblemError(f"honest must be at most n. Found {show(wanted)} with n = {n:,}.")
    return found


def fewest_of_two(wanted: Fraction | None, n: int) -> int:
    """The same where nobody hides alone: two people at least."""
    if (found := fewest(wanted, n)) < 2:
        raise ProblemError(f"honest must leave at least two people. Found {found} of {n:,}.")
    return found


def words(n: int, least: int) -> str:
    """Who must add noise, in a sentence."""
    if least == n:
        return (
            f"All {n:,} people must add their noise and tell nobody what they sent: with fewer, epsilon is larger."
            if n > 1
            else "The one person must add noise."
        )
    return (
        f"At least {least:,} of the {n:,} people must add their noise, whoever they are; the others may stay away, "
        "send anything, and tell."
    )


def counts(n: int, least: int, smallest: int = 1) -> list[int]:
    """The numbers of honest people that a table has: all of them, some shares, and what the design counts on."""
    found = {n, least, *(math.ceil(Fraction(share) * n) for share in SHARES)}
    return sorted((count for count in found if count >= smallest), reverse=True)


def response_meaning(sent: str, what: str, everybody: bool) -> str:
    """What is promised of one randomized message from each person, and on what assumptions."""
    whose, rest = f"one person's {what}", "all n people randomize as stated"
    if not everybody:
        whose = f"the {what} of one of those who randomize as stated"
        rest = (
            "as many people randomize as stated as honest says, whoever they are; the others may stay away, send "
            "anything, and tell"
        )
    return (
        f"Everyone sends {sent} through a shuffler. If {whose} were different, nothing that can be concluded from all "
        "messages, without seeing who sent which, would be more than e^epsilon times likelier, plus delta: (epsilon, "
        f"delta)-differential privacy. It assumes an honest shuffler, and that {rest}; without the shuffler each "
        "message is private with local_epsilon only."
    )
