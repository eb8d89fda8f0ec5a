"""One locally trusted entity: what the user wants, and the linear program that finds it (A, section V, Theorem 1).

    minimise    sum over x, s of  prior(x) loss(x - s) r(x, s)
    subject to  sum over s of r(x, s) = 1                                        every input x
                Pr[s | w] <= e^eps Pr[s | w']                                    every person, adjacent secrets, output
                sum over s of |x - s| r(x, s) <= 2q / (1 - q^2)                  `never_worse`, condition (3)
                r(x, s) <= e^f r(x', s)                                          `fallback_epsilon`, adjacent inputs

with `Pr[s | w] = sum over x of Pr[sum = x | w] r(x, s)`. With `tail="geometric"` the outputs outside `0..last` are
geometric noise, `r(x, s) = (1-q)/(1+q) q^|x-s|`, and only the rest is decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from optdp.errors import ProblemError
from optdp.math.exact import Number, geometric_ratio, show, to_fraction
from optdp.noise.population import Population

Tail = Literal["geometric", "none"]
Objective = Literal["mae", "mse"]
Adjacency = Literal["unit", "all"]
Method = Literal["lp", "shifting", "geometric"]


@dataclass(frozen=True, init=False)
class SingleLTE:
    """The best noise matrix for one entity that knows the prior of its people's sum.

    Parameters
    ----------
    population : who is counted; or several priors, under each of which the guarantee must hold (robust design).
    epsilon : the wanted privacy under the prior, for one person's whole contribution.
    fallback_epsilon : also ordinary differential privacy at this level, whatever anybody knows.
    tail : "geometric" lets outputs leave `0..last` as in Theorem 1; "none" keeps them inside.
    never_worse : no input has a larger mean absolute error than under geometric noise (condition (3)).
    objective : the mean "mae" or "mse" under the prior.
    adjacency : "unit" protects each unit step at epsilon/D (the paper); "all" each pair of contributions at epsilon.
    method : "lp" (optimal), "shifting" (Algorithm 2 with Remark 7), or "geometric" (the baseline).
    weights : with several priors, how much each counts in the objective; by default only the first.
    """

    populations: tuple[Population, ...]
    epsilon: Fraction
    fallback_epsilon: Fraction | None
    tail: Tail
    never_worse: bool
    objective: Objective
    adjacency: Adjacency
    method: Method
    weights: tuple[Fraction, ...]

    kind = "single-lte"

    def __init__(
        self,
        population: Population | Sequence[Population],
        epsilon: Number,
        fallback_epsilon: Number | None = None,
        tail: Tail = "geometric",
        never_worse: bool = True,
        objective: Objective = "mae",
        adjacency: Adjacency = "unit",
        method: Method = "lp",
        weights: Sequence[Number] | None = None,
    ) -> None:
        populations = (population,) if isinstance(population, Population) else tuple(population)
        if not populations:
            raise ProblemError("population must be one prior or a list of several. Found an empty list.")
        wanted = checked_epsilon(epsilon, "epsilon")
        fallback = None if fallback_epsilon is None else checked_epsilon(fallback_epsilon, "fallback_epsilon")
        if fallback is not None and fallback <= wanted:
            raise ProblemError(
                f"fallback_epsilon must be larger than epsilon = {show(wanted)}. Found {show(fallback)}. "
                'For ordinary privacy at epsilon itself use method = "geometric".'
            )
        for name, value, known in (
            ("tail", tail, ("geometric", "none")),
            ("objective", objective, ("mae", "mse")),
            ("adjacency", adjacency, ("unit", "all")),
            ("method", method, ("lp", "shifting", "geometric")),
        ):
            if value not in known:
                raise ProblemError(f"{name} must be one of {', '.join(known)}. Found {value!r}.")
        if weights is None:
            mix = (Fraction(1),) + (Fraction(0),) * (len(populations) - 1)
        else:
            mix = tuple(to_fraction(weight, "weights") for weight in weights)
        if len(mix) != len(populations) or min(mix) < 0 or sum(mix) != 1:
            raise ProblemError("weights must be one number of at least 0 for each prior, summing to exactly 1.")
        if tail == "geometric" and any(prior.spec["kind"] == "conditionals" for prior in populations):
            raise ProblemError(
                'A population of kind "conditionals" needs tail = "none": geometric tails are private only for '
                "people that are independent of each other."
            )
        if method == "shifting" and (len(populations) > 1 or len(populations[0].people) > 1 or fallback):
            raise ProblemError(
                'method = "shifting" is for one prior, one kind of person and no fallback. Use method = "lp".'
            )
        values = (populations, wanted, fallback, tail, bool(never_worse), objective, adjacency, method, mix)
        for field, given in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, field, given)

    @property
    def last(self) -> int:
        """The largest input."""
        return max(prior.last for prior in self.populations)

    @property
    def largest(self) -> int:
        """The largest contribution of anybody, `D`."""
        return max(prior.largest for prior in self.populations)

    @property
    def q(self) -> Fraction:
        """The ratio of geometric noise at epsilon, a rational that is at least `e^(-epsilon/D)`."""
        return geometric_ratio(self.epsilon / self.largest)

    @property
    def baseline(self) -> Fraction:
        """The error of geometric noise: `2q/(1-q^2)`, or `2q/(1-q)^2` for the mean squared error."""
        q = self.q
        return 2 * q / (1 - q * q) if self.objective == "mae" else 2 * q / (1 - q) ** 2

    @property
    def cap(self) -> Fraction:
        """The right-hand side of condition (3): the mean absolute error of geometric noise."""
        q = self.q
        return 2 * q / (1 - q * q)

    def spec(self) -> dict[str, Any]:
        """The problem as it stands in a file."""
        priors = [dict(prior.spec) for prior in self.populations]
        spec: dict[str, Any] = {"kind": self.kind, "epsilon": show(self.epsilon)}
        if self.fallback_epsilon is not None:
            spec["fallback_epsilon"] = show(self.fallback_epsilon)
        spec |= {
            "tail": self.tail,
            "never_worse": self.never_worse,
            "objective": self.objective,
            "adjacency": self.adjacency,
            "method": self.method,
        }
        if len(priors) > 1:
            spec["weights"] = [show(weight) for weight in self.weights]
        spec["population"] = priors[0] if len(priors) == 1 else priors
        return spec


def checked_epsilon(value: Number, name: str) -> Fraction:
    epsilon = to_fraction(value, name)
    if not 0 < epsilon <= 100:
        raise ProblemError(f"{name} must be larger than 0 and at most 100. Found {show(epsilon)}.")
    if math.log2(epsilon) < -40:
        raise ProblemError(f"{name} must be at least 2^-40. Found {float(epsilon):.3g}.")
    return epsilon
