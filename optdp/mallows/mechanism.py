"""The Mallows shuffle of records with a reference order (E, Algorithm 1), and what it promises.

`order[k]` is the record at position `k`. A word `W` is drawn, `Pr[W]` proportional to `q^d(W)`, `d` the number of its
inversions (Kendall) or of places where `W[k] != k` (Hamming), and

    z[order[k]] = y[order[W[k]]].

If records of a group swap their values, the word that leads to the same `z` has those records' numbers swapped. That
moves `d` by the group's sensitivity at most, so that with the largest one `Delta` the release is `(alpha, G)-d_sigma`
private for `alpha = -Delta log q` (E, Theorem 2.1). The distance is between relative orders of records; read literally,
E's equation (6) compares records' numbers instead, and the reference order would not matter at all.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optdp.errors import ProblemError
from optdp.mallows.dispersion import alpha_of as alpha_of
from optdp.mallows.dispersion import dispersion as dispersion
from optdp.mallows.dispersion import ratio as ratio
from optdp.mallows.groups import Groups, Whole
from optdp.mallows.sampling import hamming_word, kendall_word
from optdp.mallows.sensitivity import sensitivity
from optdp.math.exact import check_whole
from optdp.math.source import Source

WORDS = {"kendall": kendall_word, "hamming": hamming_word}
"""How a word is drawn, by the distance."""


def alpha_for(groups: Groups, order: Whole, q: Fraction, distance: str = "kendall") -> Fraction:
    """What the same shuffle promises to any other groups (E, Theorem 5.5)."""
    return alpha_of(q, sensitivity(groups, order, distance))


def alpha_of_local_noise(epsilon: Fraction, groups: Groups) -> Fraction:
    """What epsilon-LDP reports in their order promise: epsilon for each member of the largest group (E, Lemma 5.2)."""
    return epsilon * int(groups.sizes.max(initial=0))


def shuffled(values: Any, order: Whole, q: Fraction, source: Source, distance: str = "kendall") -> Any:
    """The values as they are released, an array like the one given; secure bits unless the source has a seed.

    Shuffle the answers of a local randomizer, not the truth: this hides who said what within groups, nothing else.
    """
    given = np.asarray(values)
    check_order(order, len(given))
    word = WORDS[distance](source, len(given), q)
    released = np.empty_like(given)
    released[order] = given[order[word]]
    return released


def check_order(order: Any, n: int) -> None:
    """An order holds every record once."""
    check_whole(n, "The number of values", 1)
    found = np.asarray(order)
    if found.ndim != 1 or found.dtype.kind not in "iu" or len(found) != n:
        raise ProblemError(f"An order must hold as many records as there are values, {n:,}. Found {found.size:,}.")
    seen = np.zeros(n, dtype=bool)
    inside = (found >= 0) & (found < n)
    seen[found[inside]] = True
    if not seen.all():
        raise ProblemError(f"An order must hold every record once. Found record {int(np.argmin(seen))} missing.")
