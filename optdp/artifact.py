"""open_artifact(path): read a file or a plan's folder once, say what it is, and verify it once.

Every command that takes a file begins here. What a file may look like, and what its claims must be, is said by its own
room: `single`, `plan`, `order`. Here the bytes are read, the problem is built, and what belongs together is put
together. Nothing here needs a solver.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

import optdp.order
import optdp.shuffle
from optdp.errors import ArtifactError, ProblemError
from optdp.files.atomic import name_of, read_bytes
from optdp.files.models import from_spec
from optdp.kind import at
from optdp.mechanism.added_noise import AddedNoise
from optdp.mechanism.matrix import NoiseMatrix
from optdp.objects import Public
from optdp.plan.explain import PlanExplanation, explain_plan
from optdp.plan.format import (
    Member,
    Plan,
    VerifiedPlan,
    check_alone,
    check_parties,
    check_size,
    member_of,
    named,
    party_file,
    plan_document,
    together,
    verify_tables,
)
from optdp.plan.problem import MultiLTE
from optdp.plan.seeded_format import PartyArtifact, SeededArtifact, read_party
from optdp.single.explain import Explanation, explain
from optdp.single.format import Artifact
from optdp.single.problem import SingleLTE
from optdp.single.verify import Verified, fitted, verify_matrix

if TYPE_CHECKING:  # orders are imported where one is opened: they need SciPy, and no table should
    from optdp.order.format import Order, VerifiedOrder
    from optdp.shuffle.format import Deployed, VerifiedShuffle

(ORDERS,) = optdp.order.KINDS
MARK = b'"optdp/order"'
"""What stands near the start of an order's file."""
SHUFFLE = optdp.shuffle.KINDS[0]
SHUFFLED = b'"format": "optdp/shuffle"'
"""What the first line of a shuffle protocol says; all kinds have one form."""


@dataclass(frozen=True, eq=False)
class Opened(Public):
    """What was read: its form and digests are right; `verified` recomputes its claims, once."""

    path: Path
    sha256: str
    """The digest of its content; of a plan that of `plan.json`, which lists those of the parties' files."""
    claim: Mapping[str, Any]
    begin: float
    """When it was begun to be read."""
    noun: ClassVar[str] = ""
    """What a message calls it."""
    more: ClassVar[str] = ""
    """What a message adds where it is not the right thing."""

    @property
    def files(self) -> list[Path]:
        """Everything that is read for it: no output may be written over these."""
        return [self.path]

    @property
    def verified(self) -> Any:
        """What was recomputed; raises unless every claim holds."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class OpenedMatrix(Opened):
    """One entity's noise matrix."""

    artifact: Artifact
    problem: SingleLTE
    matrix: NoiseMatrix | AddedNoise
    noun = "a noise matrix"

    @cached_property
    def verified(self) -> Verified:
        return verify_matrix(self.artifact, self.problem, self.matrix, self.begin)

    def explain(self) -> Explanation:
        """Where its epsilons are reached, whether they hold or not."""
        return explain(self.problem, self.matrix)


@dataclass(frozen=True, eq=False)
class OpenedPlan(Opened):
    """The folder of a plan."""

    plan: Plan
    noun = "the folder of a plan"

    @property
    def files(self) -> list[Path]:
        return [self.path / "plan.json", *(self.path / party_file(i) for i in range(len(self.plan.artifacts)))]

    @cached_property
    def verified(self) -> VerifiedPlan:
        return verify_tables(self.plan, self.path, self.begin)

    def explain(self) -> PlanExplanation:
        """Where its epsilons are reached, whether they hold or not."""
        check_size(self.plan.problem, self.plan.tables)
        return explain_plan(self.plan.problem, self.plan.tables)


@dataclass(frozen=True, eq=False)
class OpenedParty(Opened):
    """One party's file of a plan: all that a party needs to take part. The joint claim cannot be checked from it."""

    member: Member
    noun = "one party's file of a plan"
    more = ", which is private only as a whole"

    @property
    def verified(self) -> Member:
        return self.member


