"""The programs of plans as CVXPY models: the specifications, as the docstrings of `block`, `contraction` and `seeded`
have them; and the whole program of a block as arrays.

The engine of a block adds rows and entries as they are needed, relative to the table at hand. Written out, with `y` the
laws of the report and a price for what exceeds the error given a sum,

    minimise    sum over x, s of  prior(x) cost(s - f x) r(x, s)  +  price z
    subject to  sum over s of r(x, s) = 1,   y_k(s) = sum over x of law_k(x) r(x, s)
                (rest_a * y_a)(S) <= e^eps (rest_b * y_b)(S), and the reverse       every view, every aggregate S
                r(x, s) <= e^f r(x', s)                                             adjacent inputs, with a fallback
                sum over x, s of given_t(x, s) r(x, s) <= share + z                 every sum t, with `never_worse`
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from optdp.numbers.ordered import Array, exp
from optdp.plan.block import KEPT, TableProgram
from optdp.plan.contraction import ContractionLP, CouplingLP
from optdp.plan.seeded import Maps, Search
from optdp.programs.cvxpy import import_cvxpy
from optdp.programs.program import LinearProgram


def block_size(block: TableProgram) -> tuple[int, int, int]:
    """How many unknowns, rows and entries `block_program` has (at most), without writing it out."""
    inputs, width = block.cost.shape
    laws, cells = len(block.weights), inputs * width
    chained = 2 * (inputs - 1) * width if block.chain is not None else 0
    rests = [(len(view.rest_one), len(view.rest_other)) for view in block.views]
    sums = 0 if block.given is None else len(block.given)
    rows = inputs + laws * width + sum(one + other + 2 * width - 2 for one, other in rests) + chained + sums
    entries = cells * (1 + laws) + laws * width + 2 * width * sum(one + other for one, other in rests)
    return cells + laws * width + (sums > 0), rows, entries + 2 * chained + sums * (cells + 1)


def block_program(block: TableProgram) -> LinearProgram:
    """The arrays: the unknowns are `r(x, s)`, then `y_k(s)`, then, with `never_worse`, `z`."""
    inputs, width = block.cost.shape
    laws, cells = len(block.weights), inputs * width
    eye, size = sp.identity(width, format="csr"), inputs * width + laws * width
    table = sp.kron(sp.identity(inputs), np.ones((1, width)))
    rows: list[Any] = [
        sp.hstack([table, sp.csr_array((inputs, laws * width))]),
        sp.hstack([sp.kron(block.weights, eye), -sp.identity(laws * width)]),
    ]
    equal = np.concatenate([np.ones(inputs), np.zeros(laws * width)])
    for view in block.views:
        grow = exp(view.epsilon)
        one, other = _shifts(view.rest_one, width), _shifts(view.rest_other, width)
        for a, left, b, right in ((view.one, one, view.other, other), (view.other, other, view.one, one)):
            blank = sp.csr_array((len(left), width))
            parts: list[Any] = [blank] * laws
            parts[a] = sp.csr_array(left) - grow * sp.csr_array(right) if a == b else sp.csr_array(left)
            if a != b:
                parts[b] = -grow * sp.csr_array(right)
            rows.append(sp.hstack([sp.csr_array((len(left), cells)), *parts]))
    if block.chain is not None and inputs > 1:
        grow, step = exp(block.chain), sp.identity(inputs, format="csr")
        for above, below in ((step[1:], step[:-1]), (step[:-1], step[1:])):
            chained = sp.kron(above - grow * below, eye)
            rows.append(sp.hstack([chained, sp.csr_array((chained.shape[0], laws * width))]))
    bounded = sum(part.shape[0] for part in rows[2:])
    upper = np.concatenate([equal, np.zeros(bounded)])
    cost = np.concatenate([(block.weights[0][:, None] * block.cost).ravel(), np.zeros(laws * width)])
    matrix = sp.vstack(rows, format="csr")
    if block.given is not None:
        given = sp.csr_array(block.given.reshape(len(block.given), -1))
        given = sp.hstack([given, sp.csr_array((given.shape[0], laws * width)), -np.ones((given.shape[0], 1))])
        matrix = sp.vstack([sp.hstack([matrix, sp.csr_array((matrix.shape[0], 1))]), given], format="csr")
        upper, cost, size = np.append(upper, np.full(given.shape[0], KEPT)), np.append(cost, block.price), size + 1
    return LinearProgram(cost, matrix, np.append(equal, np.full(len(upper) - len(equal), -np.inf)), upper)


def block_model(block: TableProgram, floor: float = 0.0, slack: float = 0.0) -> tuple[Any, Any]:
    """The CVXPY problem and its variable `r`; every aggregate of every view has its two rows."""
    cp = import_cvxpy()
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
    loss = cp.sum(cp.multiply(block.weights[0][:, None] * block.cost, r))
    if block.given is not None:
        z = cp.Variable(nonneg=True)
        rules += [cp.sum(cp.multiply(own, r)) <= KEPT + z for own in block.given]
        loss += block.price * z
    return cp.Problem(cp.Minimize(loss), rules), r


def contraction_model(lp: ContractionLP) -> Any:
    """The program of the best contraction, without scaling."""
    cp = import_cvxpy()
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
    """The program of the best table for a contraction, without scaling."""
    cp = import_cvxpy()
    R = cp.Variable(lp.base.shape, nonneg=True)
    rules = [cp.sum(R, axis=1) == lp.base.sum(axis=1), lp.laws @ R == lp.laws @ lp.base]
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(lp.losses, R))), rules)


def maps_model(search: Search) -> Any:
    """The program over the tuples of maps that are columns: a chance for each."""
    cp = import_cvxpy()
    maps: list[Maps] = [np.array([own[i] for own in search.columns], dtype=np.int64) for i in range(search.count)]
    costs, entries = search.coefficients(maps)
    chance = cp.Variable(len(costs), nonneg=True)
    rules = [cp.sum(chance) == 1, entries.reshape(len(costs), -1).T @ chance <= 0]
    return cp.Problem(cp.Minimize(costs @ chance), rules)


def _shifts(rest: Array, outputs: int) -> Array:
    """The matrix that adds an independent `rest` to a report."""
    matrix = np.zeros((len(rest) + outputs - 1, outputs))
    for s in range(outputs):
        matrix[s : s + len(rest), s] = rest
    return matrix
