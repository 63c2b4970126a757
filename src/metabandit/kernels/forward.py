"""Exact evaluation: how likely play with a policy reaches each state of the counts.

A state of two arms after m plays is (n1, s1, n2, s2) with n1 + n2 = m: plays and successes. The
weight of a state is the probability to reach it, over the prior and all rewards. A step moves the
weight of every state to its up to four successors, in place: only one time slice exists.

The slice is cut into blocks by n1, a block into rows by s1, a row has one entry for each s2. Blocks
and rows have room for the last step, so that nothing moves from step to step. Blocks are taken in
falling order of n1, because a play of arm 1 leads into the next higher block. For each row the
range of entries that are not zero is known: most states are out of a policy's reach.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from .counts import TIE, fill_indices, mark_ties, pair
from .jit import jit, part

BY_INDEX = 0
BY_TABLE = 1
BY_CUTS = 2
BY_POSTERIOR = 3
# Three arms, see kernels/three_arms.py.
BY_STATES = 4

DONE = 0
INDEX_NOT_FINITE = 1

# Where nothing is left on an edge.
NO_EDGE = -1

# Weights below this are dropped: they would end in numbers so small that arithmetic is slow.
TINY = 1e-250

DecisionArrays = namedtuple(
    "DecisionArrays", "kind rate needed pseudo table begins cuts gammas corner"
)
DecisionArrays.__doc__ = """How a policy chooses, given the counts.

kind: BY_INDEX (the machine computes the index), BY_TABLE (the index stands in `table`), BY_CUTS
    (`cuts`, as the optimal policy has), BY_POSTERIOR (Thompson sampling)
rate: float64[m], the probability with which any arm is played instead
needed: float64[m], plays that every arm must have before anything else counts
pseudo: float64[arm], pseudo-plays, which count as plays there
table: float64[row, entry], indices of pairs by level; begins: int64[N], where the pairs of the level
    of an arm that can have N plays in all begin
cuts: uint16[entry, 2], for each m and pair of arm 1: arm 1 is better while s2 is below the first
    number, and as good while it is below the second
gammas: float64[10, .], logarithms of Gamma(x + i)/Gamma(x) for x = a, b and a + b of arm 1, then of arm 2, then
    of both arms' sum (its first row with the quotient of what is left out); then a1, b1, a2, b2 themselves
corner: float64[n1, n2], P(X1 > X2) for arms that never succeeded
"""

Slice = namedtuple("Slice", "weight first last offset stride chance mirror")
Slice.__doc__ = """The states after m plays.

weight: float64, all blocks; offset[n1] and stride[n1] say where their rows are
first, last: int64[pair of arm 1], the range of s2 whose weights are not zero; empty if first > last
chance: float64[arm, pair], probability of success
mirror: whether exchanging the arms changes nothing; then only blocks with n1 <= n2 are kept
"""

Judged = namedtuple("Judged", "choice program tables")
Judged.__doc__ = """A policy: how it chooses, the program of its index, and the indices by count."""

Clock = namedtuple("Clock", "horizon pseudo_plays arms")
Clock.__doc__ = """What tells the moment: plays in all, pseudo-plays, and the number of arms."""

StepWork = namedtuple("StepWork", "room edge edge_first edge_last fault")
StepWork.__doc__ = """What a part works in.

room: rows for a row's weights
edge: float64[step, .], what enters the block that another part may be at work on, with the ranges
    edge_first, edge_last of its rows
fault: the state whose index is not finite, and the plays made
"""

# The rows of `room`, one flat array: with constants between them the compiler sees that they do not
# overlap. What plays arm 1 comes first.
MOST_PLAYS = 4096
_SHARES = MOST_PLAYS + 16
ROOM = 2 * _SHARES


@part
def _split(row, upper, lower, x, base, step, room):
    """Divide a row's weights by comparing indices: what plays arm 1 goes to `room`."""
    for i in range(row.shape[0]):
        share = base + (step if x > upper[i] else 0.0) + (step if x >= lower[i] else 0.0)
        w = row[i] if row[i] > TINY else 0.0
        one = w * share
        room[i] = one
        row[i] = w - one


