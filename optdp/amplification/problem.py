"""What shuffling buys: the questions, how a file puts them, and a row of an answer."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from attrs import field, frozen
from pydantic import Field, StrictInt, StrictStr

from optdp.amplification import catalogue
from optdp.amplification.bounds import BOUNDS, Setting
from optdp.amplification.calibrate import LARGEST_EPSILON, LARGEST_N, Question
from optdp.amplification.counts import LARGEST, CountSetting, Enclosure, count_delta
from optdp.amplification.randomizers import (
    KRR,
    LARGEST_CHANNEL,
    LARGEST_EPS0,
    Channel,
    Generic,
    Randomizer,
    Thinned,
    described,
)
from optdp.errors import ProblemError
from optdp.files.models import Exact, Problem, Strict, entry, plain_number, read_text
from optdp.numbers.exact import Number, check_whole, down, show, shown, to_fraction, up

if TYPE_CHECKING:
    from optdp.amplification.solve import AmplificationSolution  # noqa: F401  # what its problems are solved by

_VALUES = Field(None, description="How many values there are. Left out, the lower bound holds for any number.")
_BUILT: tuple[Callable[..., Randomizer], ...] = (
    Generic, catalogue.Laplace, catalogue.Gaussian, catalogue.SubsetSelection, catalogue.LocalHash, catalogue.Hadamard,
    catalogue.Rappor, catalogue.UnaryEncoding, catalogue.Piecewise, catalogue.PlanarLaplace, catalogue.VariationRatio,
)  # fmt: skip
"""The randomizers whose entries in a file are their fields."""


class _Model(Strict):
    kind: str

    def build(self) -> Randomizer:
        whole = ("d", "size", "g", "messages")
        given = {name: getattr(self, name) for name in type(self).model_fields if name != "kind"}
        made = next(randomizer for randomizer in _BUILT if getattr(randomizer, "kind", "") == self.kind)
        return made(**{name: v if name in whole else _float(v, name) for name, v in given.items()})


class GenericModel(_Model):
    """Any eps0-LDP randomizer."""

    kind: Literal["generic"]


class KRRModel(_Model):
    """Randomized response on `k` values; `gamma`, the probability of a uniform answer, may stand for eps0."""

    kind: Literal["k-rr"]
    k: StrictInt | None = Field(None, description="Leave it out to have it found.")
    gamma: Exact | None = None

    def build(self) -> KRR:
        if self.k is not None:
            check_whole(self.k, "k", 2)
        return KRR(self.k or 0, _float(self.gamma, "gamma"))


class LaplaceModel(_Model):
    """A number in [0, 1] plus Laplace noise."""

    kind: Literal["laplace"]


class GaussianModel(_Model):
    """A number in [0, 1] plus Gaussian noise: `sigma`, or `delta0` for (eps0, delta0)-LDP."""

    kind: Literal["gaussian"]
    sigma: Exact | None = None
    delta0: Exact | None = None


class ChannelModel(_Model):
    """Any finite randomizer: `matrix[x][y]`, or the same as a CSV file without a header, beside the problem file."""

    kind: Literal["channel"]
    matrix: list[list[Exact]] | None = None
    csv: StrictStr | None = None

    def build(self) -> Channel:
        if (self.matrix is None) == (self.csv is None):
            raise ProblemError("A channel needs either a matrix or a csv file. Give exactly one of them.")
        rows: Sequence[Sequence[int | str]] = _table(Path(self.csv)) if self.csv is not None else self.matrix or []
        if len(rows) * sum(map(len, rows)) > LARGEST_CHANNEL:
            raise ProblemError(f"A channel of {len(rows)} inputs and {len(rows[0])} messages is too large.")
        if self.csv is None:
            return Channel.of([[plain_number(entry, "A channel's entry") for entry in row] for row in rows])
        return Channel.of([_entries(row, f"row {i} of {self.csv}") for i, row in enumerate(rows, start=1)])


class SubsetSelectionModel(_Model):
    kind: Literal["subset-selection"]
    d: StrictInt
    size: StrictInt


class LocalHashModel(_Model):
    kind: Literal["local-hash"]
    g: StrictInt
    d: StrictInt | None = _VALUES


class HadamardModel(_Model):
    kind: Literal["hadamard"]
    messages: StrictInt
    d: StrictInt | None = _VALUES


class EncodingModel(_Model):
    """A bit for each value."""

    kind: Literal["rappor", "unary-encoding"]
    d: StrictInt | None = _VALUES


class PlainModel(_Model):
    """Randomizers of the catalogue that eps0 alone describes."""

    kind: Literal["piecewise", "planar-laplace"]


class VariationRatioModel(_Model):
    kind: Literal["variation-ratio"]
    beta: Exact
    q: Exact | None = None


AnyRandomizer = Annotated[
    GenericModel | KRRModel | LaplaceModel | GaussianModel | ChannelModel | SubsetSelectionModel | LocalHashModel
    | HadamardModel | EncodingModel | PlainModel | VariationRatioModel,
    Field(discriminator="kind"),
]  # fmt: skip


def _float(value: int | str | None, name: str) -> float | None:
    return None if value is None else plain_number(value, name)


def _entries(row: Sequence[int | str], place: str) -> list[float]:
    """The numbers in a row of a file; what is none is not shown, for the file may be anything."""
    try:
        return [plain_number(entry, "A channel's entry") for entry in row]
    except ProblemError:
        raise ProblemError(
            f"A channel's entries must be numbers, and there is no header line. Found something else in {place}."
        ) from None


def _table(path: Path) -> Sequence[Sequence[str]]:
    """The cells of a CSV file without a header."""
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(read_text(path, "CSV").splitlines()) if row]
    except csv.Error as error:
        raise ProblemError(f"{path} is not a CSV file: {error}.") from None


@dataclass(frozen=True)
class BoundRow:
    """What one bound says of the unknown. `why` tells why it says nothing."""

    method: str
    side: str
    value: float | None
    applicable: bool
    why: str
    source: str


SMALLEST_DELTA = Fraction(1, 10**300)
_SHUFFLED = (
    "If one person's value were different, nothing that can be concluded from all the shuffled reports, without "
    "seeing who sent which, would be more than e^epsilon times likelier, plus delta, even for someone who knows "
    "everyone else's value: (epsilon, delta)-differential privacy for every data set. It assumes an honest shuffler, "
    "and that all n people randomize as stated."
)
_SAMPLED = (
    " Each of the n people takes part with probability {rate}, by chance and independently of everyone else, and "
    "nobody but the shuffler learns who did."
)
_COUNTED = (
    "epsilon and delta limit what the number of shuffled reports that name x0, seen alone, can teach about one person "
    "in this one data set. Someone who sees the whole histogram learns more: for that, and for all data sets, use "
    'kind = "amplification". It assumes an honest shuffler, and that all n people randomize as stated.'
)


def positive(value: Number | None, name: str, most: float) -> Fraction | None:
    """An exact number above 0, if it is given."""
    if value is None:
        return None
    exact = to_fraction(value, name)
    if not Fraction(1, 10**9) <= exact <= most:
        raise ProblemError(f"{name} must be between 1e-9 and {most:g}. Found {value}.")
    return exact


def small(delta: Number | None) -> Fraction | None:
    """A probability of failure, if it is given."""
    if delta is None:
        return None
    exact = to_fraction(delta, "delta")
    if not SMALLEST_DELTA <= exact < 1:
        raise ProblemError(f"delta must be at least 1e-300 and below 1. Found {delta}.")
    return exact


def share(value: Number) -> Fraction:
    """A probability of taking part."""
    exact = to_fraction(value, "rate")
    if not Fraction(1, 10**9) <= exact <= 1:
        raise ProblemError(f"rate must be between 1e-9 and 1. Found {value}.")
    return exact


def local(value: Number | None) -> Fraction | None:
    """A given eps0."""
    return positive(value, "eps0", LARGEST_EPS0)


def central(value: Number | None) -> Fraction | None:
    """A given epsilon."""
    return positive(value, "epsilon", LARGEST_EPSILON)


def given(problem: Problem[Any], *names: str) -> dict[str, Any]:
    """Those of some exact numbers that a problem states, as a file would say them."""
    return {name: show(getattr(problem, name)) for name in names if getattr(problem, name) is not None}


def missing(problem: Problem[Any], *names: str) -> list[str]:
    """Those of some entries that a problem leaves out."""
    return [name for name in names if getattr(problem, name) is None]


def check_one_missing(problem: Problem[Any], *names: str) -> None:
    """Refuse a problem that leaves out none, or several, of its three numbers: the one left out is what is found."""
    found = missing(problem, *names)
    if len(found) != 1:
        words = " and ".join(found) or "none"
        raise ProblemError(f"Leave out exactly one of epsilon, delta and eps0, to have it computed. Left out: {words}.")


@frozen(eq=False, repr=False)
class Amplification(Problem["AmplificationSolution"]):
    """`n` people each send one report through a shuffler. Give three of `eps0`, `n`, `delta`, `epsilon`; the fourth is
    computed.

    Parameters
    ----------
    randomizer : how each person randomizes, such as `KRR(10)`. For k-RR, `k` may be left out instead: then the largest
        k for a given gamma is computed (for a given eps0, the smallest k of at least 3, as more values hide better).
    eps0, n, delta, epsilon : local epsilon, number of people, delta and epsilon of the shuffled reports.
    method : "best", the smallest proved upper bound, or the name of one bound.
    rounds : how often the same people report.
    rate : the probability with which each of the `n` people takes part, by chance and in secret.
    title : what files and reports call it.

    Examples
    --------
    >>> from optdp import KRR, Amplification
    >>> Amplification(KRR(10), eps0=2, n=10_000, delta="1e-6").unknown
    'epsilon'
    """

    kind: ClassVar[str] = "amplification"

    randomizer: Randomizer = field(metadata=entry(AnyRandomizer))
    eps0: Fraction | None = field(default=None, converter=local, metadata=entry(Exact | None))
    n: int | None = field(default=None, metadata=entry(StrictInt | None))
    delta: Fraction | None = field(default=None, converter=small, metadata=entry(Exact | None))
    epsilon: Fraction | None = field(default=None, converter=central, metadata=entry(Exact | None))
    method: str = field(default="best", metadata=entry(StrictStr))
    rounds: int = field(default=1, metadata=entry(StrictInt))
    rate: Fraction = field(default=Fraction(1), converter=share, metadata=entry(Exact))

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.randomizer, Randomizer):
            raise ProblemError(f"randomizer must be a Randomizer, such as KRR(10). Found {shown(self.randomizer)}.")
        if self.n is not None:
            check_whole(self.n, "n", 2, LARGEST_N)
        check_whole(self.rounds, "rounds", 1, 100_000)
        if self.rate < 1 and isinstance(self.randomizer, KRR) and self.randomizer.k == 0:
            raise ProblemError("With a rate below 1, k cannot be computed. Give k.")
        if self.method != "best" and (self.method not in BOUNDS or BOUNDS[self.method].side != "upper"):
            names = ", ".join(name for name, bound in BOUNDS.items() if bound.side == "upper")
            raise ProblemError(f"method must be best or one of {names}. Found {self.method!r}.")
        asked = self._missing()
        if self.randomizer.own_eps0 is not None and self.eps0 is not None:
            raise ProblemError(f"This {self.randomizer.kind} randomizer already determines eps0. Leave eps0 out.")
        if not asked:
            raise ProblemError(
                "Give any three of eps0, n, delta and epsilon; optdp computes the fourth. Found all given."
            )
        if len(asked) > 1:
            raise ProblemError(f"Only one number may be left out, to be computed. Found {' and '.join(asked)} missing.")
        if self.rounds > 1 and self.method != "best":
            raise ProblemError('With rounds the method must be "best". Leave method out.')
        if self.rounds > 1 and asked[0] not in ("epsilon", "delta"):
            raise ProblemError(
                f"With rounds, only epsilon or delta can be computed. Found {asked[0]} missing. Give it."
            )

    def _missing(self) -> list[str]:
        names = ("epsilon", "delta", "n", "eps0") if self.randomizer.own_eps0 is None else ("epsilon", "delta", "n")
        asked = missing(self, *names)
        if isinstance(self.randomizer, KRR) and self.randomizer.k == 0:
            asked.append("k")
        return asked

    @property
    def unknown(self) -> str:
        """What is found."""
        return self._missing()[0]

    @property
    def meaning(self) -> str:
        """What is promised, and what has to be so."""
        return _SHUFFLED if self.rate == 1 else _SHUFFLED + _SAMPLED.format(rate=show(self.rate))

    def question(self, side: str = "upper") -> Question:
        """The same in floats, each rounded so that an upper bound promises less, or a lower bound excludes less."""
        above, below = (up, down) if side == "upper" else (down, up)
        own = self.randomizer.own_eps0
        if own is not None:
            eps0 = own if side == "upper" else own * (1.0 - 2.0**-48)
        else:
            eps0 = 1.0 if self.eps0 is None else above(self.eps0)
        epsilon = 1.0 if self.epsilon is None else below(self.epsilon)
        if self.eps0 is not None and self.epsilon is not None and self.epsilon >= self.eps0:
            epsilon = max(epsilon, eps0)  # rounding must not put epsilon below eps0
        randomizer = self.randomizer if self.rate == 1 else Thinned(self.randomizer, self.rate)
        setting = Setting(randomizer, eps0, 2 if self.n is None else self.n)
        return Question(setting, epsilon, 0.5 if self.delta is None else below(self.delta))

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        found = {"randomizer": described(self.randomizer)} | given(self, "eps0", "delta", "epsilon")
        more = {
            "n": self.n, "rounds": self.rounds if self.rounds > 1 else None,
            "rate": show(self.rate) if self.rate < 1 else None,
        }  # fmt: skip
        return found | {name: value for name, value in more.items() if value is not None}


def _histogram(counts: Sequence[int] | None) -> tuple[int, ...] | None:
    if counts is None:
        return None
    if not isinstance(counts, list | tuple):
        raise ProblemError(f"counts must be a list of whole numbers. Found {shown(counts)}.")
    for count in counts:
        check_whole(count, "Every entry of counts", 0)
    if len(counts) > 10_000:
        raise ProblemError(f"counts must have at most 10,000 entries. Found {len(counts)}.")
    check_whole(sum(counts), "The sum of counts", 2, LARGEST)
    check_whole(len(counts), "The number of counts", 2)
    return tuple(counts)


@frozen(eq=False, repr=False)
class KRRCount(Problem["AmplificationSolution"]):
    """One count of `k`-ary randomized response by `n` people, of whom `n_x0` of the other `n-1` hold the value `x0`.

    Parameters
    ----------
    n, n_x0, k : how many people, how many of the others hold x0, and how many values there are.
    eps0, epsilon, delta : give two of them; the third is computed.
    counts : how many people hold each value, instead of `n`, `n_x0` and `k`: then x0 is the worst of the values (C,
        Corollary 1).
    title : what files and reports call it.

    Examples
    --------
    >>> from optdp import KRRCount
    >>> KRRCount(1000, 300, 4, eps0=1, delta="1e-6").unknown
    'epsilon'
    """

    kind: ClassVar[str] = "krr-count"
    meaning: ClassVar[str] = _COUNTED

    _n: int | None = field(default=None, metadata=entry(StrictInt | None))
    n_x0: int | None = field(default=None, eq=False, metadata=entry(StrictInt | None))
    _k: int | None = field(default=None, metadata=entry(StrictInt | None))
    eps0: Fraction | None = field(default=None, converter=local, metadata=entry(Exact | None))
    epsilon: Fraction | None = field(default=None, converter=central, metadata=entry(Exact | None))
    delta: Fraction | None = field(default=None, converter=small, metadata=entry(Exact | None))
    counts: tuple[int, ...] | None = field(
        default=None,
        eq=False,
        converter=_histogram,
        metadata=entry(list[StrictInt] | None, "People holding each value, instead of n and n_x0."),
    )

    def _asked(self) -> dict[str, Any]:
        return super()._asked() | {"held": self.held}

    def __attrs_post_init__(self) -> None:
        if self.counts is None:
            check_whole(self._n, "n", 2, LARGEST)
            check_whole(self._k, "k", 2)
            check_whole(self.n_x0, "n_x0", 0, self.n - 1)
        elif self._n is not None or self.n_x0 is not None:
            raise ProblemError("counts already says n and n_x0. Leave them out.")
        elif self._k is not None and self._k != len(self.counts):
            raise ProblemError(
                f"counts must have an entry for each of the k values. Found {len(self.counts)} for k = {self._k}."
            )
        check_one_missing(self, "delta", "epsilon", "eps0")

    @property
    def n(self) -> int:
        """How many people there are."""
        return sum(self.counts) if self.counts is not None else self._n or 0

    @property
    def k(self) -> int:
        """How many values there are."""
        return len(self.counts) if self.counts is not None else self._k or 0

    @property
    def held(self) -> tuple[int, ...]:
        """How many others hold x0, for each x0 that is looked at."""
        if self.counts is not None:
            return tuple(sorted({count - 1 for count in self.counts if count > 0}))
        return (self.n_x0 or 0,)

    @property
    def unknown(self) -> str:
        """What is found."""
        return missing(self, "delta", "epsilon", "eps0")[0]

    def figures(self) -> dict[str, Any]:
        """What is given, as a file would say it."""
        held = self.held[0] if len(self.held) == 1 else list(self.held)
        return {"n": self.n, "n_x0": held, "k": self.k} | given(self, "eps0", "epsilon", "delta")

    def worst(self, eps0: Number, epsilon: Number, reverse: bool = False) -> Enclosure:
        """The exact delta of the worst x0, between two floats; `reverse` from x1 to x0."""
        found = [count_delta(CountSetting(self.n, held, eps0, self.k), epsilon, reverse) for held in set(self.held)]
        return Enclosure(max(one.lower for one in found), max(one.upper for one in found))
