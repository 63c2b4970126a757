"""The page of an advice: what a boss reads, in a real browser."""

from __future__ import annotations

import json
import re
import shlex

import pytest

import metabandit as mb
from metabandit import load_report, write_report
from metabandit.report.writing import as_markdown
from tests.commands import call
from tests.report.pages import VIEWS, opened


@pytest.fixture(scope="module")
def advice(tmp_path_factory):
    out = tmp_path_factory.mktemp("advice") / "advice.json"
    told = {"today": "split-then-winner:share=0.2", "unit": "clicks", "value": 0.35}
    mb.advise(mb.prior("bernoulli:low=0.05,high=0.3", arms=3), 30, effort=0.001, out=out, **told)
    return out


@pytest.fixture(scope="module")
def page(advice):
    path = advice.with_suffix(".html")
    write_report(load_report(advice), path)
    return path


def test_the_page_has_the_answer_first(advice):
    value = json.loads(advice.read_text("utf-8"))
    report = load_report(advice)
    assert report.title.endswith(f"clicks more per test: use {value['recommended_policy']}")
    assert list(report.summary) == value["summary"][:2]
    assert [section.title for section in report.sections] == [
        "What it brings", "What was assumed", "What to do next", "Details",
    ]  # fmt: skip
    assert [figure.id for figure in report.figures()] == ["run1-gains"]
    shown = next(table for table in report.tables() if table.id == "run1-policies")
    gains = {row[0].text: row[3].value for row in shown.rows}
    assert gains == {item["policy"]: item["gain"] for item in value["policies"]}
    commands = [code for _, code in report.sections[2].code]
    assert commands[0].startswith(f"metabandit evaluate {advice}")
    text = as_markdown(report)
    assert f"    {commands[0]}" in text


def test_the_commands_of_the_page_work(advice, tmp_path):
    value = json.loads(advice.read_text("utf-8"))
    commands = [item["command"] for item in value["next"]]
    for text in (f"{commands[0]} --episodes 100", commands[2]):
        done = call(shlex.split(text)[1:], tmp_path)
        assert done.returncode == 0, done.stderr
    player = re.fullmatch(r"player = (.*), journal=.*\)", commands[1]).group(1)
    assert eval(player.replace("metabandit", "mb") + ")", {"mb": mb}).select() in range(3)


def test_an_advice_to_keep_what_is_done(advice, tmp_path):
    """The page of an advice in which nothing is better; names are escaped."""
    value = json.loads(advice.read_text("utf-8"))
    nasty = "<script>alert(1)</script>"
    value |= {"recommended_policy": value["today"], "unit": nasty, "summary": [nasty, ""]}
    path = tmp_path / "kept.json"
    path.write_text(json.dumps(value))
    report = load_report(path)
    assert report.title == "Keep split-then-winner:share=0.2"
    assert report.summary == (nasty,)
    write_report(report, tmp_path / "kept.html")
    assert nasty not in (tmp_path / "kept.html").read_text("utf-8")


@pytest.mark.parametrize("damage", ["policies", "summary", "recommended_policy"])
def test_a_damaged_advice_is_refused(advice, tmp_path, damage):
    value = json.loads(advice.read_text("utf-8"))
    value.pop(damage)
    (tmp_path / "bad.json").write_text(json.dumps(value))
    with pytest.raises(mb.InputError, match=r"bad\.json is damaged"):
        load_report(tmp_path / "bad.json")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.browser
def test_the_page_in_a_browser(browser, page, view):
    """No complaint, nothing loaded from elsewhere, nothing wider than the window."""
    with opened(browser, page, view) as seen:
        assert "more per test" in seen.locator("h1").inner_text()
        assert seen.evaluate("document.documentElement.scrollWidth <= innerWidth")
        box = seen.locator("figure svg").bounding_box()
        assert box["width"] > 250
        assert box["x"] + box["width"] <= VIEWS[view]["viewport"]["width"]
        for block in seen.locator("pre").all():
            inner = block.evaluate("item => [item.scrollWidth, item.clientWidth]")
            assert inner[0] <= inner[1]
        seen.locator("#run1-policies th button").nth(3).click()
        assert seen.locator("#run1-policies th").nth(3).get_attribute("aria-sort") == "ascending"


@pytest.mark.browser
def test_the_page_in_print(browser, page, tmp_path):
    context = browser.new_context()
    seen = context.new_page()
    seen.goto(page.as_uri())
    path = tmp_path / "advice.pdf"
    seen.pdf(path=path, format="A4")
    assert path.stat().st_size > 20_000
    seen.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert seen.locator("details:not([open])").count() == 0
    context.close()
