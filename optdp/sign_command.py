"""The command `sign`: an Ed25519 signature of what verifies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from optdp.arguments import AsJson
from optdp.errors import ProblemError
from optdp.printing import out, print_json


def sign(
    artifact: Annotated[
        Path, typer.Argument(help="An artifact, the folder of a plan, or an order, that `solve --out` wrote.")
    ],
    key: Annotated[
        Path,
        typer.Option(
            "--key", "-k", help="The private key: a PEM file, Ed25519; OPTDP_KEY_PASSWORD opens an encrypted one."
        ),
    ],
    new_key: Annotated[
        bool, typer.Option("--create-key", help="Make the private key first, and its public key beside it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Verify an artifact and sign its digest; writes the signature beside it, with .sig after its name.

    For example:  optdp sign a.json --key private.pem --create-key
    """
    from optdp.artifact import signature

    digest = _verified_digest(artifact)
    public = signature.create_key(key) if new_key else None
    written = signature.sign(artifact, digest, key)
    shown = artifact.parent / written.name if artifact.name else written
    if as_json:
        made = {"public_key": str(public)} if public is not None else {}
        print_json({"file": str(artifact), "signature": str(shown), "sha256": digest, **made})
        return
    if public is not None:
        out.print(f"wrote {key}, the private key: keep it to yourself", markup=False)
        out.print(f"wrote {public}, the public key: hand it to whoever verifies", markup=False)
    out.print(f"wrote {shown}", markup=False)
    print(f"  sha256  {digest}")


def _verified_digest(path: Path) -> str:
    """The digest of what is signed; only what verifies is."""
    from optdp.order_commands import is_order

    if os.path.isdir(path):
        from optdp.artifact.plan_verify import verify_plan

        return verify_plan(path).sha256
    if is_order(path):
        from optdp.mallows.artifact import verify_order

        return verify_order(path).artifact.sha256
    from optdp.artifact.plan_files import is_party
    from optdp.artifact.verify import verify

    if is_party(path):
        raise ProblemError(f"{path} is one party's part of a plan, which is private only as a whole. Sign its folder.")
    return verify(path).artifact.sha256