@part
def _split_by_shares(row, room):
    """The same by the probabilities of playing arm 1 that stand in `room`."""
    for i in range(row.shape[0]):
        w = row[i] if row[i] > TINY else 0.0
        one = w * room[_SHARES + i]
        room[i] = one
        row[i] = w - one


@part
def _split_by_cuts(row, better, equal, base, room):
    """The same by cuts, with random plays: each arm has the probability `base` whatever they say."""
    for i in range(row.shape[0]):
        step = 0.5 - base
        share = base + (step if i < better else 0.0) + (step if i < equal else 0.0)
        w = row[i] if row[i] > TINY else 0.0
        one = w * share
        room[i] = one
        row[i] = w - one


@part
def _halve(row):
    for i in range(row.shape[0]):
        row[i] *= 0.5


@part
def _clear(row):
    for i in range(row.shape[0]):
        row[i] = 0.0


@part
def _play_second(row, chance, room):
    """A play of arm 2: a success moves the weight on by one entry."""
    last = row.shape[0] - 1
    for i in range(last):
        win = row[i] * chance[i]
        room[i + 1] = win
        row[i] -= win
    room[0] = 0.0
    for i in range(last + 1):
        row[i] += room[i]


@part
def play_first(moved, chance, failed, won):
    """A play of arm 1: add the weights to the rows that its failure and its success lead to."""
    for i in range(moved.shape[0]):
        win = moved[i] * chance
        failed[i] += moved[i] - win
        won[i] += win


@part
def _add(source, target):
    for i in range(target.shape[0]):
        target[i] += source[i]


@part
def _widen(firsts, lasts, row, first, last):
    firsts[row] = min(firsts[row], first)
    lasts[row] = max(lasts[row], last)


# The rows of `gammas`.
_A1, _B1, _AB1, _A2, _B2, _AB2, _A, _B, _AB, _NUMBERS = range(10)


@part
def posterior_shares(gammas, start, n1, s1, n2, first, last, room):
    """P(X1 > X2) for s2 = first, ..., last, where X are draws from the Beta posteriors."""
    m = n1 + n2
    own = gammas[_A1, s1] + gammas[_B1, n1 - s1] - gammas[_AB1, n1]
    a = gammas[_NUMBERS, 2]
    b = gammas[_NUMBERS, 3]
    value = start
    for s2 in range(last + 1):
        if s2 >= first:
            room[_SHARES + s2 - first] = min(max(value, 0.0), 1.0)
        if s2 == last:
            break
        f2 = n2 - s2 - 1
        other = gammas[_A2, s2] + gammas[_B2, f2] - gammas[_AB2, n2 - 1]
        both = gammas[_A, s1 + s2] + gammas[_B, n1 - s1 + f2] - gammas[_AB, m - 1]
        value -= np.exp(both - own - other) * (1.0 / (a + s2) + 1.0 / (b + f2))


@part
def next_start(gammas, start, n1, s1, n2):
    """P(X1 > X2) for s2 = 0, from s1 to s1 + 1."""
    f1 = n1 - s1 - 1
    own = gammas[_A1, s1] + gammas[_B1, f1] - gammas[_AB1, n1 - 1]
    other = gammas[_A2, 0] + gammas[_B2, n2] - gammas[_AB2, n2]
    both = gammas[_A, s1] + gammas[_B, f1 + n2] - gammas[_AB, n1 + n2 - 1]
    return start + np.exp(both - own - other) * (
        1.0 / (gammas[_NUMBERS, 0] + s1) + 1.0 / (gammas[_NUMBERS, 1] + f1)
    )


@jit
def report(arm, n, s, value, fault):
    fault[0] = arm
    fault[1] = n
    fault[2] = s
    fault[3] = value
    return INDEX_NOT_FINITE


@part
def _check(slice, tables, m, n1, s1, fault):
    """Whether the indices of all states of a row that play can reach are finite."""
    n2 = m - n1
    at = pair(n1, s1)
    value = tables.value[tables.which[0], at]
    if not abs(value) < np.inf:
        return report(0, n1, s1, value, fault)
    begin = slice.offset[n1] + s1 * slice.stride[n1]
    for s2 in range(slice.first[at], slice.last[at] + 1):
        value = tables.value[tables.which[1], pair(n2, s2)]
        if slice.weight[begin + s2] > TINY and not abs(value) < np.inf:
            return report(1, n2, s2, value, fault)
    return DONE


