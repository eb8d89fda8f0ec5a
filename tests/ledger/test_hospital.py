"""The hospital of docs/ledger.md: what two releases tell about one patient, by enumeration."""

from __future__ import annotations

from math import comb, exp, inf

import numpy as np
import pytest

from optdp import Population, SingleLTE, solve

OTHERS = np.array([comb(99, x) * 0.1**x * 0.9 ** (99 - x) for x in range(100)])


def told(table: np.ndarray, *, same: bool) -> float:
    """The largest log-quotient of two numbers, the others being the same in both months or drawn anew."""
    laws = []
    for own in (0, 1):
        rows = table[own : own + 100]
        once = OTHERS @ rows
        laws.append(np.einsum("x,xs,xt->st", OTHERS, rows, rows) if same else np.outer(once, once))
    possible = np.maximum(*laws) > 1e-12
    one, other = (law[possible] for law in laws)
    if (np.minimum(one, other) == 0).any():
        return inf
    return float(np.abs(np.log(one / other)).max())


def test_the_figures_of_the_docs() -> None:
    ward = Population.binomial(100, "0.1")
    both = solve(SingleLTE(ward, "0.3", tail="none", fallback_epsilon="0.4"))
    assert both.mae == pytest.approx(2.0, abs=0.05)
    assert 2 * exp(-0.4) / (1 - exp(-0.8)) == pytest.approx(2.4, abs=0.05)  # geometric noise at 0.4
    table = both.mechanism.to_array()
    assert told(table, same=False) <= 0.6 + 1e-9  # fresh and independent: the epsilons under the prior add up
    assert told(table, same=True) == pytest.approx(0.78, abs=0.005)  # the same data: they do not
    assert told(table, same=True) <= 0.8 + 1e-9  # the ordinary ones do
    alone = solve(SingleLTE(ward, "0.3", tail="none"))
    assert told(alone.mechanism.to_array(), same=True) == inf
