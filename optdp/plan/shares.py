"""Section VI without a linear program: Algorithms 3 to 5 of paper A, and its search over shifts (VI-D).

A party with inputs `0..c` starts from "contract by `A`, then add a share of noise", `r(x, s) = sum over y of A(x, y)
SGDL(s - y)`, and *exchanges* weight between three rows in two neighbouring columns so that every row sum and every law
of the output given a secret stays. With `psi` the law of the input, `psi0` that given a contribution of 0, and inputs
`x1 < x3 < x2`, the change `r(x_k, s1) += t D_k, r(x_k, s2) -= t D_k` keeps them if (A, appendix B)

    D_1 = 1,   D_2 = (psi(x3) psi0(x1) - psi0(x3) psi(x1)) / (psi(x2) psi0(x3) - psi0(x2) psi(x3)),
    D_3 = -(psi(x1) D_1 + psi(x2) D_2) / psi(x3)

The middle input `x3` comes nearer to the truth; the outer ones break even over a mirrored pair of exchanges.

To the letter, Algorithm 5 returns a matrix of zeros; docs/papers.md (A, section VI) lists the slips and their reading
here. One flaw no reading mends: it resets row `x` after other rows have exchanged weight with it, so that the laws of
the output, which all of privacy rests on, are off by 8% to 16%. So only the contraction is taken from it; the exchanges
are made anew from that contraction's base kernel, which keeps the laws (`exchange_to_diagonal`), and the result is
certified like any other. A shift below 0 is read as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from optdp.errors import ProblemError
from optdp.numbers.ordered import Array, product, total
from optdp.plan.contraction import DENOMINATOR, rounded, settled
from optdp.plan.parties import Entity, Integers

PASSES = 200
"""Most passes of exchanges."""
GAIN = 1e-6
"""A pass, or a shift, that lowers the error by a smaller share than this does not count."""


def algorithm_3(entity: Entity, x: int, shift: float, alpha: float, contraction: Array, table: Array) -> None:
    """Set row `x` to "move by `alpha shift`, rounded at random, then add noise", in place."""
    move = alpha * shift
    low = int(np.floor(move + 1e-9))
    below = min(low - move, 0.0)
    places = np.array([x + low, min(x + low + 1, entity.last)])
    contraction[x] = 0.0
    np.add.at(contraction[x], places, [1 + below, -below])
    noise = entity.kernel(places, np.arange(entity.last + 1))
    table[x] = (1 + below) * noise[0] - below * noise[1]


def algorithm_4(entity: Entity, x: int, contraction: Array, table: Array) -> bool:
    """Whether row `x` satisfies Eq. (8): a mean absolute error of at most that of its share of noise."""
    places, half = np.arange(entity.last + 1), entity.half
    own = float(product(np.abs(np.arange(-half, half + 1)), entity.chances))
    away = np.abs(places - x)
    moves = entity.noisy_cost()(places - x) - product(entity.kernel(places, places), away)
    error = float(product(table[x], away) + product(contraction[x], moves))
    return error <= own * (1 + 1e-12)


def algorithm_5(entity: Entity, alpha: float = 1.0) -> tuple[Array, Array]:
    """Contract all inputs to the middle, then let go of a row until it satisfies Eq. (8), exchanging on the way.

    A contraction and a table on the inputs and outputs `0..c`, which may be neither.
    """
    c = _symmetric(entity)
    middle = c // 2
    contraction, table = np.zeros((c + 1, c + 1)), np.zeros((c + 1, c + 1))

    def update(x: int, shift: float) -> None:
        algorithm_3(entity, x, shift, alpha, contraction, table)
        contraction[c - x], table[c - x] = contraction[x, ::-1].copy(), table[x, ::-1].copy()

    for x in range(middle + 1):
        update(x, (middle - x) / alpha)
    for shift in range(int(middle / alpha) + 1):
        for x in range(middle + 1):
            if not algorithm_4(entity, x, contraction, table):
                update(x, max((middle - x) / alpha - shift, 0.0))
                exchange(entity, table, x)
    return contraction, table


def exchange(entity: Entity, table: Array, x: int) -> float:
    """The exchanges of Algorithm 5 that bring row `x` and its mirror image nearer to the truth; what `x` gains."""
    c, gain = entity.last, 0.0
    for s in range(x):
        left, right = (x - s - 1, x - s), (c - x + s + 1, c - x + s)
        for y in range(left[0]):
            one, other = _increments(entity, y, c - y, x), _increments(entity, c - y, y, c - x)
            if one is None or other is None:
                continue
            rows, mirror = (y, c - y, x), (c - y, y, c - x)
            share = 0.5 if 2 * x == c else 1.0  # then both draw on the same cells
            size, back = share * _most(table, rows, left, one), share * _most(table, mirror, right, other)
            if other[1] > 0:
                back = min(back, size * one[0] / other[1])  # input y gains `one[0]` and loses `other[1]`
            if one[1] > 0:
                size = min(size, back * other[0] / one[1])  # and c - y the other way round
            if other[1] > 0:
                back = min(back, size * one[0] / other[1])
            for where, columns, change, amount in ((rows, left, one, size), (mirror, right, other, back)):
                for row, value in zip(where, change, strict=True):
                    table[row, columns[0]] += value * amount
                    table[row, columns[1]] -= value * amount
            gain -= one[2] * size
    np.maximum(table, 0.0, out=table)
    return gain


def exchange_to_diagonal(entity: Entity, contraction: Array) -> Array:
    """All exchanges of Algorithm 5 from the base kernel of a contraction, in passes, until they gain too little."""
    c = _symmetric(entity)
    places = np.arange(c + 1)
    table = product(contraction, entity.kernel(places, places))
    distance = np.abs(places[None, :] - places[:, None])
    error = float(product(entity.prior, total(table * distance, axis=1)))
    for _ in range(PASSES):
        for x in range(c // 2 + 1):
            exchange(entity, table, x)
        before, error = error, float(product(entity.prior, total(table * distance, axis=1)))
        if error > before * (1 - GAIN):
            break
    return table


def _symmetric(entity: Entity) -> int:
    """`c`, if the entity is one that Algorithm 5 speaks of."""
    if len(entity.laws) != 2 or entity.factor != 1 or entity.power != 1:
        raise ProblemError(
            "Algorithm 5 is for one kind of people with contributions 0 and 1, a plain sum and the mean absolute "
            'error. Found another problem. Use contraction = "optimal".'
        )
    return entity.last


def _increments(entity: Entity, x1: int, x2: int, x3: int) -> tuple[float, float, float] | None:
    """`D_1, D_2, D_3`; None if there are none with two rows gaining and one losing."""
    w, v = entity.prior, entity.laws[0]
    below = w[x2] * v[x3] - v[x2] * w[x3]
    if below == 0 or w[x3] == 0:
        return None
    second = float((w[x3] * v[x1] - v[x3] * w[x1]) / below)
    third = -float((w[x1] + second * w[x2]) / w[x3])
    return (1.0, second, third) if second >= 0 and np.isfinite(third) else None


def _most(
    table: Array, rows: tuple[int, int, int], columns: tuple[int, int], change: tuple[float, float, float]
) -> float:
    """The largest multiple of `change` that leaves probabilities in all six places."""
    most = np.inf
    for row, value in zip(rows, change, strict=True):
        into, out = (columns[0], columns[1]) if value > 0 else (columns[1], columns[0])
        if value != 0:
            most = min(most, table[row, out] / abs(value), (1 - table[row, into]) / abs(value))
    return max(float(most), 0.0)


def search_shifts(
    entity: Entity,
    error: Callable[[Array], float],
    step: Fraction = Fraction(1, 4),
    progress: Callable[[str], None] = lambda _: None,
) -> Array:
    """The greedy search of VI-D: move inputs towards the mode by `step`, the least likely first, while `error` falls.

    `error` re-optimises the coupling for a contraction. The paper moves one input at a time; the input beyond it would
    then be further away from it than it was, which is not private. So everything beyond an input moves along with it:
    a shift shortens one gap between neighbours, and no gap is shorter than 0.
    """
    places = [Fraction(x) for x in range(entity.last + 1)]
    likely: Integers = entity.core(1e-4)
    order = sorted((int(x) for x in likely if x != entity.mode), key=lambda x: entity.prior[x])
    best, improved, turn = error(_table(places, entity.mode)), True, 0
    while improved:
        improved, turn = False, turn + 1
        for x in order:
            trial = _shifted(places, x, entity.mode, step)
            if trial is None:
                continue
            found = error(_table(trial, entity.mode))
            if found < best * (1 - GAIN):
                places, best, improved = trial, found, True
        progress(f"shifts, round {turn}: own error {best:.6g}")
    return rounded(places)


def _shifted(places: list[Fraction], x: int, mode: int, step: Fraction) -> list[Fraction] | None:
    """`places` with `x` and all beyond it moved towards the mode; None if that would pass a neighbour."""
    inner = x + 1 if x < mode else x - 1
    if abs(places[inner] - places[x]) < step:
        return None
    if x < mode:
        return [place + step if z <= x else place for z, place in enumerate(places)]
    return [place - step if z >= x else place for z, place in enumerate(places)]


def _table(places: list[Fraction], mode: int) -> Array:
    return settled(rounded(places), mode) / DENOMINATOR
