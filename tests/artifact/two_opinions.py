"""Files forged in every field, every digest made anew, before both checkers: do they accept and refuse the same ones?

Where the two may differ is written down in docs/verify.md, and known here as `EXPLAINED`.
"""

from __future__ import annotations

import contextlib
import copy
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from optdp import MultiLTE, Population, SingleLTE, solve
from optdp.loading import load
from optdp.numbers.exact import decimal_down, decimal_up
from optdp.order.problem import OrderShuffle
from optdp.recheck import Failed, Refused, recheck
from tests.artifact import forgeries, shuffle_forgeries, watched_forgeries
from tests.artifact import test_plan as plans
from tests.checkers import first_opinion, second_opinion
from tests.shared import shared_solution

Document = dict[str, Any]
Watched = Callable[[Document, Random], None]

ODD: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 10**9, 10**1200, 0.5, 1e300, "", "0", "-1", "1/0", "1/3", "0.5", " 0.5", "0.5 ",
    "5e-1", "1e999", "1e-1000", "1e9999", "+1", ".5", "5.", "1_0", "9" * 400, "9" * 401, "x" * 9000, "infinite", "nan",
    "-inf", [], {}, [[]], [None], {"kind": "binomial"}, "geometric", "none", "clamp", "error", "mse", "all",
    "\ud7ff\x00\n",
)  # fmt: skip
EXPLAINED = (
    "Every byte",
    "optdp verify",
    "a minute of work",
    "written out",
    "may take",
    "meaning must",
    "profile, entry",
)
"""Words of a refusal for reasons that one alone has: other bytes around the same content, too much work, the sentence
of a shuffle protocol, an epsilon of one that the second checker proves to be a little smaller than the first does."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document where something stands, but for most of the weights."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:6]) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    *way, last = path
    for key in way:
        document = document[key]
    document[last] = value


def got(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def anything(document: Document, random: Random) -> None:
    """Something odd in any field, or a field less, or one more."""
    path = random.choice([place for place in places(document) if place and place[0] != "sha256"])
    inner, way = got(document, path[:-1]), random.random()
    if way < 0.1 and isinstance(inner, dict):
        del inner[path[-1]]
    elif way < 0.2 and isinstance(inner, dict):
        inner[random.choice(["more", "delta", "lower_bound", "v", "also", "unit", "title"])] = random.choice(ODD)
    else:
        put(document, path, copy.deepcopy(random.choice(ODD)))


def spelled(value: Fraction, random: Random) -> str:
    """A number as somebody may write it, with more or fewer digits than it has, on either side of it or exactly."""
    digits = random.choice([3, 8, 15, 20, 25, 29, 30, 31, 35, 37, 38, 39, 45, 60, 100, 300])
    near = value + random.choice([-1, 0, 0, 0, 1]) * Fraction(1, 10 ** random.choice([digits, 30, 38, 9, 60]))
    text = random.choice([decimal_up, decimal_down])(near, digits)
    power = f"{int(Fraction(text) * 10**digits)}e-{digits}"
    return random.choice([text, text, text, str(Fraction(text))[:800], power, f" {text}"])


def many_digits(claims: list[Document], figures: list[dict[str, Fraction]], random: Random) -> None:
    """The figure that a claim is about, as exactly as can be, or a hair beside."""
    i = random.randrange(len(claims))
    if known := [name for name in figures[i] if name in claims[i]]:
        name = random.choice(known)
        claims[i][name] = spelled(figures[i][name], random)


def price_text(prices: Any, random: Random) -> None:
    """Prices in another spelling, of another size, or of another number."""
    if not isinstance(prices, dict) or not isinstance(prices.get("u"), list) or not prices["u"]:
        return
    line = random.choice(["z", "u"])
    row = prices["z"] if line == "z" else random.choice(prices["u"])
    numbers = row.split() if isinstance(row, str) else []
    way = random.randrange(8)
    if way == 0 and numbers:
        numbers[random.randrange(len(numbers))] = random.choice(
            ["1e400", "1e-400", "nan", "inf", "1_0", "-1", "0x1", "1e5", "1E5", "+1", ".5", "5.", "1" * 401, "\u0663"]
        )
    elif way == 1 and numbers:
        numbers.pop()
    elif way == 2:
        numbers.append("0.0")
    elif way == 3:
        numbers = [repr(float(number) * random.choice([0.5, 1 - 1e-15, 1 + 1e-15, 2.0])) for number in numbers]
    text = random.choice([" ", " ", " ", " ", "  ", "\t"]).join(numbers) + random.choice(["", "", "", " ", "\n"])
    if way == 4:
        prices["v"] = "0.0"
    elif way == 5:
        prices["u"] = prices["u"][::-1]
    elif line == "z":
        prices["z"] = text
    else:
        prices["u"][prices["u"].index(row)] = text


def misfit(document: Document, random: Random) -> None:
    """A table that another problem could have: other outputs, inputs, tails, or what inputs without a row get."""
    size, by = int(document["denominator"]), random.choice([-1000, -7, -1, 1, 7, 1000])
    way = random.randrange(6)
    if way == 0:  # one constant
        at = random.choice([by, 0, document["outputs"][1]])
        document["outputs"], document["weights"] = [at, at], [[[at, size]]] * len(document["weights"])
    elif way == 1:
        forgeries.move_outputs(document, random, [])
    elif way == 2:
        document["outputs"] = [document["outputs"][0] + min(by, 0), document["outputs"][1] + max(by, 0)]
    elif way == 3:
        document["inputs"] = [x + by for x in document["inputs"]]
    elif way == 4:
        forgeries.inputs(document, random, [])
    else:
        document["tail"] = random.choice([None, {"law": "geometric", "q": ["1", "2"]}, document["tail"]])
        document["outside"] = random.choice(["clamp", "geometric", "error"])


# ---------------------------------------------------------------------- single artifacts


def artifacts() -> list[Document]:
    """Those of `forgeries`, and shapes that they lack."""
    binomial = Population.binomial
    more = [
        SingleLTE(binomial(6, "0.3"), "0.7", tail="none", method="geometric"),
        SingleLTE(binomial(1, "0.3"), "0.7"),
        SingleLTE(binomial(9, "0.4").conservative("0.5"), "0.7"),
        SingleLTE(
            [binomial(6, "0.5"), Population.iid(2, ["0.2", "0.3", "0.5"])], 0.9, objective="mse", adjacency="all"
        ),
    ]
    return [*forgeries.originals(), *(forgeries.document_of(problem) for problem in more)]


def forged_artifact(every: list[Document], folder: Path, random: Random, more: Sequence[Watched] = ()) -> Path:
    """One of them with a change or two; of those that are watched half of the changes are `more`."""
    document = copy.deepcopy(random.choice(every))
    path = folder / "a.json"
    for _turn in range(random.choice([1, 1, 1, 2])):
        with contextlib.suppress(Exception):  # a change after which another is none
            if more and random.random() < 0.5:
                random.choice(more)(document, random)
            else:
                _change_artifact(document, every, path, random)
    if random.random() < 0.3:
        with contextlib.suppress(Exception):
            forgeries.modest(document, random)
    path.unlink(missing_ok=True)
    path.write_bytes(forgeries.sealed(document))
    return path


def _change_artifact(document: Document, every: list[Document], path: Path, random: Random) -> None:
    way = random.randrange(8)
    if way < 2:
        anything(document, random)
    elif way == 2:
        path.write_bytes(forgeries.sealed(document))
        many_digits([document["claim"]], [_figures(path)], random)
        if random.random() < 0.2:
            document["problem"]["epsilon"] = document["claim"]["epsilon"]
    elif way == 3:
        price_text(document["provenance"].get("prices"), random)
    elif way == 4:
        misfit(document, random)
    elif way == 5:  # a bound around what is proved, or around the objective
        claim = document["claim"]
        base = random.choice([claim["lower_bound"] or "0.1", claim["mae"], claim["mse"]])
        claim["lower_bound"] = spelled(Fraction(base), random)
    else:
        random.choice(forgeries.CHANGES)(document, random, every)


def _figures(path: Path) -> dict[str, Fraction]:
    """What is true of a file, to far more digits than it claims."""
    try:
        return {name: value for name, value in recheck(path).figures.items() if isinstance(value, Fraction)}
    except (Failed, Refused):
        return {}


# ---------------------------------------------------------------------- plans


def plan_homes(folder: Path) -> list[Path]:
    """Plans of every method; in the second world of one, parties are alike that are not so in the first."""
    binomial = Population.binomial
    problems = [
        MultiLTE(plans.PEOPLE, "0.5", method="joint"),
        MultiLTE(plans.PEOPLE, "0.5", method="divisible"),
        MultiLTE(plans.PEOPLE, "0.5", method="geometric"),
        MultiLTE([binomial(4, "0.5"), binomial(4, "0.3")], "0.7", also=[[binomial(4, "0.4")] * 2], method="joint"),
        MultiLTE(
            [binomial(3, "0.5"), Population.iid(2, ["0.5", "0.3", "0.2"])],
            "1",
            f=[2, -1],
            fallback_epsilon="6",
            method="joint",
        ),
        MultiLTE([binomial(4, "0.5")] * 3, "1", honest=2, objective="mse", method="joint"),
    ]
    return saved(problems, folder / "plans")


def saved(problems: Sequence[MultiLTE], folder: Path) -> list[Path]:
    folder.mkdir()
    homes = []
    for i, problem in enumerate(problems):
        homes.append(folder / f"plan-{i}")
        shared_solution(problem).save(homes[-1])
    return homes


def forged_plan(homes: list[Path], folder: Path, random: Random) -> Path:
    home = random.choice(homes)
    forgery = plans.Forgery(home)
    for _turn in range(random.choice([1, 1, 1, 2])):
        with contextlib.suppress(Exception):
            _change_plan(forgery, home, homes, random)
    if random.random() < 0.4:
        with contextlib.suppress(Exception):
            plans.modest(forgery, random)
    place = folder / "forged"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        forgery.seal().write(place)
    except Exception:
        plans.Forgery(home).write(place)
    return place


def _change_plan(forgery: plans.Forgery, home: Path, homes: list[Path], random: Random) -> None:
    way, party = random.randrange(8), random.choice(forgery.parties)
    method = forgery.plan["problem"]["method"]
    if home.parent.name == "watched" and random.random() < 0.5:
        own = {"seeded": watched_forgeries.maps, "inside": watched_forgeries.inside}
        random.choice([watched_forgeries.watched, own.get(method, watched_forgeries.watched)])(forgery, random)
    elif way < 2:
        anything(random.choice([forgery.plan, party]), random)
    elif way == 2:
        _digits_of_a_plan(forgery, _figures(home), random)
    elif way == 3:
        price_text(forgery.plan["provenance"].get("prices"), random)
        forgery.plan["claim"]["lower_bound"] = random.choice([forgery.plan["claim"]["lower_bound"], "0.01", "0", "9"])
    elif way == 4:
        misfit(party, random)
    elif way == 5:
        other = plans.Forgery(random.choice(homes))
        i = random.randrange(len(forgery.parties))
        forgery.parties[i] = other.parties[i % len(other.parties)]
        forgery.parties[i]["claim"]["party"] = i
        if random.random() < 0.5:
            forgery.plan["problem"]["method"] = random.choice(["joint", "divisible", "geometric"])
    elif method == "seeded":
        watched_forgeries.maps(forgery, random)
    else:
        random.choice(plans.STRUCTURED if party["tail"] is None else plans.SHARES)(forgery, random)


def _digits_of_a_plan(forgery: plans.Forgery, found: dict[str, Fraction], random: Random) -> None:
    own = [
        {name.partition(": ")[2]: value for name, value in found.items() if name.startswith(f"party {i}: ")}
        for i in range(len(forgery.parties))
    ]
    many_digits(
        forgery.claims(), [{name: value for name, value in found.items() if ":" not in name}, *own, *own], random
    )


# ---------------------------------------------------------------------- orders


def order_homes(folder: Path) -> list[Document]:
    """Orders of both distances, from lists and from a column, all in one folder with their groups."""
    (folder / "groups.json").write_text("[[0, 1, 2], [2, 3], [4, 5], [1, 5]]")
    (folder / "v.csv").write_text("v\n1\n2.5\n1\n-3\n0\n100\n")
    found = []
    for distance in ("kendall", "hamming"):
        for groups in ('file = "groups.json"\nn = 6\n', 'data = "v.csv"\ncolumn = "v"\nwithin = "1.5"\n'):
            head = f'kind = "order-shuffle"\nalpha = "1.5"\nordering = "rcm"\ndistance = "{distance}"\n[groups]\n'
            (folder / "p.toml").write_text(head + groups)
            problem = load(folder / "p.toml")
            assert isinstance(problem, OrderShuffle)
            solve(problem).save(folder / "order.json")
            found.append(json.loads((folder / "order.json").read_bytes()))
    return found


def forged_order(every: list[Document], folder: Path, random: Random) -> Path:
    document = copy.deepcopy(random.choice(every))
    path = folder / "order.json"
    for _turn in range(random.choice([1, 1, 2])):
        with contextlib.suppress(Exception):
            _change_order(document, every, path, random)
    path.write_bytes(forgeries.sealed(document))
    return path


def _change_order(document: Document, every: list[Document], path: Path, random: Random) -> None:
    way, claim = random.randrange(6), document["claim"]
    if way < 2:
        anything(document, random)
    elif way == 2:
        random.shuffle(document["order"])
    elif way == 3:
        path.write_bytes(forgeries.sealed(document))
        name = random.choice(["alpha", "theta"])
        claim[name] = spelled(_figures(path)[name], random).strip()
        if name == "alpha":
            document["problem"]["alpha"] = claim["alpha"]
    elif way == 4:
        q = Fraction(int(claim["q"][0]), int(claim["q"][1])) * random.choice([1, Fraction(999, 1000), Fraction(1, 3)])
        claim["q"] = [str(q.numerator), str(q.denominator)]
    else:
        part = random.choice(["claim", "order", "problem", "distance", "groups"])
        document[part] = copy.deepcopy(random.choice(every)[part])


# ---------------------------------------------------------------------- shuffle protocols


def forged_protocol(every: list[Document], folder: Path, random: Random) -> Path:
    document = copy.deepcopy(random.choice(every))
    path = folder / "protocol.json"
    for _turn in range(random.choice([1, 1, 1, 2])):
        with contextlib.suppress(Exception):
            if random.random() < 0.3:
                anything(document, random)
            else:
                random.choice(shuffle_forgeries.CHANGES)(document, random)
    if random.random() < 0.4:
        with contextlib.suppress(Exception):
            shuffle_forgeries.modest(document)
    path.write_bytes(shuffle_forgeries.sealed(document))
    return path


# ---------------------------------------------------------------------- both


Forge = Callable[[Path, Random], Path]


def forger(kind: str, folder: Path) -> Forge:
    """What forges a file of this kind into a folder."""
    if kind == "artifact":
        every = artifacts()
        return lambda place, random: forged_artifact(every, place, random)
    if kind == "watched":
        watched = [forgeries.document_of(problem) for problem in watched_forgeries.singles()]
        return lambda place, random: forged_artifact(watched, place, random, watched_forgeries.WATCHED)
    if kind == "order":
        orders = order_homes(folder)
        return lambda _, random: forged_order(orders, folder, random)
    if kind == "protocol":
        protocols = shuffle_forgeries.originals(folder)
        return lambda place, random: forged_protocol(protocols, place, random)
    homes = plan_homes(folder) if kind == "plan" else saved(watched_forgeries.several(), folder / "watched")
    return lambda place, random: forged_plan(homes, place, random)


def explained(said: str, answer: str, unchecked: Sequence[str]) -> bool:
    """Whether one of the two has a reason of its own, or `verify` refuses a claim that the other left to it."""
    claim = said.partition(" ")[0].rstrip(",")
    return any(word in said + answer + str(unchecked) for word in EXPLAINED) or claim in unchecked


def tally(folder: Path, seed: int, counts: dict[str, int]) -> Counter[str]:
    """How many forged files of each kind both accept, both refuse, and one alone accepts, with reason or without."""
    found = Counter[str]()
    for kind, count in counts.items():
        random, forge = Random(f"{seed} {kind}"), forger(kind, folder)
        for turn in range(count):
            path = forge(folder, random)
            one, said, _ = first_opinion(path)
            other, answer, findings = second_opinion(path)
            verdict = "both accept" if one == other == 0 else "both refuse"
            if (one == 0) != (other == 0):
                verdict = "explained" if explained(said, answer, findings.unchecked if findings else ()) else "DISAGREE"
            found[f"{kind}: {verdict}"] += 1
            if verdict == "DISAGREE":
                keep = folder / f"disagree-{kind.replace(' ', '-')}-{turn}{path.suffix}"
                shutil.copytree(path, keep) if path.is_dir() else shutil.copy(path, keep)
                keep.with_suffix(".txt").write_text(f"verify {one}: {said}\nrecheck {other}: {answer}\n")
    return found
