"""The page about one entity's noise matrix."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from optdp.html import Child, Html, el
from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.matrix import NoiseMatrix
from optdp.report import page as html
from optdp.report import words
from optdp.report.variations import single_worlds
from optdp.report.words import (
    at_least,
    at_most,
    caption_of,
    certified,
    epsilon,
    headcount,
    less,
    odds_factor,
    priors,
)
from optdp.single import over_time
from optdp.single.alternatives import Alternatives
from optdp.single.certify import meaning
from optdp.single.heat import of_matrix
from optdp.single.pictures import added_quotient_chart, error_chart, noise_chart, quotient_chart
from optdp.single.problem import SingleLTE
from optdp.single.verify import Verified

NAMES = {
    "names": ("input", "output", "probability"),
    "across": "published number (output)",
    "down": "true sum (input)",
    "low": -6,
}
"""What the heat map calls its rows, columns and values, and the power of ten where its colours begin."""

ADDED = (
    "The noise has the same distribution for every true sum. So the mean error is the same for all of them, and "
    "epsilon also holds against someone who knows less about the others than the prior says. Its tails are geometric."
)

COMPARED = (
    "Best ordinary DP is the most accurate mechanism that promises the same epsilon whatever anyone knows. Without "
    "data is the error of publishing the prior's median without looking at the data. These two are for comparison "
    "only: the artifact does not claim them."
)


def page(found: Verified, name: str, title: str = "") -> bytes:
    """The page about a verified artifact whose file is called `name`."""
    problem, matrix = found.problem, found.matrix
    stated = title or _text(found.artifact.problem.get("title"))
    subject = stated or f"A private sum over {headcount(problem.populations[0])}"
    data, about = _added(problem, matrix) if isinstance(matrix, AddedNoise) else _table(problem, matrix)
    body = (
        _header(found, subject),
        _claim(found),
        _assumptions(found),
        about,
        html.section("error", "How far the published number is off", *_error_section(found, data)),
        html.section("quotient", "What each published number reveals", *_quotient_section(problem, data)),
        single_worlds(problem, matrix),
        _deploy(found, name),
    )
    return html.document(f"{subject} · optdp", body, data)


def _table(problem: SingleLTE, matrix: NoiseMatrix) -> tuple[dict[str, Any], Html]:
    """The pictures of a table, and the section that shows it."""
    heat = of_matrix(matrix, problem.populations[0])
    data: dict[str, Any] = {
        "heat": heat.json() | NAMES,
        "errors": error_chart(problem, matrix, heat).json(),
        "quotients": quotient_chart(problem, matrix).json(),
    }
    drawn = html.chart("heatmap", "heat", "heat", "The noise matrix as a heat map", caption_of(heat, matrix.last))
    return data, html.section("matrix", "The noise matrix", _matrix_words(matrix), drawn)


def _added(problem: SingleLTE, noise: AddedNoise) -> tuple[dict[str, Any], Html]:
    """The same for noise that is added: one law instead of a table."""
    data: dict[str, Any] = {
        "noise": noise_chart(noise, float(problem.q)).json(),
        "quotients": added_quotient_chart(problem, noise).json(),
    }
    drawn = _chart("noise", "The law of the noise", "Probability of the noise.", data)
    return data, html.section("matrix", "The noise", html.paragraphs(ADDED), drawn)


def _text(value: object) -> str:
    return value.strip()[:200] if isinstance(value, str) else ""


def _header(found: Verified, subject: str) -> Html:
    problem, certificate = found.problem, found.certificate
    eps, ordinary = certified(found), certificate.ordinary_epsilon
    notes = _text(found.artifact.problem.get("notes")) or None
    tail = "no mechanism with these tails" if problem.tail == "geometric" else "no mechanism"
    tail = "no added noise" if problem.form == "additive" else tail
    bound = found.artifact.claim.get("lower_bound") if found.bound_proved and problem.objective == "mae" else None
    best = "" if bound is None else f" Proved: {tail} has an error below {at_least(Fraction(bound))}."
    lead = (
        f"Publishes one number about {headcount(problem.populations[0])}, each of whom contributes a whole number from "
        f"0 to {problem.largest}: their sum, with as little noise as privacy allows. All figures on this page were "
        "recomputed from the artifact."
    )
    tiles = (
        html.tile(
            epsilon(eps), problem.promise, "Certified: promised under the assumption in the box."
        ),
        html.tile(
            f"× {odds_factor(eps)}", "odds factor", "The most by which a published number changes odds about someone."
        ),
        html.tile(
            at_most(certificate.mae), "mean error",
            f"{less(certificate.mae, problem.cap)}, which has {at_most(problem.cap)}.{best}",
        ),
        html.tile(
            epsilon(ordinary), "ordinary epsilon",
            "Nothing is promised without the assumption." if ordinary is None else "Holds whatever anyone knows.",
        ),
    )  # fmt: skip
    lead_parts: Child = [lead, el("em", f" {notes}") if notes else None]
    return html.header(
        "Privacy report", subject, lead_parts, tiles, html.digest_line("Artifact, SHA-256", found.artifact.sha256)
    )


def _claim(found: Verified) -> Html:
    problem, ordinary = found.problem, found.certificate.ordinary_epsilon
    eps = certified(found)
    several = len(problem.populations) > 1
    known = (
        f"exactly what one of the {len(problem.populations)} priors in the box below says"
        if several
        else "exactly what the box below says"
    )
    if problem.watchers:
        known = "no more than the box below allows"
    return html.section(
        "claim",
        "What is promised",
        words.claim("number", known, eps, problem.largest, problem.adjacency == "unit"),
        html.paragraphs(words.without_assumption(ordinary, eps, "this mechanism")),
        _over_time(found),
        html.box(
            "What is not promised",
            words.not_promised(ordinary, eps, problem.largest, problem.populations[0].spec["kind"] != "others"),
            kind="box limits",
        ),
    )


def _over_time(found: Verified) -> Html | None:
    """What several releases tell together, if the artifact was designed for a number of them."""
    claim = found.artifact.claim.get("over_time")
    if claim is None:
        return None
    number, together = f"{claim['releases']:,}", epsilon(Fraction(claim["epsilon"]))
    delta = over_time.brief(Fraction(claim["delta"]))
    said = (
        f"{number} numbers drawn from this table, also about the same people, together have an ordinary epsilon of "
        f"at most {together} at a delta of {delta}. This requires that the limit of {number} is fixed beforehand."
    )
    return html.box("Over time", html.paragraphs(said, over_time.meaning(found.problem, claim["releases"])))


def _assumptions(found: Verified) -> Html:
    problem = found.problem
    several = len(problem.populations) > 1
    named = [
        ((f"{i} (weighs {float(weight):.4g} in the mean error)" if weight else f"{i}") if several else "", prior)
        for i, (prior, weight) in enumerate(zip(problem.populations, problem.weights, strict=True), start=1)
    ]
    parts: list[Child] = [priors(named, "prior")]
    if len(problem.populations) > 1:
        parts.append(html.paragraphs("The promise holds under each of these priors, but not for priors between them."))
    if problem.watchers:
        about = [f"Observer {i}: {known}." for i, (_, known) in enumerate(problem.watchers, start=1)]
        parts.append(html.paragraphs(meaning(problem)))
        parts.append(html.listed(*about, "The prior above is our own belief: the mean error is measured under it."))
    box = html.box(
        "The assumption: who may know what" if problem.watchers else "The assumption: the prior",
        *parts,
        html.listed(*_terms(found)),
        kind="box prior",
        name="prior",
    )
    return html.section("assumptions", "What it rests on", box)


def _terms(found: Verified) -> list[str]:
    problem, ordinary = found.problem, found.certificate.ordinary_epsilon
    one = "each difference of one in a person's contribution is protected at epsilon divided by D"
    steps = (
        "Neighbours: the same people, one of whom contributes something else."
        if problem.largest == 1
        else f"Neighbours: the same people, one of whom contributes something else; {one}, D = {problem.largest}."
        if problem.adjacency == "unit"
        else "Neighbours: the same people, one of whom contributes something else, by whatever amount."
    )
    fallback = problem.fallback_epsilon
    return [
        f"Contributions: whole numbers from 0 to {problem.largest} for each person.",
        steps,
        "Ordinary epsilon (no assumption): "
        + ("infinite." if ordinary is None else f"{epsilon(ordinary)}.")
        + (f" At most {epsilon(fallback)} was asked for." if fallback is not None else ""),
        "No input has a larger mean error than with geometric noise."
        if found.certificate.never_worse
        else f"Some inputs have a larger mean error than with geometric noise: up to "
        f"{at_most(found.certificate.worst_error)}.",
        "The artifact and this page state the prior, so it must not itself be secret.",
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
        said += " Outputs beyond these follow geometric noise."
    if matrix.outside == "geometric" and (first, last) != (0, matrix.last):
        said += " Sums without a row get plain geometric noise."
    elif matrix.outside == "clamp" and (first, last) != (0, matrix.last):
        said += " Sums without a row use the nearest row."
    return html.paragraphs(said)


# ---------------------------------------------------------------------- errors and quotients


def _error_section(found: Verified, data: dict[str, Any]) -> Sequence[Child]:
    """The errors in words, bars and a curve."""
    problem, certificate = found.problem, found.certificate
    words = (
        "How far the published number is from the true sum on average, for each true sum, compared with geometric "
        "noise, whose error is the same for all. The shaded area is the prior: where it is high, the sum is likely."
        if "errors" in data
        else "How far the published number is from the true sum on average; it is the same for every true sum."
    )
    by_input = None
    if "errors" in data:
        by_input = _chart("errors", "Error for each true sum", "Mean absolute error by input.", data)
    alternatives = Alternatives.of(problem)
    errors = {"this mechanism": certificate.mae, "geometric noise": problem.cap}
    errors |= {name.removeprefix("MAE, "): Fraction(error) for name, error in alternatives.named("mae")}
    rows = [(name, float(error), at_most(error)) for name, error in errors.items()]
    remark = alternatives.remark(float(certificate.mae if problem.objective == "mae" else certificate.mse))
    return (
        html.paragraphs(words),
        html.bars(rows, "Mean absolute error under the prior"),
        html.warning(f"This mechanism is {remark}." if remark else ""),
        html.paragraphs(COMPARED),
        by_input,
        html.paragraphs(
            f"The worst input has a mean error of {at_most(certificate.worst_error)}. The mean squared error under the "
            f"prior is {at_most(certificate.mse)}."
        ),
    )


def _chart(name: str, label: str, caption: str, data: dict[str, Any]) -> Html:
    step = data[name]["step"]
    thinned = "" if step == 1 else f" Each point is the largest of {step} values."
    return html.chart(name, "lines", name, label, caption + thinned)


def _quotient_section(problem: SingleLTE, data: dict[str, Any]) -> Sequence[Child]:
    """The quotients in words and a chart."""
    said = (
        "For each number that may be published: how many times likelier it is if a person contributes one thing than "
        "if the same person contributes another. At 1 it reveals nothing. The promise is that no quotient leaves the "
        "band between the two lines."
    )
    if problem.largest > 1 and problem.adjacency == "unit":
        said += " Each curve is for contributions that differ by one; for larger differences the factors multiply."
    if len(data["quotients"]["curves"]) == 2 and data["quotients"]["curves"][0]["name"] == "largest quotient":
        said += " As there are many pairs of contributions, only the largest and smallest quotients are drawn."
    return (
        html.paragraphs(said),
        _chart("quotients", "Quotient for each output", "Quotient by output.", data),
    )


# ---------------------------------------------------------------------- deployment


def _deploy(found: Verified, name: str) -> Html:
    file = shlex.quote(name)
    value = found.problem.populations[0].total.mode
    audited = found.problem.form != "additive"
    return html.section(
        "deploy",
        "How to deploy it",
        html.paragraphs(
            "Check the file, compare its digest with the one above, and draw from it in the language of your system:"
        ),
        html.commands(
            f"optdp verify {file}",
            f"optdp export {file} --to python --out sampler/    # or c, js, sql",
            f"optdp sample {file} --input {value}    # one draw, on the command line",
            *((f"optdp audit {file} --samples 1000000    # tests a sampler from outside",) if audited else ()),
        ),
        html.one_release(
            "Draw once for each set of data, publish that number, and never draw again. A second draw of the same sum "
            "is a second release. Never use a seed: whoever knows it can remove the noise."
        ),
        html.paragraphs("This page is about the artifact with this digest and no other:"),
        html.digest_line("SHA-256", found.artifact.sha256),
        html.paragraphs("The digest reveals accidental damage. It does not say who made the file: for that, sign it."),
    )
