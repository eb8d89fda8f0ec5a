"""What hides a padded sum: brackets around the law of those who do not exceed, paddings, and the figures of the papers.

The brackets are compared with the law itself, convolved by brute force from shares that are cut off at `c`.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from optdp import MetricShuffle, solve
from optdp.numbers.exact import geometric_ratio
from optdp.shuffle.metric import released as module
from optdp.shuffle.metric.profile import line
from optdp.shuffle.metric.released import Released, Shares
from tests.shuffle import brute_force

PADDINGS = [
    ("0.05", 155, 239), ("0.1", 78, 120), ("0.2", 39, 60), ("0.5", 16, 24), ("1", 8, 12), ("2", 4, 6),
]  # fmt: skip


def _within(share: Fraction, q: Fraction, people: int, c: int) -> brute_force.Longs:
    """The law of `people` shares together and none beyond `c`, on `-people c .. people c`."""
    mass, _ = brute_force.noise(share, q, c + 1)
    one = np.concatenate((mass[c:0:-1], mass[: c + 1]))
    total = np.ones(1, dtype=np.longdouble)
    for _ in range(people):
        total = np.convolve(total, one)
    return total


@pytest.mark.parametrize(("epsilon", "loose", "strict"), PADDINGS)
def test_smallest_paddings(epsilon: str, loose: int, strict: int) -> None:
    """The recomputed paddings of SGDL-Shuffle (n = 100), and one less is one too few, by the defining sums."""
    q = geometric_ratio(Fraction(epsilon))
    shares = Shares(100, Fraction(1, 100), q)
    for delta, wanted in ((Fraction(1, 10**4), loose), (Fraction(1, 10**6), strict)):
        assert shares.padding(delta) == wanted
        assert solve(MetricShuffle("sgdl", 100, 1, delta, epsilon)).c == wanted
        assert shares.exceeding(wanted) <= delta < shares.exceeding(wanted - 1)
        if float(Fraction(epsilon)) >= 0.1:
            _, tail = brute_force.noise(Fraction(1, 100), q, wanted + 1)
            exceeding = [-np.expm1(100 * np.log1p(-2 * tail[c + 1])) for c in (wanted - 1, wanted)]
            assert exceeding[1] <= float(delta) < exceeding[0]
            assert float(shares.exceeding(wanted)) == pytest.approx(float(exceeding[1]), rel=1e-12)


def test_lemma_c_1_truncates_most_of_the_time() -> None:
    """At n = 100 and epsilon .1 the padding of D's Lemma C.1 is 3, and somebody truncates with probability 0.79."""
    shares = Shares(100, Fraction(1, 100), geometric_ratio(Fraction(1, 10)))
    assert float(shares.exceeding(3)) == pytest.approx(0.79, abs=0.005)


@pytest.mark.parametrize("c", [None, 200])
def test_profile_of_the_corrections(c: int | None) -> None:
    """n = 100, eps_geo = .8, delta/2 = 5e-5: untruncated, or with a padding so long that it makes no difference."""
    wanted = {
        1: 0.1571,
        2: 0.1691,
        5: 0.1859,
        10: 0.2013,
        20: 0.2219,
        50: 0.2655,
        100: 0.3193,
        200: 0.3952,
        400: 0.4856,
    }
    shares = Shares(100, Fraction(1), geometric_ratio(Fraction("0.8")))
    found = dict(line(Released(shares, c, 400, 5e-5), 5e-5, list(wanted)))
    for distance, epsilon in wanted.items():
        assert found[distance] / distance == pytest.approx(epsilon, abs=1e-4)


