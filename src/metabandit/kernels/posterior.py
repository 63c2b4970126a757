"""What an episode cost in view of all that was seen: the expectation of regret given the plays.

With Beta priors the means after an episode are independent Beta variates, and the expected regret is
the sum over arms of plays times E[best mean - mean]. Its average over episodes is the same as that
of regret itself, with far less noise: whether an arm that was hardly played is better after all is
averaged over, not tossed.

E[best - mean k] is the integral of F_k - F_1 F_2 ... over x, with the distribution functions F. It is
taken over x = sin^2(angle): there all Beta distributions of n observations are about equally wide,
1/(2 sqrt(n)). A grid of cells has the densities at their middles and F at their edges.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np

from .jit import jit
from .special import exp_bounded

f32 = np.float32
LANES = 256


def grid(observations: float) -> Any:
    """Of each cell: ln sin and ln cos of its middle, and the weight of its upper edge."""
    cells = 8 * math.ceil(max(64.0, 4.5 * math.sqrt(observations)) / 8.0)
    step = 0.5 * math.pi / cells
    middle = (np.arange(cells) + 0.5) * step
    edge = (np.arange(cells) + 1.0) * step
    return np.stack([np.log(np.sin(middle)), np.log(np.cos(middle)), np.sin(2.0 * edge) * step])


Room = namedtuple("Room", "density a b top total below value lost product")
Room.__doc__ = (
    """Rows of LANES numbers: densities of each arm and cell; the others one row an arm."""
)


def room(arms: int, cells: int) -> Any:
    """Working space; arrays of their own, so that the compiler can tell them apart."""
    sizes = {"density": arms * cells, "product": 1}
    return Room(**{field: np.zeros(sizes.get(field, arms) * LANES, f32) for field in Room._fields})


@jit
def _peak(a, b):
    """The logarithm of sin^a cos^b where it is largest, at sin^2 = a/(a + b)."""
    whole = max(a + b, 1e-9)
    high = 0.5 * a * math.log(a / whole) if a > 0.0 else 0.0
    return high + (0.5 * b * math.log(b / whole) if b > 0.0 else 0.0)


@jit
def _densities(a, b, top, u, v, row, total):
    """The density at one cell, up to a factor."""
    for i in range(row.shape[0]):
        # Not less than e^-30: numbers too small for float32 would take a hundred times as long.
        value = exp_bounded(max(a[i] * u + b[i] * v - top[i], f32(-30)))
        row[i] = value
        total[i] += value


@jit
def _advance(here, after, scale, below, value, product):
    """The distribution function at the upper edge of a cell, and the product of all arms'."""
    for i in range(here.shape[0]):
        below[i] += here[i]
        # The term of Euler and Maclaurin: cells are almost as wide as the distributions.
        value[i] = (below[i] + (after[i] - here[i]) * f32(1.0 / 24.0)) * scale[i]
        product[i] *= value[i]


@jit
def _collect(value, product, weight, lost):
    for i in range(lost.shape[0]):
        lost[i] += (value[i] - product[i]) * weight


@jit
def _fill(row, number):
    for i in range(row.shape[0]):
        row[i] = number


@jit
def expected_regret(alpha, beta, plays, wins, cells, room, regret):
    """Fill regret[episode] from plays[arm, episode] and wins[arm, episode]."""
    arms, episodes = plays.shape
    count = cells.shape[1]
    for first in range(0, episodes, LANES):
        for k in range(arms):
            at = k * LANES
            for i in range(LANES):
                # Lanes beyond the last episode repeat it.
                episode = min(first + i, episodes - 1)
                # In the angle the density is sin^(2a-1) cos^(2b-1).
                a = 2.0 * (alpha[k] + wins[k, episode]) - 1.0
                b = 2.0 * (beta[k] + plays[k, episode] - wins[k, episode]) - 1.0
                room.a[at + i] = f32(a)
                room.b[at + i] = f32(b)
                room.top[at + i] = f32(_peak(a, b))
            total = room.total[at : at + LANES]
            _fill(total, f32(0))
            _fill(room.below[at : at + LANES], f32(0))
            _fill(room.lost[at : at + LANES], f32(0))
            for g in range(count):
                row = (k * count + g) * LANES
                _densities(
                    room.a[at : at + LANES],
                    room.b[at : at + LANES],
                    room.top[at : at + LANES],
                    f32(cells[0, g]),
                    f32(cells[1, g]),
                    room.density[row : row + LANES],
                    total,
                )
            for i in range(LANES):
                total[i] = f32(1) / total[i]
        for g in range(count - 1):
            _fill(room.product, f32(1))
            for k in range(arms):
                at = k * LANES
                row = (k * count + g) * LANES
                _advance(
                    room.density[row : row + LANES],
                    room.density[row + LANES : row + 2 * LANES],
                    room.total[at : at + LANES],
                    room.below[at : at + LANES],
                    room.value[at : at + LANES],
                    room.product,
                )
            for k in range(arms):
                at = k * LANES
                _collect(
                    room.value[at : at + LANES],
                    room.product,
                    f32(cells[2, g]),
                    room.lost[at : at + LANES],
                )
        for i in range(min(LANES, episodes - first)):
            total_lost = 0.0
            for k in range(arms):
                total_lost += plays[k, first + i] * room.lost[k * LANES + i]
            regret[first + i] = total_lost
