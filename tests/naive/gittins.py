"""The Gittins index: by bisection for the price, and of a Gaussian arm over a fine grid."""

from __future__ import annotations

from functools import cache

import numpy as np


def gittins_index(n: int, s: int, left: int, alpha: float, beta: float) -> float:
    """The price at which one is indifferent between stopping and going on, by bisection."""

    def gain(price):
        @cache
        def going_on(n, s, left):
            if not left:
                return 0.0
            p = (alpha + s) / (alpha + beta + n)
            more = p * max(0.0, going_on(n + 1, s + 1, left - 1))
            return p - price + more + (1 - p) * max(0.0, going_on(n + 1, s, left - 1))

        return going_on(n, s, left)

    low, high = 0.0, 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gain(middle) > 0 else (low, middle)
    return low


def gaussian_bonus(level: int, spread: float, noise: float, discount: float) -> float:
    """By how much the index of a Gaussian arm that was never played exceeds its mean.

    Backward induction from play number `level` on, over a fine grid of the mean less the price.
    """
    precision = spread**-2 + np.arange(level + 1) * noise**-2
    deviation = precision**-0.5
    move = np.sqrt(1.0 / precision[:-1] - 1.0 / precision[1:])
    grid = np.linspace(-7.0, 7.0, 2001)
    ahead = 0.0 if discount == 1.0 else 1.0 / (1.0 - discount)
    value = np.maximum(grid * deviation[-1], 0.0) * ahead
    nodes = np.linspace(-6.0, 6.0, 61)
    weights = np.exp(-0.5 * nodes**2) / np.sum(np.exp(-0.5 * nodes**2))
    for n in range(level - 1, -1, -1):
        y, after = grid * deviation[n], grid * deviation[n + 1]
        gain = y.copy()
        for z, weight in zip(nodes, weights, strict=True):
            to = y + move[n] * z
            far = np.maximum(to, 0.0) * (level - n - 1 if discount == 1.0 else ahead)
            found = np.where(np.abs(to) < after[-1], np.interp(to, after, value), far)
            gain += discount * weight * found
        value = np.maximum(gain, 0.0)
    return -float(np.interp(0.0, gain, y))
