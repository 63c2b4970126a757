"""Policies that compare the posteriors of all arms: what they compute, and what was published of them."""

import math

import numpy as np
import pytest
from scipy import stats

import metabandit as mb
from metabandit import lookahead, numerics
from metabandit.bayes.lagrange import lagrangian_prices
from tests import naive

PAIRS = [
    [(1.0, 1.0)] * 4,
    [(1.0, 1.0), (700.0, 300.0), (3.0, 5.0), (2.0, 2.0)],
    [(0.3, 0.7), (2.0, 9.0), (1.0, 9.0)],
    [(30.0, 12.0), (25.0, 13.0)],
]


def shares(known, keep, *, beta):
    arms = len(known)
    rows, lines = np.empty((3, arms, lookahead.MOST_POINTS)), np.empty((3, lookahead.MOST_POINTS))
    room = np.empty((4, arms))
    first, second = np.array(known).T
    room[0] = first / (first + second) if beta else first
    fill = lookahead.fill_beta if beta else lookahead.fill_normal
    lists = (*rows, lines if beta else lines[0])
    points, step = fill(first, second, keep >= 0.0, *lists)
    lookahead.shares(keep, points, step, rows, lines, room)
    return room[3]


@pytest.mark.parametrize("known", PAIRS, ids=str)
def test_shares_are_those_of_fine_grids(known):
    assert shares(known, -1.0, beta=True) == pytest.approx(naive.ids_shares(known, True), abs=1e-3)
    found = shares(known, 0.6, beta=True)
    assert found == pytest.approx(naive.ttts_shares(known, True, 0.6), abs=1e-4)
    assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "known",
    [
        [(1e9, 1e9), (1.0, 1.0)],
        [(1e-6, 2104.0), (1e-6, 2107.0)],
        [(1e9 + 1, 1e-5), (1e9, 16.0)],
        [(1e-6, 1.0), (1e-6, 1e6), (3.0, 5e5)],
        [(44e6, 22.0), (1e7, 1.1e7)],
    ],
    ids=str,
)
def test_shares_of_arms_that_are_known_very_differently(known):
    found = shares(known, 0.5, beta=True)
    assert found == pytest.approx(naive.ttts_shares(known, True, 0.5), abs=1e-4)
    assert shares(known, -1.0, beta=True) == pytest.approx(naive.ids_shares(known, True), abs=1e-3)


def test_shares_of_normal_posteriors_are_those_of_fine_grids():
    known = [(0.2, 0.5), (0.4, 0.1), (-1.0, 1.0), (0.39, 0.02)]
    assert shares(known, -1.0, beta=False) == pytest.approx(
        naive.ids_shares(known, False), abs=1e-3
    )
    assert shares(known, 0.5, beta=False) == pytest.approx(
        naive.ttts_shares(known, False, 0.5), abs=1e-5
    )


@pytest.mark.parametrize("a", [0.4, 3.0, 20.0])
@pytest.mark.parametrize("c", [0.1, 0.5, 0.93])
def test_what_plays_are_worth_is_that_of_all_outcomes(a, c):
    b, most = 2.5, 40
    expected = 0.0
    for m in range(1, most + 1):
        s = np.arange(m + 1)
        worth = stats.betabinom.pmf(s, m, a, b) @ np.maximum((a + s) / (a + b + m) - c, 0.0)
        expected = max(expected, (worth - max(a / (a + b) - c, 0.0)) / m)
    assert lookahead.beta_gain(a, b, c, most) == pytest.approx(expected, abs=1e-13)


def test_what_plays_of_gaussian_arms_are_worth_rises_then_falls():
    for mean, deviation, noise in ((0.0, 0.3, 1.0), (0.9, 0.05, 2.0), (-3.0, 0.1, 1.0)):
        every = [lookahead.normal_gain(mean, deviation, noise, 1.0, m) for m in range(1, 800)]
        assert lookahead.best_normal_gain(mean, deviation, noise, 1.0, 799) == max(every)


def test_ids_plays_what_is_known_to_be_best():
    """With nothing to be told, the arm with the best mean."""
    assert shares([(1e6, 1.0), (1.0, 1e6)], -1.0, beta=True).tolist() == [1.0, 0.0]


