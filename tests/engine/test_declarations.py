"""A policy that is declared once does the same in exact evaluation, simulation, live play and export."""

from functools import partial

import numpy as np
import pytest

import metabandit as mb
from metabandit.decisions import ByTable
from metabandit.policies import CATALOGUE, Start
from tests import naive
from tests.engine.test_exact import naive_regret
from tests.kernels.test_simulator import simulated_regret
from tests.play.test_twin import play_both

EXCEPTIONS = [
    {"rate": "min(1, c/(t + 1))"},
    {"needed": "ln(t)"},
    {"rate": "c/4", "needed": "ln(t) + 1/2"},
    {"rate": "h/(t + h)", "needed": "K - 1"},
    {"rate": "1", "needed": "2"},
]
STARTS = ["each-once", "prior-counts", "prior-counts:plays=1.5,sum=1"]


def declared(exceptions, start):
    return mb.IndexPolicy("r + c/n", parameters={"c": 0.8}, start=start, name="x", **exceptions)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("exceptions", EXCEPTIONS, ids=str)
@pytest.mark.parametrize(("arms", "alpha", "beta"), [(2, 1, 1), (2, (3, 1), (1, 2)), (3, 1, 2)])
def test_exact_evaluation_is_that_of_fractions(arms, alpha, beta, exceptions, start):
    prior = mb.Bernoulli(arms, alpha=alpha, beta=beta)
    policy = declared(exceptions, start)
    plan = policy.plan(prior, 6)
    shares = naive.decision_shares(plan.decision, plan.counts, 6)
    expected = naive_regret(shares, arms, prior.alpha, prior.beta, 6, each_once=plan.each_once)
    found = mb.evaluate(policy, prior, 6, method="exact", floor=False)[0].mean_regret
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("exceptions", EXCEPTIONS, ids=str)
@pytest.mark.parametrize("arms", [2, 3, 6])
def test_simulation_and_live_play_are_those_of_the_twin(arms, exceptions, start):
    prior, horizon, episodes = mb.Bernoulli(arms), 40, 20
    policy = declared(exceptions, start)
    regret, parameters, gaps = simulated_regret(policy, prior, horizon, episodes, 3)
    plan = policy.plan(prior, horizon)
    choice = partial(naive.decision_choice, decision=plan.decision)
    for episode in range(episodes):
        moves = naive.play_episode(
            choice,
            plan.each_once,
            plan.counts,
            "bernoulli",
            parameters[episode],
            horizon,
            3,
            episode,
        )
        assert np.allclose(regret[:, episode], np.cumsum(gaps[episode][moves]), atol=1e-9)
    live = partial(naive.decision_choice, decision=plan.decision, tie=1e-9)
    made, expected = play_both(policy, live, prior, horizon, 5)
    assert made == expected


def test_a_rate_that_is_no_probability_is_refused_everywhere():
    wrong = mb.IndexPolicy("r", rate="2*K/t", name="wrong")
    for method in ("exact", "monte-carlo"):
        with pytest.raises(mb.InputError, match=r"2 \* K/t, must lie between 0 and 1"):
            mb.evaluate(wrong, mb.Bernoulli(3), 10, method=method)
    player = wrong.player(3)
    for _ in range(3):
        player.update(player.select(), 1)
    with pytest.raises(mb.InputError, match="must lie between 0 and 1"):
        player.select()
    with pytest.raises(mb.InputError, match="reads n"):
        mb.IndexPolicy("r", rate="1/n")


def test_tables_of_different_rows_are_no_mirror():
    table = np.zeros((2, 210))
    table[1] = 1.0
    decision = ByTable(20, table, (20,), (0, 1), ((1, 1), (1, 1)))
    mb_entry = mb.Entry(
        "second",
        "always the second arm",
        "this test",
        start=Start("free"),
        decide=lambda setting, values, progress: decision,
    )
    policy = mb_entry.make({}, None, "second")
    for method in ("exact", "monte-carlo"):
        found = mb.evaluate(policy, mb.Bernoulli(), 20, method=method, floor=False)[0]
        assert found.plays == pytest.approx([0.0, 20.0])


def test_what_would_be_ignored_cannot_be_declared():
    with pytest.raises(mb.InputError, match="rate and needed are for an index"):
        mb.Entry("x", "words", "here", rate="0.1", decide=lambda setting, values, progress: None)
    with pytest.raises(mb.InputError, match="must be a Start"):
        mb.Entry("x", "r", "here", start=lambda setting: Start())
    for text in ("thompson:start=prior-counts", "eps_n-greedy:start=prior-counts"):
        with pytest.raises(mb.InputError, match="has its own start"):
            mb.policy(text)


def test_an_index_without_a_value_before_any_play_is_refused():
    policy = mb.IndexPolicy("r + 1/n", rate=0.5, start=Start("free"), name="hasty")
    for method in ("exact", "monte-carlo"):
        with pytest.raises(mb.IndexFault, match="hasty"):
            mb.evaluate(policy, mb.Bernoulli(), 7, method=method)
    with pytest.raises(mb.InputError, match="an expression is a text"):
        mb.IndexPolicy(None)


def test_learning_passes_over_rates_that_are_no_probability():
    entry = mb.Entry(
        "wide", "r", "this test", (mb.Parameter("c", 0.5, above=0.0, logarithmic=True),), rate="c"
    )
    mb.register(entry)
    try:
        learned = mb.learn("wide", mb.Bernoulli(), 12, generations=4)
    finally:
        del CATALOGUE["wide"]
    assert 0.0 < learned.parameters["c"] <= 1.0
