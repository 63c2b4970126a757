"""The Lagrangian index: by how much an arm is better played than not, at the prices of the Lagrangian bound.

With l_m the price of a play after m plays (bayes/bounds.py), an arm with n plays and s successes, p its mean,

    V(m, n, s) = max(0, A(m, n, s)) + V(m + 1, n, s),   V(T, ., .) = 0,
    A(m, n, s) = p - l_m + p V(m + 1, n + 1, s + 1) + (1 - p) V(m + 1, n + 1, s) - V(m + 1, n, s).

The arm with the largest A is played (Whittle 1988; Brown, Smith 2020): at these prices all arms together are
played about once per step.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ..memory import check_memory
from ..priors import Bernoulli
from ..priors.families import Array
from .lagrange import lagrangian_prices


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


def prices_of(prior: Bernoulli, horizon: int) -> Array:
    """The price of a play after each number of plays."""
    return _prices(prior.alpha, prior.beta, horizon)


@cache
def _prices(alpha: tuple[float, ...], beta: tuple[float, ...], horizon: int) -> Array:
    prior = Bernoulli(alpha=alpha, beta=beta)
    return lagrangian_prices(prior, horizon, lambda work, count: list(map(work, range(count))))[1]
