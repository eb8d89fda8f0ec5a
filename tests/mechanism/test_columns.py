"""Columns of inputs: what comes back is of the kind that was given."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from optdp import NoiseMatrix, ProblemError
from optdp.numbers.exact import geometric_ratio

ROWS = (((0, 8),), ((0, 1), (1, 6), (2, 1)), ((1, 3), (2, 5)))
FINITE = NoiseMatrix((0, 2), (0, 2), 8, ROWS, None, "error", 2)
TAILED = NoiseMatrix((0, 2), (0, 2), 8, ROWS, geometric_ratio(Fraction(3, 10)), "error", 2)
INPUTS = [0, 1, 2, 2, 1, 0, 0]


def test_lists_and_arrays() -> None:
    assert isinstance(FINITE.sample(INPUTS), list)
    assert isinstance(FINITE.sample(tuple(INPUTS)), tuple)
    assert FINITE.sample([]) == []
    for kind in (np.int8, np.uint16, np.int64):
        given = np.array(INPUTS[:6], dtype=kind).reshape(2, 3)
        released = FINITE.sample(given)
        assert released.dtype == kind
        assert released.shape == (2, 3)
        assert released[0, 0] == 0
        assert given.ravel().tolist() == INPUTS[:6]


@pytest.mark.parametrize("kind", ["int64", "int16", "Int64", "uint8", "int64[pyarrow]"])
def test_pandas_keeps_index_name_and_type(kind: str) -> None:
    pandas = pytest.importorskip("pandas")
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    given = pandas.Series(INPUTS, index=list("gfedcba"), name="sick", dtype=kind)
    released = FINITE.sample(given)
    assert type(released) is type(given)
    assert released.index.equals(given.index)
    assert (released.name, released.dtype) == (given.name, given.dtype)
    assert (released["g"], released["a"]) == (0, 0)
    assert given.tolist() == INPUTS
    assert FINITE.sample(given[given > 5]).empty


def test_polars_keeps_name_and_type() -> None:
    polars = pytest.importorskip("polars")
    for kind in (polars.Int64, polars.Int32, polars.UInt8):
        given = polars.Series("sick", INPUTS, dtype=kind)
        released = FINITE.sample(given)
        assert (type(released), released.name, released.dtype) == (polars.Series, "sick", kind)
        assert (released[0], len(released)) == (0, len(given))
    with pytest.raises(ProblemError, match="missing"):
        FINITE.sample(polars.Series("sick", [1, None]))


def test_pyarrow_keeps_type_and_chunks() -> None:
    pa = pytest.importorskip("pyarrow")
    for kind in (pa.int8(), pa.int64(), pa.uint16()):
        if kind == pa.uint16():
            with pytest.raises(ProblemError, match="must hold every release"):
                TAILED.sample(pa.array(INPUTS, kind), seed=1)
            continue
        whole = FINITE.sample(pa.array(INPUTS, kind), seed=1)
        assert (whole.type, whole.to_pylist()) == (kind, FINITE.sample(list(INPUTS), seed=1))
        parts = pa.chunked_array([pa.array(INPUTS[:2], kind), pa.array(INPUTS[2:], kind)])
        found = FINITE.sample(parts, seed=1)
        assert found.type == kind
        assert [len(chunk) for chunk in found.chunks] == [2, len(INPUTS) - 2]
        assert found.to_pylist() == whole.to_pylist()
    assert FINITE.sample(pa.chunked_array([], pa.int64())).to_pylist() == []
    for values, said in (([1, None], "missing"), ([1.0], "whole numbers"), ([True], "whole numbers"), (["1"], "whole")):
        with pytest.raises(ProblemError, match=said):
            FINITE.sample(pa.array(values))
    with pytest.raises(ProblemError, match="whole numbers"):
        FINITE.sample(pa.table({"x": pa.array(INPUTS)}))


def test_what_is_no_column_of_inputs_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    cases: list[tuple[Any, str]] = [
        (np.array([0.0, 1.0]), "whole numbers"),
        ([0, 1.5], "whole number"),
        ([0, True], "whole number"),
        ((np.True_,), "whole number"),
        (True, "whole number"),
        (np.True_, "whole number"),
        (np.array([True, False]), "whole numbers"),
        (np.array(True), "whole number"),
        (np.array([1, True], dtype=object), "whole numbers"),
        (pandas.Series([True, None], dtype="boolean").fillna(False), "whole numbers"),
        (pandas.Series([1.0, 2.0]), "whole numbers"),
        ("12", "Found"),
        (pandas.Series([1, None], dtype="Int64"), "missing"),
        (pandas.Series(["1"]), "whole numbers"),
        (pandas.Series([True, False]), "whole numbers"),
        (pandas.DataFrame({"x": [1]}), "one column"),
        ([0, 3], r"0\.\.2"),
        (np.array([-1, 0]), r"0\.\.2"),
        ([10**30], r"0\.\.2"),
        (None, "Found"),
        (np.ma.MaskedArray([1, 99], mask=[False, True]), "missing"),
        ([np.array([1, 2])], "whole number"),
    ]
    for column, said in cases:
        with pytest.raises(ProblemError, match=said):
            FINITE.sample(column)
    polars = pytest.importorskip("polars")
    for values in ([True, False], [1.0, 2.0], ["1"]):
        with pytest.raises(ProblemError, match="whole numbers"):
            FINITE.sample(polars.Series("x", values))
    with pytest.raises(ProblemError, match="size"):
        FINITE.sample(INPUTS, size=3)


def test_no_subclass_of_an_array_keeps_inputs_from_the_noise() -> None:
    open_mask = np.ma.MaskedArray(INPUTS, mask=[False] * len(INPUTS))
    assert type(FINITE.sample(open_mask)) is np.ndarray
    assert FINITE.sample(np.array([[2, 2]]).view(np.matrix)).shape == (1, 2)
    with pytest.raises(ProblemError, match="size"):
        FINITE.sample(1, size=2.5)  # type: ignore[call-overload]


def test_a_type_that_cannot_hold_every_release_is_refused() -> None:
    for kind in (np.uint64, np.int8):
        with pytest.raises(ProblemError, match="int64"):
            TAILED.sample(np.array(INPUTS, dtype=kind))
    assert TAILED.sample(np.array(INPUTS, dtype=np.int16)).dtype == np.int16


def test_each_place_gets_a_release_of_its_own_input() -> None:
    given = np.array([0, 2] * 20_000)
    released = FINITE.sample(given, seed=4)
    assert set(released[::2].tolist()) == {0}
    share = (released[1::2] == 1).mean()
    assert abs(share - 3 / 8) < 0.02
