"""The file of a shuffle protocol: what clients, shuffler and analyst need, with the claim.

Format "optdp/shuffle", version 1, a line for each key: `kind`; `people` (n); `client`, the law of one person's device
in integers (see `client`; large ones as decimal strings); `data`, how values are read and what is estimated;
`claim`, the figures as decimal strings and their meaning; `provenance`; `sha256`. A message names the first 16 digits
of the digest, so that it cannot be taken for one of another design.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from optdp.amplification.calibrate import LARGEST_N
from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.files.atomic import check_writable, name_of, read_bytes, write_bytes
from optdp.files.canonical import canonical, check, check_digest, check_head, friendly, parse, refused
from optdp.numbers.exact import show, shown
from optdp.objects import Public
from optdp.sheet import Cell, Sheet
from optdp.sheet import figure as readable
from optdp.shuffle import histogram, real_sum
from optdp.shuffle import turnout as turnouts
from optdp.shuffle.claims import (
    check_figures,
    covers,
    design_of,
    histogram_error,
    metric_figures,
    response_delta,
    response_local,
    stated,
    sum_error,
)
from optdp.shuffle.client import FINE_GRAIN, GRID, WORD, Client, Flips, Padded, Response
from optdp.shuffle.estimators import ESTIMATORS
from optdp.shuffle.histogram import LARGEST_BINS, HistogramSolution, ShuffleHistogram
from optdp.shuffle.honest import fewest, words
from optdp.shuffle.metric import problem as metric
from optdp.shuffle.metric.problem import LARGEST_DISTANCE, LARGEST_K, MECHANISMS, MetricShuffle
from optdp.shuffle.metric.problem import LARGEST_N as MOST_PEOPLE
from optdp.shuffle.metric.solve import MetricSolution
from optdp.shuffle.real_sum import RealSum, RealSumSolution
from optdp.shuffle.summation import LARGEST_K as MOST_STEPS

FORMAT = "optdp/shuffle"
KEYS = ("format", "version", "kind", "people", "client", "data", "claim", "provenance", "sha256")
NAMED = 16
"""How many digits of the digest a message names."""
LARGEST_FIGURE = 10**300
LEAST_EPSILON = Fraction(1, 10**9)
_NUMBER = re.compile(r"[0-9]{1,60}(\.[0-9]{1,60})?(E[-+]?[0-9]{1,4})?|[0-9]{1,60}e-[0-9]{1,3}")
_RATIO = re.compile(r"[0-9]{1,600}(/[1-9][0-9]{0,599})?")
_END = re.compile(r"-?[0-9]{1,60}((\.[0-9]{1,60})?(e[-+]?[0-9]{1,2})?|/[1-9][0-9]{0,59})")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,39}")


@dataclass(frozen=True, eq=False)
class Deployed(Public):
    """A shuffle protocol as its file has it, its form and digest checked."""

    kind: str
    n: int
    client: Client
    data: Mapping[str, Any]
    claim: Mapping[str, Any]
    provenance: Mapping[str, Any]
    sha256: str

    @property
    def honest(self) -> int:
        """How many people must do as the design says."""
        return int(self.claim["honest"])

    @property
    def name(self) -> str:
        """What its messages call it."""
        return self.sha256[:NAMED]


@dataclass(frozen=True, eq=False)
class VerifiedShuffle(Public):
    """What was recomputed from the clients' integers."""

    deployed: Deployed
    figures: Mapping[str, Any]
    seconds: float

    @cached_property
    def turnout(self) -> turnouts.Turnout:
        """Epsilon against the number of people who do as the design says."""
        found, claim = self.deployed, self.deployed.claim
        client, n, delta = found.client, found.n, Fraction(claim["delta"]) - found.n * found.client.lacking
        if isinstance(client, Response):
            return turnouts.of_responses(n, found.honest, client.values, client.gamma, delta)
        if claim["shuffler"] != "honest":
            return ()
        return turnouts.of_noise(design_of(client, n, found.honest), delta, claim["max_distance"])

    def explain(self) -> dict[str, Any]:
        """Where epsilon is reached, and what fewer people hide, for programs."""
        profile = list(map(float, self.deployed.claim.get("profile", ())))
        worst = {"worst_entry_of_profile": 1 + profile.index(max(profile))} if profile else {}
        return worst | {"turnout": turnouts.summary(self.turnout)}

    def reasons(self) -> Sheet:
        """The same for people."""
        if not self.turnout:
            return Sheet((("explanation", "no other person's noise is relied on"),))
        return Sheet((), (turnouts.listing(self.turnout, self.deployed.honest),))

    def sheet(self) -> Sheet:
        """What holds, in words."""
        said, kind = self.deployed.claim, self.deployed
        far = f", up to distance {said['max_distance']}" if "max_distance" in said else ""
        unit = " per unit" if far else ""
        alone = f", delta {said['local_delta']}" if "local_delta" in said else ", delta 0"
        errors = [(name.replace("_", " "), said[name]) for name in ERRORS if name in said]
        return Sheet(
            (
                ("protocol", Cell(f"{kind.kind} of {kind.n:,} people, {kind.client.words:,} random words a message")),
                ("epsilon, delta", Cell(f"{said['epsilon']}{unit}, {said['delta']}{far}", "strong")),
                ("who must take part", words(kind.n, kind.honest)),
                ("one message alone", f"epsilon {said['local_epsilon']}{unit}{alone}"),
                *errors,
                ("rounding to integers", f"{readable(float(self.deployed.n * kind.client.lacking))} of delta"),
            ),
            meaning=said["meaning"],
        )


