"""Plans of several entities on disk: whole or not at all, and refused when files or figures were tampered with.

An attacker can make every digest anew. So most forgeries here are sealed again, and what is accepted is measured a
second time, from the text of the files, in fractions, by a checker that shares nothing with optdp.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
import os
import random
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from optdp import (
    ArtifactError,
    CertificateError,
    MultiLTE,
    Observer,
    Population,
    ProblemError,
    SharedNoise,
    solve,
    verify_plan,
)
from optdp.artifact import OpenedParty, open_artifact, open_member, verify
from optdp.errors import OptdpError
from optdp.files import atomic
from optdp.plan.aggregate import join
from optdp.plan.divisible_certify import certify_shared
from optdp.plan.format import Member, check_target
from optdp.plan.meeting.roster import Place
from optdp.plan.solve import PlanSolution
from optdp.recheck import recheck
from optdp.recheck.verdict import Refused
from tests.cli.test_cli import optdp
from tests.loopback import made_keys, write_places
from tests.shared import shared_solution
from tests.spelling import as_written

Document = dict[str, Any]
Change = Callable[["Forgery", random.Random], None]

PEOPLE = (Population.binomial(5, "0.5"), Population.binomial(4, "0.5"))


@pytest.fixture(scope="module")
def solved() -> PlanSolution:
    found = shared_solution(MultiLTE(PEOPLE, "0.5", method="joint"))
    assert isinstance(found, PlanSolution)
    return found


@pytest.fixture(scope="module")
def original(solved: PlanSolution, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plans") / "plan"
    solved.save(folder)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return shutil.copytree(original, tmp_path / "plan")


def open_party(path: Path) -> Member:
    return open_artifact(path, OpenedParty).member


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ---------------------------------------------------------------------- forging


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Forgery:
    """The documents of a plan, to be changed and sealed again as optdp would."""

    def __init__(self, folder: Path) -> None:
        self.plan: Document = json.loads((folder / "plan.json").read_text())
        names = [entry["file"] for entry in self.plan["parties"]]
        self.parties: list[Document] = [json.loads((folder / name).read_text()) for name in names]

    def seal(self) -> Forgery:
        """Every digest and the identity of the plan, made anew; the problem of `plan.json` goes to all parties."""
        bare = []
        for party in self.parties:
            party.pop("sha256", None)
            bare.append(digest({**party, "claim": {}, "problem": {}, "provenance": {}}))
        identity = digest({"problem": self.plan["problem"], "tables": bare})
        for party in self.parties:
            party["problem"] = copy.deepcopy(self.plan["problem"])
            if isinstance(party["claim"], dict):
                party["claim"] |= {"plan": identity, "tables": list(bare)}
            party["sha256"] = digest(party)
        self.plan["plan"] = identity
        self.plan["parties"] = [
            {"file": f"party-{i}.json", "sha256": party["sha256"]} for i, party in enumerate(self.parties)
        ]
        return self.close()

    def close(self) -> Forgery:
        """Only the digest of `plan.json` anew."""
        self.plan.pop("sha256", None)
        self.plan["sha256"] = digest(self.plan)
        return self

    def write(self, folder: Path) -> Path:
        for i, document in enumerate([self.plan, *self.parties]):
            path = folder / (f"party-{i - 1}.json" if i else "plan.json")
            path.unlink(missing_ok=True)  # to write over a file takes some file systems long
            path.write_bytes(as_written(document))
        return folder

    def claims(self) -> list[Document]:
        return [self.plan["claim"], *self.plan["claim"]["parties"], *(party["claim"] for party in self.parties)]


def refused(folder: Path, kind: type[OptdpError] = ArtifactError) -> str:
    with pytest.raises(kind) as caught:
        verify_plan(folder)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 1400
    assert caught.value.exit_code == (1 if kind is CertificateError else 2)
    if kind is ArtifactError:
        assert str(folder) in message
    return message


# ---------------------------------------------------------------------- a second opinion


Law = dict[int, int]
"""Whole numbers in proportion to the chances."""


def binomial(n: int, p: Fraction, shift: int = 0) -> Law:
    yes, no = p.numerator, p.denominator - p.numerator
    return {k + shift: math.comb(n, k) * yes**k * no ** (n - k) for k in range(n + 1)}


def added(one: Law, other: Law) -> Law:
    total: Law = {}
    for (a, u), (b, v) in itertools.product(one.items(), other.items()):
        total[a + b] = total.get(a + b, 0) + u * v
    return total


def mean(law: Law, power: int = 1) -> Fraction:
    """Of the absolute value or of its square."""
    return Fraction(sum(weight * abs(s) ** power for s, weight in law.items()), sum(law.values()))


def log(ratio: Fraction) -> Fraction:
    """The logarithm to 45 places."""
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())


def quotient(one: Law, other: Law) -> Fraction | None:
    """The largest quotient in either direction; None if it is infinite."""
    a, b = ({s: weight for s, weight in law.items() if weight} for law in (one, other))
    if a.keys() != b.keys():
        return None
    top = bottom = 1
    of_one, of_other = sum(a.values()), sum(b.values())
    for s, weight in a.items():
        low, high = sorted((weight * of_other, b[s] * of_one))
        if high * bottom > top * low:
            top, bottom = high, low
    return Fraction(top, bottom)


class Real:
    """What a plan of binomial parties with finite tables really gives away and costs, read from its documents."""

    def __init__(self, forgery: Forgery) -> None:
        problem = forgery.plan["problem"]
        assert all(party["tail"] is None for party in forgery.parties)
        self.tables = forgery.parties
        self.f: list[int] = problem.get("f") or [1] * len(self.tables)
        self.honest: int = problem.get("honest") or len(self.tables)
        self.worlds: list[list[tuple[int, Fraction]]] = []
        for world in [problem, *problem.get("also", [])]:
            assert all(set(party) <= {"kind", "n", "p", "unit"} for party in world["parties"])
            assert all(party["kind"] == "binomial" for party in world["parties"])
            self.worlds.append([(party["n"], Fraction(party["p"])) for party in world["parties"]])

    def row(self, i: int, x: int) -> Law:
        table = self.tables[i]
        first, last = table["inputs"]
        assert table["outside"] == "clamp" or first <= x <= last
        row = table["weights"][min(max(x, first), last) - first]
        assert sum(weight for _, weight in row) == int(table["denominator"])
        return dict(row)

    def report(self, i: int, inputs: Law) -> Law:
        law: Law = {}
        for x, chance in inputs.items():
            for s, weight in self.row(i, x).items():
                law[s] = law.get(s, 0) + chance * weight
        return law

    def epsilons(self) -> list[Fraction | None]:
        """For each party the worst over worlds and sets of honest parties; None is infinite."""
        worst: list[Fraction | None] = [Fraction(0)] * len(self.tables)
        for world in self.worlds:
            for chosen in itertools.combinations(range(len(self.tables)), self.honest):
                for i in chosen:
                    n, p = world[i]
                    laws = [self.report(i, binomial(n - 1, p, w)) for w in (0, 1)]
                    for j in chosen:
                        if j != i:
                            laws = [added(law, self.report(j, binomial(*world[j]))) for law in laws]
                    ratio, known = quotient(*laws), worst[i]
                    scale = Fraction(max(map(abs, self.f)), abs(self.f[i]))
                    worst[i] = None if ratio is None or known is None else max(known, log(ratio) * scale)
        return worst

    def ordinary(self, i: int) -> Fraction | None:
        first, last = self.tables[i]["inputs"]
        ratios = [quotient(self.row(i, x), self.row(i, x + 1)) for x in range(first, last)]
        return None if None in ratios else max((log(ratio) for ratio in ratios if ratio), default=Fraction(0))

    def error(self, i: int) -> Law:
        law: Law = {}
        for x, chance in binomial(*self.worlds[0][i]).items():
            for s, weight in self.row(i, x).items():
                e = s - self.f[i] * x
                law[e] = law.get(e, 0) + chance * weight
        return law

    def broken_claims(self, forgery: Forgery) -> list[str]:
        """Every claim that is not true."""
        epsilons, slack = self.epsilons(), Fraction(1, 10**40)
        errors = [self.error(i) for i in range(len(self.tables))]
        total = errors[0]
        for law in errors[1:]:
            total = added(total, law)
        mae, mse = mean(total), mean(total, 2)
        claim, problem = forgery.plan["claim"], forgery.plan["problem"]
        true: list[tuple[str, Fraction | None, Any]] = [("mae", mae, claim["mae"]), ("mse", mse, claim["mse"])]
        if claim.get("lower_bound") is not None and "prices" in forgery.plan["provenance"]:
            value = mae if problem.get("objective", "mae") == "mae" else mse
            true.append(("lower bound", Fraction(claim["lower_bound"]), str(value)))
        for i, epsilon in enumerate(epsilons):
            true += [("epsilon", epsilon, claim["epsilon"]), ("wanted epsilon", epsilon, str(problem["epsilon"]))]
            own = mean(errors[i])
            for source in (claim["parties"][i], forgery.parties[i]["claim"]):
                true += [("own epsilon", epsilon, source["epsilon"]), ("own mae", own, source["mae"])]
                true.append(("ordinary", self.ordinary(i), source["ordinary_epsilon"]))
            if problem.get("fallback_epsilon") is not None:
                true.append(("fallback", self.ordinary(i), str(problem["fallback_epsilon"])))
        return [
            f"{name}: claimed {claimed}, really {'infinite' if real is None else float(real)}"
            for name, real, claimed in true
            if claimed != "infinite" and (real is None or real > Fraction(claimed) + slack)
        ]


def test_the_second_opinion_agrees(solved: PlanSolution, original: Path) -> None:
    forgery = Forgery(original)
    real = Real(forgery)
    assert real.broken_claims(forgery) == []
    found = solved.certificate
    for i, epsilon in enumerate(real.epsilons()):
        proved, ordinary = found.epsilons[i], real.ordinary(i)
        assert epsilon is not None
        assert proved is not None
        assert abs(epsilon - proved) < Fraction(1, 10**30)
        assert ordinary is None or abs(ordinary - (found.ordinary[i] or 0)) < Fraction(1, 10**30)
    forgery.plan["claim"]["epsilon"] = "0.499"
    assert real.broken_claims(forgery)


# ---------------------------------------------------------------------- there and back


def test_there_and_back(solved: PlanSolution, original: Path) -> None:
    assert sorted(contents(original)) == ["party-0.json", "party-1.json", "plan.json"]
    found = verify_plan(original)
    assert found.problem == solved.problem
    assert found.tables == solved.tables
    assert found.certificate == solved.certificate
    assert found.bound_proved
    assert [open_party(original / f"party-{i}.json").party for i in (0, 1)] == [0, 1]
    assert verify_plan(str(original)).identity == found.identity
    text = (original / "plan.json").read_text()
    assert text.isascii()
    assert found.identity in text


def test_sealing_again_changes_nothing(original: Path) -> None:
    forgery, before = Forgery(original), Forgery(original)
    forgery.seal()
    assert forgery.plan == before.plan
    assert forgery.parties == before.parties


@pytest.mark.parametrize(
    "options",
    [
        {"honest": 1, "f": [2, -1], "divisor": "5", "objective": "mse", "fallback_epsilon": "20"},
        {"also": [[Population.binomial(3, "0.6"), Population.binomial(2, "0.3")]], "f": [1, 3]},
    ],
)
def test_every_option_comes_back(options: dict[str, Any], tmp_path: Path) -> None:
    problem = MultiLTE([Population.binomial(3, "0.5"), Population.binomial(2, "0.4")], "1", method="joint", **options)
    solve(problem).save(tmp_path / "plan")
    found = verify_plan(tmp_path / "plan")
    assert found.problem.spec() == problem.spec()
    assert Real(Forgery(tmp_path / "plan")).broken_claims(Forgery(tmp_path / "plan")) == []


# ---------------------------------------------------------------------- the folder


@pytest.mark.parametrize("name", ["plan.json", "party-0.json", "party-1.json"])
def test_every_file_must_be_there(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert name in refused(folder)
    (folder / name).mkdir()
    assert name in refused(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_does_not_hold_up_anybody(folder: Path) -> None:
    for name in ("party-1.json", "plan.json"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        assert "regular file" in refused(folder)


def test_what_is_not_a_folder(original: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "none", Path("\0"), tmp_path / ("x" * 300)):
        with pytest.raises(ArtifactError, match="cannot read"):
            verify_plan(path)
    with pytest.raises(ArtifactError, match="Give the plan's folder"):
        verify_plan(original / "plan.json")


def test_swapped_files(folder: Path) -> None:
    one, other = folder / "party-0.json", folder / "party-1.json"
    a, b = one.read_bytes(), other.read_bytes()
    one.write_bytes(b)
    assert "party-0.json: this is the file of party 1" in refused(folder)
    other.write_bytes(a)
    assert "party-0.json: this is the file of party 1" in refused(folder)


def test_a_file_of_another_plan(folder: Path, original: Path, tmp_path: Path) -> None:
    other = Forgery(original)
    other.plan["problem"]["epsilon"] = "0.6"
    other.plan["provenance"], other.plan["claim"]["lower_bound"] = {}, None
    del other.plan["claim"]["baseline_mae"]
    (tmp_path / "other").mkdir()
    other.seal().write(tmp_path / "other")
    verify_plan(tmp_path / "other")
    for name, words in (("party-1.json", "another plan"), ("plan.json", "another plan")):
        changed = shutil.copytree(folder, tmp_path / f"with-{name}")
        shutil.copy(tmp_path / "other" / name, changed)
        assert words in refused(changed)


def test_a_changed_file_under_old_digests(folder: Path) -> None:
    forgery = Forgery(folder)
    party = forgery.parties[1]
    party["weights"][0][0][1] += 1
    party["weights"][0][1][1] -= 1
    forgery.write(folder)
    assert "party-1.json: sha256" in refused(folder)
    tables = list(party["claim"]["tables"])
    tables[1] = digest(
        {**{k: v for k, v in party.items() if k != "sha256"}, "claim": {}, "problem": {}, "provenance": {}}
    )
    for change, words in (
        ({}, "party-1.json: The table must be the one that the plan has for party 1"),
        ({"tables": tables}, "party-1.json: plan must be the digest of the problem and of all tables"),
        (
            {"plan": digest({"problem": party["problem"], "tables": tables})},
            "party-1.json: this file belongs to another",
        ),
    ):
        party["claim"] |= change
        party.pop("sha256")
        party["sha256"] = digest(party)
        forgery.write(folder)
        assert words in refused(folder)
        forgery.plan["parties"][1]["sha256"] = party["sha256"]
        forgery.close().write(folder)
        assert words in refused(folder)


def test_a_party_file_that_plan_json_does_not_list(folder: Path) -> None:
    forgery = Forgery(folder)
    party = forgery.parties[1]
    party["claim"]["explained"] = "something else"
    party.pop("sha256")
    party["sha256"] = digest(party)
    forgery.write(folder)
    assert "party-1.json: the file is not the one that plan.json lists" in refused(folder)


def test_links_inside_the_folder_are_followed_to_files_only(folder: Path, tmp_path: Path) -> None:
    (folder / "party-0.json").rename(tmp_path / "elsewhere.json")
    (folder / "party-0.json").symlink_to(tmp_path / "elsewhere.json")
    verify_plan(folder)
    (folder / "party-0.json").unlink()
    (folder / "party-0.json").symlink_to("party-0.json")
    assert "party-0.json" in refused(folder)


TEXTS: dict[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "cut": lambda text: text[: len(text) // 2],
    "more": lambda text: text + "{}",
    "twice": lambda text: text.replace('"version": 1', '"version": 1, "version": 1'),
    "deep": lambda text: text.replace('"claim": {', '"claim": {"a": ' + "[" * 41 + "]" * 41 + ", "),
    "very-deep": lambda text: "[" * 1_000_000,
    "nan": lambda text: text.replace('"version": 1', '"version": NaN'),
    "infinite": lambda text: text.replace('"version": 1', '"version": 1e999'),
    "huge": lambda text: text.replace('"version": 1', '"version": 1' + "0" * 2000),
    "very-huge": lambda text: "9" * 1_000_000,
    "list": lambda text: "[]",
    "null": lambda text: "null",
    "claim": lambda text: text.replace('"epsilon": "0.4', '"epsilon": "0.3', 1),
    "space": lambda text: text.replace('"meaning": "epsilon', '"meaning": " epsilon', 1),
    "half": lambda text: text.replace('"claim": {', '"claim": {"a": "\\ud800", '),
}


@pytest.mark.parametrize("name", ["plan.json", "party-0.json"])
@pytest.mark.parametrize("change", TEXTS)
def test_changed_text(folder: Path, name: str, change: str) -> None:
    path = folder / name
    text = path.read_text()
    changed = TEXTS[change](text)
    assert changed != text
    path.write_text(changed)
    assert name in refused(folder)


def test_not_text_at_all(folder: Path) -> None:
    for name, data in (("plan.json", b"\xff\xfe\0"), ("party-1.json", b"PK\x03\x04")):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(data)
        assert name in refused(folder)
        (folder / name).write_bytes(before)


KEYS = ("format", "version", "plan", "claim", "problem", "provenance", "parties")
CHANGES: dict[str, tuple[Callable[[Document], object], str]] = {
    "extra": (lambda plan: plan.update(extra=1), "8 keys"),
    **{f"no-{key}": (methodcaller("pop", key), "must be" if key in KEYS[:2] else "8 keys") for key in KEYS},
    "format": (lambda plan: plan.update(format="optdp/noise-matrix"), "format"),
    "version-2": (lambda plan: plan.update(version=2), "version"),
    "version-true": (lambda plan: plan.update(version=True), "version"),
    "version-float": (lambda plan: plan.update(version=1.0), "version"),
    "identity": (lambda plan: plan.update(plan="0" * 64), "another plan"),
    "identity-null": (lambda plan: plan.update(plan=None), "another plan"),
    "claim-list": (lambda plan: plan.update(claim=[]), "claim must be a table"),
    "problem-text": (lambda plan: plan.update(problem="x"), "problem must be a table"),
    "provenance-null": (lambda plan: plan.update(provenance=None), "provenance must be a table"),
    "parties-none": (lambda plan: plan.update(parties=[]), "2 parties"),
    "parties-table": (lambda plan: plan.update(parties={}), "list party-0.json"),
    "parties-one": (lambda plan: plan["parties"].pop(), "2 parties"),
    "parties-three": (lambda plan: plan["parties"].append({"file": "party-2.json", "sha256": "0"}), "2 parties"),
    "parties-turned": (lambda plan: plan["parties"].reverse(), "list party-0.json"),
    "party-text": (lambda plan: plan["parties"].__setitem__(0, "party-0.json"), "list party-0.json"),
    "party-extra": (lambda plan: plan["parties"][0].update(size=1), "list party-0.json"),
    "party-no-digest": (lambda plan: plan["parties"][0].pop("sha256"), "list party-0.json"),
    "party-null-digest": (lambda plan: plan["parties"][0].update(sha256=None), "not the one that plan.json lists"),
    "party-elsewhere": (lambda plan: plan["parties"][0].update(file="../plan/party-0.json"), "list party-0.json"),
    "party-absolute": (lambda plan: plan["parties"][0].update(file="/etc/passwd"), "list party-0.json"),
    "problem-single": (
        lambda plan: plan.update(
            problem={
                "kind": "single-lte",
                "epsilon": "1",
                "population": {"kind": "binomial", "n": 2, "p": "1/2"},
            }
        ),
        "kind must be 'multi-lte'",
    ),
    "problem-unknown": (lambda plan: plan["problem"].update(kind="other"), "kind"),
    "problem-three": (lambda plan: plan["problem"]["parties"].append(plan["problem"]["parties"][0]), "3 parties"),
    "problem-other": (lambda plan: plan["problem"].update(epsilon="0.6"), "another plan"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_rule_of_plan_json_is_kept(folder: Path, name: str) -> None:
    change, words = CHANGES[name]
    forgery = Forgery(folder)
    change(forgery.plan)
    forgery.close().write(folder)
    assert words in refused(folder)


@pytest.mark.parametrize("value", [None, 5, "", "0" * 64, ["0"]])
def test_the_digest_of_plan_json(folder: Path, value: Any) -> None:
    forgery = Forgery(folder)
    forgery.plan["sha256"] = value
    forgery.write(folder)
    assert "plan.json: sha256" in refused(folder)


@pytest.mark.parametrize("party", [1, 2, -1, True, 0.0, "0", None])
def test_the_number_of_a_party(folder: Path, party: Any) -> None:
    forgery = Forgery(folder)
    forgery.parties[0]["claim"]["party"] = party
    forgery.seal().write(folder)
    assert "party-0.json" in refused(folder)


@pytest.mark.parametrize("identity", [None, "", "0" * 63, "G" * 64, "A" * 64, 5, "0" * 64 + "\n"])
def test_the_identity_in_a_party_file(folder: Path, identity: Any) -> None:
    forgery = Forgery(folder)
    party = forgery.parties[0]
    party["claim"]["plan"] = identity
    party.pop("sha256")
    party["sha256"] = digest(party)
    forgery.plan["parties"][0]["sha256"] = party["sha256"]
    forgery.close().write(folder)
    assert "party-0.json: plan must be 64 hexadecimal digits" in refused(folder)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where everything in a document is, but no more than two of a list's entries."""
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from leaves(item, (*path, key))


