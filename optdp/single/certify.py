"""The certificate: what a noise matrix reveals and what it costs, recomputed from its integers in balls.

Nothing here is copied from a solver. Epsilons are rounded up, lower bounds down.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb

from optdp.errors import CertificateError
from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.matrix import NoiseMatrix, Row
from optdp.numbers.exact import ball, figure, log_upper, precision, show, upper_fraction
from optdp.numbers.pmf import Pmf
from optdp.objects import Public
from optdp.people.observer import Observer
from optdp.people.population import Population
from optdp.single import added
from optdp.single.added import tail_error as _series
from optdp.single.laws import Laws, Shape, larger_quotient
from optdp.single.over_time import OverTime
from optdp.single.problem import SingleLTE
from optdp.single.watch import epsilons as against
from optdp.work.account import paced, spend

LIMITS = "change by at most a factor of e^epsilon"
EXPLANATION = (
    "epsilon limits what one release can teach about any person to someone whose knowledge of everyone else is exactly "
    f"the stated prior: their odds between any two possible contributions of that person {LIMITS}. It is no promise "
    "against someone who knows more about the others, nor for a second release about the same people."
)
"""What goes with every epsilon under a prior."""
ADDED = (
    "Because the noise is the same for every input, epsilon also holds against someone who knows less: under any prior "
    "for which the sum of the others is distributed as stated, plus something independent."
)
"""What else holds for noise that is added."""
INDEPENDENT = "It assumes that people are independent of each other, and covers one release."


def meaning(problem: SingleLTE) -> str:
    """What the epsilon of a problem means, in a few sentences."""
    if problem.form == "additive":
        return f"{EXPLANATION} {ADDED}"
    if problem.observers == (Observer(),):
        return EXPLANATION
    against = [
        f"{show(problem.epsilon_of(i))} against someone who knows {one.knows}"
        for i, one in enumerate(problem.observers)
    ]
    promise = (
        "epsilon limits what one release can teach about any person: the odds between any two possible contributions "
        f"of that person {LIMITS}. epsilon is {'; '.join(against)}."
    )
    if all(one.known == "all" for one in problem.observers):
        return f"{promise} This is ordinary differential privacy: nothing is assumed about anyone."
    return f"{promise} It holds for all probabilities of the others within the stated limits. {INDEPENDENT}"


@dataclass(frozen=True)
class Certificate(Public):
    """What is proved about one noise matrix.

    Epsilons and errors are upper bounds, computed from the table's integers in ball arithmetic. An epsilon of None is
    infinite: some output distinguishes two secrets with certainty.

    Parameters
    ----------
    epsilon : Fraction or None
        Privacy under the prior, or against the first observer, as the problem's adjacency defines it.
    ordinary_epsilon : Fraction or None
        Ordinary differential privacy, which assumes nothing about anyone.
    mae, mse : Fraction
        Mean absolute and mean squared error under the prior.
    worst_error : Fraction
        The largest mean absolute error of any input.
    never_worse : bool
        Whether no input has a larger mean absolute error than under geometric noise.
    observed : tuple
        The epsilon against each observer of the problem, if it names any.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, solve
    >>> certificate = solve(SingleLTE(Population.binomial(10, "0.1"), epsilon=1)).certificate
    >>> certificate.epsilon <= 1, certificate.ordinary_epsilon, certificate.never_worse
    (True, None, True)
    """

    epsilon: Fraction | None
    ordinary_epsilon: Fraction | None
    mae: Fraction
    mse: Fraction
    worst_error: Fraction
    never_worse: bool
    observed: tuple[Fraction | None, ...] = field(default=(), repr=False)
    none = "infinite"

    def check(self, problem: SingleLTE) -> None:
        """Raise unless everything that the problem asks for is proved."""
        named = bool(self.observed)
        for observer, epsilon in enumerate(self.observed or (self.epsilon,)):
            wanted = problem.epsilon_of(observer)
            if epsilon is None or figure(epsilon) > wanted:
                found = "infinite" if epsilon is None else f"{float(epsilon):.12g}"
                name = f"epsilon against observer {observer + 1}" if named else "epsilon under the prior"
                raise CertificateError(f"{name} must be at most {float(wanted):.12g}. Found {found}.")
        asked = problem.fallback_epsilon
        if asked is not None and (self.ordinary_epsilon is None or figure(self.ordinary_epsilon) > asked):
            found = "infinite" if self.ordinary_epsilon is None else f"{float(self.ordinary_epsilon):.12g}"
            raise CertificateError(
                f"the ordinary epsilon must be at most fallback_epsilon = {float(asked):.12g}. Found {found}."
            )
        OverTime.of(problem, self.ordinary_epsilon)  # raises unless all releases together keep the total
        if problem.never_worse and not self.never_worse:
            raise CertificateError(
                f"no input may have a larger mean absolute error than geometric noise, {float(problem.cap):.12g}. "
                f"Found {float(self.worst_error):.12g}."
            )


def certify(
    problem: SingleLTE, matrix: NoiseMatrix | AddedNoise, progress: Callable[[str], None] = lambda _: None
) -> Certificate:
    """Recompute every figure of `matrix` under the problem's prior and adjacency, from its integers alone.

    Parameters
    ----------
    problem : SingleLTE
        Who is counted, and what is asked for.
    matrix : NoiseMatrix or AddedNoise
        The table or the noise, wherever it comes from.
    progress : callable, optional
        Is told how far it is.

    Returns
    -------
    Certificate
        Proved upper bounds; `certificate.check(problem)` raises unless they keep what the problem asks for.

    Examples
    --------
    >>> from optdp import Population, SingleLTE, certify, solve
    >>> problem = SingleLTE(Population.binomial(10, "0.1"), epsilon=1)
    >>> matrix = solve(problem).mechanism
    >>> certify(problem, matrix).check(problem)
    >>> certify(SingleLTE(Population.binomial(10, "0.2"), epsilon=1), matrix).epsilon > 8  # another prior
    True
    """
    with precision():
        if isinstance(matrix, AddedNoise):
            return _certify_added(problem, matrix, progress)
        shape = Shape.of(matrix)
        ordinary = ordinary_epsilon(problem, matrix)
        epsilons = _observed(problem, matrix, ordinary, progress)
        epsilon, seen = epsilons[0], epsilons if problem.observers != (Observer(),) else ()
        return Certificate(epsilon, ordinary, *_errors(problem, matrix, shape), tuple(seen))


def observed(problem: SingleLTE, matrix: NoiseMatrix) -> list[Fraction | None]:
    """The epsilon against each observer alone, whatever the outputs are called. To be called within `precision()`."""
    return _observed(problem, matrix, ordinary_epsilon(problem, matrix), lambda _: None)


def _certify_added(problem: SingleLTE, noise: AddedNoise, progress: Callable[[str], None]) -> Certificate:
    mae, mse = (upper_fraction(added.error(noise, power)) for power in (1, 2))
    never_worse = mae < problem.cap or (noise.reach == 0 and noise.q == problem.q)
    epsilon = added.epsilon(problem, noise, progress)
    return Certificate(epsilon, added.ordinary(problem, noise), mae, mse, mae, never_worse)


def _observed(
    problem: SingleLTE, matrix: NoiseMatrix, ordinary: Fraction | None, progress: Callable[[str], None]
) -> list[Fraction | None]:
    """The epsilon against each observer."""
    if problem.watched:
        return against(problem, matrix, ordinary, progress)
    exact = any(one.exact for one in problem.observers)
    under = epsilon_of(matrix, Laws.build(problem, Shape.of(matrix)), progress) if exact else None
    return [under if one.exact else ordinary for one in problem.observers]


def epsilon_under(
    problem: SingleLTE, matrix: NoiseMatrix | AddedNoise, populations: Population | Sequence[Population]
) -> Fraction | None:
    """The real epsilon of `matrix` if the world is one of `populations`, not the problem's prior (None: infinite)."""
    others = (populations,) if isinstance(populations, Population) else tuple(populations)
    for prior in others:
        if prior.last > matrix.last:
            raise CertificateError(
                f"The matrix serves inputs 0..{matrix.last}. Found a population whose sum reaches {prior.last}."
            )
    with precision():
        if isinstance(matrix, AddedNoise):
            return added.epsilon(problem.changed(population=others, weights=None), matrix)
        laws = Laws.build(problem, Shape.of(matrix), others)
        return epsilon_of(matrix, laws)


