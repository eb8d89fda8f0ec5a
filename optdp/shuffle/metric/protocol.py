"""A metric shuffle as people run it: randomize, shuffle, analyze (D, Algorithms 2 to 4 and 8).

Everybody sends `c` plus the value plus noise, clamped to `0..k+2c`, in unary: so many ones, zeros up to the common
length. Shuffled bits say as much as how many of them are ones, so that a message may be kept as its number of ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optdp.errors import ProblemError
from optdp.files.data import whole_numbers
from optdp.numbers import draws
from optdp.numbers.exact import is_boolean, there
from optdp.numbers.source import Source
from optdp.shuffle.gamma import check_rows
from optdp.shuffle.metric.accuracy import accuracy
from optdp.shuffle.metric.design import Design

Whole = NDArray[np.int64]
Packed = NDArray[np.uint8]

CHUNK = 1 << 16  # how many people's bits are unpacked at a time


@dataclass(frozen=True)
class Shuffled:
    """All bits after the shuffler: which are ones does not matter, only how many. One entry for each coordinate."""

    ones: tuple[int, ...]
    bits: int

    def packed(self, coordinate: int = 0) -> Packed:
        """The bits themselves, eight to a byte, the ones first: any order says the same."""
        row = np.zeros(self.bits, dtype=np.uint8)
        row[: self.ones[coordinate]] = 1
        return np.packbits(row)


@dataclass(frozen=True)
class MetricEstimate:
    """What the analyst reports: for each coordinate the sum and the average, and how far off they are."""

    sums: tuple[float, ...]
    n: int
    mae: float
    rmse: float
    within_95: float

    def summary(self) -> dict[str, Any]:
        """The figures as they are written; one coordinate is not a list."""
        flat = len(self.sums) == 1
        averages = [value / self.n for value in self.sums]
        return {
            "sum": self.sums[0] if flat else list(self.sums), "average": averages[0] if flat else averages,
            "n": self.n, "mae": self.mae, "rmse": self.rmse, "within_95": self.within_95,
            "average_mae": self.mae / self.n,
        }  # fmt: skip


@dataclass(frozen=True)
class MetricProtocol:
    """The deployed protocol."""

    design: Design

    @property
    def columns(self) -> int:
        """How many columns of data it reads."""
        return self.design.dimensions

    def read(self, columns: Sequence[list[str]], names: Sequence[str], clip: bool) -> Whole:
        """Values from cells, one row for each person; more coordinates are more columns."""
        read = [whole_numbers(cells, name, 0, self.design.k, clip) for cells, name in zip(columns, names, strict=True)]
        return self.check(read[0] if len(read) == 1 else np.stack(read, axis=1))

    def check(self, values: Any) -> Whole:
        """Values as they must be: whole numbers `0..k`, one for each of `n` people."""
        given, design = np.asarray(values), self.design
        if given.dtype.kind not in "iu" or is_boolean(values):
            found = "True or False" if is_boolean(values) else f"{given.dtype}. Round them first"
            raise ProblemError(f"Values must be whole numbers. Found {found}.")
        shape = (design.n,) if design.dimensions == 1 else (design.n, design.dimensions)
        check_rows(given.shape[0] if given.ndim else 0, design.n)
        if given.shape != shape:
            raise ProblemError(f"Values must have the shape {shape}. Found {given.shape}.")
        if given.size and (given.min() < 0 or given.max() > design.k):
            wrong = np.flatnonzero(((given < 0) | (given > design.k)).reshape(design.n, -1).any(axis=1))
            raise ProblemError(
                f"Values must be between 0 and {design.k}. Found {len(wrong)} outside, the first for person {wrong[0]}."
            )
        if design.whole and (given % design.quantum).any():
            wrong = np.flatnonzero(given % design.quantum)
            raise ProblemError(
                f"Values must be multiples of unit = {design.quantum}. Found {len(wrong)} others, the first for person "
                f"{wrong[0]}: {given[wrong[0]]}."
            )
        return given.astype(np.int64)

    def randomize(self, values: Any, source: Source) -> Whole:
        """Everybody's message, its number of ones; for geo-local the noisy value, for geo-central the curator's sum."""
        given, design = self.check(values), self.design
        if design.dimensions == 1:
            return self._messages(given, source)
        return np.stack([self._messages(given[:, i], source) for i in range(design.dimensions)], axis=1)

    def bits(self, messages: Whole) -> Packed:
        """One coordinate's messages as unary bits, eight to a byte, a row for each person."""
        if self.design.trusted:
            raise ProblemError(f"{self.design.mechanism} has no unary messages. It needs no shuffler.")
        length, rows = self._length, []
        messages = self._checked(messages, (self.design.n,))
        for start in range(0, len(messages), CHUNK):
            ones = np.asarray(messages[start : start + CHUNK])[:, None]
            rows.append(np.packbits(np.arange(length) < ones, axis=1))
        return np.concatenate(rows) if rows else np.zeros((0, -(-length // 8)), dtype=np.uint8)

    def shuffle(self, messages: Any) -> Shuffled:
        """What the shuffler hands on: nothing but how many ones there are, from counts or from packed bits."""
        given, design = np.asarray(messages), self.design
        if given.dtype == np.uint8 and given.shape == (design.n, -(-self._length // 8)) and not design.trusted:
            ones: tuple[int, ...] = (int(np.sum(np.bitwise_count(given), dtype=np.int64)),)
        else:
            people = 1 if design.mechanism == "geo-central" else design.n
            counts = self._checked(given, (people,) if design.dimensions == 1 else (people, design.dimensions))
            ones = tuple(int(total) for total in np.atleast_1d(counts.sum(axis=0)))
        return Shuffled(ones, design.n * self._length)

    def analyze(self, released: Shuffled) -> MetricEstimate:
        """The debiased sum, exactly unbiased for flipped bits, and but for the rare clamping otherwise."""
        design = self.design
        if design.flip is not None:
            bits, flip = design.n * design.k, design.flip
            sums = tuple(float((ones - bits * flip) / (1 - 2 * flip)) for ones in released.ones)
        else:
            shift = 0 if design.trusted else design.n * (design.c or 0)
            sums = tuple(float((ones - shift) * design.quantum) for ones in released.ones)
        errors = accuracy(design)
        return MetricEstimate(sums, design.n, errors.mae, errors.rmse, errors.within_95)

    @property
    def _length(self) -> int:
        return self.design.bits // self.design.dimensions

    def _checked(self, messages: Any, shape: tuple[int, ...]) -> Whole:
        """Messages as they must be: so many ones of the length that all have."""
        given, design = np.asarray(messages), self.design
        if given.dtype.kind not in "iu" or given.shape != shape:
            found = f"{given.dtype} of shape {given.shape}"
            raise ProblemError(f"Messages must be whole numbers of shape {shape}, or packed bits. Found {found}.")
        if not design.trusted and given.size and (given.min() < 0 or given.max() > self._length):
            raise ProblemError(f"Messages must have from 0 to {self._length} ones. Found {given.min()}..{given.max()}.")
        return given.astype(np.int64)

    def _messages(self, values: Whole, source: Source) -> Whole:
        design = self.design
        if design.flip is not None:
            return draws.flipped_counts(source, values, design.k, design.flip)
        shares = design.noise
        if design.mechanism == "geo-central":
            return np.array([int(values.sum())]) + draws.sgdl(source, shares.beta, shares.q, 1)
        noise = draws.sgdl(source, shares.beta, shares.q, design.n)
        if design.mechanism == "geo-local":
            return values + noise
        coarse: Whole = values // design.quantum
        if design.rounds:
            coarse += draws.uniform_below(source, design.quantum, design.n) < values % design.quantum
        c = there(design.c)
        messages: Whole = np.clip(coarse + noise + c, 0, design.largest + 2 * c)
        return messages
