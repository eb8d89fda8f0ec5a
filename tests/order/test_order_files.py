"""Orders as files and commands: written, verified, used; and everything that must be refused, in one line."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optdp.errors import ArtifactError, CertificateError
from optdp.files.canonical import canonical
from optdp.order.format import read_order, verify_order

Run = Callable[..., tuple[int, str, str]]

PROBLEM = """
kind = "order-shuffle"
alpha = 1.0
ordering = "{ordering}"
budget = 1
[groups]
points = "places.csv"
columns = ["x", "y"]
radius = {radius}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(8)
    points = draw.random((60, 2))
    lines = [f"{x:.6f},{y:.6f}" for x, y in points]
    (tmp_path / "places.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    (tmp_path / "answers.csv").write_text("y\n" + "\n".join(f"a{i}" for i in range(60)) + "\n")
    (tmp_path / "p.toml").write_text(PROBLEM.format(ordering="rcm", radius=0.2))
    return tmp_path


@pytest.fixture
def order(folder: Path, run: Run) -> Path:
    code, said, wrong = run("solve", folder / "p.toml", "--out", folder / "order.json")
    assert code == 0, wrong
    assert "sensitivity, exact" in said
    return folder / "order.json"


def forge(path: Path, **changes: Any) -> None:
    """Change entries and seal the file again, as a skilled forger would."""
    document = json.loads(path.read_text())
    for name, value in changes.items():
        place, _, inner = name.partition("__")
        if inner:
            document[place][inner] = value
        else:
            document[place] = value
    body = {key: value for key, value in document.items() if key != "sha256"}
    document["sha256"] = hashlib.sha256(canonical(body).encode()).hexdigest()
    path.write_text(canonical(document) + "\n")


def test_there_and_back(folder: Path, order: Path, run: Run) -> None:
    code, said, _ = run("solve", folder / "p.toml", "--json")
    figures = json.loads(said)
    keys = "n width sensitivity paper_sensitivity theta lower_bound ordering seconds"
    assert code == 0
    assert set(keys.split()) <= figures.keys()
    assert figures["lower_bound"] <= figures["sensitivity"] <= figures["paper_sensitivity"]
    assert figures["theta"] == pytest.approx(1 / figures["sensitivity"], rel=1e-9)
    code, said, _ = run("verify", order, "--json")
    assert code == 0
    assert json.loads(said)["sensitivity"] == figures["sensitivity"]
    assert json.loads(said)["certified_alpha"] <= 1.0
    code, _, wrong = run("shuffle", order, "--data", folder / "answers.csv", "--column", "y", "--out", folder / "z.csv")
    assert code == 0, wrong
    with (folder / "z.csv").open() as file:
        rows = [row["y"] for row in csv.DictReader(file)]
    assert sorted(rows) == sorted(f"a{i}" for i in range(60))
    again = [run("shuffle", order, "--data", folder / "answers.csv", "--column", "y", "--out", folder / f"{i}.csv",
                 "--seed", 3) for i in (1, 2)]  # fmt: skip
    assert all(code == 0 and "not private" in wrong for code, _, wrong in again)
    assert (folder / "1.csv").read_text() == (folder / "2.csv").read_text() != (folder / "z.csv").read_text()


def test_an_order_moves_with_its_files(folder: Path, order: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("elsewhere")
    for name in ("order.json", "places.csv"):
        (other / name).write_bytes((folder / name).read_bytes())
    assert verify_order(other / "order.json").sensitivity == verify_order(order).sensitivity


def test_a_forged_order_is_refused(order: Path) -> None:
    genuine = order.read_text()
    held = json.loads(genuine)
    swapped = held["order"][::2] + held["order"][1::2]
    for changes, kind in (
        ({"order": swapped}, CertificateError),
        ({"claim__sensitivity": held["claim"]["sensitivity"] - 1}, CertificateError),
        ({"claim__q": ["0", "1"]}, CertificateError),
        ({"claim__q": ["1", "2"]}, CertificateError),
        ({"claim__alpha": "0.5", "problem__alpha": "0.5"}, CertificateError),
        ({"groups": "0" * 64}, ArtifactError),
        ({"order": [*held["order"][:-1], held["order"][0]]}, ArtifactError),
        ({"order": held["order"][:-1]}, ArtifactError),
        ({"claim__q": ["-1", "2"]}, ArtifactError),
        ({"claim__q": ["1", "0"]}, ArtifactError),
        ({"claim__theta": "1/2"}, ArtifactError),
        ({"distance": "cayley"}, ArtifactError),
        ({"version": 2}, ArtifactError),
        ({"more": 1}, ArtifactError),
    ):
        order.write_text(genuine)
        forge(order, **changes)
        with pytest.raises(kind):
            verify_order(order)
    order.write_text(genuine.replace('"alpha":"1"', '"alpha":"2"', 1))
    with pytest.raises(ArtifactError, match="sha256"):
        read_order(order)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("radius = 0.2", "radius = -1"), "radius"),
        (("alpha = 1.0", "alpha = 0"), "alpha"),
        (('"rcm"', '"nonsense"'), "ordering must be"),
        (('columns = ["x", "y"]', 'columns = ["x", "w"]'), "w"),
        (('points = "places.csv"', 'points = "nowhere.csv"'), "nowhere.csv"),
        (("[groups]", 'distance = "ulam"\n[groups]'), "distance must be"),
        (('columns = ["x", "y"]', ""), "columns"),
        (('points = "places.csv"', 'points = "places.csv"\ngraph = "e.csv"'), "one of"),
    ],
)  # fmt: skip
def test_bad_problems(folder: Path, run: Run, change: tuple[str, str], words: str) -> None:
    text = (folder / "p.toml").read_text()
    assert change[0] in text
    (folder / "p.toml").write_text(text.replace(*change))
    code, said, wrong = run("solve", folder / "p.toml", "--out", folder / "order.json")
    assert (code, said) == (2, "")
    assert wrong.count("\n") == 1
    assert words in wrong
    assert not (folder / "order.json").exists()


