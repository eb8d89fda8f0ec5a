"""Files that were made to harm by their form: families of them, for `tests.artifact.hostile_files`.

A family is a function `(folder, random)` that writes files and returns the arguments of a command.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import pickle
import tempfile
import zipfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from optdp import MultiLTE, Population, SingleLTE, solve
from optdp.single.format import to_json
from tests.artifact.forgeries import sealed
from tests.artifact.test_plan import Forgery, leaves, put
from tests.shared import shared_solution
from tests.spelling import as_written

Document = dict[str, Any]
Family = Callable[[Path, Random], list[str]]

# ---------------------------------------------------------------------- honest files to start from


@lru_cache(maxsize=1)
def _single() -> bytes:
    return to_json(solve(SingleLTE(Population.binomial(6, "0.5"), "0.5")).artifact())


def single_document() -> Document:
    found: Document = json.loads(_single())
    return found


@lru_cache(maxsize=1)
def _made_plan() -> Forgery:
    with tempfile.TemporaryDirectory() as folder:
        shared_solution(MultiLTE([Population.binomial(3, "0.5")] * 2, "1", method="joint")).save(Path(folder) / "plan")
        return Forgery(Path(folder) / "plan")


def plan_documents() -> Forgery:
    return copy.deepcopy(_made_plan())


def prepare(folder: Path) -> None:
    """Make everything that cases start from, so that it is not made for each of them."""
    single_document()
    plan_documents()
    order_document(folder)


def order_document(folder: Path) -> Document:
    """An order, with the groups and the problem that it is for written to a folder."""
    (folder / "groups.json").write_text("[[0, 1, 2], [2, 3]]")
    (folder / "order.toml").write_text(
        'kind = "order-shuffle"\nalpha = "1"\nordering = "rcm"\n[groups]\nfile = "groups.json"\n'
    )
    if not _ORDER:
        from optdp.loading import load
        from optdp.order.problem import OrderShuffle

        problem = load(folder / "order.toml")
        assert isinstance(problem, OrderShuffle)
        solve(problem).save(folder / "order.json")
        _ORDER.update(json.loads((folder / "order.json").read_bytes()))
    document = copy.deepcopy(_ORDER)
    return document


_ORDER: Document = {}


# ---------------------------------------------------------------------- pieces of text that harm

ODD_NUMBERS = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1e999",
    "1e-999",
    "-0",
    "-0.0",
    "1E400",
    "0.1e1000000000",
    "1" + "0" * 5000,
    "-" + "9" * 5000,
    "9" * 1300,
    "9" * 1301,
    "0." + "3" * 5000,
    "1e" + "9" * 400,
    "00",
    "+1",
    ".5",
    "0x10",
    "1_000",
)
ODD_TEXTS = (
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc00x"',
    '"' + "x" * 300_000 + '"',
    '"' + "9" * 5000 + '"',
    '"1e999"',
    '"1/0"',
    '"NaN"',
    '"-1"',
    '"1e-1000"',
    '"1e1000"',
    '"1e1001"',
    '"' + "1" * 400 + "/" + "3" * 400 + '"',
    '"\u0663"',
    '"0.1\\n"',
    '"[red]x[/]"',
    '"\\u001b[31m"',
    "null",
    "true",
    "{}",
    "[]",
    '[[["a"]]]',
    '{"law": "geometric"}',
)


def _nested(random: Random) -> str:
    deep = random.choice([38, 41, 100, 1000, 100_000, 500_000])
    start, stop = random.choice([("[", "]"), ('{"a":', "}"), ('[{"b":', "}]"), ("[[],", "]")])
    closed = random.random() < 0.7
    return start * deep + ("1" if random.random() < 0.5 or "{" in start else "") + (stop * deep if closed else "")


def _odd(random: Random) -> str:
    return random.choice([random.choice(ODD_NUMBERS), random.choice(ODD_TEXTS), _nested(random)])


def _with(document: Document, path: tuple[str | int, ...], raw: str) -> str:
    """The document as text with `raw`, whatever it is, in the place of one value."""
    mark = "replaced-1f3d"
    changed = copy.deepcopy(document)
    put(changed, path, mark)
    return as_written(changed).decode().replace(f'"{mark}"', raw, 1)


def _leaf(document: Document, random: Random) -> tuple[str | int, ...]:
    places = [*leaves(document), *((key,) for key in document)]
    return random.choice(places)


def written(folder: Path, data: bytes | str, name: str = "a.json") -> Path:
    path = folder / name
    path.write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    return path


def _reader(path: Path, folder: Path, random: Random) -> list[str]:
    """One of the commands that open an artifact."""
    return random.choice(
        [
            ["verify", str(path)],
            ["verify", str(path)],
            ["verify", str(path), "--json"],
            ["sample", str(path), "--input", "1"],
            ["export", str(path), "--to", "csv", "--out", str(folder / "out.csv")],
            ["export", str(path), "--to", "npz", "--out", str(folder / "out.npz")],
        ]
    )


# ---------------------------------------------------------------------- JSON artifacts


def odd_value(folder: Path, random: Random) -> list[str]:
    document = single_document()
    return _reader(written(folder, _with(document, _leaf(document, random), _odd(random))), folder, random)


def odd_value_sealed(folder: Path, random: Random) -> list[str]:
    """A wrong value under a right digest: only the rule for it can refuse it."""
    document = single_document()
    place = _leaf(document, random)
    value: Any = random.choice(
        [
            None,
            True,
            0,
            -1,
            1.5,
            2**53 + 1,
            2**64,
            -(2**63),
            10**1299,
            "",
            "x" * 10_000,
            [],
            {},
            [[]],
            "1e-1000",
            "9" * 1300,
        ]
    )
    put(document, place, value)
    return _reader(written(folder, sealed(document)), folder, random)


def twice(folder: Path, random: Random) -> list[str]:
    text = _single().decode()
    key = random.choice(['"epsilon"', '"n"', '"format"', '"weights"', '"q"', '"claim"', '"sha256"', '"mae"'])
    return _reader(written(folder, text.replace(key, f"{key}: 1, {key}", 1)), folder, random)


def other_versions(folder: Path, random: Random) -> list[str]:
    document = single_document()
    document["version"] = random.choice([0, 2, 3, 10**9, -1, "1", 1.0, True, None, [1]])
    document["format"] = random.choice([document["format"], "optdp/noise-matrix-2", "optdp/plan", "optdp/order", ""])
    return _reader(written(folder, sealed(document)), folder, random)


def weights(folder: Path, random: Random) -> list[str]:
    document = single_document()
    row = random.choice(document["weights"])
    size = int(document["denominator"])
    pair = random.choice(row)
    pair[1] = random.choice([0, -1, -size, size + 1, 2**63, 2**64, 2**64 + pair[1], 2**4096, 10**1299, -(10**1299)])
    if random.random() < 0.5 and len(row) > 1:
        other = next(entry for entry in row if entry is not pair)
        other[1] = size - sum(weight for s, weight in row if s != other[0])
    return _reader(written(folder, sealed(document)), folder, random)


def not_text(folder: Path, random: Random) -> list[str]:
    data = _single()
    spoiled = random.choice(
        [
            b"\xef\xbb\xbf" + data,
            data.decode().encode("utf-16"),
            data.decode().encode("utf-32"),
            b"\xff\xfe" + data,
            data.replace(b"epsilon", b"epsil\xf0\x9f", 1),
            data.replace(b"a", b"\xed\xa0\x80", 1),
            b"\0" + data,
            data + b"\0",
            data.replace(b"e", b"\xc0\xa5", 1),
            bytes(random.randrange(256) for _ in range(5000)),
            b"",
            b"\0" * 100_000,
            pickle.dumps(single_document()),
            b"\x1f\x8b\x08" + data,
            b"%PDF-1.7",
            data * 2,
        ]
    )
    return _reader(written(folder, spoiled), folder, random)


def long_lists(folder: Path, random: Random) -> list[str]:
    """Megabytes of nothing, in a place of its own."""
    document = single_document()
    count = random.choice([1000, 30_000, 200_000])
    piece = random.choice(["[[0,1]]", "[]", "{}", "null", '"x"', "1e5", "[0,[1,[2]]]", '{"a":0}'])
    place: tuple[str | int, ...] = random.choice(
        [("weights",), ("claim", "mae"), ("provenance", "x"), ("tail",), ("problem",)]
    )
    return _reader(written(folder, _with(document, place, "[" + ",".join([piece] * count) + "]")), folder, random)


def many_keys(folder: Path, random: Random) -> list[str]:
    document = single_document()
    count = random.choice([1000, 50_000])
    inner = ",".join(f'"{i}":{i}' for i in range(count))
    place: tuple[str | int, ...] = random.choice([("claim",), ("provenance",), ("problem", "population"), ("tail",)])
    return _reader(written(folder, _with(document, place, "{" + inner + "}")), folder, random)


# ---------------------------------------------------------------------- right in form, enormous in meaning


def table_of(document: Document, rows: list[list[list[int]]], first: int, outputs: list[int], outside: str) -> None:
    size = sum(weight for _, weight in rows[0])
    document.update(
        inputs=[first, first + len(rows) - 1], outputs=outputs, denominator=str(size), weights=rows, outside=outside
    )


def _people(random: Random) -> Any:
    """Populations that a short text can ask for."""
    digits = "7" * 399
    return random.choice(
        [
            {"kind": "binomial", "n": 10**9, "p": "0.5"},
            {"kind": "binomial", "n": 10**9, "p": "1e-1000"},
            {"kind": "binomial", "n": 10**9, "p": f"0.{digits}"},
            {"kind": "binomial", "n": 5000, "p": f"0.{digits}"},
            {"kind": "binomial", "n": 5000, "p": f"{digits}/8{digits}"},
            {"kind": "binomial", "n": 10**12, "p": "0.5"},
            {"kind": "iid", "n": 10**6, "pmf": ["0.5", "0.3", "0.2"]},
            {"kind": "iid", "n": 20_000, "pmf": ["0.5", "0.3", "0.2"]},
            {"kind": "iid", "n": 1000, "pmf": ["0.01"] * 100},
            {"kind": "iid", "n": 2, "pmf": ["1/3000"] * 3000},
            {"kind": "iid", "n": 1, "pmf": ["1/20000"] * 20_000},
            {"kind": "iid", "n": 300, "pmf": [f"0.{digits}", f"0.{'2' * 398}3"]},
            {"kind": "counts", "counts": [1] * 20_000, "n": 5},
            {"kind": "counts", "counts": [10**1200, 1], "n": 500},
            {"kind": "counts", "counts": list(range(1, 500)), "n": 100},
            {
                "kind": "independent",
                "people": [{"count": 1, "pmf": [f"{i}/1009", f"{1009 - i}/1009"]} for i in range(1, 800)],
            },
            {"kind": "independent", "people": [{"count": 10**6, "pmf": ["0.5", "0.5"]}] * 3},
            {"kind": "independent", "people": [{"count": 10**6, "pmf": ["0.5", "0.25", "0.25"]}]},
            {"kind": "others", "others": ["1/5000"] * 5000, "contributions": 10},
            {"kind": "others", "others": ["0.5", "0.5"], "contributions": 9000},
            {"kind": "others", "others": [f"1/{10**390 + 2 * i + 1}" for i in range(900)]},
            {"kind": "conditionals", "people": [[["0.5", "0.5"]] * 2000], "total": ["0.5", "0.5"]},
            {"kind": "conditionals", "people": [[["0.001"] * 1000] * 2] * 50, "total": ["0.001"] * 1000},
            {"kind": "binomial", "n": 5000, "p": "0.5", "conservative": f"0.{digits}"},
            {"kind": "binomial", "n": 2000, "p": "0.5", "conservative": "1e-1000"},
            [{"kind": "binomial", "n": 60, "p": f"0.{i:04d}"} for i in range(1, 300)],
            [{"kind": "binomial", "n": 10**8, "p": f"0.{i:04d}"} for i in range(1, 300)],
        ]
    )


def enormous(folder: Path, random: Random) -> list[str]:
    document = single_document()
    problem = document["problem"]
    problem["population"] = _people(random)
    problem["epsilon"] = random.choice(["0.5", "1e-12", "100", f"0.{'3' * 399}"])
    problem["adjacency"] = random.choice(["unit", "all"])
    problem["objective"] = random.choice(["mae", "mse"])
    if isinstance(problem["population"], list):
        count = len(problem["population"])
        problem["weights"] = ["1"] + ["0"] * (count - 1)
    document["provenance"] = random.choice([{}, document["provenance"]])
    bits = random.choice([1, 62, 4095])
    half = 1 << (bits - 1)
    count = random.choice([1, 1, 50, 2000])
    far = random.choice([1, 10, 2**40, 2**53])
    row = [[0, half], [far, half]]
    table_of(document, [row] * count, 0, [0, far], random.choice(["clamp", "clamp", "geometric", "error"]))
    odd = 1 + 2 * random.randrange(1 << 4000)
    document["tail"] = random.choice(
        [
            None,
            {"law": "geometric", "q": [str(odd), str(1 << 4096)]},
            {"law": "geometric", "q": ["1", str(1 << 4096)]},
            {"law": "geometric", "q": [str((1 << 4096) - 1), str(1 << 4096)]},
            {"law": "geometric", "q": ["9", "10"]},
        ]
    )
    document["claim"].update(ordinary_epsilon="infinite", never_worse=False)
    problem["never_worse"] = False
    return _reader(written(folder, sealed(document)), folder, random)


def long_tables(folder: Path, random: Random) -> list[str]:
    """Many rows, or long ones, over denominators of thousands of bits; the claim is false."""
    document = single_document()
    bits = random.choice([62, 62, 1000, 4096])
    rows, wide = random.choice([(2, 20_000), (200, 100), (5000, 2), (8000, 1), (60, 60)])
    if bits > 62:
        rows, wide = min(rows, 500), min(wide, 60)
    size = 1 << bits
    row = [[s, size // wide] for s in range(wide)]
    row[0][1] += size - sum(weight for _, weight in row)
    document["problem"]["population"] = {"kind": "binomial", "n": rows - 1 or 1, "p": "0.5"}
    rows = max(rows, 2)
    table_of(document, [row] * rows, 0, [0, wide - 1], "error")
    document["tail"] = random.choice([None, {"law": "geometric", "q": ["3", "4"]}])
    document["claim"].update(epsilon="1e-9", ordinary_epsilon="1e-9")
    document["provenance"] = {}
    return _reader(written(folder, sealed(document)), folder, random)


def wild_prices(folder: Path, random: Random) -> list[str]:
    document = single_document()
    found = document["provenance"]["prices"]
    bad = random.choice(
        ["nan", "inf", "1e999", "1e308", "-1e308", "x", "1_0", "0x1", "9" * 5000, "", "1e-320", "\u0663"]
    )
    count = random.choice([0, 1, 7, 100_000])
    if random.random() < 0.5:
        found["z"] = random.choice([" ".join([bad] * count), None, 3, [bad], {"z": bad}])
    else:
        found["u"] = random.choice(
            [[" ".join([bad] * count)] * 2, [" ".join([bad] * 7)] * 3000, bad, None, [[bad]], [None]]
        )
    document["claim"]["lower_bound"] = random.choice([document["claim"]["lower_bound"], "1e300", "0", "-1", "9" * 400])
    return _reader(written(folder, sealed(document)), folder, random)


# ---------------------------------------------------------------------- what is no JSON at all


class Trap:
    """A pickle that leaves a trace if it is ever loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("trace-of-a-pickle",)


