"""What is deployed for a metric shuffle, and what it gives away, costs and errs by: all from the deployed numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.math.exact import geometric_ratio, precision, show, upper_fraction
from optdp.math.noise_law import NoiseLaw, log_of
from optdp.shuffle import profile
from optdp.shuffle.flips import flip_error, worst_losses
from optdp.shuffle.profile import Losses
from optdp.shuffle.released import Released, Shares

BINS = 2000
RR_TOLERANCE = 1e-3
"""How far the proved loss of flipped bits may lie above that of an actual data set."""


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
            assert self.shares is not None
            each = (self.k + 2 * self.shares.padding(Fraction(1, 10**6))).bit_length()
        else:
            each = self.largest + 2 * (self.c or 0)
        return each * self.dimensions

    def parameters(self) -> dict[str, Any]:
        """The parameters that this mechanism has."""
        if self.flip is not None:
            return {"p": float(2 * self.flip)}
        assert self.shares is not None
        assert self.eps_geo is not None
        found: dict[str, Any] = {"eps_geo": float(self.eps_geo), "beta": float(self.shares.beta), "c": self.c}
        mine = {"geo": ("eps_geo", "c"), "sgdl": ("eps_geo", "beta", "c"), "hybrid": ("eps_geo", "beta", "c")}
        return {name: found[name] for name in mine.get(self.mechanism, ("eps_geo",))}

    def exact_parameters(self) -> dict[str, str]:
        """The same, exactly, as fractions."""
        if self.flip is not None:
            return {"p": show(2 * self.flip)}
        assert self.shares is not None
        return {"q": show(self.shares.q), "beta": show(self.shares.beta)}


def distances(design: Design, furthest: int) -> Sequence[Any]:
    """All distances up to the furthest: whole numbers, or shifts in the plane."""
    return profile.shifts_within(furthest) if design.dimensions == 2 else range(1, furthest + 1)


def losses(design: Design, delta: float, furthest: int, places: Sequence[Any] | None = None) -> Losses:
    """The proved loss at every distance, the shuffler honest; `places` are some of them, for a search."""
    chosen = distances(design, furthest) if places is None else places
    if design.flip is not None:
        return _flipped(design.n * design.k, design, delta, chosen)
    assert design.shares is not None
    if design.trusted:
        return _pure(design, chosen)
    reach = profile.quanta(furthest, design.quantum, delta) if design.quantum > 1 else furthest
    released = Released(design.shares, design.c, reach, delta, furthest)
    return _profile(released, design, delta, chosen)


def local_losses(design: Design, delta: float, furthest: int) -> Losses:
    """The same of one person's message alone: what a compromised shuffler learns."""
    chosen = distances(design, furthest)
    if design.flip is not None:
        return _flipped(design.k, design, delta, chosen)
    assert design.shares is not None
    if design.mechanism == "geo-central":
        return [(place[0], math.inf) for place in _pure(design, chosen)]
    if design.mechanism == "geo-local":
        return _pure(design, chosen)
    one = replace(design.shares, n=1)
    reach = profile.quanta(furthest, design.quantum, delta) if design.quantum > 1 else furthest
    return _profile(Released(one, None, reach, delta), design, delta, chosen)


def local_epsilon(design: Design, delta: float, furthest: int) -> tuple[float, float]:
    """What one message alone gives away per unit of distance, and the delta that goes with it.

    For shares with `beta <= 1` it is `log f(0)/f(1)` with delta 0 (D, Theorem 7.2), for geometric noise eps_geo:
    ratios fall with the distance from the middle, and clamping is done after the noise. A coarse message moves by one
    quantum of Q with probability 1/Q for a unit, so that e^local - 1 is divided by Q. For flipped bits it is the
    profile of one person's count at delta.
    """
    if design.mechanism == "geo-central":
        return math.inf, 0.0
    if design.flip is not None:
        return largest_epsilon(local_losses(design, delta, furthest)), delta
    assert design.shares is not None
    with precision():
        zero, one = design.shares.own.balls(0, 1)
        each = float(upper_fraction((zero / one).log())) * (1.0 + 2.0**-52)
    each = math.log1p(math.expm1(each) / design.quantum) if design.quantum > 1 else each
    return each * (math.sqrt(2.0) if design.dimensions == 2 else 1.0), 0.0


