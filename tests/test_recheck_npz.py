"""The second checker on `.npz`: files of another writer, floats bit by bit, hostile archives, both side by side."""

from __future__ import annotations

import copy
import io
import json
import struct
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from optdp import SingleLTE, solve
from optdp.artifact.format import from_json, from_npz, to_npz
from optdp.errors import OptdpError
from optdp.recheck import Refused, recheck
from optdp.recheck.archive import float_bits
from optdp.recheck.reading import read_document
from optdp.recheck.table import read_table
from optdp.recheck.verdict import work
from tests.artifact import forgeries, mutations
from tests.checkers import both_agree, second_opinion
from tests.test_recheck import MIXED, SINGLE

Members = dict[str, bytes]


def members(data: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(content: Members, kind: int = zipfile.ZIP_STORED, comment: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        archive.comment = comment
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, kind)
    return buffer.getvalue()


def saved(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def sample() -> bytes:
    return to_npz(solve(SINGLE["binomial"]).artifact(), probabilities=True)


@pytest.mark.parametrize("name", ["binomial", "no tail", "fallback", "kinds", "one person", "hundred"])
def test_both_accept_what_was_solved(name: str, tmp_path: Path) -> None:
    solution = solve(SINGLE[name])
    for end in ("a.npz", "a.NPZ", "a.json"):
        solution.save(tmp_path / end)
        assert both_agree(tmp_path / end) == 0
    assert recheck(tmp_path / "a.npz") == recheck(tmp_path / "a.json")


@pytest.mark.parametrize("floats", [False, True])
def test_an_archive_that_numpy_wrote(floats: bool, tmp_path: Path) -> None:
    """From the JSON file by numpy alone, after the table of the reference."""
    solve(SingleLTE(MIXED, "0.8")).save(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_bytes())
    rows = document.pop("weights")
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    weights = [weight for row in rows for _, weight in row]
    arrays = {
        "fields": np.frombuffer(text, np.uint8),
        "row_pointers": np.cumsum([0, *map(len, rows)]).astype("<i8"),
        "row_outputs": np.array([s for row in rows for s, _ in row], "<i8"),
        "row_weights": np.frombuffer(b"".join(w.to_bytes(8, "big") for w in weights), np.uint8).reshape(-1, 8),
    }
    if floats:
        arrays["row_probabilities"] = np.array([w / int(document["denominator"]) for w in weights])
    np.savez(tmp_path / "b.npz", **arrays)  # type: ignore[arg-type]
    assert both_agree(tmp_path / "b.npz") == 0
    assert recheck(tmp_path / "b.npz").sha256 == document["sha256"]


def test_floats_are_the_nearest_bit_by_bit() -> None:
    """Python divides integers with one rounding; here no float is used. Also subnormal ones, and ties."""
    random = Random(1)
    for _ in range(20_000):
        k = random.choice([0, 1, 52, 53, 54, 62, 128, 1022, 1023, 1074, 1075, 1100, 1130, 4096])
        size = random.randrange(0, k + 1)
        weight = min(1 << k, random.getrandbits(size + 1))
        if random.random() < 0.3 and size > 60:  # a tie, or next to one
            top = random.getrandbits(53) | 1 << 52
            weight = ((2 * top + 1) << (size - 60)) + random.choice([-1, 0, 1])
        expected = struct.unpack("<Q", struct.pack("<d", weight / (1 << k)))[0]
        assert float_bits(weight, k) == expected, (weight, k)


def test_other_floats_are_refused_by_both(sample: bytes, tmp_path: Path) -> None:
    content = members(sample)
    shares = np.load(io.BytesIO(content["row_probabilities.npy"]))
    for change in (np.nextafter(shares, 1), np.nextafter(shares, 0), shares * np.nan, shares[:-1], -shares, shares * 0):
        (tmp_path / "a.npz").write_bytes(packed(content | {"row_probabilities.npy": saved(change)}))
        assert both_agree(tmp_path / "a.npz") == 2


# ---------------------------------------------------------------------- hostile


def hostile(data: bytes) -> dict[str, bytes]:
    content = members(data)
    weights = np.load(io.BytesIO(content["row_weights.npy"]))
    outputs = np.load(io.BytesIO(content["row_outputs.npy"]))
    header = content["row_outputs.npy"]
    large = header.replace(b"(" + str(len(outputs)).encode(), b"(999999999999")
    found = {
        "nothing": b"", "a few bytes": b"PK\x03\x04" * 9, "JSON": b"{}",
        "compressed": packed(content, zipfile.ZIP_DEFLATED),
        "a bomb": packed(content | {"row_weights.npy": bytes(50_000_000)}, zipfile.ZIP_DEFLATED),
        "a comment": packed(content, comment=b"hello"),
        "bytes before": b"x" + data, "bytes behind": data + b"x", "cut": data[:-1],
        "another member": packed(content | {"more.npy": saved(weights)}),
        "another order": packed(dict(reversed(content.items()))),
        "no members": packed({}), "many members": packed({str(i): b"" for i in range(1000)}),
        "a path": packed({f"../{name}": inner for name, inner in content.items()}),
        "Fortran": packed(content | {"row_weights.npy": saved(np.asfortranarray(weights))}),
        "objects": packed(content | {"row_outputs.npy": saved(np.array([{}] * 3, dtype=object))}),
        "big-endian": packed(content | {"row_outputs.npy": saved(outputs.astype(">i8"))}),
        "four bytes": packed(content | {"row_outputs.npy": saved(outputs.astype("<i4"))}),
        "floats": packed(content | {"row_outputs.npy": saved(outputs.astype("<f8"))}),
        "two axes": packed(content | {"row_outputs.npy": saved(outputs[:, None])}),
        "one axis": packed(content | {"row_weights.npy": saved(weights.ravel())}),
        "no axis": packed(content | {"row_outputs.npy": saved(outputs[0])}),
        "no width": packed(content | {"row_weights.npy": saved(weights[:, :0])}),
        "too wide": packed(content | {"row_weights.npy": saved(np.zeros((len(weights), 514), np.uint8))}),
        "a large promise": packed(content | {"row_outputs.npy": large}),
        "trailing bytes": packed(content | {"row_outputs.npy": header + bytes(8)}),
        "a shorter array": packed(content | {"row_outputs.npy": header[:-8]}),
        "version 2": packed(content | {"row_outputs.npy": header.replace(b"\x01\x00", b"\x02\x00", 1)}),
        "pointers fall": packed(content | {"row_pointers.npy": saved(np.arange(20)[::-1].astype("<i8"))}),
        "negative pointers": packed(content | {"row_pointers.npy": saved(np.array([0, -1, len(outputs)]))}),
        "weights in the fields": packed(content | {"fields.npy": saved(np.frombuffer(b'{"weights": []}', np.uint8))}),
        "deep fields": packed(content | {"fields.npy": saved(np.frombuffer(b"[" * 100_000, np.uint8))}),
        "fields no table": packed(content | {"fields.npy": saved(np.frombuffer(b"[]", np.uint8))}),
    }  # fmt: skip
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    found["a zip64 locator"] = data[:-22] + locator + data[-22:]
    found["too large for its file"] = data.replace(struct.pack("<LL", len(header), len(header)), b"\xff" * 8)
    return found


def test_hostile_archives_are_refused_in_one_line(sample: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    for name, data in hostile(sample).items():
        path.write_bytes(data)
        code, said, _ = second_opinion(path)
        assert code == 2, name
        assert said.isprintable(), name
        assert len(said) < 600, name
        assert both_agree(path) == 2, name
    (tmp_path / "a.json").write_bytes(sample)  # the name says what a file is
    assert both_agree(tmp_path / "a.json") == 2


def test_both_read_the_same_archives(tmp_path: Path) -> None:
    """Mutated bytes, and members that were exchanged or written otherwise: both read them, or neither."""
    random, read = Random(2), [0, 0]
    originals = [to_npz(from_json(forgeries.sealed(document))) for document in forgeries.originals()]
    originals += [to_npz(from_npz(data), probabilities=True) for data in originals]
    path = tmp_path / "a.npz"
    for _ in range(800):
        data = random.choice(originals)
        if random.random() < 0.5:
            content = members(data)
            name = random.choice(list(content))
            content[name] = random.choice(
                [
                    members(random.choice(originals)).get(name, b""),
                    content[name].replace(b"(", b"(0", 1),
                    content[name].replace(b" \n", b"\n\n", 1),
                    content[name] + b"\0",
                    mutations.mutated(content[name], random, data),
                ]
            )
            data = packed(content)
        else:
            data = mutations.mutated(data, random, random.choice(originals))
        path.write_bytes(data)
        token = work.set([0])
        try:
            read_table(read_document(path))
            second = True
        except Refused:
            second = False
        finally:
            work.reset(token)
        try:
            from_npz(data)
            first = True
        except OptdpError as error:
            first = "Every byte" in str(error)  # the second checker judges the content
        assert first == second
        read[first] += 1
    assert min(read) > 10


def test_both_judge_forged_archives_alike(tmp_path: Path) -> None:
    """Forged as JSON with every digest made anew, and packed: what is refused as JSON is refused as `.npz`."""
    random, codes, path = Random(3), [0, 0, 0], tmp_path / "a.npz"
    every = forgeries.originals()
    changes = [change for change in forgeries.CHANGES if change is not forgeries.prices]
    for turn in range(150):
        document = copy.deepcopy(every[turn % len(every)])
        random.choice(changes)(document, random, every)
        if random.random() < 0.6:
            forgeries.modest(document, random)
        try:
            artifact = from_json(forgeries.sealed(document))
        except OptdpError:
            continue  # it cannot even be packed
        path.write_bytes(to_npz(artifact, probabilities=random.random() < 0.5))
        codes[both_agree(path)] += 1
    assert min(codes[:2]) > 20
