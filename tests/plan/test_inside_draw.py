"""Drawing inside a secure computation: the release has exactly the table's law, and nothing else is opened or seen."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import random
import secrets
import subprocess
import sys
from collections import Counter
from functools import reduce
from operator import xor
from pathlib import Path

import pytest
from scipy import stats

from optdp import MultiLTE, Population, ProblemError, open_artifact, solve
from optdp.mechanism.matrix import NoiseMatrix, Row
from optdp.plan.aggregate import join
from optdp.plan.inside_draw import PRIME, SearchTable, draw, traffic
from optdp.plan.meeting.keys import read_key
from optdp.plan.meeting.roster import read_roster
from tests.loopback import made_keys, write_places

if not importlib.util.find_spec("mpyc"):  # not imported here: MPyC would read the command line of pytest
    pytest.skip("drawing inside needs MPyC, which is not installed", allow_module_level=True)

from tests.plan.simulated import Simulated, numbers, simulated

ROOT = Path(__file__).resolve().parents[2]


def some_table(rng: random.Random, last: int, bits: int, low: int = 0, most: int | None = None) -> NoiseMatrix:
    """Rows of all lengths, with outputs that skip some."""
    rows: list[Row] = []
    for _ in range(last + 1):
        length = rng.randint(1, min(most or last + 1, last + 1, 2**bits))
        cuts = set[int]()
        while len(cuts) < length - 1:
            cuts.add(rng.randrange(1, 2**bits))
        edges = [0, *sorted(cuts), 2**bits]
        outputs = sorted(rng.sample(range(low, low + last + 1), length))
        rows.append(tuple((s, b - a) for s, a, b in zip(outputs, edges, edges[1:], strict=False)))
    return NoiseMatrix((0, last), (low, low + last), 2**bits, tuple(rows), None, "error", last)


def looked_up(table: NoiseMatrix, total: int, word: int) -> int:
    """The output that a word stands for: weights are counted off one by one."""
    for s, weight in table.row(total) or ():
        if word < weight:
            return s
        word -= weight
    raise AssertionError


async def released(
    parties: Simulated, search: SearchTable, sizes: list[int], inputs: list[int], words: list[int] | None
) -> int:
    found = await parties.run(
        lambda rt: draw(rt, search, sizes, inputs[rt.pid], None if words is None else words[rt.pid])
    )
    assert len(set(found)) == 1
    return found[0]


@pytest.mark.parametrize(("sizes", "bits"), [([1, 1, 1], 4), ([2, 0, 1], 3), ([0, 0, 0], 2)])
def test_every_word_of_every_total(sizes: list[int], bits: int) -> None:
    """All words of a small denominator, one by one: each output as often as its weight says, for every input."""
    table = some_table(random.Random(repr(sizes)), sum(sizes), bits)

    async def check() -> None:
        parties, search = simulated(3), SearchTable(table)
        for total in range(sum(sizes) + 1):
            inputs, left = [], total
            for size in sizes:
                inputs.append(min(size, left))
                left -= inputs[-1]
            counts: Counter[int] = Counter()
            for word in range(2**bits):
                masks = [secrets.randbits(bits) for _ in range(2)]
                counts[await released(parties, search, sizes, inputs, [*masks, reduce(xor, masks, word)])] += 1
            assert counts == dict(table.rows[total])

    asyncio.run(check())


@pytest.mark.parametrize(
    ("m", "sizes", "bits"),
    [(3, [2, 3, 2], 62), (3, [20, 1, 9], 128), (4, [1, 2, 3, 1], 9), (5, [2, 1, 0, 2, 4], 62), (7, [1] * 7, 33)],
)
def test_more_parties_and_longer_words(m: int, sizes: list[int], bits: int) -> None:
    rng = random.Random(m * bits)
    table = some_table(rng, sum(sizes), bits, low=-3)

    async def check() -> None:
        parties, search = simulated(m), SearchTable(table)
        for _ in range(8):
            inputs, words = [rng.randint(0, size) for size in sizes], [rng.getrandbits(bits) for _ in sizes]
            cuts = [0]
            for _, weight in table.rows[sum(inputs)]:
                cuts.append(cuts[-1] + weight)
            word = (rng.choice(cuts) + rng.choice([-1, 0, 1])) % 2**bits  # where a comparison is decided by one bit
            words[0] = reduce(xor, words[1:], word)
            assert await released(parties, search, sizes, inputs, words) == looked_up(table, sum(inputs), word)

    asyncio.run(check())


def test_totals_without_a_row_are_served_by_the_nearest() -> None:
    rng = random.Random(5)
    whole = some_table(rng, 2, 5)
    table = NoiseMatrix((3, 5), whole.outputs, whole.denominator, whole.rows, None, "clamp", 9)

    async def check() -> None:
        parties, search = simulated(3), SearchTable(table)
        for total in range(10):
            word, inputs = rng.randrange(32), [total // 3, (total + 1) // 3, (total + 2) // 3]
            found = await released(parties, search, [3, 3, 3], inputs, [word, 0, 0])
            assert found == looked_up(table, total, word)

    asyncio.run(check())


def test_fresh_words_follow_the_table() -> None:
    """The law of releases with the parties' own random bits, by a chi-square test."""
    table, runs = some_table(random.Random(1), 3, 3), 160

    async def check() -> Counter[int]:
        parties, search = simulated(3), SearchTable(table)
        return Counter([await released(parties, search, [1, 1, 1], [1, 0, 1], None) for _ in range(runs)])

    counts, row = asyncio.run(check()), table.rows[2]
    assert counts.keys() <= {s for s, _ in row}
    expected = [runs * weight / table.denominator for _, weight in row]
    assert stats.chisquare([counts[s] for s, _ in row], expected).pvalue > 1e-6


