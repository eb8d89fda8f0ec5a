"""The counts are in DuckDB. How do I release them there, without optdp in the database?

The sampler that `optdp export --to sql` writes loads unchanged. The random words come from the operating system:
DuckDB's own random numbers are not made for secrets.
"""

import secrets

import duckdb

from optdp import Population, SingleLTE, solve
from optdp.export import export

solve(SingleLTE(Population.binomial(100, "0.1"), epsilon="0.3")).save("sick-leave.json")
(sampler,) = export("sick-leave.json", "sql", "sampler")

base = duckdb.connect()
base.execute("CREATE TABLE offices AS SELECT i AS office, 8 + i % 5 AS away FROM range(20) t(i)")
base.execute(sampler.read_text())
print(f"self test: {base.execute('SELECT * FROM optdp_self_test').fetchall() or 'fine'}")

base.execute("INSERT INTO optdp_requests SELECT office, away FROM offices")
(slots,) = base.execute("SELECT slots FROM optdp_shape").fetchone()
words = [(i, place, secrets.randbits(62)) for i in range(20) for place in range(slots)]
base.executemany("INSERT INTO optdp_words VALUES (?, ?, ?)", words)
base.execute("CREATE TABLE released AS SELECT id AS office, released FROM optdp_released")
base.execute("DELETE FROM optdp_words")  # words and inputs together tell the noise
base.execute("DELETE FROM optdp_requests")

rows = base.execute("SELECT office, released FROM released ORDER BY office").fetchall()
print(f"{len(rows)} offices released, of type {base.execute('DESCRIBE released').fetchall()[1][1]}")
print(f"office 0: we publish {rows[0][1]}")
