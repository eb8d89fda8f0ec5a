"""The artifact of one entity: its problem, its table and its claim.

**Geometric noise to compare with** (`never_worse`, `baseline_mae`) has `q` = `e^(-eps/D)` rounded up to a multiple of
`2^-(64 + ceil(1.4427 eps/D))`. An input served by nothing but that noise is not worse than it. If the method is
"geometric", or nobody but one person is counted, `never_worse` allows `2^-30` of the error for the rounding of a table
without clamped inputs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from .claims import as_decimal, claimed, claimed_epsilon, demand
from .crowd import crowd_mean, crowd_quotient, kept
from .enclosures import log_above, noise_ratio, worst_of
from .entity import Entity, Errors
from .fields import check_epsilons, exact_number, list_of, one_of, table_with
from .geometric import mean_absolute
from .priors import Prior, read_prior
from .table import read_table
from .verdict import Failed, Findings, Refused, must, printable, spend


def recheck_single(path: str | os.PathLike[str], document: Mapping[str, Any]) -> Findings:
    try:
        return _check_single(document)
    except (Refused, Failed) as error:
        raise type(error)(f"{printable(path)}: {error}") from None


def _check_single(document: Mapping[str, Any]) -> Findings:
    table = read_table(document)
    kind = document["problem"].get("kind")
    must(kind != "multi-lte", "A party's part of a plan must be checked with its folder", kind)
    spec = table_with(
        document["problem"], "problem", "kind epsilon population",
        "fallback_epsilon tail never_worse objective adjacency method weights title source notes expect",
    )  # fmt: skip
    one_of(kind, "kind", "single-lte")
    epsilon, fallback = check_epsilons(spec)
    tail = one_of(spec.get("tail", "geometric"), "tail", "geometric none")
    one_of(spec.get("objective", "mae"), "objective", "mae mse")
    every = one_of(spec.get("adjacency", "unit"), "adjacency", "unit all") == "all"
    method = one_of(spec.get("method", "lp"), "method", "lp shifting geometric")
    wanted = spec.get("never_worse", True)
    must(type(wanted) is bool, "never_worse must be true or false", wanted)
    listed = spec["population"] if isinstance(spec["population"], list) else [spec["population"]]
    priors = [read_prior(item) for item in list_of(listed, "population", 1)]
    mix = [
        exact_number(weight, "weights")
        for weight in list_of(spec.get("weights", [1] + [0] * (len(priors) - 1)), "weights")
    ]
    must(len(mix) == len(priors) and min(mix) >= 0 and sum(mix) == 1, "weights must be one for each prior", len(mix))
    must(tail == "none" or all(prior.independent for prior in priors), 'conditionals need tail = "none"', tail)
    plain = len(priors) == 1 and len(priors[0].sizes) == 1 and fallback is None
    must(method != "shifting" or plain, "shifting is for one prior, one kind of person, no fallback", len(priors))

    last, largest = max(prior.last for prior in priors), max(prior.largest for prior in priors)
    must(table.tail is None or table.tail["law"] == "geometric", "The tail of one entity must be geometric", "a share")
    must(table.first >= 0 and table.final <= last, f"Rows must be for inputs 0..{last}", [table.first, table.final])
    whole = (table.first, table.final) == (0, last)
    must(table.outside != "error" or whole, f"Every input 0..{last} must have a row", [table.first, table.final])
    if table.outside == "geometric":
        right = table.first <= table.low and table.high <= table.final
        must(right, "With noise outside, outputs must lie within the inputs", [table.low, table.high])

    factor, reach = (1, largest) if every else (largest, 1)
    wide = any(prior.wide for prior in priors)
    entity = Entity(table, last, reach if wide else last)
    written = Entity(table, last, last) if wide else entity
    private = worst_of(
        [crowd_quotient(entity, prior, every) if prior.wide else written.quotients(prior, every) for prior in priors]
    )
    ordinary = entity.ordinary(reach)
    q = noise_ratio(epsilon / largest)
    cap = mean_absolute(q)
    first, second = entity.errors(1), entity.errors(2)
    unit = first.unit
    worst = Fraction(max(first.alone, *first.served), unit)
    noise_itself = method == "geometric" or all(prior.alone for prior in priors)
    rounded = noise_itself and (whole or table.outside == "geometric")
    limit = math.floor(cap * unit * (1 + Fraction(rounded, 2**30)))
    same = table.q == q  # then noise alone, or a table that changes nothing, is not worse than noise
    never_worse = (same or first.alone <= limit) and all(
        error <= limit or (same and table.low == table.high == x)
        for x, error in enumerate(first.served, start=first.first)
    )
    means = [sum((w * _mean(entity, prior, errors) for w, prior in zip(mix, priors, strict=True) if w), Fraction(0))
             for errors in (first, second)]  # fmt: skip

    demand("epsilon under the prior", private, epsilon, factor)
    if fallback is not None:
        demand("the ordinary epsilon", ordinary, fallback, factor)
    if wanted and not never_worse:
        raise Failed(
            f"no input may have a larger error than geometric noise, {as_decimal(cap)}. Found {as_decimal(worst)}."
        )
    claim = document["claim"]
    claimed_epsilon(claim, "epsilon", private, factor)
    claimed_epsilon(claim, "ordinary_epsilon", ordinary, factor)
    figures = {"mae": means[0], "mse": means[1], "worst_error": worst, "baseline_mae": cap}
    for name, value in figures.items():
        if name in claim:
            claimed(claim, name, value)
    if claim.get("never_worse") and not never_worse:
        raise Failed("the claim never_worse does not hold.")
    log, ordinary_log = log_above(private), log_above(ordinary)
    return Findings(
        "PASS",
        "noise-matrix",
        {
            "epsilon": None if log is None else log * factor,
            "ordinary_epsilon": None if ordinary_log is None else ordinary_log * factor,
            **figures,
            "never_worse": never_worse,
        },
        ("lower_bound",) if claim.get("lower_bound") is not None else (),
        document["sha256"],
    )


def _mean(entity: Entity, prior: Prior, errors: Errors) -> Fraction:
    """At least the mean error of an input that follows a prior."""
    if prior.wide:
        mean = crowd_mean(prior.wide_total(kept(entity)), errors.served, errors.first, errors.alone)
        return mean / errors.unit
    law = prior.total
    spend(prior.last + 1, (errors.unit.bit_length() // 30 + 1) * law.unit.bit_length())
    return Fraction(sum(w * errors.at(x) for x, w in law.items()), law.unit * errors.unit)
