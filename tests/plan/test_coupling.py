"""Section VI of paper A seen from one entity: Fig. 2, Eqs. 7 and 8, and Remark 10."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat
from scipy.optimize import linprog
from scipy.stats import binom

from optdp import SGDL, MultiLTE, Population, ProblemError, SharedNoise, solve
from optdp.numbers.exact import precision
from optdp.plan.contraction import CouplingLP, rounded, scaled, unmoved
from optdp.plan.coupling import CappedCouplingLP, against_share, report_laws
from optdp.plan.divisible import design
from optdp.plan.parties import Entity

SIX = MultiLTE([Population.binomial(6, "0.5")] * 2, epsilon="0.5", method="divisible")
WIDE = range(-80, 90)


@pytest.fixture(scope="module")
def paper() -> SharedNoise:
    """The entity of Fig. 2: 50 people, one of four, by the search of VI-D at the paper's level of noise."""
    four = MultiLTE([Population.binomial(50, "0.5")] * 4, epsilon="0.3", method="divisible")
    return design(four, "shifts", level=1).parties[0]


def test_figure_2(paper: SharedNoise) -> None:
    laws = report_laws(Population.binomial(50, "0.5"), paper)
    prior = np.zeros(len(laws.outputs))
    prior[-laws.first : 51 - laws.first] = binom.pmf(range(51), 50, 0.5)
    assert laws.prior == pytest.approx(prior, abs=1e-12)
    assert laws.released == pytest.approx(laws.base, abs=1e-9)  # Eq. (7), from the deployed integers

    def apart(law: np.ndarray) -> float:
        return float(np.abs(law - laws.prior).sum() / 2)

    # what the paper's figure shows, and the figures of docs/papers.md
    assert apart(laws.noisy) == pytest.approx(0.0618, abs=5e-5)
    assert apart(laws.base) == pytest.approx(0.0320, abs=5e-5)
    assert laws.prior.max() == pytest.approx(0.1123, abs=5e-5)
    assert laws.noisy.max() == pytest.approx(0.1002, abs=5e-5)
    assert laws.contracted.max() == pytest.approx(0.1319, abs=5e-5)
    assert laws.base.max() == pytest.approx(0.1129, abs=5e-5)


@pytest.mark.parametrize("factor", [1, -2])
def test_laws_and_errors_against_the_definition(factor: int) -> None:
    """Every law and error, from `SharedNoise.probability` alone."""
    problem = MultiLTE(SIX.parties, epsilon="0.5", method="divisible", f=(1, factor))
    noise = solve(problem).tables[1]
    assert isinstance(noise, SharedNoise)
    assert noise.rows
    laws, rows = report_laws(SIX.parties[1], noise), against_share(problem, 1, noise)
    chances = binom.pmf(range(7), 6, 0.5)
    table = np.array([[float(noise.probability(x, s).mid()) for s in WIDE] for x in range(7)])
    places = np.array(WIDE)
    released = np.zeros(len(WIDE))
    known = {s: value for s, value in zip(laws.outputs, laws.released, strict=True) if s in WIDE}
    for s, value in known.items():
        released[s - WIDE[0]] = value
    assert chances @ table == pytest.approx(released, abs=1e-10)
    errors = (table * np.abs(places[None, :] - factor * np.arange(7)[:, None])).sum(axis=1)
    assert [float(row.error.mid()) for row in rows] == pytest.approx(errors, rel=1e-6)


def test_plain_shares_meet_equation_8_exactly() -> None:
    plan = solve(MultiLTE(SIX.parties, epsilon="0.5", method="geometric"))
    assert isinstance(plan.tables[0], SharedNoise)
    for row in against_share(plan.problem, 0, plan.tables[0]):
        assert not row.worse
        assert row.error.overlaps(row.share)


def test_equation_8_is_not_kept_unless_it_is_asked_for(paper: SharedNoise) -> None:
    """The figures of docs/papers.md: rare inputs pay for the likely ones."""
    four = MultiLTE([Population.binomial(50, "0.5")] * 4, epsilon="0.3", method="divisible")
    rows = against_share(four, 0, paper)
    kept = [row.x for row in rows if not row.worse]
    assert kept == list(range(19, 32))
    assert float(rows[25].error) == pytest.approx(0.05, abs=5e-3)
    assert float(rows[15].error) > 10 * float(rows[15].share)
    assert binom.pmf(kept, 50, 0.5).sum() == pytest.approx(0.935, abs=5e-4)


