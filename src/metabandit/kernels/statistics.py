"""What is known of an arm: plays, mean and deviation of its rewards, brought up to date.

`rows` has a slot of rows (n, r, s, w) for each arm and one more for the arm just played, which
gets the new values too; `sums` has two rows for each arm, the reward sum and the sum of squares.
"""

from __future__ import annotations

import numpy as np

from .jit import lane, part
from .rows import SLOT, STRIDE, blend, f32, i32, u32


@part
def update_two(rows, sums, reward, chosen, lanes):
    """Two arms: count the rewards."""
    for i in range(lanes):
        one = f32(i32(chosen[i]))
        zero = f32(1) - one
        mask = u32(u32(0) - chosen[i])
        x = reward[i]
        n0 = rows[i] + zero
        n1 = rows[4 * STRIDE + i] + one
        s0 = sums[i] + x * zero
        s1 = sums[2 * STRIDE + i] + x * one
        n = n1 if chosen[i] != u32(0) else n0
        s = s1 if chosen[i] != u32(0) else s0
        r = s / n
        rows[i] = n0
        rows[4 * STRIDE + i] = n1
        sums[i] = s0
        sums[2 * STRIDE + i] = s1
        rows[STRIDE + i] = blend(r, rows[STRIDE + i], mask)
        rows[5 * STRIDE + i] = blend(rows[5 * STRIDE + i], r, mask)


@part
def update_two_binary(rows, sums, reward, chosen, lanes):
    """Two arms, rewards of 0 and 1: the same, and the standard deviation, which follows from the mean.

    Its row in the slot of the arm just played is left to `copy_of_two`, as those of n and r are.
    """
    for i in range(lanes):
        one = f32(i32(chosen[i]))
        zero = f32(1) - one
        mask = u32(u32(0) - chosen[i])
        x = reward[i]
        n0 = rows[i] + zero
        n1 = rows[4 * STRIDE + i] + one
        s0 = sums[i] + x * zero
        s1 = sums[2 * STRIDE + i] + x * one
        n = n1 if chosen[i] != u32(0) else n0
        s = s1 if chosen[i] != u32(0) else s0
        r = s / n
        spread = np.sqrt(max(r - r * r, f32(0)))
        rows[i] = n0
        rows[4 * STRIDE + i] = n1
        sums[i] = s0
        sums[2 * STRIDE + i] = s1
        rows[STRIDE + i] = blend(r, rows[STRIDE + i], mask)
        rows[5 * STRIDE + i] = blend(rows[5 * STRIDE + i], r, mask)
        rows[2 * STRIDE + i] = blend(spread, rows[2 * STRIDE + i], mask)
        rows[6 * STRIDE + i] = blend(rows[6 * STRIDE + i], spread, mask)


@part
def copy_of_two(rows, row, target, chosen, lanes):
    """Two arms: a statistic (0: n, 1: r, 2: s) of the arm that each lane plays, to another row."""
    first = rows[row * STRIDE : row * STRIDE + lanes]
    second = rows[(SLOT + row) * STRIDE : (SLOT + row) * STRIDE + lanes]
    copy = rows[target * STRIDE : target * STRIDE + lanes]
    for i in range(lanes):
        copy[i] = blend(first[i], second[i], u32(u32(0) - chosen[i]))


@part
def update(rows, sums, arms, reward, chosen, lanes):
    """Any number of arms: the same by the lane's arm; the last slot takes the new n and r."""
    slot = SLOT * arms * STRIDE
    for i in range(lanes):
        arm = np.int64(chosen[i])
        at = SLOT * arm * STRIDE + i
        n = rows[at] + f32(1)
        s = sums[2 * arm * STRIDE + i] + reward[i]
        rows[at] = n
        sums[2 * arm * STRIDE + i] = s
        rows[slot + i] = n
        rows[slot + 2 * STRIDE + i] = rows[at + STRIDE]
        rows[at + STRIDE] = s / n
        rows[slot + STRIDE + i] = s / n


@lane
def deviation(n, square_sum, mean, binary):
    variance = square_sum / n - mean * mean if binary else square_sum / n
    return np.sqrt(max(variance, f32(0)))


@part
def deviate(rows, sums, arms, reward, chosen, binary, lanes):
    """The standard deviation of the arm just played.

    Rewards of 0 and 1: from sums, which are exact, so that arms with equal counts have equal
    indices. Others: the sum of squared deviations, by Welford's update, which does not cancel.
    """
    slot = SLOT * arms * STRIDE
    for i in range(lanes):
        arm = np.int64(chosen[i])
        x = reward[i]
        mean = rows[slot + STRIDE + i]
        squares = sums[(2 * arm + 1) * STRIDE + i]
        squares += x * x if binary else (x - rows[slot + 2 * STRIDE + i]) * (x - mean)
        sums[(2 * arm + 1) * STRIDE + i] = squares
        s = deviation(rows[slot + i], squares, mean, binary)
        rows[slot + 2 * STRIDE + i] = s
        rows[(SLOT * arm + 2) * STRIDE + i] = s


@part
def deviate_two(rows, sums, reward, chosen, binary, lanes):
    """Two arms: the same by masks."""
    for i in range(lanes):
        mask = u32(u32(0) - chosen[i])
        x = reward[i]
        mean = rows[9 * STRIDE + i]
        change = x * x if binary else (x - rows[10 * STRIDE + i]) * (x - mean)
        one = f32(i32(chosen[i]))
        q0 = sums[STRIDE + i] + change * (f32(1) - one)
        q1 = sums[3 * STRIDE + i] + change * one
        sums[STRIDE + i] = q0
        sums[3 * STRIDE + i] = q1
        s = deviation(rows[8 * STRIDE + i], q1 if chosen[i] != u32(0) else q0, mean, binary)
        rows[10 * STRIDE + i] = s
        rows[2 * STRIDE + i] = blend(s, rows[2 * STRIDE + i], mask)
        rows[6 * STRIDE + i] = blend(rows[6 * STRIDE + i], s, mask)
