"""Audits: bounds against exact binomials, laws against enumeration, planted flaws, true samplers, other programs."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray

import optdp.audit as module
from optdp import (
    MultiLTE,
    NoiseMatrix,
    Population,
    ProblemError,
    SharedNoise,
    SingleLTE,
    Source,
    solve,
    verify,
    verify_plan,
)
from optdp.audit import NO_CLAIM, NOT_REFUTED, OTHER_LAW, REFUTED, Sampler, audit, examine, hypotheses
from optdp.audit import hypotheses as intervals
from optdp.audit.experiment import row_law, trials
from optdp.audit.external import Command
from optdp.audit.plans import reports_of
from optdp.mechanism.columns import many
from optdp.mechanism.shared_noise import NOTHING
from optdp.numbers.exact import precision
from optdp.numbers.pmf import ExactPmf
from optdp.single.format import write
from tests.command_line import in_process
from tests.planted import EVENTS, plant
from tests.processes import runs

ROOT = Path(__file__).resolve().parents[2]
Integers = NDArray[np.int64]

PROBLEMS: dict[str, SingleLTE] = {
    "tails": SingleLTE(Population.binomial(30, "0.3"), "0.4"),
    "in range": SingleLTE(Population.binomial(12, "0.3"), "0.2", tail="none"),
    "fallback": SingleLTE(Population.binomial(25, "0.2"), "0.3", fallback_epsilon=2),
    "all pairs": SingleLTE(Population.iid(8, ["0.5", "0.3", "0.2"]), "0.6", adjacency="all"),
    "unit steps": SingleLTE(Population.iid(8, ["0.5", "0.3", "0.2"]), "0.6"),
    "two kinds": SingleLTE(Population.independent([["0.5", "0.5"]] * 6 + [["0.2", "0.8"]] * 4), 1),
    "two priors": SingleLTE([Population.binomial(15, "0.3"), Population.binomial(15, "0.4")], "0.5"),
}


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("audits")
    made = {}
    for name, problem in PROBLEMS.items():
        made[name] = folder / f"{name.replace(' ', '-')}.json"
        solve(problem).save(made[name])
    return made


# ---------------------------------------------------------------------- bounds


def tail(hits: int, trials_: int, share: Fraction) -> Fraction:
    """`Pr[Bin(trials, share) >= hits]`, term by term."""
    terms = (math.comb(trials_, k) * share**k * (1 - share) ** (trials_ - k) for k in range(hits, trials_ + 1))
    return sum(terms, Fraction(0))


@pytest.mark.parametrize(("hits", "draws"), [(1, 1), (3, 3), (1, 40), (17, 20), (30, 60), (60, 60), (150, 200)])
@pytest.mark.parametrize("alpha", [1e-2, 1e-6, 1e-10])
def test_lower_bounds_are_those_of_clopper_and_pearson_or_just_below(hits: int, draws: int, alpha: float) -> None:
    found = intervals.lower_share(hits, draws, alpha)
    assert tail(hits, draws, Fraction(found)) <= Fraction(alpha)  # never too large
    assert tail(hits, draws, Fraction(found) * Fraction(103, 100)) > Fraction(alpha)  # nor needlessly small


def test_a_rare_event_is_proved_only_if_it_is_rare() -> None:
    random = np.random.default_rng(1)
    for _ in range(300):
        draws = int(random.integers(1, 80))
        hits, share = int(random.integers(0, draws + 1)), float(random.random())
        alpha = float(10 ** random.uniform(-9, 0))
        if intervals.surely_rare(hits, draws, share, alpha):
            assert tail(hits, draws, Fraction(share)) <= Fraction(alpha)
    assert intervals.surely_rare(1, 10, 0.0, 1e-9)
    assert not intervals.surely_rare(0, 10, 0.0, 1e-9)
    assert not intervals.surely_rare(10, 10, 1.0, 1e-9)


# ---------------------------------------------------------------------- laws


def exact(matrix: NoiseMatrix, x: int, s: int) -> Fraction:
    """`Pr[s|x]` as the artifact's definition says."""
    row, (low, high), q = matrix.row(x), matrix.outputs, matrix.q
    weight = Fraction(dict(row or ()).get(s, 0), matrix.denominator)
    if q is None:
        return weight
    noise = {e: (1 - q) / (1 + q) * q ** abs(e) for e in range(low - x, high - x + 1)}
    inside = sum(noise.values(), Fraction(0))
    if row is not None and low <= s <= high:
        return inside * weight
    return (1 - q) / (1 + q) * q ** abs(s - x)