def plainly(entity: Entity, moved: np.ndarray, outputs: np.ndarray, *, capped: bool) -> float:
    """The coupling program from its statement: no scaling, nothing left out, every row written down."""
    n, noise = entity.last, entity.noise
    base = np.array([[sum(moved[x, y] * noise.pmf(s - y) for y in range(n + 1)) for s in WIDE] for x in range(n + 1)])
    far = np.abs(np.array(WIDE)[None, :] - np.arange(n + 1)[:, None])
    inside = np.isin(np.array(WIDE), outputs)
    beyond = (base * far)[:, ~inside].sum(axis=1)
    base, far = base[:, inside], far[:, inside]
    equal, sums, caps = [], [], []
    for x in range(n + 1):
        row = np.zeros_like(base)
        row[x] = 1
        equal.append(row.ravel())
        sums.append(base[x].sum())
        caps.append((row * far).ravel())
    for law in entity.laws:
        for s in range(base.shape[1]):
            column = np.zeros_like(base)
            column[:, s] = law
            equal.append(column.ravel())
            sums.append(law @ base[:, s])
    share = sum(abs(e) * noise.pmf(e) for e in WIDE)
    answer = linprog(
        (entity.prior[:, None] * far).ravel(),
        A_eq=np.array(equal), b_eq=sums,
        A_ub=np.array(caps) if capped else None, b_ub=share - beyond if capped else None,
    )  # fmt: skip
    assert answer.status == 0
    return float(answer.fun + entity.prior @ beyond)


@pytest.mark.parametrize("capped", [False, True])
def test_the_program_against_its_statement(capped: bool) -> None:
    entity = Entity.of(SIX, 0)
    moved = rounded([Fraction(3) + Fraction(3, 4) * (x - 3) for x in range(7)])
    program = CappedCouplingLP.on_every_input(entity, moved)
    if capped:
        found = program.own_error()
    else:
        free = CouplingLP(entity, moved, program.inputs, program.outputs, entity.own_cost)
        table = free.solve()
        assert table is not None
        found = float(entity.prior @ ((table * program.gaps).sum(axis=1) + program.beyond))
    assert found == pytest.approx(plainly(entity, moved, program.outputs, capped=capped), rel=1e-6)


@pytest.mark.parametrize(
    ("strength", "free", "capped"), [(0, 0.798, 0.798), (0.2, 0.621, 0.621), (0.3, 0.579, 0.773), (0.4, 0.665, None)]
)
def test_what_equation_8_costs(strength: float, free: float, capped: float | None) -> None:
    """The figures of docs/papers.md: nothing up to a point, and then there is soon no room for it."""
    entity = Entity.of(MultiLTE([Population.binomial(25, "0.5")] * 2, epsilon="0.5", method="divisible"), 0)
    moved = scaled(entity, strength)
    program = CappedCouplingLP.on_every_input(entity, moved)
    plain = CouplingLP(entity, moved, program.inputs, program.outputs, entity.own_cost).solve()
    assert plain is not None
    error = float(entity.prior @ ((plain * program.gaps).sum(axis=1) + program.beyond))
    assert error == pytest.approx(free, abs=5e-4)
    assert program.own_error() == (None if capped is None else pytest.approx(capped, abs=5e-4))


def test_a_contraction_may_leave_no_room_for_equation_8() -> None:
    entity = Entity.of(SIX, 0)
    constant = np.zeros((7, 7))
    constant[:, 3] = 1
    assert CappedCouplingLP.on_every_input(entity, constant).own_error() is None


def test_what_does_not_fit_is_refused() -> None:
    noise = solve(MultiLTE(SIX.parties, epsilon="0.5", method="geometric")).tables[0]
    assert isinstance(noise, SharedNoise)
    with pytest.raises(ProblemError, match=r"inputs 0\.\.5"):
        report_laws(Population.binomial(5, "0.5"), noise)
    squared = Entity.of(MultiLTE(SIX.parties, epsilon="0.5", method="divisible", objective="mse"), 0)
    with pytest.raises(ProblemError, match="absolute error"):
        CappedCouplingLP.on_every_input(squared, unmoved(6))


# ---------------------------------------------------------------------- Remark 10


