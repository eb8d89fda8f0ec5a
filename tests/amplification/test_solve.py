"""Answers about shuffling against 400-bit balls, all data sets of few people, and the numbers that the papers hold."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb

from optdp import KRR, Amplification, Channel, Gaussian, Generic, Laplace, ProblemError, profile, solve
from optdp.amplification import bounds, catalogue
from optdp.amplification.bounds import BOUNDS, COARSE, MIDDLE, Setting
from optdp.amplification.counts import CountSetting
from optdp.amplification.randomizers import Randomizer
from optdp.amplification.solve import point
from optdp.numbers.exact import ball, precision
from tests.amplification.balls import channel, delta_ball, generic, krr_alike, krr_blanket
from tests.amplification.by_balls import count_delta_sum
from tests.amplification.oracle import krr, worst, worst_exact

POINTS = ((10_000, 2, "1e-6"), (100_000, 4, "1e-6"), (1_000_000, 4, "1e-8"))
CATALOGUE: list[Randomizer] = [
    Generic(),
    KRR(2),
    KRR(3),
    KRR(10),
    Laplace(),
    catalogue.Rappor(),
    catalogue.UnaryEncoding(),
    catalogue.Piecewise(),
    catalogue.PlanarLaplace(),
    catalogue.SubsetSelection(10, 3),
    catalogue.LocalHash(4),
    catalogue.Hadamard(16),
    catalogue.VariationRatio(0.4),
    Gaussian(delta0=1e-4),
]
NAMES = [repr(randomizer) for randomizer in CATALOGUE]


def at_most(truth: arb, value: float) -> bool:
    """No proof that `truth` is above the float, which is read as the binary fraction that it is."""
    with precision(400):
        return not bool(truth > ball(Fraction(value)))


def at_least(truth: arb, value: float) -> bool:
    with precision(400):
        return not bool(truth < ball(Fraction(value)))


def binary_worst(n: int, eps0: Fraction, epsilon: Fraction) -> arb:
    """The largest delta over all data sets: with two answers the histogram is the count."""
    with precision(400):
        found = arb(0)
        for held in range(n):
            found = found.max(count_delta_sum(CountSetting(n, held, eps0), epsilon, bits=400))
        return found


# ------------------------------------------------------------------------------------------------- numbers to hold


@pytest.mark.parametrize(
    ("randomizer", "method", "values"),
    [
        (Generic(), "hoeffding-generic", (1.01708, None, None)),
        (KRR(10), "hoeffding-k-rr", (0.218000, 0.299644, 0.108464)),
        (Laplace(), "hoeffding-laplace", (0.166634, 0.276501, 0.100317)),
        (Generic(), "bennett-generic", (0.517501, 2.20853, 0.443893)),
        (KRR(10), "bennett-k-rr", (0.094980, 0.129200, 0.047187)),
        (Laplace(), "bennett-laplace", (0.112056, 0.112299, 0.041087)),
    ],
)
def test_the_table_of_closed_forms(randomizer: Randomizer, method: str, values: tuple[float | None, ...]) -> None:
    for (n, eps0, delta), value in zip(POINTS, values, strict=True):
        problem = Amplification(randomizer, eps0=eps0, n=n, delta=delta, method=method)
        if value is None:
            with pytest.raises(ProblemError, match=method):
                solve(problem)
            continue
        found = solve(problem)
        assert found.method == method
        assert found.value == pytest.approx(value, abs=1e-6 if value < 1 else 5e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("randomizer", "most"),
    [
        (Generic(), (0.114402, 0.118165, 0.045297)),
        (KRR(10), (0.079804, 0.109909, 0.042007)),
        (Laplace(), (0.094600, 0.095220, 0.036520)),
    ],
)
def test_the_best_upper_bounds(randomizer: Randomizer, most: tuple[float, ...]) -> None:
    for (n, eps0, delta), value in zip(POINTS, most, strict=True):
        found = solve(Amplification(randomizer, eps0=eps0, n=n, delta=delta))
        assert found.value <= value
        assert found.lower is not None
        assert found.lower < found.value
        uppers = [row.value for row in found.bounds if row.side == "upper" and row.value is not None]
        lowers = [row.value for row in found.bounds if row.side == "lower" and row.value is not None]
        assert found.value == min(uppers)
        assert found.lower == max(lowers)


@pytest.mark.slow
def test_079794_is_impossible_for_10_rr() -> None:
    """Where all others hold one third value, more epsilon is needed; what is returned is enough for every data set."""
    assert delta_ball(krr_alike(2, 10), 10_000, "0.079794") > 1e-6
    value = solve(Amplification(KRR(10), eps0=2, n=10_000, delta="1e-6")).value
    assert value == pytest.approx(0.0798037, abs=1e-7)
    with precision(400):
        assert delta_ball(krr_blanket(2, 10), 10_000, Fraction(value)) <= ball(Fraction(1, 10**6))


# ------------------------------------------------------------------------------------------- never below the truth


def draw(rng: random.Random, most: int) -> tuple[int, Fraction, Fraction]:
    n = round(math.exp(rng.uniform(math.log(2), math.log(most))))
    eps0 = Fraction(rng.randint(10, 600), 100)
    share = rng.choice((rng.randint(1, 99), rng.randint(1, 30), 99)) if n > 30 else rng.randint(1, 99)
    return n, eps0, eps0 * Fraction(share, 100)


@pytest.mark.slow
@pytest.mark.parametrize("k", range(3, 11))
def test_never_below_the_truth_for_krr(k: int) -> None:
    rng = random.Random(k)
    for i in range(30):
        n, eps0, epsilon = draw(rng, 1000 if k == 3 or i < 2 else 150)
        found = solve(Amplification(KRR(k), eps0=eps0, n=n, epsilon=epsilon))
        assert at_most(delta_ball(krr_alike(eps0, k), n, epsilon), found.value), (n, eps0, epsilon)
        assert found.lower is not None
        assert at_least(delta_ball(krr_blanket(eps0, k), n, epsilon), found.lower), (n, eps0, epsilon)


@pytest.mark.slow
def test_never_below_the_truth_for_binary() -> None:
    rng = random.Random(2)
    for i in range(100):
        n, eps0, epsilon = draw(rng, 1000 if i < 3 else 120)
        found = solve(Amplification(KRR(2), eps0=eps0, n=n, epsilon=epsilon))
        truth = binary_worst(n, eps0, epsilon)
        assert at_most(truth, found.value), (n, eps0, epsilon)
        assert found.lower is not None
        assert at_least(truth, found.lower), (n, eps0, epsilon)


@pytest.mark.slow
def test_never_below_the_truth_for_any_randomizer() -> None:
    """What holds for every randomizer holds for those of two and of three values."""
    rng = random.Random(1)
    for i in range(100):
        n, eps0, epsilon = draw(rng, 1000)
        found = solve(Amplification(Generic(), eps0=eps0, n=n, epsilon=epsilon))
        assert at_most(delta_ball(krr_alike(eps0, 3), n, epsilon), found.value), (n, eps0, epsilon)
        if i < 40 and n <= 100:
            assert at_most(binary_worst(n, eps0, epsilon), found.value), (n, eps0, epsilon)
        assert found.lower is not None
        assert at_least(delta_ball(generic(eps0), n, epsilon), found.lower), (n, eps0, epsilon)


@pytest.mark.slow
def test_never_below_the_truth_for_channels() -> None:
    rng = random.Random(6)
    for _ in range(60):
        outputs, n, unit = rng.randint(2, 3), rng.randint(2, 5), 64
        rows = []
        for _ in range(3):
            cuts = sorted(rng.sample(range(1, unit), outputs - 1))
            rows.append([Fraction(b - a, unit) for a, b in zip((0, *cuts), (*cuts, unit), strict=True)])
        epsilon = Fraction(rng.randint(1, 150), 100)
        low, high = worst(rows, n, epsilon)
        found = solve(Amplification(Channel.of([[float(v) for v in row] for row in rows]), n=n, epsilon=epsilon))
        assert found.value >= low, (rows, n, epsilon)
        assert found.lower is None or found.lower <= high, (rows, n, epsilon)


@pytest.mark.parametrize("share", ["0.5", "0.9", "0.999", "0.999999", "0.999999999"])
def test_never_below_the_truth_where_almost_nothing_is_left(share: str) -> None:
    """Close to eps0, and for a tiny eps0, the laws of two inputs nearly cancel."""
    for eps0 in map(Fraction, ("1e-8", "1e-7", "1e-6", "1e-4", "0.01", "1", "5")):
        for n in (2, 20):
            epsilon = eps0 * Fraction(share)
            if epsilon < Fraction(1, 10**9):
                continue
            found = solve(Amplification(KRR(5), eps0=eps0, n=n, epsilon=epsilon))
            assert at_most(delta_ball(krr_alike(eps0, 5), n, epsilon), found.value), (eps0, n, found.value)
            assert found.lower is not None
            assert at_least(delta_ball(krr_blanket(eps0, 5), n, epsilon), found.lower), (eps0, n, found.lower)
            two = solve(Amplification(KRR(2), eps0=eps0, n=n, epsilon=epsilon))
            truth = binary_worst(n, eps0, epsilon)
            assert at_most(truth, two.value), (eps0, n, two.value)
            assert two.lower is not None
            assert at_least(truth, two.lower), (eps0, n, two.lower)


def test_zero_only_where_it_is_zero() -> None:
    """At eps0 delta is 0, and nothing is proved to be above it; just below eps0 it is not 0."""
    for eps0 in ("1e-9", "0.1", "1"):
        found = solve(Amplification(KRR(2), eps0=eps0, n=2, epsilon=eps0))
        assert found.value == 0.0
        assert found.lower == 0.0
    below = solve(Amplification(KRR(2), eps0=1, n=2, epsilon="0.9999999999999997"))
    assert below.value > 0.0


@pytest.mark.parametrize("eps0", ["1e-6", "1e-5", "0.001", "0.1", "1"])
def test_planar_laplace_is_seen_through_half_planes(eps0: str) -> None:
    """Two places at the diameter, the others at one of them: which half-plane a message is in is binary.

    The projection of planar Laplace noise has density 1/pi at 0, so that the total variation is eps0/pi less a cubic
    term (and a logarithm), which the factor here is below: 0.31779e-1 at 0.1, 0.29596 at 1.
    """
    x, n = Fraction(eps0), 2
    variation = float(x) / math.pi / (1 + float(x) ** 2)
    near, far = Fraction((1 + variation) / 2), Fraction((1 - variation) / 2)
    found = solve(Amplification(catalogue.PlanarLaplace(), eps0=eps0, n=n, epsilon="1e-9"))
    gain = Fraction(math.exp(1e-9)) * (1 + Fraction(1, 10**15))
    first = {0: far * far, 1: 2 * near * far, 2: near * near}
    second = {0: near * far, 1: near * near + far * far, 2: near * far}
    truth = sum((max(first[c] - gain * second[c], Fraction(0)) for c in first), Fraction(0))
    assert found.value >= truth


@pytest.mark.parametrize("sigma", [0.01, 0.02, 0.05, 0.3, 2.0])
def test_gaussian_is_seen_through_a_threshold(sigma: float) -> None:
    """Whether a message is above 1/2 is binary randomized response with p = Phi(1/2sigma)/Phi(-1/2sigma)."""
    wrong = math.erfc(0.5 / sigma / math.sqrt(2)) / 2
    for n, epsilon in ((2, 1.0), (20, 0.1)):
        found = solve(Amplification(Gaussian(sigma=sigma), n=n, epsilon=epsilon))
        if wrong == 0 or math.log((1 - wrong) / wrong) > 40:
            assert found.value > 0.999
            continue
        local = Fraction(math.log((1 - wrong) / wrong) * (1 - 1e-12))
        assert at_most(binary_worst(n, local, Fraction(epsilon)), found.value)


@pytest.mark.parametrize(
    ("sigma", "n", "delta", "most", "least"),
    [
        (1.0, 10**5, "1e-6", 0.01733, 0.0),
        (0.5, 10**6, "1e-8", 0.32, 0.295),
        (0.3, 10**4, "1e-6", 13.0, 11.5),
    ],
)
def test_gaussian_bounds_are_close_to_each_other(sigma: float, n: int, delta: str, most: float, least: float) -> None:
    found = solve(Amplification(Gaussian(sigma=sigma), n=n, delta=delta))
    assert found.value <= 1.01 * most
    assert found.lower is not None
    assert least <= found.lower <= found.value


def test_people_who_take_part_by_chance() -> None:
    """Sending nothing is a message like any other: all data sets of few people, one by one, in rationals."""
    rng = random.Random(5)
    for k, n in ((2, 3), (3, 3), (3, 4), (4, 3)):
        rate, ratio = Fraction(rng.randint(5, 95), 100), Fraction(rng.randint(15, 60), 10)
        thinned = [[rate * v for v in row] + [1 - rate] for row in krr(k, ratio)]
        for gain in (Fraction(11, 10), Fraction(3, 2)):
            truth = float(worst_exact(thinned, n, gain))
            given = {"eps0": math.log(ratio), "epsilon": math.log(gain), "n": n, "rate": rate}
            found = solve(Amplification(KRR(k), **given))
            assert found.lower is not None
            assert found.lower * (1 - 1e-9) <= truth <= found.value * (1 + 1e-9)


@pytest.mark.parametrize(("rate", "epsilon"), [("0.5", 0.05499), ("0.1", 0.02315), ("1", 0.079804)])
def test_figures_of_taking_part_by_chance(rate: str, epsilon: float) -> None:
    found = solve(Amplification(KRR(10), eps0=2, n=10_000, delta="1e-6", rate=rate))
    assert found.value == pytest.approx(epsilon, rel=2e-4)
    assert found.lower is not None
    assert 0.99 * found.value < found.lower <= found.value
    assert ("takes part with probability" in found.problem.meaning) == (rate != "1")


@pytest.mark.parametrize("randomizer", [Generic(), Laplace(), Gaussian(sigma=0.6), catalogue.Rappor(), KRR(2)])
def test_fewer_who_take_part_tell_less(randomizer: Randomizer) -> None:
    eps0 = 1 if randomizer.own_eps0 is None else None
    found = [solve(Amplification(randomizer, eps0=eps0, n=1000, delta="1e-5", rate=rate)) for rate in ("0.9", "0.3")]
    assert found[1].value < found[0].value
    for each in found:
        assert each.lower is not None
        assert each.lower <= each.value


def test_no_gaussian_promise_is_broken_by_a_message_far_out() -> None:
    """The event that some message is below t gives a divergence that every upper bound has to allow for."""
    rng = random.Random(21)
    for _ in range(40):
        sigma, n = rng.uniform(0.2, 1.2), int(10 ** rng.uniform(0.5, 6.5))
        setting, epsilon = Setting(Gaussian(sigma=sigma), math.inf, n), 10 ** rng.uniform(-1.5, 1.0)
        place = rng.uniform(-4.0, 1.0)
        low, high = arb(place) / arb(2).sqrt() / arb(sigma), (arb(place) - 1) / arb(2).sqrt() / arb(sigma)
        own, each = (-low).erfc() / 2, (-high).erfc() / 2
        zero, one = 1 - (1 - own) * (1 - each) ** (n - 1), 1 - (1 - each) ** n
        truth = (zero - arb(epsilon).exp() * one).mid()
        found = BOUNDS["first-below"].log_delta(setting, epsilon, COARSE)
        upper = BOUNDS["blanket"].log_delta(setting, epsilon, MIDDLE)
        assert found is not None
        assert upper is not None
        assert found <= upper
        assert truth <= math.exp(upper)
        assert truth <= math.exp(found) * 1.01 + 1e-12


def test_numbers_have_extended_precision_where_round_off_would_show() -> None:
    """A finer grid is not looser, at 3,000,000 people whose ratios are e^10."""
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("the machine has no extended precision")
    found = solve(Amplification(KRR(10), eps0=10, n=3_000_000, delta="1e-8"))
    assert found.value <= 0.6267
    (pair,) = KRR(10).blankets(10.0)
    bounds = [pair.log_upper(3_000_000, 0.6267, 1 << grid) for grid in (13, 14, 16)]
    assert bounds == sorted(bounds, reverse=True)
    assert (solve(Amplification(KRR(10), eps0=12, n=4_000_000, delta="1e-8")).lower or 0.0) > 0.3


def test_gaussian_without_noise_over_rounds_is_not_private() -> None:
    """sigma = 0.01 tells 0 from 1 for certain: no small epsilon holds, in one round or in ten."""
    for rounds in (1, 10):
        problem = Amplification(Gaussian(sigma=0.01), n=100, delta="1e-12", rounds=rounds)
        try:
            value = solve(problem).value
        except ProblemError:
            continue
        assert value > 10


def test_gaussian_eps0_is_found_and_keeps_the_promise() -> None:
    """(eps0, delta0)-LDP with delta0 above delta promises nothing by itself."""
    for n, epsilon in ((2, "1"), (10_000, "0.5")):
        problem = Amplification(Gaussian(delta0=1e-3), n=n, delta="1e-6", epsilon=epsilon)
        try:
            value = solve(problem).value
        except ProblemError:
            continue
        back = solve(Amplification(Gaussian(delta0=1e-3), eps0=value, n=n, epsilon=epsilon))
        assert back.lower is not None
        assert back.lower <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("randomizer", [Laplace(), KRR(2), catalogue.SubsetSelection(2, 1), catalogue.Hadamard(8)])
@pytest.mark.parametrize("n", [1000, 10**10])
def test_a_large_eps0_is_an_answer_or_a_refusal(randomizer: Randomizer, n: int) -> None:
    for eps0 in (30, 38, 40):
        problem = Amplification(randomizer, eps0=eps0, n=n, delta="1e-5")
        drawn = point(problem, "upper")
        try:
            assert 0 < solve(problem).value < eps0
        except ProblemError as error:
            assert f"eps0 = {eps0}" in str(error)  # noqa: PT017
            assert drawn is None


# -------------------------------------------------------------------------------------------- every unknown, by balls


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 7])
def test_what_is_returned_keeps_the_promise(k: int) -> None:
    def truth(n: int, eps0: Fraction, epsilon: Fraction) -> arb:
        return binary_worst(n, eps0, epsilon) if k == 2 else delta_ball(krr_alike(eps0, k), n, epsilon)

    def bound(n: int, eps0: Fraction, epsilon: Fraction) -> arb:
        return binary_worst(n, eps0, epsilon) if k == 2 else delta_ball(krr_blanket(eps0, k), n, epsilon)

    rng = random.Random(10 + k)
    for _ in range(5):
        n, eps0 = rng.randint(5, 150), Fraction(rng.randint(50, 300), 100)
        epsilon, delta = eps0 * Fraction(rng.randint(20, 70), 100), Fraction(1, 10 ** rng.randint(2, 8))
        low = delta * Fraction(10**9 - 1, 10**9)
        with precision(400):
            keep = solve(Amplification(KRR(k), n=n, delta=delta, epsilon=epsilon))
            assert not truth(n, Fraction(keep.value), epsilon) > ball(delta)
            if keep.lower is not None and keep.lower < 39:
                assert not bound(n, Fraction(keep.lower), epsilon) < ball(low)
            try:
                shuffled = solve(Amplification(KRR(k), eps0=eps0, n=n, delta=delta))
            except ProblemError:
                assert bound(n, eps0, eps0 * Fraction(999_999, 10**6)) > 0
            else:
                assert not truth(n, eps0, Fraction(shuffled.value)) > ball(delta)
                if shuffled.lower:
                    assert not bound(n, eps0, Fraction(shuffled.lower)) < ball(low)
            people = solve(Amplification(KRR(k), eps0=eps0, delta=delta, epsilon=epsilon))
            if people.value < 400:
                assert isinstance(people.value, int)
                assert not truth(people.value, eps0, epsilon) > ball(delta)
                assert people.value == 2 or not bound(people.value - 1, eps0, epsilon) < ball(low)
                if people.lower is not None:
                    assert people.lower < people.value
                    assert not bound(int(people.lower), eps0, epsilon) < ball(low)


def test_the_largest_k_for_a_gamma_and_the_smallest_for_an_eps0() -> None:
    found = solve(Amplification(KRR(0, 0.5), n=100, delta="1e-4", epsilon="0.8"))
    assert isinstance(found.value, int)
    assert found.value >= 2
    for k, kept in ((found.value, True), (found.value + 1, False)):
        eps0 = Fraction(math.log1p(k))  # p = 1 + k (1 - 1/2) / (1/2)
        assert (delta_ball(krr_blanket(eps0, k), 100, "0.8") <= 1e-4) is kept
    other = solve(Amplification(KRR(0), eps0=2, n=100, delta="1e-4", epsilon="0.5"))
    for k, kept in ((other.value, True), (other.value - 1, False)):
        if k >= 3:
            assert (delta_ball(krr_blanket(2, int(k)), 100, "0.5") <= 1e-4) is kept


@pytest.mark.slow
@pytest.mark.parametrize("randomizer", [Generic(), KRR(2), KRR(6), Laplace(), catalogue.Rappor()], ids=repr)
def test_round_trips(randomizer: Randomizer) -> None:
    n, eps0, delta = 500, Fraction(3, 2), Fraction(1, 10**6)
    epsilon = Fraction(solve(Amplification(randomizer, eps0=eps0, n=n, delta=delta)).value)
    assert solve(Amplification(randomizer, eps0=eps0, n=n, epsilon=epsilon)).value <= delta * (1 + Fraction(1, 10**12))
    wanted = epsilon * Fraction(9, 10)
    people = solve(Amplification(randomizer, eps0=eps0, delta=delta, epsilon=wanted)).value
    assert people > n
    assert solve(Amplification(randomizer, eps0=eps0, n=int(people), epsilon=wanted)).value <= delta * (1 + 1e-12)
    local = Fraction(solve(Amplification(randomizer, n=n, delta=delta, epsilon=wanted)).value)
    assert local < eps0
    assert solve(Amplification(randomizer, eps0=local, n=n, epsilon=wanted)).value <= delta * (1 + 1e-12)


# --------------------------------------------------------------------------------------------------------- monotone


@pytest.mark.slow
@pytest.mark.parametrize("randomizer", CATALOGUE, ids=NAMES)
def test_monotone_in_every_parameter(randomizer: Randomizer) -> None:
    slack = 1 + 2e-4

    def epsilon(eps0: str = "1", n: int = 1000, delta: str = "1e-6") -> float:
        found = point(Amplification(randomizer, eps0=eps0, n=n, delta=delta), "upper")
        assert found is not None
        return found

    def falls(values: list[float]) -> bool:
        return all(b <= a * slack for a, b in pairwise(values)) and values[-1] < values[0]

    assert falls([epsilon(n=n) for n in (400, 1000, 20_000, 10**6)])
    assert falls([epsilon(delta=delta) for delta in ("1e-9", "1e-6", "1e-5", "1e-3")])
    assert falls([epsilon(eps0=eps0) for eps0 in ("2", "1", "0.7", "0.3")])


@pytest.mark.slow
@pytest.mark.parametrize("randomizer", [Generic(), KRR(2), KRR(4), Laplace(), catalogue.Hadamard(8)], ids=repr)
def test_more_people_allow_a_larger_eps0(randomizer: Randomizer) -> None:
    values = [solve(Amplification(randomizer, n=n, delta="1e-6", epsilon="0.3")).value for n in (50, 500, 5000)]
    assert values == sorted(values)
    deltas = [solve(Amplification(randomizer, eps0=2, n=n, epsilon="0.3")).value for n in (20, 200, 2000)]
    assert deltas == sorted(deltas, reverse=True)


# ------------------------------------------------------------------------------------------------------ far out


def test_tiny_deltas() -> None:
    found = solve(Amplification(KRR(3), eps0=1, n=1000, delta="1e-30"))
    with precision(400):
        assert not delta_ball(krr_alike(1, 3), 1000, Fraction(found.value)) > ball(Fraction(1, 10**30))
        assert found.lower is not None
        assert not delta_ball(krr_blanket(1, 3), 1000, Fraction(found.lower)) < ball(Fraction(999, 1000 * 10**30))
    assert found.lower > 0.95 * found.value


@pytest.mark.slow
@pytest.mark.parametrize("randomizer", [Generic(), KRR(10)], ids=repr)
def test_a_thousand_million_people_are_nearly_gaussian(randomizer: Randomizer) -> None:
    """The counts are nearly normal: mu^2 = chi-square divergence of x from x' relative to the others, over n."""
    n, eps0, delta = 10**9, 1.0, 1e-8
    p = math.exp(eps0)
    c = 1 / (p + 1) if randomizer.kind == "generic" else 1 / (p + 9)
    mu = math.sqrt(2 * (p * c - c) ** 2 / c / n)

    def gaussian(epsilon: float) -> float:
        a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return math.erfc(-a / math.sqrt(2)) / 2 - math.exp(epsilon) * math.erfc(-b / math.sqrt(2)) / 2

    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian(middle) <= delta else (middle, high)
    found = solve(Amplification(randomizer, eps0=1, n=n, delta="1e-8"))
    assert found.value == pytest.approx(high, rel=5e-3)
    assert found.lower is not None
    assert found.lower < found.value


