"""What a joint plan may be asked for beyond epsilon: any two contributions, no tail, no sum worse than geometric noise.

And where small plans come from: all tables move at once. Everything is held against enumeration in exact fractions.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from optdp import CertificateError, MultiLTE, NoiseMatrix, Population, ProblemError, solve, verify_plan
from optdp.errors import ArtifactError, OptdpError
from optdp.plan.by_total import worst_sum
from optdp.plan.certify import certify_plan
from optdp.plan.given_sums import coefficients
from optdp.plan.joint import PlanDraft
from optdp.plan.parties import parties_of
from optdp.plan.simultaneous import Small, drawn, settle
from optdp.plan.starts import _jumping
from optdp.recheck import recheck
from optdp.recheck.verdict import Failed, Refused
from optdp.work import silent
from optdp.work.account import Effort
from tests.exact_plan_checker import exp_bounds

LAW = ["0.5", "0.3", "0.2"]


def random_tables(problem: MultiLTE, seed: int) -> list[NoiseMatrix]:
    """Tables of random integers, every entry above 0."""
    random, tables = Random(seed), []
    for factor, party in zip(problem.f, problem.parties, strict=True):
        low, high = sorted((0, factor * party.last))
        rows = []
        for _ in range(party.last + 1):
            weights = [random.randint(1, 50) for _ in range(low - 1, high + 2)]
            weights[0] += 4096 - sum(weights)
            rows.append(tuple(enumerate(weights, start=low - 1)))
        tables.append(NoiseMatrix((0, party.last), (low - 1, high + 1), 4096, tuple(rows), None, "clamp", party.last))
    return tables


def outcomes(problem: MultiLTE, tables: Sequence[NoiseMatrix]) -> dict[int, dict[int, Fraction]]:
    """For each sum the law of the aggregate together with it, by enumeration."""
    found: dict[int, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for inputs in itertools.product(*(range(party.last + 1) for party in problem.parties)):
        chance = math.prod(p.total.fraction(x) for p, x in zip(problem.parties, inputs, strict=True))
        target = sum(f * x for f, x in zip(problem.f, inputs, strict=True))
        for reports in itertools.product(*(table.row(x) for table, x in zip(tables, inputs, strict=True))):
            share = math.prod(Fraction(w, t.denominator) for (_, w), t in zip(reports, tables, strict=True))
            found[target][sum(s for s, _ in reports)] += chance * share
    return found


def brute_worst(problem: MultiLTE, tables: Sequence[NoiseMatrix]) -> Fraction:
    return max(
        sum(p * abs(s - t) for s, p in law.items()) / sum(law.values())
        for t, law in outcomes(problem, tables).items()
        if any(law.values())
    )


def brute_quotient(problem: MultiLTE, tables: Sequence[NoiseMatrix], i: int) -> Fraction:
    """The largest quotient of any two contributions of a person of party `i`, all parties honest."""
    worst = Fraction(1)
    for person in problem.parties[i].people:
        columns = []
        for law in person.conditionals:
            laws = [law if j == i else party.total for j, party in enumerate(problem.parties)]
            seen: dict[int, Fraction] = {0: Fraction(1)}
            for own, table, party in zip(laws, tables, problem.parties, strict=True):
                more: dict[int, Fraction] = defaultdict(Fraction)
                for (total, chance), x in itertools.product(seen.items(), range(party.last + 1)):
                    for s, weight in table.row(x):
                        more[total + s] += chance * own.fraction(x) * Fraction(weight, table.denominator)
                seen = more
            columns.append(seen)
        for one, other in itertools.permutations(columns, 2):
            worst = max(worst, *(one[s] / other[s] for s in one))
    return worst


@pytest.mark.parametrize("seed", range(3))
def test_the_error_given_any_sum(seed):
    parties = [Population.binomial(2, "0.3"), Population.iid(2, LAW), Population.binomial(1, "0.5")]
    problem = MultiLTE(parties, "1", f=[1, -1, 2], never_worse=2, method="joint")
    tables = random_tables(problem, seed)
    truth = brute_worst(problem, tables)
    found = worst_sum(problem, tables)
    assert 0 <= found.mae - truth < Fraction(1, 10**30)
    law = outcomes(problem, tables)[found.total]
    assert sum(p * abs(s - found.total) for s, p in law.items()) == truth * sum(law.values())
    draft = PlanDraft(tuple(parties_of(problem, [1] * 3)), tuple(_floats(table) for table in tables), problem.honest)
    for i, table in enumerate(draft.tables):
        given = coefficients(draft.parties, draft.tables, i, 1.0)
        assert float((given * table).sum(axis=(1, 2)).max()) == pytest.approx(float(truth), rel=1e-12)


def _floats(table: NoiseMatrix) -> np.ndarray:
    return np.array([[weight / table.denominator for _, weight in row] for row in table.rows])


@pytest.mark.parametrize("f", [[1, 1], [1, 2]])
def test_any_two_contributions(f, tmp_path):
    problem = MultiLTE([Population.iid(2, LAW), Population.iid(1, LAW)], "0.8", f=f, adjacency="all", method="joint")
    tables = random_tables(problem, 5)
    certificate = certify_plan(problem, tables)
    for i in range(2):
        low, high = exp_bounds(certificate.epsilons[i])
        assert low * (1 - Fraction(1, 10**15)) <= brute_quotient(problem, tables, i) <= high
    solution = solve(problem)
    solution.save(tmp_path / "plan")
    assert solution.problem.spec()["adjacency"] == "all"
    assert verify_plan(tmp_path / "plan").certificate == solution.certificate
    assert recheck(tmp_path / "plan").status == "PASS"
    for i in range(2):
        assert brute_quotient(problem, solution.tables, i) <= exp_bounds(problem.epsilon)[1]
    assert solution.mae <= solve(problem.changed(adjacency="unit")).mae * 1.001  # which asks for more


def test_no_tail(tmp_path):
    problem = MultiLTE(
        [Population.binomial(4, "0.5"), Population.binomial(3, "0.3")], "0.5", f=[1, -2], tail="none", method="joint"
    )
    solution = solve(problem)
    assert [table.outputs for table in solution.tables] == [(0, 4), (-6, 0)]
    solution.save(tmp_path / "plan")
    assert recheck(tmp_path / "plan").status == "PASS"
    first = solution.tables[0]
    wider = (replace(first, outputs=(-1, 4)), solution.tables[1])
    replace(solution, tables=wider).save(tmp_path / "forged")
    with pytest.raises(ArtifactError, match=r"must lie in 0\.\.4"):
        verify_plan(tmp_path / "forged")
    with pytest.raises(Refused, match=r"must lie in 0\.\.4"):
        recheck(tmp_path / "forged")
    assert "tail" not in problem.changed(tail="margin").spec()


@pytest.mark.parametrize("multiple", [True, "1.5"])
def test_no_sum_is_worse_than_geometric_noise(multiple, tmp_path):
    problem = MultiLTE([Population.binomial(3, "0.5")] * 2, "0.5", never_worse=multiple, method="joint")
    solution = solve(problem)
    times = Fraction(1) if multiple is True else Fraction(multiple)
    truth = brute_worst(problem, solution.tables)
    assert truth <= times * problem.baseline_mae
    solution.save(tmp_path / "plan")
    assert verify_plan(tmp_path / "plan").certificate.worst_mae == solution.certificate.worst_mae
    assert recheck(tmp_path / "plan").figures["worst_mae"] == truth
    free = solve(problem.changed(never_worse=None))
    assert "worst_mae" not in free.claim()
    assert free.mae <= solution.mae * 1.001
    if brute_worst(problem, free.tables) > times * problem.baseline_mae:
        with pytest.raises(CertificateError, match="given any sum"):
            certify_plan(problem, free.tables).check(problem)


def test_a_smaller_claim_of_the_worst_sum_is_refused(tmp_path):
    from optdp.files import canonical
    from optdp.plan.format import digest, spelled

    problem = MultiLTE([Population.binomial(2, "0.5")] * 2, "1", never_worse=True, method="joint")
    solve(problem).save(tmp_path / "plan")
    document = canonical.parse((tmp_path / "plan" / "plan.json").read_bytes())
    document["claim"]["worst_mae"] = str(json.loads(document["claim"]["worst_mae"]) * 0.999)
    document["sha256"] = digest(document)
    (tmp_path / "plan" / "plan.json").write_text("".join(spelled(document)))
    with pytest.raises(CertificateError, match="worst_mae"):
        verify_plan(tmp_path / "plan")
    with pytest.raises(Failed, match="worst_mae"):
        recheck(tmp_path / "plan")


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"tail": "geometric"}, "finite"),
        ({"tail": "none", "method": "divisible"}, "joint"),
        ({"adjacency": "all", "method": "geometric"}, "unit steps"),
        ({"never_worse": True, "method": "alone"}, "joint"),
        ({"never_worse": "0.5"}, "1 to 1000"),
        ({"adjacency": "some"}, "adjacency must be one of"),
    ],
)
def test_refused(more, word):
    with pytest.raises(ProblemError, match=word):
        MultiLTE([Population.binomial(3, "0.5")] * 2, "0.5", **more)


def test_too_many_sums_are_refused_at_once():
    with pytest.raises(ProblemError, match="never_worse looks at every sum"):
        MultiLTE([Population.binomial(400, "0.5")] * 3, "0.5", never_worse=True, method="joint")


# ---------------------------------------------------------------------- all tables at once


@pytest.mark.parametrize(("n", "most"), [(2, 0.6325), (4, 0.5710), (6, 0.5535)])
def test_small_plans(n, most, tmp_path):
    solution = solve(MultiLTE([Population.binomial(n, "0.5")] * 2, "0.5", method="joint"))
    assert solution.mae <= most
    solution.save(tmp_path / "plan")
    assert recheck(tmp_path / "plan").status == "PASS"


@pytest.mark.parametrize("never_worse", [None, 1])
def test_the_derivatives(never_worse):
    """Against differences: what is linear in each table has exact ones along one entry."""
    problem = MultiLTE(
        [Population.binomial(2, "0.4"), Population.iid(2, LAW)], "0.7", never_worse=never_worse, method="joint"
    )
    most = None if problem.most_error is None else float(problem.most_error)
    small = Small(tuple(parties_of(problem, [1, 0])), 2, 1, most)
    tables = drawn(small, 2)
    beyond, rows = small.quotients(tables, True)
    slopes = np.vstack(rows)
    assert len(beyond) == len(slopes)
    begin = 0
    for i, table in enumerate(tables):
        costs = (small.parties[i].priors[0][:, None] * small.draft(tables).costs(i, 1)).ravel()
        for entry in range(0, table.size, 5):
            changed, step = [one.copy() for one in tables], 1e-7
            changed[i].flat[entry] += step
            error = (small.draft(changed).error() - small.draft(tables).error()) / step
            assert costs[entry] == pytest.approx(error, abs=1e-6)
            # the chance that a row is divided by is held fixed: at the bound itself that makes no difference
            near = np.abs(beyond) < 0.02
            difference = (small.quotients(changed, False)[0] - beyond) / step
            assert slopes[near, begin + entry] == pytest.approx(difference[near], abs=0.05)
        begin += table.size


def test_the_same_starts_and_the_same_end_everywhere():
    problem = MultiLTE([Population.binomial(3, "0.5")] * 2, "0.5", method="joint")
    small = Small(tuple(parties_of(problem, [1, 1])), 2, 1, None)
    ends = []
    for _ in range(2):
        effort = Effort()
        plan = settle(small, drawn(small, 1), effort)
        ends.append((effort.spent, None if plan is None else [table.tobytes() for table in plan.tables]))
    assert ends[0] == ends[1]
    for table in drawn(small, 0) + drawn(small, 1):
        assert table.sum(axis=1) == pytest.approx(1)
    monotone = drawn(small, 1)[0].argmax(axis=1)
    assert list(monotone) == sorted(monotone)


def test_the_truth_that_is_rarely_far_away():
    """Many parties: private as the blocks see it, and nearly without error."""
    problem = MultiLTE([Population.binomial(n, "0.5") for n in (30, 36, 42, 48, 54, 60)], "1", method="joint")
    plan = _jumping(problem, silent)
    assert plan is not None
    assert plan.excess <= 1
    assert plan.error() < 0.1 * float(problem.baseline_mae)


def test_what_shares_of_noise_cannot_keep_is_not_replaced_by_them():
    problem = MultiLTE([Population.binomial(1, "0.5")] * 2, "0.1", never_worse=True, method="joint")
    try:
        solution = solve(problem)
    except OptdpError as error:
        assert "never_worse" in str(error)  # noqa: PT017  # either is right, shares are not
    else:
        assert brute_worst(problem, solution.tables) <= problem.baseline_mae
