"""Files that somebody changed on purpose: well formed, every digest made anew, and perhaps untrue.

What `verify` accepts is measured a second time, from the text of the file: epsilons and errors in fractions
(`tests.exact_checker`), the least error of any mechanism by a linear program that is written here from its definition.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import json
import math
import shutil
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy.optimize import linprog

from optdp import MultiLTE, Population, SingleLTE, solve, verify, verify_plan
from optdp.errors import ArtifactError, CertificateError, OptdpError
from optdp.numbers.exact import decimal_up
from optdp.single.certify import certify
from tests.artifact import test_plan as plans
from tests.exact_checker import Checked, conditionals
from tests.shared import shared_solution
from tests.spelling import as_written

Document = dict[str, Any]
Change = Callable[[Document, Random, list[Document]], None]

SLACK = Fraction(1, 10**40)


def originals() -> list[Document]:
    """Small artifacts of every shape, as documents."""
    half = Population.binomial(6, "0.5")
    problems = [
        SingleLTE(half, "0.5"),
        SingleLTE(half, "0.5", tail="none"),
        SingleLTE(Population.binomial(5, "0.2"), "1", objective="mse", never_worse=False),
        SingleLTE(half, "0.4", fallback_epsilon="1.5"),
        SingleLTE([half, Population.binomial(6, "0.4")], "0.7", weights=["0.5", "0.5"]),
        SingleLTE(Population.iid(3, ["0.5", "0.3", "0.2"]), "0.9", adjacency="all", tail="none"),
        SingleLTE(Population.iid(3, ["0.5", "0.3", "0.2"]), "0.9"),
        SingleLTE(Population.independent([["0.5", "0.5"], ["0.9", "0.1"], ["0.2", "0.5", "0.3"]]), "1"),
        SingleLTE(Population.from_others(["0.1", "0.2", "0.4", "0.2", "0.1"]), "0.6", tail="none"),
        SingleLTE(half, "0.5", method="geometric"),
        SingleLTE(half, "1", method="shifting"),
    ]
    return [document_of(problem) for problem in problems]


def document_of(problem: SingleLTE) -> Document:
    from optdp.single.format import to_json

    found: Document = json.loads(to_json(solve(problem).artifact()))
    return found


def sealed(document: Document) -> bytes:
    """The document with its digest made anew."""
    rest = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    rest["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return as_written(rest)


# ---------------------------------------------------------------------- the least error of any mechanism


@lru_cache(maxsize=4096)
def least_error(text: str) -> float:
    """The optimum of a problem, in floating point."""
    spec = json.loads(text)
    priors = spec["population"] if isinstance(spec["population"], list) else [spec["population"]]
    people = [[np.array(law, dtype=float) for law in person] for prior in priors for person in conditionals(prior)[0]]
    totals = [np.array(conditionals(prior)[1], dtype=float) for prior in priors]
    size = max(len(total) for total in totals)
    weights = [float(Fraction(w)) for w in spec.get("weights", [1] + [0] * (len(priors) - 1))]
    prior: Any = sum(w * np.pad(total, (0, size - len(total))) for w, total in zip(weights, totals, strict=True))
    largest, unit = max(len(person) for person in people) - 1, spec["adjacency"] == "unit"
    epsilon = float(Fraction(spec["epsilon"]))
    q, x = math.exp(-epsilon / largest), np.arange(size)
    far = np.arange(1, 4000)
    inside, beyond = np.ones(size), {1: np.zeros(size), 2: np.zeros(size)}
    if spec["tail"] == "geometric":
        inside = 1 - (q ** (size - x) + q ** (x + 1)) / (1 + q)
        noise = (1 - q) / (1 + q) * q**far
        for power in (1, 2):
            terms = noise * far**power
            beyond[power] = np.array([terms[k:].sum() + terms[size - 1 - k :].sum() for k in x])
    power = 1 if spec["objective"] == "mae" else 2
    distance = np.abs(x[:, None] - x[None, :])
    cost = (prior[:, None] * inside[:, None] * distance**power).ravel()
    above: list[Any] = []
    bounds: list[float] = []
    bound = math.exp(epsilon / largest if unit else epsilon)
    for person in people:
        laws = [np.pad(law, (0, size - len(law))) for law in person]
        for i, j in itertools.permutations(range(len(laws)), 2):
            if unit and abs(i - j) != 1:
                continue
            for s in x:
                row = np.zeros((size, size))
                row[:, s] = (laws[i] - bound * laws[j]) * inside
                above.append(row.ravel())
                bounds.append(0.0)
    if spec["never_worse"]:
        for k in x:
            row = np.zeros((size, size))
            row[k] = inside[k] * distance[k]
            above.append(row.ravel())
            bounds.append(2 * q / (1 - q * q) - beyond[1][k] + 1e-9)
    if spec.get("fallback_epsilon") is not None:
        fallback = float(Fraction(spec["fallback_epsilon"]))
        reach, most = (1, math.exp(fallback / largest)) if unit else (largest, math.exp(fallback))
        for i, j in itertools.permutations(range(size), 2):
            for s in x if abs(i - j) <= reach else []:
                row = np.zeros((size, size))
                row[i, s], row[j, s] = inside[i], -most * inside[j]
                above.append(row.ravel())
                bounds.append(0.0)
    found = linprog(cost, above, bounds, np.kron(np.eye(size), np.ones(size)), np.ones(size), method="highs")
    return float(found.fun) + float(prior @ beyond[power]) if found.status == 0 else math.inf


# ---------------------------------------------------------------------- what is true


def untrue(path: Path) -> list[str]:
    """Every claim of an accepted artifact that does not hold."""
    data = json.loads(path.read_bytes())
    problem, claim = data["problem"], data["claim"]
    truth = Checked(path)
    said: list[str] = []
    for name, epsilon in (("wanted", problem["epsilon"]), ("claimed", claim["epsilon"])):
        if not truth.private(Fraction(epsilon) + SLACK):
            said.append(f"{name} epsilon {epsilon} is exceeded")
    for name, epsilon in (("fallback", problem.get("fallback_epsilon")), ("ordinary", claim["ordinary_epsilon"])):
        if epsilon not in (None, "infinite") and not truth.ordinary(Fraction(epsilon) + SLACK):
            said.append(f"{name} epsilon {epsilon} is exceeded")
    errors = truth.errors()
    weights = [Fraction(w) for w in problem.get("weights", [1] + [0] * (len(truth.specs) - 1))]
    figures: dict[str, Fraction] = {"worst_error": max(errors)}
    for name, values in (("mae", errors), ("mse", truth.errors(2))):
        totals = [sum(p * e for p, e in zip(conditionals(spec)[1], values, strict=False)) for spec in truth.specs]
        figures[name] = sum((w * total for w, total in zip(weights, totals, strict=True)), Fraction(0))
    largest = max(len(person) for person in truth.laws()) - 1
    geometric = 1 / math.sinh(float(Fraction(problem["epsilon"]) / largest))
    figures["baseline_mae"] = Fraction(geometric) * Fraction(10**12 - 1, 10**12)
    for name, value in figures.items():
        if name in claim and value > Fraction(claim[name]) + SLACK:
            said.append(f"{name} is {float(value)}, claimed {claim[name]}")
    if (claim.get("never_worse") or problem["never_worse"]) and float(max(errors)) > geometric * (1 + 1e-9):
        said.append(f"an input has the error {float(max(errors))}, geometric noise {geometric}")
    bound = claim.get("lower_bound")
    if bound is not None and data["provenance"].get("prices") is not None:
        least = least_error(json.dumps(problem, sort_keys=True))
        if float(Fraction(bound)) > least * (1 + 1e-7) + 1e-9:
            said.append(f"the lower bound {bound} is above the optimum {least}")
    return said


# ---------------------------------------------------------------------- how to forge


def move_weight(document: Document, random: Random, _: list[Document]) -> None:
    row = random.choice(document["weights"])
    low, high = document["outputs"]
    source = random.choice(row)
    target = random.randint(low, high)
    moved = random.choice([1, source[1] >> 40, source[1] >> 20, source[1] // 100, source[1] // 2, source[1]])
    if moved and target != source[0]:
        table = dict(map(tuple, row))
        table[source[0]] -= moved
        table[target] = table.get(target, 0) + moved
        row[:] = [[s, weight] for s, weight in sorted(table.items()) if weight]


def swap_rows(document: Document, random: Random, _: list[Document]) -> None:
    rows = document["weights"]
    i, j = random.randrange(len(rows)), random.randrange(len(rows))
    rows[i], rows[j] = rows[j], rows[i]


def mirror(document: Document, _: Random, __: list[Document]) -> None:
    document["weights"].reverse()


def same_rows(document: Document, random: Random, _: list[Document]) -> None:
    """Private whatever the prior, without a tail; and useless."""
    document["weights"] = [copy.deepcopy(random.choice(document["weights"]))] * len(document["weights"])


def blur(document: Document, random: Random, _: list[Document]) -> None:
    """Every row mixed with one and the same: often more private than before."""
    size = int(document["denominator"])
    parts = random.choice([2, 4, 16])
    low, high = document["outputs"]
    extra = size // parts // (high - low + 1)
    if extra and size % parts == 0:
        rows = []
        for row in document["weights"]:
            table = {s: weight - weight // parts for s, weight in row}
            for s in range(low, high + 1):
                table[s] = table.get(s, 0) + extra
            table[row[0][0]] += size - sum(table.values())
            rows.append([[s, weight] for s, weight in sorted(table.items())])
        document["weights"] = rows


def move_outputs(document: Document, random: Random, _: list[Document]) -> None:
    by = random.choice([-2, -1, 1, 2])
    document["outputs"] = [s + by for s in document["outputs"]]
    document["weights"] = [[[s + by, weight] for s, weight in row] for row in document["weights"]]


def widen(document: Document, random: Random, _: list[Document]) -> None:
    low, high = document["outputs"]
    document["outputs"] = [low - random.randrange(3), high + random.randrange(3)]


def denominators(document: Document, random: Random, _: list[Document]) -> None:
    by = random.choice([2, 2**70, 3])
    document["denominator"] = str(int(document["denominator"]) * by)
    if random.random() < 0.8:
        document["weights"] = [[[s, weight * by] for s, weight in row] for row in document["weights"]]


def coarser(document: Document, random: Random, _: list[Document]) -> None:
    """The same table rounded to few bits: a row that sums up again, and quotients that may not hold any more."""
    bits = random.choice([4, 8, 16, 30, 45])
    size, small = int(document["denominator"]), 1 << bits
    if size > small:
        rows = []
        for row in document["weights"]:
            table = {s: weight * small // size for s, weight in row}
            best = max(table, key=table.__getitem__)
            table[best] += small - sum(table.values())
            rows.append([[s, weight] for s, weight in sorted(table.items()) if weight])
        document.update(denominator=str(small), weights=rows)


def inputs(document: Document, random: Random, _: list[Document]) -> None:
    first, last = document["inputs"]
    low = random.randint(first, last)
    high = random.randint(low, last)
    document["weights"] = document["weights"][low - first : high - first + 1]
    document["inputs"], document["outside"] = [low, high], random.choice(["clamp", "geometric", "error"])
    if document["outside"] == "geometric" and random.random() < 0.7:  # the form that may be accepted
        document["outputs"] = [low, high]
        size = int(document["denominator"])
        document["weights"] = [_within(row, low, high, size) for row in document["weights"]]


def _within(row: list[list[int]], low: int, high: int, size: int) -> list[list[int]]:
    table: dict[int, int] = {}
    for s, weight in row:
        place = min(max(s, low), high)
        table[place] = table.get(place, 0) + weight
    assert sum(table.values()) == size
    return [[s, weight] for s, weight in sorted(table.items())]


def outside(document: Document, random: Random, _: list[Document]) -> None:
    document["outside"] = random.choice(["clamp", "geometric", "error"])


def tail(document: Document, random: Random, _: list[Document]) -> None:
    q = Fraction(random.choice([1, 2, 3, 5, 6, 61, 67, 90, 95, 99]), 100)
    old = document["tail"]
    if old is not None and random.random() < 0.6:
        q = Fraction(*map(int, old["q"])) * random.choice([Fraction(1, 2), Fraction(999, 1000), Fraction(1001, 1000)])
    if q < 1:
        new = {"law": "geometric", "q": [str(q.numerator), str(q.denominator)]}
        document["tail"] = random.choice([new, new, new, None])


def claim(document: Document, random: Random, _: list[Document]) -> None:
    stated = document["claim"]
    name = random.choice(["epsilon", "ordinary_epsilon", "mae", "mse", "worst_error", "baseline_mae", "lower_bound"])
    value = stated[name] if stated[name] not in (None, "infinite") else random.choice(["0.1", "1", "5"])
    by = random.choice([Fraction(1, 2), Fraction(99, 100), 1 - Fraction(1, 10**9), 1 + Fraction(1, 10**9), Fraction(2)])
    stated[name] = str(Fraction(value) * by)


def more_claims(document: Document, random: Random, _: list[Document]) -> None:
    document["claim"].update(random.choice([{"never_worse": True}, {"never_worse": 1}, {"lower_bound": "0.01"}]))


def epsilon(document: Document, random: Random, _: list[Document]) -> None:
    problem = document["problem"]
    by = random.choice([Fraction(1, 2), Fraction(99, 100), Fraction(101, 100), Fraction(3, 2), Fraction(4)])
    problem["epsilon"] = str(Fraction(problem["epsilon"]) * by)
    if random.random() < 0.7:
        document["claim"]["epsilon"] = problem["epsilon"]


def population(document: Document, random: Random, _: list[Document]) -> None:
    given = document["problem"]["population"]
    prior = random.choice(given) if isinstance(given, list) else given
    if "p" in prior:
        prior["p"] = random.choice(["0", "0.01", "0.39", "0.49", "0.499", "0.501", "0.6", "0.99", "1"])
    elif "pmf" in prior:
        random.shuffle(prior["pmf"])
    elif "others" in prior:
        prior["others"] = random.choice(
            [["0.2"] * 5, ["0.1", "0.25", "0.3", "0.25", "0.1"], ["0.5", "0", "0", "0", "0.5"]]
        )
    elif "people" in prior:
        group = random.choice(prior["people"])
        group["pmf"] = group["pmf"][::-1]
    if "n" in prior and random.random() < 0.3:
        prior["n"] += random.choice([-1, 1])


def robust(document: Document, random: Random, _: list[Document]) -> None:
    """Another prior beside the first; or one of two taken away."""
    problem = document["problem"]
    given = problem["population"]
    if isinstance(given, list):
        problem["population"] = random.choice(given)
        problem.pop("weights")
    else:
        other = copy.deepcopy(given)
        document["problem"]["population"] = [given, other]
        population(document, random, [])
        problem["weights"] = random.choice([["1", "0"], ["0.5", "0.5"], ["0", "1"]])


def options(document: Document, random: Random, _: list[Document]) -> None:
    problem = document["problem"]
    choices: list[tuple[str, list[Any]]] = [
        ("adjacency", ["unit", "all"]),
        ("tail", ["geometric", "none"]),
        ("objective", ["mae", "mse"]),
        ("never_worse", [True, False]),
        ("method", ["lp", "geometric", "shifting"]),
        ("fallback_epsilon", ["0.6", "1.2", "3", "20"]),
    ]
    name, values = random.choice(choices)
    problem[name] = random.choice(values)


def prices(document: Document, random: Random, others: list[Document]) -> None:
    """Other prices, and a lower bound that they might or might not prove."""
    found = document["provenance"].get("prices")
    if found is None:
        document["provenance"]["prices"] = random.choice(others)["provenance"].get("prices")
        return
    scale = random.choice([0.0, 0.5, 0.999, 1.001, 2.0, -1.0, 1e100, 1e-100])
    if random.random() < 0.5:
        found["z"] = " ".join(repr(float(value) * scale) for value in found["z"].split())
    else:
        row = random.randrange(len(found["u"]))
        found["u"][row] = " ".join(repr(float(value) * scale) for value in found["u"][row].split())
    if random.random() < 0.5:
        document["claim"]["lower_bound"] = random.choice(["0", "0.001", "0.3", "1", "2"])


def transplant(document: Document, random: Random, others: list[Document]) -> None:
    """Part of another artifact in this one."""
    other = copy.deepcopy(random.choice(others))
    part = random.choice(["table", "claim", "problem", "prices"])
    if part == "table":
        for name in ("inputs", "outputs", "denominator", "outside", "tail", "weights"):
            document[name] = other[name]
    elif part == "prices":
        document["provenance"] = other["provenance"]
        document["claim"]["lower_bound"] = other["claim"]["lower_bound"]
    else:
        document[part] = other[part]


CHANGES: tuple[Change, ...] = (
    move_weight, move_weight, move_weight, swap_rows, mirror, same_rows, blur, blur, move_outputs, widen, denominators,
    coarser, coarser, inputs, inputs, outside, tail, tail, claim, claim, claim, more_claims, epsilon, epsilon,
    population, population, robust, options, options, prices, prices, transplant, transplant,
)  # fmt: skip


def modest(document: Document, random: Random) -> None:
    """Claims that are true of nearly anything, so that privacy alone can refuse."""
    stated = document["claim"]
    stated.update(mae="1000", mse="100000", worst_error="1000", ordinary_epsilon="infinite")
    stated.pop("baseline_mae", None)  # which must be right
    stated.update(never_worse=False, lower_bound=None)
    document["problem"]["never_worse"] = False
    document["provenance"].pop("prices", None)
    if random.random() < 0.5:
        stated["epsilon"] = document["problem"]["epsilon"]


def forged(every: list[Document], turn: int, random: Random) -> Document:
    """One of the originals with a change or two that go together, often with claims that are modest; prices stay."""
    original = every[turn % len(every)]
    document = copy.deepcopy(original)
    changes = [change for change in CHANGES if change is not prices]
    for change in random.choices(changes, k=random.choice([1, 1, 2])):
        if document["inputs"] == original["inputs"]:  # two of them do not go together
            change(document, random, every)
    if random.random() < 0.6:
        modest(document, random)
    return document


def at_the_edge(document: Document, random: Random, path: Path) -> None:
    """The epsilon that the table really has, as exactly as a claim can say it, or a hair less."""
    from optdp.artifact import OpenedMatrix, open_artifact

    path.write_bytes(sealed(document))
    try:
        opened = open_artifact(path, OpenedMatrix, check=False)
        found = certify(opened.problem, opened.matrix).epsilon
    except (OptdpError, ArithmeticError):
        return
    if found is not None and 0 < found < 100:
        hair = random.choice([Fraction(0), Fraction(1, 10**20), Fraction(1, 10**12), Fraction(1, 10**6)])
        text = decimal_up(found * (1 - hair), 25)
        document["claim"]["epsilon"] = text
        if random.random() < 0.5 and opened.matrix.q is None:
            document["problem"]["epsilon"] = text


def refused(found: Counter[str], error: OptdpError) -> None:
    found["refused"] += 1
    found["odd refusals"] += not (isinstance(error, ArtifactError | CertificateError) and str(error).isprintable())


def tally(folder: Path, seed: int, count: int) -> Counter[str]:
    """How many of `count` forged single artifacts are refused, accepted and true, accepted and untrue."""
    random, found = Random(seed), Counter[str]()
    every = originals()
    for turn in range(count):
        document = copy.deepcopy(every[turn % len(every)])
        for _turn in range(random.choice([1, 1, 2, 3])):
            random.choice(CHANGES)(document, random, every)
        if random.random() < 0.6:
            modest(document, random)
        path = folder / f"{turn}.json"
        if random.random() < 0.3:
            at_the_edge(document, random, path)
        path.unlink(missing_ok=True)
        path.write_bytes(sealed(document))
        try:
            verify(path)
        except OptdpError as error:
            refused(found, error)
        else:
            wrong = untrue(path)
            found["accepted and untrue" if wrong else "accepted and true"] += 1
            if wrong:
                shutil.copy(path, folder / f"untrue-{turn}.json")
        path.unlink()
    return found


# ---------------------------------------------------------------------- plans


def other_plan(forgery: plans.Forgery, random: Random) -> None:
    """A party of another plan in this one, as if it had always been there."""
    other = random.choice(_other_plans())
    i = random.randrange(len(forgery.parties))
    party = copy.deepcopy(other.parties[random.randrange(len(other.parties))])
    party["claim"] |= {"party": i}
    forgery.parties[i] = party
    if random.random() < 0.5:
        forgery.plan["problem"]["parties"][i] = copy.deepcopy(random.choice(other.plan["problem"]["parties"]))


@lru_cache(maxsize=1)
def _other_plans() -> list[plans.Forgery]:
    import tempfile

    found = []
    people = [
        [Population.binomial(n, p) for n, p in pair] for pair in (((5, "0.5"), (4, "0.5")), ((5, "0.4"), (4, "0.3")))
    ]
    with tempfile.TemporaryDirectory() as folder:
        for i, (pair, epsilon) in enumerate(itertools.product(people, ("0.4", "1"))):
            shared_solution(MultiLTE(pair, epsilon, method="joint")).save(Path(folder) / str(i))
            found.append(plans.Forgery(Path(folder) / str(i)))
    return found


def tally_plans(folder: Path, seed: int, count: int) -> Counter[str]:
    """The same for plans: most of finite tables, every tenth of shares of noise."""
    random, found = Random(seed), Counter[str]()
    homes = {}
    for method in ("joint", "divisible", "geometric"):
        homes[method] = folder / method
        shared_solution(MultiLTE(plans.PEOPLE, "0.5", method=method)).save(homes[method])
    for turn in range(count):
        method = "joint" if turn % 10 else random.choice(["divisible", "geometric"])
        forgery = plans.Forgery(homes[method])
        changes = (*plans.STRUCTURED, other_plan, other_plan, other_plan) if method == "joint" else plans.SHARES
        for _turn in range(random.choice([1, 1, 2, 3])):
            change = random.choice(changes)
            with contextlib.suppress(ValueError, TypeError, KeyError):  # a change after which another is none
                change(forgery, random)
        if random.random() < 0.7:
            plans.modest(forgery, random)
        place = folder / f"forged-{turn}"
        place.mkdir()
        forgery.seal().write(place)
        try:
            verify_plan(place)
        except OptdpError as error:
            refused(found, error)
        else:
            real = plans.Real(forgery) if method == "joint" else plans.RealShares(forgery)
            wrong = real.broken_claims(forgery)
            found["accepted and untrue" if wrong else "accepted and true"] += 1
            if wrong:
                shutil.copytree(place, folder / f"untrue-{turn}")
        shutil.rmtree(place)
    return found
