"""Several locally trusted entities: only the sum of what they report is seen (A, section VI).

Party `i` holds the sum `x_i` of its people and reports `s_i`, drawn from the row of `x_i` in its own table `r_i`. What
an observer sees is the aggregate `S = s_1 + .. + s_m`, an estimate of `f_1 x_1 + .. + f_m x_m`.

    minimise    E |S - sum over i of f_i x_i|            (or its square)
    subject to  sum over s of r_i(x, s) = 1              every party, every input
                Pr[S | w] <= e^(|f_i| eps / Delta) Pr[S | w + 1] and the reverse
                                                         every party i, person, contribution w and aggregate S
                r_i(x, s) <= e^f r_i(x', s)              `fallback_epsilon`, adjacent inputs
                E[|S - t| given the sum t] <= c G        `never_worse = c`, every possible sum t

with `Delta = max over i of |f_i| D_i`, so that a whole contribution is protected at epsilon. With `honest = t < m` the
second line holds for the sum over every set of `t` parties: whoever sees the aggregate and knows inputs and noise of
the other `m - t` can subtract them (Remark 4). A larger set is then private too: it adds independent terms.
`adjacency = "all"` asks instead for `Pr[S | w] <= e^eps Pr[S | w']` of any two contributions, which follows from the
steps and is less. `G` is the mean absolute error of shared geometric noise, and with `tail = "none"` a party reports
nothing outside the range of `f_i x_i`.

With `method = "alone"` every table is private by itself: the second line holds for `s_i`
instead of `S`, in each of the worlds that the observer of party `i` holds possible (`people.observer`). The aggregate,
and all that the other parties know, is then computed from `s_i` and from what does not depend on the person.

With `method = "inside"` nobody reports anything: the inputs are added inside a secure computation, and `S` is drawn
there from one table of the total (`plan.merged`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

from attrs import field, frozen
from pydantic import StrictBool, StrictInt, StrictStr

from optdp.errors import ProblemError
from optdp.files.models import Exact, Problem, entries, entry
from optdp.numbers.exact import Number, geometric_ratio, precision, show, shown, to_fraction, upper_fraction
from optdp.numbers.sgdl import SGDL
from optdp.people.files import AnyParty, Watching, World, made
from optdp.people.observer import Observer
from optdp.people.population import Population
from optdp.plan import merged
from optdp.single.problem import Adjacency, Objective, SingleLTE, check_choices, check_fallback, fallback, wanted

if TYPE_CHECKING:
    from optdp.plan.solve import PlanSolution  # noqa: F401  # what its problems are solved by

Method = Literal["best", "joint", "divisible", "geometric", "alone", "seeded", "inside"]
Contraction = Literal["optimal", "scaled", "shifts", "none", "algorithm-5"]
Tail = Literal["margin", "none"]
LARGEST_FACTOR = 1000
"""The largest coefficient of a weighted sum."""
MOST_PARTIES = 1000
Made = TypeVar("Made")


MOST_TOTALS = 4_000_000
"""The most sums times entries of a table, for `never_worse`."""
MOST_PRODUCTS, MOST_ENTRIES = 2_000_000, 4_000
"""The most products of vertices, and of entries in all tables, of a joint plan with an observer."""


def each_once(keys: Iterable[Hashable], make: Callable[[int], Made]) -> list[Made]:
    """`make(i)` for the `i`-th key; what has the same key is made once, and is one object."""
    known: dict[Hashable, Made] = {}
    return [known[key] if key in known else known.setdefault(key, make(i)) for i, key in enumerate(keys)]


def _names(given: object) -> tuple[str, ...]:
    _listed("names", given)
    return tuple(" ".join(str(name).split()) for name in given)  # type: ignore[attr-defined]


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


def _multiple(given: Number | bool | None) -> Fraction | None:
    if given is None or given is False:
        return None
    times = Fraction(1) if given is True else to_fraction(given, "never_worse")
    if not 1 <= times <= 1000:
        raise ProblemError(
            "never_worse must be true, or a number from 1 to 1000: how many times the error of geometric noise any sum "
            f"may have. Found {show(times)}."
        )
    return times


def _worlds(given: Sequence[Sequence[Population]]) -> tuple[tuple[Population, ...], ...]:
    _listed("also", given)
    return tuple(tuple(world) for world in given)


def _watching(given: Observer | Sequence[Observer | None] | None) -> Observer | tuple[Observer | None, ...] | None:
    if given is None or isinstance(given, Observer):
        return given
    if not isinstance(given, list | tuple) or not all(one is None or isinstance(one, Observer) for one in given):
        raise ProblemError(
            f"observer must be one Observer for all, or a list with one, or None, for each party. Found {shown(given)}."
        )
    return tuple(given)


@frozen(eq=False, repr=False, slots=False)
class MultiLTE(Problem["PlanSolution"]):
    """The best tables for several entities whose reports are added up before anyone sees them.

    Parameters
    ----------
    parties : who is counted by each entity. The entities are independent of each other.
    epsilon : the wanted privacy of every person, under the priors, for one whole contribution.
    honest : how many parties are assumed honest; the others may tell the observer all they know. By default all.
    method : "best" (the most accurate of all that apply, with a table of them), "joint" (one plan for all),
        "divisible" (section VI: each designs alone), "geometric" (the baseline), "alone" (each table is private on
        its own), "seeded" (all parties are honest and share a secret word), or "inside" (one table of the total, from
        which the release is drawn inside a secure computation; three parties or more, most of them honest). By default
        "best".
    objective : the mean "mae" or "mse" of the aggregate.
    fallback_epsilon : also require ordinary differential privacy of every table at this level, whatever anyone knows.
    f : the coefficients of a weighted sum, integers; all 1 by default.
    divisor : a public number that the aggregate is divided by (an average).
    names : what the parties are called, for reports; none by default.
    also : further worlds, each with one population for each party, in which the same privacy must hold.
    contraction : with "divisible", how inputs are moved before noise is added: "optimal", "scaled", "shifts" (VI-D),
        "none" or "algorithm-5" (appendix B).
    adjacency : "unit" protects each unit step at its share of epsilon (the paper); "all" any two contributions of a
        person at epsilon.
    tail : "margin" lets the outputs of a joint plan go a little beyond the range of `f x`; "none" keeps them inside.
    never_worse : True, or a multiple: whatever the sum of all parties, the mean absolute error of a joint plan is at
        most this many times that of geometric noise. By default only the mean over all sums counts.
    observer : an `Observer` for the people of every party, or a list with one, or None, for each party's own: the
        guarantee holds against anyone who knows that much about the others. In a joint plan, these are the people of
        all parties; with "alone", those of the person's own party, and anything may be known about other parties.
    title : what files and reports call it.

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
    _method: Method | None = field(default=None, metadata=entry(Method | None))
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
    names: tuple[str, ...] = field(
        default=(),
        converter=_names,
        eq=False,
        metadata=entry(list[StrictStr], "What the parties are called, in order."),
    )
    also: tuple[tuple[Population, ...], ...] = field(default=(), converter=_worlds, metadata=entry(list[World]))
    contraction: Contraction = field(default="optimal", metadata=entry(Contraction))
    adjacency: Adjacency = field(default="unit", metadata=entry(Adjacency))
    tail: Tail = field(default="margin", metadata=entry(Tail))
    never_worse: Fraction | None = field(
        default=None,
        converter=_multiple,
        metadata=entry(
            StrictBool | Exact | None,
            "Whether no sum has a larger error than under geometric noise; or how many times that.",
        ),
    )
    _observers: Observer | tuple[Observer | None, ...] | None = field(
        default=None,
        converter=_watching,
        alias="observer",
        metadata=entry(Watching | None, "What somebody may know about the people of any party; a party's own wins."),
    )

    @classmethod
    def from_file(cls, file: Any) -> MultiLTE:
        every = [file.parties, *(world.parties for world in file.also)]
        units = sorted({party.unit for parties in every for party in parties})
        if len(units) > 1:
            listed = ", ".join(unit or "none" for unit in units)
            raise ProblemError(
                f"All parties must count in the same unit, as their sums are added. Found {listed}. Convert them, or "
                "use the coefficients f."
            )
        built = iter(made(list(chain.from_iterable(every))))
        worlds = [list(islice(built, len(parties))) for parties in every]
        if any(party.observer is not None for world in every[1:] for party in world):
            raise ProblemError("A world of also cannot have an observer. Remove it, or use a range instead of worlds.")
        common = None if file.observer is None else file.observer.build()
        own = [None if party.observer is None else party.observer.build() for party in file.parties]
        observer = [one or common for one in own] if any(own) else common
        return cls(**entries(file, parties=worlds[0], also=worlds[1:], observer=observer))

    def __attrs_post_init__(self) -> None:
        count = len(self.parties)
        check_fallback(self.epsilon, self.fallback_epsilon)
        if type(self.honest) is not int or not 1 <= self.honest <= count:
            raise ProblemError(f"honest must be a number of parties from 1 to {count}. Found {self.honest}.")
        if str(self.tail) == "geometric":  # as of one entity
            raise ProblemError(
                'The tables of a joint plan are finite, so tail must be "margin" or "none". Found "geometric". For '
                'geometric tails use method = "divisible".'
            )
        if self.names and (len(self.names) != count or len(set(self.names)) < count or "" in self.names):
            raise ProblemError(
                f"names must have a different name for each of the {count} parties. Found {shown(self.names)}."
            )
        check_choices(self, method=Method, objective=Objective, contraction=Contraction, adjacency=Adjacency, tail=Tail)
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
        if self.method == "best":
            self._check_any()
            return
        if self.method in ("divisible", "geometric") and (self.fallback_epsilon is not None or self.also):
            raise ProblemError(f'fallback_epsilon and also are for method = "joint". Found method = "{self.method}".')
        if self.method == "seeded" and self.untold:
            raise ProblemError(f'With method = "seeded" {self.untold}. Use method = "joint" or "best".')
        self._check_demands()
        self._check_observers()

    def _check_any(self) -> None:
        """Refuse what no method can do; the reason is that of the method that could do most."""
        first = "alone" if self.watched and self.apart else "joint"
        refused = None
        for name in dict.fromkeys((first, *get_args(Method)[1:])):
            try:
                self.changed(method=name)
            except ProblemError as error:
                refused = refused or error
            else:
                return
        assert refused is not None
        raise refused

    def _check_demands(self) -> None:
        """Refuse what only some methods can be asked for."""
        if self.adjacency == "all" and self.method not in ("joint", "alone"):
            raise ProblemError(
                f'adjacency = "all" needs method = "joint" or "alone", as shares of noise protect unit steps. Found '
                f'method = "{self.method}".'
            )
        asked = [name for name, on in (("never_worse", self.never_worse), ('tail = "none"', self.tail == "none")) if on]
        if asked and (self.method != "joint" or self.watched):
            found = "an observer" if self.watched else f'method = "{self.method}"'
            raise ProblemError(f'{asked[0]} is for method = "joint" without an observer. Found {found}.')
        if self.never_worse is not None and self.size_of_totals > MOST_TOTALS:
            raise ProblemError(
                f"never_worse looks at every sum with every entry of a table; at most {MOST_TOTALS:,} of them. Found "
                f"about {self.size_of_totals:,}. Use fewer people or parties."
            )

    @property
    def finite(self) -> str:
        """What is asked for that finite tables alone can keep; empty if shares of noise would do."""
        asked = {
            "fallback_epsilon": self.fallback_epsilon is not None,
            "never_worse": self.never_worse is not None,
            'tail = "none"': self.tail == "none",
            'adjacency = "all"': self.adjacency == "all",
        }
        return next((name for name, on in asked.items() if on), "")

    @property
    def size_of_totals(self) -> int:
        """With `never_worse`, about how many coefficients a block has: sums, inputs and outputs."""
        reach = [abs(f) * party.last + 1 for f, party in zip(self.f, self.parties, strict=True)]
        return sum(reach) * max(party.last + 1 for party in self.parties) * max(reach)

    def _check_observers(self) -> None:
        given, count = self._observers, len(self.parties)
        if isinstance(given, tuple) and len(given) != count:
            raise ProblemError(
                f"observer must be one for all, or one for each of the {count} parties. Found {len(given)}."
            )
        if self.method == "joint" and self.watched and self.apart:
            raise ProblemError(f'A joint plan with an observer {self.apart}. Use method = "alone".')
        if self.method == "inside":
            merged.check(self)
            return
        if self.method != "alone":
            if self.watched and self.method != "joint":
                raise ProblemError(
                    f'An observer is for method = "joint", "alone" or "inside". Found method = "{self.method}". '
                    "Remove one."
                )
            return
        if self.also:
            raise ProblemError(
                'With method = "alone" there is one world, our own belief. Remove also, and give observers a range.'
            )
        for i, one in enumerate(self.observers):
            if one.epsilon is not None:
                raise ProblemError(f"All observers of a plan have its epsilon. Remove that of party {i}'s observer.")
            try:
                self.alone(i)
            except ProblemError as error:
                raise ProblemError(f"party {i}: {error}") from None

    @property
    def honest(self) -> int:
        """How many parties are assumed honest."""
        return len(self.parties) if self._honest is None else self._honest

    @property
    def method(self) -> Method:
        """How the plan is found."""
        return self._method or "best"

    @property
    def untold(self) -> str:
        """Why a word that only the parties know helps nobody; empty if it does."""
        if self.honest < len(self.parties):
            return f"all parties must be honest, for each of them knows the common word. Found honest = {self.honest}"
        if self.fallback_epsilon is not None:
            return "there is no ordinary privacy: each report is a map of the input. Found fallback_epsilon"
        if self.watched:
            return "the observer must know exactly the priors. Found an observer who knows otherwise"
        return ""

    @cached_property
    def apart(self) -> str:
        """Why a joint plan with the observers is out of reach; empty if it is not."""
        if self.honest < len(self.parties) or self.fallback_epsilon is not None or self.also or set(self.f) != {1}:
            return "needs honest parties only, no fallback, one world, and no coefficients"
        if not 2 <= len(self.parties) <= 3:
            return f"is for two or three parties. Found {len(self.parties)}"
        products, entries = 1, 0.0
        for population, observer in zip(self.parties, self.observers, strict=True):
            independent = population.laws and "conservative" not in population.spec
            if observer.known or observer.epsilon is not None or not independent or population.largest != 1:
                return "needs independent people who contribute 0 or 1, none of them known"
            crowds = observer.worlds(population).crowds
            if len(population.laws) > 1 or len(crowds) > 1:
                return "needs people of one kind in each party"
            people, ends = population.size, [float(law[1]) for law in (crowds[0].low, crowds[0].high)]
            low, high = (people * end for end in ends)
            belief = float(population.laws[0][0][1])
            reports = 6 * (people * belief * (1 - belief)) ** 0.5 + 2
            span = high - low + 5 * ((low * (1 - ends[0])) ** 0.5 + (high * (1 - ends[1])) ** 0.5) + 2
            products *= 1 if crowds[0].fixed else people + 1
            entries += min(reports, people + 1) * min(span, people + 1)
        if products > MOST_PRODUCTS or entries > MOST_ENTRIES:
            return (
                f"may have {MOST_PRODUCTS:,} products of vertices and {MOST_ENTRIES:,} entries in its tables. Found "
                f"{products:,} and about {entries:,.0f}"
            )
        return ""

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Who is watching the people of each party; by default one who knows exactly the population."""
        given = self._observers
        if not isinstance(given, tuple):
            given = (given,) * len(self.parties)
        return tuple(one or Observer() for one in given)

    @property
    def watched(self) -> bool:
        """Whether an observer is named who does not just know the priors."""
        return any(one != Observer() for one in self.observers)

    @cached_property
    def _alone(self) -> dict[Hashable, SingleLTE]:
        return {}

    def alone(self, party: int, objective: Objective | None = None) -> SingleLTE:
        """With method "alone", the problem of one party's table by itself (its outputs are then multiplied by `f`)."""
        population, observer = self.parties[party], self.observers[party]
        epsilon = self.epsilon if self.adjacency == "all" else self.step_epsilon(party) * population.largest
        key = (id(population), observer, epsilon, objective or self.objective)
        if key not in self._alone:  # parties that are alike share it
            self._alone[key] = SingleLTE(
                population, epsilon, self.fallback_epsilon, tail="none", never_worse=False,
                objective=objective or self.objective, adjacency=self.adjacency, observer=observer,
            )  # fmt: skip
        return self._alone[key]

    @cached_property
    def merged(self) -> SingleLTE:
        """With method "inside", the problem of one entity that holds everybody's data, watched by all coalitions."""
        return merged.merged(self)

    @property
    def outside(self) -> str:
        """A warning, if the belief about some party lies outside the range of its observer."""
        far = [i for i in range(len(self.parties)) if self.watched and self.alone(i).outside]
        return f"party {far[0]}: {self.alone(far[0]).outside}" if far else ""

    @property
    def promise(self) -> str:
        """What its epsilon is called."""
        return "epsilon for the observer" if self.watched else "epsilon under the priors"

    @property
    def watchers(self) -> list[tuple[str, str]]:
        """The observers for a table of facts, if any is named."""
        if not self.watched:
            return []
        if len(set(self.observers)) == 1:
            return [("observer", self.observers[0].describe)]
        return [(f"observer of party {i}", one.describe) for i, one in enumerate(self.observers)]

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
        """What a step `w -> w + 1` of a person of `party` may reveal."""
        return self.epsilon * abs(self.f[party]) / self.sensitivity

    def pair_epsilon(self, party: int) -> Fraction:
        """What two contributions that are compared may reveal: a step, or any two."""
        return self.epsilon if self.adjacency == "all" else self.step_epsilon(party)

    @property
    def most_error(self) -> Fraction | None:
        """With `never_worse`, the largest mean absolute error that any sum may have."""
        return None if self.never_worse is None else self.never_worse * self.baseline_mae

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
        spec |= {"title": self.title} if self.title else {}
        spec |= {"names": list(self.names)} if self.names else {}
        if self.fallback_epsilon is not None:
            spec["fallback_epsilon"] = show(self.fallback_epsilon)
        spec |= {"method": self.method, "honest": self.honest, "objective": self.objective}
        if any(factor != 1 for factor in self.f):
            spec["f"] = list(self.f)
        if self.divisor != 1:
            spec["divisor"] = show(self.divisor)
        if self.method == "divisible":
            spec["contraction"] = self.contraction
        spec |= {"adjacency": "all"} if self.adjacency == "all" else {}
        spec |= {"tail": "none"} if self.tail == "none" else {}
        spec |= {} if self.never_worse is None else {"never_worse": show(self.never_worse)}
        parties = [dict(party.spec) for party in self.parties]
        if len(set(self.observers)) > 1:
            parties = [own | {"observer": one.spec()} for own, one in zip(parties, self.observers, strict=True)]
        elif self.watched:
            spec["observer"] = self.observers[0].spec()
        spec["parties"] = parties
        if self.also:
            spec["also"] = [{"parties": [dict(party.spec) for party in world]} for world in self.also]
        return spec
