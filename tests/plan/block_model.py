"""The specification of a block: the program of `block` in CVXPY, as its docstring has it, for tests and doubters."""

from __future__ import annotations

from typing import Any

import numpy as np

from optdp.numbers.ordered import Array
from optdp.plan.block import Block


def to_cvxpy(block: Block, floor: float = 0.0, slack: float = 0.0) -> tuple[Any, Any]:
    """The CVXPY problem and its variable `r`; every aggregate of every view has its two rows."""
    import cvxpy as cp

    r = cp.Variable(block.cost.shape)
    y = cp.Variable((len(block.weights), block.cost.shape[1]))
    rules = [r >= floor / block.cost.shape[1], cp.sum(r, axis=1) == 1, y == block.weights @ r]
    for view in block.views:
        one = _shifts(view.rest_one, block.cost.shape[1]) @ y[view.one]
        other = _shifts(view.rest_other, block.cost.shape[1]) @ y[view.other]
        grow = float(np.exp(view.epsilon * (1 - slack)))
        rules += [one <= grow * other, other <= grow * one]
    if block.chain is not None and block.cost.shape[0] > 1:
        grow = float(np.exp(block.chain * (1 - slack)))
        rules += [r[1:] <= grow * r[:-1], r[:-1] <= grow * r[1:]]
    costs = block.weights[0][:, None] * block.cost
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(costs, r))), rules), r


def _shifts(rest: Array, outputs: int) -> Array:
    """The matrix that adds an independent `rest` to a report."""
    matrix = np.zeros((len(rest) + outputs - 1, outputs))
    for s in range(outputs):
        matrix[s : s + len(rest), s] = rest
    return matrix
