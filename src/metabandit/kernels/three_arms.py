"""Three arms: the probabilities of forward.py and the values of backward.py, without short cuts.

A block of states is (n1, n2), with n3 the rest of the plays; a row of it is (s1, s2) and runs over s3.
Slices of one step are packed, and two of them take turns.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from .counts import TIE, pair
from .forward import (
    BY_POSTERIOR,
    BY_STATES,
    DONE,
    INDEX_NOT_FINITE,
    MOST_PLAYS,
    TINY,
    play_first,
    report,
)
from .jit import jit, part

# The rows of `room`, one flat array, as in forward.py: what plays arm 1, 2 and 3.
_ROW = MOST_PLAYS + 16
ROOM = 3 * _ROW
# Values closer than this, relative to their size, are ties.
_EQUAL = 1e-12


@jit
def offsets(m, offset):
    """Where the blocks (n1, n2) of three arms after m plays begin; returns how many states there are."""
    total = 0
    for n1 in range(m + 1):
        for n2 in range(m + 1 - n1):
            offset[n1, n2] = total
            total += (n1 + 1) * (n2 + 1) * (m - n1 - n2 + 1)
    return total


@jit
def step_backward(m, low, high, after, after_offset, value, offset, chance, best):
    """The values of the states with low <= n1 < high after m plays, from those after m + 1.

    best: uint8[state], if it is not empty: which arms are best, bit k for arm k
    """
    for n1 in range(low, high):
        for n2 in range(m + 1 - n1):
            n3 = m - n1 - n2
            width = n3 + 1
            thirds = chance[2, pair(n3, 0) : pair(n3 + 1, 0)]
            for s1 in range(n1 + 1):
                p1 = chance[0, pair(n1, s1)]
                for s2 in range(n2 + 1):
                    p2 = chance[1, pair(n2, s2)]
                    a = after_offset[n1 + 1, n2] + (s1 * (n2 + 1) + s2) * width
                    b = after_offset[n1 + 1, n2] + ((s1 + 1) * (n2 + 1) + s2) * width
                    c = after_offset[n1, n2 + 1] + (s1 * (n2 + 2) + s2) * width
                    d = after_offset[n1, n2] + (s1 * (n2 + 1) + s2) * (width + 1)
                    o = offset[n1, n2] + (s1 * (n2 + 1) + s2) * width
                    won1, failed1 = after[b : b + width], after[a : a + width]
                    won2, failed2 = after[c + width : c + 2 * width], after[c : c + width]
                    row, out = after[d : d + width + 1], value[o : o + width]
                    for i in range(width):
                        one = failed1[i] + p1 * (1.0 + won1[i] - failed1[i])
                        two = failed2[i] + p2 * (1.0 + won2[i] - failed2[i])
                        three = row[i] + thirds[i] * (1.0 + row[i + 1] - row[i])
                        larger = one if one > two else two
                        out[i] = larger if larger > three else three
                    for i in range(width if best.shape[0] > 0 else 0):
                        one = failed1[i] + p1 * (1.0 + won1[i] - failed1[i])
                        two = failed2[i] + p2 * (1.0 + won2[i] - failed2[i])
                        three = row[i] + thirds[i] * (1.0 + row[i + 1] - row[i])
                        least = out[i] - _EQUAL * (1.0 + out[i])
                        bits = (1 if one >= least else 0) + (2 if two >= least else 0)
                        best[o + i] = bits + (4 if three >= least else 0)


@part
def _split(row, upper, lower, x, alone, tied, even, room):
    """Divide a row's weights among three arms.

    x is the better index of the first two. `alone` has their shares where arm 3 is worse, `tied`
    all shares where it is as good; `even` is what each arm has besides, whatever the indices.
    """
    rest = 1.0 - 3.0 * even
    for i in range(row.shape[0]):
        w = row[i] if row[i] > TINY else 0.0
        above = x > upper[i]
        equal = x >= lower[i]
        one = alone[0] if above else (tied[0] if equal else 0.0)
        two = alone[1] if above else (tied[1] if equal else 0.0)
        three = 0.0 if above else (tied[2] if equal else 1.0)
        room[i] = w * (even + rest * one)
        room[_ROW + i] = w * (even + rest * two)
        room[2 * _ROW + i] = w * (even + rest * three)


@part
def _is_zero(row):
    wrong = 0
    for i in range(row.shape[0]):
        wrong += 0 if row[i] == 0.0 else 1
    return wrong == 0


@part
def _check(row, at, tables, fault):
    """Whether the indices of all states of a row that play can reach are finite; at: (n, s) of arms."""
    n1, s1, n2, s2, n3 = at
    x1 = tables.value[tables.which[0], pair(n1, s1)]
    if not abs(x1) < np.inf:
        return report(0, n1, s1, x1, fault)
    x2 = tables.value[tables.which[1], pair(n2, s2)]
    if not abs(x2) < np.inf:
        return report(1, n2, s2, x2, fault)
    for s3 in range(n3 + 1):
        x3 = tables.value[tables.which[2], pair(n3, s3)]
        if row[s3] > TINY and not abs(x3) < np.inf:
            return report(2, n3, s3, x3, fault)
    return DONE


@part
def _share_row(row, at, tables, even, room):
    """Divide a row's weights among the arms by their indices."""
    n1, s1, n2, s2, n3 = at
    x1 = tables.value[tables.which[0], pair(n1, s1)]
    x2 = tables.value[tables.which[1], pair(n2, s2)]
    x = max(x1, x2)
    slack = TIE * abs(x)
    first = 1.0 if x1 >= x - slack else 0.0
    second = 1.0 if x2 >= x - slack else 0.0
    both = first + second
    alone = (first / max(both, 1.0), second / max(both, 1.0))
    tied = (first / (both + 1.0), second / (both + 1.0), 1.0 / (both + 1.0))
    thirds = pair(n3, 0)
    upper = tables.upper[tables.which[2], thirds : thirds + n3 + 1]
    lower = tables.lower[tables.which[2], thirds : thirds + n3 + 1]
    _split(row, upper, lower, x, alone, tied, even, room)


