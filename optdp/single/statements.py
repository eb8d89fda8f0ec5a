"""The linear programs of one entity as they are stated: the plain one, the specification, and its other forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from optdp.errors import ProblemError
from optdp.numbers.exact import precision
from optdp.programs.cvxpy import import_cvxpy
from optdp.programs.program import LinearProgram
from optdp.programs.statement import Statement
from optdp.single.core import Core
from optdp.single.laws import Sight
from optdp.single.lp import COEFFICIENTS, NoiseLP, formulate
from optdp.single.pair_form import PairForm
from optdp.single.problem import SingleLTE
from optdp.single.watch import views
from optdp.single.window import is_pair_form


def statements(problem: SingleLTE) -> list[Statement]:
    """The plain program first, then the other forms that this problem has; all have the same optimum.

    The core program leaves out inputs that next to nothing rests on, so that its optimum is a little different.
    """
    if problem.form == "additive":
        raise ProblemError('The programs of form = "additive" grow as they are solved. Leave out the form.')
    with precision():
        lp = formulate(problem, margin=0.0)
        if problem.watched:
            lp = _watched_by_all(problem, lp)
    size, gaps = len(lp.inputs), len(lp.gaps)
    chain = 4 * sum(size - far for far in lp.rungs) if lp.chain is not None else 0
    rows = size * (1 + gaps + (lp.cap is not None)) + size * chain // 2
    entries = size * size * (1 + gaps + (lp.cap is not None)) + size * chain
    found = [
        Statement("plain", "the specification: the table as it is", size * size, rows, entries,
                  lp.to_program, lp.to_cvxpy, lp.constant)
    ]  # fmt: skip
    if lp.chain is not None:
        form = Chained(lp)
        what = "the mechanism with its fallback, not the table"
        found.append(Statement("chain", what, size * size, rows, entries, form.to_program, form.to_cvxpy, lp.constant))
        return found
    core = Core.of(lp, lp.tight_cap)
    count = core.size**2
    what = "the inputs that matter, jointly scaled; costs are multiplied by a unit"
    found.append(Statement(
        "core", what, count, core.size * (gaps + 2), count * (gaps + 2), core.to_program, core.to_cvxpy
    ))  # fmt: skip
    if is_pair_form(problem):
        columns = PairForm.size(lp)
        found.append(Statement(
            "pairs", "pairs of inputs that share a report, every pair at once", columns, 2 * size, 4 * columns,
            lambda: PairForm.of(lp).to_program(), lambda: PairForm.of(lp).to_cvxpy(), lp.constant,
        ))  # fmt: skip
    return found


def _watched_by_all(problem: SingleLTE, lp: NoiseLP) -> NoiseLP:
    """The program with every vertex of every observer."""
    sights: list[Sight] = [
        (view.observer, view.start + vertex, *pair)
        for view in views(problem)
        for vertex in range(view.family.size)
        for pair in view.pairs
    ]
    if 2 * len(sights) * len(lp.inputs) > COEFFICIENTS:
        raise ProblemError(
            f"The privacy constraints of an output may have {COEFFICIENTS:,} coefficients. Found "
            f"{2 * len(sights) * len(lp.inputs):,}, for {len(sights):,} worlds and pairs. Use fewer people or a "
            "narrower range."
        )
    return lp.seen(sights)


class Chained:
    """The program in the mechanism itself, `r(x, s) = c(x) W(x, s)`, as `chain` solves it."""

    def __init__(self, lp: NoiseLP) -> None:
        self.lp = lp

    def to_program(self) -> LinearProgram:
        """The plain arrays with every column divided by the mass of its input, and sums that are that mass."""
        lp, plain = self.lp, self.lp.to_program()
        size, each = len(lp.inputs), np.repeat(1 / lp.mass, len(lp.inputs))
        matrix = sp.csr_array(plain.matrix @ sp.diags(each))
        scale = np.ones(len(plain.lower))
        scale[:size] = lp.mass
        if lp.cap is not None:
            scale[size * (1 + len(lp.gaps)) : size * (2 + len(lp.gaps))] = lp.mass
        matrix = sp.csr_array(sp.diags(scale) @ matrix)
        return replace(
            plain, cost=plain.cost * each, matrix=matrix, lower=plain.lower * scale, upper=plain.upper * scale
        )

    def to_cvxpy(self) -> Any:
        """The specification: the program of `chain`'s docstring."""
        cp, lp = import_cvxpy(), self.lp
        size, distance = len(lp.inputs), lp.distances
        r = cp.Variable((size, size), nonneg=True, name="r")
        constraints = [cp.sum(r, axis=1) == lp.mass, (lp.gaps / lp.mass) @ r <= 0]
        if lp.tight_cap is not None:
            constraints.append(cp.sum(cp.multiply(distance, r), axis=1) <= lp.mass * lp.tight_cap)
        assert lp.chain is not None
        for far in lp.rungs:
            constraints += [r[:-far] <= lp.chain * r[far:], r[far:] <= lp.chain * r[:-far]]
        cost = (lp.cost / lp.mass)[:, None] * distance**lp.power
        return cp.Problem(cp.Minimize(cp.sum(cp.multiply(cost, r))), constraints)