@lru_cache(maxsize=2)
def _archive(kind: int) -> bytes:
    """An archive of arrays, as exports write them; compressed it is a bomb."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name in ("fields", "row_pointers", "row_outputs", "row_weights"):
            archive.writestr(f"{name}.npy", bytes(1000 if kind == zipfile.ZIP_STORED else 64 << 20))
    return buffer.getvalue()


def archives(folder: Path, random: Random) -> list[str]:
    """Archives and pickles, whole, cut, or behind something else."""
    data = random.choice(
        [
            _archive(zipfile.ZIP_STORED),
            _archive(zipfile.ZIP_DEFLATED),
            pickle.dumps(Trap(), protocol=random.randrange(5)),
            b"#!/bin/sh\n" + _archive(zipfile.ZIP_STORED),
            b"{" + _archive(zipfile.ZIP_STORED),
        ]
    )
    if random.random() < 0.3:
        data = data[: random.randrange(len(data))]
    return _reader(written(folder, data, random.choice(["a.npz", "a.json", "a.npy"])), folder, random)


# ---------------------------------------------------------------------- plans, orders, paths


def plan_folders(folder: Path, random: Random) -> list[str]:
    forgery = plan_documents()
    place = folder / "plan"
    place.mkdir()
    which = random.choice(["plan", "party", "sealed", "meaning"])
    if which == "meaning":
        _enormous_plan(forgery, random)
        forgery.seal().write(place)
    elif which == "sealed":
        document = random.choice([forgery.plan, *forgery.parties])
        put(
            document, _leaf(document, random), random.choice([None, -1, 2**64, "9" * 1300, [], {}, "1e999", [[]], True])
        )
        with contextlib.suppress(KeyError, TypeError, AttributeError, ValueError, IndexError):
            forgery.seal()
        forgery.write(place)
    else:
        forgery.write(place)
        document, name = (forgery.plan, "plan.json") if which == "plan" else (forgery.parties[0], "party-0.json")
        written(place, _with(document, _leaf(document, random), _odd(random)), name)
    return random.choice(
        [
            ["verify", str(place)],
            ["verify", str(place)],
            ["verify", str(place / "party-0.json")],
            ["sample", str(place / "party-1.json"), "--input", "1"],
            ["verify", str(place / "plan.json")],
        ]
    )


def _enormous_plan(forgery: Forgery, random: Random) -> None:
    problem = forgery.plan["problem"]
    count = random.choice([2, 2, 24, 64, 200])
    party = (
        _people(random)
        if random.random() < 0.5
        else {"kind": "binomial", "n": random.choice([3, 5000 if count == 2 else 100]), "p": "0.5"}
    )
    party = party[0] if isinstance(party, list) else party
    if len(json.dumps(party)) > 2000:  # every file repeats the whole problem
        count = 2
    problem["parties"] = [party] * count
    problem["honest"] = random.choice([1, count // 2, count])
    problem["f"] = random.choice([[1] * count, [1000] * count, [1000, *[1] * (count - 1)], list(range(1, count + 1))])
    if random.random() < 0.3:
        problem["also"] = [{"parties": problem["parties"]}] * random.choice([1, 50 if count == 2 else 2])
    far = random.choice([1, 1000, 10**6, 2**53])
    table: Document = random.choice(
        [
            {
                "inputs": [0, 0],
                "outputs": [0, far],
                "denominator": "2",
                "outside": "clamp",
                "weights": [[[0, 1], [far, 1]]],
            },
            {"inputs": [0, 0], "outputs": [0, 0], "denominator": "2", "outside": "clamp", "weights": [[[0, 2]]]},
            {
                "inputs": [0, 3],
                "outputs": [0, 999],
                "denominator": "1024",
                "outside": "clamp",
                "weights": [[*([s, 1] for s in range(999)), [999, 25]]] * 4,
            },
        ]
    )
    share = {
        "law": "sgdl",
        "q": random.choice([["3", "4"], [str((1 << 4096) - 1), str(1 << 4096)], ["1", str(1 << 4096)]]),
        "beta": random.choice([["1", "2"], ["1", str(1 << 4096)]]),
        "factor": 1,
        "contraction": None,
        "contraction_denominator": "1",
    }
    table |= random.choice([{"tail": None}, {"tail": None}, {"tail": share, "outside": "geometric"}])
    model = forgery.parties[0]
    forgery.parties = []
    for i in range(count):
        forgery.parties.append(copy.deepcopy(model) | copy.deepcopy(table))
        forgery.parties[-1]["claim"]["party"] = i
        if forgery.parties[-1]["tail"]:
            forgery.parties[-1]["tail"]["factor"] = problem["f"][i]
    forgery.plan["claim"]["parties"] = [{"epsilon": "1e-9", "ordinary_epsilon": "infinite", "mae": "1e300"}] * count
    forgery.plan["claim"].update(epsilon="1e-9", mae="1e300", mse="1e300", lower_bound=None)
    forgery.plan["provenance"] = {}


def orders(folder: Path, random: Random) -> list[str]:
    document = order_document(folder)
    path = folder / "order.json"
    match random.randrange(5):
        case 0:
            path.write_bytes(_with(document, _leaf(document, random), _odd(random)).encode("utf-8", "surrogatepass"))
        case 1:
            put(
                document,
                _leaf(document, random),
                random.choice([None, -1, 2**64, "9" * 1300, [], {}, "1e999", 1.5, True]),
            )
            path.write_bytes(sealed(document))
        case 2:  # the groups lie in a file that harms
            raw = random.choice(
                ["[" * 100_000, "[[0, 1e999]]", "[[NaN]]", '[[0,"x"]]', "[[9999999]]", "[[-1]]", "[" + "9" * 5000 + "]"]
            )
            (folder / "groups.json").write_text(raw)
            path.write_bytes(sealed(document))
        case 3:  # or are no file at all
            spot = random.choice(
                ["/dev/zero", "/dev/stdin", str(folder), "pipe", "loop", "\0", "x" * 5000, "/proc/self/mem", ""]
            )
            os.mkfifo(folder / "pipe")
            (folder / "loop").symlink_to(folder / "loop")
            key = random.choice(["file", "points", "graph", "data"])
            document["problem"]["groups"] = {key: spot, "columns": ["x", "y"], "radius": "1", "column": "x"}
            if random.random() < 0.7:
                document["problem"]["groups"] = {"file": spot}
            path.write_bytes(sealed(document))
        case _:
            count = random.choice([10, 100_000])
            document.update(n=count, order=random.choice([list(range(count)), [0] * count, list(range(1, count + 1))]))
            path.write_bytes(sealed(document))
    shuffled = [
        "shuffle",
        str(path),
        "--data",
        str(folder / "groups.json"),
        "--column",
        "x",
        "--out",
        str(folder / "o.csv"),
    ]
    return random.choice([["verify", str(path)], ["verify", str(path)], shuffled])


def paths(folder: Path, random: Random) -> list[str]:
    os.mkfifo(folder / "pipe.json")
    (folder / "folder.json").mkdir()
    (folder / "loop.json").symlink_to(folder / "loop.json")
    (folder / "to-pipe.json").symlink_to(folder / "pipe.json")
    (folder / "to-zero.json").symlink_to("/dev/zero")
    with (folder / "sparse.json").open("wb") as file:
        file.truncate(random.choice([10**9, 10**12]))
    path = random.choice(
        [
            *sorted(str(item) for item in folder.iterdir()),
            "/dev/zero",
            "/dev/null",
            "/dev/random",
            "/dev/tty",
            "/dev/stdin",
            "/proc/self/mem",
            "/proc/self/status",
            "/",
            "",
            "x" * 5000,
            str(folder / "none"),
            str(folder / "li\nne"),
        ]
    )
    others = [
        ["solve", path],
        ["run", path, "--data", path, "--column", "x"],
        ["compare", path],
        ["shuffle", path, "--data", path, "--column", "x", "--out", str(folder / "o.csv")],
    ]
    return random.choice([_reader(Path(path) if path else Path("none"), folder, random), random.choice(others)])


# ---------------------------------------------------------------------- problem files and data


def tomls(folder: Path, random: Random) -> list[str]:
    head = 'kind = "single-lte"\nepsilon = "0.5"\n'
    people = '[population]\nkind = "binomial"\nn = 5\np = "0.5"\n'
    deep = random.choice([50, 1000, 20_000])
    number = random.choice(
        [
            "nan",
            "inf",
            "-inf",
            "1e999",
            "-1e-999",
            "9" * 5000,
            "0x" + "f" * 5000,
            "1" + "_0" * 3000,
            "2020-01-01",
            "true",
            "[]",
            "{}",
            '""',
            '"' + "9" * 5000 + '"',
            '"1e1001"',
            '"-1"',
            '"1/0"',
            "0",
            "-0.0",
            '"NaN"',
            '"\\u0000"',
            "1.5",
        ]
    )
    makers: list[Callable[[], str | bytes]] = [
        lambda: head + people.replace("5\n", f"{number}\n", 1),
        lambda: head.replace('"0.5"', number) + people,
        lambda: head + people.replace('"0.5"', number),
        lambda: head + "x = " + "[" * deep + random.choice(["]" * deep, ""]) + "\n" + people,
        lambda: head + "x = " + "{a=" * deep + "1" + "}" * deep + "\n" + people,
        lambda: head + ".".join(["a"] * deep) + " = 1\n" + people,
        lambda: head + "[" + ".".join(["a"] * deep) + "]\nb = 1\n",
        lambda: head + people + "".join(f"[t{i}]\n" for i in range(deep)),
        lambda: head + people + "[[a]]\n" * deep,
        lambda: head + people + "".join(f"[a{'.a' * (i % 50)}{i}]\nb=1\n" for i in range(deep // 4)),
        lambda: head + 'notes = "' + "x" * (deep * 500) + '"\n',
        lambda: head + 'notes = """' + "\n" * (deep * 50) + people,
        lambda: head + people + 'p = "0.6"\n',
        lambda: head + people + people,
        lambda: head + '[population]\nkind = "iid"\nn = 3\npmf = [' + '"0.5",' * deep + "]\n",
        lambda: head + '[population]\nkind = "counts"\ncounts = [' + "1," * max(deep, 1000) + "]\n",
        lambda: (
            head + '[population]\nkind = "independent"\npeople = [' + '{pmf=["0.5","0.5"]},' * (deep // 10) + "]\n[x]\n"
        ),
        lambda: (
            'kind = "multi-lte"\nepsilon = "1"\n'
            + '[[parties]]\nkind="binomial"\nn=3\np="0.5"\n' * random.choice([1, 1001, 3000])
        ),
        lambda: ("\ufeff" + head + people).encode(),
        lambda: (head + people).encode("utf-16"),
        lambda: (head + people).encode() + b"\xff\xfe",
        lambda: (head + people).encode().replace(b"0.5", b"0.\x005"),
        lambda: head.replace("\n", "\r") + people,
        lambda: 'kind = ["single-lte"]\n',
        lambda: f'kind = "{number[:200].strip(chr(34))}"\n',
        lambda: 'kind = "order-shuffle"\nalpha = "1"\n[groups]\nfile = "/dev/zero"\n',
        lambda: (
            'kind = "order-shuffle"\nalpha = "1"\n[groups]\npoints = "p.toml"\ncolumns = ["x", "y"]\nradius = "1"\n'
        ),
        lambda: 'kind = "amplification"\nepsilon = 1e999\ndelta = nan\nn = 5\n',
        lambda: 'kind = "amplification"\n[randomizer]\nkind = "matrix"\ncsv = "/dev/zero"\n',
        lambda: 'kind = "metric-shuffle"\nn = 10\nk = ' + number + "\nepsilon = 1\n",
        lambda: bytes(random.randrange(256) for _ in range(3000)),
    ]
    text = random.choice(makers)()
    path = written(folder, text, "p.toml")
    return random.choice(
        [["solve", str(path)], ["solve", str(path), "--json"], ["compare", str(path)], ["curve", str(path)]]
    )


