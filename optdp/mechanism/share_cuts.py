"""The cuts of a share of geometric noise: one sign, and the size as one long list.

`SGDL_beta(q)` is symmetric, so with `T(k) = Pr[e > k]`

    e = G or e = -G, each with probability 1/2                    the sign of nought does not matter
    Pr[G <= k] = 1 - 2 T(k)                                       k = 0, 1, ..

The size has a memory and does not fall into digits, so every cut is kept, down to where `2 T(k) <= 2^-248`: the kept
words of that cut are all ones, and a number with these words lies at it or beyond. For `beta <= 1` the quotients
`Pr[k+1] / Pr[k]` are at most `q`, those of the whole noise, so a share is no wider: `2 T(k) <= 2 q^(k+1) / (1+q)`, and
`k + 1 = 249 / log2(1/q)` cuts are enough. `T` is summed from far out inwards, terms that are all positive, in balls.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from flint import arb

from optdp.errors import ProblemError
from optdp.mechanism.cuts import LIMBS, WORD, Cuts, NoiseCuts, first_cuts, of_noise, place_of, power_below
from optdp.numbers.exact import precision
from optdp.numbers.sgdl import SGDL

BITS = WORD * LIMBS
MOST = 1 << 17
"""Cuts of the size, at most: q up to about 1 - 1/760."""
GUARD = 128
"""Bits beyond those that are kept; a cut that they do not tell is computed with more."""


def fits(beta: Fraction, q: Fraction) -> bool:
    """Whether the noise can be written as cuts."""
    return beta == 1 or power_below(q, 1, BITS + 1) <= MOST


@lru_cache(maxsize=4)
def of_share(beta: Fraction, q: Fraction) -> NoiseCuts:
    """The cuts of `SGDL_beta(q)` for `beta <= 1`; the whole noise, `beta = 1`, is geometric."""
    if beta == 1:
        return of_noise(q)
    if not fits(beta, q):
        raise ProblemError(
            f"A sampler of a share of noise may have {MOST:,} cuts, as such noise does not fall into digits. Found "
            f"{power_below(q, 1, BITS + 1):,}. Draw with optdp itself (optdp aggregate), or use a larger epsilon."
        )
    law = SGDL(beta, q)
    last = (1 << BITS) - 1
    numbers = _sizes(law, power_below(q, 1, BITS + 1))
    places = tuple(place_of(number, LIMBS) for number in numbers[: numbers.index(last) + 1])
    size = Cuts(places, lambda k, words: _size(law, k, words * WORD), endless=True)
    return NoiseCuts(q, first_cuts(1, lambda k, bits: 1 << (bits - 1)), (size,), 1, origin=0)


def _sizes(law: SGDL, count: int) -> list[int]:
    """The first `count` cuts of the size as multiples of 2^-BITS, rounded down."""
    found = []
    with precision(BITS + GUARD):
        beyond, masses = law.cdf_ball(-count), law.balls(0, count - 1)
        for k in reversed(range(count)):
            number = _floor(beyond, BITS)
            found.append(_size(law, k, BITS) if number is None else number)
            beyond += masses[k]
    return found[::-1]


def _size(law: SGDL, k: int, bits: int) -> int:
    """Cut `k` of the size as a multiple of 2^-bits, rounded down."""
    for guard in (GUARD, 1024, 8192):
        with precision(bits + guard):
            number = _floor(law.cdf_ball(-1 - k), bits)
        if number is not None:
            return number
    raise ProblemError(f"A cut of a share of noise must differ from a short binary number. Found cut {k} equal to one.")


def _floor(beyond: arb, bits: int) -> int | None:
    """`1 - 2 T` as a multiple of 2^-bits, rounded down; None if the ball does not tell."""
    number = ((1 - 2 * beyond) * arb(2) ** bits).floor().unique_fmpz()
    return None if number is None else int(number)
