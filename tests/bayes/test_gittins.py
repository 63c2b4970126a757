"""The Gittins index against its definition and published tables."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import metabandit as mb
from metabandit.bayes.gittins import bonus_table, gittins_table, levels_of
from tests import naive


@pytest.mark.parametrize("means", [(1.0, 1.0), (3.0, 2.0), (0.5, 1.5)])
def test_gittins_index_is_where_going_on_is_indifferent(means):
    horizon = 12
    table = gittins_table(horizon, *means)
    assert levels_of(horizon) == tuple(range(1, horizon + 1))
    entry = 0
    for level in levels_of(horizon):
        for n in range(level):
            for s in range(n + 1):
                expected = naive.gittins_index(n, s, level - n, *means)
                assert table[entry] == pytest.approx(expected, abs=1e-4)
                entry += 1
    assert entry == len(table)


def test_levels_of_long_horizons_are_close_together():
    for horizon in (1, 100, 129, 1000, 1999):
        levels = levels_of(horizon)
        assert levels[-1] == horizon
        assert all(a < b <= max(a + 1, 1.031 * a) for a, b in pairwise(levels))
    assert sum(math.comb(level + 1, 2) for level in levels_of(1000)) < 10**7


# By discount, successes and failures, from the uniform prior (Christian and Griffiths 2016, chapter 2).
PUBLISHED = [
    (0.9, 0, 0, 0.7029),
    (0.9, 1, 1, 0.6346),
    (0.9, 2, 2, 0.6010),
    (0.9, 9, 1, 0.8695),
    (0.99, 0, 0, 0.8699),
]


@pytest.mark.parametrize(("discount", "wins", "failures", "expected"), PUBLISHED)
def test_discounted_index_is_the_published_one(discount, wins, failures, expected):
    table = gittins_table(12, 1.0, 1.0, discount=discount)
    found = table[math.comb(wins + failures + 1, 2) + wins]
    assert found == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize(("spread", "noise", "discount"), [(1, 1, 1), (0.5, 2, 1), (1, 1, 0.9)])
def test_bonus_of_gaussian_arms_is_where_going_on_is_indifferent(spread, noise, discount):
    horizon = 12
    table = bonus_table(horizon, spread, noise, discount=discount)
    if discount < 1.0:
        expected = naive.gaussian_bonus(200, spread, noise, discount)
        assert table[0] == pytest.approx(expected, rel=2e-3)
        return
    begin = 0
    for level in levels_of(horizon):
        expected = naive.gaussian_bonus(level, spread, noise, 1.0)
        assert table[begin] == pytest.approx(expected, abs=2e-3 * spread)
        assert np.all(np.diff(table[begin : begin + level]) <= 1e-9)
        begin += level
    assert begin == len(table)


def test_gittins_is_better_than_thompson_for_gaussian_arms():
    prior = mb.Gaussian(arms=4)
    found = mb.evaluate(["gittins", "thompson"], prior, 60, episodes=2000)
    assert found[0].mean_regret < 0.8 * found[1].mean_regret
