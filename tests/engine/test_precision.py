"""What float32 would lose: plays beyond 2^24, sums of large rewards, indices near 1, rare rewards."""

from __future__ import annotations

import math

import numpy as np
import pytest

import metabandit as mb
from metabandit.engine.precision import Precision
from metabandit.engine.simulated import Sampling, Simulation
from metabandit.errors import InputError

BONUS = "r + 0.1*sqrt(2*ln(t)/n)"


@pytest.mark.parametrize(
    ("text", "alpha", "beta", "horizon"),
    [
        ("r", [2e7, 1.0], [2e7, 1.0], 100),
        ("r", 2e7, 2e7, 100),
        ("r + 1/(n + 1/2)", 1000.0, 1.0, 300),
        ("kl-ucb+", 1e-6, 1e-6, 2),
    ],
)
def test_pseudo_plays_of_any_size(text, alpha, beta, horizon):
    prior = mb.Bernoulli(2, alpha=alpha, beta=beta)
    options = {"start": "prior-counts", "floor": False}
    exact = mb.evaluate(text, prior, horizon, method="exact", **options)[0]
    found = mb.evaluate(text, prior, horizon, method="monte-carlo", episodes=20_000, **options)[0]
    assert found.plays.sum() == horizon
    assert abs(found.mean_regret - exact.mean_regret) < 5 * found.standard_error


@pytest.mark.parametrize("prior", ["truncated-gaussian", "beta"])
@pytest.mark.parametrize("shape", ["a=0.3,b=1", "a=1,b=0.3333333333333333"])
def test_beta_variates_with_small_parameters_end(prior, shape):
    """Lanes of float32 draw from Beta(a, b) with a and b from 1/2 on only."""
    small, plain = f"thompson:{shape}", "thompson:a=0.5,b=1"
    found = mb.evaluate([small, plain, "uniform"], prior, 30, arms=2, episodes=4000, floor=False)
    assert found[small].mean_regret < found["uniform"].mean_regret
    assert found[small].mean_regret == pytest.approx(found[plain].mean_regret, rel=0.3)


def test_pseudo_plays_of_any_size_in_batches():
    prior = mb.Bernoulli(alpha=[2e7, 1.0], beta=[2e7, 1.0])
    options = {"start": "prior-counts", "floor": False, "feedback": {"batch": 10}}
    exact = mb.evaluate("r + s/sqrt(n)", prior, 60, method="exact", **options)[0]
    found = mb.evaluate("r + s/sqrt(n)", prior, 60, method="monte-carlo", **options)[0]
    assert abs(found.mean_regret - exact.mean_regret) < 5 * found.standard_error


def regret_of(prior, horizon, episodes=64):
    return mb.evaluate(BONUS, prior, horizon, episodes=episodes)[0].problem_regret


def test_regret_does_not_depend_on_what_is_common_to_all_rewards():
    near, far = (regret_of(mb.Gaussian(mean=m, spread=0.1, noise=0.1), 20_000) for m in (0.0, 10.0))
    assert far == pytest.approx(near, rel=1e-5)
    low, high = (regret_of(mb.TruncatedGaussian(low=b, high=b + 1.0), 5000) for b in (0.0, 1000.0))
    # float32 and float64: a few plays may differ.
    assert high.mean() == pytest.approx(low.mean(), rel=1e-3)


@pytest.mark.parametrize("mean", [1.0, 10.0])
def test_float32_is_used_only_where_it_does(mean):
    """Just below where float64 begins, regret is that of means around 0 but for chance."""
    near, far = (mb.Gaussian(mean=m, spread=0.1, noise=0.1) for m in (0.0, mean))
    horizon = 500 if mean == 10.0 else 4900
    assert Precision.of(far, horizon).kind() is np.float32
    apart = regret_of(far, horizon, 4096) - regret_of(near, horizon, 4096)
    error = float(regret_of(near, horizon, 4096).std()) / math.sqrt(4096)
    assert abs(float(apart.mean())) < 0.2 * error


def test_means_that_float64_cannot_tell_apart_are_refused():
    prior = mb.TruncatedGaussian(low=1e9, high=1e9 + 1.0)
    with pytest.raises(InputError, match="subtract what is common to all rewards"):
        mb.evaluate("ucb1", prior, 100, episodes=64)


@pytest.mark.slow
@pytest.mark.parametrize("p", [4e-8, 1.0 - 4e-8])
def test_rewards_may_be_as_rare_as_they_like(p):
    prior, horizon, episodes = mb.Table([[p, p]]), 10_000, 32_768
    plan = mb.policy("uniform").plan(prior, horizon)
    simulation = Simulation(prior, horizon, Sampling(), [plan])
    wins = 0.0
    final = np.empty((2, 2, 4096), np.float32)
    for first in range(0, episodes, 4096):
        problems = simulation.problems(first, first + 4096)
        simulation.play(0, problems, first, np.empty((2, 4096)), final=final)
        wins += (final[1] if p < 0.5 else final[0] - final[1]).sum(dtype=np.float64)
    expected = episodes * horizon * min(p, 1.0 - p)
    assert abs(wins - expected) < 4 * math.sqrt(expected)


@pytest.mark.parametrize(
    ("text", "prior", "kind"),
    [
        ("bayes-ucb", mb.Bernoulli(2), np.float64),
        ("gittins", mb.Bernoulli(2, alpha=1e9, beta=1e9), np.float64),
        ("r + 5000/n", mb.Bernoulli(2), np.float64),
        ("r + 1000*1000", mb.Bernoulli(2), np.float64),
        ("h^3 - r", mb.Bernoulli(2), np.float64),
        ("r + K*999", mb.Bernoulli(3), np.float64),
        ("abs(r - 1/(n + h^3))", mb.Bernoulli(2), np.float32),
        ("kg", mb.Bernoulli(2), np.float32),
        ("bayes-ucb", mb.Gaussian(2), np.float32),
        ("ucb1-tuned", mb.Bernoulli(2, alpha=1e9, beta=1e9), np.float32),
    ],
)
def test_what_a_policy_computes_with_decides_too(text, prior, kind):
    plan = mb.policy(text).plan(prior, 50)
    assert Precision.of(prior, 50).kind(plan.counts, plan.decision) is kind


def test_a_large_term_that_all_arms_have_changes_nothing():
    found = [
        mb.evaluate("r + exp(15)", mb.Bernoulli(2), 50, method=method, floor=False)[0]
        for method in ("exact", "monte-carlo")
    ]
    assert abs(found[0].mean_regret - found[1].mean_regret) < 4 * found[1].standard_error
