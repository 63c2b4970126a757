"""`metabandit trial` as a person meets it."""

from __future__ import annotations

import csv
import json

import pytest

from tests.commands import answer, refused


def test_the_table(tmp_path):
    told = answer(
        "trial | equal | thompson | crdp:degree=0.9,minimum=5 | --at | 0.3,0.5 | --at | prior | "
        "--horizon | 20 | --test | exact-conditional",
        tmp_path,
    )
    assert "Trials of 20 patients, test exact-conditional at level 0.05; exact" in told
    assert "crdp:degree=0.9,minimum=5" in told
    assert len(told.splitlines()) == 11


def test_json_csv_picture_and_report(tmp_path):
    command = (
        "trial | equal | ucb1 | --grid | 0.2:0.8:0.2 | --horizon | 20 | --look-every | 10 | "
        "--boundary | pocock | --test | z-pooled | --plot | power.svg | --csv | all.csv | --json"
    )
    told = answer(command, tmp_path)
    value = json.loads(told)
    assert [item["policy"] for item in value["designs"]] == ["equal", "ucb1"]
    assert len(value["designs"][0]["points"]) == 16
    assert value["looks"] == [10, 20]
    assert value["designs"][0]["points"][3]["rates"] == [0.2, 0.8]
    with (tmp_path / "all.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 32
    assert (tmp_path / "power.svg").read_text("utf-8").count("<path") > 20
    (tmp_path / "run.json").write_text(told)
    answer("report | run.json | --out | run.md | --figures | figures", tmp_path)
    assert "Operating characteristics" in (tmp_path / "run.md").read_text("utf-8")
    assert len(list((tmp_path / "figures").iterdir())) == 2


def test_three_arms_and_delays(tmp_path):
    told = answer(
        "trial | ucb1 | --at | 0.3,0.5,0.4 | --horizon | 12 | --test | chi-squared", tmp_path
    )
    assert "0.3, 0.5, 0.4" in told
    told = answer(
        "trial | ucb1 | --at | 0.3,0.5 | --horizon | 12 | --delay | 3 | --episodes | 1000", tmp_path
    )
    assert "1,000 trials" in told
    assert "delay 3" in told


def test_details(tmp_path):
    told = answer(
        "trial | equal | ucb1 | --at | 0.3,0.5 | --at | 0.4,0.4 | --horizon | 20 | --details | "
        "--fewer-than | 8 | --look-every | 10",
        tmp_path,
    )
    first, second = told.split("wrong side: another arm")
    for title in (
        "median (5 % to 95 %)",
        "fewer than 8",
        "rejects for each arm",
        "ends at each look",
    ):
        assert title not in first
        assert title in second
    assert "10 (10 to 10) / 10 (10 to 10)" in second


def test_successes_beside_regret(tmp_path):
    told = answer("evaluate | greedy | --horizon | 10 | --show | successes", tmp_path)
    assert "successes" in told.splitlines()[3]
    told = answer("search | --horizon | 4 | --length | 3 | --show | successes", tmp_path)
    assert told.count("  successes  ") == 2
    refused("evaluate | greedy | --show | wins", tmp_path, "successes", "'wins'")


@pytest.mark.parametrize("command", ["evaluate | greedy", "learn | power-1", "search", "advise"])
def test_successes_of_other_rewards_are_refused_at_once(command, tmp_path):
    command += " | --prior | gaussian | --horizon | 100000 | --show | successes"
    refused(command.replace("learn | ", "learn | --space | "), tmp_path, "0 or 1", "gaussian")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--at | 0.3,1.5", ["between 0 and 1, not 1.5"]),
        ("--at | 0.3,x", ["success rate", "'x'"]),
        ("--at | 0.3,0.5 | --level | 2", ["level", "between 0 and 1, not 2"]),
        ("--at | 0.1,0.2,0.3 | --test | fisher", ["fisher", "2 arms, not 3"]),
        ("--at | 0.3,0.5 | --plot | power.svg", ["--grid"]),
        ("--grid | 0:1:0.5 | --arms | 3 | --plot | power.svg", ["two arms"]),
        ("--grid | 0:1:0.5 | --test | none | --plot | power.svg", ["--test"]),
        ("--grid | 0:1:0.001 | --horizon | 500", ["1,002,001 points", "hours", "coarser"]),
        ("--horizon | 10", ["no success rates"]),
        ("--at | 0.3,0.5 | --boundary | pocock", ["--look-every 25"]),
        ("--at | 0.3,0.5 | --csv | table.txt", [".csv"]),
    ],
)
def test_bad_input(command, words, tmp_path):
    refused(f"trial | ucb1 | {command}", tmp_path, *words)
