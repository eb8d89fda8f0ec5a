"""The sampler in SQL loads into DuckDB as it is, and draws there what it draws in SQLite."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from optdp import Population, SingleLTE, solve
from optdp.export import export
from tests.export.languages import by_sqlite

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install duckdb")


def test_duckdb_draws_the_same(tmp_path: Path) -> None:
    table = solve(SingleLTE(Population.binomial(12, "0.3"), epsilon=1)).mechanism
    slots, random = table.drawing.slots, Random(5)
    draws = [(i % 13, {place: random.getrandbits(62) for place in range(slots)}) for i in range(200)]
    top = (1 << 62) - 1  # the last digit of the noise starts again, with the words of the next places
    draws += [
        (6, {place: top if place == slots - 2 else word for place, word in words.items()}) for _, words in draws[:5]
    ]
    draws += [(6, {0: 5})]  # words are missing
    (path,) = export(table, "sql", tmp_path / "there")
    base = duckdb.connect()
    base.execute(path.read_text())
    assert base.execute("SELECT * FROM optdp_self_test").fetchall() == []
    base.executemany("INSERT INTO optdp_requests VALUES (?, ?)", [(i, x) for i, (x, _) in enumerate(draws)])
    words = [(i, place, word) for i, (_, given) in enumerate(draws) for place, word in given.items()]
    base.executemany("INSERT INTO optdp_words VALUES (?, ?, ?)", words)
    found = base.execute("SELECT released FROM optdp_released ORDER BY id").fetchall()
    assert [released for (released,) in found] == [drawn.released for drawn in by_sqlite(table, draws, tmp_path)]
    assert base.execute("DESCRIBE optdp_released").fetchall()[2][1] == "BIGINT"
    assert len({released for (released,) in found}) > 10
    base.execute("UPDATE optdp_rows SET word0 = word0 + 1 WHERE input = 6 AND k = 1")
    assert base.execute("SELECT * FROM optdp_self_test").fetchall() != []
