"""Keys of parties: Ed25519, and TLS 1.3 in which each side accepts the pinned keys of the others and nothing else.

A party's PEM file has its private key and a certificate that the key signed itself. The fingerprint is the public key,
in hexadecimal: 32 bytes need no shorter name. From a fingerprint a trust anchor is made for OpenSSL, with that key and
with the fingerprint as its name; a certificate is accepted if that key signed it, which TLS then proves the other side
to hold. What OpenSSL accepts is compared with the list once more. There is no authority, no host name, no expiry.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from optdp.errors import ProblemError
from optdp.extras import install
from optdp.files import atomic

FINGERPRINT = re.compile("[0-9a-f]{64}")
MAX_KEY = 1 << 16
_FOREVER = (datetime(2000, 1, 1), datetime(9999, 12, 31, 23, 59, 59))
_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: a pinned key is valid for as long as it is pinned, whatever the clocks say."""


@dataclass(frozen=True)
class Key:
    """The private key of a party, in its file."""

    path: Path
    fingerprint: str

    def caller(self, other: str) -> ssl.SSLContext:
        """For a connection to the party with this fingerprint, and to nobody else."""
        return self._context(ssl.PROTOCOL_TLS_CLIENT, [other])

    def listener(self, others: Sequence[str]) -> ssl.SSLContext:
        """For connections from the parties with these fingerprints, and from nobody else."""
        context = self._context(ssl.PROTOCOL_TLS_SERVER, others)
        context.num_tickets = 0  # every connection shows its key
        return context

    def _context(self, protocol: int, others: Sequence[str]) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # keys are pinned, names are not
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the anchor is trusted, and nobody above it
        context.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
        context.load_cert_chain(self.path, password="")
        for other in others:
            context.load_verify_locations(cadata=_anchor(other))
        return context


def create_key(path: str | Path) -> Key:
    """Make a new key in a new file that its owner alone can read."""
    lib = _library()
    private = lib.Private.generate()
    fingerprint: str = private.public_key().public_bytes_raw().hex()
    pem, plain = lib.serialization.Encoding.PEM, lib.serialization.NoEncryption()
    data = private.private_bytes(pem, lib.serialization.PrivateFormat.PKCS8, plain)
    data += _certificate("optdp party", fingerprint, private.public_key(), private, False).public_bytes(pem)
    if os.path.lexists(path):
        raise ProblemError(f"{atomic.name_of(path)} exists already. Choose another name.")
    atomic.write_new(path, data, mode=0o600)
    return Key(Path(path), fingerprint)


def read_key(path: str | Path) -> Key:
    """The key in a file that `create_key` wrote; refused if others can read it."""
    lib, name = _library(), atomic.name_of(path)
    data = atomic.read_bytes(path, MAX_KEY)
    if os.name == "posix" and os.stat(path).st_mode & 0o077:
        raise ProblemError(f"Other users can read the private key {name}. Make it readable by you alone: chmod 600.")
    wrong = f"--key must be a file that `optdp party-key` wrote, and {name} is not."
    try:
        private = lib.serialization.load_pem_private_key(data, None)
        certificate = lib.x509.load_pem_x509_certificate(data)
    except (ValueError, TypeError, lib.Unsupported):
        raise ProblemError(wrong) from None
    if not isinstance(private, lib.Private) or certificate.public_key() != private.public_key():
        raise ProblemError(wrong)
    return Key(Path(path), private.public_key().public_bytes_raw().hex())


def fingerprint_of(certificate: bytes | None) -> str:
    """The fingerprint of the key in a certificate that OpenSSL has accepted; empty if it is of another kind."""
    lib = _library()
    found = lib.x509.load_der_x509_certificate(certificate).public_key() if certificate else None
    return found.public_bytes_raw().hex() if isinstance(found, lib.Public) else ""


def is_key(fingerprint: str) -> bool:
    """Whether a text is the fingerprint of some key."""
    if not FINGERPRINT.fullmatch(fingerprint):
        return False
    try:
        _library().Public.from_public_bytes(bytes.fromhex(fingerprint))
    except ValueError:
        return False
    return True


def _anchor(fingerprint: str) -> bytes:
    """A certificate to be trusted: who holds the key may sign in the name of its fingerprint."""
    lib = _library()
    key = lib.Public.from_public_bytes(bytes.fromhex(fingerprint))
    nobody = lib.Private.generate()  # the signature of an anchor means nothing, as nobody stands above it
    data: bytes = _certificate(fingerprint, "pinned", key, nobody, True).public_bytes(lib.serialization.Encoding.DER)
    return data


def _certificate(subject: str, issuer: str, key: Any, signer: Any, anchor: bool) -> Any:
    lib = _library()
    names = [
        lib.x509.Name([lib.x509.NameAttribute(lib.x509.oid.NameOID.COMMON_NAME, name)]) for name in (subject, issuer)
    ]
    made = lib.x509.CertificateBuilder(*reversed(names), key, lib.x509.random_serial_number(), *_FOREVER)
    limits = lib.x509.BasicConstraints(ca=anchor, path_length=0 if anchor else None)
    return made.add_extension(limits, critical=True).sign(signer, None)


@cache
def _library() -> Any:
    """What is used of the package `cryptography`."""
    try:
        from cryptography import x509
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    except ImportError:
        raise ProblemError(f"Keys of parties need cryptography. Install it: {install('mpc')}.") from None
    return SimpleNamespace(
        x509=x509, serialization=serialization, Private=Ed25519PrivateKey, Public=Ed25519PublicKey,
        Unsupported=UnsupportedAlgorithm,
    )  # fmt: skip