def put(document: Document, path: tuple[str | int, ...], value: Any) -> None:
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value


def test_wrong_types_everywhere(original: Path, folder: Path) -> None:
    """Every value replaced by one of every type, with all digests right: refused with a file's name, or harmless."""
    values: tuple[Any, ...] = (None, True, 10**1200, 0.5, "", "x\n\x1b[31m", "-1e1000", "infinite", [], {"a": [1]})
    accepted = count = 0
    for which in range(2):
        start = Forgery(original)
        for path in leaves(start.parties[0] if which else start.plan):
            if path[-1] in ("meaning", "explained"):
                continue
            for value in values:
                forgery = Forgery(original)
                put(forgery.parties[0] if which else forgery.plan, path, value)
                if path[0] in ("sha256", "plan", "parties"):
                    forgery.close()
                elif path[0] == "claim" and {"plan", "party", "tables"} & {*path}:
                    forgery.parties[0].pop("sha256", None)
                    forgery.parties[0]["sha256"] = digest(forgery.parties[0])
                    forgery.close()
                else:
                    forgery.seal()
                forgery.write(folder)
                count += 1
                try:
                    verify_plan(folder)
                except CertificateError:
                    pass
                except OptdpError as error:
                    assert isinstance(error, ArtifactError), (path, value, error)  # noqa: PT017 - some are harmless
                    message = str(error)
                    assert str(folder) in message, (path, value, message)
                    assert message.isprintable()
                    assert len(message) < 1400
                else:
                    accepted += 1
                    if path[0] != "provenance":
                        assert Real(forgery).broken_claims(forgery) == [], (path, value)
    assert count > 600
    assert accepted < count / 2


