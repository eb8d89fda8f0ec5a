"""The command `sign`: an Ed25519 signature of what verifies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optdp.cli.arguments import AllowOutside, AsJson
from optdp.cli.printing import out, plain, print_json


def sign(
    artifact: Annotated[
        Path, typer.Argument(help="An artifact, a plan's folder, an order or a protocol, as written by `solve --out`.")
    ],
    key: Annotated[
        Path,
        typer.Option(
            "--key", "-k", help="The private key (Ed25519, a PEM file); set OPTDP_KEY_PASSWORD if it is encrypted."
        ),
    ],
    new_key: Annotated[
        bool, typer.Option("--create-key", help="Create the private key first, and the public key next to it.")
    ] = False,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> None:
    """Verify an artifact and sign its digest; the signature is written next to it, with .sig added to the name.

    For example:  optdp sign a.json --key private.pem --create-key
    """
    from optdp.artifact import OpenedMatrix, OpenedOrder, OpenedPlan, OpenedShuffle, open_artifact
    from optdp.files import signature

    kinds = (OpenedMatrix, OpenedPlan, OpenedOrder, OpenedShuffle)
    digest = open_artifact(artifact, *kinds, allow_outside=allow_outside).sha256
    public = signature.create_key(key) if new_key else None
    written = signature.sign(artifact, digest, key)
    shown = artifact.parent / written.name if artifact.name else written
    if as_json:
        made = {"public_key": str(public)} if public is not None else {}
        print_json({"file": str(artifact), "signature": str(shown), "sha256": digest, **made})
        return
    if public is not None:
        out.print(f"wrote {plain(key)}, the private key: keep it secret")
        out.print(f"wrote {plain(public)}, the public key: give it to whoever verifies")
    out.print(f"wrote {plain(shown)}")
    print(f"  sha256  {digest}")
