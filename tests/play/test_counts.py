"""Counts of arms from mappings, data frames and files, and players that begin with a history."""

import random

import numpy as np
import pandas as pd
import pytest
from benchmarks.durability import counts as stored_counts

import metabandit as mb
from metabandit.play.store import Store


def make(policy="ucb1", **options):
    return mb.policy(policy).player(["a", "b", "c"], seed=1, **options)


def views(player):
    return [
        (view.arm, view.plays, view.mean, view.deviation, view.open) for view in player.indices()
    ]


COUNTS = {"a": (10, 4), "c": (7, 1)}
FRAME = pd.DataFrame({"arm": ["a", "c"], "plays": [10, 7], "total": [4, 1]})


@pytest.mark.parametrize(
    "given",
    [
        COUNTS,
        {"a": [10, 4.0, 4.0], "c": {"plays": 7, "total": 1}},
        FRAME,
        FRAME.rename(columns={"arm": " Arm ", "plays": "PLAYS"}).assign(other="x"),
        FRAME.assign(squares=[4.0, 1.0]),
    ],
    ids=["pairs", "triples", "frame", "titles", "squares"],
)
def test_many_counts_are_those_of_single_updates(given, tmp_path):
    options = {"rewards": "binary"}
    one, two = make(**options), make(**options, journal=tmp_path / "plays.jsonl")
    assert one.select(6) == two.select(6)
    one.update("a", plays=10, total=4)
    one.update("c", plays=7, total=1)
    two.update_many(given)
    assert views(one) == views(two)
    two.close()
    again = make(**options, journal=tmp_path / "plays.jsonl")
    assert views(again) == views(one)
    assert again.select(20) == one.select(20)


def test_a_frame_of_rewards():
    one, two = make(), make()
    frame = pd.DataFrame({"arm": ["a", "b", "a"], "reward": [0.5, 1.0, 0.25]})
    one.update_many(frame)
    two.update_many([("a", 0.5), ("b", 1.0), ("a", 0.25)])
    assert views(one) == views(two)
    numbers = mb.policy("ucb1").player(2, rewards="binary")
    numbers.update_many(pd.DataFrame({"arm": np.array([0, 1]), "plays": [3, 4], "total": [1, 2]}))
    assert numbers.plays == 7


def test_counts_in_a_store(tmp_path):
    url = f"sqlite:///{tmp_path / 'bandit.db'}"
    Store(url).create()
    shared = make(rewards="binary", store=url, experiment="x", warm_start={"b": (4, 1)})
    other = make(rewards="binary", store=url, experiment="x", warm_start={"b": (4, 1)})
    plain = make(rewards="binary", warm_start={"b": (4, 1)})
    shared.update_many(COUNTS)
    plain.update_many(COUNTS)
    assert [item[1:] for item in stored_counts(other)] == [
        (view.rewarded, view.mean, view.deviation, view.open) for view in plain.indices()
    ]
    with pytest.raises(mb.InputError, match="no arm 'd'"):
        shared.update_many({"a": (1, 1), "d": (1, 1)})
    assert sum(item[1] for item in stored_counts(other)) == 17
    with pytest.raises(mb.InputError, match="another warm start"):
        make(rewards="binary", store=url, experiment="x")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": (10, 4), "d": (1, 1)}, "no arm 'd'"),
        ({"a": (10, 11)}, "arm 'a'.*sum cannot be 11"),
        ({"a": (10, 4.5)}, "whole number"),
        ({"a": (0, 1)}, "plays"),
        ({"a": 3}, r"\(plays, total\)"),
        ({"a": {"plays": 1, "sum": 1}}, "not 'sum'"),
        ({"a": {"plays": 1}}, "plays= and total="),
        ({}, "no counts"),
        (FRAME.drop(columns="total"), "no column 'total'"),
        (FRAME.assign(plays=[10, float("nan")]), "plays"),
        (FRAME.iloc[:0], "no counts"),
        (pd.DataFrame({"arm": ["a"], "reward": [7.0]}), "0 and 1"),
    ],
)
def test_counts_that_cannot_be_are_refused(given, message, tmp_path):
    player = make(rewards="binary", journal=tmp_path / "plays.jsonl")
    player.update("a", 1)
    before = views(player)
    with pytest.raises(mb.InputError, match=message):
        player.update_many(given)
    assert views(player) == before
    player.close()
    assert views(make(rewards="binary", journal=tmp_path / "plays.jsonl")) == before


