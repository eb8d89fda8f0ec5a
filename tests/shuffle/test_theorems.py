"""The papers' theorems are there to be compared with; what is claimed never comes from them."""

from __future__ import annotations

import ast
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, nbinom

from optdp import SGDL, MetricShuffle, solve
from optdp.shuffle.metric import theorems
from optdp.shuffle.metric.theorems import (
    lemma_c_1,
    theorem_3_1,
    theorem_3_2,
    theorem_4_1,
    theorem_4_1_noise,
    theorem_7_2,
)

OPTDP = Path(theorems.__file__).resolve().parents[2]
NAMES = {"theorem_3_1", "theorem_3_2", "theorem_4_1", "theorem_4_1_noise", "theorem_7_2", "lemma_c_1"}


def test_vectors_of_the_corrections() -> None:
    assert theorem_4_1(100, 0.8, 1e-4) == pytest.approx(0.2747, abs=1e-4)
    assert theorem_3_1(5000, 0.1, 1e-4) == pytest.approx(0.9202, abs=1e-4)
    assert lemma_c_1(100, 0.1, 1e-4) == 3


def test_where_they_do_not_apply() -> None:
    for n in (1, 2, 3, 4):
        assert theorem_4_1(n, 0.8, 1e-4) is None
        assert theorem_4_1_noise(n, 0.8, 1e-4) is None
        assert solve(MetricShuffle("geo", n, 5, "1e-4", "0.5")).epsilon <= 0.5  # ours does
    assert theorem_4_1(5, 0.8, 1e-4) is not None
    assert theorem_3_1(10, 0.01, 1e-6) is None


@pytest.mark.parametrize(("bits", "p"), [(100, 0.3), (5000, 0.1), (20_000, 0.01), (1000, 0.9)])
def test_theorem_32_holds_and_is_twice_too_large(bits: int, p: float) -> None:
    """The error is a binomial one: each bit is flipped with probability p/2, and the sum scaled by 1/(1-p)."""
    flipped = np.arange(bits + 1)
    for beta in (0.3, 0.05, 1e-4):
        bound = theorem_3_2(bits, p, beta)
        if bound is None:
            assert p * bits < 2 * math.log(2 / beta)
            continue
        off = np.abs(flipped - bits * p / 2) / (1 - p)  # all bits are 0; with all 1 it is the same
        chances = binom.pmf(flipped, bits, p / 2)
        assert chances[off > bound].sum() < beta
        enough = np.sort(off)[np.searchsorted(np.cumsum(chances[np.argsort(off)]), 1 - beta)]
        if beta == 0.05:
            assert 1.7 < bound / enough < 2.9  # the variance is below lambda / 2 where p is large


def test_lemma_c1_lets_people_truncate() -> None:
    """With its c somebody truncates with a probability of 0.79 where it says 1e-4."""
    n, q, c = 100, math.exp(-0.1), lemma_c_1(100, 0.1, 1e-4)
    p = nbinom.pmf(np.arange(2000), 1.0 / n, 1.0 - q)
    inside = np.dot(p, p) + 2.0 * sum(np.dot(p[:-j], p[j:]) for j in range(1, c + 1))
    assert 1.0 - inside**n == pytest.approx(0.79, abs=5e-3)


@pytest.mark.parametrize(("n", "eps", "delta"), [(50, 0.1, 1e-4), (100, 0.5, 1e-6), (10_000, 0.2, 1e-4)])
def test_theorem_41s_noise_is_its_inverse(n: int, eps: float, delta: float) -> None:
    noise = theorem_4_1_noise(n, eps, delta)
    assert noise is not None
    less, more = theorem_4_1(n, noise * 0.98, delta), theorem_4_1(n, noise * 1.02, delta)
    assert less is not None
    assert more is not None
    assert less <= eps <= more


@pytest.mark.parametrize("n", [10, 100, 1000, 10_000, 100_000])
def test_theorem_72_is_about_log_n(n: int) -> None:
    """`f(0)/f(1)` by its series; with q small against 1, `f(0)/f(1) -> 1/(beta q)`."""
    for eps in (0.2, 1.0, 3.0):
        p = nbinom.pmf(np.arange(600), 1.0 / n, -math.expm1(-eps))
        assert theorem_7_2(n, eps) == pytest.approx(math.log(np.dot(p, p) / np.dot(p[:-1], p[1:])), rel=1e-9)
        assert theorem_7_2(n, eps) == pytest.approx(math.log(n) + eps, abs=0.25 + 1.0 / n)