@part
def _share_by_bits(row, bits, room):
    """Divide a row's weights among the arms that a table says are best."""
    for i in range(row.shape[0]):
        one, two, three = bits[i] & 1, bits[i] >> 1 & 1, bits[i] >> 2
        each = row[i] / (one + two + three)
        room[i] = one * each
        room[_ROW + i] = two * each
        room[2 * _ROW + i] = three * each


Draws = namedtuple("Draws", "density below room")
Draws.__doc__ = """The arms' posteriors at the nodes of a quadrature rule that is exact for their products.

density: float64[arm, pair, node], times the weight of the node; below: float64[arm, pair, node], the
distribution function; room: float64[2, node]
"""


@part
def _share_by_draws(row, at, draws, room):
    """Divide a row's weights among the arms by how likely each has the largest draw."""
    n1, s1, n2, s2, n3 = at
    one, two = pair(n1, s1), pair(n2, s2)
    first, second = draws.room[0], draws.room[1]
    for q in range(first.shape[0]):
        first[q] = draws.density[0, one, q] * draws.below[1, two, q]
        second[q] = draws.below[0, one, q] * draws.density[1, two, q]
    thirds = pair(n3, 0)
    for i in range(row.shape[0]):
        a = 0.0
        b = 0.0
        for q in range(first.shape[0]):
            a += first[q] * draws.below[2, thirds + i, q]
            b += second[q] * draws.below[2, thirds + i, q]
        room[i] = row[i] * a
        room[_ROW + i] = row[i] * b
        room[2 * _ROW + i] = row[i] * max(1.0 - a - b, 0.0)


@part
def _share_to_fewest(row, a, b, c, room):
    """Divide a row's weights among the arms with the fewest plays, which are a, b and c."""
    least = min(a, min(b, c))
    least += TIE * (1.0 + abs(least))
    first = 1.0 if a <= least else 0.0
    second = 1.0 if b <= least else 0.0
    third = 1.0 if c <= least else 0.0
    total = first + second + third
    for i in range(row.shape[0]):
        room[i] = row[i] * (first / total)
        room[_ROW + i] = row[i] * (second / total)
        room[2 * _ROW + i] = row[i] * (third / total)