# ---------------------------------------------------------------------- claims


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        (("epsilon",), "0.49", CertificateError),
        (("mae",), "0.1", CertificateError),
        (("mse",), "0.1", CertificateError),
        (("baseline_mae",), "1", CertificateError),
        (("baseline_mae",), "9", CertificateError),
        (("lower_bound",), "5", CertificateError),
        (("parties", 0, "epsilon"), "0.4", CertificateError),
        (("parties", 1, "ordinary_epsilon"), "3", CertificateError),
        (("parties", 1, "mae"), "0", CertificateError),
        (("epsilon",), 0.5, ArtifactError),
        (("epsilon",), "infinite", ArtifactError),
        (("epsilon",), None, ArtifactError),
        (("epsilon",), ["0.5"] * 100_000, ArtifactError),
        (("mae",), "nan", ArtifactError),
        (("mae",), "1e999", ArtifactError),
        (("lower_bound",), 5, ArtifactError),
        (("lower_bound",), "-1e1000", ArtifactError),
        (("parties",), None, ArtifactError),
        (("parties",), [], ArtifactError),
        (("parties", 0), "0.5", ArtifactError),
        (("parties", 0, "mae"), {}, ArtifactError),
    ],
)
def test_false_claims(folder: Path, path: tuple[str | int, ...], value: Any, kind: type[OptdpError]) -> None:
    forgery = Forgery(folder)
    put(forgery.plan["claim"], path, value)
    forgery.seal().write(folder)
    message = refused(folder, kind)
    assert kind is CertificateError or "plan.json" in message


