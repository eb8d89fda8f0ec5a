"""Closed forms against the published figures, against quadrature, and against divergences summed over all counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import gammaln, xlogy
from scipy.stats import binom

from optdp.amplification import closed_forms as forms
from optdp.numbers.exact import precision

Bound = Callable[[float, float, float], float | None]

GENERIC: dict[str, Bound] = {
    "hoeffding": forms.hoeffding_generic,
    "theorem 6": forms.theorem_6,
    "bennett": forms.bennett_generic,
    "bennett, sharp": forms.bennett_generic_sharp,
    "clones": forms.clones,
    "stronger clones": forms.stronger_clones,
    "erlingsson": forms.erlingsson,
}
SPECIAL: dict[str, Bound] = {
    "hoeffding, 10-RR": partial(forms.hoeffding_krr, k=10),
    "bennett, 10-RR": partial(forms.bennett_krr, k=10),
    "hoeffding, Laplace": forms.hoeffding_laplace,
    "bennett, Laplace": forms.bennett_laplace,
}
SETTINGS = [(1e4, 2.0, 1e-6), (1e5, 4.0, 1e-6), (1e6, 4.0, 1e-8)]
TABLE: list[tuple[Bound, list[float | None]]] = [
    (forms.hoeffding_generic, [1.01708, None, None]),
    (SPECIAL["hoeffding, 10-RR"], [0.218000, 0.299644, 0.108464]),
    (forms.hoeffding_laplace, [0.166634, 0.276501, 0.100317]),
    (forms.bennett_generic, [0.517501, 2.20853, 0.443893]),
    (SPECIAL["bennett, 10-RR"], [0.094980, 0.129200, 0.047187]),
    (forms.bennett_laplace, [0.112056, 0.112299, 0.041087]),
    (forms.theorem_6, [0.492424, 1.440441, 0.441269]),
    (forms.bennett_generic_sharp, [0.168242, 0.142915, 0.052070]),
]
"""Epsilon in each setting; all but the last two are what the authors' published code gives."""


def exact(values: Sequence[float], chances: Sequence[float], n: int, other: float = 0.0) -> float:
    """`E[Z_1 + ... + Z_n]_+ / n` by summing over all counts of the values; `other` is the value with what is left."""
    left, total, logs = np.array([n]), np.zeros(1), np.array([gammaln(n + 1)])
    for value, chance in zip(values, chances, strict=True):
        before = np.repeat(np.arange(left.size), left + 1)
        count = np.concatenate([np.arange(size + 1) for size in left])
        left, total = left[before] - count, total[before] + value * count
        logs = logs[before] + xlogy(count, chance) - gammaln(count + 1)
    logs = logs + xlogy(left, 1 - sum(chances)) - gammaln(left + 1)
    return float(np.sum(np.exp(logs) * np.maximum(total + left * other, 0)) / n)


def strongest(epsilon: float, eps0: float, n: int) -> float:
    """The pair that dominates every eps0-LDP randomizer: the blanket of binary randomized response."""
    p, e = math.exp(eps0), math.exp(epsilon)
    return exact([p - e, 1 - p * e], [1 / (p + 1)] * 2, n)


def clones_pair(epsilon: float, eps0: float, n: int) -> float:
    """The pair of the clones of 2021: fewer of them, so that it is larger."""
    p, e = math.exp(eps0), math.exp(epsilon)
    return exact([2 * p * (p - e) / (p + 1), 2 * p * (1 - p * e) / (p + 1)], [1 / (2 * p)] * 2, n)


def krr_blanket(epsilon: float, eps0: float, n: int, k: int) -> float:
    """The blanket expectation of k-ary randomized response."""
    p, e = math.exp(eps0), math.exp(epsilon)
    c = 1 / (p + k - 1)
    if k == 2:
        return exact([p - e, 1 - p * e], [c, c], n)
    return exact([p - e, 1 - p * e, 1 - e], [c, c, (k - 2) * c], n)


def ternary(epsilon: float, eps0: float, n: int) -> float:
    """The divergence itself for 3-ary randomized response and others who all hold the third value."""
    p, e = math.exp(eps0), math.exp(epsilon)
    return exact([p - e, 1 - p * e], [1 / (p + 2)] * 2, n, other=(1 - e) / p)


def solved(bound: Bound, eps0: float, n: float, delta: float) -> float | None:
    """The smallest epsilon below eps0 at which the bound is delta, on a grid first."""

    def excess(epsilon: float) -> float:
        value = bound(epsilon, eps0, n)
        assert value is not None
        return math.log(value / delta)

    grid = np.geomspace(1e-5, eps0 * (1 - 1e-9), 400)
    found = next((i for i, epsilon in enumerate(grid) if excess(epsilon) <= 0), None)
    return None if found is None else float(brentq(excess, grid[found - 1], grid[found], xtol=1e-12))


