"""The catalogue against explicit channels: every design built message by message, all data sets by brute force."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import k1

from optdp import Amplification, Generic, ProblemError, solve
from optdp.amplification.catalogue import (
    Hadamard,
    LocalHash,
    Piecewise,
    PlanarLaplace,
    Rappor,
    SubsetSelection,
    UnaryEncoding,
    VariationRatio,
)
from optdp.amplification.randomizers import Randomizer, Ratios, variation_cells
from tests.amplification import oracle
from tests.amplification.by_balls import FACTORS, delta, largest, log


def by_sets(messages: Sequence[object], sets: Sequence[Sequence[object]], p: Fraction) -> oracle.Channel:
    """Every input has the weight `p` on the messages of its set and 1 on the others."""
    weights = [[p if message in own else Fraction(1) for message in messages] for own in sets]
    return [[v / sum(row) for v in row] for row in weights]


def subset_selection(d: int, size: int, p: Fraction) -> oracle.Channel:
    messages = list(combinations(range(d), size))
    return by_sets(messages, [[m for m in messages if x in m] for x in range(d)], p)


def hadamard(rows: Sequence[int], size: int, p: Fraction) -> oracle.Channel:
    """Sylvester's matrix has +1 where row and column share an even number of bits."""
    return by_sets(range(size), [[y for y in range(size) if (row & y).bit_count() % 2 == 0] for row in rows], p)


def unary(bits: int, kept: Fraction, raised: Fraction) -> oracle.Channel:
    """One-hot vectors: the true bit is 1 with probability `kept`, each other with `raised`."""
    return [
        [
            math.prod(
                (chance if bit else 1 - chance for bit, chance in zip(message, chances, strict=True)), start=Fraction(1)
            )
            for message in product((0, 1), repeat=bits)
        ]
        for chances in ([kept if i == x else raised for i in range(bits)] for x in range(bits))
    ]


def piecewise(inputs: Sequence[Fraction], root: Fraction) -> oracle.Channel:
    """The mechanism's densities between the ends of all likely stretches; `root` is e^(eps0/2)."""
    reach = (root + 1) / (root - 1)
    high = (root**2 - root) / (2 * root + 2)
    stretches = [((reach + 1) / 2 * x - (reach - 1) / 2, (reach + 1) / 2 * x + (reach - 1) / 2) for x in inputs]
    ends = sorted({-reach, reach, *(end for stretch in stretches for end in stretch)})
    parts = list(pairwise(ends))
    return [[(b - a) * (high if low <= a and b <= up else high / root**2) for a, b in parts] for low, up in stretches]


def local_hash(family: Sequence[Sequence[int]], g: int, p: Fraction) -> oracle.Channel:
    """`family[h][x]` is the bucket of `x`; the message is the hash and the bucket's randomized response."""
    share = Fraction(1, len(family))
    return [
        [share * (p if h[x] == bucket else 1) / (p + g - 1) for h in family for bucket in range(g)]
        for x in range(len(family[0]))
    ]


