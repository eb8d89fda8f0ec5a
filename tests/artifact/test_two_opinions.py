"""Tables that do not fit their problems, bounds that are not proved, claims of many digits: both checkers agree."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from optdp import MultiLTE, NoiseMatrix, Observer, Population, SingleLTE, solve
from optdp.numbers.exact import decimal_down, decimal_up
from optdp.plan.certify import certify_plan
from optdp.recheck import recheck
from tests.artifact import forgeries, two_opinions
from tests.artifact import test_plan as plans
from tests.checkers import both_agree, first_opinion, second_opinion
from tests.shared import shared_solution

Document = dict[str, Any]
binomial = Population.binomial


def codes(document: Document, path: Path) -> tuple[int, int]:
    """What both checkers answer to a document that is sealed anew."""
    path.write_bytes(forgeries.sealed(document))
    return first_opinion(path)[0], second_opinion(path)[0]


def artifact(**options: Any) -> Document:
    return forgeries.document_of(SingleLTE(binomial(12, "0.5"), "0.5", **options))


TABLE = ("inputs", "outputs", "denominator", "outside", "tail", "weights")


@pytest.mark.parametrize(("tail", "other"), [("geometric", "none"), ("none", "geometric")])
def test_the_table_of_another_tail(tail: str, other: str, tmp_path: Path) -> None:
    """Its privacy and its error are true, with claims of its own; it answers another question."""
    document, stranger = artifact(tail=tail, never_worse=False), artifact(tail=other, never_worse=False)
    document |= {name: stranger[name] for name in TABLE}
    assert codes(document, tmp_path / "a.json") == (2, 2)
    document["claim"] = stranger["claim"] | {"lower_bound": None}
    document["provenance"].pop("prices")
    assert codes(document, tmp_path / "a.json") == (2, 2)
    stranger["claim"] = document["claim"]
    assert codes(stranger, tmp_path / "a.json") == (0, 0)


def constant(output: int) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document["outputs"] = [output, output]
        document["weights"] = [[[output, int(document["denominator"])]]] * len(document["weights"])

    return change


def clamped(document: Document) -> None:
    document |= {"inputs": [1, 12], "weights": document["weights"][1:], "outside": "clamp"}


def one_row_more(outside: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document |= {"inputs": [0, 13], "weights": [*document["weights"], document["weights"][-1]], "outside": outside}

    return change


def one_row_less(document: Document) -> None:
    """An input that exists, and for which nothing is said."""
    document |= {"inputs": [0, 11], "weights": document["weights"][:-1], "outside": "error"}


def one_row(document: Document) -> None:
    """The output of the only row is an input that gets plain noise."""
    size = int(document["denominator"])
    document |= {"inputs": [2, 2], "outputs": [1, 1], "weights": [[[1, size]]], "outside": "geometric"}


def other_noise(document: Document) -> None:
    """More noise in the tails than was asked for: as private, and no table of this program."""
    p, r = map(int, document["tail"]["q"])
    q = Fraction(2 * p + 1, 2 * r)
    document["tail"]["q"] = [str(q.numerator), str(q.denominator)]


@pytest.mark.parametrize(
    ("tail", "change"),
    [
        ("none", constant(-1000)), ("none", constant(13)), ("geometric", constant(-1)), ("geometric", clamped),
        ("geometric", other_noise), ("none", lambda document: document.update(outputs=[-1, 12])),
        ("geometric", lambda document: document.update(outputs=[0, 13])), ("none", one_row_more("clamp")),
        ("geometric", one_row_more("geometric")), ("none", one_row_less), ("geometric", one_row),
    ],
)  # fmt: skip
def test_outputs_tails_and_inputs_that_no_answer_has(tail: str, change: Any, tmp_path: Path) -> None:
    document = artifact(tail=tail)
    forgeries.modest(document, two_opinions.Random(0))
    assert codes(document, tmp_path / "a.json") == (0, 0)
    change(document)
    assert codes(document, tmp_path / "a.json") == (2, 2)


def test_a_constant_within_the_range_is_a_table(tmp_path: Path) -> None:
    document = artifact(tail="none")
    forgeries.modest(document, two_opinions.Random(0))
    constant(6)(document)
    assert codes(document, tmp_path / "a.json") == (0, 0)
    clamped(document)
    assert codes(document, tmp_path / "a.json") == (0, 0)


@pytest.mark.parametrize(("observer", "code"), [({}, 0), ({"known": 0}, 0), ({"known": False}, 2), ({"known": 1}, 2)])
def test_added_noise_is_for_who_knows_the_population_alone(observer: Any, code: int, tmp_path: Path) -> None:
    document = artifact(form="additive")
    document["problem"]["observer"] = observer
    assert codes(document, tmp_path / "a.json") == (code, code)


@pytest.mark.parametrize("key", ["delta", "certified_by", "lower_limit"])
def test_a_claim_of_what_nobody_recomputes(key: str, tmp_path: Path) -> None:
    document = artifact()
    document["claim"][key] = "0"
    assert codes(document, tmp_path / "a.json") == (2, 2)


@pytest.mark.parametrize("by", ["1.001", "0.999"])
def test_a_claim_that_flatters_by_what_it_is_compared_with(by: str, tmp_path: Path) -> None:
    document = artifact()
    document["claim"]["baseline_mae"] = decimal_up(Fraction(document["claim"]["baseline_mae"]) * Fraction(by))
    assert codes(document, tmp_path / "a.json") == (1, 1)


# ---------------------------------------------------------------------- bounds


BOUNDED = {
    "tail": SingleLTE(binomial(12, "0.5"), "0.5"),
    "no tail": SingleLTE(binomial(12, "0.3"), "0.5", tail="none"),
    "squared": SingleLTE(binomial(9, "0.2"), "0.8", objective="mse"),
    "kinds": SingleLTE(Population.independent([["0.5", "0.5"]] * 3 + [["0.2", "0.5", "0.3"]] * 2), "0.8"),
    "all": SingleLTE(Population.iid(4, ["0.5", "0.3", "0.2"]), "0.9", adjacency="all", never_worse=False),
    "priors": SingleLTE([binomial(9, "0.5"), binomial(9, "0.4")], "0.5", weights=["1/3", "2/3"]),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_both_prove_a_bound_and_neither_proves_more(name: str, tmp_path: Path) -> None:
    """A bound just above what the prices prove is refused by both; what they prove is below the optimum."""
    document, path = forgeries.document_of(BOUNDED[name]), tmp_path / "a.json"
    assert codes(document, path) == (0, 0)
    assert recheck(path).unchecked == ()
    objective = document["problem"]["objective"]
    claimed, value = Fraction(document["claim"]["lower_bound"]), Fraction(document["claim"][objective])
    assert claimed <= forgeries.least_error(json.dumps(document["problem"], sort_keys=True)) * (1 + 1e-7)
    low, high = claimed, value  # the largest bound that is accepted, to 12 digits, by bisection
    while high - low > value / 10**12:
        middle = Fraction(decimal_down((low + high) / 2))
        document["claim"]["lower_bound"] = decimal_down(middle)
        one, other = codes(document, path)
        assert one == other
        low, high = (middle, high) if one == 0 else (low, middle)
    assert low < value
    document["claim"]["lower_bound"] = decimal_up(value * (1 + Fraction(1, 10**6)))
    assert codes(document, path) == (1, 1)


def test_a_bound_above_the_objective_is_refused_whatever_the_prices(tmp_path: Path) -> None:
    document = artifact()
    document["claim"]["lower_bound"] = "2.78"
    assert codes(document, tmp_path / "a.json") == (1, 1)
    document["provenance"].pop("prices")
    assert codes(document, tmp_path / "a.json") == (1, 1)


def test_a_bound_without_its_prices_is_no_claim(tmp_path: Path) -> None:
    document = artifact()
    prices = document["provenance"].pop("prices")
    assert codes(document, tmp_path / "a.json") == (2, 2)
    document["provenance"]["prices"] = prices | {"v": "0.0"}
    assert codes(document, tmp_path / "a.json") == (2, 2)
    solution = solve(SingleLTE(binomial(8, "0.5"), "0.5", fallback_epsilon="2"))
    assert solution.lower_bound is not None
    if "prices" not in solution.artifact().provenance:
        assert solution.artifact().claim["lower_bound"] is None
        assert Fraction(solution.artifact().provenance["lower_bound"]) <= solution.lower_bound


def test_a_bound_of_a_plan(tmp_path: Path) -> None:
    """Both prove it, and refuse one a little larger. Any prices prove something, but no more than is true."""
    solution = shared_solution(MultiLTE([binomial(4, "0.5"), binomial(3, "0.5")], "1", method="joint"))
    solution.save(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 0
    assert recheck(tmp_path / "plan").unchecked == ()
    forgery = plans.Forgery(tmp_path / "plan")
    forgery.plan["claim"]["lower_bound"] = decimal_down(Fraction(solution.lower_bound or 0) * Fraction(100001, 100000))
    forgery.seal().write(tmp_path / "plan")
    assert (first_opinion(tmp_path / "plan")[0], second_opinion(tmp_path / "plan")[0]) == (1, 1)
    shared_solution(MultiLTE([binomial(4, "0.5"), binomial(3, "0.4")], "1", method="joint")).save(tmp_path / "other")
    other = plans.Forgery(tmp_path / "other")
    other.plan["provenance"] = forgery.plan["provenance"]  # prices of another problem
    for claimed, answer in (("0.001", 0), (other.plan["claim"]["mae"], 1)):
        other.plan["claim"]["lower_bound"] = claimed
        other.seal().write(tmp_path / "other")
        assert both_agree(tmp_path / "other") == answer


# ---------------------------------------------------------------------- plans


@pytest.mark.parametrize("method", ["divisible", "geometric"])
def test_finite_tables_need_a_joint_plan(method: str, tmp_path: Path) -> None:
    shared_solution(MultiLTE(plans.PEOPLE, "0.5", method="joint")).save(tmp_path / "plan")
    forgery = plans.Forgery(tmp_path / "plan")
    forgery.plan["problem"]["method"] = method
    forgery.seal().write(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 2


@pytest.mark.parametrize("change", ["beta", "q", "contraction", "table"])
def test_shares_of_geometric_noise_are_those_of_the_problem(change: str, tmp_path: Path) -> None:
    shared_solution(MultiLTE(plans.PEOPLE, "0.5", method="geometric")).save(tmp_path / "plan")
    forgery = plans.Forgery(tmp_path / "plan")
    plans.modest(forgery, two_opinions.Random(0))
    forgery.seal().write(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 0
    for party in forgery.parties:
        tail, size = party["tail"], len(forgery.plan["problem"]["parties"])
        last = forgery.plan["problem"]["parties"][party["claim"]["party"]]["n"]
        if change == "beta":
            tail["beta"] = [str(size), str(size + 1)]
        elif change == "q":
            tail["q"] = ["9", "10"]
        elif change == "contraction":
            tail["contraction"], tail["contraction_denominator"] = [[[x, 1]] for x in range(last + 1)], "1"
        else:
            party |= {"inputs": [2, 2], "outputs": [2, 3], "weights": [[[2, 1], [3, 1]]], "denominator": "2"}
    forgery.seal().write(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 2


def test_outputs_of_a_plan_stay_around_its_inputs(tmp_path: Path) -> None:
    shared_solution(MultiLTE(plans.PEOPLE, "0.5", method="joint")).save(tmp_path / "plan")
    for output, code in ((-1000, 2), (-83, 2), (-82, 0), (87, 0), (88, 2)):  # 2 + 40 / 0.5 beyond 0..5
        forgery = plans.Forgery(tmp_path / "plan")
        plans.modest(forgery, two_opinions.Random(0))
        for party in forgery.parties:
            constant(3 if party["claim"]["party"] else output)(party)
        forgery.seal().write(tmp_path / "plan")
        assert both_agree(tmp_path / "plan") == code, output


def test_parties_that_are_alike_in_one_world_only() -> None:
    """Each party's epsilon is the largest of its own worlds; enumerated in fractions."""
    rows = (((0, 6), (1, 1), (2, 1)), ((0, 2), (1, 5), (2, 1)), ((0, 1), (1, 1), (2, 6)))
    table = NoiseMatrix((0, 2), (0, 2), 8, rows, None, "clamp", 2)
    worlds = [["0.02", "0.5"], ["0.4", "0.4"]]
    first, *also = ([binomial(2, p) for p in world] for world in worlds)
    found = certify_plan(MultiLTE(first, "50", also=also, method="joint"), [table, table]).epsilons
    expected = [0.0, 0.0]
    for world in worlds:
        chances = [Fraction(p) for p in world]

        def law(p: Fraction, given: int | None) -> list[Fraction]:
            """The law of a report, perhaps given that one of two people contributed `given`."""
            report = [Fraction(0)] * 3
            for people in itertools.product((0, 1), repeat=2):
                chance = math.prod(p if w else 1 - p for w in people[1:] if given is not None) or Fraction(0)
                if given is None:
                    chance = math.prod((p if w else 1 - p for w in people), start=Fraction(1))
                elif people[0] != given:
                    continue
                for s, weight in rows[sum(people)]:
                    report[s] += chance * Fraction(weight, 8)
            return report

        for i, j in ((0, 1), (1, 0)):
            around = law(chances[j], None)
            sums = []
            for given in (0, 1):
                own = law(chances[i], given)
                sums.append([sum(own[s] * around[t - s] for s in range(3) if 0 <= t - s < 3) for t in range(5)])
            worst = max(max(a / b, b / a) for a, b in zip(*sums, strict=True))
            expected[i] = max(expected[i], math.log(worst))
    assert [float(epsilon or 0) for epsilon in found] == pytest.approx(expected, rel=1e-12)
    assert abs(expected[0] - expected[1]) > 0.1


