"""Metric shuffles as they run: what comes out follows its exact law, computed here from scipy's negative binomials,
by convolution; and what has 30% less noise is told apart from it.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, chi2, nbinom

from optdp import MetricShuffle, ProblemError, Source, solve
from optdp.shuffle.metric.design import Design
from optdp.shuffle.metric.protocol import MetricProtocol

ROOT = Path(__file__).resolve().parent.parent.parent
Floats = NDArray[np.float64]
Law = tuple[int, Floats]
"""The least value, and the probabilities from there on."""

PASSES, FAILS = 1e-4, 1e-9
"""P-values above the first pass; what has less noise must be below the second."""


# ------------------------------------------------------------------------------------- laws, by a second derivation


def sgdl_law(beta: float, q: float) -> Law:
    """The difference of two of scipy's negative binomials, as far as it matters."""
    reach = int(nbinom.isf(1e-15, beta, 1.0 - q)) + 2
    one = nbinom.pmf(np.arange(reach + 1), beta, 1.0 - q)
    return -reach, np.convolve(one, one[::-1])


def moved(law: Law, by: int) -> Law:
    return law[0] + by, law[1]


def clamped(law: Law, low: int, high: int) -> Law:
    """All below `low` at `low`, all above `high` at `high`."""
    values = np.clip(np.arange(law[0], law[0] + len(law[1])), low, high)
    return low, np.bincount(values - low, weights=law[1], minlength=high - low + 1)


def both(one: Law, other: Law) -> Law:
    """The law of the sum of independent draws."""
    return one[0] + other[0], np.convolve(one[1], other[1])


def total(laws: list[Law]) -> Law:
    return reduce(both, laws)


def flipped(value: int, k: int, flip: float) -> Law:
    """One person's bits: those that stay ones, and those that become ones, bit by bit."""
    bits = [(0, np.array([flip, 1.0 - flip]))] * value + [(0, np.array([1.0 - flip, flip]))] * (k - value)
    return total(bits)


def message_law(design: Design, value: int) -> Law:
    """What one person sends who holds `value`."""
    if design.flip is not None:
        return flipped(value, design.k, float(design.flip))
    assert design.shares is not None
    noise = sgdl_law(float(design.shares.beta), float(design.shares.q))
    if design.mechanism == "geo-local":
        return moved(noise, value)
    assert design.c is not None
    quanta, rest = divmod(value, design.quantum)
    rounded = quanta, np.array([1.0 - rest / design.quantum, rest / design.quantum])
    return clamped(both(rounded, moved(noise, design.c)), 0, design.largest + 2 * design.c)


def p_value(drawn: Any, law: Law) -> float:
    """Pearson's chi-square; cells that expect fewer than ten are pooled with their neighbours, from the left."""
    low, chances = law
    drawn = np.asarray(drawn)
    inside = (drawn >= low) & (drawn < low + len(chances))
    if not inside.all():
        return 0.0
    counts = np.bincount(drawn - low, minlength=len(chances))
    cells = [[0.0, 0.0]]
    for seen, due in zip(counts, chances * len(drawn), strict=True):
        cells[-1][0] += seen
        cells[-1][1] += due
        if cells[-1][1] >= 10.0:
            cells.append([0.0, 0.0])
    rest = cells.pop()
    cells[-1] = [cells[-1][0] + rest[0], cells[-1][1] + rest[1]]
    found, expected = np.array(cells).T
    assert len(cells) > 1
    return float(chi2.sf(((found - expected) ** 2 / expected).sum(), len(cells) - 1))


def quieter(design: Design) -> Design:
    """The same with a standard deviation of the noise of 0.7 of what it was."""
    if design.flip is not None:
        spread = 0.49 * float(design.flip) * (1.0 - float(design.flip))
        return replace(design, flip=Fraction((1.0 - math.sqrt(1.0 - 4.0 * spread)) / 2.0).limit_denominator(10**9))
    assert design.shares is not None
    beta, goal = design.shares.beta, 0.7 * design.shares.deviation / math.sqrt(design.shares.n)
    eps = brentq(lambda e: math.sqrt(2.0 * float(beta) * math.exp(-e)) / -math.expm1(-e) - goal, 1e-4, 60.0)
    found = Design.noisy(
        design.mechanism, design.n, beta, Fraction(eps).limit_denominator(10**9), design.c, k=design.k,
        quantum=design.quantum,
    )  # fmt: skip
    assert found.shares is not None
    assert found.shares.deviation == pytest.approx(0.7 * design.shares.deviation, rel=1e-6)
    return found


