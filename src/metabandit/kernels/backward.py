"""The Bayes-optimal policy by backward induction: the most reward that play can still expect.

A state of two arms is (n1, s1, n2, s2). Its value is the larger of two: play arm 1, or play arm 2, and go
on optimally. A level is all states with the same n1; it needs the level n1 + 1 and, for the same pair
(n1, s1), the plays n2 + 1. A row is s2 = 0, ..., n2 of (n1, s1, n2).

    level n1 + 1 at n2:   rows s1 and s1 + 1   -+
                                                +->  row (n1, s1, n2)
    level n1 at n2 + 1:   row s1               -+

Rows of all n2 are kept for one level, by (s1, n2), and changed in place. A tile passes through several
levels at once, so that what it needs stays in the cache: of level top - d the rows s1 = first - d, ...,
first - d + width - 1, for n2 falling. It hands the last row of each level to the next tile. Tiles run in
rising order; one may follow another at any distance.

If the arms are alike, (n1, s1, n2, s2) is worth (n2, s2, n1, s1): only n2 >= n1 is computed, and where
they are equal arm 1 is worth what arm 2 is worth with the arms exchanged. The last n2 of some levels, from
`top` down, then need whole blocks of level and n2: `corner` has them.
"""

from __future__ import annotations

from .counts import pair
from .jit import jit, part

DONE = 0
NO_CUT = 1

# How much of a row is computed at once, for all levels of a tile.
_LENGTH = 256
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
def _second(row, chance):
    """The value of a row if arm 2 is played."""
    for i in range(row.shape[0] - 1):
        row[i] = row[i] + chance[i] * (1.0 + row[i + 1] - row[i])


@part
def _copy(source, target):
    for i in range(target.shape[0]):
        target[i] = source[i]


@jit
def run_tile(horizon, top, first, high, low, value, at, chance, work, keep, cuts):
    """The rows of a tile at n2 = high, ..., low; `work` goes on from where it was after n2 = high + 1.

    value: the rows; at[s1, n2]: where one begins
    work[d, s1 - (first - d), s2]: the rows of level top - d at the n2 that is computed
    With `keep`, cuts[entry] says for each pair of arm 1 where the choice changes with s2.
    """
    levels, width = work.shape[0], work.shape[1]
    for n2 in range(high, low - 1, -1):
        seconds = chance[1, pair(n2, 0) : pair(n2 + 1, 0)]
        # Of the levels, those before d have no plays left for n2 plays of arm 2, and d the last one.
        begun = max(0, n2 + top - horizon)
        if begun < levels and n2 + top - begun == horizon:
            work[begun, :, : n2 + 1] = 0.0
            begun += 1
        length = n2 + 1 if keep else _LENGTH
        for begin in range(0, n2 + 1, length):
            end = min(begin + length, n2 + 1)
            for d in range(begun, levels):
                n1 = top - d
                lowest = first - d
                for s1 in range(max(0, lowest), min(lowest + width, n1 + 1)):
                    k = s1 - lowest
                    p = chance[0, pair(n1, s1)]
                    row = work[d, k, begin : end + 1]
                    if d == 0:
                        won = value[at[s1 + 1, n2] + begin : at[s1 + 1, n2] + end]
                    else:
                        won = work[d - 1, k, begin:end]
                    if d == 0 or k == 0:
                        failed = value[at[s1, n2] + begin : at[s1, n2] + end]
                    else:
                        failed = work[d - 1, k - 1, begin:end]
                    if keep:
                        m = n1 + n2
                        entry = m * (m + 1) * (m + 2) // 6 + pair(n1, s1)
                        if not _best_and_cuts(won, failed, p, row, seconds, cuts[entry]):
                            return NO_CUT
                    else:
                        _best(won, failed, p, row, seconds[begin:end])
        # The last level is the result; of the others the next tile needs the last row.
        for d in range(max(0, n2 + top - horizon), levels):
            lowest = first - d
            from_row = lowest if d == levels - 1 else lowest + width - 1
            for s1 in range(max(0, from_row), min(lowest + width, top - d + 1)):
                _copy(work[d, s1 - lowest], value[at[s1, n2] : at[s1, n2] + n2 + 1])
    return DONE


@jit
def keep_corner(top, first, work, corner):
    """Copy the rows of a tile at n2 = top + 1 to corner[d, s1]."""
    for d in range(work.shape[0]):
        lowest = first - d
        for s1 in range(max(0, lowest), min(lowest + work.shape[1], top - d + 1)):
            _copy(work[d, s1 - lowest], corner[d, s1])


@jit
def run_corner(horizon, top, value, at, chance, corner):
    """The rows of levels top, top - 1, ... at n2 = top, top - 1, ..., with n2 >= n1."""
    levels = corner.shape[0]
    for n2 in range(top, top - levels, -1):
        seconds = chance[1, pair(n2, 0) : pair(n2 + 1, 0)]
        for d in range(max(top - n2, n2 + top - horizon), levels):
            n1 = top - d
            rows = corner[d]
            if n1 + n2 == horizon:
                rows[: n1 + 1, : n2 + 1] = 0.0
            elif n1 == n2:
                for s1 in range(n1 + 1):
                    _second(rows[s1, : n2 + 2], seconds)
                for s1 in range(n1 + 1):
                    for s2 in range(s1):
                        best = max(rows[s1, s2], rows[s2, s1])
                        rows[s1, s2] = best
                        rows[s2, s1] = best
            else:
                before = corner[d - 1]
                for s1 in range(n1 + 1):
                    _best(
                        before[s1 + 1, : n2 + 1],
                        before[s1, : n2 + 1],
                        chance[0, pair(n1, s1)],
                        rows[s1, : n2 + 2],
                        seconds,
                    )
        n1 = top - levels + 1
        if n1 + n2 <= horizon:
            for s1 in range(n1 + 1):
                _copy(corner[levels - 1, s1], value[at[s1, n2] : at[s1, n2] + n2 + 1])
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