@dataclass(frozen=True, eq=False)
class OpenedOrder(Opened):
    """An order. Its groups are made again from the files that it names."""

    order: Order
    allow_outside: bool
    noun = "an order"
    more = ", which is for `optdp shuffle`"

    @property
    def files(self) -> list[Path]:
        return [self.path, *self.order.files(self.path.resolve().parent)]

    @cached_property
    def verified(self) -> VerifiedOrder:
        found: VerifiedOrder = at(ORDERS.verify)(self.path, allow_outside=self.allow_outside, found=self.order)
        return found


@dataclass(frozen=True, eq=False)
class OpenedShuffle(Opened):
    """A shuffle protocol: what its clients do, in integers."""

    deployed: Deployed
    noun = "a shuffle protocol"
    more = ", which is for `optdp randomize`, `shuffle` and `analyze`"

    @cached_property
    def verified(self) -> VerifiedShuffle:
        found: VerifiedShuffle = at(SHUFFLE.verify)(self.path, found=self.deployed)
        return found


Some = TypeVar("Some", bound=Opened)


@overload
def open_artifact(source: str | Path | Opened, *, allow_outside: bool = ..., check: bool = ...) -> Opened: ...


@overload
def open_artifact(
    source: str | Path | Opened, *only: type[Some], allow_outside: bool = ..., check: bool = ...
) -> Some: ...


def open_artifact(
    source: str | Path | Opened, *only: type[Opened], allow_outside: bool = False, check: bool = True
) -> Opened:
    """Open a file or folder that `solve` wrote, and raise unless every claim of it that can be checked holds.

    Parameters
    ----------
    source
        The file, or the folder of a plan; what was opened already is looked at once more, but not read again.
    only
        Which kinds are welcome: others are refused before anything is recomputed. All of them by default.
    allow_outside
        The files that an order names lie in its folder or below it, unless this is true.
    check
        False if the claims shall not be recomputed before somebody asks for `verified`.

    Returns
    -------
    OpenedMatrix, OpenedPlan, OpenedParty, OpenedOrder or OpenedShuffle
        What it is, with `claim`, `sha256` and `verified`.

    Examples
    --------
    >>> import tempfile
    >>> from optdp import Population, SingleLTE, open_artifact, solve
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     solve(SingleLTE(Population.binomial(10, "0.1"), epsilon=1)).save(f"{folder}/a.json")
    ...     opened = open_artifact(f"{folder}/a.json")
    >>> type(opened).__name__, opened.claim["epsilon"]
    ('OpenedMatrix', '1')
    """
    found = source if isinstance(source, Opened) else _read(Path(source), only, allow_outside)
    _welcome(found.path, type(found), only)
    if check:
        _ = found.verified
    return found


def _read(place: Path, only: tuple[type[Opened], ...], allow_outside: bool) -> Opened:
    begin = time.perf_counter()
    if os.path.isdir(place):  # a name that no file can have is none
        _welcome(place, OpenedPlan, only)
        plan = _read_plan(place, *_read_document(place))
        return OpenedPlan(place, plan.document["sha256"], plan.claim, begin, plan)
    data = read_bytes(place, mark=MARK)
    if MARK in data[:4096]:
        _welcome(place, OpenedOrder, only)
        order = at(ORDERS.read)(place, data)
        return OpenedOrder(place, order.sha256, order.claim, begin, order, allow_outside)
    if SHUFFLED in data[:256]:
        _welcome(place, OpenedShuffle, only)
        deployed = at(SHUFFLE.read)(place, data)
        return OpenedShuffle(place, deployed.sha256, deployed.claim, begin, deployed)
    artifact = read_party(place, data)
    said = (place, artifact.sha256, artifact.claim, begin)
    if isinstance(artifact, SeededArtifact) or artifact.problem.get("kind") == MultiLTE.kind:
        _welcome(place, OpenedParty, only)
        return OpenedParty(*said, _member(artifact, place))
    _welcome(place, OpenedMatrix, only)
    try:
        problem = from_spec(SingleLTE, artifact.problem)
    except ProblemError as error:
        raise ArtifactError(f"The artifact's problem must be a valid one. Found: {error}") from None
    return OpenedMatrix(*said, artifact, problem, fitted(artifact, problem))


