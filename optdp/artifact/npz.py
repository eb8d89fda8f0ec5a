"""An artifact as `.npz`: the table as arrays, everything else as one JSON text.

    fields             bytes    canonical JSON of everything but `weights`
    row_pointers       int64    row i is the entries row_pointers[i] .. row_pointers[i+1]
    row_outputs        int64    the output of each entry
    row_weights        bytes    one line for each entry: its weight, big-endian, of one width for all
    row_probabilities  float64  if it is there: the float next to weight/denominator of each entry

`numpy.load(path, allow_pickle=False)` opens it; nothing here needs numpy. Members are stored, not compressed, under a
fixed date: equal content gives equal bytes, and the file cannot unpack to more than it is. `row_probabilities` is for
readers that want floats. It is no part of the digest, and a file in which it says anything else than the weights is
refused.
"""

from __future__ import annotations

import io
import re
import struct
import sys
import zipfile
import zlib
from array import array
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from operator import le
from typing import Any

from optdp.artifact import files, strict_json
from optdp.errors import ArtifactError
from optdp.math.effort import spend

MEMBERS = {"fields": "|u1", "row_pointers": "<i8", "row_outputs": "<i8", "row_weights": "|u1"}
"""The arrays in their order, and the type of each."""

PROBABILITIES = {"row_probabilities": "<f8"}
"""The array that may follow them."""

MAX_WIDTH = 513
"""Bytes of a weight: 2^4096 takes 513."""

