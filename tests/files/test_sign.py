"""Signatures: by optdp, by OpenSSL and by `cryptography` on the raw digest, and everything that must not pass."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from optdp import MultiLTE, Population, SingleLTE, solve
from optdp.artifact import open_artifact
from optdp.errors import ArtifactError, CertificateError, OptdpError, ProblemError
from optdp.extras import install
from optdp.files import signature
from optdp.files.signature import check_signature, create_key, private_key, public_key, sign, signature_path
from optdp.single.format import read, write
from tests.shared import shared_solution

pytest.importorskip("cryptography")
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

ROOT = Path(__file__).resolve().parents[2]
needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="needs the program openssl")
PEM = serialization.Encoding.PEM
PRIVATE, PUBLIC = serialization.PrivateFormat.PKCS8, serialization.PublicFormat.SubjectPublicKeyInfo


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an artifact and a plan."""
    folder = tmp_path_factory.mktemp("signed")
    solve(SingleLTE(Population.binomial(6, "0.5"), "0.5")).save(folder / "a.json")
    solve(SingleLTE(Population.binomial(6, "0.4"), "0.5")).save(folder / "b.json")
    shared_solution(MultiLTE([Population.binomial(3, "0.5")] * 2, "0.5", method="joint")).save(folder / "plan")
    return folder


@pytest.fixture
def place(solved: Path, tmp_path: Path) -> Path:
    """A copy of that folder with a key pair in it."""
    shutil.copytree(solved, tmp_path / "work")
    create_key(tmp_path / "work" / "key.pem")
    return tmp_path / "work"


def openssl(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(signature_path(path).read_text())
    return found


# ---------------------------------------------------------------------- what passes


def test_a_signature_is_one_of_the_raw_digest(place: Path) -> None:
    path = place / "a.json"
    digest = read(path).sha256
    assert sign(path, digest, place / "key.pem") == place / "a.json.sig"
    check_signature(path, digest, place / "key.pub.pem")
    found = document(path)
    assert (found["format"], found["version"], found["sha256"]) == ("optdp/signature", 1, digest)
    key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(found["public_key"]))
    key.verify(bytes.fromhex(found["signature"]), bytes.fromhex(digest))  # raises unless it is valid
    pem = (place / "key.pub.pem").read_bytes()
    loaded = serialization.load_pem_public_key(pem)
    assert isinstance(loaded, ed25519.Ed25519PublicKey)
    assert loaded.public_bytes_raw().hex() == found["public_key"]


def test_a_plan_is_signed_beside_its_folder_and_can_be_solved_again(place: Path) -> None:
    folder = place / "plan"
    digest = open_artifact(folder).sha256
    assert digest == json.loads((folder / "plan.json").read_bytes())["sha256"]
    assert sign(folder, digest, place / "key.pem") == place / "plan.sig"
    check_signature(folder, digest, place / "key.pub.pem")
    assert sorted(item.name for item in folder.iterdir()) == ["party-0.json", "party-1.json", "plan.json"]
    shared_solution(MultiLTE([Population.binomial(3, "0.4")] * 2, "0.5", method="joint")).save(folder)
    with pytest.raises(CertificateError, match="is the signature of another artifact"):
        check_signature(folder, open_artifact(folder).sha256, place / "key.pub.pem")


def test_an_order_is_signed(place: Path) -> None:
    from optdp.loading import load

    (place / "groups.csv").write_text("group\n" + "\n".join("aabbcc") + "\n")
    (place / "order.toml").write_text(
        'kind = "order-shuffle"\nalpha = 2\n[groups]\ndata = "groups.csv"\ncolumn = "group"\n'
    )
    solve(load(place / "order.toml")).save(place / "order.json")
    digest = open_artifact(place / "order.json").sha256
    assert digest == json.loads((place / "order.json").read_text())["sha256"]
    sign(place / "order.json", digest, place / "key.pem")
    check_signature(place / "order.json", digest, place / "key.pub.pem")


