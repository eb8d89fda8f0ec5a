"""What to run for a missing extra: it depends on how optdp was installed."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

import optdp.extras
from optdp.extras import install

STATED = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())["project"]
METADATA = """Metadata-Version: 2.4
Name: optdp
Version: 0.1.0
Requires-Dist: numpy>=2.0
Provides-Extra: opendp
Requires-Dist: opendp>=0.16; extra == 'opendp'
Provides-Extra: mpc
Requires-Dist: cryptography>=42; extra == 'mpc'
Requires-Dist: mpyc; extra == "mpc"
"""


@pytest.mark.parametrize(
    ("installer", "origin", "marks", "expected"),
    [
        ("pip", None, (), 'pip install "optdp[mpc]"'),
        ("pip", {"url": "file:///src/a%20b", "dir_info": {"editable": True}}, (), 'pip install -e "/src/a b[mpc]"'),
        ("pip", {"url": "file:///src", "dir_info": {}}, (), 'pip install "optdp[mpc] @ file:///src"'),
        (
            "pip",
            {"url": "file:///w/optdp.whl", "archive_info": {}},
            (),
            'pip install "optdp[mpc] @ file:///w/optdp.whl"',
        ),
        (
            "pip",
            {"url": "https://host.test/optdp", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            (),
            'pip install "optdp[mpc] @ git+https://host.test/optdp@abc"',
        ),
        ("uv", None, (), 'uv pip install "optdp[mpc]"'),
        ("uv", None, ("uv-receipt.toml",), 'uv tool install "optdp[mpc]"'),
        ("pip", None, ("pipx_metadata.json",), 'pipx inject optdp "cryptography>=42" mpyc'),
        ("conda", None, (), 'conda install -c conda-forge "cryptography>=42" mpyc'),
    ],
)
def test_the_command_is_that_of_the_installation(
    installer: str,
    origin: dict[str, object] | None,
    marks: tuple[str, ...],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = tmp_path / "optdp-0.1.0.dist-info"
    there.mkdir()
    (there / "METADATA").write_text(METADATA)
    (there / "INSTALLER").write_text(f"{installer}\n")
    if origin:
        (there / "direct_url.json").write_text(json.dumps(origin))
    for mark in marks:
        (tmp_path / mark).touch()
    monkeypatch.setattr(optdp.extras, "distribution", lambda _: PathDistribution(there))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(
        optdp.extras.shutil, "which", lambda _: str(Path(sysconfig.get_path("scripts"), "pip"))
    )  # fmt: skip
    assert install("mpc") == expected


def test_another_pip_on_the_path_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optdp.extras.shutil, "which", lambda _: "/elsewhere/bin/pip")
    command = install(package="gurobipy")
    assert command.endswith(" -m pip install gurobipy")
    python = command.removesuffix(" -m pip install gurobipy").strip('"')
    done = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == sys.prefix


def test_all_is_every_extra_but_solvers_and_tools() -> None:
    extras = STATED["optional-dependencies"]
    (everything,) = extras["all"]
    named = set(everything.removeprefix("optdp[").removesuffix("]").split(","))
    assert named == set(extras) - {"all", "solvers", "docs", "dev"}
