"""Clients of shuffle protocols in Python, C and JavaScript: the same words give the same messages as in optdp."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optdp import MetricShuffle, RealSum, ShuffleHistogram, solve
from optdp.errors import ProblemError
from optdp.export import export
from optdp.numbers.source import Source
from optdp.shuffle.analysis import fine, messages_of
from optdp.shuffle.format import Deployed, read_design
from tests.command_line import in_process

PROBLEMS: dict[str, Any] = {
    "geo": MetricShuffle("geo", n=30, k=20, delta="1e-3", eps_geo="0.9", c=8),
    "hybrid": MetricShuffle("hybrid", n=30, k=300, delta="1e-3", eps_geo="0.5", beta="0.1", c=9, quantum=7),
    "unit": MetricShuffle("geo", n=30, k=300, delta="1e-3", eps_geo="0.9", c=8, max_distance=10, unit=10),
    "rr": MetricShuffle("rr", n=30, k=5, delta="1e-2", p="0.3"),
    "plane": MetricShuffle("sgdl", n=30, k=4, delta="1e-3", eps_geo="0.5", c=9, dimensions=2),
    "histogram": ShuffleHistogram(labels=["car", "bus", 'à "pied" \\ */'], n=30, eps0=3, delta="0.1"),
    "sum": RealSum(n=30, k=11, gamma="0.25", delta="0.1", low="-1.1", high="30"),
}
COMPILER = shutil.which("cc") or shutil.which("gcc")
NODE = shutil.which("node")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("clients")
    for name, problem in PROBLEMS.items():
        solve(problem).save(made / f"{name}.json")
        for target in ("python", "js", "c"):
            export(made / f"{name}.json", target, made / f"{name}-{target}")
    return made


def loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("client", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def told(design: Deployed, count: int = 300) -> tuple[list[Any], list[Any], list[Any]]:
    """Values, words and messages; some words are the smallest, the largest, and near cuts."""
    client, chance = design.client, np.random.default_rng(5)
    values = chance.integers(0, client.inputs // design.unit + 1, (count, client.dimensions)) * design.unit
    words = (Source(9).words(count * client.words * client.dimensions) >> np.uint64(2)).reshape(count, -1)
    words[:20][words[:20] % 3 == 0] = 0
    words[20:60][words[20:60] % 2 == 0] = (1 << 62) - 1
    words[60:90, -2] = words[60, -2]
    sent = messages_of(design, values, words)
    return values.tolist(), words.tolist(), sent.tolist()


@pytest.mark.parametrize("name", PROBLEMS)
def test_python_makes_the_messages_of_optdp(name: str, folder: Path) -> None:
    design, module = read_design(folder / f"{name}.json"), loaded(folder / f"{name}-python" / "client.py")
    module.self_test()
    values, words, sent = told(design)
    assert [module.message(*row) for row in zip(values, words, strict=True)] == sent
    assert len(set(map(str, sent))) > 2
    value = {"plane": [1, 4], "histogram": "bus", "sum": 29.99, "unit": 30}.get(name, 3)
    assert json.loads(module.line(value))["design"] == design.name
    for wrong in (-2, 1000, "x", "1", True, None, [1, 2, 3], {0: 1, 1: 2}, float("nan"), 35 if name == "unit" else -2):
        with pytest.raises(ValueError, match="the value must be"):
            module.randomize(wrong)


def test_real_numbers_are_read_alike(folder: Path) -> None:
    module = loaded(folder / "sum-python" / "client.py")
    numbers = [*np.random.default_rng(2).uniform(-1.1, 30, 2000), -1.1, 30.0, 0.0]
    assert [module._fine(float(number)) for number in numbers] == fine(numbers, -1.1, 30.0, module.INPUTS).tolist()


@pytest.mark.skipif(NODE is None, reason="there is no node here")
def test_javascript_makes_the_messages_of_optdp(folder: Path, tmp_path: Path) -> None:
    """All designs in one process; real numbers too."""
    cases = []
    for name in PROBLEMS:
        values, words, sent = told(read_design(folder / f"{name}.json"))
        cases.append([str(folder / f"{name}-js" / "client.mjs"), values, [list(map(str, row)) for row in words], sent])
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "drive.mjs").write_text(
        'import { readFileSync } from "node:fs";\n'
        "for (const [path, values, words, sent] of JSON.parse(readFileSync(process.argv[2]))) {\n"
        "  const client = await import(path);\n  client.selfTest();\n"
        "  values.forEach((value, i) => {\n"
        "    const found = client.message(value, words[i].map(BigInt));\n"
        "    if (String(found) !== String(sent[i])) throw new Error(`${path} ${i}: ${found}`);\n  });\n"
        '  for (const wrong of [-2, 1000, "x", "1", true, null, [1, 2, 3], [, 0], NaN]) {\n'
        "    let refused = false;\n    try { client.randomize(wrong); } catch { refused = true; }\n"
        "    if (!refused) throw new Error(`${path} takes ${wrong}`);\n  }\n}\n"
        'console.log("same");\n'
    )
    done = subprocess.run(
        [str(NODE), tmp_path / "drive.mjs", tmp_path / "cases.json"], capture_output=True, text=True, check=False
    )
    assert done.stdout == "same\n", done.stderr


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler here")
@pytest.mark.parametrize("name", PROBLEMS)
def test_c_makes_the_messages_of_optdp(name: str, folder: Path, tmp_path: Path) -> None:
    design, source = read_design(folder / f"{name}.json"), folder / f"{name}-c"
    values, words, sent = told(design)
    rows = [[*value, *word, *np.atleast_1d(message)] for value, word, message in zip(values, words, sent, strict=True)]
    listed = ",".join("{" + ",".join(f"{int(number)}u" for number in row) + "}" for row in rows)
    (tmp_path / "drive.c").write_text(
        '#include "client.h"\n#include <stdio.h>\n'
        f"static const uint64_t ROWS[{len(rows)}][2 * CLIENT_DIMENSIONS + CLIENT_WORDS] = {{{listed}}};\n"
        "int main(void) {\n  if (client_self_test()) return 1;\n"
        f"  for (int i = 0; i < {len(rows)}; i++) {{\n    int64_t value[CLIENT_DIMENSIONS], sent[CLIENT_DIMENSIONS];\n"
        "    for (int j = 0; j < CLIENT_DIMENSIONS; j++) value[j] = (int64_t)ROWS[i][j];\n"
        "    if (client_message(value, ROWS[i] + CLIENT_DIMENSIONS, sent)) return 2;\n"
        "    for (int j = 0; j < CLIENT_DIMENSIONS; j++)\n"
        "      if (sent[j] != (int64_t)ROWS[i][CLIENT_DIMENSIONS + CLIENT_WORDS + j]) return 3;\n  }\n"
        "  return 0;\n}\n"
    )
    strict = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined,address"]
    program = tmp_path / "drive"
    made = [str(COMPILER), *strict, "-I", source, "-o", program, tmp_path / "drive.c", source / "client.c"]
    done = subprocess.run(made, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([program], check=False).returncode == 0


def test_a_changed_table_is_noticed(folder: Path, tmp_path: Path) -> None:
    text = (folder / "geo-python" / "client.py").read_text()
    start = text.index("LOW = (") + 20
    place = next(i for i in range(start, len(text)) if text[i].isdigit())
    (tmp_path / "client.py").write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :])
    with pytest.raises(RuntimeError, match="changed"):
        loaded(tmp_path / "client.py").self_test()


def test_the_command(folder: Path, tmp_path: Path) -> None:
    done = in_process("-q", "export", folder / "geo.json", "--to", "python", "--out", tmp_path / "client")
    assert done.returncode == 0, done.stderr
    assert "client.py --self-test" in done.stdout
    lines = subprocess.run(
        [sys.executable, tmp_path / "client" / "client.py", "7", "3"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [json.loads(line)["design"] for line in lines] == [read_design(folder / "geo.json").name] * 3
    refused = in_process("-q", "export", folder / "geo.json", "--to", "csv", "--out", tmp_path / "table")
    assert (refused.returncode, "as a client" in refused.stderr) == (2, True)
    with pytest.raises(ProblemError, match="as a client"):
        export(folder / "sum.json", "sql", tmp_path / "sql")
