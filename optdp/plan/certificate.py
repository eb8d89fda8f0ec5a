"""What is proved of a plan of several entities, whatever the method that found it, and a bound for every plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from optdp.errors import CertificateError
from optdp.numbers.exact import figure, show
from optdp.objects import Public
from optdp.people.population import Population
from optdp.plan.problem import MultiLTE
from optdp.sheet import Cell, Listing, decimal
from optdp.single.certify import INDEPENDENT, LIMITS
from optdp.single.problem import SingleLTE

EXPLANATION = (
    "epsilon limits what the published aggregate can teach about any person to someone whose knowledge of everyone "
    "else, in all parties, is exactly the stated priors: their odds between any two possible contributions of that "
    f"person {LIMITS}. It is no promise against someone who knows more about the others or sees a single report, nor "
    "for a second release about the same people."
)
"""What goes with every epsilon of a plan under priors."""


SEEDED = (
    " All parties share a secret word, new for each release. Nothing is promised against anyone who learns it, and "
    "every party does: with the word, a report shows a party's input, and the sum says much about it."
)
"""What is added for plans with a common word."""


def meaning(problem: MultiLTE) -> str:
    """What the epsilon of a plan means, in a sentence or two."""
    if problem.method == "inside":
        return _meaning_inside(problem)
    if not problem.watched and problem.method != "alone":
        return EXPLANATION + (SEEDED if problem.method == "seeded" else "")
    known = list(dict.fromkeys(one.knows for one in problem.observers))
    if len(known) == 1:
        who = f"someone who knows {known[0]}"
    else:
        listed = (f"of party {i} {one.knows}" for i, one in enumerate(problem.observers))
        who = f"someone who knows {'; '.join(listed)}"
    if problem.method == "joint":
        return (
            "epsilon limits what the published sum can teach about any person: the odds between any two possible "
            f"contributions of that person {LIMITS}. epsilon is {show(problem.epsilon)} against {who}, where the "
            "others are the people of all parties. Only the sum is covered: all parties must be honest, and nobody may "
            f"see a single report. {INDEPENDENT}"
        )
    return (
        "epsilon limits what the published sum, a single report, or all other parties together can teach about any "
        f"person: the odds between any two possible contributions of that person {LIMITS}. epsilon is "
        f"{show(problem.epsilon)} against {who}, where the others are those of the person's own party. Each party's "
        f"table is private on its own, so only the person's own party must follow the plan. {INDEPENDENT}"
    )


def _meaning_inside(problem: MultiLTE) -> str:
    """What epsilon means where the release is drawn inside a secure computation."""
    count = len(problem.parties)
    some = count - problem.honest
    who = "any one party, which also knows" if some == 1 else f"any {some} parties together, which also know"
    own = "its" if some == 1 else "their"
    knows = (
        f", and against {who} what each of {own} own people contributes"
        if some
        else ". A party that uses what it knows about its own people is not covered: for that, set honest below the "
        "number of parties"
    )
    return (
        "epsilon limits what the release can teach about any person: the odds between any two possible contributions "
        f"of that person {LIMITS}. epsilon is {show(problem.epsilon)} against someone who knows "
        f"{problem.observers[0].knows}{knows}. Nobody sees inputs or noise as long as all parties follow the protocol "
        f"and at most {(count - 1) // 2} of the {count} pool what they hold. {INDEPENDENT}"
    )


@dataclass(frozen=True)
class PlanCertificate(Public):
    """Proved figures of a plan. An epsilon of None is infinite, or nothing is proved of it."""

    epsilons: tuple[Fraction | None, ...]
    """For each party the privacy of its people under the priors, for a whole contribution."""
    ordinary: tuple[Fraction | None, ...]
    """For each party the ordinary epsilon of its own table, whatever is known about everything else."""
    own_mae: tuple[Fraction, ...]
    """For each party the mean absolute error of its own report, or of a release drawn inside, an upper bound."""
    mae: Fraction
    """Mean absolute error of the aggregate under the priors, an upper bound."""
    mse: Fraction
    """Mean squared error of the aggregate under the priors, an upper bound."""
    worst_mae: Fraction | None = None
    """With `never_worse`, the largest mean absolute error given any sum, an upper bound."""
    told = ("epsilon", "mae", "mse")
    none = "infinite"

    @property
    def epsilon(self) -> Fraction | None:
        """The privacy of everybody: the worst party's."""
        return largest(self.epsilons)

    def check(self, problem: MultiLTE) -> None:
        """Raise unless everything that the problem asks for is proved."""
        for i, (found, ordinary) in enumerate(zip(self.epsilons, self.ordinary, strict=True)):
            _check(f"epsilon of the people of party {i}", found, problem.epsilon)
            if problem.fallback_epsilon is not None:
                _check(f"the ordinary epsilon of party {i}", ordinary, problem.fallback_epsilon)
        if problem.most_error is not None:
            _check("the mean absolute error given any sum", self.worst_mae, problem.most_error)


