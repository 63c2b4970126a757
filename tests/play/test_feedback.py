"""Live play while rewards are on their way: batches, counts, new arms, shares, journals."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

import metabandit as mb
from metabandit.engine.external import EpisodeRewards
from metabandit.engine.problems import draw_problems
from metabandit.numerics import episode_seed

pytestmark = pytest.mark.usefixtures("short_reports")

FOUR = ["a", "b", "c", "d"]


def test_a_batch_is_selections_one_after_the_other():
    for name in ("ucb1", "thompson", "kl-ucb+", "ucb2:alpha=0.3", "eps_n-greedy", "r + w/(n + 1)"):
        one, other = (mb.policy(name).player(FOUR, seed=4) for _ in range(2))
        for _ in range(3):
            batch = one.select(60)
            each = Counter(other.select() for _ in range(60))
            assert batch == {arm: each[arm] for arm in FOUR}
            for player in (one, other):
                for place, arm in enumerate(FOUR):
                    if batch[arm]:
                        player.update(
                            arm, plays=batch[arm], total=min(place, batch[arm]), squares=place
                        )
        assert one.to_dict() == other.to_dict()


def test_arms_without_rewards_get_their_part():
    """After 20 rewards of one arm, and for an arm that is added to a running test."""
    player = mb.policy("ucb1:C=0.2").player(FOUR)
    player.update("a", plays=20, total=5, squares=5)
    assert player.select(500) == {"a": 125, "b": 125, "c": 125, "d": 125}
    running = mb.policy("ucb1:C=0.2").player(FOUR)
    for arm in FOUR:
        running.update(arm, plays=1000, total=300, squares=300)
    running.add("e")
    assert running.select(500)["e"] > 100


def test_counts_are_rewards():
    rng = np.random.default_rng(3)
    one, by_one = (mb.policy("ucb-v").player(2, rewards=(None, None)) for _ in range(2))
    for _ in range(4):
        for arm in (0, 1):
            values = rng.normal(arm, 2.0, 30)
            one.update(arm, plays=30, total=values.sum(), squares=(values**2).sum())
            by_one.update_many([(arm, value) for value in values])
    for view, other in zip(one.indices(), by_one.indices(), strict=True):
        assert view.mean == pytest.approx(other.mean, rel=1e-12)
        assert view.deviation == pytest.approx(other.deviation, rel=1e-9)
        assert (view.plays, view.rewarded) == (other.plays, other.rewarded)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"plays": 10}, "plays= and total= together"),
        ({"plays": 0, "total": 1}, "0 plays have the sum 0, not 1"),
        ({"plays": -1, "total": 0}, "at least 0, not -1"),
        ({"plays": 10, "total": 11}, "their sum cannot be 11"),
        ({"plays": 10, "total": 2.5}, "a whole number, not 2.5"),
        ({"plays": 10, "total": 3, "squares": 2}, "sum of squares"),
        ({"plays": 10, "total": 3, "reward": 1}, "not both"),
    ],
)
def test_counts_that_cannot_be(counts, message):
    player = mb.policy("optimal").player(2, horizon=50, rewards="binary")
    before = player.to_dict()
    with pytest.raises(mb.InputError, match=message):
        player.update(0, **counts)
    assert player.to_dict() == before
    real = mb.policy("ucb1").player(2)
    with pytest.raises(mb.InputError, match="squares="):
        real.update(0, plays=10, total=3)


def test_an_arm_without_plays_has_nothing_to_count(tmp_path):
    player = mb.policy("r + 1/n").player(["a", "b"], rewards="binary", journal=tmp_path / "j.jsonl")
    for arm, plays in player.select(10).items():
        player.update(arm, plays=plays, total=0)
    size, before = (tmp_path / "j.jsonl").stat().st_size, player.to_dict()
    player.update("b", plays=0, total=0)
    player.update_many({"a": (0, 0), "b": (0, 0.0, 0)})
    assert player.to_dict() == before
    assert (tmp_path / "j.jsonl").stat().st_size == size
    with pytest.raises(mb.InputError, match="no arm 'c'"):
        player.update_many({"c": (0, 0)})
    player.close()


def test_batches_of_a_journal_are_played_again(tmp_path):
    for name in ("ucb2:alpha=0.3", "thompson"):
        path = tmp_path / f"{name[:4]}.jsonl"
        player = mb.policy(name).player(FOUR, seed=2, journal=path, min_share=0.02)
        player.select(40)
        player.update("a", plays=10, total=2, squares=2)
        player.select(15)
        player.cancel("b")
        state = player.to_dict()
        player.close()
        again = mb.policy(name).player(FOUR, seed=2, journal=path, min_share=0.02)
        assert again.to_dict() == state
        again.close()
        with pytest.raises(mb.InputError, match="another minimum share"):
            mb.policy(name).player(FOUR, seed=2, journal=path)
        kept = json.loads(path.read_text().splitlines()[0])
        assert kept["min_share"] == 0.02


def test_an_arm_that_leaves_no_room_for_the_shares_is_refused():
    player = mb.policy("ucb1").player(["a", "b"], min_share=0.5)
    with pytest.raises(
        mb.InputError, match=r"3 arms cannot each keep a share of 0\.5; retire another"
    ):
        player.add("c")
    player.retire("a")
    player.add("c")
    assert player.probabilities() == {"b": 0.5, "c": 0.5}
    with pytest.raises(mb.InputError, match="3 arms cannot each keep"):
        player.add("a")


def test_shares_of_a_player():
    player = mb.policy("greedy").player(2, seed=8, min_share=0.2)
    player.update_many([(0, 1.0), (1, 0.0)])
    chosen = Counter(player.select() for _ in range(2000))
    # The better arm has 0.8: 1,600 with a deviation of 18.
    assert abs(chosen[0] - 1600) < 4 * 18
    with pytest.raises(mb.InputError, match="3 arms cannot each keep a share"):
        mb.policy("greedy").player(3, min_share=0.4)


@pytest.mark.parametrize("name", ["kl-ucb+", "thompson", "r + 0.1/(n + 1)"])
def test_live_batches_reproduce_the_evaluator(name):
    """The same problems, rewards and seeds: the same regret, episode by episode."""
    prior, feedback, seed = mb.Bernoulli(arms=4, alpha=3, beta=20), mb.Feedback(batch=50), 5
    policy = mb.policy(name, start=None if "kl" in name or name == "thompson" else "prior-counts")
    found = mb.evaluate(
        policy, prior, 300, feedback=feedback, episodes=12, seed=seed, keep_plays=True
    )
    plays = found[0].problem_plays
    same = 0
    for number, parameters in enumerate(draw_problems(prior, seed, 12)):
        own = episode_seed(seed, number)
        rewards = EpisodeRewards(prior.family, parameters, own)
        player = policy.player(4, seed=own, horizon=300, prior=prior)
        pulls = [0] * 4
        for _ in range(6):
            for arm, count in player.select(50).items():
                if count:
                    wins = sum(rewards.reward(arm, pulls[arm] + pull) for pull in range(count))
                    pulls[arm] += count
                    player.update(arm, plays=count, total=wins)
        same += pulls == plays[:, number].tolist()
    assert same >= 11  # float32 and float64 may differ in a tie


def test_other_libraries_get_their_rewards_late():
    """A player of ours as a contestant plays as in the simulator."""
    prior = mb.Bernoulli(arms=3)
    for feedback in (mb.Feedback(batch=7), mb.Feedback(delay="geometric:mean=4", min_share=0.05)):

        def make(episode, share=feedback.min_share):
            return mb.policy("ucb1-tuned").player(3, seed=episode.seed, min_share=share)

        found = mb.evaluate_external(
            {"ours": make},
            prior,
            40,
            beside="ucb1-tuned",
            episodes=30,
            feedback=feedback,
        )
        assert found.feedback == feedback
        assert np.allclose(found["ours"].problem_regret, found["ucb1-tuned"].problem_regret)


def test_a_learned_policy_keeps_its_feedback(tmp_path):
    path = tmp_path / "p.json"
    feedback = mb.Feedback(batch=5, min_share=0.1, pending="ignore")
    learned = mb.learn(
        "r + a/(n + b)", mb.Bernoulli(arms=2), 20, feedback=feedback, generations=3, out=path
    )
    assert learned.comparison.feedback == feedback
    policy = mb.load(path)
    assert policy.learned.feedback == feedback
    player = policy.player(2)
    assert (player.terms.min_share, player.terms.pending) == (0.1, "ignore")
    said = []
    mb.evaluate(policy, mb.Bernoulli(arms=2), 20, announce=said.append)
    assert any("learned for feedback batches of 5" in text for text in said)
    said.clear()
    mb.evaluate(policy, mb.Bernoulli(arms=2), 20, feedback=feedback, announce=said.append)
    assert not any("learned for" in text for text in said)


def test_a_policy_learned_for_another_prior_or_horizon_says_so(tmp_path):
    path = tmp_path / "p.json"
    mb.learn("r + a/(n + b)", mb.Bernoulli(arms=2), 20, generations=3, measured=False, out=path)
    said = []
    mb.evaluate(path, mb.Bernoulli(arms=3, alpha=2), 30, episodes=100, announce=said.append)
    (note,) = [text for text in said if text.startswith("note: ")]
    assert "learned for 2 arms, 20 plays, the prior bernoulli:alpha=1,beta=1, and" in note
    assert "with 3 arms, 30 plays, the prior bernoulli:alpha=2,beta=1; " in note


def test_a_player_of_a_policy_learned_for_something_else_says_so(tmp_path, recwarn):
    path = tmp_path / "p.json"
    mb.learn("r + a/(n + b)", mb.Bernoulli(arms=2), 20, generations=1, measured=False, out=path)
    policy = mb.load(path)
    policy.player(2)
    policy.player(["a", "b"], horizon=20, prior="bernoulli")
    assert not recwarn.list
    for given, words in (
        ({"arms": 3}, "learned for 2 arms, and plays with 3 arms; a policy"),
        ({"arms": 2, "horizon": 30}, "learned for 20 plays, and plays with 30 plays; "),
        ({"arms": 2, "prior": "bernoulli:alpha=2"}, "=1,beta=1, and plays with the prior bern"),
    ):
        with pytest.warns(UserWarning, match=words) as caught:
            policy.player(**given)
        assert caught[0].filename == __file__
    log = [(arm, 1) for arm in "abc" * 100]
    found = mb.replay(log, path, horizon=10)
    assert [
        note for note in found.warnings() if "2 arms, 20 plays, and plays with 3 arms, 10" in note
    ]


def test_replay_with_late_rewards():
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 2, 6000)
    log = [(int(arm), float(rng.random() < (0.2, 0.7)[arm])) for arm in arms]
    at_once = mb.replay(log, "ucb1-tuned", horizon=60)
    late = mb.replay(log, "ucb1-tuned", horizon=60, feedback=mb.Feedback(batch=30))
    assert late.policies[0].reward < at_once.policies[0].reward
    assert late.to_dict()["feedback"]["batch"] == 30
