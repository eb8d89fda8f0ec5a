"""Other worlds than the prior: a neighbourhood of every kind of population, to measure epsilon in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from optdp.errors import OptdpError, ProblemError
from optdp.html import Html
from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import to_fraction
from optdp.people.population import Distribution, Population
from optdp.report.page import bars, paragraphs, section, warning
from optdp.report.words import epsilon, odds_factor, people, short
from optdp.single.certify import epsilon_under
from optdp.single.laws import secrets_of
from optdp.single.problem import SingleLTE
from optdp.work.account import EffortError

SHARES = tuple(map(Fraction, ("0.5", "0.8", "0.9", "0.95", "1.05", "1.1", "1.25", "2")))
FEWER = tuple(map(Fraction, ("0.95", "0.9", "0.8")))
UNKNOWN = tuple(map(Fraction, ("0.9", "0.5", "0.1")))
MOVED = tuple(map(Fraction, ("0.05", "0.2")))
MOST_PEOPLE = 20_000
"""People that differ are listed one by one up to here."""


@dataclass(frozen=True)
class Variation:
    """A world that is not the prior. Of several entities those with the same `key` happen together."""

    key: str
    words: str
    population: Population


def variations(population: Population, brief: bool = False) -> list[Variation]:
    """Worlds near a prior, none of which reaches a larger sum; empty for priors that are given as a whole.

    `brief` leaves a few, for mechanisms that take long to measure.
    """
    if not population.laws:
        return []
    found = list(_all(population))
    kept = ("p*0.9", "p*1.1", "n*0.9", "less 0.2", "more 0.2", "known 0.5", "full")
    return [item for item in found if not brief or item.key in kept]


def _all(population: Population) -> Iterator[Variation]:
    laws, total = _stated(population)
    if "conservative" in population.spec:
        yield Variation("full", "everyone is uncertain, nobody is known", _people(laws))
    if len(laws) == 1 and len(laws[0][0]) == 2:
        p = laws[0][0][1]
        for factor in SHARES if 0 < p < 1 else ():
            if p * factor < 1:
                said = f"the probability is {short(p * factor)}, not {short(p)}"
                yield Variation(f"p*{float(factor):g}", said, Population.binomial(total, p * factor))
    else:
        for part in MOVED:
            for key, words, place in (("less", "nothing", 0), ("more", "the most possible", -1)):
                moved = tuple((_towards(law, place, part), count) for law, count in laws)
                said = f"one person in {1 / part} contributes {words} instead"
                yield from _built(f"{key} {float(part):g}", said, moved)
    seen = {total}
    for factor in FEWER:
        fewer = tuple((law, max(1, round(count * factor))) for law, count in laws)
        left = sum(count for _, count in fewer)
        if left not in seen:
            seen.add(left)
            yield from _built(f"n*{float(factor):g}", f"there are {people(left)}, not {total:,}", fewer)
    if "conservative" not in population.spec and total > 1:
        seen = {0}
        for share in UNKNOWN:
            narrow = population.conservative(share)
            known = total - sum(count for _, count in narrow.laws)
            if known not in seen:  # of few people a small share may be nobody
                seen.add(known)
                said = f"an observer knows what {known:,} of the {total:,} people contribute"
                yield Variation(f"known {float(share):g}", said, narrow)


def _stated(population: Population) -> tuple[tuple[tuple[Distribution, int], ...], int]:
    """All the people, also those whom a conservative prior takes to be known."""
    spec, laws = population.spec, population.laws
    if "conservative" in spec:
        if spec["kind"] == "independent":
            given = tuple(
                (tuple(to_fraction(value, "pmf") for value in group["pmf"]), int(group.get("count", 1)))
                for group in spec["people"]
            )
            return given, sum(count for _, count in given)
        laws = ((laws[0][0], int(spec["n"])),)
    return laws, sum(count for _, count in laws)


def _towards(law: Distribution, place: int, part: Fraction) -> Distribution:
    moved = [value * (1 - part) for value in law]
    moved[place] += part
    return tuple(moved)


def _built(key: str, words: str, laws: tuple[tuple[Distribution, int], ...]) -> Iterator[Variation]:
    try:
        yield Variation(key, words, _people(laws))
    except ProblemError:  # too large to be held exactly
        return


def _people(laws: tuple[tuple[Distribution, int], ...]) -> Population:
    if len(laws) == 1:
        (law, count) = laws[0]
        return Population.binomial(count, law[1]) if len(law) == 2 else Population.iid(count, law)
    if sum(count for _, count in laws) > MOST_PEOPLE:
        raise ProblemError(f"People that differ are varied up to {MOST_PEOPLE:,} of them.")
    return Population.independent([law for law, count in laws for _ in range(count)])


Row = tuple[str, float | None, str]
"""A bar: its name, its length, and what is said of it."""
WHOLE = "a prior of kind {0} is given as a whole, and there is no obvious way to vary it."
TOO_LARGE = "for a table of this size it would take too long."
MEASURE = "Measure the priors that you cannot rule out with optdp.epsilon_under."
INFINITE = (
    "Infinite means: under that prior some output, however unlikely, shows for certain what someone did not contribute."
)
BRIEF, NONE = 60_000, 400_000
"""Entries times secrets from which on few other priors, and none, are measured."""
MANY = 3000
"""The largest sum up to which many other priors are measured."""


def single_worlds(problem: SingleLTE, matrix: NoiseMatrix | AddedNoise) -> Html:
    """The real epsilon of one entity's matrix in worlds near its first prior."""
    prior = problem.populations[0]
    rows = (matrix.row,) * min(problem.last + 1, 10_000) if isinstance(matrix, AddedNoise) else matrix.rows
    work = sum(map(len, rows)) * len(secrets_of(problem.populations[:1]))
    worlds = [] if work > NONE else variations(prior, brief=work > BRIEF or problem.last > MANY)
    said = (
        "The promise depends on the prior. If the people differ from what is stated, or if someone knows more about "
        "them, this is the real epsilon of the same table: the worst case over all outputs, rounded up."
    )
    own = epsilon_under(problem, matrix, problem.populations)
    found = measured((world.words, partial(epsilon_under, problem, matrix, world.population)) for world in worlds)
    reason = TOO_LARGE if work > NONE else WHOLE.format(prior.spec["kind"])
    return worlds_section(said, [world_row("as stated", own), *found], reason)


