"""Every command, Python block and notebook of README and docs is run, and prints what the page shows."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

import optdp
from tests.command_line import ROOT
from tests.pages import Reader, fences, held, line_agrees

ELSEWHERE = {"tasks": "tests/journeys runs it, and looks at what comes out"}
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.stem not in ELSEWHERE)]

GIVEN = {
    "sick-leave.toml": "cp problems/use-cases/sick-leave.toml .",
    "sick-leave.json": "optdp solve problems/use-cases/sick-leave.toml --out sick-leave.json",
    "problem.toml": "cp problems/use-cases/sick-leave.toml problem.toml",
    "from-somebody.json": "cp sick-leave.json from-somebody.json",
    "two-offices": "optdp solve small-plan.toml --out two-offices",
    "plan": "cp -r two-offices plan",
    "order.json": "optdp solve problems/use-cases/clinic-visits.toml --out order.json",
    "survey.toml": "cp problems/use-cases/survey-shuffled.toml survey.toml",
    "clinic-visits.csv": "cp problems/use-cases/clinic-visits.csv .",
    "sampler": "optdp export sick-leave.json --to c --out c && cc -std=c99 -O2 -DSAMPLER_MAIN -o sampler c/sampler.c",
    "sampler.py": "optdp export sick-leave.json --to python --out python && cp python/sampler.py .",
    "values.csv": "(echo x; seq 0 10 990) > values.csv",
    "steps.csv": "(echo hundreds; for i in $(seq 2000); do echo $((i * 7 % 150)); done) > steps.csv",
    "commute.csv": "(echo way; for way in 'on foot' bicycle bicycle bus bus tram train car car car;"
    ' do yes "$way" | head -2000; done) > commute.csv',
    "ward.json": "optdp solve ward.toml --out ward.json",
    "three": "mkdir three && (echo 'parties = ['; for i in 1 2 3; do optdp party-key --out party-$i.pem --port 900$i"
    " | tail -n 1; done; echo ']') > three/parties.toml",
}
"""What pages take as given, and how it is made: once, and copied to whoever names it before making it."""

PROBLEMS = {
    "ward.toml": """
kind = "single-lte"
epsilon = "0.3"
fallback_epsilon = "0.4"
tail = "none"
population = {kind = "binomial", n = 100, p = "0.1"}
""",
    "small-plan.toml": """