@pytest.mark.parametrize(("key", "value"), [("epsilon", "0.4"), ("mae", "0.01"), ("ordinary_epsilon", "1")])
def test_false_claims_of_a_party(folder: Path, key: str, value: str) -> None:
    forgery = Forgery(folder)
    forgery.parties[1]["claim"][key] = value
    forgery.seal().write(folder)
    refused(folder, CertificateError)
    forgery.parties[1]["claim"][key] = 1
    forgery.seal().write(folder)
    assert "party-1.json" in refused(folder)


def test_a_consistent_plan_that_is_not_private(folder: Path) -> None:
    """Both tables say the truth; all digests and the identity fit; every claim but epsilon's is modest."""
    forgery = Forgery(folder)
    for party in forgery.parties:
        for x, row in enumerate(party["weights"]):
            row[:] = [[x, int(party["denominator"])]]
    for claim in forgery.claims():
        loose = {"mae": "9", "mse": "9", "ordinary_epsilon": "infinite"}
        claim.update({name: value for name, value in loose.items() if name in claim})
    forgery.seal().write(folder)
    assert "epsilon" in refused(folder, CertificateError)


def test_one_entry_moved_is_enough(folder: Path) -> None:
    forgery = Forgery(folder)
    row = forgery.parties[0]["weights"][0]
    least, most = min(row, key=lambda pair: pair[1]), max(row, key=lambda pair: pair[1])
    least[1], most[1] = least[1] * 50, most[1] - least[1] * 49
    for claim in forgery.claims():
        loose = {"mae": "9", "mse": "99", "ordinary_epsilon": "infinite"}
        claim.update({name: value for name, value in loose.items() if name in claim})
    forgery.seal().write(folder)
    assert Real(forgery).broken_claims(forgery)
    refused(folder, CertificateError)


def test_fewer_honest_parties_are_another_problem(folder: Path) -> None:
    forgery = Forgery(folder)
    forgery.plan["problem"]["honest"] = 1
    for claim in forgery.claims():
        claim.update(lower_bound=None)
    forgery.seal().write(folder)
    assert "epsilon" in refused(folder, CertificateError)


# ---------------------------------------------------------------------- a thousand forgeries


def some_row(forgery: Forgery, chance: random.Random) -> list[list[int]]:
    row: list[list[int]] = chance.choice(chance.choice(forgery.parties)["weights"])
    return row


