"""What can be forged in files that have more than a table for one prior: observers and their prices, added noise,
totals over time, a common word, a release drawn inside. For `two_opinions`, which shows both checkers the results.
"""

from __future__ import annotations

import copy
from fractions import Fraction
from random import Random
from typing import Any

from optdp import MultiLTE, Observer, Population, SingleLTE, Total
from tests.artifact import test_plan as plans

Document = dict[str, Any]

binomial = Population.binomial


def singles() -> list[SingleLTE]:
    """Every way to say who is watching, with and without tails, added noise, totals."""
    mixed = Population.independent([["0.7", "0.3"]] * 3 + [["0.4", "0.6"]] * 2)
    wide = Observer(between=("0.2", "0.4"))
    return [
        SingleLTE(binomial(6, "0.3"), "0.7", observer=wide),
        SingleLTE(binomial(6, "0.3"), "0.7", observer=Observer(between=("0.25", "0.4"), known=2), tail="none"),
        SingleLTE(binomial(5, "0.3"), "0.7", observer=[wide, Observer(known=1, epsilon="1.5")]),
        SingleLTE(binomial(5, "0.3"), "0.5", observer=[wide, Observer(known="all", epsilon=2)], never_worse=False),
        SingleLTE(mixed, "0.9", observer=Observer(margin="0.1"), objective="mse"),
        SingleLTE(mixed, "0.9", observer=Observer(margin="0.05", known=1), tail="none", never_worse=False),
        SingleLTE(binomial(6, "0.3"), "0.6", observer=Observer(known="all"), tail="none", never_worse=False),
        SingleLTE(
            Population.iid(3, ["0.5", "0.3", "0.2"]),
            "0.9",
            observer=Observer(between=(["0.6", "0.2", "0.2"], ["0.4", "0.3", "0.3"])),
            adjacency="all",
        ),
        SingleLTE(Population.iid(3, ["0.5", "0.3", "0.2"]), "0.9", observer=Observer(known=1)),
        SingleLTE(binomial(6, "0.3"), "0.6", observer=wide, method="geometric"),
        SingleLTE(binomial(9, "0.3"), "0.7", form="additive"),
        SingleLTE(binomial(6, "0.5"), "1", form="additive", objective="mse"),
        SingleLTE(Population.iid(4, ["0.5", "0.3", "0.2"]), "1", form="additive", never_worse=False),
        SingleLTE(binomial(5, "0.3"), "0.2", observer=Observer(margin="0.1"), releases=12, total=Total(4, "1e-6")),
        SingleLTE(binomial(5, "0.3"), releases=4, total=Total(3, "1e-3"), tail="none", never_worse=False),
        SingleLTE(binomial(5, "0.4"), "0.4", releases=3, total=Total(3)),
    ]


def several() -> list[MultiLTE]:
    """Plans with a common word, drawn inside, and watched by somebody with a range."""
    wide = Observer(between=("0.4", "0.6"))
    return [
        MultiLTE([binomial(4, "0.5"), binomial(3, "0.4")], "0.6", method="seeded"),
        MultiLTE([binomial(3, "0.5")] * 2, "0.6", method="seeded", also=[[binomial(3, "0.4")] * 2]),
        MultiLTE([Population.iid(2, ["0.5", "0.3", "0.2"]), binomial(2, "0.4")], "1", method="seeded", f=[1, 2]),
        MultiLTE([binomial(3, "0.5")] * 3, "0.7", method="inside", honest=2),
        MultiLTE([binomial(2, "0.5"), binomial(3, "0.4"), binomial(2, "0.5")], "0.8", method="inside", objective="mse"),
        MultiLTE([binomial(3, "0.5")] * 3, "0.9", method="inside", observer=wide),
        MultiLTE([binomial(4, "0.5"), binomial(3, "0.5")], "0.8", observer=wide, method="joint"),
        MultiLTE([binomial(4, "0.5"), binomial(3, "0.5")], "0.8", observer=wide, method="alone"),
        MultiLTE([binomial(4, "0.5"), binomial(3, "0.5")], "0.8", observer=Observer(known=1), method="alone"),
        MultiLTE([binomial(3, "0.5"), Population.iid(2, ["0.5", "0.3", "0.2"])], "1", adjacency="all", method="joint"),
        MultiLTE([binomial(4, "0.5"), binomial(3, "0.5")], "1", tail="none", never_worse=True, method="joint"),
    ]


