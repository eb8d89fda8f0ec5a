"""Small artifacts with an ordinary epsilon."""

from __future__ import annotations

from pathlib import Path

import pytest

from optdp import Population, SingleLTE, solve


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`half.json` and `tenth.json` have the ordinary epsilons 0.5 and 0.1; that of `none.json` is infinite."""
    folder = tmp_path_factory.mktemp("artifacts")
    people = Population.binomial(5, "0.1")
    for name, epsilon in (("half", "0.5"), ("tenth", "0.1")):
        solve(SingleLTE(people, epsilon, method="geometric")).save(folder / f"{name}.json")
    solve(SingleLTE(people, "1")).save(folder / "none.json")
    return folder
