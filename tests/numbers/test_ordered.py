"""Sums in one order against exact rational arithmetic, and the same bits whatever the libraries choose."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from itertools import product as pairs

import numpy as np
import pytest

from optdp.numbers.exact import log
from optdp.numbers.ordered import SHORT, convolve, exp, product, total

EXACTLY = 2.0**-52


@pytest.mark.parametrize(("long", "short"), [(7, 3), (1, 1), (SHORT + 30, 5), (60, 60)])
@pytest.mark.parametrize("dtype", [np.float64, np.longdouble])
def test_every_value_of_a_convolution_is_accurate(long, short, dtype):
    """Also the rare ones, fifty decades below the likely ones."""
    random = np.random.default_rng(long)
    one, other = (random.random(n) * 10.0 ** random.uniform(-50, 0, n) for n in (long, short))
    exact = [Fraction(0)] * (long + short - 1)
    for (i, a), (j, b) in pairs(enumerate(one.tolist()), enumerate(other.tolist())):
        exact[i + j] += Fraction(a) * Fraction(b)
    for found in (convolve(one.astype(dtype), other), convolve(other, one.astype(dtype))):
        assert found.dtype == dtype
        assert len(found) == len(exact)
        for value, wanted in zip(found, exact, strict=True):
            assert abs(Fraction(float(value)) / wanted - 1) < short * EXACTLY


def test_products_and_totals():
    random = np.random.default_rng(1)
    one, other = random.standard_normal((3, 40)), random.standard_normal((40, 5))
    found = product(one, other)
    for i, j in pairs(range(3), range(5)):
        exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(one[i], other[:, j], strict=True))
        assert found[i, j] == pytest.approx(float(exact), rel=1e-14, abs=1e-16)
    rows = [float(sum(map(Fraction, row.tolist()))) for row in one]
    assert total(one, axis=1) == pytest.approx(rows, rel=1e-15)
    assert total(one, axis=1, keepdims=True).shape == (3, 1)


def test_exponentials():
    assert (exp(0.0), log(1.0), log(0.0), log(np.inf)) == (1.0, 0.0, -np.inf, np.inf)
    for value in (-30.0, 0.3, 1e-9):
        assert exp(value) == pytest.approx(np.exp(value), rel=1e-15)
        assert log(exp(value)) == pytest.approx(value, rel=1e-6 if value == 1e-9 else 1e-14)


BITS = """
import numpy as np
from optdp.numbers.exact import log
from optdp.numbers.ordered import convolve, exp, product, total
random = np.random.default_rng(3)
a, b, m = random.random(900), random.random(300), random.random((90, 70))
for found in (convolve(a, b), convolve(a[:90], b), product(m, m.T), total(m, axis=0)):
    print(found.tobytes().hex())
print([exp(v).hex() + log(1 + v).hex() for v in a[:50]])
"""


def test_the_same_bits_on_every_machine():
    def run(machine: dict[str, str]) -> str:
        command = [sys.executable, "-W", "ignore", "-c", BITS]
        return subprocess.run(command, env=os.environ | machine, capture_output=True, text=True, check=True).stdout

    plain = {"NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX2 FMA3", "OPENBLAS_CORETYPE": "Prescott"}
    first = run(plain | {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F"})
    assert len(first) > 1000
    assert first == run({"OPENBLAS_CORETYPE": "Haswell"}) == run({"OPENBLAS_NUM_THREADS": "2"})
