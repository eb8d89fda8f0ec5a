"""The artifact of one entity: its problem, its table and its claim.

**Geometric noise to compare with** (`never_worse`, `baseline_mae`) has `q` = `e^(-eps/D)` rounded up to a multiple of
`2^-(64 + ceil(1.4427 eps/D))`. An input served by nothing but that noise is not worse than it. If the method is
"geometric", `never_worse` allows `2^-30` of the error for the rounding of a table without clamped inputs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from .additive import check_noise_bound, read_noise
from .bounds import Program, check_bound
from .boxes import observed_quotient
from .claims import as_decimal, check_keys, claimed, claimed_epsilon, claimed_observed, demand, epsilon_of
from .enclosures import mean_absolute, noise_ratio, worst_of
from .entity import Entity, Errors, Table, crowd_mean, crowd_quotient, kept, read_table
from .fields import check_epsilons, exact_number, list_of, one_of, table_with
from .observers import Observer, read_observers
from .over_time import check_over_time
from .priors import Prior, read_prior
from .verdict import Failed, Findings, Refused, must, printable, spend


def recheck_single(path: str | os.PathLike[str], document: Mapping[str, Any]) -> Findings:
    """Recompute every claim of an artifact: what it asks for, whether its table fits, and what that gives."""
    try:
        table = read_table(document)
        problem = read_problem(document["problem"])
        if problem.additive:
            found = recomputed_noise(problem, table)
        else:
            check_fit(problem, table)
            found = recomputed(problem, table)
        check_demands(problem, found)
        unchecked = check_claim(document, problem, found)
    except (Refused, Failed) as error:
        raise type(error)(f"{printable(path)}: {error}") from None
    epsilons = {
        "epsilon": epsilon_of(found.private, problem.factor),
        "ordinary_epsilon": epsilon_of(found.ordinary, problem.factor),
    }
    if len(found.observed) > 1:
        for i, ratio in enumerate(found.observed, 1):
            epsilons[f"observer {i}: epsilon"] = epsilon_of(ratio, problem.factor)
    figures = {**epsilons, **found.errors, "never_worse": found.never_worse}
    return Findings("PASS", "noise-matrix", figures, unchecked, document["sha256"])


@dataclass(frozen=True)
class Problem:
    """What the entity's table must keep."""

    priors: Sequence[Prior]
    weights: Sequence[Fraction]
    """How much each prior counts in the errors."""
    epsilon: Fraction
    fallback: Fraction | None
    tailed: bool
    power: int
    every: bool
    """Whether every two contributions are adjacent, or neighbouring ones."""
    method: str
    never_worse: bool
    observers: Sequence[Observer]
    """Who is watching; if nobody is named, somebody who knows exactly the priors."""
    additive: bool
    """Whether one law of noise is added to every input."""

    @cached_property
    def last(self) -> int:
        return max(prior.last for prior in self.priors)

    @cached_property
    def largest(self) -> int:
        """The largest contribution of anybody."""
        return max(prior.largest for prior in self.priors)

    @property
    def factor(self) -> int:
        """How many steps make an epsilon."""
        return 1 if self.every else self.largest

    @property
    def reach(self) -> int:
        """How far adjacent inputs are apart at most."""
        return self.largest if self.every else 1

    @cached_property
    def q(self) -> Fraction:
        return noise_ratio(self.epsilon / self.largest)

    @property
    def program(self) -> Program:
        fallback = None if self.fallback is None else self.fallback / self.factor
        asked = [observer.epsilon for observer in self.observers if observer.known is None]
        asked += [] if self.fallback is None else [self.fallback]
        chain = min(asked) / self.factor if asked else None
        return Program(self.priors, self.weights, self.power, self.every, self.epsilon / self.factor, self.q,
                       self.tailed, self.never_worse, chain, self.reach, self._watching(fallback))  # fmt: skip

    def _watching(self, fallback: Fraction | None) -> list[Observer]:
        """The observers whose constraints a bound may price, with what a step may reveal to each."""
        found = [replace(observer, epsilon=observer.epsilon / self.factor) for observer in self.observers]
        return [*found, Observer((), None, fallback)] if found and fallback is not None else found


