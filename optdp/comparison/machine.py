"""What a reader must know of the machine to judge seconds: no host, user or path."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np  # its BLAS is what threadpoolctl finds
from threadpoolctl import threadpool_info

from optdp import work
from optdp.comparison.rows import Head

PACKAGES = ("optdp", "numpy", "scipy", "python-flint", "highspy", "cvxpy-base")


def head(repeat: int, timeout: float | None, allowed: float | None, sets: str) -> Head:
    """The head of a run that begins now."""
    made = Head(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        machine=f"{platform.system()} {platform.machine()}",
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        blas=_blas(),
        memory=round(work.memory() / 1e9, 1) if work.memory() < float("inf") else 0.0,
        versions={"python": platform.python_version(), **_versions()},
        commit=_commit(),
        repeat=repeat, timeout=timeout, allowed=allowed, sets=sets,
    )  # fmt: skip
    drawn = json.dumps([asdict(made), os.urandom(8).hex()], sort_keys=True)
    return replace(made, run=hashlib.sha256(drawn.encode()).hexdigest()[:12])


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model", "cpu model"))]
    return named[0] if named else platform.processor()


def _blas() -> str:
    assert np.__version__
    found = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    return "; ".join(sorted({f"{one['internal_api']} {one.get('architecture') or ''}".strip() for one in found}))


def _commit() -> str:
    """The commit of the checkout that this package lies in, with a mark if it was changed; else nothing."""
    home = Path(__file__).resolve().parents[2]
    if not (home / ".git").exists():
        return ""
    try:
        said = [
            subprocess.run(["git", "-C", str(home), *words], capture_output=True, text=True, check=True, timeout=10)
            for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        ]
    except (OSError, subprocess.SubprocessError):
        return ""
    return said[0].stdout.strip() + (" with changes" if said[1].stdout.strip() else "")