def test_optimistic_indices_are_what_they_are_defined_as():
    assert numerics.beta_optimist(0.5, 1.0, 1.0) == pytest.approx(2.0 - math.sqrt(2.0))
    assert numerics.beta_optimist(0.0, 2.0, 3.0) == pytest.approx(0.4)
    assert numerics.normal_optimist(0.0) == 0.0
    assert math.isnan(numerics.beta_optimist(1.0, 1.0, 1.0))
    # Never below the Gittins index with the same discount, 0.7029 for Beta(1, 1) and 0.9 (Gittins 1989).
    assert 0.7029 < numerics.beta_optimist(0.9, 1.0, 1.0) < 0.8


def assert_less(found, better, worse):
    gap = found.difference(better, worse)
    assert gap.mean + 3 * gap.standard_error < 0, (better, worse, gap)


@pytest.mark.slow
def test_orders_that_were_published():
    """Thompson sampling is behind IDS (Russo and Van Roy 2018) and OGI (Gutin and Farias 2016)."""
    policies = ["thompson", "ids", "ogi", "kg-star", "gittins"]
    found = mb.evaluate(policies, mb.Bernoulli(6), 150, episodes=250, floor=False, seed=3)
    for better in ("ids", "ogi", "kg-star"):
        assert_less(found, better, "thompson")
    # What is solved for the horizon is ahead of what is not, or about as good.
    for other in ("ids", "ogi", "kg-star"):
        gap = found.difference("gittins", other)
        assert gap.mean < 3 * gap.standard_error, other


@pytest.mark.slow
def test_one_play_ahead_is_not_enough():
    """Russo and Van Roy (2018): KG explores too little over long horizons, KG* does not."""
    found = mb.evaluate(["kg-star", "kg"], mb.Bernoulli(10), 600, episodes=100, floor=False)
    assert_less(found, "kg-star", "kg")
    found = mb.evaluate(["kg-star", "thompson"], mb.Gaussian(10), 200, episodes=200, floor=False)
    assert_less(found, "kg-star", "thompson")


@pytest.mark.slow
def test_top_two_sampling_has_less_simple_regret():
    """Russo (2016): Thompson sampling plays the leader too often to find out whether it is best."""
    prior = mb.Gaussian(5, spread=0.5)
    found = mb.evaluate(["ttts", "thompson"], prior, 300, episodes=1500, floor=False)
    assert found[0].simple_regret < found[1].simple_regret
    assert found[0].mean_regret > found[1].mean_regret


def test_ada_ucb_is_ahead_of_ucb1():
    found = mb.evaluate(
        ["ada-ucb", "ucb1", "moss"], mb.Bernoulli(5), 200, episodes=1000, floor=False
    )
    assert found[0].mean_regret < min(found[1].mean_regret, found[2].mean_regret)


def test_the_lagrangian_index_is_good_for_many_arms():
    """It is close to the bound that its prices give, where arms are many for the plays."""
    prior, horizon = mb.Bernoulli(30), 30
    found = mb.evaluate(["whittle", "thompson"], prior, horizon, episodes=4000, floor=False)
    most = lagrangian_prices(prior, horizon, lambda work, count: list(map(work, range(count))))[0]
    floor = horizon * prior.expected_best() - most
    assert floor - 4 * found[0].standard_error < found[0].mean_regret
    assert found[0].mean_regret < 0.7 * found[1].mean_regret


@pytest.mark.parametrize(
    ("text", "prior", "horizon", "words"),
    [
        ("whittle", mb.Bernoulli(), 500, "up to 200 plays"),
        ("whittle", mb.Gaussian(), 50, r"rewards in \[0, 1\]"),
        ("ttts:keep=1", mb.Bernoulli(), 50, "less than 1"),
        ("ids:spread=1", mb.Gaussian(), 50, "give both"),
    ],
)
def test_refusals(text, prior, horizon, words):
    with pytest.raises(mb.InputError, match=words):
        mb.evaluate(text, prior, horizon, episodes=10)


@pytest.mark.parametrize("name", ["ids", "kg", "ttts", "ada-ucb"])
def test_there_is_no_exact_value(name):
    with pytest.raises(mb.InputError, match="compares all arms at once"):
        mb.evaluate(name, mb.Bernoulli(), 20, method="exact")
