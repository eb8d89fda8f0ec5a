"""The page about one entity's noise matrix."""

from __future__ import annotations

import shlex
from fractions import Fraction
from typing import Any

from optdp.artifact.verify import Verified
from optdp.noise.matrix import NoiseMatrix
from optdp.page import words
from optdp.page.curves import error_chart, error_section, quotient_chart, quotient_section
from optdp.page.figures import at_least, at_most, epsilon, less, odds_factor
from optdp.page.heat import Heat, caption_of, of_matrix
from optdp.page.markup import Child, Html, el, listed, paragraphs
from optdp.page.page import box, chart, commands, digest_line, document, header, section, tile
from optdp.page.populations import described, headcount
from optdp.page.worlds import single_worlds

NAMES = {
    "names": ("input", "output", "probability"),
    "across": "published number (output)",
    "down": "true sum (input)",
    "low": -6,
}
"""What the heat map calls its rows, columns and values, and the power of ten where its colours begin."""


def page(found: Verified, name: str, title: str = "") -> bytes:
    """The page about a verified artifact whose file is called `name`."""
    problem, matrix = found.problem, found.matrix
    stated = title or _text(found.artifact.problem.get("title"))
    subject = stated or f"A private sum over {headcount(problem.populations[0])}"
    heat = of_matrix(matrix, problem.populations[0])
    data: dict[str, Any] = {
        "heat": heat.json() | NAMES,
        "errors": error_chart(problem, matrix, heat).json(),
        "quotients": quotient_chart(problem, matrix).json(),
    }
    body = (
        _header(found, subject),
        _claim(found),
        _assumptions(found),
        section("matrix", "The noise matrix", _matrix_words(matrix), _heat(heat, matrix)),
        section("error", "How far the published number is off", *error_section(found, data)),
        section("quotient", "What each published number gives away", *quotient_section(problem, data)),
        single_worlds(problem, matrix),
        _deploy(found, name),
    )
    return document(f"{subject} · optdp", body, data)


def certified(found: Verified) -> Fraction:
    """The epsilon that was recomputed, but not beyond the one wanted."""
    assert found.certificate.epsilon is not None
    return min(found.certificate.epsilon, found.problem.epsilon)


def _text(value: object) -> str:
    return value.strip()[:200] if isinstance(value, str) else ""


def _header(found: Verified, subject: str) -> Html:
    problem, certificate = found.problem, found.certificate
    eps, ordinary = certified(found), certificate.ordinary_epsilon
    notes = _text(found.artifact.problem.get("notes")) or None
    tail = "none with these tails" if problem.tail == "geometric" else "no mechanism"
    bound = found.artifact.claim.get("lower_bound") if found.bound_proved else None
    best = None
    if bound is not None and problem.objective == "mae":
        best = f" Proved: {tail} is below {at_least(Fraction(bound))}."
    lead = (
        f"Publishes one number about {headcount(problem.populations[0])}, each of whom contributes a whole number from "
        f"0 to {problem.largest}: their sum, with as little noise as privacy allows. All figures on this page were "
        "recomputed from the artifact."
    )
    tiles = (
        tile(epsilon(eps), "epsilon under the prior", "Certified: what is promised under the assumption in the box."),
        tile(f"× {odds_factor(eps)}", "odds factor", "The most that any published number changes odds about somebody."),
        tile(
            at_most(certificate.mae), "mean error",
            f"{less(certificate.mae, problem.cap)}, which has {at_most(problem.cap)}.{best or ''}",
        ),
        tile(
            epsilon(ordinary), "ordinary epsilon",
            "Nothing is promised without the assumption." if ordinary is None else "Holds whatever anybody knows.",
        ),
    )  # fmt: skip
    lead_parts: Child = [lead, el("em", f" {notes}") if notes else None]
    return header("Privacy report", subject, lead_parts, tiles, digest_line("Artifact, SHA-256", found.artifact.sha256))


def _claim(found: Verified) -> Html:
    problem, ordinary = found.problem, found.certificate.ordinary_epsilon
    eps = certified(found)
    several = len(problem.populations) > 1
    known = (
        f"one of the {len(problem.populations)} priors in the box below" if several else "the prior in the box below"
    )
    return section(
        "claim",
        "What is promised",
        words.claim("number", known, eps, problem.largest, problem.adjacency == "unit"),
        paragraphs(words.without_assumption(ordinary, eps, "this mechanism")),
        box(
            "What is not promised",
            words.not_promised(ordinary, eps, problem.largest, problem.populations[0].spec["kind"] != "others"),
            kind="box limits",
        ),
    )


