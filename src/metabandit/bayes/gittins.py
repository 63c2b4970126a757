"""The Gittins index: a strong reference where the optimum is out of reach.

An arm with a Beta(a, b) mean that was played n times with s successes, p = (a + s)/(a + b + n), is
played on or given up for good, at a price c per play. With its last play being number N,

    G(N, s; c) = 0,   G(n, s; c) = max(0, p - c + p G(n + 1, s + 1; c) + (1 - p) G(n + 1, s; c)).

Its index is the break-even price: the least c with G(n, s; c) = 0. All (n, s) are solved at once for a
grid of prices (kernels/gittins.py), and G, which falls with c, is interpolated.

With T plays in all, of which m are made, an arm with n plays can have N = n + T - m. A table has the
indices for each N up to _EVERY; beyond, N is rounded up to the next level, each level being _RATIO times
the one before. For T = 1000 that are 9 million numbers in place of 167 million, and seconds in place of
minutes.

With a discount d < 1 play never ends: G(n, s; c) = max(0, p - c + d (p G(n + 1, s + 1; c) + ...)), the
index of Gittins (1979), of which there is one level. Far ahead nothing more is learned, and G = (p - c)/(1 - d)
if that is positive.

Gaussian arms with normal means: G depends on the posterior mean less c, so that the index is the mean and a
bonus by n and N.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..memory import check_memory
from ..priors import Bernoulli, BetaRewards, Gaussian, Prior
from ..priors.families import Array
from ..progress import Progress

# Prices between which an index is interpolated; they are taken in groups.
_PRICES = 1024
_GROUP = 64

_EVERY = 128
_RATIO = 1.03

# How many plays beyond the horizon a discounted index looks ahead at most, and what is left then.
_FAR = 1500
_NEGLIGIBLE = 1e-7


def levels_of(horizon: int, discount: float = 1.0) -> tuple[int, ...]:
    """The numbers of plays that may be an arm's last, for which a table has indices."""
    if discount < 1.0:
        return (horizon,)
    levels = list(range(1, min(horizon, _EVERY) + 1))
    while levels[-1] < horizon:
        levels.append(min(max(int(_RATIO * levels[-1]), levels[-1] + 1), horizon))
    return tuple(levels)


def _in_threads(work: Callable[[Any], None], items: list[Any], progress: Progress | None) -> None:
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, _ in enumerate(pool.map(work, items), start=1):
            if progress is not None:
                progress(done, len(items))


def _reach(horizon: int, discount: float) -> int:
    """Up to which play a discounted index looks ahead."""
    return horizon + min(math.ceil(math.log(_NEGLIGIBLE) / math.log(discount)), _FAR)


def gittins_table(
    horizon: int,
    alpha: float,
    beta: float,
    *,
    discount: float = 1.0,
    progress: Progress | None = None,
) -> Array:
    """The indices of an arm with a Beta(alpha, beta) mean.

    For each level N, the pairs (plays, successes) of the arm with fewer than N plays. The error is mostly
    far below 1e-4; with parameters near 0 it can be twice that.
    """
    from ..kernels import gittins

    levels = levels_of(horizon, discount)
    ends = np.cumsum([math.comb(level + 1, 2) for level in levels])
    table = np.empty(int(ends[-1]))
    prices = np.linspace(0.0, 1.0, _PRICES + 1)

    def group(item: tuple[int, int]) -> None:
        place, first = item
        some = prices[first : first + _GROUP + 1]
        level = levels[place]
        index = table[ends[place] - math.comb(level + 1, 2) : ends[place]]
        if discount < 1.0:
            level = _reach(horizon, discount)
        value = np.zeros((level + 1, len(some)))
        if discount < 1.0:
            mean = (alpha + np.arange(level + 1)) / (alpha + beta + level)
            value = np.maximum(mean[:, None] - some, 0.0) / (1.0 - discount)
        room = np.empty(len(some))
        gittins.calibrate(level, alpha, beta, some, discount, value, room, index)

    # The longest first, so that threads end together.
    items = [(place, first) for place in range(len(levels)) for first in range(0, _PRICES, _GROUP)]
    _in_threads(group, items[::-1], progress)
    return table


