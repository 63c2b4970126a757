"""What people do today: an equal split, and A/B tests with a winner; against closed forms and twins."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.stats

import metabandit as mb
from metabandit.engine.exact import Exact
from metabandit.engine.simulated import Sampling, Simulation
from metabandit.feedback import Feedback
from tests import naive
from tests.engine.test_feedback import simulated
from tests.naive import feedback as twin

TWO = mb.Bernoulli(arms=2)
UNLIKE = mb.Bernoulli(alpha=[1, 3], beta=[2, 4])
LOW = mb.prior("bernoulli:low=0.01,high=0.06")


def regret(policy, prior, horizon):
    plan = mb.policy(policy).plan(prior, horizon)
    return Exact(prior, horizon).evaluate(plan, [horizon]).mean_regret


def regret_of_test(prior, plays, horizon):
    """A test of `plays` plays per arm, then the winner: beta-binomial counts and posterior means."""
    (a1, b1), (a2, b2) = zip(prior.alpha, prior.beta, strict=True)
    s = np.arange(plays + 1)
    chance = np.outer(
        scipy.stats.betabinom.pmf(s, plays, a1, b1), scipy.stats.betabinom.pmf(s, plays, a2, b2)
    )
    first = ((a1 + s) / (a1 + b1 + plays))[:, None]
    second = ((a2 + s) / (a2 + b2 + plays))[None, :]
    wins = np.sign(s[:, None] - s[None, :])
    winner = np.where(wins > 0, first, np.where(wins < 0, second, (first + second) / 2))
    reward = plays * (a1 / (a1 + b1) + a2 / (a2 + b2))
    reward += (horizon - 2 * plays) * (chance * winner).sum()
    return horizon * prior.expected_best() - reward


@pytest.mark.parametrize("prior", [TWO, LOW, UNLIKE], ids=str)
@pytest.mark.parametrize("horizon", [2, 40, 200])
def test_split_is_its_closed_form(prior, horizon):
    mean = np.mean(np.array(prior.alpha) / np.add(prior.alpha, prior.beta))
    expected = horizon * (prior.expected_best() - mean)
    assert regret("split", prior, horizon) == pytest.approx(expected, rel=1e-9)


def test_split_of_two_uniform_arms_loses_a_sixth_of_the_plays():
    """The best of two uniform means is 2/3, any is 1/2; also after an odd number of plays."""
    for horizon in (60, 61):
        assert regret("split", TWO, horizon) == pytest.approx(horizon / 6, rel=1e-9)


@pytest.mark.parametrize("prior", [TWO, LOW, UNLIKE], ids=str)
@pytest.mark.parametrize(
    ("horizon", "share", "plays"), [(50, 0.2, 5), (200, 0.1, 10), (201, 0.3, 31), (30, 0.99, 15)]
)
def test_split_then_winner_is_its_closed_form(prior, horizon, share, plays):
    expected = regret_of_test(prior, plays, horizon)
    found = regret(f"split-then-winner:share={share}", prior, horizon)
    assert found == pytest.approx(expected, rel=1e-9)


def test_split_then_winner_on_given_problems_is_binomial():
    means = np.array([[0.3, 0.5], [0.05, 0.04], [0.6, 0.6]])
    s = np.arange(11)
    expected = []
    for p, q in means:
        chance = np.outer(scipy.stats.binom.pmf(s, 10, p), scipy.stats.binom.pmf(s, 10, q))
        lead = s[:, None] - s[None, :]
        second = chance[lead < 0].sum() + chance[lead == 0].sum() / 2
        wrong = 1 - second if q > p else second
        expected.append(abs(p - q) * (10 + 80 * wrong))
    plan = mb.policy("split-then-winner:share=0.2").plan(mb.Table(means), 100)
    found = Exact(mb.Table(means), 100).evaluate(plan, [100]).problem_regret
    assert found == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("prior", [LOW, UNLIKE, mb.Bernoulli(arms=3)], ids=str)
@pytest.mark.parametrize("policy", ["split", "split-then-winner:share=0.4"])
def test_simulation_is_exact_evaluation(policy, prior):
    mean, error = simulated(policy, prior, 60, Feedback(), episodes=20_000)
    assert abs(mean - regret(policy, prior, 60)) < 5 * error


@pytest.mark.parametrize(
    ("feedback", "plays"),
    [(Feedback(batch=50), 50), (Feedback(batch=(80, 320)), 40), (Feedback(delay=20), 50)],
    ids=str,
)
def test_a_test_lasts_until_its_rewards_are_known(feedback, plays):
    """40 plays per arm are asked for; it goes on to the batch's end, and while rewards are late."""
    mean, error = simulated("split-then-winner", TWO, 400, feedback, episodes=20_000)
    assert abs(mean - regret_of_test(TWO, plays, 400)) < 5 * error
    split, split_error = simulated("split", TWO, 400, feedback, episodes=20_000)
    assert abs(split - 400 / 6) < 5 * split_error


