"""Linear programs as files. Every number is written so that it is read back as the same float.

mps     free MPS, which every solver reads
lp      CPLEX's LP format, which people can read
npz     the arrays for numpy: cost, lower, upper, least, most, whole; the matrix as data, indices, indptr, shape
cvxpy   a Python script that holds the arrays and builds the CVXPY problem; nothing in it is pickled
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from optdp.programs.program import LinearProgram

Lines = Iterator[str]


def mps(program: LinearProgram, note: str = "") -> bytes:
    """Free MPS; rows without a limit are left out."""
    return _text(_mps(program, note))


def lp(program: LinearProgram, note: str = "") -> bytes:
    """CPLEX's LP format; rows without a limit are left out."""
    return _text(_lp(program, note))


def npz(program: LinearProgram, note: str = "") -> bytes:
    """numpy's archive of the arrays."""
    matrix, file = program.matrix.tocsc(), io.BytesIO()
    whole = np.zeros(len(program.cost), np.bool_) if program.whole is None else program.whole
    np.savez_compressed(
        file, cost=program.cost, lower=program.lower, upper=program.upper, least=program.floor, most=program.ceiling,
        whole=whole, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=np.array(matrix.shape),
        note=np.array(note),
    )  # fmt: skip
    return file.getvalue()


SCRIPT = '''"""{note}

Builds `problem`, a CVXPY problem over `x`: minimise cost @ x subject to lower <= matrix @ x <= upper and
least <= x <= most. Run it to solve it.
"""

import base64
import io

import cvxpy as cp
import numpy as np
from scipy import sparse

DATA = """
{data}
"""

arrays = np.load(io.BytesIO(base64.b64decode(DATA)), allow_pickle=False)
cost, lower, upper, least, most = (arrays[name] for name in ("cost", "lower", "upper", "least", "most"))
parts = arrays["data"], arrays["indices"], arrays["indptr"]
matrix = sparse.csc_array(parts, shape=tuple(arrays["shape"])).tocsr()
whole = np.flatnonzero(arrays["whole"])

x = cp.Variable(len(cost), integer=(whole,)) if len(whole) else cp.Variable(len(cost))
equal = lower == upper
above, below = np.isfinite(upper) & ~equal, np.isfinite(lower) & ~equal
constraints = []
for rows, build in (
    (equal, lambda rows: matrix[rows] @ x == upper[rows]),
    (above, lambda rows: matrix[rows] @ x <= upper[rows]),
    (below, lambda rows: matrix[rows] @ x >= lower[rows]),
    (np.isfinite(least), lambda places: x[places] >= least[places]),
    (np.isfinite(most), lambda places: x[places] <= most[places]),
):
    if rows.any():
        constraints.append(build(rows))
problem = cp.Problem(cp.Minimize(cost @ x), constraints)

if __name__ == "__main__":
    problem.solve()
    print(problem.status, problem.value)
'''


def script(program: LinearProgram, note: str = "") -> bytes:
    """A Python script that builds the CVXPY problem."""
    data = base64.encodebytes(npz(program, note)).decode().strip()
    return SCRIPT.format(note=note or "A linear program.", data=data).encode()


FORMATS: Mapping[str, Callable[[LinearProgram, str], bytes]] = {"mps": mps, "lp": lp, "cvxpy": script, "npz": npz}
"""To add a form, add a function and a line."""


def _text(lines: Lines) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _rows(program: LinearProgram) -> list[tuple[int, str, str, float]]:
    """Each limit of each row: its row, a name of its own, its sign and its side; a row between two limits has two."""
    found = []
    for i, (lower, upper) in enumerate(zip(program.lower.tolist(), program.upper.tolist(), strict=True)):
        if lower == upper:
            found.append((i, f"r{i}", "E", upper))
            continue
        if upper < math.inf:
            found.append((i, f"r{i}", "L", upper))
        if lower > -math.inf:
            found.append((i, f"r{i}b" if upper < math.inf else f"r{i}", "G", lower))
    return found