# ------------------------------------------------------------------------------------------------- one bound by name


def test_a_bound_by_its_name() -> None:
    table = solve(Amplification(KRR(4), eps0=1, n=1000, delta="1e-6"))
    for row in table.bounds:
        if row.side == "lower":
            with pytest.raises(ProblemError, match="method must be"):
                Amplification(KRR(4), eps0=1, n=1000, delta="1e-6", method=row.method)
        elif row.value is None:
            with pytest.raises(ProblemError, match=row.method):
                solve(Amplification(KRR(4), eps0=1, n=1000, delta="1e-6", method=row.method))
        else:
            found = solve(Amplification(KRR(4), eps0=1, n=1000, delta="1e-6", method=row.method))
            assert found.method == row.method
            assert found.value == pytest.approx(row.value, rel=1e-2)
            assert [one.method for one in found.bounds if one.side == "upper"] == [row.method]
    for name in ("", "magic", "Best", "lower"):
        with pytest.raises(ProblemError, match="method must be"):
            Amplification(KRR(4), eps0=1, n=1000, delta="1e-6", method=name)


def test_rounds_use_the_bound_that_was_named() -> None:
    """A named bound is what is promised: it must not be left out without a word."""
    kwargs = {"eps0": 1, "n": 1000, "delta": "1e-6", "rounds": 3}
    try:
        found = solve(Amplification(KRR(4), method="bennett-k-rr", **kwargs))  # type: ignore[arg-type]
    except ProblemError:
        return
    assert found.method == "bennett-k-rr"


