"""What can be forged in the file of a shuffle protocol. For `two_opinions`, which shows both checkers the results."""

from __future__ import annotations

import copy
import hashlib
import json
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from optdp import MetricShuffle, RealSum, ShuffleHistogram, solve

Document = dict[str, Any]

PROBLEMS: tuple[Any, ...] = (
    MetricShuffle("geo", n=3, k=2, delta="0.02", epsilon="0.6", max_distance=2),
    MetricShuffle("sgdl", n=4, k=3, delta="0.01", epsilon="0.8", max_distance=3, query="average"),
    MetricShuffle("hybrid", n=3, k=2, delta="0.02", epsilon="0.8", local_epsilon="1.2", max_distance=2),
    MetricShuffle("geo", n=3, k=4, delta="0.02", epsilon="0.6", max_distance=2, quantum=2),
    MetricShuffle("rr", n=3, k=2, delta="0.02", epsilon="1.5", max_distance=2),
    MetricShuffle("geo", n=3, k=2, delta="0.02", epsilon="0.8", max_distance=1, dimensions=2),
    MetricShuffle("geo", n=3, k=2, delta="0.02", eps_geo="0.7", c=3, max_distance=2, shuffler="compromised"),
    ShuffleHistogram(3, n=4, epsilon="1.5", delta="0.05"),
    ShuffleHistogram(labels=["a", "b", "c", "d"], n=30, epsilon="1", delta="0.01", estimator="inversion"),
    ShuffleHistogram(labels=["yes", "no"], n=50, eps0=2, delta="0.01"),
    RealSum(n=4, k=3, gamma="0.5", delta="0.05", low=-1, high=3),
    RealSum(n=9, k=2, gamma="0.6", epsilon="1", low="0.5", high="7/8"),
)
FIGURES = (
    "epsilon", "delta", "local_epsilon", "local_delta", "mae", "rmse", "within_95", "truncation", "mse",
    "standard_error",
)  # fmt: skip
LABELS: tuple[Any, ...] = (
    None, [], ["a"], ["a", "a", "b", "c"], ["a", "b", "c"], ["a ", "b", "c", "d"], ["", "b", "c", "d"],
    ["d", "c", "b", "a"], ["a", "b", "c", 4], "abcd", ["yes", "no"], ["no", "yes"], ["x", "y", "z"],
)  # fmt: skip
ENDS: tuple[Any, ...] = (
    "0", "-1", "3", "7/8", "1e15", "-1e15", "2e15", "1e-99", "+1", " 1", "1.", ".5", 1, 3.0, None, "1/0", "08", "1E2",
    "0.1000000000000000000001", "0.1", "-0", "1e3", "9" * 61, "nan", "6/2",
)  # fmt: skip


def originals(folder: Path) -> list[Document]:
    """What `solve` writes of each."""
    found = []
    for number, problem in enumerate(PROBLEMS):
        path = folder / f"protocol-{number}.json"
        solve(problem).save(path)
        found.append(json.loads(path.read_bytes()))
    return found


