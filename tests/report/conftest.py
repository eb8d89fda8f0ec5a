"""Artifacts that the pages of these tests are about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from optdp import Groups, MultiLTE, OrderShuffle, Population, SingleLTE, solve
from optdp.files.canonical import canonical
from optdp.report.report import report
from optdp.single.format import write

EVERY = ["sick-leave", "small", "large", "two-by-two", "several", "hostile", "offices", "order"]
HOSTILE = "</script></title></style><script>window.owned=1</script><img src=x onerror='window.owned=1'>\"'&\u2028\x07"


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file or folder of every sort."""
    folder = tmp_path_factory.mktemp("artifacts")
    sick = solve(SingleLTE(Population.binomial(100, "0.1"), "0.3"))
    sick.save(folder / "sick-leave.json")
    solve(SingleLTE(Population.binomial(20, "0.5"), "0.3", fallback_epsilon=2)).save(folder / "small.json")
    solve(SingleLTE(Population.binomial(5000, "0.1"), "0.05", method="geometric")).save(folder / "large.json")
    solve(SingleLTE(Population.binomial(1, "0.5"), "1", tail="none")).save(folder / "two-by-two.json")
    several = [Population.iid(12, ["0.5", "0.3", "0.2"]), Population.iid(12, ["0.4", "0.3", "0.3"])]
    solve(SingleLTE(several, "1")).save(folder / "several.json")
    artifact = sick.artifact()
    said = dict(artifact.problem) | {"title": HOSTILE, "notes": HOSTILE}
    write(replace(artifact, problem=said, sha256=""), folder / "hostile.json")
    plan = solve(
        MultiLTE([Population.binomial(8, "0.5"), Population.binomial(6, "0.4")], "0.5", f=[1, 2], method="joint")
    )
    plan.save(folder / "offices")
    (folder / "groups.json").write_text(canonical({"n": 9, "groups": [[0, 1, 2], [2, 3, 5], [4, 6, 7, 8]]}))
    groups = Groups.of([[0, 1, 2], [2, 3, 5], [4, 6, 7, 8]], 9)
    problem = OrderShuffle(groups, 1, budget=1.0, spec={"file": str(folder / "groups.json")})
    solve(problem).save(folder / "order.json")
    return {place.name.removesuffix(".json"): place for place in folder.iterdir()}


@pytest.fixture(scope="session")
def pages(places: dict[str, Path]) -> dict[str, bytes]:
    return {name: report(places[name]) for name in EVERY}
