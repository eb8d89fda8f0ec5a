"""The CVXPY model, the arrays and the engines are one program."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from optdp import Population, ProblemError, SingleLTE
from optdp.comparison.measure import raw_epsilon
from optdp.numbers.exact import precision
from optdp.programs.backends import Chosen, find, solving
from optdp.programs.highs import solve_highs
from optdp.single.bound import lower_bound
from optdp.single.engines import engine
from optdp.single.lp import NoiseLP, formulate
from optdp.single.pair_form import PairForm
from optdp.single.pairs import solve_pairs
from optdp.single.posed import pose, solve_posed
from optdp.single.window import choose_shape
from optdp.work import silent

CASES = {
    "binomial": SingleLTE(Population.binomial(8, "0.4"), "0.5"),
    "no tail": SingleLTE(Population.binomial(8, "0.4"), "0.5", tail="none", never_worse=False),
    "squares": SingleLTE(Population.binomial(8, "0.4"), "0.5", objective="mse"),
    "two units": SingleLTE(Population.iid(4, ["0.5", "0.3", "0.2"]), "1", adjacency="unit"),
    "two units, all": SingleLTE(Population.iid(4, ["0.5", "0.3", "0.2"]), "1", adjacency="all"),
    "kinds": SingleLTE(Population.independent([["0.9", "0.1"]] * 3 + [["0.3", "0.7"]] * 3), "0.7"),
    "priors": SingleLTE([Population.binomial(7, "0.3"), Population.binomial(7, "0.6")], "0.7", weights=["0.5", "0.5"]),
    "fallback": SingleLTE(Population.binomial(7, "0.4"), "0.5", "1.5"),
}


def build(problem: SingleLTE) -> NoiseLP:
    with precision():
        return formulate(problem)


@pytest.mark.parametrize("name", CASES)
def test_model_and_arrays_are_the_same_program(name: str) -> None:
    """Every coefficient of CVXPY's standard form stands in our arrays too, and the optima agree."""
    lp = build(CASES[name])
    model, program = lp.to_cvxpy(), lp.to_program()
    size = len(lp.inputs)
    (W,) = model.variables()
    random = np.random.default_rng(3)
    for _ in range(5):
        table = random.random((size, size))
        W.value = table
        flat = table.ravel()  # variable (x, s) is number x * size + s
        assert model.objective.value == pytest.approx(program.cost @ flat, rel=1e-12)
        residuals = program.matrix @ flat
        ours = np.sort(np.concatenate([np.maximum(residuals - program.upper, 0), np.zeros(0)]))
        theirs = [np.asarray(c.residual).ravel() for c in model.constraints[1:]]
        theirs[0] = np.maximum(np.asarray((cp.sum(W, axis=1) - 1).value), 0)
        assert ours == pytest.approx(np.sort(np.concatenate(theirs)), rel=1e-9, abs=1e-12)
    model.solve(solver="CLARABEL")
    assert solve_highs(program).objective == pytest.approx(model.value, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backend", ["highs", "highs-ipm", "cvxpy:CLARABEL", "scipy"])
def test_every_engine_finds_the_optimum_and_a_bound(name: str, backend: str) -> None:
    lp = build(CASES[name])
    with precision():
        with solving(backend):
            draft = engine()(lp, silent)
        optimum = solve_highs(lp.to_program()).objective + lp.constant
        assert draft.objective(lp) == pytest.approx(optimum, rel=2e-6)
        if draft.prices is not None:
            bound = float(lower_bound(lp, draft.prices))
            assert bound <= optimum * (1 + 1e-9)
            assert bound >= optimum * (1 - 1e-5)


@pytest.mark.parametrize(
    ("n", "p", "optimum"),
    [
        (50, "0.1", 1.468382), (50, "0.5", 0.575277), (100, "0.1", 0.943506),
        (100, "0.5", 0.317242), (200, "0.1", 0.476123), (200, "0.5", 0.093056), (400, "0.5", 0.0084022857),
    ],
)  # fmt: skip
def test_reference_optima_of_the_pair_form(n: int, p: str, optimum: float) -> None:
    lp = build(SingleLTE(Population.binomial(n, p), "0.3"))
    with precision():
        draft = solve_pairs(lp)
        assert draft.objective(lp) == pytest.approx(optimum, rel=2e-6)
        assert float(lower_bound(lp, draft.prices)) == pytest.approx(optimum, rel=2e-6)  # type: ignore[arg-type]


def test_the_plain_answer_of_a_solver_is_not_private() -> None:
    """The reason for repair: HiGHS says optimal, and the real epsilon of what it returned is infinite."""
    lp = build(SingleLTE(Population.binomial(100, "0.5"), "0.3"))
    with precision():
        draft = solve_posed(pose(lp, "plain"), Chosen(find("highs-simplex")))
        assert draft.status == "optimal"
        assert raw_epsilon(lp, draft) is None


def test_lower_bound_holds_for_any_prices() -> None:
    """Weak duality does not ask where the prices come from."""
    random = np.random.default_rng(5)
    for problem in CASES.values():
        lp = build(problem)
        with precision():
            optimum = solve_highs(lp.to_program()).objective + lp.constant
            best = engine()(lp, silent).prices
            assert best is not None
            for noise in (0.0, 0.1, 1.0):
                shaken = type(best)(
                    best.z * np.exp(noise * random.normal(size=best.z.shape)),
                    best.u * np.exp(noise * random.normal(size=best.u.shape)),
                    None if best.v is None else best.v * np.exp(noise * random.normal(size=best.v.shape)),
                )
                assert float(lower_bound(lp, shaken)) <= optimum * (1 + 1e-9)


def test_many_people_get_a_window_and_others_are_told_what_fits() -> None:
    shape = choose_shape(SingleLTE(Population.binomial(1_000_000, "0.5"), "0.02"))
    assert shape.outside == "geometric"
    assert shape.inputs[1] - shape.inputs[0] < 30_000
    with pytest.raises(ProblemError, match="Larger sums than 5,000"):
        choose_shape(SingleLTE(Population.iid(4000, ["0.5", "0.25", "0.25"]), "0.3"))
    with pytest.raises(ProblemError, match="GB"):
        choose_shape(SingleLTE(Population.binomial(1_000_000, "0.5"), "0.3", tail="none"))
    clamped = choose_shape(SingleLTE(Population.binomial(1_000_000, "0.5"), "0.3", tail="none", never_worse=False))
    assert clamped.outside == "clamp"


@pytest.mark.parametrize("name", ["binomial", "no tail", "squares"])
def test_the_pair_form_written_out_has_the_plain_optimum(name: str) -> None:
    lp = build(CASES[name])
    model = PairForm.of(lp).to_cvxpy()
    model.solve(solver="CLARABEL")
    assert model.value == pytest.approx(solve_highs(lp.to_program()).objective, rel=1e-6)


def test_the_pair_form_is_refused_where_it_does_not_apply() -> None:
    with pytest.raises(ProblemError, match="pair form"):
        PairForm.of(build(CASES["kinds"]))
