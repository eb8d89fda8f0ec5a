"""Plans with a common secret word, against exact fractions over every word and sum, and brute force over all maps."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from optdp import MultiLTE, Observer, OptdpError, PlanSolution, Population, ProblemError, epsilon_under, solve
from optdp.artifact import open_artifact, verify_plan
from optdp.audit import audit
from optdp.mechanism.seeded_maps import SeededMaps, seeded_tables
from optdp.plan import seeded
from optdp.plan.format import digest, identity_of, party_file, plan_files, spelled
from optdp.plan.meeting.common_word import WORD_COMMIT, WORD_OPEN, Contribution, common_word
from optdp.plan.meeting.meeting import FaultError
from optdp.plan.meeting.runs import begin
from optdp.plan.seeded_certify import certify_seeded
from optdp.plan.seeded_format import SeededArtifact, bare_digest, to_json
from optdp.recheck import Failed, Refused, recheck
from tests.exact_plan_checker import Law, Prior, exp_bounds, prior, quotient
from tests.export.languages import LANGUAGES, Draw

B = Population.binomial


class Word:
    """The exact truth about a plan with a common word, from its files: every word is a plan of fixed maps."""

    def __init__(self, folder: Path) -> None:
        self.problem = json.loads((folder / "plan.json").read_text())["problem"]
        specs = self.problem["parties"]
        self.files = [json.loads((folder / f"party-{i}.json").read_text()) for i in range(len(specs))]
        self.f: list[int] = self.problem.get("f", [1] * len(specs))
        self.worlds = [[prior(spec) for spec in specs]]
        self.worlds += [[prior(spec) for spec in world["parties"]] for world in self.problem.get("also", [])]
        ends = [0, *map(int, self.files[0]["cuts"])]
        assert all(file["cuts"] == self.files[0]["cuts"] for file in self.files)
        assert ends == sorted(set(ends))
        assert ends[-1] == int(self.files[0]["denominator"])
        self.weights = [b - a for a, b in itertools.pairwise(ends)]

    def map_of(self, party: int, cell: int, x: int) -> int:
        file = self.files[party]
        first, last = file["inputs"]
        values: list[int] = file["maps"][file["choices"][cell]]
        return values[min(max(x, first), last) - first]

    def law(self, inputs: Sequence[Law], error: bool = False) -> Law:
        """The law of the sum, or of its error, if the inputs are independent with these laws: term by term."""
        found: dict[int, int] = {}
        for cell, weight in enumerate(self.weights):
            own = {0: weight}
            for i, law in enumerate(inputs):
                more: dict[int, int] = {}
                for x, chance in enumerate(law.weights, start=law.low):
                    s = self.map_of(i, cell, x) - (self.f[i] * x if error else 0)
                    more[s] = more.get(s, 0) + chance
                own = _added(own, more)
            for s, value in own.items():
                found[s] = found.get(s, 0) + value
        low, high = min(found), max(found)
        unit = sum(self.weights) * math.prod(law.denominator for law in inputs)
        return Law(tuple(found.get(s, 0) for s in range(low, high + 1)), unit, low)

    def quotients(self) -> list[Fraction | None]:
        """For each party the largest quotient of a step of one of its people."""
        worst: list[Fraction | None] = [Fraction(1)] * len(self.files)
        for world in self.worlds:
            for i, party in enumerate(world):
                for kind in party.secrets:
                    laws = [self.law([given if j == i else other.total for j, other in enumerate(world)])
                            for given in kind]  # fmt: skip
                    for one, other in itertools.pairwise(laws):
                        found, known = quotient(one, other), worst[i]
                        worst[i] = None if found is None or known is None else max(found, known)
        return worst

    def step(self, party: int, epsilon: Fraction) -> Fraction:
        reach = max(abs(f) * own.largest for f, own in zip(self.f, self.worlds[0], strict=True))
        return epsilon * abs(self.f[party]) / reach

    def keeps(self, epsilon: Fraction) -> bool:
        return all(
            ratio is not None and ratio <= exp_bounds(self.step(i, epsilon))[1]
            for i, ratio in enumerate(self.quotients())
        )

    def mean(self, power: int) -> Fraction:
        return self.law([party.total for party in self.worlds[0]], error=True).mean(power)


def _added(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for a, x in one.items():
        for b, y in other.items():
            found[a + b] = found.get(a + b, 0) + x * y
    return found


def checked(problem: MultiLTE, folder: Path) -> tuple[PlanSolution, Word]:
    """A solved plan whose files keep epsilon exactly, and whose figures are right in both checkers."""
    plan = solve(problem)
    plan.save(folder)
    truth = Word(folder)
    for i, ratio in enumerate(truth.quotients()):
        assert ratio is not None
        assert ratio <= exp_bounds(truth.step(i, problem.epsilon))[0]
    for power, value in ((1, plan.certificate.mae), (2, plan.certificate.mse)):
        assert 0 <= value - truth.mean(power) < 1e-12 * (1 + value)
    assert verify_plan(folder).certificate.mae == plan.certificate.mae
    assert recheck(folder).status == "PASS"
    return plan, truth


FIGURES = [
    ([B(4, "0.5")] * 2, "0.5", 0.4745),
    ([B(12, "0.5")] * 2, "0.5", 0.3260),
    ([B(25, "0.5")] * 2, "0.5", 0.1415),
    pytest.param([B(50, "0.1")] * 2, "0.3", 0.7110, marks=pytest.mark.slow),
    pytest.param([B(20, "0.5")] * 3, "0.5", 0.142, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("parties", "epsilon", "most"), FIGURES)
def test_figures_to_hold(parties: list[Population], epsilon: str, most: float, tmp_path: Path) -> None:
    plan, truth = checked(MultiLTE(parties, epsilon, method="seeded"), tmp_path / "plan")
    assert truth.mean(1) <= most
    assert plan.lower_bound is None or plan.lower_bound <= truth.mean(1)


def random_problem(seed: int) -> MultiLTE:
    chance = random.Random(seed)
    count = chance.choice((2, 2, 3))
    parties = []
    for _ in range(count):
        n = chance.randrange(1, 9 - 2 * count)
        p = Fraction(chance.randrange(1, 10), 10)
        kinds = [
            lambda n=n, p=p: B(n, p),
            lambda n=n: Population.iid(n, ["0.5", "0.3", "0.2"]),
            lambda n=n, p=p: Population.independent([["0.2", "0.8"], *([[1 - p, p]] * n)]),
        ]
        parties.append(chance.choice(kinds)())
    f = [chance.choice((-2, -1, 1, 1, 3)) for _ in range(count)] if chance.random() < 0.4 else None
    objective = chance.choice(("mae", "mae", "mse"))
    epsilon = Fraction(chance.randrange(1, 20), 10)
    return MultiLTE(parties, epsilon, method="seeded", f=f, objective=objective)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(10))
def test_random_problems(seed: int, tmp_path: Path) -> None:
    problem = random_problem(seed)
    plan, _ = checked(problem, tmp_path / "plan")
    assert plan.value <= float(plan.no_data[f"no_data_{problem.objective}"] or math.inf) + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 50))
def test_more_random_problems(seed: int, tmp_path: Path) -> None:
    checked(random_problem(seed), tmp_path / "plan")


def test_several_worlds(tmp_path: Path) -> None:
    one, other = [B(5, "0.5")] * 2, [B(5, "0.4"), B(5, "0.6")]
    both, _ = checked(MultiLTE(one, "0.5", method="seeded", also=[other]), tmp_path / "plan")
    alone = solve(MultiLTE(one, "0.5", method="seeded"))
    assert both.mae > alone.mae
    assert (epsilon_under(both, other) or 9) <= Fraction(1, 2)
    assert (epsilon_under(alone, other) or 9) > Fraction(1, 2)


def test_several_worlds_of_alike_parties(tmp_path: Path) -> None:
    checked(MultiLTE([B(3, "0.5")] * 2, "0.6", method="seeded", also=[[B(3, "0.4")] * 2]), tmp_path / "plan")


def test_alike_parties_whose_least_reports_differ(tmp_path: Path) -> None:
    """Constant reports of one party are lower than any of the other, although both apply the same maps otherwise."""
    plan = solve(MultiLTE([B(2, "0.5")] * 2, "9", method="seeded"))
    for seed in range(12):
        chance = random.Random(seed)
        common = [tuple(chance.randrange(3) for _ in range(3)) for _ in range(3)]
        columns = [(chance.choice((1, 2, 5)), (values, values)) for values in common]
        columns += [(4, ((max(s, 0),) * 3, (min(s, 0),) * 3)) for s in range(-1, 6)]
        columns.append((64 - sum(weight for weight, _ in columns), ((1,) * 3, (1,) * 3)))
        tables = seeded_tables([(0, 2)] * 2, [2, 2], columns, 64)
        assert tables[0].outputs != tables[1].outputs
        certificate = certify_seeded(plan.problem, tables)
        made = replace(plan, tables=tuple(tables), certificate=certificate, lower_bound=None, prices=None)
        less = replace(
            certificate, epsilons=tuple(Fraction(99, 100) * (epsilon or 0) for epsilon in certificate.epsilons)
        )
        forged(made, tables, replace(made, certificate=less).claim(), tmp_path)
        with pytest.raises(OptdpError, match="does not hold"):
            verify_plan(tmp_path)
        with pytest.raises(Failed, match="does not hold"):
            recheck(tmp_path)
        forged(made, tables, made.claim(), tmp_path)
        verify_plan(tmp_path)
        recheck(tmp_path)
        truth = Word(tmp_path)
        for ratio, epsilon in zip(truth.quotients(), certificate.epsilons, strict=True):
            assert ratio is not None
            assert epsilon is not None
            low, high = exp_bounds(epsilon)
            assert ratio <= high
            assert low <= ratio * (1 + Fraction(1, 10**12))
        assert 0 <= certificate.mae - truth.mean(1) < Fraction(1, 10**12)


# ---------------------------------------------------------------------- brute force


def best_of_all_maps(n: int, p: float, epsilon: float, reports: range) -> float:
    """The optimum of the program over every pair of maps of two alike parties, written down anew."""
    law = [math.comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(n + 1)]
    less = [math.comb(n - 1, x) * p**x * (1 - p) ** (n - 1 - x) for x in range(n)]
    given = ([*less, 0.0], [0.0, *less])
    every = list(itertools.product(reports, repeat=n + 1))
    sums = range(2 * reports[0], 2 * reports[-1] + 1)
    costs, columns = [], []
    for g, h in itertools.product(every, every):
        costs.append(sum(law[x] * law[y] * abs(g[x] + h[y] - x - y) for x in range(n + 1) for y in range(n + 1)))
        seen = np.zeros((2, 2, len(sums)))
        for w in (0, 1):
            for x, y in itertools.product(range(n + 1), repeat=2):
                seen[0, w, g[x] + h[y] - sums[0]] += given[w][x] * law[y]
                seen[1, w, g[x] + h[y] - sums[0]] += law[x] * given[w][y]
        grow = math.exp(epsilon)
        columns.append(np.concatenate([(seen[i, w] - grow * seen[i, 1 - w]) for i in (0, 1) for w in (0, 1)]))
    rows = np.array(columns).T
    found = linprog(costs, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=np.ones((1, len(costs))), b_eq=[1.0])
    return float(found.fun)


@pytest.mark.parametrize(("n", "p", "epsilon"), [(1, 0.5, 0.5), (1, 0.25, 1.0), (2, 0.5, 0.5)])
def test_the_optimum_over_all_maps(n: int, p: float, epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeded, "MARGIN", 0)
    problem = MultiLTE([B(n, str(p))] * 2, str(epsilon), method="seeded")
    best = best_of_all_maps(n, p, epsilon, range(n + 1))
    every = solve(problem)
    assert every.status == "optimal"
    assert every.mae == pytest.approx(best, abs=2e-7)
    monkeypatch.setattr(seeded, "ENUMERATED", 1)
    generated = solve(problem)
    assert generated.status == "local optimum"
    assert best - 1e-7 <= generated.mae <= best * (1 + 2e-4)


def test_the_search_does_not_end_at_a_constant() -> None:
    """Here dozens of rounds pass before any tuple of maps is better than to report one sum whatever the data."""
    people = [Population.iid(3, ["0.5", "0.3", "0.2"]), Population.iid(1, ["0.5", "0.3", "0.2"])]
    plan = solve(MultiLTE(people, "0.2", method="seeded"))
    bound, constant = float(plan.lower_bound or 0), float(plan.no_data["no_data_mae"] or 0)
    assert bound < plan.mae < 0.9 * constant
    assert plan.mae < 1.05 * bound


def test_the_best_response_is_the_best_of_all_maps() -> None:
    """One party's response to given maps and prices, against every map of that party."""
    search = seeded.Search.of(MultiLTE([B(2, "0.3"), B(3, "0.6"), B(1, "0.5")], "0.7", method="seeded"))
    chance = np.random.default_rng(3)
    prices = chance.random((len(search.sides), search.sums))
    maps = [chance.integers(0, wide, (2, len(t))) for wide, t in zip(search.widths, search.targets, strict=True)]
    for i in range(3):
        best, costs = search._respond(i, list(maps), search._burdens(prices))
        every = np.array(list(itertools.product(range(search.widths[i]), repeat=len(search.targets[i]))))
        for k in range(2):
            tuples = [every if j == i else np.repeat(maps[j][k : k + 1], len(every), axis=0) for j in range(3)]
            errors, entries = search.coefficients(tuples)
            values = errors + (entries * prices).sum(axis=(1, 2))
            assert costs[k] == pytest.approx(values.min(), abs=1e-12)
            assert values[np.flatnonzero((every == best[k]).all(axis=1))[0]] == pytest.approx(values.min(), abs=1e-12)


