"""report(source): the page about whatever lies there, after all of its claims were recomputed."""

from __future__ import annotations

from pathlib import Path

from optdp.artifact import Opened, OpenedMatrix, OpenedOrder, OpenedPlan, OpenedShuffle, open_artifact
from optdp.report import order, plan, protocol, single

REPORTED = (OpenedMatrix, OpenedPlan, OpenedOrder, OpenedShuffle)
"""What there are pages about."""


def report(source: str | Path | Opened, title: str = "", *, allow_outside: bool = False) -> bytes:
    """The bytes of an HTML page about an artifact, a plan's folder, an order or a shuffle protocol.

    Raises unless its claims hold.

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
        case OpenedShuffle() as found:
            return protocol.deployed(found, title)
    raise AssertionError