P, ROOT = Fraction(9, 4), Fraction(3, 2)
DESIGNS: dict[str, tuple[Randomizer, Fraction, oracle.Channel, int]] = {
    "subset 3 1": (SubsetSelection(3, 1), P, subset_selection(3, 1, P), 4),
    "subset 3 2": (SubsetSelection(3, 2), P, subset_selection(3, 2, P), 4),
    "subset 4 2": (SubsetSelection(4, 2), P, subset_selection(4, 2, P), 3),
    "subset 4 3": (SubsetSelection(4, 3), P, subset_selection(4, 3, P), 3),
    "subset 5 2": (SubsetSelection(5, 2), Fraction(5), subset_selection(5, 2, Fraction(5)), 2),
    "subset 2 1": (SubsetSelection(2, 1), P, subset_selection(2, 1, P), 4),
    "hadamard 2": (Hadamard(8, 2), P, hadamard([1, 2], 8, P), 4),
    "hadamard 3": (Hadamard(8, 3), P, hadamard([1, 2, 4], 8, P), 3),
    "hadamard 3, dependent": (Hadamard(8, 3), P, hadamard([1, 2, 3], 8, P), 3),
    "hadamard 4": (Hadamard(8, 4), P, hadamard([1, 2, 3, 4], 8, P), 3),
    "hadamard 5": (Hadamard(8, 5), Fraction(4), hadamard([1, 2, 3, 4, 7], 8, Fraction(4)), 2),
    "rappor 2": (Rappor(2), ROOT**2, unary(2, ROOT / (ROOT + 1), 1 / (ROOT + 1)), 5),
    "rappor 3": (Rappor(3), ROOT**2, unary(3, ROOT / (ROOT + 1), 1 / (ROOT + 1)), 3),
    "rappor 4": (Rappor(4), Fraction(9), unary(4, Fraction(3, 4), Fraction(1, 4)), 2),
    "unary 2": (UnaryEncoding(2), P, unary(2, Fraction(1, 2), 1 / (P + 1)), 5),
    "unary 3": (UnaryEncoding(3), P, unary(3, Fraction(1, 2), 1 / (P + 1)), 3),
    "unary 4": (UnaryEncoding(4), Fraction(7), unary(4, Fraction(1, 2), Fraction(1, 8)), 2),
    "piecewise": (Piecewise(), ROOT**2, piecewise([Fraction(-1), Fraction(0), Fraction(1)], ROOT), 3),
    "piecewise, large": (
        Piecewise(),
        Fraction(16),
        piecewise([Fraction(-1), Fraction(0), Fraction(1)], Fraction(4)),
        3,
    ),
    "piecewise, more": (Piecewise(), ROOT**2, piecewise([Fraction(i, 2) for i in range(-2, 3)], ROOT), 2),
    "hash 2": (LocalHash(2, 2), P, local_hash(list(product(range(2), repeat=2)), 2, P), 4),
    "hash 3": (LocalHash(2, 3), P, local_hash(list(product(range(2), repeat=3)), 2, P), 3),
    "hash to 3": (LocalHash(3, 2), P, local_hash(list(product(range(3), repeat=2)), 3, P), 2),
    "hash to 3, three": (LocalHash(3, 3), P, local_hash(list(product(range(3), repeat=3)), 3, P), 2),
}
UNKNOWN: dict[str, Randomizer] = {"hadamard": Hadamard(8), "rappor": Rappor(), "unary": UnaryEncoding()}
UNKNOWN |= {"hash": LocalHash(2), "hash to": LocalHash(3)}
"""The same where nobody says how many values there are."""


@pytest.mark.parametrize("name", DESIGNS)
def test_designs_lie_around_the_worst_data_set(name: str) -> None:
    found, p, matrix, most = DESIGNS[name]
    eps0 = log(p)
    assert all(sum(row) == 1 for row in matrix)
    assert oracle.ratio(matrix) == p
    for n in range(2, most + 1):
        for factor in FACTORS:
            if factor >= p:
                continue
            worst = float(oracle.worst_exact(matrix, n, factor))
            upper, lower = (largest(every, n, factor) for every in (found.blankets(eps0), found.data_sets(eps0)))
            assert lower <= worst * (1 + 1e-11) + 1e-16
            assert worst * (1 - 1e-11) <= upper
            ratios = found.ratios(eps0)
            assert ratios is not None
            assert upper <= delta(variation_cells(ratios), n, factor) * (1 + 1e-11)
            assert delta(variation_cells(ratios), n, factor) <= largest(Generic().blankets(eps0), n, factor) * (
                1 + 1e-11
            )


@pytest.mark.parametrize("name", [name for name in DESIGNS if name.split(" ")[0] in UNKNOWN])
def test_bounds_for_any_number_of_values_hold_for_each(name: str) -> None:
    known, p, matrix, n = DESIGNS[name]
    found = UNKNOWN["hash to" if "to" in name else name.split(" ")[0]]
    for factor in FACTORS:
        if factor < p:
            worst = float(oracle.worst_exact(matrix, n, factor))
            lower, better = (largest(one.data_sets(log(p)), n, factor) for one in (found, known))
            assert 0 < lower <= better <= worst * (1 + 1e-11)
            assert worst * (1 - 1e-11) <= largest(known.blankets(log(p)), n, factor)
            assert largest(known.blankets(log(p)), n, factor) <= largest(found.blankets(log(p)), n, factor) * (
                1 + 1e-11
            )