def many(design: Design, values: list[int], runs: int, seed: int) -> NDArray[np.int64]:
    """The messages of many runs at once, a row for each: people are independent, so they are one large run."""
    crowd = MetricProtocol(replace(design, n=runs * len(values)))
    return crowd.randomize(np.tile(np.array(values), runs), Source(seed)).reshape(runs, -1)


def rr(n: int, k: int, flip: str) -> Design:
    return Design("rr", n, k, flip=Fraction(flip))


def noisy(mechanism: str, n: int, beta: str, eps_geo: str, c: int | None, k: int, quantum: int = 1) -> Design:
    return Design.noisy(mechanism, n, Fraction(beta), Fraction(eps_geo), c, k=k, quantum=quantum)


DESIGNS = {
    "rr": rr(6, 7, "0.11"),
    "rr, few flips": rr(6, 7, "1/1000"),
    "geo": noisy("geo", 6, "1", "0.6", 20, 7),
    "geo, clamped often": noisy("geo", 6, "1", "0.6", 1, 7),
    "geo, coarse": noisy("geo", 6, "1", "0.9", 3, 7, 3),
    "sgdl": noisy("sgdl", 6, "1/6", "0.3", 30, 7),
    "sgdl, clamped often": noisy("sgdl", 6, "1/6", "0.3", 2, 7),
    "hybrid": noisy("hybrid", 6, "0.45", "0.5", 14, 7),
    "hybrid, coarse": noisy("hybrid", 6, "0.45", "0.5", 5, 7, 4),
    "geo-local": noisy("geo-local", 6, "1", "0.4", None, 7),
}
VALUES = [0, 7, 3, 3, 5, 1]


@pytest.mark.parametrize("name", DESIGNS)
def test_messages_and_their_total_follow_the_exact_law(name: str) -> None:
    design, runs = DESIGNS[name], 60_000
    laws = [message_law(design, value) for value in VALUES]
    drawn = many(design, VALUES, runs, 11)
    for i, law in enumerate(laws):
        assert p_value(drawn[:, i], law) > PASSES
    assert p_value(drawn.sum(axis=1), total(laws)) > PASSES
    less = many(quieter(design), VALUES, runs, 12)
    assert p_value(less.sum(axis=1), total(laws)) < FAILS


def test_the_checks_notice_a_shift_and_a_swap() -> None:
    """The chi-square itself has power against less gross mistakes than the noise's size."""
    design = DESIGNS["geo"]
    laws = [message_law(design, value) for value in VALUES]
    drawn = many(design, VALUES, 60_000, 13)
    assert p_value(drawn.sum(axis=1) + 1, total(laws)) < FAILS
    assert p_value(drawn[:, 1], laws[0]) < FAILS
    other = noisy("hybrid", 6, "1/2", "0.4334", 20, 7)  # nearly the same variance, another shape
    assert other.shares is not None
    assert design.shares is not None
    assert other.shares.deviation == pytest.approx(design.shares.deviation, rel=2e-2)
    assert p_value(many(other, VALUES, 60_000, 14)[:, 0], laws[0]) < FAILS


