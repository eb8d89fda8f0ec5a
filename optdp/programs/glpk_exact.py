"""GLPK's simplex method in rational numbers, `glp_exact`: a reference for what the others return.

It takes numbers that are not whole for fractions nearby. So each row, and the costs, are first multiplied by a power
of two that makes all of their floats whole: what is solved is the program to its last bit, and the point and prices are
those of an optimal basis, each rounded once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

import optdp.work as work
from optdp.errors import ProblemError
from optdp.programs.program import Answer, Array, LinearProgram, Options, Status, verbose

SLICE = 1000
"""Milliseconds for which it runs at first, then twice as long: in between a signal or the deadline is answered."""
LARGEST = 1000
"""The most bits by which a row may be multiplied; a float holds 1,023."""
LIMITS = ("it_lim", "tm_lim")
"""Its options: steps, and milliseconds."""


def solve_glpk_exact(program: LinearProgram, solver: str = "exact", options: Options | None = None) -> Answer:
    """The program in rational numbers, from the basis that GLPK's common simplex method finds."""
    begin = time.perf_counter()
    limits = _limits(options or {})
    glpk: Any = import_module("swiglpk")
    matrix = sparse.csr_array(program.matrix)
    bits = _row_bits(program, matrix)
    cost_bits = _bits(program.cost.tolist())
    if max(bits.max(initial=0), cost_bits) > LARGEST:
        said = f"its numbers need {max(bits.max(initial=0), cost_bits):,} bits in one row; {LARGEST:,} fit"
        return Answer(None, None, np.nan, "failed", said)
    whole = replace(
        program, cost=np.ldexp(program.cost, cost_bits), lower=program.lower * _two(bits),
        upper=program.upper * _two(bits), matrix=sparse.csr_array(sparse.diags_array(_two(bits)) @ matrix),
    )  # fmt: skip
    glpk.glp_term_out(glpk.GLP_ON if verbose.get() else glpk.GLP_OFF)
    held = glpk.glp_create_prob()
    try:
        _fill(glpk, held, whole)
        built = time.perf_counter()
        glpk.glp_scale_prob(held, glpk.GLP_SF_AUTO)
        if glpk.glp_simplex(held, _settings(glpk, limits)):
            glpk.glp_std_basis(held)
        code = _run(glpk, held, limits)
        status, said = _status(glpk, held, code)
        there = status in ("optimal", "limit")
        x = np.array([glpk.glp_get_col_prim(held, j + 1) for j in range(len(program.cost))]) if there else None
        prices = np.array([glpk.glp_get_row_dual(held, i + 1) for i in range(len(bits))])
        return Answer(
            x=x,
            duals=np.ldexp(prices * _two(bits), -cost_bits) if status == "optimal" else None,
            objective=np.nan if x is None else float(program.cost @ x),
            status=status,
            said=said,
            iterations=int(glpk.glp_get_it_cnt(held)),
            build_seconds=built - begin,
            solve_seconds=time.perf_counter() - built,
        )
    finally:
        glpk.glp_delete_prob(held)


def _limits(options: Options) -> dict[str, int]:
    limits = {}
    for name, value in options.items():
        if name not in LIMITS:
            raise ProblemError(f"glpk-exact does not know the option {name!r}. It takes: {', '.join(LIMITS)}.")
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
            raise ProblemError(f"{name} must be a whole number above 0 and below 2^31. Found {value}.")
        limits[name] = value
    return limits


def _bits(values: Iterable[float]) -> int:
    """The power of two that makes all of these whole."""
    return max((x.as_integer_ratio()[1].bit_length() - 1 for x in values if np.isfinite(x)), default=0)


def _row_bits(program: LinearProgram, matrix: Any) -> Any:
    found = np.zeros(len(program.lower), dtype=np.int64)
    for i, sides in enumerate(zip(program.lower.tolist(), program.upper.tolist(), strict=True)):
        found[i] = _bits([*matrix.data[matrix.indptr[i] : matrix.indptr[i + 1]].tolist(), *sides])
    return found


def _two(bits: Any) -> Array:
    power: Array = np.ldexp(1.0, bits)
    return power


def _fill(glpk: Any, held: Any, program: LinearProgram) -> None:
    """The numbers of a program."""
    rows, unknowns = program.matrix.shape
    glpk.glp_add_rows(held, rows)
    glpk.glp_add_cols(held, unknowns)
    for sides, setter in (
        (zip(program.lower.tolist(), program.upper.tolist(), strict=True), glpk.glp_set_row_bnds),
        (zip(program.floor.tolist(), program.ceiling.tolist(), strict=True), glpk.glp_set_col_bnds),
    ):
        for i, (least, most) in enumerate(sides, 1):
            setter(held, i, *_bounds(glpk, least, most))
    for j, cost in enumerate(program.cost.tolist(), 1):
        glpk.glp_set_obj_coef(held, j, cost)
    entries = program.matrix.tocoo()
    there = entries.data != 0
    parts = [_array(glpk.intArray, (place[there] + 1).tolist()) for place in (entries.row, entries.col)]
    values = entries.data[there].tolist()
    glpk.glp_load_matrix(held, len(values), *parts, _array(glpk.doubleArray, values))


def _bounds(glpk: Any, least: float, most: float) -> tuple[int, float, float]:
    if least == most:
        return glpk.GLP_FX, least, most
    kinds = {(False, False): glpk.GLP_FR, (True, False): glpk.GLP_LO, (False, True): glpk.GLP_UP}
    low, high = least > -np.inf, most < np.inf
    return kinds.get((low, high), glpk.GLP_DB), least if low else 0.0, most if high else 0.0


def _array(kind: Any, values: Sequence[float]) -> Any:
    """GLPK counts from 1."""
    made = kind(len(values) + 1)
    for place, value in enumerate(values, 1):
        made[place] = value
    return made


def _settings(glpk: Any, limits: dict[str, int]) -> Any:
    settings = glpk.glp_smcp()
    glpk.glp_init_smcp(settings)
    for name, value in limits.items():
        setattr(settings, name, value)
    return settings


def _run(glpk: Any, held: Any, limits: dict[str, int]) -> int:
    """As long again each time, from the basis where it was: it begins with a factorization, which may take a while."""
    end = time.monotonic() + limits["tm_lim"] / 1000 if "tm_lim" in limits else np.inf
    begun, slice_ = glpk.glp_get_it_cnt(held), SLICE
    while True:
        left = max(1, int(min(slice_, 1000 * (end - time.monotonic()))))
        steps = {"it_lim": max(1, limits["it_lim"] - glpk.glp_get_it_cnt(held) + begun)} if "it_lim" in limits else {}
        code: int = glpk.glp_exact(held, _settings(glpk, {**steps, "tm_lim": left}))
        work.check()
        if code != glpk.GLP_ETMLIM or time.monotonic() >= end:
            return code
        slice_ *= 2


def _status(glpk: Any, held: Any, code: int) -> tuple[Status, str]:
    if code in (glpk.GLP_EITLIM, glpk.GLP_ETMLIM):
        return "limit", "a limit of steps" if code == glpk.GLP_EITLIM else "a limit of time"
    if code:
        return "failed", f"GLPK's error {code}"
    words: dict[int, tuple[Status, str]] = {
        glpk.GLP_OPT: ("optimal", "optimal"),
        glpk.GLP_NOFEAS: ("infeasible", "infeasible"),
        glpk.GLP_UNBND: ("failed", "unbounded"),
    }
    return words.get(glpk.glp_get_status(held), ("failed", "undefined"))
