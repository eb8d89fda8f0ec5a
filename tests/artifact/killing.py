"""Saves that are killed: `python -m tests.artifact.killing folder random|lines|together number` prints what was found.

A process of its own, which forks: a child saves one thing in place of another and is killed with SIGKILL, either at a
random moment or at a certain line of the modules that write. Then the target must be the old thing or the new one,
whole; and the next save must leave nothing else in the folder.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from optdp import MultiLTE, Population, SingleLTE, export, solve
from optdp.errors import OptdpError
from optdp.files import atomic
from optdp.order.format import write_order
from optdp.order.mechanism import Groups
from optdp.order.problem import OrderShuffle
from optdp.plan import format as plan
from optdp.single import format

Save = Callable[[Path], None]
State = dict[str, bytes] | bytes | None
WATCHED = {atomic.__file__, atomic.__file__}


def things() -> dict[str, tuple[Save, Save]]:
    """By name of the target, two things to save there that differ in length."""
    small, large = (solve(SingleLTE(Population.binomial(n, "0.5"), "1")).artifact() for n in (4, 60))
    two, three = (solve(MultiLTE([Population.binomial(2, "0.5")] * m, "1", method="geometric")) for m in (2, 3))
    first, second = (solve(OrderShuffle(Groups.of([[0, 1], [2, 3]], n), "1", ordering="rcm")) for n in (4, 9))
    return {
        "a.json": (lambda path: format.write(small, path), lambda path: format.write(large, path)),
        "plan": (lambda path: plan.write_plan(two, path), lambda path: plan.write_plan(three, path)),
        "order.json": (lambda path: write_order(first, path), lambda path: write_order(second, path)),
        "sampler": (_exporting(small), _exporting(large)),
        "samplers": (_exporting(small, large), _exporting(large, small, small)),
    }


def _exporting(*tables: format.Artifact) -> Save:
    """How samplers in C are saved: a folder with two files, or one for each party of a plan; made before, once."""
    subjects = [export.of_table(table.matrix(table.inputs[1])) for table in tables]
    if len(tables) > 1:
        subjects = [replace(subject, folder=f"party-{i}") for i, subject in enumerate(subjects)]
    target = export.TARGETS["c"]
    made = {subject.artifact.sha256: target.make(subject) for subject in subjects}
    ready = replace(target, make=lambda subject: made[subject.artifact.sha256])
    return lambda path: list(export.write(subjects, ready, path)).clear()


def state(path: Path) -> State:
    """What is at a path."""
    if path.is_dir():
        return {str(item.relative_to(path)): item.read_bytes() for item in path.rglob("*") if item.is_file()}
    return path.read_bytes() if path.exists() else None


def killed(act: Callable[[], None], delay: float | None = None) -> bool:
    """Run `act` in a child, kill it after `delay` seconds, and say whether it died of that."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def dying_at(count: int, act: Callable[[], None]) -> Callable[[], None]:
    """`act`, killed before the `count`-th line of the modules that write."""
    left = count

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in WATCHED:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    def traced() -> None:
        sys.settrace(trace)
        act()

    return traced


def after_death(path: Path, allowed: list[State], save: Save, tally: Counter[str]) -> None:
    """Count what a dead writer left, and whether the next save tidies up."""
    found, neighbours = state(path), [item.name for item in path.parent.iterdir() if item != path]
    tally["killed"] += 1
    tally["torn"] += found not in allowed
    tally["absent"] += found is None
    tally["new"] += found == allowed[-1]
    tally["left behind"] += bool(neighbours)
    save(path)
    tally["left after the next save"] += [item.name for item in path.parent.iterdir()] != [path.name]


def by_line(folder: Path, stride: int, tally: Counter[str]) -> None:
    """Kill before every `stride`-th line, with an earlier thing there and without."""
    for name, (old, new) in things().items():
        for earlier in (True, False):
            place = folder / f"{name}-{earlier}" / name
            place.parent.mkdir()
            new(place)
            wanted = state(place)
            for line in itertools.count(1, stride):
                _clear(place)
                if earlier:
                    old(place)
                before = state(place)
                if not killed(dying_at(line, lambda place=place, new=new: new(place))):  # type: ignore[misc]
                    break
                after_death(place, [before, wanted], new, tally)


def at_random(folder: Path, count: int, tally: Counter[str]) -> None:
    """Kill at random moments while one thing after the other is saved."""
    chance, every = random.Random(count), things()
    for turn in range(count):
        name, (old, new) = list(every.items())[turn % len(every)]
        place = folder / f"{turn}" / name
        place.parent.mkdir()
        old(place)
        first = state(place)
        new(place)
        allowed = [first, state(place)]

        def forever(old: Save = old, new: Save = new, place: Path = place) -> None:
            while True:
                old(place)
                new(place)

        assert killed(forever, chance.uniform(0, 0.05))
        after_death(place, allowed, old, tally)


def together(folder: Path, seconds: int, tally: Counter[str]) -> None:
    """Two processes save to one path, a third reads it, and others are killed beside them all the time."""
    for name, (old, new) in things().items():
        place = folder / name / name
        place.parent.mkdir()
        allowed = []
        for save in (old, new):
            save(place)
            allowed.append(state(place))
        end = time.monotonic() + seconds

        def busy(save: Save, place: Path = place, end: float = end) -> None:
            while time.monotonic() < end:
                save(place)

        writers = [_start(lambda save=save, busy=busy: busy(save)) for save in (old, new)]  # type: ignore[misc]
        while time.monotonic() < end:
            if place.is_file():
                tally["reads"] += 1
                tally["torn"] += place.read_bytes() not in allowed
            tally["killed"] += killed(lambda busy=busy, new=new: busy(new), 0.01)  # type: ignore[misc]
        tally["failed saves"] += sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 for pid in writers)
        tally["torn"] += state(place) not in allowed
        old(place)
        tally["left after the next save"] += [item.name for item in place.parent.iterdir()] != [place.name]


def _start(act: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            act()
        except OptdpError as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(2)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return child


def _clear(place: Path) -> None:
    if place.is_dir():
        atomic.remove_folder(place)
    else:
        place.unlink(missing_ok=True)


def run(folder: Path, way: str, number: int) -> dict[str, int]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "tests.artifact.killing", str(folder), way, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found | {"words on stderr": len(done.stderr.split())}


WAYS = {"random": at_random, "lines": by_line, "together": together}


def main() -> None:
    tally: Counter[str] = Counter()
    WAYS[sys.argv[2]](Path(sys.argv[1]), int(sys.argv[3]), tally)
    print(json.dumps(tally))


if __name__ == "__main__":
    main()