def _mps(program: LinearProgram, note: str) -> Lines:
    yield from (f"* {line}" for line in note.splitlines())
    yield "NAME optdp"
    yield "ROWS"
    yield " N cost"
    rows = _rows(program)
    yield from (f" {sign} {name}" for _, name, sign, _ in rows)
    yield "COLUMNS"
    names: dict[int, list[str]] = {}
    for i, name, _, _ in rows:
        names.setdefault(i, []).append(name)
    yield from _columns(program, names)
    yield "RHS"
    yield from (f" rhs {name} {side!r}" for _, name, _, side in rows if side)
    yield "BOUNDS"
    whole = [False] * len(program.cost) if program.whole is None else program.whole.tolist()
    limits = zip(program.floor.tolist(), program.ceiling.tolist(), whole, strict=True)
    for j, (least, most, integer) in enumerate(limits):
        yield from _bound(j, least, most, integer)
    yield "ENDATA"


def _columns(program: LinearProgram, names: Mapping[int, list[str]]) -> Lines:
    matrix, costs = program.matrix.tocsc(), program.cost.tolist()
    whole = [False] * len(costs) if program.whole is None else program.whole.tolist()
    inside = False
    for j, cost in enumerate(costs):
        if whole[j] != inside:
            inside = whole[j]
            yield f" marker{j} 'MARKER' {('INTORG' if inside else 'INTEND')!r}"
        part = slice(matrix.indptr[j], matrix.indptr[j + 1])
        yield f" x{j} cost {cost!r}"
        for i, value in zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True):
            if value:
                yield from (f" x{j} {name} {value!r}" for name in names.get(i, ()))
    if inside:
        yield " marker 'MARKER' 'INTEND'"


def _bound(j: int, least: float, most: float, integer: bool) -> Lines:
    if least == most:
        yield f" FX bound x{j} {least!r}"
        return
    if least == -math.inf and most == math.inf:
        yield f" FR bound x{j}"
        return
    if least == -math.inf:
        yield f" MI bound x{j}"
    elif least:
        yield f" LO bound x{j} {least!r}"
    if most < math.inf:
        yield f" UP bound x{j} {most!r}"
    elif integer:
        yield f" PL bound x{j}"  # some readers take 1 otherwise


def _lp(program: LinearProgram, note: str) -> Lines:
    yield from (f"\\ {line}" for line in note.splitlines())
    yield "Minimize"
    yield from _sum(" cost:", list(enumerate(program.cost.tolist())))
    yield "Subject To"
    matrix, signs = program.matrix.tocsr(), {"E": "=", "L": "<=", "G": ">="}
    for i, name, sign, side in _rows(program):
        part = slice(matrix.indptr[i], matrix.indptr[i + 1])
        terms = zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True)
        yield from _sum(f" {name}:", list(terms), f"{signs[sign]} {side!r}")
    yield "Bounds"
    for j, (least, most) in enumerate(zip(program.floor.tolist(), program.ceiling.tolist(), strict=True)):
        if least == -math.inf and most == math.inf:
            yield f" x{j} free"
        elif least or most < math.inf:
            yield f" {_bounded(least)} <= x{j} <= {_bounded(most)}"
    if program.whole is not None and program.mixed:
        yield "General"
        yield from (f" x{j}" for j in np.flatnonzero(program.whole).tolist())
    yield "End"


def _bounded(value: float) -> str:
    return repr(value) if math.isfinite(value) else "-inf" if value < 0 else "+inf"


def _sum(head: str, terms: list[tuple[int, float]], tail: str = "") -> Lines:
    """The terms, a few on each line, and what stands after them."""
    shown = [f"{'-' if value < 0 else '+'} {abs(value)!r} x{j}" for j, value in terms if value] or ["0 x0"]
    for start in range(0, len(shown), 6):
        last = tail if start + 6 >= len(shown) else ""
        yield f"{'   ' if start else head} {' '.join(shown[start : start + 6])} {last}".rstrip()
