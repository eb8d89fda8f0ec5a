"""Would the tests notice? Small faults planted in the code that decides what is private.

A mutant is the package with one small fault: a `<` for a `<=`, a `+` for a `-`, a number off by one, a check left out.
Each is given to the tests that touch its line, the quickest first. A mutant that they all pass has survived: either
the fault changes nothing that anybody could see, or a test is missing.

Which test touches which line is found by one run of the tests of these rooms with coverage (`pytest-cov`), kept in
`build/mutants/touched.json`; remove that file after a change of the code or the tests. A sample of the mutants, the
same each time, is tried:

    python -m tests.bench mutants                                             # 25 of each module
    OPTDP_MUTANTS="optdp/single/certify.py:0" python -m tests.bench mutants    # all of one module; :9 would be nine
"""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "mutants"
TARGETS = (
    "optdp/single/certify.py", "optdp/plan/certify.py", "optdp/single/repair.py", "optdp/numbers/exact.py",
    "optdp/single/claims.py", "optdp/single/verify.py",
    "optdp/single/bound_proof.py", "optdp/single/format.py", "optdp/files/canonical.py",
    "optdp/artifact.py", "optdp/plan/format.py", "optdp/recheck",
    "optdp/people/observer.py", "optdp/single/watch.py", "optdp/single/added.py", "optdp/single/added_proof.py",
    "optdp/single/over_time.py", "optdp/plan/merged.py", "optdp/plan/products.py", "optdp/plan/inside.py",
    "optdp/plan/seeded_certify.py", "optdp/plan/seeded_format.py", "optdp/mechanism/seeded_maps.py",
    "optdp/plan/bound_proof.py", "optdp/plan/certificate.py",
)  # fmt: skip
TESTS = (
    "tests/artifact", "tests/single", "tests/plan", "tests/mechanism", "tests/people",
    "tests/numbers", "tests/bridges", "tests/order", "tests/recheck/test_recheck.py",
    "tests/recheck/test_crowds.py", "tests/recheck/test_orders.py",
    "tests/recheck/test_observers.py", "tests/recheck/test_observed_bounds.py",
    "tests/recheck/test_devices.py", "tests/shuffle/test_deployed.py",
    "tests/test_solution.py", "tests/test_verify_alone.py",
)  # fmt: skip
"""The tests that may notice."""
SAMPLE = 25
"""Mutants of each module."""
SECONDS = 120.0
"""What the tests of one mutant may take, measured on the sound code; one that takes ten times as long is killed."""
ALIKE = 6
"""How many cases of one parametrised test are tried."""