def test_theorem_41_is_too_large_near_and_too_small_far() -> None:
    """Against the exact profile of CORRECTIONS.md, which holds at half of delta."""
    said = theorem_4_1(100, 0.8, 1e-4)
    exact = solve(MetricShuffle("geo", 100, 1000, "5e-5", eps_geo="0.8", max_distance=400, c=60))
    profile = dict(exact.profile)
    corrections = {1: 0.1571, 2: 0.1691, 5: 0.1859, 10: 0.2013, 20: 0.2219, 50: 0.2655, 100: 0.3193, 200: 0.3952}
    for distance, epsilon in (corrections | {400: 0.4856}).items():
        assert profile[distance] == pytest.approx(epsilon, abs=1e-4)
    assert said is not None
    assert profile[1] < 0.6 * said
    assert profile[100] > said


def test_claims_do_not_change_when_the_theorems_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every theorem made to promise nothing given away: designs, profiles and figures stay what they were."""
    problems = [
        MetricShuffle("geo", 30, 8, "1e-4", "0.4", 3),
        MetricShuffle("sgdl", 30, 8, "1e-4", "0.4", 3, "compromised"),
        MetricShuffle("rr", 30, 8, "1e-4", "0.4", 2, "compromised"),
        MetricShuffle("hybrid", 30, 8, "1e-4", "0.4", local_epsilon="2"),
    ]
    honest = [solve(problem) for problem in problems]
    for name in NAMES:
        monkeypatch.setattr(theorems, name, lambda *_: 1e-9)
    for problem, before in zip(problems, honest, strict=True):
        after = solve(problem)
        assert after.design == before.design
        assert after.profile == before.profile
        assert (after.local_epsilon, after.mae, after.bits_per_user) == (
            before.local_epsilon, before.mae, before.bits_per_user
        )  # fmt: skip
        assert after.privacy() == before.privacy()
        assert not NAMES & set(map(str, after.privacy()))
    assert all(theorem.value != 1e-9 for theorem in honest[0].theorems)


def test_nobody_else_asks_them() -> None:
    """By the source: outside of where they are defined and shown, no module names one of them."""
    allowed = {"shuffle/metric/theorems.py", "shuffle/metric/solve.py"}
    asking = set()
    for path in sorted(OPTDP.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = {alias.name for alias in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            used = (
                {node.attr} if isinstance(node, ast.Attribute) else {node.id} if isinstance(node, ast.Name) else set()
            )
            if (names | used) & NAMES or "theorems" in module or "theorems" in names:
                asking.add(path.relative_to(OPTDP).as_posix())
    assert asking <= allowed
    assert "shuffle/metric/solve.py" in asking


def test_theorem_5_1_fails_at_large_distances() -> None:
    """With the smallest padding whose truncation is rarer than delta, everybody at 0 against one person at `d`.

    By convolving the clamped laws: at `e^(epsilon d)` the divergence is far above delta.
    """
    n, k, epsilon, delta, c = 100, 200, 0.2, 1e-4, 39
    noise = SGDL(Fraction(1, n), Fraction(math.exp(-epsilon))).pmf(np.arange(-2000, 2001))

    def message(value: int) -> np.ndarray:
        places = np.clip(np.arange(-2000, 2001) + value + c, 0, k + 2 * c)
        return np.bincount(places, weights=noise, minlength=k + 2 * c + 1)

    size = 1 << 15
    others = np.fft.rfft(message(0), size) ** (n - 1)
    laws = {d: np.fft.irfft(others * np.fft.rfft(message(d), size), size) for d in (0, 1, 20, 50)}
    spent = {d: float(np.maximum(laws[0] - math.exp(epsilon * d) * laws[d], 0.0).sum()) for d in (1, 20, 50)}
    assert spent[1] < delta
    assert spent[20] > 5 * delta
    assert spent[50] > 0.1
