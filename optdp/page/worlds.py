"""What the same tables give away if the world is not the prior."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from optdp.errors import OptdpError
from optdp.math.effort import EffortError
from optdp.noise.certify import epsilon_under
from optdp.noise.laws import secrets_of
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.single import SingleLTE
from optdp.page.figures import epsilon, odds_factor
from optdp.page.markup import Html, el, paragraphs
from optdp.page.page import bars, section
from optdp.page.variations import variations

WHOLE = "a prior of the kind {0} is given as a whole, and there is no obvious way to vary it."
TOO_LARGE = "for a table of this size it takes too long."
MEASURE = "Measure the worlds that you cannot rule out with optdp.epsilon_under."
BRIEF, NONE = 60_000, 400_000
"""Entries times secrets from which on few other priors, and none, are measured."""
MANY = 3000
"""The largest sum up to which many other priors are measured."""


def single_worlds(problem: SingleLTE, matrix: NoiseMatrix) -> Html:
    """The real epsilon of one entity's matrix in worlds near its first prior."""
    prior = problem.populations[0]
    work = sum(map(len, matrix.rows)) * len(secrets_of(problem.populations[:1]))
    worlds = [] if work > NONE else variations(prior, brief=work > BRIEF or problem.last > MANY)
    said = (
        "The promise leans on the prior. If people are otherwise than stated, or if somebody knows more about them, "
        "the same table gives away what stands here: the real epsilon, in the worst case over all outputs, rounded up."
    )
    own = epsilon_under(problem, matrix, problem.populations)
    rows: list[tuple[str, float | None, str]] = [world_row("as stated", own)]
    for world in worlds:
        try:
            real = epsilon_under(problem, matrix, world.population)
        except EffortError:
            raise  # a table without its worst worlds would mislead
        except (OptdpError, ArithmeticError):
            continue
        rows.append(world_row(world.words, real))
    reason = TOO_LARGE if work > NONE else WHOLE.format(prior.spec["kind"])
    return worlds_section(said, rows, reason)


def world_row(name: str, real: Fraction | None) -> tuple[str, float | None, str]:
    """One world and its epsilon, as a bar."""
    if real is None:
        return name, None, "infinite"
    return name, float(real), f"{epsilon(real)}  (× {odds_factor(real)})"


def worlds_section(
    said: str, rows: Sequence[tuple[str, float | None, str]], reason: str, heading: str = "If the prior is wrong"
) -> Html:
    """The table of other worlds, with what its figures mean; if it has only the stated one, the `reason`."""
    if len(rows) == 1:
        return section("others", heading, paragraphs(said, f"No other priors are measured here: {reason} {MEASURE}"))
    infinite = any(value is None for _, value, _ in rows)
    meaning = (
        "In brackets: the odds factor. These are single worlds: between and beyond them epsilon may be smaller or "
        f"larger. {MEASURE}"
    )
    return section(
        "others",
        heading,
        paragraphs(said),
        bars(rows, "Real epsilon under other priors"),
        paragraphs(meaning),
        el(
            "p",
            "Infinite means: under that prior some output, however unlikely, tells for certain what somebody did not "
            "contribute.",
            class_="warning",
        )
        if infinite
        else None,
        paragraphs(
            "Remedies: state several priors, or ask for a fallback (fallback_epsilon), an ordinary epsilon that holds "
            "whatever anybody knows."
        ),
    )
