"""Several locally trusted entities: only the sum of what they report is seen (A, section VI).

Party `i` holds the sum `x_i` of its people and reports `s_i`, drawn from the row of `x_i` in its own table `r_i`. What
an observer sees is the aggregate `S = s_1 + .. + s_m`, an estimate of `f_1 x_1 + .. + f_m x_m`.

    minimise    E |S - sum over i of f_i x_i|            (or its square)
    subject to  sum over s of r_i(x, s) = 1              every party, every input
                Pr[S | w] <= e^(|f_i| eps / Delta) Pr[S | w + 1] and the reverse
                                                         every party i, person, contribution w and aggregate S
                r_i(x, s) <= e^f r_i(x', s)              `fallback_epsilon`, adjacent inputs

with `Delta = max over i of |f_i| D_i`, so that a whole contribution is protected at epsilon. With `honest = t < m` the
second line holds for the sum over every set of `t` parties: whoever sees the aggregate and knows inputs and noise of
the other `m - t` can subtract them (Remark 4). A larger set is then private too: it adds independent terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, get_args

from optdp.errors import ProblemError
from optdp.math.exact import Number, geometric_ratio, precision, show, to_fraction, upper_fraction
from optdp.math.sgdl import SGDL
from optdp.noise.population import Population
from optdp.noise.single import Objective, checked_epsilon

Method = Literal["joint", "divisible", "geometric"]
Contraction = Literal["optimal", "scaled", "shifts", "none", "algorithm-5"]
LARGEST_FACTOR = 1000
"""The largest coefficient of a weighted sum."""
MOST_PARTIES = 1000


@dataclass(frozen=True, init=False)
class MultiLTE:
    """The best tables for several entities whose reports are added before anybody sees them.

    Parameters
    ----------
    parties : who is counted by each entity. The entities are independent of each other.
    epsilon : the wanted privacy of every person, under the priors, for one whole contribution.
    honest : how many parties are surely honest; the others may tell the observer all they know. By default all.
    method : "joint" (one plan for all), "divisible" (section VI: each designs alone), "geometric" (the baseline).
    objective : the mean "mae" or "mse" of the aggregate.
    fallback_epsilon : also ordinary differential privacy of every table at this level, whatever anybody knows.
    f : the coefficients of a weighted sum, integers; all 1 by default.
    divisor : a public number that the aggregate is divided by (an average).
    also : further worlds, each with one population for each party, in which the same privacy must hold.
    contraction : with "divisible", how inputs are moved before noise is added: "optimal", "scaled", "shifts" (VI-D),
        "none" or "algorithm-5" (appendix B).
    """

    parties: tuple[Population, ...]
    epsilon: Fraction
    honest: int
    method: Method
    objective: Objective
    fallback_epsilon: Fraction | None
    f: tuple[int, ...]
    divisor: Fraction
    also: tuple[tuple[Population, ...], ...]
    contraction: Contraction

    kind = "multi-lte"

    def __init__(
        self,
        parties: Sequence[Population],
        epsilon: Number,
        honest: int | None = None,
        method: Method = "joint",
        objective: Objective = "mae",
        fallback_epsilon: Number | None = None,
        f: Sequence[int] | None = None,
        divisor: Number = 1,
        also: Sequence[Sequence[Population]] = (),
        contraction: Contraction = "optimal",
    ) -> None:
        lists: dict[str, object] = {"parties": parties, "f": f or (), "also": also}
        for listed, found in lists.items():
            if not isinstance(found, list | tuple):
                raise ProblemError(f"{listed} must be a list. Found {str(found)[:60]!r}.")
        members = tuple(parties)
        if not 2 <= len(members) <= MOST_PARTIES:
            raise ProblemError(
                f"parties must be a list of 2 to {MOST_PARTIES} populations. Found {len(members)}. "
                'For one party use kind = "single-lte".'
            )
        if not all(isinstance(party, Population) for party in members):
            raise ProblemError("parties must be a list of populations, such as Population.binomial(25, 0.5).")
        wanted = checked_epsilon(epsilon, "epsilon")
        fallback = None if fallback_epsilon is None else checked_epsilon(fallback_epsilon, "fallback_epsilon")
        if fallback is not None and fallback <= wanted:
            raise ProblemError(
                f"fallback_epsilon must be larger than epsilon = {show(wanted)}. Found {show(fallback)}."
            )
        trusted = len(members) if honest is None else honest
        if type(trusted) is not int or not 1 <= trusted <= len(members):
            raise ProblemError(f"honest must be a number of parties, 1 to {len(members)}. Found {trusted}.")
        for name, value, known in (
            ("method", method, ("joint", "divisible", "geometric")),
            ("objective", objective, ("mae", "mse")),
            ("contraction", contraction, get_args(Contraction)),
        ):
            if value not in known:
                raise ProblemError(f"{name} must be one of {', '.join(known)}. Found {value!r}.")
        factors = (1,) * len(members) if f is None else tuple(f)
        if len(factors) != len(members) or not all(
            type(factor) is int and 1 <= abs(factor) <= LARGEST_FACTOR for factor in factors
        ):
            raise ProblemError(
                f"f must be one integer for each of the {len(members)} parties, from 1 to {LARGEST_FACTOR} or their "
                f"negatives. Found {list(factors)}."
            )
        share = to_fraction(divisor, "divisor")
        if not Fraction(1, 10**12) <= share <= 10**12:
            raise ProblemError(f"divisor must lie between 1e-12 and 1e12. Found {str(divisor)[:40]}.")
        worlds = tuple(tuple(world) for world in also)
        for world in worlds:
            if len(world) != len(members):
                raise ProblemError(f"A world of also must have {len(members)} populations. Found {len(world)}.")
            for i, (one, other) in enumerate(zip(members, world, strict=True)):
                if one.last != other.last or one.largest != other.largest:
                    raise ProblemError(
                        f"Party {i} must have the same inputs in every world: 0..{one.last}, contributions "
                        f"0..{one.largest}. Found 0..{other.last} and 0..{other.largest}."
                    )
        if method != "joint" and (fallback is not None or worlds):
            raise ProblemError(f'fallback_epsilon and also are for method = "joint". Found method = "{method}".')
        values = (members, wanted, trusted, method, objective, fallback, factors, share, worlds, contraction)
        for field, given in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, field, given)

    @property
    def worlds(self) -> tuple[tuple[Population, ...], ...]:
        """Every list of populations under which the guarantee holds; the first is that of the objective."""
        return (self.parties, *self.also)

    @property
    def sensitivity(self) -> int:
        """`Delta`: how far one person can move the weighted sum."""
        return max(abs(factor) * party.largest for factor, party in zip(self.f, self.parties, strict=True))

    def step_epsilon(self, party: int) -> Fraction:
        """What a step `w -> w + 1` of a person of `party` may give away."""
        return self.epsilon * abs(self.f[party]) / self.sensitivity

    @property
    def q(self) -> Fraction:
        """The ratio of geometric noise at epsilon, a rational that is at least `e^(-epsilon/Delta)`."""
        return geometric_ratio(self.epsilon / self.sensitivity)

    @cached_property
    def baseline_mae(self) -> Fraction:
        """The mean absolute error of shared geometric noise: `2q/(1-q^2)` if all are honest, else more of it."""
        q = self.q
        if self.honest == len(self.parties):
            return 2 * q / (1 - q * q)
        with precision():
            return upper_fraction(SGDL(Fraction(len(self.parties), self.honest), q).mean_absolute())

    @property
    def baseline_mse(self) -> Fraction:
        """The mean squared error of shared geometric noise: `2q/(1-q)^2` if all are honest, else more of it."""
        q = self.q
        return Fraction(len(self.parties), self.honest) * 2 * q / (1 - q) ** 2

    @cached_property
    def share_mae(self) -> Fraction:
        """The mean absolute error of one party's share of geometric noise."""
        with precision():
            return upper_fraction(SGDL(Fraction(1, self.honest), self.q).mean_absolute())

    def spec(self) -> dict[str, Any]:
        """The problem as it stands in a file."""
        spec: dict[str, Any] = {"kind": self.kind, "epsilon": show(self.epsilon)}
        if self.fallback_epsilon is not None:
            spec["fallback_epsilon"] = show(self.fallback_epsilon)
        spec |= {"method": self.method, "honest": self.honest, "objective": self.objective}
        if any(factor != 1 for factor in self.f):
            spec["f"] = list(self.f)
        if self.divisor != 1:
            spec["divisor"] = show(self.divisor)
        if self.method == "divisible":
            spec["contraction"] = self.contraction
        spec["parties"] = [dict(party.spec) for party in self.parties]
        if self.also:
            spec["also"] = [{"parties": [dict(party.spec) for party in world]} for world in self.also]
        return spec
