"""Files that somebody else made: well formed, digest right, and wrong in what they claim or mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from optdp import ArtifactError, CertificateError, Population, SingleLTE, epsilon_under, solve, verify
from optdp.errors import OptdpError, ProblemError
from optdp.numbers.exact import decimal_up, geometric_ratio
from optdp.single.format import Artifact, write
from tests.exact_checker import Checked

SOLVED = solve(SingleLTE(Population.binomial(12, "0.5"), "0.5"))


def forge(path: Path, **changes: Any) -> Path:
    """The artifact with fields changed and its digest made anew."""
    write(replace(SOLVED.artifact(), sha256="", **changes), path)
    return path


def claim(**changes: Any) -> dict[str, Any]:
    return {**SOLVED.artifact().claim, **changes}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"epsilon": "0.4"}, CertificateError),
        ({"epsilon": "0.499"}, CertificateError),
        ({"mae": "0.001"}, CertificateError),
        ({"baseline_mae": "0.1"}, CertificateError),
        ({"lower_bound": "99"}, CertificateError),
        ({"ordinary_epsilon": "3"}, CertificateError),
        ({"epsilon": 0.5}, ArtifactError),
        ({"epsilon": None}, ArtifactError),
        ({"epsilon": "half"}, ArtifactError),
        ({"epsilon": "infinite"}, ArtifactError),
        ({"lower_bound": 5}, ArtifactError),
        ({"mae": []}, ArtifactError),
    ],
)
def test_false_claims(changes: dict[str, Any], kind: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(kind):
        verify(forge(tmp_path / "a.json", claim=claim(**changes)))


def test_fractions_are_fine_in_a_claim(tmp_path: Path) -> None:
    assert verify(forge(tmp_path / "a.json", claim=claim(epsilon="1/2"))).bound_proved


@pytest.mark.parametrize("z", ["", "1e308 " * 13, "nan " * 13, "x " * 13, 3, None, ["1"]])
def test_bad_prices(z: Any, tmp_path: Path) -> None:
    stored = {**SOLVED.artifact().provenance, "prices": {"z": z, "u": ["0 " * 13] * 2}}
    with pytest.raises((ArtifactError, CertificateError)):
        verify(forge(tmp_path / "a.json", provenance=stored))


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: {**spec, "epsilon": "0"},
        lambda spec: {**spec, "kind": "other"},
        lambda spec: {**spec, "surprise": 1},
        lambda spec: {**spec, "population": {**spec["population"], "n": 10}},
        lambda spec: {**spec, "population": {**spec["population"], "n": 10**8}},
        lambda spec: {**spec, "population": []},
    ],
)
def test_problems_that_do_not_fit(change: Callable[[dict[str, Any]], dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(ArtifactError):
        verify(forge(tmp_path / "a.json", problem=change(SOLVED.artifact().problem)))


def test_outputs_beyond_the_rows_are_refused_with_geometric_noise_outside(tmp_path: Path) -> None:
    """Bin(10, .5), a row for input 8 only that reports 0: its real epsilon is .393, not .3."""
    problem = SingleLTE(Population.binomial(10, "0.5"), "0.3", never_worse=False)
    artifact = Artifact(
        inputs=(8, 8), outputs=(0, 10), denominator=2, rows=(((0, 2),),), outside="geometric",
        q=problem.q, problem=problem.spec(), claim={"epsilon": "0.3", "ordinary_epsilon": "infinite"}, provenance={},
    )  # fmt: skip
    write(artifact, tmp_path / "a.json")
    assert not Checked(tmp_path / "a.json").private(Fraction(39, 100))
    with pytest.raises(ArtifactError, match=r"must lie within 8\.\.8"):
        verify(tmp_path / "a.json")


def test_people_who_are_not_independent_under_geometric_noise() -> None:
    """The sum is 5 if the person says no, and 0 or 10 if yes: output 5 gives it away, though noise is added."""
    geometric = solve(SingleLTE(Population.binomial(10, "0.5"), "0.3", method="geometric"))
    no, yes = [0] * 5 + [1] + [0] * 5, ["1/2", *[0] * 9, "1/2"]
    total = ["1/4", 0, 0, 0, 0, "1/2", 0, 0, 0, 0, "1/4"]
    found = epsilon_under(geometric.problem, geometric.mechanism, Population.from_conditionals([[no, yes]], total))
    assert found is not None
    assert float(found) == pytest.approx(1.5, rel=1e-9)


def test_a_world_with_larger_contributions_counts_its_own_steps() -> None:
    geometric = solve(SingleLTE(Population.binomial(12, "0.5"), "0.3", method="geometric"))
    found = epsilon_under(geometric.problem, geometric.mechanism, Population.iid(4, ["1/4"] * 4))
    assert found is not None
    assert float(found) == pytest.approx(0.9, rel=1e-9)


def test_forged_tables_are_never_accepted_above_their_claim(tmp_path: Path) -> None:
    """Random changes of weights, rows and q with a new digest: accepted only if the exact checker agrees."""
    random, accepted = Random(3), 0
    artifact = SOLVED.artifact()
    for i in range(150):
        rows = [list(row) for row in artifact.rows]
        x = random.randrange(len(rows))
        row = dict(rows[x])
        source = random.choice(list(row))
        target = random.choice([s for s in range(13) if s != source])
        moved = min(row[source] - 1, random.choice([1, 2**20, 2**40, 2**50, 2**58]))
        if moved <= 0:
            continue
        row[source] -= moved
        row[target] = row.get(target, 0) + moved
        rows[x] = sorted(row.items())
        q = artifact.q if random.random() < 0.8 else geometric_ratio(Fraction(random.randint(40, 60), 100))
        path = tmp_path / f"{i}.json"
        write(replace(artifact, rows=tuple(tuple(row) for row in rows), q=q, sha256=""), path)
        try:
            verify(path)
        except OptdpError:
            continue
        accepted += 1
        assert Checked(path).private(), i
    assert accepted > 5


def test_claims_round_to_the_private_side() -> None:
    for value in (Fraction(1, 3), Fraction(2, 3), Fraction(10**25 + 1, 10**25)):
        assert Fraction(decimal_up(value)) >= value


@pytest.mark.parametrize("error", [ArithmeticError, ProblemError])
def test_a_table_that_cannot_be_measured_is_refused_with_its_reason(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stopped(*_: Any) -> None:
        raise error("a ball without bounds")

    monkeypatch.setattr("optdp.single.verify.certify", stopped)
    with pytest.raises(ArtifactError, match=r"^The table cannot be measured: a ball without bounds$"):
        verify(forge(tmp_path / "a.json"))


@pytest.mark.parametrize("epsilon", ["1e-1000", "1e-13", "0", "101"])
def test_an_epsilon_out_of_range_is_refused_in_a_line(epsilon: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="epsilon must be"):
        verify(forge(tmp_path / "a.json", problem={**SOLVED.artifact().problem, "epsilon": epsilon}))


def test_a_law_with_a_huge_sum_is_refused_in_a_line() -> None:
    with pytest.raises(ProblemError, match="sum to exactly 1"):
        Population.iid(3, ["1e999", "0.5"])