@pytest.mark.parametrize(("bound", "expected"), TABLE)
def test_figures(bound: Bound, expected: list[float | None]) -> None:
    for (n, eps0, delta), wanted in zip(SETTINGS, expected, strict=True):
        found = solved(bound, eps0, n, delta)
        if wanted is None:
            assert found is None
        else:
            assert found is not None
            assert abs(found - wanted) < (1e-6 if wanted < 1 else 5e-6)  # six figures are given


def test_clones_solve_their_formulas() -> None:
    for n, eps0, delta in SETTINGS:
        p = math.exp(eps0)
        first = (p - 1) / (p + 1) * (8 * math.sqrt(p * math.log(4 / delta) / n) + 8 * p / n)
        second = (p - 1) * (4 * math.sqrt(2 * math.log(4 / delta) / ((p + 1) * n)) + 4 / n)
        assert forms.clones(math.log1p(first), eps0, n) == pytest.approx(delta, rel=1e-9)
        assert forms.stronger_clones(math.log1p(second), eps0, n) == pytest.approx(delta, rel=1e-9)
        assert second < first
    assert forms.erlingsson(12 * 0.3 * math.sqrt(math.log(1e9) / 1e5), 0.3, 1e5) == pytest.approx(1e-9, rel=1e-9)


def test_where_a_theorem_does_not_hold() -> None:
    assert forms.erlingsson(0.4, 0.5, 10**6) is None
    assert forms.erlingsson(0.4, 0.49, 999) is None
    assert forms.erlingsson(0.3, 0.49, 1000) is None  # delta would be .07
    assert forms.erlingsson(0.4, 0.49, 10**5) is not None
    edge = 16 * math.log(2) * math.exp(3)
    assert forms.clones(1.0, 3.0, edge * 0.999) is None
    assert forms.clones(1.0, 3.0, edge * 1.001) is not None
    edge = 8 * math.log(2) * (math.exp(3) + 1)
    assert forms.stronger_clones(1.0, 3.0, edge * 0.999) is None
    assert forms.stronger_clones(1.0, 3.0, edge * 1.001) is not None
    assert forms.clones(2.9, 3.0, 5000) == pytest.approx(2 * math.exp(-5000 / 16 / math.exp(3)), rel=1e-9)
    assert forms.theorem_1(1.01, 10**6, 10, 0.5) is None
    assert forms.theorem_1(0.1, 1000, 10, 0.5) is None  # c is below 27/epsilon
    for bound in GENERIC.values():
        for wrong in ((-0.1, 0.4, 5000), (math.nan, 0.4, 5000), (0.1, math.nan, 5000), (0.1, 0.4, 0), (0.1, 800, 5000)):
            assert bound(*wrong) is None
    assert forms.bennett_krr(0.1, 1, 1000, 1) is None
    assert forms.hoeffding_krr(0.1, 1, 1000, 1) is None


@pytest.mark.parametrize("bound", [*GENERIC.values(), *SPECIAL.values()])
def test_the_randomizer_alone_keeps_its_promise(bound: Bound) -> None:
    assert bound(0.4, 0.4, 5000) == 0
    assert bound(800.0, 0.4, 5000) == 0
    assert bound(0.0, 0.0, 5000) == 0
    assert bound(0.4 * (1 - 1e-15), 0.4, 5000) != 0


@pytest.mark.parametrize("name", [*GENERIC, *SPECIAL])
def test_monotone(name: str) -> None:
    bound = (GENERIC | SPECIAL)[name]
    eps0 = 0.45 if name == "erlingsson" else 2.0
    for n in (10**4, 10**5, 10**6):
        found = [bound(epsilon, eps0, n) for epsilon in np.linspace(0.01, 0.99, 60) * eps0]
        values = [value for value in found if value is not None]
        assert all(0 < b <= a <= 1 for a, b in pairwise(values))
        assert values[-1] < 1 or n == 10**4
    found = [bound(0.4 * eps0, eps0, n) for n in np.geomspace(2, 1e12, 60)]
    values = [value for value in found if value is not None]
    assert all(0 < b <= a <= 1 for a, b in pairwise(values))
    assert values[-1] < 1e-300


@settings(max_examples=300, deadline=None)
@given(st.floats(0, 1), st.floats(1e-12, 100), st.floats(1, 1e15), st.integers(2, 10**9))
def test_no_arguments_overflow(part: float, eps0: float, n: float, k: int) -> None:
    epsilon = part * eps0
    wide: list[Bound] = [partial(forms.hoeffding_krr, k=k), partial(forms.bennett_krr, k=k)]
    for bound in [*GENERIC.values(), *SPECIAL.values(), *wide]:
        value = bound(epsilon, eps0, n)
        assert value is None or 0 < value <= 1 or epsilon >= eps0


