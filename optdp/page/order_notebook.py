"""How an order-private shuffle shows itself in a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from optdp.page.figures import at_most, odds_factor, people
from optdp.page.fragment import fragment, with_factor
from optdp.page.markup import Html

if TYPE_CHECKING:
    from optdp.mallows.solve import OrderSolution


def of_order(solution: OrderSolution) -> Html:
    """An order and its shuffle."""
    rows = [
        ("records", people(solution.n)),
        ("groups", f"{len(solution.problem.groups):,}"),
        ("alpha", with_factor(at_most(solution.alpha), odds_factor(solution.alpha))),
        ("theta", "infinite" if math.isinf(solution.theta) else f"{solution.theta:.6g}"),
        ("sensitivity", f"{solution.sensitivity:,}, no order is below {solution.lower_bound:,}"),
        ("status", solution.status),
    ]
    return fragment("optdp: an order-private shuffle", rows, [], solution.note, solution.problem.meaning)
