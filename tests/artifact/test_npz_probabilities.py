"""The floats that an `.npz` may carry beside its weights: right to the last bit, or the file is refused."""

from __future__ import annotations

import io
import math
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optdp import ArtifactError
from optdp.artifact import npz
from optdp.artifact.format import Artifact, from_npz, read, to_npz
from optdp.noise.matrix import Row


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(contents: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in contents.items():
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            member.create_system, member.external_attr = 3, 0o644 << 16
            archive.writestr(member, data)
    return buffer.getvalue()


def test_numpy_opens_it_and_the_floats_are_the_nearest(sample: Artifact, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(to_npz(sample, probabilities=True))
    assert read(path) == sample  # the digest is that of the content, with or without floats
    assert to_npz(sample) != path.read_bytes()
    with np.load(path, allow_pickle=False) as arrays:
        assert list(arrays) == [*npz.MEMBERS, *npz.PROBABILITIES]
        shares = arrays["row_probabilities"]
        assert shares.dtype == np.float64
        weights = [weight for row in sample.rows for _, weight in row]
        assert [int.from_bytes(line.tobytes(), "big") for line in arrays["row_weights"]] == weights
        assert arrays["row_outputs"].tolist() == [s for row in sample.rows for s, _ in row]
        assert arrays["row_pointers"].tolist() == [0, 2, 5, 6]
    for share, weight in zip(shares.tolist(), weights, strict=True):
        exact, gap = Fraction(weight, sample.denominator), Fraction(math.ulp(share))
        assert abs(Fraction(share) - exact) <= gap / 2


def test_members_are_byte_for_byte_as_numpy_writes_them(sample: Artifact) -> None:
    for name, content in members(to_npz(sample, probabilities=True)).items():
        array = np.load(io.BytesIO(content), allow_pickle=False)
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
        assert buffer.getvalue() == content, name


def test_a_probability_below_every_float_is_zero() -> None:
    rows: tuple[Row, ...] = (((0, (1 << 4096) - 1), (1, 1)),)
    artifact = Artifact((0, 0), (0, 1), 1 << 4096, rows, "error", None, {}, {}, {})
    assert from_npz(to_npz(artifact, probabilities=True)) == artifact


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 0.0, "next", "short", "long"])
def test_other_floats_are_refused(value: float | str, sample: Artifact) -> None:
    contents = members(to_npz(sample, probabilities=True))
    shares = np.load(io.BytesIO(contents["row_probabilities.npy"]))
    if value == "next":
        shares[1] = np.nextafter(shares[1], 1)
    elif value in ("short", "long"):
        shares = shares[:-1] if value == "short" else np.append(shares, 0.0)
    else:
        shares[1] = value
    buffer = io.BytesIO()
    np.save(buffer, shares)
    with pytest.raises(ArtifactError, match="row_probabilities"):
        from_npz(packed(contents | {"row_probabilities.npy": buffer.getvalue()}))


def test_other_members_are_refused(sample: Artifact) -> None:
    contents = members(to_npz(sample, probabilities=True))
    floats = contents.pop("row_probabilities.npy")
    for changed in (
        contents | {"row_chances.npy": floats},
        {"row_probabilities.npy": floats} | contents,
        contents | {"row_probabilities.npy": contents["row_outputs.npy"]},
        contents | {"row_probabilities.npy": b""},
        contents | {"row_probabilities.npy": floats, "more.npy": floats},
    ):
        with pytest.raises(ArtifactError):
            from_npz(packed(changed))
    assert from_npz(packed(contents)) == sample