ERRORS = ("standard_error", "mse", "mae", "rmse", "within_95")


# ---------------------------------------------------------------------- from a solution


def check_target(problem: MetricShuffle | ShuffleHistogram | RealSum, path: Path) -> None:
    """Refuse before a long search what could not be written after it."""
    if isinstance(problem, MetricShuffle) and problem.mechanism in ("geo-local", "geo-central"):
        raise ProblemError(
            f"{problem.mechanism} is a baseline without a shuffler, and has no protocol to deploy. Leave out --out, or "
            "take rr, geo, sgdl or hybrid."
        )
    check_writable(path)


def save(solution: MetricSolution | HistogramSolution | RealSumSolution, path: str | Path) -> None:
    """Write the protocol of a solution, atomically, with claims recomputed from its integers."""
    check_target(solution.problem, Path(path))
    write_bytes(path, "".join(_spelled(_document(*_parts(solution), solution))).encode("ascii"))


Parts = tuple[int, Client, dict[str, Any], dict[str, Any]]
"""How many people, their clients, how values are read, the claim."""


def _parts(solution: MetricSolution | HistogramSolution | RealSumSolution) -> Parts:
    if isinstance(solution, MetricSolution):
        return _metric_parts(solution)
    problem = solution.problem
    blank = int(solution.gamma * (1 << WORD))  # a multiple of 2^-40
    claim: dict[str, Any]
    if isinstance(solution, HistogramSolution):
        client, n = Response(solution.problem.k, blank), solution.problem.n
        labels = solution.problem.labels
        data: dict[str, Any] = {
            "labels": None if labels is None else list(labels), "estimator": solution.problem.estimator
        }  # fmt: skip
        claim = {"standard_error": stated(histogram_error(client, n))}
    else:
        client, n = Response(solution.k + 1, blank, FINE_GRAIN), solution.n
        data = {"low": show(solution.problem.low), "high": show(solution.problem.high)}
        claim = {"mse": stated(sum_error(client, n, solution.problem.width))}
    epsilon = (
        show(problem.epsilon) if problem.epsilon is not None else stated(max(solution.epsilon, float(LEAST_EPSILON)))
    )
    least = fewest(problem.honest, n)
    found = response_delta(client, n, Fraction(epsilon), least)
    delta = show(problem.delta) if problem.delta is not None else stated(found / (1 - Fraction(1, 1 << 40)))
    if found > Fraction(delta):
        raise CertificateError(f"delta = {delta} does not hold of the integers. Found {float(found):.9g}.")
    claim |= {"epsilon": epsilon, "delta": delta, "local_epsilon": stated(response_local(client))}
    said = (histogram if isinstance(solution, HistogramSolution) else real_sum).meaning(least == n)
    return n, client, data, claim | {"honest": least, "meaning": said}


