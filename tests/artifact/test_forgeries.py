"""Files that were forged with care: nothing untrue is accepted."""

from __future__ import annotations

import copy
from pathlib import Path
from random import Random

from tests.artifact import forgeries


def test_originals_are_true(tmp_path: Path) -> None:
    """And the judge is no rubber stamp: a claim that is a little lower is untrue to it."""
    for document in forgeries.originals():
        path = tmp_path / "a.json"
        path.write_bytes(forgeries.sealed(document))
        assert forgeries.untrue(path) == []
        for name in ("epsilon", "mae", "mse", "worst_error", "baseline_mae"):
            lower = copy.deepcopy(document)
            lower["claim"][name] = str(float(lower["claim"][name]) * 0.999)
            path.write_bytes(forgeries.sealed(lower))
            assert forgeries.untrue(path) or (name == "epsilon" and document["problem"]["method"] != "lp"), name
        if document["provenance"].get("prices") is not None:
            lower = copy.deepcopy(document)
            lower["claim"]["lower_bound"] = str(float(lower["claim"]["lower_bound"]) * 1.001 + 1e-6)
            path.write_bytes(forgeries.sealed(lower))
            assert forgeries.untrue(path)


def test_no_untrue_artifact_is_accepted(tmp_path: Path) -> None:
    found = forgeries.tally(tmp_path, 5, 500)
    assert found["accepted and untrue"] == found["odd refusals"] == 0
    assert found["accepted and true"] > 40
    assert found["refused"] > 150


def test_no_untrue_plan_is_accepted(tmp_path: Path) -> None:
    found = forgeries.tally_plans(tmp_path, 6, 150)
    assert found["accepted and untrue"] == found["odd refusals"] == 0
    assert found["accepted and true"] > 10


def test_every_change_changes_something() -> None:
    every = forgeries.originals()
    for change in forgeries.CHANGES:
        documents = copy.deepcopy(every)
        for seed, document in enumerate(documents):
            change(document, Random(seed), every)
        assert documents != every, change
