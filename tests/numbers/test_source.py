"""Random bits: secure unless seeded, repeatable if seeded, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optdp import ProblemError, Source


@pytest.mark.parametrize("source", [Source(), Source(3)])
def test_words_are_uniform(source: Source) -> None:
    """Every bit of a word is one half of the time one, by Hoeffding with a false alarm once in 1e10 runs."""
    size = 50_000
    words = source.words(size)
    assert words.dtype == np.uint64
    assert words.shape == (size,)
    margin = math.sqrt(math.log(2 * 64 * 1e10) / (2 * size))
    for place in range(64):
        assert abs(float((words >> np.uint64(place) & np.uint64(1)).mean()) - 0.5) < margin
    assert len(np.unique(words)) == size  # two equal words: once in 1e10 runs


def test_seeds() -> None:
    assert Source().secure
    assert not Source(0).secure
    assert (Source(5).words(100) == Source(5).words(100)).all()
    assert (Source(5).words(100) != Source(6).words(100)).all()
    assert (Source().words(100) != Source().words(100)).all()
    source = Source(5)
    assert (source.words(100) != source.words(100)).all()


@pytest.mark.parametrize("source", [Source(), Source(9)])
def test_bits(source: Source) -> None:
    assert source.bits(0) == 0
    for k in (1, 7, 63, 64, 65, 1000):
        found = [source.bits(k) for _ in range(200)]
        assert all(0 <= value < 1 << k for value in found)
        assert max(found).bit_length() == k  # the highest bit is missing in all: once in 2^200 runs
    assert len(source.words(0)) == 0


def test_bits_are_the_words() -> None:
    first, second, *_ = (int(word) for word in Source(4).words(2))
    assert Source(4).bits(64) == first
    assert Source(4).bits(128) == first << 64 | second
    assert Source(4).bits(70) == (first << 64 | second) >> 58


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True, 2**64])
def test_refusals(seed: object) -> None:
    with pytest.raises(ProblemError, match="seed must be"):
        Source(seed)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="bits must be"):
        Source(1).bits(-1)
