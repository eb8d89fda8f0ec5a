from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plan.meeting.crew import Crew


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    crew = Crew(tmp_path_factory.mktemp("parties"))
    yield crew
    crew.finish()
