"""Ledger: what was released from which artifact, what is spent, and what would be too much."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from optdp.artifact import OpenedMatrix, OpenedPlan, open_artifact
from optdp.errors import CertificateError, ProblemError
from optdp.files import signature
from optdp.files.atomic import name_of, write_bytes, write_new
from optdp.files.canonical import shown
from optdp.ledger import chain
from optdp.ledger.chain import Chain, Entry
from optdp.ledger.lock import alone
from optdp.numbers import composition
from optdp.numbers.exact import Number, check_whole, decimal_up, show
from optdp.objects import Public
from optdp.plan.certificate import largest
from optdp.plan.format import VerifiedPlan, party_file
from optdp.sheet import Cell, Listing, Sheet

MEANING = (
    "The total limits what all releases together can teach about any person, whatever anyone knows about the others. "
    "Epsilons under a prior do not compose and are not counted here. More: docs/ledger.md"
)
"""The sentence that goes with what is spent."""
_RECEIPT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Ledger(Public):
    """A record of releases and of how much of a total they spend. `Ledger.create` starts one, `Ledger.read` opens one;
    `add` records a release.

    Parameters
    ----------
    path : Path
        Its file.
    epsilon, delta : Fraction
        The total that all releases together must not exceed.
    planned : bool
        Whether the epsilons of all releases were fixed before the first one.
    note, begun : str
        What it is for, and when it was started (UTC).
    entries : tuple
        What was released: `number`, `artifact` (its digest), `epsilon` (the ordinary one), `count`, `about`, `time`,
        `sum`, `receipt`.
    receipt : str
        The digest of the last line. Keep it: a ledger that was reset to an earlier state does not contain it.
    public_key : str or None
        The key that signed the last state.

    Examples
    --------
    >>> import tempfile
    >>> from optdp import Ledger, Population, SingleLTE, solve
    >>> problem = SingleLTE(Population.binomial(10, "0.1"), epsilon="0.5", fallback_epsilon=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     solve(problem).save(f"{folder}/a.json")
    ...     ledger = Ledger.create(f"{folder}/ledger.jsonl", epsilon=3)
    ...     ledger = ledger.add(f"{folder}/a.json", about="March")
    ...     ledger = ledger.add(f"{folder}/a.json", about="April")
    >>> len(ledger.entries), round(float(ledger.spent), 6)
    (2, 2.0)
    """

    path: Path
    epsilon: Fraction
    delta: Fraction
    planned: bool
    note: str
    begun: str
    entries: tuple[Entry, ...]
    receipt: str
    public_key: str | None = None
    told = ("path", "epsilon", "delta", "entries", "spent")

    @classmethod
    def create(
        cls,
        path: str | Path,
        epsilon: Number,
        delta: Number = 0,
        *,
        planned: bool = False,
        note: str = "",
        key: str | Path | None = None,
    ) -> Ledger:
        """Begin a ledger in a new file; `key`, a private key, signs it."""
        most, small = composition.total_of(epsilon, delta)
        head = {
            "format": chain.FORMAT, "version": chain.VERSION, "epsilon": show(most), "delta": show(small),
            "planned": bool(planned), "note": chain.remark(note, "note"), "time": _now(),
        }  # fmt: skip
        if os.path.lexists(path):
            raise ProblemError(f"{name_of(path)} exists already, and a ledger needs a new file. Choose another name.")
        write_new(path, _signed([chain.spelled(head)], key))
        return cls.read(path)

    @classmethod
    def read(cls, path: str | Path, *, key: str | Path | None = None, receipt: str | None = None) -> Ledger:
        """Read a ledger, and raise CertificateError if it was changed or cut, or records more than its total allows.

        `key` is a public key that must have signed it; `receipt` the digest of a line that it must have.
        """
        found = chain.read(path)
        if key is not None:
            _check_signed(path, found, signature.public_key(key))
        if receipt is not None:
            _check_receipt(path, found, receipt)
        return cls._of(path, found)

    @classmethod
    def _of(cls, path: str | Path, found: Chain) -> Ledger:
        head, seal = found.head, found.seal
        total = composition.total_of(head["epsilon"], head["delta"])
        ledger = cls(
            Path(path), *total, head["planned"], head["note"], head["time"], found.entries, seal.last, seal.public_key
        )
        if ledger.spent > ledger.epsilon:
            raise CertificateError(
                f"{name_of(path)} records more than its total allows: {_up(ledger.spent)} of {_up(ledger.epsilon)}. "
                "optdp did not write it so. Do not release anything on it."
            )
        return ledger

    def add(
        self,
        artifact: str | Path | OpenedMatrix | OpenedPlan,
        count: int = 1,
        about: str = "",
        *,
        key: str | Path | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Ledger:
        """Record that an artifact is released `count` times, and return the ledger as it is then.

        The artifact, a noise matrix or the folder of a plan, is verified first. Of a plan the ordinary epsilon of the
        least private table counts: whoever knows everything else still sees each person through one table. Raises
        CertificateError, with nothing written, if the total would be exceeded. Others may have added to the file since
        it was read; what counts is what it says now.
        """
        check_whole(count, "count", 1, chain.MOST_COUNT)
        chain.remark(about, "about")
        opened = _opened(artifact)
        return self._record(opened.sha256, opened.path, _ordinary(opened), count, about, key, progress)

    def add_run(
        self,
        plan: VerifiedPlan,
        party: int,
        run: str,
        *,
        known: bool = True,
        key: str | Path | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Ledger:
        """Record that a party of a plan takes part in a run, and return the ledger as it is then.

        What counts is the ordinary epsilon of the party's own table: it bounds what any aggregate tells about its
        people. A run that is in the ledger already costs nothing more, as it has one report; but if that is not `known`
        any more, as the record of it is gone, another one is drawn, and is counted.
        """
        about = f"party {party}, run {run}"
        chain.remark(about, "run")
        epsilon, name = _decimal(plan.certificate.ordinary[party], party_file(party)), Path(party_file(party))
        return self._record(plan.identity, name, epsilon, 1, about, key, progress, once=known)

    def _record(
        self, digest: str, path: Path, epsilon: Fraction, count: int, about: str, key: str | Path | None,
        progress: Callable[[str], None], once: bool = False,
    ) -> Ledger:  # fmt: skip
        with alone(self.path, progress):
            found = chain.read(self.path)
            now = self._of(self.path, found)
            if once and any((entry.artifact, entry.about) == (digest, about) for entry in now.entries):
                return now
            now._check_room(epsilon, count, path)
            _check_key(self.path, found, key)
            entry = {
                "number": len(now.entries) + 1, "artifact": digest, "epsilon": show(epsilon), "count": count,
                "about": about, "sum": show(composition.basic(now.releases) + count * epsilon), "time": _now(),
                "previous": now.receipt,
            }  # fmt: skip
            write_bytes(self.path, _signed([*found.lines, chain.spelled(entry)], key), keep_mode=True)
            return type(self).read(self.path)

    @cached_property
    def releases(self) -> Counter[Fraction]:
        """How many releases there were of each epsilon."""
        found: Counter[Fraction] = Counter()
        for entry in self.entries:
            found[entry.epsilon] += entry.count
        return found

    @cached_property
    def spent(self) -> Fraction:
        """The smallest total, at this delta, under which every entry would have been accepted."""
        return self._needed(self.releases)

    def _needed(self, releases: composition.Releases) -> Fraction:
        bound = composition.optimal if self.planned else composition.adaptive
        return bound(releases, self.delta)

    def _check_room(self, epsilon: Fraction, count: int, path: Path) -> None:
        if len(self.entries) >= chain.MOST_ENTRIES:
            raise ProblemError(
                f"A ledger may have at most {chain.MOST_ENTRIES:,} entries. Start another with what is left of the "
                "total."
            )
        total = f"{_up(self.epsilon)} at delta {show(self.delta)}"
        if self._needed({epsilon: 1}) > self.epsilon:
            raise CertificateError(
                f"One release of {name_of(path)} alone has epsilon {_up(epsilon)}; the total is {total}. Nothing was "
                "recorded: do not release it. Design it with a smaller fallback_epsilon or epsilon."
            )
        after = self._needed(self.releases + Counter({epsilon: count}))
        if after > self.epsilon:
            times = f" {count:,} times" if count > 1 else ""
            raise CertificateError(
                f"Releasing {name_of(path)}{times} would bring the epsilon spent from {_up(self.spent)} to "
                f"{_up(after)}, above the total of {total}. Nothing was recorded: do not release it."
            )

    def summary(self) -> dict[str, Any]:
        """What `optdp ledger show --json` prints."""
        return {
            "file": str(self.path), "epsilon": show(self.epsilon), "delta": show(self.delta), "planned": self.planned,
            "note": self.note, "begun": self.begun, "spent": decimal_up(self.spent),
            "sum": decimal_up(composition.basic(self.releases)),
            "adaptive": decimal_up(composition.adaptive(self.releases, self.delta)),
            "optimal_if_planned": decimal_up(composition.optimal(self.releases, self.delta)),
            "receipt": self.receipt, "public_key": self.public_key,
            "entries": [
                {"number": e.number, "time": e.time, "about": e.about, "artifact": e.artifact, "count": e.count,
                 "epsilon": show(e.epsilon), "sum": show(e.sum), "receipt": e.receipt}
                for e in self.entries
            ],
        }  # fmt: skip

    def sheet(self, few: bool = False) -> Sheet:
        """The same for people; the last entry alone if they want `few`."""
        releases, delta = self.releases, show(self.delta)
        facts: list[tuple[str, Cell | str]] = [
            ("spent", Cell(f"{_up(self.spent)} of {_up(self.epsilon)}", "strong", after=f"  at delta {delta}")),
            ("sum of the epsilons", f"{_up(composition.basic(releases))}  (at delta 0)"),
        ]
        if self.delta:
            facts.append(("if chosen as you go", _up(composition.adaptive(releases, self.delta))))
            kept = "" if self.planned else "  (not used: this ledger was not opened with --planned)"
            facts.append(("if all fixed beforehand", _up(composition.optimal(releases, self.delta)) + kept))
        facts += [("note", self.note)] if self.note else []
        facts += [("begun", self.begun), ("receipt", self.receipt)]
        rows = tuple(
            (str(e.number), e.time, e.about, f"{e.count:,}", _up(e.epsilon), _up(e.sum), e.artifact[:12])
            for e in (self.entries[-1:] if few else self.entries)
        )
        listing = Listing(("", "recorded", "about", "releases", "epsilon of each", "sum so far", "artifact"), rows)
        return Sheet(tuple(facts), (listing,) if rows else (), (MEANING,))


def _opened(artifact: str | Path | OpenedMatrix | OpenedPlan) -> OpenedMatrix | OpenedPlan:
    kinds: tuple[type[OpenedMatrix | OpenedPlan], ...] = (OpenedMatrix, OpenedPlan)
    return open_artifact(artifact, *kinds)


def _ordinary(opened: OpenedMatrix | OpenedPlan) -> Fraction:
    """The ordinary epsilon of an artifact, as a decimal that is not below it."""
    if isinstance(opened, OpenedPlan):
        found = largest(opened.verified.certificate.ordinary)
    else:
        found = opened.verified.certificate.ordinary_epsilon
    return _decimal(found, name_of(opened.path))


def _decimal(found: Fraction | None, name: str) -> Fraction:
    if found is None:
        raise CertificateError(
            f"The ordinary epsilon of {name} is infinite, and an epsilon under the prior does not compose. "
            'Design it with fallback_epsilon, or for an observer with known = "all".'
        )
    return Fraction(decimal_up(found))


def _signed(lines: list[bytes], key: str | Path | None) -> bytes:
    if key is None:
        return chain.sealed(lines, None, None)
    private = signature.private_key(key)
    made = private.sign(bytes.fromhex(chain.digest(lines[-1])))
    return chain.sealed(lines, private.public_key().public_bytes_raw().hex(), made.hex())


def _check_key(path: Path, found: Chain, key: str | Path | None) -> None:
    """What was signed goes on being signed, by the same key; and nothing is signed anew that was forged."""
    if found.seal.public_key is None:
        return
    if key is None:
        raise ProblemError(f"{name_of(path)} is signed. Give the private key (--key), so that it stays signed.")
    _check_signed(path, found, signature.private_key(key).public_key())


def _check_signed(path: str | Path, found: Chain, key: Any) -> None:
    name, seal = name_of(path), found.seal
    if seal.public_key is None or seal.signature is None:
        raise CertificateError(f"{name} is not signed. Do not use it.")
    if seal.public_key != key.public_bytes_raw().hex():
        raise CertificateError(f"{name} is signed with another key than the given one.")
    if not signature.is_valid(key, bytes.fromhex(seal.signature), bytes.fromhex(seal.last)):
        raise CertificateError(f"The signature of {name} is not valid: it was forged or changed. Do not use it.")


def _check_receipt(path: str | Path, found: Chain, receipt: str) -> None:
    if not _RECEIPT.fullmatch(receipt):
        raise ProblemError(f"A receipt must be 64 hexadecimal digits. Found {shown(receipt)}.")
    if receipt not in map(chain.digest, found.lines):
        raise CertificateError(
            f"{name_of(path)} must have the line with the receipt {receipt[:12]}... Found no such line: it was put "
            "back to an earlier state, or is another ledger."
        )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _up(value: Fraction) -> str:
    """A number for a message, rounded up."""
    return decimal_up(value, 6)
