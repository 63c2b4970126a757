"""The Bayes optimum and the optimal policy: against fractions, other solvers and themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit.bayes import induction
from tests import naive
from tests.engine.test_exact import CASES, fractions, regret
from tests.tiers import some


@pytest.mark.parametrize("each_once", [False, True])
@pytest.mark.parametrize(("arms", "means"), CASES)
def test_optimum_is_that_of_fractions(arms, means, each_once):
    alpha, beta = means
    prior = mb.Bernoulli(arms, alpha=list(alpha), beta=list(beta))
    chance = naive.beta_chance(fractions(alpha), fractions(beta))
    for horizon in range(arms if each_once else 1, 7):
        expected = naive.expected_reward(naive.best_of, chance, arms, horizon, each_once)
        found = mb.optimal(prior, horizon, start="each-once" if each_once else "free")
        assert found.expected_reward == pytest.approx(float(expected), abs=1e-12)


def test_the_reward_that_another_solver_prints():
    found = mb.optimal(mb.Bernoulli(), 60).expected_reward
    assert found == pytest.approx(38.562343246635564, abs=1e-9)


@pytest.mark.parametrize("start", ["free", "each-once"])
def test_the_saved_optimal_policy_has_the_regret_of_the_recursion(tmp_path, start):
    prior = mb.Bernoulli(alpha=[3, 1], beta=[2, 1])
    solved = mb.OptimalPolicy(prior, 50, start=start)
    path = solved.save(tmp_path / "best.npz")
    assert solved.regret == pytest.approx(mb.optimal(prior, 50, start=start).regret, abs=1e-12)
    played = mb.evaluate(str(path), prior, 50, episodes=500_000, seed=1)[0]
    assert abs(played.mean_regret - solved.regret) < 3 * played.standard_error
    assert regret(str(path), prior, 50) == pytest.approx(solved.regret, abs=1e-10)
    again = mb.OptimalPolicy.load(path)
    assert again.optimum == solved.optimum
    assert again.optimum.prior == str(prior)
    assert again.start == start
    assert again.expected_reward == solved.expected_reward
    with pytest.raises(mb.InputError, match="exists already"):
        solved.save(path)


@pytest.mark.slow
def test_threads_do_not_change_the_optimum():
    for prior, horizon in [
        (mb.Bernoulli(), 300),
        (mb.Bernoulli(alpha=[2, 1]), 300),
        (mb.Bernoulli(3), 30),
    ]:
        values = {mb.optimal(prior, horizon, threads=threads).expected_reward for threads in (1, 2)}
        assert len(values) == 1


@pytest.mark.parametrize("alpha", [(1.0, 1.0), (2.0, 1.0)])
@pytest.mark.parametrize("horizon", [13, 48, 71])
def test_the_optimum_is_that_of_whole_slices(alpha, horizon):
    expected = naive.optimal_slices(alpha, (1.0, 1.0), horizon)
    found = mb.optimal(mb.Bernoulli(alpha=list(alpha)), horizon).expected_reward
    assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    ("horizon", "regret"),
    [
        (10, 0.644880952380953),
        (100, 1.7482460156437014),
        pytest.param(500, 3.0235195813436917, marks=pytest.mark.slow),
    ],
)
def test_known_regrets_of_two_uniform_arms(horizon, regret):
    assert mb.optimal(mb.Bernoulli(), horizon).regret == pytest.approx(regret, rel=1e-12)


TILES = [(1, 1), (1, 5), (2, 3), (5, 2), (7, 40), (40, 7)]


@pytest.mark.parametrize("start", ["free", "each-once"])
@pytest.mark.parametrize("alpha", [(1.0, 1.0), (2.0, 1.0)])
def test_tiles_and_threads_do_not_change_a_bit(monkeypatch, alpha, start):
    """How many levels a pass makes, how wide a tile is, how much of it is run at a time, and by whom."""
    prior = mb.Bernoulli(alpha=list(alpha))
    horizons = [2, 3, 6, 7, 24, 25, 60]
    expected = [mb.optimal(prior, horizon, start=start) for horizon in horizons]
    policy = mb.OptimalPolicy(prior, 24, start=start)
    for levels, width in TILES:
        monkeypatch.setattr(induction, "_LEVELS", levels)
        monkeypatch.setattr(induction, "_WIDTH", width)
        monkeypatch.setattr(induction, "_SHARED", 5)
        monkeypatch.setattr(induction, "_BLOCK", 4)
        for threads in (1, 3):
            for horizon, optimum in zip(horizons, expected, strict=True):
                assert mb.optimal(prior, horizon, start=start, threads=threads) == optimum
            again = mb.OptimalPolicy(prior, 24, start=start, threads=threads)
            assert np.array_equal(again.best, policy.best)


@pytest.mark.parametrize("horizon", [1, 2, 3, 24, 25, 26, 51, 100])
def test_rows_of_equal_arms_have_room_of_their_own(horizon):
    rows = induction._Levels(horizon, mirror=True)
    most = 0
    for top, low in induction._passes(horizon, mirror=True):
        rows.begin(top, low)
        begins, lengths = [], []
        for s1 in range(min(top + 1, rows.half) + 1):
            # Of s1 = top + 1 only the level before the pass has rows.
            least = low if s1 <= top else top + 1
            for n2 in range(least, horizon - least + 1):
                begins.append(rows.at[s1, n2])
                lengths.append(n2 + 1)
        order = np.argsort(begins)
        begins, ends = np.array(begins)[order], (np.array(begins) + lengths)[order]
        assert (ends[:-1] <= begins[1:]).all()
        assert ends[-1] <= len(rows.values)
        most = max(most, sum(lengths))
        rows.end(top, low)
    # Cells have room for two more entries than the one row in the middle needs.
    assert most <= rows.values.size <= most + (horizon + 2) * (horizon + 2)


def test_the_memory_of_long_horizons():
    """T^3/16 values of equal arms, of T^3/6 states in the last step."""
    assert 4e9 < induction.optimum_bytes(mb.Bernoulli(), 2000) < 4.2e9
    values = induction._Levels(100, mirror=True).values
    assert values.nbytes == induction.optimum_bytes(mb.Bernoulli(), 100)
    uneven = mb.Bernoulli(alpha=[2, 1])
    assert induction._Levels(50, mirror=False).values.nbytes == induction.optimum_bytes(uneven, 50)


shapes = st.floats(0.05, 20.0)


@settings(max_examples=some(8, 25), deadline=None)
@given(st.tuples(shapes, shapes), st.tuples(shapes, shapes), st.integers(2, 25))
def test_nothing_is_below_the_floor(alpha, beta, horizon):
    prior = mb.Bernoulli(alpha=list(alpha), beta=list(beta))
    policies = ["ucb1-tuned", "greedy", "thompson", "gittins", "optimal", "uniform"]
    result = mb.evaluate(policies, prior, horizon, method="exact", floor=True)
    for evaluation in result:
        assert evaluation.mean_regret >= result.floor.regret - 1e-9
        assert (np.diff(evaluation.curve) >= -1e-9).all(), "regret never falls"
    assert result["optimal"].mean_regret == pytest.approx(result.floor.regret, abs=1e-9)
    means = np.array(alpha) / np.add(alpha, beta)
    lost = horizon * (prior.expected_best() - means.mean())
    assert result["uniform"].mean_regret == pytest.approx(lost, abs=1e-9)


def test_the_optimal_policy_answers_in_every_state():
    policy = mb.OptimalPolicy(mb.Bernoulli(), 10)
    assert policy.choose([0, 0], [0, 0]) == (0, 1)
    assert policy.choose([1, 0], [1, 0]) == (0,)
    assert policy.choose([1, 0], [0, 0]) == (1,)
    each = mb.OptimalPolicy(mb.Bernoulli(), 10, start="each-once")
    assert each.choose([1, 0], [1, 0]) == (1,)
    for plays, wins, message in [
        ([1], [0], "one number for each"),
        (None, 3, "one number for each"),
        ([1, 0], [2, 0], "more successes"),
        ([5, 5], [0, 0], "made already"),
        ([1, -1], [0, 0], "at least 0"),
    ]:
        with pytest.raises(mb.InputError, match=message):
            policy.choose(plays, wins)


def test_files_that_hold_no_policy(tmp_path):
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK nothing")
    np.savez(tmp_path / "other.npz", cuts=np.zeros(3))
    for name, message in [
        ("broken.npz", "not a policy that metabandit saved"),
        ("other.npz", "not a policy that metabandit saved"),
        ("missing.npz", "does not exist"),
    ]:
        with pytest.raises(mb.InputError, match=message):
            mb.policy(str(tmp_path / name))
    solved = mb.OptimalPolicy(mb.Bernoulli(), 5)
    with np.load(solved.save(tmp_path / "good.npz")) as file:
        fields = dict(file)
    np.savez(tmp_path / "newer.npz", **{**fields, "format": "another"})
    with pytest.raises(mb.InputError, match="another format"):
        mb.policy(str(tmp_path / "newer.npz"))
    for key, value in {
        "cuts": fields["cuts"].astype(float),
        "regret": np.array(math.nan),
        "horizon": np.array(-1),
        "start": np.array("sometimes"),
        "alpha": np.array([1.0, 2.0, 3.0]),
        "beta": np.array([1.0, 0.0]),
    }.items():
        np.savez(tmp_path / f"{key}.npz", **{**fields, key: value})
        with pytest.raises(mb.InputError, match="not a policy that metabandit saved"):
            mb.policy(str(tmp_path / f"{key}.npz"))
    for number, cuts in enumerate((fields["cuts"][:, ::-1], fields["cuts"] + np.uint16(99))):
        np.savez(tmp_path / f"cuts{number}.npz", **{**fields, "cuts": cuts})
        with pytest.raises(mb.InputError, match="not a policy that metabandit saved"):
            mb.policy(str(tmp_path / f"cuts{number}.npz"))
    with pytest.raises(mb.InputError, match=r"must end in \.npz"):
        solved.save(tmp_path / "best.json")
    with pytest.raises(mb.InputError, match="folder"):
        solved.save(tmp_path / "nowhere" / "best.npz")
    with pytest.raises(mb.InputError, match="solved for 5 plays"):
        mb.evaluate(solved, mb.Bernoulli(), 6)
    with pytest.raises(mb.InputError, match="2 arms"):
        mb.evaluate(solved, mb.Bernoulli(3), 4)
