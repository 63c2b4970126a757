"""Live play makes the same plays as the naive twin, for every policy of the catalogue."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import metabandit as mb
from metabandit.policies import CATALOGUE
from metabandit.policies.power import power_tree, weight_names
from tests import naive
from tests.tiers import some

TWO = mb.Bernoulli(arms=2)


def random_power(degree: int, v1: str) -> mb.IndexPolicy:
    rng = np.random.default_rng(degree)
    weights = {name: float(rng.normal()) for name in weight_names(degree)}
    return mb.IndexPolicy(
        power_tree(degree, v1), parameters=weights, start="prior-counts:plays=2,sum=1,squares=1"
    )


# What is played besides the catalogue, which is played whole.
OTHERS = {
    "formula": mb.policy("r + 3/(n + 2)"),
    "formula with h": mb.policy("r + sqrt(ln(h + 1))/(n + 1)*s"),
    "begun with counts": mb.policy("ucb1:C=0.2", start="prior-counts:plays=2,sum=1"),
    "power-1": random_power(1, "h"),
    "power-2": random_power(2, "t"),
    "ucb2:alpha=0.03": mb.policy("ucb2:alpha=0.03"),
    "ucb2:alpha=0.3": mb.policy("ucb2:alpha=0.3"),
}


# The tables of these grow with the cube of the horizon: they make their 10,000 plays in parts.
SHORT = {"gittins": 100, "optimal": 250, "whittle": 60}
# A play of these takes a millisecond, or many.
FEW = {"ids": 600, "ttts": 600, "kg-star": 200, "whittle": 300, "ogi": 2000}


PLAYS = 10_000


def twin_choice(policy, prior, horizon):
    """The twin's rule, with the player's idea of a tie."""
    if isinstance(policy, mb.IndexPolicy) and len(policy.trees) == 1:
        tree = policy.plan(prior, horizon).decision.bound
        return partial(naive.index_choice, tree=tree, tie=1e-9)
    return naive.choice_of(policy, prior, horizon)


def play_both(policy, choose, prior, horizon, seed):
    """The plays of a player and of the twin, against the same problem and luck."""
    player = policy.player(prior.arms, seed=seed, horizon=horizon, prior=prior)
    plan = policy.plan(prior, horizon)
    problem = prior.draw(np.random.default_rng(seed), 1)[0]
    expected = naive.play_episode(
        choose, plan.each_once, plan.counts, prior.family.name, problem, horizon, seed, 0
    )
    made = []
    key = naive.episode_word(seed, 0, 0)
    words = [naive.episode_word(seed, 0, 1 + arm) for arm in range(prior.arms)]
    pulls = [0] * prior.arms
    for _ in range(horizon):
        arm = player.select()
        word = (words[arm] + pulls[arm] * naive.WEYL) & naive.MASK32
        uniform = naive.unit(naive.draw_bits(word, key))
        player.update(arm, naive.quantile(prior.family.name, uniform, problem[arm]))
        pulls[arm] += 1
        made.append(arm)
    return made, expected


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "optimal" else [pytest.mark.slow])
        for name in [*CATALOGUE, *OTHERS]
    ],
)
def test_ten_thousand_plays_are_those_of_the_twin(name):
    """Of each policy of the catalogue; two thousand of the others."""
    policy = OTHERS.get(name) or mb.policy(name)
    plays = FEW.get(name, some(2500, PLAYS) if name in CATALOGUE else PLAYS // 5)
    horizon = SHORT.get(name, plays)
    choose = twin_choice(policy, TWO, horizon)
    for seed in range(math.ceil(plays / horizon)):
        made, expected = play_both(policy, choose, TWO, horizon, seed)
        assert made == expected


@pytest.mark.parametrize("text", ["thompson", "bayes-ucb", "thompson:a=1,b=1"])
def test_arms_of_which_different_things_are_known(text):
    prior, policy = mb.Bernoulli(alpha=[3, 0.5, 1], beta=[1, 1, 2]), mb.policy(text)
    made, expected = play_both(policy, twin_choice(policy, prior, 200), prior, 200, 3)
    assert made == expected
    if "a=1" not in text:
        with pytest.raises(mb.InputError, match=r"different|each of its arms"):
            policy.player(3, horizon=200, prior=prior).add("new")


@pytest.mark.parametrize(
    ("name", "prior"),
    [
        pytest.param(name, prior, id=f"{prior}-{name}", marks=[pytest.mark.slow] if slow else [])
        for prior in (
            mb.Bernoulli(arms=5),
            mb.BetaRewards(arms=3, concentration=4.0),
            mb.Gaussian(arms=3),
        )
        for name in [*CATALOGUE, *OTHERS]
        if name not in ("optimal", "whittle")
        for slow in [
            name == "gittins"
            or (name in ("ids", "kg-star", "ttts") and isinstance(prior, mb.BetaRewards))
        ]
    ],
)
def test_plays_are_those_of_the_twin_on_other_problems(name, prior):
    policy = OTHERS.get(name) or mb.policy(name)
    try:
        policy.check(prior, 200)
    except mb.InputError:
        with pytest.raises(mb.InputError):
            policy.player(prior.arms, horizon=200, prior=prior)
        return
    if name == "gittins" and isinstance(prior, mb.BetaRewards):
        return  # the twin reads whole sums only
    horizon = 80 if name in FEW else 200
    choose = twin_choice(policy, prior, horizon)
    for seed in (3, 4)[: some(1, 2)]:
        made, expected = play_both(policy, choose, prior, horizon, seed)
        assert made == expected
