"""Bad questions about shuffling: refused in one line, from Python, from a file and from the command line."""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optdp import KRR, Amplification, Channel, Gaussian, Generic, Laplace, ProblemError, load, solve
from optdp.amplification import catalogue
from optdp.loading import built, load_file
from tests import command_line

ROOT = Path(__file__).resolve().parent.parent.parent
GIVEN: dict[str, Any] = {"eps0": "2", "n": 1000, "delta": "1e-6"}


def optdp(*args: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return command_line.in_process(*args, cwd=cwd)


def refused(done: subprocess.CompletedProcess[str], words: str = "") -> None:
    """Exit 2 and one line."""
    assert "Traceback" not in done.stderr, done.stderr[-600:]
    assert done.returncode == 2, done.stderr[-600:]
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr[-600:]
    assert words in done.stderr


def in_process(function: Callable[[], object]) -> str:
    """The refusal of a library call; anything but a ProblemError would be a traceback at the command line."""
    with pytest.raises(ProblemError) as caught:
        function()
    said = str(caught.value)
    assert said
    assert len(said) < 1000
    return said


# ------------------------------------------------------------------------------------------------------- from Python


@pytest.mark.parametrize("name", ["eps0", "delta", "epsilon"])
@pytest.mark.parametrize(
    "value",
    [-1, 0, "0", "-0.1", math.nan, math.inf, -math.inf, "nan", "inf", "x", "", " ", "1/0", True, False, [1], {},
     "1e999", 10**400, "1e-301", "1e9999999", "9" * 5000, 1j, b"1"],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_numbers_that_are_none(name: str, value: Any) -> None:
    given = {"eps0": "2", "delta": "1e-6", "epsilon": "0.5"} | {name: value}
    said = in_process(lambda: Amplification(Generic(), **given))
    assert name in said


@pytest.mark.parametrize("value", [1, "1", "1.5", 2, 1.0])
def test_delta_of_one_or_more(value: Any) -> None:
    assert "below 1" in in_process(lambda: Amplification(Generic(), eps0=1, n=10, delta=value))


@pytest.mark.parametrize("name", ["n", "rounds"])
@pytest.mark.parametrize(
    "value", [-5, 0, 1.5, 10.0, "10", math.nan, math.inf, True, [2], 10**11, 10**400, 16**20_000],
    ids=lambda v: repr(type(v)),
)  # fmt: skip
def test_people_and_rounds_are_whole(name: str, value: Any) -> None:
    said = in_process(lambda: Amplification(Generic(), **(GIVEN | {name: value})))
    assert name in said


def test_one_person_is_too_few() -> None:
    assert "from 2" in in_process(lambda: Amplification(Generic(), eps0=1, n=1, delta="1e-6"))


@pytest.mark.parametrize("k", [-1, 1, 2.0, "3", True, math.nan, 10**16])
def test_k(k: Any) -> None:
    assert "k must be" in in_process(lambda: KRR(k))


@pytest.mark.parametrize(
    "make",
    [
        lambda bad: KRR(3, bad),
        lambda bad: Gaussian(sigma=bad),
        lambda bad: Gaussian(delta0=bad),
        lambda bad: catalogue.VariationRatio(bad),
        lambda bad: catalogue.VariationRatio(0.5, bad),
        lambda bad: Channel.of([[bad, 0.5], [0.5, 0.75]]),
        lambda bad: catalogue.SubsetSelection(bad, 1),
        lambda bad: catalogue.SubsetSelection(5, bad),
        lambda bad: catalogue.LocalHash(bad),
        lambda bad: catalogue.Hadamard(bad),
    ],
    ids=["gamma", "sigma", "delta0", "beta", "q", "entry", "d", "size", "g", "messages"],
)
@pytest.mark.parametrize("bad", [-1, 0, math.nan, math.inf, "x", "0.5"], ids=repr)
def test_numbers_of_randomizers(make: Callable[[Any], object], bad: Any) -> None:
    in_process(lambda: make(bad))


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], "sum to 1"),
        ([[0.5, 0.5], [0.5, 0.5001]], "row 1"),
        ([[0.5, 0.5, 0.0], [0.4, 0.6, 0.0]], "column 2"),
        ([[1.5, -0.5], [0.5, 0.5]], "not negative"),
        ([[0.5, 0.5], [1.0]], "equal length"),
        ([[0.5, 0.5]], "two or more rows"),
        ([], "two or more rows"),
        ([[], []], "two or more rows"),
        ([[math.nan, 1.0], [0.5, 0.5]], "finite"),
        ([[math.inf, 1.0], [0.5, 0.5]], "finite"),
        ([[1.0] + [0.0] * 9] * 200, "column 1"),
    ],
)
def test_channels(matrix: list[list[float]], words: str) -> None:
    assert words in in_process(lambda: Channel.of(matrix))