@pytest.mark.parametrize("beta", [Fraction(1, 10), Fraction(1, 2), Fraction(4, 5), Fraction(99, 100)])
def test_the_vectors_of_remark_10_span_the_space(beta: Fraction) -> None:
    """`det (SGDL(i + j))` is positive for all leading sizes, in balls; for geometric noise it is 0 from size 2 on."""
    with precision(400):
        chances = SGDL(beta, "0.74").balls(0, 12)
        for size in range(1, 7):
            assert arb_mat([[chances[i + j] for j in range(size)] for i in range(size)]).det() > 0
        geometric = SGDL(1, "0.74").balls(0, 2)
        assert arb_mat([[geometric[i + j] for j in range(2)] for i in range(2)]).det().overlaps(arb(0))


def test_the_optimum_of_remark_10_is_not_tight() -> None:
    """With Eqs. (5) to (7) alone, 6 people of two entities at 0.5: the optimum has room on every tail, and is lower."""
    n, q = 6, Fraction(np.exp(-0.5))
    half, reach = SGDL(Fraction(1, 2), q), 100
    noise = half.pmf(np.arange(-4 * reach, 4 * reach + 1))
    prior, given = binom.pmf(range(n + 1), n, 0.5), [np.zeros(n + 1), np.zeros(n + 1)]
    given[0][:n] = given[1][1:] = binom.pmf(range(n), n - 1, 0.5)
    outputs, totals = np.arange(-2, n + 3), np.arange(-reach, 2 * n + reach + 1)
    base = noise[outputs[None, :] - np.arange(n + 1)[:, None] + 4 * reach]
    others = np.convolve(prior, noise)  # the other entity's report, from -4 reach on
    seen = others[totals[:, None] - outputs[None, :] + 4 * reach]
    geometric = SGDL(1, q).pmf(np.arange(-4 * reach, 4 * reach + 1))
    whole = [np.convolve(np.convolve(law, prior), geometric)[totals + 4 * reach] for law in given]

    def total(w: int, table: np.ndarray) -> np.ndarray:
        """The law of the sum of both reports given one person's secret `w`."""
        return np.asarray(whole[w] + seen @ (given[w] @ (table - base)))

    cost = prior[:, None] * np.abs(outputs[None, :] - np.arange(n + 1)[:, None])
    cells = np.eye(base.size).reshape(-1, *base.shape)
    rows = np.array([cells[:, x].sum(axis=1) for x in range(n + 1)])
    kept = np.tensordot(prior, cells, (0, 1)).T  # (7)
    laws = np.tensordot(given[0], cells, (0, 1)).T
    private, room = [], []
    for one, other in ((0, 1), (1, 0)):
        weights = float(q) * given[one] - given[other]
        scale = whole[0] + whole[1]
        private.append((weights[:, None, None] * seen.T[None]).reshape(base.size, -1).T / scale[:, None])
        room.append((total(other, base) - float(q) * total(one, base)) / scale + private[-1] @ base.ravel())

    def least(equal: list[np.ndarray], margin: float | None) -> tuple[float, np.ndarray]:
        matrix = np.concatenate(equal)
        limits = {} if margin is None else {"A_ub": np.concatenate(private), "b_ub": np.concatenate(room) - margin}
        answer = linprog(cost.ravel(), A_eq=matrix, b_eq=matrix @ base.ravel(), **limits)
        assert answer.status == 0
        share = float(half.mean_absolute())
        return float(answer.fun - (cost * base).sum() + share), answer.x.reshape(base.shape)

    tight, _ = least([rows, kept, laws], None)
    free, table = least([rows, kept], 1e-4)
    assert float(half.mean_absolute()) == pytest.approx(1.171, abs=5e-4)
    assert tight == pytest.approx(1.007, abs=5e-4)
    assert free == pytest.approx(0.806, abs=5e-4)
    quotient = total(0, table) / total(1, table)
    assert (quotient < np.exp(0.5) - 1e-4).all()
    assert (quotient > np.exp(-0.5) + 1e-4).all()
    # Beyond these totals: SGDL(k) is the k-th moment of a measure on [0, q]; far out only what lies near q counts.
    near = np.linspace(0.6, 1, 200)[:, None] * float(q)
    for one, other, power in ((0, 1, outputs), (1, 0, -outputs)):
        change = (float(q) * given[one] - given[other]) @ (table - base)
        assert (near ** power.astype(float) @ change < 0).all()