@pytest.mark.parametrize("name", PROBLEMS)
def test_laws_are_those_of_the_table_and_the_prior(artifacts: dict[str, Path], name: str) -> None:
    problem, matrix = PROBLEMS[name], verify(artifacts[name]).matrix
    found = trials(problem, matrix, problem.epsilon, problem.fallback_epsilon)
    people = [person for prior in problem.populations for person in prior.people]
    space = found[0].space
    outputs = range(space.low, space.high + 1)
    table = {x: [exact(matrix, x, s) for s in outputs] for x in range(problem.last + 1)}
    for person, trial in zip(people, found, strict=False):
        assert len(trial.arms) == len(person.conditionals)
        for arm, law in zip(trial.arms, person.conditionals, strict=True):
            assert isinstance(law, ExactPmf)
            wanted = [
                float(sum((law.fraction(x) * table[x][i] for x in range(law.last + 1)), Fraction(0)))
                for i in range(len(outputs))
            ]
            assert np.allclose(arm.law[1:-1], wanted, rtol=1e-11, atol=0)
            assert abs(arm.law.sum() - 1) < 1e-12
            if matrix.q is not None:  # below the lowest input the tail is one geometric series
                q, below = matrix.q, Fraction(0)
                for x in range(law.last + 1):
                    steps = x - space.low + 1
                    assert steps >= 1
                    below += law.fraction(x) * q**steps / (1 + q)
                assert arm.law[0] == pytest.approx(float(below), rel=1e-11)
    for x in (0, problem.last // 2, problem.last):
        law_of_input = row_law(matrix, space, x)
        assert np.allclose(law_of_input[1:-1], [float(value) for value in table[x]], rtol=1e-11, atol=0)
        assert abs(law_of_input.sum() - 1) < 1e-12


def test_quotients_of_the_laws_are_what_is_claimed(artifacts: dict[str, Path]) -> None:
    for name, path in artifacts.items():
        problem, found = PROBLEMS[name], verify(path)
        assert found.certificate.epsilon is not None
        worst = 0.0
        for trial in trials(problem, found.matrix, problem.epsilon, None):
            for step in trial.comparisons:
                one, other = (trial.arms[arm].law for arm in step.arms)
                seen = (one > 0) & (other > 0)
                worst = max(worst, float(np.abs(np.log(one[seen] / other[seen])).max() * step.factor))
        assert worst == pytest.approx(float(found.certificate.epsilon), rel=1e-6)


def test_inputs_follow_the_law_of_the_sum_given_the_secret(artifacts: dict[str, Path]) -> None:
    problem, found = PROBLEMS["two kinds"], verify(artifacts["two kinds"])
    made = trials(problem, found.matrix, problem.epsilon, None)
    laws = [law for person in problem.populations[0].people for law in person.conditionals]
    for arm, law in zip((arm for trial in made for arm in trial.arms), laws, strict=True):
        assert isinstance(law, ExactPmf)
        drawn = np.bincount(arm.inputs(Source(5), 50_000), minlength=law.last + 1)
        wanted = np.array([float(law.fraction(x)) for x in range(law.last + 1)]) * 50_000
        assert (drawn[wanted == 0] == 0).all()
        likely = wanted > 5
        chi = float(((drawn[likely] - wanted[likely]) ** 2 / wanted[likely]).sum())
        assert chi < likely.sum() + 6 * math.sqrt(2 * likely.sum())


# ---------------------------------------------------------------------- true samplers


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_true_sampler_is_never_refuted(artifacts: dict[str, Path], name: str) -> None:
    for seed in range(4):
        found = audit(artifacts[name], samples=4000, seed=seed)
        assert (found.verdict, found.misfit) == (NOT_REFUTED, None)
        assert found.epsilon_proved <= float(PROBLEMS[name].epsilon)
    again = audit(artifacts[name], samples=4000, seed=3)
    assert replace(again, seconds=0) == replace(found, seconds=0)


def test_many_draws_prove_an_epsilon_close_to_the_claim(artifacts: dict[str, Path]) -> None:
    found = audit(artifacts["fallback"], samples=300_000)
    assert found.verdict == NOT_REFUTED
    assert found.secure
    by_claim = {proved.claim: proved for proved in found.proved}
    assert 0.25 < by_claim["epsilon under the prior"].bound <= 0.3
    assert 1.9 < by_claim["ordinary epsilon"].bound <= 2


def test_events_are_no_more_than_are_paid_for(artifacts: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test that is made is counted before anything is drawn, whatever a sampler does."""
    made: list[int] = []
    tests, fits = hypotheses._tests, hypotheses._fits
    monkeypatch.setattr(hypotheses, "_tests", lambda *given: _counted(tests(*given), made))
    monkeypatch.setattr(hypotheses, "_fits", lambda *given: _counted(fits(*given), made))
    wild: Sampler = lambda inputs: np.random.default_rng(3).integers(-(2**62), 2**62, len(inputs))  # noqa: E731
    for sampler in (None, wild, np.zeros_like, lambda inputs: inputs):
        made.clear()
        found = audit(artifacts["fallback"], samples=500, sampler=sampler, seed=1)
        assert 0 < sum(made) <= found.tests


def _counted(listed: Any, made: list[int]) -> list[Any]:
    found = list(listed)
    made.append(len(found))
    return found


def test_the_family_error_is_kept_on_the_boundary(artifacts: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A flaw of size zero: the claim holds with equality on the event. At a family error of a half, the share of
    refutations stays below it; a test that errs more often than it says would show.
    """
    monkeypatch.setattr(module, "FAMILY", 0.5)
    path = artifacts["tails"]
    problem, matrix = PROBLEMS["tails"], verify(path).matrix
    made = trials(problem, matrix, problem.epsilon, None)
    refuted, runs = 0, 120
    for seed in range(runs):
        event = np.arange(5, 12)
        sampler = plant(problem.populations[0], matrix, event, 0.4, mass=0.2, excess=0.0, seed=seed)
        found = examine(made, sampler, 2000, Source(seed), "", lambda _: None, 0.0)
        refuted += found.verdict == REFUTED
    assert refuted / runs < 0.5


# ---------------------------------------------------------------------- flaws

PLANTS: list[tuple[str, str, tuple[int, int], bool]] = [
    ("tails", "beyond the table", (0, 1), True),
    ("tails", "scattered", (1, 0), True),
    ("in range", "one output", (0, 1), True),
    ("in range", "beyond the table", (1, 0), True),
    ("all pairs", "a run", (0, 2), True),
    ("two priors", "half of all", (0, 1), False),
]


@pytest.mark.parametrize(("name", "kind", "pair", "pure"), PLANTS)
def test_a_planted_tenth_is_refuted(
    artifacts: dict[str, Path], name: str, kind: str, pair: tuple[int, int], pure: bool
) -> None:
    """`epsilon + 0.1` on an event of mass 0.05, a million draws for each secret."""
    problem, matrix = PROBLEMS[name], verify(artifacts[name]).matrix
    event = EVENTS[kind](matrix, np.random.default_rng(7))
    sampler = plant(problem.populations[0], matrix, event, float(problem.epsilon), pair=pair, pure=pure, seed=11)
    found = audit(artifacts[name], samples=1_000_000, sampler=sampler, seed=5)
    assert found.verdict == REFUTED
    assert found.epsilon_proved > float(problem.epsilon)
    if pure:  # nothing is proved that is not so
        assert found.epsilon_proved <= float(problem.epsilon) + 0.1


def test_a_sampler_that_drops_the_fallback_is_found_out(artifacts: dict[str, Path]) -> None:
    plain = solve(SingleLTE(Population.binomial(25, "0.2"), "0.3")).mechanism
    found = audit(artifacts["fallback"], samples=20_000, sampler=lambda inputs: plain.sample(inputs), seed=1)
    broken = {proved.claim: proved.refuted for proved in found.proved}
    assert broken == {"epsilon under the prior": False, "ordinary epsilon": True}
    assert found.verdict == REFUTED


@pytest.mark.parametrize("shift", [0, 1])
def test_a_private_sampler_of_another_law_does_not_follow_its_table(artifacts: dict[str, Path], shift: int) -> None:
    matrix = verify(artifacts["in range"]).matrix
    samplers: list[Sampler] = [
        lambda inputs: np.full(len(inputs), 3),
        lambda inputs: many(matrix.drawing, inputs, Source(1)) + 1,
    ]
    found = audit(artifacts["in range"], samples=5000, sampler=samplers[shift], seed=2)
    assert found.verdict == OTHER_LAW
    assert found.failed
    assert found.misfit is not None
    assert found.misfit.hits / found.misfit.draws > found.misfit.expected


@pytest.mark.parametrize(
    "sampler",
    [
        lambda inputs: inputs[:-1],
        lambda inputs: inputs / 2,
        lambda inputs: None,
        lambda inputs: [["a"] * 3],
        lambda inputs: np.full(len(inputs), 2**64 - 1, dtype=np.uint64),
        [lambda inputs: inputs],
    ],
)
def test_a_sampler_that_is_none_is_refused(artifacts: dict[str, Path], sampler: Any) -> None:
    with pytest.raises(ProblemError, match="sampler must"):
        audit(artifacts["tails"], samples=200, sampler=sampler)


def test_too_many_draws_are_refused_with_a_number_that_works(artifacts: dict[str, Path]) -> None:
    with pytest.raises(ProblemError, match=r"--samples 20000000 or fewer"):
        audit(artifacts["tails"], samples=20_000_001)
    with pytest.raises(ProblemError, match="samples"):
        audit(artifacts["tails"], samples=99)


# ---------------------------------------------------------------------- plans


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plans") / "plan"
    parties = [Population.binomial(4, "0.5"), Population.binomial(3, "0.4"), Population.iid(2, ["0.4", "0.3", "0.3"])]
    solve(MultiLTE(parties, "0.5", honest=2, f=[1, 2, -1], method="joint")).save(folder)
    return folder


def test_a_plan_is_audited_as_a_whole_and_a_party_for_its_law(plan: Path) -> None:
    check_whole_and_party(plan, 0.5)


def check_whole_and_party(plan: Path, epsilon: float) -> None:
    found = audit(plan, samples=50_000, seed=1)
    assert (found.verdict, found.misfit) == (NOT_REFUTED, None)
    assert 0.2 < found.epsilon_proved <= epsilon
    party = audit(plan / "party-1.json", samples=50_000, seed=1)
    assert (party.verdict, party.proved) == (NO_CLAIM, ())


def test_a_party_that_reports_the_truth_is_found_out(plan: Path) -> None:
    from optdp import verify_plan

    tables = [table for table in verify_plan(plan).tables if isinstance(table, NoiseMatrix)]
    honest: list[Sampler] = [lambda inputs, table=table: many(table.drawing, inputs, Source(3)) for table in tables]
    for liar, factor in ((0, 1), (1, 2)):
        truth: Sampler = lambda inputs, factor=factor: factor * inputs  # noqa: E731
        samplers = [truth if i == liar else own for i, own in enumerate(honest)]
        assert audit(plan, samples=30_000, sampler=samplers, seed=1).failed
    alone = audit(plan / "party-0.json", samples=5000, sampler=lambda inputs: inputs, seed=1)
    assert alone.verdict == OTHER_LAW


@pytest.fixture(scope="module", params=["divisible", "geometric"])
def shares(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan whose parties add shares of noise, one of them with a negative coefficient."""
    folder = tmp_path_factory.mktemp("shares") / "plan"
    parties = [Population.binomial(5, "0.2"), Population.iid(2, ["0.2", "0.5", "0.3"])]
    solve(MultiLTE(parties, "0.8", method=request.param, f=[1, -2])).save(folder)
    return folder


def test_the_laws_of_shares_are_those_of_their_probabilities(shares: Path) -> None:
    plan = verify_plan(shares)
    for table, population in zip(plan.tables, plan.problem.parties, strict=True):
        reports = reports_of(table)
        for law in (population.total, *population.people[0].conditionals):
            with precision():
                chances = law.balls(0, population.last)
                found = reports.law(law)
                for s in range(max(-25, reports.low), min(25, reports.low + reports.width - 1) + 1):
                    truth = sum((chance * table.probability(x, s) for x, chance in enumerate(chances)), arb(0))
                    assert found[s - reports.low] == pytest.approx(float(truth), rel=1e-9, abs=1e-17)
            assert len(found) == reports.width
            assert found.sum() == pytest.approx(1, abs=1e-12)


def test_shares_of_noise_are_audited(shares: Path) -> None:
    check_whole_and_party(shares, 0.8)


def test_shares_with_too_little_noise_are_found_out(shares: Path) -> None:
    """The sum with a third less noise is refuted; a single party's report is told from its law."""
    tables = [table for table in verify_plan(shares).tables if isinstance(table, SharedNoise)]
    weak = [replace(table, q=table.q**2, inputs=NOTHING, outputs=NOTHING, rows=()) for table in tables]
    samplers: list[Sampler] = [lambda inputs, t=table: many(t.drawing, inputs, Source(3)) for table in weak]
    assert audit(shares, samples=100_000, sampler=samplers, seed=1).verdict == REFUTED
    assert audit(shares / "party-0.json", samples=50_000, sampler=samplers[0], seed=1).verdict == OTHER_LAW


def test_noise_that_is_too_wide_to_be_told_apart_is_refused() -> None:
    with pytest.raises(ProblemError, match="too wide"):
        reports_of(SharedNoise(3, 1 - Fraction(1, 10**5), Fraction(1, 2)))


# ---------------------------------------------------------------------- other programs

UNIFORM = "import random,sys; x, n = int(sys.argv[1]), int(sys.argv[2]); print(*(x + i % 3 for i in range(n)))"
ECHO = "import sys; [print(int(line) + 1) for line in sys.stdin]"


def python(code: str, *arguments: str) -> str:
    return " ".join(["'" + sys.executable + "'", "-c", '"' + code + '"', *arguments])


def test_a_command_is_run_once_for_each_input_or_reads_them_all() -> None:
    inputs = np.array([4, 0, 4, 4, 9, 0])
    assert Command.parse(python(UNIFORM, "{input}", "{count}"))(inputs).tolist() == [4, 0, 5, 6, 9, 1]
    assert Command.parse(python(ECHO))(inputs).tolist() == [5, 1, 5, 5, 10, 1]
    many_inputs = np.random.default_rng(0).integers(0, 1000, 200_000)  # more than a pipe holds, both ways
    assert (Command.parse(python(ECHO))(many_inputs) == many_inputs + 1).all()


BAD: dict[str, tuple[str, str]] = {
    "endless": (python("while True: print(7)"), "more output than they need"),
    "endless without a line": ("yes 1234567", "more output than they need"),
    "too few": (python("print(1)"), "Found 1 from"),
    "none": ("true", "Found 0 from"),
    "not a number": (python("print(*['x'] * 3)"), "Found x"),
    "a fraction": (python("print(1, 2.5, 3)"), "Found 2.5"),
    "underscores": (python("print('1_0', 2, 3)"), "Found 1_0"),
    "half a number": (python("print('1-0', 2, 3)"), "Found 1-0"),
    "a long number": (python("print(1, 2, 10**30)"), "Found 1000000"),
    "65 bits": (python("print(1, 2, 2**63)"), "Found 9223372036854775808"),
    "not text": (python("import sys; sys.stdout.buffer.write(bytes([255, 0, 10]) * 3)"), "integers"),
    "fails": (python("import sys; print('first', file=sys.stderr); sys.exit('oh no')"), "Found 1 of .*: oh no"),
    "not there": ("/no/such/program {input} {count}", "No such file"),
    "a folder": ("/", "[Pp]ermission"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_command_is_refused_in_a_line(name: str) -> None:
    command, says = BAD[name]
    with pytest.raises(ProblemError, match=says) as error:
        Command.parse(command, timeout=30)(np.array([1, 2, 3]))
    assert "\n" not in str(error.value)


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    child = tmp_path / "child"
    for code in ("import time; time.sleep(3600)", "import os, time; os.close(1); os.close(2); time.sleep(3600)"):
        with pytest.raises(ProblemError, match=r"within --timeout 0\.5 s"):
            Command.parse(python(code), timeout=0.5)(np.array([1]))
    with pytest.raises(ProblemError, match="within --timeout"):
        Command.parse(f"sh -c 'sleep 1000 & echo $! > {child}; wait'", timeout=3)(np.array([1]))
    assert not runs(int(child.read_text()))


@pytest.mark.parametrize(
    "text",
    ["", "  ", "'open", "a {input}", "a {count}", "a\0b"],
)
def test_a_command_line_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ProblemError, match="--command must"):
        Command.parse(text)


def test_no_time_is_refused() -> None:
    for timeout in (0, -1, math.nan):
        with pytest.raises(ProblemError, match="--timeout"):
            Command.parse("cat", timeout)


# ---------------------------------------------------------------------- the command line


def optdp(*args: object) -> subprocess.CompletedProcess[str]:
    return in_process(*args)


def test_audit_on_the_command_line(artifacts: dict[str, Path], plan: Path) -> None:
    path = artifacts["tails"]
    fine = optdp("audit", path, "--samples", 2000, "--json")
    figures = json.loads(fine.stdout)
    assert (fine.returncode, figures["verdict"], figures["family_error"]) == (0, "not refuted", 1e-6)
    assert figures["claims"][0]["proved_at_least"] <= 0.4
    shown = optdp("audit", path, "--samples", 2000, "--seed", 1)
    assert "not refuted" in shown.stdout
    assert "the samples prove at least eps >=" in shown.stdout
    assert "private" not in shown.stdout.replace("proof of privacy", "")
    leaky = optdp("audit", path, "-n", 2000, "--command", python(ECHO))
    assert (leaky.returncode, "refuted" in leaky.stdout) == (1, True)
    endless = optdp("audit", path, "-n", 2000, "--command", "yes 12345")
    assert (endless.returncode, endless.stderr.count("\n")) == (2, 1)
    party = optdp("audit", plan, "-n", 200, "--command", "cat")
    assert (party.returncode, "{party}" in party.stderr) == (2, True)


def test_a_plan_is_audited_through_a_command(plan: Path) -> None:
    from optdp.artifact import open_artifact
    from optdp.cli.audit import _samplers

    command = python("import sys; print(*[int(sys.argv[3])] * int(sys.argv[2]))", "{input}", "{count}", "{party}")
    own = _samplers(open_artifact(plan), Command.parse(command, 60))
    assert isinstance(own, list)
    assert [sampler(np.array([2, 2, 0])).tolist() for sampler in own] == [[i] * 3 for i in range(3)]


@pytest.mark.parametrize("claim", [{"ordinary_epsilon": "1e300"}, {"epsilon": "1e9"}])
def test_a_claim_beyond_all_floats_is_not_refuted(artifacts: dict[str, Path], tmp_path: Path, claim: Any) -> None:
    found = verify(artifacts["fallback"]).artifact
    loose = replace(found, claim={**found.claim, **claim}, sha256="")
    write(loose, tmp_path / "loose.json")
    assert audit(tmp_path / "loose.json", 1000, seed=1).verdict == NOT_REFUTED


def test_a_command_has_a_time(artifacts: dict[str, Path]) -> None:
    for timeout in (0, -1, math.inf, math.nan, 1e300):
        with pytest.raises(ProblemError, match="timeout"):
            Command.parse("true", timeout)