@part
def _play_row(at, states, chance, room):
    """Add what plays each arm to the rows that its failure and its success lead to."""
    n1, s1, n2, s2, n3 = at
    after, offset = states.after, states.after_offset
    width = n3 + 1
    a = offset[n1 + 1, n2] + (s1 * (n2 + 1) + s2) * width
    b = a + (n2 + 1) * width
    play_first(room[:width], chance[0, pair(n1, s1)], after[a : a + width], after[b : b + width])
    c = offset[n1, n2 + 1] + (s1 * (n2 + 2) + s2) * width
    play_first(
        room[_ROW : _ROW + width],
        chance[1, pair(n2, s2)],
        after[c : c + width],
        after[c + width : c + 2 * width],
    )
    d = offset[n1, n2] + (s1 * (n2 + 1) + s2) * (width + 1)
    row, chances = after[d : d + width + 1], chance[2, pair(n3, 0) :]
    for i in range(width):
        win = room[2 * _ROW + i] * chances[i]
        row[i] += room[2 * _ROW + i] - win
        row[i + 1] += win


States = namedtuple("States", "weight offset after after_offset")
States.__doc__ = """Weights after m plays and after m + 1, and where their blocks begin."""


@jit
def step_forward(m, states, chance, policy, draws, best, finite, room, fault):
    """Three arms: add the weights after m plays to those after m + 1, which are zero before.

    best: uint8[entry], for a policy BY_STATES (see decisions.py), or empty
    """
    begin = (m + 5) * (m + 4) * (m + 3) * (m + 2) * (m + 1) * m // 720
    choice, tables = policy.choice, policy.tables
    even = choice.rate[m] / 3.0
    for n1 in range(m + 1):
        for n2 in range(m + 1 - n1):
            n3 = m - n1 - n2
            width = n3 + 1
            a, b, c = n1 + choice.pseudo[0], n2 + choice.pseudo[1], n3 + choice.pseudo[2]
            forced = min(a, min(b, c)) < choice.needed[m]
            for s1 in range(n1 + 1):
                for s2 in range(n2 + 1):
                    o = states.offset[n1, n2] + (s1 * (n2 + 1) + s2) * width
                    row = states.weight[o : o + width]
                    if _is_zero(row):
                        continue
                    at = (n1, s1, n2, s2, n3)
                    if forced:
                        _share_to_fewest(row, a, b, c, room)
                    elif choice.kind == BY_POSTERIOR:
                        _share_by_draws(row, at, draws, room)
                    elif choice.kind == BY_STATES:
                        _share_by_bits(row, best[begin + o : begin + o + width], room)
                    else:
                        if not finite and even < 1.0 / 3.0:
                            if _check(row, at, tables, fault) != DONE:
                                return INDEX_NOT_FINITE
                        _share_row(row, at, tables, even, room)
                    _play_row(at, states, chance, room)
    return DONE


@jit
def recommended(m, weight, offset, chance, means):
    """The expected mean reward of the arm with the best mean so far, ties shared (see forward.py)."""
    total = 0.0
    for n1 in range(m + 1):
        for n2 in range(m + 1 - n1):
            o = offset[n1, n2]
            for s1 in range(n1 + 1):
                for s2 in range(n2 + 1):
                    for s3 in range(m - n1 - n2 + 1):
                        a, b, c = pair(n1, s1), pair(n2, s2), pair(m - n1 - n2, s3)
                        x, y, z = means[0, a], means[1, b], means[2, c]
                        best = max(x, max(y, z))
                        least = best - TIE * abs(best)
                        one = 1.0 if x >= least else 0.0
                        two = 1.0 if y >= least else 0.0
                        three = 1.0 if z >= least else 0.0
                        mean = one * chance[0, a] + two * chance[1, b] + three * chance[2, c]
                        total += weight[o] * mean / (one + two + three)
                        o += 1
    return total


@jit
def totals(m, weight, offset, sums):
    """Expected successes, plays of each arm, and the sum of all weights (which is 1)."""
    for k in range(sums.shape[0]):
        sums[k] = 0.0
    for n1 in range(m + 1):
        for n2 in range(m + 1 - n1):
            n3 = m - n1 - n2
            wins = 0.0
            mass = 0.0
            o = offset[n1, n2]
            for s1 in range(n1 + 1):
                for s2 in range(n2 + 1):
                    for s3 in range(n3 + 1):
                        wins += weight[o] * (s1 + s2 + s3)
                        mass += weight[o]
                        o += 1
            sums[0] += wins
            sums[1] += mass * n1
            sums[2] += mass * n2
            sums[3] += mass * n3
            sums[4] += mass
