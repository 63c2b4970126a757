"""Posterior regret: the expectation of an episode's regret given its plays and rewards.

The paper's Eq. 1 has E[R] = sum over arms k of E[T_k] (mu* - mu_k). With Beta priors the means after an
episode, X_1, ..., X_K, are independent Beta variates, and given the episode the expected regret is

    sum over k of  T_k E[max(X_1, ..., X_K) - X_k]
    E[max(X_1, ..., X_K) - X_k] = integral over [0, 1] of  F_k(x) - F_1(x) ... F_K(x)  dx

with the distribution functions F. Its average over episodes is that of regret itself, with far less noise:
whether an arm that was hardly played is better after all is averaged over, not tossed.

The integral is taken over an angle, x = sin^2(angle), where all Beta distributions of n observations are
about equally wide, 1/(2 sqrt(n)), and Beta(a, b) has the density sin^(2a - 1) cos^(2b - 1), up to a factor.
A grid of cells has the densities at their middles and F at their upper edges.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np

from .jit import jit, part
from .special import exp_bounded

f32 = np.float32
_LANES = 256

BetaRows = namedtuple("BetaRows", "density a b top total below value lost product")
BetaRows.__doc__ = """Rows of _LANES episodes: of density one per arm and cell, of product one, else one per arm."""


def expected_regret(
    alpha: Any, beta: Any, horizon: int, plays: Any, wins: Any, regret: Any
) -> None:
    """Fill regret[episode] from plays[arm, episode] and wins[arm, episode] of Beta(alpha, beta) arms."""
    grid = _grid(horizon + float((alpha + beta).max()))
    arms = len(alpha)
    shapes: dict[str, tuple[int, ...]] = {"density": (arms, grid.shape[1]), "product": ()}
    # Arrays of their own, so that the compiler can tell them apart.
    rows = BetaRows(
        *(np.zeros((*shapes.get(name, (arms,)), _LANES), f32) for name in BetaRows._fields)
    )
    _expected_regret(alpha, beta, plays, wins, grid, rows, regret)


def cells(observations: float) -> int:
    """How many cells resolve the distribution of a mean after this many observations."""
    return 8 * math.ceil(max(64.0, 4.5 * math.sqrt(observations)) / 8.0)


def _grid(observations: float) -> Any:
    """Of each cell: ln sin and ln cos of its middle, and the weight of its upper edge."""
    count = cells(observations)
    step = 0.5 * math.pi / count
    middle = (np.arange(count) + 0.5) * step
    edge = (np.arange(count) + 1.0) * step
    return np.stack([np.log(np.sin(middle)), np.log(np.cos(middle)), np.sin(2.0 * edge) * step])


@part
def _peak(a, b):
    """The logarithm of sin^a cos^b where it is largest, at sin^2 = a/(a + b)."""
    whole = max(a + b, 1e-9)
    high = 0.5 * a * math.log(a / whole) if a > 0.0 else 0.0
    return high + (0.5 * b * math.log(b / whole) if b > 0.0 else 0.0)


@part
def _densities(a, b, top, u, v, row, total):
    """The density at one cell, up to a factor."""
    for i in range(row.shape[0]):
        # Not less than e^-30: numbers too small for float32 would take a hundred times as long.
        value = exp_bounded(max(a[i] * u + b[i] * v - top[i], f32(-30)))
        row[i] = value
        total[i] += value


@part
def _advance(here, after, scale, below, value, product):
    """The distribution function at the upper edge of a cell, and the product of all arms'."""
    for i in range(here.shape[0]):
        below[i] += here[i]
        # The term of Euler and Maclaurin: cells are almost as wide as the distributions.
        value[i] = (below[i] + (after[i] - here[i]) * f32(1.0 / 24.0)) * scale[i]
        product[i] *= value[i]


@part
def _collect(value, product, weight, lost):
    for i in range(lost.shape[0]):
        lost[i] += (value[i] - product[i]) * weight


@part
def _set_densities(k, first, alpha, beta, plays, wins, cells, rows):
    """The densities of arm k in all cells, after _LANES episodes from `first` on."""
    for i in range(_LANES):
        # Lanes beyond the last episode repeat it.
        episode = min(first + i, plays.shape[1] - 1)
        a = 2.0 * (alpha[k] + wins[k, episode]) - 1.0
        b = 2.0 * (beta[k] + plays[k, episode] - wins[k, episode]) - 1.0
        rows.a[k, i] = f32(a)
        rows.b[k, i] = f32(b)
        rows.top[k, i] = f32(_peak(a, b))
    total = rows.total[k]
    total[:] = f32(0)
    for g in range(cells.shape[1]):
        u = f32(cells[0, g])
        v = f32(cells[1, g])
        _densities(rows.a[k], rows.b[k], rows.top[k], u, v, rows.density[k, g], total)
    for i in range(_LANES):
        total[i] = f32(1) / total[i]


@part
def _integrate(arms, cells, rows):
    """E[max - X_k] of every arm k, into rows.lost."""
    density, below, value, product = rows.density, rows.below, rows.value, rows.product
    below[:] = f32(0)
    rows.lost[:] = f32(0)
    for g in range(cells.shape[1] - 1):
        product[:] = f32(1)
        for k in range(arms):
            _advance(density[k, g], density[k, g + 1], rows.total[k], below[k], value[k], product)
        for k in range(arms):
            _collect(value[k], product, f32(cells[2, g]), rows.lost[k])


@jit
def _expected_regret(alpha, beta, plays, wins, cells, rows, regret):
    arms, episodes = plays.shape
    for first in range(0, episodes, _LANES):
        for k in range(arms):
            _set_densities(k, first, alpha, beta, plays, wins, cells, rows)
        _integrate(arms, cells, rows)
        for i in range(min(_LANES, episodes - first)):
            total = 0.0
            for k in range(arms):
                total += plays[k, first + i] * rows.lost[k, i]
            regret[first + i] = total
