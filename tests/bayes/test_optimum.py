"""The Bayes optimum and the optimal policy: against fractions, other solvers and themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metabandit as mb
from tests import naive
from tests.engine.test_exact import CASES, fractions, regret


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


def test_threads_do_not_change_the_optimum():
    for prior, horizon in [
        (mb.Bernoulli(), 300),
        (mb.Bernoulli(alpha=[2, 1]), 300),
        (mb.Bernoulli(3), 30),
    ]:
        values = {mb.optimal(prior, horizon, threads=threads).expected_reward for threads in (1, 2)}
        assert len(values) == 1


shapes = st.floats(0.05, 20.0)


@settings(max_examples=25, deadline=None)
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
        ("broken.npz", "no policy that metabandit saved"),
        ("other.npz", "no policy that metabandit saved"),
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
        with pytest.raises(mb.InputError, match="no policy that metabandit saved"):
            mb.policy(str(tmp_path / f"{key}.npz"))
    for number, cuts in enumerate((fields["cuts"][:, ::-1], fields["cuts"] + np.uint16(99))):
        np.savez(tmp_path / f"cuts{number}.npz", **{**fields, "cuts": cuts})
        with pytest.raises(mb.InputError, match="no policy that metabandit saved"):
            mb.policy(str(tmp_path / f"cuts{number}.npz"))
    with pytest.raises(mb.InputError, match=r"ends in \.npz"):
        solved.save(tmp_path / "best.json")
    with pytest.raises(mb.InputError, match="folder"):
        solved.save(tmp_path / "nowhere" / "best.npz")
    with pytest.raises(mb.InputError, match="solved for 5 plays"):
        mb.evaluate(solved, mb.Bernoulli(), 6)
    with pytest.raises(mb.InputError, match="2 arms"):
        mb.evaluate(solved, mb.Bernoulli(3), 4)
