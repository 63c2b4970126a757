"""Live play: rewards and players that are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import metabandit as mb

TWO = mb.Bernoulli(arms=2)


@pytest.mark.parametrize(
    ("arm", "reward", "word"),
    [
        ("a", 1.5, "between 0 and 1"),
        ("a", -0.1, "between 0 and 1"),
        ("a", math.nan, "finite number"),
        ("a", math.inf, "finite number"),
        ("a", None, "finite number"),
        ("a", "1", "finite number"),
        ("c", 1, "no arm 'c'"),
        (["a"], 1, "no arm"),
    ],
)
def test_a_reward_that_is_refused_changes_nothing(tmp_path, arm, reward, word):
    journal = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(["a", "b"], journal=journal)
    player.update("a", 1)
    before, size = player.to_dict(), journal.stat().st_size
    with pytest.raises(mb.InputError, match=word):
        player.update(arm, reward)
    with pytest.raises(mb.InputError, match=word):
        player.update_many([("a", 1), (arm, reward)])
    assert player.to_dict() == before
    assert journal.stat().st_size == size


def test_rewards_are_those_of_the_family():
    binary = mb.policy("ucb1").player(2, prior="bernoulli")
    with pytest.raises(mb.InputError, match="0 and 1, not"):
        binary.update(0, 0.5)
    binary.update(0, True)
    binary.update(0, np.float32(1))
    binary.update(np.int64(1), np.int64(0))
    anything = mb.policy("ucb1").player(2, prior="gaussian")
    anything.update(0, -1e6)
    between = mb.policy("ucb1").player(2, rewards=(-1, None))
    between.update(0, 1e9)
    with pytest.raises(mb.InputError, match="between -1 and inf"):
        between.update(0, -1.1)


@pytest.mark.parametrize(
    ("policy", "arguments", "word"),
    [
        ("ucb1", {"arms": []}, "at least one arm"),
        ("ucb1", {"arms": 0}, "at least 1"),
        ("ucb1", {"arms": "red"}, "list of names"),
        ("ucb1", {"arms": ["a", "a"]}, "twice"),
        ("ucb1", {"arms": {"a", "b"}}, "in order"),
        ("ucb1", {"arms": ["\ud83d"]}, "Unicode"),
        ("ucb1", {"arms": [10**30]}, "at most"),
        ("ucb1", {"arms": [1.5]}, "text or a whole number"),
        ("ucb1", {"arms": 2, "seed": -1}, "the seed"),
        ("ucb1", {"arms": 2, "rewards": (1, 0)}, "below the largest"),
        ("ucb1", {"arms": 2, "rewards": "some"}, "rewards are"),
        ("ucb1", {"arms": 2, "prior": "bernoulli:alpha=1:2:3"}, "alpha"),
        ("ucb1", {"arms": 3, "prior": mb.Bernoulli(arms=2)}, "2 arms"),
        ("ucb1", {"arms": 2, "journal": "plays.txt"}, "ends in .jsonl"),
        ("ucb1", {"arms": 2, "journal": "nowhere/plays.jsonl"}, "does not exist"),
        ("kl-ucb", {"arms": 2, "prior": "gaussian"}, "rewards in"),
        ("r + h", {"arms": 2}, "give horizon="),
        ("gittins", {"arms": 2}, "give horizon="),
        ("optimal", {"arms": 4, "horizon": 9}, "2 or 3 arms"),
        ("ucb1:start=prior-counts", {"arms": 2}, "give prior="),
        (mb.policy("r", start="prior-counts:plays=1,sum=5"), {"arms": 2}, "cannot be 5"),
        (mb.policy("s", start="prior-counts:plays=2,sum=1,squares=0.1"), {"arms": 2}, "at least"),
    ],
)
def test_players_that_cannot_be(policy, arguments, word):
    with pytest.raises(mb.InputError, match=word):
        mb.policy(policy).player(**arguments)


def test_tables_are_for_no_more_plays_than_they_were_solved_for():
    with pytest.raises(mb.InputError, match="solved for 5 plays"):
        mb.OptimalPolicy(TWO, 5).player(2, horizon=6)


def test_no_number_is_forgotten_by_min_and_max():
    for index in ("max(r, (r - 2)^0.5)", "min(1, (r - 2)^0.5)"):
        player = mb.policy(index).player(2)
        player.update_many([(0, 1), (1, 0)])
        with pytest.raises(mb.IndexFault):
            player.select()


def test_an_index_without_a_value_is_named():
    player = mb.policy("r/s").player(2)
    player.update_many([(0, 1), (1, 1)])
    with pytest.raises(mb.IndexFault, match="n=1, r=1, s=0"):
        player.select()
    # Infinity on the way is no fault: the machine has none, either.
    player = mb.policy("min(r/s, 5) + r").player(2)
    player.update_many([(0, 1), (1, 0.5), (1, 1)])
    assert player.indices()[0].index == 6.0
