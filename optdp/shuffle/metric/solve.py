"""From a metric shuffle to its solution: what to deploy, the certified profile, and every figure about it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from optdp.errors import CertificateError, InfeasibleError, ProblemError
from optdp.kind import at
from optdp.numbers.exact import down, finite, show
from optdp.outcome import Outcome
from optdp.sheet import Cell, Listing, Sheet, figure
from optdp.shuffle import SAVE
from optdp.shuffle import turnout as turnouts
from optdp.shuffle.honest import words
from optdp.shuffle.metric.accuracy import accuracy
from optdp.shuffle.metric.calibrate import calibrate
from optdp.shuffle.metric.design import Design, largest_epsilon, local_epsilon, local_losses, losses
from optdp.shuffle.metric.problem import MECHANISMS, MetricShuffle
from optdp.shuffle.metric.protocol import MetricProtocol
from optdp.shuffle.metric.theorems import Theorem, theorems_of
from optdp.work import Progress, silent

DRAWN = 14  # how many distances of a profile are drawn


@dataclass(frozen=True, kw_only=True, repr=False)
class MetricSolution(Outcome):
    """What is deployed (`design`) and what it gives away: `profile` holds a certified epsilon for every distance."""

    problem: MetricShuffle
    design: Design
    profile: tuple[tuple[float, float], ...]
    local_epsilon: float
    local_delta: float
    mae: float
    rmse: float
    truncation: float
    theorems: tuple[Theorem, ...]
    told = ("status", "n", "epsilon", "problem.delta", "local_epsilon", "mae", "rmse", "bits_per_user")
    drawing = "optdp.shuffle.pictures:of_metric"

    @property
    def n(self) -> int:
        return self.design.n

    @property
    def epsilon(self) -> float:
        """What holds at every distance up to the furthest, per unit."""
        return max(epsilon for _, epsilon in self.profile)

    @cached_property
    def turnout(self) -> turnouts.Turnout:
        """Epsilon against the number of people who add their noise, the deployed numbers as they are."""
        if self.design.trusted or self.problem.shuffler != "honest":
            return ()
        return turnouts.of_noise(self.design, self.problem.delta, self.problem.max_distance)

    @property
    def bits_per_user(self) -> int:
        return self.design.bits

    @property
    def c(self) -> int | None:
        return self.design.c

    @property
    def p(self) -> float | None:
        return None if self.design.flip is None else float(2 * self.design.flip)

    @property
    def eps_geo(self) -> float | None:
        return None if self.design.eps_geo is None else float(self.design.eps_geo)

    @property
    def beta(self) -> float | None:
        return None if self.design.shares is None else float(self.design.shares.beta)

    @property
    def value(self) -> float:
        """What was asked for."""
        return {"n": self.n, "epsilon": self.epsilon, "mae": self.mae}[self.problem.unknown]

    @property
    def theorem(self) -> dict[str, float | None]:
        """What D's theorems say, by their names: `theorem_4_1`, ..."""
        return {theorem.name: theorem.value for theorem in self.theorems}

    def save(self, path: str | Path) -> None:
        """Write the protocol's artifact, atomically."""
        at(SAVE)(self, path)

    def protocol(self) -> MetricProtocol:
        """To run it."""
        return MetricProtocol(self.design)

    def privacy(self) -> dict[str, Any]:
        """What may be claimed of a run."""
        return {
            "epsilon": finite(self.epsilon), "delta": float(self.problem.delta),
            "max_distance": self.problem.max_distance, "shuffler": self.problem.shuffler,
            "profile": [[_plain(distance), finite(epsilon)] for distance, epsilon in self.profile],
            "local_epsilon": finite(self.local_epsilon), "local_delta": self.local_delta,
            "meaning": self.problem.meaning,
        }  # fmt: skip

    def sheet(self) -> Sheet:
        """The deployed parameters, the error, and the profile as bars."""
        problem = self.problem
        parameters = ", ".join(f"{name} = {figure(value)}" for name, value in self.design.parameters().items())
        wanted = "" if problem.epsilon is None else f"  (wanted {float(problem.epsilon):g})"
        who = "shuffler honest" if problem.shuffler == "honest" else "one message alone, shuffler compromised"
        own: list[tuple[str, Cell | str]] = [
            ("deploy", Cell(parameters, "strong", after=f"  (n = {self.n:,}, values 0..{problem.k:,})")),
            ("epsilon per unit", f"{figure(self.epsilon)}{wanted}, up to distance {problem.max_distance}, {who}"),
            ("without the shuffler", f"{figure(self.local_epsilon)} per unit  (delta {self.local_delta:g})"),
            (f"error of the {problem.query}", f"{figure(self.mae)}  (mean absolute; rms {figure(self.rmse)})"),
            ("bits per user", f"{self.bits_per_user:,}"),
        ]
        if self.c is not None:
            own.append(("chance of truncation", f"{self.truncation:.3g}"))
        remarks = ["the paper's theorems, for comparison and never the source of a claim:"] if self.theorems else []
        for theorem in self.theorems:
            said = "nothing" if theorem.value is None else figure(theorem.value)
            remarks.append(f"{theorem.name} says {said} ({theorem.worth})")
        listings: tuple[Listing, ...] = (_drawn(self.profile),) if len(self.profile) > 1 else ()
        if self.turnout:
            own.append(("who must take part", words(self.n, self.design.fewest)))
            listings += (turnouts.listing(self.turnout, self.design.fewest),)
        return Sheet(self.facts(*own), listings, tuple(remarks), problem.meaning)

    def summary(self) -> dict[str, Any]:
        """The figures as `--json` prints them."""
        return {
            "kind": self.problem.kind, "status": self.status, "mechanism": self.problem.mechanism, "n": self.n,
            "parameters": self.design.parameters(), "exact": self.design.exact_parameters(), **self.privacy(),
            "query": self.problem.query, "mae": self.mae, "rmse": self.rmse, "bits_per_user": self.bits_per_user,
            "truncation": self.truncation, "turnout": turnouts.summary(self.turnout),
            "theorems": {t.name: {"value": t.value, "worth": t.worth} for t in self.theorems},
            "given": self.problem.figures(), "seconds": round(self.seconds, 4), "note": self.note,
        }  # fmt: skip


