"""Numbers as a reader sees them: what is promised is rounded up, what remains is rounded down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from optdp.html import Html, el, join
from optdp.numbers.exact import decimal_down, decimal_up, exp_bounds, to_fraction
from optdp.people.population import Population, moments
from optdp.pictures.chart import Heat
from optdp.report.page import listed, paragraphs, table, term, warning

LARGE = 10**6


def at_most(value: Fraction) -> str:
    """A decimal that is at least `value`, with more places for what is tiny."""
    places = 4
    while 0 < value < Fraction(10) ** (2 - places) and places < 12:
        places += 1
    return _plain(decimal_up(value, places)) if value < LARGE else f"{float(value):.3e}"


def at_least(value: Fraction) -> str:
    """A decimal that is at most `value`."""
    return _plain(decimal_down(value, 4)) if value < LARGE else f"{float(value):.3e}"


def epsilon(value: Fraction | None) -> str:
    """An epsilon, rounded up; None is infinite."""
    return "infinite" if value is None else at_most(value)


def certified(found: Any) -> Fraction:
    """The epsilon that was recomputed of a verified table or plan, but not beyond the one wanted."""
    real: Fraction | None = found.certificate.epsilon
    wanted: Fraction = found.problem.epsilon
    assert real is not None
    return min(real, wanted)


def odds_factor(value: Fraction) -> str:
    """`e^value` for people who think in odds, rounded up."""
    factor = exp_bounds(value)[1]
    if factor < Fraction(11, 10):
        return _plain(decimal_up(factor, 4))
    if factor < 100:
        return _plain(decimal_up(factor, 2))
    if factor < LARGE:
        return f"{math.ceil(factor):,}"
    for size, name in ((10**6, "million"), (10**9, "billion"), (10**12, "trillion")):
        if factor < 1000 * size:
            return f"{_plain(decimal_up(factor / size, 2))} {name}"
    return f"10^{len(str(math.ceil(factor)))}"


def belief(before: Fraction, value: Fraction) -> tuple[str, str]:
    """The least and the largest belief after a release, in percent, if odds move by at most `e^value`."""
    factor = exp_bounds(min(value, Fraction(60)))[1]
    least = before / (before + (1 - before) * factor)
    most = before * factor / (before * factor + 1 - before)
    return f"{_plain(decimal_down(least * 100, 1))} %", f"{_plain(decimal_up(most * 100, 1))} %"


def less(error: Fraction, baseline: Fraction, name: str = "geometric noise") -> str:
    """How far an error lies below that of a baseline, in words; an improvement is rounded down."""
    if not baseline or error >= baseline:
        return f"not below {name}"
    share = (1 - error / baseline) * 100
    shown = decimal_down(share, 0 if share < 99 else 2)
    return f"less than 1 % below {name}" if shown == "0" else f"{shown} % below {name}"


def short(value: Fraction) -> str:
    """A number as somebody would write it, where nothing is promised about it."""
    return f"{float(value):.6g}"


def people(number: int) -> str:
    return "1 person" if number == 1 else f"{number:,} people"


def _plain(text: str) -> str:
    whole, _, rest = text.partition(".")
    return f"{int(whole):,}" + (f".{rest}" if rest else "")


BELIEFS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
WEAK = Fraction(3)
"""From here on a promise protects little, and the page says so."""


def beliefs(epsilon: Fraction, about: str = "any statement about one person") -> Html:
    """What a belief may become."""
    rows = [[f"{100 * before} %", *belief(before, epsilon)] for before in BELIEFS]
    head = ["belief before", "afterwards at least", "afterwards at most"]
    return table(head, rows, f"How sure somebody may be of {about}, before and after", (0, 1, 2))


def weak(epsilon: Fraction) -> str | None:
    """A warning where epsilon is large."""
    if epsilon < WEAK:
        return None
    return f"A factor of {odds_factor(epsilon)} is large: such a promise protects little."


def claim(seen: str, known: str, epsilon: Fraction, largest: int, unit: bool) -> Html:
    """The promise about one person. `seen` is what is published; `known` is what the observer knows."""
    factor = odds_factor(epsilon)
    contributions = "0 or 1" if largest == 1 else f"any two numbers from 0 to {largest}"
    words = [
        f"Whatever {seen} is published, someone who knows about the other people {known} will change their odds "
        f"about any one person by at most a factor of {factor}, up or down.",
        "Odds about a person say how much likelier someone believes one contribution of that person to be than another "
        f"({contributions}). The promise holds for every {seen} that may be published, for every person who is "
        "counted, and whatever the odds were before. There are no exceptions, not even with a small probability.",
    ]
    if largest > 1 and unit:
        step = odds_factor(epsilon / largest)
        words.append(f"For contributions that differ by one the factor is smaller still: at most {step}.")
    return join(el("p", words[0], class_="claim"), paragraphs(*words[1:]), beliefs(epsilon), warning(weak(epsilon)))


def without_assumption(ordinary: Fraction | None, epsilon: Fraction, who: str) -> str:
    """The ordinary epsilon in words."""
    if ordinary is None:
        return (
            f"Without the assumption nothing is promised (the ordinary epsilon of {who} is infinite). Someone who "
            "knows what everyone else contributed may learn the last person's contribution for certain."
        )
    factor = odds_factor(ordinary)
    if ordinary <= epsilon * (1 + Fraction(1, 10**9)):
        return (
            f"The promise of {who} needs no assumption about anyone: even for someone who knows what everyone else "
            f"contributed, the factor is at most {factor} (ordinary differential privacy, epsilon {at_most(ordinary)})."
        )
    weight = "" if ordinary < WEAK else " It is so large that it is worth little."
    return (
        f"Without the assumption, whatever anyone knows, the factor of {who} is at most {factor} (ordinary "
        f"differential privacy, epsilon {at_most(ordinary)}). This second promise adds up over releases.{weight}"
    )


def not_promised(ordinary: Fraction | None, epsilon: Fraction, largest: int, fixed: bool) -> Html:
    """What a reader must not take from the promise."""
    free = ordinary is not None and ordinary <= epsilon * (1 + Fraction(1, 10**9))
    held = "" if ordinary is None else f" In that case only the factor {odds_factor(ordinary)} is promised."
    several = (
        "Each further number about the same people is a further release, and the epsilons add up."
        if free
        else "A second number about the same people is not covered, be it a second draw, a subtotal or a corrected "
        f"figure. Two such numbers together can reveal far more than twice as much.{held}"
    )
    items = [term("A second release", several)]
    if not free:
        informed = (
            "Someone who knows what some of the people contributed, a colleague for instance, knows more than the "
            f"assumption allows.{held}"
        )
        other = "If people are not as the box says, the factor is different: see "
        items.append(term("An observer who knows more", informed))
        items.append(term("A wrong assumption", other, el("a", "If the prior is wrong", href="#others"), "."))
    if fixed:
        known = "The number of people is assumed to be public. Whether someone took part is hidden only if not taking "
        items.append(term("That someone took part", known + "part means contributing 0."))
    cut = f"Nobody may contribute more than {largest}. Larger values must be reduced to that before they are counted."
    return listed(*items, term("Larger contributions", cut))


# ---------------------------------------------------------------------- a prior in words and figures

KINDS, VALUES = 12, 12
"""How many kinds of people, and how many contributions of one, are listed."""


def described(population: Population) -> Html:
    """The prior: who is counted, what each may contribute, and how likely each sum is."""
    mean, deviation = moments(population)
    said = (
        f"The true sum is then a number from 0 to {population.last:,}: {mean:.5g} on average, with a standard "
        f"deviation of {deviation:.3g}."
    )
    return join(KIND_WORDS[population.spec["kind"]](population), _narrowed(population), paragraphs(said))


def priors(named: Sequence[tuple[str, Population]], whose: str) -> Html:
    """All priors in one table, a row for each; a single one in words."""
    if len(named) == 1:
        return join(el("h4", named[0][0]) if named[0][0] else None, described(named[0][1]))
    rows = []
    for name, population in named[:KINDS]:
        mean, deviation = moments(population)
        size = f"{population.size:,}" if population.size else "not stated"
        rows.append([name, size, _chances(population), f"{mean:.5g}", f"{deviation:.3g}"])
    head = [whose, "people", "probability of each contribution", "mean of the sum", "standard deviation"]
    more = len(named) - KINDS
    independent = all(population.laws for _, population in named)
    return join(
        table(head, rows, numbers=(1, 3, 4)),
        paragraphs(f"And {more:,} more, as the file has them.") if more > 0 else None,
        paragraphs("All people are independent of each other.") if independent else None,
        *{str(said): said for _, population in named if (said := _narrowed(population))}.values(),
    )


def _chances(population: Population) -> Html | str:
    """How likely each contribution is, a line for each kind of person."""
    if not population.laws:
        return "stated in the file as laws of the sum"
    lines = []
    for law, count in population.laws[:3]:
        chances = ", ".join(f"{w}: {short(value)}" for w, value in enumerate(law[:VALUES]))
        who = f"{count:,} people: " if len(population.laws) > 1 else ""
        lines.append(el("div", who + chances + (", ..." if len(law) > VALUES else "")))
    more = len(population.laws) - 3
    return join(*lines, el("div", f"and {more:,} further kinds of people") if more > 0 else None)


def headcount(population: Population) -> str:
    """How many people there are."""
    return people(population.size) if population.size else "an unstated number of people"


def _narrowed(population: Population) -> Html | None:
    if "conservative" not in population.spec:
        return None
    share = float(to_fraction(population.spec["conservative"], "conservative"))
    return paragraphs(
        f"Only a share of {share:.4g} of the people of each kind is assumed to be uncertain. The others are assumed to "
        "be known, and to contribute their mean."
    )


def _binomial(population: Population) -> Html:
    p = short(to_fraction(population.spec["p"], "p"))
    each = f"Each contributes 1 with probability {p} and 0 otherwise, independently of everyone else."
    return paragraphs(f"{people(population.spec['n'])}. {each}")


def _law(law: tuple[Fraction, ...]) -> Html:
    rows = [[str(w), short(value)] for w, value in enumerate(law[:VALUES])]
    if len(law) > VALUES:
        rows.append([f"{VALUES} to {len(law) - 1}", f"{short(sum(law[VALUES:], Fraction(0)))} together"])
    return table(["contribution", "probability"], rows, numbers=(0, 1))


def _iid(population: Population) -> Html:
    n, law = population.spec["n"], population.laws[0][0]
    words = f"{n:,} people, independent of each other, who each contribute a whole number from 0 to {len(law) - 1}:"
    return join(paragraphs(words), _law(law))


def _counts(population: Population) -> Html:
    spec, law = population.spec, population.laws[0][0]
    seen = sum(spec["counts"])
    words = (
        f"{spec['n']:,} people, independent of each other, who are like the {seen:,} people of an earlier survey. "
        f"{spec['smoothing']} was added to each of its counts, so that nothing is considered impossible:"
    )
    return join(paragraphs(words), _law(law))


def _independent(population: Population) -> Html:
    kinds = "one kind" if len(population.laws) == 1 else f"{len(population.laws):,} kinds"
    words = f"{population.size:,} people, independent of each other, of {kinds}:"
    rows = []
    for law, count in population.laws[:KINDS]:
        chances = ", ".join(f"{w}: {short(value)}" for w, value in enumerate(law[:VALUES]))
        rows.append([f"{count:,}", chances + (", ..." if len(law) > VALUES else "")])
    if len(population.laws) > KINDS:
        rest = population.laws[KINDS:]
        rows.append([f"{sum(count for _, count in rest):,}", f"{len(rest):,} further kinds"])
    return join(paragraphs(words), table(["people", "probability of each contribution"], rows, numbers=(0,)))


def _others(population: Population) -> Html:
    return paragraphs(
        "How many people there are is not stated. Instead the artifact states how likely each sum of all the others "
        f"is, the same for every person: a number from 0 to {population.last - population.largest:,}. The person "
        f"contributes a whole number from 0 to {population.largest}, independently of them."
    )


def _conditionals(population: Population) -> Html:
    kinds = "one kind" if len(population.people) == 1 else f"{len(population.people)} kinds"
    return paragraphs(
        f"People need not be independent of each other. The artifact states, for {kinds} of person and for each "
        f"contribution from 0 to {population.largest}, how likely each sum is. This is what a prior looks like after "
        "an earlier release about the same people."
    )


KIND_WORDS = {
    "binomial": _binomial, "iid": _iid, "counts": _counts, "independent": _independent, "others": _others,
    "conditionals": _conditionals,
}  # fmt: skip
"""How each kind of population is put into words."""


def caption_of(heat: Heat, last: int) -> str:
    """What a map shows, and what it does not."""
    said = "Probability of each output for each input; a darker cell (brighter on a dark screen) is likelier."
    if heat.binned:
        down, across = heat.step
        said += (
            f" Binned: a cell stands for {down} inputs and {across} outputs, and shows how likely the outputs are on "
            "average over the inputs."
        )
    if heat.rows != (0, last):
        said += f" Inputs {heat.rows[0]:,} to {heat.rows[1]:,} of 0 to {last:,} are shown."
    return said