def test_nothing_or_two_things_missing() -> None:
    full = {"eps0": 1, "n": 100, "delta": "1e-6", "epsilon": "0.5"}
    assert "Give any three of" in in_process(lambda: Amplification(Generic(), **full))  # type: ignore[arg-type]
    for one in full:
        for two in full:
            if one < two:
                less = {name: value for name, value in full.items() if name not in (one, two)}
                said = in_process(lambda less=less: Amplification(KRR(3), **less))
                assert one in said
                assert two in said
    assert "k" in in_process(lambda: Amplification(KRR(0), eps0=1, n=100, delta="1e-6"))


def test_eps0_where_it_follows() -> None:
    for fixed in (KRR(3, 0.5), Gaussian(sigma=1.0), Channel.of([[0.6, 0.4], [0.4, 0.6]])):
        said = in_process(lambda fixed=fixed: Amplification(fixed, eps0=1, n=100, delta="1e-6"))
        assert "already determines" in said


@pytest.mark.parametrize("randomizer", [None, "k-rr", 5, KRR], ids=repr)
def test_what_is_no_randomizer(randomizer: Any) -> None:
    in_process(lambda: Amplification(randomizer, eps0=1, n=100, delta="1e-6"))


def test_no_solution_names_the_limit() -> None:
    said = in_process(lambda: solve(Amplification(Generic(), eps0=5, n=10, delta="1e-9")))
    assert "No epsilon below eps0 = 5 reaches this delta" in said
    said = in_process(lambda: solve(Amplification(Generic(), eps0=20, delta="1e-9", epsilon="0.01")))
    assert "10,000,000,000" in said
    said = in_process(lambda: solve(Amplification(KRR(0, 0.0001), n=10, delta="1e-9", epsilon="0.01")))
    assert "k" in said
    never = Channel.of([[1.0, 0.0], [0.0, 1.0]])
    assert "reaches this delta" in in_process(lambda: solve(Amplification(never, n=100, delta="1e-6")))
    assert "reach this delta" in in_process(lambda: solve(Amplification(never, delta="1e-6", epsilon=1)))


def test_what_always_has_a_solution() -> None:
    """An eps0 of epsilon needs no shuffling; epsilon >= eps0 has delta 0."""
    found = solve(Amplification(Generic(), n=2, delta="1e-30", epsilon="0.5"))
    assert found.value == pytest.approx(0.5, rel=1e-6)
    assert solve(Amplification(Laplace(), eps0=1, n=10, epsilon=2)).value == 0.0


@pytest.mark.parametrize("gamma", ["1e-20", "1e-200", "1e-310", "1e-320"])
@pytest.mark.parametrize("k", [3, None])
def test_extreme_gammas_are_refused_or_answered(gamma: str, k: int | None) -> None:
    spec: dict[str, Any] = {"kind": "amplification", "n": 1000, "delta": "1e-6"}
    law = {"kind": "k-rr", "gamma": gamma} | ({} if k is None else {"k": k})
    in_process(lambda: solve(built(spec | {"randomizer": law} | ({"epsilon": 1} if k is None else {}))))  # type: ignore[arg-type]