# ---------------------------------------------------------------------- forgeries


def forged(plan: PlanSolution, tables: Sequence[SeededMaps], claim: dict[str, Any], folder: Path) -> None:
    """A folder of these tables with the claim of another plan, every digest made anew."""
    document, members = plan_files(plan)
    bare = [SeededArtifact.of(table) for table in tables]
    digests = [bare_digest(table) for table in bare]
    identity = identity_of(document["problem"], digests)
    folder.mkdir(exist_ok=True)
    entries = []
    for i, (table, member) in enumerate(zip(bare, members, strict=True)):
        own = {**member.claim, **claim["parties"][i], "plan": identity, "tables": digests}
        made = replace(table, problem=member.problem, provenance=member.provenance, claim=own, sha256="")
        (folder / party_file(i)).write_bytes(to_json(made))
        entries.append({"file": party_file(i), "sha256": made.sha256})
    document |= {"plan": identity, "parties": entries, "claim": claim}
    document["sha256"] = digest(document)
    (folder / "plan.json").write_text("".join(spelled(document)))


def changed(tables: Sequence[SeededMaps], chance: random.Random) -> list[SeededMaps]:
    """The same maps with something changed, for all parties or for one."""
    cuts, kind = list(tables[0].cuts), chance.randrange(4)
    found = list(tables)
    if kind == 0:  # weight moves from one cell to its neighbour
        k = chance.randrange(len(cuts) - 1)
        low, high = (cuts[k - 1] if k else 0) + 1, cuts[k + 1] - 1
        cuts[k] = min(max(cuts[k] + chance.choice((-1, 1)) * (1 << chance.randrange(58)), low), high)
        return [replace(table, cuts=tuple(cuts)) for table in found]
    i = chance.randrange(len(found))
    table = found[i]
    if kind == 1:  # a report moves
        maps = [list(values) for values in table.maps]
        values = chance.choice(maps)
        values[chance.randrange(len(values))] = chance.randint(*table.outputs)
        found[i] = replace(table, maps=tuple(map(tuple, maps)))
    elif kind == 2:  # two maps change places
        a, b = chance.sample(range(len(table.maps)), 2)
        maps = [list(values) for values in table.maps]
        maps[a], maps[b] = maps[b], maps[a]
        found[i] = replace(table, maps=tuple(map(tuple, maps)))
    else:  # the cuts of one party alone
        k = chance.randrange(len(cuts) - 1)
        cuts[k] = ((cuts[k - 1] if k else 0) + cuts[k + 1]) // 2
        found[i] = replace(table, cuts=tuple(cuts))
    return found


