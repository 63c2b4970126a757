"""Live play: rewards as they come, arms that come and go, threads, and what is loaded."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import metabandit as mb

TWO = mb.Bernoulli(arms=2)


def test_a_rule_of_ones_own_is_played():
    def least_played(n, r, s, t, h, u):
        return int(np.argmin(n))

    player = mb.ChoicePolicy("least", least_played).player(3, horizon=12)
    for _ in range(12):
        player.update(player.select(), 1)
    assert [view.rewarded for view in player.indices()] == [4, 4, 4]
    with pytest.raises(mb.InputError, match="no file can hold"):
        player.to_dict()


# Rewards as they come ------------------------------------------------------------------------


def test_each_arm_is_selected_once_although_rewards_are_late():
    player = mb.policy("ucb1").player(["a", "b", "c"])
    assert [player.select() for _ in range(3)] == ["a", "b", "c"]
    # Nothing is known yet: the arms in turn.
    assert [player.select() for _ in range(3)] == ["a", "b", "c"]
    player.update("b", 1)
    assert player.select() == "b"
    player.update("c", 0)
    player.update("a", 1)
    assert player.plays == 3
    assert [view.open for view in player.indices()] == [1, 2, 1]
    assert player.select() in ("a", "b")


def test_late_rewards_in_any_order_lead_to_the_same_state():
    rewards = [(arm, arm == 1) for arm in (0, 1, 2, 1, 0, 2, 2, 1)]
    states = []
    for seed in range(5):
        player = mb.policy("ucb1-tuned").player(3)
        for _ in rewards:
            player.select()
        shuffled = random.Random(seed).sample(rewards, len(rewards))
        if seed % 2:
            player.update_many(shuffled)
        else:
            for arm, reward in shuffled:
                player.update(arm, reward)
        states.append([(v.rewarded, v.mean, round(v.deviation, 12)) for v in player.indices()])
    assert states == states[:1] * 5


def test_an_arm_that_was_never_selected_may_be_rewarded():
    player = mb.policy("ucb1").player(2)
    player.update(1, 1.0)
    assert player.select() == 0
    assert [view.open for view in player.indices()] == [1, 0]
    player.cancel(0)
    assert player.select() == 0
    with pytest.raises(mb.InputError, match="no open selection"):
        player.cancel(1)


def test_arms_come_and_go():
    player = mb.policy("ucb1:C=0.2").player(["a", "b"])
    player.update_many([("a", 1), ("b", 0)] * 10)
    player.add("c")
    assert player.select() == "c"
    player.update("c", 1)
    player.retire("a")
    assert player.arms == ("b", "c")
    assert all(player.select() != "a" for _ in range(5))
    player.update("a", 0)  # a late one counts
    assert player.indices()[-1].rewarded == 11
    assert player.indices()[-1].retired
    player.add("a")
    assert player.arms == ("a", "b", "c")
    player.retire("b")
    player.retire("c")
    with pytest.raises(mb.InputError, match="last arm"):
        player.retire("a")
    assert player.select() == "a"
    for name, word in (("a", "is there already"), (1.5, "text or a whole number")):
        with pytest.raises(mb.InputError, match=word):
            player.add(name)


def test_an_arm_begins_with_the_start_of_all_arms():
    player = mb.policy("r + 1/n", start="prior-counts:plays=2,sum=1").player(2)
    player.add(7)
    assert [view.plays for view in player.indices()] == [2, 2, 2]
    uneven = mb.policy("r + 1/n", start="prior-counts:plays=2:4,sum=1:2").player(2)
    with pytest.raises(mb.InputError, match="a number for each"):
        uneven.add(7)
    with pytest.raises(mb.InputError, match="table for 2 arms"):
        mb.policy("optimal").player(2, horizon=10).add(2)


def test_beyond_the_horizon_each_play_is_the_last():
    for policy in ("optimal", "gittins", "r + sqrt(ln(h))/n"):
        player = mb.policy(policy).player(2, horizon=6, rewards="binary")
        player.update_many([(0, 1), (1, 0)] * 5)
        assert player.select() == 0


def test_indices_explain_the_choice():
    player = mb.policy("ucb1").player(["a", "b"])
    player.update_many([("a", 1), ("a", 0), ("b", 1)])
    first, second = player.indices()
    assert first.index == pytest.approx(0.5 + math.sqrt(2 * math.log(3) / 2))
    assert second.index == pytest.approx(1 + math.sqrt(2 * math.log(3)))
    assert (first.mean, first.plays, first.deviation) == (0.5, 2, 0.5)
    assert "b     2.4823     1      1     0" in str(player)
    assert mb.policy("thompson").player(2).indices()[0].index is None


# Threads and start ---------------------------------------------------------------------------


def test_eight_threads_share_a_player():
    player = mb.policy("ucb1").player(5)

    def work(number):
        for count in range(12_500):
            if count % 50 == 0:
                player.select()
            player.update((number + count) % 5, count % 2)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    views = player.indices()
    assert player.plays == 100_000
    assert player.selections == 2000
    assert [view.rewarded for view in views] == [20_000] * 5
    assert all(view.mean == 0.5 for view in views)


def test_eight_threads_save_a_player(tmp_path):
    player = mb.policy("ucb1").player(5)

    def work():
        for _ in range(20):
            player.update(0, 1)
            player.save(tmp_path / "player.json")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mb.load_player(tmp_path / "player.json").plays == 160
    assert [item.name for item in tmp_path.iterdir()] == ["player.json"]


def test_play_needs_the_standard_library_only(tmp_path):
    path = tmp_path / "policy.json"
    mb.learn("power-1", TWO, 10, generations=1, measured=False, out=path)
    program = (
        "import sys\n"
        "import metabandit as mb\n"
        f"player = mb.load({str(path)!r}).player(arms=['red', 'green'], seed=1)\n"
        "player.update(player.select(), 1)\n"
        "player.indices()\n"
        f"player.save({str(tmp_path / 'player.json')!r})\n"
        f"mb.load_player({str(tmp_path / 'player.json')!r}).select()\n"
        "heavy = {'numpy', 'numba', 'scipy', 'rich', 'typer', 'matplotlib', 'cmaes'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_learned_policy_knows_what_it_is_for(tmp_path):
    path = tmp_path / "policy.json"
    mb.learn("power-1", TWO, 10, generations=1, measured=False, out=path)
    player = mb.load(path).player(2)
    assert player.horizon == 10
    with pytest.raises(mb.InputError, match="0 and 1"):
        player.update(0, 0.5)
    solved = mb.OptimalPolicy(TWO, 20)
    solved.save(tmp_path / "optimal.npz")
    player = mb.load(tmp_path / "optimal.npz").player(["a", "b"])
    player.update("b", 1)
    saved = player.save(tmp_path / "player.json")
    assert mb.load_player(saved).select() == "b"
    (tmp_path / "optimal.npz").unlink()
    assert mb.load_player(saved).select() == "b"


def test_nested_squares_take_no_longer_than_they_are_deep():
    deep = "(" * 45 + "r" + "/2)^2" * 45
    player = mb.policy(deep).player(2)
    for arm, reward in ((0, 1.0), (1, 0.0)):
        player.update(arm, reward)
    assert player.select() in (0, 1)
    shallow = mb.policy("((r - 2)^2)^2 + n^2").player(2)
    shallow.update(0, 1.0)
    shallow.update(1, 0.0)
    assert [view.index for view in shallow.indices()] == [2.0, 17.0]
    for language in ("python", "javascript", "c", "sql", "latex"):
        assert len(mb.export(deep, language)) < 20_000