@pytest.mark.parametrize("entry", ["1e-20", "1e-100", "1e-310", "1e-320"])
def test_extreme_channels_are_refused_or_answered(entry: str) -> None:
    law = {"kind": "channel", "matrix": [["1", entry], [entry, "1"]]}
    spec = {"kind": "amplification", "n": 1000, "delta": "1e-6", "randomizer": law}
    with contextlib.suppress(ProblemError):  # a warning or any other error would be one
        assert solve(built(spec)).value > 0  # type: ignore[call-overload]


# ---------------------------------------------------------------------------------------------------- from a mapping


def spec(**changes: Any) -> dict[str, Any]:
    found = {"kind": "amplification", "randomizer": {"kind": "k-rr", "k": 3}, **GIVEN} | changes
    return {name: value for name, value in found.items() if value is not None}


@pytest.mark.parametrize(
    "changes",
    [
        {"eps0": 2.0},
        {"eps0": True},
        {"eps0": [1]},
        {"n": "100"},
        {"n": 100.0},
        {"n": True},
        {"method": 5},
        {"rounds": "2"},
        {"colour": "red"},
        {"randomizer": 5},
        {"randomizer": "k-rr"},
        {"randomizer": []},
        {"randomizer": {}},
        {"randomizer": {"kind": "k-rr", "k": 1}},
        {"randomizer": {"kind": "k-rr", "k": 0}},
        {"randomizer": {"kind": "k-rr", "k": True}},
        {"randomizer": {"kind": "k-rr", "k": "3"}},
        {"randomizer": {"kind": "k-rr", "k": 3, "d": 4}},
        {"randomizer": {"kind": "poisson"}},
        {"randomizer": {"kind": 5}},
        {"randomizer": {"kind": "laplace", "k": 3}},
        {"randomizer": {"kind": "channel"}},
        {"randomizer": {"kind": "channel", "matrix": 5}, "eps0": None},
        {"randomizer": {"kind": "channel", "matrix": [5]}, "eps0": None},
        {"randomizer": {"kind": "channel", "matrix": [["0.5", "x"], ["1", "0"]]}, "eps0": None},
        {"randomizer": {"kind": "channel", "matrix": [["0.5", "1e999"], ["1", "0"]]}, "eps0": None},
        {"randomizer": {"kind": "channel", "matrix": [[0.5, 0.5], [0.5, 0.5]]}, "eps0": None},
        {"randomizer": {"kind": "channel", "matrix": [["1"], ["1"]], "csv": "x"}, "eps0": None},
        {"randomizer": {"kind": "gaussian"}},
        {"randomizer": {"kind": "gaussian", "sigma": "1e999"}, "eps0": None},
        {"randomizer": {"kind": "gaussian", "sigma": "1", "delta0": "0.1"}},
        {"randomizer": {"kind": "k-rr", "k": 3, "gamma": "1e999"}, "eps0": None},
        {"randomizer": {"kind": "k-rr", "k": 3, "gamma": "-1"}, "eps0": None},
        {"randomizer": {"kind": "variation-ratio", "beta": "2"}},
        {"randomizer": {"kind": "variation-ratio", "beta": "0.5", "q": "0.1"}},
        {"randomizer": {"kind": "variation-ratio", "beta": "0.5", "q": "1e999"}},
        {"randomizer": {"kind": "hadamard", "messages": 12}},
        {"randomizer": {"kind": "subset-selection", "d": 3, "size": 3}},
        {"kind": "shuffle"},
        {"kind": None},
        {"sweep": 5},
        {"sweep": {"over": 5}},
        {"sweep": {"over": "n", "from": 1.5, "to": 3}},
        {"sweep": {"over": "n", "series": 5}},
        {"sweep": {"over": "n", "series": [5]}},
        {"sweep": {"over": "n", "tie": "x"}},
        {"sweep": {"over": "n", "tie": {"delta": 5}}},
        {"sweep": {"over": "n", "points": "3"}},
        {"sweep": {"over": "n", "scale": "cubic"}},
        {"sweep": {"over": "n", "colour": 1}},
        {"title": 5},
    ],
    ids=lambda changes: repr(changes)[:50],
)
def test_bad_mappings(changes: dict[str, Any]) -> None:
    in_process(lambda: built(spec(**changes)))