def epsilon_of(matrix: NoiseMatrix, laws: Laws, progress: Callable[[str], None] = lambda _: None) -> Fraction | None:
    """The largest log-quotient over every step and every output; with unit steps times `D`."""
    worst: dict[Fraction, Fraction] = {step.epsilon: Fraction(1) for step in laws.steps}
    columns = list(laws.columns(matrix.rows, matrix.denominator, progress).values())
    table = paced(columns, "certifying outputs", progress)
    for column in itertools.chain(laws.tail_columns(), table):
        spend(1.2 * len(laws.steps), "quotients of outputs")
        for step in laws.steps:
            one, other = column[step.one], column[step.other]
            if one == 0 and other == 0:
                continue
            if not (one > 0 and other > 0):
                return None
            ratio = larger_quotient(one, other)
            bound = worst[step.epsilon]
            if not ratio < ball(bound):
                worst[step.epsilon] = max(bound, upper_fraction(ratio))
    return max((log_upper(ratio) * laws.factor for ratio in worst.values()), default=Fraction(0))


def ordinary_epsilon(problem: SingleLTE, matrix: NoiseMatrix) -> Fraction | None:
    """The largest log-ratio of `Pr[s|x]` and `Pr[s|x']` over outputs and adjacent inputs; with unit steps times `D`."""
    reach = problem.largest if problem.adjacency == "all" else 1
    factor = 1 if problem.adjacency == "all" else problem.largest
    worst = log_upper(1 / matrix.q) * reach if matrix.q is not None else Fraction(0)
    for _, ratio in row_ratios(matrix, reach):
        if ratio is None:
            return None
        worst = max(worst, log_upper(ratio))
    return worst * factor


