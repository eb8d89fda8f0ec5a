"""docs/papers.md: every link, file and name in it exists, and the walk through paper A misses nothing."""

from __future__ import annotations

import math
import re
from importlib import import_module
from pathlib import Path

import pytest

from optdp import Amplification, Generic, RealSum, solve

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAPERS = (DOCS / "papers.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?:problems|examples|tests|docs|optdp)/[\w./-]+\.(?:toml|py|md|csv)")
NAME = re.compile(r"optdp(?:\.\w+)+")

NUMBERED = {
    "Definition": 5, "Lemma": 3, "Theorem": 1, "Remark": 10, "Example": 2, "Algorithm": 5, "Claim": 2, "Fig.": 8,
    "Eq.": 12, "Notation": 1,
}  # fmt: skip
"""How many of each the paper has; counted in its text."""


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as mkdocs makes them."""
    found: set[str] = set()
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", heading.encode("ascii", "ignore").decode()).strip().lower()
        slug = start = re.sub(r"[-\s]+", "-", plain)
        number = 0
        while slug in found:
            number += 1
            slug = f"{start}_{number}"
        found.add(slug)
    return found


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_links_within_the_documentation(page: Path) -> None:
    known = {other: anchors(other) for other in DOCS.glob("*.md")}
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in known[target], link


def test_files_that_are_named() -> None:
    named = {match for code in CODE.findall(PAPERS) for match in FILE.findall(code)}
    assert len(named) > 30
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def resolved(name: str) -> object:
    """What an import name stands for: a module, or something in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


def test_names_that_can_be_imported() -> None:
    named = {code for code in CODE.findall(PAPERS) if NAME.fullmatch(code)}
    assert len(named) > 30
    for name in sorted(named):
        assert resolved(name) is not None, name


def numbers(place: str, kind: str) -> set[int]:
    """Which of a kind the first cell of a row names: "Eq. (8)", "Eqs. (9) to (11)", "Claims 1 and 2"."""
    plural = {"Eq.": "Eqs?\\.", "Fig.": "Figs?\\.", "Lemma": "Lemmas?"}.get(kind, f"{kind}s?")
    found: set[int] = set()
    for first, joint, last in re.findall(rf"{plural} \(?(\d+)\)?(?: (and|to) \(?(\d+)\)?)?", place):
        found |= set(range(int(first), int(last) + 1)) if joint == "to" else {int(n) for n in (first, last) if n}
    return found


def walk() -> list[list[str]]:
    """The rows of the walk through paper A."""
    section = PAPERS.split("### From front to back\n")[1].split("\n### ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


@pytest.mark.parametrize("kind", NUMBERED)
def test_nothing_of_paper_a_is_missing(kind: str) -> None:
    found = set().union(*(numbers(row[0].split(":")[0] + row[0], kind) for row in walk()))
    assert found == set(range(1, NUMBERED[kind] + 1))


def test_every_row_of_the_walk_leads_somewhere() -> None:
    rows = walk()
    assert len(rows) > 45
    for place, where, verdict in rows:
        assert LINK.search(where) or FILE.search(where) or NAME.search(where), place
        assert verdict, place


def test_the_constants_behind_two_corollaries() -> None:
    """Paper B, Corollaries 1 and 2: the tables' figures at 10,000 people, from optdp's answers."""
    part = PAPERS.partition("### Corollaries 1 and 2")[2].partition("\n## ")[0]
    log = math.log(1e6)
    constants = []
    for epsilon in ("0.2", "1"):
        found = solve(RealSum(n=10_000, epsilon=epsilon, delta="1e-6"))
        order = log ** (1 / 3) / (10_000 ** (5 / 6) * float(epsilon) ** (2 / 3))
        constants.append(f"{math.sqrt(found.mse) / 10_000 / order:.2f}")
    assert f"| 10,000 | {' | '.join(constants)} |" in part
    for eps0 in (0.5, 1, 2, 3):
        answer = solve(Amplification(Generic(), eps0=eps0, n=10_000, delta="1e-6"))
        order = min(1, eps0) * math.exp(eps0) * math.sqrt(log / 10_000)
        assert f"| {eps0} | {answer.value / order:.3f} ({answer.lower / order:.3f}) |" in part
