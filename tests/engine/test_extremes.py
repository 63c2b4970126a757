"""Every policy on every kind of prior: exact regret, simulated regret and a float64 twin agree.

A cell is a policy, a start, a prior and a horizon. Simulated regret may differ from exact regret by 5
standard errors, and by what float64 rounds in T plays. The twin plays the same episodes as the simulator:
95 % of them must have the same regret, and the mean may differ by 5 standard errors of the differences. A
cell may be refused, if it says why: an index that is no number, fewer plays than the start makes.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice

import numpy as np
import pytest

import metabandit as mb
from metabandit.decisions import ByPosterior, Index
from metabandit.engine.exact import obstacle
from metabandit.engine.precision import Precision
from metabandit.engine.problems import draw_problems
from metabandit.errors import IndexFault, InputError
from metabandit.policies import CATALOGUE
from tests import naive

POLICIES = [*CATALOGUE, "bayes-ucb:a=1,b=1", "r + 1/(n + 1/2)", "r + 3/(n + 2)"]
STARTS = ("each-once", "prior-counts")
EXTREMES = (1e-6, 1e-3, 0.5, 1.0, 30.0, 1e3, 1e6, 1e9)
EPISODES = 4096
INDICES = ("greedy", "ucb1-tuned", "ucb-v", "kl-ucb", "kl-ucb+", "moss")
# Episodes of the simulator and of the twin, and the longest play, of policies that take microseconds per play
# or, in the twin, milliseconds.
COSTLY = {
    "bayes-ucb": (512, 8, 100),
    "bayes-ucb:a=1,b=1": (512, 16, 100),
    "ogi": (256, 2, 30),
    "kg": (1024, 8, 60),
    "kg-star": (512, 4, 30),
    "ids": (64, 3, 10),
    "ttts": (64, 3, 10),
    "whittle": (EPISODES, 16, 30),
    "gittins": (EPISODES, 16, 100),
    "optimal": (EPISODES, 16, 100),
}


def rounding(horizon):
    """What float64 may lose in an exact regret, a difference of two sums of T numbers up to 1."""
    return 1e-12 * horizon


def z_of(difference, error, horizon):
    """A difference in standard errors, less what is rounding."""
    excess = max(abs(difference) - rounding(horizon), 0.0)
    return excess / max(error, 1e-300) if excess else 0.0


def z_of_exact(exact, found, prior, horizon, episodes):
    """Of the simulated mean.

    Where fewer than 50 episodes have regret, or can be expected to have an arm or a reward of the rare kind,
    they may be most of the regret and not be in the sample, nor in its variance. Regret lies between 0 and
    T, so that its variance is at most T times its mean. With small alpha and beta means are almost 0 or almost
    1, and in between with a probability of about alpha beta/(alpha + beta) only.
    """
    few = np.count_nonzero(found.problem_regret) < 50
    for alpha, beta in zip(prior.alpha, prior.beta, strict=True):
        rare = episodes * min(alpha, beta) / (alpha + beta)
        few = few or rare * horizon < 50.0 or (rare < 50.0 and min(alpha, beta) < 0.5)
        few = few or (rare * max(alpha, beta) < 50.0 and max(alpha, beta) < 0.5)
    bound = math.sqrt(horizon * max(exact, 0.0) / episodes) if few else 0.0
    return z_of(found.mean_regret - exact, max(found.standard_error, bound), horizon)


def cost_of(text):
    """Episodes, episodes of the twin, and the longest play of a policy."""
    is_index = text not in CATALOGUE or CATALOGUE[text].index is not None
    return COSTLY.get(text, (EPISODES, 512 if is_index else 16, 300))


def played_by_twin(policy, prior, horizon, count, seed):
    """How often the twin plays each arm in each episode, and the means; None if draws are all there is to compare."""
    plan = policy.plan(prior, horizon)
    problems = draw_problems(prior, seed, count)
    means = prior.regret_means(problems)
    if isinstance(plan.decision, Index):
        return naive.play_lanes(plan, means, horizon, seed), means
    if isinstance(plan.decision, ByPosterior):
        return None
    fine = Precision.of(prior, horizon).kind(plan.counts, plan.decision) is np.float64
    choice = naive.choice_of(policy, prior, horizon, fine=fine)
    plays = np.zeros((count, prior.arms))
    for episode, parameters in enumerate(problems):
        moves = naive.play_episode(
            choice, plan.each_once, plan.counts, prior.family.name, parameters, horizon, seed, episode,
            fine=fine,
        )  # fmt: skip
        plays[episode] = np.bincount(moves, minlength=prior.arms)
    return plays, means


def z_of_twin(policy, prior, horizon, regret, seed):
    count = min(cost_of(policy.name)[1], len(regret))
    played = played_by_twin(policy, prior, horizon, count, seed)
    if played is None:
        return 0.0
    plays, means = played
    twin = ((means.max(axis=1, keepdims=True) - means) * plays).sum(axis=1)
    # Regrets are kept as float32.
    apart = np.where(
        np.isclose(regret[:count], twin, rtol=1e-6, atol=0.0), 0.0, regret[:count] - twin
    )
    if (np.abs(apart) > rounding(horizon)).mean() > 0.05:
        return math.inf
    return z_of(apart.mean(), apart.std() / math.sqrt(count), horizon)


def look_at(text, start, prior, horizon, seed, episodes=EPISODES):
    """The largest z of a cell, or why it was refused."""
    policy = mb.policy(text, start=start)
    options = {"floor": False, "threads": 1, "checkpoints": [horizon]}
    episodes = min(episodes, cost_of(text)[0])
    try:
        policy.check(prior, horizon)
        found = mb.evaluate(
            policy, prior, horizon, method="monte-carlo", episodes=episodes, seed=seed, **options
        )[0]
    except IndexFault:
        return "no index"
    except InputError as error:
        return str(error).partition(";")[0][:60]
    regret = found.problem_regret.astype(np.float64)
    assert found.plays.sum() == pytest.approx(horizon)
    largest = z_of_twin(policy, prior, horizon, regret, seed)
    has_exact = obstacle(prior, [policy.plan(prior, horizon)], horizon) is None
    if has_exact and (prior.arms == 2 or horizon <= 20):
        exact = mb.evaluate(policy, prior, horizon, method="exact", **options)[0].mean_regret
        largest = max(largest, z_of_exact(exact, found, prior, horizon, episodes))
    return largest


def some_cells(count, seed):
    """Cells drawn from the whole grid: like arms and unlike ones, 2 and 3 arms, short and long play."""
    rng = np.random.default_rng(seed)
    for turn in range(count):
        text, start = POLICIES[turn % len(POLICIES)], STARTS[turn // len(POLICIES) % 2]
        arms = int(rng.choice([2, 2, 3]))
        kinds = 1 if rng.random() < 0.4 else arms
        alpha, beta = rng.choice(EXTREMES, (2, kinds))
        if rng.random() < 0.5:  # anything between them
            alpha, beta = 10.0 ** rng.uniform(-6.0, 9.0, (2, kinds))
        most = {2: 300, 3: 300 if rng.random() < 0.3 else 20}[arms]
        horizon = round(most ** rng.random())
        horizon = min(horizon, cost_of(text)[2])
        if text == "optimal":
            arms, alpha, beta = 2, alpha[:2], beta[:2]
        yield text, start, mb.Bernoulli(arms, alpha=alpha, beta=beta), horizon


def assert_agreement(cells, seed=1, episodes=EPISODES):
    refused, largest, bad = Counter(), 0.0, []
    for text, start, prior, horizon in cells:
        z = look_at(text, start, prior, horizon, seed, episodes)
        if isinstance(z, str):
            refused[z] += 1
            continue
        largest = max(largest, z)
        if z >= 5.0:
            bad.append(f"{text}, {start}, {prior}, K={prior.arms}, T={horizon}: z = {z:.1f}")
    print(f"largest z {largest:.2f}; refused {dict(refused)}")
    assert bad == []


@pytest.mark.parametrize(
    ("begin", "end"),
    [(0, 12), *(pytest.param(*part, marks=pytest.mark.slow) for part in ((12, 24), (24, 48)))],
)
def test_some_of_the_grid_agrees(begin, end):
    assert_agreement(islice(some_cells(48, seed=0), begin, end))


@pytest.mark.slow
def test_the_grid_agrees():
    assert_agreement(some_cells(240, seed=1))


@pytest.mark.slow
def test_float32_agrees_as_far_as_it_is_used():
    """Like and unlike arms that are just not known too well for float32, on many episodes."""
    rng = np.random.default_rng(2)
    names = 2 * [*INDICES, "r + 1/(n + 1/2)", "r + 3/(n + 2)"]
    cells = []
    while len(cells) < len(names):
        alpha, beta = 10.0 ** rng.uniform(-0.3, 3.0, (2, rng.integers(1, 3)))
        prior, horizon = mb.Bernoulli(2, alpha=alpha, beta=beta), 100
        if Precision.of(prior, horizon).kind(prior.counts()) is np.float32:
            cells.append((names[len(cells)], "prior-counts", prior, horizon))
    assert_agreement(cells, episodes=16 * EPISODES)
