"""Where random bits come from: the operating system, or a seed for tests and simulations.

numpy is imported when words are drawn: a mechanism knows how to draw, but who verifies one draws nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from optdp.numbers.exact import check_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Source:
    """Random bits, many at once. `Source()` is secure; `Source(seed)` repeats itself and is **not private**.

    Whoever knows or guesses a seed can remove the noise: whatever is published must come from `Source()`.

    Parameters
    ----------
    seed : int, optional
        For tests and simulations only.

    Examples
    --------
    >>> from optdp import Source
    >>> Source()
    Source(secure=True)
    >>> Source(7).bits(8) == Source(7).bits(8)
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        if seed is not None:
            check_whole(seed, "seed", 0, 2**64 - 1)
        self._stream = None
        if seed is not None:
            from numpy.random import Philox

            self._stream = Philox(seed)

    def __repr__(self) -> str:
        return f"Source(secure={self.secure})"

    @property
    def secure(self) -> bool:
        """Whether the bits are the operating system's, which nobody can repeat."""
        return self._stream is None

    def words(self, size: int) -> NDArray[np.uint64]:
        """`size` independent words of 64 uniform bits."""
        if self._stream is None:
            from numpy import frombuffer, uint64

            return frombuffer(bytearray(os.urandom(8 * size)), dtype=uint64)
        found: NDArray[np.uint64] = self._stream.random_raw(size)
        return found

    def bits(self, k: int) -> int:
        """`k` uniform bits as one whole number, as `secrets.randbits` gives them."""
        check_whole(k, "The number of bits", 0)
        count, value = -(-k // 64), 0
        for word in self.words(count).tolist():
            value = value << 64 | word
        return value >> (64 * count - k)
