"""Solvers run aside: a signal or the deadline ends the wait for them, whether they listen or not."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import sparse

import optdp.programs.aside as module
import optdp.work as work
from optdp.programs.aside import aside
from optdp.programs.highs import DEAF, LATE, model_of, new_highs, run
from optdp.programs.program import LinearProgram, verbose
from optdp.work import Stopped


@pytest.fixture
def told() -> Iterator[threading.Event]:
    """An event that is set once this process has been sent a SIGINT, a moment from now."""
    sent = threading.Event()

    def send() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        sent.set()

    timer = threading.Timer(0.3, send)
    with work.signals():
        timer.start()
        yield sent
    timer.join()


def test_what_it_returns_and_raises() -> None:
    assert aside(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        aside(lambda: 1 / 0)


def test_it_runs_in_the_context_of_the_caller() -> None:
    token = verbose.set(True)
    try:
        assert aside(verbose.get) is True
    finally:
        verbose.reset(token)


def test_a_solver_that_listens_is_told_and_waited_for(told: threading.Event) -> None:
    cancelled, ended = threading.Event(), threading.Event()

    def call() -> None:
        cancelled.wait()
        ended.set()

    with pytest.raises(Stopped):
        aside(call, cancelled.set)
    assert told.wait(10)
    assert ended.is_set()


def test_a_solver_that_does_not_listen_is_left_to_itself(
    told: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE", 0.05)
    never = threading.Event()
    with pytest.raises(Stopped):
        aside(never.wait)
    assert told.wait(10)
    never.set()


def test_the_deadline_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE", 0.05)
    never = threading.Event()
    with pytest.raises(Stopped), work.deadline(0.3):
        aside(never.wait)
    never.set()


@pytest.mark.parametrize("solver", DEAF)
def test_methods_that_ask_nobody_are_given_the_deadline_beforehand(solver: str) -> None:
    highs = new_highs(solver=solver)
    program = LinearProgram(np.ones(2), sparse.csr_array(np.ones((1, 2))), np.ones(1), np.ones(1))
    highs.passModel(model_of(program))
    with work.deadline(50):
        run(highs)
    assert highs.getOptionValue("time_limit")[1] <= 50 + LATE
    assert highs.getInfo().objective_function_value == pytest.approx(1.0, abs=1e-3)
