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

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from attrs import field, frozen
from pydantic import StrictInt

from optdp.errors import ProblemError
from optdp.files.models import Exact, Problem, entries, entry
from optdp.numbers.exact import Number, geometric_ratio, precision, show, to_fraction, upper_fraction
from optdp.numbers.sgdl import SGDL
from optdp.people.files import AnyParty, World, made
from optdp.people.population import Population
from optdp.single.problem import Objective, check_choices, check_fallback, fallback, wanted

if TYPE_CHECKING:
    from optdp.plan.solve import PlanSolution  # noqa: F401  # what its problems are solved by

Method = Literal["joint", "divisible", "geometric"]
Contraction = Literal["optimal", "scaled", "shifts", "none", "algorithm-5"]
LARGEST_FACTOR = 1000
"""The largest coefficient of a weighted sum."""
MOST_PARTIES = 1000
Made = TypeVar("Made")


def each_once(keys: Iterable[Hashable], make: Callable[[int], Made]) -> list[Made]:
    """`make(i)` for the `i`-th key; what has the same key is made once, and is one object."""
    known: dict[Hashable, Made] = {}
    return [known[key] if key in known else known.setdefault(key, make(i)) for i, key in enumerate(keys)]


def _listed(name: str, given: object) -> None:
    if not isinstance(given, list | tuple):
        raise ProblemError(f"{name} must be a list. Found {str(given)[:60]!r}.")


def _members(given: Sequence[Population]) -> tuple[Population, ...]:
    _listed("parties", given)
    if not 2 <= len(given) <= MOST_PARTIES:
        raise ProblemError(
            f"parties must be a list of 2 to {MOST_PARTIES} populations. Found {len(given)}. "
            'For one party use kind = "single-lte".'
        )
    if not all(isinstance(party, Population) for party in given):
        raise ProblemError("parties must be a list of populations, such as Population.binomial(25, 0.5).")
    return tuple(given)


def _coefficients(given: Sequence[int] | None) -> tuple[int, ...] | None:
    _listed("f", given or ())
    return None if given is None else tuple(given)


def _divisor(given: Number) -> Fraction:
    share = to_fraction(given, "divisor")
    if not Fraction(1, 10**12) <= share <= 10**12:
        raise ProblemError(f"divisor must lie between 1e-12 and 1e12. Found {str(given)[:40]}.")
    return share


def _worlds(given: Sequence[Sequence[Population]]) -> tuple[tuple[Population, ...], ...]:
    _listed("also", given)
    return tuple(tuple(world) for world in given)


@frozen(eq=False, repr=False, slots=False)
class MultiLTE(Problem["PlanSolution"]):
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

    Examples
    --------
    >>> from optdp import MultiLTE, Population
    >>> MultiLTE([Population.binomial(25, "0.5")] * 2, epsilon="0.5").honest
    2
    """

    kind: ClassVar[str] = "multi-lte"

    parties: tuple[Population, ...] = field(converter=_members, metadata=entry(list[AnyParty]))
    epsilon: Fraction = field(converter=wanted, metadata=entry(Exact))
    _honest: int | None = field(default=None, metadata=entry(StrictInt | None))
    method: Method = field(default="joint", metadata=entry(Method))
    objective: Objective = field(default="mae", metadata=entry(Objective))
    fallback_epsilon: Fraction | None = field(default=None, converter=fallback, metadata=entry(Exact | None))
    _f: tuple[int, ...] | None = field(
        default=None,
        converter=_coefficients,
        metadata=entry(list[StrictInt] | None, "Integer coefficients of a weighted sum, one for each party."),
    )
    divisor: Fraction = field(
        default=Fraction(1),
        converter=_divisor,
        metadata=entry(Exact, "A public number that the aggregate is divided by."),
    )
    also: tuple[tuple[Population, ...], ...] = field(default=(), converter=_worlds, metadata=entry(list[World]))
    contraction: Contraction = field(default="optimal", metadata=entry(Contraction))

    @classmethod
    def from_file(cls, file: Any) -> MultiLTE:
        every = [file.parties, *(world.parties for world in file.also)]
        units = sorted({party.unit for parties in every for party in parties})
        if len(units) > 1:
            listed = ", ".join(unit or "none" for unit in units)
            raise ProblemError(
                f"All parties must count in one unit, for their sums are added. Found the units {listed}. Convert "
                "them, or use the coefficients f."
            )
        built = iter(made(list(chain.from_iterable(every))))
        worlds = [list(islice(built, len(parties))) for parties in every]
        return cls(**entries(file, parties=worlds[0], also=worlds[1:]))

    def __attrs_post_init__(self) -> None:
        count = len(self.parties)
        check_fallback(self.epsilon, self.fallback_epsilon)
        if type(self.honest) is not int or not 1 <= self.honest <= count:
            raise ProblemError(f"honest must be a number of parties, 1 to {count}. Found {self.honest}.")
        check_choices(self, method=Method, objective=Objective, contraction=Contraction)
        if len(self.f) != count or not all(type(one) is int and 1 <= abs(one) <= LARGEST_FACTOR for one in self.f):
            raise ProblemError(
                f"f must be one integer for each of the {count} parties, from 1 to {LARGEST_FACTOR} or their "
                f"negatives. Found {list(self.f)}."
            )
        for world in self.also:
            if len(world) != count:
                raise ProblemError(f"A world of also must have {count} populations. Found {len(world)}.")
            for i, (one, other) in enumerate(zip(self.parties, world, strict=True)):
                if one.last != other.last or one.largest != other.largest:
                    raise ProblemError(
                        f"Party {i} must have the same inputs in every world: 0..{one.last}, contributions "
                        f"0..{one.largest}. Found 0..{other.last} and 0..{other.largest}."
                    )
        if self.method != "joint" and (self.fallback_epsilon is not None or self.also):
            raise ProblemError(f'fallback_epsilon and also are for method = "joint". Found method = "{self.method}".')

    @property
    def honest(self) -> int:
        """How many parties are surely honest."""
        return len(self.parties) if self._honest is None else self._honest

    @property
    def f(self) -> tuple[int, ...]:
        """The coefficients of the sum."""
        return (1,) * len(self.parties) if self._f is None else self._f

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