def judged(plan: PlanSolution, count: int, folder: Path, seed: int) -> int:
    """How many of so many forgeries are accepted: only such whose claim is true."""
    chance, accepted, claim = random.Random(seed), 0, plan.claim()
    for _ in range(count):
        tables = [table for table in plan.tables if isinstance(table, SeededMaps)]
        stated = json.loads(json.dumps(claim))
        if chance.random() < 0.2:  # the tables as they are, and a claim that is a little too good
            name = chance.choice(("epsilon", "mae", "mse"))
            stated[name] = str(Fraction(stated[name]) * (1 - Fraction(1, 10 ** chance.randrange(1, 9))))
            stated[name] = format(float(Fraction(stated[name])), ".15f")
        else:
            tables = changed(tables, chance)
        forged(plan, tables, stated, folder)
        verdicts = []
        for check in (verify_plan, recheck):
            try:
                check(folder)
                verdicts.append(True)
            except (OptdpError, Failed, Refused):
                verdicts.append(False)
        assert verdicts[0] == verdicts[1]
        if verdicts[0]:
            accepted += 1
            truth = Word(folder)
            assert truth.keeps(Fraction(stated["epsilon"]))
            assert truth.mean(1) <= Fraction(stated["mae"])
            assert truth.mean(2) <= Fraction(stated["mse"])
    return accepted


