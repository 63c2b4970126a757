"""Two arms played in batches: how likely a policy reaches each state, and the most that any can expect.

A state after m plays is (n1, s1, n2, s2), as in forward.py, with blocks by n1 and rows by s1. A batch of
B plays that is decided in state (n1, s1, n2, s2) gives arm 1 k plays with a probability that depends on
that state only: no reward of the batch is known before its end. The successes that k plays of an arm with
n plays and s successes bring are Beta-binomial, and the arms are independent:

    P(n1 + k, s1 + x, n2 + B - k, s2 + y) += P(n1, s1, n2, s2) P(k | state) P1(x | k) P2(y | B - k).

The best that can be expected, with E over x and y as above, is

    V_m(n1, s1, n2, s2) = max_k E[x + y + V_{m+B}(n1 + k, s1 + x, n2 + B - k, s2 + y)].
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from .counts import TIE, pair
from .forward import (
    BY_INDEX,
    BY_POSTERIOR,
    BY_TABLE,
    DONE,
    INDEX_NOT_FINITE,
    TINY,
    next_start,
    posterior_shares,
    report,
)
from .jit import jit, lane, part
from .machine import run_lanes, run_step, spread_scalars
from .opcodes import SCRATCH
from .rows import MOST_LANES, SLOT, STRIDE

BatchTerms = namedtuple("BatchTerms", "made size share counted spreads patience means")
BatchTerms.__doc__ = """A batch of plays.

made: plays before it; size: plays of it
share: the probability that each arm keeps at every play
counted: whether plays that wait count as plays of their arm
spreads: whether each arm is to have a reward before the policy decides, as long as fewer than
    `patience` rewards have come
means: float64[arm, 2], the Beta distributions of the means, for tables of indices
"""

BatchWork = namedtuple("BatchWork", "values grown chances splits moved shares fault")
BatchWork.__doc__ = """What `advance` works in.