@pytest.mark.parametrize(
    ("d", "n", "eps0", "epsilon"), [(2, 3, "1.5", "0.5"), (2, 5, "3", "0.2"), (3, 3, "2", "0.4"), (4, 2, "1", "0.3")]
)
@pytest.mark.parametrize("kind", [Rappor, UnaryEncoding])
def test_printed_bounds_of_encodings(
    kind: type[Rappor | UnaryEncoding], d: int, n: int, eps0: str, epsilon: str
) -> None:
    """Against every data set of the channel with rational entries on either side of the true ones, `e^eps0` a root."""
    power = Fraction(eps0) if kind is UnaryEncoding else Fraction(eps0) / 2
    truths = []
    for root in oracle.exp_enclosure(power):
        kept = Fraction(1, 2) if kind is UnaryEncoding else root / (root + 1)
        truths.append(oracle.worst(unary(d, kept, 1 / (root + 1)), n, Fraction(epsilon)))
    truth = [min(low for low, _ in truths) * (1 - 1e-12), max(high for _, high in truths) * (1 + 1e-12)]
    for found in (solve(Amplification(kind(given), eps0=eps0, n=n, epsilon=epsilon)) for given in (None, d)):
        assert found.lower is not None
        assert 0.0 < found.lower <= truth[1]
        assert found.value >= truth[0]


def test_the_lower_bound_of_two_values() -> None:
    """With two values nobody can hold a third one, with which the figure would be .141211."""
    found = [solve(Amplification(Rappor(d), eps0="1.5", n=3, epsilon="0.5")).lower for d in (None, 2, 3)]
    assert found == [pytest.approx(value, abs=1e-6) for value in (0.119121, 0.119121, 0.141211)]


@pytest.mark.parametrize("name", DESIGNS)
def test_data_sets_are_those_that_they_say(name: str) -> None:
    """Each is a divergence of the channel with all others alike."""
    found, p, matrix, most = DESIGNS[name]
    for factor in FACTORS[:3]:
        exact = [
            float(oracle.divergence(matrix, x, x2, [held] * (most - 1), factor))
            for x in range(len(matrix))
            for x2 in range(len(matrix))
            for held in range(len(matrix))
            if x != x2
        ]
        for part in found.data_sets(log(p)):
            for law in (part.first, part.second, part.others):
                assert law.sum() == pytest.approx(1.0, abs=1e-12)
            value = delta(part, most, factor)
            assert any(value == pytest.approx(number, rel=1e-10, abs=1e-15) for number in exact)


@pytest.mark.parametrize("name", DESIGNS)
def test_ratios_are_those_of_the_channel(name: str) -> None:
    found, p, matrix, _ = DESIGNS[name]
    ratios = found.ratios(log(p))
    assert ratios is not None
    beta = max(
        sum((max(a - b, Fraction(0)) for a, b in zip(one, two, strict=True)), Fraction(0))
        for one in matrix
        for two in matrix
    )
    if not isinstance(found, LocalHash):  # its ratios are those of any family, even one without collisions
        assert ratios.beta == pytest.approx(float(beta), rel=1e-12)
    assert ratios.beta >= float(beta) * (1 - 1e-14)
    assert ratios.p == pytest.approx(float(p), rel=1e-14)
    assert ratios.q >= float(oracle.ratio(matrix)) * (1 - 1e-14)


@pytest.mark.parametrize("g", [2, 3])
def test_local_hash_bounds_families_with_collisions(g: int) -> None:
    family = list(product(range(g), repeat=3))
    matrix = local_hash(family if g == 2 else family[::4], g, P)
    assert oracle.ratio(matrix) == P
    for factor in FACTORS[:3]:
        worst = float(oracle.worst_exact(matrix, 2, factor))
        assert largest(LocalHash(g).blankets(log(P)), 2, factor) >= worst * (1 - 1e-12)


def test_large_designs_do_not_overflow() -> None:
    for found in (SubsetSelection(10**6, 3000), SubsetSelection(10**9, 1), Hadamard(1 << 20), LocalHash(10**9)):
        for eps0 in (1e-3, 1.0, 20.0, 40.0):
            for part in (*found.blankets(eps0), *found.data_sets(eps0)):
                assert np.isfinite(part.values(eps0 / 2.0)).all()
                assert part.first.sum() == pytest.approx(1.0, abs=1e-9)
                assert part.others.sum() <= 1.0 + 1e-9


def test_subset_selection_counts_sets() -> None:
    """The pair's four kinds of message, by binomial coefficients."""
    d, size, eps0 = 40, 7, 1.3
    p = math.exp(eps0)
    kinds = {(i, j): math.comb(d - 2, size - i - j) for i in (0, 1) for j in (0, 1)}
    scale = 1.0 / sum(count * p**i for (i, _), count in kinds.items())
    (found,) = SubsetSelection(d, size).blankets(eps0)
    expected = sorted((count * scale * p**i, count * scale * p**j) for (i, j), count in kinds.items())
    assert np.allclose(sorted(zip(found.first, found.second, strict=True)), expected, rtol=1e-10)


