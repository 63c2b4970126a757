"""Lower bounds on regret: against fractions, the optimum and themselves."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit.bayes import bounds, lagrange
from metabandit.bayes import scenarios as scenarios_of
from metabandit.bayes.bounds import kept_bound, lower_bound
from metabandit.bayes.scenarios import Scenarios
from tests import naive
from tests.tiers import some

UNIFORM = (1, 1)
CASES = [
    ((UNIFORM, UNIFORM), 1),
    ((UNIFORM, UNIFORM), 4),
    ((UNIFORM, UNIFORM), 6),
    (((3, 1), (1, 2)), 5),
    ((UNIFORM,) * 3, 3),
    (((1, 3), (2, 1), (1, 1)), 4),
]


def scenarios(prior, horizon, **few):
    """Scenarios with few prices, so that fractions are quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenarios_of, "_MOST_PRICES", few.get("prices", 33))
        patch.setattr(scenarios_of, "_FEWEST_PRICES", 8)
        return Scenarios(prior, horizon, 0, 1)


def prior_of(means):
    return mb.Bernoulli(len(means), alpha=[a for a, _ in means], beta=[b for _, b in means])


def fractions_of(means):
    return [(Fraction(a), Fraction(b)) for a, b in means]


def optimum(means, horizon):
    chance = naive.beta_chance([a for a, _ in fractions_of(means)], [b for _, b in means])
    return naive.expected_reward(naive.best_of, chance, len(means), horizon, False)


def all_sequences(given, horizon, theta):
    """The kernel on every sequence: expected reward of the index policy, and best in hindsight."""
    arms, room = given.arms, given.room()
    policy = hindsight = 0.0
    rows = list(product((0, 1), repeat=horizon))

    def row_chance(k, row):
        a, b = arms.first[arms.kind[k]], arms.second[arms.kind[k]]
        means = [(a + sum(row[:n])) / (a + b + n) for n in range(horizon)]
        return math.prod(m if reward else 1.0 - m for m, reward in zip(means, row, strict=True))

    chances = [{row: row_chance(k, row) for row in rows} for k in range(len(arms.kind))]
    for rewards in product(rows, repeat=len(arms.kind)):
        # A uniform number below the mean is a success.
        room.draw[:] = rewards
        np.subtract(1.0, room.draw, out=room.draw)
        chance = math.prod(chances[k][row] for k, row in enumerate(rewards))
        values = given.kernel.value_scenario(arms, theta, given.width, room)
        policy += chance * values[0]
        hindsight += chance * values[1]
    return policy, hindsight


@pytest.mark.parametrize(("means", "horizon"), CASES)
def test_charge_bound_is_that_of_fractions_and_above_the_best_reward(means, horizon):
    given = scenarios(prior_of(means), horizon)
    arms = given.arms
    low, step = Fraction(arms.low), Fraction(arms.step)
    prices = [*(low + j * step for j in range(arms.slope.shape[2] - 1)), Fraction(1)]
    expected = naive.charge_bound(fractions_of(means), horizon, prices)
    _, found = all_sequences(given, horizon, np.zeros(given.corrections()))
    assert found == pytest.approx(float(expected), abs=2e-6)
    assert expected >= optimum(means, horizon)


@pytest.mark.slow
def test_charge_bound_of_three_arms_and_five_plays_is_that_of_fractions():
    test_charge_bound_is_that_of_fractions_and_above_the_best_reward((UNIFORM,) * 3, 5)


@pytest.mark.parametrize(("means", "horizon"), [CASES[2], CASES[3], CASES[4]])
def test_no_correction_changes_a_policys_reward_or_takes_the_bound_below_the_best(means, horizon):
    given = scenarios(prior_of(means), horizon)
    best = float(optimum(means, horizon))
    size = given.corrections()
    plain, _ = all_sequences(given, horizon, np.zeros(size))
    for scale in (0.1, 1.0):
        theta = np.random.default_rng(1).normal(0.0, scale, size)
        policy, hindsight = all_sequences(given, horizon, theta)
        assert policy == pytest.approx(plain, abs=1e-12)
        assert plain <= best + 1e-12 <= hindsight + 2e-12


