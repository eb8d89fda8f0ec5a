"""One locally trusted entity: what the user wants, and the linear program that finds it (A, section V, Theorem 1).

    minimise    sum over x, s of  prior(x) loss(x - s) r(x, s)
    subject to  sum over s of r(x, s) = 1                                        every input x
                Pr[s | w] <= e^eps Pr[s | w']                                    every person, adjacent secrets, output
                sum over s of |x - s| r(x, s) <= 2q / (1 - q^2)                  `never_worse`, condition (3)
                r(x, s) <= e^f r(x', s)                                          `fallback_epsilon`, adjacent inputs

With `releases` and a `total` for all of them, `f` is not given but found (`single.over_time`).
With an `observer` the second line holds in each of the worlds that this observer holds possible (`people.observer`).
`Pr[s | w] = sum over x of Pr[sum = x | w] r(x, s)`. With `tail="geometric"` the outputs outside `0..last` are
geometric noise, `r(x, s) = (1-q)/(1+q) q^|x-s|`, and only the rest is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from attrs import field, frozen
from pydantic import StrictBool, StrictInt

from optdp.errors import ProblemError
from optdp.files.models import Exact, Problem, entries, entry
from optdp.numbers.exact import Number, geometric_ratio, show, shown, there, to_fraction
from optdp.people.files import AnyPopulation, Watching, made
from optdp.people.observer import Observer, Worlds
from optdp.people.population import Population
from optdp.single.over_time import Total, TotalTable, as_total, each_of

if TYPE_CHECKING:
    from optdp.single.solve import Solution  # noqa: F401  # what its problems are solved by

Tail = Literal["geometric", "none"]
Objective = Literal["mae", "mse"]
Adjacency = Literal["unit", "all"]
Method = Literal["lp", "shifting", "geometric"]
Form = Literal["table", "additive"]


def checked_epsilon(value: Number, name: str = "epsilon") -> Fraction:
    epsilon = to_fraction(value, name)
    if not 0 < epsilon <= 100:
        raise ProblemError(f"{name} must be larger than 0 and at most 100. Found {show(epsilon)}.")
    if epsilon < Fraction(1, 2**40):
        raise ProblemError(f"{name} must be at least 2^-40. Found {float(epsilon):.3g}.")
    return epsilon


def wanted(value: Number) -> Fraction:
    return checked_epsilon(value)


def _perhaps(value: Number | None) -> Fraction | None:
    return None if value is None else checked_epsilon(value)


def fallback(value: Number | None) -> Fraction | None:
    return None if value is None else checked_epsilon(value, "fallback_epsilon")


def check_fallback(epsilon: Fraction, other: Fraction | None, instead: str = "") -> None:
    if other is not None and other <= epsilon:
        raise ProblemError(
            f"fallback_epsilon must be larger than epsilon = {show(epsilon)}. Found {show(other)}.{instead}"
        )


def check_choices(problem: Any, **known: Any) -> None:
    """Refuse words other than those of each field's type."""
    for name, form in known.items():
        value = getattr(problem, name)
        if value not in get_args(form):
            raise ProblemError(f"{name} must be one of {', '.join(get_args(form))}. Found {value!r}.")


def _priors(given: Population | Sequence[Population]) -> tuple[Population, ...]:
    return (given,) if isinstance(given, Population) else tuple(given)


def _watching(given: Observer | Sequence[Observer] | None) -> tuple[Observer, ...] | None:
    if given is None:
        return None
    listed = (given,) if isinstance(given, Observer) else tuple(given)
    if not all(isinstance(one, Observer) for one in listed):
        raise ProblemError(f"observer must be an Observer or a list of them. Found {shown(listed[0])}.")
    return listed


def _shares(given: Sequence[Number] | None) -> tuple[Fraction, ...] | None:
    return None if given is None else tuple(to_fraction(weight, "weights") for weight in given)