# ---------------------------------------------------------------------- who is watching

WATCHING: tuple[Any, ...] = (
    {"between": ["0.2", "0.4"]}, {"between": ["0.29", "0.31"]}, {"between": ["0.4", "0.2"]}, {"between": ["0", "1"]},
    {"between": ["0.1", "0.5"]}, {"between": ["0.3", "0.3"]}, {"between": ["1/3", "2/3"]}, {"between": ["-0.1", "0.5"]},
    {"between": ["0.2"]}, {"between": "0.2"}, {"between": [["0.5", "0.3", "0.2"], ["0.4", "0.4", "0.2"]]},
    {"between": [["1", "0"], ["0.5", "0.5"]]}, {"margin": "0.01"}, {"margin": "0.2"}, {"margin": "0.9"},
    {"margin": "0"}, {"margin": "-0.1"}, {"margin": "0.1", "between": ["0.2", "0.4"]}, {"known": 0}, {"known": 1},
    {"known": 2}, {"known": 4}, {"known": 100}, {"known": -1}, {"known": "all"}, {"known": "All"}, {"known": "1"},
    {"known": 1.0}, {"known": True}, {"known": None}, {"margin": "0.05", "known": 1}, {"epsilon": "0.1"},
    {"known": 1, "epsilon": "3"}, {"known": "all", "epsilon": "90"}, {"known": "all", "between": ["0.2", "0.4"]},
    {}, [], None, [{}], "all",
)  # fmt: skip


def _watching(random: Random) -> Any:
    found = copy.deepcopy(random.choice(WATCHING))
    if random.random() < 0.25:
        return [found, copy.deepcopy(random.choice(WATCHING))]
    return found


def observer(document: Document, random: Random) -> None:
    """Somebody else is watching, or nobody, perhaps with an epsilon that the file may claim."""
    problem, claim = document["problem"], document["claim"]
    if random.random() < 0.15:
        problem.pop("observer", None)
        claim.pop("observed", None)
    elif random.random() < 0.3 and isinstance(problem.get("observer"), dict):
        inner = problem["observer"]
        inner[random.choice([*inner, "known", "epsilon"])] = random.choice(
            [0, 1, 3, "all", "0.05", "2", ["0.3", "0.35"]]
        )
    else:
        problem["observer"] = _watching(random)
    if random.random() < 0.4:
        loosened(document, random)


def loosened(document: Document, random: Random) -> None:
    """A large epsilon, so that who watches and how is all that can be at fault."""
    epsilon = random.choice(["2", "5", "9"])
    document["problem"]["epsilon"] = document["claim"]["epsilon"] = epsilon
    document["claim"].pop("baseline_mae", None)  # which must be right
    watching = document["problem"].get("observer")
    if isinstance(watching, list) and len(watching) > 1:
        document["claim"]["observed"] = [epsilon] * len(watching)


def observed(document: Document, random: Random) -> None:
    """What is claimed of each observer: more, fewer, in another order, a little less."""
    claim = document["claim"]
    found = claim.get("observed", [claim["epsilon"]])
    way = random.randrange(6)
    if way == 0:
        claim.pop("observed", None)
    elif way == 1:
        claim["observed"] = found[::-1]
    elif way == 2:
        claim["observed"] = [*found, found[-1]]
    elif way == 3:
        claim["observed"] = found[:1]
    elif way == 4:
        claim["observed"] = [random.choice(["0", "50", "infinite", None, "0.7", 1])] * len(found)
    else:
        i = random.randrange(len(found))
        lower = Fraction(found[i]) * (1 - Fraction(1, 10 ** random.choice([1, 3, 9, 15, 19])))
        claim["observed"] = [*found[:i], format(float(lower), ".15f"), *found[i + 1 :]]


