"""Public names are documented: what goes in, what comes out, and an example that runs."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import pytest

import optdp

PUBLIC = {name: getattr(optdp, name) for name in optdp.__all__}
ERRORS = {name for name, thing in PUBLIC.items() if inspect.isclass(thing) and issubclass(thing, Exception)}
DOCUMENTED = sorted(set(PUBLIC) - ERRORS)


def parameters(thing: Any) -> list[str]:
    return [name for name in inspect.signature(thing).parameters if name != "self"]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_is_explained(name: str) -> None:
    thing = PUBLIC[name]
    text = inspect.getdoc(thing) or ""
    assert "Examples\n--------\n>>> " in text
    if parameters(thing):
        _, heading, rest = text.partition("Parameters\n----------\n")
        assert heading, "no section Parameters"
        listed = [line.split(" :")[0] for line in rest.partition("\n\n")[0].splitlines() if not line.startswith(" ")]
        assert set(parameters(thing)) - {one for line in listed for one in line.split(", ")} == set()
    if inspect.isfunction(thing):
        assert "Returns\n-------\n" in text


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_run(name: str) -> None:
    found = doctest.DocTestFinder().find(PUBLIC[name], name, globs={"optdp": optdp, "Population": optdp.Population})
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    for test in found:
        runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).attempted > 0
    assert said == [], "".join(said)