def measured(worlds: Iterable[tuple[str, Callable[[], Fraction | None]]]) -> Iterator[Row]:
    """Each world that can be measured, and its epsilon."""
    for name, measure in worlds:
        try:
            yield world_row(name, measure())
        except EffortError:
            raise  # a table without its worst worlds would mislead
        except (OptdpError, ArithmeticError):
            continue


def world_row(name: str, real: Fraction | None) -> Row:
    """One world and its epsilon, as a bar."""
    if real is None:
        return name, None, "infinite"
    return name, float(real), f"{epsilon(real)}  (× {odds_factor(real)})"


def worlds_section(said: str, rows: Sequence[Row], reason: str, heading: str = "If the prior is wrong") -> Html:
    """The table of other worlds, with what its figures mean; if it has only the stated one, the `reason`."""
    if len(rows) == 1:
        return section("others", heading, paragraphs(said, f"No other priors are measured here: {reason} {MEASURE}"))
    infinite = any(value is None for _, value, _ in rows)
    meaning = (
        "In brackets: the odds factor. These are only examples: for other priors, epsilon may be smaller or larger. "
        f"{MEASURE}"
    )
    return section(
        "others",
        heading,
        paragraphs(said),
        bars(rows, "Real epsilon under other priors"),
        paragraphs(meaning),
        warning(INFINITE if infinite else None),
        paragraphs(
            "Remedies: give a range ([observer]) or several priors, or ask for a fallback (fallback_epsilon), an "
            "ordinary epsilon that holds whatever anyone knows."
        ),
    )
