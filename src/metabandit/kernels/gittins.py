"""The finite-horizon Gittins index of an arm that pays 0 or 1, by calibration.

The index of a pair (plays, successes) with h plays left is the price a play at which it is just
worth while to go on with the arm, when one may stop at any time. For a fixed price the gain of
going on follows by backward induction over h; here many prices are taken at once, and the index is
where the gain changes its sign, interpolated between two prices.
"""

from __future__ import annotations

from .counts import pair
from .jit import jit


@jit
def _gain(won, failed, p, prices, out):
    """The gain of one more play and what follows; returns at how many prices it is positive."""
    positive = 0
    for g in range(out.shape[0]):
        gain = failed[g] + p * (won[g] - failed[g]) + (p - prices[g])
        out[g] = gain
        positive += 1 if gain > 0.0 else 0
    return positive


@jit
def _keep_positive(gain, out):
    for g in range(out.shape[0]):
        out[g] = gain[g] if gain[g] > 0.0 else 0.0


@jit
def calibrate(horizon, alpha, beta, prices, gain, room, table):
    """Fill in the indices that lie between the first and the last of the rising prices.

    table[entry] is the index of a pair after m plays in all, h = horizon - m plays left; entries
    as everywhere: all pairs with up to m plays, for m = 0, 1, ... gain[pair, price] starts at zero.
    """
    last = prices.shape[0] - 1
    for left in range(1, horizon + 1):
        m = horizon - left
        slice = m * (m + 1) * (m + 2) // 6
        for n in range(m + 1):
            for s in range(n + 1):
                at = pair(n, s)
                after = pair(n + 1, s)
                p = (alpha + s) / (alpha + beta + n)
                best = gain[after, 0] + p * (gain[after + 1, 0] - gain[after, 0]) + (p - prices[0])
                if best <= 0.0:
                    # Not at the lowest price, so at none; and it never was with fewer plays left.
                    continue
                positive = _gain(gain[after + 1], gain[after], p, prices, room)
                _keep_positive(room, gain[at])
                if positive <= last:
                    above = room[positive - 1]
                    share = above / (above - room[positive])
                    step = prices[positive] - prices[positive - 1]
                    table[slice + at] = prices[positive - 1] + share * step