@part
def _is_cut(m, n1, choice, tables, forced):
    """Whether arm 1 is played for small s2 and arm 2 for large s2, with nothing random but ties."""
    if forced:
        return True
    if choice.kind == BY_CUTS:
        return choice.rate[m] == 0.0
    rises = tables.rising[tables.which[0], n1] and tables.rising[tables.which[1], m - n1]
    return rises and choice.rate[m] == 0.0 and choice.kind != BY_POSTERIOR


@part
def _next_cuts(m, n1, s1, choice, tables, better, equal):
    """Arm 1 is better for s2 < better and as good for s2 < equal; both only grow with s1."""
    at = pair(n1, s1)
    if choice.kind == BY_CUTS:
        entry = m * (m + 1) * (m + 2) // 6 + at
        return np.int64(choice.cuts[entry, 0]), np.int64(choice.cuts[entry, 1])
    n2 = m - n1
    seconds = pair(n2, 0)
    x = tables.value[tables.which[0], at]
    upper = tables.upper[tables.which[1]]
    lower = tables.lower[tables.which[1]]
    while better <= n2 and x > upper[seconds + better]:
        better += 1
    equal = max(equal, better)
    while equal <= n2 and x >= lower[seconds + equal]:
        equal += 1
    return better, equal


@part
def _play_second_on(slice, seconds, at, begin, tie, last, room):
    """What is left of a row from `tie` on plays arm 2; what came before has moved on."""
    weight = slice.weight
    while tie <= last and weight[begin + tie] == 0.0:
        tie += 1
    if tie > last:
        slice.first[at] = MOST_PLAYS
        slice.last[at] = -1
        return
    _play_second(weight[begin + tie : begin + last + 2], slice.chance[1, seconds + tie :], room)
    last += 1
    while weight[begin + last] == 0.0:
        last -= 1
    slice.first[at] = tie
    slice.last[at] = last


# Long, because the passes over a row share a dozen values, which would be arguments otherwise.
@part
def _move_block(m, n1, edge, slice, policy, finite, work):
    """Move the weights of block n1 from m to m + 1 plays; block n1 + 1 must have been moved.

    What enters block n1 + 1 goes to that edge instead, if there is one (-1: none), because another
    thread may be at work on the block; `_join` adds it later.
    """
    weight, room, choice, tables = slice.weight, work.room, policy.choice, policy.tables
    first_row, second_row = tables.which[0], tables.which[1]
    base = 0.5 * choice.rate[m]
    posterior = choice.kind == BY_POSTERIOR
    n2 = m - n1
    seconds = pair(n2, 0)
    length = slice.stride[n1]
    onward = not (slice.mirror and n1 == n2)
    # Where a play of arm 1 leads: the block above, or an edge.
    to_edge = edge >= 0
    target = work.edge[edge] if to_edge else weight
    target_begin = 0 if to_edge else slice.offset[n1 + 1]
    width = length if to_edge else slice.stride[n1 + 1]
    firsts = work.edge_first[edge] if to_edge else slice.first
    lasts = work.edge_last[edge] if to_edge else slice.last
    above = 0 if to_edge else pair(n1 + 1, 0)
    # Of arms that lack needed plays the one with fewer comes first.
    ahead = n1 + choice.pseudo[0] - n2 - choice.pseudo[1]
    slack = TIE * (1.0 + abs(n1 + choice.pseudo[0]))
    forced = min(n1 + choice.pseudo[0], n2 + choice.pseudo[1]) < choice.needed[m]
    by_cuts = _is_cut(m, n1, choice, tables, forced)
    better = n2 + 1 if forced and ahead < -slack else 0
    equal = n2 + 1 if forced and ahead <= slack else 0
    start = choice.corner[n1, n2] if posterior else 0.0
    for s1 in range(n1 + 1):
        at = pair(n1, s1)
        first = slice.first[at]
        last = slice.last[at]
        if by_cuts and not forced:
            better, equal = _next_cuts(m, n1, s1, choice, tables, better, equal)
        if first <= last:
            begin = slice.offset[n1] + s1 * length
            if not finite and not forced and base < 0.5:
                if _check(slice, tables, m, n1, s1, work.fault) != DONE:
                    work.fault[4] = m
                    return INDEX_NOT_FINITE
            # What plays arm 1 is `moved`, from s2 = left to right.
            left = first
            if by_cuts:
                tie = max(first, better)
                right = min(last, equal - 1)
                _halve(weight[begin + tie : begin + right + 1])
                moved = weight[begin + left : begin + right + 1]
            else:
                row = weight[begin + first : begin + last + 1]
                if posterior:
                    posterior_shares(choice.gammas, start, n1, s1, n2, first, last, room)
                    _split_by_shares(row, room)
                elif choice.kind == BY_CUTS:
                    better, equal = _next_cuts(m, n1, s1, choice, tables, better, equal)
                    _split_by_cuts(row, better - first, equal - first, base, room)
                else:
                    upper = tables.upper[second_row, seconds + first : seconds + last + 1]
                    lower = tables.lower[second_row, seconds + first : seconds + last + 1]
                    _split(row, upper, lower, tables.value[first_row, at], base, 0.5 - base, room)
                tie = first
                right = last
                while left <= right and room[left - first] == 0.0:
                    left += 1
                while right >= left and room[right - first] == 0.0:
                    right -= 1
                moved = room[left - first : right + 1 - first]
            if onward and left <= right:
                failed = target_begin + s1 * width
                won = failed + width
                play_first(
                    moved,
                    slice.chance[0, at],
                    target[failed + left : failed + right + 1],
                    target[won + left : won + right + 1],
                )
                _widen(firsts, lasts, above + s1, left, right)
                _widen(firsts, lasts, above + s1 + 1, left, right)
            _clear(weight[begin + first : begin + min(tie, last + 1)])
            _play_second_on(slice, seconds, at, begin, tie, last, room)
        if posterior and s1 < n1:
            start = next_start(choice.gammas, start, n1, s1, n2)
    return DONE