def csvs(folder: Path, random: Random) -> list[str]:
    problem = 'kind = "metric-shuffle"\nn = 10\nk = 100\nepsilon = "0.5"\nmechanism = "geo"\n'
    path = written(folder, problem, "p.toml")
    cell = random.choice(
        [
            "",
            "nan",
            "inf",
            "1e999",
            "9" * 5000,
            "1_0",
            "\u0663",
            "0x10",
            "-1",
            "1.5",
            "x" * 200_000,
            '"',
            '""',
            '"a',
            "NULL",
            "=1+1",
            "1,2",
            "\x1b[31m",
            "--",
            "1e400",
            "-0",
        ]
    )
    rows = ["5"] * 10
    rows[random.randrange(10)] = cell
    end = random.choice(["\n", "\r\n", "\r"])
    makers: list[Callable[[], str | bytes]] = [
        lambda: end.join(["x", *rows]),
        lambda: end.join(["x", *rows]).encode().replace(b"5", b"5\0", 1),
        lambda: ("\ufeff" + "\n".join(["x", *rows])).encode(),
        lambda: "\n".join(["x", *rows]).encode("utf-16"),
        lambda: b"x\n" + b"\xff\n" * 10,
        lambda: ",".join(f"c{i}" for i in range(100_000)) + "\n" + ",".join("1" for _ in range(100_000)) + "\n",
        lambda: "x,x\n" + "1,2\n" * 10,
        lambda: "x\n" + '"' + "\n" * 100_000,
        lambda: "x\n" + "1\n" * 300_000,
        lambda: "x\n" + "1,2,3\n" * 10,
        lambda: "x\n\n\n5\n",
        lambda: "",
        lambda: "\n" * 10_000,
        lambda: "x",
        lambda: "x\n" + '"' + "5" * 131_073 + '"\n',
        lambda: " x \n" + "\n".join(rows),
    ]
    data = random.choice(makers)()
    table = written(folder, data, "d.csv")
    return ["run", str(path), "--data", str(table), "--column", "x", "--out", str(folder / "e.json")]
