"""The charge bound and the Lagrangian bound by their definitions, in fractions.

All reward sequences are listed, and all ways to share the plays among the arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import lcm, prod
from typing import Any


class ChargedArm:
    """One arm with a Beta(a, b) mean, and what it is worth at rising prices.

    They are evenly spaced, but for the last: no charge is above the one before it, indices may be.
    """

    def __init__(self, a: Fraction, b: Fraction, horizon: int, prices: Sequence[Fraction]) -> None:
        self.a, self.b, self.horizon, self.prices = a, b, horizon, prices
        self.gain = cache(self._gain)

    def mean(self, n: int, s: int) -> Fraction:
        return (self.a + s) / (self.a + self.b + n)

    def _gain(self, n: int, s: int, price: int) -> Fraction:
        """Of one more pull and what follows."""
        m = self.mean(n, s)
        more = m * self.worth(n + 1, s + 1, price) + (1 - m) * self.worth(n + 1, s, price)
        return m - self.prices[price] + more

    def worth(self, n: int, s: int, price: int) -> Fraction:
        return Fraction(0) if n == self.horizon else max(Fraction(0), self.gain(n, s, price))

    def index(self, n: int, s: int) -> Fraction:
        """Where the gain, interpolated between prices, is 0."""
        if self.gain(n, s, 0) <= 0:
            return min(self.mean(n, s), self.prices[0])
        last = next(j for j in range(len(self.prices)) if self.gain(n, s, j) <= 0)
        above, below = self.gain(n, s, last - 1), self.gain(n, s, last)
        step = self.prices[last] - self.prices[last - 1]
        return self.prices[last - 1] + above / (above - below) * step

    def worth_at(self, n: int, s: int, charge: Fraction) -> Fraction:
        """Interpolated between prices; below the first nothing is charged."""
        if charge < self.prices[0]:
            return Fraction(0)
        step = self.prices[1] - self.prices[0]
        j = min(int((charge - self.prices[0]) / step), len(self.prices) - 3)
        share = (charge - self.prices[j]) / step
        return (1 - share) * self.worth(n, s, j) + share * self.worth(n, s, j + 1)

    def sequences(self) -> list[tuple[Fraction, list[Fraction]]]:
        """For each sequence of rewards its probability and f(0), ..., f(T)."""
        found = []
        for rewards in product((0, 1), repeat=self.horizon):
            chance, s, total = Fraction(1), 0, [Fraction(0)]
            charge = None
            for n, reward in enumerate(rewards):
                m = self.mean(n, s)
                index = self.index(n, s)
                charge = index if charge is None else min(charge, index)
                won, failed = (self.worth_at(n + 1, s + k, charge) for k in (1, 0))
                settled = won if reward else failed
                total.append(total[-1] + m + m * won + (1 - m) * failed - settled)
                chance *= m if reward else 1 - m
                s += reward
            found.append((chance, total))
        return found


def best_share(totals: Sequence[Sequence[Any]], plays: int) -> Any:
    """The most that so many plays bring, however they are shared."""
    if len(totals) == 1:
        return totals[0][plays]
    return max(totals[0][n] + best_share(totals[1:], plays - n) for n in range(plays + 1))


def charge_bound(
    means: Sequence[tuple[Fraction, Fraction]], horizon: int, prices: Sequence[Fraction]
) -> Fraction:
    """An upper bound on the reward of any policy."""
    arms = [ChargedArm(a, b, horizon, prices).sequences() for a, b in means]
    # Whole multiples of common parts: the same sums, a hundred times as fast.
    parts = lcm(*(x.denominator for arm in arms for _, total in arm for x in total))
    chances = lcm(*(chance.denominator for arm in arms for chance, _ in arm))
    listed = [
        [(int(chance * chances), tuple(int(x * parts) for x in total)) for chance, total in arm]
        for arm in arms
    ]
    # The order of the arms does not change what is best.
    best = cache(lambda *totals: best_share(totals, horizon))
    bound = 0
    for scenario in product(*listed):
        totals = sorted(total for _, total in scenario)
        bound += prod(chance for chance, _ in scenario) * best(*totals)
    return Fraction(bound, parts * chances ** len(means))


def lagrangian_bound(
    means: Sequence[tuple[Fraction, Fraction]], prices: Sequence[Fraction]
) -> Fraction:
    """The same, with the prices of a play at each time."""

    def worth(a: Fraction, b: Fraction) -> Fraction:
        @cache
        def value(t: int, n: int, s: int) -> Fraction:
            if t == len(prices):
                return Fraction(0)
            m = (a + s) / (a + b + n)
            more = m * value(t + 1, n + 1, s + 1) + (1 - m) * value(t + 1, n + 1, s)
            return max(value(t + 1, n, s), m - prices[t] + more)

        return value(0, 0, 0)

    return sum(prices, Fraction(0)) + sum((worth(a, b) for a, b in means), Fraction(0))
