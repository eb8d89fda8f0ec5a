"""Audits of clients of shuffle protocols: optdp's own, exported ones, and clients that are at fault."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optdp import MetricShuffle, RealSum, ShuffleHistogram, solve
from optdp.artifact import OpenedShuffle, open_artifact
from optdp.audit import NOT_REFUTED, OTHER_LAW, REFUTED, audit
from optdp.audit.clients import Client, client_command, client_trial, text_of
from optdp.audit.external import Command
from optdp.errors import ProblemError
from optdp.export import export
from optdp.numbers.source import Source
from tests.command_line import in_process

PROBLEMS: dict[str, Any] = {
    "geo": MetricShuffle("geo", n=30, k=4, delta="1e-3", eps_geo="0.9", c=6),
    "coarse": MetricShuffle("hybrid", n=30, k=30, delta="1e-3", eps_geo="0.5", beta="0.2", c=9, quantum=7),
    "rr": MetricShuffle("rr", n=30, k=5, delta="1e-2", p="0.3"),
    "plane": MetricShuffle("sgdl", n=30, k=4, delta="1e-3", eps_geo="0.5", c=9, dimensions=2),
    "histogram": ShuffleHistogram(labels=["by car", "bus", "it's far"], n=30, eps0=2, delta="0.1"),
    "sum": RealSum(n=30, k=3, gamma="0.4", delta="0.1", low="-1", high="5"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("audited")
    for name, problem in PROBLEMS.items():
        solve(problem).save(made / f"{name}.json")
    return made


@pytest.mark.parametrize("name", PROBLEMS)
def test_optdps_own_client_passes(name: str, folder: Path) -> None:
    """And its laws are those of the integers: each sums to one, and has the mean of the messages that are drawn."""
    opened = open_artifact(folder / f"{name}.json", OpenedShuffle)
    found = audit(opened, samples=4_000, seed=3)
    assert found.verdict == NOT_REFUTED
    assert found.epsilon_proved > 0.3
    trial, own = client_trial(opened.deployed), Client(opened.deployed, Source(5))
    places = np.arange(len(trial.arms[0].law)) - 1
    for arm in trial.arms:
        assert arm.law.sum() == pytest.approx(1, abs=1e-12)
        sent = own(arm.inputs(Source(1), 4_000))
        mean = float(arm.law @ places)
        deviation = float(np.sqrt(arm.law @ (places - mean) ** 2))
        assert abs(sent.mean() - mean) < 5.5 * deviation / np.sqrt(len(sent))


@pytest.mark.parametrize(("name", "verdict"), [("geo", REFUTED), ("rr", OTHER_LAW), ("histogram", REFUTED)])
def test_less_noise_is_found(name: str, verdict: str, folder: Path) -> None:
    """A third of the messages are the truth: more is given away than claimed, or the law is another."""
    opened = open_artifact(folder / f"{name}.json", OpenedShuffle)
    own, padding = Client(opened.deployed, Source(5)), 6 if name == "geo" else 0

    def weaker(inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        sent = own(inputs)
        sent[::3] = inputs[::3] + padding
        return sent

    found = audit(opened, samples=20_000, sampler=weaker, seed=4)
    assert found.failed
    assert found.verdict in (verdict, REFUTED)


@pytest.mark.parametrize("name", ["plane", "sum", "histogram"])
def test_an_exported_client_passes(name: str, folder: Path, tmp_path: Path) -> None:
    export(folder / f"{name}.json", "python", tmp_path / "client")
    command = f"{sys.executable} {tmp_path / 'client' / 'client.py'} {{input}} {{count}}"
    done = in_process("-q", "audit", folder / f"{name}.json", "--samples", 500, "--command", command)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "not refuted" in done.stdout


def test_values_as_people_give_them(folder: Path) -> None:
    for name, x, text in (("plane", 3, "3,3"), ("histogram", 2, "it's far"), ("sum", 3 << 31, "2.0"), ("geo", 4, "4")):
        assert text_of(open_artifact(folder / f"{name}.json", OpenedShuffle).deployed, x) == text


@pytest.mark.parametrize("printed", [
    '{"design": "0123456789abcdef", "message": 1}', '{"design": "NAME", "message": 1.0}', "7", "",
    '{"design": "NAME", "message": [1]}', '{"design": "NAME", "message": true}', '{"design": "NAME", "message": -1}',
])  # fmt: skip
def test_a_client_that_sends_no_messages(printed: str, folder: Path) -> None:
    design = open_artifact(folder / "geo.json", OpenedShuffle).deployed
    text = printed.replace("NAME", design.name)
    command = client_command(Command((sys.executable, "-c", f"print({text!r})", "{input}", "{count}")), design)
    with pytest.raises(ProblemError, match="--command must print"):
        command(np.array([2]))
    fine = f'{{"design": "{design.name}", "message": 7}}'
    command = client_command(Command((sys.executable, "-c", f"print({fine!r})", "{input}", "{count}")), design)
    assert command(np.array([2])).tolist() == [7]
    with pytest.raises(ProblemError, match="both"):
        client_command(Command(("client",)), design)
