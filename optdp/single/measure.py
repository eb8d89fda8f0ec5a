"""Looking at any matrix: quotients, errors, the real epsilon under another prior, and the belief after a release."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from optdp.errors import ProblemError
from optdp.mechanism.matrix import NoiseMatrix
from optdp.numbers.exact import precision, show, significant
from optdp.numbers.pmf import ExactPmf
from optdp.objects import Public
from optdp.people.population import Population
from optdp.single.certify import row_errors
from optdp.single.laws import Laws, Shape
from optdp.single.problem import SingleLTE
from optdp.single.watch import worst_sights


@dataclass(frozen=True)
class Quotient(Public):
    """`Pr[s | one] / Pr[s | other]` for each output of the table (A, Remark 1, Fig. 1)."""

    one: int
    other: int
    outputs: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    """`nan` where neither secret reaches the output, `inf` where only one does."""


def quotients(
    problem: SingleLTE, matrix: NoiseMatrix, population: Population | None = None, margin: int = 0
) -> list[Quotient]:
    """The DP quotient of every pair of adjacent secrets (A, Remark 1, Fig. 1); of an observer, in the worst world.

    Parameters
    ----------
    problem : SingleLTE
        The prior and the adjacency.
    matrix : NoiseMatrix
        The table to look at.
    population : Population, optional
        Another prior than the problem's.
    margin : int
        How many outputs to add on either side of the table; there the quotients are constant (Lemma 3).

    Returns
    -------
    list of Quotient
        `values[i]` is `Pr[s | one] / Pr[s | other]` for the output `s = outputs[i]`.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, quotients, solve
    >>> problem = SingleLTE(Population.binomial(10, "0.1"), epsilon=1)
    >>> (found,) = quotients(problem, solve(problem).mechanism)
    >>> found.one, found.other, round(float(found.values.max()), 4)  # e^epsilon
    (0, 1, 2.7183)
    """
    with precision():
        sights = None
        if problem.watched and population is None and matrix.inputs == (0, problem.last):
            sights = [worst.sight for worst in worst_sights(problem, matrix).values()]
        laws = Laws.build(problem, Shape.of(matrix), None if population is None else (population,), sights)
        columns = laws.columns(matrix.rows, matrix.denominator)
        low, high = matrix.outputs
        outputs = np.arange(low - margin, high + margin + 1)
        if matrix.q is not None:
            columns |= {s: laws.geometric_column(s) for s in outputs.tolist() if not low <= s <= high}
    found = []
    for step in laws.steps:
        values = np.full(len(outputs), np.nan)
        for s, column in columns.items():
            one, other = column[step.one], column[step.other]
            if one == 0 and other == 0:
                continue
            values[s - low + margin] = float(one / other) if other > 0 else np.inf
        secrets = laws.secrets
        found.append(Quotient(secrets[step.one].contribution, secrets[step.other].contribution, outputs, values))
    return found


def errors_by_input(matrix: NoiseMatrix, power: int = 1) -> npt.NDArray[np.float64]:
    """The mean error of each input that has a row (A, Fig. 4).

    Parameters
    ----------
    matrix : NoiseMatrix
        The table to look at.
    power : int
        1 for the mean of `|s - x|`, 2 for that of its square.

    Returns
    -------
    array of float
        One error for each row.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, errors_by_input, solve
    >>> matrix = solve(SingleLTE(Population.binomial(10, "0.1"), epsilon=1)).mechanism
    >>> errors_by_input(matrix)[:3].round(2).tolist()
    [0.63, 0.26, 0.41]
    """
    with precision():
        return np.array([float(error) for error in row_errors(matrix, power)])


def posterior(population: Population, matrix: NoiseMatrix, output: int) -> Population:
    """What an observer believes after a release: the prior for a second one.

    Parameters
    ----------
    population : Population
        The prior.
    matrix : NoiseMatrix
        The mechanism.
    output : int
        What it released.

    Returns
    -------
    Population
        Of kind "conditionals", as people are no longer independent; probabilities have 60 significant digits.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, posterior, solve
    >>> prior = Population.binomial(10, "0.1")
    >>> matrix = solve(SingleLTE(prior, epsilon=1)).mechanism
    >>> posterior(prior, matrix, 2)
    Population(conditionals: sums 0..10, contributions 0..1)
    """
    if population.last > 600 or population.last > matrix.last:
        raise ProblemError(
            f"A posterior is written out for sums up to {min(600, matrix.last)}. Found {population.last}."
        )
    chance = [_probability(matrix, x, output) for x in range(population.last + 1)]

    def update(law: ExactPmf) -> list[str]:
        joint = [law.fraction(x) * weight for x, weight in enumerate(chance)]
        total = sum(joint, Fraction(0))
        if total == 0:
            raise ProblemError(f"Output {output} cannot occur under this prior for every secret. Nothing to update.")
        rounded = [significant(value / total) for value in joint]
        largest = max(range(len(rounded)), key=rounded.__getitem__)
        rounded[largest] += 1 - sum(rounded, Fraction(0))
        return [show(value) for value in rounded]

    people = [[update(_exact(law)) for law in person.conditionals] for person in population.people]
    return Population.from_conditionals(people, update(_exact(population.total)))


def _exact(law: object) -> ExactPmf:
    if not isinstance(law, ExactPmf):
        raise ProblemError("A posterior needs a population that is held exactly (at most 5000 people).")
    return law


def _probability(matrix: NoiseMatrix, x: int, s: int) -> Fraction:
    """`Pr[s|x]` as the rational number that it is."""
    row, (low, high), q = matrix.row(x), matrix.outputs, matrix.q
    if q is not None and (row is None or not low <= s <= high):
        return (1 - q) / (1 + q) * q ** abs(x - s)
    weight = Fraction(dict(row or ()).get(s, 0), matrix.denominator)
    if q is None or weight == 0:
        return weight
    inside = sum((q ** abs(x - t) for t in range(low, high + 1)), Fraction(0))
    return weight * (1 - q) / (1 + q) * inside
