"""What a command of optdp answered."""

from __future__ import annotations

from typing import NamedTuple


class Done(NamedTuple):
    code: int
    out: str
    err: str

    def refused(self, words: str, code: int = 2) -> None:
        """One line on stderr that says the words, nothing on stdout, no traceback."""
        assert self.code == code, self
        assert words in self.err
        assert len(self.err.strip().splitlines()) == 1, self.err
        assert self.err.startswith("optdp: ")
        assert "Traceback" not in self.err
        assert self.out == ""
