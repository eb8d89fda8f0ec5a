"""Programs that grow: HiGHS holds their rows and columns, and whoever is chosen solves them as they are."""

from __future__ import annotations

import highspy

from optdp.programs.backends import chosen
from optdp.programs.highs import held, read, run
from optdp.programs.program import Answer


def solved(highs: highspy.Highs) -> Answer:
    """The program that HiGHS holds, solved: by HiGHS, going on from where it was, or by the backend that is chosen.

    Where that gives no prices of the rows, HiGHS prices them.
    """
    who = chosen.get()
    if who.own:
        run(highs)
        return read(highs)
    program = held(highs)
    answer = who.solve(program)
    if answer.duals is not None or answer.x is None:
        return answer
    return who.price(program, answer) or answer