def largest_epsilon(found: Losses) -> float:
    """The epsilon that holds at every distance."""
    return max(loss / distance for distance, loss in found) * (1.0 + 2.0**-52)


def errors(design: Design) -> tuple[float, float]:
    """Mean absolute and root mean square error of the released sum; in the plane of its Euclidean distance.

    For noise both are exact but for the rare clamping; roundings of coarse messages are taken at their worst, and the
    mean absolute error is then that of a normal law, as it is for flipped bits in the plane.
    """
    if design.flip is not None:
        mae, rms = flip_error(design.n * design.k, design.flip)
        return (mae, rms) if design.dimensions == 1 else (rms * math.sqrt(math.pi / 2.0), rms * math.sqrt(2.0))
    assert design.shares is not None
    law = sum_law(design.shares)
    deviation = design.shares.deviation
    if design.dimensions == 2:
        return _mean_length(law), deviation * math.sqrt(2.0)
    if design.quantum == 1:
        return law.mean_absolute(), deviation
    rms = design.quantum * math.sqrt(deviation**2 + design.n / 4.0)
    return rms * math.sqrt(2.0 / math.pi), rms


def sum_law(shares: Shares) -> NoiseLaw:
    """The law of all noise together, as far as it matters for its moments."""
    reach = 64 + math.ceil(8.0 * shares.deviation - 40.0 / log_of(shares.q))
    return shares.law(shares.n, reach)


def _mean_length(law: NoiseLaw) -> float:
    """The mean length of a vector whose coordinates have this law, to five digits: in bins if it is wide."""
    width = -(-(law.reach + 1) // BINS)
    weights = np.add.reduceat(np.exp(law.log_p), np.arange(0, law.reach + 1, width))
    weights[0] -= 0.5 * math.exp(law.log_p[0])  # zero belongs to both sides
    places = np.arange(len(weights)) * width + 0.5 * (width - 1)
    return float(4.0 * weights @ np.hypot(places[:, None], places[None, :]) @ weights)


def _profile(released: Released, design: Design, delta: float, chosen: Sequence[Any]) -> Losses:
    if design.dimensions == 2:
        return profile.plane(released, delta, chosen)
    if design.quantum > 1:
        return profile.coarse(released, delta, chosen, design.quantum)
    return profile.line(released, delta, chosen)


def _pure(design: Design, chosen: Sequence[Any]) -> Losses:
    """Geometric noise: eps_geo for every unit, whatever delta is."""
    assert design.eps_geo is not None
    each = float(design.eps_geo)
    if design.dimensions == 2:
        rising: dict[float, float] = {}
        most = 0.0
        for shift in chosen:  # nearer people may take more steps: (1, 1) is nearer than (2, 0)
            most = rising[math.hypot(*shift)] = max(most, each * sum(shift))
        return [(math.hypot(*shift), rising[math.hypot(*shift)]) for shift in chosen]
    return [(float(distance), each * distance) for distance in chosen]


def _flipped(bits: int, design: Design, delta: float, chosen: Sequence[Any]) -> Losses:
    """Flipped bits; in the plane the losses of both coordinates add up, at half of delta each."""
    assert design.flip is not None
    flat = sorted({d for shift in chosen for d in shift if d}) if design.dimensions == 2 else list(chosen)
    share = delta / design.dimensions
    inside = [d for d in flat if d <= bits]
    by = {found.distance: found.upper for found in worst_losses(bits, design.flip, share, inside, RR_TOLERANCE)}
    top = max(by.values(), default=0.0)
    known = {0: 0.0} | {d: by.get(d, top) for d in flat}  # sums are never further apart than there are bits
    places = (
        [(math.hypot(*shift), sum(known[d] for d in shift)) for shift in chosen]
        if design.dimensions == 2
        else [(float(d), known[d]) for d in chosen]
    )
    most, rising = 0.0, []
    for distance, loss in places:
        most = max(most, loss)
        rising.append((distance, most))
    return rising