def largest(epsilons: tuple[Fraction | None, ...]) -> Fraction | None:
    """The largest epsilon; None, which is infinite, if any is."""
    known = [value for value in epsilons if value is not None]
    return max(known) if len(known) == len(epsilons) else None


def _check(name: str, found: Fraction | None, wanted: Fraction) -> None:
    if found is None or figure(found) > wanted:
        shown = "infinite" if found is None else f"{float(found):.12g}"
        raise CertificateError(f"{name} must be at most {float(wanted):.12g}. Found {shown}.")


def listed_parties(problem: MultiLTE, parties: list[dict[str, Any]]) -> Listing:
    """A line for each party."""
    rows = tuple(
        (str(i), population.describe, f"{float(own['mae']):.6f}", decimal(own["certified_epsilon"]),
         decimal(own["ordinary_epsilon"]))
        for i, (population, own) in enumerate(zip(problem.parties, parties, strict=True))
    )  # fmt: skip
    return Listing(("party", "people", "own MAE", "epsilon", "ordinary epsilon"), rows)


@dataclass(frozen=True)
class Tried:
    """What came of one method, where all were tried."""

    method: str
    value: float | None
    """The objective; None if it found nothing."""
    note: str
    assumes: str
    protects: str

    def summary(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return asdict(self)


def listed_methods(tried: Sequence[Tried], chosen: str, objective: str) -> Listing:
    """A line for each method: its error, what it assumes, whom it protects from."""
    rows = tuple(
        (
            Cell(one.method, "strong" if one.method == chosen else ""),
            f"not used: {one.note}" if one.value is None else f"{one.value:.6f}",
            one.assumes,
            one.protects,
        )
        for one in tried
    )
    return Listing(("method", objective.upper(), "assumes", "protects against"), rows)


def bounding(problem: MultiLTE) -> SingleLTE | None:
    """The problem of one entity that holds everybody's data: its optimum bounds every plan; None if that is not proved.

    Let all people be alike, contribute 0 or 1, and count once each. Take any plan, or any mechanism at all that sees
    the whole data and releases a number, and average it over all permutations of the people. The error stays what it
    was, quotients are bounded as before, and data with the same total are treated alike: it is a noise matrix for the
    merged population (docs/mathematics.md, Proposition 11). With people that differ, contributions beyond 1, or
    coefficients, a plan can be *better* than the best matrix on totals, and no bound is given. With observers who all
    know the same, permutations of the people only permute what they hold possible, so that the merged table keeps its
    promise against that observer of everybody. Of a release that is drawn inside it is the program that was solved: a
    bound for every table of the total that is private against all coalitions.
    """
    if problem.method == "inside":
        return problem.merged
    if any(factor != 1 for factor in problem.f) or len(set(problem.observers)) > 1:
        return None
    populations = []
    # A conservative prior shifts the sum by what is known, differently in every world: then the first has to do.
    shifted = any("conservative" in population.spec for world in problem.worlds for population in world)
    for world in problem.worlds[:1] if shifted else problem.worlds:
        whole = _union(world)
        if whole is None:
            return None
        populations.append(whole)
    weights = [1] + [0] * (len(populations) - 1)
    return SingleLTE(
        populations, problem.epsilon, tail="none", never_worse=False, objective=problem.objective, weights=weights,
        observer=problem.observers[0],
    )  # fmt: skip


def _union(world: tuple[Population, ...]) -> Population | None:
    """Everybody in one population if all are alike and contribute 0 or 1; a known constant only shifts the sum."""
    laws: set[tuple[Fraction, ...]] = {law for population in world for law, _ in population.laws}
    if len(laws) != 1 or not all(population.laws for population in world):
        return None
    (law,) = laws
    people = sum(count for population in world for _, count in population.laws)
    return Population.binomial(people, law[1]) if len(law) == 2 else None
