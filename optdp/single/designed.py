"""What a solved mechanism and a solved plan have in common: a certificate, a lower bound, and how they were found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

from optdp.numbers.exact import decimal_down, decimal_up, figure, show
from optdp.outcome import Outcome
from optdp.sheet import Cell
from optdp.single.bound import Prices
from optdp.single.claims import WithDocument, stored


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


@dataclass(frozen=True, kw_only=True, repr=False)
class Designed(Outcome, Generic[P, C]):
    """A mechanism or a plan: what is proved of it, and how far it is from the best there is."""

    problem: P
    certificate: C
    lower_bound: Fraction | None
    """Proved: nothing that the problem admits does better. In units of the objective; None if nothing was proved."""
    backend: str
    engine: str
    prices: Prices | WithDocument | None = None

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

    def compared(
        self, name: str, baseline: float, others: Sequence[tuple[str, float]] = ()
    ) -> list[tuple[str, Cell | str]]:
        """The error beside that of geometric noise and of whatever else there is, as bars."""
        return bars((name, self.mae), ("MAE, geometric", baseline), *others)

    def bound_claim(self) -> str | None:
        """The lower bound as a file claims it: only if it goes with the prices that prove it again."""
        return None if self.lower_bound is None or stored(self.prices) is None else decimal_down(self.lower_bound)

    def bound_proof(self) -> dict[str, Any]:
        """The prices of the lower bound for a file's provenance; the bare bound if they cannot be stored."""
        prices = stored(self.prices)
        if self.lower_bound is None:
            return {}
        return {"lower_bound": decimal_down(self.lower_bound)} if prices is None else {"prices": prices}

    def provenance(self, version: str) -> dict[str, Any]:
        """How the solution was found, for its files."""
        found = {"optdp": version, "backend": self.backend, "engine": self.engine, "status": self.status}
        return found | ({"note": self.note} if self.note else {})


def bars(own: tuple[str, float], *others: tuple[str, float]) -> list[tuple[str, Cell | str]]:
    """Errors by name, the first of them our own, each as long as it is large."""
    worst = max(value for _, value in (own, *others)) or 1.0
    return [
        (name, Cell(f"{value:10.6f}", "other" if i else "good", value / worst))
        for i, (name, value) in enumerate((own, *others))
    ]


def shown_epsilon(found: Fraction | None, target: Fraction | None = None) -> str:
    """Rounded up to 20 places, but not past a target that it was proved to keep."""
    if found is None:
        return "infinite"
    rounded = decimal_up(found)
    return show(target) if target is not None and figure(found) <= target < Fraction(rounded) else rounded
