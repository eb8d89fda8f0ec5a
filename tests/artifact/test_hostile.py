"""Files that were cut, changed or made to harm: each is refused with an ArtifactError of one line, soon."""

import hashlib
import json
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optdp.errors import ArtifactError
from optdp.files import atomic, canonical
from optdp.single.format import Artifact, from_json, read, to_json, write
from tests.spelling import as_written

Document = dict[str, Any]


def refused(data: bytes, load: Callable[[bytes], Artifact] = from_json) -> str:
    with pytest.raises(ArtifactError) as caught:
        load(data)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 400
    return message


def sealed(document: Document) -> bytes:
    """The document under its right digest, so that only the rule itself can refuse it."""
    rest = {key: value for key, value in document.items() if key != "sha256"}
    if "sha256" in document:
        spelled = json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
        rest["sha256"] = hashlib.sha256(spelled).hexdigest()
    return as_written(rest)


def with_value(*path: str | int, value: Any) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def without(key: str) -> Callable[[Document], None]:
    return lambda document: document.pop(key)


BIG = 1 << 70
CHANGES: dict[str, tuple[Callable[[Document], None], str]] = {
    "format": (with_value("format", value="other"), "format"),
    "format-list": (with_value("format", value=[]), "format"),
    "version": (with_value("version", value=2), "version"),
    "version-true": (with_value("version", value=True), "version"),
    "version-float": (with_value("version", value=1.0), "version"),
    "unknown-key": (with_value("extra", value=1), "keys"),
    **{f"no-{key}": (without(key), "") for key in ("format", "version")},
    **{
        f"no-{key}": (without(key), f"no {key}")
        for key in (
            [
                "inputs",
                "outputs",
                "denominator",
                "weights",
                "outside",
                "tail",
                "problem",
                "claim",
                "provenance",
                "sha256",
            ]
        )
    },
    "inputs-turned": (with_value("inputs", value=[4, 2]), "inputs"),
    "inputs-three": (with_value("inputs", value=[2, 3, 4]), "inputs"),
    "inputs-one": (with_value("inputs", value=[2]), "inputs"),
    "inputs-number": (with_value("inputs", value=2), "inputs"),
    "inputs-text": (with_value("inputs", value="24"), "inputs"),
    "inputs-float": (with_value("inputs", value=[2, 4.0]), "inputs"),
    "inputs-bool": (with_value("inputs", value=[True, 3]), "inputs"),
    "inputs-null": (with_value("inputs", value=[None, 3]), "inputs"),
    "inputs-far": (with_value("inputs", value=[2**53 - 1, 2**53 + 1]), "inputs"),
    "inputs-many": (with_value("inputs", value=[-(2**53), 2**53]), "row for each"),
    "outputs-far": (with_value("outputs", value=[-(2**53) - 1, 3]), "outputs"),
    "outputs-narrow": (with_value("outputs", value=[0, 3]), "within"),
    "outputs-narrow-above": (with_value("outputs", value=[-1, 2]), "within"),
    "denominator-int": (with_value("denominator", value=BIG), "denominator"),
    "denominator-odd": (with_value("denominator", value=str(BIG - 1)), "power of two"),
    "denominator-zero": (with_value("denominator", value="0"), "denominator"),
    "denominator-minus": (with_value("denominator", value=str(-BIG)), "denominator"),
    "denominator-plus": (with_value("denominator", value=f"+{BIG}"), "denominator"),
    "denominator-space": (with_value("denominator", value=f" {BIG}"), "denominator"),
    "denominator-newline": (with_value("denominator", value=f"{BIG}\n"), "denominator"),
    "denominator-leading": (with_value("denominator", value=f"0{BIG}"), "denominator"),
    "denominator-other-digits": (with_value("denominator", value="٢"), "denominator"),
    "denominator-underscore": (with_value("denominator", value="1_6"), "denominator"),
    "denominator-empty": (with_value("denominator", value=""), "denominator"),
    "denominator-2^4097": (with_value("denominator", value=str(1 << 4097)), "4096"),
    "denominator-long": (with_value("denominator", value="1" + "0" * 100_000), "denominator"),
    "denominator-half": (with_value("denominator", value=str(BIG // 2)), "more"),
    "denominator-double": (with_value("denominator", value=str(BIG * 2)), "less"),
    "outside": (with_value("outside", value="wrap"), "outside"),
    "outside-null": (with_value("outside", value=None), "outside"),
    "outside-list": (with_value("outside", value=["error"]), "outside"),
    "no-tail-for-geometric": (with_value("tail", value=None), "needs a tail"),
    "tail-text": (with_value("tail", value="geometric"), "tail"),
    "tail-law": (with_value("tail", "law", value="laplace"), "tail"),
    "tail-extra": (with_value("tail", "p", value="1"), "tail"),
    "tail-empty": (with_value("tail", value={}), "tail"),
    "q-text": (with_value("tail", "q", value="3/4"), "q must"),
    "q-three": (with_value("tail", "q", value=["3", "4", "5"]), "q must"),
    "q-ints": (with_value("tail", "q", value=[3, 4]), "q's"),
    "q-float": (with_value("tail", "q", value=["0.75", "1"]), "q's"),
    "q-zero": (with_value("tail", "q", value=["0", "4"]), "q's"),
    "q-by-zero": (with_value("tail", "q", value=["3", "0"]), "q's"),
    "q-minus": (with_value("tail", "q", value=["-3", "-4"]), "q's"),
    "q-one": (with_value("tail", "q", value=["1", "1"]), "between 0 and 1"),
    "q-large": (with_value("tail", "q", value=["5", "4"]), "between 0 and 1"),
    "q-not-lowest": (with_value("tail", "q", value=["6", "8"]), "lowest"),
    "q-long": (with_value("tail", "q", value=["3", "1" * 1301]), "q's"),
    "problem-list": (with_value("problem", value=[]), "problem"),
    "claim-null": (with_value("claim", value=None), "claim"),
    "provenance-text": (with_value("provenance", value="me"), "provenance"),
    "weights-null": (with_value("weights", value=None), "weights"),
    "weights-table": (with_value("weights", value={}), "weights"),
    "weights-empty": (with_value("weights", value=[]), "row for each"),
    "a-row-less": (lambda d: d["weights"].pop(), "row for each"),
    "a-row-more": (lambda d: d["weights"].append(d["weights"][0]), "row for each"),
    "row-empty": (with_value("weights", 0, value=[]), "pairs"),
    "row-null": (with_value("weights", 0, value=None), "pairs"),
    "row-table": (with_value("weights", 0, value={"0": BIG}), "pairs"),
    "row-text": (with_value("weights", 0, value="ab"), "pairs"),
    "row-flat": (with_value("weights", 0, value=[0, BIG]), "pairs"),
    "pair-one": (with_value("weights", 0, 0, value=[0]), "pairs"),
    "pair-three": (with_value("weights", 0, 0, value=[0, BIG, 1]), "pairs"),
    "pair-text": (with_value("weights", 2, 0, value="12"), "pairs"),
    "pair-table": (with_value("weights", 2, 0, value={"a": 1, "b": 2}), "pairs"),
    "pair-mixed": (with_value("weights", 0, value=[[-1], [0, 5, BIG - 5]]), "pairs"),
    "output-float": (with_value("weights", 2, 0, 0, value=3.0), "integers"),
    "output-bool": (with_value("weights", 0, 1, 0, value=False), "integers"),
    "output-null": (with_value("weights", 0, 1, 0, value=None), "integers"),
    "output-list": (with_value("weights", 0, 1, 0, value=[0]), "integers"),
    "weight-float": (with_value("weights", 2, 0, 1, value=float(BIG)), "integers"),
    "weight-text": (with_value("weights", 2, 0, 1, value=str(BIG)), "integers"),
    "weight-bool": (with_value("weights", 1, 0, 1, value=True), "integers"),
    "outputs-turned": (lambda d: d["weights"][0].reverse(), "increasing"),
    "output-twice": (with_value("weights", 0, value=[[0, 5], [0, BIG - 5]]), "increasing"),
    "output-beyond": (with_value("weights", 2, 0, 0, value=4), "within"),
    "weight-zero": (with_value("weights", 2, value=[[0, 0], [3, BIG]]), "positive"),
    "weight-minus": (with_value("weights", 2, value=[[0, -1], [3, BIG + 1]]), "positive"),
    "sum-less": (with_value("weights", 2, 0, 1, value=BIG - 1), "less"),
    "sum-more": (with_value("weights", 2, 0, 1, value=BIG + 1), "more"),
    "weight-huge": (with_value("weights", 2, 0, 1, value=10**1299), "more"),
    "weight-1301-digits": (with_value("weights", 2, 0, 1, value=10**1300), "digits"),
    "claim-huge": (with_value("claim", "n", value=-(10**1300)), "digits"),
    "claim-nan": (with_value("claim", "mae", value=float("nan")), "finite"),
    "claim-infinite": (with_value("claim", "mae", value=float("-inf")), "finite"),
    "claim-half-a-character": (with_value("claim", "mae", value="\ud83d"), "Unicode"),
    "key-half-a-character": (with_value("claim", "\udc00", value=1), "Unicode"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_rule_is_kept(sample: Artifact, name: str) -> None:
    change, words = CHANGES[name]
    document = json.loads(to_json(sample))
    assert from_json(sealed(document)) == sample
    change(document)
    assert words in refused(sealed(document))


@pytest.mark.parametrize("digest", [None, 5, "", "0" * 63, "0" * 64, "G" * 64, "0" * 64 + "\n", ["0" * 64], "upper"])
def test_the_digest_must_be_right(sample: Artifact, digest: Any) -> None:
    document = json.loads(to_json(sample))
    document["sha256"] = sample.sha256.upper() if digest == "upper" else digest
    assert "sha256" in refused(as_written(document))


def test_a_change_under_the_old_digest_is_noticed(sample: Artifact) -> None:
    for name in ("problem", "claim", "provenance"):
        document = json.loads(to_json(sample))
        document[name]["added"] = "x"
        assert "changed or cut off" in refused(as_written(document))
    document = json.loads(to_json(sample))
    document["weights"][0][0][1] -= 1
    document["weights"][0][1][1] += 1
    assert "changed or cut off" in refused(as_written(document))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"\0",
        b"null",
        b"[]",
        b"{}",
        b"1",
        b'"text"',
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"\xff\xfe{\0}\0",
        b"\xef\xbb\xbf{}",
        b"{'a': 1}",
        b'{"a": 1,}',
        b'{"a": 01}',
        b'{"a": 0x1}',
        b'{"a": +1}',
        b'{"a": 1} // comment',
        b'{"a": "\x01"}',
        b'{"format": "optdp/noise-matrix", "format": "optdp/noise-matrix"}',
        b'{"claim": {"a": 1, "\\u0061": 1}}',
        b"[" * 41,
        b"[" * 41 + b"]" * 41,
        b"[" * 5_000_000,
        b'{"a":' * 1_000_000,
        b'"' + b'\\"' * 1_000_000 + b"[" * 100,
        b'"' * 1_000_001,
        b"\\" * 1_000_000,
        b"9" * 5_000_000,
        b"-" + b"9" * 1301,
        b"[" + b"9" * 1301 + b"]",
        b"PK\x03\x04" + b"\0" * 100,
        pickle.dumps({"format": "optdp/noise-matrix"}),
    ],
    ids=lambda data: repr(data[:24]),
)
def test_what_is_not_an_artifact(data: bytes) -> None:
    refused(data)


def test_brackets_in_text_are_not_nesting(sample: Artifact) -> None:
    document = json.loads(to_json(sample))
    document["claim"]["mae"] = '\\"' + "[{" * 500 + '\\"'
    document["claim"]["digits"] = "7" * 5000
    assert from_json(sealed(document)).claim == document["claim"]


def test_depth_is_allowed_up_to_the_limit(sample: Artifact) -> None:
    document = json.loads(to_json(sample))
    for depth, fine in ((38, True), (39, False)):
        document["claim"] = {"a": json.loads("[" * depth + "]" * depth)}
        if fine:
            from_json(sealed(document))
        else:
            assert "nest" in refused(sealed(document))


def test_every_cut_is_noticed(sample: Artifact) -> None:
    data = to_json(sample)
    for end in range(len(data)):
        refused(data[:end])
    for more in (b"x", b"{}", b"\0", b"\n", data):
        refused(data + more)
        refused(more + data)


def test_random_changes_are_refused(sample: Artifact) -> None:
    data = to_json(sample)
    chance = random.Random(20240229)
    for turn in range(1500):
        changed = bytearray(data)
        for _ in range(1 + turn % 3):
            place = chance.randrange(len(changed))
            match chance.randrange(4):
                case 0:
                    changed[place] = chance.randrange(256)
                case 1:
                    changed[place] ^= 1 << chance.randrange(8)
                case 2:
                    del changed[place : place + chance.randrange(1, 9)]
                case _:
                    changed[place:place] = changed[place // 2 : place // 2 + chance.randrange(1, 9)]
        if bytes(changed) != data:
            refused(bytes(changed))


# ---------------------------------------------------------------------- paths


def test_only_regular_files_are_read(sample: Artifact, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    for path in (
        tmp_path / "pipe.json",
        tmp_path / "folder.json",
        tmp_path / "loop.json",
        tmp_path / "missing.json",
        tmp_path / "line\nbreak.json",
        tmp_path,
        "/dev/zero",
        "/dev/null",
        "/proc/self/status",
        "/proc/self/mem",
        "",
        "zero\0byte",
        "a" * 5000,
    ):
        with pytest.raises(ArtifactError) as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_the_message_names_the_file(sample: Artifact, tmp_path: Path) -> None:
    data = to_json(sample)
    (tmp_path / "cut.json").write_bytes(data[: len(data) // 2])
    with pytest.raises(ArtifactError, match=r"cut\.json"):
        read(tmp_path / "cut.json")


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    with open(tmp_path / "large.json", "wb") as file:
        file.truncate(atomic.MAX_BYTES + 1)
    with pytest.raises(ArtifactError, match=f"{atomic.MAX_BYTES:,} bytes"):
        read(tmp_path / "large.json")


def test_running_out_of_memory(sample: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(_: bytes) -> Document:
        raise MemoryError

    write(sample, tmp_path / "a.json")
    monkeypatch.setattr(canonical, "parse", exhausted)
    with pytest.raises(ArtifactError, match="memory"):
        read(tmp_path / "a.json")
