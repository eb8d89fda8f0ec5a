"""Writes `problems/sets/checksums.toml`, the checksums of the problem sets: `python -m tests.comparison.checksums`."""

from __future__ import annotations

from optdp import library
from optdp.comparison import sets

if __name__ == "__main__":
    found = {member.name: member.problem for member in sets.every_member()}
    lines = [
        f'"{name}" = "{sets.checksum(problem)}"\n' for name, problem in sorted(found.items()) if sets.summed(problem)
    ]
    library.sets()[sets.CHECKSUMS].write_text("".join(lines))
    print(f"{len(lines)} of {len(found)} programs have a checksum")
