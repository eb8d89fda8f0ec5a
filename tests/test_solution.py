"""solve, save, verify: the whole way, on reference problems and on random ones."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import optdp.single.solve
from optdp import (
    ArtifactError,
    MultiLTE,
    OptdpError,
    PlanSolution,
    Population,
    ProblemError,
    SingleLTE,
    Solution,
    library,
    solve,
    verify,
    verify_plan,
)
from optdp.loading import load_file
from tests.checkers import agrees
from tests.exact_checker import Checked
from tests.random_problems import problem as random_problem

LARGEST_IN_TESTS = 2000
"""Plans for larger sums are left to the benchmarks."""


@pytest.mark.parametrize("path", library.problems().values(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_problem_library(path: Path, tmp_path: Path) -> None:
    """Every file names its source, is solved, and does what it says to expect."""
    file = load_file(path, allow_outside=True)  # some data lie beside the repository
    assert file.source
    assert file.title
    assert file.expect, f"{path} has no [expect]"
    try:
        problem = file.problem
    except ProblemError as error:
        if "No such file" in str(error) and "shared" in str(error):
            pytest.skip("its data is not beside the repository")
        raise
    if isinstance(problem, MultiLTE) and sum(party.last for party in problem.parties) > LARGEST_IN_TESTS:
        pytest.skip("takes minutes; `python -m tests.bench large-plans` solves it")
    solution = solve(problem)
    for name, wanted in file.expect.items():
        if name.endswith("_at_most"):
            assert float(getattr(solution, name.removesuffix("_at_most"))) <= float(wanted), name
        elif name.endswith("_at_least"):
            assert float(getattr(solution, name.removesuffix("_at_least"))) >= float(wanted), name
        else:
            theorems = getattr(solution, "theorem", {})
            found = theorems[name] if name in theorems else getattr(solution, name)
            assert float(found) == pytest.approx(float(wanted), rel=1e-5), name
    if not isinstance(solution, Solution | PlanSolution):
        return
    target = tmp_path / "artifact.json"
    solution.save(target)
    found = verify_plan(target) if isinstance(problem, MultiLTE) else verify(target)
    assert found.certificate == solution.certificate
    assert found.certificate.epsilon is not None
    assert found.certificate.epsilon <= problem.epsilon
    agrees(target, found.certificate)


@pytest.mark.parametrize(
    ("n", "p", "optimum"),
    [
        (50, "0.1", 1.468382), (50, "0.5", 0.575277), (100, "0.1", 0.943506),
        (100, "0.5", 0.317242), (200, "0.1", 0.476123), (200, "0.5", 0.093056),
    ],
)  # fmt: skip
def test_reference_optima_after_repair(n: int, p: str, optimum: float) -> None:
    solution = solve(SingleLTE(Population.binomial(n, p), "0.3"))
    assert solution.mae == pytest.approx(optimum, rel=1e-5)
    assert solution.certificate.epsilon is not None
    assert solution.certificate.epsilon <= Fraction(3, 10)
    assert solution.gap is not None
    assert solution.gap < 1e-6
    assert solution.certificate.never_worse


@pytest.mark.parametrize(
    ("n", "fallback", "optimum"),
    [(50, "4", 0.60898), (50, "2", 0.82421), (50, "1", 1.26134), (50, "0.5", 1.85913), (100, "2", 0.58327)],
)
def test_two_guarantees(n: int, fallback: str, optimum: float) -> None:
    solution = solve(SingleLTE(Population.binomial(n, "0.5"), "0.3", fallback))
    assert solution.mae == pytest.approx(optimum, abs=6e-6)
    certificate = solution.certificate
    assert certificate.epsilon is not None
    assert certificate.epsilon <= Fraction(3, 10)
    assert certificate.ordinary_epsilon is not None
    assert certificate.ordinary_epsilon <= Fraction(fallback)


def run_random(seed: int, small: bool, folder: Path) -> None:
    """A random problem ends in an artifact that a second checker finds private, or in a stated reason."""
    problem = random_problem(seed, small)
    try:
        solution = solve(problem)
    except OptdpError:
        return
    path = folder / f"{seed}.json"
    solution.save(path)
    assert verify(path).certificate == solution.certificate
    agrees(path, solution.certificate)
    if solution.lower_bound is not None:
        assert float(solution.lower_bound) <= solution.value
    if problem.last <= 40:
        checked = Checked(path)
        assert checked.private(), seed
        if problem.fallback_epsilon is not None:
            assert checked.ordinary(problem.fallback_epsilon), seed
        if problem.never_worse:
            assert max(checked.errors()) <= problem.cap, seed
        power = 1 if problem.objective == "mae" else 2
        if problem.weights[0] == 1:
            assert abs(float(checked.mae(power)) - solution.value) <= 1e-12 * max(1, solution.value), seed


@pytest.mark.parametrize("block", range(20))
def test_random_problems(block: int, tmp_path: Path) -> None:
    for seed in range(10 * block, 10 * block + 10):
        run_random(seed, small=seed % 4 != 0, folder=tmp_path)


@pytest.mark.parametrize("epsilon", ["0.02", "0.3"])
def test_many_people_in_a_window(epsilon: str, tmp_path: Path) -> None:
    """Inputs without a row get geometric noise; the bound is for the program with a row for every input."""
    solution = solve(SingleLTE(Population.binomial(20_000, "0.5"), epsilon))
    assert solution.mechanism.outside == "geometric"
    assert solution.certificate.never_worse
    if epsilon == "0.02":
        assert solution.gap is not None
        assert solution.gap < 1e-6
    solution.save(tmp_path / "many.json")
    verify(tmp_path / "many.json")
    assert all(-5000 <= s <= 5000 for s in solution.mechanism.sample(0, 20, seed=1))


def test_window_and_full_table_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same problem with a row for every input and with a window: the same optimum."""
    problem = SingleLTE(Population.binomial(1500, "0.5"), "0.1")
    full = solve(problem)
    monkeypatch.setattr("optdp.single.window.FULL_LIMIT", 100)
    window = solve(problem)
    assert window.mechanism.outside == "geometric"
    assert full.mechanism.outside == "error"
    assert window.mae == pytest.approx(full.mae, rel=1e-8)
    assert window.lower_bound is not None
    assert float(window.lower_bound) <= full.mae
    small = SingleLTE(Population.binomial(300, "0.5"), "0.3", tail="none", never_worse=False)
    monkeypatch.setattr("optdp.single.window.likely_inputs", lambda problem, share: (90, 210))
    clamped = solve(small)
    assert clamped.mechanism.outside == "clamp"
    assert clamped.mechanism.inputs == (90, 210)