def sealed(document: Document) -> bytes:
    """With the right digest, in the one spelling, the keys in their order."""
    keys = ("format", "version", "kind", "people", "client", "data", "claim", "provenance")
    rest = {key: value for key, value in document.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    whole = {key: rest[key] for key in (*keys, *sorted(rest)) if key in rest} | {"sha256": digest}
    lines = [f'"{key}": {json.dumps(value, sort_keys=True)}' for key, value in whole.items()]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def modest(document: Document) -> None:
    """Figures so large that all that can be at fault is what they are of."""
    claim = document["claim"]
    for name in FIGURES:
        if name in claim and name != "delta":
            claim[name] = "30" if name == "epsilon" else "1000000"
    if "delta" in claim:
        claim["delta"] = "0.5"
    if "profile" in claim:
        claim["profile"] = ["30"] * len(claim["profile"])


def lowered(document: Document, random: Random) -> None:
    """A figure a little below what is true, or far."""
    claim = document["claim"]
    name = random.choice([name for name in (*FIGURES, "profile", "profile") if name in claim])
    less = 1 - Fraction(1, 10 ** random.choice([0, 1, 2, 4, 7, 9, 12]))
    if name == "profile":
        i = random.randrange(len(claim[name]))
        claim[name][i] = format(float(Fraction(claim[name][i]) * less), ".17f")
    else:
        claim[name] = format(float(Fraction(claim[name]) * less), ".17f")


def noise(document: Document, random: Random) -> None:
    """Another law for the devices: sharper, wider, moved, or not of the parameters that it names."""
    client, way = document["client"], random.randrange(8)
    if client["law"] == "padded":
        weights = [int(text) for text in client["weights"]]
        if way < 3 and len(weights) > 2:
            i = random.randrange(1, len(weights))
            moved = max(1, min(weights[i] - 1, weights[i] >> random.choice([1, 3, 20, 60, 100])))
            weights[0], weights[i] = weights[0] + 2 * moved, weights[i] - moved
            client["weights"] = list(map(str, weights))
        elif way == 3:
            client["weights"] = random.choice(
                [client["weights"][:-1], [*client["weights"], "1"], client["weights"][::-1], ["0"], "1"]
            )
        elif way == 4:
            client["padding"] += random.choice([-1, 1, 7])
        elif way == 5:
            client["grain"] = random.choice([1, 2, 3, client["k"], client["k"] + 1, 0])
        elif way == 6:
            client["dimensions"] = 3 - client["dimensions"]
        else:
            name = random.choice(["beta", "q", "mechanism", "k"])
            client[name] = {"beta": "1/2", "q": "1/3", "mechanism": random.choice(["geo", "sgdl", "hybrid", "rr"])}.get(
                name, client["k"] + 1
            )
    elif client["law"] == "flips":
        name = random.choice(["flip", "bits", "dimensions"])
        client[name] = (
            str(int(client[name]) + random.choice([-1, 1, 1 << 22, -(1 << 22), -(1 << 50)])) if name == "flip"
            else client[name] + random.choice([-1, 1])
        )  # fmt: skip
    else:
        name = random.choice(["blank", "blank", "values", "grain"])
        if name == "blank":
            client[name] = str(int(client[name]) + random.choice([-1, 1 << 22, -(1 << 22), -(1 << 55), 1 << 57]))
        else:
            client[name] += random.choice([-1, 1])


def read(document: Document, random: Random) -> None:
    """How values are read, what is estimated, for how many people and how far."""
    data, claim, way = document["data"], document["claim"], random.randrange(6)
    if way == 0:
        document["people"] = random.choice([document["people"] + 1, document["people"] - 1, 0, 1, 2, True, "3", 10**11])
    elif way == 1 and "max_distance" in claim:
        name = random.choice(["max_distance", "shuffler"])
        claim[name] = (
            random.choice([0, 1, 2, 3, 5001, "2", True]) if name == "max_distance"
            else random.choice(["honest", "compromised", "both"])
        )  # fmt: skip
        if random.random() < 0.5:
            claim["profile"] = claim["profile"][:1] * random.randrange(4)
    elif way == 2:
        claim["meaning"] = random.choice(["", None, "Safe against everybody.", claim["meaning"] + " ", ["x"]])
    elif "labels" in data:
        if random.random() < 0.3:
            data["estimator"] = random.choice(["inversion", "simplex", "clipped", "best", None, 1])
        else:
            data["labels"] = copy.deepcopy(random.choice(LABELS))
    elif "low" in data:
        if random.random() < 0.3:
            data["low"], data["high"] = data["high"], data["low"]
        else:
            data[random.choice(["low", "high"])] = random.choice(ENDS)
    else:
        data["query"] = random.choice(["sum", "average", "mean", None, "sum average"])


CHANGES = (lowered, noise, noise, read, read)