@pytest.mark.parametrize("data", [5, [], None, "kind"], ids=repr)
def test_what_is_no_mapping(data: Any) -> None:
    in_process(lambda: built(data))


# ------------------------------------------------------------------------------------------------------ hostile files

HEAD = 'kind = "amplification"\neps0 = 2\nn = 100\ndelta = 1e-6\n'
KRR3 = '[randomizer]\nkind = "k-rr"\nk = 3\n'
SWEEP = '[sweep]\nover = "n"\nfrom = 100\nto = 1000\npoints = 2\n'
BARE = HEAD.replace("eps0 = 2\n", "")
CHANNEL = BARE + '[randomizer]\nkind = "channel"\n'
HUGE = "0x" + "f" * 20_000
HOSTILE = {
    "hex-n": HEAD.replace("n = 100", f"n = {HUGE}") + KRR3,
    "hex-method": HEAD + f"method = {HUGE}\n" + KRR3,
    "hex-eps0": HEAD.replace("eps0 = 2", f"eps0 = {HUGE}") + KRR3,
    "hex-k": HEAD + KRR3.replace("k = 3", f"k = {HUGE}"),
    "digits": HEAD.replace("n = 100", "n = 1" + "0" * 400) + KRR3,
    "more-digits": HEAD.replace("n = 100", "n = 1" + "0" * 40_000) + KRR3,
    "exponent": HEAD.replace("1e-6", "1e999") + KRR3,
    "nan": HEAD.replace("1e-6", "nan") + KRR3,
    "inf": HEAD.replace("eps0 = 2", "eps0 = inf") + KRR3,
    "deep-eps0": HEAD.replace("eps0 = 2", "eps0" + ".a" * 3000 + " = 2") + KRR3,
    "deep-kind": "kind" + ".a" * 3000 + " = 2\n",
    "deep-array": HEAD + "method = " + "[" * 100_000 + "\n" + KRR3,
    "deep-table": HEAD + "method = " + "{a = " * 5000 + "\n" + KRR3,
    "unknown": HEAD + 'colour = "red"\n' + KRR3,
    "gamma": BARE + KRR3 + "gamma = 1e999\n",
    "channel": CHANNEL + 'matrix = [["1e999", "0"], ["0", "1"]]\n',
    "no-csv": CHANNEL + 'csv = "none.csv"\n',
    "csv-folder": CHANNEL + 'csv = "."\n',
    "csv-zero": CHANNEL + 'csv = "/dev/zero"\n',
    "csv-binary": CHANNEL + 'csv = "binary.csv"\n',
    "csv-cell": CHANNEL + 'csv = "cell.csv"\n',
    "csv-ragged": CHANNEL + 'csv = "ragged.csv"\n',
    "csv-words": CHANNEL + 'csv = "words.csv"\n',
    "csv-empty": CHANNEL + 'csv = "empty.csv"\n',
    "date": HEAD.replace("n = 100", "n = 2020-01-01") + KRR3,
    "twice": HEAD + "n = 5\n" + KRR3,
    "nothing": "",
    "control": HEAD + '"a\\u0007b\\nc" = 5\n' + KRR3,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hostile")
    (place / "binary.csv").write_bytes(bytes(range(256)) * 10)
    (place / "cell.csv").write_text("0" * 200_000 + ".5,.5\n.5,.5\n")
    (place / "ragged.csv").write_text(".5,.5\n1\n")
    (place / "words.csv").write_text("a,b\nc,d\n")
    (place / "empty.csv").write_text("")
    for name, text in HOSTILE.items():
        (place / f"{name}.toml").write_text(text)
    return place


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name: str, folder: Path) -> None:
    in_process(lambda: load(folder / f"{name}.toml"))


