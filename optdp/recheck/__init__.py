"""A second opinion on an artifact, a plan's folder or an order: Python's integers, and nothing else of optdp.

    python -m optdp.recheck a.json        python -m optdp.recheck plan/        python -m optdp.recheck order.json

This folder imports the standard library and itself. Copied anywhere it works alone: `python -m recheck a.json`.

It reads the file as text, builds every prior from the `problem`, and recomputes the claim. Exit code 0: every claim
that is listed holds; 1: one does not; 2: the file is at fault, or more work than `MOST_WORK` is asked for. It shares no
code with `optdp verify`, which uses balls of python-flint. Lower bounds of very large problems are left to that.

Each module proves at its top what it computes. Read them in this order, each rests on those before it:

    verdict       how a check can end, and how much work it may take
    fields        numbers, lists and tables as a file states them
    reading       bytes, strict JSON, the digest
    laws          exact laws on the integers, and enclosures of very long ones
    priors        from a population to the laws of its sum
    enclosures    what is not exact: quotients, exponentials, logarithms, noise
    entity        one table: privacy under the prior, ordinary privacy, errors
    observers     what somebody may know about the people, and the vertices of that
    boxes         the largest quotient over all vertices
    claims        what is demanded and claimed
    bounds        proofs of lower bounds
    single        the artifact of one entity: begin here to see how a check goes
    maps          the maps of a common word
    plans         several entities, finite tables
    seeded        several entities that share a secret word
    inside        several entities, one table of the total
    shares        several entities, shares of noise
    folder        the files of a plan, and their claims
    groups        an order's groups, made again from data
    order         an order and its claim
    devices       what the file of a shuffle protocol says
    shuffle       a shuffle protocol and its claim
"""

from __future__ import annotations

import os

from .folder import recheck_plan
from .order import recheck_order
from .reading import read_document
from .shuffle import recheck_shuffle
from .single import recheck_single
from .verdict import Failed, Findings, Refused, printable, work

__all__ = ["Failed", "Findings", "Refused", "recheck"]


def recheck(path: str | os.PathLike[str], *, allow_outside: bool = False) -> Findings:
    """Recompute the claim of an artifact, a plan's folder or an order; raise Refused or Failed unless it all holds.

    The files that an order names lie in its folder or below it, unless `allow_outside`.
    """
    token = work.set([0])
    try:
        if os.path.isdir(path):
            return recheck_plan(path)
        document = read_document(path)
        if document.get("format") == "optdp/order":
            return recheck_order(path, document, allow_outside)
        if document.get("format") == "optdp/shuffle":
            return recheck_shuffle(path, document)
        return recheck_single(path, document)
    except (RecursionError, MemoryError, OverflowError) as error:
        raise Refused(f"{printable(path)}: more than can be read. Found {type(error).__name__}.") from None
    except ValueError as error:  # a zero byte in a name, an integer that Python will not print
        raise Refused(f"{printable(path)}: {str(error)[:200]}.") from None
    finally:
        work.reset(token)
