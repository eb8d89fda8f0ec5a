"""How to get a package that is missing, in the way in which optdp itself was installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import sysconfig
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

_EXTRA = re.compile(r"extra\s*==\s*[\"']([\w-]+)[\"']")


def install(extra: str = "", package: str = "") -> str:
    """The command that installs an extra of optdp's, or another package, where this optdp is."""
    plain = package or f'"optdp[{extra}]"'
    try:
        found = distribution("optdp")
    except PackageNotFoundError:  # a folder on the path
        return f"{_pip()} {plain}"
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject optdp {package or ' '.join(map(_quoted, _packages(found, extra)))}"
    if (found.read_text("INSTALLER") or "").strip() == "conda":
        return f"conda install -c conda-forge {package or ' '.join(map(_quoted, _packages(found, extra)))}"
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv tool install --with {package} optdp" if package else f"uv tool install {_itself(found, extra)}"
    uv = (found.read_text("INSTALLER") or "").strip() == "uv"
    return f"{'uv pip install' if uv else _pip()} {package or _itself(found, extra)}"


def _pip() -> str:
    """`pip install`, by the interpreter if another pip comes first on the path."""
    here = shutil.which("pip")
    scripts = sysconfig.get_path("scripts")
    if here and os.path.normcase(os.path.dirname(here)) == os.path.normcase(scripts):
        return "pip install"
    python = f'"{sys.executable}"' if " " in sys.executable else sys.executable
    return f"{python} -m pip install"


def _itself(found: Distribution, extra: str) -> str:
    """What names this optdp with an extra: from an index, or from where it was installed (PEP 610)."""
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    url = origin.get("url", "")
    if origin.get("dir_info", {}).get("editable"):
        return f'-e "{url2pathname(urlsplit(url).path)}[{extra}]"'
    if vcs := origin.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    return f'"optdp[{extra}] @ {url}"' if url else f'"optdp[{extra}]"'


def _packages(found: Distribution, extra: str) -> list[str]:
    """The packages of an extra, as the metadata of optdp state them."""
    stated = [line.partition(";") for line in found.requires or []]
    return [name.strip() for name, _, condition in stated if extra in _EXTRA.findall(condition)]


def _quoted(requirement: str) -> str:
    return f'"{requirement}"' if re.search(r"[<>~! ]", requirement) else requirement
