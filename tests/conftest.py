"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("optdp", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("optdp")
