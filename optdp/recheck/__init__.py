"""A second opinion on an artifact, a plan's folder or an order: Python's integers, and nothing else of optdp.

    python -m optdp.recheck a.json        python -m optdp.recheck plan/        python -m optdp.recheck order.json

This folder imports the standard library and itself. Copied anywhere it works alone: `python -m recheck a.json`.

It reads the file as text, builds every prior from the `problem`, and recomputes the claim. Exit code 0: every claim
that is listed holds; 1: one does not; 2: the file is at fault, or more work than `MOST_WORK` is asked for. It shares no
code with `optdp verify`, which uses balls of python-flint. The claim `lower_bound` is left to `optdp verify`.

Each module proves what it computes at its top. In the order in which they can be read:

    verdict, fields                     what is refused, and numbers in text
    archive, reading, table             what a file that is not refused says
    laws, priors                        exact laws of sums of contributions
    enclosures, geometric               what is not exact: quotients, exponentials, powers of q
    entity, claims, single              one table: privacy, ordinary privacy, errors, and its claim
    plans, joint                        several tables without tails, and their sum
    sgdl, sharer, shared                several tables with shares of noise, and their sum
    folder                              the files of a plan, and their claims
    columns, near, groups, order        an order: its groups made again, and its claim
"""

from __future__ import annotations

import os

from .folder import recheck_plan
from .order import recheck_order
from .reading import read_document
from .single import recheck_single
from .verdict import Failed, Findings, Refused, printable, work

__all__ = ["Failed", "Findings", "Refused", "recheck"]


def recheck(path: str | os.PathLike[str]) -> Findings:
    """Recompute the claim of an artifact, a plan's folder or an order; raise Refused or Failed unless it all holds."""
    token = work.set([0])
    try:
        if os.path.isdir(path):
            return recheck_plan(path)
        document = read_document(path)
        check = recheck_order if document.get("format") == "optdp/order" else recheck_single
        return check(path, document)
    except (RecursionError, MemoryError, OverflowError) as error:
        raise Refused(f"{printable(path)}: more than can be read. Found {type(error).__name__}.") from None
    except ValueError as error:  # a zero byte in a name, an integer that Python will not print
        raise Refused(f"{printable(path)}: {str(error)[:200]}.") from None
    finally:
        work.reset(token)