# Warm starts ---------------------------------------------------------------------------------------


def test_a_history_counts_with_its_weight(tmp_path):
    history = {"a": (200, 30), "b": (100, 40)}
    player = make("r + sqrt(2*ln(t)/n)", rewards="binary", warm_start=history, warm_weight=0.05)
    # Of c nothing is known: it is played first; a and b need no first play.
    assert player.select() == "c"
    player.update("c", 1)
    n, total = np.array([10.0, 5.0, 1.0]), np.array([1.5, 2.0, 1.0])
    index = total / n + np.sqrt(2 * np.log(16.0) / n)
    found = player.indices()
    assert [view.index for view in found] == pytest.approx(index)
    assert [view.rewarded for view in found] == [0, 0, 1]
    assert player.plays == 1
    # The same from a file, and after a restart.
    path = tmp_path / "history.csv"
    path.write_text("arm;plays;total\na;200;30\nb;100;40\n")
    options = {"rewards": "binary", "warm_start": path, "warm_weight": 0.05}
    first = make("r + sqrt(2*ln(t)/n)", **options, journal=tmp_path / "plays.jsonl")
    assert first.select() == "c"
    first.update("c", 1)
    first.close()
    again = make("r + sqrt(2*ln(t)/n)", **options, journal=tmp_path / "plays.jsonl")
    assert views(again) == views(first) == views(player)
    again.save(tmp_path / "player.json")
    assert mb.load_player(tmp_path / "player.json").select() == again.select() == player.select()
    again.close()
    with pytest.raises(mb.InputError, match="another warm start"):
        make("r + sqrt(2*ln(t)/n)", rewards="binary", journal=tmp_path / "plays.jsonl")


def test_a_weight_of_one_is_the_history_itself():
    rng = random.Random(3)
    rewards = {arm: [rng.random() for _ in range(20)] for arm in "abc"}
    history = {arm: (20, sum(x), sum(y * y for y in x)) for arm, x in rewards.items()}
    warm, told = make("ucb1-tuned", warm_start=history), make("ucb1-tuned")
    for arm, values in rewards.items():
        told.update_many((arm, value) for value in values)
    for one, two in zip(warm.indices(), told.indices(), strict=True):
        assert one.index == pytest.approx(two.index)
        assert (one.mean, one.deviation) == pytest.approx((two.mean, two.deviation))
    assert (warm.plays, told.plays) == (0, 60)
    sampled = make("thompson", rewards="binary", warm_start={"a": (50, 25)}, warm_weight=0.1)
    assert sampled.probabilities()["b"] == sampled.probabilities()["c"]
    sampled.add("d")
    assert [view.plays for view in sampled.indices()] == [5.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"warm_start": {"d": (1, 1)}}, "an arm 'd', which is not among the arms"),
        ({"warm_start": COUNTS, "warm_weight": 0.0}, "above 0 and up to 1, not 0.0"),
        ({"warm_start": COUNTS, "warm_weight": 2}, "above 0 and up to 1"),
        ({"warm_start": [("a", 1)]}, "counts are a mapping"),
        ({"warm_start": pd.concat([FRAME, FRAME])}, "the arm 'a' twice"),
        ({"warm_start": COUNTS, "policy": "gittins", "horizon": 30}, "by whole counts"),
        ({"warm_start": COUNTS, "policy": "ucb2"}, "by whole counts"),
        ({"warm_start": "none.csv"}, "does not exist"),
    ],
)
def test_warm_starts_that_make_no_sense_are_refused(options, message):
    with pytest.raises(mb.InputError, match=message):
        make(**{"rewards": "binary"} | options)