def _metric_parts(solution: MetricSolution) -> Parts:
    design, problem = solution.design, solution.problem
    client: Flips | Padded
    if design.flip is not None:
        client = Flips(design.k, math.ceil(design.flip * (1 << WORD) / GRID) * GRID, design.dimensions)
    else:
        shares = design.noise
        plain = (design.mechanism, design.k, design.quantum, design.c or 0, design.dimensions)
        client = Padded.of(*plain, shares.beta, shares.q)
    n, least = design.n, design.fewest
    found = metric_figures(client, n, problem.delta, problem.max_distance, problem.shuffler, problem.query, least)
    said = {
        name: list(map(stated, value)) if isinstance(value, list) else stated(value) for name, value in found.items()
    }
    rests = {"delta": show(problem.delta), "max_distance": problem.max_distance, "shuffler": problem.shuffler}
    rests |= {"honest": least, "meaning": metric.meaning(problem.shuffler, least == n)}
    return n, client, {"query": problem.query}, said | rests


def _document(n: int, client: Client, data: Any, claim: Any, solution: Any) -> dict[str, Any]:
    asked = {name: str(value) for name, value in solution.problem.figures().items()}
    document = {
        "format": FORMAT, "version": 1, "kind": solution.problem.kind, "people": n, "client": client.fields(),
        "data": data, "claim": claim, "provenance": {"optdp": version("optdp"), "asked": asked},
    }  # fmt: skip
    return document | {"sha256": _digest(document)}


def _spelled(document: Mapping[str, Any]) -> list[str]:
    lines = [f'"{key}": {friendly(document[key])}' for key in KEYS]
    return ["{\n", ",\n".join(lines), "\n}\n"]


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(dict(document)).encode()).hexdigest()


# ---------------------------------------------------------------------- from a file


def read_design(path: str | Path, data: bytes | None = None) -> Deployed:
    """A protocol, its form and digest checked; what it claims is checked by `verify_design`."""
    data = read_bytes(path) if data is None else data
    try:
        document = check_head(parse(data), FORMAT, set(KEYS), "A protocol", "Give a file that `solve` wrote.")
        check_digest(document["sha256"], _digest({key: document[key] for key in KEYS if key != "sha256"}))
        check(data, _spelled(document))
        kind = document["kind"]
        if not isinstance(kind, str) or kind not in _FORMS:
            raise refused(f"kind must be one of {', '.join(_FORMS)}", shown(kind))
        n = _whole(document["people"], "people", 1 if kind == MetricShuffle.kind else 2,
                   MOST_PEOPLE if kind == MetricShuffle.kind else LARGEST_N)  # fmt: skip
        client, claim = _FORMS[kind](document)
    except ArtifactError as error:
        raise ArtifactError(f"{name_of(path)}: {error}") from None
    return Deployed(kind, n, client, document["data"], claim, document["provenance"], document["sha256"])


def verify_design(path: str | Path, *, allow_outside: bool = False, found: Deployed | None = None) -> VerifiedShuffle:
    """Recompute every claim from the integers of the file."""
    begin = time.perf_counter()
    found = found or read_design(path)
    claim, client, n = found.claim, found.client, found.n
    delta, epsilon = Fraction(claim["delta"]), Fraction(claim["epsilon"])
    if isinstance(client, Response):
        spent = response_delta(client, n, epsilon, found.honest)
        if spent > delta:
            raise CertificateError(
                f"delta is claimed to be {claim['delta']} at epsilon = {claim['epsilon']}. Found {float(spent):.9g}. "
                "Do not use it."
            )
        figures: dict[str, Any] = {"local_epsilon": response_local(client)}
        if found.kind == RealSum.kind:
            width = Fraction(found.data["high"]) - Fraction(found.data["low"])
            figures["mse"] = sum_error(client, n, width)
        else:
            figures["standard_error"] = histogram_error(client, n)
        check_figures(claim, figures)
        figures |= {"epsilon": float(epsilon), "delta": float(spent)}
    else:
        try:
            figures = metric_figures(
                client, n, delta, claim["max_distance"], claim["shuffler"], found.data["query"], found.honest
            )  # fmt: skip
        except ProblemError as error:
            raise ArtifactError(
                f"{name_of(path)}: a protocol must be one that can be checked. Found: {error}"
            ) from None
        check_figures(claim, figures)
    return VerifiedShuffle(found, figures, time.perf_counter() - begin)