# ---------------------------------------------------------------------------------------------- profile and rounds


@pytest.mark.parametrize("randomizer", [Generic(), KRR(2), KRR(5), Laplace()], ids=repr)
def test_the_profile_is_convex_and_falls(randomizer: Randomizer) -> None:
    epsilons = [0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.9]
    found = profile(Amplification(randomizer, eps0=1, n=100, delta="1e-6"), epsilons)
    assert [at for at, _, _ in found] == epsilons
    assert all(0 <= low <= high <= 1 for _, low, high in found)
    uppers = [high for _, _, high in found]
    assert uppers == sorted(uppers, reverse=True)
    for (x, _, a), (y, _, b), (z, _, c) in zip(found, found[1:], found[2:], strict=False):
        t = (math.exp(y) - math.exp(x)) / (math.exp(z) - math.exp(x))
        assert b <= (a * (1 - t) + c * t) * (1 + 1e-3)  # convex in e^eps
    with pytest.raises(ProblemError, match="eps0"):
        profile(Amplification(randomizer, n=100, delta="1e-6", epsilon="0.1"), epsilons)
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(ProblemError, match="epsilon must be"):
            profile(Amplification(randomizer, eps0=1, n=100, delta="1e-6"), [bad])


@pytest.mark.slow
def test_rounds_lie_between_one_round_and_the_sum_of_all() -> None:
    pytest.importorskip("dp_accounting")
    one = solve(Amplification(KRR(4), eps0=1, n=1000, delta="1e-6")).value
    ten = solve(Amplification(KRR(4), eps0=1, n=1000, delta="1e-5", rounds=10))
    assert one < ten.value < 10 * one
    assert ten.status == "solved"
    again = solve(Amplification(KRR(4), eps0=1, n=1000, epsilon=ten.value, rounds=10))
    assert again.value <= 1e-5 * (1 + 1e-6)
    more = solve(Amplification(KRR(4), eps0=1, n=1000, delta="1e-5", rounds=20))
    assert more.value > ten.value
    for missing in ({"n": 1000}, {"eps0": 1}):
        with pytest.raises(ProblemError, match="rounds"):
            Amplification(KRR(4), delta="1e-5", epsilon="0.5", rounds=2, **missing)