SETTINGS = [
    (1, "1", "1", 3), (2, "1", "0.5", 2), (2, "1/2", "1", 5), (3, "1/3", "0.4", 6), (4, "0.6", "2", 1),
    (5, "1", "1", 8), (12, "1/12", "0.7", 9), (12, "1", "0.7", 9), (30, "1/4", "1.5", 4), (3, "1", "3", 0),
]  # fmt: skip


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("proved", [True, False])
@pytest.mark.parametrize(("n", "beta", "epsilon", "c"), SETTINGS)
def test_brackets(
    n: int, beta: str, epsilon: str, c: int, proved: bool, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`low <= g <= high` at every point, for all `n` and for all but one, by direct convolution and by FFT; what lies
    outside of the window, and who exceeds, are counted as lost.
    """
    monkeypatch.setattr(module, "DIRECT", 3e7 if direct else 0.0)
    share, q = Fraction(beta), geometric_ratio(Fraction(epsilon))
    _, tail = brute_force.noise(share, q, c + 1)
    t = 2 * float(tail[c + 1])
    for changed in {1, n}:
        found = Released(Shares(n, share, q, proved), c, 4, 1e-9, changed)
        reach = found.full.reach
        for people, brackets, weight in ((n, (found.high, found.low), 1.0), (n - 1, found.apart, (n - changed) * t)):
            if brackets is None:
                assert changed == n
                continue
            truth = np.zeros(reach + 1, dtype=np.longdouble)
            law = _within(share, q, people, c)[people * c :][: reach + 1]
            truth[: len(law)] = law * weight
            high, low = np.exp(brackets[0]), np.exp(brackets[1])
            assert (high >= truth * (1 - 1e-14) - 1e-25).all()
            assert (low <= truth * (1 + 1e-14) + (0 if people == n else truth * 1e-8) + 1e-300).all()
        outside = 2 * np.sum(_within(share, q, n, c)[n * c + found.window + 1 :])
        given_up = (
            1
            - (1 - t) ** changed
            + (1 - (1 - t) ** (n - changed) - (n - changed) * t * (1 - t) ** max(0, n - changed - 1))
        )
        assert found.lost >= changed * t * (1 - 1e-12)
        assert found.lost >= float(outside)
        assert found.lost >= given_up * (1 - 1e-9) - 1e-15


def test_brackets_close_with_the_padding() -> None:
    """With longer paddings the brackets meet and nothing is lost: what is left is the untruncated law."""
    share, q = Fraction(1, 3), geometric_ratio(Fraction(1))
    free = Released(Shares(9, share, q), None, 5, 1e-6)
    gaps, lost = [], []
    for c in (6, 12, 24, 40):
        padded = Released(Shares(9, share, q), c, 5, 1e-6)
        middle = slice(0, padded.window // 3)
        gaps.append(float(np.max(padded.high[middle] - padded.low[middle])))
        lost.append(padded.lost)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-8
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] == pytest.approx(free.lost, rel=1e-3)
    np.testing.assert_allclose(padded.high[middle], free.high[middle], atol=1e-8)


@pytest.mark.parametrize(("n", "beta", "epsilon", "delta", "furthest"), [
    (100, "1", "0.8", 1e-4, 20), (1000, "1/1000", "0.3", 1e-6, 5), (20, "1/2", "2", 1e-9, 8), (2, "1", "0.1", 1e-3, 3),
])  # fmt: skip
def test_fourier_is_never_below_term_by_term(
    n: int, beta: str, epsilon: str, delta: float, furthest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The absolute error of a Fourier transform is added, so that its losses are larger, and little so."""
    shares = Shares(n, Fraction(beta), geometric_ratio(Fraction(epsilon)))
    c = shares.padding(Fraction(delta) / 20)

    def losses(limit: float) -> list[tuple[float, float]]:
        monkeypatch.setattr(module, "DIRECT", limit)
        return line(Released(shares, c, furthest, delta), delta, range(1, furthest + 1))

    for (_, slow), (_, quick) in zip(losses(1e12), losses(0.0), strict=True):
        assert slow * (1 - 1e-12) <= quick <= slow * (1 + 1e-3) + 1e-9


@pytest.mark.parametrize(("n", "c"), [(1, 0), (2, 0), (1, 1), (3, 1)])
def test_hardly_any_padding(n: int, c: int) -> None:
    """With a padding that loses more than delta nothing is claimed."""
    shares = Shares(n, Fraction(1), geometric_ratio(Fraction(1)))
    found = line(Released(shares, c, 3, 1e-3), 1e-3, [1, 2, 3])
    assert [loss for _, loss in found] == [math.inf] * 3
