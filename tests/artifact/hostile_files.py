"""Files that were made to harm, and commands that read them: `python -m tests.artifact.hostile_files seed count`.

A family is a function `(folder, random)` that writes files and returns the arguments of a command. Each command runs
in a process of its own that has everything imported; what it answers, how long it takes and how large it becomes is
measured there.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from tests.artifact import hostile_forms, hostile_sizes
from tests.artifact.hostile_forms import Family

SECONDS, MEGABYTES = 2.0, 512
"""What refusing a file may take."""

FAMILIES: tuple[Family, ...] = (
    hostile_forms.odd_value,
    hostile_forms.odd_value,
    hostile_forms.odd_value_sealed,
    hostile_forms.odd_value_sealed,
    hostile_forms.twice,
    hostile_forms.other_versions,
    hostile_forms.weights,
    hostile_forms.not_text,
    hostile_forms.long_lists,
    hostile_forms.many_keys,
    hostile_forms.enormous,
    hostile_forms.enormous,
    hostile_forms.long_tables,
    hostile_forms.wild_prices,
    hostile_forms.archives,
    hostile_forms.plan_folders,
    hostile_forms.plan_folders,
    hostile_forms.orders,
    hostile_forms.paths,
    hostile_forms.tomls,
    hostile_forms.tomls,
    hostile_forms.csvs,
    hostile_sizes.sizes,
    hostile_sizes.sizes,
    hostile_sizes.prices,
    hostile_sizes.long_words,
    hostile_sizes.large_plans,
    hostile_sizes.large_plans,
    hostile_sizes.large_orders,
    hostile_sizes.absurd_problems,
)


# ---------------------------------------------------------------------- measuring


@dataclass(frozen=True)
class Answer:
    """What a command did with a hostile file."""

    number: int
    family: str
    command: str
    code: int
    """The exit code; -1 if something else than a refusal came out, -2 if it had to be killed."""
    words: str
    seconds: float
    cpu: float
    megabytes: float

    @property
    def fine(self) -> bool:
        """Answered as a command may answer, within the limits; of the time only what the processor spent is counted."""
        return self.code in (0, 1, 2, 3) and self.cpu < SECONDS and self.megabytes < MEGABYTES


def case(folder: Path, seed: int, number: int) -> tuple[str, list[str]]:
    """The `number`-th hostile file: its family and the command to run."""
    random = Random(seed * 1_000_003 + number)
    family = FAMILIES[number % len(FAMILIES)]
    folder.mkdir()
    return family.__name__, family(folder, random)


def answer(number: int, family: str, argv: list[str]) -> Answer:
    """Run a command in this process, as the program would."""
    from optdp.cli import main as cli

    said, printed = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["optdp", *_patience(family), *argv]
    gc.collect()
    _forget_peak()
    begin, cpu, code = time.perf_counter(), time.process_time(), -1
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
            cli.main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    except BaseException as error:  # whatever else comes out would be a traceback
        said.write(f"{type(error).__name__}: {error}")
    finally:
        sys.argv = before
    spent = time.perf_counter() - begin, time.process_time() - cpu
    words = said.getvalue()
    if "Traceback" in words or (code in (1, 2, 3) and not words.strip()):
        code = -1
    largest = _peak()
    return Answer(number, family, argv[0], code, " ".join(words.split())[:160], *spent, largest)


def _patience(family: str) -> list[str]:
    """What is right in form and enormous in meaning is read as one reads the files of strangers."""
    return ["--patience", "1"] if hasattr(hostile_sizes, family) else []


def _forget_peak() -> None:
    """Begin to measure memory anew: to make a hostile file may take more of it than to refuse it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> float:
    """The most megabytes since then; since the beginning where the system cannot tell."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def serve(seed: int, numbers: list[int], patience: float) -> None:
    """Answer the cases, a line of JSON for each. Nothing of one case is left for the next: a process of its own makes
    the files, another one reads them, and whoever is killed is killed for its own file.
    """
    sys.stdin = open(os.devnull)  # noqa: SIM115 - a command must not wait for words
    _import_everything()
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        hostile_forms.prepare(Path(home))
        gc.collect()
        gc.freeze()
        for number in numbers:
            folder = Path(home) / str(number)
            family, argv = json.loads(_apart(lambda: json.dumps(case(folder, seed, number)), 600.0)[0])  # noqa: B023
            text, code, spent = _apart(lambda: json.dumps(asdict(answer(number, family, argv))), patience)  # noqa: B023
            if code == 0:
                print(text, flush=True)
            else:
                words = f"killed after {spent[1]:.0f} s" if code == -signal.SIGKILL else f"ended by {code}"
                print(json.dumps(asdict(Answer(number, family, argv[0], -2, words, *spent, 0.0))), flush=True)
            if os.path.exists("trace-of-a-pickle"):
                found = Answer(number, family, argv[0], -3, "a pickle was loaded", 0.0, 0.0, 0.0)
                print(json.dumps(asdict(found)), flush=True)
                os.rmdir("trace-of-a-pickle")
            shutil.rmtree(folder, ignore_errors=True)


def _import_everything() -> None:
    """So that no file is charged for it."""
    import optdp

    for module in pkgutil.walk_packages(optdp.__path__, "optdp."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def _apart(work: Callable[[], str], patience: float) -> tuple[str, int, tuple[float, float]]:
    """What `work` says in a process of its own, how that ended, and the seconds it took by the clock and of processor.

    It is killed when it has used `patience` seconds of processor time, or ten times that by the clock.
    """
    read, write = os.pipe()
    begin = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            text = work()
            with open(write, "w") as file:
                file.write(text)
        except BaseException:
            traceback.print_exc()
            os._exit(70)
        os._exit(0)
    os.close(write)
    os.set_blocking(read, False)
    poll, said = select.poll(), b""
    poll.register(read, select.POLLIN)
    while time.perf_counter() - begin < 10 * patience and _processor(pid) < patience:
        if poll.poll(200):
            piece = os.read(read, 1 << 16)
            if not piece:
                break
            said += piece
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(read)
    _, status, used = os.wait4(pid, 0)
    spent = time.perf_counter() - begin, used.ru_utime + used.ru_stime
    return said.decode(), os.waitstatus_to_exitcode(status), spent


def _processor(pid: int) -> float:
    """The seconds of processor time that a process has used so far."""
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def answers(seed: int, count: int, patience: float = 20.0, families: Sequence[str] = ()) -> Iterator[Answer]:
    """The answers to all cases, or to those of some families."""
    wanted = [i for i in range(count) if not families or FAMILIES[i % len(FAMILIES)].__name__ in families]
    command = [sys.executable, "-m", "tests.artifact.hostile_files", str(seed), str(patience)]
    quiet = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=quiet, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        with worker.stdin:
            json.dump(wanted, worker.stdin)
        heard = 0
        for line in worker.stdout:
            found = Answer(**json.loads(line))
            heard += found.code != -3
            yield found
    if worker.returncode or heard != len(wanted):
        raise RuntimeError(f"The worker ended with {worker.returncode} after {heard} of {len(wanted)} cases.")


MEASURED = """import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, used = os.wait4(pid, 0)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss)"""
"""Started by a small process: the kernel counts the memory of whoever starts a program as that program's."""


def through_the_program(seed: int, numbers: list[int]) -> Iterator[Answer]:
    """The same by a real process for each: start-up included, memory as the kernel saw it."""
    for number in numbers:
        with tempfile.TemporaryDirectory() as home:
            family, argv = case(Path(home) / "case", seed, number)
            with open(Path(home) / "said", "w+b") as said:
                begin = time.perf_counter()
                command = [sys.executable, "-S", "-c", MEASURED, sys.executable, "-m", "optdp"]
                command += [*_patience(family), *argv]
                try:
                    worker = subprocess.run(
                        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, check=True
                    )
                except ValueError:  # no program can be given such an argument
                    continue
                status, cpu, memory = map(float, worker.stdout.split())
                seconds = time.perf_counter() - begin
                said.seek(0)
                words = said.read().decode("utf-8", "replace")
            code = -1 if "Traceback" in words else os.waitstatus_to_exitcode(int(status))
            yield Answer(number, family, argv[0], code, " ".join(words.split())[:160], seconds, cpu, memory / 1024)


if __name__ == "__main__":
    serve(int(sys.argv[1]), json.load(sys.stdin), float(sys.argv[2]))