def test_worlds_of_shares_are_all_looked_at_by_both(tmp_path: Path) -> None:
    """Shares with a contraction that are private in the first world, and not in another."""
    shared_solution(MultiLTE([binomial(8, "0.5")] * 2, "0.5", method="divisible")).save(tmp_path / "plan")
    forgery = plans.Forgery(tmp_path / "plan")
    forgery.plan["problem"] |= {"method": "joint"}
    forgery.plan["problem"].pop("contraction")
    forgery.seal().write(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 0
    world = copy.deepcopy(forgery.plan["problem"]["parties"])
    for party in world:
        party["p"] = "0.9"
    forgery.plan["problem"]["also"] = [{"parties": world}]
    forgery.seal().write(tmp_path / "plan")
    assert both_agree(tmp_path / "plan") == 1


@pytest.mark.parametrize(
    ("own", "code"),
    [
        (None, 0), ({"between": ["0.40", "3/5"], "known": 0}, 0), ([], 2), ({}, 2), ({"known": 0}, 2),
        ({"between": [["0.6", "0.4"], ["2/5", "0.6"]]}, 0), ({"between": ["0.4", "0.5"]}, 2),
    ],
)  # fmt: skip
def test_drawn_inside_all_parties_have_one_observer(own: Any, code: int, tmp_path: Path) -> None:
    """However he is spelled; and nobody is not the same as somebody with a range."""
    watched = Observer(between=("0.4", "0.6"))
    shared_solution(MultiLTE([binomial(3, "0.5")] * 3, "0.9", method="inside", observer=watched)).save(tmp_path / "p")
    forgery = plans.Forgery(tmp_path / "p")
    forgery.plan["problem"]["parties"][1]["observer"] = own
    forgery.seal().write(tmp_path / "p")
    assert both_agree(tmp_path / "p") == code


def trusting(forgery: plans.Forgery) -> None:
    forgery.plan["problem"]["honest"] = 1


def two_parties(forgery: plans.Forgery) -> None:
    forgery.plan["problem"]["parties"].pop()
    forgery.plan["claim"]["parties"].pop()
    forgery.parties.pop()


def rows_missing(outside: str) -> Callable[[plans.Forgery], None]:
    def change(forgery: plans.Forgery) -> None:
        for party in forgery.parties:
            party |= {"inputs": [0, party["inputs"][1] - 1], "weights": party["weights"][:-1], "outside": outside}

    return change


@pytest.mark.parametrize(
    ("change", "code"),
    [(lambda _: None, 0), (trusting, 2), (two_parties, 2), (rows_missing("error"), 2), (rows_missing("clamp"), 1)],
)
def test_who_may_draw_inside_and_of_what(change: Any, code: int, tmp_path: Path) -> None:
    """An honest majority of three, and a row for every total; privacy and errors are not what is at fault."""
    shared_solution(MultiLTE([binomial(3, "0.5")] * 3, "0.7", method="inside")).save(tmp_path / "p")
    forgery = plans.Forgery(tmp_path / "p")
    plans.modest(forgery, two_opinions.Random(0))
    change(forgery)
    forgery.seal().write(tmp_path / "p")
    assert both_agree(tmp_path / "p") == code


@pytest.mark.parametrize("name", ["epsilon", "mae"])
@pytest.mark.parametrize("method", ["joint", "divisible", "seeded", "inside"])
def test_what_is_claimed_of_a_party_must_hold(method: str, name: str, tmp_path: Path) -> None:
    people = plans.PEOPLE if method in ("joint", "divisible") else [binomial(3, "0.5")] * 3
    shared_solution(MultiLTE(people, "0.5", method=method)).save(tmp_path / "p")
    forgery = plans.Forgery(tmp_path / "p")
    claims = [claim for claim in forgery.claims() if claim is not forgery.plan["claim"] and name in claim]
    for claim in claims:
        kept, claim[name] = claim[name], str(float(claim[name]) * 0.999)
        forgery.seal().write(tmp_path / "p")
        assert both_agree(tmp_path / "p") == 1
        claim[name] = kept
    assert claims or method in ("seeded", "inside")


def test_a_common_word_has_at_most_62_bits(tmp_path: Path) -> None:
    shared_solution(MultiLTE([binomial(4, "0.5"), binomial(3, "0.4")], "0.6", method="seeded")).save(tmp_path / "p")
    forgery = plans.Forgery(tmp_path / "p")
    times = (1 << 62) // int(forgery.parties[0]["denominator"])
    for by, code in ((times, 0), (2, 2)):
        for party in forgery.parties:
            party["denominator"] = str(int(party["denominator"]) * by)
            party["cuts"] = [str(int(cut) * by) for cut in party["cuts"]]
        forgery.seal().write(tmp_path / "p")
        assert both_agree(tmp_path / "p") == code


def test_maps_are_numbered_as_they_are_first_chosen(tmp_path: Path) -> None:
    """The same plan with two maps in the other's place is no plan that optdp wrote."""
    shared_solution(MultiLTE([binomial(4, "0.5"), binomial(3, "0.4")], "0.6", method="seeded")).save(tmp_path / "p")
    forgery = plans.Forgery(tmp_path / "p")
    party = forgery.parties[0]
    party["maps"][:2] = party["maps"][1::-1]
    party["choices"] = [{0: 1, 1: 0}.get(choice, choice) for choice in party["choices"]]
    forgery.seal().write(tmp_path / "p")
    assert both_agree(tmp_path / "p") == 2


def test_noise_beside_a_table_needs_a_tail(tmp_path: Path) -> None:
    document = artifact(tail="none")
    document["outside"] = "geometric"
    assert codes(document, tmp_path / "a.json") == (2, 2)


# ---------------------------------------------------------------------- many


@pytest.mark.parametrize(
    "counts",
    [{"artifact": 250, "plan": 60, "order": 150}, {"watched": 150, "watched plan": 60}, {"protocol": 120}],
    ids=["plain", "watched", "protocol"],
)
def test_both_judge_files_forged_in_every_field_alike(counts: dict[str, int], tmp_path: Path) -> None:
    found = two_opinions.tally(tmp_path, 5, counts)
    assert not [name for name in found if "DISAGREE" in name], [
        path.read_text() for path in tmp_path.glob("disagree*.txt")
    ]
    for kind, count in counts.items():
        assert found[f"{kind}: both accept"] >= count // 20
        assert found[f"{kind}: both refuse"] >= count // 20
