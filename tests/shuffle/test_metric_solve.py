"""Metric shuffles solved: claims against the released sum's law, convolved here; tightness; every figure again."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, nbinom

from optdp import SGDL, CertificateError, InfeasibleError, MetricShuffle, ProblemError, compare_mechanisms, solve
from optdp.shuffle.metric.flips import FlippedPair
from optdp.shuffle.metric.solve import MetricSolution
from optdp.shuffle.metric.theorems import theorem_4_1_noise

Floats = NDArray[np.float64]


# ---------------------------------------------------------------- the released sum by FFT, truncation and all


@lru_cache(maxsize=256)
def one_noise(beta: float, q: float, reach: int) -> Floats:
    """`SGDL(beta, q)` on `-reach..reach` from scipy's negative binomials."""
    far = reach + int(nbinom.isf(1e-18, beta, 1.0 - q)) + 2
    law = nbinom.pmf(np.arange(far + 1), beta, 1.0 - q)
    right = np.array([np.dot(law[: far + 1 - j], law[j:]) for j in range(reach + 1)])
    return np.concatenate((right[:0:-1], right))


def message(beta: float, q: float, c: int, largest: int, value: float) -> Floats:
    """What somebody sends, `value` in quanta: rounded at random, noisy, and clamped to `0..largest+2c`."""
    top, below = largest + 2 * c, math.floor(value)
    found = np.zeros(top + 1)
    for start, chance in ((below, 1.0 - (value - below)), (below + 1, value - below)):
        if chance:
            reach = top + c + largest
            noise = one_noise(beta, q, reach)
            places = np.clip(np.arange(-reach, reach + 1) + c + start, 0, top)
            found += chance * np.bincount(places, weights=noise, minlength=top + 1)
            rest = (1.0 - noise.sum()) / 2.0
            found[[0, top]] += chance * rest
    return found


def hockey(p: Floats, w: Floats, loss: float) -> float:
    return float(np.maximum(p - math.exp(loss) * w, 0.0).sum())


def least_loss(p: Floats, w: Floats, delta: float) -> float:
    """The least loss with which both ways spend at most delta."""
    found = 0.0
    for one, other in ((p, w), (w, p)):
        if hockey(one, other, 0.0) > delta:
            excess = lambda loss, one=one, other=other: hockey(one, other, loss) - delta  # noqa: E731
            found = max(found, brentq(excess, 0.0, 60.0, xtol=1e-12))
    return found


def exact_loss(solution: MetricSolution, changes: list[tuple[float, float]], delta: float, **numbers: Any) -> float:
    """Of two data sets: `changes` says what some people hold in the first and in the second (values, not quanta);
    everybody else holds 0. Absolute errors of the FFT are below 1e-12, which no delta here notices.
    """
    design = solution.design
    assert design.shares is not None
    n, quantum, c = design.n, design.quantum, numbers.get("c", design.c)
    beta, q = float(design.shares.beta), numbers.get("q", float(design.shares.q))
    size = 1 << (n * (design.largest + 2 * c)).bit_length()
    others = np.fft.rfft(message(beta, q, c, design.largest, 0.0), size) ** (n - len(changes))
    laws = []
    for side in (0, 1):
        product = others.copy()
        for change in changes:
            product *= np.fft.rfft(message(beta, q, c, design.largest, change[side] / quantum), size)
        laws.append(np.maximum(np.fft.irfft(product, size), 0.0))
    return least_loss(*laws, delta)


def problem(mechanism: str, **more: Any) -> MetricShuffle:
    given = {"n": 60, "k": 6, "delta": "1e-4", "epsilon": "0.25", "max_distance": 6} | more
    return MetricShuffle(mechanism, **given)


# ------------------------------------------------------------------------------------------------ numbers to hold


@pytest.mark.parametrize("n", [50, 100, 1000, 10_000])
@pytest.mark.parametrize("eps", ["0.1", "0.2", "0.5"])
@pytest.mark.parametrize("delta", ["1e-4", "1e-6"])
def test_geo_shuffle_needs_at_most_07_of_theorem_41s_noise(n: int, eps: str, delta: str) -> None:
    solution = solve(MetricShuffle("geo", n, 1000, delta, eps))
    demanded = theorem_4_1_noise(n, float(eps), float(delta))
    assert demanded is not None
    assert solution.epsilon <= float(eps)
    theirs = math.sqrt(2.0 * n * math.exp(-demanded)) / -math.expm1(-demanded)
    assert solution.eps_geo is not None
    ours = math.sqrt(2.0 * n * math.exp(-solution.eps_geo)) / -math.expm1(-solution.eps_geo)
    assert solution.rmse == pytest.approx(ours, rel=1e-9)
    assert ours <= 0.7 * theirs


