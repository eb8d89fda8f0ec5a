"""The artifact for other tools. A target is a function `(source, path)` and one line in EXPORTS."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from pathlib import Path

from optdp.artifact import files, format, strict_json
from optdp.artifact.format import Artifact
from optdp.errors import ProblemError
from optdp.noise.matrix import NoiseMatrix

Source = Artifact | NoiseMatrix


def export(source: Source, target: str, path: str | Path) -> None:
    """Write `source` to `path` in the format named `target`."""
    if target not in EXPORTS:
        raise ProblemError(f"The export target must be one of {', '.join(EXPORTS)}. Found {target!r}.")
    EXPORTS[target](source, Path(path))


def to_csv(source: Source, path: Path) -> None:
    """A line for each entry of the table, and beside it `<name>.meta.json` with everything but the weights.

    `probability` is weight/denominator to 17 digits, for reading; the weights are exact. With a tail it is
    the probability given that noise stayed within `outputs`; the companion has `tail` and `outside`.
    """
    artifact = _artifact(source)
    meta = format.fields(artifact)
    bottom, digits = Decimal(artifact.denominator), Context(prec=17)
    lines = ["input,output,weight,denominator,probability"]
    for x, row in enumerate(artifact.rows, artifact.inputs[0]):
        for s, weight in row:
            share = digits.divide(Decimal(weight), bottom)
            lines.append(f"{x},{s},{weight},{artifact.denominator},{share}")
    described = ",\n".join(f'"{key}": {strict_json.friendly(value)}' for key, value in meta.items())
    files.write_bytes(path.with_name(path.name + ".meta.json"), f"{{\n{described}\n}}\n".encode("ascii"))
    files.write_bytes(path, ("\n".join(lines) + "\n").encode("ascii"))


def to_npz(source: Source, path: Path) -> None:
    """The artifact itself as `.npz`, whatever the name ends in; `read` takes it back if that is `.npz`."""
    files.write_bytes(path, format.to_npz(_artifact(source)))


def _artifact(source: Source) -> Artifact:
    if isinstance(source, Artifact):
        return source
    return Artifact(
        source.inputs,
        source.outputs,
        source.denominator,
        source.rows,
        source.outside,
        source.q,
        problem={},
        claim={},
        provenance={"last": source.last},
    )


EXPORTS: dict[str, Callable[[Source, Path], None]] = {"csv": to_csv, "npz": to_npz}
"""The targets, in the order in which they are listed."""