def near_rows(matrix: NoiseMatrix, reach: int) -> range:
    """The inputs that have a row, or are within `reach` of one that has."""
    first, last = matrix.inputs
    return range(max(first - reach, 0), min(last + reach, matrix.last) + 1)


def row_ratios(matrix: NoiseMatrix, reach: int) -> Iterator[tuple[int, Fraction | None]]:
    """The distance of any two inputs at most `reach` apart that are near the rows, and their `_row_ratio`."""
    previous: deque[tuple[int, dict[int, int] | None]] = deque(maxlen=reach)
    for x in near_rows(matrix, reach):
        row = matrix.row(x)
        table = None if row is None else dict(row)
        each = 25 + len(row or ()) * (0.7 + matrix.denominator.bit_length() / 1000)
        spend(len(previous) * each, "quotients of rows")
        for other, before in previous:
            yield x - other, _row_ratio(matrix, (other, before), (x, table))
        previous.append((x, table))


def _row_ratio(
    matrix: NoiseMatrix,
    one: tuple[int, dict[int, int] | None],
    other: tuple[int, dict[int, int] | None],
) -> Fraction | None:
    """An upper bound of the largest quotient of two rows in either direction; None if it is infinite."""
    (x, row), (y, second) = one, other
    if row is None and second is None:
        return Fraction(1)  # both plain geometric: the tail's ratio covers them
    if row is not None and second is not None:
        if row.keys() != second.keys():
            return None
        up = max(-((-weight << 128) // second[s]) for s, weight in row.items())
        down = max(-((-second[s] << 128) // weight) for s, weight in row.items())
        quotient = matrix.inside_mass(x) / matrix.inside_mass(y)
        scale = arb(2) ** -128
        return max(upper_fraction(quotient * up * scale), upper_fraction(down * scale / quotient))
    low, high = matrix.outputs
    table = row if row is not None else second
    assert table is not None
    if len(table) != high - low + 1:
        return None
    spend(12 * len(table), "quotients of rows")
    inner, outer = (x, y) if row is not None else (y, x)
    mass, worst = matrix.inside_mass(inner) / matrix.denominator, Fraction(1)
    for s, weight in table.items():
        worst = max(worst, upper_fraction(larger_quotient(mass * weight, matrix.probability(outer, s))))
    return worst


# ---------------------------------------------------------------------- errors


def mixed_prior(problem: SingleLTE, first: int, last: int) -> list[arb]:
    """The prior of the objective on `first..last`."""
    total = [arb(0)] * (last - first + 1)
    for weight, prior in zip(problem.weights, problem.populations, strict=True):
        if weight:
            spend(last - first + 1, "a mixed prior")
            total = [a + ball(weight) * b for a, b in zip(total, prior.total.balls(first, last), strict=True)]
    return total


def row_errors(matrix: NoiseMatrix, power: int = 1, shape: Shape | None = None) -> list[arb]:
    """The mean of `|s - x|^power` for each input that has a row (A, Fig. 4), tails included."""
    shape = Shape.of(matrix) if shape is None else shape
    entries, bits = sum(map(len, matrix.rows)), matrix.denominator.bit_length()
    spend(entries * (0.3 + bits / 10_000) + len(matrix.rows) * (2 if matrix.q is None else 20), "errors of inputs")
    errors = []
    for x, (row, mass) in enumerate(zip(matrix.rows, shape.masses, strict=True), start=matrix.inputs[0]):
        inside = sum(weight * abs(s - x) ** power for s, weight in row)
        errors.append(mass * inside / matrix.denominator + tail_error(shape, x, power))
    return errors


def tail_error(shape: Shape, x: int, power: int = 1) -> arb:
    """`sum over s outside the outputs of (1-q)/(1+q) q^|s-x| |s-x|^power`."""
    if shape.q is None:
        return arb(0)
    q, (low, high) = shape.blank.ratio, shape.outputs
    if low <= x <= high:
        return _series(q, x - low + 1, power) + _series(q, high - x + 1, power)
    near, far = (low - x, high - x + 1) if x < low else (x - high, x - low + 1)
    return 2 * _series(q, 1, power) - _series(q, near, power) + _series(q, far, power)


def _errors(problem: SingleLTE, matrix: NoiseMatrix, shape: Shape) -> tuple[Fraction, Fraction, Fraction, bool]:
    first, last = matrix.inputs
    absolute, squared = row_errors(matrix, 1, shape), row_errors(matrix, 2, shape)
    prior = mixed_prior(problem, first, last)
    mae = sum((a * b for a, b in zip(prior, absolute, strict=True)), arb(0))
    mse = sum((a * b for a, b in zip(prior, squared, strict=True)), arb(0))
    worst = max(upper_fraction(error) for error in absolute)
    cap = ball(problem.cap)
    if problem.method == "geometric":
        cap *= 1 + arb(2) ** -30  # clamped geometric noise meets its own error but for the rounding of its table
    same = matrix.q == problem.q
    unchanged = same and matrix.outputs[0] == matrix.outputs[1]  # a table of one output draws what it was drawn for
    never_worse = unchanged or all(error < cap for error in absolute)
    whole = (first, last) == (0, matrix.last)
    if matrix.outside == "geometric" and not whole:
        q, missing = matrix.ratio, arb(1) - sum(prior, arb(0))
        mae += missing * 2 * _series(q, 1, 1)
        mse += missing * 2 * _series(q, 1, 2)
        worst = max(worst, upper_fraction(2 * _series(q, 1, 1)))
        never_worse = never_worse and same
    elif not whole:
        for span in ((0, first - 1), (last + 1, matrix.last)):
            if span[0] <= span[1]:
                mae, mse, worst = _clamped_errors(problem, matrix, span, mae, mse, worst)
        never_worse = never_worse and worst < problem.cap
    return upper_fraction(mae), upper_fraction(mse), worst, never_worse


def _distances(row: Row) -> Callable[[int], tuple[int, int]]:
    """The sums of `weight |s - x|` and `weight (s - x)^2` over a row, as functions of `x` that do not walk along it."""
    outputs = [s for s, _ in row]
    mass = [0, *itertools.accumulate(weight for _, weight in row)]
    first = [0, *itertools.accumulate(weight * s for s, weight in row)]
    second = sum(weight * s * s for s, weight in row)

    def away(x: int) -> tuple[int, int]:
        k = bisect_left(outputs, x)
        near = x * (2 * mass[k] - mass[-1]) + first[-1] - 2 * first[k]
        return near, second - 2 * x * first[-1] + x * x * mass[-1]

    return away


def _mass_beyond(problem: SingleLTE, edge: int, upwards: bool) -> arb:
    laws: list[tuple[Fraction, Pmf]] = [
        (weight, prior.total) for weight, prior in zip(problem.weights, problem.populations, strict=True) if weight
    ]
    return sum((ball(weight) * law.geometric_sum(edge, arb(1), upwards) for weight, law in laws), arb(0))


def _clamped_errors(
    problem: SingleLTE, matrix: NoiseMatrix, span: tuple[int, int], mae: arb, mse: arb, worst: Fraction
) -> tuple[arb, arb, Fraction]:
    """Add the errors of inputs that are served by the row at the table's edge.

    Of far inputs only the farthest is looked at, which has the largest error; in the mean all are as far from every
    output as can be.
    """
    low, high = span
    upwards = low > matrix.inputs[1]
    explicit = (low, min(high, low + 20_000)) if upwards else (max(low, high - 20_000), high)
    spend((explicit[1] - explicit[0] + 1) * 5, "errors of inputs without a row")
    away = _distances(matrix.row(explicit[0]) or ())
    prior = mixed_prior(problem, *explicit)
    for x, chance in zip(range(explicit[0], explicit[1] + 1), prior, strict=True):
        near, square = away(x)
        mae, mse = mae + chance * near / matrix.denominator, mse + chance * square / matrix.denominator
    for end in span:  # the error is convex in the input
        worst = max(worst, Fraction(away(end)[0], matrix.denominator))
    if explicit != span:
        far = explicit[1] if upwards else explicit[0]
        missing = _mass_beyond(problem, far, upwards)
        reach = max(matrix.outputs[1], matrix.last) - min(matrix.outputs[0], 0)
        mae, mse = mae + missing * reach, mse + missing * reach**2
    return mae, mse, worst