@pytest.mark.parametrize(
    ("eps", "delta", "c"),
    [("0.05", "1e-4", 155), ("0.1", "1e-4", 78), ("0.2", "1e-4", 39), ("0.5", "1e-4", 16), ("1", "1e-4", 8),
     ("2", "1e-4", 4), ("0.05", "1e-6", 239), ("0.1", "1e-6", 120), ("0.2", "1e-6", 60), ("0.5", "1e-6", 24),
     ("1", "1e-6", 12), ("2", "1e-6", 6)],
)  # fmt: skip
def test_sgdl_paddings_of_the_corrections(eps: str, delta: str, c: int) -> None:
    """At distance 1 the padding that keeps truncation below delta suffices for epsilon too."""
    solution = solve(MetricShuffle("sgdl", 100, 1000, delta, eps))
    assert solution.c == c
    q, beta = math.exp(-float(eps)), 0.01
    far = int(nbinom.isf(1e-18, beta, 1 - q)) + 2
    law = nbinom.pmf(np.arange(far + 1), beta, 1 - q)
    right = np.array([np.dot(law[: far + 1 - j], law[j:]) for j in range(far + 1)])
    for padding in (c - 1, c):
        somebody = -math.expm1(100 * math.log1p(-2.0 * right[padding + 1 :].sum()))
        assert (somebody <= float(delta)) == (padding == c)
    assert solution.truncation == pytest.approx(somebody, rel=1e-6)


