"""Metric privacy of a shuffled sum (D): what a user may ask.

`n` people hold whole numbers `0..k`. Their sum is released by unary messages of equal length through a shuffler. Data
sets are as far apart as their values are in all; the release is `(epsilon, delta)`-private up to a distance if, for any
two data sets at a distance `d` of at most that,

    Pr[M(X) in S] <= e^(epsilon d) Pr[M(X') in S] + delta.

With a fixed delta the best epsilon depends on the distance: `eps(d)`, the profile.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from optdp.errors import ProblemError
from optdp.math.exact import Number, check_whole, show, shown, to_fraction

MECHANISMS = {
    "rr": "RR-Shuffle: every bit of the unary value is flipped with probability p/2",
    "geo": "Geo-Shuffle: everybody adds geometric noise of eps_geo",
    "sgdl": "SGDL-Shuffle: everybody adds an n-th share of geometric noise",
    "hybrid": "shares SGDL(beta, q) between the two: as accurate as a stated local epsilon allows",
    "geo-local": "Geo-Local: geometric noise for everybody, nobody is trusted",
    "geo-central": "Geo-Central: geometric noise once, by a curator who sees everything",
}
"""The mechanisms, and what they do."""

LARGEST_N, LARGEST_K, LARGEST_DISTANCE, LARGEST_LOSS = 10**7, 10**6, 5000, 400
_HONEST = (
    "Metric privacy of the shuffled sum: data sets whose values differ by d in all, d up to max_distance, cannot be "
    "told apart better than e^(epsilon d), but for delta. It needs an honest shuffler and n people who add their "
    "noise; local_epsilon is what one person's message alone gives away, per unit, if the shuffler fails."
)
_COMPROMISED = (
    "Metric privacy of one person's message, seen by itself: values that differ by d, d up to max_distance, cannot be "
    "told apart better than e^(epsilon d), but for delta. If several people's values differ, their losses add up. It "
    "needs nobody but the person's own noise, of a message that is nothing but its number of ones."
)


@dataclass(frozen=True, init=False)
class MetricShuffle:
    """A shuffled sum. Give `epsilon` and the noise is found; give the noise and the profile is found; give both and
    the claim is checked. Leave out `n` and give `mae`, and the least number of people for this accuracy is found.

    The noise is `p` for rr, `eps_geo` for geo (and geo-local, geo-central, sgdl, where it is epsilon itself), `beta`
    and `eps_geo` for hybrid, which otherwise needs `local_epsilon`. `c`, the padding, may be given too.
    """

    mechanism: str
    n: int | None
    k: int
    delta: Fraction
    epsilon: Fraction | None
    max_distance: int
    shuffler: str
    p: Fraction | None
    eps_geo: Fraction | None
    beta: Fraction | None
    c: int | None
    local_epsilon: Fraction | None
    mae: Fraction | None
    query: str
    quantum: int
    dimensions: int
    kind: ClassVar[str] = "metric-shuffle"

    def __init__(
        self,
        mechanism: str,
        n: int | None = None,
        k: int = 1,
        delta: Number = Fraction(1, 10**6),
        epsilon: Number | None = None,
        max_distance: int = 1,
        shuffler: str = "honest",
        *,
        p: Number | None = None,
        eps_geo: Number | None = None,
        beta: Number | None = None,
        c: int | None = None,
        local_epsilon: Number | None = None,
        mae: Number | None = None,
        query: str = "sum",
        quantum: int = 1,
        dimensions: int = 1,
    ) -> None:
        _among("mechanism", mechanism, MECHANISMS)
        _among("shuffler", shuffler, ("honest", "compromised"))
        _among("query", query, ("sum", "average"))
        if n is not None:
            check_whole(n, "n", 1, LARGEST_N)
        check_whole(k, "k", 1, LARGEST_K)
        check_whole(max_distance, "max_distance", 1, LARGEST_DISTANCE)
        check_whole(quantum, "quantum", 1, k)
        check_whole(dimensions, "dimensions", 1, 2)
        if c is not None:
            check_whole(c, "c", 0, 10**6)
        if delta is None:
            raise ProblemError("delta is missing. Give the probability with which the promise may fail, such as 1e-6.")
        values = {
            "mechanism": mechanism, "n": n, "k": k, "delta": _within(delta, "delta", "1e-12", "0.5"),
            "epsilon": _within(epsilon, "epsilon", "1e-4", "50"), "max_distance": max_distance, "shuffler": shuffler,
            "p": _within(p, "p", "1e-9", "0.999999"), "eps_geo": _within(eps_geo, "eps_geo", "1e-4", "100"),
            "beta": _within(beta, "beta", "1e-9", "1"), "c": c,
            "local_epsilon": _within(local_epsilon, "local_epsilon", "1e-3", "100"),
            "mae": _within(mae, "mae", "1e-12", "1e15"), "query": query, "quantum": quantum, "dimensions": dimensions,
        }  # fmt: skip
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        name, needed = self.mechanism, self._noise()
        for given in ("p", "eps_geo", "beta"):
            if getattr(self, given) is not None and given not in needed:
                raise ProblemError(f"{given} is no parameter of {name}. Leave it out; its own: {', '.join(needed)}.")
        if self.n is None and (self.mae is None or self.epsilon is None or self.known):
            raise ProblemError("n is missing. Give it, or give epsilon and mae, and the least n is found.")
        if self.epsilon is None and not self.known:
            raise ProblemError(
                f"epsilon is missing. Give it, and the noise is found; or give {' and '.join(needed)}, and it is found."
            )
        if name == "hybrid" and not self.known and self.local_epsilon is None:
            raise ProblemError("A hybrid needs local_epsilon: what one message may give away if the shuffler fails.")
        if name == "hybrid" and (self.beta is None) != (self.eps_geo is None):
            raise ProblemError(
                "A hybrid's noise is beta and eps_geo together. Give both, or neither to have them found."
            )
        if self.local_epsilon is not None and name != "hybrid":
            raise ProblemError(f"local_epsilon is wanted of a hybrid; for {name} it is what comes out. Leave it out.")
        if self.c is not None and name in ("rr", "geo-central", "geo-local"):
            raise ProblemError(f"{name} has no padding. Leave out c.")
        if self.quantum > 1 and (name not in ("geo", "sgdl", "hybrid") or self.dimensions > 1):
            raise ProblemError("quantum is for geo, sgdl and hybrid in one dimension. Leave it out.")
        if self.epsilon is not None and self.epsilon * self.max_distance > LARGEST_LOSS:
            raise ProblemError(
                f"epsilon times max_distance must be at most {LARGEST_LOSS}, beyond which nothing is hidden. Found "
                f"{show(self.epsilon)} and {self.max_distance}. Lower one of them."
            )
        if self.beta is not None and self.n is not None and self.beta * self.n < 1:
            raise ProblemError(f"beta must be at least 1/n. Found {show(self.beta)} with n = {self.n}.")

    def changed(self, **changes: Any) -> MetricShuffle:
        """The same problem with some entries changed."""
        return MetricShuffle(**({field.name: getattr(self, field.name) for field in fields(self)} | changes))

    def _noise(self) -> tuple[str, ...]:
        return {"rr": ("p",), "hybrid": ("beta", "eps_geo")}.get(self.mechanism, ("eps_geo",))

    @property
    def known(self) -> bool:
        """Whether the noise is given."""
        return all(getattr(self, name) is not None for name in self._noise())

    @property
    def unknown(self) -> str:
        """What is found first."""
        if self.n is None:
            return "n"
        return "epsilon" if self.known else "mae"

    @property
    def meaning(self) -> str:
        """What is claimed, and of whom."""
        return _HONEST if self.shuffler == "honest" else _COMPROMISED

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        exact = ("delta", "epsilon", "p", "eps_geo", "beta", "local_epsilon", "mae")
        numbers = {name: getattr(self, name) for name in exact}
        given: dict[str, Any] = {"mechanism": self.mechanism, "n": self.n, "k": self.k}
        given |= {name: show(value) for name, value in numbers.items() if value is not None}
        given |= {"max_distance": self.max_distance, "shuffler": self.shuffler, "c": self.c}
        given |= {"query": self.query, "quantum": self.quantum, "dimensions": self.dimensions}
        defaults = {"shuffler": "honest", "query": "sum", "quantum": 1, "dimensions": 1}
        return {name: value for name, value in given.items() if value is not None and defaults.get(name) != value}


def _among(name: str, value: object, known: Any) -> None:
    if not isinstance(value, str) or value not in known:
        raise ProblemError(f"{name} must be one of {', '.join(known)}. Found {shown(value)}.")


def _within(value: Number | None, name: str, least: str, most: str) -> Fraction | None:
    if value is None:
        return None
    exact = to_fraction(value, name)
    if not Fraction(least) <= exact <= Fraction(most):
        raise ProblemError(f"{name} must be between {least} and {most}. Found {shown(value)}.")
    return exact