@pytest.mark.parametrize("name", ["hex-n", "deep-eps0", "deep-kind", "gamma", "csv-zero", "csv-cell", "nan", "unknown"])
def test_hostile_files_at_the_command_line(name: str, folder: Path) -> None:
    refused(optdp("solve", folder / f"{name}.toml"))


@pytest.mark.parametrize(
    "more",
    [
        SWEEP.replace("points = 2", "points = 1000000000"),
        SWEEP.replace("points = 2", "points = 1"),
        SWEEP.replace("to = 1000", "to = 1e400"),
        SWEEP.replace("to = 1000", "to = 50"),
        SWEEP.replace("from = 100", "from = -5"),
        SWEEP.replace('over = "n"', 'over = "people"'),
        SWEEP.replace('over = "n"', 'over = "randomizer.k.x"'),
        SWEEP.replace('over = "n"', 'over = ""'),
        '[sweep]\nover = "n"\n',
        '[sweep]\nover = "n"\nvalues = [-5, 100]\n',
        '[sweep]\nover = "n"\nvalues = ["x"]\n',
        SWEEP + 'tie = { eps0 = "n^999" }\n',
        SWEEP + 'tie = { delta = "n^1/0" }\n',
        SWEEP + f'tie = {{ delta = "n^{"9" * 5000}" }}\n',
        SWEEP + 'tie = { delta = "n^(-2" }\n',
        SWEEP + 'tie = { delta = "k^-2" }\n',
        SWEEP + 'tie = { delta = "__import__" }\n',
        SWEEP + "series = [{ label = 5 }]\n",
        SWEEP + 'series = [{ label = "a", show = "all" }]\n',
        SWEEP + 'series = [{ label = "a" }, { label = "a" }]\n',
        SWEEP + 'series = [{ label = "a", colour = 5 }]\n',
        "",
    ],
)  # fmt: skip
def test_bad_sweeps(more: str, tmp_path: Path) -> None:
    from optdp.sweeps.curve import sweep

    (tmp_path / "p.toml").write_text(HEAD + KRR3 + more)
    in_process(lambda: sweep(load_file(tmp_path / "p.toml")))


def test_a_deep_expectation_does_not_stop_a_curve(tmp_path: Path) -> None:
    from optdp.sweeps.curve import sweep

    (tmp_path / "p.toml").write_text(HEAD + KRR3 + SWEEP + "[expect" + ".a" * 3000 + "]\nb = 1\n")
    try:
        found = sweep(load_file(tmp_path / "p.toml"))
    except ProblemError:
        return
    assert len(found.places) == 2


def test_too_many_values_are_refused(tmp_path: Path) -> None:
    from optdp.sweeps.curve import sweep

    (tmp_path / "p.toml").write_text(HEAD + KRR3 + '[sweep]\nover = "n"\nvalues = [' + "100," * 20_000 + "]\n")
    file = load_file(tmp_path / "p.toml")

    def give_up(text: str) -> None:
        if text.endswith("of 20000"):
            raise AssertionError("started to solve 20,000 points")

    in_process(lambda: sweep(file, give_up))


@pytest.mark.slow
@pytest.mark.timeout(100)
def test_very_many_messages(tmp_path: Path) -> None:
    row = ",".join(["0.00001"] * 100_000)
    (tmp_path / "wide.csv").write_text(f"{row}\n{row}\n")
    (tmp_path / "p.toml").write_text(CHANNEL + 'csv = "wide.csv"\n')
    done = optdp("solve", tmp_path / "p.toml")
    assert "Traceback" not in done.stderr, done.stderr[-600:]
    assert done.returncode in (0, 2)


