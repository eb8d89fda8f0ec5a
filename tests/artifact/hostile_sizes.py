"""Files that are right in form and enormous in meaning: families of them, for `tests.artifact.hostile_files`.

A few kilobytes can ask for the law of a million sums, for a thousand parties, or for every quotient of a thousand
secrets. Whoever reads such a file must find out what it asks for before doing it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.artifact.forgeries import sealed
from tests.artifact.hostile_forms import Document, order_document, plan_documents, single_document, table_of, written

DIGITS = "7" * 399
HUGE = 1 << 4096
CLAIM = {
    "epsilon": "1e9",
    "ordinary_epsilon": "infinite",
    "mae": "1e299",
    "mse": "1e299",
    "worst_error": "1e299",
    "never_worse": False,
}
"""A claim that nearly every table keeps, so that all of it has to be looked at."""


def reader(path: Path, folder: Path, random: Random) -> list[str]:
    """One of all commands that open an artifact or the folder of a plan."""
    name = str(path)
    target = random.choice(["python", "c", "js", "sql", "csv", "npz", "parquet"])
    return random.choice(
        [
            ["verify", name],
            ["verify", name, "--explain"],
            ["export", name, "--to", target, "--out", str(folder / "out")],
            ["report", name, "--out", str(folder / "out.html")],
            ["audit", name, "--samples", "1000"],
            ["sign", name, "--key", str(folder / "key.pem"), "--create-key"],
            ["sample", name, "--input", "1"],
        ]
    )


# ---------------------------------------------------------------------- one entity


def _binomial(n: int, p: str = "0.5", **more: Any) -> Document:
    return {"kind": "binomial", "n": n, "p": p, **more}


def _even(count: int) -> list[str]:
    return [f"1/{count}"] * count


def populations(random: Random) -> Any:
    """Populations that a short text can ask for: many people, many kinds, large contributions, long numbers."""
    count = random.choice([2, 20, 300])
    makers: list[Callable[[], Any]] = [
        lambda: _binomial(random.choice([5000, 5001, 20_000, 10**6, 10**9]), random.choice(["0.5", "1e-9", "1e-1000"])),
        lambda: _binomial(random.choice([2000, 5000]), random.choice([f"0.{DIGITS}", f"{DIGITS}/8{DIGITS}"])),
        lambda: _binomial(5000, "0.5", conservative=random.choice(["0.5", f"0.{DIGITS}", "1e-1000"])),
        lambda: [_binomial(10**8, f"0.{i:04d}") for i in range(1, count)] or _binomial(5),
        lambda: [_binomial(5000, f"0.{i:04d}") for i in range(1, count)] or _binomial(5),
        lambda: [_binomial(1000, f"0.{i:04d}{DIGITS[:300]}") for i in range(1, count)] or _binomial(5),
        lambda: {"kind": "iid", "n": random.choice([50, 1000, 4999]), "pmf": ["0.5", "0.3", "0.2"]},
        lambda: {"kind": "iid", "n": 10, "pmf": _even(random.choice([50, 200, 600]))},
        lambda: {"kind": "iid", "n": 1, "pmf": _even(1900)},
        lambda: {"kind": "iid", "n": 500, "pmf": [f"0.{DIGITS}", f"0.{'2' * 398}3"]},
        lambda: {"kind": "counts", "counts": list(range(1, random.choice([10, 100, 700]))), "n": 5},
        lambda: {
            "kind": "independent",
            "people": [{"pmf": [f"{i}/1009", f"{1009 - i}/1009"]} for i in range(1, random.choice([50, 300, 800]))],
        },
        lambda: {"kind": "independent", "people": [{"count": 300, "pmf": _even(3)}, {"count": 500, "pmf": _even(5)}]},
        lambda: {"kind": "others", "others": _even(random.choice([10, 1000])), "contributions": 900},
        lambda: {"kind": "others", "others": _even(5000), "contributions": random.choice([1, 10, 100])},
        lambda: {"kind": "others", "others": [f"1/{10**390 + 2 * i + 1}" for i in range(200)]},
        lambda: {"kind": "conditionals", "people": [[_even(1500)] * 2], "total": _even(1500)},
        lambda: {"kind": "conditionals", "people": [[_even(100)] * 30] * 20, "total": _even(100)},
        lambda: {"kind": "conditionals", "people": [[_even(8)] * 300] * 3, "total": _even(8)},
    ]
    return random.choice(makers)()


def _last(population: Any) -> int:
    """The largest sum, or a guess of it: most tables are refused at once if they reach beyond it."""
    if isinstance(population, list):
        return _last(population[0])
    match population["kind"]:
        case "binomial":
            return int(population["n"])
        case "iid":
            return int(population["n"]) * (len(population["pmf"]) - 1)
        case "counts":
            return int(population["n"]) * (len(population["counts"]) - 1)
        case "independent":
            return sum(group.get("count", 1) * (len(group["pmf"]) - 1) for group in population["people"])
        case "others":
            return len(population["others"]) - 1 + int(population.get("contributions", 1))
        case _:
            return len(population["total"]) - 1


def _row(outputs: range, bits: int, skew: int = 1) -> list[list[int]]:
    """Weights that are all there, some of them tiny, and sum to a power of two."""
    weights = [1 + (i * skew) % 3 for i in range(len(outputs))]
    weights[len(outputs) // 2] += (1 << bits) - sum(weights)
    return [[s, weight] for s, weight in zip(outputs, weights, strict=True)]


def sizes(folder: Path, random: Random) -> list[str]:
    """One entity: every population with tables of every size, in the middle of the sums or far from it."""
    document = single_document()
    problem = document["problem"]
    problem["population"] = people = populations(random)
    if isinstance(people, list):
        problem["weights"] = ["1"] + ["0"] * (len(people) - 1)
    last = _last(people)
    problem["adjacency"] = random.choice(["unit", "all"])
    problem["objective"] = random.choice(["mae", "mse"])
    problem["never_worse"] = False
    problem["epsilon"] = random.choice(["0.5", "100", "1e-12", f"0.{'3' * 399}"])
    if random.random() < 0.3:
        problem["fallback_epsilon"] = "101"
    rows, wide, bits = random.choice(
        [(last + 1, 1, 1), (last + 1, 3, 62), (50, 50, 62), (300, 300, 62), (40, 40, 4096), (3, 20_000, 62),
         (20_000, 1, 1), (5000, 3, 1000), (1, 1, 1), (2, 2, 4096), (900, 900, 62)]
    )  # fmt: skip
    rows = max(1, min(rows, last + 1, 20_000, 400_000 // wide))
    first = random.choice([0, max(0, (last - rows) // 2), last + 1 - rows])
    far = random.choice([0, first, first, -(2**40)])
    alike = random.random() < 0.5
    table = [_row(range(far, far + wide), bits, 1 if alike else i) for i in range(rows)]
    outside = "error" if rows == last + 1 else random.choice(["clamp", "geometric"])
    table_of(document, table, first, [far, far + wide - 1 + random.choice([0, 0, 10, 2**40])], outside)
    tails = [{"law": "geometric", "q": ["9", "10"]}, {"law": "geometric", "q": [str(HUGE // 2 + 1), str(HUGE)]}]
    document["tail"] = random.choice([*tails, *([] if outside == "geometric" else [None, None])])
    document["provenance"] = {}
    document["claim"].update(CLAIM)
    return reader(written(folder, sealed(document)), folder, random)


def prices(folder: Path, random: Random) -> list[str]:
    """Prices that fit the problem, as many as a file may have; no block of outputs can be passed over."""
    document = single_document()
    problem, many = document["problem"], random.choice([20, 200, 1000])
    problem["population"] = random.choice([_binomial(many), {"kind": "iid", "n": many // 4, "pmf": _even(5)}])
    problem.update(never_worse=False, epsilon="100")
    size, steps = _last(problem["population"]) + 1, random.choice([2, 8, 20])
    table_of(document, [[[0, 1]]] * size, 0, [0, 0], "error")
    document["tail"] = {"law": "geometric", "q": ["9", "10"]}
    price = [random.choice(["1e-300", "1e300", "0.5", "0"]) for _ in range(size)]
    document["provenance"] = {"prices": {"z": " ".join(price), "u": [" ".join(price[::-1])] * steps}}
    document["claim"].update(CLAIM)
    return reader(written(folder, sealed(document)), folder, random)


def long_words(folder: Path, random: Random) -> list[str]:
    """Names, keys and texts of a megabyte where a command shows or writes them."""
    document = single_document()
    text = random.choice(["x", "<b>", "\u202e", "\\", '"', "\n", "\u00e4", "&amp;"]) * random.choice([1000, 500_000])
    place = random.choice(["provenance", "claim", "key", "problem", "title"])
    if place == "problem":
        document["problem"]["notes"] = text
    elif place == "title":
        document["problem"].update(title=text, source=text)
    elif place == "key":
        document["claim"][text] = "1"
    else:
        document[place]["note"] = text
    return reader(written(folder, sealed(document)), folder, random)


# ---------------------------------------------------------------------- plans


def large_plans(folder: Path, random: Random) -> list[str]:
    """Plans of finite tables or of shares of noise: many parties, many people, many worlds, wide tables."""
    forgery = plan_documents()
    problem = forgery.plan["problem"]
    count = random.choice([2, 3, 10, 24, 60, 200])
    party = populations(random)
    party = party[0] if isinstance(party, list) else party
    if len(json.dumps(party)) > 2000:  # every file repeats the whole problem
        count = min(count, 3)
    parties = [party] * count
    if party["kind"] == "binomial" and random.random() < 0.6:  # no two alike
        people = random.choice([10, 500, 5000, 10**6])
        parties = [_binomial(people, f"0.{i:04d}") for i in range(1, count + 1)]
    problem["parties"] = parties
    problem["honest"] = random.choice([1, 2, count // 2 or 1, count - 1, count])
    problem["f"] = random.choice([[1] * count, [1] * count, [1000] * count, [1000, *[1] * (count - 1)]])
    if random.random() < 0.3:
        problem["also"] = [{"parties": parties}] * random.choice([1, 5, 100 if count == 2 else 2])
    shared = random.random() < 0.4
    model = forgery.parties[0]
    last = _last(parties[0])
    table = _shared_table(last, random) if shared else _finite_table(last, random)
    if shared:
        problem.pop("also", None)
        problem["method"] = "divisible"
        problem["contraction"] = "optimal"
    problem["epsilon"] = random.choice(["1", "100"])
    forgery.parties = []
    for i in range(count):
        forgery.parties.append(copy.deepcopy(model) | table)
        forgery.parties[-1]["claim"] = forgery.parties[-1]["claim"] | {"party": i}
        if shared:
            tail = forgery.parties[-1]["tail"] | {"factor": problem["f"][i], "beta": ["1", str(problem["honest"])]}
            forgery.parties[-1]["tail"] = tail
    own = {"epsilon": "1e9", "ordinary_epsilon": "infinite", "mae": "1e299"}
    for document in forgery.parties:
        document["claim"].update(own)
    forgery.plan["claim"]["parties"] = [own] * count
    forgery.plan["claim"].update(epsilon="1e9", mae="1e299", mse="1e299", lower_bound=None)
    del forgery.plan["claim"]["baseline_mae"]  # which would have to be right
    forgery.plan["provenance"] = {}
    place = folder / "plan"
    place.mkdir()
    forgery.seal().write(place)
    return reader(place, folder, random)


def _finite_table(last: int, random: Random) -> Document:
    rows, wide, bits = random.choice(
        [(1, 1, 1), (1, 2, 1), (4, 1000, 62), (1, 5000, 62), (200, 20, 62), (last + 1, 1, 1), (last + 1, 3, 62)]
    )
    rows = max(1, min(rows, last + 1, 100_000 // wide))
    first, low = max(0, (last + 1 - rows) // 2), random.choice([0, -500])
    return {
        "inputs": [first, first + rows - 1],
        "outputs": [low, low + wide - 1 + random.choice([0, 0, 1000, 10**6])],
        "denominator": str(1 << bits),
        "outside": "error" if rows == last + 1 else "clamp",
        "weights": [_row(range(low, low + wide), bits)] * rows,
        "tail": None,
    }


def _shared_table(last: int, random: Random) -> Document:
    share: Document = {
        "law": "sgdl",
        "q": random.choice([["3", "4"], ["999", "1000"], ["999999", "1000000"], [str(HUGE - 1), str(HUGE)]]),
        "contraction": None,
        "contraction_denominator": "1",
    }
    if last <= 5000 and random.random() < 0.5:
        near = random.choice([1, 3, 100])
        size = 64 * near
        share["contraction_denominator"] = str(1 << (size - 1).bit_length())
        starts = [max(0, min(x, last + 1 - near)) for x in range(last + 1)]
        share["contraction"] = [
            _row(range(start, min(last + 1, start + near)), (size - 1).bit_length()) for start in starts
        ]
    rows, wide = random.choice([(0, 0), (0, 0), (20, 50), (last + 1, 100), (1, 2000)])
    rows = min(rows, last + 1, 3000)
    if not rows:
        empty = {"inputs": [0, 0], "outputs": [0, 0], "denominator": "2", "weights": [[[0, 2]]]}
        return empty | {"outside": "geometric", "tail": share}
    first = max(0, (last + 1 - rows) // 2)
    low = first - wide // 2
    table = {"inputs": [first, first + rows - 1], "outputs": [low, low + wide - 1], "denominator": str(1 << 20)}
    return table | {"weights": [_row(range(low, low + wide), 20)] * rows, "outside": "geometric", "tail": share}


# ---------------------------------------------------------------------- orders


def large_orders(folder: Path, random: Random) -> list[str]:
    """Orders of many records, in groups that are large, many, or made anew from large files."""
    document = order_document(folder)
    n = random.choice([1000, 50_000, 300_000])
    makers: list[Callable[[], Any]] = [
        lambda: [list(range(n))],
        lambda: [[i, i + 1] for i in range(n - 1)],
        lambda: [list(range(i, min(i + 300, n))) for i in range(0, min(n, 3000))] + [[n - 1]],
        lambda: [[0, n - 1]] * 1000,
        lambda: [[i] for i in range(n)],
    ]
    (folder / "groups.json").write_text(json.dumps(random.choice(makers)()))
    (folder / "points.csv").write_text("x,y\n" + "\n".join(f"{i % 7},{i % 11}" for i in range(n)))
    (folder / "edges.csv").write_text("a,b\n" + "\n".join(f"{i},{(i * 7 + 1) % n}" for i in range(n)))
    document["problem"]["groups"] = random.choice(
        [
            {"file": "groups.json"},
            {"file": "groups.json"},
            {"points": "points.csv", "columns": ["x", "y"], "radius": random.choice(["0.1", "1", "1e9"])},
            {"points": "points.csv", "columns": ["x", "y"], "radius": "1e5", "metric": "haversine"},
            {"graph": "edges.csv", "hops": random.choice([1, 3, 1000]), "n": n},
            {"data": "points.csv", "column": "x", **random.choice([{}, {"within": "1"}, {"within": "1e300"}])},
        ]
    )
    document.update(n=n, order=list(range(n)))
    path = written(folder, sealed(document), "order.json")
    return random.choice(
        [
            ["verify", str(path)],
            ["verify", str(path)],
            ["report", str(path), "--out", str(folder / "out.html")],
            ["sign", str(path), "--key", str(folder / "key.pem"), "--create-key"],
        ]
    )


# ---------------------------------------------------------------------- problem files that nobody can mean


def _toml(kind: str, tables: str = "", **keys: Any) -> str:
    """A problem file; JSON says texts, integers and lists as TOML does."""
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in {"kind": kind, **keys}.items()]
    return "".join(lines) + tables


def _people(kind: str, name: str = "[population]", **keys: Any) -> str:
    return f"{name}\n" + _toml(kind, **keys)


def _parties(count: int, n: int, alike: bool = True) -> str:
    return "".join(
        _people("binomial", "[[parties]]", n=n, p="0.5" if alike else f"0.{i:04d}") for i in range(1, count + 1)
    )


def absurd_problems(folder: Path, random: Random) -> list[str]:
    """Every kind of problem with numbers that no computer can serve: refused by a rule, not by patience."""
    whole = random.choice([10**12, 10**15, 10**18, 2**63, 10**60])
    noise = {"epsilon": "0.5"}
    promise = {"epsilon": "0.5", "delta": "1e-6"}
    shuffled: Document = {"eps0": "1", "n": 100, "delta": "1e-6"}
    metric: Document = {"n": 1000, "k": 100, "delta": "1e-4", "epsilon": "0.2"}
    row = [f"{i}/15" for i in range(1, 6)]
    three = ["0.5", "0.3", "0.2"]
    many = "".join(
        _people("iid", "[[population]]", n=4000, pmf=[f"0.{i:03d}", "0.5", f"0.{500 - i:03d}"]) for i in range(1, 400)
    )

    def randomizer(kind: str, **keys: Any) -> str:
        return "[randomizer]\n" + _toml(kind, **keys)

    makers: list[Callable[[], str]] = [
        lambda: _toml("single-lte", _people("binomial", n=whole, p="0.5"), **noise),
        lambda: _toml("single-lte", _people("iid", n=10**9, pmf=three), **noise),
        lambda: _toml("single-lte", _people("iid", n=10, pmf=_even(60_000)), **noise),
        lambda: _toml("single-lte", _people("others", others=_even(60_000), contributions=10_000), **noise),
        lambda: _toml("single-lte", _people("counts", counts=[10**9] * 300), **noise),
        lambda: _toml("single-lte", many, **noise),
        lambda: _toml("single-lte", _people("binomial", n=10**6, p="0.5"), fallback_epsilon="2", **noise),
        lambda: _toml("multi-lte", _parties(200, 5000), **noise),
        lambda: _toml("multi-lte", _parties(999, 5000, False), **noise),
        lambda: _toml("multi-lte", _parties(2, 10**6), f=[1000, -1000], **noise),
        lambda: _toml("multi-lte", _parties(2, 10**9), method="divisible", **noise),
        lambda: _toml("multi-lte", _parties(999, 10**9), epsilon="1e-12", method="geometric", honest=1),
        lambda: _toml("amplification", randomizer("k-rr", k=whole), eps0="1", n=whole, delta="1e-6"),
        lambda: _toml("amplification", randomizer("generic"), eps0="1", n=whole, delta="1e-300"),
        lambda: _toml("amplification", randomizer("generic"), rounds=whole, **shuffled),
        lambda: _toml("amplification", randomizer("hadamard", messages=whole), **shuffled),
        lambda: _toml("amplification", randomizer("subset-selection", d=whole, size=whole), **shuffled),
        lambda: _toml("amplification", randomizer("channel", matrix=[row] * 20_000), **shuffled),
        lambda: _toml("krr-count", n=whole, n_x0=whole, k=10, eps0="1", **noise),
        lambda: _toml("krr-count", counts=[10**12] * 2000, eps0="1", **noise),
        lambda: _toml("metric-shuffle", mechanism="geo", **metric | {"n": whole, "k": whole}),
        lambda: _toml("metric-shuffle", mechanism="rr", max_distance=whole, **metric | {"k": whole}),
        lambda: _toml("metric-shuffle", mechanism="sgdl", **metric | {"epsilon": "1e-12"}),
        lambda: _toml("metric-shuffle", mechanism="hybrid", c=whole, **metric),
        lambda: _toml("metric-shuffle", mechanism="geo", dimensions=whole, **metric),
        lambda: _toml("shuffle-histogram", n=whole, k=whole, **promise),
        lambda: _toml("shuffle-histogram", n=1000, labels=[str(i) for i in range(150_000)], **promise),
        lambda: _toml("real-sum", n=whole, k=whole, **promise),
        lambda: _toml("order-shuffle", f'[groups]\ngraph = "edges.csv"\nn = {whole}\n', alpha="1"),
        lambda: _toml("order-shuffle", '[groups]\ngraph = "edges.csv"\nhops = 1000000000\n', alpha="1e-300"),
    ]
    (folder / "edges.csv").write_text("a,b\n" + "\n".join(f"{i},{(i * 7 + 1) % 3000}" for i in range(3000)))
    return ["solve", str(written(folder, random.choice(makers)(), "p.toml"))]
