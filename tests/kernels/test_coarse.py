"""The coarse clock: samplers of sums, the twin, and how far regret is from one play at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import metabandit as mb
from metabandit.engine.simulated import Sampling, Simulation
from metabandit.kernels import blocks, coarse
from tests import naive

WORDS = np.random.default_rng(8).integers(0, 2**32, 40_000).astype(np.uint32)
INDICES = ("r + 2/n", "r + sqrt(0.4*ln(t)/n)", "r + s*sqrt(ln(t)/n)", "r + sqrt(h)/(20*n + 20)")


def regret_of(indices, prior, horizon, episodes, *, growth=0.0, start="prior-counts", lanes=512):
    plans = [mb.policy(item, start=start).plan(prior, horizon) for item in indices]
    simulation = Simulation(prior, horizon, Sampling(growth=growth, lanes=lanes))
    return simulation.regret_of(plans, 5, [0, episodes], False)


@pytest.mark.parametrize(
    ("count", "p"),
    [(2, 0.3), (7, 0.9), (60, 0.01), (40, 0.5), (900, 0.03), (5000, 0.4), (300, 0.97)],
)
def test_sums_of_zeros_and_ones_are_binomial(count, p):
    drawn = blocks.draw_many(WORDS, np.uint32(99), count, p, 0)
    least, most = stats.binom.ppf([1e-3, 1.0 - 1e-3], count, p)
    inner = np.arange(least, most + 1)
    chances = stats.binom.pmf(inner, count, p)
    seen = [(drawn == value).sum() for value in inner]
    expected = [*chances * len(drawn), (1.0 - chances.sum()) * len(drawn)]
    assert stats.chisquare([*seen, len(drawn) - sum(seen)], expected).pvalue > 1e-4


def test_certain_rewards_are_certain():
    assert set(blocks.draw_many(WORDS[:50], np.uint32(1), 17, 1.0, 0)) == {17.0}
    assert set(blocks.draw_many(WORDS[:50], np.uint32(1), 17, 0.0, 0)) == {0.0}


@pytest.mark.parametrize("degrees", [1, 2, 5, 40])
def test_squared_deviations_are_chi_squared(degrees):
    drawn = blocks.draw_many(WORDS, np.uint32(7), 1, 0.5, degrees)
    assert stats.kstest(drawn, stats.chi2(degrees).cdf).pvalue > 1e-4


@pytest.mark.parametrize("prior", [mb.Bernoulli(arms=2), mb.Bernoulli(arms=5), mb.Gaussian(arms=3)])
def test_a_growth_of_almost_nothing_plays_one_at_a_time(prior):
    indices = [item.replace("/n", "/(n + 1)") for item in INDICES]
    options = {"start": "each-once", "horizon": 40, "episodes": 200}
    fine = regret_of(indices, prior, **options)
    assert np.array_equal(regret_of(indices, prior, growth=1e-9, **options), fine)


@pytest.mark.parametrize("start", ["prior-counts", "each-once"])
@pytest.mark.parametrize("index", INDICES)
def test_the_twin_plays_the_same_blocks(index, start):
    prior, horizon, growth = mb.Bernoulli(arms=3, alpha=[2, 1, 3], beta=1.5), 300, 0.2
    policy = mb.policy(index, start=start)
    plan = policy.plan(prior, horizon)
    simulation = Simulation(prior, horizon, Sampling(seed=4, growth=growth), [plan])
    problems = simulation.problems(0, 12)
    final = np.empty((2, 3, 12), np.float32)
    simulation.play(0, problems, 0, np.empty((2, 12)), final=final)
    times = coarse.clock(horizon, plan.counts[0].sum(), growth)
    for episode in range(12):

        def block_sum(arm, count, word, key, episode=episode):
            p = np.float32(problems.parameters[episode, arm, 0])
            first = naive.unit(naive.draw_bits(word, key))
            return blocks.binomial(count, float(p), np.uint32(word), np.uint32(key), float(first))

        plays = naive.play_coarsely(
            policy.bound, plan.counts, horizon, 4, episode, growth, times, block_sum, plan.each_once
        )
        assert plays == final[0, :, episode].tolist()


def test_results_do_not_depend_on_lanes():
    options = {"horizon": 3000, "episodes": 130, "growth": 0.02}
    prior = mb.Bernoulli(arms=4)
    wide, narrow = (regret_of(INDICES, prior, lanes=lanes, **options) for lanes in (512, 64))
    assert np.array_equal(wide, narrow)


@pytest.mark.parametrize("prior", [mb.Bernoulli(arms=4), mb.Gaussian(arms=4, noise=1.0)])
def test_regret_is_about_that_of_one_play_at_a_time(prior):
    indices = ["r + 3/(n + 1)", "r + sqrt(ln(t + 1)/(n + 1))", "r + s*sqrt(ln(t + 1)/(n + 1))"]
    options = {"start": "each-once", "horizon": 2000, "episodes": 1500}
    fine = regret_of(indices, prior, **options)
    apart = regret_of(indices, prior, growth=0.02, **options) - fine
    error = apart.std(axis=1) / np.sqrt(apart.shape[1])
    assert (np.abs(apart.mean(axis=1)) < 0.01 * fine.mean(axis=1) + 4.0 * error).all()


def test_what_cannot_be_played_coarsely_is_refused():
    two = mb.Bernoulli(arms=2)
    for policy, prior, word in [
        ("thompson", two, "only an index"),
        ("eps_n-greedy", two, "only an index"),
        ("ucb1", mb.BetaRewards(arms=2), "cannot be drawn at once"),
    ]:
        with pytest.raises(mb.InputError, match=word):
            Simulation(prior, 50, Sampling(growth=0.1), [mb.policy(policy).plan(prior, 50)])
    with pytest.raises(mb.InputError, match="come later"):
        Simulation(
            two, 50, Sampling(growth=0.1), [mb.policy("ucb1").plan(two, 50)],
            feedback=mb.Feedback(batch=5),
        )  # fmt: skip