def test_gradient_is_the_change_of_the_gap():
    given = scenarios(mb.Bernoulli(3), 20)
    # Not where corrections are 0: with few plays there are ties there, and no derivative.
    theta, direction = np.random.default_rng(2).normal(0.0, 0.1, (2, given.corrections()))
    policy, hindsight, slope = given._run("learn", 0, 64, theta, chunk=16, slopes=True)
    change = 1e-7
    after = given._run("learn", 0, 64, theta + change * direction, chunk=64, slopes=False)
    difference = np.mean(after[1] - after[0]) - np.mean(hindsight - policy)
    assert difference / change == pytest.approx(slope @ direction, rel=1e-3)


@settings(max_examples=some(15, 60), deadline=None)
@given(arms=st.integers(2, 4), horizon=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_the_best_share_of_plays_is_found(arms, horizon, seed):
    given = scenarios(mb.Bernoulli(arms), horizon)
    rng = np.random.default_rng(seed)
    room = given.room()
    total = np.concatenate(
        [np.zeros((arms, 1)), np.cumsum(rng.normal(rng.normal(), 1.0, (arms, horizon)), 1)], 1
    )
    expected = naive.best_share(total.tolist(), horizon)
    found = given.kernel.relax(total, float(total[0, horizon]), 1, room)
    assert found == pytest.approx(expected, abs=1e-9)
    assert sum(room.best) == horizon
    assert sum(total[k, n] for k, n in enumerate(room.best)) == pytest.approx(found)
    for width in (2, 3, 100):
        assert given.kernel.relax(total, float(total[0, horizon]), width, room) >= found - 1e-9


@pytest.mark.parametrize(("means", "horizon"), CASES)
def test_lagrangian_bound_is_that_of_fractions_and_above_the_best_reward(means, horizon):
    from metabandit.kernels.lagrange import lagrange as value_of

    prices = [Fraction(5 + t, 12 + 2 * t) for t in range(horizon)]
    expected = naive.lagrangian_bound(fractions_of(means), prices)
    pairs, entries = math.comb(horizon + 2, 2), math.comb(horizon + 2, 3)
    rooms = [np.empty(pairs), np.empty(entries, np.float32), np.empty(pairs), np.empty(horizon)]
    costs = np.array([float(price) for price in prices])
    found = costs.sum()
    for a, b in means:
        found += value_of(horizon, float(a), float(b), costs, 0.0, *rooms)
    assert found == pytest.approx(float(expected), abs=1e-12)
    assert expected >= optimum(means, horizon)
    prior = prior_of(means)
    least, _ = lagrange.lagrangian_prices(prior, horizon, lambda work, n: list(map(work, range(n))))
    assert float(optimum(means, horizon)) - 1e-9 <= least <= found + 1e-9


@pytest.mark.parametrize(
    "prior", [mb.Bernoulli(5, alpha=[1, 1, 2, 2, 3]), mb.Gaussian(4, mean=2.0, spread=0.7)], ids=str
)
def test_penalties_leave_the_index_policys_reward(prior):
    """Whatever the correction: its penalised reward has the mean of its reward."""
    with Scenarios(prior, 40, 1, 2) as some:
        theta = np.random.default_rng(3).normal(0.0, 0.2, some.corrections())
        policy, hindsight = some.values("report", 20_000, theta)
        regret, error = some.regret("report", 40_000)
    expected = 40 * bounds._expected_best(prior) - regret
    slack = 4.0 * math.hypot(np.std(policy) / math.sqrt(len(policy)), error)
    assert abs(np.mean(policy) - expected) < slack
    assert np.all(hindsight >= policy - 1e-9)


def test_gaussian_penalties_have_mean_zero_without_error():
    with Scenarios(mb.Gaussian(2, spread=2.0), 12, 0, 1) as some:
        arms, room = some.arms, some.room()
        theta = np.zeros(some.corrections())
        for n in range(12):
            mean = 0.0
            for q, chance in enumerate(arms.chance):
                room.draw[:] = 0.4
                room.draw[0, n] = arms.point[q]
                some.kernel.value_scenario(arms, theta, some.width, room)
                before = arms.first[0] + 0.4 * sum(arms.move[:n])
                mean += chance * (room.total[0, n + 1] - room.total[0, n] - before)
            assert mean == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("prior", "horizon"),
    [
        pytest.param(mb.Bernoulli(2), 30, marks=pytest.mark.slow),
        pytest.param(mb.Bernoulli(2, alpha=[3, 1], beta=[1, 2]), 40, marks=pytest.mark.slow),
        pytest.param(mb.Bernoulli(2, alpha=1, beta=9), 50, marks=pytest.mark.slow),
        pytest.param(mb.Bernoulli(3), 20, marks=pytest.mark.slow),
        (mb.Bernoulli(3, alpha=0.5, beta=0.5), 15),
    ],
    ids=str,
)
def test_bound_is_below_the_optimum_and_not_far(prior, horizon):
    bound = lower_bound(prior, horizon, effort=0.1)
    best = mb.optimal(prior, horizon).regret
    assert bound.regret < best + 3.0 * bound.standard_error
    assert bound.regret > 0.85 * best - 3.0 * bound.standard_error


