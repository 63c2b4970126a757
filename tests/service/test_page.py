"""The page of an experiment in a real browser."""

import random
import re

import httpx
import pytest
from benchmarks.service import TOKEN, service

from tests.report.test_report import VIEWS

NASTY = "<script>alert(1)</script>"
RATES = {"red": 0.05, "green": 0.3, NASTY: 0.1}
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('page') / 'bandit.db'}"
    with service(url) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def client(base):
    with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {TOKEN}"}) as found:
        asked = {"policy": "thompson", "arms": list(RATES), "rewards": "binary"}
        assert found.put("/experiments/buttons", json=asked).status_code == 201
        for _ in range(6):
            play(found)
        yield found


def play(client):
    rng = random.Random(1)
    choices = client.post("/experiments/buttons/choose", json={"count": 20}).json()["choices"]
    rewards = [
        {"id": item["id"], "value": float(rng.random() < RATES[item["arm"]])} for item in choices
    ]
    client.post("/experiments/buttons/rewards", json={"rewards": rewards})


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_shows_an_experiment_live(browser, base, client, view):
    context = browser.new_context(**VIEWS[view])
    page = context.new_page()
    complaints, asked = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{base}/")
    # It asks for the token, and a wrong one is said to be wrong.
    for token in ("wrong", TOKEN):
        page.wait_for_selector("#ask:not([hidden])")
        page.fill("#token", token)
        page.click("#ask button")
        if token == "wrong":
            page.wait_for_selector("text=The token is wrong.")
    page.click("text=buttons")
    page.wait_for_selector("#shares polygon")
    assert page.title() == "buttons"
    rows = page.locator("#arms tr").all_inner_texts()
    state = client.get("/experiments/buttons/state").json()
    for row, arm in zip(rows, state["arms"], strict=True):
        cells = row.split("\t")
        assert cells[0].strip() == arm["arm"]
        assert cells[1] == f"{100 * arm['probability']:.1f} %"
        assert cells[2] == f"{arm['plays']:.0f}"
        assert float(cells[4]) == pytest.approx(arm["mean"], rel=1e-3)
    assert page.locator("#means circle").count() == len(RATES)
    # Live: what is played now is shown soon.
    before = state["rewarded"]
    play(client)
    page.wait_for_function(
        "n => document.querySelector('#facts dd').textContent === String(n)", arg=before + 20
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    colours = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours]
    assert (light[0] > light[1]) == (view == "dark")
    # Nothing from elsewhere, and no complaint but of the token that was missing.
    assert {url.split("/")[2] for url in asked if not url.startswith("data:")} == {base[7:]}
    assert all("401" in text for text in complaints), complaints
    context.close()