def gittins_index(alpha: float, beta: float, level: int) -> float:
    """About the index of an arm without any play, whose last play is number `level`: never too small."""
    from ..kernels import charge

    low, high = alpha / (alpha + beta), 1.0
    value = np.zeros(level + 2)
    none = np.zeros(0, np.int64), value, np.zeros((0, 1), np.float32), np.zeros(0)
    while high - low > 1e-3 * high:
        price = 0.5 * (low + high)
        charge.charge_stages(level, 0, alpha, beta, price, *none)
        low, high = (price, high) if value[0] > 0.0 else (low, price)
    return high


def gaussian_moves(horizon: int, spread: float, noise: float) -> tuple[Array, Array]:
    """The deviation of a Gaussian arm's mean after each number of plays, and of its next change."""
    precision: Array = spread**-2 + np.arange(horizon + 1.0) * noise**-2
    return 1.0 / np.sqrt(precision), np.sqrt(1.0 / precision[:-1] - 1.0 / precision[1:])


def solve_gaussian(
    level: int, spread: float, noise: float, *, discount: float = 1.0
) -> tuple[Array, Array]:
    """What a Gaussian arm is worth for each number of plays and difference of mean and price; the bonus."""
    from ..kernels import gittins

    deviation, move = gaussian_moves(level, spread, noise)
    # What is expected has kinks, which the trapezoidal rule minds less than Gauss's.
    nodes = np.linspace(-5.0, 5.0, 41)
    weights = np.exp(-0.5 * nodes**2)
    points = np.arange(round(2 * gittins.REACH * gittins.PER_DEVIATION) + 1)
    value = np.zeros((level + 1, len(points)))
    ahead = level - np.arange(level + 1.0)
    if discount < 1.0:
        ahead = np.full(level + 1, 1.0 / (1.0 - discount))
        above = (points / gittins.PER_DEVIATION - gittins.REACH) * deviation[-1]
        value[-1] = np.maximum(above, 0.0) * ahead[-1]
    bonus = np.zeros(level)
    gittins.calibrate_gaussian(
        level, discount, ahead, deviation, move, nodes, weights / weights.sum(), value, bonus
    )
    return value, bonus


def bonus_table(
    horizon: int,
    spread: float,
    noise: float,
    *,
    discount: float = 1.0,
    progress: Progress | None = None,
) -> Array:
    """By how much the index of a Gaussian arm exceeds its mean: for each level N, n = 0, ..., N - 1."""
    levels = levels_of(horizon, discount)
    ends = np.cumsum(levels)
    table = np.empty(int(ends[-1]))

    def solve(place: int) -> None:
        level = levels[place] if discount == 1.0 else _reach(horizon, discount)
        _, bonus = solve_gaussian(level, spread, noise, discount=discount)
        table[ends[place] - levels[place] : ends[place]] = bonus[: levels[place]]

    _in_threads(solve, list(range(len(levels)))[::-1], progress)
    return table


def means_of(prior: Prior) -> list[tuple[float, float]]:
    """The Beta distribution of each arm's mean: the prior's, else uniform."""
    if isinstance(prior, (Bernoulli, BetaRewards)):
        return list(zip(prior.alpha, prior.beta, strict=True))
    return [(1.0, 1.0)] * prior.arms


def check_gittins_memory(prior: Prior, horizon: int) -> None:
    """Refuse tables that do not fit in memory."""
    if isinstance(prior, Gaussian):
        return
    # Tables, and once more as the numbers that the simulator reads.
    entries = sum(math.comb(level + 1, 2) for level in levels_of(horizon))
    needed = 3 * 8 * entries * len(set(means_of(prior)))
    needed += 8 * (_GROUP + 1) * (horizon + _FAR) * (os.cpu_count() or 1)
    check_memory(needed, f"the Gittins index for {horizon} plays", "choose a shorter horizon")