def as_printed(name: str, epsilon: float, eps0: float, n: float) -> arb:
    """A blanket bound straight from the lemmas, cancellation and all, in balls."""
    e, p, k = arb(epsilon).exp(), arb(eps0).exp(), 10
    a = e - 1
    if name.endswith("RR"):
        gamma = k / (p + k - 1)
        high, low = gamma * (1 - e) + (1 - gamma) * k, gamma * (1 - e) - (1 - gamma) * k * e
        c = gamma * (2 - gamma) * (1 - e) ** 2 + (1 - gamma) ** 2 * k * (1 + e * e)
    elif name.endswith("Laplace"):
        s = (-arb(eps0) / 2).exp()
        gamma, high, low = s, (1 - e / p) / s, s * (1 - e * p)
        c = (e * e + 1) / 3 * (2 / s + s * s) - 2 * e * (2 * s - s * s)
    else:
        gamma = 1 / p
        factor = gamma if name.endswith("sharp") else arb(1)
        high, low = factor * p * (1 - e / p**2), factor / p * (1 - e * p**2)
        c = factor * p * (e * e + 1) - 2 * gamma * (gamma if name.endswith("sharp") else 1) * e / p**2
    if name.startswith("hoeffding"):
        front, rate = (high - low) ** 2 / (4 * a), 2 * (a / (high - low)) ** 2
    else:
        u = a * high / c
        front, rate = high / (1 + u).log(), c / high**2 * ((1 + u) * (1 + u).log() - u)
    return front / (gamma * n) * (n * (1 - gamma + gamma * (-rate).exp()).log()).exp()


@pytest.mark.parametrize("name", ["hoeffding", "bennett", "bennett, sharp", *SPECIAL])
def test_rounded_up_and_hardly(name: str) -> None:
    seen = 0
    with precision(512):
        for eps0 in (1e-7, 0.01, 0.3, 2.0, 8.0, 30.0):
            for part in (1e-9, 1e-3, 0.2, 0.7, 1 - 1e-9):
                for n in np.geomspace(10, 1e12, 12).round():
                    value = (GENERIC | SPECIAL)[name](part * eps0, eps0, n)
                    assert value is not None
                    truth = as_printed(name, part * eps0, eps0, n)
                    if value < 1:
                        assert value > truth
                        assert value < truth * (1 + 1e-10) or value == forms.SMALLEST
                    else:
                        assert truth > 1 - 1e-9
                    seen += forms.SMALLEST < value < 1
    assert seen > 5


@pytest.mark.parametrize("eps0", [0.01, 0.5, 2.0, 4.0])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_lemma_12(eps0: float, k: int) -> None:
    p = math.exp(eps0)
    for epsilon in (0.0, 0.3 * eps0, 0.9 * eps0):
        e, gamma = math.exp(epsilon), k / (p + k - 1)
        values = np.array([p - e, 1 - p * e] + [1 - e] * (k - 2)) * gamma
        assert forms.krr_similarity(eps0, k) == pytest.approx(gamma, rel=1e-12)
        assert forms.krr_range(epsilon, eps0, k) == pytest.approx((values.min(), values.max()), rel=1e-9)
        assert forms.krr_second_moment(epsilon, eps0, k) == pytest.approx(np.mean(values**2), rel=1e-9)
        assert np.mean(values) == pytest.approx(1 - e, abs=1e-12)
        low, high = forms.generic_range(epsilon, eps0, gamma)
        assert low <= values.min()
        assert high >= values.max()
        assert forms.generic_second_moment(epsilon, eps0, gamma) >= np.mean(values**2) * (1 - 1e-12)
        assert forms.generic_second_moment(epsilon, eps0) >= np.mean(values**2) * (1 - 1e-12)


