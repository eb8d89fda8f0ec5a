"""Cells of randomizers against brute force over all data sets, and of continuous ones against quadrature."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import laplace, norm

from optdp import KRR, Channel, Gaussian, Generic, Laplace, ProblemError
from optdp.amplification.randomizers import Cells, Floats, Ratios, cells, variation_cells
from optdp.numbers.divergence import gaussian_delta
from optdp.numbers.exact import ball, precision
from tests.amplification import oracle
from tests.amplification.balls import delta_ball, from_floats
from tests.amplification.by_balls import FACTORS, delta, largest, log

EXACT = 1e-12
"""Cells are rounded to floats: so much is the float's and not the theorem's."""


def normalized(weights: list[list[int]]) -> oracle.Channel:
    return [[Fraction(v, sum(row)) for v in row] for row in weights]


def random_channel(rng: random.Random, d: int, outputs: int, least: int) -> oracle.Channel:
    while True:
        rows = [[rng.randint(least, 9) for _ in range(outputs)] for _ in range(d)]
        if all(sum(row) for row in rows) and all(sum(column) for column in zip(*rows, strict=True)):
            return normalized(rows)


def as_floats(matrix: oracle.Channel) -> Channel:
    return Channel.of([[float(v) for v in row] for row in matrix])


def total_variation(one: Iterable[Fraction], two: Iterable[Fraction]) -> Fraction:
    return sum((max(a - b, Fraction(0)) for a, b in zip(one, two, strict=True)), Fraction(0))


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("p", [Fraction(3, 2), Fraction(4)])
def test_krr_lies_around_the_worst_data_set(k: int, p: Fraction) -> None:
    eps0, matrix = log(p), oracle.krr(k, p)
    for n in (2, 3, 4):
        for factor in FACTORS:
            worst = float(oracle.worst_exact(matrix, n, factor))
            assert largest(KRR(k).blankets(eps0), n, factor) >= worst * (1 - EXACT)
            lower = largest(KRR(k).data_sets(eps0), n, factor)
            assert lower <= worst * (1 + EXACT) + 1e-15
            held = [(2,), (0,), (1,)] if k > 2 else [(0,), (1,)]
            alike = max(oracle.divergence(matrix, 0, 1, rest * (n - 1), factor) for rest in held)
            assert lower == pytest.approx(float(alike), rel=1e-11, abs=1e-15)


def test_krr_parameters() -> None:
    for k, gamma in ((2, 0.25), (5, 0.5), (100, 0.01)):
        found = KRR(k, gamma)
        p = 1 + Fraction(k) * (1 - Fraction(gamma)) / Fraction(gamma)
        assert found.own_eps0 is not None
        with precision(200):
            assert ball(Fraction(found.own_eps0)) >= ball(p).log()
        assert found.own_eps0 == pytest.approx(log(p), rel=1e-14)
        matrix = oracle.krr(k, p)
        ratios = found.ratios(log(p))
        assert ratios.p == pytest.approx(float(p), rel=1e-12)
        assert ratios.q == pytest.approx(float(p), rel=1e-12)
        assert ratios.beta == pytest.approx(float(total_variation(matrix[0], matrix[1])), rel=1e-12)
    for k, gamma in ((1, None), (-3, None), (2.0, None), (True, None), (3, 0.0), (3, 1.0), (3, math.nan)):
        with pytest.raises(ProblemError):
            KRR(k, gamma)  # type: ignore[arg-type]


def test_generic_bounds_every_channel() -> None:
    """All extremal channels of three values, mixtures of them, and random ones: none is worse."""
    rng = random.Random(1)
    p = Fraction(3)
    vertices = list(oracle.extremal(3, p))
    mixed = [oracle.side_by_side(Fraction(rng.randint(1, 3), 4), *rng.sample(vertices, 2)) for _ in range(4)]
    for matrix in (*vertices, *mixed):
        assert oracle.ratio(matrix) <= p
        for n in (2, 3):
            for factor in FACTORS:
                worst = float(oracle.worst_exact(matrix, n, factor))
                assert largest(Generic().blankets(log(p)), n, factor) >= worst * (1 - EXACT)
    for _ in range(5):
        matrix = random_channel(rng, 3, 3, 2)
        p = oracle.ratio(matrix)
        for n in (2, 4):
            worst = float(oracle.worst_exact(matrix, n, Fraction(5, 4)))
            assert largest(Generic().blankets(log(p) * (1 + 1e-15)), n, Fraction(5, 4)) >= worst * (1 - EXACT)


def test_generic_bounds_the_rest_of_the_catalogue_of_this_file() -> None:
    for eps0 in (0.2, 1.0, 3.0):
        for n in (2, 5, 20):
            for factor in (Fraction(1), Fraction(11, 10)):
                bound = largest(Generic().blankets(eps0), n, factor)
                for found in (KRR(2), KRR(3), KRR(7)):
                    assert largest(found.blankets(eps0), n, factor) <= bound * (1 + 1e-11)
                assert largest(Generic().data_sets(eps0), n, factor) <= bound * (1 + 1e-11)


def test_variation_cells_dominate_pairs_with_these_ratios() -> None:
    """Two random laws and any third ones, with q at least p (the others may hold the two values) and below it."""
    rng = random.Random(2)
    for trial in range(40):
        matrix = random_channel(rng, 4, rng.randint(2, 4), 1)
        first, second, *third = matrix
        p = max(max(a / b, b / a) for a, b in zip(first, second, strict=True))
        if p == 1:
            continue
        beta = total_variation(first, second)
        q = max(max(a, b) / c for row in third for a, b, c in zip(first, second, row, strict=True))
        held = [2, 3]
        if trial % 2:
            q, held = max(p, q), [0, 1, 2, 3]
        found = variation_cells(Ratios(float(p) * (1 + 1e-15), float(beta) * (1 + 1e-15), float(q) * (1 + 1e-15)))
        for n in (2, 3, 4):
            factor = rng.choice(FACTORS)
            worst = max(
                oracle.divergence(matrix, x, 1 - x, rest, factor)
                for x in (0, 1)
                for rest in combinations_with_replacement(held, n - 1)
            )
            assert delta(found, n, factor) >= float(worst) * (1 - EXACT) - 1e-16


def test_variation_cells_rise_with_their_ratios() -> None:
    for n in (2, 10, 40):
        for factor in (Fraction(1), Fraction(6, 5)):
            base = delta(variation_cells(Ratios(3.0, 0.3, 4.0)), n, factor)
            for more in (Ratios(3.5, 0.3, 4.0), Ratios(3.0, 0.4, 4.0), Ratios(3.0, 0.3, 5.0)):
                assert delta(variation_cells(more), n, factor) >= base * (1 - EXACT)


@pytest.mark.parametrize("least", [0, 1])
def test_channels_lie_around_the_worst_data_set(least: int) -> None:
    """Also with messages that some inputs never send."""
    rng = random.Random(3 + least)
    for _ in range(12):
        matrix = random_channel(rng, 3, rng.randint(2, 4), least)
        found = as_floats(matrix)
        if found.own_eps0 < math.inf:
            assert found.own_eps0 == pytest.approx(log(oracle.ratio(matrix)), abs=1e-13)
            with precision(200):
                assert ball(Fraction(found.own_eps0)) >= ball(oracle.ratio(matrix)).log()
        else:
            assert any(v == 0 for row in matrix for v in row)
        for n in (2, 3, 4):
            for factor in FACTORS[1:3]:
                worst = float(oracle.worst_exact(matrix, n, factor))
                assert largest(found.blankets(found.own_eps0), n, factor) >= worst * (1 - EXACT)
                assert largest(found.data_sets(found.own_eps0), n, factor) <= worst * (1 + EXACT) + 1e-16
                ratios = found.ratios(found.own_eps0)
                if ratios is not None:
                    assert delta(variation_cells(ratios), n, factor) >= worst * (1 - EXACT)


def test_channel_ratios() -> None:
    rng = random.Random(5)
    for _ in range(20):
        matrix = random_channel(rng, 4, 4, 1)
        found = as_floats(matrix)
        ratios = found.ratios(found.own_eps0)
        assert ratios is not None
        beta = max(total_variation(one, two) for one in matrix for two in matrix)
        assert float(beta) <= ratios.beta <= float(beta) * (1 + 1e-12)
        assert ratios.p >= float(oracle.ratio(matrix)) * (1 - 1e-14)
        assert ratios.q == ratios.p
    assert Channel.of([[1.0, 0.0], [0.5, 0.5]]).ratios(math.inf) is None


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[0.5, 0.5]],
        [[], []],
        [[0.5, 0.5], [1.0]],
        [[0.5, 0.6], [0.5, 0.5]],
        [[0.5, 0.4], [0.5, 0.5]],
        [[1.5, -0.5], [0.5, 0.5]],
        [[math.nan, 1.0], [0.5, 0.5]],
        [[math.inf, 0.0], [0.5, 0.5]],
        [[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]],
        [[0.0, 0.0], [0.5, 0.5]],
    ],
)
def test_bad_channels_are_refused(rows: list[list[float]]) -> None:
    with pytest.raises(ProblemError):
        Channel.of(rows)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"sigma": 1.0, "delta0": 1e-5}, {"sigma": 0.0}, {"sigma": math.nan}, {"delta0": 0.0}, {"delta0": 1.0}],
)
def test_bad_gaussians_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ProblemError):
        Gaussian(**arguments)


def stop_loss(found: Cells, epsilon: float, t: float) -> float:
    """`E (Z - t)_+` of cells; what is in none of them is 0."""
    parts = found.first - math.exp(epsilon) * found.second - t * found.others
    return float(np.maximum(parts, 0.0).sum()) + max(-t, 0.0) * max(0.0, 1.0 - float(found.others.sum()))


def laws(found: Cells) -> tuple[Floats, Floats, Floats]:
    return found.first, found.second, found.others


@pytest.mark.parametrize("n", [2, 3, 4])
def test_rare_cells_add_no_less_than_they_do(n: int) -> None:
    """All sums of `n` values one by one, in rationals, the rare ones among them."""
    rng = np.random.default_rng(n)
    for rarity in (1.0, 1e-2, 1e-4):
        others = np.append(rng.dirichlet(np.ones(3))[:2], rng.dirichlet(np.ones(3))[:2] * 0.1 * rarity)
        ratios = np.array([[1.2, 0.3], [0.2, 1.5], [30.0, 1.0], [400.0, 1.0]])
        first, second = (ratios * others[:, None]).T
        found = Cells(first[:2], second[:2], others[:2], rare=Cells(first[2:], second[2:], others[2:]))
        for epsilon in (0.0, 0.5, 3.0):
            gain = Fraction(math.exp(epsilon))
            law = [(Fraction(a) / Fraction(m) - gain * Fraction(b) / Fraction(m), Fraction(m))
                   for a, b, m in zip(first, second, others, strict=True)]  # fmt: skip
            law.append((Fraction(0), 1 - sum(mass for _, mass in law)))
            truth = sum(
                (max(sum((z for z, _ in drawn), Fraction(0)), Fraction(0)) * math.prod(mass for _, mass in drawn)
                 for drawn in product(law, repeat=n)), Fraction(0),
            ) / n  # fmt: skip
            assert math.exp(found.log_upper(n, epsilon, 1 << 12)) >= min(1.0, float(truth)) * (1.0 - 1e-12)


Density = Callable[[float, float], float]


def laplace_density(eps0: float) -> Density:
    return lambda y, x: 0.5 * eps0 * math.exp(-eps0 * abs(y - x))


def gaussian_density(sigma: float) -> Density:
    return lambda y, x: math.exp(-(((y - x) / sigma) ** 2) / 2.0) / (sigma * math.sqrt(2.0 * math.pi))


def integral(part: Callable[[float], float], cuts: list[float]) -> float:
    """Between the cuts, where the integrand has its kinks; others are found by halving."""
    return sum(quad(part, a, b, limit=200, epsabs=1e-10)[0] for a, b in pairwise(cuts))


def true_stop_loss(density: Density, wide: float, pair: tuple[float, float], epsilon: float, t: float) -> float:
    """The same by quadrature over the messages, with the blanket as the least of all densities (at 0 or at 1)."""

    def blanket(y: float) -> float:
        return min(density(y, 0.0), density(y, 1.0))

    def part(y: float) -> float:
        return max(0.0, density(y, pair[0]) - math.exp(epsilon) * density(y, pair[1]) - t * blanket(y))

    cuts = [-wide, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0 + wide]
    return integral(part, cuts) + max(-t, 0.0) * (1.0 - integral(blanket, cuts))


@pytest.mark.parametrize("eps0", [0.1, 1.0, 4.0])
def test_laplace_cells_dominate_the_law_in_convex_order(eps0: float) -> None:
    (upper,) = Laplace().blankets(eps0)
    assert upper.first.sum() == pytest.approx(1.0, abs=1e-12)
    assert upper.second.sum() == pytest.approx(1.0, abs=1e-12)
    assert upper.others.sum() == pytest.approx(math.exp(-eps0 / 2.0), abs=1e-12)
    density, wide = laplace_density(eps0), 40.0 / eps0
    for epsilon in (0.0, 0.3 * eps0, 0.8 * eps0):
        top = math.exp(eps0) - math.exp(epsilon)
        for t in (-2.0 * math.exp(epsilon), -0.5, -0.01, 0.0, 0.1 * top, 0.5 * top, 0.95 * top):
            truth = true_stop_loss(density, wide, (0.0, 1.0), epsilon, t)
            found = stop_loss(upper, epsilon, t)
            assert truth - 1e-8 <= found <= truth + 1e-5


@pytest.mark.parametrize("eps0", [0.1, 1.0, 4.0])
def test_laplace_data_sets_are_what_a_grid_sees(eps0: float) -> None:
    found = Laplace().data_sets(eps0)
    assert len(found) == 3
    scale, density = 1.0 / eps0, laplace_density(eps0)
    for part, held in zip(found, ((0.0,), (1.0,), (0.0, 1.0)), strict=True):
        for law in (part.first, part.second, part.others):
            assert law.sum() == pytest.approx(1.0, abs=1e-12)
        inner = (len(part.first) - 2) // 2
        for place, masses in ((0.0, part.first), (1.0, part.second)):
            expected = laplace.cdf(0.5, loc=place, scale=scale)
            assert masses[: inner + 1].sum() == pytest.approx(expected, abs=1e-12)
        expected = sum(laplace.cdf(0.5, loc=x, scale=scale) for x in held) / len(held)
        assert part.others[: inner + 1].sum() == pytest.approx(expected, abs=1e-12)
        for epsilon in (0.0, 0.5 * eps0):

            def gap(y: float, held: tuple[float, ...] = held, epsilon: float = epsilon) -> float:
                other = sum(density(y, x) for x in held) / len(held)
                return max(0.0, density(y, 0.0) - math.exp(epsilon) * density(y, 1.0) - 0.05 * other)

            truth = integral(gap, [-40.0 / eps0, 0.0, 0.5, 1.0, 1.0 + 40.0 / eps0])
            assert truth - 1e-3 <= stop_loss(part, epsilon, 0.05) <= truth + 1e-8


def test_laplace_ratios() -> None:
    for eps0 in (0.1, 1.0, 5.0):
        ratios = Laplace().ratios(eps0)
        assert ratios.p == ratios.q == pytest.approx(math.exp(eps0))
        cut = laplace.cdf(0.5, scale=1.0 / eps0) - laplace.cdf(0.5, loc=1.0, scale=1.0 / eps0)
        assert ratios.beta == pytest.approx(cut, rel=1e-12)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("tail", [1e-3, 1e-9])
def test_gaussian_cells_dominate_the_law_in_convex_order(sigma: float, tail: float) -> None:
    """Beside the cells of the sums and the rare ones only messages with a negative `Z` are left out."""
    (sums,) = Gaussian(sigma=sigma).blankets(math.inf, tail)
    assert sums.rare is not None
    assert sums.rare.first.sum() <= tail
    assert sums.slack <= 1e-60
    upper = cells(*(np.concatenate(parts) for parts in zip(laws(sums), laws(sums.rare), strict=True)))
    assert 1.0 - tail <= upper.first.sum() <= 1.0 + 1e-12
    assert 1.0 - tail <= upper.second.sum() <= 1.0 + 1e-12
    assert upper.others.sum() <= 2.0 * norm.cdf(-0.5 / sigma) + 1e-12
    density = gaussian_density(sigma)
    for epsilon in (0.0, 0.4, 1.5):
        for t in (-3.0, -0.5, 0.0, 0.1, 1.0, 4.0, 30.0):
            truth = true_stop_loss(density, 12.0 * sigma, (0.0, 1.0), epsilon, t)
            found = stop_loss(upper, epsilon, t)
            assert truth - 1e-8 <= found
            assert found <= truth + max(-t, 0.0) * 2.0 * tail + 1e-3


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_gaussian_data_sets_are_below(sigma: float) -> None:
    """Merged messages, so every stop-loss value is at most that of the densities; the finest come close to it."""
    places, step = np.linspace(-14.0 * sigma, 1.0 + 14.0 * sigma, 400_001, retstep=True)
    at = {x: np.exp(-((places - x) ** 2) / (2.0 * sigma**2)) / (sigma * math.sqrt(2.0 * math.pi)) for x in (0.0, 1.0)}
    every = Gaussian(sigma=sigma).data_sets(math.inf)
    held = ((0.0,), (1.0,), (0.0, 1.0))
    assert len(every) % len(held) == 0
    for i, part in enumerate(every):
        others = sum(at[x] for x in held[i % 3]) / len(held[i % 3])
        for law in (part.first, part.second, part.others):
            assert law.sum() == pytest.approx(1.0, abs=1e-12)
        for epsilon in (0.0, 0.7):
            for t in (-0.5, 0.0, 0.3):
                gap = np.maximum(0.0, at[0.0] - math.exp(epsilon) * at[1.0] - t * others)
                truth = float(gap.sum() * step)
                assert stop_loss(part, epsilon, t) <= truth + 1e-6
                if i >= len(every) - len(held):
                    assert stop_loss(part, epsilon, t) >= truth - 2e-3


@pytest.mark.parametrize("sigma", [1e-3, 0.02, 0.1, 1e3, 1e6])
def test_gaussians_of_every_size_have_cells(sigma: float) -> None:
    """Whatever the constructor takes: finite cells, and no nonsense from them."""
    found = Gaussian(sigma=sigma)
    for part in (*found.blankets(math.inf, 1e-6), *found.data_sets(math.inf)):
        assert np.isfinite(part.values(1.0)).all()
        assert (part.others > 0).all()
        lower = part.log_lower(20, 1.0, 256)
        assert not math.isnan(lower)
        assert lower <= part.log_upper(20, 1.0, 256) <= 0.0


@pytest.mark.parametrize("eps0", [0.1, 1.0, 40.0])
@pytest.mark.parametrize("delta0", [1e-100, 1e-6])
def test_a_gaussian_by_delta0_is_private(eps0: float, delta0: float) -> None:
    found = Gaussian(delta0=delta0)
    assert gaussian_delta(found.deviation(eps0), eps0) <= delta0
    assert found.own_eps0 is None
    assert Gaussian(sigma=1.0).own_eps0 == math.inf


@pytest.mark.parametrize(
    ("density", "wide"),
    [
        (laplace_density(0.2), 60.0),
        (laplace_density(1.0), 15.0),
        (laplace_density(4.0), 5.0),
        (gaussian_density(0.4), 4.0),
        (gaussian_density(1.0), 9.0),
        (gaussian_density(4.0), 36.0),
    ],
)
def test_zero_and_one_are_the_worst_pair(density: Density, wide: float) -> None:
    """Claim: `Z` of the inputs 0 and 1 dominates that of any `(x, x')` in [0, 1] in convex order."""
    step = (1.0 + 2.0 * wide) / 20_000
    y = -wide + step * (np.arange(20_000) + 0.5)
    places = np.linspace(0.0, 1.0, 9)
    rows = {float(x): np.array([density(v, float(x)) for v in y]) * step for x in places}
    blanket = np.minimum(rows[0.0], rows[1.0])
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.5):
        a = math.exp(epsilon)
        ratio = float(np.max((rows[0.0] - a * rows[1.0])[2_000:] / blanket[2_000:]))
        for t in (-3.0 * a, -a, -0.5 * a, -0.1, 0.0, 0.01, 0.1 * ratio, 0.3 * ratio, 0.6 * ratio, 0.9 * ratio):
            worst = float(np.maximum(rows[0.0] - a * rows[1.0] - t * blanket, 0.0).sum())
            for x, one in rows.items():
                for x2, two in rows.items():
                    if x != x2:
                        other = float(np.maximum(one - a * two - t * blanket, 0.0).sum())
                        assert other <= worst + 1e-5, (x, x2, epsilon, t)


@pytest.mark.parametrize("eps0", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("n", [2, 10, 60])
def test_bounds_hold_close_to_eps0(eps0: float, n: int) -> None:
    """There `p - e^eps` cancels, and its round-off must not lower the upper bound nor raise the lower one."""
    for found in (Generic().blankets(eps0)[0], KRR(3).data_sets(eps0)[0]):
        for gap in (1e-9, 1e-7, 1e-6, 3e-4, 0.03, 0.2):
            epsilon = eps0 * (1.0 - gap)
            with precision(400):
                truth = delta_ball(from_floats(found), n, epsilon)
                if not truth > 1e-40:
                    continue
                value = float(truth.log())
            assert found.log_lower(n, epsilon, 1 << 12) <= value * (1.0 + 1e-15)
            assert found.log_upper(n, epsilon, 1 << 12) >= value * (1.0 + 1e-15) - 1e-15


@pytest.mark.parametrize(
    ("eps0", "epsilon", "n"),
    [(9.430474080325807, 8.938462549333538, 435), (7.205723753422751, 6.612740129835525, 1512), (8.0, 7.5, 200)],
)
def test_data_sets_of_large_eps0_are_enclosed(eps0: float, epsilon: float, n: int) -> None:
    """One rare large value and many small ones: the grid's steps are longer than most values."""
    for found in KRR(3).data_sets(eps0):
        with precision(400):
            truth = delta_ball(from_floats(found), n, epsilon)
            if not truth > 1e-40:
                continue
            value = float(truth.log())
        for grid in (1 << 10, 1 << 14, 1 << 16):
            assert found.log_lower(n, epsilon, grid) <= value + 1e-12
            assert found.log_upper(n, epsilon, grid) >= value - 1e-12
