"""Commands about orders, typed in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from optdp.cli.main import main

Said = tuple[int, str, str]
Run = Callable[..., Said]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The exit code of `optdp` with these arguments, and what it printed."""

    def call(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["optdp", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return int(stopped.value.code or 0), said.out, said.err

    return call
