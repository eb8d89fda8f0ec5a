"""Other worlds than the prior: a neighbourhood of every kind of population, to measure epsilon in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from optdp.errors import ProblemError
from optdp.math.exact import to_fraction
from optdp.noise.population import Distribution, Population
from optdp.page.figures import people, short

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
        yield Variation("full", "all people are uncertain, nobody is known", _people(laws))
    if len(laws) == 1 and len(laws[0][0]) == 2:
        yield from _shares(laws[0][0][1], total)
    else:
        for part in MOVED:
            for key, words, place in (("less", "nothing", 0), ("more", "the most possible", -1)):
                moved = tuple((_towards(law, place, part), count) for law, count in laws)
                said = f"one person in {1 / part} contributes {words} after all"
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


def _shares(p: Fraction, n: int) -> Iterator[Variation]:
    for factor in SHARES:
        share = p * factor
        if 0 < share < 1 and 0 < p < 1:
            words = f"the probability is {short(share)}, not {short(p)}"
            yield Variation(f"p*{float(factor):g}", words, Population.binomial(n, share))


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
