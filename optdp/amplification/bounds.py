"""The bounds: one plain function for each, in a registry, each an upper or a lower bound of delta.

A bound gives `log delta` as a function of epsilon: `-inf` where delta is zero, None where it says nothing. Upper bounds
hold for every pair of neighbouring data sets; lower bounds are reached by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.special import log_ndtr

from optdp.amplification import closed_forms as forms
from optdp.amplification.catalogue import Gaussian, VariationRatio
from optdp.amplification.counts import CountSetting, binary_delta, count_delta, likely_delta
from optdp.amplification.randomizers import KRR, Cells, Randomizer, cells, everybody, variation_cells
from optdp.numbers.exact import there
from optdp.work import Progress

FINE = 1 << 16
MIDDLE = 1 << 14
COARSE = 1 << 12
GUESS = COARSE  # on this grid a bound that `guesses` is not proved: a search starts from it, and nothing is claimed
PROBES = 24


@dataclass(frozen=True)
class Setting:
    """Who shuffles what: a member of a family of randomizers, and how many people."""

    randomizer: Randomizer
    eps0: float
    n: int


LogDelta = Callable[[Setting, float, int], float | None]


@dataclass(frozen=True)
class Bound:
    """`log_delta(setting, epsilon, grid)`: a larger grid is tighter and slower."""

    side: Literal["upper", "lower"]
    source: str
    fits: Callable[[Setting], str]  # why the bound does not apply to a setting, or nothing
    log_delta: LogDelta
    grid: int = 0  # the finest grid that is worth its time; 0 for a closed form
    guesses: bool = False


def _pure(setting: Setting) -> str:
    """Analyses of any eps0-LDP randomizer."""
    randomizer = everybody(setting.randomizer)
    if isinstance(randomizer, KRR) and randomizer.k == 0 and randomizer.gamma is not None:
        return "needs eps0, which gamma gives only together with k"
    fits = capped(setting)
    if isinstance(randomizer, VariationRatio):  # e^eps0 need not bound the ratios to a third input
        fits = fits and (randomizer.q is None or math.log(randomizer.q) <= setting.eps0)
    return "" if fits else "needs a randomizer that is pure eps0-LDP"


def approximate(setting: Setting) -> bool:
    """Whether the reports are not pure LDP, so that eps0 alone promises nothing."""
    return isinstance(everybody(setting.randomizer), Gaussian)


def capped(setting: Setting) -> bool:
    """Whether eps0 alone is a promise with delta 0, so that no epsilon above it is needed."""
    return math.isfinite(setting.eps0) and not approximate(setting)


def _only(kind: str) -> Callable[[Setting], str]:
    return lambda setting: "" if setting.randomizer.kind == kind else f"is for {kind} only"


def _closed(form: Callable[..., float | None], of_k: bool = False) -> LogDelta:
    """A closed form of epsilon, eps0 and n, or `of_k` besides, for randomized response.

    A delta that holds at some epsilon holds at every larger one: some closed forms rise again, delta does not.
    """

    def log_delta(setting: Setting, epsilon: float, grid: int) -> float | None:
        given = [setting.eps0, setting.n]
        if of_k and isinstance(setting.randomizer, KRR):
            given.append(setting.randomizer.k)
        found = [_log(form(epsilon * step / PROBES, *given)) for step in range(PROBES, 0, -1)]
        return min((value for value in found if value is not None), default=None)

    return log_delta


def _log(delta: float | None) -> float | None:
    if delta is None or not delta < 1.0:
        return None
    return math.log(delta) if delta > 0.0 else -math.inf


def _theorem_1(epsilon: float, eps0: float, n: int, k: int) -> float | None:
    return forms.theorem_1(epsilon, n, k, forms.krr_similarity(eps0, k))


def _clones(setting: Setting, epsilon: float, grid: int) -> float:
    """Every other message is a copy of either of the two with probability `e^-eps0` in all (Feldman et al. 2021)."""
    return _copies(setting.eps0, 0.5 * math.exp(-setting.eps0)).log_upper(setting.n, epsilon, grid)


def _stronger_clones(setting: Setting, epsilon: float, grid: int) -> float:
    """The same with probability `2/(e^eps0 + 1)` in all (Feldman et al. 2023); our proof is by the blanket."""
    return _copies(setting.eps0, 1.0 / (math.exp(setting.eps0) + 1.0)).log_upper(setting.n, epsilon, grid)


def _copies(eps0: float, each: float) -> Cells:
    """Two answers at eps0, either of which every other message copies with probability `each`."""
    p = math.exp(eps0)
    high, low = p / (p + 1.0), 1.0 / (p + 1.0)
    return cells((high, low), (low, high), (each, each))


def _variation(setting: Setting, epsilon: float, grid: int) -> float | None:
    return variation_cells(there(setting.randomizer.ratios(setting.eps0))).log_upper(setting.n, epsilon, grid)


def _variation_fits(setting: Setting) -> str:
    ratios = setting.randomizer.ratios(setting.eps0)
    return "" if ratios is not None and math.isfinite(ratios.p) else "needs variation-ratio parameters"


def _published(setting: Setting, epsilon: float, grid: int) -> float:
    """The variation-ratio pair as published for k-RR: it merges outputs that a data set can keep apart.

    Merging can only lower the divergence of the data set whose others all hold a third value, so that it is a lower
    bound for k >= 3, whatever it was published as.
    """
    randomizer = setting.randomizer
    assert isinstance(randomizer, KRR)
    p, k = math.exp(setting.eps0), randomizer.k
    c = 1.0 / (p + k - 1.0)
    common = (k - 2.0) * c
    pair = cells((p * c, c, common), (c, p * c, common), (c, c, 1.0 - 2.0 * c))
    return pair.log_upper(setting.n, epsilon, grid) if grid <= GUESS else pair.log_lower(setting.n, epsilon, grid)


def _three_values(setting: Setting) -> str:
    wanted = isinstance(setting.randomizer, KRR) and setting.randomizer.k >= 3
    return "" if wanted else "is for k-rr with k >= 3 only"


@lru_cache(maxsize=64)
def _blankets(randomizer: Randomizer, eps0: float, tail: float) -> list[Cells]:
    return randomizer.blankets(eps0, tail)


@lru_cache(maxsize=64)
def _data_sets(randomizer: Randomizer, eps0: float) -> list[Cells]:
    """Those whose others hide least: for many people it is the chi-square distance that counts."""
    every = randomizer.data_sets(eps0)
    if isinstance(everybody(randomizer), Gaussian) or len(every) < 2:
        return every
    distances = [float(((pair.first - pair.second) ** 2 / pair.others).sum()) for pair in every]
    return [pair for pair, distance in zip(every, distances, strict=True) if distance > 0.9 * max(distances)]


def _blanket_fits(setting: Setting) -> str:
    return "needs a randomizer whose law is known" if setting.randomizer.kind == "generic" else ""


def _blanket(setting: Setting, epsilon: float, grid: int) -> float:
    """The blanket expectation itself (B, Lemma 8), for the worst pair of inputs."""
    if approximate(setting):
        return _with_tails(setting, epsilon, grid)
    return _worst(_blankets(setting.randomizer, setting.eps0, 0.0), setting.n, epsilon, grid)


def _worst(every: list[Cells], n: int, epsilon: float, grid: int) -> float:
    """The largest upper bound; cells whose cheap bound is below it are not looked at closely."""
    if len(every) == 1:
        return every[0].log_upper(n, epsilon, grid)
    cheap = sorted(((pair.log_upper(n, epsilon, 256), i) for i, pair in enumerate(every)), reverse=True)
    worst = -math.inf
    for bound, i in cheap:
        if bound <= worst:
            break
        worst = max(worst, min(bound, every[i].log_upper(n, epsilon, grid)))
    return worst


def _with_tails(setting: Setting, epsilon: float, grid: int) -> float:
    """A law without a largest likelihood ratio: messages beyond some place are rare and count one by one.

    The best such place is looked for on a coarse grid. On a finer one the sums bear larger values.
    """

    def beyond(tail: float, spent: int) -> float:
        return _worst(_blankets(setting.randomizer, setting.eps0, tail), setting.n, epsilon, spent)

    tails = [1e-2 / 4.0**step for step in range(60)]
    best, place = math.inf, 0
    for step, tail in enumerate(tails):
        found = beyond(tail, min(grid, COARSE))
        if found < best:
            best, place = found, step
        elif best < 0.0 and step >= place + 4:
            break
    if grid <= COARSE:
        return best
    best = min(best, beyond(tails[place], grid))
    for tail in tails[place + 2 :: 2]:
        finer = beyond(tail, grid)
        if finer >= best:
            break
        best = finer
    return best


def _data_set_fits(setting: Setting) -> str:
    return "no data set is known of it" if isinstance(everybody(setting.randomizer), VariationRatio) else ""


def _data_set(setting: Setting, epsilon: float, grid: int) -> float:
    """The data set that looks worst on a coarse grid, and then for certain."""
    every, n = _data_sets(setting.randomizer, setting.eps0), setting.n
    if approximate(setting):  # likelihood ratios without bound: what a coarse grid proves tells most
        best = max(every, key=lambda pair: pair.log_lower(n, epsilon, COARSE))
        return best.log_lower(n, epsilon, max(grid, COARSE))
    if len(every) > 1:
        every = [max(every, key=lambda pair: pair.log_upper(n, epsilon, GUESS))]
    if grid <= GUESS:
        return max((pair.log_upper(n, epsilon, grid) for pair in every), default=-math.inf)
    return max((pair.log_lower(n, epsilon, grid) for pair in every), default=-math.inf)


def _first_below(setting: Setting, epsilon: float, grid: int) -> float:
    """The event that some message is below `t`, for the best `t`, where all others hold 1: with little noise only who
    holds 0 ever gets there."""
    randomizer, n = setting.randomizer, setting.n
    assert isinstance(randomizer, Gaussian)
    sigma, scale = randomizer.deviation(setting.eps0), math.exp(epsilon)
    places = np.linspace(max(-38.0, 0.5 - 30.0 / sigma), 1.0 / sigma, grid)
    nobody = log_ndtr(1.0 / sigma - places)
    zero = -np.expm1(log_ndtr(-places) + (n - 1) * nobody)
    one = -np.expm1(n * nobody)
    best = float((zero * (1.0 - 1e-11) - scale * one * (1.0 + 1e-11)).max())
    return math.log(best) if best > 0.0 else -math.inf


def _binary_fits(setting: Setting) -> str:
    wanted = isinstance(setting.randomizer, KRR) and setting.randomizer.k == 2
    return "" if wanted else "is for k-rr with k = 2 only"


def _binary(setting: Setting, epsilon: float, grid: int) -> float | None:
    if grid <= GUESS:
        return _binary_guess(setting, epsilon)
    return _log(binary_delta(setting.n, setting.eps0, epsilon).upper)


def _binary_lower(setting: Setting, epsilon: float, grid: int) -> float | None:
    if grid <= GUESS:
        return _binary_guess(setting, epsilon)
    return _log(likely_delta(setting.n, setting.eps0, epsilon).lower)


def _binary_guess(setting: Setting, epsilon: float) -> float | None:
    ends = (CountSetting(setting.n, held, setting.eps0) for held in (0, setting.n - 1))
    return _log(max(count_delta(end, epsilon).lower for end in ends))


BOUNDS: dict[str, Bound] = {
    "erlingsson": Bound("upper", "Erlingsson et al. 2019 (B, Theorem 4)", _pure, _closed(forms.erlingsson)),
    "theorem-6": Bound("upper", "Paper B, Theorem 6", _pure, _closed(forms.theorem_6)),
    "hoeffding-generic": Bound(
        "upper", "Paper B, Lemmas 7 to 10, with gamma <= 1", _pure, _closed(forms.hoeffding_generic)
    ),
    "bennett-generic": Bound(
        "upper", "Paper B, Lemmas 7, 8, 9, 11, with gamma <= 1", _pure, _closed(forms.bennett_generic)
    ),
    "bennett-generic-sharp": Bound("upper", "Paper B, Lemmas 7, 8, 9, 11", _pure, _closed(forms.bennett_generic_sharp)),
    "hoeffding-k-rr": Bound(
        "upper", "Paper B, Lemmas 6, 8, 10, 12", _only("k-rr"), _closed(forms.hoeffding_krr, of_k=True)
    ),
    "bennett-k-rr": Bound(
        "upper", "Paper B, Lemmas 6, 8, 11, 12", _only("k-rr"), _closed(forms.bennett_krr, of_k=True)
    ),
    "theorem-1": Bound("upper", "Paper B, Theorem 1", _only("k-rr"), _closed(_theorem_1, of_k=True)),
    "hoeffding-laplace": Bound(
        "upper", "Paper B, Lemmas 6, 8, 10, 13", _only("laplace"), _closed(forms.hoeffding_laplace)
    ),
    "bennett-laplace": Bound("upper", "Paper B, Lemmas 6, 8, 11, 13", _only("laplace"), _closed(forms.bennett_laplace)),
    "clones-closed": Bound("upper", "Feldman et al. 2021", _pure, _closed(forms.clones)),
    "clones": Bound("upper", "Feldman et al. 2021, numerically", _pure, _clones, MIDDLE),
    "stronger-clones-closed": Bound("upper", "Feldman et al. 2023", _pure, _closed(forms.stronger_clones)),
    "stronger-clones": Bound("upper", "Feldman et al. 2023, proved by the blanket", _pure, _stronger_clones, FINE),
    "variation-ratio": Bound("upper", "Wang et al. 2024, as far as proved", _variation_fits, _variation, MIDDLE),
    "blanket": Bound("upper", "Paper B, Lemma 8, by FFT", _blanket_fits, _blanket, FINE),
    "binary-exact": Bound("upper", "all data sets of binary randomized response", _binary_fits, _binary, FINE, True),
    "variation-ratio-lower": Bound("lower", "Wang et al. 2024, as published", _three_values, _published, MIDDLE, True),
    "data-set": Bound("lower", "a pair of concrete data sets", _data_set_fits, _data_set, FINE, True),
    "first-below": Bound("lower", "a message far out, all others at 1", _only("gaussian"), _first_below, COARSE),
    "binary-exact-lower": Bound("lower", "the worst data set found", _binary_fits, _binary_lower, FINE, True),
}
"""Every bound by its name. To add one, write its function and its line."""


def told(bound: Bound, what: str, progress: Progress) -> Bound:
    """The same bound, which says how often it was asked."""
    asked = 0

    def log_delta(setting: Setting, epsilon: float, grid: int) -> float | None:
        nonlocal asked
        asked += 1
        progress(f"{what}: step {asked:,}" if asked > 1 else what)
        return bound.log_delta(setting, epsilon, grid)

    return replace(bound, log_delta=log_delta)


def leader(setting: Setting) -> str:
    """The bound that is proved to be the best one."""
    return next(name for name in ("binary-exact", "blanket", "stronger-clones") if not BOUNDS[name].fits(setting))
