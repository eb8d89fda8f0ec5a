"""What samplers in Python, C and JavaScript share: their integers in one order, their vectors, their checksum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optdp.export.layout import Layout, checksum
from optdp.export.subject import Subject
from optdp.export.vectors import Vector, vectors


@dataclass(frozen=True)
class Sampler:
    """A table ready to be written as source code."""

    subject: Subject
    laid: Layout
    vectors: tuple[Vector, ...]

    @staticmethod
    def of(subject: Subject) -> Sampler:
        """The sampler of what is exported; equal artifacts give equal samplers."""
        laid = subject.layout()
        return Sampler(subject, laid, tuple(vectors(laid.drawing, subject.artifact.sha256)))

    @property
    def digest(self) -> str:
        """The digest of the artifact."""
        return self.subject.artifact.sha256

    def lists(self) -> dict[str, Sequence[int]]:
        """The lists of integers in their order."""
        noise, rows = self.laid.noise, self.laid.rows
        return {
            "NOISE_STEPS": self.laid.noise_steps,
            "NOISE_START": noise.start,
            "NOISE_CUTS": noise.first,
            "NOISE_REST": noise.rest,
            "ROW_START": rows.start,
            "ROW_CUTS": rows.first,
            "ROW_REST": rows.rest,
            "VALUES": self.laid.values,
            "VECTORS": [number for vector in self.vectors for number in flat(vector)],
        }

    def checksum(self) -> int:
        """The checksum of every integer and of the digest."""
        lists = [number for entries in self.lists().values() for number in entries]
        return checksum([*self.laid.numbers, *lists, *self.digest.encode("ascii")])


def flat(vector: Vector) -> list[int]:
    """A vector as integers: input, outcome, release, number of words, and the place and value of each word."""
    words = [number for place in sorted(vector.words) for number in (place, vector.words[place])]
    return [vector.x, vector.outcome, vector.released, len(vector.words), *words]