# ----------------------------------------------------------------------------------------- calibration: kept and tight


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [
        ("geo", {}),
        ("geo", {"max_distance": 1}),
        ("geo", {"delta": "1e-7", "epsilon": "0.6", "max_distance": 2}),
        ("hybrid", {"local_epsilon": "1.5"}),
        ("hybrid", {"local_epsilon": "3", "max_distance": 1}),
        ("sgdl", {"max_distance": 1}),
        ("sgdl", {"max_distance": 4}),
    ],
)
def test_what_is_found_keeps_epsilon_and_no_less_noise_does(mechanism: str, more: dict[str, Any]) -> None:
    given = problem(mechanism, **more)
    solution = solve(given)
    assert solution.c is not None
    wanted, delta, furthest = float(given.epsilon or 0), float(given.delta), given.max_distance
    assert [distance for distance, _ in solution.profile] == list(range(1, furthest + 1))
    worst = 0.0
    for distance, epsilon in solution.profile:
        d = int(distance)
        sets = [[(0.0, float(d))], [(0.0, 1.0)] * d, [(1.0, 0.0)] * (d // 2) + [(0.0, 1.0)] * (d - d // 2)]
        exact = max(exact_loss(solution, changes, delta) for changes in sets) / d
        assert exact <= epsilon * (1.0 + 1e-9)
        assert epsilon <= wanted * (1.0 + 1e-12)
        worst = max(worst, exact)
    if mechanism == "sgdl":
        assert solution.eps_geo == wanted
        assert worst > 0.99 * wanted
        return
    assert worst > 0.99 * wanted  # what truncation is charged with: measured up to 0.5%
    assert solution.eps_geo is not None
    noisier = math.exp(-1.01 * solution.eps_geo)
    broken = max(exact_loss(solution, [(0.0, float(d))], delta, q=noisier) / d for d in (1, furthest))
    assert broken > wanted
    fixed = {"eps_geo": f"{1.01 * solution.eps_geo:.12g}", "c": solution.c, "local_epsilon": None}
    if mechanism == "hybrid":
        assert solution.design.shares is not None
        fixed["beta"] = solution.design.shares.beta  # type: ignore[assignment]
    with pytest.raises(CertificateError, match="does not hold"):
        solve(given.changed(**fixed))


def test_rr_is_calibrated_to_a_percent() -> None:
    """Over all data sets, by scipy's binomials; 1% less of p breaks epsilon."""
    n, k, delta, wanted, furthest = 40, 5, 1e-4, 0.4, 3
    solution = solve(MetricShuffle("rr", n, k, "1e-4", "0.4", furthest))
    assert solution.p is not None
    bits = n * k

    def law(ones: int, flip: float) -> Floats:
        stay = binom.pmf(np.arange(ones + 1), ones, 1.0 - flip)
        return np.convolve(stay, binom.pmf(np.arange(bits - ones + 1), bits - ones, flip))

    def worst(p: float, d: int) -> float:
        laws = [law(ones, p / 2.0) for ones in range(bits + 1)]
        return max(least_loss(laws[m], laws[m + d], delta) for m in range(0, bits + 1 - d, 3)) / d

    found = {int(d): epsilon for d, epsilon in solution.profile}
    for d in range(1, furthest + 1):
        assert worst(solution.p, d) <= found[d] * (1.0 + 1e-9)
        assert found[d] <= wanted
    assert max(found.values()) > 0.995 * wanted
    assert max(worst(0.99 * solution.p, d) for d in range(1, furthest + 1)) > wanted
    with pytest.raises(CertificateError):
        solve(MetricShuffle("rr", n, k, "1e-4", "0.4", furthest, p=f"{0.99 * solution.p:.12g}"))


@pytest.mark.parametrize("mechanism", ["rr", "geo", "sgdl", "hybrid", "geo-local", "geo-central"])
def test_the_least_n_is_the_least(mechanism: str) -> None:
    more = {"local_epsilon": "2.5"} if mechanism == "hybrid" else {}
    given = MetricShuffle(mechanism, None, 5, "1e-3", "0.5", mae="0.09", query="average", **more)  # type: ignore[arg-type]
    solution = solve(given)
    assert given.unknown == "n"
    assert solution.value == solution.n
    assert solution.mae <= 0.09
    enough = solve(given.changed(n=solution.n))
    assert enough.design == solution.design
    below = {"geo-central": range(1, solution.n), "geo": [1, 2, 5, solution.n // 2, solution.n - 2]}
    for n in [*below.get(mechanism, []), solution.n - 1]:
        assert solve(given.changed(n=n, mae=None)).mae > 0.09
    with pytest.raises(ProblemError, match=f"The least n is {solution.n:,}"):
        solve(given.changed(n=solution.n - 1))


def test_accuracy_out_of_reach() -> None:
    with pytest.raises(ProblemError, match="in reach of 10,000,000 people"):
        solve(MetricShuffle("geo-central", None, 5, "1e-3", "0.5", mae="0.1"))


# ------------------------------------------------------------------------------------------------------------- hybrid


def test_hybrids_lie_between_sgdl_and_geo() -> None:
    """The local epsilon is kept, nearly spent, and every bit of it buys accuracy."""
    geo, sgdl = (solve(problem(name, max_distance=1)) for name in ("geo", "sgdl"))
    wanted = [geo.local_epsilon * 1.0001, 1.5, 2.5, 3.5, 5.0]
    found = [solve(problem("hybrid", max_distance=1, local_epsilon=f"{local:.9g}")) for local in wanted]
    for local, solution in zip(wanted, found, strict=True):
        assert solution.local_epsilon <= local
        assert sgdl.mae * (1.0 - 1e-2) <= solution.mae <= geo.mae * (1.0 + 1e-9)
        assert 1.0 / 60 <= (solution.beta or 0.0) <= 1.0
    maes, betas = [solution.mae for solution in found], [solution.beta for solution in found]
    assert maes == sorted(maes, reverse=True)
    assert betas == sorted(betas, reverse=True)  # type: ignore[type-var]
    for local, solution in list(zip(wanted, found, strict=True))[:-1]:
        assert solution.local_epsilon > 0.99 * local
    assert found[0].mae == pytest.approx(geo.mae, rel=1e-3)
    assert found[-1].beta == pytest.approx(1.0 / 60)
    assert found[-1].mae == pytest.approx(sgdl.mae, rel=1e-2)
    assert "SGDL-Shuffle keeps" in found[-1].note
    strict = solve(problem("hybrid", max_distance=1, local_epsilon=f"{geo.local_epsilon / 2:.6f}"))
    assert strict.beta == 1.0
    assert strict.local_epsilon == pytest.approx(geo.local_epsilon / 2, rel=1e-5)
    assert strict.mae > geo.mae


def test_no_other_share_with_the_local_epsilon_is_more_accurate() -> None:
    """The hybrid against a search over beta by somebody else: brentq on the FFT's epsilon, no padding's loss."""
    solution = solve(problem("hybrid", max_distance=1, local_epsilon="2"))
    n, delta, wanted = 60, 1e-4, 0.25
    best = math.inf
    for beta in np.geomspace(1.0 / n, 1.0, 25):

        def loss(eps_geo: float, beta: float = float(beta)) -> float:
            q = math.exp(-eps_geo)
            law = one_noise(n * beta, q, int(20 * math.sqrt(2 * n * beta * q) / (1 - q)) + 60)
            return least_loss(np.append(law, 0.0), np.append(0.0, law), delta)

        eps_geo = brentq(lambda e: loss(e) - wanted, 0.05, 3.0, xtol=1e-9)
        law = one_noise(float(beta), math.exp(-eps_geo), 1)
        if math.log(law[1] / law[2]) <= 2.0:
            law = one_noise(n * float(beta), math.exp(-eps_geo), 400)
            best = min(best, float((law * np.abs(np.arange(-400, 401))).sum()))
    assert solution.mae <= best * 1.003  # the padding costs a little; the grid is coarse, to our favour


@pytest.mark.parametrize("more", [{"beta": "0.5"}, {"eps_geo": "0.3"}])
def test_a_hybrids_given_share_is_not_ignored(more: dict[str, str]) -> None:
    """Half of the noise given: it is deployed as given, or refused; never silently replaced."""
    try:
        solution = solve(problem("hybrid", max_distance=1, local_epsilon="2", **more))
    except (ProblemError, InfeasibleError, CertificateError):
        return
    for name, value in more.items():
        assert getattr(solution, name) == pytest.approx(float(value))


def test_a_hybrids_local_epsilon_is_checked_when_all_noise_is_given() -> None:
    with pytest.raises((CertificateError, ProblemError)):
        solve(problem("hybrid", max_distance=1, beta="1/60", eps_geo="0.2", local_epsilon="2"))


# -------------------------------------------------------------------------------------------------------- compromised


@pytest.mark.parametrize(("n", "eps"), [(10, "0.2"), (100, "0.5"), (1000, "0.1"), (10_000, "1"), (10_000, "0.05")])
def test_sgdl_without_its_shuffler_is_theorem_72(n: int, eps: str) -> None:
    """`ln f(0)/f(1)` from the series `f(j) = sum_k p_k p_(k+j)`, and by balls; about ln n."""
    solution = solve(MetricShuffle("sgdl", n, 10, "1e-6", eps, shuffler="compromised"))
    q = math.exp(-float(eps))
    p = nbinom.pmf(np.arange(int(60 / float(eps)) + 60), 1.0 / n, 1.0 - q)
    series = math.log(np.dot(p, p) / np.dot(p[:-1], p[1:]))
    assert solution.local_epsilon == pytest.approx(series, rel=1e-9)
    law = SGDL(f"1/{n}", f"{q:.17g}")
    assert solution.local_epsilon == pytest.approx(law.log_pmf(0) - law.log_pmf(1), rel=1e-9)
    assert solution.local_delta == 0.0
    said = {theorem.name: theorem.value for theorem in solution.theorems}
    assert said["theorem_7_2"] == pytest.approx(series, rel=1e-9)
    assert abs(solution.local_epsilon - math.log(n)) < math.log(1.0 / (1.0 - q)) + 1.0
    assert solution.epsilon <= solution.local_epsilon * (1.0 + 1e-12)


def test_geo_without_its_shuffler() -> None:
    """At distance 1 the ratio is `e^±eps_geo` with mass `1/(1+q)`: the loss is `eps_geo + ln(1 - delta(1+q))`."""
    solution = solve(problem("geo", shuffler="compromised"))
    honest = solve(problem("geo"))
    assert solution.design == honest.design
    assert solution.eps_geo is not None
    q = math.exp(-solution.eps_geo)
    assert solution.profile[0][1] == pytest.approx(solution.eps_geo + math.log1p(-1e-4 * (1.0 + q)), abs=1e-9)
    for distance, epsilon in solution.profile:
        law = (1.0 - q) / (1.0 + q) * q ** np.abs(np.arange(-200.0, 201.0))
        d = int(distance)
        exact = least_loss(np.append(law, np.zeros(d)), np.append(np.zeros(d), law), 1e-4) / d
        assert exact - 1e-9 <= epsilon <= exact * (1.0 + 1e-6) + 1e-9
    assert solution.local_epsilon == pytest.approx(solution.eps_geo, rel=1e-12)
    assert solution.epsilon > honest.epsilon


def test_rr_without_its_shuffler() -> None:
    """One person's k bits: the profile over all values that the person may hold."""
    k, delta = 6, 1e-4
    solution = solve(problem("rr", shuffler="compromised"))
    assert solution.p is not None
    flip = solution.p / 2.0

    def law(ones: int) -> Floats:
        return np.convolve(
            binom.pmf(np.arange(ones + 1), ones, 1.0 - flip), binom.pmf(np.arange(k - ones + 1), k - ones, flip)
        )

    for distance, epsilon in solution.profile:
        d = int(distance)
        exact = max(least_loss(law(m), law(m + d), delta) for m in range(k + 1 - d)) / d
        assert exact * (1.0 - 1e-9) <= epsilon <= exact * (1.0 + 2e-3)
    assert solution.local_epsilon == pytest.approx(solution.epsilon)
    assert solution.local_delta == pytest.approx(delta)


@pytest.mark.parametrize("shuffler", ["honest", "compromised"])
def test_the_baselines(shuffler: str) -> None:
    local = solve(problem("geo-local", shuffler=shuffler))
    assert [epsilon for _, epsilon in local.profile] == pytest.approx([0.25] * 6)
    assert local.local_epsilon == pytest.approx(0.25)
    central = solve(problem("geo-central", shuffler=shuffler))
    q = math.exp(-0.25)
    assert central.mae == pytest.approx(2 * q / (1 - q * q))
    assert math.isinf(central.local_epsilon)
    assert math.isinf(central.epsilon) == (shuffler == "compromised")
    assert local.rmse == pytest.approx(math.sqrt(60) * central.rmse)


# ------------------------------------------------------------------------------------------------------ confirm a claim


@pytest.mark.parametrize(
    ("mechanism", "noise"),
    [("geo", {"eps_geo": "1.5"}), ("rr", {"p": "0.01"}), ("sgdl", {"eps_geo": "0.3"}),
     ("geo-local", {"eps_geo": "0.3"}), ("geo-central", {"eps_geo": "0.26"}),
     ("hybrid", {"eps_geo": "1.5", "beta": "0.5"})],
)  # fmt: skip
def test_too_little_noise_for_the_claim(mechanism: str, noise: dict[str, str]) -> None:
    with pytest.raises(CertificateError, match=r"epsilon = 0\.25 does not hold up to distance 6"):
        solve(problem(mechanism, **noise))
    solution = solve(problem(mechanism, epsilon=None, **noise))
    assert solution.epsilon > 0.25
    assert solution.problem.unknown == "epsilon"
    assert solution.value == solution.epsilon
    generous = solve(problem(mechanism, epsilon=f"{solution.epsilon * 1.001:.9g}", **noise))
    assert generous.epsilon == solution.epsilon


def test_too_short_a_padding() -> None:
    with pytest.raises(InfeasibleError, match="c = 1"):
        solve(problem("geo", c=1))
    with pytest.raises(CertificateError):
        solve(problem("sgdl", c=3))
    longer = solve(problem("geo", c=40))
    assert longer.c == 40
    assert longer.mae <= solve(problem("geo")).mae


def test_accuracy_is_checked_when_the_noise_is_given() -> None:
    """An error that the given noise does not reach is refused, and the line says what is wrong."""
    for epsilon in (None, "0.5"):
        with pytest.raises((ProblemError, CertificateError)) as caught:
            solve(MetricShuffle("geo", 20, 50, "1e-4", epsilon, eps_geo="0.5", mae="0.05", query="average"))
        assert "n is missing" not in str(caught.value)


# --------------------------------------------------------------------------------------------- the plane, and quanta


@pytest.mark.parametrize(("mechanism", "gain"), [("geo", 1.1), ("sgdl", 0.999)])
@pytest.mark.parametrize("furthest", [1, 4])
def test_the_joint_profile_beats_a_split_of_epsilon_and_delta(mechanism: str, gain: float, furthest: int) -> None:
    """Appendix D gives each coordinate eps/sqrt 2 and delta/2; less noise does."""
    joint = solve(problem(mechanism, dimensions=2, max_distance=furthest, delta="1e-4"))
    split = solve(
        problem(mechanism, max_distance=furthest, delta="5e-5", epsilon=f"{0.25 / math.sqrt(2) * (1 - 1e-12):.15g}")
    )
    assert joint.eps_geo is not None
    assert split.eps_geo is not None
    assert joint.eps_geo > gain * split.eps_geo
    assert max(epsilon for _, epsilon in joint.profile) <= 0.25 * (1.0 + 1e-12)


def test_the_plane_by_convolution() -> None:
    """All shifts up to 3 by outer products of the clamped sums' laws: the claim holds, to 2%."""
    solution = solve(MetricShuffle("geo", 12, 4, "1e-3", "0.8", 3, dimensions=2))
    design = solution.design
    assert design.shares is not None
    assert design.c is not None
    q = float(design.shares.q)
    size = 1 << (12 * (4 + 2 * design.c)).bit_length()
    others = np.fft.rfft(message(1.0, q, design.c, 4, 0.0), size) ** 11
    at = [
        np.maximum(np.fft.irfft(others * np.fft.rfft(message(1.0, q, design.c, 4, float(v)), size), size), 0.0)[:400]
        for v in range(4)
    ]
    found = {round(distance, 9): epsilon for distance, epsilon in solution.profile}
    worst = 0.0
    for dx in range(1, 4):
        for dy in range(dx + 1):
            length = math.hypot(dx, dy)
            if length <= 3:
                one, other = np.outer(at[0], at[0]).ravel(), np.outer(at[dx], at[dy]).ravel()
                exact = least_loss(one, other, 1e-3) / length
                assert exact <= found[round(length, 9)] * (1.0 + 1e-9)
                worst = max(worst, exact)
    assert worst > 0.975 * 0.8
    assert math.hypot(1, 1) in [distance for distance, _ in solution.profile]


def test_errors_in_the_plane() -> None:
    """The mean length of the error, from the noise's law itself."""
    for mechanism in ("geo", "sgdl", "geo-central"):
        solution = solve(problem(mechanism, n=9, dimensions=2, max_distance=2, epsilon="0.9"))
        shares = solution.design.shares
        assert shares is not None
        law = one_noise(shares.n * float(shares.beta), float(shares.q), 250)
        places = np.arange(-250, 251)
        length = law @ np.hypot(places[:, None], places[None, :]) @ law
        assert solution.mae == pytest.approx(length, rel=1e-4)
        assert solution.rmse == pytest.approx(math.sqrt(2.0 * (law @ places**2)), rel=1e-6)


@pytest.mark.parametrize("mechanism", ["geo", "sgdl"])
@pytest.mark.parametrize("quantum", [2, 3, 5])
def test_coarse_messages(mechanism: str, quantum: int) -> None:
    """No way to move by d breaks the claim: one person or several, from any remainder, one way and the other."""
    given = problem(mechanism, n=40, k=10, quantum=quantum, max_distance=4, delta="1e-3", epsilon="0.5")
    solution = solve(given)
    for distance, epsilon in solution.profile:
        d = int(distance)
        ways = [[(float(rest), float(rest + d))] for rest in range(quantum)]
        ways += [[(float(rest), rest + 1.0)] * d for rest in range(quantum)]
        ways += [[(1.0, 0.0)] + [(0.0, 1.0)] * (d - 1)]
        assert max(exact_loss(solution, way, 1e-3) for way in ways) / d <= epsilon * (1.0 + 1e-9)
        assert epsilon <= 0.5 * (1.0 + 1e-12)
    fine = solve(given.changed(quantum=1))
    assert solution.design.largest < fine.design.largest
    assert solution.mae > fine.mae
    shares = solution.design.shares
    assert shares is not None
    assert solution.rmse == pytest.approx(quantum * math.hypot(shares.deviation, math.sqrt(40) / 2))
    same = solve(given.changed(quantum=1, epsilon=None, eps_geo=solution.design.eps_geo, c=solution.c))
    coarse = solve(given.changed(epsilon=None, eps_geo=solution.design.eps_geo, c=solution.c))
    for (_, less), (_, more) in zip(coarse.profile, same.profile, strict=True):
        assert less < more  # a unit moves a coarse message but now and then


# ------------------------------------------------------------------------------------------------------------ figures


@pytest.mark.parametrize("mechanism", ["geo", "sgdl", "hybrid", "geo-local", "geo-central"])
def test_errors_of_noise(mechanism: str) -> None:
    more = {"local_epsilon": "2"} if mechanism == "hybrid" else {}
    solution = solve(problem(mechanism, **more))
    shares = solution.design.shares
    assert shares is not None
    total = SGDL(shares.beta * shares.n, shares.q)
    law = one_noise(float(total.beta), float(total.q), 3000)
    own = one_noise(float(shares.beta), float(shares.q), 3000)
    alone = float((law * np.abs(np.arange(-3000, 3001))).sum())
    assert alone == pytest.approx(float(total.mean_absolute()), rel=1e-8)
    limits = () if solution.c is None else (solution.c, solution.c + 6)
    clamped = sum(60 * float((own * np.maximum(np.arange(-3000, 3001) - limit, 0)).sum()) for limit in limits)
    assert solution.mae == pytest.approx(alone + clamped, rel=1e-8)
    assert solution.rmse == pytest.approx(math.sqrt(total.variance), rel=1e-6)
    assert solution.rmse >= math.sqrt(total.variance) * (1 - 1e-12)


def test_errors_of_flips() -> None:
    """`E|S/(1-2f) - ..|` over every data set, by enumeration."""
    solution = solve(MetricShuffle("rr", 6, 5, "1e-3", "1"))
    assert solution.p is not None
    flip, bits, errors = solution.p / 2.0, 30, []
    for ones in range(bits + 1):
        law = np.convolve(
            binom.pmf(np.arange(ones + 1), ones, 1.0 - flip), binom.pmf(np.arange(bits - ones + 1), bits - ones, flip)
        )
        estimates = (np.arange(bits + 1) - bits * flip) / (1.0 - 2.0 * flip)
        assert float(law @ estimates) == pytest.approx(ones, abs=1e-9)
        assert math.sqrt(law @ (estimates - ones) ** 2) == pytest.approx(solution.rmse, rel=1e-9)
        errors.append(float(law @ np.abs(estimates - ones)))
    assert solution.mae >= max(errors) * (1.0 - 1e-9)
    assert solution.mae <= max(errors) * 1.01


def test_every_mechanism_at_the_same_promise() -> None:
    given = problem("hybrid", n=20, local_epsilon="2", max_distance=2)
    rows = {row.problem.mechanism: row for row in compare_mechanisms(given)}
    assert list(rows) == ["rr", "geo", "sgdl", "hybrid", "geo-local", "geo-central"]
    for name, row in rows.items():
        alone = solve(given.changed(mechanism=name, local_epsilon="2" if name == "hybrid" else None))
        assert row.design == alone.design
        assert row.epsilon <= 0.25 * (1.0 + 1e-12)
        assert row.problem.max_distance == 2
    mae = {name: row.mae for name, row in rows.items()}
    assert mae["geo-central"] < mae["sgdl"] < mae["geo-central"] * (1.0 + 1e-3)  # which may clamp, if rarely
    assert mae["sgdl"] < mae["hybrid"] < mae["geo"] < mae["geo-local"]
    assert mae["geo"] < mae["rr"]
    without = [row.problem.mechanism for row in compare_mechanisms(problem("geo", max_distance=1))]
    assert without == ["rr", "geo", "sgdl", "geo-local", "geo-central"]


@pytest.mark.parametrize(
    ("mechanism", "parameters"),
    [("rr", {"p"}), ("geo", {"eps_geo", "c"}), ("sgdl", {"eps_geo", "beta", "c"}), ("hybrid", {"eps_geo", "beta", "c"}),
     ("geo-local", {"eps_geo"}), ("geo-central", {"eps_geo"})],
)  # fmt: skip
@pytest.mark.parametrize("shuffler", ["honest", "compromised"])
def test_the_summary_is_json(mechanism: str, parameters: set[str], shuffler: str) -> None:
    more = {"local_epsilon": "2"} if mechanism == "hybrid" else {}
    solution = solve(problem(mechanism, shuffler=shuffler, max_distance=3, **more))

    def refuse(name: str) -> float:
        raise AssertionError(name)

    found = json.loads(json.dumps(solution.summary(), allow_nan=False), parse_constant=refuse)
    assert {"parameters", "profile", "local_epsilon", "mae", "bits_per_user"} <= found.keys()
    assert set(found["parameters"]) == parameters
    assert [distance for distance, _ in found["profile"]] == [1, 2, 3]
    assert (found["local_epsilon"] is None) == (mechanism == "geo-central")
    hidden = mechanism == "geo-central" and shuffler == "compromised"
    assert all((epsilon is None) == hidden for _, epsilon in found["profile"])
    assert found["given"]["mechanism"] == mechanism
    for theorem in found["theorems"].values():
        assert theorem["worth"]


def test_a_single_person_and_two() -> None:
    """With n = 1 shuffling buys nothing: local and honest are the same, but for delta and the padding."""
    for mechanism in ("geo", "sgdl", "hybrid"):
        more = {"local_epsilon": "1"} if mechanism == "hybrid" else {}
        one = solve(problem(mechanism, n=1, **more))
        assert one.local_epsilon == pytest.approx(0.25, rel=1e-3)
        assert one.epsilon <= 0.25 * (1.0 + 1e-12)
        assert solve(problem(mechanism, n=2, **more)).local_epsilon > 0.25
    bit = solve(MetricShuffle("rr", 1, 1, "1e-4", "0.25"))
    assert bit.p is not None
    flip = bit.p / 2.0  # 1 - f - e^eps f = delta
    assert flip == pytest.approx((1.0 - 1e-4) / (1.0 + math.exp(0.25)), rel=1e-5)


# ------------------------------------------------------------------------------------------------------------- large


@pytest.mark.parametrize(("mechanism", "epsilon"), [("geo", "0.01"), ("sgdl", "0.02")])
def test_natural_units(mechanism: str, epsilon: str) -> None:
    """Thousands of units: certified at every distance, and kept."""
    steps: list[str] = []
    solution = solve(MetricShuffle(mechanism, 1000, 20_000, "1e-6", epsilon, 1000), progress=steps.append)
    assert len(solution.profile) == 1000
    assert 0.98 * float(epsilon) < solution.epsilon <= float(epsilon)
    assert "certifying distance 1,000 of 1,000" in steps
    assert any(step.startswith("finding the ") for step in steps)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mechanism": "geo", "epsilon": "1e-4", "max_distance": 5000}, r"Take max_distance = [\d,]+, or"),
        ({"mechanism": "sgdl", "epsilon": "0.01", "max_distance": 900, "dimensions": 2}, r"Take max_distance = \d+"),
        ({"mechanism": "geo", "epsilon": "0.01", "max_distance": 5000, "quantum": 10}, r"Take max_distance = \d+"),
        ({"mechanism": "geo", "eps_geo": "1e-4", "n": 10**6}, r"Count in larger units: with \d+ of yours in one"),
    ],
)
def test_what_takes_too_long_is_refused_before_it_begins(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        solve(MetricShuffle(**({"n": 1000, "k": 20_000, "delta": "1e-6"} | given)))


def test_flips_at_many_distances_are_bounded_from_some() -> None:
    """Every entry of the profile against the loss computed at that very distance."""
    solution = solve(MetricShuffle("rr", 20, 10, "1e-4", p="0.3", max_distance=190))
    flip = solution.design.flip
    assert flip is not None
    every = [FlippedPair(200, flip, 1e-4 * (1 - 1e-12), distance).worst() for distance in range(1, 191)]
    for (distance, epsilon), found in zip(solution.profile, every, strict=True):
        assert distance == found.distance
        assert found.lower <= distance * epsilon * (1 + 1e-9)
        assert epsilon * distance <= 1.07 * found.upper
    assert solution.epsilon == pytest.approx(max(found.upper / found.distance for found in every), rel=2e-3)


@pytest.mark.parametrize("furthest", [10, 40])
def test_a_short_profile_is_shown_whole(furthest: int) -> None:
    solution = solve(MetricShuffle("geo", n=50, k=50, delta="1e-3", epsilon=1, max_distance=furthest))
    listing, _ = solution.sheet().listings
    shown = [int(row[0]) for row in listing.rows if isinstance(row[0], str)]
    assert shown == sorted(set(shown))
    assert {shown[0], shown[-1]} == {1, furthest}
    assert (len(shown) == furthest) == (furthest <= 14)
