"""The adapters beside the libraries they are for, and what those libraries' own checks say."""

from __future__ import annotations

import copy
import logging
import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import metabandit as mb
from tests import naive

TWO = mb.Bernoulli(arms=2)
WHY = "the adapters' libraries are in the extra dev"
bandit = pytest.importorskip("river.bandit", reason=WHY)
gymnasium = pytest.importorskip("gymnasium", reason=WHY)
pytest.importorskip("mabwiser", reason=WHY)

from gymnasium.utils.env_checker import check_env  # noqa: E402
from mabwiser.mab import MAB, LearningPolicy  # noqa: E402
from mabwiser.simulator import Simulator  # noqa: E402
from river import checks, preprocessing, proba  # noqa: E402

import metabandit.adapters.mabwiser as for_mabwiser  # noqa: E402
from metabandit.adapters.gymnasium import BanditEnv, play_env  # noqa: E402
from metabandit.adapters.mabwiser import MABContestant, MetaMAB  # noqa: E402
from metabandit.adapters.river import RiverPolicy, evaluate_river  # noqa: E402
from metabandit.engine.external import EpisodeRewards  # noqa: E402
from metabandit.numerics import episode_seed  # noqa: E402


@pytest.mark.parametrize("library", ["river", "gymnasium", "mabwiser"])
def test_a_library_that_is_missing_is_named_with_the_way_to_install_it(library):
    code = f"""
import sys
sys.modules[{library!r}] = None
import metabandit as mb
try:
    import metabandit.adapters.{library} as adapter
    adapter.MetaMAB([0, 1], "ucb1").predict()  # needs no MABWiser
    adapter.register()
except mb.InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"pip install 'metabandit[{library}]'" in done.stdout


# Evaluation of what is not ours --------------------------------------------------------------


@pytest.mark.parametrize(
    "prior",
    [TWO, mb.Gaussian(arms=2), mb.BetaRewards(arms=2), mb.TruncatedGaussian(arms=2)],
    ids=lambda prior: prior.family.name,
)
def test_luck_is_that_of_the_naive_twin(prior):
    seed, episode = 5, 3
    parameters = prior.draw(np.random.default_rng(1), 1)[0]
    rewards = EpisodeRewards(prior.family, parameters, episode_seed(seed, episode))
    key = naive.episode_word(seed, episode, 0)
    for arm in range(2):
        word = naive.episode_word(seed, episode, 1 + arm)
        for pull in [70, 0, 1, 2, 40]:
            u = naive.unit(naive.draw_bits((word + pull * naive.WEYL) & naive.MASK32, key))
            expected = naive.quantile(prior.family.name, u, parameters[arm])
            assert rewards.reward(arm, pull) == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_our_policies_beside_are_evaluated_as_alone():
    def first(episode):
        return FixedArm(np.int64(0))

    result = mb.evaluate_external(first, TWO, 30, beside=["ucb1", "thompson"], episodes=50, seed=2)
    alone = mb.evaluate(["ucb1", "thompson"], TWO, 30, episodes=50, seed=2)
    assert [item.policy for item in result] == ["first", "ucb1", "thompson"]
    assert result.floor.regret == alone.floor.regret
    for name in ("ucb1", "thompson"):
        assert np.array_equal(result[name].problem_regret, alone[name].problem_regret)
        assert np.allclose(result[name].curve, alone[name].curve)
    means = TWO.draw(np.random.default_rng(np.random.SeedSequence((2, 0))), 8192)[:50, :, 0]
    assert np.allclose(result["first"].problem_regret, 30 * (means.max(axis=1) - means[:, 0]))
    ours = alone.difference("ucb1", "thompson")
    same = result.difference("ucb1", "thompson")
    assert (same.mean, same.standard_error) == pytest.approx((ours.mean, ours.standard_error))
    assert "to the best" in result.table()


class FixedArm:
    def __init__(self, arm):
        self.arm = arm

    def select(self):
        return self.arm

    def update(self, arm, reward):
        assert arm == self.arm


@pytest.mark.parametrize(
    ("contestants", "options", "words"),
    [
        (lambda episode: FixedArm(2), {}, "selected 2; there are 2 arms"),
        (lambda episode: FixedArm("0"), {}, "selected '0'"),
        ({}, {}, "a function that makes one"),
        ({"a": 3}, {}, "a name and a function"),
        (
            {"ucb1": lambda episode: FixedArm(0)},
            {"beside": "ucb1"},
            "two policies are called 'ucb1'",
        ),
        (lambda episode: FixedArm(0), {"episodes": 1}, "at least 2"),
    ],
)
def test_contestants_that_cannot_play_are_refused(contestants, options, words):
    with pytest.raises(mb.InputError, match=words):
        mb.evaluate_external(contestants, TWO, 5, **{"episodes": 2, **options})


@pytest.mark.parametrize("arms", [2, 4])
@pytest.mark.parametrize(
    "name", ["ucb1", "greedy", "r + 3/(n + 2)", "thompson", "eps_n-greedy", "uniform", "ucb2"]
)
def test_our_policy_through_river_makes_the_plays_of_the_simulator(name, arms):
    """Rewards are 0 and 1 and plays are few: no two indices are close but not equal."""
    prior = mb.Bernoulli(arms=arms)
    through, simulated = evaluate_river(
        [RiverPolicy(name, horizon=50), name], prior, 50, episodes=60, seed=7
    )
    assert np.array_equal(through.problem_plays, simulated.problem_plays)
    assert np.array_equal(through.problem_regret, simulated.problem_regret)
    if name != "uniform":
        assert through.simple_regret == pytest.approx(simulated.simple_regret)


def test_rewards_that_are_no_whole_numbers_lead_to_the_same_regret():
    """In float64 and float32 other choices are close calls only."""
    prior = mb.Gaussian(arms=3)
    result = evaluate_river([RiverPolicy("ucb1", prior=prior), "ucb1"], prior, 60, episodes=100)
    equal = (result[0].problem_plays == result[1].problem_plays).all(axis=0)
    assert equal.mean() > 0.95


def test_policies_of_river_have_the_regret_of_their_twins_here():
    pairs = {"UCB(delta=1)": "ucb1", "ThompsonSampling(reward_obj=Beta)": "thompson"}
    theirs = [bandit.UCB(delta=1), bandit.ThompsonSampling(proba.Beta())]
    result = evaluate_river([*theirs, *pairs.values()], TWO, 60, episodes=400, seed=1)
    assert [item.policy for item in result] == [*pairs, *pairs.values()]
    for name, twin in pairs.items():
        difference = result.difference(name, twin)
        assert abs(difference.mean) <= 3.0 * difference.standard_error
    # Only ties are broken by other luck.
    assert result.difference("UCB(delta=1)", "ucb1").standard_error < 0.05


def test_what_river_cannot_play_here_is_refused():
    with pytest.raises(mb.InputError, match="needs a context"):
        evaluate_river(bandit.LinUCBDisjoint(alpha=1), TWO, 10)
    with pytest.raises(mb.InputError, match="no policy of river"):
        evaluate_river("ucb1", TWO, 10)
    with pytest.raises(mb.InputError, match="was expected"):
        evaluate_river([3], TWO, 10)
    with pytest.raises(mb.InputError, match="two policies are UCB"):
        evaluate_river([bandit.UCB(1), bandit.UCB(1)], TWO, 10)
    named = {"a": bandit.UCB(1), "b": bandit.UCB(1)}
    assert [item.policy for item in evaluate_river(named, TWO, 10, episodes=3)] == ["a", "b"]


# River ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", list(RiverPolicy._unit_test_params()))
def test_it_passes_the_checks_of_river(parameters):
    checks.check_estimator(RiverPolicy(**parameters))
    names = {check.__name__ for check in checks.yield_checks(RiverPolicy(**parameters))}
    assert {
        "check_repr",
        "check_clone_is_idempotent",
        "check_clone_changes_memory_addresses",
    } <= names
    # The one that is left out is left out by river for its own policies, which have no tags.
    assert not hasattr(bandit.UCB(delta=1), "_tags")


def play(policy, plays, arms=(0, 1, 2), seed=0):
    """The arms pulled, with rewards that depend on the arm and the number of the play."""
    rng = np.random.default_rng(seed)
    pulled = []
    for _ in range(plays):
        arm = policy.pull(list(arms))
        policy.update(arm, bool(rng.random() < 0.3 + 0.1 * arms.index(arm)))
        pulled.append(arm)
    return pulled


@pytest.mark.parametrize(
    "name", ["ucb1", "thompson", "ucb2", mb.policy("eps_n-greedy"), mb.policy("r + 1/n")], ids=str
)
def test_a_copy_goes_on_and_a_clone_begins_anew(name):
    policy = RiverPolicy(name, seed=4)
    first = play(policy, 40)
    copies = [
        pickle.loads(pickle.dumps(policy)),
        copy.deepcopy(policy),
        policy.clone(include_attributes=True),
    ]
    fresh = policy.clone()
    rest = play(policy, 40, seed=1)
    assert all(play(other, 40, seed=1) == rest for other in copies)
    assert play(fresh, 40) == first == play(RiverPolicy(name, seed=4), 40)


def test_without_a_seed_each_policy_has_its_own_luck():
    pulled = {tuple(play(RiverPolicy("uniform"), 40)) for _ in range(3)}
    assert len(pulled) == 3


def test_ranking_and_table_are_those_of_river():
    policy = RiverPolicy("ucb1", seed=1, horizon=10)
    assert repr(policy) == "RiverPolicy(policy=ucb1, horizon=10)"
    play(policy, 50)
    means = {arm: policy._rewards[arm].get() for arm in (0, 1, 2)}
    assert policy.ranking == sorted(means, key=means.get, reverse=True)
    assert "Arm ID" in repr(policy)


def test_arms_may_come_and_go():
    policy = RiverPolicy("ucb1", seed=0)
    assert set(play(policy, 20, arms="ab")) == {"a", "b"}
    assert play(policy, 1, arms="abc") == ["c"]
    assert set(play(policy, 20, arms="bc")) == {"b", "c"}
    plays = {view.arm: view.rewarded for view in policy._player.player.indices()}
    play(policy, 20, arms="abc")
    after = {view.arm: view.rewarded for view in policy._player.player.indices()}
    assert sum(after.values()) == 61
    assert after["a"] >= plays["a"] > 0


def test_rewards_may_come_for_arms_that_were_never_pulled():
    policy = RiverPolicy("greedy", seed=0)
    for arm, reward in [("a", 0), ("b", 1), ("gone", 1)]:
        policy.update(arm, reward)
    assert policy.pull(["a", "b"]) == "b"
    policy.update("late", 1)
    assert policy.pull(["a", "b"]) == "b"
    policy.update("b", 0)
    assert policy.pull(["a", "b", "late"]) == "late"


def test_burn_in_and_scaler_are_those_of_river():
    policy = RiverPolicy("greedy", seed=0, burn_in=3)
    assert play(policy, 6, arms=(0, 1)) == [0, 0, 0, 1, 1, 1]
    scaled = RiverPolicy(
        "ucb1", rewards=(None, None), reward_scaler=preprocessing.TargetStandardScaler(None)
    )
    for reward in (100.0, 130.0, 90.0, 120.0):
        scaled.update(scaled.pull([0, 1]), reward)
    means = {view.arm: view.mean for view in scaled._player.player.indices()}
    assert means == pytest.approx({arm: scaled._rewards[arm].get() for arm in (0, 1)})
    assert all(abs(mean) < 3.0 for mean in means.values())


def test_a_reward_that_is_refused_changes_nothing():
    policy = RiverPolicy("ucb1", seed=0)
    policy.update(policy.pull([0, 1]), 1)
    for reward in (2.0, math.nan, "1"):
        with pytest.raises(mb.InputError, match="nothing was counted"):
            policy.update(0, reward)
    with pytest.raises(mb.InputError, match="one number"):
        policy.update(0, True, False)
    assert policy._n == sum(policy._counts.values()) == policy._player.player.plays == 1


# River's first versions register their environments with gym, before it was Gymnasium.
river_envs = pytest.mark.skipif(
    "river_bandits/KArmedTestbed-v0" not in gymnasium.registry,
    reason="the environments of this river are for the old gym",
)


@river_envs
def test_it_plays_the_environments_of_river():
    env = gymnasium.make("river_bandits/KArmedTestbed-v0", max_episode_steps=300)
    policies = [RiverPolicy("ucb1", rewards=(None, None), seed=1), bandit.RandomPolicy(seed=1)]
    trace = list(bandit.evaluate(policies, env, n_episodes=3, seed=1))
    assert len(trace) == 2 * 3 * 300
    total = [sum(row["reward"] for row in trace if row["policy_idx"] == k) for k in (0, 1)]
    # The best of ten arms has 1.54 more than their mean, and 900 rewards have a deviation of 30.
    assert total[0] - total[1] > 0.25 * 1.54 * 900
    candy = gymnasium.make("river_bandits/CandyCaneContest-v0", max_episode_steps=120)
    assert len(list(bandit.evaluate([RiverPolicy("thompson", seed=1)], candy, n_episodes=1))) == 120


@pytest.mark.parametrize("name", ["ucb1", "thompson", "ucb2"])
def test_a_log_is_replayed_until_every_arm_had_its_reward(name):
    rng = np.random.default_rng(0)
    arms = ["a", "b", "c", "d"]
    log = [
        (arms, None, arms[k], float(rng.random() < 0.2 * (1 + k))) for k in rng.integers(0, 4, 2000)
    ]
    policy = RiverPolicy(name, seed=1)
    total, used = bandit.evaluate_offline(policy, log)
    assert set(policy._counts) == set(arms)
    assert abs(used - 500) < 4 * math.sqrt(2000 * 3 / 16)
    assert total.get() / used > 0.6
    assert policy.ranking[0] == "d"


# Gymnasium -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prior",
    [
        mb.Bernoulli(arms=3),
        mb.TruncatedGaussian(arms=2, low=0.1, high=0.7),
        mb.BetaRewards(arms=2),
        mb.Table([[0.1, 0.2], [0.3, 0.4]]),
    ],
    ids=str,
)
def test_the_environment_passes_the_checks_of_gymnasium(prior):
    env = gymnasium.make("metabandit/Bandit-v0", prior=prior, horizon=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_an_episode_of_the_environment():
    env = gymnasium.make("metabandit.adapters.gymnasium:metabandit/Bandit-v0", arms=3, horizon=9)
    observation, info = env.reset(seed=3)
    assert observation["plays"].tolist() == [0, 0, 0]
    assert observation["left"] == [1.0]
    means = info["means"]
    rewards = [[], [], []]
    lost = 0.0
    for step in range(9):
        arm = step % 3 if step < 6 else 2
        observation, reward, terminated, truncated, info = env.step(arm)
        assert observation in env.observation_space
        rewards[arm].append(reward)
        lost += means.max() - means[arm]
        assert info["regret"] == means.max() - means[arm]
        assert (terminated, truncated) == (step == 8, False)
    assert info["total_regret"] == pytest.approx(lost)
    assert observation["plays"].tolist() == [2, 2, 5]
    assert observation["means"] == pytest.approx([np.mean(row) for row in rewards])
    assert observation["left"] == [0.0]
    with pytest.raises(mb.InputError, match="call reset"):
        env.step(0)


def test_a_seed_gives_the_same_problems_and_luck_whatever_is_played():
    env = BanditEnv(mb.Gaussian(arms=2), 6)
    pulls = {}
    for arms in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 1, 0, 1, 0, 1]):
        _, info = env.reset(seed=8)
        pulls.setdefault("means", []).append(tuple(info["means"]))
        rewards = [env.step(arm)[1] for arm in arms]
        for arm in (0, 1):
            mine = tuple(reward for reward, k in zip(rewards, arms, strict=True) if k == arm)
            pulls.setdefault(arm, []).append(mine)
    assert all(len(set(values)) == 1 for values in pulls.values())
    _, second = env.reset()
    assert tuple(second["means"]) != pulls["means"][0]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_environments_are_played_in_step(mode):
    prior = mb.Table([[0.1, 0.2], [0.3, 0.4]])
    envs = gymnasium.make_vec(
        "metabandit/Bandit-v0", num_envs=3, vectorization_mode=mode, prior=prior, horizon=4
    )
    observations, _ = envs.reset(seed=1)
    assert observations["plays"].shape == (3, 2)
    ended = [envs.step(np.array([0, 1, 1]))[2].tolist() for _ in range(4)]
    assert ended == [[False] * 3] * 3 + [[True] * 3]
    envs.close()


@pytest.mark.slow
def test_our_policy_has_the_same_regret_in_the_environment():
    prior = mb.Bernoulli(arms=3)
    played = play_env("ucb1", BanditEnv(prior, 40), episodes=500, seed=2)
    known = mb.evaluate("ucb1", prior, 40, episodes=50_000)[0]
    error = math.hypot(played.standard_error, known.standard_error)
    assert abs(played.mean_regret - known.mean_regret) < 3.0 * error
    again = play_env("ucb1", BanditEnv(prior, 40), episodes=20, seed=2)
    assert np.array_equal(again.regrets, played.regrets[:20])


@river_envs
def test_our_policy_plays_other_environments():
    env = gymnasium.make("river_bandits/KArmedTestbed-v0", max_episode_steps=50)
    played = play_env("ucb1", env, episodes=3, rewards=(None, None))
    assert played.regrets is None
    assert math.isnan(played.mean_regret)
    assert played.rewards.shape == (3,)
    with pytest.raises(mb.InputError, match="Discrete"):
        play_env("ucb1", gymnasium.make("Pendulum-v1"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"horizon": 0}, "at least 1"),
        ({"prior": "bernouli"}, "did you mean bernoulli"),
        ({"prior": TWO, "arms": 3}, "has 2 arms, not 3"),
        ({"render_mode": "human"}, "nothing to render"),
    ],
)
def test_environments_that_cannot_be_are_refused(settings, words):
    with pytest.raises(mb.InputError, match=words):
        BanditEnv(**{"prior": "bernoulli", "horizon": 5, **settings})


def test_a_copied_prior_has_the_same_family():
    for prior in (TWO, mb.Table([[0.1, 0.2]])):
        for other in (copy.deepcopy(prior), pickle.loads(pickle.dumps(prior))):
            assert other.family.binary


# MABWiser ------------------------------------------------------------------------------------


def past_decisions(plays=300):
    rng = np.random.default_rng(0)
    decisions = rng.integers(0, 3, plays)
    rewards = (rng.random(plays) < np.array([0.3, 0.5, 0.6])[decisions]).astype(int)
    return decisions, rewards


def both():
    return MetaMAB([0, 1, 2], "ucb1"), MAB([0, 1, 2], LearningPolicy.UCB1(alpha=1))


def test_the_same_calls_have_the_same_answers_as_those_of_mabwiser():
    pandas = pytest.importorskip("pandas", reason=WHY)
    decisions, rewards = past_decisions()
    answers = []
    for mab in both():
        mab.partial_fit(decisions[:50], rewards[:50])
        mab.fit(decisions[:100].tolist(), rewards[:100].tolist())
        mab.partial_fit(pandas.Series(decisions[100:200]), pandas.Series(rewards[100:200]))
        mab.partial_fit(decisions[200:], rewards[200:].astype(float))
        said = [mab.predict(), mab.predict([[1], [2]]), len(mab.predict_expectations([[1], [2]]))]
        before = mab.predict_expectations()
        mab.add_arm(3)
        said += [list(mab.arms), list(mab.cold_arms)]
        mab.partial_fit([3, 3], [1, 1])
        said += [mab.predict(), list(mab.cold_arms)]
        mab.remove_arm(3)
        said += [list(mab.arms), mab.predict()]
        for call in (
            lambda mab=mab: mab.add_arm(1),
            lambda mab=mab: mab.remove_arm(9),
            lambda mab=mab: mab.fit([0, 1], [1]),
            lambda mab=mab: mab.fit((0, 1), (1, 0)),
            lambda mab=mab: mab.fit([0, 1], [1, math.nan]),
            lambda mab=mab: mab.fit([0, 1], [1, 0], [[1], [2]]),
            lambda mab=mab: mab.add_arm(5, binarizer=lambda arm, reward: True),
        ):
            with pytest.raises((ValueError, TypeError, AttributeError)):
                call()
        answers.append((said, before))
    assert answers[0][0] == answers[1][0]
    assert answers[0][1] == pytest.approx(answers[1][1])


def test_a_mab_begins_from_nothing_and_plays_each_arm():
    mab = MetaMAB(["a", "b", "c"], "ucb1")
    chosen = []
    for _ in range(3):
        chosen.append(mab.predict())
        mab.partial_fit([chosen[-1]], [1])
    assert chosen == ["a", "b", "c"]
    mab.add_arm("d")
    assert mab.predict_expectations()["d"] == math.inf
    assert mab.predict() == mab.predict() == "d"
    assert repr(mab) == "MetaMAB(['a', 'b', 'c', 'd'], 'ucb1')"
    same = pickle.loads(pickle.dumps(mab))
    assert same.predict_expectations() == mab.predict_expectations()
    means = MetaMAB([0, 1], "thompson")
    means.fit([0, 0, 1], [1, 0, 1])
    assert means.predict_expectations() == {0: 0.5, 1: 1.0}


@pytest.mark.parametrize("batch", [0, 20], ids=["offline", "online"])
def test_the_simulator_of_mabwiser_runs_it(batch):
    for_mabwiser.register()
    decisions, rewards = past_decisions()
    ours, theirs = both()
    logger = logging.getLogger()
    before, level = logger.handlers[:], logger.level
    try:
        simulator = Simulator(
            [("ours", ours), ("theirs", theirs)], decisions, rewards, None,
            test_size=0.5, batch_size=batch, is_quick=True,
        )  # fmt: skip
        simulator.run()
    finally:
        # It logs to the screen from then on, whoever else logs.
        logger.handlers[:] = before
        logger.setLevel(level)
    predictions = simulator.bandit_to_predictions
    assert predictions["ours"] == predictions["theirs"]
    assert len(predictions["ours"]) == 150
    if not batch:
        expected = simulator.bandit_to_expectations
        assert expected["ours"] == pytest.approx(expected["theirs"])


def test_bandits_of_mabwiser_are_evaluated_beside_ours():
    def ucb1(episode):
        arms = list(range(episode.arms))
        return MABContestant(MAB(arms, LearningPolicy.UCB1(alpha=1), seed=episode.seed))

    result = mb.evaluate_external(ucb1, TWO, 30, beside="ucb1:C=2", episodes=60)
    difference = result.difference(0, 1)
    assert abs(difference.mean) <= 3.0 * difference.standard_error < 0.2


def test_rewards_that_are_refused_change_nothing():
    early = RiverPolicy("ucb1", seed=1)
    early.update("a", 1)
    early._player._early.append(("b", 7.0))  # as with a reward scaler
    with pytest.raises(mb.InputError, match="between 0 and 1"):
        early.pull(["a", "b"])
    early._player._early.pop()
    early.pull(["a", "b"])
    assert early._player.player.plays == 1
    with pytest.raises(mb.InputError, match="between 0 and 1"):
        early._player.update("c", 7.0)
    assert early._player.player.arms == ("a", "b")
    assert "c" not in early._player.player