def test_a_test_that_is_never_significant_is_a_split():
    mean, error = simulated("ab-test:alpha=1e-12", LOW, 300, Feedback(), episodes=20_000)
    assert abs(mean - regret("split", LOW, 300)) < 5 * error


@pytest.mark.parametrize("policy", ["split-then-winner:share=0.5", "ab-test:alpha=0.4,least=3"])
@pytest.mark.parametrize(
    "feedback",
    [
        Feedback(batch=7),
        Feedback(batch=5, delay=3),
        Feedback(delay="geometric:mean=4"),
        Feedback(min_share=0.1),
        Feedback(batch=10, min_share=0.05),
    ],
    ids=str,
)
@pytest.mark.parametrize("prior", [TWO, mb.Gaussian(arms=3)], ids=str)
def test_tests_with_late_rewards_play_like_the_twin(prior, feedback, policy):
    horizon, episodes, seed = 40, 12, 5
    plan = mb.policy(policy).plan(prior, horizon)
    sampling = Sampling(seed=seed, checkpoints=tuple(range(1, horizon + 1)), lanes=64)
    simulation = Simulation(prior, horizon, sampling, [plan], feedback=feedback)
    problems = simulation.problems(0, episodes)
    gaps = problems.means.max(axis=1, keepdims=True) - problems.means
    found = np.empty((horizon + 1, episodes))
    simulation.play(0, problems, 0, found, np.zeros(prior.arms))
    choose = partial(naive.ab_test_choice, plays=plan.decision.plays, alpha=plan.decision.alpha)
    for episode in range(episodes):
        moves = twin.play_with_feedback(
            choose, plan, prior.family.name, problems.parameters[episode], horizon, seed, episode,
            feedback,
        )  # fmt: skip
        assert np.allclose(found[:-1, episode], np.cumsum(gaps[episode][moves]), atol=1e-9)


def test_what_cannot_be_tested_is_refused():
    with pytest.raises(mb.InputError, match="how many plays"):
        mb.policy("split-then-winner").player(arms=2)
    with pytest.raises(mb.InputError, match="cannot be ignored"):
        mb.evaluate("ab-test", TWO, 50, feedback=Feedback(batch=5, pending="ignore"))
    with pytest.raises(mb.InputError, match="memory beyond the counts"):
        mb.evaluate("ab-test", TWO, 50, method="exact")
    with pytest.raises(mb.InputError, match="is simulated"):
        mb.evaluate("split-then-winner", TWO, 50, method="exact", feedback=Feedback(batch=5))
    with pytest.raises(mb.InputError, match=r"share .* less than 1, not 1"):
        mb.policy("split-then-winner:share=1")


def test_a_player_stays_with_the_winner_and_remembers_it(tmp_path):
    player = mb.policy("ab-test:alpha=0.05,least=10").player(arms=["red", "green"], seed=1)
    for _ in range(60):
        arm = player.select()
        player.update(arm, int(arm == "green"))
    assert player.select() == "green"
    player.save(tmp_path / "player.json")
    again = mb.load_player(tmp_path / "player.json")
    for _ in range(30):  # bad luck does not start the test again
        arm = again.select()
        assert arm == "green"
        again.update(arm, 0)