_END = struct.Struct("<4s4H2LH")
_LOCAL = struct.Struct("<4s5H3L2H")
"""Mark; version, flags, method, time, date (1 January 1980); CRC and both sizes; lengths of the name and of extras."""
_ENTRY = struct.Struct("<4sBB5H3L5H2L")
"""Mark, version and system of the writer; the same facts; length of a comment, disk, kind; mode and place."""
_SIZES = {"|u1": 1, "<i8": 8, "<f8": 8}
_CODES = {"<i8": "q", "<f8": "d"}
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)(\{'descr': '([<|][iuf][18])', 'fortran_order': False, "
    rb"'shape': \(([0-9]{1,12}),(?: ([0-9]{1,12}))?\), \} *\n)",
    re.DOTALL,
)
_Shaped = tuple[tuple[int, ...], bytes]
"""The shape and the bytes of an array."""


def pack(document: dict[str, Any], probabilities: bool = False) -> bytes:
    """The bytes of a checked document, whose `weights` are rows of `(output, weight)`."""
    return _archive(_contents(document, probabilities))


def is_packed(data: bytes, document: dict[str, Any]) -> bool:
    """Whether every byte of `data` is as `pack` writes the document, with or without floats, or `numpy.savez` does."""
    return any(
        data == write(contents)
        for contents in (_contents(document, floats) for floats in (False, True))
        for write in (_archive, partial(_as_numpy, 3), partial(_as_numpy, 0))
    )


def _contents(document: dict[str, Any], probabilities: bool) -> dict[str, bytes]:
    """The members by their names."""
    rows: Sequence[Sequence[tuple[int, int]]] = document["weights"]
    fields = strict_json.canonical({key: value for key, value in document.items() if key != "weights"}).encode("ascii")
    denominator = int(document["denominator"])
    width = (denominator.bit_length() + 7) // 8
    outputs, weights = [s for row in rows for s, _ in row], [weight for row in rows for _, weight in row]
    arrays: dict[str, _Shaped] = {
        "fields": ((len(fields),), fields),
        "row_pointers": ((len(rows) + 1,), _bytes("<i8", accumulate(map(len, rows), initial=0))),
        "row_outputs": ((len(outputs),), _bytes("<i8", outputs)),
        "row_weights": ((len(weights), width), b"".join(weight.to_bytes(width, "big") for weight in weights)),
    }
    if probabilities:
        shares = _bytes("<f8", (weight / denominator for weight in weights))  # the quotient of integers is rounded once
        arrays["row_probabilities"] = (len(weights),), shares
    kinds = MEMBERS | PROBABILITIES
    return {f"{name}.npy": _header(kinds[name], shape) + data for name, (shape, data) in arrays.items()}


def _archive(members: dict[str, bytes]) -> bytes:
    """A zip archive of stored members: every bit of its headers is fixed here, not by the version of a library."""
    body, directory = [], []
    place = 0
    for name, data in members.items():
        facts = (20, 0, 0, 0, 1 << 5 | 1, zlib.crc32(data), len(data), len(data), len(name), 0)
        local = _LOCAL.pack(b"PK\x03\x04", *facts) + name.encode("ascii")
        body += [local, data]
        entry = _ENTRY.pack(b"PK\x01\x02", 20, 3, *facts, 0, 0, 0, 0o644 << 16, place)
        directory.append(entry + name.encode("ascii"))
        place += len(local) + len(data)
    listed = b"".join(directory)
    end = _END.pack(b"PK\x05\x06", 0, 0, len(members), len(members), len(listed), place, 0)
    return b"".join((*body, listed, end))


def _as_numpy(system: int, members: dict[str, bytes]) -> bytes:
    """The archive that `numpy.savez` makes of the members, on Windows (0) or elsewhere (3)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            member = zipfile.ZipInfo(name)
            member.create_system = system
            with archive.open(member, "w", force_zip64=True) as file:
                file.write(data)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, Any]:
    """The document in `data`, not yet checked: its `weights` are rows of `(output, weight)`."""
    arrays = {name: _array(name, content) for name, content in _members(data).items()}
    shapes = [len(shape) for shape, _ in arrays.values()]
    if shapes != [1, 1, 1, 2, 1][: len(shapes)]:
        raise _refused("one-dimensional arrays and a two-dimensional row_weights", "other shapes")
    (entries, width), raw = arrays["row_weights"]
    pointers, outputs = (_numbers(name, arrays[name]) for name in ("row_pointers", "row_outputs"))
    if len(outputs) != entries or not 1 <= width <= MAX_WIDTH:
        raise _refused(
            f"one weight of 1 to {MAX_WIDTH} bytes for each output",
            f"{len(outputs)} outputs and {entries} weights of {width} bytes",
        )
    if entries > strict_json.MAX_VALUES // 2 or len(pointers) > entries + 1:
        raise _refused(f"{strict_json.MAX_VALUES // 2:,} weights at most, and one in every row", f"{entries:,} weights")
    spend(entries + 3.0 * len(pointers) + len(data) / 200, "what stands in it")
    if len(pointers) < 2 or pointers[0] != 0 or pointers[-1] != entries or not all(map(le, pointers, pointers[1:])):
        raise _refused("row_pointers that rise from 0 to the number of entries", "others")
    document = strict_json.parse(arrays["fields"][1])
    if not isinstance(document, dict) or "weights" in document:
        raise _refused("a JSON table without weights as its fields", "something else")
    weights = [int.from_bytes(raw[i : i + width], "big") for i in range(0, len(raw), width)]
    if "row_probabilities" in arrays:
        _check_probabilities(arrays["row_probabilities"][1], weights, document.get("denominator"))
    pairs = list(zip(outputs, weights, strict=True))
    document["weights"] = [pairs[start:end] for start, end in pairwise(pointers)]
    return document


def _check_probabilities(stated: bytes, weights: Sequence[int], denominator: Any) -> None:
    """The floats must be those that the weights give, to the last bit."""
    try:
        bottom = int(denominator) if len(denominator) <= strict_json.MAX_DIGITS else 0
        found = _bytes("<f8", (weight / bottom for weight in weights))
    except (TypeError, ValueError, ArithmeticError):  # no number, zero, or weights beyond every float
        found = b""
    if found != stated:
        raise _refused("row_probabilities that are weight/denominator", "other numbers")


def _members(data: bytes) -> dict[str, bytes]:
    """The members by name. Only a directory of the right size, at the very end of the file, is looked at."""
    if len(data) < _END.size:
        raise _refused("a zip archive", f"{len(data)} bytes")
    mark, _, _, _, count, size, offset, comment = _END.unpack(data[-_END.size :])
    if mark != b"PK\x05\x06" or comment or data[-42:-38] == b"PK\x06\x07":
        raise _refused("a plain zip archive from its first byte to its last", "something else")
    expected = MEMBERS | PROBABILITIES if count == len(MEMBERS) + 1 else MEMBERS
    if count != len(expected) or size > 200 * count or offset + size + _END.size != len(data):
        raise _refused(f"{len(MEMBERS)} members", f"{count} in a directory of {size:,} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            _check_directory(listed, len(data), expected)
            return {member.filename.removesuffix(".npy"): archive.read(member) for member in listed}
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, EOFError, struct.error) as error:
        raise _refused("a whole zip archive", strict_json.shown(str(error))) from None


def _check_directory(listed: Sequence[zipfile.ZipInfo], size: int, expected: Iterable[str]) -> None:
    """Refuse names, compression and sizes that `pack` would not have written, before anything is unpacked."""
    names = [member.filename for member in listed]
    if names != [f"{name}.npy" for name in expected]:
        raise _refused(f"the members {', '.join(expected)}", strict_json.shown(names))
    if any(member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 for member in listed):
        raise _refused("members that are stored as they are", "compressed or encrypted ones")
    total = sum(member.file_size for member in listed)
    if total > min(size, files.MAX_BYTES) or any(m.file_size != m.compress_size for m in listed):
        raise _refused("members that fit into the file", f"{total:,} bytes promised by a file of {size:,}")


def _header(kind: str, shape: Sequence[int]) -> bytes:
    """The header of a `.npy` member, version 1.0, to the letter as numpy writes it: its length a multiple of 64.

    numpy leaves room for the first size to grow to 21 digits.
    """
    sizes = f"({shape[0]},)" if len(shape) == 1 else f"({shape[0]}, {shape[1]})"
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {sizes}, }}" + " " * (21 - len(str(shape[0])))
    length = 10 + len(text) + 1
    text += " " * (-length % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("ascii")


def _array(name: str, content: bytes) -> _Shaped:
    """The array of a `.npy` member whose header is to the letter as numpy writes it; so never a pickle."""
    header, kind = _HEADER.match(content), (MEMBERS | PROBABILITIES)[name]
    length = int.from_bytes(header[1], "little") if header else 0
    if header is None or header[3].decode() != kind or len(header[2]) != length:
        raise _refused(f"{name} as an array of {kind}", "another header")
    shape = tuple(int(size) for size in header.groups()[3:] if size is not None)
    entries = shape[0] * (shape[1] if len(shape) == 2 else 1)
    if entries * _SIZES[kind] != len(content) - header.end():
        raise _refused(f"{name} to have the size that its header says", f"shape {shape} and other data")
    return shape, content[header.end() :]


def _bytes(kind: str, values: Iterable[float]) -> bytes:
    """Numbers as little-endian bytes."""
    found = array(_CODES[kind], values)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()


def _numbers(name: str, shaped: _Shaped) -> list[int]:
    found = array(_CODES[MEMBERS[name]])
    found.frombytes(shaped[1])
    if sys.byteorder == "big":
        found.byteswap()
    return found.tolist()


def _refused(rule: str, found: str) -> ArtifactError:
    return ArtifactError(
        f"An artifact in .npz must have {rule}. Found {found}. The file was cut or changed; copy it again."
    )
