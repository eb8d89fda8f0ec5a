"""The tiers name tests that exist."""

from __future__ import annotations

import pytest

from tests.tiers import UNKNOWN


def test_every_name_is_a_test(request: pytest.FixtureRequest) -> None:
    if UNKNOWN not in request.config.stash:
        pytest.skip("only a part of the tests was collected")
    assert request.config.stash[UNKNOWN] == []
