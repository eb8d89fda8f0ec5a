"""Blankets: they integrate to one, rebuild the randomizer, and cannot be larger."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from optdp import KRR, Channel, Gaussian, Generic, Laplace, ProblemError, decompose
from optdp.amplification import catalogue
from optdp.amplification.decomposition import Blanket
from optdp.amplification.randomizers import Randomizer

CHANNEL = Channel.of([[0.5, 0.3, 0.2, 0.0], [0.2, 0.5, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]])
FINITE = [(KRR(2), 1.0, 2, 2), (KRR(5), 0.3, 5, 5), (catalogue.LocalHash(4), 2.0, 4, 4), (CHANNEL, math.inf, 3, 4)]
NOISE = [(Laplace(), 1.0), (Laplace(), 5.0), (Gaussian(sigma=0.4), math.inf), (Gaussian(delta0=1e-6), 2.0)]


def probability(randomizer: Randomizer, eps0: float, x: int, y: int) -> float:
    if isinstance(randomizer, Channel):
        return randomizer.matrix[x][y]
    k = randomizer.k if isinstance(randomizer, KRR) else 4
    return (math.exp(eps0) if x == y else 1.0) / (math.exp(eps0) + k - 1)


def noise(randomizer: Randomizer, eps0: float, x: float, y: float) -> float:
    if isinstance(randomizer, Gaussian):
        sigma = randomizer.deviation(eps0)
        return math.exp(-((y - x) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    return eps0 / 2 * math.exp(-eps0 * abs(y - x))


@pytest.mark.parametrize(("randomizer", "eps0", "inputs", "messages"), FINITE)
def test_finite(randomizer: Randomizer, eps0: float, inputs: int, messages: int) -> None:
    blanket, y = decompose(randomizer, eps0), np.arange(messages)
    assert blanket.exact
    assert blanket.density(y).sum() == pytest.approx(1.0, abs=1e-14)
    residuals = np.array([blanket.residual(x, y) for x in range(inputs)])
    assert residuals.min() >= 0.0
    assert residuals.sum(axis=1) == pytest.approx(np.ones(inputs), abs=1e-13)
    assert (residuals.min(axis=0) == 0.0).all()
    mixed = (1.0 - blanket.gamma) * residuals + blanket.gamma * blanket.density(y)
    expected = [[probability(randomizer, eps0, x, j) for j in range(messages)] for x in range(inputs)]
    assert mixed == pytest.approx(np.array(expected), abs=1e-15)
    outside = [-1, messages, 0.5]
    assert not blanket.density(outside).any()
    assert not blanket.residual(0, outside).any()


@pytest.mark.parametrize(("randomizer", "eps0"), NOISE)
def test_noise(randomizer: Randomizer, eps0: float) -> None:
    blanket = decompose(randomizer, eps0)
    breaks = (-60.0, -3.0, 0.0, 0.3, 0.5, 0.7, 1.0, 4.0, 61.0)

    def whole(law: object) -> float:
        assert callable(law)
        parts = (quad(law, low, high, epsabs=1e-12, epsrel=1e-12)[0] for low, high in pairwise(breaks))
        return math.fsum(parts)

    assert blanket.exact
    assert whole(blanket.density) == pytest.approx(1.0, abs=1e-9)
    y = np.linspace(-3.0, 4.0, 701)
    residuals = np.array([blanket.residual(x, y) for x in (0.0, 0.3, 0.7, 1.0)])
    for x, residual in zip((0.0, 0.3, 0.7, 1.0), residuals, strict=True):
        assert whole(lambda place, x=x: blanket.residual(x, place)) == pytest.approx(1.0, abs=1e-9)
        mixed = (1.0 - blanket.gamma) * residual + blanket.gamma * blanket.density(y)
        assert mixed == pytest.approx([noise(randomizer, eps0, x, place) for place in y], rel=1e-12, abs=1e-15)
    assert residuals.min() >= 0.0
    assert (residuals.min(axis=0) == 0.0).all()  # 0 or 1 is farthest
    assert (np.where(y < 0.5, residuals[3], residuals[0]) == 0.0).all()


def test_lemmas_6_and_7() -> None:
    assert decompose(KRR(7), 1.5).gamma == pytest.approx(7 / (math.exp(1.5) + 6), rel=1e-15)
    assert decompose(Laplace(), 1.5).gamma == pytest.approx(math.exp(-0.75), rel=1e-15)
    assert decompose(Gaussian(sigma=0.5), math.inf).gamma == pytest.approx(math.erfc(1 / math.sqrt(2)), rel=1e-14)
    assert decompose(CHANNEL, math.inf).gamma == pytest.approx(0.2 + 0.25 + 0.2)
    assert decompose(Generic(), 1.5) == Blanket(math.exp(-1.5), False)


@pytest.mark.parametrize(
    ("randomizer", "eps0", "exact"),
    [
        *((randomizer, eps0, True) for randomizer, eps0, *_ in FINITE),
        *((randomizer, eps0, True) for randomizer, eps0 in NOISE),
        (catalogue.SubsetSelection(10, 3), 1.0, True),
        (catalogue.Piecewise(), 1.0, True),
        (catalogue.Hadamard(16), 1.0, False),
        (catalogue.Rappor(), 1.0, False),
        (catalogue.UnaryEncoding(), 1.0, False),
        (catalogue.PlanarLaplace(), 1.0, False),
        (catalogue.VariationRatio(0.2), 1.0, False),
    ],
)
def test_gamma_is_what_the_cells_hold(randomizer: Randomizer, eps0: float, exact: bool) -> None:
    blanket = decompose(randomizer, eps0)
    assert blanket.exact is exact
    for cells in randomizer.blankets(eps0):
        if not (isinstance(randomizer, Channel) and cells.slack):
            assert blanket.gamma == pytest.approx(float(cells.others.sum()), rel=1e-9, abs=1e-11)
    if math.isfinite(eps0) and not isinstance(randomizer, Gaussian):
        assert blanket.gamma >= math.exp(-eps0) * (1 - 1e-12)  # B, Lemma 7


def test_subset_selection_by_counting() -> None:
    """d = 3, sets of 1 are k-rr; d = 4, sets of 2: three of six hold the value."""
    assert decompose(catalogue.SubsetSelection(3, 1), 1.0).gamma == pytest.approx(decompose(KRR(3), 1.0).gamma)
    assert decompose(catalogue.SubsetSelection(4, 2), 1.0).gamma == pytest.approx(6 / (3 * math.e + 3))


def test_refusals() -> None:
    with pytest.raises(ProblemError, match="Only gamma is known"):
        decompose(Generic(), 1.0).density(0)
    with pytest.raises(ProblemError, match="Only gamma is known"):
        decompose(catalogue.Rappor(), 1.0).residual(0, 0)
    for blanket, x in ((decompose(Laplace(), 1.0), 1.5), (decompose(KRR(3), 1.0), 3), (decompose(CHANNEL, 9.0), 0.5)):
        with pytest.raises(ProblemError, match="not an input"):
            blanket.residual(x, 0)
    with pytest.raises(ProblemError, match="no blanket"):
        decompose(Channel.of([[1, 0], [0, 1]]), math.inf)
    with pytest.raises(ProblemError, match="nothing is left"):
        decompose(Channel.of([[0.5, 0.5], [0.5, 0.5]]), 1e-15).residual(0, 0)