def _metric_form(document: Mapping[str, Any]) -> tuple[Client, Mapping[str, Any]]:
    fields, claim, data = document["client"], document["claim"], document["data"]
    law = fields.get("law") if isinstance(fields, dict) else None
    if law == "flips":
        _keys(fields, "client", {"law", "bits", "flip", "dimensions"})
        flip = _share(fields["flip"], "flip", (1 << (WORD - 1)) - 1)
        sides = _whole(fields["dimensions"], "dimensions", 1, 2)
        client: Flips | Padded = Flips(_whole(fields["bits"], "bits", 1, LARGEST_K), flip, sides)
    else:
        client = _padded(fields)
    _keys(data, "data", {"query"})
    _among(data["query"], "query", ("sum", "average"))
    names = {"profile", "epsilon", "local_epsilon", "local_delta", "mae", "rmse", "within_95", "truncation", "delta"}
    _keys(claim, "claim", names | {"max_distance", "shuffler", "honest", "meaning"})
    furthest = _whole(claim["max_distance"], "max_distance", 1, LARGEST_DISTANCE)
    _among(claim["shuffler"], "shuffler", ("honest", "compromised"))
    n = document["people"]
    least = _whole(claim["honest"], "honest", 1 if claim["shuffler"] == "honest" else n, n)
    _meaning(claim, metric.meaning(claim["shuffler"], least == n))
    profile = claim["profile"]
    if not isinstance(profile, list) or not profile or (client.dimensions == 1 and len(profile) != furthest):
        raise refused("profile must be a list with an entry for each distance", shown(profile))
    for text in (*profile, *(claim[name] for name in sorted(names - {"profile"}))):
        _decimal(text)
    if not all(covers(Fraction(claim["epsilon"]), Fraction(text)) for text in profile):
        raise refused("epsilon must be at least that at every distance", shown(claim["epsilon"]))
    _between(claim["delta"], "delta", Fraction(1, 10**12), Fraction(1, 2))
    if client.dimensions == 2 and len(profile) > 4 * LARGEST_DISTANCE:
        raise refused("profile must be of distances that can be looked at", f"{len(profile)} of them")
    return client, claim


def _padded(fields: Any) -> Padded:
    names = {"law", "mechanism", "k", "grain", "padding", "dimensions", "beta", "q", "weights"}
    _keys(fields, "client", names)
    if fields["law"] != "padded":
        raise refused("law must be flips or padded", shown(fields["law"]))
    _among(fields["mechanism"], "mechanism", [name for name in MECHANISMS if name in ("geo", "sgdl", "hybrid")])
    k = _whole(fields["k"], "k", 1, LARGEST_K)
    sides = _whole(fields["dimensions"], "dimensions", 1, 2)
    grain = _whole(fields["grain"], "grain", 1, k if sides == 1 else 1)
    beta, q = _ratio(fields["beta"], "beta"), _ratio(fields["q"], "q")
    if not Fraction(1, 10**7) <= beta <= 1:
        raise refused("beta must be from 1e-7 to 1", shown(fields["beta"]))
    if not Fraction(1, 10**60) <= q <= 1 - Fraction(1, 10**5):
        raise refused("q must be from 1e-60 to 1 - 1e-5", shown(fields["q"]))
    given = fields["weights"]
    if not isinstance(given, list) or not 1 <= len(given) <= LARGEST_K:
        raise refused("weights must be a list", shown(given))
    weights = tuple(_integer(text, "A weight", 1, 1 << 124) for text in given)
    padding = _whole(fields["padding"], "padding", 0, 10**6)
    client = Padded(fields["mechanism"], k, grain, padding, sides, beta, q, weights)
    rest = client.reach + 1 - len(weights)
    if rest < 0 or weights[0] + 2 * (sum(weights[1:]) + rest) != 1 << 124:
        raise refused("weights must sum to 2^124 over the noise that matters", "another sum")
    if len(weights) > 1 and weights[-1] == 1:
        raise refused("weights must leave out the last that are 1", "one of them")
    return client


