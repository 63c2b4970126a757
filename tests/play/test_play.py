"""Live play: the same plays as the naive twin, state that survives, and what is refused."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit import journal as lines
from metabandit.policies import CATALOGUE
from metabandit.policies.power import power_tree, weight_names
from tests import naive
from tests.kernels.test_simulator import naive_choice

TWO = mb.Bernoulli(arms=2)


def random_power(degree: int, v1: str) -> mb.IndexPolicy:
    rng = np.random.default_rng(degree)
    weights = {name: float(rng.normal()) for name in weight_names(degree)}
    return mb.IndexPolicy(
        power_tree(degree, v1), parameters=weights, start="prior-counts:plays=2,sum=1,squares=1"
    )


# What is played besides the catalogue, which is played whole.
OTHERS = {
    "formula": mb.policy("r + 3/(n + 2)"),
    "formula with h": mb.policy("r + sqrt(ln(h + 1))/(n + 1)*s"),
    "begun with counts": mb.policy("ucb1:C=0.2", start="prior-counts:plays=2,sum=1"),
    "power-1": random_power(1, "h"),
    "power-2": random_power(2, "t"),
    "ucb2:alpha=0.03": mb.policy("ucb2:alpha=0.03"),
    "ucb2:alpha=0.3": mb.policy("ucb2:alpha=0.3"),
}
# The tables of these grow with the cube of the horizon: they make their 10,000 plays in parts.
SHORT = {"gittins": 100, "optimal": 250}
PLAYS = 10_000


def twin_choice(policy, prior, horizon):
    """The twin's rule, with the player's idea of a tie."""
    if isinstance(policy, mb.IndexPolicy) and len(policy.trees) == 1:
        return partial(naive.index_choice, tree=policy.bound, tie=1e-9)
    if policy.name == "thompson" and not prior.family.in_unit_interval:
        return partial(naive.thompson_gaussian_choice, sigma=1.0)
    return naive_choice(policy, prior, horizon)


def play_both(policy, choose, prior, horizon, seed):
    """The plays of a player and of the twin, against the same problem and luck."""
    player = policy.player(prior.arms, seed=seed, horizon=horizon, prior=prior)
    plan = policy.plan(prior, horizon)
    problem = prior.draw(np.random.default_rng(seed), 1)[0]
    expected = naive.play_episode(
        choose, plan.each_once, plan.counts, prior.family.name, problem, horizon, seed, 0
    )
    made = []
    key = naive.episode_word(seed, 0, 0)
    words = [naive.episode_word(seed, 0, 1 + arm) for arm in range(prior.arms)]
    pulls = [0] * prior.arms
    for _ in range(horizon):
        arm = player.select()
        word = (words[arm] + pulls[arm] * naive.WEYL) & naive.MASK32
        uniform = naive.unit(naive.draw_bits(word, key))
        player.update(arm, naive.quantile(prior.family.name, uniform, problem[arm]))
        pulls[arm] += 1
        made.append(arm)
    return made, expected


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "optimal" else [pytest.mark.slow])
        for name in [*CATALOGUE, *OTHERS]
    ],
)
def test_ten_thousand_plays_are_those_of_the_twin(name):
    """Of each policy of the catalogue; two thousand of the others."""
    policy = OTHERS.get(name) or mb.policy(name)
    plays = PLAYS if name in CATALOGUE else PLAYS // 5
    horizon = SHORT.get(name, plays)
    choose = twin_choice(policy, TWO, horizon)
    for seed in range(math.ceil(plays / horizon)):
        made, expected = play_both(policy, choose, TWO, horizon, seed)
        assert made == expected


@pytest.mark.parametrize("name", [name for name in [*CATALOGUE, *OTHERS] if name != "optimal"])
@pytest.mark.parametrize(
    "prior",
    [mb.Bernoulli(arms=5), mb.BetaRewards(arms=3, concentration=4.0), mb.Gaussian(arms=3)],
    ids=str,
)
def test_plays_are_those_of_the_twin_on_other_problems(name, prior):
    policy = OTHERS.get(name) or mb.policy(name)
    try:
        policy.check(prior, 200)
    except mb.InputError:
        with pytest.raises(mb.InputError):
            policy.player(prior.arms, horizon=200, prior=prior)
        return
    if name == "gittins" and not prior.family.binary:
        return  # the twin reads whole sums only
    choose = twin_choice(policy, prior, 200)
    for seed in (3, 4):
        made, expected = play_both(policy, choose, prior, 200, seed)
        assert made == expected


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


# What is refused -----------------------------------------------------------------------------


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
        ("optimal", {"arms": 3, "horizon": 9}, "2 arms"),
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


# State that survives -------------------------------------------------------------------------


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


@settings(deadline=None, max_examples=60)
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


SERVICE = """
import sys
import metabandit as mb
player = mb.policy("ucb1-tuned").player(arms=3, seed=5, journal=sys.argv[1])
print("begin", player.plays, flush=True)
for _ in range(1000):
    arm = player.select()
    player.update(arm, arm == 1)
    print(player.plays, flush=True)