values: float64[arm, step of the batch, waiting plays, successes], the indices
grown: float64[arm, successes, plays, more successes], the Beta-binomial probabilities
chances: float64[plays], of the plays of arm 1 so far; splits: float64[plays, successes of arm 2]
moved: float64[successes of arm 2], after the batch
shares: float64, P(X1 > X2) of posteriors (forward.posterior_shares)
fault: the state whose index is not finite
"""


@part
def _fill_index(batch, arm, n, clock, policy, values):
    """The indices of an arm with n rewards, for each step of a batch and number of waiting plays.

    An arm without any reward reads the mean of the other's: its indices are by the other's successes.
    """
    program, tables = policy.program, policy.tables
    row = tables.which[arm]
    rows, scalars = tables.rows, tables.scalars
    blank = batch.spreads and n == 0
    last = batch.made if blank else n
    registers = SLOT + 1
    steps = batch.size if program.varies else 1
    first = pair(n, 0)
    for j in range(steps):
        scalars[0] = clock.pseudo_plays + batch.made + j
        scalars[1] = clock.horizon - batch.made - j
        scalars[2] = clock.arms
        run_step(program.step_code, scalars)
        spread_scalars(program.spread, scalars, rows, registers, STRIDE, MOST_LANES, 0)
        most = (j if program.varies else batch.size - 1) if batch.counted else 0
        for k in range(most + 1):
            for begin in range(0, last + 1, MOST_LANES):
                lanes = min(MOST_LANES, last + 1 - begin)
                for i in range(lanes):
                    at = first if blank else first + begin + i
                    rows[i] = tables.statistics[row, 0, at] + k
                    rows[STRIDE + i] = tables.statistics[row, 1, at]
                    rows[2 * STRIDE + i] = tables.statistics[row, 2, at]
                    rows[3 * STRIDE + i] = k
                    if blank and batch.made > 0:
                        rows[STRIDE + i] = (begin + i) / batch.made
                run_lanes(
                    program.lane_code, scalars, rows, 0, registers, SLOT, STRIDE, lanes,
                    program.registers - SCRATCH, rows[:0],
                )  # fmt: skip
                for i in range(lanes):
                    values[j, k, begin + i] = rows[SLOT * STRIDE + i]


@part
def _fill_table(batch, arm, n, clock, policy, values):
    """The same from a table: a play that waits counts as if it had paid the posterior mean."""
    table = policy.choice.table[policy.tables.which[arm]]
    a = batch.means[arm, 0]
    b = batch.means[arm, 1]
    for j in range(batch.size):
        m = batch.made + j
        for k in range((j if batch.counted else 0) + 1):
            begin = policy.choice.begins[n + k + clock.horizon - m] + pair(n + k, 0)
            for s in range(n + 1):
                total = s + k * (a + s) / (a + b + n) if k > 0 else np.float64(s)
                total = min(total, np.float64(n + k))
                whole = np.int64(total)
                value = table[begin + whole]
                if total > whole:
                    value += (total - whole) * (table[begin + whole + 1] - value)
                values[j, k, s] = value


@part
def _fill_grown(arm, n, size, chance, grown):
    """The probabilities of x more successes in k plays, after n plays with s successes."""
    for s in range(n + 1):
        grown[s, 0, 0] = 1.0
        for k in range(size):
            for x in range(k + 2):
                grown[s, k + 1, x] = 0.0
            for x in range(k + 1):
                p = chance[arm, pair(n + k, s + x)]
                grown[s, k + 1, x + 1] += grown[s, k, x] * p
                grown[s, k + 1, x] += grown[s, k, x] * (1.0 - p)


@lane
def _halves(x, y, slack):
    """1 if x is larger, 0 if y is, 1/2 if they are equal within the slack."""
    return (0.5 if x > y + slack else 0.0) + (0.5 if x >= y - slack else 0.0)


@part
def _share(batch, choice, j, n1, s1, k1, n2, s2, k2, even, room):
    """The probability that arm 1 is played; below 0 if an index is not finite."""
    step = batch.made + j
    share = even
    w1 = k1 if batch.counted else 0
    w2 = k2 if batch.counted else 0
    plays1 = n1 + w1 + choice.pseudo[0]
    plays2 = n2 + w2 + choice.pseudo[1]
    unplayed = n1 + k1 == 0 or n2 + k2 == 0
    if batch.spreads and (n1 == 0 or n2 == 0) and (unplayed or batch.made < batch.patience):
        first = 2 * k1 + (1 if n1 > 0 else 0)
        share = 1.0 if first <= 2 * k2 + (1 if n2 > 0 else 0) else 0.0
    elif min(plays1, plays2) < choice.needed[step]:
        share = _halves(plays2, plays1, TIE * (1.0 + abs(plays1)))
    elif choice.kind == BY_INDEX or choice.kind == BY_TABLE:
        rate = choice.rate[step]
        if rate < 1.0:
            at = min(j, room.values.shape[1] - 1)
            x = room.values[0, at, w1, s2 if n1 == 0 and batch.spreads else s1]
            y = room.values[1, at, w2, s1 if n2 == 0 and batch.spreads else s2]
            if not abs(x) < np.inf:
                report(0, n1, s1, x, room.fault)
                return -1.0
            if not abs(y) < np.inf:
                report(1, n2, s2, y, room.fault)
                return -1.0
            share = _halves(x, y, TIE * abs(y))
        share = 0.5 * rate + (1.0 - rate) * share
    return batch.share + (1.0 - 2.0 * batch.share) * share


@part
def _divide(batch, choice, n1, s1, n2, s2, even, room):
    """The probability of each number of plays of arm 1, to room.chances."""
    chances = room.chances
    for k in range(batch.size + 1):
        chances[k] = 0.0
    chances[0] = 1.0
    for j in range(batch.size):
        for k in range(j, -1, -1):
            if chances[k] > 0.0:
                share = _share(batch, choice, j, n1, s1, k, n2, s2, j - k, even, room)
                if share < 0.0:
                    return INDEX_NOT_FINITE
                chances[k + 1] += chances[k] * share
                chances[k] *= 1.0 - share
    return DONE


@part
def _move_row(batch, n1, s1, n2, slice, after, room):
    """Move the weights of a row, which room.splits has by the plays of arm 1."""
    for k in range(batch.size + 1):
        more = batch.size - k
        any_weight = False
        for s2 in range(n2 + more + 1):
            room.moved[s2] = 0.0
        for s2 in range(n2 + 1):
            w = room.splits[k, s2]
            if w > TINY:
                any_weight = True
                for y in range(more + 1):
                    room.moved[s2 + y] += w * room.grown[1, s2, more, y]
        if any_weight:
            for x in range(k + 1):
                p = room.grown[0, s1, k, x]
                begin = slice.offset[n1 + k] + (s1 + x) * slice.stride[n1 + k]
                for s2 in range(n2 + more + 1):
                    after[begin + s2] += p * room.moved[s2]


@jit
def advance(batch, clock, slice, policy, after, room):
    """Move the weights of the slice over a batch, to `after`, which is empty."""
    choice = policy.choice
    posterior = choice.kind == BY_POSTERIOR
    for n1 in range(batch.made + 1):
        n2 = batch.made - n1
        for arm in range(2):
            n = n1 if arm == 0 else n2
            if choice.kind == BY_INDEX:
                _fill_index(batch, arm, n, clock, policy, room.values[arm])
            elif choice.kind == BY_TABLE:
                _fill_table(batch, arm, n, clock, policy, room.values[arm])
            _fill_grown(arm, n, batch.size, slice.chance, room.grown[arm])
        start = choice.corner[n1, n2] if posterior else 0.0
        for s1 in range(n1 + 1):
            begin = slice.offset[n1] + s1 * slice.stride[n1]
            if posterior:
                posterior_shares(choice.gammas, start, n1, s1, n2, 0, n2, room.shares)
            any_weight = False
            for s2 in range(n2 + 1):
                w = slice.weight[begin + s2]
                for k in range(batch.size + 1):
                    room.splits[k, s2] = 0.0
                if w > TINY:
                    any_weight = True
                    even = room.shares[room.shares.shape[0] // 2 + s2] if posterior else 0.5
                    if _divide(batch, choice, n1, s1, n2, s2, even, room) != DONE:
                        return INDEX_NOT_FINITE
                    for k in range(batch.size + 1):
                        room.splits[k, s2] = w * room.chances[k]
            if any_weight:
                _move_row(batch, n1, s1, n2, slice, after, room)
            if posterior and s1 < n1:
                start = next_start(choice.gammas, start, n1, s1, n2)
    return DONE


@part
def play_first(made, value, offset, stride, chance):
    """The values before a play of arm 1 that makes `made` plays, in place of those after it."""
    for n1 in range(made):
        n2 = made - 1 - n1
        for s1 in range(n1 + 1):
            p = chance[0, pair(n1, s1)]
            row = value[offset[n1] + s1 * stride[n1] :]
            failed = value[offset[n1 + 1] + s1 * stride[n1 + 1] :]
            won = value[offset[n1 + 1] + (s1 + 1) * stride[n1 + 1] :]
            for s2 in range(n2 + 1):
                row[s2] = failed[s2] + p * (1.0 + won[s2] - failed[s2])


@part
def play_second(made, value, offset, stride, chance):
    """The same for a play of arm 2."""
    for n1 in range(made):
        n2 = made - 1 - n1
        seconds = chance[1, pair(n2, 0) :]
        for s1 in range(n1 + 1):
            row = value[offset[n1] + s1 * stride[n1] :]
            for s2 in range(n2 + 1):
                row[s2] += seconds[s2] * (1.0 + row[s2 + 1] - row[s2])


@part
def _copy(made, source, target, offset, stride):
    for n1 in range(made + 1):
        for s1 in range(n1 + 1):
            begin = offset[n1] + s1 * stride[n1]
            for s2 in range(made - n1 + 1):
                target[begin + s2] = source[begin + s2]


@part
def _raise(made, source, target, offset, stride):
    for n1 in range(made + 1):
        for s1 in range(n1 + 1):
            begin = offset[n1] + s1 * stride[n1]
            for s2 in range(made - n1 + 1):
                target[begin + s2] = max(target[begin + s2], source[begin + s2])


@jit
def best_of_batch(made, size, least, most, part, parts, value, work, best, layout, chance):
    """The best values before a batch, of those with `part`, part + parts, ... plays of arm 2.

    value: those after the batch, which are used up; work: room; best: begins as -infinity
    least, most: how often arm 2 may be played
    """
    offset, stride = layout
    for second in range(size + 1):
        if second > 0:
            play_second(made + size - second + 1, value, offset, stride, chance)
        if second % parts == part and least <= second <= most:
            _copy(made + size - second, value, work, offset, stride)
            for first in range(size - second):
                play_first(made + size - second - first, work, offset, stride, chance)
            _raise(made, work, best, offset, stride)
