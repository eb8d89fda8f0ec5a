"""The SGDL law against its defining series, its closed form, exact rationals and scipy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import chain, repeat

import numpy as np
import pytest
from flint import arb
from scipy import stats

from optdp import SGDL, ProblemError
from optdp.numbers.exact import ball, geometric_ratio, precision
from optdp.numbers.sgdl import ExactNegativeBinomial, negative_binomial_balls

BETAS = ("1e-4", "1e-2", "0.5", "1", "7.3", "1e4")
NEAR_ONE, TENTH, UNIT, FIVE = (geometric_ratio(Fraction(epsilon)) for epsilon in ("0.001", "0.1", "1", "5"))


def series(beta: Fraction, q: Fraction, x: int, bits: int = 400) -> arb:
    """The sum of Lemma 2, term by term; the ratio of terms tends to `q^2` from one side, which bounds the rest."""
    with precision(bits):
        b, square = ball(beta), ball(q) ** 2
        term = (2 * b * (1 - ball(q)).log()).exp() * ball(q) ** x
        for j in range(x):
            term = term * (b + j) / (j + 1)
        total, k = term, 0
        while True:
            ratio = square * (b + k) * (b + k + x) / ((k + 1) * (k + x + 1))
            term *= ratio
            worst = ratio if beta > 1 else square
            if worst < 1 and term / (1 - worst) < total * arb(2) ** (20 - bits):
                return total + term / (1 - worst) * arb(0.5, 0.5)
            total += term
            k += 1


def closed_form(beta: Fraction, q: Fraction, x: int, bits: int) -> arb:
    with precision(bits):
        b, p = ball(beta), ball(q)
        choose = ((b + x).lgamma() - b.lgamma() - arb(x + 1).lgamma()).exp()
        return (1 - p) ** (2 * b) * p**x * choose * (p * p).hypgeom_2f1(b, b + x, x + 1)


def agrees(found: arb, truth: arb, bits: int = 240) -> bool:
    """Both enclose one number, and `found` does so to `bits` bits."""
    return bool(found.overlaps(truth)) and found.rel_accuracy_bits() >= bits


def feed(value: Fraction) -> Callable[[int], int]:
    """A source of the first 640 bits of a uniform number, in words of 64 bits."""
    words = iter([int(value * 2**640) >> shift & (1 << 64) - 1 for shift in range(576, -1, -64)])
    return lambda width: next(words)


# --------------------------------------------------------------------------------------------- probabilities


@pytest.mark.parametrize(
    ("beta", "q"), [(beta, q) for beta in BETAS for q in (FIVE, UNIT, TENTH) if beta != "1e4" or q != TENTH]
)
def test_pmf_is_the_defining_series(beta: str, q: Fraction) -> None:
    law, points = SGDL(beta, q), (0, -1, 2, -17, 130)
    truths = [series(Fraction(beta), q, abs(x)) for x in points]
    with precision():
        assert all(agrees(law.ball(x), truth) for x, truth in zip(points, truths, strict=True))
    assert law.pmf(np.array(points)) == pytest.approx([float(truth) for truth in truths], rel=1e-13, abs=0)
    logs = [float(truth.log()) for truth in truths]
    assert law.log_pmf(np.array(points)) == pytest.approx(logs, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("beta", ["1e-4", "0.5", "7.3"])
def test_near_one(beta: str) -> None:
    with precision():
        for x in (0, 40, 3000):
            assert agrees(SGDL(beta, NEAR_ONE).ball(x), closed_form(Fraction(beta), NEAR_ONE, x, 2000))


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize(("q", "x"), [(UNIT, 455), (UNIT, 690), (FIVE, 100), (NEAR_ONE, 700_000)])
def test_far_tails(beta: str, q: Fraction, x: int) -> None:
    """Values of 1e-200, 1e-300 and below, each on its own, by recurrence, and by an independent path."""
    law = SGDL(beta, q)
    with precision():
        alone, (together, *_, last) = law.ball(x), law.balls(x, x + 30)
        assert alone.rel_accuracy_bits() >= 250
        assert agrees(together, alone, 250)
        assert agrees(last, law.ball(-x - 30), 250)
        if law.beta < 100:
            assert alone < arb(10) ** -150
        if q in (UNIT, FIVE):
            assert agrees(alone, series(Fraction(beta), q, x))
        elif beta in ("1e-4", "0.5", "1"):
            assert agrees(alone, closed_form(Fraction(beta), q, x, 4000))


def test_integral_and_hypergeometric_series_agree() -> None:
    """The quick formula for small beta and the integral are two ways to one number."""
    for beta, q, x in (("0.25", UNIT, 0), ("0.25", UNIT, 12), ("1e-4", TENTH, 55), ("1", NEAR_ONE, 900)):
        law = SGDL(beta, q)
        with precision(400):
            assert agrees(law._integral(x, 340, beyond=False), law._short(x), 280)


@pytest.mark.parametrize("q", [FIVE, UNIT, NEAR_ONE])
def test_beta_one_is_geometric(q: Fraction) -> None:
    law = SGDL(1, q)
    with precision():
        for x in (-2, 0, 1, 40):
            assert agrees(law.ball(x), ball((1 - q) / (1 + q) * q ** abs(x)))
            tail = q ** (abs(x) + 1) / (1 + q)
            assert agrees(law.cdf_ball(abs(x)), ball(1 - tail))
            assert agrees(law.cdf_ball(-1 - abs(x)), ball(tail))
        assert agrees(law.mean_absolute(), ball(2 * q / (1 - q * q)))


@pytest.mark.parametrize("precision_bits", [64, 256, 700])
def test_precision_in_force(precision_bits: int) -> None:
    with precision(precision_bits):
        law = SGDL("0.3", TENTH)
        for value in (law.ball(9), law.balls(0, 500)[3], law.cdf_ball(-60), law.mean_absolute()):
            assert precision_bits - 4 <= value.rel_accuracy_bits() <= precision_bits + 4


def test_balls_of_any_range() -> None:
    law = SGDL("0.3", UNIT)
    with precision():
        for first, last in ((-3, 8), (-8, 3), (-9, -2), (5, 5), (0, 0), (-4, 0), (2, 9)):
            values = law.balls(first, last)
            assert len(values) == last - first + 1
            assert all(agrees(value, law.ball(x)) for x, value in enumerate(values, start=first))
        assert law.balls(3, 2) == []


# ------------------------------------------------------------------------------------------------------ sums


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("q", [UNIT, TENTH])
def test_sums_to_one(beta: str, q: Fraction) -> None:
    """With the rest between two geometric series, whose ratios `tail_ratio` gives; also both moments."""
    law = SGDL(beta, q)
    last = math.ceil(50 / (1 - q) + 12 * math.sqrt(law.variance))
    with precision():
        half = law.balls(0, last)
        low, high = law.tail_ratio(last)
        rest = half[last] * (low / (1 - low)).union(high / (1 - high))
        assert rest.overlaps(law.cdf_ball(-1 - last))
        total = half[0] + 2 * (sum(half[1:], arb(0)) + rest)
        assert total.overlaps(arb(1))
        assert total.rad() < 1e-12
        first_moment = 2 * sum((x * value for x, value in enumerate(half)), arb(0))
        second_moment = 2 * sum((x * x * value for x, value in enumerate(half)), arb(0))
        assert float(law.mean_absolute()) == pytest.approx(float(first_moment), rel=1e-9)
        assert float(law.variance) == pytest.approx(float(second_moment), rel=1e-9)
    assert law.variance == 2 * Fraction(beta) * q / (1 - q) ** 2


@pytest.mark.parametrize("beta", BETAS)
def test_tail_ratio_bounds_every_later_ratio(beta: str) -> None:
    law = SGDL(beta, UNIT)
    with precision():
        values = law.balls(0, 900)
        for x in (0, 1, 30, 300):
            low, high = law.tail_ratio(x)
            ratios = [values[y + 1] / values[y] for y in range(x, 900)]
            assert all(not ratio < low and not ratio > high for ratio in ratios)
            assert low.overlaps(high) if beta == "1" else low < high


@pytest.mark.parametrize(("one", "other"), [("1e-4", "0.01"), ("0.5", "0.5"), ("0.3", "7"), ("2.5", "60")])
def test_convolution_adds_betas(one: str, other: str) -> None:
    """Truncated sums; what is cut off is less than the tails of both."""
    left, right = SGDL(one, UNIT), SGDL(other, UNIT)
    with precision():
        reach = 700
        a, b = left.balls(-reach, reach), right.balls(-reach, reach)
        cut = 2 * (left.cdf_ball(-reach) + right.cdf_ball(-reach))
        assert cut < 1e-150
        for x in (0, 1, 5, 60):
            total = sum((a[reach + y] * b[reach + x - y] for y in range(x - reach, reach + 1)), arb(0))
            assert (total + cut * arb(0.5, 0.5)).overlaps((left + right).ball(x))
    assert left + right == left.plus(right) == SGDL(Fraction(one) + Fraction(other), UNIT)


def test_shares_add_up() -> None:
    law, total = SGDL(1, UNIT), SGDL(1, UNIT).share(7)
    for _ in range(6):
        total = total + law.share(7)
    assert total == law


# ------------------------------------------------------------------------------------------- cdf and quantile


@pytest.mark.parametrize(
    ("beta", "q"), [*((beta, UNIT) for beta in BETAS), ("1e-4", NEAR_ONE), ("0.5", NEAR_ONE), ("1e4", NEAR_ONE)]
)
def test_cdf(beta: str, q: Fraction) -> None:
    law = SGDL(beta, q)
    with precision():
        for x in (-9 * math.isqrt(math.ceil(law.variance)), 3):
            below, before, beyond = law.cdf_ball(x), law.cdf_ball(x - 1), law.cdf_ball(-1 - x)
            assert (below - before).overlaps(law.ball(x))
            assert (below + beyond).overlaps(arb(1))
            assert min(below.rel_accuracy_bits(), beyond.rel_accuracy_bits()) >= 250
            assert law.cdf(x) == pytest.approx(float(below), rel=1e-14, abs=0)
            assert law.sf(x) == pytest.approx(float(beyond), rel=1e-14, abs=0)


@pytest.mark.parametrize("beta", BETAS)
def test_quantile(beta: str) -> None:
    law = SGDL(beta, UNIT)
    assert law.quantile("0.5") == 0
    for p in ("1e-40", "0.3", 1 - Fraction(1, 10**40)):
        x = law.quantile(p)
        with precision():
            assert law.cdf_ball(x - 1) < ball(Fraction(p)) <= law.cdf_ball(x)


def test_quantile_near_one() -> None:
    law = SGDL("0.5", NEAR_ONE)
    assert law.sf(law.quantile("0.999")) <= 0.001 < law.sf(law.quantile("0.999") - 1)


def test_quantile_ties() -> None:
    """Whole betas have rational cdfs, which a level may hit."""
    tiny, half = Fraction(1, 10**60), Fraction(1, 2)
    for x in (0, 1, 9):
        exact = 1 - half ** (x + 1) / (1 + half)
        assert SGDL(1, half).quantile(exact) == x
        assert SGDL(1, half).quantile(exact + tiny) == x + 1
        assert SGDL(1, half).quantile(1 - exact) == -1 - x
        assert SGDL(1, half).quantile(1 - exact + tiny) == -x
    assert SGDL(2, half).quantile(Fraction(16, 27)) == 0  # Pr[0] = 5/27
    assert SGDL(2, half).quantile(Fraction(16, 27) + tiny) == 1


def test_quantile_gives_up_on_a_hopeless_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optdp.numbers.sgdl.TIE_BITS", 256)
    law = SGDL("0.5", Fraction(1, 2))
    with precision(600):
        level = Fraction(law.cdf_ball(3).str(140, radius=False))
    with pytest.raises(ProblemError, match="p must differ from every value of the cdf"):
        law.quantile(level)


def test_floats_of_arrays() -> None:
    law = SGDL("0.2", UNIT)
    x = np.array([[-700, -3, 0], [2, 5, 100_000]])
    for function in (law.pmf, law.log_pmf, law.cdf, law.sf):
        values = function(x)
        assert values.shape == x.shape
        assert values.dtype == np.float64
        assert [function(int(point)) for point in x.ravel()] == pytest.approx(values.ravel().tolist(), rel=1e-13, abs=0)
        assert function(np.array([], dtype=int)).shape == (0,)
    assert law.pmf(100_000) == 0
    assert law.log_pmf(100_000) == pytest.approx(-100_000, rel=1e-3)
    assert isinstance(law.pmf(np.int32(4)), float)


@pytest.mark.parametrize(("beta", "q"), [("0.01", 0.9), ("0.5", 0.4), ("7.3", 0.7), ("300", 0.2)])
def test_scipy_is_a_peer(beta: str, q: float) -> None:
    law, reach = SGDL(beta, q), 1200
    single = stats.nbinom.pmf(np.arange(reach + 1), float(beta), 1 - q)
    both = np.convolve(single, single[::-1])
    x = np.arange(-60, 61)
    np.testing.assert_allclose(law.pmf(x), both[reach + x], rtol=1e-9)
    np.testing.assert_allclose(law.cdf(x), np.cumsum(both)[reach + x], rtol=1e-8)
    with precision():
        ours = [float(value) for value in negative_binomial_balls(Fraction(beta), Fraction(q), 5, 80)]
    np.testing.assert_allclose(ours, single[5:81], rtol=1e-9)


# -------------------------------------------------------------------------------------------------- sampling


@pytest.mark.parametrize(
    ("beta", "q", "size"),
    [
        ("1e-4", UNIT, 200_000),
        ("1e-2", NEAR_ONE, 60_000),
        ("0.5", TENTH, 60_000),
        ("1", UNIT, 60_000),
        ("7.3", Fraction(1, 2), 60_000),
        ("1e4", FIVE, 30_000),
        ("1e4", UNIT, 30_000),
        ("50", Fraction(999, 1000), 30_000),  # in several tables
    ],
)
def test_draws_follow_the_law(beta: str, q: Fraction, size: int) -> None:
    law = SGDL(beta, q)
    draws = np.array(law.sample(size, seed=2025))
    deviation = math.sqrt(law.variance)
    few = {-1, 0} if deviation < 10 else set()
    edges = np.array(sorted({round(step * deviation) for step in (-2.5, -1.6, -1, -0.3, 0.3, 1, 1.6, 2.5)} | few))
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * size
    found = np.bincount(np.searchsorted(edges, draws), minlength=len(expected))
    assert expected.min() > 5
    assert stats.chisquare(found, expected).pvalue > 1e-3


def test_small_draws_follow_the_law() -> None:
    law = SGDL("0.5", UNIT)
    draws = np.array(law.sample(100_000, seed=7))
    x = np.arange(-8, 9)
    found = np.array([(draws == value).sum() for value in x])
    assert stats.chisquare(found, law.pmf(x) / law.pmf(x).sum() * found.sum()).pvalue > 1e-3


def test_seeds_and_sources() -> None:
    law = SGDL("0.5", UNIT)
    assert law.sample(50, seed=3) == law.sample(50, seed=3) == law.sample(50, random.Random(3).getrandbits)
    assert law.sample(50, seed=3) != law.sample(50, seed=4)
    assert len(law.sample(20)) == 20
    assert law.sample(0) == []


def test_draws_next_to_a_threshold() -> None:
    """`F(k)` of a whole beta is rational; a uniform number just below it, at it and just above it is told apart."""
    tiny = Fraction(1, 2**500)
    for beta, q in ((1, Fraction(1, 2)), (2, Fraction(1, 3)), (3, Fraction(9, 10))):
        sampler, cdf = ExactNegativeBinomial(Fraction(beta), q), Fraction(0)
        for k in range(6):
            cdf += (1 - q) ** beta * math.comb(beta + k - 1, k) * q**k
            assert sampler.draw(feed(cdf - tiny)) == k
            assert sampler.draw(feed(cdf + tiny)) == k + 1


def test_draws_of_a_long_law() -> None:
    """Geometric with `q = 1 - 1e-5`, in many tables: `F(k) = 1 - q^(k+1)`, approached from both sides."""
    q, tiny = 1 - Fraction(1, 10**5), Fraction(1, 2**180)
    sampler = ExactNegativeBinomial(Fraction(1), q)
    assert sampler.count > 100
    for k in (0, 3, 16_383, 16_384, 1_000_000):
        with precision(700):
            top = int((ball(q) ** (k + 1) * arb(2) ** 640).floor().unique_fmpz())
        cdf = 1 - Fraction(top, 2**640)
        assert sampler.draw(feed(cdf - tiny)) == k
        assert sampler.draw(feed(cdf + tiny)) == k + 1
        if k < 10**6:
            assert sampler.draw(feed(cdf - Fraction(1, 10**8))) == k
            assert sampler.draw(feed(cdf + Fraction(1, 10**8))) == k + 1


@pytest.mark.parametrize(("beta", "q"), [("0.01", UNIT), ("1", TENTH), ("7.3", UNIT), ("50", Fraction(999, 1000))])
def test_sources_that_repeat_themselves(beta: str, q: Fraction) -> None:
    """Long runs of equal bits lead far into a tail, and the draw is the one that the incomplete beta function gives."""
    sampler = ExactNegativeBinomial(Fraction(beta), q)
    for first, words in ((0, 2), ((1 << 64) - 1, 2)):
        rest = 0x123456789ABCDEF0
        source = chain(repeat(first, words), repeat(rest))
        k = sampler.draw(lambda width, source=source: next(source))
        bits = 64 * words + 64
        u = Fraction(sum(first << 64 * i for i in range(1, words + 1)) + rest, 2**bits)
        with precision(600):
            b, p = ball(Fraction(beta)), ball(1 - q)
            assert ball(u) < p.beta_lower(b, arb(k + 1), regularized=True)
            assert k == 0 or ball(u) > p.beta_lower(b, arb(k), regularized=True)


def test_a_broken_source_is_refused() -> None:
    with pytest.raises(ProblemError, match="Random bits must be random"):
        SGDL(1, UNIT).sample(1, lambda width: (1 << width) - 1)
    assert SGDL(1, UNIT).sample(3, lambda width: 0) == [0, 0, 0]


# ------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("beta", "q", "rule"),
    [
        (0, "0.5", "beta must lie between"),
        (-1, "0.5", "beta must lie between"),
        ("1e9", "0.5", "beta must lie between"),
        ("one", "0.5", "beta must be a decimal"),
        (float("nan"), "0.5", "beta must be finite"),
        (1, 0, "q must lie between"),
        (1, 1, "q must lie between"),
        (1, "1.5", "q must lie between"),
        (1, "-0.5", "q must lie between"),
        (1, True, "q must be a number"),
    ],
)
def test_bad_laws(beta: object, q: object, rule: str) -> None:
    with pytest.raises(ProblemError, match=rule):
        SGDL(beta, q)  # type: ignore[arg-type]


def test_bad_questions() -> None:
    law = SGDL("0.5", "0.5")
    for question in (law.ball, law.pmf, law.log_pmf, law.cdf, law.sf, law.cdf_ball, law.tail_ratio):
        for x in (0.5, "1", True, None, 1 << 70):
            with pytest.raises(ProblemError, match="x must be a whole number"):
                question(x)  # type: ignore[arg-type]
    for p in (0, 1, -1, 2):
        with pytest.raises(ProblemError, match="p must lie strictly between"):
            law.quantile(p)
    with pytest.raises(ProblemError, match="x must hold integers"):
        law.pmf(np.array([0.5]))
    with pytest.raises(ProblemError, match="x must not be negative"):
        law.tail_ratio(-1)
    with pytest.raises(ProblemError, match="n must be at least 1"):
        law.share(0)
    with pytest.raises(ProblemError, match="size must not be negative"):
        law.sample(-1)
    with pytest.raises(ProblemError, match="must have one q"):
        law.plus(SGDL("0.5", "0.25"))


def test_laws_are_values() -> None:
    assert SGDL("0.5", "0.25") == SGDL(0.5, Fraction(1, 4))
    assert len({SGDL("0.5", "0.25"), SGDL(0.5, 0.25)}) == 1
    with pytest.raises(AttributeError):
        SGDL(1, "0.5").q = Fraction(1, 3)  # type: ignore[misc]