def test_a_coordinate_that_is_no_number_names_its_row(folder: Path, run: Run) -> None:
    lines = (folder / "places.csv").read_text().splitlines()
    lines[17] = "nan,0.5"
    (folder / "places.csv").write_text("\n".join(lines) + "\n")
    code, _, wrong = run("solve", folder / "p.toml")
    assert code == 2
    assert "row 18" in wrong


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([[0, 1], [1, 9]], "in group 1"),
        ([[0, 0]], "once"),
        ("nothing", "list"),
        ([[0, 1.5]], "in group 0"),
    ],
)
def test_bad_groups(folder: Path, run: Run, entries: Any, words: str) -> None:
    (folder / "groups.json").write_text(json.dumps({"n": 3, "groups": entries}))
    (folder / "g.toml").write_text('kind = "order-shuffle"\nalpha = 1\n[groups]\nfile = "groups.json"\n')
    code, _, wrong = run("solve", folder / "g.toml")
    assert code == 2
    assert wrong.count("\n") == 1
    assert words in wrong


def test_data_of_another_length_and_other_groups(folder: Path, order: Path, run: Run) -> None:
    (folder / "short.csv").write_text("y\n1\n2\n")
    code, _, wrong = run("shuffle", order, "--data", folder / "short.csv", "--column", "y", "--out", folder / "z.csv")
    assert code == 2
    assert "60 records" in wrong
    assert "2 rows" in wrong
    places = (folder / "places.csv").read_text().replace("0.", "0.9", 1)
    (folder / "places.csv").write_text(places)
    code, _, wrong = run("shuffle", order, "--data", folder / "answers.csv", "--column", "y", "--out", folder / "z.csv")
    assert code == 2
    assert "groups must be those" in wrong
    assert not (folder / "z.csv").exists()


def test_claims_that_lie_or_are_missing(order: Path) -> None:
    """Sealed again by a forger: everything that is printed was recomputed or checked."""
    genuine = order.read_text()
    held = json.loads(genuine)
    claim = held["claim"]
    less = {key: value for key, value in claim.items() if key != "width"}
    for changes in (
        {"claim__theta": "99"},
        {"claim__theta": None},
        {"claim": {**claim, "lower_bound": 0}},
        {"problem": {**held["problem"], "lower_bound": 0}},
        {"claim__width": 2.0},
        {"claim__width": claim["width"] + 1},
        {"claim": less},
        {"claim": {**claim, "more": 1}},
        {"claim__alpha": " 1\n"},
        {"problem": {**held["problem"], "alpha": "2"}},
        {"problem": {**held["problem"], "distance": "hamming"}},
        {"version": True},
        {"provenance": 5},
        {"groups": "[/red]" * 11},
    ):
        order.write_text(genuine)
        forge(order, **changes)
        with pytest.raises((ArtifactError, CertificateError)):
            verify_order(order)


def test_nothing_that_is_read_is_written_over(folder: Path, order: Path, run: Run) -> None:
    answers = folder / "answers.csv"
    for target in (order, answers, folder / "places.csv"):
        before = target.read_bytes()
        code, _, wrong = run("shuffle", order, "--data", answers, "--column", "y", "--out", target)
        assert code == 2
        assert "would overwrite" in wrong
        assert target.read_bytes() == before
    for target in (folder / "p.toml", folder / "places.csv"):
        code, _, wrong = run("solve", folder / "p.toml", "--out", target)
        assert code == 2
        assert "would overwrite" in wrong