@part
def fold(m, slice):
    """With mirrored arms: a block with n1 = n2 also gets what comes from the half that is not kept."""
    if not slice.mirror or m % 2 == 1:
        return
    n = m // 2
    begin = slice.offset[n]
    length = slice.stride[n]
    for s1 in range(n + 1):
        for s2 in range(s1 + 1):
            i = begin + s1 * length + s2
            j = begin + s2 * length + s1
            both = slice.weight[i] + slice.weight[j]
            slice.weight[i] = both
            slice.weight[j] = both
    for s1 in range(n + 1):
        at = pair(n, s1)
        slice.first[at] = MOST_PLAYS
        slice.last[at] = -1
        for s2 in range(n + 1):
            if slice.weight[begin + s1 * length + s2] > 0.0:
                _widen(slice.first, slice.last, at, s2, s2)


@part
def step_two(m, slice, policy, finite, work):
    """Move all weights from m to m + 1 plays."""
    for n1 in range(m // 2 if slice.mirror else m, -1, -1):
        if _move_block(m, n1, NO_EDGE, slice, policy, finite, work) != DONE:
            return INDEX_NOT_FINITE
    fold(m + 1, slice)
    return DONE


@part
def _join(edge, block, slice, work):
    """Add to a block what came from the block below, and empty the edge."""
    firsts, lasts = work.edge_first[edge], work.edge_last[edge]
    length = slice.stride[block - 1]
    for s1 in range(block + 1):
        first = firsts[s1]
        last = lasts[s1]
        if first <= last:
            target = slice.offset[block] + s1 * slice.stride[block]
            source = work.edge[edge, s1 * length + first : s1 * length + last + 1]
            _add(source, slice.weight[target + first : target + last + 1])
            _clear(source)
            _widen(slice.first, slice.last, pair(block, s1), first, last)
            firsts[s1] = MOST_PLAYS
            lasts[s1] = -1


# Several steps at a time -------------------------------------------------------------------------
#
# Block n1 at m + 1 plays needs blocks n1 and n1 - 1 at m plays. So several steps can be made along a
# diagonal (n1, m), (n1 + 1, m + 1), (n1 + 2, m + 2), ..., one diagonal after the other from the top down. A
# block then stays in the cache for all of them; one step after the other would read all of memory each time.
#
# Blocks are cut into parts for threads. The diagonals that begin in a part need nothing from the part below;
# what they bring to the part above is left on its edges, one for each step. The diagonals that begin below
# follow when all parts have come so far.


@jit
def run_part(m, steps, low, high, follow, slice, policies, finite, work, below):
    """Make `steps` steps of the blocks low, ..., high - 1, along the diagonals that begin there.

    follow: take the other diagonals instead, with what the part below left on its edges
    policies: one for each step, with the indices at that time
    """
    top = m // 2 if slice.mirror else m
    begin, end = (low - 1, low - steps) if follow else (high - 1, low - 1)
    for n1 in range(begin, end if low > 0 else -steps, -1):
        for k in range(steps):
            block, now = n1 + k, m + k
            last = high - 1 if high <= top else (now // 2 if slice.mirror else now)
            if not low <= block <= last:
                continue
            if follow and block == low:
                _join(k - 1, low, slice, below)
            edge = k if block == high - 1 and high <= top else NO_EDGE
            if _move_block(now, block, edge, slice, policies[k], finite, work) != DONE:
                return INDEX_NOT_FINITE
            if block == last and high > top:
                fold(now + 1, slice)
    if follow:
        _join(steps - 1, low, slice, below)
    return DONE


@jit
def set_tables(m, clock, policy, most):
    """The indices of up to `most` plays for the choice after m; false if one is not finite."""
    choice, tables = policy.choice, policy.tables
    if choice.kind == BY_INDEX:
        t, left = clock.pseudo_plays + m, clock.horizon - m
        return fill_indices(policy.program, tables, clock.arms, t, left, most)
    finite = True
    if choice.kind == BY_TABLE:
        for row in range(choice.table.shape[0]):
            for n in range(most + 1):
                begin = choice.begins[n + clock.horizon - m]
                for i in range(pair(n, 0), pair(n + 1, 0)):
                    tables.value[row, i] = choice.table[row, begin + i]
            finite = mark_ties(tables, row, most) and finite
    return finite


@jit
def totals(m, slice, sums):
    """Expected successes of both arms and plays of each, and the sum of all weights (which is 1)."""
    for k in range(sums.shape[0]):
        sums[k] = 0.0
    top = m // 2 if slice.mirror else m
    for n1 in range(top + 1):
        n2 = m - n1
        wins = 0.0
        mass = 0.0
        for s1 in range(n1 + 1):
            at = pair(n1, s1)
            begin = slice.offset[n1] + s1 * slice.stride[n1]
            for s2 in range(slice.first[at], slice.last[at] + 1):
                w = slice.weight[begin + s2]
                wins += w * (s1 + s2)
                mass += w
        if slice.mirror and n1 < n2:
            sums[0] += 2.0 * wins
            sums[1] += mass * m
            sums[2] += mass * m
            sums[3] += 2.0 * mass
        else:
            sums[0] += wins
            sums[1] += mass * n1
            sums[2] += mass * n2
            sums[3] += mass


@jit
def recommended(m, slice, means):
    """The expected mean reward of the arm with the best mean so far, ties halved.

    means: float64[arm, pair], lower than any mean for an arm that was never played.
    """
    total = 0.0
    top = m // 2 if slice.mirror else m
    for n1 in range(top + 1):
        n2 = m - n1
        at2 = pair(n2, 0)
        part = 0.0
        for s1 in range(n1 + 1):
            at = pair(n1, s1)
            begin = slice.offset[n1] + s1 * slice.stride[n1]
            x = means[0, at]
            slack = TIE * abs(x)
            for s2 in range(slice.first[at], slice.last[at] + 1):
                y = means[1, at2 + s2]
                second = (0.5 if y >= x - slack else 0.0) + (0.5 if y > x + slack else 0.0)
                chance = slice.chance[0, at] * (1.0 - second) + slice.chance[1, at2 + s2] * second
                part += slice.weight[begin + s2] * chance
        total += 2.0 * part if slice.mirror and n1 < n2 else part
    return total


@jit
def run_two(first, last, clock, slice, policy, finite, work):
    """All steps from `first` to `last` plays as one part; `finite` is about indices that stay."""
    for m in range(first, last):
        if policy.program.varies or policy.choice.kind == BY_TABLE:
            finite = set_tables(m, clock, policy, m)
        if step_two(m, slice, policy, finite, work) != DONE:
            return INDEX_NOT_FINITE
    return DONE
