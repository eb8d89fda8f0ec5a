"""report(source): the page about whatever lies there, after all of its claims were recomputed."""

from __future__ import annotations

from pathlib import Path

from optdp.artifact import Opened, OpenedMatrix, OpenedOrder, OpenedPlan, open_artifact
from optdp.report import order, plan, single

REPORTED = (OpenedMatrix, OpenedPlan, OpenedOrder)
"""What there are pages about."""


def report(source: str | Path | Opened, title: str = "", *, allow_outside: bool = False) -> bytes:
    """The bytes of an HTML page about an artifact, the folder of a plan, or an order; raises unless its claims hold.

    `allow_outside` is as in `open_artifact`.
    """
    match open_artifact(source, *REPORTED, allow_outside=allow_outside):
        case OpenedMatrix() as found:
            return single.page(found.verified, found.path.name, title)
        case OpenedPlan() as found:
            spec = found.plan.document["problem"]  # as the file has it: with a title and units, if it says any
            return plan.page(found.verified, found.path.resolve().name, spec, title)
        case OpenedOrder() as found:
            return order.page(found.verified, found.path.name, title)
    raise AssertionError