def read_problem(stated: Mapping[str, Any]) -> Problem:
    kind = stated.get("kind")
    must(kind != "multi-lte", "A party's part of a plan must be checked with its folder", kind)
    spec = table_with(
        stated, "problem", "kind epsilon population",
        "fallback_epsilon tail never_worse objective adjacency method form observer weights title source notes expect",
    )  # fmt: skip
    one_of(kind, "kind", "single-lte")
    epsilon, fallback = check_epsilons(spec)
    tailed = one_of(spec.get("tail", "geometric"), "tail", "geometric none") == "geometric"
    power = 1 if one_of(spec.get("objective", "mae"), "objective", "mae mse") == "mae" else 2
    every = one_of(spec.get("adjacency", "unit"), "adjacency", "unit all") == "all"
    method = one_of(spec.get("method", "lp"), "method", "lp shifting geometric")
    additive = one_of(spec.get("form", "table"), "form", "table additive") == "additive"
    never_worse = spec.get("never_worse", True)
    must(type(never_worse) is bool, "never_worse must be true or false", never_worse)
    listed = spec["population"] if isinstance(spec["population"], list) else [spec["population"]]
    priors = [read_prior(item) for item in list_of(listed, "population", 1)]
    observers: Sequence[Observer] = ()
    if "observer" in spec:
        observers = read_observers(spec["observer"], listed[0], priors[0], epsilon)
    weights = list_of(spec.get("weights", [1] + [0] * (len(priors) - 1)), "weights")
    problem = Problem(priors, [exact_number(weight, "weights") for weight in weights], epsilon, fallback, tailed, power,
                      every, method, never_worse, observers, additive)  # fmt: skip
    _check_priors(problem)
    return problem


def _check_priors(problem: Problem) -> None:
    priors, weights = problem.priors, problem.weights
    right = len(weights) == len(priors) and min(weights) >= 0 and sum(weights) == 1
    must(right, "weights must be one for each prior", len(weights))
    right = not problem.tailed or all(prior.independent for prior in priors)
    must(right, 'conditionals need tail = "none"', "geometric")
    must(not problem.observers or len(priors) == 1, "Observers need exactly one population", len(priors))
    right = not problem.observers or problem.method in ("lp", "geometric")
    must(right, "Observers need the method lp or geometric", problem.method)
    right = problem.tailed and problem.method == "lp" and not problem.observers
    must(right or not problem.additive, "Added noise needs a geometric tail, the method lp and no observer", "another")
    plain = len(priors) == 1 and len(priors[0].sizes) == 1 and problem.fallback is None
    right = problem.method != "shifting" or plain
    must(right, "shifting is for one prior, one kind of person, no fallback", len(priors))


def check_fit(problem: Problem, table: Table) -> None:
    """The table must be one that the problem can have."""
    last, inputs, outputs = problem.last, [table.first, table.final], [table.low, table.high]
    must(table.tail is None or table.tail["law"] == "geometric", "The tail of one entity must be geometric", "a share")
    must(table.first >= 0 and table.final <= last, f"Rows must be for inputs 0..{last}", inputs)
    must(table.low >= 0 and table.high <= last, f"Outputs must lie in 0..{last}", outputs)
    must(table.outside != "error" or inputs == [0, last], f"Every input 0..{last} must have a row", inputs)
    must(table.q == (problem.q if problem.tailed else None), "The tail must be that of the problem", table.tail)
    must(table.q is None or table.outside != "clamp", "With a tail, inputs without a row must get noise", "clamp")
    right = table.outside != "geometric" or (table.first <= table.low and table.high <= table.final)
    must(right, "With noise outside, outputs must lie within the inputs", outputs)


@dataclass(frozen=True)
class Figures:
    """What is recomputed of a table."""

    private: Fraction | None
    """The largest quotient of two adjacent secrets, under any prior, or for the first observer."""
    ordinary: Fraction | None
    """That of two adjacent inputs, whatever the prior."""
    errors: Mapping[str, Fraction]
    never_worse: bool
    observed: Sequence[Fraction | None]
    """The largest quotient of two adjacent secrets for each observer, if there are any."""


def recomputed(problem: Problem, table: Table) -> Figures:
    last, priors, every = problem.last, problem.priors, problem.every
    wide = any(prior.wide for prior in priors)
    entity = Entity(table, last, problem.reach if wide else last)
    written = Entity(table, last, last) if wide else entity
    ordinary = entity.ordinary(problem.reach)

    def seen(observer: Observer | None) -> Fraction | None:
        if observer is None or observer.exact:
            return worst_of([crowd_quotient(entity, prior, every) if prior.wide else written.quotients(prior, every)
                             for prior in priors])  # fmt: skip
        return ordinary if observer.known is None else observed_quotient(written, observer, every)

    alike = {(observer.kinds, observer.known): observer for observer in problem.observers}
    ratios = {key: seen(observer) for key, observer in alike.items()}
    observed = [ratios[observer.kinds, observer.known] for observer in problem.observers]
    first, second = entity.errors(1), entity.errors(2)
    worst = Fraction(max(first.alone, *first.served), first.unit)
    pairs = [(weight, prior) for weight, prior in zip(problem.weights, priors, strict=True) if weight]
    mae, mse = (
        sum((weight * _mean(entity, prior, errors) for weight, prior in pairs), Fraction(0))
        for errors in (first, second)
    )
    figures = {"mae": mae, "mse": mse, "worst_error": worst, "baseline_mae": mean_absolute(problem.q)}
    private = observed[0] if observed else seen(None)
    return Figures(private, ordinary, figures, _never_worse(problem, table, first), observed)