def test_one_person_gets_geometric_noise_where_nothing_else_keeps_the_caps() -> None:
    solution = solve(SingleLTE(Population.binomial(1, "0.5"), "0.3"))
    assert "no mechanism of this kind is more accurate" in solution.note
    assert solution.mae == pytest.approx(solution.baseline_mae)
    assert solution.status == "optimal"
    assert solution.gap is not None
    assert solution.gap < 1e-6


def test_interrupt_leaves_a_certified_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(optdp.single.solve, "repair", interrupted)
    solution = solve(SingleLTE(Population.binomial(30, "0.5"), "0.3"))
    assert solution.status == "interrupted"
    assert solution.certificate.epsilon is not None
    assert solution.certificate.epsilon <= Fraction(3, 10)


def test_interrupt_of_column_generation_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    price = optdp.single.pairs._price  # type: ignore[attr-defined]

    def later(grid: object, *args: object) -> object:
        nonlocal calls
        calls += bool(getattr(grid, "whole", False))
        if calls == 3:
            raise KeyboardInterrupt
        return price(grid, *args)

    monkeypatch.setattr("optdp.single.pairs._price", later)
    solution = solve(SingleLTE(Population.binomial(150, "0.1"), "0.1"))
    assert solution.status == "interrupted"
    assert solution.engine == "pairs"
    assert solution.mae < solution.baseline_mae


def test_shifting_lies_between_the_optimum_and_geometric_noise() -> None:
    best = solve(SingleLTE(Population.binomial(60, "0.3"), "0.3"))
    near = solve(SingleLTE(Population.binomial(60, "0.3"), "0.3", method="shifting"))
    assert best.mae <= near.mae < near.baseline_mae
    assert near.status == "heuristic"


def test_all_pairs_need_less_noise_than_unit_steps() -> None:
    population = Population.iid(12, ["0.4", "0.3", "0.2", "0.1"])
    unit = solve(SingleLTE(population, "1", adjacency="unit", tail="none"))
    every = solve(SingleLTE(population, "1", adjacency="all", tail="none"))
    assert every.mae < unit.mae


def test_stored_prices_prove_the_bound_again(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    solve(SingleLTE(Population.binomial(30, "0.5"), "0.3")).save(path)
    assert verify(path).bound_proved
    assert verify(path).artifact.claim["explained"] == "docs/guarantee.md"


def test_outside_error_needs_every_row(tmp_path: Path) -> None:
    from dataclasses import replace

    from optdp.single.format import write

    solution = solve(SingleLTE(Population.binomial(5, "0.5"), "0.3"))
    artifact = solution.artifact()
    cut = replace(artifact, inputs=(0, 4), rows=artifact.rows[:5], sha256="")
    write(cut, tmp_path / "cut.json")
    with pytest.raises(ArtifactError, match="Every input"):
        verify(tmp_path / "cut.json")


@pytest.mark.parametrize(
    ("n", "p", "epsilon", "tail", "optimum"),
    [
        (9, "0.1", "0.7", "geometric", 2.46671),
        (9, "0.95", "1", "geometric", 1.12666),
        (5, "0.95", "1", "none", 0.25809),
    ],
)
def test_squares_with_caps(n: int, p: str, epsilon: str, tail: str, optimum: float) -> None:
    solution = solve(SingleLTE(Population.binomial(n, p), epsilon, objective="mse", tail=tail))  # type: ignore[arg-type]
    assert solution.value == pytest.approx(optimum, abs=1e-5)
    assert solution.gap is not None
    assert solution.gap < 1e-6


def test_a_flat_prior_with_no_pairs_on_a_coarse_grid() -> None:
    assert solve(SingleLTE(Population.from_others(["1/700"] * 700), "0.3")).mae < 0.1


def test_clamped_geometric_noise_is_not_worse_than_itself() -> None:
    assert solve(
        SingleLTE(Population.binomial(30, "0.5"), "4", tail="none", method="geometric")
    ).certificate.never_worse