@pytest.mark.parametrize("means", [(1.0, 1.0), pytest.param((6.0, 540.0), marks=pytest.mark.slow)])
def test_tables_by_stages_are_those_by_pairs(means, monkeypatch):
    """The indices and slopes of a long horizon, within what the interpolation of few entries loses."""
    prior = mb.Bernoulli(4, alpha=means[0], beta=means[1])
    monkeypatch.setattr(scenarios_of, "_FIRST", 50)
    with Scenarios(prior, 600, 0, 2) as short:
        theta = np.zeros(short.corrections())
        values = short.values("report", 500, theta)
    monkeypatch.setattr(scenarios_of, "_FIRST", 600)
    with Scenarios(prior, 600, 0, 2) as full:
        expected = full.values("report", 500, theta)
    assert short.arms.slope.nbytes < full.arms.slope.nbytes / 100
    gap, other = np.mean(values[1] - values[0]), np.mean(expected[1] - expected[0])
    assert gap == pytest.approx(other, rel=0.15)


def test_blocks_of_pulls_hardly_loosen_a_bound():
    some = Scenarios(mb.Bernoulli(4), 300, 0, 1)
    theta = np.zeros(some.corrections())
    policy, exact = some.values("report", 300, theta)
    some.width = 2
    _, above = some.values("report", 300, theta)
    assert np.all(above >= exact - 1e-9)
    assert np.mean(above - exact) < 0.2 * np.mean(exact - policy)


def test_lagrangian_bound_is_reported_for_many_arms():
    bound = lower_bound(mb.Bernoulli(40), 30, effort=0.02)
    assert (bound.method, bound.standard_error, bound.kind) == ("Lagrangian", 0.0, "bound")
    assert 0.9 * bound.policy_regret < bound.regret < bound.policy_regret


def test_bound_depends_on_the_seed_and_not_on_threads():
    task = (mb.Gaussian(3), 20)
    one, two = (lower_bound(*task, effort=0.02, threads=threads) for threads in (1, 3))
    assert dataclasses.replace(one, seconds=0.0) == dataclasses.replace(two, seconds=0.0)
    assert lower_bound(*task, effort=0.02, seed=1).regret != one.regret


def test_bound_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    task = (mb.Bernoulli(4), 10)
    assert kept_bound(*task, effort=0.01, compute=False) is None
    bound = kept_bound(*task, effort=0.01)
    assert kept_bound(*task, effort=0.01, compute=False) == bound
    assert kept_bound(mb.Bernoulli(5), 10, effort=0.01, compute=False) is None
    assert kept_bound(*task, effort=0.02, compute=False) is None
    (path,) = (tmp_path / "metabandit").iterdir()
    whole = path.read_bytes()
    # Whatever happens to the file, it is no other figure.
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert kept_bound(*task, effort=0.01, compute=False) is None
    path.write_text("{}")
    assert kept_bound(*task, effort=0.01, compute=False) is None


def test_bound_refuses_what_it_is_not_known_for():
    with pytest.raises(mb.InputError, match="Gaussian arms"):
        lower_bound(mb.TruncatedGaussian(2), 10)
    with pytest.raises(mb.InputError, match="effort"):
        lower_bound(mb.Bernoulli(4), 10, effort=0.0)
