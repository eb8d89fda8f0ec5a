"""Settings for all tests, and nothing inherited from whoever started them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.command_line import Done, in_process
from tests.tiers import QUICK, RARE, SLOW, UNKNOWN

os.environ["OPTDP_QUIET"] = "1"  # lines of progress come by the clock

settings.register_profile("optdp", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("optdp")

# A shell has its background jobs ignore SIGINT, and nohup SIGHUP; their children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow and what is quick, before tests are chosen by their marks."""
    found = set()
    for item in items:
        test = item.nodeid.removeprefix("tests/")
        for tier, mark in ((QUICK, pytest.mark.quick), (SLOW, pytest.mark.slow), (RARE, pytest.mark.rare)):
            names = [name for name in tier if test.startswith(name)]
            found.update(names)
            if names:
                item.add_marker(mark)
    if len({item.path for item in items}) > 100:  # all were collected
        config.stash[UNKNOWN] = sorted({*SLOW, *RARE, *QUICK} - found)


@pytest.fixture
def command() -> Callable[..., Done]:
    """`optdp` with these arguments, in this process."""

    def run(*arguments: object) -> Done:
        found = in_process(*arguments, cwd=Path.cwd())
        return Done(found.returncode, found.stdout, found.stderr)

    return run


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes imports of these modules fail, as if they were not installed."""

    def remove(*names: str) -> None:
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return remove
