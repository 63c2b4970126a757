"""Tables of what a Bernoulli arm is worth at a price per pull (bayes/bounds.py has the mathematics).

Of the first pulls there is an entry for each pair (pulls, successes) and price. Of later ones there are
entries at some numbers of pulls: the slope of V, as a share of the pulls that are left, by how far the mean
is from the price, in deviations of the mean; and how far it is where the arm is given up. In between
they are interpolated, so that tables are short, however many pulls there are.
"""

from __future__ import annotations

import numpy as np

from .counts import pair
from .gittins import break_even, go_on, keep_positive
from .jit import jit, part

# Distances for which there are entries: from -FAR deviations to FAR.
FAR = 6.4
PER_DEVIATION = 10.0
DISTANCES = 129
# An arm this many deviations below the price is given up, and one above it never is.
_CERTAIN = 8.0


@part
def _subtract(won, failed, out):
    for j in range(out.shape[0]):
        out[j] = won[j] - failed[j]


@jit
def charge_bernoulli(horizon, alpha, beta, prices, value, room, slope, index):
    """V at rising prices by backward induction, and the indices that lie between them.

    value: float64[s, price], zeros. Fills slope[pair, price] and, for pairs whose index lies between
    the first and the last price, index[pair].
    """
    last = prices.shape[0] - 1
    for n in range(horizon - 1, -1, -1):
        for s in range(n + 1):
            p = (alpha + s) / (alpha + beta + n)
            _subtract(value[s + 1], value[s], slope[pair(n, s)])
            positive = go_on(value[s + 1], value[s], p, prices, 1.0, room)
            keep_positive(room, value[s])
            if 0 < positive <= last:
                index[pair(n, s)] = break_even(positive, prices, room)


@part
def _slopes(price, near, total, alpha, first, last, scale, value, slope):
    """The slope of V between two successes at each distance, interpolated."""
    for q in range(slope.shape[0]):
        at = (price + near * (q / PER_DEVIATION - FAR)) * total - alpha
        at = min(max(at, np.float64(first)), np.float64(last))
        s = min(np.int64(at), last - 1) if last > first else first
        here = value[s + 1] - value[s]
        after = value[s + 2] - value[s + 1] if last > first else here
        slope[q] = scale * (here + (at - s) * (after - here))


@part
def _gain(price, total, alpha, s, value):
    p = (alpha + s) / total
    return p - price + value[s] + p * (value[s + 1] - value[s])


@part
def _edge(price, near, total, alpha, first, last, value):
    """How many deviations below the price the mean is at which an arm is given up."""
    s = first
    while s < last - 1 and _gain(price, total, alpha, s + 1, value) <= 0.0:
        s += 1
    below = _gain(price, total, alpha, s, value)
    above = _gain(price, total, alpha, s + 1, value) if last > first else below
    at = s - below / (above - below) if above > below else np.float64(s)
    if first < s and above > 0.0:
        # The gain bends upwards: where the parabola through three points is 0.
        before = _gain(price, total, alpha, s - 1, value)
        bend = 0.5 * (above - 2.0 * below + before)
        rise = 0.5 * (above - before)
        if bend > 1e-9 * rise:
            at = s + (np.sqrt(rise * rise - 4.0 * bend * below) - rise) / (2.0 * bend)
    return (price - (alpha + at) / total) / near


@jit
def charge_stages(horizon, begin, alpha, beta, price, stages, value, slope, edge):
    """V at one price by backward induction down to `begin` pulls, which it is left at in `value`.

    Only means near the price are visited: further below an arm is worth nothing, and further above
    it is never given up.

    stages: int64[stage], the pulls that have entries, rising
    value: float64[s]; slope: float32[stage, distance]; edge: float64[stage], see `_slopes` and `_edge`
    """
    spread = np.sqrt(price * (1.0 - price))
    for s in range(value.shape[0]):
        value[s] = 0.0
    low, high = 0, horizon
    stage = stages.shape[0] - 1
    for n in range(horizon - 1, begin - 1, -1):
        total = alpha + beta + n
        near = spread / np.sqrt(total + 1.0)
        left = np.float64(horizon - n - 1)
        first = max(np.int64((price - _CERTAIN * near) * total - alpha) - 1, 0)
        last = min(max(np.int64((price + _CERTAIN * near) * total - alpha) + 1, 1), n)
        first = min(first, last)
        for s in range(first, low):
            value[s] = 0.0
        for s in range(high + 1, last + 2):
            value[s] = left * ((alpha + s) / (total + 1.0) - price)
        while stage >= 0 and stages[stage] == n:
            scale = (total + 1.0) / max(left, 1.0)
            _slopes(price, near, total, alpha, first, last, scale, value, slope[stage])
            edge[stage] = _edge(price, near, total, alpha, first, last, value)
            stage -= 1
        for s in range(first, last + 1):
            p = (alpha + s) / total
            gain = p - price + value[s] + p * (value[s + 1] - value[s])
            value[s] = gain if gain > 0.0 else 0.0
        low, high = first, last
    left = np.float64(horizon - begin)
    for s in range(low):
        value[s] = 0.0
    for s in range(high + 1, begin + 1):
        value[s] = left * ((alpha + s) / (alpha + beta + begin) - price)
