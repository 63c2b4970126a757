"""Logs with probabilities: estimates against their definitions, another library and the truth."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from benchmarks.offpolicy import MEANS, thompson_log

import metabandit as mb
from metabandit.offpolicy import DR, IPS, SNIPS
from tests.commands import answer, refused

OBP = json.loads((Path(__file__).parent / "reference" / "obp.json").read_text("utf-8"))


def by_target(found):
    return {(item.target, item.method): item for item in found.estimates}


def greedy_log(seed, plays, means=MEANS):
    """A logger that learns: 0.1 for each arm, the rest for the best so far."""
    rng = random.Random(f"log {seed}")
    total, count, log = dict.fromkeys(means, 0.0), dict.fromkeys(means, 0), []
    for _ in range(plays):
        best = max(means, key=lambda arm: total[arm] / max(1, count[arm]))
        arm = best if rng.random() < 0.7 else rng.choice(list(means))
        reward = float(rng.random() < means[arm])
        total[arm] += reward
        count[arm] += 1
        log.append((arm, reward, 0.8 if arm == best else 0.1))
    return log


# Definitions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", OBP["shares"])
def test_estimates_are_those_of_open_bandit_pipeline(target):
    """Its estimators (0.4.1) were given the same log, and the same model of the rewards."""
    shares = dict(zip("abc", OBP["shares"][target], strict=True))
    log = [tuple(play) for play in OBP["log"]]
    found = mb.replay(log, shares=[shares])
    last = {item.method: item.value for item in found.estimates[-3:]}
    assert last == pytest.approx(OBP["figures"][target], rel=1e-12)
    if target != "mix":
        same = {item.method: item.value for item in found.estimates if item.target == target}
        assert same == pytest.approx(last)


def slow_estimates(log, shares):
    """Play by play, as the definitions read."""
    weighted, weights, terms, squares = [], [], [], 0.0
    for place, (arm, reward, chance) in enumerate(log):
        before = log[:place]
        overall = np.mean([item[1] for item in before]) if before else 0.0
        model = {}
        for name in shares:
            own = [item[1] for item in before if item[0] == name]
            model[name] = np.mean(own) if own else overall
        if chance >= 1.0:
            continue
        weight = shares[arm] / chance
        weighted.append(weight * reward)
        weights.append(weight)
        base = sum(share * model[name] for name, share in shares.items())
        terms.append(base + weight * (reward - model[arm]))
    normalised = sum(weighted) / sum(weights)
    kept = [item for item in log if item[2] < 1.0]
    for weight, (_, reward, _) in zip(weights, kept, strict=True):
        squares += (weight * (reward - normalised)) ** 2
    root = len(weights) ** 0.5
    return {
        IPS: (np.mean(weighted), np.std(weighted, ddof=1) / root),
        SNIPS: (normalised, squares**0.5 / sum(weights)),
        DR: (np.mean(terms), np.std(terms, ddof=1) / root),
    }


def test_estimates_are_what_their_definitions_say():
    log = greedy_log(1, 120)
    log[5] = ("c", 1.0, 1.0)  # certain: it informs the model only
    shares = {"a": 0.25, "b": 0.25, "c": 0.5}
    found = mb.replay(log, shares=[shares])
    for item in found.estimates[-3:]:
        value, error = slow_estimates(log, shares)[item.method]
        assert (item.value, item.standard_error) == pytest.approx((value, error), rel=1e-12)
        assert item.interval == pytest.approx(
            (value - 1.96 * error, value + 1.96 * error), rel=1e-4
        )
    assert any("1 plays of the log were certain" in note for note in found.warnings())


def test_a_uniform_log_needs_no_probabilities():
    """Probabilities of 1/K give the figures of a log without any, and the means of the arms."""
    rng = random.Random("uniform")
    log = [(arm, float(rng.random() < MEANS[arm])) for arm in rng.choices("abc", k=2000)]
    plain = mb.replay(log, "ucb1", horizon=30)
    known = mb.replay([(*play, 1 / 3) for play in log], "ucb1", horizon=30)
    assert known.policies == plain.policies
    assert known.uneven == plain.uneven
    assert plain.estimates == ()
    assert known.warnings() == []
    always = by_target(known)[f"always {known.best_arm[0]}", SNIPS]
    assert always.value == pytest.approx(known.best_arm[1])


# The truth ---------------------------------------------------------------------------------------


def check_truth(logs):
    """Over many logs: no bias, and the standard errors are those that the estimates have."""
    errors = {}
    for log in logs:
        found = mb.replay(log, shares=[{"a": 0.2, "b": 0.5, "c": 0.3}])
        for item in found.estimates:
            true = sum(MEANS[arm] * share for arm, share in item.shares.items())
            errors.setdefault((item.target, item.method), []).append(
                (item.value - true, item.standard_error)
            )
    for (target, method), rows in errors.items():
        error, stated = np.array(rows).T
        count = len(rows)
        spread = error.std(ddof=1)
        if method != SNIPS:  # which is only consistent
            assert abs(error.mean()) < 3.0 * spread / count**0.5, (target, method)
        # The error of a variance from so many figures, which are not quite normal.
        ratio = np.mean(stated**2) / spread**2
        assert abs(ratio - 1.0) < 4.0 * (3.0 / count) ** 0.5, (target, method, ratio)


def test_doubly_robust_estimates_from_a_thompson_logger():
    check_truth(thompson_log(seed, 200, min_share=0.1, batch=50) for seed in range(60))


def test_estimates_from_a_logger_that_learns():
    check_truth(greedy_log(seed, 150) for seed in range(300))


def test_a_policy_that_learns_is_replayed_without_bias():
    """From the log of another that learns, against what it gets by simulation."""
    exact = mb.evaluate("ucb1-tuned", mb.Table([list(MEANS.values())]), 10, episodes=200_000)[0]
    truth = 10 * max(MEANS.values()) - exact.mean_regret
    found = mb.replay(greedy_log(3, 60_000), "ucb1-tuned", horizon=10, least=0.1)
    item = found.policies[0]
    assert found.least == 0.1
    assert item.episodes > 500
    assert item.used == pytest.approx(0.1, rel=0.1)
    assert [row["policy"] for row in found.rows()] == ["ucb1-tuned", "the log itself"]
    assert abs(item.reward - truth) < 3.0 * item.standard_error
    assert found.warnings() == []


def test_the_same_seed_for_the_log_and_its_replay_does_no_harm():
    """A simulated log that was drawn with random.Random(0): what is kept must not follow its rewards."""
    rng, log = random.Random(0), []
    for _ in range(20_000):
        arm = "a" if rng.random() < 0.2 else "b"
        log.append((arm, float(rng.random() < 0.5), 0.2 if arm == "a" else 0.8))
    item = mb.replay(log, "uniform", horizon=10, least=0.2, seed=0).policies[0]
    assert abs(item.reward - 5.0) < 4.0 * item.standard_error


# What cannot be said -----------------------------------------------------------------------------


def test_probabilities_that_do_not_fit_are_noticed():
    log = greedy_log(2, 3000)
    wrong = [(arm, reward, 0.5 * chance) for arm, reward, chance in log]
    assert any("do not fit" in note for note in mb.replay(wrong).warnings())
    assert mb.replay(log).warnings() == []
    # An arm that was given up: all that is kept of it is in the first half.
    left = [*log[:1500], *(("b", r, 0.5) for _, r, _ in log[1500:])]
    found = mb.replay(left, "ucb1", horizon=5)
    assert found.uneven < 1e-3
    assert any("Do not trust" in note for note in found.warnings())
    rare = [("a", 1.0, 0.001), *(("b", 1.0, 0.9), ("c", 0.0, 0.099)) * 20]
    assert any("Fewer than 30 effective" in note for note in mb.replay(rare).warnings())


@pytest.mark.parametrize(
    ("log", "options", "message"),
    [
        ([("a", 1, 1.0), ("b", 0, 1.0)], {}, "cannot be used: no choice in it was random"),
        ([("a", 1, 0.5), ("b", 0, 1.0)], {}, "cannot be used: only one choice in it was random"),
        (
            [("a", 1, 0.0), ("b", 0, 0.5)],
            {},
            "play 1: a choice that was made had a probability above 0",
        ),
        (
            [("a", 1, 0.5), ("b", 0, 1.5)],
            {},
            "play 2: a choice that was made had a probability above 0",
        ),
        ([("a", 1, "much"), ("b", 0, 0.5)], {}, "a probability"),
        ([("a", 1, 0.5), ("b", 0)], {}, "all alike"),
        ([("a", 1), ("b", 0)], {}, "no policy was given to replay"),
        ([("a", 1), ("b", 0)], {"policies": "r", "horizon": 2, "least": 0.1}, "add the column"),
        ([("a", 1), ("b", 0)], {"policies": "r", "horizon": 2, "shares": [{"a": 1}]}, "add the"),
        ([("a", 1, 0.5), ("b", 0, 0.5)], {"shares": [{"a": 0.5}]}, "sum to 1, not to 0.5"),
        ([("a", 1, 0.5), ("b", 0, 0.5)], {"shares": [{"d": 1.0}]}, "no arm 'd'"),
        ([("a", 1, 0.5), ("b", 0, 0.5)], {"shares": [{"a": 2.0, "b": -1.0}]}, "between 0 and 1"),
        ([("a", 1, 0.5), ("b", 0, 0.5)], {"shares": [3]}, "a mapping"),
        (
            [("a", 1, 0.5), ("b", 0, 0.2)],
            {"policies": "r", "horizon": 2, "least": 0.3},
            "play 2: the arm 'b' was chosen with probability 0.2, below the least",
        ),
        ([("a", 1, 0.5), ("b", 0, 0.2)], {"policies": "r", "horizon": 2, "least": 0.6}, "at most"),
    ],
)
def test_what_makes_no_sense_is_refused(log, options, message):
    with pytest.raises(mb.InputError, match=message):
        mb.replay(log, **options)


# From play to log to replay ------------------------------------------------------------------------


def test_a_log_that_is_too_short_says_how_long_it_must_be():
    found = mb.replay(greedy_log(1, 400), "ucb1", horizon=100, least=0.1)
    assert "takes about 1,000 of its plays" in found.warnings()[0]


def test_the_log_of_a_store_is_what_replay_reads(tmp_path):
    url = f"sqlite:///{tmp_path / 'bandit.db'}"
    answer(f"store | init | {url}", tmp_path)
    names = ['a "b", c', "d;\ne", "f"]
    player = mb.policy("thompson").player(
        names, seed=1, store=url, experiment="one", min_share=0.1, rewards="binary"
    )
    rng = random.Random(5)
    choices = player.choose(60)
    told = [(item.id, float(rng.random() < 0.5)) for item in choices[:50]]
    player.reward_many(told)
    refused(f"store | log | {url}", tmp_path, "give --experiment and --out")
    refused(f"store | list | {url} | --experiment | one", tmp_path, "store log")
    refused(f"store | log | {url} | --experiment | two | --out | x.csv", tmp_path, "no experiment")
    answer(f"store | log | {url} | --experiment | one | --out | log.csv", tmp_path)
    refused(f"store | log | {url} | --experiment | one | --out | log.csv", tmp_path, "exists")
    log = mb.read_log(tmp_path / "log.csv")
    values = dict(told)
    expected = [(item.arm, values[item.id], item.probability) for item in choices[:50]]
    assert list(zip(log.arms, log.rewards, log.probabilities, strict=True)) == expected
    assert player.log() == expected
    text = answer("replay | log.csv | --shares | f=1", tmp_path)
    assert "doubly robust" in text
    assert "effective plays" in text
    data = json.loads(answer("replay | log.csv | --json | --policy | r | --horizon | 3", tmp_path))
    assert data["least"] == min(log.probabilities)
    assert len(data["estimates"]) == 12
    assert data["estimates"][0]["shares"] == [{"arm": names[0], "share": 1.0}]
    refused("replay | log.csv | --shares | f", tmp_path, "red=0.7,green=0.3")
    refused("replay | log.csv | --shares | f=0.5", tmp_path, "sum to 1")


def test_results_show_themselves():
    found = mb.replay(greedy_log(1, 300))
    assert "300 plays of 3 arms" in repr(found)
    assert len(found.rows()) == len(found.records()) == len(found.to_frame()) == 12
    assert found.plot().get_xlabel() == "reward per play, doubly robust"
    log = mb.Log("x", ("a", "b"), (1.0, 0.0), (0.5, 0.5))
    assert log.records()[0] == {"arm": "a", "reward": 1.0, "probability": 0.5}


def test_the_log_of_a_player():
    player = mb.policy("ucb1").player(["a", "b"], seed=1, min_share=0.2)
    first, second = player.choose(2)
    player.reward(second.id, 1)
    assert player.log() == [(second.arm, 1.0, second.probability)]
    player.reward(first.id, 0)
    assert [arm for arm, _, _ in player.log()] == [first.arm, second.arm]
