"""The Lagrangian bound on the reward of any policy, and the index that goes with it.

Plays may exceed one per step, at prices l_t: V* <= sum_t l_t + sum_k V_k(l), with V_k(l) the value of arm k
alone when a play at time t costs l_t. Good for many arms and few plays. The prices are found by a smoothed
maximum and L-BFGS; the bound is computed without smoothing.

The Lagrangian index is by how much an arm is better played than not, at these prices. With l_m the price of a play
after m plays, an arm with n plays and s successes, p its mean,

    V(m, n, s) = max(0, A(m, n, s)) + V(m + 1, n, s),   V(T, ., .) = 0,
    A(m, n, s) = p - l_m + p V(m + 1, n + 1, s + 1) + (1 - p) V(m + 1, n + 1, s) - V(m + 1, n, s).

The arm with the largest A is played (Whittle 1988; Brown, Smith 2020): at these prices all arms together are
played about once per step.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..memory import check_memory
from ..priors import Bernoulli
from ..priors.families import Array


def suits_lagrangian(prior: Bernoulli, horizon: int) -> bool:
    """Whether the Lagrangian bound may be the best: many arms, or few plays, so that it costs nothing."""
    return horizon <= 30 or (horizon <= 8 * prior.arms and horizon <= 500)


def lagrangian_prices(
    prior: Bernoulli, horizon: int, do: Callable[[Callable[[int], Any], int], list[Any]]
) -> tuple[float, Array]:
    """The Lagrangian bound on the reward, and the price of a play at each time that gives it."""
    from scipy.optimize import fmin_l_bfgs_b

    from ..kernels.lagrange import lagrange

    kinds = list(Counter(zip(prior.alpha, prior.beta, strict=True)).items())
    pairs, entries = math.comb(horizon + 2, 2), math.comb(horizon + 2, 3)
    check_memory(
        (16 * pairs + 4 * entries) * len(kinds),
        f"the Lagrangian bound for {horizon} plays",
        "choose a shorter horizon",
    )
    rooms = [
        (np.empty(pairs), np.empty(entries, np.float32), np.empty(pairs), np.empty(horizon))
        for _ in kinds
    ]

    def bound(prices: Array, warmth: float) -> tuple[float, Array]:
        def arm(item: int) -> float:
            (a, b), _ = kinds[item]
            value: float = lagrange(horizon, a, b, prices, warmth, *rooms[item])
            return value

        values = do(arm, len(kinds))
        total, slope = float(np.sum(prices)), np.ones(horizon)
        for value, room, (_, count) in zip(values, rooms, kinds, strict=True):
            total += count * value
            slope -= count * room[3]
        return total, slope

    prices = np.full(horizon, 0.8 * prior.expected_best())
    least, best = np.inf, prices
    for warmth in (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003):
        prices = fmin_l_bfgs_b(bound, prices, args=(warmth,), m=20, maxiter=60)[0]
        value = bound(prices, 0.0)[0]
        if value < least:
            least, best = value, prices
    return float(least), best


def advantages(means: tuple[float, float], prices: Array) -> Array:
    """A of an arm with a Beta(a, b) mean, for each number of plays that it can have and each pair."""
    (a, b), horizon = means, len(prices)
    check_memory(
        8 * math.comb(horizon + 2, 3),
        f"the Lagrangian index for {horizon} plays",
        "choose a shorter horizon",
    )
    table = np.zeros(math.comb(horizon + 2, 3))
    n, s = np.tril_indices(horizon + 1)
    pair, won = n * (n + 1) // 2 + s, (n + 1) * (n + 2) // 2 + s + 1
    p = (a + s) / (a + b + n)
    value = np.zeros(math.comb(horizon + 2, 2))
    for m in range(horizon - 1, -1, -1):
        count = math.comb(m + 2, 2)
        here, success = value[:count], value[won[:count]]
        gain = p[:count] * success + (1.0 - p[:count]) * value[won[:count] - 1]
        better = p[:count] - prices[m] + gain - here
        last = n[:count] + horizon - m
        table[(last - 1) * last * (last + 1) // 6 + pair[:count]] = better
        value[:count] = np.maximum(better, 0.0) + here
    return table


@cache
def prices_of(means: tuple[tuple[float, float], ...], horizon: int) -> Array:
    """The price of a play after each number of plays, for arms with these Beta(a, b) means."""
    alpha, beta = zip(*means, strict=True)
    prior = Bernoulli(alpha=alpha, beta=beta)
    return lagrangian_prices(prior, horizon, lambda work, count: list(map(work, range(count))))[1]
