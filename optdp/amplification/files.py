"""Problem files of shuffling: how they are checked, and the problems that they become."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StrictStr

from optdp.amplification import catalogue
from optdp.amplification.additive import Gaussian, Laplace
from optdp.amplification.channel import LARGEST_CHANNEL, Channel
from optdp.amplification.count import KRRCount
from optdp.amplification.family import Randomizer
from optdp.amplification.problem import Amplification
from optdp.amplification.randomizers import KRR, Generic
from optdp.errors import ProblemError
from optdp.file_models import Documented, Exact, Strict, Sweep, plain_number, read_text
from optdp.math.exact import check_whole


class GenericModel(Strict):
    """Any eps0-LDP randomizer."""

    kind: Literal["generic"]

    def build(self) -> Generic:
        return Generic()


class KRRModel(Strict):
    """Randomized response on `k` values; `gamma`, the probability of a uniform answer, may stand for eps0."""

    kind: Literal["k-rr"]
    k: StrictInt | None = Field(None, description="Leave it out to have it found.")
    gamma: Exact | None = None

    def build(self) -> KRR:
        if self.k is not None:
            check_whole(self.k, "k", 2)
        return KRR(self.k or 0, _float(self.gamma, "gamma"))


class LaplaceModel(Strict):
    """A number in [0, 1] plus Laplace noise."""

    kind: Literal["laplace"]

    def build(self) -> Laplace:
        return Laplace()


class GaussianModel(Strict):
    """A number in [0, 1] plus Gaussian noise: `sigma`, or `delta0` for (eps0, delta0)-LDP."""

    kind: Literal["gaussian"]
    sigma: Exact | None = None
    delta0: Exact | None = None

    def build(self) -> Gaussian:
        return Gaussian(_float(self.sigma, "sigma"), _float(self.delta0, "delta0"))


class ChannelModel(Strict):
    """Any finite randomizer: `matrix[x][y]`, or the same as a CSV file without a header, beside the problem file."""

    kind: Literal["channel"]
    matrix: list[list[Exact]] | None = None
    csv: StrictStr | None = None

    def build(self) -> Channel:
        if (self.matrix is None) == (self.csv is None):
            raise ProblemError("A channel has either a matrix or a csv file. Give one of them.")
        rows = self.matrix if self.csv is None else _table(Path(self.csv))
        assert rows is not None
        if len(rows) * sum(map(len, rows)) > LARGEST_CHANNEL:
            raise ProblemError(f"A channel of {len(rows)} inputs and {len(rows[0])} messages is too large.")
        return Channel.of(
            [[plain_number(entry, "A channel's entry (there is no header line)") for entry in row] for row in rows]
        )


class SubsetSelectionModel(Strict):
    kind: Literal["subset-selection"]
    d: StrictInt
    size: StrictInt

    def build(self) -> catalogue.SubsetSelection:
        return catalogue.SubsetSelection(self.d, self.size)


class LocalHashModel(Strict):
    kind: Literal["local-hash"]
    g: StrictInt

    def build(self) -> catalogue.LocalHash:
        return catalogue.LocalHash(self.g)


class HadamardModel(Strict):
    kind: Literal["hadamard"]
    messages: StrictInt

    def build(self) -> catalogue.Hadamard:
        return catalogue.Hadamard(self.messages)


class PlainModel(Strict):
    """Randomizers of the catalogue that eps0 alone describes."""

    kind: Literal["rappor", "unary-encoding", "piecewise", "planar-laplace"]

    def build(self) -> Randomizer:
        return catalogue.PLAIN[self.kind]()


class VariationRatioModel(Strict):
    kind: Literal["variation-ratio"]
    beta: Exact
    q: Exact | None = None

    def build(self) -> catalogue.VariationRatio:
        beta = _float(self.beta, "beta")
        assert beta is not None
        return catalogue.VariationRatio(beta, _float(self.q, "q"))


AnyRandomizer = Annotated[
    GenericModel
    | KRRModel
    | LaplaceModel
    | GaussianModel
    | ChannelModel
    | SubsetSelectionModel
    | LocalHashModel
    | HadamardModel
    | PlainModel
    | VariationRatioModel,
    Field(discriminator="kind"),
]


class Swept(Documented):
    sweep: Sweep | None = None


class AmplificationFile(Swept):
    """What shuffling buys: of eps0, n, delta, epsilon the one left out is found."""

    kind: Literal["amplification"]
    randomizer: AnyRandomizer
    eps0: Exact | None = None
    n: StrictInt | None = None
    delta: Exact | None = None
    epsilon: Exact | None = None
    method: StrictStr = "best"
    rounds: StrictInt = 1

    def build(self) -> Amplification:
        given = (self.eps0, self.n, self.delta, self.epsilon)
        return Amplification(self.randomizer.build(), *given, method=self.method, rounds=self.rounds)


class KRRCountFile(Swept):
    """What an observer of one count of shuffled randomized response learns (C, Theorem 1)."""

    kind: Literal["krr-count"]
    n: StrictInt | None = None
    n_x0: StrictInt | None = None
    k: StrictInt | None = None
    counts: list[StrictInt] | None = Field(None, description="People holding each value, instead of n and n_x0.")
    eps0: Exact | None = None
    epsilon: Exact | None = None
    delta: Exact | None = None

    def build(self) -> KRRCount:
        given = (self.eps0, self.epsilon, self.delta)
        return KRRCount(self.n, self.n_x0, self.k, *given, counts=self.counts)


def _float(value: int | str | None, name: str) -> float | None:
    return None if value is None else plain_number(value, name)


def _table(path: Path) -> Sequence[Sequence[str]]:
    """The cells of a CSV file without a header."""
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(read_text(path, "CSV").splitlines()) if row]
    except csv.Error as error:
        raise ProblemError(f"{path} is not a CSV file: {error}.") from None
