"""The same problem gives the same bytes, whatever the processor adds up how, and with however many threads.

Kernels are those of OpenBLAS, which picks one for each kind of processor; `OPENBLAS_CORETYPE` picks another.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from tests.dozen_problems import PROBLEMS

KERNELS = {"Prescott": "pni", "Haswell": "avx2", "SkylakeX": "avx512dq"}
"""What a processor must be able to do to run each."""
THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"


def features() -> set[str]:
    """What this processor can do, as Linux names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    return {word for line in lines if line.startswith("flags") for word in line.split(":")[1].split()}


def solved(folder: Path, threads: int, **environment: str) -> dict[str, bytes]:
    """What a process of its own writes about all problems."""
    folder.mkdir()
    env = os.environ | dict.fromkeys(THREADS, str(threads)) | environment
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.dozen_problems", str(folder)],
        env=env, cwd=Path(__file__).parent.parent, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """As this machine does it, with one thread."""
    found = solved(tmp_path_factory.mktemp("here") / "found", 1)
    assert len(found) >= 2 * len([name for name in PROBLEMS if name.endswith(".json")])
    return found


@pytest.mark.parametrize(("kernel", "threads"), [("Prescott", 2), ("Haswell", 1), ("SkylakeX", 2)])
def test_every_blas_kernel(kernel: str, threads: int, here: dict[str, bytes], tmp_path: Path) -> None:
    if not any(pool["internal_api"] == "openblas" for pool in threadpool_info()):
        pytest.skip("numpy has no OpenBLAS here, whose kernels could be picked")
    if KERNELS[kernel] not in features():
        pytest.skip(f"this processor has no {KERNELS[kernel]}, which the kernel {kernel} needs")
    there = solved(tmp_path / "found", threads, OPENBLAS_CORETYPE=kernel)
    assert there.keys() == here.keys()
    assert [name for name in here if here[name] != there[name]] == []


def test_two_threads(here: dict[str, bytes], tmp_path: Path) -> None:
    there = solved(tmp_path / "found", 2)
    assert [name for name in here if here[name] != there[name]] == []


def test_every_vector_unit(here: dict[str, bytes], tmp_path: Path) -> None:
    """What is deployed does not depend on which of their own loops numpy and the C library take; figures may, in the
    last digits."""
    units = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    if not units:
        pytest.skip("numpy has but one kind of loop for this processor")
    libm = "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F"
    there = solved(tmp_path / "found", 1, NPY_DISABLE_CPU_FEATURES=" ".join(units), GLIBC_TUNABLES=libm)
    deployed = [name for name in here if not name.endswith(".figures")]
    assert [name for name in deployed if here[name] != there[name]] == []
