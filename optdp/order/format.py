"""The file that a shuffler gets: the order, the shuffle's `q`, whose groups it was made for, and the claim.

Format "optdp/order", version 1: `n`, `distance`, `order` (record numbers from 0, the first position first), `groups`
(their SHA-256 digest, see `Groups.digest`), `problem` (as in its TOML file, files named from where this file lies),
`claim` (`alpha`, `theta`, `sensitivity`, `width`; `q` as a pair of decimal strings), `provenance`, `sha256`. Problem
and claim have `values` too if they are for answers of at most so many different values. What no order is below was
computed with routes through all groups that no file could hold, so it is provenance and no claim.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.files.atomic import LONG_BYTES, LONG_VALUES, name_of, read_bytes, write_bytes
from optdp.files.canonical import canonical, check, parse
from optdp.numbers.exact import show, shown, to_fraction
from optdp.objects import Public
from optdp.order.alphabet import MOST
from optdp.order.mechanism import DISTANCES, FILES, Groups, Whole, alpha_of, dispersion, measured
from optdp.order.sources import GroupsModel

if TYPE_CHECKING:
    from optdp.order.solve import OrderSolution

FORMAT = "optdp/order"
_KEYS = {"format", "version", "n", "distance", "order", "groups", "problem", "claim", "provenance", "sha256"}
_CLAIM = {"alpha", "theta", "q", "sensitivity", "width", "meaning"}
_PROBLEM = {"kind", "alpha", "distance", "groups"}
_WHOLE = ("sensitivity", "width")
_NUMBER = re.compile(r"[0-9]{1,400}(\.[0-9]{1,400})?(e[-+]?[0-9]{1,4})?(/[0-9]{1,400})?")
_DIGITS = re.compile(r"[0-9]{1,1000}")


@dataclass(frozen=True, eq=False)
class Order(Public):
    """An order as its file has it, its digest checked."""

    n: int
    distance: str
    order: Whole
    """The record at each position."""
    digest: str
    problem: Mapping[str, Any]
    claim: Mapping[str, Any]
    sha256: str

    def files(self, folder: Path) -> list[Path]:
        """Where the groups come from."""
        spec = self.problem.get("groups") or {}
        return [folder / spec[key] for key in FILES if isinstance(spec.get(key), str)]

    @property
    def q(self) -> Fraction:
        return Fraction(int(self.claim["q"][0]), int(self.claim["q"][1]))

    @property
    def values(self) -> int | None:
        """How many different values the answers may have; None: any number."""
        return self.claim.get("values")


@dataclass(frozen=True, eq=False)
class VerifiedOrder(Public):
    """What was recomputed from the order and the groups."""

    artifact: Order
    groups: Groups
    sensitivity: int
    alpha: Fraction
    theta: float
    seconds: float


def write_order(solution: OrderSolution, path: Path) -> None:
    """Write it, atomically."""
    problem, q = solution.problem, solution.q
    spec = dict(problem.spec)
    folder = Path(os.path.realpath(path)).parent
    if spec:
        spec = {key: os.path.relpath(value, folder) if key in FILES else value for key, value in spec.items()}
    titled = {"title": problem.title} if problem.title else {}
    valued = {} if problem.values is None else {"values": problem.values}
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": 1,
        "n": solution.n,
        "distance": problem.distance,
        "order": solution.order.tolist(),
        "groups": problem.groups.digest,
        "problem": {"kind": problem.kind, "alpha": show(problem.alpha), "distance": problem.distance, "groups": spec}
        | titled
        | valued,
        "claim": {
            "alpha": show(problem.alpha),
            "theta": None if math.isinf(solution.theta) else repr(solution.theta),
            "q": [str(q.numerator), str(q.denominator)],
            "sensitivity": solution.sensitivity,
            "width": solution.width,
            "meaning": problem.meaning,
        }
        | valued,
        "provenance": {
            "optdp": version("optdp"),
            "ordering": solution.ordering,
            "status": solution.status,
            "lower_bound": solution.lower_bound,
        },
    }
    document["sha256"] = _digest(document)
    write_bytes(path, f"{canonical(document)}\n".encode())


def read_order(path: str | Path, data: bytes | None = None) -> Order:
    """An order, its form and digest checked; what it claims is checked by `verify_order`.

    `data` are the bytes of its file, if they were read already.
    """
    data = read_bytes(path, LONG_BYTES) if data is None else data
    document = parse(data, LONG_VALUES)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ArtifactError(f"An order's file has the format {FORMAT!r}. Found something else in {name_of(path)}.")
    if type(document.get("version")) is not int or document["version"] != 1 or set(document) != _KEYS:
        raise ArtifactError(f"{name_of(path)} must have version 1 and the keys {', '.join(sorted(_KEYS))}.")
    if document["sha256"] != _digest({key: value for key, value in document.items() if key != "sha256"}):
        raise ArtifactError(f"{name_of(path)} was changed: its sha256 does not fit. Do not use it; solve again.")
    n, order = document["n"], document["order"]
    if not isinstance(n, int) or isinstance(n, bool) or not isinstance(order, list) or len(order) != n or n < 1:
        raise ArtifactError("An order must hold n records, n at least 1. Found another number of them.")
    if not all(type(record) is int and 0 <= record < n for record in order) or len(set(order)) < n:
        raise ArtifactError("An order must be a permutation of 0..n-1. Found a record twice, or one that is not there.")
    _check_claim(document)
    check(data, (canonical(document), "\n"))
    return Order(
        n, document["distance"], np.array(order, dtype=np.int64), document["groups"], document["problem"],
        document["claim"], document["sha256"],
    )  # fmt: skip


def verify_order(
    path: str | Path, groups: Groups | None = None, *, allow_outside: bool = False, found: Order | None = None
) -> VerifiedOrder:
    """Recompute the claim from the order and the groups: those given, or made again from the files they came from.

    Those files lie in the order's folder or below it, unless `allow_outside`. `found` is what its file says, if that
    was read already.
    """
    begin = time.perf_counter()
    found = found or read_order(path)
    folder = Path(os.path.realpath(path)).parent
    if groups is None:
        groups = _groups(found, folder, allow_outside)
    if groups.n != found.n or groups.digest != found.digest:
        raise ArtifactError(
            f"The groups must be those that the order was made for, digest {found.digest[:12]}... Found "
            f"{groups.digest[:12]}... for {groups.n:,} records. Solve again for these groups."
        )
    largest, width = measured(groups, found.order, found.distance, found.values)
    if largest != found.claim["sensitivity"] or width != found.claim["width"]:
        raise CertificateError(
            f"The order's sensitivity is claimed to be {shown(found.claim['sensitivity'])}. Found {largest}. "
            "Do not use it."
        )
    wanted = to_fraction(found.claim["alpha"], "alpha")
    if largest and found.q == 0:
        raise CertificateError("The order is claimed to be private, but nothing is random (q = 0). Do not use it.")
    alpha = alpha_of(found.q, largest)
    if alpha > wanted:
        raise CertificateError(f"alpha is claimed to be {show(wanted)}. Found {float(alpha):.12g}. Do not use it.")
    theta = dispersion(found.q)
    claimed = found.claim["theta"]
    if (claimed is None) != math.isinf(theta) or (claimed is not None and not math.isclose(float(claimed), theta)):
        raise CertificateError(f"theta is claimed to be {shown(claimed)}. Found {theta:.12g}. Do not use it.")
    return VerifiedOrder(found, groups, largest, alpha, theta, time.perf_counter() - begin)


def _groups(found: Order, folder: Path, allow_outside: bool) -> Groups:
    spec = found.problem.get("groups")
    if not isinstance(spec, Mapping) or not spec:
        raise ProblemError("The order's file does not say where its groups come from. Verify it with them, in Python.")
    model = GroupsModel.read(spec, folder, allow_outside)
    if (model.graph or model.file) and model.n not in (None, found.n):  # before ten million groups are made
        raise ArtifactError(f"The groups must be of the order's {found.n:,} records. Found n = {shown(model.n)}.")
    return model.build()


def _check_claim(document: Mapping[str, Any]) -> None:
    claim, texts = document["claim"], (document["groups"], document["distance"])
    plain = isinstance(claim, dict) and isinstance(document["problem"], dict)
    plain = plain and isinstance(document["problem"].get("title", ""), str)
    if not plain or not all(isinstance(text, str) for text in texts) or document["distance"] not in DISTANCES:
        raise ArtifactError("An order's file must name a distance, the digest of its groups, a problem and a claim.")
    if set(claim) - {"values"} != _CLAIM or any(type(claim[name]) is not int or claim[name] < 0 for name in _WHOLE):
        raise ArtifactError(f"A claim must have {', '.join(sorted(_CLAIM))}; {', '.join(_WHOLE)} whole numbers.")
    theta, alpha = claim["theta"], claim["alpha"]
    if (
        not isinstance(alpha, str)
        or not _NUMBER.fullmatch(alpha)
        or not (theta is None or (isinstance(theta, str) and _NUMBER.fullmatch(theta) and "/" not in theta))
    ):
        raise ArtifactError("alpha and theta must be decimal strings. Found something else.")
    stated = tuple(document["problem"].get(name) for name in ("kind", "alpha", "distance"))
    keys = set(document["problem"]) - {"title", "values"}
    if stated != ("order-shuffle", alpha, document["distance"]) or keys != _PROBLEM or not _values_agree(document):
        raise ArtifactError("The claim must be that of the problem in the file. Found another.")
    if not re.fullmatch("[0-9a-f]{64}", document["groups"]) or not isinstance(document["provenance"], dict):
        raise ArtifactError("groups must be a SHA-256 digest, and provenance an object. Found something else.")
    q: Any = claim["q"]
    digits = (
        isinstance(q, list) and len(q) == 2 and all(isinstance(part, str) and _DIGITS.fullmatch(part) for part in q)
    )
    if not digits or max(map(len, q)) > 1000 or int(q[1]) == 0 or int(q[0]) > int(q[1]):
        raise ArtifactError(f"q must be two decimal strings, a fraction from 0 to 1. Found {shown(q)}.")


def _values_agree(document: Mapping[str, Any]) -> bool:
    """Whether the claim is for answers of as many values as the problem has, by the distance that it is proved for."""
    claim, problem = document["claim"], document["problem"]
    if "values" not in claim and "values" not in problem:
        return True
    values = claim.get("values")
    right = type(values) is int and 2 <= values <= MOST and document["distance"] == "kendall"
    return right and type(problem.get("values")) is int and problem["values"] == values


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(dict(document)).encode()).hexdigest()