@pytest.mark.parametrize("eps0", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("part", [0.0, 0.4, 0.9])
def test_lemma_13(eps0: float, part: float) -> None:
    epsilon, s = part * eps0, math.exp(-eps0 / 2)
    e = math.exp(epsilon)
    bound = forms.laplace_second_moment(epsilon, eps0)
    printed = (e * e + 1) / 3 * (2 / s + s * s) - 2 * e * (2 * s - s * s)
    assert bound == pytest.approx(printed, rel=1e-10)
    low, high = forms.laplace_range(epsilon, eps0)

    def density(y: float, x: float) -> float:
        return eps0 / 2 * math.exp(-eps0 * abs(y - x))

    def least(y: float) -> float:
        return density(y, 0.0 if y > 0.5 else 1.0)

    def mean(of: Callable[[float], float], points: Sequence[float]) -> float:
        ends = sorted({-60 / eps0, *points, 0.5, 1 + 60 / eps0})
        return float(sum(quad(of, a, b, epsabs=1e-14, epsrel=1e-12)[0] for a, b in pairwise(ends)))

    assert forms.laplace_similarity(eps0) == pytest.approx(mean(least, []), rel=1e-10)
    for x, x_ in ((0.0, 1.0), (1.0, 0.0), (0.0, 0.5), (0.3, 0.6), (1.0, 0.9), (0.2, 0.2)):

        def squared(y: float, x: float = x, x_: float = x_) -> float:
            return (density(y, x) - e * density(y, x_)) ** 2 / least(y) * s

        moment = mean(squared, [0.0, 1.0, x, x_])
        assert moment <= bound * (1 + 1e-9)
        if abs(x - x_) == 1:
            assert moment == pytest.approx(bound, rel=1e-9)
        for y in np.linspace(-2, 3, 101):
            value = (density(y, x) - e * density(y, x_)) / least(y) * s
            assert low - 1e-9 * abs(low) <= value <= high + 1e-9 * (1 + abs(high))


GRID = [(n, eps0, part) for n in (20, 100, 300) for eps0 in (0.1, 0.5, 1.0, 2.0, 3.0) for part in (0.02, 0.1, 0.3, 0.8)]


def test_generic_bounds_dominate() -> None:
    useful = dict.fromkeys(GENERIC, 0)
    for n, eps0, part in [*GRID, (1000, 0.4, 0.5), (1000, 0.4, 0.9), (1000, 4.0, 0.1), (1000, 4.0, 0.5)]:
        truth = strongest(part * eps0, eps0, n)
        for name, bound in GENERIC.items():
            value = bound(part * eps0, eps0, n)
            assert value is None or value >= truth * (1 - 1e-9), (name, n, eps0, part)
            useful[name] += value is not None and value < 0.5
    assert all(count > 0 for count in useful.values()), useful


def test_clones_dominate_their_pair() -> None:
    for n, eps0, part in [*GRID, (1000, 1.0, 0.9), (1000, 3.0, 0.3)]:
        value = forms.clones(part * eps0, eps0, n)
        pair = clones_pair(part * eps0, eps0, n)
        assert value is None or value >= pair * (1 - 1e-9)
        assert pair >= strongest(part * eps0, eps0, n) * (1 - 1e-9)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_krr_bounds_dominate(k: int) -> None:
    for n in (10, 60, 300) if k == 2 else (10, 60):
        for eps0 in (0.1, 0.5, 1.0, 2.0, 4.0):
            for part in (0.02, 0.1, 0.3, 0.8, 0.97):
                truth = krr_blanket(part * eps0, eps0, n, k)
                assert truth <= strongest(part * eps0, eps0, n) * (1 + 1e-9)
                for bound in (forms.hoeffding_krr, forms.bennett_krr):
                    value = bound(part * eps0, eps0, n, k)
                    assert value is not None
                    assert value >= truth * (1 - 1e-9)


def test_theorem_1() -> None:
    """Its delta is the one that the printed gamma is for, and above the blanket expectation."""
    n, k, epsilon, delta = 10**5, 10, 0.5, 1e-6
    gamma = 14 * k * math.log(2 / delta) / ((n - 1) * epsilon**2)
    assert forms.theorem_1(epsilon, n, k, gamma) == pytest.approx(delta, rel=1e-9)
    least = 27 * k / ((n - 1) * 0.9)
    assert forms.theorem_1(0.9, n, k, least * 1.001) is not None
    assert forms.theorem_1(0.9, n, k, least * 0.999) is None
    for n, epsilon, gamma in ((300, 1.0, 0.5), (300, 0.5, 0.9), (100, 1.0, 0.9)):
        value = forms.theorem_1(epsilon, n, 2, gamma)
        assert value is not None
        assert value >= krr_blanket(epsilon, math.log1p(2 * (1 - gamma) / gamma), n, 2)


def test_lemma_11_as_printed_is_unsound() -> None:
    """Divided by `a m` it falls below the divergence of a real data set; as corrected it does not."""
    for n, eps0, epsilon in ((300, 2.0, 0.1), (300, 2.0, 0.2), (300, 2.0, 0.3), (300, 3.0, 0.3)):
        truth = ternary(epsilon, eps0, n)
        a, b = math.expm1(epsilon), forms.krr_range(epsilon, eps0, 3)[1]
        c, gamma = forms.krr_second_moment(epsilon, eps0, 3), forms.krr_similarity(eps0, 3)
        u, m = a * b / c, np.arange(1, n + 1)
        decay = c / b**2 * ((1 + u) * math.log1p(u) - u)
        corrected = b / math.log1p(u) * np.exp(-m * decay)
        weights = binom.pmf(m, n, gamma) / (gamma * n)
        printed = float(np.sum(weights * corrected / (a * m)))
        value = forms.bennett_krr(epsilon, eps0, n, 3)
        assert value is not None
        assert value == pytest.approx(float(np.sum(weights * corrected)), rel=1e-6)
        assert printed < truth <= value
