"""The Bayes-optimal policy by backward induction: the most reward that play can still expect.

A state of two arms after m plays is (n1, s1, n2, s2) with n1 + n2 = m. Its value is the larger of
two: play arm 1, or play arm 2, and go on optimally. The slice of all states after m plays replaces
that after m + 1, in place, block by block in rising order of n1: a block needs itself and the next
one. Layout as in forward.py.
"""

from __future__ import annotations

import numpy as np

from .counts import ZERO, pair
from .jit import allocating_jit, jit, part

DONE = 0
NO_CUT = 1

# Values closer than this, relative to their size, are ties.
_TIE = 1e-12


@part
def _best(won, failed, p, row, chance):
    """The value of a row: of arm 1 from the rows that it leads to, of arm 2 from the row itself."""
    for i in range(row.shape[0] - 1):
        one = failed[i] + p * (1.0 + won[i] - failed[i])
        two = row[i] + chance[i] * (1.0 + row[i + 1] - row[i])
        row[i] = one if one > two else two


@part
def _best_and_cuts(won, failed, p, row, chance, cuts):
    """The same; also from which s2 on arm 1 is no longer better, and no longer as good."""
    better = 0
    equal = 0
    for i in range(row.shape[0] - 1):
        one = failed[i] + p * (1.0 + won[i] - failed[i])
        two = row[i] + chance[i] * (1.0 + row[i + 1] - row[i])
        slack = _TIE * (1.0 + two)
        if one > two + slack:
            if i > better:
                return False
            better = i + 1
        if one >= two - slack:
            if i > equal:
                return False
            equal = i + 1
        row[i] = one if one > two else two
    cuts[0] = better
    cuts[1] = equal
    return True


@part
def _second(row, chance, out):
    for i in range(out.shape[0]):
        out[i] = row[i] + chance[i] * (1.0 + row[i + 1] - row[i])


@allocating_jit
def step_two(m, low, high, value, offset, stride, chance, mirror, edge, keep, cuts):
    """The values of blocks low, ..., high - 1 after m plays, in place of those after m + 1.

    `edge` is a copy of block `high` as it was, or empty if no other thread changes that block.
    With `keep`, cuts[entry] says for each pair of arm 1 where the choice changes with s2.
    """
    for n1 in range(low, high):
        n2 = m - n1
        length = stride[n1]
        seconds = chance[1, pair(n2, 0) : pair(n2 + 1, 0)]
        if mirror and n1 == n2:
            # Arm 1 is worth what arm 2 is worth with the arms exchanged.
            square = np.empty((n1 + 1, n1 + 1))
            for s1 in range(n1 + 1):
                begin = offset[n1] + s1 * length
                _second(value[begin : begin + n2 + 2], seconds, square[s1])
            for s1 in range(n1 + 1):
                begin = offset[n1] + s1 * length
                for s2 in range(n2 + 1):
                    value[begin + s2] = max(square[s1, s2], square[s2, s1])
            continue
        width = stride[n1 + 1]
        source = value
        start = offset[n1 + 1]
        if n1 == high - 1 and edge.shape[0] > 0:
            source = edge
            start = 0
        for s1 in range(n1 + 1):
            begin = offset[n1] + s1 * length
            row = value[begin : begin + n2 + 2]
            failed = source[start + s1 * width : start + s1 * width + n2 + 1]
            won = source[start + (s1 + 1) * width : start + (s1 + 1) * width + n2 + 1]
            p = chance[0, pair(n1, s1)]
            if keep:
                entry = m * (m + 1) * (m + 2) // 6 + pair(n1, s1)
                if not _best_and_cuts(won, failed, p, row, seconds, cuts[entry]):
                    return NO_CUT
            else:
                _best(won, failed, p, row, seconds)
    return DONE


@allocating_jit
def run_two(first, last, value, offset, stride, chance, mirror, keep, cuts):
    """All steps from `last` plays back to `first`, as one part."""
    nothing = np.empty(0)
    for m in range(last - 1, first - 1, -1):
        blocks = (m // 2 if mirror else m) + 1
        status = step_two(
            m, ZERO, blocks, value, offset, stride, chance, mirror, nothing, keep, cuts
        )
        if status != DONE:
            return status
    return DONE


@jit
def run_constrained(degree, value, offset, stride, chance, cuts):
    """All steps for a policy that plays the better arm with probability `degree`, the other one else.

    value: after the last play, its penalties; then before the first one. The slack of ties does not
    depend on the state, so that the better arm changes once with s2 as long as the difference falls.
    """
    horizon = stride.shape[0] - 2
    slack = 1e-11 * (1.0 + horizon)
    for m in range(horizon - 1, -1, -1):
        for n1 in range(m + 1):
            n2 = m - n1
            seconds = chance[1, pair(n2, 0) : pair(n2 + 1, 0)]
            width = stride[n1 + 1]
            for s1 in range(n1 + 1):
                begin = offset[n1] + s1 * stride[n1]
                above = offset[n1 + 1] + s1 * width
                p = chance[0, pair(n1, s1)]
                better = 0
                equal = 0
                for s2 in range(n2 + 1):
                    here, failed = value[begin + s2], value[above + s2]
                    one = failed + p * (1.0 + value[above + width + s2] - failed)
                    two = here + seconds[s2] * (1.0 + value[begin + s2 + 1] - here)
                    if one > two + slack:
                        if s2 > better:
                            return NO_CUT
                        better = s2 + 1
                    if one >= two - slack:
                        if s2 > equal:
                            return NO_CUT
                        equal = s2 + 1
                    value[begin + s2] = degree * max(one, two) + (1.0 - degree) * min(one, two)
                entry = m * (m + 1) * (m + 2) // 6 + pair(n1, s1)
                cuts[entry, 0] = better
                cuts[entry, 1] = equal
    return DONE