def solve_metric(problem: MetricShuffle, backend: str = "", progress: Progress = silent) -> MetricSolution:
    """Design, then certify the very numbers that are deployed at every distance."""
    begin = time.perf_counter()
    design = calibrate(problem, progress)
    delta, furthest = down(problem.delta), problem.max_distance
    certified = design.proved()
    honest = losses(certified, delta, furthest, progress=progress)
    if problem.epsilon is not None and largest_epsilon(honest) > float(problem.epsilon) * (1.0 + 2.0**-50):
        worst = max(honest, key=lambda place: place[1] / place[0])
        raise CertificateError(
            f"epsilon = {show(problem.epsilon)} does not hold up to distance {furthest}. Found "
            f"{worst[1] / worst[0]:.6g} at distance {worst[0]:g}. Add noise, lengthen the padding, or leave the noise "
            "out to have it found."
        )
    seen = local_losses(certified, delta, furthest, progress) if problem.shuffler == "compromised" else honest
    alone, alone_delta = local_epsilon(design, delta, furthest, progress)
    if problem.local_epsilon is not None and alone > float(problem.local_epsilon) * (1.0 + 2.0**-50):
        raise CertificateError(
            f"local_epsilon = {show(problem.local_epsilon)} does not hold. Found {alone:.6g} for one message alone. "
            "Take a larger beta or a smaller eps_geo, or leave both out to have them found."
        )
    errors = accuracy(design)
    people = design.n if problem.query == "average" else 1
    clamped = 0.0 if design.shares is None or design.c is None else float(design.shares.exceeding(design.c))
    clamped = 1.0 - (1.0 - clamped) ** design.dimensions
    return MetricSolution(
        problem=problem, design=design, local_epsilon=alone, local_delta=alone_delta, mae=errors.mae / people,
        profile=tuple((distance, loss / distance * (1.0 + 2.0**-52)) for distance, loss in seen),
        rmse=errors.rmse / people, truncation=clamped, theorems=theorems_of(problem, design), status="solved",
        note=_note(problem, design, clamped), seconds=time.perf_counter() - begin,
    )  # fmt: skip