def verify(path: str | Path) -> Verified:
    """Recompute everything that an artifact claims, from the file alone.

    Parameters
    ----------
    path : str or Path
        The file that `Solution.save` or `optdp solve --out` wrote.

    Returns
    -------
    Verified
        The problem, the matrix and a new certificate. Raises CertificateError if a claim does not hold, and
        ArtifactError if the file is no artifact or was changed.

    Examples
    --------
    >>> import tempfile
    >>> from optdp import Population, SingleLTE, solve, verify
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     solve(SingleLTE(Population.binomial(10, "0.1"), epsilon=1)).save(f"{folder}/a.json")
    ...     verified = verify(f"{folder}/a.json")
    >>> round(float(verified.certificate.mae), 4)
    0.4571
    """
    return open_artifact(path, OpenedMatrix).verified


def verify_plan(folder: str | Path) -> VerifiedPlan:
    """Recompute everything that a plan claims, from its files alone.

    Parameters
    ----------
    folder : str or Path
        The folder that `PlanSolution.save` or `optdp solve --out` wrote: `plan.json` and one file for each party.

    Returns
    -------
    VerifiedPlan
        The problem, the tables and a new certificate. Raises CertificateError if a claim does not hold, and
        ArtifactError if a file is no artifact or was changed.

    Examples
    --------
    >>> import tempfile
    >>> from optdp import MultiLTE, Population, solve, verify_plan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     solve(MultiLTE([Population.binomial(4, "0.2")] * 2, epsilon=1, honest=1)).save(f"{folder}/plan")
    ...     verified = verify_plan(f"{folder}/plan")
    >>> len(verified.tables), verified.certificate.epsilon <= 1
    (2, True)
    """
    return open_artifact(folder, OpenedPlan).verified


def _welcome(place: Path, kind: type[Opened], only: tuple[type[Opened], ...]) -> None:
    if only and kind not in only:
        wanted = [other.noun for other in only]
        listed = " or ".join(filter(None, (", ".join(wanted[:-1]), wanted[-1])))
        raise ArtifactError(f"{name_of(place)} is {kind.noun}{kind.more}. Give {listed}.")


def _member(artifact: PartyArtifact, place: Path, problem: MultiLTE | None = None) -> Member:
    with named(place):
        return member_of(artifact, problem or from_spec(MultiLTE, artifact.problem))


def open_member(folder: str | Path, party: int) -> tuple[Member, VerifiedPlan | None]:
    """A party's own part of the plan in a folder, and the whole plan if that was verified.

    It is where the folder has all files of the plan. Otherwise the party's file must fit `plan.json`, if that is there,
    and what it says of its own table must hold.
    """
    begin, folder = time.perf_counter(), Path(folder)
    place, document = folder / party_file(party), None
    if (folder / "plan.json").exists():
        document, problem = _read_document(folder)
        if all((folder / party_file(i)).exists() for i in range(len(problem.parties))):
            plan = _read_plan(folder, document, problem)
            if party >= len(problem.parties):
                raise ArtifactError(f"{name_of(place)} is missing: the plan has {len(problem.parties)} parties.")
            verified = verify_tables(plan, folder, begin)
            return Member(plan.artifacts[party], problem, party, plan.tables[party], document["plan"]), verified
    member = open_artifact(place, OpenedParty).member
    if member.party != party:
        raise ArtifactError(f"{name_of(place)}: this is the file of party {member.party}, not of party {party}.")
    with named(place):
        check_alone(member, document)
    return member, None


def _read_document(folder: Path) -> tuple[dict[str, Any], MultiLTE]:
    """What `plan.json` says, and its problem."""
    path = folder / "plan.json"
    data = read_bytes(path)
    with named(path):
        document = plan_document(data)
        problem = from_spec(MultiLTE, document["problem"])
        check_parties(document, problem)
    return document, problem


def _read_plan(folder: Path, document: dict[str, Any], problem: MultiLTE) -> Plan:
    """The plan in a folder: everything but the claims is checked."""
    members = []
    for i in range(len(problem.parties)):
        place = folder / party_file(i)
        if not place.exists():
            raise ArtifactError(f"{name_of(place)} is missing: the plan has {len(problem.parties)} parties.")
        artifact = read_party(place)
        same = artifact.problem == document["problem"]  # then it is not built again for every party
        members.append(_member(artifact, place, problem if same else None))
    return together(folder, document, problem, members)
