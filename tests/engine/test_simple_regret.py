"""Simple regret: against a recursion and the simulator."""

import numpy as np
import pytest

import metabandit as mb
from tests import naive

TWO = mb.Bernoulli(arms=2)


@pytest.mark.parametrize("start", ["each-once", "prior-counts"])
@pytest.mark.parametrize(
    ("alpha", "beta"), [((1, 1), (1, 1)), ((3, 1), (2, 1)), ((1, 1, 1), (1, 1, 1))]
)
def test_simple_regret_is_that_of_a_recursion(alpha, beta, start):
    arms = len(alpha)
    prior = mb.Bernoulli(arms, alpha=list(alpha), beta=list(beta))
    for text in ("r + 1/n", "ucb1", "s - r", "1"):
        policy = mb.policy(text, start=start)
        plan = policy.plan(prior, 6)
        expected = naive.simple_regret(
            naive.index_shares(policy.bound, plan.counts, 6),
            naive.beta_chance(alpha, beta),
            prior.expected_best(),
            plan.counts,
            6,
            plan.each_once,
        )
        found = mb.evaluate([policy], prior, 6, method="exact")[0].simple_regret
        assert found == pytest.approx(expected, abs=1e-12), text


@pytest.mark.parametrize("text", ["ucb1", "thompson", "uniform"])
def test_simple_regret_is_that_of_simulation(text):
    drawn = mb.Table(np.random.default_rng(3).random((20, 2)))
    for prior in (TWO, drawn, mb.Bernoulli(arms=3)):
        if text == "thompson" and prior.arms == 3:
            continue
        found = mb.evaluate([text], prior, 12, method="exact")[0].simple_regret
        test = mb.evaluate([text], prior, 12, episodes=200_000, method="monte-carlo", seed=5)[0]
        assert abs(found - test.simple_regret) < 4 * test.simple_error
