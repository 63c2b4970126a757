"""Three arms: Thompson sampling and given problems exactly, and the optimal policy to save, play and ask."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest

import metabandit as mb
from metabandit.decisions import ByStates
from tests import naive


def regret(policy, prior, horizon, **options):
    return mb.evaluate(policy, prior, horizon, method="exact", **options)[0].mean_regret


def times(one, two):
    product_of = [Fraction(0)] * (len(one) + len(two) - 1)
    for (i, x), (j, y) in product(enumerate(one), enumerate(two)):
        product_of[i + j] += x * y
    return product_of


def thompson_of_three(alpha, beta):
    """How likely each arm has the largest draw: integrals of polynomials, in fractions."""

    def density(a, b):
        scale = Fraction(comb(a + b - 2, a - 1) * (a + b - 1))
        return [Fraction(0)] * (a - 1) + [scale * comb(b - 1, i) * (-1) ** i for i in range(b)]

    def rising(coefficients):
        return [Fraction(0)] + [x / (i + 1) for i, x in enumerate(coefficients)]

    def shares(plays, wins):
        densities = [
            density(a + s, b + n - s) for a, b, n, s in zip(alpha, beta, plays, wins, strict=True)
        ]
        found = []
        for arm in range(3):
            whole = densities[arm]
            for other in {0, 1, 2} - {arm}:
                whole = times(whole, rising(densities[other]))
            found.append(sum(rising(whole)))
        return found

    return shares


@pytest.mark.parametrize(("alpha", "beta"), [((1, 1, 1), (1, 1, 1)), ((1, 2, 1), (3, 1, 2))])
def test_thompson_sampling_is_that_of_fractions(alpha, beta):
    prior = mb.Bernoulli(3, alpha=list(alpha), beta=list(beta))
    chance = naive.beta_chance([Fraction(a) for a in alpha], beta)
    shares = naive.by_shares(thompson_of_three(alpha, beta))
    expected = naive.expected_reward(shares, chance, 3, 4, False)
    found = regret("thompson", prior, 4)
    assert found == pytest.approx(4 * prior.expected_best() - float(expected), abs=1e-12)


def test_thompson_sampling_exactly_and_by_simulation():
    prior = mb.Bernoulli(3)
    played = mb.evaluate("thompson", prior, 25, method="monte-carlo", episodes=200_000)[0]
    assert abs(regret("thompson", prior, 25) - played.mean_regret) < 4 * played.standard_error


def test_given_problems_are_those_of_the_prior_on_average():
    """Points and weights of Gauss's rule stand for uniform means, without error in a few plays."""
    x, weight = np.polynomial.legendre.leggauss(6)
    rows = np.array(list(product(0.5 * (1 + x), repeat=3)))
    found = mb.evaluate(
        ["ucb1", "thompson:a=1,b=1"], mb.Table(rows), 6, method="exact", floor=False
    )
    for item in found:
        each = item.problem_regret
        weights = np.array([np.prod(w) for w in product(0.5 * weight, repeat=3)])
        expected = regret(item.policy, mb.Bernoulli(3), 6, floor=False)
        best = 6 * (0.75 - (rows.max(axis=1) * weights).sum())
        # The best mean is no polynomial: its error is known, and the rest has none.
        assert (each * weights).sum() == pytest.approx(expected - best, abs=1e-12)


def test_given_problems_exactly_and_by_simulation():
    table = mb.Table([[0.2, 0.5, 0.6], [0.9, 0.1, 0.4], [0.0, 1.0, 0.5]])
    for name in ("ucb1-tuned", "thompson:a=1,b=1"):
        exact = mb.evaluate(name, table, 20, method="exact")[0]
        played = mb.evaluate(name, table, 20, method="monte-carlo", episodes=100_000)[0]
        assert abs(exact.mean_regret - played.mean_regret) < 4 * played.standard_error
        assert abs(exact.simple_regret - played.simple_regret) < 4 * played.simple_error
        assert exact.plays == pytest.approx(played.plays, abs=0.1)


@pytest.mark.parametrize("start", ["free", "each-once"])
def test_the_optimal_policy_is_saved_and_played(tmp_path, start):
    prior = mb.Bernoulli(3, alpha=[1, 2, 1], beta=[1, 1, 2])
    solved = mb.OptimalPolicy(prior, 15, start=start)
    best = mb.optimal(prior, 15, start=start)
    assert solved.optimum == best
    path = solved.save(tmp_path / "best.npz")
    again = mb.OptimalPolicy.load(path)
    assert again.optimum == best
    assert regret(again, prior, 15) == pytest.approx(best.regret, abs=1e-10)
    played = mb.evaluate(str(path), prior, 15, method="monte-carlo", episodes=200_000)[0]
    assert abs(played.mean_regret - best.regret) < 4 * played.standard_error
    with np.load(path) as file:
        fields = dict(file)
    for number, wrong in enumerate((fields["cuts"][1:], fields["cuts"] * 0, fields["cuts"] + 8)):
        np.savez(tmp_path / f"{number}.npz", **{**fields, "cuts": wrong.astype(np.uint8)})
        with pytest.raises(mb.InputError, match="not a policy that metabandit saved"):
            mb.OptimalPolicy.load(tmp_path / f"{number}.npz")


def test_the_optimal_policy_answers_in_every_state():
    horizon = 5
    solved = mb.OptimalPolicy(mb.Bernoulli(3), horizon)
    decision = solved.decision(None)
    assert isinstance(decision, ByStates)
    assert len(decision.best) == comb(horizon + 5, 6)
    assert solved.choose([0, 0, 0], [0, 0, 0]) == (0, 1, 2)
    assert solved.choose([1, 0, 0], [1, 0, 0]) == (0,)
    assert solved.choose([1, 0, 0], [0, 0, 0]) == (1, 2)
    assert solved.choose([0, 0, 1], [0, 0, 0]) == (0, 1)
    assert solved.choose([1, 2, 1], [0, 2, 0]) == (1,)
    with pytest.raises(mb.InputError, match="each of the 3 arms"):
        solved.choose([1, 0], [1, 0])


def test_live_play_follows_the_table():
    prior = mb.Bernoulli(3)
    player = mb.policy("optimal").player(["a", "b", "c"], horizon=12, seed=3)
    solved = mb.OptimalPolicy(prior, 12)
    plays, wins = [0, 0, 0], [0, 0, 0]
    for step in range(12):
        arm = "abc".index(player.select())
        assert arm in solved.choose(plays, wins)
        reward = (step * 7 + arm) % 3 == 0
        player.update("abc"[arm], int(reward))
        plays[arm] += 1
        wins[arm] += reward


def test_the_catalogues_optimal_is_the_floor():
    found = mb.evaluate(["optimal", "gittins"], mb.Bernoulli(3), 12, method="exact")
    assert found["optimal"].mean_regret == pytest.approx(found.floor.regret, abs=1e-10)
    assert found["gittins"].mean_regret > found.floor.regret