SWAPPED: dict[type[ast.AST], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is", ast.And: "or", ast.Or: "and", ast.Add: "-", ast.Sub: "+",
    ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "+", ast.LShift: ">>", ast.RShift: "<<", ast.Pow: "*",
    ast.BitOr: "&", ast.BitAnd: "|",
}  # fmt: skip
SIGNS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
OTHERS = {
    "min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor", "lower": "upper",
    "upper": "lower", "decimal_up": "decimal_down", "decimal_down": "decimal_up",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """The text between two offsets of a file replaced by another."""

    file: str
    line: int
    start: int
    end: int
    text: str
    said: str

    def applied(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


def mutants(file: str, source: str) -> Iterator[Mutant]:  # noqa: C901  one branch for each kind of fault
    """Every fault of the kinds above that still is Python."""
    starts = [0]
    for row in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(row.encode()))
    raw = source.encode()

    def offset(line: int, column: int) -> int:
        return len(raw[: starts[line - 1] + column].decode())

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    def fault(node: ast.expr | ast.stmt, start: int, end: int, text: str) -> Mutant:
        said = " ".join(f"{source[start:end]!s}  ->  {text}".split())
        return Mutant(file, node.lineno, start, end, text, said[:110])

    tree = ast.parse(source)
    ignored = _annotations(tree)
    for node in ast.walk(tree):
        if node in ignored:
            continue
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            (left, right), operator = (node.left, node.comparators[0]), type(node.ops[0])
            yield fault(node, *span(node), f"({_text(left)}) {SWAPPED[operator]} ({_text(right)})")
        elif isinstance(node, ast.Compare):
            for k in range(len(node.ops)):
                parts = [f"({_text(node.left)})"]
                for i, (other, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
                    sign = SWAPPED[type(other)] if i == k else SIGNS[type(other)]
                    parts.append(f"{sign} ({_text(right)})")
                yield fault(node, *span(node), " ".join(parts))
        elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED and not _texts(node):
            sign = SWAPPED[type(node.op)]
            yield fault(node, *span(node), f"(({_text(node.left)}) {sign} ({_text(node.right)}))")
        elif isinstance(node, ast.BoolOp):
            sign = f" {SWAPPED[type(node.op)]} "
            yield fault(node, *span(node), "(" + sign.join(f"({_text(value)})" for value in node.values) + ")")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            yield fault(node, *span(node), f"({_text(node.operand)})")
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield fault(node, *span(node), str(not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield fault(node, *span(node), str(node.value + 1))
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in OTHERS and isinstance(node.ctx, ast.Load):
                end = span(node)[1]
                yield fault(node, end - len(name), end, OTHERS[name])
        elif isinstance(node, ast.If | ast.While) and not isinstance(node.test, ast.Compare | ast.BoolOp):
            yield fault(node.test, *span(node.test), f"(not ({_text(node.test)}))")
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            yield fault(node, *span(node), "pass")


def _text(node: ast.expr) -> str:
    return ast.unparse(node)


def _texts(node: ast.BinOp) -> bool:
    """Whether it puts texts together; messages are no behaviour that these tests are about."""
    return any(isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", None), str)
               for side in (node.left, node.right))  # fmt: skip


def _annotations(tree: ast.AST) -> set[ast.AST]:
    """What is never run, or only says something: annotations, and the texts of errors."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            parts = [node.returns, *(argument.annotation for argument in every), *node.decorator_list]
        elif isinstance(node, ast.JoinedStr):
            parts = [node]
        elif (
            isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
        ):
            parts = [node.value]  # a union of types
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            parts = list(node.exc.args)
        elif isinstance(node, ast.If) and _text(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
            parts = [node]
        for part in parts:
            if part is not None:
                found.update(ast.walk(part))
    return found


class Durations:
    """A plugin of pytest that writes down how long each test took."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: object) -> None:
        self.seconds[report.nodeid] += report.duration  # type: ignore[attr-defined]

    def pytest_sessionfinish(self) -> None:
        if "PYTEST_XDIST_WORKER" not in os.environ:
            KEPT.mkdir(parents=True, exist_ok=True)
            (KEPT / "seconds.json").write_text(json.dumps(self.seconds))


def touched() -> tuple[dict[str, dict[int, list[str]]], dict[str, float]]:
    """For each line of the package the tests that run it, and how long each test takes."""
    lines, seconds = KEPT / "touched.json", KEPT / "seconds.json"
    if not lines.exists():
        print("one run of the tests with coverage: some twenty minutes", file=sys.stderr)
        KEPT.mkdir(parents=True, exist_ok=True)
        script = (
            "import sys, pytest; from tests.bench.mutants import TESTS, Durations\n"
            "sys.exit(pytest.main([*TESTS, '-q', '-n', 'auto', '--cov=optdp', '--cov-context=test', '--cov-report=', "
            "'-p', 'no:cacheprovider', '--timeout=3000'], plugins=[Durations()]))"
        )
        data = {"COVERAGE_FILE": str(KEPT / "coverage")}
        subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=os.environ | data, check=False)
        from coverage import CoverageData

        found = CoverageData(str(KEPT / "coverage"))
        found.read()
        table = {
            str(Path(file).relative_to(ROOT)): {
                line: sorted({context.partition("|")[0] for context in contexts if context})
                for line, contexts in found.contexts_by_lineno(file).items()
            }
            for file in found.measured_files()
        }
        lines.write_text(json.dumps(table))
    return {
        file: {int(line): tests for line, tests in rows.items()} for file, rows in json.loads(lines.read_text()).items()
    }, json.loads(seconds.read_text())


def chosen(tests: list[str], seconds: dict[str, float]) -> list[str]:
    """The tests to try, the quickest first, a few cases of each, until their time is used up."""
    count: Counter[str] = Counter()
    picked, spent = [], 0.0
    for test in sorted(tests, key=lambda name: (seconds.get(name, 1e9), name)):
        function = test.partition("[")[0]
        if test in seconds and count[function] < ALIKE and spent + seconds[test] <= SECONDS:
            count[function] += 1
            spent += seconds[test]
            picked.append(test)
    return picked


def verdict(mutant: Mutant, tree: Path, tests: list[str], limit: float) -> str:
    """Whether the tests notice: "killed", "timeout", or "survived"."""
    place = tree / mutant.file
    source = place.read_text()
    place.write_text(mutant.applied(source))
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    try:
        with subprocess.Popen(
            command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:  # fmt: skip
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return "timeout"
        return "survived" if code == 0 else "killed"
    finally:
        place.write_text(source)


def sampled() -> list[Mutant]:
    """The mutants to try, `module:number` of OPTDP_MUTANTS (0 for all of them), or some of each target."""
    wanted = os.environ.get("OPTDP_MUTANTS", "").split() or [f"{target}:{SAMPLE}" for target in TARGETS]
    found = []
    for item in wanted:
        name, _, number = item.partition(":")
        place = ROOT / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            short = str(file.relative_to(ROOT))
            every = sorted(set(mutants(short, file.read_text())), key=lambda m: (m.start, m.end, m.text))
            size = int(number) if number else SAMPLE
            found += random.Random(short).sample(every, size) if 0 < size < len(every) else every
    return found


def survivors(quick: bool) -> None:
    """Plant the faults, and list those that no test noticed."""
    lines, seconds = touched()
    found = sampled()[: 40 if quick else None]
    trees = [KEPT / f"tree-{k}" for k in range(os.cpu_count() or 1)]
    for tree in trees:
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("build", ".git", ".venv", ".*_cache", "__pycache__"))
    free, tally, begin = list(trees), Counter[str](), time.perf_counter()
    log = (KEPT / "survivors.txt").open("w")

    def attempt(mutant: Mutant) -> None:
        tests = chosen(lines.get(mutant.file, {}).get(mutant.line, []), seconds)
        said = "untouched"
        if tests:
            tree = free.pop()
            said = verdict(mutant, tree, tests, 60 + 10 * sum(seconds[test] for test in tests))
            free.append(tree)
        tally[said] += 1
        if said in ("survived", "untouched"):
            print(f"{said}  {mutant.file}:{mutant.line}  {mutant.said}  ({len(tests)} tests)", file=log, flush=True)
        if sum(tally.values()) % 20 == 0:
            print(
                f"{sum(tally.values())} of {len(found)}: {dict(tally)}, {time.perf_counter() - begin:.0f} s", flush=True
            )

    with log, ThreadPoolExecutor(len(trees)) as pool:
        list(pool.map(attempt, found))
    print((KEPT / "survivors.txt").read_text())
    noticed = tally["killed"] + tally["timeout"]
    print(f"{noticed} of {len(found)} noticed ({noticed / max(len(found), 1):.1%}); the others are above")
