"""Regret expected given the plays: against a fine grid, and what it is for."""

import math

import numpy as np
import pytest

import metabandit as mb
from metabandit.engine.engine import Engine
from metabandit.engine.simulated import Sampling
from metabandit.kernels import posterior
from metabandit.workers import Workers
from tests import naive

TWO = mb.Bernoulli(arms=2)


@pytest.mark.parametrize("horizon", [20, 100, 1000])
@pytest.mark.parametrize(
    ("alpha", "beta"), [((1, 1), (1, 1)), ((3, 0.5), (2, 1)), ((1, 2, 1, 1), (1, 1, 0.5, 5))]
)
def test_expected_regret_given_the_plays(horizon, alpha, beta):
    rng = np.random.default_rng(horizon)
    arms, episodes = len(alpha), 70 if horizon == 20 else 20
    shares = rng.dirichlet(np.full(arms, 0.5), episodes)
    plays = np.array([rng.multinomial(horizon, share) for share in shares]).T
    wins = rng.binomial(plays, rng.random((arms, episodes)))
    found = np.empty(episodes)
    posterior.expected_regret(
        np.array(alpha, float),
        np.array(beta, float),
        horizon,
        plays.astype(np.float32),
        wins.astype(np.float32),
        found,
    )
    expected = [
        naive.expected_gap_regret(alpha, beta, plays[:, e], wins[:, e]) for e in range(episodes)
    ]
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_expected_regret_has_the_mean_of_regret_and_less_noise():
    policies = [mb.policy("r + 1/n", start="prior-counts"), mb.policy("ucb1-tuned")]
    plans = [item.plan(TWO, 100) for item in policies]
    problems = 40_000
    engine = Engine(TWO, 100, Workers(2))
    plain, expected = (
        engine.simulated_regret(
            plans, [0, problems], seed=3, sampling=Sampling(posterior=posterior)
        )
        for posterior in (False, True)
    )
    truth = [item.mean_regret for item in mb.evaluate(policies, TWO, 100, method="exact")]
    error = expected.std(axis=1) / math.sqrt(problems)
    assert (np.abs(expected.mean(axis=1) - truth) < 4 * error + 1e-3).all()
    assert (np.diff(expected, axis=0).var() < 0.4 * np.diff(plain, axis=0).var()).all()
