"""Files that were changed, forged or made to harm, saves that are killed, the same bytes twice: all in full size."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.artifact import forgeries, hostile_files, killing, mutations, two_opinions
from tests.twenty_problems import contents, started

console = Console(width=160)


def hostile(quick: bool) -> None:
    """All of it; `quick` is a twentieth."""
    part = 20 if quick else 1
    _count("byte-level mutations", lambda folder: mutations.tally(folder, 2026, 10_000 // part))
    _count("forged artifacts", lambda folder: forgeries.tally(folder, 2026, 6500 // part))
    _count("forged plans", lambda folder: forgeries.tally_plans(folder, 2026, 3500 // part))
    kinds = {"artifact": 6000 // part, "plan": 2000 // part, "order": 3000 // part}
    kinds |= {"watched": 4000 // part, "watched plan": 2000 // part, "protocol": 3000 // part}
    _count("forged files before both checkers", lambda folder: two_opinions.tally(folder, 2026, kinds))
    for way, number in (("random", 100), ("lines", part), ("together", 3)):
        _count(f"kill -9, {way}", lambda folder, way=way, number=number: Counter(killing.run(folder, way, number)))  # type: ignore[misc]
    _answers(5000 // part, 50 // (5 if quick else 1))
    _identical(quick)


def _count(title: str, run: Callable[[Path], Counter[str]]) -> None:
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder))
    table = Table("what", "how many", title=f"{title}, {time.perf_counter() - begin:.0f} s")
    for name, number in sorted(found.items()):
        table.add_row(name, f"{number:,}")
    console.print(table)


def _answers(count: int, program: int) -> None:
    """Hostile files in a worker, and a sample of them through the program itself."""
    ways = {
        "in a worker": hostile_files.answers(7, count),
        "by the program": hostile_files.through_the_program(7, [i * 101 for i in range(program)]),
    }
    for title, answers in ways.items():
        begin, tally, slow, most, largest = time.perf_counter(), Counter[str](), [], 0.0, 0.0
        for answer in answers:
            tally[f"exit {answer.code}" if answer.code >= 0 else "TRACEBACK" if answer.code == -1 else "KILLED"] += 1
            most, largest = max(most, answer.cpu), max(largest, answer.megabytes)
            if not answer.fine:
                slow.append(answer)
        table = Table("what", "figure", title=f"hostile files {title}, {time.perf_counter() - begin:.0f} s")
        for name, number in sorted(tally.items()):
            table.add_row(name, f"{number:,}")
        table.add_row("most seconds of processor time", f"{most:.2f}")
        table.add_row("most megabytes", f"{largest:.0f}")
        table.add_row(
            f"over {hostile_files.SECONDS:g} s or {hostile_files.MEGABYTES} MB, or no answer", f"{len(slow):,}"
        )
        console.print(table)
        for answer in slow:
            console.print(answer, markup=False)


def _identical(quick: bool) -> None:
    """The same problems by several processes: threads, cores and hash seeds differ."""
    table = Table("problems", "files", "runs", "files that differ", "seconds", title="the same bytes")
    for which in ("PROBLEMS",) if quick else ("PROBLEMS", "LARGER"):
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found = []
            for i, (threads, seed, cores) in enumerate(((1, 0, 1), (2, 1, 2), (1, 4711, 2), (2, 99, 1))):
                place = Path(folder) / str(i)
                run = started(place, threads, seed, which, cores)
                _, said = run.communicate()
                assert run.returncode == 0, said
                found.append(contents(place))
        differ = {name for one in found for name in one if any(one[name] != other.get(name) for other in found)}
        seconds = f"{time.perf_counter() - begin:.0f}"
        table.add_row(which.lower(), str(len(found[0])), str(len(found)), ", ".join(sorted(differ)) or "none", seconds)
    console.print(table)
