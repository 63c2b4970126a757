"""The best arm of each lane from its index rows, ties at random."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from .counts import TIE as FINE_TIE
from .jit import lane, part
from .random import TIE_STREAM, below, noise_bits
from .rows import STRIDE, f32, u32

# Indices closer than this, relative to their size, are ties: some twenty roundings of float32. Those of
# float64 lanes are ties where exact evaluation has ties.
TIE = np.float32(2e-6)


def _tied(a, b):
    raise TypeError("only compiled code calls this")


@overload(_tied)
def _tied_rows(a, b):
    if a == types.float32:
        return lambda a, b: abs(a - b) <= TIE * max(abs(a), abs(b))
    return lambda a, b: abs(a - b) <= FINE_TIE * max(abs(a), abs(b))


@part
def choose_of_two(rows, row, keys, step, chosen, lanes):
    """The better of two index rows in each lane, ties at random; false if an index is not finite."""
    first = rows[row * STRIDE : row * STRIDE + lanes]
    second = rows[(row + 1) * STRIDE : (row + 1) * STRIDE + lanes]
    wrong = u32(0)
    for i in range(lanes):
        x = first[i]
        y = second[i]
        better = u32(1) if y > x else u32(0)
        coin = u32(noise_bits(keys[i], step, TIE_STREAM) >> u32(31))
        chosen[i] = coin if _tied(x, y) else better
        # A difference is finite only if both are.
        wrong = u32(wrong | (u32(0) if abs(y - x) < f32(np.inf) else u32(1)))
    return wrong == u32(0)


@lane
def _fold(x, arm, best, second, chosen):
    """The best and second best index so far, and the arm of the best."""
    better = x > best
    return (
        x if better else best,
        max(second, best if better else x),
        arm if better else chosen,
    )


@part
def _fold_four(a, b, c, d, arm, best, second, chosen, check):
    """Four arms: each lane's best and second best index, and its arm."""
    for i in range(best.shape[0]):
        x, y, k = _fold(a[i], arm, best[i], second[i], chosen[i])
        x, y, k = _fold(b[i], u32(arm + u32(1)), x, y, k)
        x, y, k = _fold(c[i], u32(arm + u32(2)), x, y, k)
        x, y, k = _fold(d[i], u32(arm + u32(3)), x, y, k)
        best[i] = x
        second[i] = y
        chosen[i] = k
        # Stays zero as long as every index is finite.
        check[i] += ((a[i] + b[i]) + (c[i] + d[i])) * f32(0)


@part
def _fold_one(a, arm, best, second, chosen, check):
    """One arm more."""
    for i in range(best.shape[0]):
        x, y, k = _fold(a[i], arm, best[i], second[i], chosen[i])
        best[i] = x
        second[i] = y
        chosen[i] = k
        check[i] += a[i] * f32(0)


@part
def _all_zero(row):
    wrong = u32(0)
    for i in range(row.shape[0]):
        wrong = u32(wrong | (u32(0) if row[i] == f32(0) else u32(1)))
    return wrong == u32(0)


@part
def _any_tied(best, second, tied):
    """Which lanes have a tie; whether any has."""
    found = u32(0)
    for i in range(best.shape[0]):
        tie = u32(1) if _tied(best[i], second[i]) else u32(0)
        tied[i] = tie
        found = u32(found | tie)
    return found != u32(0)


@part
def choose(rows, row, arms, work, step, lanes):
    """The best of the index rows in each lane, ties at random; false if an index is not finite."""
    best, second, check, chosen, tied = work.best, work.uniform, work.check, work.chosen, work.tied
    best[:] = f32(-np.inf)
    second[:] = f32(-np.inf)
    check[:] = f32(0)
    chosen[:] = u32(0)
    for arm in range(0, arms - 3, 4):
        a = rows[(row + arm) * STRIDE :][:lanes]
        b = rows[(row + arm + 1) * STRIDE :][:lanes]
        c = rows[(row + arm + 2) * STRIDE :][:lanes]
        d = rows[(row + arm + 3) * STRIDE :][:lanes]
        _fold_four(a, b, c, d, u32(arm), best, second, chosen, check)
    for arm in range(arms // 4 * 4, arms):
        a = rows[(row + arm) * STRIDE :][:lanes]
        _fold_one(a, u32(arm), best, second, chosen, check)
    if not _all_zero(check):
        return False
    if _any_tied(best, second, work.low):
        for i in range(lanes):
            if work.low[i] != u32(0):
                ties = 0
                for arm in range(arms):
                    tied[ties] = arm
                    ties += 1 if _tied(rows[(row + arm) * STRIDE + i], best[i]) else 0
                chosen[i] = tied[below(noise_bits(work.keys[i], step, TIE_STREAM), ties)]
    return True
