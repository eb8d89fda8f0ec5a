"""The specifications of programs in CVXPY, as the docstrings of `block` and `contraction` have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from optdp.numbers.ordered import Array
from optdp.plan.block import Block
from optdp.plan.contraction import ContractionLP, CouplingLP


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


def contraction_model(lp: ContractionLP) -> Any:
    import cvxpy as cp

    A = cp.Variable((len(lp.inputs), len(lp.inputs)), nonneg=True)
    R = cp.Variable((len(lp.inputs), len(lp.outputs)), nonneg=True)
    contracted = lp.laws @ A
    seen, limit = contracted @ lp.decay, lp.entity.limit
    rules = [
        cp.sum(A, axis=1) == 1,
        cp.sum(R, axis=1) == A @ lp.kernel.sum(axis=1),
        lp.laws @ R == contracted @ lp.kernel,
    ]
    for one, other in lp.entity.steps:
        rules += [seen[one] <= limit * seen[other], seen[other] <= limit * seen[one]]
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(lp.losses, R)) + cp.sum(cp.multiply(lp.outer_losses, A))), rules)


def coupling_model(lp: CouplingLP) -> Any:
    import cvxpy as cp

    R = cp.Variable(lp.base.shape, nonneg=True)
    rules = [cp.sum(R, axis=1) == lp.base.sum(axis=1), lp.laws @ R == lp.laws @ lp.base]
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(lp.losses, R))), rules)


def _shifts(rest: Array, outputs: int) -> Array:
    """The matrix that adds an independent `rest` to a report."""
    matrix = np.zeros((len(rest) + outputs - 1, outputs))
    for s in range(outputs):
        matrix[s : s + len(rest), s] = rest
    return matrix