@needs_openssl
def test_openssl_verifies_what_optdp_signs(place: Path) -> None:
    path = place / "a.json"
    digest = read(path).sha256
    sign(path, digest, place / "key.pem")
    (place / "digest").write_bytes(bytes.fromhex(digest))
    (place / "raw").write_bytes(bytes.fromhex(document(path)["signature"]))
    command = ("pkeyutl", "-verify", "-pubin", "-inkey", place / "key.pub.pem", "-rawin", "-in", place / "digest")
    done = openssl(*command, "-sigfile", place / "raw")
    assert (done.returncode, "Verified Successfully" in done.stdout) == (0, True), done.stderr
    (place / "raw").write_bytes(bytes(64))
    assert openssl(*command, "-sigfile", place / "raw").returncode != 0


@needs_openssl
def test_optdp_verifies_what_openssl_signs_with_its_own_key(place: Path) -> None:
    path, key, public = place / "a.json", place / "theirs.pem", place / "theirs.pub.pem"
    assert openssl("genpkey", "-algorithm", "ed25519", "-out", key).returncode == 0
    assert openssl("pkey", "-in", key, "-pubout", "-out", public).returncode == 0
    digest = read(path).sha256
    (place / "digest").write_bytes(bytes.fromhex(digest))
    done = openssl("pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", place / "digest", "-out", place / "raw")
    assert done.returncode == 0, done.stderr
    sign(path, digest, key)
    ours = document(path)
    assert ours["signature"] == (place / "raw").read_bytes().hex()  # Ed25519 draws nothing: one signature for one key
    check_signature(path, digest, public)


