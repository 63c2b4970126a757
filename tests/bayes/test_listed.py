"""The optimum over a list of problems with two Bernoulli arms: in fractions, and above it what is played."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import metabandit as mb
from tests.commands import answer

ROWS = [[0.2, 0.6], [0.5, 0.4], [0.5, 0.4], [0.0, 0.1], [1.0, 0.9]]


def best_reward(rows, horizon, each_once=False):
    """By what the rewards so far say of each problem, in fractions."""
    problems = [tuple(Fraction(str(mean)) for mean in row) for row in rows]

    @cache
    def value(weights, made):
        total = sum(weights)
        if made == horizon or not total:
            return Fraction(0)
        arms = (made,) if each_once and made < 2 else (0, 1)
        return max(play(weights, made, arm) for arm in arms)

    def play(weights, made, arm):
        won = tuple(w * mu[arm] for w, mu in zip(weights, problems, strict=True))
        lost = tuple(w * (1 - mu[arm]) for w, mu in zip(weights, problems, strict=True))
        return sum(won) + value(won, made + 1) + value(lost, made + 1)

    return value((Fraction(1, len(rows)),) * len(rows), 0)


# One play of each arm needs two.
@pytest.mark.parametrize(
    ("start", "horizon"),
    [
        *(("free", horizon) for horizon in (1, 2, 5, 8)),
        *(("each-once", horizon) for horizon in (2, 5, 8)),
    ],
)
def test_optimum_is_that_of_fractions(horizon, start):
    best = mb.optimal(mb.Table(ROWS), horizon, start=start)
    expected = best_reward(ROWS, horizon, each_once=start == "each-once")
    assert best.kind == "optimum"
    assert best.expected_reward == pytest.approx(float(expected), abs=1e-12)
    assert best.regret == pytest.approx(
        horizon * float(np.max(ROWS, axis=1).mean()) - float(expected), abs=1e-12
    )


def test_many_problems_of_a_beta_prior_have_about_its_optimum():
    quantiles = (np.arange(40) + 0.5) / 40
    grid = np.array(np.meshgrid(quantiles, quantiles)).reshape(2, -1).T
    found = mb.optimal(mb.Table(grid), 30).regret
    assert found == pytest.approx(mb.optimal(mb.Bernoulli(2), 30).regret, rel=2e-3)


def test_long_play_does_not_underflow():
    """With one problem there is nothing to learn; with two far apart hardly anything."""
    assert mb.optimal(mb.Table([[0.5, 0.4]]), 150).regret == pytest.approx(0.0, abs=1e-9)
    apart = mb.optimal(mb.Table([[0.5, 0.9], [0.5, 0.1]]), 150)
    assert 0.2 < apart.regret < 1.0


def test_no_policy_is_below_the_optimum_of_a_table():
    table = mb.Table(ROWS)
    found = mb.evaluate(["gittins", "ucb1-tuned", "thompson"], table, 30, method="exact")
    assert found.floor.kind == "optimum"
    assert all(item.mean_regret > found.floor.regret for item in found)


def test_exact_search_on_a_table_is_exact():
    table = mb.Table(ROWS)
    found = mb.search(table, 24, length=3, strategy="exact", start="each-once")
    assert found.entries[0].standard_error == 0.0
    assert found.floor < found.entries[0].regret
    for entry in found.entries[:4]:
        exact = mb.evaluate(
            mb.policy(entry.formula, start="each-once"), table, 24, method="exact", floor=False
        )
        assert entry.regret == pytest.approx(exact[0].mean_regret, abs=1e-10)
    assert mb.search(table, 24, length=2).strategy == "exact"


def test_half_of_a_table_is_measured_against_its_own_floor():
    rng = np.random.default_rng(0)
    table = mb.Table(rng.uniform(0.1, 0.9, (40, 2)).round(3))
    found = mb.search(table, 12, length=2)
    rest = table.split().held_out
    assert found.comparison.floor.regret == pytest.approx(mb.optimal(rest, 12).regret)
    assert found.floor is None


def test_the_command_takes_a_table(tmp_path):
    path = tmp_path / "problems.csv"
    path.write_text("a,b\n0.2,0.6\n0.5,0.4\n")
    shown = answer(f"optimal | --prior | table:path={path} | --horizon | 10", tmp_path)
    assert "expected reward" in shown