@frozen(eq=False, repr=False)
class SingleLTE(Problem["Solution"]):
    """The best noise matrix for one entity that publishes a noisy sum over its people.

    Parameters
    ----------
    population : the prior: who is counted, and how likely each contribution is; or several priors, under each of which
        the guarantee must hold (robust design).
    epsilon : the wanted privacy under the prior, for one person's whole contribution; may be left out with a `total`.
    fallback_epsilon : also require ordinary differential privacy at this level, whatever anyone knows.
    tail : "geometric" lets outputs leave `0..last` as in Theorem 1; "none" keeps them inside.
    never_worse : no input has a larger mean absolute error than under geometric noise (condition (3)).
    objective : the mean "mae" or "mse" under the prior.
    adjacency : "unit" protects each unit step at epsilon/D (the paper); "all" each pair of contributions at epsilon.
    method : "lp" (optimal), "shifting" (Algorithm 2 with Remark 7), or "geometric" (the baseline).
    weights : with several priors, how much each counts in the objective; by default only the first.
    form : "table", a row of probabilities for each input; or "additive", one law of noise that is added to every input.
    observer : an `Observer` or several: the guarantee holds against each of them. By default one who knows exactly the
        population; the guarantee then assumes exactly this prior.
    releases, total : how many releases are drawn from the table about the same people, and the `Total` of ordinary
        differential privacy that they must keep together. The largest ordinary epsilon of each is computed; it is the
        `fallback_epsilon`, and without an `epsilon` under the prior also the `epsilon`, against an observer who knows
        everyone else.
    title : what files and reports call it.

    Examples
    --------
    >>> from optdp import Population, SingleLTE
    >>> SingleLTE(Population.binomial(100, "0.1"), epsilon="0.3").last
    100
    """

    kind: ClassVar[str] = "single-lte"

    populations: tuple[Population, ...] = field(
        converter=_priors, alias="population", metadata=entry(AnyPopulation | list[AnyPopulation])
    )
    _epsilon: Fraction | None = field(default=None, converter=_perhaps, metadata=entry(Exact | None))
    _fallback_epsilon: Fraction | None = field(default=None, converter=fallback, metadata=entry(Exact | None))
    tail: Tail = field(default="geometric", metadata=entry(Tail))
    never_worse: bool = field(default=True, converter=bool, metadata=entry(StrictBool))
    objective: Objective = field(default="mae", metadata=entry(Objective))
    adjacency: Adjacency = field(default="unit", metadata=entry(Adjacency))
    method: Method = field(default="lp", metadata=entry(Method))
    form: Form = field(default="table", metadata=entry(Form))
    _weights: tuple[Fraction, ...] | None = field(default=None, converter=_shares, metadata=entry(list[Exact] | None))
    _observers: tuple[Observer, ...] | None = field(
        default=None, converter=_watching, alias="observer", metadata=entry(Watching | list[Watching] | None)
    )
    releases: int | None = field(default=None, metadata=entry(StrictInt | None))
    total: Total | None = field(default=None, converter=as_total, metadata=entry(TotalTable | None))

    @classmethod
    def from_file(cls, file: Any) -> SingleLTE:
        given = file.population if isinstance(file.population, list) else [file.population]
        return cls(**entries(file, population=made(given)))

    def __attrs_post_init__(self) -> None:
        priors, mix = self.populations, self.weights
        if not priors:
            raise ProblemError("population must be one prior or a list of them. Found an empty list.")
        self._check_total()
        check_fallback(
            self.epsilon,
            self.fallback_epsilon,
            ' For ordinary privacy at epsilon itself say known = "all" of the observer.',
        )
        check_choices(self, tail=Tail, objective=Objective, adjacency=Adjacency, method=Method, form=Form)
        if len(mix) != len(priors) or min(mix) < 0 or sum(mix) != 1:
            raise ProblemError("weights must be one number of at least 0 for each prior, summing to exactly 1.")
        if self.tail == "geometric" and any(prior.spec["kind"] == "conditionals" for prior in priors):
            raise ProblemError(
                'A population of kind "conditionals" needs tail = "none": geometric tails are private only for '
                "people that are independent of each other."
            )
        if self.method == "shifting" and (len(priors) > 1 or len(priors[0].people) > 1 or self.fallback_epsilon):
            raise ProblemError(
                'method = "shifting" is for one prior, one kind of person and no fallback. Use method = "lp".'
            )
        if self.form == "additive":
            self._check_additive()
        self._check_observers()

    def _check_total(self) -> None:
        """A total is the one thing that says what the ordinary epsilon is."""
        each = self.each
        if each is None or self.total is None:
            if self._epsilon is None:
                raise ProblemError("epsilon is missing. Give the epsilon of one release, or give releases and total.")
            return
        checked_epsilon(each, "What a total leaves for each release")
        if self._fallback_epsilon is not None:
            raise ProblemError("total already sets the fallback. Found fallback_epsilon too. Remove one of them.")
        listed = self._observers or ()
        if self._epsilon is None and not all(one.known == "all" and one.epsilon is None for one in listed):
            raise ProblemError("With a total, an observer needs an epsilon of its own. Found none. Add epsilon.")
        if self._epsilon is not None and any(one.known == "all" for one in listed):
            raise ProblemError(
                'total already sets what holds against an observer with known = "all". Found one, and an epsilon too. '
                "Remove the epsilon or this observer."
            )
        if self._epsilon is not None and self._epsilon >= each:
            raise ProblemError(
                f"epsilon must be smaller than what the total leaves for each of {self.releases:,} releases, "
                f"{show(each)} (total {self.total.describe}). Found {show(self._epsilon)}. Raise the total, or leave "
                "epsilon out."
            )

    def _check_additive(self) -> None:
        """Refuse what noise that does not depend on the input cannot be asked for."""
        if self.tail != "geometric":
            raise ProblemError(
                'form = "additive" needs tail = "geometric": noise that is added to every input leaves 0..last. '
                f'Found tail = "{self.tail}". Remove it, or clamp the release, which is post-processing.'
            )
        if self.method != "lp":
            raise ProblemError(f'form = "additive" is designed with method = "lp". Found method = "{self.method}".')
        if self._epsilon is None:
            raise ProblemError('form = "additive" needs an epsilon beside the total. Found none. Add epsilon.')
        if self.observers != (Observer(),):
            raise ProblemError(
                'form = "additive" is for one observer, who knows the population exactly. Found an [observer]. Leave '
                'it out and give the people who are in doubt, with their least spread, or use form = "table".'
            )

    def _check_observers(self) -> None:
        first, *others = self.observers if self.observers else (None,)
        if first is None:
            raise ProblemError("observer must be one observer or a list of them. Found an empty list.")
        if first.epsilon is not None:
            raise ProblemError(
                f"The first observer has the problem's epsilon, {show(self.epsilon)}. Found another one, "
                f"{show(first.epsilon)}. Remove it; only further observers may have an epsilon of their own."
            )
        for other in others:
            if other.epsilon is not None and not self.epsilon <= checked_epsilon(other.epsilon, "epsilon"):
                raise ProblemError(
                    f"The epsilon of a further observer must be at least the problem's, {show(self.epsilon)}. "
                    f"Found {show(other.epsilon)}. List the observer with the smallest epsilon first."
                )
        if self.observers == (Observer(),):
            return
        if len(self.populations) > 1:
            raise ProblemError(
                f"With an observer there is one population, our own belief. Found {len(self.populations)}. "
                "Say what else is possible with between."
            )
        if self.method == "shifting":
            raise ProblemError('method = "shifting" does not work with observers. Use method = "lp".')
        assert self.worlds is not None  # which refuses what cannot be looked at

    @cached_property
    def each(self) -> Fraction | None:
        """The largest ordinary epsilon of each release that keeps the total; None without a total."""
        return each_of(self.releases, self.total)

    @property
    def epsilon(self) -> Fraction:
        """The wanted privacy against the first observer."""
        return there(self.each if self._epsilon is None else self._epsilon)

    @property
    def fallback_epsilon(self) -> Fraction | None:
        """The wanted ordinary epsilon, if it is another one; with a total, what that leaves for each release."""
        return self._fallback_epsilon if self.total is None or self._epsilon is None else self.each

    @property
    def settled(self) -> SingleLTE:
        """The same problem with the epsilon that was found in place of the total: the one that a table answers."""
        if self.total is None:
            return self
        named = None if self.observers == (Observer(),) else self.observers
        return self.changed(
            epsilon=self.epsilon, fallback_epsilon=self.fallback_epsilon, observer=named, releases=None, total=None
        )

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Against whom privacy is asked for."""
        if self._observers is None:
            return (Observer(known="all"),) if self._epsilon is None else (Observer(),)
        return self._observers

    @cached_property
    def watched(self) -> bool:
        """Whether privacy is asked for in other worlds than the population's own."""
        return any(not one.exact and one.known != "all" for one in self.observers)

    @cached_property
    def worlds(self) -> tuple[Worlds | None, ...]:
        """What each observer holds possible, if there are such worlds; None for one who knows everybody."""
        if not self.watched:
            return ()
        prior = self.populations[0]
        return tuple(None if one.known == "all" else one.worlds(prior) for one in self.observers)

    def epsilon_of(self, observer: int) -> Fraction:
        """The privacy that is asked for against one of the observers."""
        stated = self.observers[observer].epsilon
        return self.epsilon if stated is None else stated

    @property
    def chain_epsilon(self) -> Fraction | None:
        """The ordinary epsilon that is asked for, by a fallback or by an observer who knows everybody else."""
        asked = [self.epsilon_of(i) for i, one in enumerate(self.observers) if one.known == "all"]
        if self.fallback_epsilon is not None:
            asked.append(self.fallback_epsilon)
        return min(asked, default=None)

    @property
    def outside(self) -> str:
        """A warning, if the population, our own belief, lies outside the range of an observer."""
        laws = [law for law, _ in self.populations[0].laws]
        for one in self.observers:
            if one.between is not None and not all(_between(law, *one.between) for law in laws):
                return (
                    "the population lies outside the observer's range: the error is measured under the population, "
                    "but nothing is promised to hold there"
                )
        return ""

    @property
    def promise(self) -> str:
        """What its epsilon is called."""
        return "epsilon under the prior" if self.observers == (Observer(),) else "epsilon for the observer"

    @property
    def advice(self) -> str:
        """What to tell whoever rests a guarantee on a prior that is taken to be exact."""
        if self.observers != (Observer(),) or self.fallback_epsilon is not None or self.method == "geometric":
            return ""
        if len(self.populations) > 1 or not self.populations[0].laws:
            return ""
        if self.form == "additive":
            return "epsilon holds under this prior or one with more spread; give the least spread that you can rely on"
        return "the guarantee assumes exactly this prior; to allow a range, add [observer], and see: optdp observers"

    @property
    def watchers(self) -> list[tuple[str, str]]:
        """The observers for a table of facts, if any is named."""
        if self.observers == (Observer(),):
            return []
        return [
            ("observer", one.describe + (f"; epsilon {show(self.epsilon_of(i))}" if i else ""))
            for i, one in enumerate(self.observers)
        ]

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """How much each prior counts in the objective."""
        if self._weights is not None:
            return self._weights
        return (Fraction(1),) + (Fraction(0),) * (len(self.populations) - 1)

    @property
    def last(self) -> int:
        """The largest input."""
        return max(prior.last for prior in self.populations)

    @property
    def largest(self) -> int:
        """The largest contribution of anybody, `D`."""
        return max(prior.largest for prior in self.populations)

    @property
    def steps(self) -> int:
        """How many steps of adjacent secrets a whole contribution takes: `D` unit steps, or one."""
        return self.largest if self.adjacency == "unit" else 1

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
        spec: dict[str, Any] = {"kind": self.kind} | ({"title": self.title} if self.title else {})
        if self._epsilon is not None:
            spec["epsilon"] = show(self._epsilon)
        if self._fallback_epsilon is not None:
            spec["fallback_epsilon"] = show(self._fallback_epsilon)
        if self.total is not None:
            spec |= {"releases": self.releases, "total": self.total.spec()}
        spec |= {
            "tail": self.tail,
            "never_worse": self.never_worse,
            "objective": self.objective,
            "adjacency": self.adjacency,
            "method": self.method,
            **({} if self.form == "table" else {"form": self.form}),
        }
        if len(priors) > 1:
            spec["weights"] = [show(weight) for weight in self.weights]
        spec["population"] = priors[0] if len(priors) == 1 else priors
        if self._observers is not None and self.observers != (Observer(),):
            listed = [one.spec() for one in self.observers]
            spec["observer"] = listed[0] if len(listed) == 1 else listed
        return spec


def _between(law: Sequence[Fraction], low: Sequence[Fraction], high: Sequence[Fraction]) -> bool:
    """Whether a law lies on the segment between two others."""
    wide = max(range(len(low)), key=lambda w: abs(high[w] - low[w]))
    if low[wide] == high[wide]:
        return tuple(law) == tuple(low)
    share = (law[wide] - low[wide]) / (high[wide] - low[wide])
    return 0 <= share <= 1 and all(value == a + share * (b - a) for value, a, b in zip(law, low, high, strict=True))
