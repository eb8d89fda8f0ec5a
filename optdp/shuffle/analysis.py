"""From values to messages, and from shuffled messages to an estimate: what clients and the analyst of a design do.

**Errors from the data.** Of a histogram the standard error of every count (see `estimators`). Of a real sum the
variance of a message given `x` is at most `(1-gamma) E r^2 + gamma E U^2 - ((1-gamma) r + gamma k/2)^2 + (1-gamma)^2/4`
in the mean, with `r` the rounded value, `U` uniform: `E r^2 <= (k x)^2 + 1/4`. `E r^2` has an unbiased estimate from
the squares of the messages, so that the sum of these bounds has one; the worst case over all data stands beside it and
is never passed. Of sums with metric privacy the error does not depend on the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.files.data import labels as known_labels
from optdp.files.data import real_numbers, whole_numbers
from optdp.numbers.exact import finite, shown
from optdp.numbers.source import Source
from optdp.shuffle.claims import design_of, histogram_error, metric_errors, sum_error
from optdp.shuffle.client import WORD, Flips, Response
from optdp.shuffle.estimators import ESTIMATORS, KRRChannel, standard_errors
from optdp.shuffle.format import Deployed
from optdp.shuffle.messages import Tally
from optdp.shuffle.turnout import of_noise, of_responses

Whole = NDArray[np.int64]
CHUNK = 1 << 22
"""How many words are drawn at a time."""
SIGMAS = 1.959963984540054  # a normal law is within so many standard deviations with probability 0.95


def read_values(design: Deployed, columns: Sequence[Sequence[str]], names: Sequence[str], clip: bool = False) -> Whole:
    """Values as clients take them, a column for each coordinate, from text."""
    client, data = design.client, design.data
    if len(columns) != client.dimensions:
        times = {1: "once", 2: "twice"}
        raise ProblemError(f"Values must be given {times[client.dimensions]}. Found {len(columns)}.")
    if data.get("labels") is not None:
        return known_labels(columns[0], names[0], data["labels"])[:, None]
    if "low" not in data:
        read = [whole_numbers(cells, name, 0, client.inputs, clip) for cells, name in zip(columns, names, strict=True)]
        return np.stack(read, axis=1)
    low, high = float(Fraction(data["low"])), float(Fraction(data["high"]))
    return fine(real_numbers(columns[0], names[0], low, high, clip), low, high, client.inputs)[:, None]


def fine(values: Any, low: float, high: float, most: int) -> Whole:
    """Real numbers as the nearest of `0..most`, in floats: four operations, the same in every language."""
    place = (np.asarray(values, dtype=np.float64) - low) / (high - low)
    return np.minimum(np.floor(place * float(most) + 0.5).astype(np.int64), most)


def randomized(design: Deployed, values: Whole, source: Source) -> Iterator[Whole]:
    """Messages, some thousands at a time; every one takes the same number of words."""
    client = design.client
    rows = max(1, CHUNK // (client.words * client.dimensions))
    for start in range(0, len(values), rows):
        part = values[start : start + rows]
        words = source.words(len(part) * client.words * client.dimensions) >> np.uint64(64 - WORD)
        yield messages_of(design, part, words.reshape(len(part), -1))


def messages_of(design: Deployed, values: Whole, words: NDArray[np.uint64]) -> Whole:
    """What clients make of values and of words, a row for each person; coordinates one after the other."""
    client = design.client
    made = [
        client.messages(values[:, i], words[:, i * client.words : (i + 1) * client.words])
        for i in range(client.dimensions)
    ]
    return made[0] if len(made) == 1 else np.stack(made, axis=1)


def estimate(design: Deployed, tally: Tally) -> dict[str, Any]:
    """What the analyst publishes."""
    if not isinstance(design.client, Response):
        return _sum_of_ones(design, tally)
    return (_real_sum if "low" in design.data else _histogram)(design, tally)


def promised(design: Deployed, tally: Tally) -> dict[str, Any]:
    """What is claimed; and, where it counts on fewer people, what holds if all who sent a message did as it says."""
    client, claim, n = design.client, design.claim, tally["messages"]
    if design.honest == design.n:
        return dict(claim)
    delta = Fraction(claim["delta"]) - design.n * client.lacking
    found = (
        of_responses(n, n, client.values, client.gamma, delta, [n])
        if isinstance(client, Response)
        else of_noise(design_of(client, n), delta, claim["max_distance"], [n])
    )
    return dict(claim) | {"if_all_who_sent_are_honest": {"people": n, "epsilon": finite(found[0][1])}}


def _sum_of_ones(design: Deployed, tally: Tally) -> dict[str, Any]:
    client, n, claim = design.client, tally["messages"], design.claim
    if isinstance(client, Flips):
        chance = client.chance
        sums = [float((ones - n * client.bits * chance) / (1 - 2 * chance)) for ones in tally["ones"]]
    else:
        assert not isinstance(client, Response)
        sums = [float((ones - n * client.padding) * client.grain) for ones in tally["ones"]]
    people = n if design.data["query"] == "average" else 1
    found = [value / people for value in sums]
    said: Mapping[str, Any] = claim if n == design.n else metric_errors(client, n, design.data["query"])
    far, flat = float(said["within_95"]), len(found) == 1
    figures: dict[str, Any] = {design.data["query"]: found[0] if flat else found, "n": n}
    figures |= {"mae": float(said["mae"]), "standard_error": float(said["rmse"]), "within_95": far}
    if flat:
        figures["interval_95"] = [found[0] - far, found[0] + far]
    return figures | {"meaning": "the errors are bounds that hold for any data; two coordinates: of the distance"}


def _histogram(design: Deployed, tally: Tally) -> dict[str, Any]:
    client, n = design.client, tally["messages"]
    counts: Whole = tally["counts"]
    assert isinstance(client, Response)
    channel = KRRChannel(client.values, client.gamma)
    chosen = design.data["estimator"]
    found = {name: n * estimator(channel, counts) for name, estimator in ESTIMATORS.items()}
    errors = n * standard_errors(channel, counts)
    labels = design.data["labels"] or [str(value) for value in range(client.values)]
    bins = [
        {
            "value": label, "count": float(found[chosen][i]), "standard_error": float(errors[i]),
            "interval_95": [float(found["inversion"][i] + way * SIGMAS * errors[i]) for way in (-1, 1)],
            "reported": int(counts[i]), **{name: float(values[i]) for name, values in found.items()},
        }
        for i, label in enumerate(labels)
    ]  # fmt: skip
    return {
        "n": n, "estimator": chosen, "standard_error_for_equal_shares": histogram_error(client, n),
        "bins": bins,
        "meaning": "count is by the estimator named; standard_error, interval_95 are of inversion, which is unbiased",
    }  # fmt: skip


def _real_sum(design: Deployed, tally: Tally) -> dict[str, Any]:
    client, n = design.client, tally["messages"]
    counts: Whole = tally["counts"]
    assert isinstance(client, Response)
    low, high = Fraction(design.data["low"]), Fraction(design.data["high"])
    k, gamma, total = client.values - 1, client.gamma, sum(int(c) * y for y, c in enumerate(counts.tolist()))
    squares = sum(int(c) * y * y for y, c in enumerate(counts.tolist()))
    unbiased = (Fraction(total, k) - n * gamma / 2) / (1 - gamma)
    worst = math.sqrt(sum_error(client, n, high - low))
    uniform = Fraction(k * (2 * k + 1), 6)
    rounded = (squares - n * gamma * uniform) / (1 - gamma)  # of the sum of E r^2
    means = (1 - gamma) ** 2 * (rounded - Fraction(n, 4)) + gamma * k * (1 - gamma) * unbiased * k
    variance = (1 - gamma) * rounded + n * gamma * uniform - means - n * (gamma * k / 2) ** 2
    own = math.sqrt(max(0.0, float(variance))) / k / float(1 - gamma) * float(high - low)
    error, found = min(own, worst), float(n * low + (high - low) * unbiased)
    return {
        "n": n, "sum": found, "standard_error": error, "worst_standard_error": worst,
        "interval_95": [found - SIGMAS * error, found + SIGMAS * error],
        "average": found / n, "average_standard_error": error / n,
        "meaning": "unbiased; standard_error is from the data, worst_standard_error holds for any",
    }  # fmt: skip


def only(design: Deployed, given: Sequence[str]) -> Whole:
    """One person's value, as text; two coordinates are two texts."""
    client, data = design.client, design.data
    if len(given) != client.dimensions:
        raise ProblemError(f"--input must be given {'twice' if client.dimensions > 1 else 'once'}.")
    if data.get("labels") is not None:
        if given[0].strip() not in data["labels"]:
            raise ProblemError(f"--input must be one of the {len(data['labels'])} labels. Found {shown(given[0])}.")
        return np.array([[data["labels"].index(given[0].strip())]])
    real = "low" in data
    low, high = (float(Fraction(data[end])) for end in ("low", "high")) if real else (0.0, float(client.inputs))
    rule = f"a {'number' if real else 'whole number'} from {low:.17g} to {high:.17g}"
    try:
        numbers = [math.nan if "_" in text else float(text) for text in given]
    except ValueError:
        numbers = [math.nan]
    if not all(low <= number <= high and (real or number.is_integer()) for number in numbers):
        raise ProblemError(f"--input must be {rule}. Found {shown(given[0] if len(given) == 1 else list(given))}.")
    if real:
        return fine(numbers, low, high, client.inputs)[:, None]
    return np.array([[int(number) for number in numbers]])
