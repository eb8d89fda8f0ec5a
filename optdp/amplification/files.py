"""Randomizers in problem files: how they are checked, and what they become."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StrictStr

from optdp.amplification import catalogue
from optdp.amplification.additive import Gaussian, Laplace
from optdp.amplification.family import Randomizer
from optdp.amplification.randomizers import KRR, LARGEST_CHANNEL, Channel, Generic
from optdp.errors import ProblemError
from optdp.files.models import Exact, Strict, plain_number, read_text
from optdp.numbers.exact import check_whole

_VALUES = Field(None, description="How many values there are. Left out, the lower bound holds for any number.")


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
        if self.csv is None:
            return Channel.of([[plain_number(entry, "A channel's entry") for entry in row] for row in rows])
        return Channel.of([_entries(row, f"row {i} of {self.csv}") for i, row in enumerate(rows, start=1)])


class SubsetSelectionModel(Strict):
    kind: Literal["subset-selection"]
    d: StrictInt
    size: StrictInt

    def build(self) -> catalogue.SubsetSelection:
        return catalogue.SubsetSelection(self.d, self.size)


class LocalHashModel(Strict):
    kind: Literal["local-hash"]
    g: StrictInt
    d: StrictInt | None = _VALUES

    def build(self) -> catalogue.LocalHash:
        return catalogue.LocalHash(self.g, self.d)


class HadamardModel(Strict):
    kind: Literal["hadamard"]
    messages: StrictInt
    d: StrictInt | None = _VALUES

    def build(self) -> catalogue.Hadamard:
        return catalogue.Hadamard(self.messages, self.d)


class EncodingModel(Strict):
    """A bit for each value."""

    kind: Literal["rappor", "unary-encoding"]
    d: StrictInt | None = _VALUES

    def build(self) -> Randomizer:
        return catalogue.ENCODINGS[self.kind](self.d)


class PlainModel(Strict):
    """Randomizers of the catalogue that eps0 alone describes."""

    kind: Literal["piecewise", "planar-laplace"]

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
    | EncodingModel
    | PlainModel
    | VariationRatioModel,
    Field(discriminator="kind"),
]


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
