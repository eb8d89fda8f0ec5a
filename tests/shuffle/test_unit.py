"""Values that are multiples of a unit: the same as values that were divided by it, all figures in their own units."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from optdp import MetricShuffle, ProblemError, solve
from optdp.artifact import OpenedShuffle, open_artifact
from optdp.errors import ArtifactError, CertificateError
from optdp.export.client import python_client
from optdp.files.canonical import canonical
from optdp.numbers.source import Source
from optdp.recheck import Failed, recheck
from optdp.shuffle import analysis, messages
from optdp.shuffle.format import _spelled, read_design, verify_design


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [("geo", {}), ("sgdl", {"honest": 7}), ("hybrid", {"local_epsilon": "0.013"})],
)
def test_the_same_as_values_that_were_divided(mechanism: str, more: dict[str, Any]) -> None:
    whole = solve(MetricShuffle(mechanism, 9, 600, "1e-3", "0.005", 500, unit=100, **more))
    more = {name: value if name == "honest" else str(float(value) * 100) for name, value in more.items()}
    divided = solve(MetricShuffle(mechanism, 9, 6, "1e-3", "0.5", 5, **more))
    assert [distance for distance, _ in whole.profile] == [100, 200, 300, 400, 500]
    for (_, one), (_, other) in zip(whole.profile, divided.profile, strict=True):
        assert 100 * one == pytest.approx(other, rel=1e-6)
    assert whole.c == divided.c
    assert [100 * epsilon for _, epsilon in whole.turnout] == pytest.approx([each for _, each in divided.turnout])
    assert whole.bits_per_user == divided.bits_per_user
    assert whole.eps_geo == pytest.approx(divided.eps_geo, rel=1e-6)
    for name in ("mae", "rmse"):
        assert getattr(whole, name) == pytest.approx(100 * getattr(divided, name), rel=1e-6)
    assert 100 * whole.local_epsilon == pytest.approx(divided.local_epsilon, rel=1e-6)


def test_what_does_not_fit() -> None:
    with pytest.raises(ProblemError, match="k must be a multiple of unit = 7"):
        MetricShuffle("geo", 9, 100, "1e-4", "0.1", 7, unit=7)
    with pytest.raises(ProblemError, match="max_distance must be a multiple"):
        MetricShuffle("geo", 9, 100, "1e-4", "0.1", unit=10)
    with pytest.raises(ProblemError, match="without quantum"):
        MetricShuffle("geo", 9, 100, "1e-4", "0.1", 10, unit=10, quantum=10)
    with pytest.raises(ProblemError, match="unit is for geo"):
        MetricShuffle("rr", 9, 100, "1e-4", "0.1", 10, unit=10)
    protocol = solve(MetricShuffle("geo", 2, 100, "1e-4", "0.1", 10, unit=10)).protocol()
    with pytest.raises(ProblemError, match=r"multiples of unit = 10. Found 1 others, the first for person 1: 15"):
        protocol.check([10, 15])


def _forged(path: Path, change: Any) -> None:
    document = json.loads(path.read_text())
    change(document)
    bare = {key: value for key, value in document.items() if key != "sha256"}
    document["sha256"] = hashlib.sha256(canonical(bare).encode()).hexdigest()
    path.write_text("".join(_spelled(document)), encoding="ascii")


def test_as_a_file(tmp_path: Path) -> None:
    """Solved, verified twice, run by optdp and by an exported client, and refused when it claims a little more."""
    path = tmp_path / "pay.json"
    solve(MetricShuffle("geo", 40, 3000, "1e-4", "0.004", 300, unit=100)).save(path)
    design = open_artifact(path, OpenedShuffle).verified.deployed
    assert recheck(path).status == "PASS"
    values = analysis.read_values(design, [[str(100 * (i % 31)) for i in range(40)]], ["pay"])
    with pytest.raises(ProblemError, match="multiples of unit = 100"):
        analysis.read_values(design, [["150"] * 40], ["pay"])
    with pytest.raises(ProblemError, match="multiple of unit = 100"):
        analysis.only(design, ["150"])
    (tmp_path / "m.jsonl").write_text(
        "".join(messages.spelled(design, part) for part in analysis.randomized(design, values, Source(3)))
    )
    found = analysis.estimate(design, messages.collected(design, tmp_path / "m.jsonl"))
    assert abs(found["sum"] - values.sum()) < 3 * found["within_95"]
    assert found["sum"] % 100 == 0
    client = tmp_path / "client.py"
    client.write_bytes(python_client(design)["client.py"])
    run = [sys.executable, str(client)]
    assert subprocess.run([*run, "--self-test"], check=True, capture_output=True).returncode == 0
    assert subprocess.run([*run, "150"], check=False, capture_output=True).returncode != 0
    assert subprocess.run([*run, "200"], check=True, capture_output=True).returncode == 0

    kept = path.read_bytes()
    for name in ("epsilon", "local_epsilon"):
        _forged(path, lambda given, name=name: given["claim"].update({name: str(float(given["claim"][name]) * 0.999)}))
        with pytest.raises((ArtifactError, CertificateError)):
            verify_design(path)
        with pytest.raises(Failed):
            recheck(path)
        path.write_bytes(kept)
    _forged(path, lambda given: given["claim"]["profile"].__setitem__(2, "0.0035"))
    with pytest.raises(CertificateError):
        verify_design(path)
    with pytest.raises(Failed):
        recheck(path)
    path.write_bytes(kept)
    for change in ({"unit": 50}, {"unit": 1}, {"unit": True}):
        _forged(path, lambda given, change=change: given["data"].update(change))
        with pytest.raises(Exception, match="unit"):
            read_design(path)
        path.write_bytes(kept)