def test_the_curators_sum_follows_the_exact_law() -> None:
    design = noisy("geo-central", 6, "1", "0.4", None, 7)
    protocol, source = MetricProtocol(design), Source(21)
    law = moved(sgdl_law(1.0, math.exp(-0.4)), sum(VALUES))
    drawn = [protocol.randomize(VALUES, source)[0] for _ in range(2500)]
    assert p_value(drawn, law) > PASSES
    less = MetricProtocol(quieter(design))
    assert p_value([less.randomize(VALUES, source)[0] for _ in range(2500)], law) < FAILS


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [("rr", {}), ("geo", {}), ("sgdl", {}), ("hybrid", {"local_epsilon": 2}), ("geo-local", {}), ("geo-central", {})],
)
def test_solved_designs_run_and_err_as_they_say(mechanism: str, more: dict[str, Any]) -> None:
    """A solved design, run by run through shuffle and analyze: unbiased, and of the stated errors."""
    n, runs = 30, 400
    solution = solve(MetricShuffle(mechanism, n, 20, "1e-4", "0.4", 3, **more))
    protocol, source = solution.protocol(), Source(31)
    values = np.random.default_rng(1).integers(0, 21, n)
    found = [protocol.analyze(protocol.shuffle(protocol.randomize(values, source))) for _ in range(runs)]
    errors = np.array([estimate.sums[0] for estimate in found]) - values.sum()
    assert abs(errors.mean()) < 4.0 * solution.rmse / math.sqrt(runs)
    spread = np.abs(errors).std() / math.sqrt(runs)
    assert abs(np.abs(errors).mean() - solution.mae) < 4.0 * spread + 0.002 * solution.mae
    assert abs(np.sqrt((errors**2).mean()) / solution.rmse - 1.0) < 0.25
    inside = np.mean(np.abs(errors) <= found[0].within_95)
    assert binom.sf(round(inside * runs), runs, 0.95) + binom.pmf(round(inside * runs), runs, 0.95) > 1e-4
    assert inside > 0.95 - 4.0 * math.sqrt(0.05 * 0.95 / runs)
    assert found[0].mae == pytest.approx(solution.mae)
    assert found[0].rmse == pytest.approx(solution.rmse)