@needs_openssl
def test_an_encrypted_key_is_opened_by_the_environment(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = place / "locked.pem"
    made = openssl("genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:open sesame", "-out", key)
    assert made.returncode == 0, made.stderr
    with pytest.raises(ProblemError, match="OPTDP_KEY_PASSWORD"):
        private_key(key)
    monkeypatch.setenv("OPTDP_KEY_PASSWORD", "wrong")
    with pytest.raises(ProblemError, match="Is OPTDP_KEY_PASSWORD right"):
        private_key(key)
    monkeypatch.setenv("OPTDP_KEY_PASSWORD", "open sesame")
    private_key(key)
    private_key(place / "key.pem")  # the password is for encrypted keys; others need none


# ---------------------------------------------------------------------- what does not pass


def test_no_signature_of_another_key_or_artifact_passes(place: Path) -> None:
    path, other = place / "a.json", place / "b.json"
    digest = read(path).sha256
    with pytest.raises(CertificateError, match="There is no signature"):
        check_signature(path, digest, place / "key.pub.pem")
    sign(other, read(other).sha256, place / "key.pem")
    shutil.copy(signature_path(other), signature_path(path))
    with pytest.raises(CertificateError, match="is the signature of another artifact"):
        check_signature(path, digest, place / "key.pub.pem")
    create_key(place / "second.pem")
    sign(path, digest, place / "second.pem")
    with pytest.raises(CertificateError, match="another key"):
        check_signature(path, digest, place / "key.pub.pem")
    check_signature(path, digest, place / "second.pub.pem")


def signed(place: Path) -> tuple[Path, str, Any]:
    path = place / "a.json"
    digest = read(path).sha256
    sign(path, digest, place / "key.pem")
    return path, digest, document(path)


def test_no_changed_digit_of_a_signature_passes(place: Path) -> None:
    path, digest, good = signed(place)
    for name in ("sha256", "public_key", "signature"):
        for i in range(0, len(good[name]), 7):
            changed = good[name][:i] + format(int(good[name][i], 16) ^ 1, "x") + good[name][i + 1 :]
            signature_path(path).write_text(json.dumps({**good, name: changed}))
            with pytest.raises(CertificateError):
                check_signature(path, digest, place / "key.pub.pem")
    # the signature of another artifact that says that it is of this one
    sign(place / "b.json", read(place / "b.json").sha256, place / "key.pem")
    signature_path(path).write_text(json.dumps({**document(place / "b.json"), "sha256": digest}))
    with pytest.raises(CertificateError, match="forged or changed"):
        check_signature(path, digest, place / "key.pub.pem")


def test_malformed_signatures_are_refused_in_a_line(place: Path) -> None:
    path, digest, good = signed(place)
    bad: list[Any] = [
        [], 1, {}, {**good, "version": 2}, {**good, "version": True}, {**good, "format": "optdp/order"},
        {**good, "more": 1}, {key: good[key] for key in list(good)[:-1]}, {**good, "signature": "zz" * 64},
        {**good, "signature": good["signature"][:-2]}, {**good, "signature": 5}, {**good, "sha256": digest.upper()},
    ]  # fmt: skip
    texts = [json.dumps(value).encode() for value in bad]
    texts += [b"", b"\xff\xfe", b"[" * 5000, b'{"format": NaN}', json.dumps(good).encode()[:-5]]
    for text in texts:
        signature_path(path).write_bytes(text)
        with pytest.raises(ArtifactError) as error:
            check_signature(path, digest, place / "key.pub.pem")
        assert "\n" not in str(error.value)
    signature_path(path).unlink()
    signature_path(path).mkdir()
    with pytest.raises(ArtifactError, match="folder"):
        check_signature(path, digest, place / "key.pub.pem")


def test_keys_of_another_kind_are_refused(place: Path) -> None:
    plain = serialization.NoEncryption()
    others = {
        "rsa": rsa.generate_private_key(65537, 2048),
        "ec": ec.generate_private_key(ec.SECP256R1()),
        "ed448": ed448.Ed448PrivateKey.generate(),
    }
    for name, key in others.items():
        (place / f"{name}.pem").write_bytes(key.private_bytes(PEM, PRIVATE, plain))
        (place / f"{name}.pub.pem").write_bytes(key.public_key().public_bytes(PEM, PUBLIC))
        for load, path in ((private_key, f"{name}.pem"), (public_key, f"{name}.pub.pem")):
            with pytest.raises(ProblemError, match="must be an Ed25519 key"):
                load(place / path)
    with pytest.raises(ProblemError, match="Found the public key"):
        private_key(place / "key.pub.pem")
    with pytest.raises(ProblemError, match="Found the private key"):
        public_key(place / "key.pem")
    for text in (b"", b"hello", b"\0" * 100, (place / "key.pem").read_bytes()[:60], b"x" * 100_000):
        (place / "odd.pem").write_bytes(text)
        for load in (private_key, public_key):
            with pytest.raises(OptdpError) as error:
                load(place / "odd.pem")
            assert (error.value.exit_code, "\n" in str(error.value)) == (2, False)
    for load in (private_key, public_key):
        with pytest.raises(ArtifactError, match="cannot read"):
            load(place / "none.pem")


def test_a_new_key_is_for_its_owner_alone_and_replaces_nothing(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        public = create_key(tmp_path / "mine.pem")
    finally:
        os.umask(old)
    assert public == tmp_path / "mine.pub.pem"
    assert stat.S_IMODE((tmp_path / "mine.pem").stat().st_mode) == 0o600
    before = (tmp_path / "mine.pem").read_bytes()
    with pytest.raises(ProblemError, match="exists already"):
        create_key(tmp_path / "mine.pem")
    (tmp_path / "other.pub.pem").write_text("kept")
    with pytest.raises(ProblemError, match="exists already"):
        create_key(tmp_path / "other.pem")
    (tmp_path / "dangling.pem").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ProblemError, match="exists already"):
        create_key(tmp_path / "dangling.pem")
    with pytest.raises(ProblemError, match="cannot write"):
        create_key(tmp_path / "no" / "folder.pem")
    assert before == (tmp_path / "mine.pem").read_bytes()
    assert (tmp_path / "other.pub.pem").read_text() == "kept"
    names = {item.name for item in tmp_path.iterdir()}
    assert names == {"mine.pem", "mine.pub.pem", "other.pub.pem", "dangling.pem"}


# ---------------------------------------------------------------------- the command line


def optdp(
    *args: object, cwd: Path, code: str = "from optdp.cli.main import main; main()"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, cwd=cwd, check=False, timeout=60,
        env={**os.environ, "COLUMNS": "200", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_sign_on_the_command_line(place: Path) -> None:
    done = optdp("sign", "a.json", "--key", "new.pem", "--create-key", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "new.pub.pem" in done.stdout
    check_signature(place / "a.json", read(place / "a.json").sha256, place / "new.pub.pem")
    figures = json.loads(optdp("sign", "plan/", "--key", "new.pem", "--json", cwd=place).stdout)
    assert figures["signature"] == "plan.sig"
    check_signature(place / "plan", figures["sha256"], place / "new.pub.pem")


def test_only_what_verifies_is_signed(place: Path) -> None:
    artifact = read(place / "a.json")
    write(
        type(artifact)(**{**vars(artifact), "claim": {**artifact.claim, "epsilon": "0.1"}, "sha256": ""}),
        place / "forged.json",
    )
    done = optdp("sign", "forged.json", "--key", "new.pem", "--create-key", cwd=place)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert not (place / "forged.json.sig").exists()
    assert not (place / "new.pem").exists()
    party = optdp("sign", "plan/party-0.json", "--key", "key.pem", cwd=place)
    assert (party.returncode, "private only as a whole" in party.stderr) == (2, True)


def test_without_the_package_there_is_one_line(place: Path) -> None:
    code = "import sys; sys.modules['cryptography'] = None; from optdp.cli.main import main; main()"
    done = optdp("sign", "a.json", "--key", "key.pem", cwd=place, code=code)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert install("sign") in done.stderr
    fine = optdp("verify", "a.json", cwd=place, code=code)
    assert fine.returncode == 0, fine.stderr


def test_the_place_of_a_signature_is_beside_what_is_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plan").mkdir()
    monkeypatch.chdir(tmp_path / "plan")
    assert signature_path(".") == tmp_path / "plan.sig"
    assert signature_path("../plan/") == tmp_path / "plan.sig"
    assert signature.signature_path(Path("a.json")) == tmp_path / "plan" / "a.json.sig"


def test_verify_checks_the_signature_and_asks_the_second_checker(tmp_path: Path) -> None:
    artifact, key = tmp_path / "a.json", tmp_path / "key.pem"
    solve(SingleLTE(Population.binomial(8, "0.4"), "0.5")).save(artifact)
    unsigned = optdp("verify", str(artifact), "--key", str(key), cwd=tmp_path)
    assert unsigned.returncode == 2  # there is no such key
    assert optdp("sign", str(artifact), "--key", str(key), "--create-key", cwd=tmp_path).returncode == 0
    public = str(tmp_path / "key.pub.pem")
    good = optdp("verify", str(artifact), "--key", public, "--recheck", "--json", cwd=tmp_path)
    assert good.returncode == 0, good.stderr
    said = json.loads(good.stdout)
    assert "valid" in said["signature"]
    assert "agrees" in said["second_opinion"]
    assert "signature" in optdp("verify", str(artifact), "--key", public, cwd=tmp_path).stdout
    solve(SingleLTE(Population.binomial(8, "0.4"), "0.6")).save(artifact)
    other = optdp("verify", str(artifact), "--key", public, cwd=tmp_path)
    assert other.returncode == 1
    assert "is the signature of another artifact" in other.stderr
    assert "verified" not in other.stdout
    (tmp_path / "a.json.sig").unlink()
    missing = optdp("verify", str(artifact), "--key", public, cwd=tmp_path)
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