def _assumptions(found: Verified) -> Html:
    problem = found.problem
    parts: list[Child] = []
    for i, prior in enumerate(problem.populations):
        if len(problem.populations) > 1:
            weight = problem.weights[i]
            share = f", weighs {float(weight):.4g} in the mean error" if weight else ""
            parts.append(el("h4", f"Prior {i + 1}{share}"))
        parts.append(described(prior))
    if len(problem.populations) > 1:
        parts.append(paragraphs("The promise holds under each of these priors. Nothing is promised between them."))
    parts.append(listed(*_terms(found)))
    return section(
        "assumptions",
        "What it rests on",
        box("The assumption: the prior", *parts, kind="box prior", name="prior"),
    )


def _terms(found: Verified) -> list[str]:
    problem, ordinary = found.problem, found.certificate.ordinary_epsilon
    one = "each step of one between two contributions of a person is protected at epsilon divided by D"
    steps = (
        "Neighbours: the same people, of whom one contributes differently."
        if problem.largest == 1
        else f"Neighbours: the same people, of whom one contributes differently; {one}, D = {problem.largest}."
        if problem.adjacency == "unit"
        else "Neighbours: the same people, of whom one contributes differently, by however much."
    )
    fallback = problem.fallback_epsilon
    return [
        f"Contributions: whole numbers from 0 to {problem.largest} for each person.",
        steps,
        "Ordinary epsilon (no assumption): "
        + ("there is none, it is infinite." if ordinary is None else f"{epsilon(ordinary)}.")
        + (f" At most {epsilon(fallback)} was asked for." if fallback is not None else ""),
        "No input is served worse than by geometric noise."
        if found.certificate.never_worse
        else f"Some inputs are served worse than by geometric noise: a mean error of up to "
        f"{at_most(found.certificate.worst_error)}.",
        "The prior stands in the artifact and on this page: it must not itself be a secret.",
    ]


# ---------------------------------------------------------------------- the matrix


def _matrix_words(matrix: NoiseMatrix) -> Html:
    first, last = matrix.inputs
    low, high = matrix.outputs
    said = (
        f"Each row is a true sum and says how likely each number is to be published for it. The table has rows for "
        f"{first:,} to {last:,} and outputs {low:,} to {high:,}, as integers over a common denominator."
    )
    if matrix.q is not None:
        said += " Outputs outside of these follow geometric noise."
    if matrix.outside == "geometric" and (first, last) != (0, matrix.last):
        said += " Sums that have no row get plain geometric noise."
    elif matrix.outside == "clamp" and (first, last) != (0, matrix.last):
        said += " Sums that have no row are served by the nearest row."
    return paragraphs(said)


def _heat(heat: Heat, matrix: NoiseMatrix) -> Html:
    return chart("heatmap", "heat", "heat", "The noise matrix as a heat map", caption_of(heat, matrix.last))


# ---------------------------------------------------------------------- deployment


def _deploy(found: Verified, name: str) -> Html:
    file = shlex.quote(name)
    value = found.problem.populations[0].total.mode
    return section(
        "deploy",
        "How to deploy it",
        paragraphs(
            "Check the file, compare its digest with the one above, and draw from it in the language of your system:"
        ),
        commands(
            f"optdp verify {file}",
            f"optdp export {file} --to python --out sampler/    # or c, js, sql",
            f"optdp sample {file} --input {value}    # one draw, on the command line",
            f"optdp audit {file} --samples 1000000    # tests a sampler from outside",
        ),
        box(
            "One release",
            paragraphs(
                "Draw once for one set of data, publish that number, and keep to it. A second draw of the same sum is "
                "a second release, and so is a seeded or repeatable draw: whoever knows the seed takes the noise off."
            ),
            kind="box rule",
        ),
        paragraphs("This page is about the artifact with this digest and no other:"),
        digest_line("SHA-256", found.artifact.sha256),
        paragraphs("The digest tells accidents from intact files. It does not say who made a file."),
    )
