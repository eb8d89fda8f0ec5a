"""An artifact as `.npz`: the table as arrays, everything else as one JSON text.

    fields        bytes    canonical JSON of everything but `weights`
    row_pointers  int64    row i is the entries row_pointers[i] .. row_pointers[i+1]
    row_outputs   int64    the output of each entry
    row_weights   bytes    one line for each entry: its weight, big-endian, of one width for all

`numpy.load(path, allow_pickle=False)` opens it. Members are stored, not compressed, under a fixed date: equal
content gives equal bytes, and the file cannot unpack to more than it is.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from optdp.artifact import files, strict_json
from optdp.errors import ArtifactError

MEMBERS = {"fields": "|u1", "row_pointers": "<i8", "row_outputs": "<i8", "row_weights": "|u1"}
"""The arrays in their order, and the type of each."""

MAX_WIDTH = 513
"""Bytes of a weight: 2^4096 takes 513."""

_END = struct.Struct("<4s4H2LH")
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)(\{'descr': '([<|][iu][18])', 'fortran_order': False, "
    rb"'shape': \(([0-9]{1,12}),(?: ([0-9]{1,12}))?\), \} *\n)",
    re.DOTALL,
)


def pack(document: dict[str, Any]) -> bytes:
    """The bytes of a checked document, whose `weights` are rows of `(output, weight)`."""
    rows: Sequence[Sequence[tuple[int, int]]] = document["weights"]
    fields = strict_json.canonical({key: value for key, value in document.items() if key != "weights"})
    width = (int(document["denominator"]).bit_length() + 7) // 8
    weights = b"".join(weight.to_bytes(width, "big") for row in rows for _, weight in row)
    arrays: dict[str, npt.NDArray[Any]] = {
        "fields": np.frombuffer(fields.encode("ascii"), np.uint8),
        "row_pointers": np.fromiter(accumulate(map(len, rows), initial=0), "<i8", len(rows) + 1),
        "row_outputs": np.fromiter((output for row in rows for output, _ in row), "<i8"),
        "row_weights": np.frombuffer(weights, np.uint8).reshape(-1, width),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            member.create_system, member.external_attr = 3, 0o644 << 16
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            archive.writestr(member, content.getvalue())
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, Any]:
    """The document in `data`, not yet checked: its `weights` are rows of `(output, weight)`."""
    arrays = {name: _array(name, content) for name, content in _members(data).items()}
    pointers, outputs, weights = arrays["row_pointers"], arrays["row_outputs"], arrays["row_weights"]
    if arrays["fields"].ndim != 1 or pointers.ndim != 1 or outputs.ndim != 1 or weights.ndim != 2:
        raise _refused("one-dimensional arrays and a two-dimensional row_weights", "other shapes")
    entries, width = weights.shape
    if len(outputs) != entries or not 1 <= width <= MAX_WIDTH:
        raise _refused(
            f"one weight of 1 to {MAX_WIDTH} bytes for each output",
            f"{len(outputs)} outputs and {entries} weights of {width} bytes",
        )
    if len(pointers) < 2 or pointers[0] != 0 or pointers[-1] != entries or (np.diff(pointers) < 0).any():
        raise _refused("row_pointers that rise from 0 to the number of entries", "others")
    document = strict_json.parse(arrays["fields"].tobytes())
    if not isinstance(document, dict) or "weights" in document:
        raise _refused("a JSON table without weights as its fields", "something else")
    raw = weights.tobytes()
    numbers = [int.from_bytes(raw[i : i + width], "big") for i in range(0, len(raw), width)]
    pairs = list(zip(outputs.tolist(), numbers, strict=True))
    document["weights"] = [pairs[start:end] for start, end in pairwise(pointers.tolist())]
    return document


def _members(data: bytes) -> dict[str, bytes]:
    """The members by name. Only a directory of the right size, at the very end of the file, is looked at."""
    if len(data) < _END.size:
        raise _refused("a zip archive", f"{len(data)} bytes")
    mark, _, _, _, count, size, offset, comment = _END.unpack(data[-_END.size :])
    if mark != b"PK\x05\x06" or comment or data[-42:-38] == b"PK\x06\x07":
        raise _refused("a plain zip archive from its first byte to its last", "something else")
    if count != len(MEMBERS) or size > 200 * len(MEMBERS) or offset + size + _END.size != len(data):
        raise _refused(f"{len(MEMBERS)} members", f"{count} in a directory of {size:,} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            _check_directory(listed, len(data))
            return {member.filename.removesuffix(".npy"): archive.read(member) for member in listed}
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, EOFError, struct.error) as error:
        raise _refused("a whole zip archive", strict_json.shown(str(error))) from None


def _check_directory(listed: Sequence[zipfile.ZipInfo], size: int) -> None:
    """Refuse names, compression and sizes that `pack` would not have written, before anything is unpacked."""
    names = [member.filename for member in listed]
    if names != [f"{name}.npy" for name in MEMBERS]:
        raise _refused(f"the members {', '.join(MEMBERS)}", strict_json.shown(names))
    if any(member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 for member in listed):
        raise _refused("members that are stored as they are", "compressed or encrypted ones")
    total = sum(member.file_size for member in listed)
    if total > min(size, files.MAX_BYTES) or any(m.file_size != m.compress_size for m in listed):
        raise _refused("members that fit into the file", f"{total:,} bytes promised by a file of {size:,}")


def _array(name: str, content: bytes) -> npt.NDArray[Any]:
    """The array of a `.npy` member whose header is to the letter as numpy writes it; so never a pickle."""
    header = _HEADER.match(content)
    kind = np.dtype(MEMBERS[name])
    length = int.from_bytes(header[1], "little") if header else 0
    if header is None or header[3].decode() != MEMBERS[name] or len(header[2]) != length:
        raise _refused(f"{name} as an array of {MEMBERS[name]}", "another header")
    shape = tuple(int(size) for size in header.groups()[3:] if size is not None)
    entries = shape[0] * (shape[1] if len(shape) == 2 else 1)
    if entries * kind.itemsize != len(content) - header.end():
        raise _refused(f"{name} to have the size that its header says", f"shape {shape} and other data")
    return np.frombuffer(content, kind, offset=header.end()).reshape(shape)


def _refused(rule: str, found: str) -> ArtifactError:
    return ArtifactError(
        f"An artifact in .npz must have {rule}. Found {found}. The file was cut or changed; copy it again."
    )
