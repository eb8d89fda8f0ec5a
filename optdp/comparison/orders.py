"""What is measured of a backend on an order: its program in whole numbers, and optdp's own search for `highs`.

Whatever is returned is read as an order, whose sensitivity is counted; the shuffle around it keeps `alpha` exactly. In
a row `alpha` stands where other kinds have epsilon, and the sensitivity is what is made small. It is that for answers
of any number of values, which the program is for: `values` of a problem are left out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdp.comparison.rows import STAGES
from optdp.errors import OptdpError
from optdp.kinds import solve, stated
from optdp.order.mechanism import alpha_of, ratio, sensitivity
from optdp.order.problem import OrderShuffle
from optdp.order.solve import OrderSolution
from optdp.programs.backends import Chosen
from optdp.programs.backends import find as backend_of
from optdp.programs.program import Answer, Options
from optdp.programs.residuals import residuals
from optdp.single.designed import shown_epsilon


@dataclass
class Order:
    """An order; what the last repeat found is kept."""

    problem: OrderShuffle
    backend: str
    options: Options
    form: str = ""
    answer: Answer | None = None
    sensitivity: int | None = None
    solution: OrderSolution | None = None
    """What optdp's own search found, whose bound is everybody's."""

    def once(self) -> Mapping[str, float]:
        """Formulate, build and solve; reading the order and measuring it is to certify it."""
        who, begin = Chosen(backend_of(self.backend), self.options), time.perf_counter()
        self.answer = self.sensitivity = None
        if who.own:
            self.solution = solve(self.problem)
            self.sensitivity = self.solution.sensitivity
            return {"solve": time.perf_counter() - begin}
        seconds = dict.fromkeys(STAGES, 0.0)
        program = stated(self.problem).program()
        seconds["formulate"], begin = time.perf_counter() - begin, time.perf_counter()
        self.answer = answer = who.solve(program)
        seconds["solve"] = answer.solve_seconds
        seconds["build"] = max(time.perf_counter() - begin - answer.solve_seconds, 0.0)
        begin = time.perf_counter()
        if answer.x is not None:
            n = self.problem.groups.n
            order = np.argsort(answer.x[n * n : n * n + n], kind="stable").astype(np.int64)
            self.sensitivity = sensitivity(self.problem.groups, order)
        seconds["certify"] = time.perf_counter() - begin
        return seconds

    def __post_init__(self) -> None:
        self.problem = self.problem.changed(values=None)

    @property
    def status(self) -> str:
        """What the answer is worth; "optimal" is proved by optdp's own bound."""
        if self.answer is not None and self.answer.status not in ("optimal", "feasible"):
            return self.answer.status
        if self.sensitivity is None:
            return "failed"
        return "optimal" if self.solution and self.sensitivity <= self.solution.lower_bound else "feasible"

    def status_of(self, _: OptdpError) -> str:
        return "failed"

    def figures(self) -> dict[str, Any]:
        """What is known."""
        program = stated(self.problem)
        found: dict[str, Any] = {"status": self.status, "unknowns": program.unknowns, "rows": program.rows}
        found["entries"] = program.entries
        if self.answer is not None:
            found |= {"theirs": self.answer.said, "iterations": self.answer.iterations}
            if self.answer.x is not None:
                primal = residuals(program.program(), self.answer.x, None).primal
                known = {"objective": self.answer.objective, "primal_residual": primal}
                found |= {name: value for name, value in known.items() if math.isfinite(value)}
        if self.sensitivity is not None:
            q = ratio(self.problem.alpha, self.sensitivity)
            found["value"] = float(self.sensitivity)
            found["certified_epsilon"] = shown_epsilon(alpha_of(q, self.sensitivity), self.problem.alpha)
            if self.solution is not None:
                least = float(self.solution.lower_bound)
                found |= {"lower_bound": least, "bound_by": "highs"}
                found["gap"] = (self.sensitivity - least) / max(self.sensitivity, 1)
        return found

    def further(self) -> Iterator[dict[str, Any]]:
        """The bound, where a solver's word is the only one so far."""
        if self.solution is None and self.sensitivity is not None:
            self.solution = solve(self.problem)
            yield self.figures()