# ------------------------------------------------------------------------------------------------ the command line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--randomizer generic --eps0 -1 --n 100 --delta 1e-6", "eps0"),
        ("--randomizer generic --eps0 0 --n 100 --delta 1e-6", "eps0"),
        ("--randomizer generic --eps0 nan --n 100 --delta 1e-6", "eps0"),
        ("--randomizer generic --eps0 inf --n 100 --delta 1e-6", "eps0"),
        ("--randomizer generic --eps0 1 --n 1 --delta 1e-6", "n must be"),
        ("--randomizer generic --eps0 1 --n 100 --delta 1", "delta"),
        ("--randomizer k-rr --k 1 --eps0 1 --n 100 --delta 1e-6", "k must be"),
        ("--randomizer k-rr --k 3 --gamma 1e999 --n 100 --delta 1e-6", "gamma"),
        ("--randomizer generic --eps0 1 --n 100 --delta 1e-6 --epsilon 1", "Give any three of"),
        ("--randomizer generic --eps0 1 --n 100", "epsilon and delta"),
        ("--randomizer magic --eps0 1 --n 100 --delta 1e-6", "magic"),
        ("--randomizer generic --k 3 --eps0 1 --n 100 --delta 1e-6", "k"),
        ("--randomizer channel --csv / --n 100 --delta 1e-6", "regular file"),
        ("--randomizer k-rr --k 3 --gamma 0.5 --eps0 1 --n 100 --delta 1e-6", "already determines"),
        ("--randomizer generic --eps0 5 --n 10 --delta 1e-9", "No epsilon below eps0"),
        ("--randomizer generic --eps0 1 --n 100 --delta 1e-6 --method magic", "method"),
        ("--randomizer generic --eps0 1 --n 1.5 --delta 1e-6", "n"),
        ("--randomizer generic --eps0 1 --n x --delta 1e-6", "n"),
        ("--eps0 1 --n 100 --delta 1e-6", "randomizer"),
    ],
)
def test_amplify_refuses_in_one_line(options: str, words: str) -> None:
    refused(optdp("amplify", *options.split()), words)


def strict(text: str) -> dict[str, Any]:
    def no(constant: str) -> None:
        raise ValueError(constant)

    found: dict[str, Any] = json.loads(text, parse_constant=no)
    return found


@pytest.mark.parametrize(
    "options",
    [
        "--randomizer k-rr --k 4 --eps0 1 --n 1000 --delta 1e-6",
        "--randomizer k-rr --k 2 --eps0 1 --n 100 --epsilon 1",
        "--randomizer generic --eps0 1 --delta 1e-6 --epsilon 0.3",
        "--randomizer gaussian --sigma 1 --n 1000 --delta 1e-6",
        "--randomizer gaussian --sigma 0.001 --n 10 --epsilon 1",
    ],
)
def test_json_has_the_documented_keys(options: str) -> None:
    done = optdp("amplify", *options.split(), "--json")
    assert done.returncode == 0, done.stderr[-600:]
    found = strict(done.stdout)
    assert {"unknown", "value", "method", "lower", "bounds"} <= found.keys()
    assert f"--{found['unknown']} " not in options
    for row in found["bounds"]:
        assert {"method", "side", "value", "applicable"} <= row.keys()
        assert row["side"] in ("upper", "lower")
        assert row["applicable"] is (row["value"] is not None)
    named = {row["method"]: row["value"] for row in found["bounds"]}
    assert named[found["method"]] == found["value"]
    if found["unknown"] == "n":
        assert isinstance(found["value"], int)


def test_solve_json_of_a_file_and_what_has_no_tables(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(HEAD + KRR3)
    found = strict(optdp("solve", tmp_path / "p.toml", "--json").stdout)
    assert found["unknown"] == "epsilon"
    assert found["lower"] < found["value"] < 2
    refused(optdp("solve", tmp_path / "p.toml", "--out", tmp_path / "a.json"), "no tables")
    assert not (tmp_path / "a.json").exists()
    shown = optdp("solve", tmp_path / "p.toml")
    assert shown.returncode == 0
    assert "blanket" in shown.stdout
    assert "█" in shown.stdout