def _response(document: Mapping[str, Any], grain: int, most: int) -> Response:
    fields, claim = document["client"], document["claim"]
    _keys(fields, "client", {"law", "values", "blank", "grain"})
    if fields["law"] != "response" or fields["grain"] != grain or type(fields["grain"]) is not int:
        raise refused(f"The client must be a response with grain {grain}", shown((fields["law"], fields["grain"])))
    blank = _share(fields["blank"], "blank", (1 << WORD) - GRID)
    error = "mse" if grain > 1 else "standard_error"
    names = {"epsilon", "delta", "local_epsilon", error}
    _keys(claim, "claim", names | {"honest", "meaning"})
    _whole(claim["honest"], "honest", 2, document["people"])
    for name in sorted(names):
        _decimal(claim[name])
    _between(claim["epsilon"], "epsilon", LEAST_EPSILON, Fraction(60))
    _between(claim["delta"], "delta", Fraction(0), Fraction(1))
    return Response(_whole(fields["values"], "values", 2, most), blank, grain)


def _histogram_form(document: Mapping[str, Any]) -> tuple[Client, Mapping[str, Any]]:
    client, data = _response(document, 1, LARGEST_BINS), document["data"]
    _keys(data, "data", {"labels", "estimator"})
    _among(data["estimator"], "estimator", ESTIMATORS)
    labels = data["labels"]
    named = isinstance(labels, list) and all(
        isinstance(label, str) and label and label == label.strip() for label in labels
    )
    if labels is not None and (not named or len(set(labels)) != client.values or len(labels) != client.values):
        raise refused(
            "labels must be a different text for each value, without spaces around it, or null", shown(labels)
        )
    _meaning(document["claim"], histogram.meaning(document["claim"]["honest"] == document["people"]))
    return client, document["claim"]


def _sum_form(document: Mapping[str, Any]) -> tuple[Client, Mapping[str, Any]]:
    client, data = _response(document, FINE_GRAIN, MOST_STEPS + 1), document["data"]
    _keys(data, "data", {"low", "high"})
    for name in ("low", "high"):
        if not isinstance(data[name], str) or not _END.fullmatch(data[name]):
            raise refused(f"{name} must be a number in text", shown(data[name]))
    low, high = Fraction(data["low"]), Fraction(data["high"])
    if not -(10**15) <= low < high <= 10**15:
        raise refused("low must be below high, both from -1e15 to 1e15", shown((data["low"], data["high"])))
    if not float(low) < float(high):
        raise refused("low must be below high in double precision, too", shown((data["low"], data["high"])))
    _meaning(document["claim"], real_sum.meaning(document["claim"]["honest"] == document["people"]))
    return client, document["claim"]


_FORMS: dict[str, Callable[[Mapping[str, Any]], tuple[Client, Mapping[str, Any]]]] = {
    MetricShuffle.kind: _metric_form, ShuffleHistogram.kind: _histogram_form, RealSum.kind: _sum_form
}  # fmt: skip


def _keys(table: Any, name: str, keys: set[str]) -> None:
    if not isinstance(table, dict) or table.keys() != keys:
        raise refused(f"{name} must have the keys {', '.join(sorted(keys))}", shown(table))


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise refused(f"{name} must be a whole number from {least} to {most:,}", shown(value))
    return value


def _integer(text: Any, name: str, least: int, most: int) -> int:
    if not isinstance(text, str) or not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        raise refused(f"{name} must be a whole number in text, from {least} to {most}", shown(text))
    return int(text)


def _share(text: Any, name: str, most: int) -> int:
    found = _integer(text, name, GRID, most)
    if found % GRID:
        raise refused(f"{name} must be a multiple of {GRID}", shown(text))
    return found


def _ratio(text: Any, name: str) -> Fraction:
    if not isinstance(text, str) or not _RATIO.fullmatch(text) or str(Fraction(text)) != text:
        raise refused(f"{name} must be a fraction in lowest terms, in text", shown(text))
    return Fraction(text)


def _decimal(text: Any) -> None:
    if not isinstance(text, str) or not _NUMBER.fullmatch(text) or Fraction(text) > LARGEST_FIGURE:
        raise refused("Figures of a claim must be decimals in text, up to 1e300", shown(text))


def _between(text: str, name: str, least: Fraction, most: Fraction) -> None:
    if not least <= Fraction(text) <= most:
        raise refused(f"{name} must be from {float(least):g} to {float(most):g}", shown(text))


def _among(value: Any, name: str, known: Any) -> None:
    if not isinstance(value, str) or value not in known:
        raise refused(f"{name} must be one of {', '.join(known)}", shown(value))


def _meaning(claim: Mapping[str, Any], meaning: str) -> None:
    if claim["meaning"] != meaning:
        raise refused("meaning must be that of the kind", shown(claim["meaning"]))