def test_forged_plans(tmp_path: Path) -> None:
    plan = solve(MultiLTE([B(4, "0.5"), B(3, "0.4")], "0.5", method="seeded"))
    forged(plan, [table for table in plan.tables if isinstance(table, SeededMaps)], plan.claim(), tmp_path / "p")
    verify_plan(tmp_path / "p")  # what is forged is refused for its content, not for its form
    assert judged(plan, 100, tmp_path / "p", 1) < 60


@pytest.mark.slow
def test_a_thousand_forged_plans(tmp_path: Path) -> None:
    plan = solve(MultiLTE([B(4, "0.5"), B(3, "0.4")], "0.5", method="seeded"))
    assert judged(plan, 1000, tmp_path / "p", 2) < 600


def test_what_belongs_to_no_plan_with_a_word_is_refused(tmp_path: Path) -> None:
    for wrong in (
        {"honest": 1},
        {"fallback_epsilon": 2},
        {"observer": Observer(known=1)},
    ):
        with pytest.raises(ProblemError):
            MultiLTE([B(3, "0.5")] * 2, "0.5", method="seeded", **wrong)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="likely sums"):
        solve(MultiLTE([B(100_000, "0.5")] * 2, "0.5", method="seeded"))
    with pytest.raises(ProblemError, match="parties"):
        solve(MultiLTE([B(3, "0.5")] * 20, "0.5", method="seeded"))
    folder = tmp_path / "p"
    solve(MultiLTE([B(3, "0.5")] * 2, "0.5", method="seeded")).save(folder)
    text = (folder / "party-0.json").read_text()
    for old, new in (('"seeded"', '"joint"'), ('"honest": 2', '"honest": 1'), ('"maps": [\n[', '"maps": [\n[ ')):
        (folder / "party-0.json").write_text(text.replace(old, new))
        with pytest.raises(OptdpError):
            verify_plan(folder)
        with pytest.raises((Failed, Refused)):
            recheck(folder)


