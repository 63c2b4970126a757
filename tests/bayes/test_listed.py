"""The optimum over a list of problems with two Bernoulli arms: in fractions, and above it what is played."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import metabandit as mb
from metabandit.engine.task import read_task
from metabandit.learning.judges import Judge, judging_method
from tests.commands import answer

ROWS = [[0.2, 0.6], [0.5, 0.4], [0.5, 0.4], [0.0, 0.1], [1.0, 0.9]]


# The second row has twice the weight in place of being listed twice.
WEIGHED = ([ROWS[0], ROWS[1], ROWS[3], ROWS[4]], [1.5, 3.0, 1.5, 1.5])


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
    expected = best_reward(ROWS, horizon, each_once=start == "each-once")
    for table in (mb.Table(ROWS), mb.Table(WEIGHED[0], weights=WEIGHED[1])):
        best = mb.optimal(table, horizon, start=start)
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


def test_weights_are_those_of_repeated_rows():
    repeated, weighed = mb.Table(ROWS), mb.Table(WEIGHED[0], weights=WEIGHED[1])
    names = ["gittins", "ucb1-tuned", "thompson"]
    one, other = (mb.evaluate(names, table, 20, method="exact") for table in (repeated, weighed))
    assert other.floor.regret == pytest.approx(one.floor.regret, abs=1e-12)
    for name in names:
        assert other[name].mean_regret == pytest.approx(one[name].mean_regret, abs=1e-12)
        assert other[name].simple_regret == pytest.approx(one[name].simple_regret, abs=1e-12)
        assert other[name].plays == pytest.approx(one[name].plays, abs=1e-11)
    # Single problems would count alike.
    with pytest.raises(mb.InputError, match="draw problems"):
        other.share_of_wins("gittins", "thompson")
    found = mb.evaluate("ucb1-tuned", weighed, 20, method="monte-carlo", episodes=20_000)
    exact = one["ucb1-tuned"].mean_regret
    assert abs(found[0].mean_regret - exact) < 4.0 * found[0].standard_error
    first, second = (mb.search(table, 20, length=2) for table in (repeated, weighed))
    assert second.strategy == "exact"
    assert [entry.formula for entry in first.entries[:3]] == [
        entry.formula for entry in second.entries[:3]
    ]
    assert second.entries[0].regret == pytest.approx(first.entries[0].regret, abs=1e-10)


@pytest.mark.parametrize("objective", ["regret", "simple", "quantile:q=0.8"])
def test_learning_goes_by_the_weights(objective):
    """One problem that is nearly always met is learned for."""
    table = mb.Table([[0.9, 0.1], [0.1, 0.9]], weights=[1e6, 1])
    alone = mb.Table([[0.9, 0.1]])
    values = []
    for prior in (table, alone):
        task = read_task(prior, 10, objective=objective)
        judge = Judge(task, judging_method(mb.policy("ucb1"), task), seed=0)
        values.append(judge.judge([mb.policy("ucb1"), mb.policy("greedy")], 0)[0])
    assert values[0] == pytest.approx(values[1], abs=1e-4)


def test_three_arms_of_a_table_have_no_floor():
    with pytest.raises(mb.InputError, match="tables of 2 Bernoulli arms"):
        mb.optimal(mb.Table([[0.1, 0.2, 0.3]]), 10)


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
