"""The state of a player: saved, loaded, and gone on with as if nothing had happened."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import signal
import threading
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit.journal import seal
from tests.forked import forked
from tests.tiers import some

TWO = mb.Bernoulli(arms=2)


class World:
    """Rewards that depend on how often an arm was played, whoever asks."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.pulls = {}

    def reward(self, arm) -> int:
        pull = self.pulls[arm] = self.pulls.get(arm, 0) + 1
        return random.Random(f"{self.seed} {arm} {pull}").random() < 0.3 + 0.1 * (arm == "b")


POLICIES = ["ucb1", "ucb2:alpha=0.1", "thompson", "eps_n-greedy", "uniform", "kl-ucb", "optimal"]


def run(player, world, plays, rng, late):
    """Select and reward in an order that `rng` makes; rewards that are still to come wait in `late`."""
    chosen = []
    for _ in range(plays):
        arm = player.select()
        chosen.append(arm)
        late.append((arm, world.reward(arm)))
        while late and rng.random() < 0.7:
            player.update(*late.pop(rng.randrange(len(late))))
    return chosen


@settings(deadline=None, max_examples=some(15, 60))
@given(
    name=st.sampled_from(POLICIES),
    before=st.integers(0, 60),
    after=st.integers(1, 60),
    seed=st.integers(0, 2**40),
    way=st.sampled_from(["file", "journal", "both", "compact"]),
)
def test_a_player_that_was_stopped_goes_on_as_if_it_had_not(
    tmp_path_factory, name, before, after, seed, way
):
    folder = tmp_path_factory.mktemp("player")
    arguments = {"arms": ["a", "b"], "seed": seed, "horizon": 100, "rewards": "binary"}
    results = []
    for stopped in (False, True):
        world, rng, late = World(seed), random.Random(seed), []
        journal = folder / "plays.jsonl" if stopped and way != "file" else None
        player = mb.policy(name).player(**arguments, journal=journal)
        chosen = run(player, world, before, rng, late)
        if stopped:
            if way == "file":
                player = mb.load_player(player.save(folder / "player.json"))
            elif way == "journal":
                player.close()
                player = mb.load_player(journal)
            else:
                if way == "compact":
                    player.compact()
                player.close()
                # As a service does at its start.
                player = mb.policy(name).player(**arguments, journal=journal)
        chosen += run(player, world, after, rng, late)
        player.close()
        results.append((chosen, player.to_dict()))
    assert results[0] == results[1]


def save_again_and_again(path, say):
    player = mb.policy("ucb1").player(arms=200, seed=5)
    say("ready")
    while True:
        player.update(0, 1)
        player.save(path)


def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "player.json"
    for round_ in range(5):
        with forked(save_again_and_again, path) as (process, said):
            said.readline()
            while not path.exists():
                pass
            threading.Event().wait(0.02 * round_)
            os.kill(process, signal.SIGKILL)
        assert mb.load_player(path).plays > 0


def test_nothing_else_is_overwritten_or_read(tmp_path):
    path = tmp_path / "notes.json"
    path.write_text("{}", "utf-8")
    player = mb.policy("ucb1").player(2)
    with pytest.raises(mb.InputError, match="is not a player's file"):
        player.save(path)
    with pytest.raises(mb.InputError, match="is not a player's file"):
        mb.load_player(path)
    journal = tmp_path / "notes.jsonl"
    for content in ("hello\n", "hello", "{}\n{}", '{"format"'):
        journal.write_text(content, "utf-8")
        with pytest.raises(mb.InputError, match=r"no journal|is not a player's file|no whole line"):
            mb.load_player(journal)
        if content != '{"format"':  # which may be the beginning of a journal
            with pytest.raises(mb.InputError, match=r"no journal|is not a player's file"):
                mb.policy("ucb1").player(2, journal=journal)
        assert journal.read_text("utf-8") == content
    with pytest.raises(mb.InputError, match="does not exist"):
        mb.load_player(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("version", 9, "version 9"),
        ("seed", "x", "seed"),
        ("arms", [], "no arm to select"),
        ("policy", {"kind": "catalogue", "name": "nobody", "parameters": {}}, "nobody"),
        ("rewards", "some", "rewards are"),
        ("surprise", 1, "surprise"),
        ("horizon", -5, "horizon"),
        ("seed", -1, "seed"),
        ("seed", 10**400, "seed"),
        ("begin", [10**400, 0, 0], "finite"),
        ("arms", [{"name": "a", "rewarded": 3}], "cannot be"),
        ("arms", [{"name": "a", "plays": 2, "total": -5}], "their sum cannot be"),
        ("arms", [{"name": "a"}, {"name": "a"}], "twice"),
    ],
)
def test_damage_is_named(tmp_path, key, value, word):
    path = mb.policy("ucb1").player(2).save(tmp_path / "player.json")
    content = json.loads(path.read_text("utf-8")) | {key: value}
    del content["check"]
    path.write_text(seal(json.dumps(content))[0], "utf-8")
    with pytest.raises(mb.InputError, match=word):
        mb.load_player(path)


def test_a_table_that_was_replaced_is_solved_anew(tmp_path):
    path = tmp_path / "optimal.npz"
    journal = tmp_path / "plays.jsonl"
    solved = mb.OptimalPolicy(TWO, 20)
    player = solved.player(["a", "b"], journal=journal)
    player.close()
    solved.save(path)
    # Where it was saved does not make it another policy.
    player = mb.load(path).player(["a", "b"], journal=journal)
    player.update("a", 1)
    saved = player.save(tmp_path / "player.json")
    path.unlink()
    mb.OptimalPolicy(mb.Bernoulli(arms=2, alpha=9), 5).save(path)
    again = mb.load_player(saved)
    assert again._rule.decision.horizon == 20
    assert again._rule.decision.means == ((1.0, 1.0), (1.0, 1.0))


def test_links_and_modes_are_kept(tmp_path):
    (tmp_path / "real").mkdir()
    for name in ("plays.jsonl", "player.json"):
        link = tmp_path / name
        link.symlink_to(tmp_path / "real" / name)
        player = mb.policy("ucb1").player(2, journal=link if "plays" in name else None)
        player.update(0, 1)
        save = player.compact if "plays" in name else partial(player.save, link)
        save()
        (tmp_path / "real" / name).chmod(0o600)
        save()
        player.close()
        assert link.is_symlink()
        assert (tmp_path / "real" / name).stat().st_mode & 0o777 == 0o600
        assert mb.load_player(link).plays == 1


def test_state_is_a_copy_and_players_are_not_copied():
    player = mb.policy("ucb2:alpha=0.9").player(2)
    player.update_many([(0, 1), (1, 0)])
    for _ in range(30):
        player.select()
    state = json.dumps(kept := player.to_dict())
    player.select()
    assert json.dumps(kept) == state
    for copy_ in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(mb.InputError, match="cannot be copied"):
            copy_(player)


def test_an_arm_whose_rewards_are_lost_is_judged_by_the_mean_of_all():
    player = mb.policy("ucb1:C=0.2").player(["a", "b", "c"])
    chosen = []
    for _ in range(500):
        chosen.append(player.select())
        if chosen[-1] != "c":
            player.update(chosen[-1], 1)
    assert 160 <= chosen.count("c") <= 170  # all arms look alike


def test_an_arm_that_nothing_is_known_of_is_refused():
    uneven = mb.policy("gittins").player(2, horizon=20, prior="bernoulli:alpha=1:2,beta=1")
    with pytest.raises(mb.InputError, match="nothing is known of another arm"):
        uneven.add("c")
    uneven.select()
