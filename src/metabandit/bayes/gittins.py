"""The finite-horizon Gittins index: a strong reference where the optimum is out of reach.

An arm with a Beta(a, b) mean that was played n times with s successes, p = (a + s)/(a + b + n), is
played on or given up for good, at a price c per play, with m plays left:

    G_0 = 0,   G_m(n, s; c) = max(0, p - c + p G_{m-1}(n + 1, s + 1; c) + (1 - p) G_{m-1}(n + 1, s; c)).

Its index is the break-even price: the least c with G_m(n, s; c) = 0. All m and (n, s) are solved at
once for a grid of prices (kernels/gittins.py), and G, which falls with c, is interpolated.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..memory import check_memory
from ..priors import Bernoulli, BetaRewards, Prior
from ..priors.families import Array
from .induction import Progress

# Prices between which an index is interpolated; they are taken in groups.
_PRICES = 1024
_GROUP = 64


def gittins_table(
    horizon: int, alpha: float, beta: float, *, progress: Progress | None = None
) -> Array:
    """The indices of an arm with a Beta(alpha, beta) mean.

    For m = 0, 1, ..., horizon - 1 plays made in all: the pairs (plays, successes) of the arm with up
    to m plays. The error is mostly far below 1e-4; with parameters near 0 it can be twice that.
    """
    from ..kernels import gittins

    entries = math.comb(horizon + 2, 3)
    pairs = math.comb(horizon + 2, 2)
    table = np.empty(entries)
    prices = np.linspace(0.0, 1.0, _PRICES + 1)

    def group(first: int) -> None:
        some = prices[first : first + _GROUP + 1]
        gain = np.zeros((pairs, len(some)))
        gittins.calibrate(horizon, alpha, beta, some, gain, np.empty(len(some)), table)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, _ in enumerate(pool.map(group, range(0, _PRICES, _GROUP)), start=1):
            if progress is not None:
                progress(done * _GROUP, _PRICES)
    return table


def means_of(prior: Prior) -> list[tuple[float, float]]:
    """The Beta distribution of each arm's mean: the prior's, else uniform."""
    if isinstance(prior, (Bernoulli, BetaRewards)):
        return list(zip(prior.alpha, prior.beta, strict=True))
    return [(1.0, 1.0)] * prior.arms


def check_gittins_memory(prior: Prior, horizon: int) -> None:
    """Refuse tables that do not fit in memory."""
    # Tables, and what is computed at once by every thread.
    needed = 3 * 8 * math.comb(horizon + 2, 3) * len(set(means_of(prior)))
    needed += 8 * (_GROUP + 1) * math.comb(horizon + 2, 2) * (os.cpu_count() or 1)
    check_memory(needed, f"the Gittins index for {horizon} plays", "choose a shorter horizon")
