"""What every solution says, for one entity and for several: the numbers that a person asks for first."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from optdp.math.exact import decimal_up, show

if TYPE_CHECKING:
    from optdp.noise.bound import Prices


class _Problem(Protocol):
    @property
    def objective(self) -> str: ...


class _Certificate(Protocol):
    @property
    def mae(self) -> Fraction: ...

    @property
    def mse(self) -> Fraction: ...


P = TypeVar("P", bound=_Problem)
C = TypeVar("C", bound=_Certificate)


@dataclass(frozen=True, kw_only=True)
class Outcome(Generic[P, C]):
    """A problem, what is proved of its solution, and how it was found."""

    problem: P
    certificate: C
    lower_bound: Fraction | None
    """Proved: nothing that the problem admits does better. In units of the objective; None if nothing was proved."""
    status: str
    note: str
    backend: str
    engine: str
    seconds: float
    prices: Prices | None = None

    @property
    def mae(self) -> float:
        return float(self.certificate.mae)

    @property
    def mse(self) -> float:
        return float(self.certificate.mse)

    @property
    def value(self) -> float:
        """The objective: the MAE, or the MSE if that was minimised."""
        return self.mae if self.problem.objective == "mae" else self.mse

    @property
    def gap(self) -> float | None:
        """How far the objective is at most from the optimum, relative to the objective."""
        if self.lower_bound is None:
            return None
        return max(0.0, (self.value - float(self.lower_bound)) / self.value) if self.value > 0 else 0.0

    def provenance(self, version: str) -> dict[str, Any]:
        """How the solution was found, for its files."""
        found = {"optdp": version, "backend": self.backend, "engine": self.engine, "status": self.status}
        return found | ({"note": self.note} if self.note else {})


def shown_epsilon(found: Fraction | None, target: Fraction | None = None) -> str:
    """Rounded up to 20 places, but not past a target that it was proved to keep."""
    if found is None:
        return "infinite"
    rounded = decimal_up(found)
    return show(target) if target is not None and found <= target < Fraction(rounded) else rounded
