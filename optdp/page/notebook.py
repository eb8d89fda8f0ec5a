"""How mechanisms and plans show themselves in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optdp.noise.certify import EXPLANATION
from optdp.noise.matrix import NoiseMatrix
from optdp.page.figures import at_most, epsilon, less, odds_factor
from optdp.page.fragment import fragment, with_factor
from optdp.page.heat import of_matrix, of_shared
from optdp.page.markup import Html
from optdp.page.populations import headcount

if TYPE_CHECKING:
    from optdp.plan import PlanSolution
    from optdp.solution import Solution


def of_solution(solution: Solution) -> Html:
    """One entity's mechanism."""
    certificate, problem = solution.certificate, solution.problem
    eps = None if certificate.epsilon is None else min(certificate.epsilon, problem.epsilon)
    rows = [
        ("people", headcount(problem.populations[0])),
        ("epsilon under the prior", with_factor(epsilon(eps), "" if eps is None else odds_factor(eps))),
        ("ordinary epsilon", epsilon(certificate.ordinary_epsilon)),
        ("mean error", f"{at_most(certificate.mae)}, {less(certificate.mae, problem.cap)}"),
        ("status", solution.status),
    ]
    heat = of_matrix(solution.mechanism, problem.populations[0])
    return fragment(
        "optdp: a certified mechanism", rows, [("inputs down, outputs across", heat)], solution.note, EXPLANATION
    )


def of_plan(solution: PlanSolution) -> Html:
    """Several entities' tables; the first few are drawn."""
    certificate, problem = solution.certificate, solution.problem
    eps = None if certificate.epsilon is None else min(certificate.epsilon, problem.epsilon)
    below = less(certificate.mae, problem.baseline_mae, "shared geometric noise")
    rows = [
        ("parties", f"{len(problem.parties)}, {problem.honest} surely honest"),
        ("epsilon under the priors", with_factor(epsilon(eps), "" if eps is None else odds_factor(eps))),
        ("mean error of the aggregate", f"{at_most(certificate.mae)}, {below}"),
        ("status", solution.status),
    ]
    maps = []
    for i, (table, population) in enumerate(zip(solution.tables[:3], problem.parties[:3], strict=True)):
        heat = of_matrix(table, population) if isinstance(table, NoiseMatrix) else of_shared(table, population)
        maps.append((f"party {i}", heat))
    from optdp.noise.plan_certificate import (
        EXPLANATION as PLAN_EXPLANATION,  # here, for the plan's module shows itself by this one
    )

    return fragment("optdp: a certified plan", rows, maps, solution.note, PLAN_EXPLANATION)
