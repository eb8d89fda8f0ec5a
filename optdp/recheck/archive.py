"""An artifact as `.npz`: a zip archive of arrays, read without numpy and without floating-point numbers.

The members are these, in this order, stored as they are; the last one may be left out:

    fields             bytes    JSON of everything but `weights`
    row_pointers       int64    row i is the entries row_pointers[i] .. row_pointers[i+1]
    row_outputs        int64    the output of each entry
    row_weights        bytes    one line for each entry: its weight, big-endian
    row_probabilities  float64  the float next to weight/denominator of each entry

A stored member takes its own size in the file, and all members together must fit into the file: nothing unpacks to more
than was read. The end of the archive must be the end of the file and say where the directory lies, so that nothing
stands before or behind the archive. A header is compared with the one sentence that numpy writes for a plain array in C
order; so objects (pickles), Fortran order and other numbers are refused before a byte of the data is looked at.

**The float next to w/2^k**, w >= 1: with `b` the bits of `w`, `2^(b-1-k) <= w/2^k < 2^(b-k)`. Floats there are
multiples of `2^u`, `u = max(b-1-k-52, -1074)`. The nearest multiple, of two the even one, is `m 2^u`. If `m` is below
`2^52` the number is subnormal and its bits are `m` itself. Otherwise the bits are `m + (u+1074) 2^52`: the exponent
field is `u+1075` and the leading one of `m` is not stored. This also holds if rounding up gave `m = 2^53`.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from .fields import positive
from .verdict import MOST_BYTES, Refused, must, spend

_MEMBERS = {"fields": "|u1", "row_pointers": "<i8", "row_outputs": "<i8", "row_weights": "|u1"}
_FLOATS = {"row_probabilities": "<f8"}
_BYTES = {"|u1": 1, "<i8": 8, "<f8": 8}
_END = 22
"""Bytes of the record that ends a zip archive without a comment."""
_WIDEST = 513
"""Bytes of 2^4096."""
_MAGIC = b"\x93NUMPY\x01\x00"
_SENTENCE = re.compile(
    r"\{'descr': '(.{3})', 'fortran_order': False, 'shape': \(([0-9]{1,12}),( [0-9]{1,12})?\), \} *\n"
)


def read_archive(data: bytes) -> tuple[bytes, list[list[list[int]]], bytes | None]:
    """The JSON text of the fields, the rows of `[output, weight]`, and the floats that are stated, if any."""
    members = _members(data)
    arrays = {name: _array(name, content) for name, content in members.items()}
    (entries, width), lines = arrays["row_weights"]
    must(1 <= width <= _WIDEST, f"A weight must have 1 to {_WIDEST} bytes", width)
    spend(entries, 8 * width)
    pointers, outputs = (_whole(arrays[name][1]) for name in ("row_pointers", "row_outputs"))
    must(len(outputs) == entries, "There must be a weight for each output", [len(outputs), entries])
    right = len(pointers) >= 2 and pointers[0] == 0 and pointers[-1] == entries
    right = right and all(one <= two for one, two in pairwise(pointers))
    must(right, "row_pointers must rise from 0 to the number of entries", pointers[:2])
    pairs = [
        [s, int.from_bytes(lines[i * width : i * width + width], "big")] for i, s in enumerate(outputs)
    ]  # fmt: skip
    rows = [pairs[start:end] for start, end in pairwise(pointers)]
    floats = arrays["row_probabilities"][1] if "row_probabilities" in arrays else None
    return arrays["fields"][1], rows, floats


def check_floats(stated: bytes, rows: Sequence[Sequence[Sequence[int]]], denominator: Any) -> None:
    """Every float must be the one next to its weight over the denominator, a power of two."""
    unit = positive(denominator, "denominator")
    must(unit.bit_count() == 1, "denominator must be a power of two", denominator)
    weights = [weight for row in rows for _, weight in row]
    spend(4 * len(weights), unit.bit_length())
    must(max(weights, default=0) <= unit, "Weights must be at most the denominator", denominator)
    found = struct.pack(f"<{len(weights)}Q", *(float_bits(weight, unit.bit_length() - 1) for weight in weights))
    must(found == stated, "row_probabilities must be weight/denominator to the last bit", len(stated))


def float_bits(weight: int, k: int) -> int:
    """The bits of the float next to `weight / 2^k`, which is not above 1; the proof is at the top."""
    if weight == 0:
        return 0
    u = max(weight.bit_length() - 53 - k, -1074)
    drop = u + k  # the nearest multiple of 2^u is the nearest multiple of 2^drop to the weight
    if drop <= 0:
        m = weight << -drop
    else:
        m, rest = weight >> drop, weight & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        m += rest > half or (rest == half and m & 1)
    return m if m < 1 << 52 else m + (u + 1074 << 52)


def _members(data: bytes) -> dict[str, bytes]:
    """The bytes of each member, once the directory says nothing that a plain archive would not say."""
    must(len(data) >= _END, "A .npz must be a zip archive", f"{len(data)} bytes")
    mark, _, _, _, count, size, offset, comment = struct.unpack("<4s4H2LH", data[-_END:])
    plain = mark == b"PK\x05\x06" and comment == 0 and data[-_END - 20 : -_END - 16] != b"PK\x06\x07"
    must(plain, "A .npz must end as a plain zip archive ends", mark)
    known = _MEMBERS | _FLOATS if count == len(_MEMBERS) + 1 else _MEMBERS
    must(count == len(known), "A .npz must have four or five members", count)
    right = size <= 200 * count and offset + size + _END == len(data)
    must(right, "The directory of a .npz must stand right before its end", [offset, size])
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            names = [member.filename for member in listed]
            must(names == [f"{name}.npy" for name in known], f"The members must be {', '.join(known)}", names)
            stored = all(m.compress_type == zipfile.ZIP_STORED and not m.flag_bits & 1 for m in listed)
            must(stored, "Members must be stored as they are", "compressed or encrypted ones")
            must(all(m.file_size == m.compress_size for m in listed), "Members must have one size", "two sizes")
            total = sum(member.file_size for member in listed)
            must(total <= min(len(data), MOST_BYTES), "Members must fit into the file", total)
            return {name: archive.read(member) for name, member in zip(known, listed, strict=True)}
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, EOFError, struct.error) as error:
        raise Refused(
            f"A .npz must be a whole zip archive. Found {type(error).__name__}: {str(error)[:80]!r}."
        ) from None


def _array(name: str, content: bytes) -> tuple[tuple[int, ...], bytes]:
    """The shape and the bytes of a member: the magic, the length of the sentence, the sentence, the data."""
    kind, begin = (_MEMBERS | _FLOATS)[name], len(_MAGIC) + 2
    length = int.from_bytes(content[len(_MAGIC) : begin], "little")
    said = _SENTENCE.fullmatch(content[begin : begin + length].decode("latin-1"))
    right = content.startswith(_MAGIC) and said is not None and said[1] == kind
    must(right, f"{name} must be a plain array of {kind}", content[:80])
    assert said is not None
    shape = tuple(int(part) for part in said.groups()[1:] if part is not None)
    must(len(shape) == (2 if name == "row_weights" else 1), f"{name} must have the shape of its kind", shape)
    held = len(content) - begin - length
    entries = shape[0] * (shape[1] if len(shape) == 2 else 1)
    must(entries * _BYTES[kind] == held, f"{name} must have the size that its header says", [entries, held])
    return shape, content[begin + length :]


def _whole(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 8}q", data)