# --------------------------------------------------------------------------------------------------------- Ctrl-C


def stop(*_: object) -> float:
    raise KeyboardInterrupt


def test_interrupted_the_best_of_what_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Amplification(KRR(4), eps0=1, n=1000, delta="1e-6")
    whole = solve(problem)
    monkeypatch.setitem(bounds.BOUNDS, "blanket", replace(BOUNDS["blanket"], log_delta=stop))
    found = solve(problem)
    assert found.status == "interrupted"
    ready = [row for row in found.bounds if row.side == "upper" and row.value is not None]
    assert ready
    assert found.value == min(row.value for row in ready if row.value is not None)
    assert found.value >= whole.value
    assert "blanket" not in {row.method for row in found.bounds}
    assert found.summary()["status"] == "interrupted"


def test_interrupted_with_nothing_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, bound in list(BOUNDS.items()):
        monkeypatch.setitem(bounds.BOUNDS, name, replace(bound, log_delta=stop))
    with pytest.raises(KeyboardInterrupt):
        solve(Amplification(KRR(4), eps0=1, n=1000, delta="1e-6"))


# ------------------------------------------------------------------------------------------------ found by fuzzing


def test_ratios_to_a_third_input_above_e_eps0_are_not_pure_ldp() -> None:
    """Such a randomizer need not be eps0-LDP: a channel with these parameters gives away 1e14 times what clones say."""
    eps0, q, n, epsilon = Fraction("0.328251679047"), Fraction("4.77568900726"), 32306, "0.0183"
    found = solve(Amplification(catalogue.VariationRatio(0.34, float(q)), eps0=eps0, n=n, epsilon=epsilon))
    rows = {row.method: row for row in found.bounds}
    assert not rows["stronger-clones"].applicable
    p = Fraction(math.exp(eps0)).limit_denominator(10**12)
    a = 1 / (p + 1)
    third = a * p / q
    matrix = [[p * a, a, Fraction(0)], [a, p * a, Fraction(0)], [third, third, 1 - 2 * third]]
    assert delta_ball(channel(matrix, 0, 1, 2), n, epsilon) < arb(found.value) * arb("1.00001")
    assert delta_ball(channel(matrix, 0, 1, 2), n, epsilon) > arb(found.value) / 2


@pytest.mark.parametrize(
    ("k", "eps0", "n", "epsilon"),
    [(7 * 10**14 + 11, "0.1", 3, "0.05"), (10**6, "2", 5, "1.9"), (10**15, "2", 2, "1.9"), (10**12, "0.1", 3, "0.05")],
)
def test_what_cells_leave_over_is_known_to_round_off_only(k: int, eps0: str, n: int, epsilon: str) -> None:
    """With so many values nearly all messages hide nobody, and delta hangs on what is left over."""
    found = solve(Amplification(KRR(k), eps0=eps0, n=n, epsilon=epsilon))
    assert found.lower is not None
    assert arb(found.lower) <= delta_ball(krr_alike(eps0, k), n, epsilon)
    assert delta_ball(krr_blanket(eps0, k), n, epsilon) <= arb(found.value)
