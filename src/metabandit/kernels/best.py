"""The best arm of each lane from its index rows, ties at random."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from .counts import TIE as FINE_TIE
from .jit import jit, lane
from .random import TIE_STREAM, below, noise_bits
from .rows import STRIDE, blend, f32, u32

# Indices closer than this, relative to their size, are ties: some twenty roundings of float32. Those of
# float64 lanes are ties where exact evaluation has ties.
TIE = np.float32(2e-6)
NO_ARM = np.uint32(0xFFFFFFFF)


def _tied(a, b):
    raise TypeError("only compiled code calls this")


@overload(_tied)
def _tied_rows(a, b):
    if a == types.float32:
        return lambda a, b: abs(a - b) <= TIE * max(abs(a), abs(b))
    return lambda a, b: abs(a - b) <= FINE_TIE * max(abs(a), abs(b))


@jit
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
def _start_of(row, arm, arms):
    """Where the index row of an arm begins; arms beyond the last repeat it, which changes no maximum."""
    return (row + min(arm, arms - 1)) * STRIDE


@jit
def _largest(a, b, c, d, best, check):
    for i in range(best.shape[0]):
        old = best[i]
        new = max(max(a[i], b[i]), max(c[i], d[i]))
        best[i] = blend(old, new, u32(u32(0) - (u32(1) if new > old else u32(0))))
        # Stays zero as long as every index is finite.
        check[i] += ((a[i] + b[i]) + (c[i] + d[i])) * f32(0)


@lane
def _arm_if(value, best, arm, otherwise):
    return arm if _tied(value, best) else otherwise


@jit
def _ends(a, b, c, d, arm, last, best, low, high):
    """The lowest and the highest arm whose index equals the best: two different ones are a tie."""
    second = min(u32(arm + u32(1)), last)
    third = min(u32(arm + u32(2)), last)
    fourth = min(u32(arm + u32(3)), last)
    for i in range(best.shape[0]):
        m = best[i]
        x = min(_arm_if(a[i], m, arm, NO_ARM), _arm_if(b[i], m, second, NO_ARM))
        y = min(_arm_if(c[i], m, third, NO_ARM), _arm_if(d[i], m, fourth, NO_ARM))
        low[i] = min(min(x, y), low[i])
        x = max(_arm_if(a[i], m, arm, u32(0)), _arm_if(b[i], m, second, u32(0)))
        y = max(_arm_if(c[i], m, third, u32(0)), _arm_if(d[i], m, fourth, u32(0)))
        high[i] = max(max(x, y), high[i])


@jit
def _all_zero(row):
    wrong = u32(0)
    for i in range(row.shape[0]):
        wrong = u32(wrong | (u32(0) if row[i] == f32(0) else u32(1)))
    return wrong == u32(0)


@jit
def choose(rows, row, arms, work, step, lanes):
    """The best of the index rows in each lane, ties at random; false if an index is not finite.

    Two passes over the rows, four at a time: the largest index, then the arms that have it.
    """
    best, check, low, chosen, tied = work.best, work.check, work.low, work.chosen, work.tied
    best[:] = f32(-np.inf)
    check[:] = f32(0)
    low[:] = NO_ARM
    chosen[:] = u32(0)
    for arm in range(0, arms, 4):
        a = rows[_start_of(row, arm, arms) :][:lanes]
        b = rows[_start_of(row, arm + 1, arms) :][:lanes]
        c = rows[_start_of(row, arm + 2, arms) :][:lanes]
        d = rows[_start_of(row, arm + 3, arms) :][:lanes]
        _largest(a, b, c, d, best, check)
    if not _all_zero(check):
        return False
    for arm in range(0, arms, 4):
        a = rows[_start_of(row, arm, arms) :][:lanes]
        b = rows[_start_of(row, arm + 1, arms) :][:lanes]
        c = rows[_start_of(row, arm + 2, arms) :][:lanes]
        d = rows[_start_of(row, arm + 3, arms) :][:lanes]
        _ends(a, b, c, d, u32(arm), u32(arms - 1), best, low, chosen)
    for i in range(lanes):
        if low[i] != chosen[i]:
            ties = 0
            for arm in range(low[i], chosen[i] + 1):
                tied[ties] = arm
                ties += 1 if _tied(rows[(row + arm) * STRIDE + i], best[i]) else 0
            chosen[i] = tied[below(noise_bits(work.keys[i], step, TIE_STREAM), ties)]
    return True
