"""What is deployed for a metric shuffle, and what it gives away, costs and errs by: all from the deployed numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

from optdp.errors import ProblemError
from optdp.numbers.exact import geometric_ratio, precision, show, there, upper_fraction
from optdp.shuffle.metric import profile
from optdp.shuffle.metric.flips import FlippedPair
from optdp.shuffle.metric.profile import Losses
from optdp.shuffle.metric.released import Released, Shares
from optdp.work import Progress, silent

PATIENCE = 15.0  # about how many seconds a profile may take; a longer one is refused before it is begun
NODES, SPREAD = 24, 1.06
"""So many distances have their own loss over all data sets; later ones are looked at by steps of this factor."""
RR_TOLERANCE = 1e-3  # how far the proved loss of flipped bits may lie above that of an actual data set


@dataclass(frozen=True)
class Design:
    """The deployed numbers: the noise of everybody, the padding, or how often bits are flipped."""

    mechanism: str
    n: int
    k: int
    quantum: int = 1
    dimensions: int = 1
    eps_geo: Fraction | None = None
    shares: Shares | None = None
    c: int | None = None
    flip: Fraction | None = None
    honest: int | None = None

    @classmethod
    def noisy(cls, mechanism: str, n: int, beta: Fraction, eps_geo: Fraction, c: int | None, **more: Any) -> Design:
        """Noise of `SGDL(beta, q)` each, `q` the rational that is just not below `e^-eps_geo`."""
        people = 1 if mechanism == "geo-central" else n
        shares = Shares(people, beta, geometric_ratio(eps_geo))
        return cls(mechanism, n, eps_geo=eps_geo, shares=shares, c=c, **more)

    def proved(self) -> Design:
        """The same, with its laws enclosed in balls."""
        return self if self.shares is None else replace(self, shares=replace(self.shares, proved=True))

    @property
    def noise(self) -> Shares:
        """The noise of everybody; all mechanisms but rr have it."""
        return there(self.shares)

    @property
    def fewest(self) -> int:
        """How many people add their noise at least."""
        return self.n if self.honest is None else self.honest

    def of_honest(self, count: int) -> Design:
        """The same, proved, if so many people add their noise."""
        return replace(self.proved(), honest=count)

    @property
    def hiding(self) -> Shares:
        """The noise of so few."""
        return replace(self.noise, n=self.fewest)

    @property
    def trusted(self) -> bool:
        """Whether nothing but one person's own noise, or a curator, is relied on."""
        return self.mechanism in ("geo-local", "geo-central")

    @property
    def largest(self) -> int:
        """The largest value, in quanta."""
        return -(-self.k // self.quantum)

    @property
    def bits(self) -> int:
        """What everybody sends: unary through a shuffler, an ordinary number without one."""
        if self.mechanism == "geo-central":
            each = self.k.bit_length()
        elif self.mechanism == "geo-local":
            each = (self.k + 2 * self.noise.padding(Fraction(1, 10**6))).bit_length()
        else:
            each = self.largest + 2 * (self.c or 0)
        return each * self.dimensions

    def parameters(self) -> dict[str, Any]:
        """The parameters that this mechanism has."""
        if self.flip is not None:
            return {"p": float(2 * self.flip)}
        found = {"eps_geo": float(there(self.eps_geo)), "beta": float(self.noise.beta), "c": self.c}
        mine = {"geo": ("eps_geo", "c"), "sgdl": ("eps_geo", "beta", "c"), "hybrid": ("eps_geo", "beta", "c")}
        return {name: found[name] for name in mine.get(self.mechanism, ("eps_geo",))}

    def exact_parameters(self) -> dict[str, str]:
        """The same, exactly, as fractions."""
        if self.flip is not None:
            return {"p": show(2 * self.flip)}
        return {"q": show(self.noise.q), "beta": show(self.noise.beta)}


def distances(design: Design, furthest: int) -> Sequence[Any]:
    """All distances up to the furthest: whole numbers, or shifts in the plane."""
    return profile.shifts_within(furthest) if design.dimensions == 2 else range(1, furthest + 1)


def losses(
    design: Design, delta: float, furthest: int, places: Sequence[Any] | None = None, progress: Progress = silent
) -> Losses:
    """The proved loss at every distance, the shuffler honest; `places` are some of them, for a search.

    What is released is computed from everybody's message, so that it never gives away more than all messages do: each
    person's values at a distance `d` are told apart by at most `d` times what one message gives away per unit, with
    delta 0, and these add up.
    """
    chosen = distances(design, furthest) if places is None else places
    if design.flip is not None:
        return _flipped(design.fewest * design.k, design.n * design.k, design, delta, chosen, progress)
    if design.trusted:
        return _pure(design, chosen)
    return _capped(_profile(_released(design, delta, furthest), design, delta, chosen, progress), design)


def worst_epsilon(design: Design, delta: float, furthest: int, progress: Progress = silent) -> float:
    """The epsilon that is proved for every distance, computed at a few: the loss never falls with the distance, so that
    between two of them it is at most that at the larger one.
    """
    if design.flip is not None or design.trusted or design.dimensions == 2:
        return largest_epsilon(losses(design, delta, furthest, progress=progress))
    released, each = _released(design, delta, furthest), _each(design)
    found: dict[int, float] = {}
    asked = {1, furthest}
    while asked:
        looked = _capped(_profile(released, design, delta, sorted(asked), progress), design)
        found |= {int(distance): loss for distance, loss in looked}
        known, rate = sorted(found), max(loss / distance for distance, loss in found.items()) * (1.0 + 1e-9)
        pairs = pairwise(known)
        asked = {(a + b) // 2 for a, b in pairs if b > a + 1 and min(found[b] / (a + 1), each) > rate}
    return rate


def broken(design: Design, delta: float, furthest: int, epsilon: float, places: Sequence[Any]) -> list[Any]:
    """At which of some distances the loss is above `epsilon` times the distance, the shuffler honest."""
    if design.shares is None or design.trusted or design.quantum > 1:
        found = losses(design, delta, furthest, places)
        kept = epsilon * (1.0 + 2.0**-50)
        return [place for place, (far, loss) in zip(places, found, strict=True) if loss > kept * far]
    if local_epsilon(design, 0.0, 1)[0] <= epsilon:
        return []
    released = _released(design, delta, furthest)
    if design.dimensions == 2:
        return list(profile.spending_more(released, delta, places, epsilon))
    return [distance for distance in places if released.moved.delta(distance, epsilon * distance) > delta]


def local_losses(design: Design, delta: float, furthest: int, progress: Progress = silent) -> Losses:
    """The same of one person's message alone: what a compromised shuffler learns."""
    chosen = distances(design, furthest)
    if design.flip is not None:
        return _flipped(design.k, design.k, design, delta, chosen, progress)
    if design.mechanism == "geo-central":
        return [(place[0], math.inf) for place in _pure(design, chosen)]
    if design.mechanism == "geo-local":
        return _pure(design, chosen)
    alone = replace(design, n=1, honest=None, shares=replace(design.noise, n=1), c=None)
    return _capped(_profile(_released(alone, delta, furthest), design, delta, chosen, progress), design)


def local_epsilon(design: Design, delta: float, furthest: int, progress: Progress = silent) -> tuple[float, float]:
    """What one message alone gives away per unit of distance, and the delta that goes with it.

    For shares with `beta <= 1` it is `log f(0)/f(1)` with delta 0 (D, Theorem 7.2), for geometric noise eps_geo:
    ratios fall with the distance from the middle, and clamping is done after the noise. A coarse message moves by one
    quantum of Q with probability 1/Q for a unit, so that e^local - 1 is divided by Q. For flipped bits it is the
    profile of one person's count at delta.
    """
    if design.mechanism == "geo-central":
        return math.inf, 0.0
    if design.flip is not None:
        return largest_epsilon(local_losses(design, delta, furthest, progress)), delta
    return _each(design) * (math.sqrt(2.0) if design.dimensions == 2 else 1.0), 0.0


def _each(design: Design) -> float:
    """What one message, of one coordinate, gives away per unit, with delta 0."""
    with precision():
        zero, one = design.noise.own.balls(0, 1)
        each = float(upper_fraction((zero / one).log())) * (1.0 + 2.0**-52)
    return math.log1p(math.expm1(each) / design.quantum) if design.quantum > 1 else each


def _capped(found: Losses, design: Design) -> Losses:
    each = _each(design) * (1.0 + 2.0**-50)
    return [(distance, min(loss, each * _steps(distance, design.dimensions))) for distance, loss in found]


def _steps(distance: float, dimensions: int) -> int:
    """How many units the coordinates may differ by in all, at a distance."""
    if dimensions == 1:
        return int(distance)
    steps = math.ceil(distance * math.sqrt(2.0) * (1.0 + 2.0**-50))
    while math.hypot(steps - steps // 2, steps // 2) > distance * (1.0 + 2.0**-50):
        steps -= 1
    return steps


def _released(design: Design, delta: float, furthest: int) -> Released:
    """What is released; refused at once if the profile up to the furthest distance would take too long."""
    reach = profile.quanta(furthest, design.quantum, delta) if design.quantum > 1 else furthest
    released = Released(design.hiding, design.c, reach, delta, min(design.n, furthest))
    if design.dimensions == 2:
        work, grows = 0.4 * furthest**2 * (1e-4 + 1e-6 * released.window), 2
    elif design.quantum > 1:
        work, grows = furthest * reach * (1e-4 + 1e-7 * released.window), 2
    else:
        work, grows = furthest * 2.5e-8 * released.window, 1
    work *= 3.0 if design.mechanism == "hybrid" else 1.0  # it searches for the share as well
    if work > PATIENCE and furthest > 1:
        fits = max(1, math.floor(furthest * (PATIENCE / work) ** (1.0 / grows)))
        raise ProblemError(
            f"A profile up to max_distance = {furthest:,} takes too long with noise that reaches over "
            f"{released.window:,} units. Take max_distance = {fits:,}, or count in larger units."
        )
    return released


def largest_epsilon(found: Losses) -> float:
    """The epsilon that holds at every distance."""
    return max(loss / distance for distance, loss in found) * (1.0 + 2.0**-52)


def _profile(released: Released, design: Design, delta: float, chosen: Sequence[Any], progress: Progress) -> Losses:
    if design.dimensions == 2:
        return profile.plane(released, delta, chosen, progress)
    if design.quantum > 1:
        return profile.coarse(released, delta, chosen, design.quantum, progress)
    return profile.line(released, delta, chosen, progress)


def _pure(design: Design, chosen: Sequence[Any]) -> Losses:
    """Geometric noise: eps_geo for every unit, whatever delta is."""
    each = float(there(design.eps_geo))
    lengths = [math.hypot(*place) if design.dimensions == 2 else float(place) for place in chosen]
    return [(length, each * _steps(length, design.dimensions)) for length in lengths]


def _flipped(bits: int, limit: int, design: Design, delta: float, chosen: Sequence[Any], progress: Progress) -> Losses:
    """Flipped bits, of which so many are flipped at least, and most at most; in the plane the losses of both
    coordinates add up, at half of delta each.
    """
    flat = sorted({d for shift in chosen for d in shift if d}) if design.dimensions == 2 else list(chosen)
    share = delta / design.dimensions
    inside = [d for d in flat if d <= limit]
    by = _few_losses(bits, there(design.flip), share, inside, progress)
    top = max(by.values(), default=0.0)
    known: dict[int, float] = {d: by.get(d, top) for d in flat}  # sums are never further apart than there may be bits
    known[0] = 0.0
    places = (
        [(math.hypot(*shift), sum(known[d] for d in shift)) for shift in chosen]
        if design.dimensions == 2
        else [(float(d), known[d]) for d in chosen]
    )
    most: float = 0.0
    rising: Losses = []
    for distance, loss in places:
        most = max(most, loss)
        rising.append((distance, most))
    return rising


def _few_losses(bits: int, flip: Fraction, delta: float, places: Sequence[int], progress: Progress) -> dict[int, float]:
    """The loss at every distance, computed at some. It never falls with the distance: between two of these it is at
    most that at the larger one, and at most the largest loss per unit, which is proved to be among those computed.
    """
    rate, last = 0.0, 0
    chosen: set[int] = set()
    for i, d in enumerate(places):
        if i < NODES or i + 1 == len(places) or places[i + 1] > SPREAD * last:
            chosen.add(d)
            last = d
    found: dict[int, float] = {}
    while chosen:
        for i, d in enumerate(sorted(chosen)):
            progress(f"certifying over all data sets: distance {i + 1:,} of {len(chosen):,} that are looked at")
            found[d] = _worst(max(bits, d), flip, delta, d)  # more who differ are more who flip
        rate = max(loss / d for d, loss in found.items())
        chosen, below = set(), 0
        for d in sorted(found):
            between = [other for other in places if below < other < d]
            if between and found[d] > rate * between[0]:
                chosen.add(between[len(between) // 2])
            below = d
    least: dict[int, float] = {}
    loss = math.inf
    for d in sorted(places, reverse=True):
        loss = min(loss, found.get(d, math.inf))
        least[d] = min(loss, rate * d)
    return least


@lru_cache(maxsize=1 << 16)
def _worst(bits: int, flip: Fraction, delta: float, distance: int) -> float:
    """Kept, as a search ends where the certificate begins."""
    return FlippedPair(bits, flip, delta, distance).worst(RR_TOLERANCE).upper
