"""A secure sum: m parties add up their integers over TCP with MPyC, and nothing but the sum is opened.

What is hidden, and from whom: each party splits its value with Shamir's scheme of degree m - 1, so that the shares of
all m parties are needed to open anything. Up to m - 1 parties that follow the protocol and put together all they saw
learn the sum, what follows from it and their own values, and nothing else. So m - 1 parties always learn the value of
the last one, as the sum less their own; with two parties, each learns the value of the other. What the sum must not
show about a value has to be hidden by noise in it before it comes here.

What is not promised: a party that does not follow the protocol can change the sum. The connections are plain TCP: who
reads all that a party sends and receives learns its value, and who can reach the port can make the sum fail or pose as
a party. Between machines, lay the connections through a VPN or SSH tunnels. When a run fails while the sum is being
opened, some parties may have seen the sum; the error then says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import operator
import re
import threading
import time
from collections.abc import Sequence

from optdp.errors import ProblemError, SolverError
from optdp.plan.secure_sum.meeting import Meeting, interface_of, read_addresses
from optdp.plan.secure_sum.runtime import load_mpyc

_one_at_a_time = threading.Lock()  # MPyC keeps its runtime in global variables


def secure_sum(
    value: int,
    *,
    party: int,
    addresses: Sequence[str],
    session: str,
    bound: int,
    timeout: float = 60.0,
    listen: str | None = None,
) -> int:
    """Return the sum of the values of all parties; the value of this one leaves the process only as random shares.

    `addresses` has "host:port" of every party, in one order for all; `party` is the place of this one, from 0. All
    must give the same `session` (a hex digest of what they agreed on) and `bound` (the largest size of a value): these
    are compared before any share is sent. Listens on the loopback address, unless `listen` names another one. Returns
    or raises within `timeout` seconds; when one party fails, so does every other that does not have the sum yet.
    """
    end = time.monotonic() + timeout
    value, bound = operator.index(value), operator.index(bound)  # no NumPy integer, which would wrap
    places = read_addresses(addresses)
    m = len(places)
    for right, rule, found, advice in (
        (m >= 2, "A secure sum needs at least 2 parties", f"{m} addresses", "Give that of each party"),
        (0 <= party < m, f"party must be from 0 to {m - 1}", party, "Give the place of this party in the addresses"),
        (0 <= bound < 2**128, "bound must be at least 0 and below 2^128", bound, "Take it from the plan"),
        (abs(value) <= bound, f"A value must lie between {-bound} and {bound}", "another", "Use the table of the plan"),
        (re.fullmatch("[0-9a-f]{8,256}", session), "session must be a hex digest", "another text", "Use the plan's"),
        (0 < timeout < math.inf, "timeout must be a number of seconds above 0", timeout, "Give one such as 60"),
    ):
        if not right:
            raise ProblemError(f"{rule}. Found {found}. {advice}.")
    interface = interface_of(places[party][0], listen)
    runtime = load_mpyc()
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise ProblemError(
            "secure_sum must be called where no event loop runs. Found a running one. Use asyncio.to_thread."
        )
    if not _one_at_a_time.acquire(blocking=False):
        raise ProblemError("A process can be in one sum at a time. Found one under way. Start a process per party.")
    try:
        return asyncio.run(Meeting(runtime, party, places, session, bound, timeout, end).run(value, interface))
    except (OSError, RuntimeError, ValueError) as error:  # among them: MPyC stops the loop at a share it cannot read
        raise SolverError(
            f"The secure sum must run to its end. Found: {error} Check that all parties run the same version of optdp "
            "and of MPyC, and start all of them again."
        ) from None
    finally:
        _one_at_a_time.release()