def move_mass(forgery: Forgery, chance: random.Random) -> None:
    row = some_row(forgery, chance)
    if len(row) > 1:
        source, target = chance.sample(row, 2)
        moved = max(1, chance.choice([1, source[1] // 10**6, source[1] // 100, source[1] // 2, source[1] - 1]))
        if moved < source[1]:
            source[1] -= moved
            target[1] += moved


def drop_entry(forgery: Forgery, chance: random.Random) -> None:
    row = some_row(forgery, chance)
    if len(row) > 1:
        gone = row.pop(chance.randrange(len(row)))
        chance.choice(row)[1] += gone[1]


def move_output(forgery: Forgery, chance: random.Random) -> None:
    row = some_row(forgery, chance)
    pair = chance.choice(row)
    pair[0] += chance.choice([-1, 1])
    row.sort()


def swap_rows(forgery: Forgery, chance: random.Random) -> None:
    rows = chance.choice(forgery.parties)["weights"]
    i, j = chance.sample(range(len(rows)), 2)
    rows[i], rows[j] = rows[j], rows[i]


def same_rows(forgery: Forgery, chance: random.Random) -> None:
    """All rows alike: private, and useless."""
    party = chance.choice(forgery.parties)
    party["weights"] = [copy.deepcopy(chance.choice(party["weights"]))] * len(party["weights"])


def swap_parties(forgery: Forgery, chance: random.Random) -> None:
    forgery.parties.reverse()
    for i, party in enumerate(forgery.parties):
        party["claim"]["party"] = i
    if chance.random() < 0.5:
        forgery.plan["problem"]["parties"].reverse()


def shift_outputs(forgery: Forgery, chance: random.Random) -> None:
    """No observer learns anything from a constant."""
    party, by = chance.choice(forgery.parties), chance.choice([-3, 1, 2])
    party["outputs"] = [s + by for s in party["outputs"]]
    party["weights"] = [[[s + by, weight] for s, weight in row] for row in party["weights"]]


def widen_outputs(forgery: Forgery, chance: random.Random) -> None:
    party = chance.choice(forgery.parties)
    party["outputs"] = [party["outputs"][0] - chance.randrange(4), party["outputs"][1] + chance.randrange(-1, 4)]


def spread_outputs(forgery: Forgery, chance: random.Random) -> None:
    """Outputs of one party times 30: the sum tells them apart."""
    party = chance.choice(forgery.parties)
    party["outputs"] = [s * 30 for s in party["outputs"]]
    party["weights"] = [[[s * 30, weight] for s, weight in row] for row in party["weights"]]


def scale(forgery: Forgery, chance: random.Random) -> None:
    party, by = chance.choice(forgery.parties), chance.choice([2, 2**60, 3])
    party["denominator"] = str(int(party["denominator"]) * by)
    if chance.random() < 0.8:
        party["weights"] = [[[s, weight * by] for s, weight in row] for row in party["weights"]]


def fewer_inputs(forgery: Forgery, chance: random.Random) -> None:
    party = chance.choice(forgery.parties)
    first, last = party["inputs"]
    low = chance.randrange(first, last + 1)
    high = chance.randrange(low, last + 1)
    party["inputs"], party["weights"] = [low, high], party["weights"][low - first : high - first + 1]
    party["outside"] = chance.choice(["clamp", "clamp", "error"])


def shift_inputs(forgery: Forgery, chance: random.Random) -> None:
    party, by = chance.choice(forgery.parties), chance.choice([-1, 1])
    party["inputs"] = [x + by for x in party["inputs"]]
    if chance.random() < 0.5:
        row = copy.deepcopy(party["weights"][0 if by > 0 else -1])
        party["weights"] = [row, *party["weights"][:-1]] if by > 0 else [*party["weights"][1:], row]
        party["inputs"] = [x - by for x in party["inputs"]]


def change_claim(forgery: Forgery, chance: random.Random) -> None:
    claim = chance.choice(forgery.claims())
    key = chance.choice(["epsilon", "mae", "mse", "ordinary_epsilon", "baseline_mae", "lower_bound"])
    if isinstance(claim.get(key), str) and claim[key] != "infinite":
        claim[key] = str(float(claim[key]) * chance.choice([0.5, 0.99, 1.01, 2]))


def change_epsilon(forgery: Forgery, chance: random.Random) -> None:
    epsilon = chance.choice(["0.1", "0.49", "0.6", "1", "3", "10", "1/2"])
    forgery.plan["problem"]["epsilon"] = epsilon
    if chance.random() < 0.5:
        for claim in forgery.claims():
            claim["epsilon"] = epsilon


def change_people(forgery: Forgery, chance: random.Random) -> None:
    party = chance.choice(forgery.plan["problem"]["parties"])
    if chance.random() < 0.5:
        party["n"] += chance.choice([-1, 1, 1, 4])
    else:
        party["p"] = chance.choice(["0", "0.01", "0.3", "0.39", "0.499", "0.5", "2/3", "0.99", "1"])


def change_structure(forgery: Forgery, chance: random.Random) -> None:
    problem = forgery.plan["problem"]
    match chance.randrange(7):
        case 0:
            problem["honest"] = chance.choice([0, 1, 2, 3])
        case 1:
            problem["f"] = chance.choice([[2, 1], [1, -1], [3, 2], [1, 1], [0, 1], [1]])
        case 2:
            problem["objective"] = "mse"
        case 3:
            problem["divisor"] = chance.choice(["10", "1/3", "0"])
        case 4:
            problem["fallback_epsilon"] = chance.choice(["5", "15", "30", "90"])
        case 5:
            world = copy.deepcopy(problem["parties"])
            chance.choice(world)["p"] = chance.choice(["0.45", "0.5", "0.55", "0.9"])
            problem["also"] = [{"parties": world}]
        case 6:
            problem["method"] = chance.choice(["divisible", "geometric", "joint"])


def change_tail(forgery: Forgery, chance: random.Random) -> None:
    party = chance.choice(forgery.parties)
    party["tail"] = chance.choice(
        [
            {"law": "geometric", "q": ["3", "4"]},
            {
                "law": "sgdl", "q": ["3", "4"], "beta": ["1", "2"], "factor": 1, "contraction": None,
                "contraction_denominator": "1",
            },
        ]
    )  # fmt: skip
    party["outside"] = chance.choice(["geometric", "clamp"])


STRUCTURED: tuple[Change, ...] = (
    move_mass, move_mass, move_mass, drop_entry, move_output, swap_rows, same_rows, swap_parties, shift_outputs,
    widen_outputs, spread_outputs, scale, fewer_inputs, shift_inputs, change_claim, change_claim, change_epsilon,
    change_epsilon, change_people, change_structure, change_structure, change_tail,
)  # fmt: skip


def modest(forgery: Forgery, chance: random.Random) -> None:
    """Claims that are true of almost anything, so that privacy alone can refuse; often those of privacy too."""
    wide = chance.random() < 0.5
    for claim in forgery.claims():
        loose = {"mae": "1000", "mse": "100000", "ordinary_epsilon": "infinite"}
        claim.update({name: value for name, value in loose.items() if name in claim})
        claim.pop("baseline_mae", None)  # which must be right
        if "lower_bound" in claim:
            claim["lower_bound"] = None
        if wide:
            claim["epsilon"] = forgery.plan["problem"]["epsilon"]


def flip_bytes(forgery: Forgery, chance: random.Random) -> None:
    """Bytes changed in one file; if it can still be read, it is sealed again."""
    which = chance.randrange(-1, len(forgery.parties))
    text = bytearray(json.dumps(forgery.plan if which < 0 else forgery.parties[which]).encode())
    for _ in range(chance.randrange(1, 3)):
        text[chance.randrange(len(text))] ^= 1 << chance.randrange(7)
    document = json.loads(text)
    if which < 0:
        forgery.plan = document
    else:
        forgery.parties[which] = document


def judged(forgery: Forgery, folder: Path, broken: Callable[[Forgery], list[str]]) -> bool:
    """Whether a forgery is accepted; then it must be true."""
    forgery.write(folder)
    try:
        verify_plan(folder)
    except OptdpError as error:
        fine = isinstance(error, ArtifactError | CertificateError) and str(error).isprintable()
        assert fine, error  # noqa: PT017 - to refuse is one of two right answers
        return False
    assert broken(forgery) == []
    return True


def test_a_thousand_forgeries(original: Path, folder: Path) -> None:
    """Nothing is accepted whose real epsilon, or any other figure, is above its claim."""
    chance = random.Random(20260701)
    accepted = count = bytewise = 0
    while count < 1000:
        forgery = Forgery(original)
        if count % 4 == 3:
            try:
                flip_bytes(forgery, chance)
                forgery.seal()
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                bytewise += 1
                assert bytewise < 3000
                continue  # no JSON any more, or no document: other tests have these
        else:
            for _ in range(chance.choice([1, 1, 2])):
                chance.choice(STRUCTURED)(forgery, chance)
            if chance.random() < 0.7:
                modest(forgery, chance)
            forgery.seal()
        accepted += judged(forgery, folder, lambda forgery: Real(forgery).broken_claims(forgery))
        count += 1
    assert 150 < accepted < 700


def test_cut_and_flipped_files_under_old_digests(original: Path, folder: Path) -> None:
    chance = random.Random(7)
    for turn in range(300):
        name = chance.choice(["plan.json", "party-0.json", "party-1.json"])
        data = bytearray((original / name).read_bytes())
        if turn % 3:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        else:
            del data[chance.randrange(len(data) - 2) :]
        (folder / name).write_bytes(data)
        try:
            verify_plan(folder)
        except ArtifactError as error:
            assert name in str(error)  # noqa: PT017 - a space may become a tab
        else:
            assert json.loads(data) == json.loads((original / name).read_bytes())
        (folder / name).write_bytes((original / name).read_bytes())


# ---------------------------------------------------------------------- sizes


def constant(outputs: tuple[int, int] = (0, 0), rows: list[list[list[int]]] | None = None, **more: Any) -> Document:
    """A table that says nothing about the input."""
    return {
        "inputs": [0, 0], "outputs": list(outputs), "denominator": "2", "outside": "clamp", "tail": None,
        "weights": rows or [[[0, 2]]], **more,
    }  # fmt: skip


def share(q: tuple[str, str] = ("3", "4"), factor: int = 1, contraction: Any = None, denominator: int = 1) -> Document:
    return {
        "law": "sgdl", "q": list(q), "beta": ["1", "2"], "factor": factor, "contraction": contraction,
        "contraction_denominator": str(denominator),
    }  # fmt: skip


WIDE = 10**8
LONG = 1 << 13
SIZES: dict[str, tuple[int, Document, Document]] = {
    "outputs": (5, {}, constant((0, WIDE))),
    "outputs-used": (5, {}, constant((0, WIDE), [[[0, 1], [WIDE, 1]]])),
    "outputs-all": (5, {}, constant((-(2**53), 2**53))),
    "coefficients": (40_000, {"f": [1000, 1000]}, constant()),
    "long-rows": (40_000, {}, constant((0, LONG - 1), [[[s, 1] for s in range(LONG)]], denominator=str(LONG))),
    "far-shares": (
        1, {}, constant((-WIDE, 1 - WIDE), [[[-WIDE, 1], [1 - WIDE, 1]]], outside="geometric", tail=share())
    ),
    "wide-shares": (1, {}, constant((0, WIDE), [[[0, 2]]], outside="geometric", tail=share())),
    "people": (10**9, {}, constant()),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_small_files_that_ask_for_much(folder: Path, name: str) -> None:
    people, more, table = SIZES[name]
    forgery = Forgery(folder)
    forgery.plan["provenance"] = {}
    forgery.plan["problem"]["parties"] = [{"kind": "binomial", "n": people, "p": "0.5"}] * 2
    forgery.plan["problem"].update(more)
    for party in forgery.parties:
        party.update(copy.deepcopy(table))
    for claim in forgery.claims():
        claim.update(mae="1e300", mse="1e300", ordinary_epsilon="infinite")
    refused(forgery.seal().write(folder))


# ---------------------------------------------------------------------- writing


@pytest.fixture(scope="module")
def three() -> PlanSolution:
    found = shared_solution(MultiLTE([Population.binomial(2, "0.5")] * 3, "1", method="geometric"))
    assert isinstance(found, PlanSolution)
    return found


def test_an_earlier_plan_is_replaced(solved: PlanSolution, three: PlanSolution, tmp_path: Path) -> None:
    target = tmp_path / "plan"
    target.mkdir()
    three.save(target)
    assert len(contents(target)) == 4
    solved.save(target)
    assert sorted(contents(target)) == ["party-0.json", "party-1.json", "plan.json"]
    verify_plan(target)
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


FOREIGN: dict[str, Callable[[Path], object]] = {
    "notes": lambda folder: (folder / "notes.txt").write_text("mine"),
    "hidden": lambda folder: (folder / ".git").mkdir(),
    "similar": lambda folder: (folder / "party-x.json").write_text("{}"),
    "folder": lambda folder: (folder / "party-7.json").mkdir(),
}


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_not_touched(
    solved: PlanSolution, original: Path, tmp_path: Path, name: str, earlier: bool
) -> None:
    target = tmp_path / "plan"
    if earlier:
        shutil.copytree(original, target)
    else:
        target.mkdir()
    FOREIGN[name](target)
    before = contents(target)
    for act in (partial(check_target, solved.problem), solved.save):
        with pytest.raises(ProblemError, match="other files"):
            act(target)
    assert contents(target) == before
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"resource_changes": []}', "plan"])
def test_somebody_elses_plan_json(solved: PlanSolution, tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ProblemError, match="other files"):
        solved.save(tmp_path)
    assert contents(tmp_path) == {"plan.json": text.encode()}


def failing(at: int, error: BaseException, real: Callable[..., Any]) -> Callable[..., Any]:
    """A function that fails at its `at`-th call."""
    count = itertools.count(1)

    def act(*args: Any) -> Any:
        if next(count) == at:
            raise error
        return real(*args)

    return act


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize(
    ("where", "at", "error"),
    [
        ("write_bytes", 1, ProblemError("cannot write: disk full")),
        ("write_bytes", 3, ProblemError("cannot write: disk full")),
        ("write_bytes", 2, KeyboardInterrupt()),
        ("write_bytes", 2, MemoryError()),
        ("rename", 1, OSError(28, "No space left on device")),
        ("rename", 2, OSError(5, "Input/output error")),
        ("rename", 2, KeyboardInterrupt()),
        ("mkdir", 1, PermissionError(13, "Permission denied")),
    ],
)
def test_a_failed_write_leaves_what_was_there(
    three: PlanSolution, original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, at: int,
    error: BaseException, earlier: bool,
) -> None:  # fmt: skip
    target = tmp_path / "plan"
    if earlier:
        shutil.copytree(original, target)
    elif where == "rename" and at == 2:
        at = 1
    with monkeypatch.context() as patch:
        if where == "write_bytes":
            patch.setattr(atomic, "write_bytes", failing(at, error, atomic.write_bytes))
        elif where == "rename":
            patch.setattr(atomic, "exchange", lambda *_: False)  # as where names cannot change places
            patch.setattr(os, "rename", failing(at, error, os.rename))
        else:
            patch.setattr(Path, "mkdir", failing(at, error, Path.mkdir))
        with pytest.raises(ProblemError if isinstance(error, OSError) else type(error)) as caught:
            three.save(target)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == (["plan"] if earlier else [])
    if earlier:
        assert contents(target) == contents(original)
        verify_plan(target)


@pytest.mark.parametrize("at_once", [False, True])
def test_a_file_put_there_while_writing_is_kept(
    solved: PlanSolution, original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    target = shutil.copytree(original, tmp_path / "plan")
    usual = atomic.exchange

    def late(one: Path, other: Path) -> bool:
        (target / "late.txt").write_text("mine")
        return at_once and usual(one, other)

    monkeypatch.setattr(atomic, "exchange", late)
    for _ in range(2):  # the second one finds what the first left
        solved.save(target)
        monkeypatch.undo()
        assert sorted(contents(target)) == ["party-0.json", "party-1.json", "plan.json"]
        assert [data for name, data in contents(tmp_path).items() if name.endswith("late.txt")] == [b"mine"]


def test_links(solved: PlanSolution, original: Path, tmp_path: Path) -> None:
    target = shutil.copytree(original, tmp_path / "real")
    link = tmp_path / "link"
    for aim in (target, tmp_path / "nowhere", target / "plan.json"):
        link.symlink_to(aim)
        with pytest.raises(ProblemError, match="written to a folder"):
            solved.save(link)
        assert link.is_symlink()
        link.unlink()
    assert contents(target) == contents(original)
    (tmp_path / "door").symlink_to(tmp_path)
    solved.save(tmp_path / "door" / "new")
    verify_plan(tmp_path / "new")


def test_targets_that_cannot_be(
    solved: PlanSolution, original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    for target, words in (
        (tmp_path / "file", "written to a folder"),
        (tmp_path / "file" / "plan", "name that can be written|to the folder"),
        (tmp_path / "no" / "where", "to the folder"),
        (tmp_path / ("x" * 300), "name that can be written"),
        (tmp_path / "a\0b", "name that can be written"),
        (Path("/"), "other files|mounted"),
        (Path("/proc"), "other files|mounted"),
    ):
        with pytest.raises(ProblemError, match=words) as caught:
            solved.save(target)
        assert "\n" not in str(caught.value)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for target in (Path("."), tmp_path / "here"):
        with pytest.raises(ProblemError, match="current folder"):
            solved.save(target)
    monkeypatch.undo()
    earlier = shutil.copytree(original, tmp_path / "plan")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(ProblemError, match="to the folder"):
        solved.save(earlier)
    assert contents(earlier) == contents(original)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_parent_that_is_read_only(solved: PlanSolution, tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    parent.mkdir()
    parent.chmod(0o555)
    try:
        with pytest.raises(ProblemError, match="to the folder"):
            solved.save(parent / "plan")
        assert list(parent.iterdir()) == []
    finally:
        parent.chmod(0o755)


# ---------------------------------------------------------------------- one party's file


def test_one_file_is_not_verified(original: Path) -> None:
    with pytest.raises(ArtifactError, match=r"party-0\.json is one party's file of a plan.*private only as a whole"):
        verify(original / "party-0.json")


def test_one_file_suffices_to_take_part(original: Path, tmp_path: Path) -> None:
    """No other file is even looked for: what is left to refuse are the arguments."""
    shutil.copy(original / "party-1.json", tmp_path)
    member = open_party(tmp_path / "party-1.json")
    assert member.party == 1
    assert len(member.table.sample(2, 10)) == 10
    keys = made_keys(tmp_path, 3)
    places = [Place("localhost", 7001 + i, key.fingerprint) for i, key in enumerate(keys)]
    for value, given, kind, words in (
        (2, places[:1], ProblemError, "the 2 parties of the plan. Found 1"),
        (2, places, ProblemError, "the 2 parties of the plan. Found 3"),
        (77, places[:2], ProblemError, r"0\.\.4"),
        (-77, places[:2], ProblemError, r"0\.\.4"),
    ):
        with pytest.raises(kind, match=words) as caught:
            join(member, value, run="r", places=given, key=keys[1], timeout=1)
        said = str(caught.value).replace(str(tmp_path), "")
        assert "77" not in said
        assert "\n" not in said
    assert not (tmp_path / "party-1.runs").exists()


def test_aggregate_takes_the_file_of_its_party(original: Path, tmp_path: Path) -> None:
    shutil.copy(original / "party-1.json", tmp_path / "party-0.json")
    write_places(tmp_path / "parties.toml", made_keys(tmp_path, 2))
    command = ["aggregate", tmp_path, "--input", 2, "--run", "r", "--key", tmp_path / "party-0.pem", "--party"]
    wrong, missing = optdp(*command, 0), optdp(*command, 1)
    assert (wrong.returncode, missing.returncode) == (2, 2)
    assert "this is the file of party 1, not of party 0" in wrong.stderr
    assert "cannot read" in missing.stderr


def without_noise(party: Document) -> None:
    """Every input is reported as it is."""
    first, last = party["inputs"]
    party["weights"] = [[[x, int(party["denominator"])]] for x in range(first, last + 1)]


@pytest.mark.parametrize("beside", ["all", "plan.json", "nothing"])
@pytest.mark.parametrize("sealed", ["its own digest", "its list of tables", "the whole plan"])
def test_a_table_without_noise_is_refused(original: Path, tmp_path: Path, beside: str, sealed: str) -> None:
    """Whatever an attacker seals again: the file does not fit its plan, or fits another plan than the others have, or
    its plan is not private."""
    forgery, party = Forgery(original), Forgery(original).parties[0]
    if sealed == "the whole plan":
        without_noise(forgery.parties[0])
        party = forgery.seal().parties[0]
    else:
        without_noise(party)
        party.pop("sha256")
        if sealed == "its list of tables":
            bare = digest({**party, "claim": {}, "problem": {}, "provenance": {}})
            tables = [bare, *party["claim"]["tables"][1:]]
            party["claim"] |= {"tables": tables, "plan": digest({"problem": party["problem"], "tables": tables})}
        party["sha256"] = digest(party)
        forgery.parties[0] = party
    folder = tmp_path / "plan"
    folder.mkdir()
    forgery.write(folder)
    for path in list(folder.iterdir()):
        keep = {"all": True, "plan.json": path.name != "party-1.json", "nothing": path.name == "party-0.json"}[beside]
        if not keep:
            path.unlink()
    with pytest.raises((ArtifactError, CertificateError)):
        open_member(folder, 0)


def test_what_one_file_cannot_show_is_left_to_the_meeting(original: Path, tmp_path: Path) -> None:
    """A forger who also claims an infinite ordinary epsilon makes a file that is right by itself. Its identity is
    another one than that of the plan, so that no other party adds anything to its report."""
    forgery = Forgery(original)
    without_noise(forgery.parties[0])
    for claim in (forgery.parties[0]["claim"], forgery.plan["claim"]["parties"][0]):
        claim["ordinary_epsilon"] = "infinite"
    forgery.seal().write(tmp_path)
    with pytest.raises(CertificateError):
        open_member(tmp_path, 0)
    (tmp_path / "plan.json").unlink()
    (tmp_path / "party-1.json").unlink()
    member, whole = open_member(tmp_path, 0)
    assert whole is None
    assert member.identity != open_member(original, 0)[0].identity


@pytest.mark.parametrize("options", [
    {"method": "inside"}, {"method": "inside", "honest": 2}, {"method": "joint", "honest": 1},
    {"method": "joint", "honest": 1, "adjacency": "all"}, {"method": "alone", "f": [1, 2, 1]},
    {"method": "alone", "observer": Observer(known=1)},
])  # fmt: skip
def test_a_table_that_needs_no_other_is_checked_without_the_others(options: dict[str, Any], tmp_path: Path) -> None:
    """Drawn inside, alone, or with one honest party: what a party's own file promises its people is recomputed."""
    people = [Population.binomial(2, "0.5"), Population.binomial(3, "0.4"), Population.iid(1, ["0.5", "0.3", "0.2"])]
    people = people[:2] if "observer" in options else people[1:] if options["method"] == "joint" else people
    shared_solution(MultiLTE(people, "0.9", **options)).save(tmp_path / "plan")
    forgery, (own, false) = Forgery(tmp_path / "plan"), (tmp_path / "own", tmp_path / "false")
    for party in forgery.parties:
        without_noise(party)
        party["outputs"] = [min(party["outputs"][0], party["inputs"][0]), max(party["outputs"][1], party["inputs"][1])]
        party["claim"]["ordinary_epsilon"] = "infinite"
    false.mkdir()
    forgery.seal().write(false)
    for i in range(len(people)):
        own.mkdir()
        shutil.copy(tmp_path / "plan" / f"party-{i}.json", own)
        assert open_member(own, i)[1] is None
        shutil.copy(false / f"party-{i}.json", own)
        with pytest.raises(CertificateError, match="epsilon"):
            open_member(own, i)
        shutil.rmtree(own)


@pytest.mark.parametrize("change", [None, [], ["0" * 64], ["0" * 64] * 2, "x", [1, 2], ["g" * 64] * 2])
def test_the_digests_in_a_party_file(original: Path, tmp_path: Path, change: Any) -> None:
    forgery = Forgery(original)
    party = forgery.parties[0]
    party.pop("sha256")
    if change is None:
        del party["claim"]["tables"]
    else:
        party["claim"]["tables"] = change
    party["sha256"] = digest(party)
    forgery.plan["parties"][0]["sha256"] = party["sha256"]
    forgery.close().write(tmp_path)
    assert "party-0.json: " in refused(tmp_path)
    with pytest.raises(Refused):
        recheck(tmp_path)
    (tmp_path / "plan.json").unlink()
    with pytest.raises(ArtifactError):
        open_party(tmp_path / "party-0.json")


def test_where_the_parties_are_may_lie_in_the_folder(solved: PlanSolution, folder: Path) -> None:
    """It is no part of the plan, and stays when the plan is replaced."""
    (folder / "parties.toml").write_text("parties = []\n")
    verify_plan(folder)
    solved.save(folder)
    assert (folder / "parties.toml").read_text() == "parties = []\n"
    assert sorted(path.name for path in folder.parent.iterdir()) == ["plan"]


def test_a_party_file_of_no_party(original: Path, tmp_path: Path) -> None:
    forgery = Forgery(original)
    party = forgery.parties[0]
    for change, words in (
        ({"problem": {"kind": "single-lte"}}, "is a noise matrix. Give one party's file"),
        ({"problem": {"kind": 5}}, "is a noise matrix. Give one party's file"),
        ({"problem": {"kind": "multi-lte"}}, "is missing"),
        ({"claim": {}}, "party must be"),
        ({"claim": {"party": 0}}, "plan must be"),
    ):
        changed = {key: value for key, value in {**party, **change}.items() if key != "sha256"}
        (tmp_path / "party-0.json").write_bytes(as_written({**changed, "sha256": digest(changed)}))
        with pytest.raises(ArtifactError, match=words) as caught:
            open_party(tmp_path / "party-0.json")
        assert "party-0.json" in str(caught.value)


# ---------------------------------------------------------------------- shares of noise


@pytest.fixture(scope="module", params=["divisible", "geometric"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shares") / "plan"
    shared_solution(MultiLTE(PEOPLE, "0.5", method=request.param)).save(folder)
    return folder


Floats = npt.NDArray[np.float64]
REACH = 1500


def sgdl(beta: Fraction, q: Fraction) -> Floats:
    """A share of geometric noise on `-REACH..REACH`: the difference of two negative binomials."""
    b, ratio = float(beta), float(q)
    terms = math.ceil(45 / -math.log(ratio)) + 50
    single = np.empty(REACH + terms + 1)
    single[0] = 1.0
    for j in range(1, len(single)):
        single[j] = single[j - 1] * ratio * (j - 1 + b) / j
    half = np.array([single[:terms] @ single[k : k + terms] for k in range(REACH + 1)]) * (1 - ratio) ** (2 * b)
    return np.concatenate([half[:0:-1], half])


class RealShares:
    """What shares of noise really give away, in floating point: sums of positive numbers on a long window."""

    def __init__(self, forgery: Forgery) -> None:
        problem = forgery.plan["problem"]
        self.tables, self.honest = forgery.parties, problem.get("honest") or 2
        self.f = problem.get("f") or [1, 1]
        self.people = [(party["n"], Fraction(party["p"])) for party in problem["parties"]]
        self.kernels = [self._kernel(i) for i in range(2)]

    def _kernel(self, i: int) -> Floats:
        table, f = self.tables[i], self.f[i]
        tail, (low, high), (first, final) = table["tail"], table["outputs"], table["inputs"]
        assert tail["law"] == "sgdl"
        assert tail["factor"] == f
        assert table["outside"] == "geometric"
        noise = sgdl(Fraction(int(tail["beta"][0]), int(tail["beta"][1])), Fraction(*map(int, tail["q"])))
        kernel = np.zeros((self.people[i][0] + 1, 2 * REACH + 1))
        for x, line in enumerate(kernel):
            row = tail["contraction"][x] if tail["contraction"] else [[x, int(tail["contraction_denominator"])]]
            for y, weight in row:
                line += np.roll(noise, f * y) * (weight / int(tail["contraction_denominator"]))
            if first <= x <= final:
                inside = slice(REACH + low, REACH + high + 1)
                mass = line[inside].sum()
                line[inside] = 0
                for s, weight in table["weights"][x - first]:
                    line[REACH + s] += mass * (weight / int(table["denominator"]))
        return kernel

    def report(self, i: int, n: int, shift: int = 0) -> Floats:
        law, last = binomial(n, self.people[i][1], shift), self.people[i][0]
        report: Floats = np.array([law.get(x, 0) / sum(law.values()) for x in range(last + 1)]) @ self.kernels[i]
        return report

    def broken_claims(self, forgery: Forgery) -> list[str]:
        claim, problem = forgery.plan["claim"], forgery.plan["problem"]
        broken: list[str] = []
        near = slice(REACH - 60, REACH + 61)
        for i in range(2):
            n = self.people[i][0]
            laws = [self.report(i, n - 1, w) for w in (0, 1)]
            if self.honest == 2:
                other = self.report(1 - i, self.people[1 - i][0])
                laws = [np.convolve(law, other, "same") for law in laws]
            one, two = (law[near] for law in laws)
            assert min(one.min(), two.min()) > 1e-280
            ratio = max((one / two).max(), (two / one).max())
            epsilon = math.log(ratio) * max(map(abs, self.f)) / abs(self.f[i])
            stated = [claim["epsilon"], problem["epsilon"], claim["parties"][i]["epsilon"]]
            stated.append(forgery.parties[i]["claim"]["epsilon"])
            broken += [f"{text}: really {epsilon}" for text in stated if epsilon > float(Fraction(text)) + 1e-9]
        return broken


def test_shares_there_and_back(shared: Path) -> None:
    found = verify_plan(shared)
    assert all(isinstance(table, SharedNoise) for table in found.tables)
    assert RealShares(Forgery(shared)).broken_claims(Forgery(shared)) == []
    for i, table in enumerate(found.tables):
        member = open_party(shared / f"party-{i}.json")
        assert member.table == table
        assert len(member.table.sample(3, 20)) == 20


def rational(chance: random.Random, given: list[str]) -> list[str]:
    value = Fraction(int(given[0]), int(given[1]))
    value *= chance.choice([Fraction(1, 2), Fraction(9, 10), Fraction(99, 100), Fraction(101, 100), Fraction(5, 4)])
    return [str(value.numerator), str(value.denominator)]


def change_q(forgery: Forgery, chance: random.Random) -> None:
    q = rational(chance, forgery.parties[0]["tail"]["q"])
    for party in forgery.parties if chance.random() < 0.8 else forgery.parties[:1]:
        party["tail"]["q"] = q


def change_beta(forgery: Forgery, chance: random.Random) -> None:
    beta = chance.choice([["1", "3"], ["49", "100"], ["51", "100"], ["3", "4"], ["1", "1"], ["3", "2"]])
    for party in forgery.parties if chance.random() < 0.6 else forgery.parties[:1]:
        party["tail"]["beta"] = beta


def change_contraction(forgery: Forgery, chance: random.Random) -> None:
    tail = chance.choice(forgery.parties)["tail"]
    rows = tail["contraction"]
    if rows is None:
        size = forgery.plan["problem"]["parties"][0]["n"] + 1
        tail["contraction"] = [[[chance.choice([x, size // 2, 0]), 1]] for x in range(size)]
        return
    match chance.randrange(5):
        case 0:
            i, j = chance.sample(range(len(rows)), 2)
            rows[i], rows[j] = rows[j], rows[i]
        case 1:
            tail["contraction"] = None
        case 2:
            rows.pop() if chance.random() < 0.5 else rows.append(rows[-1])
        case 3:
            row = max(rows, key=len)
            if len(row) > 1:
                source, target = chance.sample(row, 2)
                moved = max(1, source[1] // chance.choice([10**9, 1000, 3]))
                if moved < source[1]:
                    source[1] -= moved
                    target[1] += moved
        case _:
            x = chance.randrange(len(rows))
            rows[x] = [[chance.randrange(len(rows)), int(tail["contraction_denominator"])]]


def change_factor(forgery: Forgery, chance: random.Random) -> None:
    factors = chance.choice([[2, 1], [-1, 1], [2, 2], [0, 1]])
    for party, factor in zip(forgery.parties, factors, strict=True):
        party["tail"]["factor"] = factor
    if chance.random() < 0.7:
        forgery.plan["problem"]["f"] = factors


def no_table(forgery: Forgery, chance: random.Random) -> None:
    for party in forgery.parties if chance.random() < 0.5 else forgery.parties[:1]:
        party.update(inputs=[0, 0], outputs=[0, 0], denominator="2", weights=[[[0, 2]]])


def more_noise(forgery: Forgery, chance: random.Random) -> None:
    """Enough noise for anything: what the table and the contraction do is then measured, and often fine."""
    q = chance.choice([["19", "20"], ["2797128963144291325", "4611686018427387904"], ["7", "10"]])
    for party in forgery.parties:
        party["tail"]["q"] = q


SHARES: tuple[Change, ...] = (
    change_q, change_q, change_beta, change_contraction, change_contraction, move_mass, move_mass, drop_entry,
    move_output, swap_rows, widen_outputs, scale, change_epsilon, change_people, change_factor, no_table, more_noise,
)  # fmt: skip


def test_forged_shares(shared: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shared, tmp_path / "plan")
    chance = random.Random(11)
    accepted = 0
    for _ in range(120):
        forgery = Forgery(shared)
        for _ in range(chance.choice([1, 1, 2])):
            change = chance.choice(SHARES)
            if change is not swap_rows or all(len(party["weights"]) > 1 for party in forgery.parties):
                change(forgery, chance)
        if chance.random() < 0.8:
            modest(forgery, chance)
        accepted += judged(forgery.seal(), folder, lambda forgery: RealShares(forgery).broken_claims(forgery))
    assert 5 < accepted < 100


def test_worlds_are_checked_for_shares_too(shared: Path, tmp_path: Path) -> None:
    """Noise that is private under one prior, and a problem that asks for two."""
    folder = shutil.copytree(shared, tmp_path / "plan")
    forgery = Forgery(shared)
    plain = forgery.parties[0]["tail"]["contraction"] is None
    problem = forgery.plan["problem"]
    problem.pop("contraction", None)
    problem.update(
        method="joint",
        also=[{"parties": [{"kind": "binomial", "n": party["n"], "p": "0.9"} for party in problem["parties"]]}],
    )
    forgery.plan["provenance"].pop("prices", None)
    forgery.plan["claim"]["lower_bound"] = None
    forgery.seal().write(folder)
    if plain:
        verify_plan(folder)
    else:
        assert "epsilon" in refused(folder, CertificateError)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda party: party.update(outside="clamp"), "outside must be"),
        (lambda party: party["tail"].update(contraction=[]), "contraction must have a row"),
        (lambda party: party["tail"].update(contraction=[[[0, 1]]], contraction_denominator="1"), "must have a row"),
        (lambda party: party["tail"].update(contraction="x"), "contraction must be"),
        (lambda party: party["tail"].update(contraction=[[]]), "pairs"),
        (lambda party: party["tail"].update(contraction_denominator="3"), "power of two"),
        (lambda party: party["tail"].update(contraction_denominator=1), "decimal string"),
        (lambda party: party["tail"].update(beta=["3", "2"]), "beta must be at most 1"),
        (lambda party: party["tail"].update(beta=["0", "1"]), "beta's"),
        (lambda party: party["tail"].update(beta=["2", "4"]), "lowest"),
        (lambda party: party["tail"].update(factor=0), "factor must be"),
        (lambda party: party["tail"].update(factor=True), "factor must be"),
        (lambda party: party["tail"].update(factor=1001), "factor must be"),
        (lambda party: party["tail"].update(more=1), "tail must be"),
        (lambda party: party["tail"].pop("beta"), "tail must be"),
        (lambda party: party["tail"].update(q=["5", "4"]), "q must"),
    ],
)
def test_every_rule_of_a_share_is_kept(
    shared: Path, tmp_path: Path, change: Callable[[Document], object], words: str
) -> None:
    """Also when a party has no more than its own file."""
    folder = shutil.copytree(shared, tmp_path / "plan")
    forgery = Forgery(shared)
    change(forgery.parties[0])
    forgery.seal().write(folder)
    assert words in refused(folder)
    with pytest.raises(ArtifactError, match=r"party-0\.json"):
        open_party(folder / "party-0.json")


def test_finite_tables_and_shares_do_not_mix(original: Path, shared: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(original, tmp_path / "plan")
    forgery = Forgery(original)
    forgery.parties[1] = Forgery(shared).parties[1]
    forgery.seal().write(folder)
    assert "Found several kinds" in refused(folder, CertificateError)


def test_a_contraction_without_a_table_comes_back(tmp_path: Path) -> None:
    problem = MultiLTE(PEOPLE, "3", method="divisible", contraction="none")
    contracted = [
        tuple(((min(max(x, 1), party.last - 1), 2),) for x in range(party.last + 1)) for party in problem.parties
    ]
    noise = tuple(
        SharedNoise(party.last, Fraction(1, 2), Fraction(1, 2), 1, rows, 2)
        for party, rows in zip(problem.parties, contracted, strict=True)
    )
    certificate = certify_shared(problem, noise)
    PlanSolution(
        problem=problem, tables=noise, certificate=certificate, lower_bound=None, status="designed alone", note="",
        backend="highs", engine="shares", seconds=0.0,
    ).save(tmp_path / "plan")  # fmt: skip
    found = verify_plan(tmp_path / "plan")
    assert found.tables == noise
    assert found.certificate == certificate
    assert not found.bound_proved
