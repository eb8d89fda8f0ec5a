"""The page about a plan of several entities."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.artifact.plan import VerifiedPlan
from optdp.errors import OptdpError
from optdp.math.effort import EffortError
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.shared_noise import SharedNoise
from optdp.page.figures import at_least, at_most, short
from optdp.page.heat import MOST_ENTRIES, Heat, caption_of, of_matrix, of_shared
from optdp.page.lines import Chart, Curve, Level
from optdp.page.markup import Child, Html, el, paragraphs
from optdp.page.page import bars, box, chart, commands, digest_line, document, section
from optdp.page.plan_words import assumptions, certified, claim, numbered, parties, top
from optdp.page.single import NAMES
from optdp.page.variations import variations
from optdp.page.worlds import TOO_LARGE, WHOLE, world_row, worlds_section
from optdp.reports import errors_by_total
from optdp.worlds import epsilon_under

MOST_MAPS = 12
"""Different tables that get a heat map."""
MOST_OUTPUTS = (400, 1600)
"""Outputs of all tables together up to which many, and few, other worlds are measured."""
MOST_CELLS = 3_000_000
"""Cells of the joint law of total and error up to which errors are drawn by the true total."""


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
    totals = _totals(found)
    if totals is not None:
        data["totals"] = totals.json()
    body = (
        top(found, subject, _unit(spec)),
        claim(found),
        assumptions(found),
        parties(found),
        section("matrix", "The tables of the parties", *_matrices(found, maps)),
        section("error", "How far the aggregate is off", *_errors(found, totals is not None)),
        _others(found),
        _deploy(found, name),
    )
    return document(f"{subject} · optdp", body, data)


def _unit(spec: Mapping[str, Any]) -> str:
    parties = spec.get("parties")
    first = parties[0] if isinstance(parties, list) and parties else None
    unit = first.get("unit") if isinstance(first, Mapping) else None
    return unit.strip()[:60] if isinstance(unit, str) else ""


# ---------------------------------------------------------------------- tables and errors


def _maps(found: VerifiedPlan) -> list[tuple[list[int], Heat]]:
    """A map for each different table, and whose it is."""
    same: dict[Any, list[int]] = {}
    for i, (kept, population) in enumerate(zip(found.tables, found.problem.parties, strict=True)):
        same.setdefault((_key(kept), str(population.spec)), []).append(i)
    maps, most = [], MOST_ENTRIES // min(MOST_MAPS, len(same))
    for members in list(same.values())[:MOST_MAPS]:
        kept, population = found.tables[members[0]], found.problem.parties[members[0]]
        if isinstance(kept, NoiseMatrix):
            maps.append((members, of_matrix(kept, population, most)))
        else:
            maps.append((members, of_shared(kept, population, most)))
    return maps


def _key(kept: NoiseMatrix | SharedNoise) -> Any:
    if isinstance(kept, NoiseMatrix):
        return kept.inputs, kept.outputs, kept.denominator, kept.rows
    return kept.last, kept.q, kept.beta, kept.factor, kept.contraction, kept.inputs, kept.outputs, kept.rows


def _matrices(found: VerifiedPlan, maps: Sequence[tuple[list[int], Heat]]) -> Sequence[Child]:
    options = []
    captions = []
    for i, (members, heat) in enumerate(maps):
        caption = f"{numbered(members)}. {caption_of(heat, found.problem.parties[members[0]].last)}"
        if not heat.binned and heat.least:
            caption += f" Probabilities below {heat.least:g} are left out."
        captions.append(caption)
        options.append(el("option", numbered(members), value=f"heat-{i}", data_caption=caption))
    choice = el("label", "Table of ", el("select", *options, data_for="heatmap"))
    shown = sum(len(members) for members, _ in maps)
    left = len(found.problem.parties) - shown
    return (
        paragraphs(
            "Each row is the true sum of a party's people and says how likely each report is for it. Tables look odd "
            "one by one: they are made to be private, and accurate, together."
        ),
        chart("heatmap", "heat", "heat-0", "The table of a party as a heat map", captions[0], choice),
        paragraphs(f"The tables of {left:,} more parties are not drawn.") if left else None,
    )


def _totals(found: VerifiedPlan) -> Chart | None:
    """The error of the aggregate by the true total (A, Fig. 8), for joint plans that are small enough."""
    problem = found.problem
    tables = [kept for kept in found.tables if isinstance(kept, NoiseMatrix)]
    if len(tables) < len(found.tables):
        return None
    wide = sum(abs(f) * (party.last + 1) for f, party in zip(problem.f, problem.parties, strict=True))
    deep = sum(
        kept.outputs[1] - kept.outputs[0] + 1 + abs(f) * (party.last + 1)
        for kept, f, party in zip(tables, problem.f, problem.parties, strict=True)
    )
    if wide * deep > MOST_CELLS:
        return None
    try:
        listed = errors_by_total(found)
    except OptdpError:
        return None
    if not listed:
        return None
    first, last = listed[0].total, listed[-1].total
    errors, chances = np.full(last - first + 1, np.nan), np.zeros(last - first + 1)
    for item in listed:
        errors[item.total - first], chances[item.total - first] = item.error, item.probability
    curves = [Curve("mean error", errors), Curve("probability of this total", chances, "area")]
    level = Level(float(problem.baseline_mae), "shared geometric noise")
    return Chart(first, curves, "true total", "mean absolute error", (level,))


def _errors(found: VerifiedPlan, drawn: bool) -> Sequence[Child]:
    problem, certificate = found.problem, found.certificate
    rows: list[tuple[str, float | None, str]] = [
        ("this plan", float(certificate.mae), at_most(certificate.mae)),
        ("shared geometric noise", float(problem.baseline_mae), at_most(problem.baseline_mae)),
    ]
    bound = found.claim.get("lower_bound")
    said = ""
    if found.bound_proved and bound is not None and problem.objective == "mae":
        rows.append(("no plan is below (proved)", float(Fraction(bound)), at_least(Fraction(bound))))
        said = " The bound is what one entity that holds all data could do at best; it was proved again."
    average = "" if problem.divisor == 1 else (
        f" The average, the aggregate divided by {short(problem.divisor)}, is off by "
        f"{at_most(certificate.mae / problem.divisor)}."
    )  # fmt: skip
    return (
        paragraphs(
            "How far the published aggregate is from the true one on average, under the priors, beside noise of the "
            f"usual kind that the parties would share.{said}{average}"
        ),
        bars(rows, "Mean absolute error of the aggregate"),
        chart(
            "errors", "lines", "totals", "Error for each true total",
            "Mean absolute error of the aggregate by the true total, in floating point. The shaded area says how "
            "likely each total is.",
        )
        if drawn
        else None,
        paragraphs(f"The mean squared error of the aggregate is {at_most(certificate.mse)}."),
    )  # fmt: skip


# ---------------------------------------------------------------------- other worlds, deployment


def _others(found: VerifiedPlan) -> Html:
    problem = found.problem
    outputs = sum(max(kept.outputs[1] - kept.outputs[0] + 1, kept.last + 1) for kept in found.tables)
    sets = math.comb(len(problem.parties), problem.honest)
    work = outputs * sets
    heading = "If the priors are wrong"
    said = (
        "The promise leans on the priors of all parties together. If people are otherwise than stated, in every party "
        "alike, or if somebody knows more about them, the same tables give away what stands here: the real epsilon of "
        "the aggregate, in the worst case, rounded up."
    )
    if work > MOST_OUTPUTS[1]:
        return worlds_section(said, [world_row("as stated", certified(found))], TOO_LARGE, heading)
    brief = work > MOST_OUTPUTS[0]
    every = [{item.key: item for item in variations(party, brief)} for party in problem.parties]
    shared = [key for key in every[0] if all(key in other for other in every)]
    rows = [world_row("as stated", certified(found))]
    for key in shared:
        world = [other[key].population for other in every]
        try:
            real = epsilon_under(found, world)
        except EffortError:
            raise  # a table without its worst worlds would mislead
        except (OptdpError, ArithmeticError):
            continue
        rows.append(world_row(_said(every, key), real))
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
    folder, m = shlex.quote(name), len(found.problem.parties)
    places = ",".join(f"host{i}:9000" for i in range(min(m, 3))) + (",..." if m > 3 else "")
    return section(
        "deploy",
        "How to deploy it",
        paragraphs(
            "Hand each party its own file, party-0.json for party 0 and so on. Everybody checks the plan and compares "
            "its digest with the one above. Then each party runs the secure sum with its own true sum:"
        ),
        commands(
            f"optdp verify {folder}",
            f"optdp export {folder}/party-0.json --to python --out sampler/    # for a secure sum of yours",
            f"optdp aggregate {folder} --party 0 --input - --parties {places}",
        ),
        box(
            "One release",
            paragraphs(
                "One aggregate for one set of data. No party shows its report to anybody, and nobody draws a second "
                "time: a second aggregate of the same data is a second release."
            ),
            kind="box rule",
        ),
        digest_line("Plan, SHA-256", found.identity),
    )