kind = "multi-lte"
epsilon = "0.5"
method = "joint"
parties = [{kind = "binomial", n = 4, p = "0.5"}, {kind = "binomial", n = 4, p = "0.5"}]
""",
}
"""From which some of it is made."""

NEVER = {
    r"pip install": "the tests run in what is installed",
    r"make ": "the tests are one of these",
    r"docker ": "needs a daemon",
    r"optdp init\s*(#|$)": "asks in a terminal; tests/cli has one",
    r"optdp aggregate|from optdp.artifact import open_member": "waits for other parties; tests/plan/meeting has them",
    r"dask |.*--scheduler": "needs a cluster; tests/sweeps has one",
    r"from joblib": "starts processes of its own",
    r"until ": "goes on for hours",
    r"cp -r optdp/recheck": "is for a clone; tests/recheck runs the second checker without optdp",
    r".*--set small|.*results-|.*docs/solvers": "the page shows what it gives; tests/comparison holds it to that",
    r"optdp compare problem\.toml --timeout 60": "takes minutes; the page on solvers has all backends",
    r".*--backend piqp": "needs the extra [solvers]",
    r"def solve_mine": "is a pattern to fill in",
}
"""Commands and blocks that are not run here, by how they begin, and why."""

COSTLY: dict[str, str] = {
    r"optdp observers|from optdp import load, ladder": "a program for each of nine observers",
    r"optdp audit .*--command": "millions of draws by a program of its own",
    r"optdp solve (problems/paper-a/)?two-offices\.toml": "every method for two offices",
    r"optdp compare \S*sick-leave": "every backend in a process of its own",
    r"optdp sweep sick-leave\.toml": "starts dask",
    r"from optdp import MultiLTE": "searches for plans",
    r"optdp curve problems/paper-e": "searches for an order at every point",
}
"""Commands and blocks that are run by `make test-all` alone, by how they begin, and why."""


@pytest.fixture(scope="session")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    shutil.copytree(ROOT / "problems", folder / "problems")
    for name, text in PROBLEMS.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def costly(page: Path) -> bool:
    """Whether a page has something that `make test` leaves out."""
    found = fences(page.read_text(encoding="utf-8"))
    lines = [line for fence in found for line in ([fence.body] if fence.kind == "python" else fence.body.splitlines())]
    return any(re.match(beginning, re.sub(r"^[\w-]*\$ ", "", line)) for line in lines for beginning in COSTLY)


def read(page: Path, folder: Path, given: Path, skipped: dict[str, str]) -> None:
    shutil.copytree(ROOT / "problems", folder / "problems")
    reader = Reader(folder, GIVEN, given)
    faults = []
    found = fences(page.read_text(encoding="utf-8"))
    for number, fence in enumerate(found):
        where = f"{page.relative_to(ROOT)}, line {fence.line}"
        try:
            if fence.title:
                (folder / fence.title).write_text(fence.body, encoding="utf-8")
            if fence.kind == "toml":
                tomllib.loads(fence.body)
            elif fence.kind == "session":
                reader.session(fence.body, skipped, where)
            elif fence.kind == "python" and not any(re.match(start, fence.body) for start in skipped):
                after = found[number + 1] if number + 1 < len(found) else fence
                reader.python(fence.body, after.body if after.kind == "text" else None, where)
            assert fence.kind in ("session", "python", "toml", "text", "sql"), f"A block of kind {fence.kind!r}."
        except Exception as fault:
            faults.append(f"{where}: {type(fault).__name__}: {fault}")
    assert not faults, "\n\n".join(faults)


@pytest.fixture(autouse=True)
def no_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "how-to"], ids=lambda page: page.stem)
def test_page(page: Path, tmp_path: Path, given: Path) -> None:
    read(page, tmp_path, given, NEVER | COSTLY)


@pytest.mark.parametrize("page", [page for page in PAGES if costly(page)], ids=lambda page: page.stem)
def test_page_with_all_that_is_costly(page: Path, tmp_path: Path, given: Path) -> None:
    read(page, tmp_path, given, NEVER)


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs").rglob("*.ipynb")), ids=lambda notebook: notebook.stem)
def test_notebook(notebook: Path, tmp_path: Path, given: Path) -> None:
    """The cells run in order, and print what is stored beside them; what is drawn is not compared."""
    reader = Reader(tmp_path, {}, given)
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert cells
    for cell in cells:
        shown = "".join(line for output in cell["outputs"] for line in output.get("text", []))
        reader.python("".join(cell["source"]), shown, f"{notebook.name}, cell {cell['execution_count']}")


def test_scripts_are_inserted_where_pages_name_them() -> None:
    """A formatter that takes the line for Python takes it apart, and then readers see the line."""
    for page in (ROOT / "docs").rglob("*.md"):
        for line in page.read_text(encoding="utf-8").splitlines():
            if '"examples/' in line and line.lstrip().startswith("--"):
                assert re.fullmatch(r' *--8<-- "examples/\w+\.py"', line), (page.name, line)


def test_every_example_is_in_the_gallery() -> None:
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r'--8<-- "examples/(\w+).py"', gallery)
    assert sorted(shown) == sorted({path.stem for path in (ROOT / "examples").glob("*.py")} - {"pictures"})


def test_every_public_name_is_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
    assert sorted(re.findall(r"^::: optdp\.(\w+)$", pages, flags=re.MULTILINE)) == sorted(optdp.__all__)


def test_what_differs_is_noticed() -> None:
    assert line_agrees("MAE 0.943 (gap 9.0e-09, 0.02 s)", "MAE  0.943506 (gap 8.98e-09, 17.3 s)".replace("  ", " "))
    assert line_agrees("sum 1,026 ...", "sum 1,026 of them")
    assert not line_agrees("MAE 0.943", "MAE 0.9451")
    assert not line_agrees("order 422", "order 426")
    assert not line_agrees("sensitivity 420", "theta 420")
    with pytest.raises(AssertionError, match="in this order"):
        held("b\na", "a\nb", "a page")
    with pytest.raises(AssertionError, match="at all"):
        held("a 3\n...", "a 4\nb", "a page")


def test_what_a_comment_shows_is_held_to_the_value(tmp_path: Path) -> None:
    reader = Reader(tmp_path, {}, tmp_path)
    reader.python("x = 2 / 3\nx  # 0.6667, two thirds\nprint(x, 2)  # 0.66..., 2\n", None, "a page")
    with pytest.raises(AssertionError, match="is shown"):
        reader.python("x  # 0.6768\n", None, "a page")