def recomputed_noise(problem: Problem, table: Table) -> Figures:
    """The same of noise that is added to every input."""
    must(table.tail is not None and table.tail["law"] == "added", "The noise must be added to every input", "a table")
    noise = read_noise(table)
    must(noise.q >= problem.q, "The tails must not fall faster than geometric noise", float(noise.q))
    mae, mse, baseline = noise.error(1), noise.error(2), mean_absolute(problem.q)
    figures = {"mae": mae, "mse": mse, "worst_error": mae, "baseline_mae": baseline}
    private = worst_of([noise.quotient(prior, problem.every) for prior in problem.priors])
    never_worse = mae <= baseline or (noise.reach == 0 and noise.q == problem.q)
    return Figures(private, noise.ordinary(problem.reach), figures, never_worse, ())


def _never_worse(problem: Problem, table: Table, errors: Errors) -> bool:
    """Whether no input has a larger error than geometric noise; the proof that rounding may be allowed is above."""
    if table.q is not None and table.low == table.high:  # noise alone: redrawing from one output changes nothing
        return True
    unclamped = table.outside == "geometric" or (table.first, table.final) == (0, problem.last)
    rounding = Fraction(problem.method == "geometric" and unclamped, 2**30)
    limit = math.floor(mean_absolute(problem.q) * errors.unit * (1 + rounding))
    return all(error <= limit for error in errors.served)


def _mean(entity: Entity, prior: Prior, errors: Errors) -> Fraction:
    """At least the mean error of an input that follows a prior."""
    if prior.wide:
        mean = crowd_mean(prior.wide_total(kept(entity)), errors.served, errors.first, errors.alone)
        return mean / errors.unit
    law = prior.total
    spend(prior.last + 1, (errors.unit.bit_length() // 30 + 1) * law.unit.bit_length())
    return Fraction(sum(w * errors.at(x) for x, w in law.items()), law.unit * errors.unit)


def check_demands(problem: Problem, found: Figures) -> None:
    """What the problem asks for must hold, whatever is claimed."""
    if not problem.observers:
        demand("epsilon under the prior", found.private, problem.epsilon, problem.factor)
    for i, (observer, ratio) in enumerate(zip(problem.observers, found.observed, strict=True), 1):
        demand(f"epsilon against observer {i}", ratio, observer.epsilon, problem.factor)
    if problem.fallback is not None:
        demand("the ordinary epsilon", found.ordinary, problem.fallback, problem.factor)
    if problem.never_worse and not found.never_worse:
        cap, worst = found.errors["baseline_mae"], found.errors["worst_error"]
        raise Failed(
            f"no input may have a larger error than geometric noise, {as_decimal(cap)}. Found {as_decimal(worst)}."
        )


def check_claim(document: Mapping[str, Any], problem: Problem, found: Figures) -> tuple[str, ...]:
    """Everything that is claimed must hold; what is not looked at here is named."""
    claim = document["claim"]
    known = (
        "epsilon ordinary_epsilon over_time mae mse worst_error baseline_mae never_worse lower_bound meaning explained"
    )
    check_keys(claim, f"{known} observed" if len(found.observed) > 1 else known)
    claimed_epsilon(claim, "epsilon", found.private, problem.factor)
    claimed_epsilon(claim, "ordinary_epsilon", found.ordinary, problem.factor)
    if len(found.observed) > 1:
        claimed_observed(claim, found.observed, problem.factor)
    check_over_time(claim, found.ordinary, problem.factor)
    for name, value in found.errors.items():
        if name in claim:
            claimed(claim, name, value)
    if claim.get("never_worse") and not found.never_worse:
        raise Failed("the claim never_worse does not hold.")
    value = found.errors["mae" if problem.power == 1 else "mse"]
    if problem.additive:
        step = problem.epsilon / problem.factor
        return check_noise_bound(
            claim, document["provenance"], value, problem.priors, problem.every, problem.power, step
        )
    return check_bound(claim, document["provenance"], value, problem.program)