def at(document: Document, random: Random) -> None:
    """Prices of other constraints, of one twice, of none that exists."""
    prices = document["provenance"].get("prices")
    if not isinstance(prices, dict) or not prices.get("at"):
        return
    rows = prices["at"]
    i, way = random.randrange(len(rows)), random.randrange(7)
    if way == 0:
        rows[i][random.randrange(len(rows[i]))] += random.choice([-1, 1, 1, 2, 10**9])
    elif way == 1:
        rows[i] = copy.deepcopy(random.choice(rows))
    elif way == 2:
        rows[i][random.randrange(len(rows[i]))] = random.choice([None, "0", True, False, 0.0, -1, 10**30])
    elif way == 3:
        rows.pop(i)
    elif way == 4:
        random.shuffle(rows)
    elif way == 5:
        rows[i] = rows[i][:-1]
    else:
        prices["at"] = random.choice([None, [], {}, "0 0 0", rows + rows])


# ---------------------------------------------------------------------- added noise, and totals


def added(document: Document, random: Random) -> None:
    """Noise that is narrower, steeper, moved, lopsided, with holes; or called by the other form."""
    row, tail, way = document["weights"][0], document["tail"], random.randrange(9)
    if way == 0:
        random.choice(row)[1] += 1
    elif way == 1:
        a, b = random.sample(row, 2)
        moved = max(1, min(a[1] - 1, a[1] >> random.choice([0, 1, 10, 60])))
        a[1], b[1] = a[1] - moved, b[1] + moved
    elif way == 2 and isinstance(tail, dict):
        p, r = (int(part) for part in tail["q"])
        q = Fraction(p, r) * random.choice([Fraction(9, 10), 1 + Fraction(1, 10**15), 1 - Fraction(1, 10**15)])
        tail["q"] = [str(q.numerator), str(q.denominator)]
    elif way == 3 and isinstance(tail, dict):
        tail["law"] = random.choice(["added", "geometric", "sgdl", None])
    elif way == 4:
        document["problem"]["form"] = random.choice(["additive", "table", None, "added"])
    elif way == 5:
        document["outputs"] = [
            document["outputs"][0] - random.randrange(-1, 3),
            document["outputs"][1] + random.randrange(-1, 3),
        ]
    elif way == 6:
        document["weights"] = [[[s + 1, weight] for s, weight in row]]
    elif way == 7:
        document["outside"] = random.choice(["clamp", "error", "geometric"])
    else:
        document["weights"][0] = [pair for pair in row if random.random() < 0.9]
        gone = int(document["denominator"]) - sum(weight for _, weight in document["weights"][0])
        document["weights"][0][len(document["weights"][0]) // 2][1] += gone


def over_time(document: Document, random: Random) -> None:
    """Other totals, counts and claims of several releases."""
    problem, claim, way = document["problem"], document["claim"], random.randrange(8)
    claimed = claim.get("over_time")
    if way == 0:
        claim["over_time"] = {
            "releases": random.choice([1, 2, 12, 0, -1, 10_001, "12", 3.0, True]),
            "epsilon": random.choice(["4", "0.1", "100", "1001", "infinite"]),
            "delta": random.choice(["0", "0.000001", "1", "-1", "0.5"]),
        }
    elif way == 1:
        claim.pop("over_time", None)
    elif way == 2 and claimed:
        claimed[random.choice(list(claimed))] = random.choice(["4", "3.9999", "0", 12, 11, None, "0.000001", "1e-7"])
    elif way == 3 and claimed:
        claimed["epsilon"] = format(float(claimed["epsilon"]) * (1 - 10 ** -random.choice([2, 6, 9, 12])), ".15f")
    elif way == 4 and claimed:
        claimed["releases"] += random.choice([-1, 1, 5])
    elif way == 5:
        problem |= {"releases": 12, "total": {"epsilon": "4", "delta": "1e-6"}}
    elif way == 6:
        problem["fallback_epsilon"] = random.choice(["0.3", "0.3333878667", "1", "4", None])
    elif claimed:
        claimed["more"] = "0"


WATCHED = (observer, observer, observer, loosened, observed, at, at, added, added, over_time, over_time)


# ---------------------------------------------------------------------- plans


def maps(forgery: plans.Forgery, random: Random) -> None:
    """Other reports, cuts, numbers of maps; for one party or for all."""
    party, way = random.choice(forgery.parties), random.randrange(12)
    every, cuts = forgery.parties, [int(cut) for cut in party["cuts"]]
    k = random.randrange(len(cuts))
    if way < 3:
        values = random.choice(party["maps"])
        values[random.randrange(len(values))] = random.choice(
            [*party["outputs"], random.randint(*party["outputs"]), -7, 99]
        )
    elif way < 5:
        low = (cuts[k - 1] if k else 0) + 1
        cuts[k] = random.choice([low, cuts[k] + 1, cuts[k] - 1, 0, -1, 1 << 62, (low + cuts[k]) // 2])
        for one in every if random.random() < 0.7 else [party]:
            one["cuts"] = [str(cut) for cut in cuts]
    elif way == 5:
        a, b = (random.randrange(len(party["maps"])) for _ in range(2))
        party["maps"][a], party["maps"][b] = party["maps"][b], party["maps"][a]
    elif way == 6:
        party["choices"][k] = random.choice([0, 1, len(party["maps"]), -1, True, None])
    elif way == 7:
        party["outputs"] = [s + random.choice([-1, 0, 1, 1000]) for s in party["outputs"]]
    elif way == 8:
        for one in every if random.random() < 0.5 else [party]:
            by = random.choice([2, 3, 4])
            one["denominator"] = str(int(one["denominator"]) * by)
            one["cuts"] = [str(int(cut) * by) for cut in one["cuts"]]
    elif way == 9:
        party["maps"] = random.choice([party["maps"][::-1], party["maps"][:-1], party["maps"] + party["maps"][:1]])
    elif way == 10:
        party["maps"] = [random.choice([values[1:], [*values, values[-1]]]) for values in party["maps"]]
        party["inputs"] = [0, len(party["maps"][0]) - 1]
    else:
        for one in every:  # one map for every word
            one |= {"cuts": [one["denominator"]], "choices": [0], "maps": one["maps"][:1]}


def inside(forgery: plans.Forgery, random: Random) -> None:
    """One table for all, or not the same for all; other trust; outputs and inputs out of range."""
    first, problem, way = forgery.parties[0], forgery.plan["problem"], random.randrange(6)
    if way < 3:  # changed, and the same at all parties
        plans.move_mass(forgery, random)
        source = random.choice(forgery.parties)
        for party in forgery.parties:
            for name in ("inputs", "outputs", "denominator", "outside", "weights"):
                party[name] = copy.deepcopy(source[name])
    elif way == 3:
        problem["honest"] = random.choice([1, 2, 3, 4, None])
    elif way == 4:
        problem["observer"] = _watching(random)
    else:
        by = random.choice([-1, 1])
        for party in forgery.parties if random.random() < 0.7 else [first]:
            party["outputs"] = [s + by for s in party["outputs"]]
            party["weights"] = [[[s + by, weight] for s, weight in row] for row in party["weights"]]


def watched(forgery: plans.Forgery, random: Random) -> None:
    """Somebody else is watching all parties or one; another method; other demands."""
    problem, way = forgery.plan["problem"], random.randrange(6)
    if way == 0:
        problem["observer"] = _watching(random)
    elif way == 1:
        random.choice(problem["parties"])["observer"] = _watching(random)
    elif way == 2:
        problem["method"] = random.choice(["best", "joint", "alone", "inside", "seeded", "divisible", "geometric"])
    elif way == 3:
        problem["adjacency"] = random.choice(["all", "unit", None])
    elif way == 4:
        problem["tail"] = random.choice(["none", "margin", "geometric", None])
    else:
        problem["never_worse"] = random.choice([True, False, "1", "2", "0.5", "1001", 3, None])
    if random.random() < 0.4:
        problem["epsilon"] = "9"
        for claim in forgery.claims():
            claim["epsilon"] = "9"
            claim.pop("baseline_mae", None)  # which must be right
