"""What the file of a shuffle protocol says: the law of one device, how values are read, and its figures as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .fields import one_of, table_with, whole_number
from .verdict import must

ALL, WORD = 1 << 124, 1 << 62
GRAIN = 1 << 32
GRID = 1 << 22
MOST_STEPS = 10**6
FURTHEST = 5000
SMALLEST_BETA, SMALLEST_Q, LARGEST_Q = Fraction(1, 10**7), Fraction(1, 10**60), 1 - Fraction(1, 10**5)
ESTIMATORS = "likelihood projection inversion"
_FIGURE = re.compile(r"[0-9]{1,60}(\.[0-9]{1,60})?(E[-+]?[0-9]{1,4})?|[0-9]{1,60}e-[0-9]{1,3}", re.ASCII)
_RATIO = re.compile(r"[0-9]{1,600}(/[1-9][0-9]{0,599})?", re.ASCII)
_END = re.compile(r"-?[0-9]{1,60}((\.[0-9]{1,60})?(e[-+]?[0-9]{1,2})?|/[1-9][0-9]{0,59})", re.ASCII)
_INTEGER = re.compile("[1-9][0-9]{0,39}", re.ASCII)


@dataclass(frozen=True)
class Response:
    """Randomized response on `values` values; `gamma` is the chance of a uniform answer."""

    n: int
    values: int
    gamma: Fraction


@dataclass(frozen=True)
class Padded:
    """Noise in integers: `weights` of 0, 1, .., then 1 up to `reach`; what they stand for is SGDL(beta, q)."""

    weights: Sequence[int]
    reach: int
    padding: int
    beta: Fraction
    q: Fraction
    plain: bool
    """Whether values are whole steps of one coordinate."""

    def weight(self, x: int) -> int:
        size = abs(x)
        return 0 if size > self.reach else self.weights[size] if size < len(self.weights) else 1


def figure(claim: Mapping[str, Any], name: str) -> Fraction:
    """A figure that is claimed."""
    return _figure(claim[name], name)


def _figure(text: Any, name: str) -> Fraction:
    right = isinstance(text, str) and _FIGURE.fullmatch(text) is not None and Fraction(text) <= 10**300
    must(right, f"{name} must be a decimal in text, up to 1e300", text)
    return Fraction(text)


def figures_of(claim: Mapping[str, Any], kind: str, names: str, more: str = "") -> dict[str, Fraction]:
    """All figures of a claim, which has no other keys; of a profile only that it is a list."""
    table_with(claim, "claim", f"{names} {more} meaning")
    stated = {name: figure(claim, name) for name in names.split()}
    ends = (Fraction(1, 10**12), Fraction(1, 2)) if kind == "metric-shuffle" else (Fraction(0), Fraction(1))
    must(ends[0] <= stated["delta"] <= ends[1], "delta must be from {} to {}".format(*ends), claim["delta"])
    if kind != "metric-shuffle":
        right = Fraction(1, 10**9) <= stated["epsilon"] <= 60
        must(right, "epsilon must be from 1e-9 to 60", claim["epsilon"])
    return stated


def profile_of(claim: Mapping[str, Any], furthest: int, sides: int) -> list[Fraction]:
    """The epsilon at every distance."""
    found = claim["profile"]
    must(isinstance(found, list) and len(found) > 0, "profile must be a list", found)
    right = len(found) == furthest if sides == 1 else len(found) <= 4 * FURTHEST
    must(right, "profile must have an entry for each distance", len(found))
    return [_figure(text, "profile") for text in found]


def response_of(document: Mapping[str, Any]) -> Response:
    """The device of a histogram or a sum, and for how many people; how their values are read is right."""
    real = document["kind"] == "real-sum"
    fields = table_with(document["client"], "client", "law values blank grain")
    one_of(fields["law"], "law", "response")
    grain = GRAIN if real else 1
    must(type(fields["grain"]) is int and fields["grain"] == grain, f"grain must be {grain}", fields["grain"])
    values = whole_number(fields["values"], "values", 2, MOST_STEPS + 1 if real else 10**7)
    gamma = Fraction(_scaled(fields["blank"], "blank", WORD - GRID), WORD)
    if real:
        width_of(document)
    else:
        _check_labels(document["data"], values)
    return Response(whole_number(document["people"], "people", 2, 10**10), values, gamma)


def width_of(document: Mapping[str, Any]) -> Fraction:
    """How far apart the least and the largest value of a sum are."""
    data = table_with(document["data"], "data", "low high")
    for name in ("low", "high"):
        right = isinstance(data[name], str) and _END.fullmatch(data[name]) is not None
        must(right, f"{name} must be a number in text", data[name])
    low, high = Fraction(data["low"]), Fraction(data["high"])
    must(-(10**15) <= low < high <= 10**15, "low must be below high, both from -1e15 to 1e15", data)
    must(float(low) < float(high), "low must be below high in double precision, too", data)
    return high - low


def _check_labels(given: Any, values: int) -> None:
    data = table_with(given, "data", "labels estimator")
    one_of(data["estimator"], "estimator", ESTIMATORS)
    labels = data["labels"]
    if labels is not None:
        right = isinstance(labels, list) and len(labels) == values
        right = right and all(isinstance(label, str) and label and label == label.strip() for label in labels)
        must(right and len(set(labels)) == values, "labels must be a different text for each value, or null", labels)


def metric_of(document: Mapping[str, Any]) -> tuple[int, int, bool, Padded | None, int]:
    """For how many people and how far, whether the shuffler is honest, the noise (none: flipped bits), and the
    coordinates."""
    claim = document["claim"]
    must(isinstance(claim, dict), "claim must be a table", claim)
    n = whole_number(document["people"], "people", 1, 10**7)
    furthest = whole_number(claim.get("max_distance"), "max_distance", 1, FURTHEST)
    honest = one_of(claim.get("shuffler"), "shuffler", "honest compromised") == "honest"
    one_of(table_with(document["data"], "data", "query")["query"], "query", "sum average")
    must(isinstance(document["client"], dict), "client must be a table", document["client"])
    sides = whole_number(document["client"].get("dimensions"), "dimensions", 1, 2)
    if document["client"].get("law") != "flips":
        return n, furthest, honest, _noise(document["client"], sides), sides
    fields = table_with(document["client"], "client", "law bits flip dimensions")
    whole_number(fields["bits"], "bits", 1, MOST_STEPS)
    _scaled(fields["flip"], "flip", WORD // 2 - 1)
    return n, furthest, honest, None, sides


def _noise(given: Mapping[str, Any], sides: int) -> Padded:
    fields = table_with(given, "client", "law mechanism k grain padding dimensions beta q weights")
    one_of(fields["law"], "law", "padded flips")
    one_of(fields["mechanism"], "mechanism", "geo sgdl hybrid")
    k, c = whole_number(fields["k"], "k", 1, MOST_STEPS), whole_number(fields["padding"], "padding", 0, 10**6)
    grain = whole_number(fields["grain"], "grain", 1, k if sides == 1 else 1)
    listed = fields["weights"]
    must(isinstance(listed, list) and 0 < len(listed) <= MOST_STEPS, "weights must be a list", listed)
    weights = [_integer(text, "A weight", ALL) for text in listed]
    reach = -(-k // grain) + c
    rest = reach + 1 - len(weights)
    total = weights[0] + 2 * (sum(weights[1:]) + rest)
    must(rest >= 0 and total == ALL, "weights must sum to 2^124 over the noise that matters", total)
    must(len(weights) == 1 or weights[-1] > 1, "weights must leave out the last that are 1", weights[-1])
    beta, q = (_ratio(fields[name], name) for name in ("beta", "q"))
    must(SMALLEST_BETA <= beta <= 1, "beta must be from 1e-7 to 1", fields["beta"])
    must(SMALLEST_Q <= q <= LARGEST_Q, "q must be from 1e-60 to 1 - 1e-5", fields["q"])
    return Padded(weights, reach, c, beta, q, grain == sides == 1)


def _integer(text: Any, name: str, most: int) -> int:
    right = isinstance(text, str) and _INTEGER.fullmatch(text) is not None
    must(right and int(text) <= most, f"{name} must be a whole number in text, from 1 to {most}", text)
    return int(text)


def _scaled(text: Any, name: str, most: int) -> int:
    found = _integer(text, name, most)
    must(found % GRID == 0, f"{name} must be a multiple of {GRID}", text)
    return found


def _ratio(text: Any, name: str) -> Fraction:
    right = isinstance(text, str) and _RATIO.fullmatch(text) is not None and str(Fraction(text)) == text
    must(right, f"{name} must be a fraction in lowest terms, in text", text)
    return Fraction(text)
