"""Where random bits come from: the operating system, or a seed for tests and simulations."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from optdp.math.exact import check_whole


class Source:
    """Random bits, many at once. `Source()` is secure; `Source(seed)` repeats itself and is **not private**.

    Whoever knows or guesses a seed takes the noise off again: what is published must come from `Source()`.
    """

    def __init__(self, seed: int | None = None) -> None:
        if seed is not None:
            check_whole(seed, "seed", 0, 2**64 - 1)
        self._stream = None if seed is None else np.random.Philox(seed)

    @property
    def secure(self) -> bool:
        """Whether the bits are the operating system's, which nobody can repeat."""
        return self._stream is None

    def words(self, size: int) -> NDArray[np.uint64]:
        """`size` independent words of 64 uniform bits."""
        if self._stream is None:
            return np.frombuffer(bytearray(os.urandom(8 * size)), dtype=np.uint64)
        found: NDArray[np.uint64] = self._stream.random_raw(size)
        return found

    def bits(self, k: int) -> int:
        """`k` uniform bits as one whole number, as `secrets.randbits` gives them."""
        check_whole(k, "The number of bits", 0)
        count, value = -(-k // 64), 0
        for word in self.words(count).tolist():
            value = value << 64 | word
        return value >> (64 * count - k)