def compare_mechanisms(problem: MetricShuffle, progress: Progress = silent) -> list[MetricSolution]:
    """Solve for every mechanism at the same epsilon, delta and distance.

    Parameters
    ----------
    problem : MetricShuffle
        Must give `n` and `epsilon`. The hybrid is included if the problem states a `local_epsilon`.
    progress : callable, optional
        Is told what is being done.

    Returns
    -------
    list of MetricSolution
        One for each mechanism that the problem suits; coarse messages, say, suit three of them.

    Examples
    --------
    >>> from optdp import MetricShuffle, compare_mechanisms
    >>> for found in compare_mechanisms(MetricShuffle("geo", n=100, k=10, delta="1e-4", epsilon="0.5")):
    ...     print(found.problem.mechanism, round(found.mae, 1))
    rr 5.5
    geo 4.4
    sgdl 1.9
    geo-local 22.3
    geo-central 1.9
    """
    if problem.n is None or problem.epsilon is None:
        raise ProblemError("Mechanisms are compared for n people at one epsilon. Give n and epsilon.")
    rows = []
    for name in MECHANISMS:
        if name == "hybrid" and problem.local_epsilon is None:
            continue
        progress(name)
        local = problem.local_epsilon if name == "hybrid" else None
        plain = {"p": None, "eps_geo": None, "beta": None, "c": None, "mae": None}
        if name.startswith("geo-"):
            plain["honest"] = None  # they rely on nobody else's noise
        try:
            changed = problem.changed(mechanism=name, shuffler="honest", local_epsilon=local, **plain)
            rows.append(solve_metric(changed, progress=partial(_named, progress, name)))
        except (ProblemError, InfeasibleError):
            continue
        except KeyboardInterrupt:  # those that are ready
            if not rows:
                raise
            break
    return rows


def _note(problem: MetricShuffle, design: Design, clamped: float) -> str:
    if problem.mechanism == "hybrid" and design.shares is not None and not problem.known:
        if design.shares.beta == 1:
            return "the local epsilon asks for at least Geo-Shuffle's noise"
        if design.hiding.total == 1:
            return "SGDL-Shuffle keeps this local epsilon already"
    if clamped > problem.delta:
        return f"somebody truncates with probability {clamped:.3g}, more than delta: the profile accounts for it"
    return ""


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _named(progress: Progress, name: str, step: str) -> None:
    progress(f"{name}: {step}")


def sheet(rows: Sequence[MetricSolution]) -> Sheet:
    """What each mechanism gives away, with the shuffler and without, its error, its bits."""
    worst = max(row.mae for row in rows)
    listed = tuple(
        (row.problem.mechanism, figure(row.epsilon), figure(row.local_epsilon), figure(row.mae),
         Cell("", "good", row.mae / worst), f"{row.bits_per_user:,}")
        for row in rows
    )  # fmt: skip
    first = rows[0].problem
    remark = (
        f"per unit, up to distance {first.max_distance}, delta {float(first.delta):g}; eps compromised is with delta 0 "
        "but for rr, where it is with this delta"
    )
    head = ("mechanism", "eps honest", "eps compromised", "MAE", "", "bits per user")
    return Sheet((), (Listing(head, listed),), (remark,))


def _drawn(profile: Sequence[tuple[float, float]]) -> Listing:
    """All distances if they are few, otherwise some, the first and the last among them; a bar for each epsilon."""
    places = set(range(min(len(profile), DRAWN)))
    if len(profile) > DRAWN:
        places = {round((len(profile) - 1) ** (i / (DRAWN - 1))) for i in range(DRAWN)} | {0, len(profile) - 1}
    worst = max((epsilon for _, epsilon in profile if math.isfinite(epsilon)), default=1.0) or 1.0
    rows = tuple(
        (f"{distance:.6g}", figure(epsilon), Cell("", "good", epsilon / worst) if math.isfinite(epsilon) else "")
        for distance, epsilon in (profile[i] for i in sorted(places))
    )
    return Listing(("distance", "epsilon per unit", ""), rows)
