"""The page about a plan of several entities."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from optdp.html import Child, Html, el
from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.mechanism.shared_noise import SharedNoise
from optdp.people.population import Population
from optdp.pictures.chart import MOST_ENTRIES, Heat
from optdp.plan.certificate import meaning
from optdp.plan.format import VerifiedPlan
from optdp.plan.pictures import totals_chart
from optdp.plan.problem import MultiLTE
from optdp.plan.worlds import epsilon_under
from optdp.report import page as html
from optdp.report import words
from optdp.report.single import NAMES
from optdp.report.variations import TOO_LARGE, WHOLE, measured, variations, world_row, worlds_section
from optdp.report.words import (
    at_least,
    at_most,
    caption_of,
    certified,
    epsilon,
    less,
    odds_factor,
    people,
    short,
)
from optdp.single.alternatives import no_data_sum, useless
from optdp.single.heat import of_table

MOST_MAPS = 12
"""Different tables that get a heat map."""
MOST_OUTPUTS = (400, 1600)
"""Outputs of all tables together up to which many, and few, other worlds are measured."""


def page(found: VerifiedPlan, name: str, spec: Mapping[str, Any], title: str = "") -> bytes:
    """The page about a verified plan whose folder is called `name`; `spec` is the problem as its file has it."""
    problem = found.problem
    given = spec.get("title")
    stated = title or (given.strip()[:200] if isinstance(given, str) else "")
    subject = stated or f"One private number of {len(problem.parties)} entities"
    maps = _maps(found)
    data: dict[str, Any] = {
        f"heat-{i}": heat.json() | NAMES | {"across": "report (output)"} for i, (_, heat) in enumerate(maps)
    }
    totals = totals_chart(found)
    if totals is not None:
        data["totals"] = totals.json()
    body = (
        top(found, subject, _unit(spec)),
        claim(found),
        assumptions(found),
        parties(found),
        html.section("matrix", "The tables of the parties", *_matrices(found, maps)),
        html.section("error", "How far the aggregate is off", *_errors(found, totals is not None)),
        _others(found),
        _deploy(found, name),
    )
    return html.document(f"{subject} · optdp", body, data)


def _unit(spec: Mapping[str, Any]) -> str:
    parties = spec.get("parties")
    first = parties[0] if isinstance(parties, list) and parties else None
    unit = first.get("unit") if isinstance(first, Mapping) else None
    return unit.strip()[:60] if isinstance(unit, str) else ""


# ---------------------------------------------------------------------- tables and errors


def _maps(found: VerifiedPlan) -> list[tuple[list[int], Heat]]:
    """A map for each different table, and whose it is."""
    if found.problem.method == "inside":
        return [(list(range(len(found.tables))), of_table(found.tables[0], found.problem.merged.populations[0]))]
    same: dict[Any, list[int]] = {}
    for i, (kept, population) in enumerate(zip(found.tables, found.problem.parties, strict=True)):
        same.setdefault((_key(kept), str(population.spec)), []).append(i)
    most = MOST_ENTRIES // min(MOST_MAPS, len(same))
    return [
        (members, of_table(found.tables[members[0]], found.problem.parties[members[0]], most))
        for members in list(same.values())[:MOST_MAPS]
    ]


def _key(kept: NoiseMatrix | SharedNoise | SeededMaps) -> Any:
    if isinstance(kept, SeededMaps):
        return kept.inputs, kept.rows
    if isinstance(kept, NoiseMatrix):
        return kept.inputs, kept.outputs, kept.denominator, kept.rows
    return kept.last, kept.q, kept.beta, kept.factor, kept.contraction, kept.inputs, kept.outputs, kept.rows


def _matrices(found: VerifiedPlan, maps: Sequence[tuple[list[int], Heat]]) -> Sequence[Child]:
    options, captions = [], []
    inside = found.problem.method == "inside"
    for i, (members, heat) in enumerate(maps):
        left_out = f" Probabilities below {heat.least:g} are left out." if heat.least and not heat.binned else ""
        last = found.problem.merged.last if inside else found.problem.parties[members[0]].last
        caption = f"{'All parties' if inside else numbered(found.problem, members)}. {caption_of(heat, last)}{left_out}"
        captions.append(caption)
        options.append(el("option", numbered(found.problem, members), value=f"heat-{i}", data_caption=caption))
    choice = el("label", "Table of ", el("select", *options, data_for="heatmap"))
    left = len(found.problem.parties) - sum(len(members) for members, _ in maps)
    return (
        html.paragraphs(
            "Each row is a true total of all parties and says how likely each release is for it. All parties have "
            "this table, and the release is drawn from it inside the secure computation."
            if inside
            else "Each row is a true sum of a party's people and says how likely each report is for it. "
            + (
                "Each table is private on its own."
                if found.problem.method == "alone"
                else "A secret word that all parties share chooses every party's map, so that reports fit together: "
                "the table shows how often each report occurs, and no party draws from it alone."
                if found.problem.method == "seeded"
                else "A single table may look odd: the tables are designed to be private, and accurate, together."
            )
        ),
        html.chart("heatmap", "heat", "heat-0", "The table of a party as a heat map", captions[0], choice),
        html.paragraphs(f"The tables of {left:,} more parties are not drawn.") if left else None,
    )


def _errors(found: VerifiedPlan, drawn: bool) -> Sequence[Child]:
    problem, certificate = found.problem, found.certificate
    rows: list[tuple[str, float | None, str]] = [
        ("this plan", float(certificate.mae), at_most(certificate.mae)),
        ("shared geometric noise", float(problem.baseline_mae), at_most(problem.baseline_mae)),
    ]
    without = no_data_sum(problem.parties, problem.f, "mae")
    if without is not None:
        rows.append(("without data", without, at_most(Fraction(without))))
    bound = found.claim.get("lower_bound")
    said = ""
    if found.bound_proved and bound is not None and problem.objective == "mae":
        below = "lower bound for any table of the total" if problem.method == "inside" else "lower bound for any plan"
        rows.append((below, float(Fraction(bound)), at_least(Fraction(bound))))
        every = "table of the total" if problem.method == "inside" else "plan in which the parties' reports are added"
        said = f" The bound holds for every {every}; it was verified."
    remark = useless(float(certificate.mae), without, "mae")
    average = "" if problem.divisor == 1 else (
        f" The average, the aggregate divided by {short(problem.divisor)}, is off by "
        f"{at_most(certificate.mae / problem.divisor)}."
    )  # fmt: skip
    return (
        html.paragraphs(
            "How far the published aggregate is from the true one on average, under the priors, compared with "
            f"geometric noise of which each party adds a share, and with a constant that needs no data.{said}{average}"
        ),
        html.warning(f"This plan is {remark}." if remark else ""),
        html.bars(rows, "Mean absolute error of the aggregate"),
        html.chart(
            "errors", "lines", "totals", "Error for each true total",
            "Mean absolute error of the aggregate by the true total, in floating point. The shaded area says how "
            "likely each total is.",
        )
        if drawn
        else None,
        html.paragraphs(f"The mean squared error of the aggregate is {at_most(certificate.mse)}."),
    )  # fmt: skip


# ---------------------------------------------------------------------- other worlds, deployment


def _others(found: VerifiedPlan) -> Html:
    problem = found.problem
    outputs = sum(max(kept.outputs[1] - kept.outputs[0] + 1, kept.last + 1) for kept in found.tables)
    sets = math.comb(len(problem.parties), problem.honest)
    work = outputs * sets
    heading = "If the priors are wrong"
    said = (
        "The promise depends on the priors of all parties together. If the people of every party differ from what is "
        "stated, or if someone knows more about them, this is the real epsilon of the aggregate with the same tables, "
        "in the worst case, rounded up."
    )
    if work > MOST_OUTPUTS[1]:
        return worlds_section(said, [world_row("as stated", certified(found))], TOO_LARGE, heading)
    brief = work > MOST_OUTPUTS[0]
    every = [{item.key: item for item in variations(party, brief)} for party in problem.parties]
    shared = [key for key in every[0] if all(key in other for other in every)]
    worlds = ((_said(every, key), partial(epsilon_under, found, [w[key].population for w in every])) for key in shared)
    rows = [world_row("as stated", certified(found)), *measured(worlds)]
    return worlds_section(said, rows, WHOLE.format(problem.parties[0].spec["kind"]), heading)


def _said(every: Sequence[Mapping[str, Any]], key: str) -> str:
    """One sentence for all parties: that of the first if it fits all, else what the change is."""
    sentences = {str(other[key].words) for other in every}
    if len(sentences) == 1:
        return sentences.pop() + (", in each party" if key[0] in "nk" else "")
    kind, _, factor = key.partition("*")
    if kind == "p":
        return f"every probability is {factor} times the stated one"
    if kind == "n":
        return f"every party has {100 * float(factor):g} % of its people"
    if kind.startswith("known"):
        return f"an observer knows what about {100 - 100 * float(kind[6:]):g} % of each party's people contribute"
    return str(every[0][key].words)


def _deploy(found: VerifiedPlan, name: str) -> Html:
    folder = shlex.quote(name)
    inside = found.problem.method == "inside"
    own = [f"optdp export {folder}/party-0.json --to python --out sampler/    # for a secure sum of yours"]
    return html.section(
        "deploy",
        "How to deploy it",
        html.paragraphs(
            "Give each party the folder. Every party checks the plan and compares its digest with the one above. Each "
            "party makes a key once, and all put the same parties.toml into the folder. Then each party runs the "
            f"secure {'computation' if inside else 'sum'} with its own true sum:"
        ),
        html.commands(
            f"optdp verify {folder}",
            *([] if inside else own),
            "optdp party-key --out party-0.pem --host office-0.example    # its line goes into parties.toml",
            f"optdp aggregate {folder} --party 0 --input - --key party-0.pem --run 2026-11",
        ),
        html.one_release(
            "Release once for each set of data: a second draw from the same data is a second release."
            if inside
            else "Compute one aggregate for each set of data. No party may show its report to anyone, or draw a second "
            "time: a second aggregate of the same data is a second release."
        ),
        html.digest_line("Plan, SHA-256", found.identity),
    )


# ---------------------------------------------------------------------- what is promised, and to whom

WORD = (
    "Once the word is known, a report is a fixed function of the input, and the sum says much about the inputs. If the "
    "word is overheard, guessed or used twice, nothing is promised."
)
MOST_PARTIES = 60
"""Parties that are listed one by one."""


def top(found: VerifiedPlan, subject: str, unit: str) -> Html:
    """The large figures."""
    problem, certificate, eps = found.problem, found.certificate, certified(found)
    size = sum(party.size for party in problem.parties)
    what = "a weighted sum" if any(factor != 1 for factor in problem.f) else "the sum"
    average = "" if problem.divisor == 1 else f", divided by {short(problem.divisor)}"
    counted = f" (in {unit})" if unit else ""
    lead = (
        f"{len(problem.parties)} entities with {people(size)} in all publish one number together: {what} of their own "
        f"sums{counted}{average}, with as little noise as privacy allows. "
        + (
            "Inside a secure computation their sums are added and the release is drawn: nothing else is ever seen. "
            if problem.method == "inside"
            else "A secret word that all share determines what each reports, and only the aggregate of the reports is "
            "ever seen. "
            if problem.method == "seeded"
            else "Each draws its report from its own table, and only the aggregate of the reports is ever seen. "
        )
        + "All figures on this page were recomputed from the plan."
    )
    return html.header(
        "Privacy report: a plan among several entities",
        subject,
        lead,
        (
            html.tile(epsilon(eps), problem.promise, "Certified, for the people of every party."),
            html.tile(
                f"× {odds_factor(eps)}", "odds factor", "The most by which an aggregate changes odds about one person."
            ),
            html.tile(
                at_most(certificate.mae), "mean error of the aggregate",
                f"{less(certificate.mae, problem.baseline_mae, 'shared geometric noise')}, which has "
                f"{at_most(problem.baseline_mae)}.",
            ),
            html.tile("each alone", "how it is private", "Whatever the other parties tell.")
            if problem.method == "alone"
            else html.tile(
                f"{problem.honest} of {len(problem.parties)}", "parties assumed honest", "The promise depends on them."
            ),
        ),
        html.digest_line("Plan, SHA-256 of its problem and tables", found.identity),
    )  # fmt: skip


def claim(found: VerifiedPlan) -> Html:
    """The promise, and what it is not."""
    problem, eps = found.problem, certified(found)
    known = (
        f"exactly what one of the {len(problem.worlds)} worlds in the box below says"
        if problem.also
        else "exactly what the box below says"
    )
    if problem.watched:
        known = "no more than the box below allows"
    ordinary = _ordinary(found)
    held = "" if ordinary is None else f" In that case only the factor {odds_factor(ordinary)} is promised."
    inside = problem.method == "inside"
    insider = (
        "A party knows what its own people contribute. "
        if inside
        else "A party knows its own report, subtracts it from the aggregate, and sees the sum of the others. "
    ) + (
        "Each table is private on its own: this plan protects the people of each party against all other parties "
        "together. Their own party knows their data."
        if problem.method == "alone"
        else "This plan does not protect the people of one party from another party."
        if problem.honest == len(problem.parties)
        else f"This plan keeps its promise against up to {len(problem.parties) - problem.honest} such parties that "
        "pool what they know, and not against more."
    )
    single = html.term("A single report", f"Only the aggregate is private. Whoever sees one report learns more.{held}")
    limits = html.listed(
        *(() if problem.method in ("alone", "inside") else (single,)),
        html.term("The parties among themselves", insider),
        *((html.term("Whoever knows the word", WORD),) if problem.method == "seeded" else ()),
        html.term(
            "A second release", f"A second aggregate of the same data, even a second draw, is not covered.{held}"
        ),
        html.term("An observer who knows more, or a wrong assumption", "See ",
                  el("a", "If the priors are wrong", href="#others"), f".{held}"),
        html.term("That someone took part", "The numbers of people are assumed to be public."),
    )  # fmt: skip
    reach = max(party.largest for party in problem.parties)
    return html.section(
        "claim",
        "What is promised",
        words.claim("aggregate", known, eps, reach, False),
        html.paragraphs(words.without_assumption(ordinary, eps, "the worst release" if inside else "the worst report")),
        html.box("What is not promised", limits, kind="box limits"),
    )


def _ordinary(found: VerifiedPlan) -> Fraction | None:
    known = [value for value in found.certificate.ordinary if value is not None]
    return max(known) if len(known) == len(found.certificate.ordinary) else None


def assumptions(found: VerifiedPlan) -> Html:
    """The priors, who must be honest, and the secure sum."""
    problem = found.problem
    parts: list[Child] = []
    stated: list[tuple[str, Population]] = []
    for number, world in enumerate(problem.worlds, start=1):
        same: dict[str, list[int]] = {}
        for i, party in enumerate(world):
            same.setdefault(str(party.spec), []).append(i)
        where = f"World {number}: " if problem.also else ""
        for members in same.values():
            each = " each" if len(members) > 1 and len(same) == 1 and not problem.also else ""
            stated.append((f"{where}{numbered(problem, members)}{each}", world[members[0]]))
    parts.append(words.priors(stated, "party"))
    m, trusted, inside = len(problem.parties), problem.honest, problem.method == "inside"
    if problem.watched:
        about = [f"{name[0].upper()}{name[1:]}: {known}." for name, known in problem.watchers]
        parts.append(html.paragraphs(meaning(problem)))
        parts.append(html.listed(*about, "The priors above are our own belief: the mean error is measured under them."))
    honest = (
        "Only the person's own party is assumed to be honest: it draws from its table."
        if problem.method == "alone"
        else "All parties are assumed to be honest: they follow the protocol, and do not use what they know about "
        "their own people to learn about others."
        if trusted == m and inside
        else "All parties are assumed to be honest: they look up their reports under the common word, which is random, "
        "new for each release and known to nobody else, and they tell nobody the word or their reports."
        if problem.method == "seeded"
        else "All parties are assumed to be honest: they draw from their tables and tell nobody their reports."
        if trusted == m
        else f"At least {trusted} of the {m} parties are assumed to be honest. The others may tell the observer "
        "everything they know."
    )
    terms = [
        honest,
        "The entities are independent of each other.",
        "Neighbours: the same people, one of whom contributes something else.",
        "The plan and this page state the priors, so they must not themselves be secret.",
    ]
    if problem.fallback_epsilon is not None:
        terms.insert(
            1, f"An ordinary epsilon of at most {epsilon(problem.fallback_epsilon)} of each table was asked for."
        )
    return html.section(
        "assumptions",
        "What it rests on",
        html.box(
            f"The assumptions: {'who may know what' if problem.watched else 'the priors'}",
            *parts,
            html.listed(*terms),
            kind="box prior",
            name="prior",
        ),
        html.box(
            "The secure computation" if inside else "The secure sum",
            html.paragraphs(
                "Each party splits its input, and random bits, into random pieces, one for each party. The parties add "
                "and multiply pieces, and draw the release from the table with random bits that nobody knows. Up to "
                f"{(m - 1) // 2} of the {m} parties learn nothing by putting their pieces together; only the release "
                "is revealed. All parties must follow the protocol, over encrypted connections."
                if inside
                else "The reports must be added up before anyone sees them. In a secure sum each party splits its "
                "report into random pieces, one for each party. A piece alone reveals nothing; only the sum of all "
                "pieces is revealed, which is the sum of the reports. This needs no party that everyone trusts, but "
                "encrypted connections."
            ),
            kind="box rule",
        ),
    )


def numbered(problem: MultiLTE, members: Sequence[int]) -> str:
    """Parties by their names, or by their numbers."""
    if problem.names:
        shown = ", ".join(problem.names[i] for i in members[:8])
    elif len(members) == 1:
        return f"Party {members[0]}"
    else:
        shown = f"Parties {', '.join(map(str, members[:8]))}"
    return shown + (f" and {len(members) - 8} more" if len(members) > 8 else "")


def parties(found: VerifiedPlan) -> Html:
    """A row for each party."""
    problem, certificate = found.problem, found.certificate
    weighted = any(factor != 1 for factor in problem.f)
    head = ["party", "people", "largest sum", "epsilon", "ordinary epsilon", "own mean error"]
    rows = []
    for i, party in enumerate(problem.parties[:MOST_PARTIES]):
        own = certificate.epsilons[i]
        row = [
            problem.names[i] if problem.names else str(i),
            f"{party.size:,}" if party.size else "not stated", f"{party.last:,}",
            epsilon(None if own is None else min(own, problem.epsilon)), epsilon(certificate.ordinary[i]),
            at_most(certificate.own_mae[i]),
        ]  # fmt: skip
        rows.append([*row, str(problem.f[i])] if weighted else row)
    more = len(problem.parties) - MOST_PARTIES
    inside = problem.method == "inside"
    seen = "aggregate, or the report itself" if problem.method == "alone" else "release" if inside else "aggregate"
    return html.section(
        "parties",
        "The parties",
        html.table([*head, "coefficient"] if weighted else head, rows, numbers=range(1, 7)),
        html.paragraphs(f"And {more:,} more parties.") if more > 0 else None,
        html.paragraphs(
            f"Epsilon is that of the party's people against anyone who sees the {seen}. The ordinary epsilon is that "
            "of "
            + (
                "the table of all parties, whatever anyone knows. The last column is the error of the release."
                if inside
                else "the party's own table, whatever anyone knows. The last column is the error of the report by "
                "itself."
            )
        ),
    )
