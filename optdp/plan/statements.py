"""The linear programs of plans as they are stated, for each kind of party and for the plan as a whole.

No single program is a plan: a joint plan is found block by block, noise that each party designs alone by a contraction
and a coupling, a plan with a common word by a program over tuples of maps. The bound is a program for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from optdp.errors import ProblemError
from optdp.numbers.exact import precision
from optdp.numbers.ordered import Array
from optdp.plan import seeded
from optdp.plan.block import TableProgram
from optdp.plan.bound import best_layout, bound_program
from optdp.plan.bound_proof import out_of_reach
from optdp.plan.contraction import ContractionLP, CouplingLP, just_enough
from optdp.plan.methods import refusal
from optdp.plan.models import block_model, block_program, block_size, contraction_model, coupling_model, maps_model
from optdp.plan.parties import Entity, parties_of
from optdp.plan.problem import MultiLTE
from optdp.plan.starts import MOST_PRODUCTS, Size, mostly_true
from optdp.programs.highs import held
from optdp.programs.program import LinearProgram
from optdp.programs.statement import Statement
from optdp.single.statements import statements as of_one

MARGIN = 2
"""How far beyond the inputs a block's outputs reach."""
FINE = (1e-5, 1e-5)
"""What a contraction's program leaves out of inputs and outputs."""


def statements(problem: MultiLTE) -> list[Statement]:
    """The programs that this problem has; of parties that are alike only the first is listed."""
    found: list[Statement] = []
    with precision():
        for ways in (_blocks, _alone, _divisible, _maps, _bound):
            found += ways(problem)
    if not found:
        raise ProblemError("No linear program of this plan can be written out: it is too large. Use fewer people.")
    return found


def _kinds(problem: MultiLTE) -> list[int]:
    """The first of each kind of party."""
    first: dict[object, int] = {}
    for i, party in enumerate(problem.parties):
        first.setdefault((repr(party.spec), problem.f[i]), i)
    return list(first.values())


def _blocks(problem: MultiLTE) -> Iterator[Statement]:
    """One party's table in a joint plan while the others tell the truth, but for some noise."""
    if refusal(problem, "joint") or problem.watched or Size.of(problem).products > MOST_PRODUCTS:
        return
    plan = mostly_true(tuple(parties_of(problem, [MARGIN] * len(problem.parties))), problem.honest)
    exponent = 1 if problem.objective == "mae" else 2
    for i in _kinds(problem):
        block = plan.block(i, exponent)
        what = f"joint: the table of party {i} while the others hold the truth with rare noise"
        unknowns, rows, entries = block_size(block)
        yield Statement(
            f"block-{i}", what, unknowns, rows, entries, partial(block_program, block), partial(_model, block)
        )


def _model(block: TableProgram) -> Any:
    return block_model(block)[0]


def _alone(problem: MultiLTE) -> Iterator[Statement]:
    if refusal(problem, "alone"):
        return
    for i in _kinds(problem):
        plain = of_one(problem.alone(i, problem.objective))[0]
        yield replace(plain, name=f"alone-{i}", what=f"alone: the table of party {i} by itself, the plain program")


def _divisible(problem: MultiLTE) -> Iterator[Statement]:
    """The contraction of a party, and the table for the weakest scaled one."""
    if refusal(problem, "divisible"):
        return
    for i in _kinds(problem):
        entity = Entity.of(problem, i)
        contraction = ContractionLP.of(entity, *FINE)
        what = f"divisible: the contraction of party {i}, jointly scaled"
        program = contraction.to_program()
        yield _stated(f"contraction-{i}", what, program, partial(contraction_model, contraction))
        moved: Array = just_enough(entity)
        coupling = CouplingLP.of(entity, moved, entity.own_cost)
        what = f"divisible: the table of party {i} for its weakest scaled contraction, jointly scaled"
        yield _stated(f"coupling-{i}", what, coupling.to_program(), partial(coupling_model, coupling))


def _maps(problem: MultiLTE) -> Iterator[Statement]:
    if refusal(problem, "seeded"):
        return
    search = seeded.Search.of(problem)
    program = seeded.MapsProgram(search)
    program.add(search.first())
    begun = "all tuples of maps" if search.few else "the tuples of maps that it begins with"
    yield _stated("maps", f"seeded: {begun}", held(program.highs), partial(maps_model, search))


def _bound(problem: MultiLTE) -> Iterator[Statement]:
    layout = None if out_of_reach(problem) else best_layout(problem)
    if layout is not None:
        program = bound_program(problem, layout)
        what = f"a lower bound for every plan, over {len(layout.parties)} blocks of parties"
        yield _stated("bound", what, program.to_program(), program.to_cvxpy)


def _stated(name: str, what: str, program: LinearProgram, model: Callable[[], Any]) -> Statement:
    rows, unknowns = program.matrix.shape
    return Statement(name, what, unknowns, rows, program.matrix.nnz, lambda: program, model)