def test_cells_come_back_as_they_went(folder: Path, order: Path, run: Run) -> None:
    answers = ["a,b", 'say "x"', "line\nbreak", "bare\rreturn", "", "=1+1", *(f"v{i}" for i in range(54))]
    with (folder / "odd.csv").open("w", newline="") as file:
        table = csv.writer(file, quoting=csv.QUOTE_ALL)
        table.writerows([["y"], *([answer] for answer in answers)])
    code, _, wrong = run("shuffle", order, "--data", folder / "odd.csv", "--column", " y", "--out", folder / "z.csv")
    assert code == 0, wrong
    with (folder / "z.csv").open(newline="") as file:
        rows = [row["y"] for row in csv.DictReader(file)]
    assert sorted(rows) == sorted(answers)


@pytest.mark.parametrize("alpha", ["3000", "1000000", "0.000001"])
def test_extreme_alphas(folder: Path, run: Run, alpha: str) -> None:
    (folder / "groups.json").write_text(json.dumps({"n": 6, "groups": [[0, 1, 2], [2, 3], [4]]}))
    (folder / "g.toml").write_text(f'kind = "order-shuffle"\nalpha = {alpha}\n[groups]\nfile = "groups.json"\n')
    code, _, wrong = run("solve", folder / "g.toml", "--out", folder / "o.json")
    assert code == 0, wrong
    assert run("verify", folder / "o.json")[0] == 0


def test_rows_of_several_answers_stay_whole(folder: Path, order: Path, run: Run) -> None:
    """One word for all columns: a row goes to another record as a whole, and columns stand as they were named."""
    lines = [f"{i},b{i},c {i}" for i in range(60)]
    (folder / "rows.csv").write_text("a,b,c\n" + "\n".join(lines) + "\n")
    base = ("shuffle", order, "--data", folder / "rows.csv", "--seed", 5)
    code, _, wrong = run(*base, "--column", "c", "--column", "a", "--out", folder / "z.csv")
    assert code == 0, wrong
    with (folder / "z.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["c", "a"]
    assert sorted(rows) == sorted([f"c {i}", str(i)] for i in range(60))
    assert rows != [[f"c {i}", str(i)] for i in range(60)]
    for name, place in (("a", 1), ("c", 0)):
        assert run(*base, "--column", name, "--out", folder / "one.csv")[0] == 0
        with (folder / "one.csv").open(newline="") as file:
            assert [row[0] for row in csv.reader(file)][1:] == [row[place] for row in rows], "the same word"
    code, said, _ = run(*base, "-c", "b", "-c", "c", "-c", "a", "--out", folder / "all.csv", "--json")
    assert code == 0
    assert json.loads(said)["columns"] == ["b", "c", "a"]
    for twice in (("a", "a"), ("a", " a")):
        code, _, wrong = run(*base, "-c", twice[0], "-c", twice[1], "--out", folder / "no.csv")
        assert code == 2
        assert "each by a name of its own" in wrong
    assert not (folder / "no.csv").exists()


def test_an_option_given_twice_is_not_dropped_in_silence(folder: Path, order: Path, run: Run) -> None:
    base = ("shuffle", order, "--data", folder / "answers.csv", "--column", "y", "--out", folder / "z.csv")
    for command, option in (
        ((*base, "--seed", 1, "--seed", 2), "--seed"),
        ((*base, "-o", folder / "y.csv"), "--out"),
        ((*base, "--data", folder / "places.csv"), "--data"),
        (("--patience", 1, "--patience", 2, "kinds"), "--patience"),
        (("solve", folder / "p.toml", "--backend", "highs", "--backend", "core"), "--backend"),
        (("amplify", "--randomizer", "generic", "--n", 10, "--n", 20, "--eps0", 1, "--delta", "1e-6"), "--n"),
        (("sweep", folder / "p.toml", "-g", "alpha=1", "-g", "budget=1", "--out", "a.csv", "-o", "b.csv"), "--out"),
        (("report", order, "--title", "a", "--title", "b"), "--title"),
    ):
        code, said, wrong = run(*command)
        assert (code, said) == (2, ""), command
        assert f"{option} must be given once. Found it 2 times." in wrong
        assert wrong.count("\n") == 1
    assert not (folder / "z.csv").exists()
    assert run("solve", folder / "p.toml", "--json", "--json")[0] == 0, "a flag says the same twice"
