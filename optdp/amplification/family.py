"""Local randomizers: what is known of each, as cells (see `cells`) for upper and for lower bounds.

A randomizer is a family; `eps0` picks its member. Each offers

- `blankets(eps0, tail)`: cells whose `others` are the blanket `inf_x R(x)` (B, section 5.1), one for each pair of
  inputs that can be the worst: the divergence of the worst of them is an upper bound for every data set;
- `data_sets(eps0)`: cells of concrete data sets, so that each gives a lower bound;
- `ratios(eps0)`: its variation-ratio parameters (Wang et al. 2024): the largest likelihood ratio `p` of two inputs,
  their largest total variation `beta`, and the largest ratio `q` of those two inputs to any other.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

from optdp.amplification.cells import Cells, cells

LARGEST_EPS0 = 40.0
TAIL = 1e-12


@dataclass(frozen=True)
class Ratios:
    """Variation-ratio parameters."""

    p: float
    beta: float
    q: float


@runtime_checkable
class Randomizer(Hashable, Protocol):
    """What every randomizer offers. `own_eps0` is None where `eps0` picks the member of the family."""

    kind: ClassVar[str]

    @property
    def own_eps0(self) -> float | None: ...

    def blankets(self, eps0: float, tail: float = TAIL) -> list[Cells]: ...

    def data_sets(self, eps0: float) -> list[Cells]: ...

    def ratios(self, eps0: float) -> Ratios | None: ...


@dataclass(frozen=True)
class Family:
    """What randomizers have in common of which `eps0` picks a member."""

    @property
    def own_eps0(self) -> float | None:
        return None


def described(randomizer: Randomizer) -> str:
    """The kind and its numbers, in words."""
    if randomizer.kind == "channel":
        return str(randomizer)
    numbers = [(part.name, getattr(randomizer, part.name)) for part in fields(cast(Any, randomizer))]
    return ", ".join([randomizer.kind, *(f"{name} = {value:g}" for name, value in numbers if value)])


def variation_cells(ratios: Ratios) -> Cells:
    """The worst cells of any two laws with these ratios; a theorem, proved in docs/mathematics.md.

    Where two laws have densities `a` and `b`, every other input has at least `max(a, b)/q`. Splitting every output into
    parts with `a/b` in {p, 1, 1/p} keeps the sums and spreads `Z`; so does trading the parts with `a = b` for more of
    the other two. What is left are two informative cells of mass `alpha = beta/(p-1)` and a common one.
    """
    p, q = ratios.p, ratios.q
    alpha = min(ratios.beta / (p - 1.0), 1.0 / (p + 1.0))
    common = max(0.0, 1.0 - alpha * (p + 1.0))
    return cells((p * alpha, alpha, common), (alpha, p * alpha, common), (alpha * p / q, alpha * p / q, common / q))