@pytest.mark.parametrize("eps", ["0.05", "0.2", "0.5", "2"])
@pytest.mark.parametrize("n", [10, 100, 1000, 10_000])
def test_sgdl_shuffle_errs_like_the_central_geometric(n: int, eps: str) -> None:
    solution = solve(MetricShuffle("sgdl", n, 3, "1e-6", eps))
    runs = max(400, 600_000 // n)
    values = np.random.default_rng(2).integers(0, 4, n)
    assert solution.c is not None
    sums = [many(solution.design, values.tolist(), runs // 4, 100 * part + n).sum(axis=1) for part in range(4)]
    errors = np.concatenate(sums) - (int(values.sum()) + n * solution.c)
    q = math.exp(-float(eps))
    central = 2.0 * q / (1.0 - q * q)
    assert central * (1 - 1e-9) <= solution.mae <= central * (1 + 1e-5)  # what clamping may add, with delta 1e-6
    found = np.abs(errors)
    assert abs(found.mean() - central) < 3.0 * found.std() / math.sqrt(len(found))


# -------------------------------------------------------------------------------------------------- representations


@pytest.mark.parametrize("mechanism", ["rr", "geo", "sgdl", "hybrid"])
def test_bits_say_what_counts_say(mechanism: str) -> None:
    more = {"local_epsilon": 2} if mechanism == "hybrid" else {}
    solution = solve(MetricShuffle(mechanism, 25, 13, "1e-3", "0.7", **more))  # type: ignore[arg-type]
    protocol = solution.protocol()
    messages = protocol.randomize(np.arange(25) % 14, Source(5))
    packed = protocol.bits(messages)
    length = solution.bits_per_user
    assert packed.dtype == np.uint8
    assert packed.shape == (25, -(-length // 8))
    rows = np.unpackbits(packed, axis=1)
    assert not rows[:, length:].any()
    for row, ones in zip(rows, messages, strict=True):
        assert row.tolist() == [1] * ones + [0] * (len(row) - ones)  # unary, of one length for everybody
    released = protocol.shuffle(messages)
    assert protocol.shuffle(packed) == released
    assert released.bits == 25 * length
    shuffled = np.random.default_rng(3).permutation(rows[:, :length].ravel()).reshape(25, length)
    assert protocol.shuffle(np.packbits(shuffled, axis=1)) == released  # all people's bits, in any order
    again = np.unpackbits(released.packed())
    assert again.sum() == released.ones[0] == messages.sum()
    assert len(again) == -(-released.bits // 8) * 8
    assert protocol.analyze(protocol.shuffle(packed)) == protocol.analyze(released)
    order = np.random.default_rng(4).permutation(25)
    assert protocol.shuffle(messages[order]) == released


def test_messages_stay_within_their_length() -> None:
    """Clamping is at 0 and k+2c, and nowhere else: without noise to speak of, messages are c plus the value."""
    design = noisy("geo", 5000, "1", "0.05", 2, 9)
    messages = MetricProtocol(design).randomize(np.repeat([0, 9], 2500), Source(6))
    assert messages.min() == 0
    assert messages.max() == 9 + 2 * 2
    assert MetricProtocol(design).bits(messages).shape == (5000, 2)
    quiet = noisy("geo", 10, "1", "60", 2, 9)
    assert MetricProtocol(quiet).randomize(np.arange(10), Source(6)).tolist() == list(range(2, 12))
    coarse = noisy("geo", 10, "1", "60", 2, 10, 5)
    assert MetricProtocol(coarse).randomize([0, 5, 10] * 3 + [5], Source(6)).tolist() == [2, 3, 4] * 3 + [3]


def test_rounding_to_quanta_is_unbiased() -> None:
    """Without noise to speak of: the mean is kept, the variance is that of one event, and rounded is never far."""
    runs, quantum = 40_000, 7
    for value in (0, 1, 3, 6, 7, 25, 30):
        design = noisy("geo", runs, "1", "60", 0, 30, quantum)
        protocol = MetricProtocol(design)
        sent = protocol.randomize(np.full(runs, value), Source(value)) * quantum
        assert np.abs(sent - value).max() < quantum
        part = value % quantum / quantum
        deviation = quantum * math.sqrt(part * (1.0 - part))
        assert abs(sent.mean() - value) <= 4.0 * deviation / math.sqrt(runs)
        assert sent.std() == pytest.approx(deviation, rel=0.03)
        assert protocol.analyze(protocol.shuffle(sent // quantum)).sums[0] == sent.sum()


def test_averages() -> None:
    solution = solve(MetricShuffle("geo", 200, 50, "1e-4", "0.3", query="average"))
    whole = solve(MetricShuffle("geo", 200, 50, "1e-4", "0.3"))
    assert solution.design == whole.design
    assert solution.mae == pytest.approx(whole.mae / 200)
    assert solution.rmse == pytest.approx(whole.rmse / 200)
    protocol = solution.protocol()
    estimate = protocol.analyze(protocol.shuffle(protocol.randomize(np.full(200, 20), Source(8))))
    found = estimate.summary()
    assert found["average"] == found["sum"] / 200
    assert found["average_mae"] == pytest.approx(solution.mae)
    assert abs(found["average"] - 20) < 6 * solution.rmse


@pytest.mark.parametrize("mechanism", ["rr", "geo", "sgdl", "geo-local", "geo-central"])
def test_two_dimensions(mechanism: str) -> None:
    """Each coordinate is summed with noise of its own, independent of the other's."""
    n, runs = 20, 300
    solution = solve(MetricShuffle(mechanism, n, 12, "1e-3", "0.8", 2, dimensions=2))
    protocol, source = solution.protocol(), Source(9)
    assert protocol.columns == 2
    values = np.random.default_rng(5).integers(0, 13, (n, 2))
    sums = np.array([protocol.analyze(protocol.shuffle(protocol.randomize(values, source))).sums for _ in range(runs)])
    errors = sums - values.sum(axis=0)
    assert errors.shape == (runs, 2)
    assert (np.abs(errors.mean(axis=0)) < 4.0 * solution.rmse / math.sqrt(2.0 * runs)).all()
    lengths = np.hypot(*errors.T)
    assert abs(lengths.mean() - solution.mae) < 4.0 * lengths.std() / math.sqrt(runs)
    assert abs(math.sqrt((lengths**2).mean()) / solution.rmse - 1.0) < 0.25
    assert abs(np.corrcoef(errors.T)[0, 1]) < 4.0 / math.sqrt(runs)
    estimate = protocol.analyze(protocol.shuffle(protocol.randomize(values, source)))
    summary = estimate.summary()
    assert len(summary["sum"]) == len(summary["average"]) == 2
    read = protocol.read([[str(x) for x in column] for column in values.T], ["x", "y"], clip=False)
    assert (read == values).all()
    assert np.mean(lengths <= estimate.within_95) > 0.95 - 4.0 * math.sqrt(0.05 * 0.95 / runs)


def test_seeds_repeat_and_secure_draws_do_not() -> None:
    protocol = MetricProtocol(DESIGNS["geo"])
    draws: list[Callable[[], list[int]]] = [
        lambda: protocol.randomize(VALUES, Source(1)).tolist(),
        lambda: protocol.randomize(VALUES * 1, Source(2)).tolist(),
    ]
    assert draws[0]() == draws[0]()
    assert draws[0]() != draws[1]()
    crowd = MetricProtocol(replace(DESIGNS["geo"], n=600))
    secure = [crowd.randomize(VALUES * 100, Source()).tolist() for _ in range(2)]
    assert secure[0] != secure[1]


def test_a_million_people_in_two_gigabytes() -> None:
    """n = 1e6, k = 100, from solving to the estimate, in a process of its own; also as packed bits."""
    script = (
        "import json, resource\n"
        "import numpy as np\n"
        "from optdp import MetricShuffle, solve\n"
        "from optdp.numbers.source import Source\n"
        "solution = solve(MetricShuffle('sgdl', 10**6, 100, '1e-6', '0.1'))\n"
        "values = np.random.default_rng(1).integers(0, 101, 10**6)\n"
        "protocol = solution.protocol()\n"
        "messages = protocol.randomize(values, Source(1))\n"
        "released = protocol.shuffle(messages)\n"
        "same = protocol.shuffle(protocol.bits(messages)) == released\n"
        "error = protocol.analyze(released).sums[0] - int(values.sum())\n"
        "memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "print(json.dumps([same, error, solution.mae, memory]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    same, error, mae, memory = json.loads(done.stdout)
    assert same
    assert abs(error) < 12 * mae
    assert memory < 2 * 1024**3


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, 2, 3], "n = 6 people. Found 3 rows"),
        ([], "n = 6|whole numbers"),
        ([1] * 7, "Found 7 rows"),
        (3, "Found 0 rows"),
        ([[1, 2]] * 6, "shape"),
        ([1.0] * 6, "whole numbers. Found float64"),
        ([1, 2, 3, 4, 5, math.nan], "whole numbers"),
        ([True] * 6, "whole numbers. Found True or False"),
        ([1, 2, 3, 4, 5, True], "whole numbers. Found True or False"),
        (["1"] * 6, "whole numbers"),
        ([None] * 6, "whole numbers"),
        ([0, 1, 2, 3, -1, 8], "between 0 and 7. Found 2 outside, the first for person 4"),
        ([2**70] * 6, "whole numbers"),
        (np.array([2**63 + 5] * 6, dtype=np.uint64), "between 0 and 7"),
    ],
)
@pytest.mark.parametrize("name", ["rr", "geo", "sgdl", "geo-local"])
def test_values_that_are_none_are_refused(values: Any, words: str, name: str) -> None:
    with pytest.raises(ProblemError, match=words):
        MetricProtocol(DESIGNS[name]).randomize(values, Source(1))


def test_whole_numbers_of_any_width_are_read() -> None:
    protocol = MetricProtocol(DESIGNS["geo"])
    expected = protocol.randomize(VALUES, Source(1)).tolist()
    for kind in (np.int8, np.uint8, np.int32, np.uint64):
        assert protocol.randomize(np.array(VALUES, dtype=kind), Source(1)).tolist() == expected


@pytest.mark.parametrize(
    "messages",
    [[1] * 5, [1] * 7, [1.5] * 6, [-1] + [1] * 5, [48] + [1] * 5, ["a"] * 6, [math.nan] * 6, [[1, 1]] * 6],
    ids=["few", "many", "reals", "negative", "long", "text", "nan", "shape"],
)
def test_messages_that_nobody_sends_are_refused(messages: Any) -> None:
    """The shuffler hands on what n people sent, each a whole number from 0 to k+2c (47 here): nothing else."""
    with pytest.raises(ProblemError):
        MetricProtocol(DESIGNS["geo"]).shuffle(np.array(messages))


def test_counts_of_a_narrow_type_are_no_bits() -> None:
    """Messages that fit into bytes are still counts: a vector of n numbers has not the shape of packed bits."""
    protocol = MetricProtocol(DESIGNS["geo"])
    messages = protocol.randomize(VALUES, Source(1))
    try:
        found = protocol.shuffle(messages.astype(np.uint8))
    except ProblemError:
        return
    assert found == protocol.shuffle(messages)


@pytest.mark.parametrize("mechanism", ["geo-local", "geo-central"])
def test_what_is_not_sent_in_unary_has_no_bits(mechanism: str) -> None:
    protocol = MetricProtocol(noisy(mechanism, 6, "1", "0.4", None, 7))
    with pytest.raises(ProblemError):
        protocol.bits(protocol.randomize(VALUES, Source(1)))
