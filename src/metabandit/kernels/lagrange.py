"""The Lagrangian bound: one arm alone, with a price per play that depends on the time (bayes/lagrange.py)."""

from __future__ import annotations

import numpy as np

from .counts import pair
from .jit import jit


@jit
def lagrange(horizon, alpha, beta, prices, warmth, value, share, weight, played):
    """What an arm alone is worth if a play at time t costs prices[t], and when it is played.

    The value is an upper bound for any `warmth`, which makes the maximum smooth; 0 gives the maximum
    itself. share: float32[entry], the probability of a play, for each t the pairs with up to t plays;
    if it is empty, played[t], the probability of a play at time t, is not computed.
    """
    keep = share.shape[0] > 0
    for i in range(value.shape[0]):
        value[i] = 0.0
    for t in range(horizon - 1, -1, -1):
        begin = t * (t + 1) * (t + 2) // 6
        for n in range(t + 1):
            after = pair(n + 1, 0)
            for s in range(n + 1):
                at = pair(n, s)
                p = (alpha + s) / (alpha + beta + n)
                stay = value[at]
                failed = value[after + s]
                play = p - prices[t] + failed + p * (value[after + s + 1] - failed)
                x = play - stay
                chance = 1.0 if x > 0.0 else 0.0
                best = max(play, stay)
                if abs(x) < 30.0 * warmth:
                    e = np.exp(-abs(x) / warmth)
                    best += warmth * np.log1p(e)
                    chance = (1.0 if x > 0.0 else e) / (1.0 + e)
                value[at] = best
                if keep:
                    share[begin + at] = chance
    if keep:
        for i in range(weight.shape[0]):
            weight[i] = 0.0
        weight[0] = 1.0
        for t in range(horizon):
            begin = t * (t + 1) * (t + 2) // 6
            total = 0.0
            for n in range(t, -1, -1):
                after = pair(n + 1, 0)
                for s in range(n + 1):
                    at = pair(n, s)
                    moved = weight[at] * share[begin + at]
                    weight[at] -= moved
                    won = moved * (alpha + s) / (alpha + beta + n)
                    weight[after + s + 1] += won
                    weight[after + s] += moved - won
                    total += moved
            played[t] = total
    return value[0]
