"""The error of a plan given the sum, in floating point: the rows of `never_worse` in one party's program.

    sum over x, s of  Pr[x given t] E[|s + N - t| given the others' sum t - f x] r(x, s) <= c G      every sum t

where `N` is what the others report together. It is linear in the party's table `r`. The certificate has the same in
balls (`by_total.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optdp.numbers.ordered import Array, convolve, product, total
from optdp.plan.parties import Party

LIKELY = 1e-290
"""Sums that are rarer cannot be told from impossible ones."""


def coefficients(parties: Sequence[Party], tables: Sequence[Array], i: int, most: float) -> Array:
    """For each possible sum, input and output of party `i` the coefficient of its entry, as a share of `most`."""
    own = parties[i]
    others = [(party, table) for j, (party, table) in enumerate(zip(parties, tables, strict=True)) if j != i]
    laws, low_sum, low_report = _together(others)
    masses = total(laws, axis=1)
    known = masses > LIKELY
    given = np.zeros_like(laws)
    given[known] = laws[known] / masses[known, None]
    targets, reports = own.targets.astype(np.int64), own.reports.astype(np.int64)
    first, last = int(targets.min()) + low_sum, int(targets.max()) + low_sum + len(masses) - 1
    chance = np.zeros(last - first + 1)
    for x, target in enumerate(targets.tolist()):
        chance[target + low_sum - first :][: len(masses)] += own.priors[0][x] * masses
    # E|d + N - u| for every sum u of the others and every d = s - f x
    least, farthest = int(reports.min() - targets.max()), int(reports.max() - targets.min())
    gaps = np.arange(least - low_sum - len(masses) + 1, farthest - low_sum + 1)
    away = np.abs(np.add.outer(low_report + np.arange(laws.shape[1]), gaps))
    means = product(given, away.astype(np.float64))  # for each u, and each d - u
    found = np.zeros((len(chance), len(targets), len(reports)))
    for u in np.flatnonzero(known).tolist():
        shift = len(masses) - 1 - u  # where d - u begins
        mean = means[u, shift : shift + farthest - least + 1]
        for x, target in enumerate(targets.tolist()):
            t = target + low_sum + u - first
            if chance[t] > LIKELY:
                share = own.priors[0][x] * masses[u] / chance[t] / most
                found[t, x] = share * mean[reports - target - least]
    return found[chance > LIKELY]


def _together(others: Sequence[tuple[Party, Array]]) -> tuple[Array, int, int]:
    """The joint law of the sum of the others' weighted inputs and of their reports, from the least of each."""
    laws, low_sum, low_report = np.ones((1, 1)), 0, 0
    for party, table in others:
        targets = party.targets.astype(np.int64)
        least = int(targets.min())
        more = np.zeros((len(laws) + int(targets.max()) - least, laws.shape[1] + table.shape[1] - 1))
        for target, chance, row in zip(targets.tolist(), party.priors[0].tolist(), table, strict=True):
            for u, law in enumerate(laws):
                if chance and law.any():
                    more[u + target - least] += chance * convolve(law, row)
        laws, low_sum, low_report = more, low_sum + least, low_report + party.outputs[0]
    return laws, low_sum, low_report
