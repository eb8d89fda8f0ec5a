"""The page about an order-private shuffle."""

from __future__ import annotations

import math
import shlex
from pathlib import PurePath
from typing import Any

import numpy as np

from optdp.html import Child, Html, el
from optdp.order.format import VerifiedOrder
from optdp.order.mechanism import near_uniform, reversed_pairs, sensitivities
from optdp.order.pictures import positions
from optdp.pictures.chart import Chart, Heat, Level, PlottedCurve
from optdp.report import page as html
from optdp.report import words
from optdp.report.words import at_most, odds_factor, people

BINS = 60
NAMES = {
    "names": ("group", "position", "share of its members"),
    "across": "position in the order",
    "down": "group, in the order of its middle",
    "low": -4,
}
SOURCES = {
    "points": "people are grouped with those who are near them, by coordinates in the file {0}",
    "graph": "people are grouped with their neighbours in the graph of the file {0}",
    "data": "people are grouped by a column of the file {0}",
    "file": "groups are listed one by one in the file {0}",
}
"""Where groups may come from, in words."""


def page(found: VerifiedOrder, name: str, title: str = "") -> bytes:
    """The page about a verified order whose file is called `name`."""
    stated = str(found.artifact.problem.get("title", "")).strip()[:200]
    subject = title or stated or f"Answers of {people(found.artifact.n)}, shuffled within groups"
    own = sensitivities(found.groups, found.artifact.order, found.artifact.distance, found.artifact.values)
    along, heat = positions(found.groups, found.artifact.order)
    data: dict[str, Any] = {"heat": heat.json() | NAMES, "sizes": _sizes(found).json()}
    data["sensitivities"] = Chart(
        0, (PlottedCurve("sensitivity", own[along].astype(np.float64)),),
        "group, in the order of its middle", "sensitivity",
        (Level(float(found.sensitivity), "largest"),),
    ).json()  # fmt: skip
    body = (
        _header(found, subject),
        _claim(found),
        _assumptions(found),
        html.section("matrix", "The order and the groups", *_order_section(found, heat)),
        html.section(
            "sensitivity",
            "How sensitive each group is",
            html.paragraphs(
                "The sensitivity of a group is how far its members can change the order by exchanging places. The "
                "group with the largest sensitivity decides how much the shuffle must mix; all others are protected "
                "better, in proportion."
            ),
            html.chart("sensitivities", "lines", "sensitivities", "Sensitivity of each group", "Sensitivity by group."),
        ),
        html.section(
            "groups",
            "How large the groups are",
            html.chart("sizes", "lines", "sizes", "Groups by size", "Number of groups by how many records they have."),
        ),
        _deploy(found, name),
    )
    return html.document(f"{subject} · optdp", body, data)


def _header(found: VerifiedOrder, subject: str) -> Html:
    theta = "infinite" if math.isinf(found.theta) else f"{found.theta:.4g}"
    return html.header(
        "Privacy report: an order-private shuffle",
        subject,
        f"The answers of {people(found.artifact.n)} are released without names and shuffled, mostly within groups, so "
        "that local trends remain visible. All figures on this page were recomputed from the order and the groups.",
        (
            html.tile(at_most(found.alpha), "alpha", "Certified, for every group."),
            html.tile(
                f"× {odds_factor(found.alpha)}", "factor", "The most that exchanging answers in a group changes odds."
            ),
            html.tile(theta, "theta", "How tightly the shuffle keeps to the order; 0 is a uniform shuffle."),
            html.tile(f"{found.sensitivity:,}", "sensitivity", "How far a group can move the order."),
        ),
        html.digest_line("Order, SHA-256", found.artifact.sha256),
    )  # fmt: skip


