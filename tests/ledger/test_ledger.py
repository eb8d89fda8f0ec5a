"""`optdp ledger`: what is recorded and refused, and ledgers that somebody changed, cut or made up."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from optdp import Ledger, MultiLTE, NoiseMatrix, Observer, Population, open_artifact
from optdp.artifact import OpenedPlan
from optdp.errors import ArtifactError, CertificateError, OptdpError, ProblemError
from optdp.files.canonical import canonical
from optdp.ledger import chain
from optdp.numbers.exact import ball, precision
from optdp.work.account import limited
from tests.command_line import Done, in_process
from tests.shared import shared_solution


def optdp(*arguments: object) -> Done:
    done = in_process("--quiet", "ledger", *arguments)
    return Done(done.returncode, done.stdout, done.stderr)


def state(folder: Path) -> dict[str, bytes]:
    return {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}


@pytest.fixture
def book(tmp_path: Path, artifacts: Path) -> Path:
    """A ledger with three entries."""
    path = tmp_path / "ward.jsonl"
    ledger = Ledger.create(path, "3", "1e-6", note="Ward 7")
    for month in ("January", "February", "March"):
        ledger = ledger.add(artifacts / "half.json", about=month)
    return path


def test_the_commands(tmp_path: Path, artifacts: Path) -> None:
    path = tmp_path / "ward.jsonl"
    assert optdp("open", path, "--epsilon", "2", "--delta", "1e-6", "--note", "Ward 7").code == 0
    assert optdp("add", path, artifacts / "half.json", "--about", "March 2026").code == 0
    assert optdp("add", path, artifacts / "tenth.json", "--count", 5).code == 0
    shown = optdp("show", path)
    assert shown.code == 0
    assert "1 of 2" in shown.out
    assert "March 2026" in shown.out
    assert "do not compose" in shown.out
    found = json.loads(optdp("show", path, "--json").out)
    first, second = found["entries"]
    half = json.loads((artifacts / "half.json").read_text())
    assert first["artifact"] == half["sha256"]
    assert Fraction(first["epsilon"]) >= Fraction(half["claim"]["ordinary_epsilon"])
    assert float(Fraction(found["spent"])) == pytest.approx(1.0, abs=1e-9)
    assert (first["count"], first["about"], second["count"]) == (1, "March 2026", 5)
    assert Fraction(second["sum"]) == Fraction(first["epsilon"]) + 5 * Fraction(second["epsilon"])
    assert found["receipt"] == second["receipt"]
    lines = path.read_bytes().splitlines()
    assert len(lines) == 4
    assert [sha256(line).hexdigest() for line in lines[:3]] == [
        json.loads(lines[1])["previous"], json.loads(lines[2])["previous"], json.loads(lines[3])["last"],
    ]  # fmt: skip


def test_what_exceeds_the_total_is_refused_and_nothing_is_written(tmp_path: Path, artifacts: Path) -> None:
    path = tmp_path / "ward.jsonl"
    assert optdp("open", path, "--epsilon", "1.2").code == 0
    assert optdp("add", path, artifacts / "half.json", "--count", 2).code == 0
    before = state(tmp_path)
    optdp("add", path, artifacts / "half.json").refused("to 1.5, above the total of 1.2", 1)
    optdp("add", path, artifacts / "tenth.json", "--count", 3).refused("tenth.json 3 times", 1)
    assert state(tmp_path) == before
    assert optdp("add", path, artifacts / "tenth.json", "--count", 2).code == 0  # just what was left


def test_a_total_smaller_than_one_release(tmp_path: Path, artifacts: Path) -> None:
    assert optdp("open", tmp_path / "a", "--epsilon", "0.4").code == 0
    before = state(tmp_path)
    optdp("add", tmp_path / "a", artifacts / "half.json").refused("One release of", 1)
    assert state(tmp_path) == before


def test_only_ordinary_epsilons_are_recorded(book: Path, artifacts: Path) -> None:
    before = state(book.parent)
    optdp("add", book, artifacts / "none.json").refused("Design it with fallback_epsilon", 1)
    optdp("add", book, book).refused("", 2)
    assert state(book.parent) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--epsilon", "0"), "epsilon must be above 0"),
        (("--epsilon", "-1"), "epsilon must be above 0"),
        (("--epsilon", "1e9"), "epsilon must be above 0"),
        (("--epsilon", "inf"), "epsilon must be a decimal"),
        (("--epsilon", "1", "--delta", "1"), "delta must be 0"),
        (("--epsilon", "1", "--delta", "-1e-6"), "delta must be 0"),
        (("--epsilon", "1", "--delta", "1e-500"), "delta must be 0"),
        (("--epsilon", "1", "--epsilon", "2"), "--epsilon must be given once"),
        (("--epsilon", "1", "--note", "two\nlines"), "note must be one line"),
        (("--epsilon", "1", "--note", "x" * 201), "note must be one line"),
        (("--epsilon", "1", "--key", "absent.pem"), "cannot read absent.pem"),
        ((), "Missing option '--epsilon'"),
    ],
)
def test_bad_totals(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    optdp("open", tmp_path / "a", *arguments).refused(words)
    assert os.listdir(tmp_path) == []


def test_bad_entries(book: Path, artifacts: Path) -> None:
    before = state(book.parent)
    for arguments, words in (
        (("--count", 0), "count must be from 1"), (("--count", 10**7), "count must be from 1"),
        (("--count", "x"), "Invalid value"), (("--about", "a\tb"), "about must be one line"),
    ):  # fmt: skip
        optdp("add", book, artifacts / "half.json", *arguments).refused(words)
    optdp("add", book.parent / "absent", artifacts / "half.json").refused("no such file")
    optdp("add", book, artifacts / "absent.json").refused("no such file")
    optdp("open", book, "--epsilon", 1).refused("exists already, and a ledger needs a new file")
    optdp("open", book.parent / "no" / "folder", "--epsilon", 1).refused("no such file")
    assert state(book.parent) == before


def test_a_planned_ledger_spends_less(tmp_path: Path, artifacts: Path) -> None:
    free, planned = (Ledger.create(tmp_path / str(p), 3, "1e-6", planned=p) for p in (False, True))
    with pytest.raises(CertificateError):
        free.add(artifacts / "tenth.json", 44)
    assert planned.add(artifacts / "tenth.json", 44).spent < 3


# ------------------------------------------------------------------------------------------ changed, cut, made up


def damaged(lines: list[bytes]) -> dict[str, list[bytes]]:
    head, one, two, three, seal = lines
    return {
        "a changed line": [head, one, two.replace(b"February", b"Februari"), three, seal],
        "a changed head": [head.replace(b'"epsilon":"3"', b'"epsilon":"9"'), one, two, three, seal],
        "another version": [head.replace(b'"version":1', b'"version":2'), one, two, three, seal],
        "a removed line": [head, one, three, seal],
        "the first removed": [head, two, three, seal],
        "the last removed": [head, one, two, seal],
        "swapped lines": [head, two, one, three, seal],
        "a line twice": [head, one, two, two, three, seal],
        "a cut end": [head, one, two],
        "no seal": [head, one, two, three],
        "no head": [one, two, three, seal],
        "two seals": [*lines, seal],
        "an empty line": [head, b"", one, two, three, seal],
        "a space": [head, one + b" ", two, three, seal],
        "other ends of lines": [line + b"\r" for line in lines],
        "a changed seal": [head, one, two, three, seal.replace(b'"entries":3', b'"entries":2')],
    }


def test_damage_is_found(book: Path, artifacts: Path) -> None:
    for what, lines in damaged(book.read_bytes().splitlines()).items():
        book.write_bytes(b"".join(line + b"\n" for line in lines))
        before = state(book.parent)
        for arguments in (("show", book), ("show", book, "--json"), ("add", book, artifacts / "tenth.json")):
            done = optdp(*arguments)
            assert done.code == 1, (what, done)
            done.refused("Go back to a copy", 1)
        assert state(book.parent) == before


def test_every_byte_counts(book: Path) -> None:
    """Whatever byte is changed, and wherever the file is cut: it is refused, and not as an error of the program."""
    whole = book.read_bytes()
    seen = 0
    for place in range(len(whole)):
        book.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(CertificateError):
            Ledger.read(book)
        book.write_bytes(whole[:place])
        with pytest.raises(OptdpError) as refusal:
            Ledger.read(book)
        seen += refusal.type is CertificateError
    assert seen > len(whole) - 100  # of the very beginning of a ledger nobody can tell what it is
    book.write_bytes(whole + b"\n")
    with pytest.raises(CertificateError, match="cut or added to"):
        Ledger.read(book)


def forged(head: dict[str, Any], *entries: dict[str, Any], **seal: Any) -> bytes:
    """A ledger with right digests, whatever it says."""
    lines = [canonical(head).encode()]
    for entry in entries:
        lines.append(canonical({**entry, "previous": sha256(lines[-1]).hexdigest()}).encode())
    last = {"format": chain.SEAL, "version": 1, "entries": len(entries), "last": sha256(lines[-1]).hexdigest(),
            "public_key": None, "signature": None, **seal}  # fmt: skip
    return b"".join(line + b"\n" for line in (*lines, canonical(last).encode()))


HEAD: dict[str, Any] = {
    "format": "optdp/ledger", "version": 1, "epsilon": "1", "delta": "0", "planned": False, "note": "",
    "time": "2026-01-01T00:00:00Z",
}  # fmt: skip
ENTRY: dict[str, Any] = {
    "number": 1, "artifact": "0" * 64, "epsilon": "0.5", "count": 1, "about": "", "sum": "0.5",
    "time": "2026-01-01T00:00:00Z",
}  # fmt: skip


@pytest.mark.parametrize(
    ("head", "entry", "seal"),
    [
        ({}, {"sum": "0.1"}, {}),
        ({}, {"epsilon": "2", "sum": "2"}, {}),  # more than the total
        ({}, {"epsilon": "-1", "sum": "-1"}, {}),
        ({}, {"epsilon": "0.50"}, {}),
        ({}, {"epsilon": 0.5}, {}),
        ({}, {"count": True}, {}),
        ({}, {"count": 0, "sum": "0"}, {}),
        ({}, {"count": 10**30}, {}),
        ({}, {"number": 2}, {}),
        ({}, {"artifact": "x"}, {}),
        ({}, {"time": "now"}, {}),
        ({}, {"about": "\x1b[2J"}, {}),
        ({}, {"about": ["deep"]}, {}),
        ({}, {"more": 1}, {}),
        ({"epsilon": "1e400"}, {}, {}),
        ({"epsilon": "0"}, {}, {}),
        ({"delta": "2"}, {}, {}),
        ({"planned": 1}, {}, {}),
        ({"note": "x" * 5000}, {}, {}),
        ({}, {}, {"entries": 5}),
        ({}, {}, {"public_key": "00"}),
        ({}, {}, {"signature": "0" * 128}),
        ({}, {}, {"more": 1}),
    ],
)
def test_made_up(tmp_path: Path, head: dict[str, Any], entry: dict[str, Any], seal: dict[str, Any]) -> None:
    path = tmp_path / "a"
    path.write_bytes(forged(HEAD, ENTRY))
    assert Ledger.read(path).spent == Fraction("0.5")
    path.write_bytes(forged(HEAD | head, ENTRY | entry, **seal))
    optdp("show", path).refused("", 1)


def test_what_is_no_ledger(tmp_path: Path, artifacts: Path) -> None:
    path = tmp_path / "a"
    for data in (b"", b"\n", b"\n\n\n", b"x", b"[]\n", b"\x00" * 1000, b"PK\x03\x04", b"[" * 100_000, b"{}\n{}\n"):
        path.write_bytes(data)
        optdp("show", path).refused("is not a ledger")
    optdp("show", artifacts / "half.json").refused("is not a ledger")
    optdp("show", tmp_path).refused("a folder")
    path.write_bytes(forged({**HEAD, "version": 2}, version=2))
    optdp("show", path).refused("must have version 1. Found 2")
    with path.open("wb") as file:
        file.truncate(10**12)
    optdp("show", path).refused("bytes")
    path.unlink()
    os.mkfifo(path)
    optdp("show", path).refused("a pipe")
    optdp("add", path, artifacts / "half.json").refused("a pipe")


def test_large_ledgers_are_read_in_bounded_work(tmp_path: Path) -> None:
    path = tmp_path / "a"
    entries = [
        {**ENTRY, "number": i, "epsilon": f"0.{i:05d}", "sum": "0"} for i in range(1, 9_999, 2)
    ]  # fmt: skip
    total = Fraction(0)
    for number, entry in enumerate(entries, 1):
        total += Fraction(entry["epsilon"])
        entry |= {"number": number, "epsilon": chain.show(Fraction(entry["epsilon"])), "sum": chain.show(total)}
    path.write_bytes(forged({**HEAD, "epsilon": "1000", "delta": "0.000001", "planned": True}, *entries))
    with limited(30):
        assert Ledger.read(path).spent < total
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n" * 3))
    with pytest.raises(ArtifactError, match="may have 10,000 entries"):
        Ledger.read(path)


# ------------------------------------------------------------------------------------------ receipts and signatures


def test_receipts_find_an_earlier_state(book: Path, artifacts: Path) -> None:
    earlier = book.read_bytes()
    receipt = Ledger.read(book).add(artifacts / "half.json").receipt
    assert optdp("show", book, "--receipt", receipt).code == 0
    Ledger.read(book).add(artifacts / "half.json")
    assert optdp("show", book, "--receipt", receipt).code == 0  # of any entry
    book.write_bytes(earlier)
    assert optdp("show", book).code == 0
    optdp("show", book, "--receipt", receipt).refused("put back to an earlier state", 1)
    optdp("show", book, "--receipt", "abc").refused("64 hexadecimal digits")


def test_signed_ledgers(tmp_path: Path, artifacts: Path) -> None:
    pytest.importorskip("cryptography")
    from optdp.files.signature import create_key

    mine, other, path = tmp_path / "mine.pem", tmp_path / "other.pem", tmp_path / "ward.jsonl"
    public, public_other = create_key(mine), create_key(other)
    assert optdp("open", path, "--epsilon", 2, "--key", mine).code == 0
    assert optdp("add", path, artifacts / "half.json", "--key", mine).code == 0
    assert optdp("show", path, "--key", public).code == 0
    before = state(tmp_path)
    optdp("add", path, artifacts / "half.json").refused("is signed. Give the private key")
    optdp("add", path, artifacts / "half.json", "--key", other).refused("is signed with another key", 1)
    optdp("add", path, artifacts / "half.json", "--key", public).refused("must be a private key")
    optdp("show", path, "--key", public_other).refused("is signed with another key", 1)
    assert state(tmp_path) == before
    *lines, seal = path.read_bytes().splitlines()
    stated = json.loads(seal)
    made_up = chain.spelled({**json.loads(lines[1]), "about": "nothing"})
    path.write_bytes(chain.sealed([lines[0], made_up], stated["public_key"], stated["signature"]))
    assert optdp("show", path).code == 0  # whoever makes all digests anew is found by the signature alone
    optdp("show", path, "--key", public).refused("forged or changed", 1)
    optdp("add", path, artifacts / "half.json", "--key", mine).refused("forged or changed", 1)
    path.write_bytes(chain.sealed(lines, None, None))
    optdp("show", path, "--key", public).refused("is not signed", 1)


def test_from_python(tmp_path: Path, artifacts: Path) -> None:
    path = tmp_path / "a"
    ledger = Ledger.create(path, 1)
    later = ledger.add(artifacts / "half.json")
    assert (len(ledger.entries), len(later.entries)) == (0, 1)
    assert len(ledger.add(artifacts / "tenth.json").entries) == 2  # what counts is what the file says now
    assert "Ledger(path=" in repr(later)
    with pytest.raises(ProblemError, match="count must be a whole number"):
        ledger.add(artifacts / "half.json", 1.5)  # type: ignore[arg-type]
    with pytest.raises(CertificateError):
        ledger.add(artifacts / "half.json")
    path.chmod(0o640)
    ledger.add(artifacts / "tenth.json")
    assert path.stat().st_mode & 0o777 == 0o640
    link = tmp_path / "link"
    link.symlink_to(path)
    assert len(Ledger.read(link).add(artifacts / "tenth.json").entries) == 4
    assert link.is_symlink()
    assert len(Ledger.read(path).entries) == 4


def test_a_plan_counts_with_its_least_private_table(tmp_path: Path) -> None:
    """What a ledger adds up for a plan is checked against the quotients of the tables themselves."""
    parties = [Population.binomial(13, "0.3"), Population.binomial(12, "0.5")]  # few people: a constant is the best
    plan = shared_solution(MultiLTE(parties, "0.5", observer=Observer(known="all")))
    plan.save(tmp_path / "plan")
    largest = Fraction(0)
    for table in plan.tables:
        assert isinstance(table, NoiseMatrix)
        rows = [dict(row) for row in table.rows]
        for one, other in [*pairwise(rows), *pairwise(rows[::-1])]:
            assert one.keys() == other.keys()
            largest = max(largest, *(Fraction(one[s], other[s]) for s in one))
    ledger = Ledger.create(tmp_path / "ledger", "1.2").add(tmp_path / "plan", 2, "two epochs")
    (entry,) = ledger.entries
    with precision():
        assert ball(largest) <= ball(entry.epsilon).exp() <= ball(largest * (1 + Fraction(1, 10**9)))
    assert ledger.spent == 2 * entry.epsilon
    with pytest.raises(CertificateError, match="would bring the epsilon spent"):
        ledger.add(open_artifact(tmp_path / "plan", OpenedPlan))


def test_a_plan_for_the_prior_alone_does_not_fit_and_a_single_party_is_refused(tmp_path: Path) -> None:
    shared_solution(MultiLTE([Population.binomial(4, "0.5")] * 2, "0.5", method="joint")).save(tmp_path / "plan")
    ledger = Ledger.create(tmp_path / "ledger", 10)
    with pytest.raises(CertificateError, match=r"One release of .* alone has epsilon 1\d\..*; the total is 10"):
        ledger.add(tmp_path / "plan")
    with pytest.raises(ArtifactError, match="private only as a whole"):
        ledger.add(tmp_path / "plan" / "party-0.json")
    assert Ledger.read(tmp_path / "ledger").entries == ()
