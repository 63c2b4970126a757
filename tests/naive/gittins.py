"""The finite-horizon Gittins index, by bisection for the price."""

from __future__ import annotations

from functools import cache


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
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gain(middle) > 0 else (low, middle)
    return low
