"""Ed25519 signatures of artifacts: who made a file, which no digest can tell.

What is signed are the 32 bytes of the artifact's SHA-256 digest; of a plan's folder that of `plan.json`, which lists
the digests of the parties' files. The signature of `x` lies beside it, in `x.sig`: JSON with the keys `format`
"optdp/signature", `version` 1, `sha256`, `public_key` (64 hexadecimal digits) and `signature` (128).
Keys are PEM files as OpenSSL writes them. Needs the package `cryptography`, and only then.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from optdp.errors import ArtifactError, CertificateError, ProblemError
from optdp.extras import install
from optdp.files import atomic, canonical
from optdp.work.account import EffortError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FORMAT = "optdp/signature"
SHAPES = {"sha256": 64, "public_key": 64, "signature": 128}
"""The hexadecimal digits of each value."""
PASSWORD = "OPTDP_KEY_PASSWORD"
"""The environment variable with the password of an encrypted private key."""
MAX_KEY = 1 << 16


def signature_path(path: str | Path) -> Path:
    """Where the signature of an artifact, or of a plan's folder, lies: beside it."""
    place = Path(os.path.abspath(path))
    return place.with_name(place.name + ".sig")


def sign(path: str | Path, digest: str, key_path: str | Path) -> Path:
    """Write the signature of an artifact, which has this digest, with a private key; returns where."""
    key = private_key(key_path)
    document = {
        "format": FORMAT,
        "version": 1,
        "sha256": digest,
        "public_key": key.public_key().public_bytes_raw().hex(),
        "signature": key.sign(bytes.fromhex(digest)).hex(),
    }
    target = signature_path(path)
    lines = [f'"{name}": {canonical.friendly(value)}' for name, value in document.items()]
    atomic.write_bytes(target, ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii"))
    return target


def check_signature(path: str | Path, digest: str, key_path: str | Path) -> None:
    """Raise unless the file beside `path` is a signature of `digest` by the owner of the public key."""
    key = public_key(key_path)
    target = signature_path(path)
    name = atomic.name_of(target)
    if not os.path.lexists(target):
        raise CertificateError(f"There is no signature: {name} is missing. Ask whoever made the artifact for it.")
    found = _read(target)
    if found["sha256"] != digest:
        raise CertificateError(
            f"{name} is the signature of another artifact, digest {found['sha256'][:12]}..., not of this one, "
            f"{digest[:12]}... Do not use the artifact."
        )
    if found["public_key"] != key.public_bytes_raw().hex():
        raise CertificateError(f"{name} was made with another key than the given one.")
    if not is_valid(key, bytes.fromhex(found["signature"]), bytes.fromhex(digest)):
        raise CertificateError(f"{name} does not hold a valid signature: it was forged or changed. Do not use it.")


def _read(target: Path) -> dict[str, str]:
    try:
        document = canonical.parse(atomic.read_bytes(target))
    except EffortError:
        raise
    except ArtifactError as error:
        raise ArtifactError(f"{atomic.name_of(target)} cannot be read as a signature: {error}") from None
    name = atomic.name_of(target)
    try:
        remedy = "Give a file that `optdp sign` wrote."
        canonical.check_head(document, FORMAT, {"format", "version", *SHAPES}, "A signature", remedy)
    except ArtifactError as error:
        raise ArtifactError(f"{name}: {error}") from None
    for key, digits in SHAPES.items():
        value = document[key]
        if not isinstance(value, str) or not re.fullmatch(f"[0-9a-f]{{{digits}}}", value):
            raise ArtifactError(f"{name}: {key} must be {digits} hexadecimal digits. Found otherwise.")
    return {key: document[key] for key in SHAPES}


# ---------------------------------------------------------------------- keys


def create_key(path: str | Path) -> Path:
    """Make a new private key `x.pem`, readable by its owner alone, and the public key beside it, `x.pub.pem`.

    Nothing is overwritten.
    """
    serialization, ed25519 = _cryptography()
    private = Path(path)
    public = private.with_name((private.stem if private.suffix == ".pem" else private.name) + ".pub.pem")
    for place in (private, public):
        if os.path.lexists(place):
            raise ProblemError(f"--create-key: {atomic.name_of(place)} exists already. Choose another name.")
    key = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    private_bytes = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    _write_new(private, private_bytes, 0o600)
    _write_new(public, key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo), 0o644)
    return public


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a whole file under a name that nobody has: a hard link, unlike a rename, never replaces one."""
    temporary = path.parent / f".optdp-{secrets.token_hex(8)}.tmp"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        try:
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProblemError(f"cannot write {atomic.name_of(path)}: {reason}") from None


def private_key(path: str | Path) -> Ed25519PrivateKey:
    """The private key in a PEM file; an encrypted one is opened with OPTDP_KEY_PASSWORD."""
    serialization, ed25519 = _cryptography()
    data, name, password = _pem(path), atomic.name_of(path), os.environ.get(PASSWORD)
    if b"PUBLIC KEY" in data:
        raise ProblemError(f"--key must be a private key to sign. Found the public key {name}.")
    encrypted = b"ENCRYPTED" in data
    if encrypted and password is None:
        raise ProblemError(f"{name} is encrypted. Put its password into the environment variable {PASSWORD}.")
    cause = f"Is {PASSWORD} right?" if encrypted else "Make one: openssl genpkey -algorithm ed25519 -out key.pem"
    wrong = f"--key must be a private key in PEM. Found that {name} cannot be read. {cause}"
    opened = password.encode() if encrypted and password else None
    load = partial(serialization.load_pem_private_key, data, opened)
    return cast("Ed25519PrivateKey", _loaded(load, ed25519.Ed25519PrivateKey, name, wrong))


def public_key(path: str | Path) -> Ed25519PublicKey:
    """The public key in a PEM file."""
    serialization, ed25519 = _cryptography()
    data, name = _pem(path), atomic.name_of(path)
    if b"PRIVATE KEY" in data:
        raise ProblemError(
            f"--key must be a public key to verify. Found the private key {name}: keep it to yourself, and use "
            "its .pub.pem (or: openssl pkey -in key.pem -pubout)."
        )
    wrong = f"--key must be a public key in PEM. Found that {name} cannot be read as one."
    load = partial(serialization.load_pem_public_key, data)
    return cast("Ed25519PublicKey", _loaded(load, ed25519.Ed25519PublicKey, name, wrong))


def _loaded(load: Callable[[], Any], kind: type, name: str, wrong: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        key = load()
    except (ValueError, TypeError):
        raise ProblemError(wrong) from None
    except UnsupportedAlgorithm as error:
        said = " ".join(str(error).split())[:100]
        raise ProblemError(f"--key must be an Ed25519 key. Found another in {name}: {said}") from None
    if not isinstance(key, kind):
        raise ProblemError(f"--key must be an Ed25519 key. Found {type(key).__name__.strip('_')} in {name}.")
    return key


def _pem(path: str | Path) -> bytes:
    data = atomic.read_bytes(path)
    if len(data) > MAX_KEY:
        raise ProblemError(f"--key must be a PEM file of at most {MAX_KEY:,} bytes. Found {len(data):,}.")
    return data


def is_valid(key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    """Whether the owner of the public key signed these bytes."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise ProblemError(f"Signatures need cryptography. Install it: {install('sign')}.") from None
    return serialization, ed25519