def _claim(found: VerifiedOrder) -> Html:
    factor = odds_factor(found.alpha)
    limits = html.listed(
        html.term(
            "What was said",
            "Answers are released unchanged; only whose they are is uncertain. If a whole group said yes, everyone can "
            "see that. So people must randomize their answers first.",
        ),
        html.term(
            "What a group is like",
            "Trends are meant to survive. Whoever knows that someone belongs to a group in which everyone is ill will "
            "conclude that this person is, too.",
        ),
        html.term("People who share no group, and groups that are not these", "Alpha is not about them."),
        html.term("A second release", "The alphas of several releases about the same answers add up."),
        html.term("Ordinary differential privacy", "This is a different promise, and does not replace it."),
    )
    return html.section(
        "claim",
        "What is promised",
        el(
            "p",
            "If the people of one group exchanged their answers among themselves, in whatever way, nothing that can be "
            f"concluded from the release would be more than {factor} times likelier or less likely.",
            class_="claim",
        ),
        html.paragraphs(
            "So the release says little about who in a group gave which answer, even to someone who knows all answers "
            "outside the group, and which answers the group gave. It assumes nothing about people, and has no "
            "exceptions, not even with a small probability."
        ),
        words.beliefs(found.alpha, "who in a group of two gave which of two answers"),
        html.warning(words.weak(found.alpha)),
        html.box("What is not promised", limits, kind="box limits"),
    )


def _assumptions(found: VerifiedOrder) -> Html:
    spec = found.artifact.problem.get("groups")
    given = dict(spec) if isinstance(spec, dict) else {}
    source = next(
        (said.format(PurePath(given[key]).name) for key, said in SOURCES.items() if isinstance(given.get(key), str)),
        "groups were given directly",
    )
    sizes = found.groups.sizes
    least, most = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
    return html.section(
        "assumptions",
        "What it rests on",
        html.box(
            "The assumptions",
            html.listed(
                "An honest shuffler: it sees whose each answer is, draws the shuffle in secret, and forgets both.",
                f"The groups, which are public: {source}. There are {len(found.groups):,} of them, with "
                f"{least:,} to {most:,} records.",
                "The groups were made from public data alone, not from the answers.",
                _values(found.artifact.values),
                "The people randomized their answers themselves, before the shuffler got them.",
                "Randomness that nobody can predict. A shuffle with a known seed can be undone.",
            ),
            kind="box prior",
            name="prior",
        ),
    )


def _values(values: int | None) -> str:
    if values is None:
        return "Answers may be of any kind: nothing is assumed about how many different ones there are."
    return (
        f"There are at most {values:,} different answers. Exchanging equal ones changes nothing, so fewer values need "
        f"less mixing. The command optdp shuffle refuses answers of more than {values:,} values, for which alpha would "
        "not hold."
    )


# ---------------------------------------------------------------------- pictures


def _sizes(found: VerifiedOrder) -> Chart:
    sizes = found.groups.sizes
    first, last = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
    block = max(1, math.ceil((last - first + 1) / BINS))
    counts = np.bincount((sizes - first) // block, minlength=1) if len(sizes) else np.zeros(1)
    curve = PlottedCurve("groups", counts.astype(np.float64), "bars")
    return Chart(first, (curve,), "records in the group", "number of groups", block=block)


def _order_section(found: VerifiedOrder, heat: Heat) -> tuple[Child, ...]:
    share = reversed_pairs(found.artifact.n, found.theta, found.artifact.distance)
    said = (
        "Records stand in one public order, and the shuffle mostly exchanges answers of records that are close to each "
        "other in it. In the picture, each row is a group and each column a position: a good order keeps every group "
        f"together, near the diagonal. On average the shuffle reverses {100 * share:.3g} % of all pairs of records; a "
        "uniform shuffle, which leaves no trend, reverses 50 %."
    )
    mixed = near_uniform(share)
    caption = "Where the members of each group stand in the order."
    if heat.binned:
        down, across = heat.step
        caption += (
            f" Binned: a cell stands for {down} groups and {across} positions, and shows the mean share of the groups' "
            "members there."
        )
    return (
        html.paragraphs(said),
        html.warning(f"{mixed[:1].upper()}{mixed[1:]}." if mixed else None),
        html.chart("heatmap", "heat", "heat", "Groups along the order as a heat map", caption),
    )


def _deploy(found: VerifiedOrder, name: str) -> Html:
    file = shlex.quote(name)
    return html.section(
        "deploy",
        "How to deploy it",
        html.paragraphs("Check the order, compare its digest with the one above, and shuffle the randomized answers:"),
        html.commands(
            f"optdp verify {file}",
            f"optdp shuffle {file} --data answers.csv --column y --out shuffled.csv",
        ),
        html.one_release(
            "Shuffle each set of answers once, publish the result, and never shuffle it again. Another shuffle of the "
            "same answers is a second release: the alphas add up."
        ),
        html.digest_line("Order, SHA-256", found.artifact.sha256),
        html.digest_line("Groups, SHA-256", found.artifact.digest),
    )
