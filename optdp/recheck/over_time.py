"""What several releases from one table reveal together, from the largest quotient of two adjacent inputs.

Let `R` be at least that quotient. A release then tells no more than one answer of randomized response that is `R` times
as likely to be right as wrong: both its laws are mixtures, `R : 1` and `1 : R`, of two fixed laws. Among `N` answers
the number `j` of right ones has weight `t(j) = C(N, j) R^j` under one input and `t(N - j)` under the other, of
`(1 + R)^N` in all. So the releases are `(epsilon, delta)`-DP if

    sum over j of max(0, t(j) - e^epsilon t(N - j))  <=  delta (1 + R)^N.

As `R >= 1`, no weight is below 1, and integers over `2^BITS` enclose it closely. Any `R` that is large enough will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from .claims import as_decimal, epsilon_of, stated
from .enclosures import exponential
from .fields import table_with, whole_number
from .verdict import Failed, must, spend

BITS = 512
LARGEST = 1000
"""No claim may be of a larger epsilon, nor of releases whose epsilons have a larger sum."""


def check_over_time(claim: Mapping[str, Any], ratio: Fraction | None, factor: int) -> None:
    """The claim `over_time`, if there is one: so many releases are (epsilon, delta)-DP together."""
    if "over_time" not in claim:
        return
    table = table_with(claim["over_time"], "over_time", "releases epsilon delta")
    releases = whole_number(table["releases"], "releases", 1, 10_000)
    epsilon, delta = stated(table, "epsilon"), stated(table, "delta")
    must(0 <= epsilon <= LARGEST, f"epsilon of over_time must be from 0 to {LARGEST}", table["epsilon"])
    must(0 <= delta < 1, "delta of over_time must be at least 0 and below 1", table["delta"])
    one = epsilon_of(ratio, factor)
    if ratio is None or one is None or one * releases > LARGEST or not keeps(ratio**factor, releases, epsilon, delta):
        raise Failed(
            f"the claim over_time does not hold: {releases} releases at {as_decimal(one)} have more than epsilon "
            f"{as_decimal(epsilon)} at delta {as_decimal(delta)} together."
        )


def keeps(ratio: Fraction, releases: int, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the inequality above is proved."""
    one = 1 << BITS
    quotient = -(-(ratio.numerator << BITS) // ratio.denominator)
    spend(4 * releases, releases + 2 * LARGEST + 2 * BITS)  # bits of a weight, as the epsilons add up to LARGEST
    low, high = [one], [one]
    for j in range(releases):
        up, down = quotient * (releases - j), (j + 1) << BITS
        low.append(low[-1] * up // down)
        high.append(-(-high[-1] * up // down))
    least, _, bits = exponential(epsilon)
    above = (max(0, (a << bits) - least * b) for a, b in zip(high, reversed(low), strict=True))
    return sum(above) * delta.denominator <= delta.numerator * (sum(low) << bits)