"""


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path):
    journal = tmp_path / "plays.jsonl"
    rng = random.Random(1)
    acknowledged = 0
    for _ in range(20):
        command = [sys.executable, "-c", SERVICE, str(journal)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = process.stdout.readline().split()
            assert first[0] == "begin"
            # One more than was acknowledged may have been written.
            assert acknowledged <= int(first[1]) <= acknowledged + 1
            acknowledged = int(first[1])
            for _ in range(rng.randrange(60)):
                acknowledged = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().split("\n")
            whole = [line for line in rest[:-1] if line]
            acknowledged = int(whole[-1]) if whole else acknowledged
    player = mb.load_player(journal)
    assert acknowledged <= player.plays <= acknowledged + 1
    # What is in the journal is one play after the other, none lost and none twice.
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    rewards = [line for line in lines[1:] if line[0] == "update"]
    assert len(rewards) == player.plays
    assert all(reward == (arm == 1) for _, arm, reward in rewards)
    assert [item.name for item in tmp_path.iterdir()] == ["plays.jsonl"]


SAVER = """
import sys
import metabandit as mb
player = mb.policy("ucb1").player(arms=200, seed=5)
print("ready", flush=True)
while True:
    player.update(0, 1)
    player.save(sys.argv[1])
"""


def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "player.json"
    for round_ in range(5):
        command = [sys.executable, "-c", SAVER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            while not path.exists():
                pass
            threading.Event().wait(0.02 * round_)
            process.send_signal(signal.SIGKILL)
        assert mb.load_player(path).plays > 0


def test_half_a_line_at_the_end_is_dropped(tmp_path):
    journal = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=journal)
    player.update(0, 1)
    player.close()
    with journal.open("ab") as file:
        file.write(b'["update", 0, ')
    player = mb.load_player(journal)
    assert player.plays == 1
    player.update(1, 1)
    player.close()
    player = mb.load_player(journal)
    assert [view.rewarded for view in player.indices()] == [1, 1]
    player.close()
    with pytest.raises(mb.InputError, match="is closed"):
        player.update(1, 1)


def test_a_journal_that_cannot_be_written_refuses_the_reward(tmp_path):
    journal = tmp_path / "plays.jsonl"
    player = mb.policy("ucb2").player(2, journal=journal)
    player.update_many([(0, 1), (1, 1)])
    state = player.to_dict()
    full = os.open("/dev/full", os.O_WRONLY)
    kept = os.dup(player._journal.file.fileno())
    os.dup2(full, player._journal.file.fileno())
    for refused in (player.select, partial(player.update, 0, 1), partial(player.retire, 0)):
        with pytest.raises(mb.InputError, match="cannot be written"):
            refused()
        player._journal.length = None
    os.dup2(kept, player._journal.file.fileno())
    os.close(kept)
    os.close(full)
    assert player.to_dict() == state
    player.update(0, 1)
    player.close()
    assert mb.load_player(journal).plays == 3


def test_one_writer_a_journal(tmp_path):
    journal = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=journal)
    for _ in range(2):
        with pytest.raises(mb.InputError, match="another run is writing"):
            mb.load_player(journal)
        player.compact()
    player.close()
    mb.load_player(journal).close()


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"policy": "ucb1:C=1"}, "another policy"),
        ({"seed": 1}, "another seed"),
        ({"arms": 3}, "other arms"),
        ({"horizon": 7}, "another horizon"),
        ({"rewards": "binary"}, "other rewards"),
    ],
)
def test_a_journal_is_gone_on_with_by_the_same_player_only(tmp_path, changed, word):
    journal = tmp_path / "plays.jsonl"
    mb.policy("ucb1").player(2, journal=journal).close()
    before = journal.read_bytes()
    arguments = {"policy": "ucb1", "arms": 2} | changed
    policy = mb.policy(arguments.pop("policy"))
    with pytest.raises(mb.InputError, match=word):
        policy.player(**arguments, journal=journal)
    assert journal.read_bytes() == before


def test_a_long_journal_is_made_short_when_it_is_opened(tmp_path):
    journal = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=journal)
    for _ in range(10_001):
        player.select()
    player.update_many([(0, 1)] * 5)
    state = player.to_dict()
    player.close()
    player = mb.load_player(journal)
    assert player.to_dict() == state
    assert len(journal.read_text("utf-8").splitlines()) == 1


def test_nothing_else_is_overwritten_or_read(tmp_path):
    path = tmp_path / "notes.json"
    path.write_text("{}", "utf-8")
    player = mb.policy("ucb1").player(2)
    with pytest.raises(mb.InputError, match="is no player's file"):
        player.save(path)
    with pytest.raises(mb.InputError, match="is no player's file"):
        mb.load_player(path)
    journal = tmp_path / "notes.jsonl"
    for content in ("hello\n", "hello", "{}\n{}", '{"format"'):
        journal.write_text(content, "utf-8")
        with pytest.raises(mb.InputError, match=r"no journal|is no player's file|no whole line"):
            mb.load_player(journal)
        if content != '{"format"':  # which may be the beginning of a journal
            with pytest.raises(mb.InputError, match=r"no journal|is no player's file"):
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
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(mb.InputError, match=word):
        mb.load_player(path)


def test_any_prior_leaves_a_journal_that_can_be_opened(tmp_path):
    class Own(mb.Prior):
        family, arms = mb.BERNOULLI, 2

        def draw(self, rng, problems):
            return rng.random((problems, 2, 1))

    past = tmp_path / "past.csv"
    past.write_text("0.1,0.2\n0.3,0.1\n", "utf-8")
    priors = (mb.Table([[0.1, 0.2], [0.3, 0.1]]), mb.prior(f"table:path={past}"), Own(), TWO, None)
    for name in ("thompson", "ucb2", "gittins", "ucb1"):
        for number, prior in enumerate(priors):
            journal = tmp_path / f"{name}{number}.jsonl"
            arguments = {"prior": prior, "horizon": 20, "rewards": "binary", "journal": journal}
            for plays in range(3):
                player = mb.policy(name).player(2, **arguments)
                assert player.plays == plays
                player.update(0, 1)
                player.close()
            player = mb.load_player(journal)
            player.select()
            player.close()


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


def reopened(tmp_path, policy, told, **arguments):
    """A player that was told rewards, compacted, closed and opened again."""
    journal = tmp_path / "plays.jsonl"
    player = policy.player(2, journal=journal, **arguments)
    player.update_many(told)
    state = player.to_dict()
    player.compact()
    player.close()
    again = mb.load_player(journal)
    again.close()
    assert again.to_dict() == state
    journal.unlink()


def test_sums_with_rounding_can_be_loaded(tmp_path):
    ucb1 = mb.policy("ucb1")
    reopened(tmp_path, ucb1, [(0, 1e9 / 3)] * 50, rewards=(0, 1e9 / 3))
    reopened(tmp_path, ucb1, [(0, 4999.99)] * 100_000, rewards=(0, 4999.99))
    reopened(tmp_path, ucb1, [(0, 1e149), (0, -1e149), (1, 0)], rewards=(None, None))
    for plays in (0.2, 1.2):
        begun = mb.policy("r + 1/n", start=f"prior-counts:plays={plays},sum={0.11 * plays}")
        reopened(tmp_path, begun, [(0, 0.11)])
    with pytest.raises(mb.InputError, match="at most 1e"):
        ucb1.player(2, rewards=(None, None)).update(0, 1e160)


def test_a_forked_process_cannot_write_the_journal(tmp_path):
    journal = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=journal)
    player.update(0, 1)
    child = os.fork()
    if not child:
        refused = 0
        for operation in (player.select, partial(player.update, 0, 1), player.compact):
            try:
                operation()
            except mb.InputError as error:
                refused += "forked" in str(error)
        player.close()
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    player.update(1, 1)
    player.close()
    assert mb.load_player(journal).plays == 2


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_in_the_journal_undoes_the_operation(tmp_path, monkeypatch, after):
    path = tmp_path / "plays.jsonl"
    player = mb.policy("ucb2:alpha=0.5").player(2, journal=path)
    player.update_many([(0, 1), (1, 1)])
    real = lines._write

    def interrupted(*given, **named):
        if after:
            real(*given, **named)
        raise KeyboardInterrupt

    for operation in (player.select, partial(player.update, 0, 1)) * 2:
        state = player.to_dict()
        monkeypatch.setattr(lines, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            operation()
        assert player.to_dict() == state
        monkeypatch.setattr(lines, "_write", real)
        player.select()
    monkeypatch.setattr(lines, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        player.update(0, 1)
    state = player.to_dict()
    player.close()
    again = mb.load_player(path)
    assert again.to_dict() == state


def test_a_failed_sync_does_not_count_after_a_restart(tmp_path, monkeypatch):
    path = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=path)
    with monkeypatch.context() as patch:
        patch.setattr(
            os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(5, "I/O error"))
        )
        with pytest.raises(mb.InputError, match="I/O error"):
            player.update(0, 1)
    player.close()
    assert mb.load_player(path).plays == 0


def test_a_closed_player_leaves_the_journal_alone(tmp_path):
    path = tmp_path / "plays.jsonl"
    first = mb.policy("ucb1").player(2, journal=path)
    first.update(0, 1)
    first.close()
    second = mb.load_player(path)
    second.update(1, 1)
    with pytest.raises(mb.InputError, match="is closed"):
        first.compact()
    second.close()
    assert mb.load_player(path).plays == 2


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


def test_a_journal_that_cannot_be_made_short_is_opened_all_the_same(tmp_path, monkeypatch):
    path = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=path)
    for _ in range(10_001):
        player.select()
    player.close()

    def full(*given, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lines, "_write", full)
    player = mb.load_player(path)
    assert player.selections == 10_001
    player.close()
    assert [item.name for item in tmp_path.iterdir()] == ["plays.jsonl"]


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


def test_an_arm_whose_first_reward_is_lost_comes_round_again():
    player = mb.policy("ucb1:C=0.2").player(["a", "b", "c"])
    chosen = []
    for _ in range(500):
        chosen.append(player.select())
        if chosen[-1] != "c":
            player.update(chosen[-1], 1)
    assert 3 <= chosen.count("c") <= 6


def test_an_arm_that_nothing_is_known_of_is_refused():
    uneven = mb.policy("gittins").player(2, horizon=20, prior="bernoulli:alpha=1:2,beta=1")
    with pytest.raises(mb.InputError, match="nothing is known of another arm"):
        uneven.add("c")
    uneven.select()


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
