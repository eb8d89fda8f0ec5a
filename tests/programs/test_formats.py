"""Programs as files: read back they are the same program, to the last bit."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import highspy
import numpy as np
import pytest
from scipy import sparse

from optdp import Population, SingleLTE
from optdp.programs.formats import FORMATS, lp, mps, npz, script
from optdp.programs.highs import held, new_highs, solve_highs
from optdp.programs.program import LinearProgram


def odd() -> LinearProgram:
    """Every kind of row and bound, and numbers that need all their digits."""
    matrix = sparse.csr_array(np.array([[1 / 3, 0, 2.0, 1e-17], [0, 1, -1 / 7, 0], [1, 1, 1, 1.0], [1, 0, 0, 0]]))
    return LinearProgram(
        np.array([1.0, 0.1, -1e-9, 0.0]),
        matrix,
        np.array([1 / 3, -np.inf, -1.1, -np.inf]),
        np.array([1 / 3, 2.5, 7.3, np.inf]),
        least=np.array([0.0, -np.inf, -2.25, 1.0]),
        most=np.array([np.inf, np.inf, 3.3, 9.0]),
        whole=np.array([False, False, False, True]),
    )


def rows_of(program: LinearProgram) -> set[tuple[object, ...]]:
    """Each limit of each row with its coefficients, in no order."""
    dense, found = program.matrix.toarray(), set()
    for row, lower, upper in zip(dense.tolist(), program.lower.tolist(), program.upper.tolist(), strict=True):
        found |= {("least", lower, *row)} if np.isfinite(lower) else set()
        found |= {("most", upper, *row)} if np.isfinite(upper) else set()
    return found


@pytest.mark.parametrize(("write", "suffix"), [(mps, "mps"), (lp, "lp")])
def test_highs_reads_back_the_same_numbers(write: object, suffix: str, tmp_path: Path) -> None:
    for number, program in enumerate((odd(), SingleLTE(Population.binomial(4, "0.3"), "0.7").to_program())):
        path = tmp_path / f"{number}.{suffix}"
        path.write_bytes(FORMATS[suffix](program, "a note"))
        highs = new_highs(small_matrix_value=1e-12)
        assert highs.readModel(str(path)) != highspy.HighsStatus.kError
        model, found = highs.getLp(), held(highs)
        names = [int(name[1:]) for name in model.col_names_]  # in the order in which the reader met them
        back = np.argsort(names)
        small = sparse.csr_array(found.matrix)[:, back]
        expected = program.matrix.toarray()
        expected[np.abs(expected) < 1e-12] = 0  # HiGHS leaves them out when it reads
        assert rows_of(LinearProgram(found.cost, small, found.lower, found.upper)) == rows_of(
            LinearProgram(program.cost, sparse.csr_array(expected), program.lower, program.upper)
        )
        assert found.cost[back].tolist() == program.cost.tolist()
        assert found.floor[back].tolist() == program.floor.tolist()
        assert found.ceiling[back].tolist() == program.ceiling.tolist()
        kinds = [model.integrality_[i] == highspy.HighsVarType.kInteger for i in back] if model.integrality_ else []
        assert kinds == ([] if program.whole is None else program.whole.tolist())


def test_the_text_of_a_number_is_the_number() -> None:
    """Read by our own eyes: every coefficient of the MPS file is the exact float."""
    program = odd()
    text = mps(program).decode()
    entries = re.findall(r"^ x(\d+) r(\d+) (\S+)$", text, re.M)
    assert len(entries) == np.count_nonzero(program.matrix.toarray()[:3])
    for column, row, value in entries:
        assert Fraction(float(value)) == Fraction(program.matrix.toarray()[int(row), int(column)])


def test_arrays_are_read_back() -> None:
    program = odd()
    found = np.load(io.BytesIO(npz(program, "a note")), allow_pickle=False)
    matrix = sparse.csc_array((found["data"], found["indices"], found["indptr"]), shape=tuple(found["shape"]))
    assert np.array_equal(matrix.toarray(), program.matrix.toarray())
    for name, expected in (("cost", program.cost), ("lower", program.lower), ("upper", program.upper),
                           ("least", program.floor), ("most", program.ceiling), ("whole", program.whole)):  # fmt: skip
        assert np.array_equal(found[name], expected)


def test_the_script_solves_the_program(tmp_path: Path) -> None:
    program = SingleLTE(Population.binomial(4, "0.3"), "0.7").to_program()
    path = tmp_path / "program.py"
    path.write_bytes(script(program, "a note"))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    status, value = done.stdout.split()
    assert status == "optimal"
    assert float(value) == pytest.approx(solve_highs(program).objective, rel=1e-6)
