"""The claims in words for people who sign, not for people who calculate. What is promised is rounded up."""

from __future__ import annotations

from fractions import Fraction

from optdp.math.exact import exp_bounds
from optdp.page.figures import at_most, belief, odds_factor
from optdp.page.markup import Html, el, join, listed, paragraphs, table

BELIEFS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
WEAK = Fraction(3)
"""From here on a promise protects little, and the page says so."""


def beliefs(epsilon: Fraction, about: str = "any statement about one person") -> Html:
    """What a belief may become."""
    rows = []
    for before in BELIEFS:
        least, most = belief(before, epsilon)
        rows.append([f"{100 * before} %", least, most])
    return table(
        ["belief before", "afterwards at least", "afterwards at most"], rows,
        f"How sure somebody may be of {about}, before and after", (0, 1, 2),
    )  # fmt: skip


def weak(epsilon: Fraction) -> str | None:
    """A warning where epsilon is large."""
    if epsilon < WEAK:
        return None
    return f"A factor of {odds_factor(epsilon)} is large: a promise this wide protects little."


def claim(seen: str, known: str, epsilon: Fraction, largest: int, unit: bool) -> Html:
    """The promise about one person. `seen` is what is published; `known` names the assumption."""
    factor = odds_factor(epsilon)
    contributions = "0 or 1" if largest == 1 else f"any two numbers from 0 to {largest}"
    words = [
        f"Whatever {seen} is published, somebody whose knowledge of the other people is {known} can change their odds "
        f"about any one person by at most a factor of {factor}, up or down.",
        f"Odds about a person are how much likelier somebody holds one contribution of that person to be than another "
        f"({contributions}). The promise holds for every {seen} that may be published, for every person who is "
        "counted, and whatever the odds were before. It does not fail with some small probability either: there is no "
        "exception to it.",
    ]
    if largest > 1 and unit:
        step = odds_factor(epsilon / largest)
        words.append(f"Contributions that differ by one are told apart even less: there the factor is at most {step}.")
    large = weak(epsilon)
    return join(
        el("p", words[0], class_="claim"), paragraphs(*words[1:]), beliefs(epsilon),
        el("p", large, class_="warning") if large else None,
    )  # fmt: skip


def without_assumption(ordinary: Fraction | None, epsilon: Fraction, who: str) -> str:
    """The ordinary epsilon in words."""
    if ordinary is None:
        return (
            f"There is no promise without the assumption (the ordinary epsilon of {who} is infinite). Somebody who "
            "knows what everybody else contributed may learn the last person's contribution for certain."
        )
    factor = odds_factor(ordinary)
    if ordinary <= epsilon * (1 + Fraction(1, 10**9)):
        return (
            f"The promise of {who} needs no assumption about anybody: even for somebody who knows what everybody else "
            f"contributed the factor is at most {factor} (ordinary differential privacy, epsilon {at_most(ordinary)})."
        )
    weight = "" if ordinary < WEAK else " That is so large that it is worth little."
    return (
        f"Without the assumption, whatever anybody knows, the factor of {who} is at most {factor} (ordinary "
        f"differential privacy, epsilon {at_most(ordinary)}). This second promise adds up over releases.{weight}"
    )


def not_promised(ordinary: Fraction | None, epsilon: Fraction, largest: int, fixed: bool) -> Html:
    """What a reader must not take from the promise."""
    free = ordinary is not None and ordinary <= epsilon * (1 + Fraction(1, 10**9))
    held = "" if ordinary is None else f" All that holds then is the factor {odds_factor(ordinary)}."
    several = (
        "Each further number about the same people is a further publication, and the epsilons add up."
        if free
        else "A second number about the same people, also a second draw of the same one, a subtotal or a corrected "
        f"figure, is not covered. What two of them give away together can be far more than twice as much.{held}"
    )
    items = [join(el("strong", "A second release. "), several)]
    if not free:
        items += [
            join(
                el("strong", "An observer who knows more. "),
                "Somebody who knows what some of the people contributed, a colleague for instance, is better informed "
                f"than the assumption allows.{held}",
            ),
            join(
                el("strong", "A wrong assumption. "),
                "If people are not as the box says, the factor is another one: see ",
                el("a", "If the prior is wrong", href="#others"),
                ".",
            ),
        ]
    if fixed:
        items.append(
            join(
                el("strong", "That somebody took part. "),
                "The number of people is taken to be known. Only if not taking part means to contribute 0 is it "
                "hidden as well.",
            )
        )
    items.append(
        join(
            el("strong", "Larger contributions. "),
            f"Nobody may contribute more than {largest}. What is larger must be cut down before it is counted.",
        )
    )
    return listed(*items)


def factor_bounds(epsilon: Fraction) -> tuple[float, float]:
    """`e^-epsilon` and `e^epsilon`, for lines in a chart."""
    above = float(exp_bounds(min(epsilon, Fraction(100)))[1])
    return 1 / above, above
