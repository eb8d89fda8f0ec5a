"""epsilon_under: the real epsilon of a mechanism or of a plan if the world differs from its priors (A, VI-E)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol, overload

from optdp.errors import CertificateError, ProblemError
from optdp.noise import certify
from optdp.noise.divisible_certify import certify_shared
from optdp.noise.joint_certify import plan_epsilons
from optdp.noise.matrix import NoiseMatrix
from optdp.noise.multi import MultiLTE
from optdp.noise.plan_certificate import largest
from optdp.noise.population import Population
from optdp.noise.shared_noise import SharedNoise
from optdp.noise.single import SingleLTE

World = Sequence[Population]


class Plan(Protocol):
    """A plan that was solved or verified."""

    @property
    def problem(self) -> MultiLTE: ...

    @property
    def tables(self) -> tuple[NoiseMatrix | SharedNoise, ...]: ...


@overload
def epsilon_under(first: SingleLTE, second: NoiseMatrix, third: Population | World) -> Fraction | None: ...


@overload
def epsilon_under(first: Plan, second: World | Sequence[World], third: None = None) -> Fraction | None: ...


def epsilon_under(
    first: SingleLTE | Plan,
    second: NoiseMatrix | World | Sequence[World],
    third: Population | World | None = None,
) -> Fraction | None:
    """The real epsilon if the world is another one (None: infinite).

    For one entity `epsilon_under(problem, matrix, population)`, or several populations, of which the worst counts. For
    a plan `epsilon_under(plan, populations)`, one for each party, or several such lists.
    """
    if isinstance(first, SingleLTE):
        assert isinstance(second, NoiseMatrix)
        assert third is not None
        return certify.epsilon_under(first, second, third)
    assert not isinstance(second, NoiseMatrix)
    worlds = [second] if all(isinstance(item, Population) for item in second) else second
    return largest(tuple(_in_world(first, world) for world in worlds))  # type: ignore[arg-type]


def _in_world(plan: Plan, world: World) -> Fraction | None:
    problem, tables = plan.problem, plan.tables
    if len(world) != len(tables):
        raise ProblemError(f"A world must have {len(tables)} populations. Found {len(world)}.")
    finite = [table for table in tables if isinstance(table, NoiseMatrix)]
    if len(finite) == len(tables):
        return largest(plan_epsilons(problem, finite, world))
    shared = [table for table in tables if isinstance(table, SharedNoise)]
    for i, (population, noise) in enumerate(zip(world, shared, strict=True)):
        if population.last > noise.last:
            raise CertificateError(
                f"Party {i} serves inputs 0..{noise.last}. Found a population whose sum reaches {population.last}."
            )
    moved = MultiLTE(
        world, problem.epsilon, problem.honest, problem.method, problem.objective, f=problem.f,
        contraction=problem.contraction,
    )  # fmt: skip
    fitted = [replace(noise, last=population.last) if noise.contraction is None else noise
              for noise, population in zip(shared, world, strict=True)]  # fmt: skip
    return certify_shared(moved, fitted).epsilon