def test_only_the_release_is_opened_and_shares_look_random() -> None:
    """Each party opens one number, once. All that a party is sent before that is spread evenly, also where the secrets
    are bits; and it says nothing about the inputs to a party that holds no other share."""
    table, seen = some_table(random.Random(3), 12, 20, most=6), list[int]()

    async def check() -> None:
        search = SearchTable(table)
        for inputs in ([4, 0, 0], [0, 4, 4]):
            for _ in range(4):
                parties = simulated(3)
                await released(parties, search, [4, 4, 4], inputs, None)
                assert [len(opened) for opened in parties.opened] == [1, 1, 1]
                assert all(not isinstance(opened[0], list) for opened in parties.opened)
                for (_, to), wire in parties.wires.items():
                    values = numbers(wire.written)
                    assert max(values) < PRIME
                    assert len(b"".join(wire.written)) <= traffic(search, [4, 4, 4])
                    seen.extend(values[:-1] if to == 1 else ())  # the last may be the share of the release

    asyncio.run(check())
    counts = Counter(value * 32 // PRIME for value in seen)
    assert stats.chisquare([counts[k] for k in range(32)]).pvalue > 1e-6
    assert sum(value < 1000 for value in seen) < 10  # unshared bits or counts would be here


def test_inputs_out_of_range_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    plan = solve(MultiLTE([Population.binomial(2, "0.5")] * 3, 1, method="inside"))
    plan.save(tmp_path / "plan")
    member = open_artifact(tmp_path / "plan" / "party-1.json").verified
    keys = made_keys(tmp_path, 3)
    places = read_roster(write_places(tmp_path / "parties.toml", keys))
    for value in (-1, 3):
        with pytest.raises(ProblemError, match=r"--input must lie in 0\.\.2\. Found another"):
            join(member, value, run="1", places=places, key=keys[1])

    async def check() -> None:
        parties = simulated(3)
        with pytest.raises(ValueError, match="out of its range"):
            await draw(parties.runtimes[0], SearchTable(plan.tables[0]), [2, 2, 2], 3)
        assert not any(wire.written for wire in parties.wires.values())

    asyncio.run(check())


def run_processes(home: Path, inputs: list[int], timeout: int = 200, run: str = "1") -> list[int]:
    """The releases that real processes print, of the plan in a folder with their keys."""
    keys = [read_key(home / f"party-{i}.pem") for i in range(len(inputs))]
    places = str(write_places(home / "parties.toml", keys))
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "optdp", "aggregate", str(home / "plan"), "--party", str(i), "--input", str(x),
             "--key", str(home / f"party-{i}.pem"), "--run", run, "--parties", places, "--timeout", str(timeout),
             "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True,
        )
        for i, x in enumerate(inputs)
    ]  # fmt: skip
    found = []
    for process in started:
        out, err = process.communicate(timeout=timeout + 50)
        assert process.returncode == 0, err
        found.append(json.loads(out)["aggregate"])
    return found


def test_real_processes(tmp_path: Path) -> None:
    """Three processes with certain people: the release is then the total itself."""
    plan = solve(MultiLTE([Population.binomial(6, "0.5")] * 3, 60, method="inside"))
    assert all(max(weight for _, weight in row) > 0.999 * plan.tables[0].denominator for row in plan.tables[0].rows)
    plan.save(tmp_path / "plan")
    made_keys(tmp_path, 3)
    assert run_processes(tmp_path, [1, 6, 3]) == [10, 10, 10]
    assert run_processes(tmp_path, [0, 0, 0]) == [10, 10, 10]  # the same run is not drawn again


@pytest.mark.slow
def test_a_thousand_people_and_full_rows(tmp_path: Path) -> None:
    """A table of 1,001 rows with up to 1,001 outputs each, in process, and a solved one among three processes."""
    rng = random.Random(7)
    table, sizes = some_table(rng, 1000, 62), [333, 333, 334]

    async def check() -> None:
        parties, search = simulated(3), SearchTable(table)
        for _ in range(2):
            inputs, words = [rng.randint(0, size) for size in sizes], [rng.getrandbits(62) for _ in sizes]
            found = await released(parties, search, sizes, inputs, words)
            assert found == looked_up(table, sum(inputs), reduce(xor, words))
            sent = max(sum(map(len, wire.written)) for wire in parties.wires.values())
        assert sent <= 2 * traffic(search, sizes)

    asyncio.run(check())
    plan = solve(MultiLTE([Population.binomial(size, "0.5") for size in sizes], "0.1", method="inside"))
    plan.save(tmp_path / "plan")
    made_keys(tmp_path, 3)
    (release,) = set(run_processes(tmp_path, [170, 160, 170]))
    assert abs(release - 500) < 100
