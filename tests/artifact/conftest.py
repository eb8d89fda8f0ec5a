"""An artifact to try things on."""

from fractions import Fraction

import pytest

from optdp.single.format import Artifact


@pytest.fixture(scope="session")
def sample() -> Artifact:
    """Three rows, a tail, a denominator beyond 2^63, text beyond ASCII and the odd float."""
    denominator = 1 << 70
    rows = (
        ((-1, denominator - 5), (0, 5)),
        ((0, 1), (1, denominator - 3), (3, 2)),
        ((3, denominator),),
    )
    return Artifact(
        inputs=(2, 4),
        outputs=(-1, 3),
        denominator=denominator,
        rows=rows,
        outside="geometric",
        q=Fraction(3, 4),
        problem={"kind": "single-lte", "epsilon": "0.3", "population": {"n": 4, "p": "1/3"}},
        claim={"epsilon": "0.3", "mae": "1.25", "never_worse": True, "lower_bound": None},
        provenance={"who": "Zoë \U0001f600", "seconds": 0.25},
    )
