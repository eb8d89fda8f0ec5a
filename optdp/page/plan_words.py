"""What a plan promises, under which assumptions, and to whom: the words of its page."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from optdp.artifact.plan import VerifiedPlan
from optdp.page import words
from optdp.page.figures import at_most, epsilon, less, odds_factor, people, short
from optdp.page.markup import Child, Html, el, join, listed, paragraphs, table
from optdp.page.page import box, digest_line, header, section, tile
from optdp.page.populations import described

MOST_KINDS, MOST_PARTIES = 12, 60
"""Priors that are described, and parties that are listed, one by one."""


def certified(found: VerifiedPlan) -> Fraction:
    """The epsilon that was recomputed, but not beyond the one wanted."""
    assert found.certificate.epsilon is not None
    return min(found.certificate.epsilon, found.problem.epsilon)


def top(found: VerifiedPlan, subject: str, unit: str) -> Html:
    """The large figures."""
    problem, certificate, eps = found.problem, found.certificate, certified(found)
    size = sum(party.size for party in problem.parties)
    what = "a weighted sum" if any(factor != 1 for factor in problem.f) else "the sum"
    average = "" if problem.divisor == 1 else f", divided by {short(problem.divisor)}"
    counted = f" (in {unit})" if unit else ""
    lead = (
        f"{len(problem.parties)} entities with {people(size)} in all publish one number together: {what} of their own "
        f"sums{counted}{average}, with as little noise as privacy allows. Each draws its report from its own table, "
        "and only the aggregate of the reports is ever seen. All figures on this page were recomputed from the plan."
    )
    return header(
        "Privacy report: a plan among several entities",
        subject,
        lead,
        (
            tile(epsilon(eps), "epsilon under the priors", "Certified, for the people of every party."),
            tile(f"× {odds_factor(eps)}", "odds factor", "The most that any aggregate changes odds about one person."),
            tile(
                at_most(certificate.mae), "mean error of the aggregate",
                f"{less(certificate.mae, problem.baseline_mae, 'shared geometric noise')}, which has "
                f"{at_most(problem.baseline_mae)}.",
            ),
            tile(f"{problem.honest} of {len(problem.parties)}", "parties surely honest", "The promise leans on them."),
        ),
        digest_line("Plan, SHA-256 of its problem and tables", found.identity),
    )  # fmt: skip


def claim(found: VerifiedPlan) -> Html:
    """The promise, and what it is not."""
    problem, eps = found.problem, certified(found)
    known = (
        f"one of the {len(problem.worlds)} worlds in the box below" if problem.also else "the priors in the box below"
    )
    ordinary = _ordinary(found)
    held = "" if ordinary is None else f" All that holds then is the factor {odds_factor(ordinary)}."
    insider = "A party knows its own report, subtracts it from the aggregate, and sees the sum of the others. " + (
        "This plan does not protect the people of one party from another party."
        if problem.honest == len(problem.parties)
        else f"This plan keeps its promise against up to {len(problem.parties) - problem.honest} such parties who "
        "pool what they know, and against no more."
    )
    limits = listed(
        join(
            el("strong", "A single report. "),
            f"Only the aggregate is private. Whoever sees one report learns more.{held}",
        ),
        join(el("strong", "The parties among themselves. "), insider),
        join(
            el("strong", "A second release. "),
            f"A second aggregate of the same data, also a second draw, is not covered.{held}",
        ),
        join(
            el("strong", "An observer who knows more, or a wrong assumption. "), "See ",
            el("a", "If the priors are wrong", href="#others"), f".{held}",
        ),
        join(el("strong", "That somebody took part. "), "The numbers of people are taken to be known."),
    )  # fmt: skip
    reach = max(party.largest for party in problem.parties)
    return section(
        "claim",
        "What is promised",
        words.claim("aggregate", known, eps, reach, False),
        paragraphs(words.without_assumption(ordinary, eps, "the worst report")),
        box("What is not promised", limits, kind="box limits"),
    )


def _ordinary(found: VerifiedPlan) -> Fraction | None:
    known = [value for value in found.certificate.ordinary if value is not None]
    return max(known) if len(known) == len(found.certificate.ordinary) else None


def assumptions(found: VerifiedPlan) -> Html:
    """The priors, who must be honest, and the secure sum."""
    problem = found.problem
    parts: list[Child] = []
    for number, world in enumerate(problem.worlds):
        if problem.also:
            parts.append(el("h4", f"World {number + 1}"))
        same: dict[str, list[int]] = {}
        for i, party in enumerate(world):
            same.setdefault(str(party.spec), []).append(i)
        for members in list(same.values())[:MOST_KINDS]:
            parts.append(el("h4", f"{numbered(members)}{' each' if len(members) > 1 else ''}"))
            parts.append(described(world[members[0]]))
        if len(same) > MOST_KINDS:
            parts.append(
                paragraphs(f"And {len(same) - MOST_KINDS} further kinds of parties, as the plan's file has them.")
            )
    m, trusted = len(problem.parties), problem.honest
    honest = (
        "All parties are taken to be honest: they draw from their tables and tell nobody their reports."
        if trusted == m
        else f"At least {trusted} of the {m} parties are taken to be honest. The others may tell the observer all that "
        "they know."
    )
    terms = [
        honest,
        "The entities are independent of each other.",
        "Neighbours: the same people, of whom one contributes differently.",
        "The priors stand in the plan and on this page: they must not themselves be secrets.",
    ]
    if problem.fallback_epsilon is not None:
        terms.insert(
            1, f"An ordinary epsilon of at most {epsilon(problem.fallback_epsilon)} of each table was asked for."
        )
    return section(
        "assumptions",
        "What it rests on",
        box("The assumptions: the priors", *parts, listed(*terms), kind="box prior", name="prior"),
        box(
            "The secure sum",
            paragraphs(
                "The reports must be added up before anybody sees them. In a secure sum each party splits its report "
                "into random pieces, one for each party. A piece alone tells nothing; only the sum of all pieces is "
                "opened, and it is the sum of the reports. That needs no party whom everybody trusts, but connections "
                "that nobody listens to."
            ),
            kind="box rule",
        ),
    )


def numbered(members: Sequence[int]) -> str:
    """Parties by their numbers."""
    if len(members) == 1:
        return f"Party {members[0]}"
    shown = ", ".join(map(str, members[:8]))
    return f"Parties {shown}" + (f" and {len(members) - 8} more" if len(members) > 8 else "")


def parties(found: VerifiedPlan) -> Html:
    """A row for each party."""
    problem, certificate = found.problem, found.certificate
    weighted = any(factor != 1 for factor in problem.f)
    head = ["party", "people", "largest sum", "epsilon", "ordinary epsilon", "own mean error"]
    rows = []
    for i, party in enumerate(problem.parties[:MOST_PARTIES]):
        row = [
            str(i), f"{party.size:,}" if party.size else "not stated", f"{party.last:,}",
            epsilon(_kept(certificate.epsilons[i], problem.epsilon)), epsilon(certificate.ordinary[i]),
            at_most(certificate.own_mae[i]),
        ]  # fmt: skip
        rows.append([*row, str(problem.f[i])] if weighted else row)
    more = len(problem.parties) - MOST_PARTIES
    return section(
        "parties",
        "The parties",
        table([*head, "coefficient"] if weighted else head, rows, numbers=range(1, 7)),
        paragraphs(f"And {more:,} more parties.") if more > 0 else None,
        paragraphs(
            "Epsilon is that of the party's people against whoever sees the aggregate. The ordinary epsilon is that of "
            "the party's own table, whatever anybody knows. The last column is the error of the report by itself."
        ),
    )


def _kept(value: Fraction | None, wanted: Fraction) -> Fraction | None:
    return None if value is None else min(value, wanted)