@pytest.mark.parametrize("eps0", [1e-6, 1e-5, 1e-4, 1e-3, 0.05, 0.5, 1.0, 3.0, 10.0, 40.0])
def test_the_total_variation_of_planar_laplace(eps0: float) -> None:
    """By the law of the projection, `(eps0^2/pi) |x| K_1(eps0 |x|)`, of two places at distance 1."""

    def projection(x: float) -> float:
        return eps0**2 / math.pi * x * float(k1(eps0 * x)) if x > 0 else eps0 / math.pi

    truth = 2.0 * quad(projection, 0.0, 0.5, epsabs=1e-13, epsrel=1e-12)[0]
    ratios = PlanarLaplace().ratios(eps0)
    assert truth <= ratios.beta <= truth + 1e-8
    assert ratios.p == ratios.q == pytest.approx(math.exp(eps0))
    for part in PlanarLaplace().data_sets(eps0):
        assert truth - 1e-8 <= float(np.maximum(part.first - part.second, 0.0).sum()) <= truth + 1e-15


def test_the_total_variation_of_planar_laplace_in_the_plane() -> None:
    eps0 = 1.5

    def density(x: float, y: float, at: float) -> float:
        return eps0**2 / (2.0 * math.pi) * math.exp(-eps0 * math.hypot(x - at, y))

    value, _ = dblquad(
        lambda y, x: abs(density(x, y, 0.0) - density(x, y, 1.0)), 0.5, 20.0, 0.0, 20.0, epsabs=1e-6, epsrel=1e-6
    )
    assert PlanarLaplace().ratios(eps0).beta == pytest.approx(2.0 * value, abs=1e-5)


def test_planar_laplace_lies_between_its_bounds() -> None:
    for eps0 in (0.3, 2.0):
        for n in (2, 5, 30):
            for factor in FACTORS[:2]:
                upper = largest(PlanarLaplace().blankets(eps0), n, factor)
                assert largest(PlanarLaplace().data_sets(eps0), n, factor) <= upper
                assert upper <= largest(Generic().blankets(eps0), n, factor) * (1 + 1e-12)


def test_variation_ratio_takes_what_can_be() -> None:
    """The others have `max(a, b)/q` at the least, in all `(1 + beta)/q`: at most 1 if and only if q >= 1 + beta."""
    eps0 = math.log(3.0)
    for beta, q in ((0.3, 1.3), (0.3, 2.0), (0.5, 1.5), (0.1, 50.0)):
        (found,) = VariationRatio(beta, q).blankets(eps0)
        assert found.others.sum() == pytest.approx((1.0 + beta) / q, rel=1e-12)
        assert found.first.sum() == pytest.approx(1.0, rel=1e-12)
        assert float(np.maximum(found.first - found.second, 0.0).sum()) == pytest.approx(beta, rel=1e-12)
    for beta, q in ((0.3, 1.2), (0.5, 1.4), (0.2, 1.0)):
        with pytest.raises(ProblemError):
            VariationRatio(beta, q).blankets(eps0)
    with pytest.raises(ProblemError):
        VariationRatio(0.2, 1.15).blankets(math.log(1.5))
    assert VariationRatio(0.9).ratios(eps0) == Ratios(
        math.exp(eps0), (math.exp(eps0) - 1) / (math.exp(eps0) + 1), math.exp(eps0)
    )
    assert VariationRatio(0.3).data_sets(eps0) == []


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (SubsetSelection, (3, 3)),
        (SubsetSelection, (1, 1)),
        (SubsetSelection, (4, 0)),
        (SubsetSelection, (4, 1.5)),
        (Hadamard, (4,)),
        (Hadamard, (12,)),
        (Hadamard, (True,)),
        (LocalHash, (1,)),
        (LocalHash, (2.0,)),
        (LocalHash, (2, 1)),
        (Hadamard, (8, 8)),
        (Hadamard, (8, 1)),
        (Rappor, (1,)),
        (Rappor, (2.5,)),
        (UnaryEncoding, (0,)),
        (VariationRatio, (0.0,)),
        (VariationRatio, (1.0,)),
        (VariationRatio, (math.nan,)),
        (VariationRatio, (0.2, 0.9)),
        (VariationRatio, (0.2, math.nan)),
    ],
)
def test_bad_numbers_are_refused(kind: type, arguments: tuple[object, ...]) -> None:
    with pytest.raises(ProblemError):
        kind(*arguments)