# ---------------------------------------------------------------------- samplers, explanation, audit


@pytest.mark.parametrize("language", LANGUAGES)
def test_samplers_agree_on_every_word(language: str, tmp_path: Path) -> None:
    """All 32 words of a small denominator, at both ends of their cells, for every input."""
    chance = random.Random(5)
    maps = tuple(tuple(chance.randrange(-3, 9) for _ in range(4)) for _ in range(5))
    table = SeededMaps((1, 4), (-3, 8), 32, (3, 4, 11, 20, 25, 32), (0, 1, 2, 0, 3, 4), maps, 6)
    table.check()
    shift = 62 - 5
    draws: list[Draw] = [
        (x, {0: (word << shift) + more}) for x in range(7) for word in range(32) for more in (0, (1 << shift) - 1)
    ]
    found = LANGUAGES[language](table, draws, tmp_path)
    for (x, words), drawn in zip(draws, found, strict=True):
        word = words[0] >> shift
        cell = next(c for c, end in enumerate(table.cuts) if word < end)
        assert drawn.released == maps[table.choices[cell]][min(max(x, 1), 4) - 1] == table.report(x, words[0])


def test_the_sampler_takes_the_common_word_and_draws_none(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    plan = solve(MultiLTE([B(3, "0.5")] * 2, "0.5", method="seeded"))
    plan.save(folder)
    from optdp.export import export

    (first, _) = export(folder, "python", tmp_path / "out")
    table = plan.tables[0]
    assert isinstance(table, SeededMaps)
    words = [random.Random(9).getrandbits(62) for _ in range(50)]
    lines = "".join(f"{k % 4} {word}\n" for k, word in enumerate(words))
    told = subprocess.run([sys.executable, str(first)], input=lines, capture_output=True, text=True, check=True)
    assert [int(line) for line in told.stdout.split()] == [table.report(k % 4, word) for k, word in enumerate(words)]
    alone = subprocess.run([sys.executable, str(first), "2"], capture_output=True, text=True, check=False)
    assert alone.returncode == 2
    assert "share one word" in alone.stderr
    with pytest.raises(ProblemError, match="no table of weights"):
        export(folder, "csv", tmp_path / "csv")


def test_explained_and_audited(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    plan = solve(MultiLTE([B(4, "0.5"), B(5, "0.3")], "0.5", method="seeded", f=[1, 2]))
    plan.save(folder)
    worst = open_artifact(folder).explain().worst  # type: ignore[attr-defined]
    assert worst.sight.epsilon == plan.certificate.epsilon
    truth = Word(folder)
    party = truth.worlds[0][worst.party].secrets[worst.person]
    laws = [
        truth.law([party[w] if j == worst.party else other.total for j, other in enumerate(truth.worlds[0])])
        for w in worst.contributions
    ]
    for law, shown in zip(laws, worst.sight.probabilities, strict=True):
        exact = Fraction(law.at(worst.sight.output), law.denominator)
        assert float(exact) == pytest.approx(float(shown), rel=1e-9)
    assert audit(folder, samples=20_000, seed=2).verdict == "not refuted"
    assert audit(folder / "party-0.json", samples=20_000, seed=2).misfit is None


def test_an_audit_finds_words_that_are_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import optdp.audit as module

    solve(MultiLTE([B(6, "0.5")] * 2, "0.5", method="seeded")).save(tmp_path / "p")

    def apart(tables: Sequence[SeededMaps], source: Any) -> Any:
        return module.summed([module._own(table, source) for table in tables])

    monkeypatch.setattr(module, "seeded_sum", apart)
    assert audit(tmp_path / "p", samples=20_000, seed=2).failed


# ---------------------------------------------------------------------- the search


def test_an_interrupt_gives_the_best_so_far(tmp_path: Path) -> None:
    problem, heard = MultiLTE([B(12, "0.5")] * 2, "0.5", method="seeded"), list[str]()

    def stop_after(rounds: int) -> Any:
        heard.clear()

        def progress(text: str) -> None:
            heard.append(text)
            if f"round {rounds}," in text:
                raise KeyboardInterrupt

        return progress

    errors = []
    for rounds in (1, 8, 25):
        plan = solve(problem, progress=stop_after(rounds))
        assert plan.status == "interrupted"
        assert plan.certificate.epsilon is not None
        assert plan.certificate.epsilon <= problem.epsilon
        errors.append(plan.mae)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.6 * errors[0]


def test_the_same_plan_every_time() -> None:
    problem = MultiLTE([B(6, "0.5"), B(7, "0.4")], "0.5", method="seeded")
    assert solve(problem).tables == solve(problem).tables


# ---------------------------------------------------------------------- the common word


class Room:
    """Meetings of parties in one process: what one broadcasts the others collect."""

    def __init__(self, m: int) -> None:
        self.said: dict[tuple[int, int], bytes] = {}
        self.members = [Seat(self, i, m) for i in range(m)]


class Seat:
    def __init__(self, room: Room, me: int, m: int) -> None:
        self.room, self.me, self.m = room, me, m
        self.terms, self.nonces = {"plan": "ab", "run": "r"}, {j: f"{j:064x}" for j in range(m)}

    def broadcast(self, label: int, payload: bytes) -> None:
        self.room.said[label, self.me] = payload

    async def collect(self, label: int, size: int) -> dict[int, bytes]:
        others = [j for j in range(self.m) if j != self.me]
        while not all((label, j) in self.room.said for j in others):
            await asyncio.sleep(0)
        return {j: self.room.said[label, j] for j in others}


def agreed(
    room: Room, parts: Sequence[int], words: Sequence[Contribution] | None = None, most: int | None = None
) -> list[Any]:
    """What each party finds, or the first `most` of them: the others are then left where they are."""
    words = [Contribution(int, f"salt {i}") for i in range(len(parts))] if words is None else words

    async def everybody() -> list[Any]:
        seats = zip(room.members, parts, words, strict=True)
        tasks = (common_word(seat, part, word) for seat, part, word in seats)  # type: ignore[arg-type]
        first = list(map(asyncio.ensure_future, tasks))[:most]
        return list(await asyncio.gather(*first, return_exceptions=True))

    return asyncio.run(everybody())


def test_all_parties_get_the_same_word_and_nobody_chooses_it() -> None:
    parts = [5 << 50, 3, (1 << 62) - 1]
    assert agreed(Room(3), parts) == [parts[0] ^ parts[1] ^ parts[2]] * 3


@pytest.mark.parametrize("part", [7, 1 << 62])
def test_a_contribution_that_was_not_committed_to_is_named(part: int) -> None:
    room = Room(3)
    seat, usual = room.members[1], room.members[1].broadcast

    def other(label: int, payload: bytes) -> None:
        usual(label, payload if label != WORD_OPEN else payload[:32] + part.to_bytes(8, "little"))

    seat.broadcast = other  # type: ignore[method-assign]
    answers = agreed(room, [1, 2, 3])
    for j in (0, 2):
        assert isinstance(answers[j], FaultError)
        assert answers[j].party == 1


def test_who_breaks_off_after_it_saw_the_contributions_cannot_choose_another(tmp_path: Path) -> None:
    """Party 2 keeps its contribution back, knows those of the others, and comes again with one that it chose."""
    runs = [begin(tmp_path / f"{i}.runs", "ab" * 32, i, "r", 1, partial(int, 10 + i)) for i in range(3)]
    first, withheld = Room(3), bytearray()

    def words() -> list[Contribution]:
        found = [begin(tmp_path / f"{i}.runs", "ab" * 32, i, "r", 1, partial(int, 99)) for i in range(3)]
        return [Contribution(int, run.salt, run.commitments, run.committed) for run in found]

    def usual(seat: Seat) -> Any:
        return type(seat).broadcast.__get__(seat)

    def keep_back(label: int, payload: bytes) -> None:
        if label == WORD_OPEN:
            withheld.extend(payload)
            raise FaultError(2, "has gone")
        usual(first.members[2])(label, payload)

    first.members[2].broadcast = keep_back  # type: ignore[method-assign]

    async def broken_off() -> None:
        tasks = [asyncio.ensure_future(common_word(seat, run.report, word))  # type: ignore[arg-type]
                 for seat, run, word in zip(first.members, runs, words(), strict=True)]  # fmt: skip
        await asyncio.wait({tasks[2]})
        while not all((WORD_OPEN, j) in first.said for j in (0, 1)):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(broken_off())
    assert withheld  # the others' contributions were opened to it
    chosen = 10 ^ 11 ^ 5
    answers = agreed(Room(3), [10, 11, chosen], [*words()[:2], Contribution(int, "another")], most=2)
    for answer in answers:
        assert isinstance(answer, FaultError)
        assert (answer.party, "earlier attempt" in answer.what) == (2, True)
    assert agreed(Room(3), [10, 11, 12], words()) == [10 ^ 11 ^ 12] * 3


def test_who_tells_the_parties_different_commitments_gets_no_contribution() -> None:
    room = Room(3)
    usual = room.members[0].collect

    async def told_otherwise(label: int, size: int) -> dict[int, bytes]:
        found = await usual(label, size)
        return found | ({2: bytes(32)} if label == WORD_COMMIT else {})

    room.members[0].collect = told_otherwise  # type: ignore[method-assign]
    answers = agreed(room, [1, 2, 3])
    assert all(isinstance(answer, FaultError) for answer in answers)
    assert not any(label == WORD_OPEN for label, _ in room.said)


def test_priors_of_the_checker_are_what_they_say() -> None:
    """The checker of this file rests on `prior`; one law of it by hand."""
    made: Prior = prior({"kind": "binomial", "n": 2, "p": "0.5"})
    assert made.total.weights == (1, 2, 1)
