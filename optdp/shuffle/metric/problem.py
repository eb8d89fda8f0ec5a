"""Metric privacy of a shuffled sum (D): what a user may ask.

`n` people hold whole numbers `0..k`. Their sum is released by unary messages of equal length through a shuffler. Data
sets are as far apart as their values are in all; the release is `(epsilon, delta)`-private up to a distance if, for any
two data sets at a distance `d` of at most that,

    Pr[M(X) in S] <= e^(epsilon d) Pr[M(X') in S] + delta.

With a fixed delta the best epsilon depends on the distance: `eps(d)`, the profile.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import field, frozen
from pydantic import StrictInt, StrictStr

from optdp.errors import ProblemError
from optdp.files.models import Exact, Problem, entry
from optdp.numbers.exact import Number, check_whole, show, shown, to_fraction
from optdp.shuffle.honest import fewest
from optdp.shuffle.honest import honest as _honest

if TYPE_CHECKING:
    from optdp.shuffle.metric.solve import MetricSolution  # noqa: F401  # what its problems are solved by

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
    "Metric privacy of the shuffled sum: if people's values changed by d in all, for any d up to max_distance, nothing "
    "that can be concluded from the sum would be more than e^(epsilon d) times likelier, plus delta. It assumes an "
    "honest shuffler and n people who all add their noise; local_epsilon is what one person's message alone gives "
    "away, per unit, if the shuffler fails."
)
_FEWER = (
    "Metric privacy of the shuffled sum: if the values of people who add their noise changed by d in all, for any d up "
    "to max_distance, nothing that can be concluded from the sum would be more than e^(epsilon d) times likelier, plus "
    "delta. It assumes an honest shuffler and as many people who add their noise as honest says, whoever they are; the "
    "others may stay away, send anything, and tell. local_epsilon is what one person's message alone gives away, per "
    "unit, if the shuffler fails."
)
_COMPROMISED = (
    "Metric privacy of one person's message, seen by itself: if that person's value changed by d, for any d up to "
    "max_distance, nothing that can be concluded from the message would be more than e^(epsilon d) times likelier, "
    "plus delta. If several people's values change, their losses add up. It relies on nobody but the person, who must "
    "add the noise and send a message that shows nothing but its number of ones."
)


def meaning(shuffler: str, everybody: bool) -> str:
    """What is promised, and on what assumptions: that everybody adds noise, or some do."""
    if shuffler != "honest":
        return _COMPROMISED
    return _HONEST if everybody else _FEWER


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


def _delta(value: Number) -> Fraction:
    found = _within(value, "delta", "1e-12", "0.5")
    if found is None:
        raise ProblemError("delta is missing. Give a small probability, such as 1e-6.")
    return found


def _epsilon(value: Number | None) -> Fraction | None:
    return _within(value, "epsilon", "1e-4", "50")


def _p(value: Number | None) -> Fraction | None:
    return _within(value, "p", "1e-9", "0.999999")


def _eps_geo(value: Number | None) -> Fraction | None:
    return _within(value, "eps_geo", "1e-4", "100")


def _beta(value: Number | None) -> Fraction | None:
    return _within(value, "beta", "1e-9", "1")


def _local_epsilon(value: Number | None) -> Fraction | None:
    return _within(value, "local_epsilon", "1e-3", "100")


def _mae(value: Number | None) -> Fraction | None:
    return _within(value, "mae", "1e-12", "1e15")


@frozen(eq=False, repr=False)
class MetricShuffle(Problem["MetricSolution"]):
    """A shuffled sum with metric privacy. Give `epsilon` to have the noise computed, the noise to have the profile
    computed, or both to have the claim checked. Leave out `n` and give `mae` to have the smallest number of people for
    this accuracy computed.

    Parameters
    ----------
    mechanism : one of `MECHANISMS`, such as "geo".
    n, k : how many people there are; values are `0..k`.
    delta, epsilon, max_distance : the privacy at every distance up to the largest; epsilon is per unit.
    shuffler : "honest", or "compromised": what one message alone gives away.
    p, eps_geo, beta : the noise: `p` for rr, `eps_geo` for geo (and geo-local, geo-central, sgdl, where it is epsilon
        itself), `beta` and `eps_geo` for hybrid, which otherwise needs `local_epsilon`.
    c : the padding, instead of the best one.
    local_epsilon : for hybrid, what one message may give away, per unit.
    mae : the wanted mean absolute error.
    query : "sum" or "average".
    quantum : how much one bit of a message stands for (D, appendix G).
    dimensions : 1 or 2.
    honest : how many people add their noise at least, a share (0.8) or a number; the others may stay away, send
        anything, and tell. Left out, all of them must.
    title : what files and reports call it.

    Examples
    --------
    >>> from optdp import MetricShuffle
    >>> MetricShuffle("geo", n=100, k=10, delta="1e-4", epsilon="0.2").unknown
    'mae'
    """

    kind: ClassVar[str] = "metric-shuffle"

    mechanism: str = field(metadata=entry(StrictStr, "rr, geo, sgdl, hybrid, geo-local or geo-central."))
    n: int | None = field(
        default=None, metadata=entry(StrictInt | None, "People. Left out with mae given, the least number is found.")
    )
    k: int = field(default=1, metadata=entry(StrictInt, "Values are 0..k.", required=True))
    delta: Fraction = field(default=Fraction(1, 10**6), converter=_delta, metadata=entry(Exact, required=True))
    epsilon: Fraction | None = field(
        default=None,
        converter=_epsilon,
        metadata=entry(Exact | None, "Wanted at every distance up to max_distance, per unit."),
    )
    max_distance: int = field(default=1, metadata=entry(StrictInt))
    shuffler: str = field(
        default="honest", metadata=entry(StrictStr, "honest, or compromised: what one message alone gives away.")
    )
    p: Fraction | None = field(
        default=None, kw_only=True, converter=_p,
        metadata=entry(Exact | None, "rr: a bit is random with this probability."),
    )  # fmt: skip
    eps_geo: Fraction | None = field(
        default=None, kw_only=True, converter=_eps_geo, metadata=entry(Exact | None, "The noise's q is e^-eps_geo.")
    )
    beta: Fraction | None = field(
        default=None, kw_only=True, converter=_beta,
        metadata=entry(Exact | None, "hybrid: each person's share is SGDL(beta, q)."),
    )  # fmt: skip
    c: int | None = field(
        default=None, kw_only=True, metadata=entry(StrictInt | None, "The padding, instead of the best one.")
    )
    local_epsilon: Fraction | None = field(
        default=None, kw_only=True, converter=_local_epsilon,
        metadata=entry(Exact | None, "hybrid: what one message may give away, per unit."),
    )  # fmt: skip
    mae: Fraction | None = field(
        default=None, kw_only=True, converter=_mae,
        metadata=entry(Exact | None, "The wanted mean absolute error of the query."),
    )  # fmt: skip
    query: str = field(default="sum", kw_only=True, metadata=entry(StrictStr))
    quantum: int = field(
        default=1, kw_only=True,
        metadata=entry(StrictInt, "One bit of a message stands for so much (D, appendix G)."),
    )  # fmt: skip
    dimensions: int = field(default=1, kw_only=True, metadata=entry(StrictInt))
    honest: Fraction | None = field(
        default=None, kw_only=True, converter=_honest,
        metadata=entry(Exact | None, "So many people add their noise at least: a share, such as 0.8, or a number."),
    )  # fmt: skip

    def __attrs_post_init__(self) -> None:
        _among("mechanism", self.mechanism, MECHANISMS)
        _among("shuffler", self.shuffler, ("honest", "compromised"))
        _among("query", self.query, ("sum", "average"))
        if self.n is not None:
            check_whole(self.n, "n", 1, LARGEST_N)
        check_whole(self.k, "k", 1, LARGEST_K)
        check_whole(self.max_distance, "max_distance", 1, LARGEST_DISTANCE)
        check_whole(self.quantum, "quantum", 1, self.k)
        check_whole(self.dimensions, "dimensions", 1, 2)
        if self.c is not None:
            check_whole(self.c, "c", 0, 10**6)
        name, needed = self.mechanism, self._noise()
        for given in ("p", "eps_geo", "beta"):
            if getattr(self, given) is not None and given not in needed:
                raise ProblemError(f"{name} has no parameter {given}. Leave it out; it has {', '.join(needed)}.")
        if self.n is None and (self.mae is None or self.epsilon is None or self.known):
            raise ProblemError("n is missing. Give n, or give epsilon and mae to have the smallest n computed.")
        if self.epsilon is None and not self.known:
            raise ProblemError(
                f"epsilon is missing. Give epsilon to have the noise computed, or {' and '.join(needed)} to have "
                "epsilon computed."
            )
        if name == "hybrid" and not self.known and self.local_epsilon is None:
            raise ProblemError("A hybrid needs local_epsilon: what one message may give away if the shuffler fails.")
        if name == "hybrid" and (self.beta is None) != (self.eps_geo is None):
            raise ProblemError(
                "A hybrid's noise needs both beta and eps_geo. Give both, or neither to have them computed."
            )
        if self.local_epsilon is not None and name != "hybrid":
            raise ProblemError(f"Only a hybrid takes local_epsilon; for {name} it is a result. Leave it out.")
        if self.c is not None and name in ("rr", "geo-central", "geo-local"):
            raise ProblemError(f"{name} has no padding. Leave c out.")
        if self.quantum > 1 and (name not in ("geo", "sgdl", "hybrid") or self.dimensions > 1):
            raise ProblemError("quantum is for geo, sgdl and hybrid in one dimension. Leave it out.")
        if self.epsilon is not None and self.epsilon * self.max_distance > LARGEST_LOSS:
            raise ProblemError(
                f"epsilon times max_distance must be at most {LARGEST_LOSS}, beyond which nothing is hidden. Found "
                f"{show(self.epsilon)} and {self.max_distance}. Lower one of them."
            )
        if self.honest is not None:
            self._check_honest(self.honest)
        if self.beta is not None and self.n is not None and self.beta * self.n < 1:
            raise ProblemError(f"beta must be at least 1/n. Found {show(self.beta)} with n = {self.n}.")

    def _check_honest(self, wanted: Fraction) -> None:
        if self.mechanism in ("geo-local", "geo-central") or self.shuffler != "honest":
            raise ProblemError(
                "honest is for an honest shuffler, and for rr, geo, sgdl and hybrid: nothing else relies on the noise "
                "of other people. Leave it out."
            )
        if self.n is not None:
            fewest(wanted, self.n)
        elif wanted > 1:
            raise ProblemError("honest must be a share, such as 0.8, where n is to be found.")

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
        """What is promised, and on what assumptions."""
        return meaning(self.shuffler, self.honest is None)

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        exact = ("delta", "epsilon", "p", "eps_geo", "beta", "local_epsilon", "mae", "honest")
        numbers = {name: getattr(self, name) for name in exact}
        given: dict[str, Any] = {"mechanism": self.mechanism, "n": self.n, "k": self.k}
        given |= {name: show(value) for name, value in numbers.items() if value is not None}
        given |= {"max_distance": self.max_distance, "shuffler": self.shuffler, "c": self.c}
        given |= {"query": self.query, "quantum": self.quantum, "dimensions": self.dimensions}
        defaults = {"shuffler": "honest", "query": "sum", "quantum": 1, "dimensions": 1}
        return {name: value for name, value in given.items() if value is not None and defaults.get(name) != value}
