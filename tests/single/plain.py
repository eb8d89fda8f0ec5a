"""The plain program of one entity, as scipy solves it."""

from __future__ import annotations

from scipy.optimize import linprog

from optdp.single.lp import NoiseLP


def plain_optimum(lp: NoiseLP) -> float:
    plain = lp.to_program()
    rows, equal = plain.matrix.tocsr(), plain.lower == plain.upper
    found = linprog(plain.cost, rows[~equal], plain.upper[~equal], rows[equal], plain.upper[equal], method="highs")
    assert found.status == 0, found.message
    return float(found.fun) + lp.constant
