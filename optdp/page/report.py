"""report(path): the page about whatever lies there, after all of its claims were recomputed."""

from __future__ import annotations

from pathlib import Path


def report(path: str | Path, title: str = "") -> bytes:
    """The bytes of an HTML page about an artifact, the folder of a plan, or an order; raises unless its claims hold."""
    place = Path(path)
    if place.is_dir():
        return _plan(place, title)
    if _is_order(place):
        from optdp.mallows.artifact import verify_order
        from optdp.page import order

        return order.page(verify_order(place), place.name, title)
    from optdp.artifact.verify import verify
    from optdp.page import single

    return single.page(verify(place), place.name, title)


def sources(path: str | Path) -> list[Path]:
    """The files that a page about `path` is made from: it must not be written over them."""
    place = Path(path)
    if place.is_dir():
        return [place / "plan.json", *sorted(place.glob("party-*.json"))]
    if _is_order(place):
        from optdp.mallows.artifact import read_order

        return [place, *read_order(place).files(place.resolve().parent)]
    return [place]


def _plan(folder: Path, title: str) -> bytes:
    from optdp.artifact.plan import read_plan, verify_plan
    from optdp.page import plan

    found = verify_plan(folder)
    spec = read_plan(folder)[2]["problem"]  # as the file has it: with a title and units, if it says any
    return plan.page(found, folder.resolve().name, spec, title)


def _is_order(place: Path) -> bool:
    from optdp.order_commands import is_order

    return is_order(place)
