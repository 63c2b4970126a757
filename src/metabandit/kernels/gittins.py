"""The Gittins index of an arm by calibration: what going on is worth at many prices, for all states.

The index of a state is the per-play price at which continuing with the arm just breaks even, if one may
stop at any time. For a fixed price the gain of continuing follows by backward induction from the last
play; many prices are taken at once, and the index is where the gain changes its sign, interpolated
between two prices. For a Gaussian arm only the difference of mean and price counts, so that one
induction serves all prices.
"""

from __future__ import annotations

import numpy as np

from .counts import pair
from .jit import jit, lane, part

# The points at which a Gaussian arm has a value: from -REACH deviations of its mean to REACH.
REACH = 7.0
PER_DEVIATION = 24.0


@part
def go_on(won, failed, p, prices, discount, out):
    """The gain of one more play and what follows; returns at how many prices it is positive."""
    positive = 0
    for g in range(out.shape[0]):
        gain = discount * (failed[g] + p * (won[g] - failed[g])) + (p - prices[g])
        out[g] = gain
        positive += 1 if gain > 0.0 else 0
    return positive


@part
def keep_positive(gain, out):
    for g in range(out.shape[0]):
        out[g] = gain[g] if gain[g] > 0.0 else 0.0


@part
def break_even(positive, prices, gain):
    """The price at which the gain is 0, given at how many prices it is positive."""
    above = gain[positive - 1]
    share = above / (above - gain[positive])
    return prices[positive - 1] + share * (prices[positive] - prices[positive - 1])


@jit
def calibrate(level, alpha, beta, prices, discount, value, room, index):
    """Fill in the indices that lie between the first and the last of the rising prices.

    value: float64[successes, price], what an arm with `level` plays is worth: zeros if no play is left
    index: float64[pair], of pairs with fewer plays than `level`; those of the first plays are kept if
        it has room for fewer
    """
    last = prices.shape[0] - 1
    for n in range(level - 1, -1, -1):
        for s in range(n + 1):
            p = (alpha + s) / (alpha + beta + n)
            won, failed = value[s + 1], value[s]
            if discount * (failed[0] + p * (won[0] - failed[0])) + (p - prices[0]) <= 0.0:
                # Not at the lowest price, so at none.
                for g in range(failed.shape[0] if failed[0] > 0.0 else 0):
                    failed[g] = 0.0
                continue
            positive = go_on(won, failed, p, prices, discount, room)
            keep_positive(room, value[s])
            at = pair(n, s)
            if positive <= last and at < index.shape[0]:
                index[at] = break_even(positive, prices, room)


@lane
def gaussian_value(values, ahead, scale, y):
    """The value, and its slope, where the mean is y above the price.

    scale: PER_DEVIATION / deviation of the mean; ahead: what a unit per play for ever is worth, for
    means so high that nobody would stop
    """
    position = y * scale + REACH * PER_DEVIATION
    if position <= 0.0:
        return 0.0, 0.0
    j = np.int64(position)
    if j + 1 >= values.shape[0]:
        return ahead * y, ahead
    difference = values[j + 1] - values[j]
    return values[j] + (position - j) * difference, difference * scale


@jit
def calibrate_gaussian(level, discount, ahead, deviation, move, nodes, weights, value, bonus):
    """What a Gaussian arm is worth, and by how much its index exceeds its mean.

    ahead: float64[n], what a unit per play is worth after n plays; deviation: float64[n], of the mean
    after n plays, and move: float64[n], of its next change
    nodes, weights: for expectations of functions of a standard normal number
    value: float64[n, point], of which that of `level` plays is given; bonus: float64[n]
    """
    for n in range(level - 1, -1, -1):
        scale = PER_DEVIATION / deviation[n + 1]
        # The gain rises with the mean, and is positive where the mean is above the price.
        below = -1.0
        bonus[n] = 0.0
        for j in range(value.shape[1]):
            y = (j / PER_DEVIATION - REACH) * deviation[n]
            gain = y
            for q in range(nodes.shape[0]):
                at = y + move[n] * nodes[q]
                found, _ = gaussian_value(value[n + 1], ahead[n + 1], scale, at)
                gain += discount * weights[q] * found
            value[n, j] = max(gain, 0.0)
            if gain > 0.0 and below <= 0.0:
                share = gain / (gain - below)
                bonus[n] = -y + share * deviation[n] / PER_DEVIATION
                below = 1.0
            elif below <= 0.0:
                below = gain
