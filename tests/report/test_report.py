"""The page as a file: whole, inert, the same every time, and never written over what it is about."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from optdp import ArtifactError, CertificateError, Groups, MultiLTE, OrderShuffle, Population, SingleLTE, solve, verify
from optdp.html import Html, clean, el
from optdp.report.page import embedded
from optdp.report.report import report
from optdp.single.format import read, write
from tests.command_line import Done
from tests.report.conftest import EVERY, HOSTILE
from tests.report.reading import parsed
from tests.shared import shared_solution

SINGLE = ("claim", "assumptions", "matrix", "error", "quotient", "others", "deploy")


@pytest.fixture
def optdp(command: Callable[..., Done]) -> Callable[..., Done]:
    return command


@pytest.mark.parametrize("name", EVERY)
def test_a_page_is_whole_and_loads_nothing(name: str, pages: dict[str, bytes]) -> None:
    page, text = parsed(pages[name]), pages[name].decode()
    assert text.startswith("<!DOCTYPE html>")
    assert len(text) < 1_000_000
    assert "http://" not in text
    assert "https://" not in text
    assert "@import" not in text
    assert "url(" not in text.replace("url(#", "")
    for element in page.all():
        assert "style" not in element.attributes
        assert not any(key.startswith("on") for key in element.attributes)
        assert "src" not in element.attributes
        assert (element.attributes.get("href") or "#")[:1] == "#" or element.attributes["href"] == "data:,"
    names = [element.attributes["id"] for element in page.all() if element.attributes.get("id")]
    assert len(names) == len(set(names))
    assert {"heatmap", "claim", "prior", "deploy", "tooltip"} <= set(names)


@pytest.mark.parametrize("name", EVERY)
def test_the_policy_admits_the_one_style_and_the_one_script(name: str, pages: dict[str, bytes]) -> None:
    page = parsed(pages[name])
    (policy,) = [e.attributes["content"] for e in page.all("meta") if "http-equiv" in e.attributes]
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    data, script = page.all("script")
    assert data.attributes["type"] == "application/json"
    (style,) = page.all("style")
    for element, kind in ((script, "script-src"), (style, "style-src")):
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_what_an_artifact_says_stays_text(pages: dict[str, bytes], places: dict[str, Path]) -> None:
    page = parsed(pages["hostile"])
    assert len(page.all("script")) == 2
    assert page.all("img") == []
    (heading,) = page.all("h1")
    assert heading.text == clean(HOSTILE)
    assert page.all("title")[0].text.startswith(clean(HOSTILE))
    named = parsed(report(places["sick-leave"], title=HOSTILE))
    assert named.all("h1")[0].text == clean(HOSTILE)
    assert len(named.all("script")) == 2


def test_markup_escapes_whatever_is_not_markup() -> None:
    assert el("p", "<b>", el("i", "&"), title='"<') == '<p title="&quot;&lt;">&lt;b&gt;<i>&amp;</i></p>'
    assert el("p", [Html("<b></b>"), None, "\ud800"]) == "<p><b></b>\N{REPLACEMENT CHARACTER}</p>"
    assert "<" not in embedded({"</script>": "<!--&"})


@pytest.mark.parametrize("name", ["sick-leave", "several", "two-by-two", "large"])
def test_a_page_of_one_entity_has_everything(name: str, pages: dict[str, bytes], places: dict[str, Path]) -> None:
    page, found = parsed(pages[name]), verify(places[name])
    assert [e.attributes["id"] for e in page.all("section")] == list(SINGLE)
    words = " ".join(page.words.split())
    assert found.artifact.sha256 in words
    for command in ("optdp verify", "optdp export", "optdp sample", "optdp audit"):
        assert f"{command} {name}.json" in words
    for said in ("second release", "by at most a factor of", "Ordinary epsilon", "One release", "geometric noise"):
        assert said in words


def test_claims_of_the_sick_leave_page(pages: dict[str, bytes]) -> None:
    words = " ".join(parsed(pages["sick-leave"]).words.split())
    for said in (
        "will change their odds about any one person by at most a factor of 1.35",
        "100 people. Each contributes 1 with probability 0.1 and 0 otherwise",
        "71 % below geometric noise, which has 3.2839",
        "best ordinary DP 1.90",
        "without data 2.3736",
        "infinite",
        "the probability is 0.11, not 0.1 1.5823",
        "an observer knows what 50 of the 100 people contribute 1.7282",
    ):
        assert said in words


def test_a_table_that_is_no_better_than_a_constant_says_so(tmp_path: Path) -> None:
    """And with a fallback the page has geometric noise at that epsilon too, 2q/(1-q^2)."""
    rare = SingleLTE(Population.binomial(12, "0.05"), "0.05", fallback_epsilon="0.1")
    solve(rare).save(tmp_path / "a.json")
    words = " ".join(parsed(report(tmp_path / "a.json")).words.split())
    assert "This mechanism is no more accurate than publishing a constant without looking at any data" in words
    assert "geometric at 0.1 9.98" in words  # 9.9833


@pytest.mark.parametrize("method", ["seeded", "inside"])
def test_a_plan_says_what_its_method_rests_on(method: str, tmp_path: Path) -> None:
    party = Population.binomial(2, "0.4")
    plan = solve(MultiLTE([party] * (2 if method == "seeded" else 3), 1, method=method))
    plan.save(tmp_path / "plan")
    page = " ".join(parsed(report(tmp_path / "plan")).words.split())
    assert ("Whoever knows the word" in page) == (method == "seeded")
    assert ("new for each release" in page) == (method == "seeded")
    assert ("Each draws its report from its own table" in page) is False
    assert ("The secure computation" in page) == (method == "inside")
    of = "table of the total" if method == "inside" else "plan in which the parties"
    assert f"The bound holds for every {of}" in page


def test_a_promise_without_assumption_is_said_to_be_one(pages: dict[str, bytes]) -> None:
    words = " ".join(parsed(pages["large"]).words.split())
    assert "needs no assumption about anyone" in words
    assert "the epsilons add up" in words
    assert "An observer who knows more" not in words


def test_pages_of_plans_and_orders(pages: dict[str, bytes], places: dict[str, Path]) -> None:
    plan = " ".join(parsed(pages["offices"]).words.split())
    for said in ("The secure sum", "2 of 2", "single report", "optdp aggregate offices", "coefficient"):
        assert said in plan
    assert len(parsed(pages["offices"]).all("option")) == 2
    order = " ".join(parsed(pages["order"]).words.split())
    likelier = "more than 2.72 times likelier or less likely"
    assert all(said in order for said in (likelier, "honest shuffler", "groups.json", "shuffle order.json"))
    assert str(places["order"].parent) not in order
    assert "lower bound" not in order.lower()  # no claim: it is not proved again


def test_same_artifact_same_bytes(places: dict[str, Path], pages: dict[str, bytes]) -> None:
    names = ["sick-leave", "several", "offices", "order"]
    code = (
        "import hashlib, sys; from optdp.report.report import report\n"
        "for path in sys.argv[1:]: print(hashlib.sha256(report(path)).hexdigest())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *(str(places[name]) for name in names)],
        capture_output=True, text=True, timeout=200, env=os.environ | {"PYTHONHASHSEED": "7"}, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [hashlib.sha256(pages[name]).hexdigest() for name in names]


def test_where_the_page_goes(places: dict[str, Path], tmp_path: Path, optdp: Callable[..., Done]) -> None:
    copy = tmp_path / "a b.json"
    copy.write_bytes(places["small"].read_bytes())
    assert optdp("report", copy).code == 0
    assert "optdp verify 'a b.json'" in " ".join(parsed((tmp_path / "a b.html").read_bytes()).words.split())
    before = copy.read_bytes()
    refused = [
        optdp("report", copy, "-o", copy),
        optdp("report", places["offices"], "-o", places["offices"] / "party-1.json"),
        optdp("report", places["offices"], "-o", places["offices"]),
        optdp("report", places["order"], "-o", places["groups"]),
        optdp("report", copy, "-o", tmp_path / "nowhere" / "a.html"),
        optdp("report", tmp_path / "missing.json", "-o", tmp_path / "b.html"),
    ]
    for done in refused:
        assert done.code == 2
        assert len(done.err.strip().splitlines()) == 1
    assert copy.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b.html", "a b.json"]


def test_nothing_is_shown_that_does_not_hold(
    places: dict[str, Path], tmp_path: Path, optdp: Callable[..., Done]
) -> None:
    artifact = read(places["sick-leave"])
    forged = replace(artifact, claim=artifact.claim | {"epsilon": "0.2"}, sha256="")
    write(forged, tmp_path / "forged.json")
    with pytest.raises(CertificateError):
        report(tmp_path / "forged.json")
    (tmp_path / "cut.json").write_bytes(places["sick-leave"].read_bytes()[:-40])
    with pytest.raises(ArtifactError):
        report(tmp_path / "cut.json")
    assert optdp("report", tmp_path / "forged.json").code == 1
    assert not (tmp_path / "forged.html").exists()


def test_solutions_show_themselves_in_notebooks() -> None:
    people = Population.binomial(30, "0.3")
    shown = [
        solve(SingleLTE(people, "0.3")),
        shared_solution(MultiLTE([Population.binomial(6, "0.5")] * 2, "0.5", method="joint")),
        shared_solution(MultiLTE([Population.binomial(6, "0.5")] * 2, "0.5", method="geometric")),
        solve(OrderShuffle(Groups.of([[0, 1, 2], [2, 3]], 5), 1, budget=1.0)),
    ]
    for solution in shown:
        fragment = solution._repr_html_()
        assert fragment == solution._repr_html_()
        tree = ElementTree.fromstring(fragment)  # well formed, so that nothing is left open in the notebook
        assert len(tree.findall(".//svg")) == 2
        assert tree.findall(".//script") == []
        assert len(fragment) < 40_000
    first = "".join(ElementTree.fromstring(shown[0]._repr_html_()).itertext())
    for said in ("0.3  (wanted 0.3)", "infinite", "geometric noise", "second release"):
        assert said in first
