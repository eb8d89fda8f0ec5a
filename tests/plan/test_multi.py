"""Problems of several entities: what is refused and in which words, and that a problem reads back as itself."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from optdp import MultiLTE, Population, ProblemError, load
from optdp.loading import built

OFFICE = {"kind": "binomial", "n": 3, "p": "0.5"}
LARGER = {"kind": "binomial", "n": 4, "p": "0.5"}
ONE_PERSON = {"kind": "iid", "n": 1, "pmf": ["0.25", "0.25", "0.25", "0.25"]}
WORLD = {"parties": [OFFICE, OFFICE]}
SPEC: dict[str, Any] = {"kind": "multi-lte", "epsilon": "1", "parties": [OFFICE, OFFICE]}
PAIR = (Population.binomial(3, "0.5"), Population.binomial(3, "0.5"))

REFUSED = [
    ({"parties": [OFFICE]}, "parties must be a list of 2 to 1000 populations", "Found 1."),
    ({"parties": []}, "parties must be a list of 2 to 1000 populations", "Found 0."),
    ({"parties": 5}, "parties: Input should be a valid list", "Found 5."),
    ({"parties": [{"n": 4, "p": "0.5"}, OFFICE]}, "parties.0.kind is missing", "optdp schema"),
    ({"parties": [OFFICE, 5]}, "parties.1: Input should be a valid dictionary", "Found 5."),
    ({"parties": [{"kind": "poisson"}, OFFICE]}, "kind must be one of", "Found 'poisson'."),
    ({"parties": [{**OFFICE, "n": 0}, OFFICE]}, "n must be at least 1 person", "Found 0."),
    ({"honest": 0}, "honest must be a number of parties from 1 to 2", "Found 0."),
    ({"honest": 3}, "honest must be a number of parties from 1 to 2", "Found 3."),
    ({"honest": -1}, "honest must be a number of parties from 1 to 2", "Found -1."),
    ({"honest": True}, "honest: Input should be a valid integer", "Found True."),
    ({"honest": "1.5"}, "honest: Input should be a valid integer", "Found '1.5'."),
    ({"f": [1]}, "f must be one integer for each of the 2 parties", "Found [1]."),
    ({"f": [1, 1, 1]}, "f must be one integer for each of the 2 parties", "Found [1, 1, 1]."),
    ({"f": [1, 0]}, "from 1 to 1000 or their negatives", "Found [1, 0]."),
    ({"f": [1, -1001]}, "from 1 to 1000 or their negatives", "Found [1, -1001]."),
    ({"f": [1, "1.5"]}, "f.1: Input should be a valid integer", "Found '1.5'."),
    ({"f": [True, 1]}, "f.0: Input should be a valid integer", "Found True."),
    ({"divisor": 0}, "divisor must lie between", "Found 0."),
    ({"divisor": "-2.5"}, "divisor must lie between", "Found -2.5."),
    ({"divisor": "1/0"}, "divisor must not have the denominator 0", "Found '1/0'."),
    ({"also": [{"parties": [OFFICE]}]}, "A world of also must have 2 populations", "Found 1."),
    ({"also": [{"parties": [OFFICE, LARGER]}]}, "Party 1 must have the same inputs", "Found 0..4 and 0..1."),
    ({"also": [{"parties": [ONE_PERSON, OFFICE]}]}, "Party 0 must have the same inputs", "Found 0..3 and 0..3."),
    ({"epsilon": 0}, "epsilon must be larger than 0 and at most 100", "Found 0."),
    ({"epsilon": "-0.1"}, "epsilon must be larger than 0 and at most 100", "Found -0.1."),
    ({"epsilon": "100.5"}, "epsilon must be larger than 0 and at most 100", "Found 100.5."),
    ({"epsilon": "1e-13"}, "epsilon must be at least 2^-40", "Found 1e-13."),
    ({"epsilon": "much"}, "epsilon must be a decimal or a fraction", "Found 'much'."),
    ({"fallback_epsilon": "1"}, "fallback_epsilon must be larger than epsilon = 1", "Found 1."),
    ({"fallback_epsilon": "0.5"}, "fallback_epsilon must be larger than epsilon = 1", "Found 0.5."),
    ({"method": "finest"}, "method: Input should be 'best', 'joint',", "Found 'finest'."),
    ({"objective": "max"}, "objective: Input should be 'mae' or 'mse'", "Found 'max'."),
    ({"contraction": "half"}, "contraction: Input should be 'optimal'", "Found 'half'."),
    ({"method": "geometric", "fallback_epsilon": 2}, 'are for method = "joint"', 'Found method = "geometric".'),
    ({"method": "divisible", "also": [WORLD]}, 'are for method = "joint"', 'Found method = "divisible".'),
    ({"kind": "many-lte"}, "kind must be one of single-lte, multi-lte", "Found 'many-lte'."),
]  # fmt: skip


def one_line(error: pytest.ExceptionInfo[ProblemError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 300
    return text


@pytest.mark.parametrize(("changed", "rule", "found"), REFUSED, ids=[json.dumps(case[0])[:50] for case in REFUSED])
def test_refused_in_a_file(changed, rule, found):
    with pytest.raises(ProblemError) as error:
        built({**SPEC, **changed})
    text = one_line(error)
    assert rule in text
    assert found in text


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"people": 5}, "'people'"),
        ({"population": OFFICE}, "'population'"),
        ({"form": "additive"}, "'form'"),
        ({"parties": [{**OFFICE, "colour": "red"}, OFFICE]}, "'parties.0.colour'"),
        ({"also": [{"parties": [OFFICE, OFFICE], "epsilon": 2}]}, "'also.0.epsilon'"),
        ({"also": [{"parties": [OFFICE, {**OFFICE, "m": 2}]}]}, "'also.0.parties.1.m'"),
    ],
)
def test_unknown_keys_are_named(changed, where):
    with pytest.raises(ProblemError) as error:
        built({**SPEC, **changed})
    assert one_line(error).startswith(f"Unknown key {where}.")


def test_missing_keys_are_named():
    for key in ("epsilon", "parties"):
        with pytest.raises(ProblemError) as error:
            built({name: value for name, value in SPEC.items() if name != key})
        assert one_line(error).startswith(f"{key} is missing.")


@pytest.mark.parametrize(
    "worlds",
    [
        [["e-mails", "hours"]],
        [["e-mails", ""]],
        [["e-mails", "e-mails"], ["e-mails", "hours"]],
        [["e-mails", "e-mails"], ["hours", "hours"]],
    ],
)
def test_units_must_agree(worlds):
    parties, *also = [[{**OFFICE, "unit": unit} for unit in units] for units in worlds]
    with pytest.raises(ProblemError) as error:
        built({**SPEC, "parties": parties, "also": [{"parties": world} for world in also]})
    text = one_line(error)
    assert "All parties must count in the same unit" in text
    assert "same unit, as their sums are added. Found " in text
    assert "e-mails" in text


def test_equal_units_change_nothing():
    named = [{**OFFICE, "unit": "e-mails"}] * 2
    assert built({**SPEC, "parties": named}) == built(SPEC)


@pytest.mark.parametrize(
    ("changed", "rule", "found"),
    [
        ({"parties": PAIR[:1]}, "parties must be a list of 2 to 1000 populations", "Found 1."),
        ({"parties": PAIR * 501}, "parties must be a list of 2 to 1000 populations", "Found 1002."),
        ({"parties": ["a", "b"]}, "parties must be a list of populations", "such as"),
        ({"honest": 2.0}, "honest must be a number of parties from 1 to 2", "Found 2.0."),
        ({"honest": False}, "honest must be a number of parties from 1 to 2", "Found False."),
        ({"f": [1.0, 1]}, "f must be one integer for each of the 2 parties", "Found [1.0, 1]."),
        ({"f": [1, True]}, "f must be one integer for each of the 2 parties", "Found [1, True]."),
        ({"f": []}, "f must be one integer for each of the 2 parties", "Found []."),
        ({"epsilon": float("nan")}, "epsilon must be finite", "Found nan."),
        ({"epsilon": None}, "epsilon must be a number", "Found None."),
        ({"divisor": float("inf")}, "divisor must be finite", "Found inf."),
        ({"method": "Joint"}, "method must be one of best, joint, ", "Found 'Joint'."),
        ({"objective": ""}, "objective must be one of mae, mse", "Found ''."),
        ({"contraction": "half"}, "contraction must be one of optimal", "Found 'half'."),
        ({"also": [PAIR, PAIR[:1]]}, "A world of also must have 2 populations", "Found 1."),
    ],
)
def test_refused_in_python(changed, rule, found):
    with pytest.raises(ProblemError) as error:
        MultiLTE(**{"parties": PAIR, "epsilon": 1, **changed})
    text = one_line(error)
    assert rule in text
    assert found in text


PROBLEMS = {
    "plain": MultiLTE(PAIR, "0.5", method="joint"),
    "everything": MultiLTE(
        (Population.iid(3, ["1/3", "1/3", "1/3"]), Population.from_counts([3, 5], 4), Population.binomial(5, "0.2")),
        "1/3",
        honest=2,
        objective="mse",
        fallback_epsilon="2.5",
        f=[1, -2, 1000],
        divisor="7/3",
        also=[
            (
                Population.iid(3, ["0.1", "0.2", "0.7"]),
                Population.independent([["0.9", "0.1"]] * 4),
                Population.binomial(5, 1),
            )
        ],
        method="joint",
    ),
    "others": MultiLTE(
        (Population.from_others(["0.5", "0.25", "0.25"], 2), PAIR[0].conservative("0.5")), 2, method="joint"
    ),
    "conditionals": MultiLTE(
        (Population.from_conditionals([[["1", "0"], ["1/2", "1/2"]]], ["3/4", "1/4"]), PAIR[0]),
        2,
        method="joint",
    ),
    "divisible": MultiLTE(PAIR, 1, honest=1, method="divisible", contraction="shifts"),
    "geometric": MultiLTE(PAIR, "2.5", method="geometric", f=[-1, 2]),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_reads_back_as_itself(name):
    problem = PROBLEMS[name]
    text = json.dumps(problem.spec())
    again = built(json.loads(text))
    assert again == problem
    assert again.spec() == problem.spec()


def test_reads_a_toml_file(tmp_path):
    path = tmp_path / "offices.toml"
    path.write_text(
        'kind = "multi-lte"\ntitle = "two offices"\nepsilon = 0.3\nhonest = 1\nf = [2, -3]\ndivisor = 2.5\n'
        '[[parties]]\nkind = "binomial"\nn = 3\np = 0.1\nunit = "days"\n'
        '[[parties]]\nkind = "iid"\nn = 2\npmf = [0.1, 0.2, 0.7]\nunit = "days"\n'
        '[[also]]\n[[also.parties]]\nkind = "binomial"\nn = 3\np = 0.2\nunit = "days"\n'
        '[[also.parties]]\nkind = "iid"\nn = 2\npmf = [0.2, 0.2, 0.6]\nunit = "days"\n'
    )
    other = [Population.binomial(3, "0.2"), Population.iid(2, ["0.2", "0.2", "0.6"])]
    parties = [Population.binomial(3, "0.1"), Population.iid(2, ["0.1", "0.2", "0.7"])]
    assert load(path) == MultiLTE(parties, "0.3", honest=1, f=[2, -3], divisor="2.5", also=[other])


def test_who_may_give_away_how_much():
    problem = PROBLEMS["everything"]
    assert problem.sensitivity == 1000
    assert problem.epsilon == Fraction(1, 3)
    assert [problem.step_epsilon(i) for i in range(3)] == [Fraction(1, 3000), Fraction(1, 1500), Fraction(1, 3)]
    assert PROBLEMS["plain"].honest == 2
    assert len(problem.worlds) == 2
    assert problem.worlds[0] == problem.parties
