"""Plays whose rewards are still to come: put aside, and counted when they are known (feedback.py).

A play that waits counts in n and w of its arm (or in neither, if such plays are ignored); r and s change
when its reward comes. Rewards that take the same time come in the order of their plays, for all lanes at
once; with random delays each lane has, for each number of plays, a list of the plays that come then. In
batches without a delay nothing is put aside: the rewards of a batch are summed on the way.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from .jit import lane, part
from .random import CHOICE_STREAM, DELAY, WEYL, below, draw_bits, noise_bits, unit
from .rows import SLOT, STRIDE, f32, i32, u32
from .statistics import copy_of_two, deviation

Waiting = namedtuple("Waiting", "known ends scale counted share patience together")
Waiting.__doc__ = """When rewards become known, and what holds meanwhile.

known: int64[plays made], how many rewards are known by then; empty if each is known at once, or at
    random
ends: int64[plays made], the first batch end that is not before; empty unless delays are random
scale: 1 / ln(1 - q) for delays with P(D = d) = q (1 - q)^d
counted: whether plays that wait count as plays of their arm
share: the probability that every arm keeps at every play
patience: rewards after which an arm without any does not hold up play
together: whether all plays that wait get their rewards together, and count: batches without a delay
"""

W = 3  # the row of the plays that wait, in an arm's slot


@part
def begin(arms, work, lanes):
    """No play waits."""
    work.played[:] = f32(0)
    work.changes[:] = f32(0)
    work.heads[:] = i32(-1)
    for arm in range(arms):
        for i in range(lanes):
            work.rows[(SLOT * arm + W) * STRIDE + i] = f32(0)


@part
def note_play(arms, work, counted, lanes):
    """The chosen arm has one play more, which waits."""
    rows, played, chosen = work.rows, work.played, work.chosen
    if arms == 2 and counted:
        for i in range(lanes):
            one = f32(i32(chosen[i]))
            zero = f32(1) - one
            rows[i] += zero
            rows[W * STRIDE + i] += zero
            rows[SLOT * STRIDE + i] += one
            rows[(SLOT + W) * STRIDE + i] += one
    elif counted:
        for i in range(lanes):
            at = SLOT * np.int64(chosen[i]) * STRIDE + i
            rows[at] += f32(1)
            rows[at + W * STRIDE] += f32(1)
    else:
        for i in range(lanes):
            played[np.int64(chosen[i]) * STRIDE + i] += f32(1)


@part
def reads_waiting(code):
    """Whether a lane program reads w."""
    for j in range(code.shape[0]):
        for operand in range(2, 5):
            if code[j, operand] == W:
                return True
    return False


@part
def play_in_batch(arms, binary, with_w, work, lanes):
    """Count a play of a batch, and add its reward to those that become known at its end."""
    rows, changes, chosen, reward = work.rows, work.changes, work.chosen, work.reward
    if arms == 2:
        if binary:
            for i in range(lanes):
                one = f32(i32(chosen[i]))
                zero = f32(1) - one
                rows[i] += zero
                rows[SLOT * STRIDE + i] += one
                changes[i] += reward[i] * zero
                changes[2 * STRIDE + i] += reward[i] * one
        else:
            for i in range(lanes):
                one = f32(i32(chosen[i]))
                zero = f32(1) - one
                first = (reward[i] - rows[STRIDE + i]) * zero
                second = (reward[i] - rows[(SLOT + 1) * STRIDE + i]) * one
                rows[i] += zero
                rows[SLOT * STRIDE + i] += one
                changes[i] += first
                changes[STRIDE + i] += first * first
                changes[2 * STRIDE + i] += second
                changes[3 * STRIDE + i] += second * second
        if with_w:
            for i in range(lanes):
                one = f32(i32(chosen[i]))
                rows[W * STRIDE + i] += f32(1) - one
                rows[(SLOT + W) * STRIDE + i] += one
        return
    for i in range(lanes):
        arm = np.int64(chosen[i])
        at = SLOT * arm * STRIDE + i
        rows[at] += f32(1)
        if binary:
            changes[2 * arm * STRIDE + i] += reward[i]
        else:
            change = reward[i] - rows[at + STRIDE]
            changes[2 * arm * STRIDE + i] += change
            changes[(2 * arm + 1) * STRIDE + i] += change * change
    if with_w:
        for i in range(lanes):
            rows[(SLOT * np.int64(chosen[i]) + W) * STRIDE + i] += f32(1)


@part
def end_batch(arms, binary, uses_s, with_w, work, lanes):
    """The rewards of a batch are known."""
    rows, sums, changes = work.rows, work.sums, work.changes
    for arm in range(arms):
        slot = SLOT * arm * STRIDE
        one = 2 * arm * STRIDE
        if binary:
            for i in range(lanes):
                n = rows[slot + i]
                total = sums[one + i] + changes[one + i]
                r = total / n
                rows[slot + STRIDE + i] = r if n > f32(0) else rows[slot + STRIDE + i]
                sums[one + i] = total
            if uses_s:
                for i in range(lanes):
                    sums[one + STRIDE + i] += changes[one + i]
            for i in range(lanes):
                changes[one + i] = f32(0)
        else:  # differences from the mean so far, which `settle` needs too
            for i in range(lanes):
                waited = rows[slot + W * STRIDE + i]
                sums[one + i] += changes[one + i] + waited * rows[slot + STRIDE + i]
        if with_w:
            for i in range(lanes):
                rows[slot + W * STRIDE + i] = f32(0)
    if uses_s or not binary:
        settle(arms, binary, uses_s, work, lanes)


@part
def copy_played(arms, uses_s, with_w, work, lanes):
    """What is known of the arm just played, to the last slot."""
    rows, chosen = work.rows, work.chosen
    for row in range(SLOT):
        if (row == 2 and not uses_s) or (row == W and not with_w):
            continue
        if arms == 2:
            copy_of_two(rows, row, 2 * SLOT + row, chosen, lanes)
        else:
            for i in range(lanes):
                source = (SLOT * np.int64(chosen[i]) + row) * STRIDE + i
                rows[(SLOT * arms + row) * STRIDE + i] = rows[source]


@part
def put_aside(work, place, lanes):
    """Keep the arms and rewards of a step."""
    arms = work.kept_arms[place * lanes : (place + 1) * lanes]
    rewards = work.kept_rewards[place * lanes : (place + 1) * lanes]
    for i in range(lanes):
        arms[i] = work.chosen[i]
        rewards[i] = work.reward[i]


@lane
def _add(arm, reward, i, binary, counted, work):
    """Count a reward that has come; mean and deviation follow in `settle`."""
    rows, sums, changes = work.rows, work.sums, work.changes
    at = SLOT * arm * STRIDE + i
    if counted:
        rows[at + W * STRIDE] -= f32(1)
    else:
        rows[at] += f32(1)
    sums[2 * arm * STRIDE + i] += reward
    if binary:
        sums[(2 * arm + 1) * STRIDE + i] += reward
    else:
        change = reward - rows[at + STRIDE]
        changes[2 * arm * STRIDE + i] += change
        changes[(2 * arm + 1) * STRIDE + i] += change * change


@part
def add_rewards(arms, binary, counted, work, place, lanes):
    """Count the rewards of a step that was put aside."""
    kept = work.kept_arms[place * lanes : (place + 1) * lanes]
    rewards = work.kept_rewards[place * lanes : (place + 1) * lanes]
    if arms == 2 and binary and counted:
        rows, sums = work.rows, work.sums
        for i in range(lanes):
            one = f32(i32(kept[i]))
            zero = f32(1) - one
            x = rewards[i] * zero
            y = rewards[i] * one
            rows[W * STRIDE + i] -= zero
            rows[(SLOT + W) * STRIDE + i] -= one
            sums[i] += x
            sums[STRIDE + i] += x
            sums[2 * STRIDE + i] += y
            sums[3 * STRIDE + i] += y
        return
    for i in range(lanes):
        _add(np.int64(kept[i]), rewards[i], i, binary, counted, work)


@part
def settle(arms, binary, uses_s, work, lanes):
    """Mean and deviation of all arms after rewards have come.

    With the mean r of n rewards and more of them, whose differences from r have the sum d and the sum
    of squares q, the sum of squared deviations grows by q - d^2 / n', n' being the new number.
    """
    rows, sums, changes = work.rows, work.sums, work.changes
    for arm in range(arms):
        slot = SLOT * arm * STRIDE
        for i in range(lanes):
            n = rows[slot + i] - rows[slot + W * STRIDE + i]
            r = sums[2 * arm * STRIDE + i] / max(n, f32(1e-30))
            rows[slot + STRIDE + i] = r if n > f32(0) else rows[slot + STRIDE + i]
        if not binary:
            for i in range(lanes):
                n = rows[slot + i] - rows[slot + W * STRIDE + i]
                d = changes[2 * arm * STRIDE + i]
                grown = changes[(2 * arm + 1) * STRIDE + i] - d * d / max(n, f32(1e-30))
                sums[(2 * arm + 1) * STRIDE + i] += max(grown, f32(0))
                changes[2 * arm * STRIDE + i] = f32(0)
                changes[(2 * arm + 1) * STRIDE + i] = f32(0)
        if uses_s:
            for i in range(lanes):
                n = max(rows[slot + i] - rows[slot + W * STRIDE + i], f32(1e-30))
                squares = sums[(2 * arm + 1) * STRIDE + i]
                r = rows[slot + STRIDE + i]
                rows[slot + 2 * STRIDE + i] = deviation(n, squares, r, binary)


@part
def send_out(step, horizon, waiting, work, lanes):
    """Give each reward of a step its random delay, and put it on the list of when it comes.

    What comes after the last play is on the list horizon + 1.
    """
    for i in range(lanes):
        word = u32(work.words[np.int64(work.chosen[i]) * STRIDE + i] - WEYL)
        u = np.float64(unit(draw_bits(word, u32(work.keys[i] ^ DELAY))))
        comes = step + 1 + np.floor(np.log(u) * waiting.scale)
        when = horizon + 1
        if comes <= horizon:
            when = waiting.ends[np.int64(comes)]
        work.following[step * lanes + i] = work.heads[when * lanes + i]
        work.heads[when * lanes + i] = i32(step)


@part
def collect(when, binary, counted, work, lanes):
    """Count the rewards that come after this many plays; whether there were any."""
    any_came = False
    for i in range(lanes):
        play = np.int64(work.heads[when * lanes + i])
        while play >= 0:
            any_came = True
            place = play * lanes + i
            reward = work.kept_rewards[place]
            _add(np.int64(work.kept_arms[place]), reward, i, binary, counted, work)
            play = np.int64(work.following[place])
    return any_came


@part
def find_lacking(arms, waiting, work, lanes):
    """How many lanes wait for an arm's first reward (work.lacks), and how many have such an arm.

    work.wanted is what a lane that waits plays: the arm with the fewest waiting plays, among these one
    without a reward, among these the first. Where play waits no longer, an arm without a reward reads
    the mean of all rewards.
    """
    rows = work.rows
    lacking = 0
    without = 0
    for i in range(lanes):
        came = f32(0)
        total = f32(0)
        fewest = f32(np.inf)
        empty = 0
        unplayed = False
        wanted = 0
        for arm in range(arms):
            n = rows[SLOT * arm * STRIDE + i]
            waits = rows[(SLOT * arm + W) * STRIDE + i]
            had = n - waits
            if not waiting.counted:
                waits = work.played[arm * STRIDE + i] - n
            came += had
            total += work.sums[2 * arm * STRIDE + i]
            empty += 1 if had == f32(0) else 0
            unplayed = unplayed or (had == f32(0) and waits == f32(0))
            rank = f32(2) * waits + (f32(1) if had > f32(0) else f32(0))
            if rank < fewest:
                fewest = rank
                wanted = arm
        lacks = empty > 0 and (unplayed or came < waiting.patience)
        work.lacks[i] = u32(1) if lacks else u32(0)
        work.wanted[i] = u32(wanted)
        lacking += 1 if lacks else 0
        without += 1 if empty > 0 else 0
        if empty > 0 and not lacks:
            for arm in range(arms):
                at = SLOT * arm * STRIDE + i
                if rows[at] == rows[at + W * STRIDE]:
                    rows[at + STRIDE] = total / came
    return lacking, without


@part
def play_wanted(work, lanes):
    """Lanes that lack a reward play what they want."""
    for i in range(lanes):
        if work.lacks[i] != u32(0):
            work.chosen[i] = work.wanted[i]


@part
def keep_shares(share, step, arms, work, lanes):
    """A random arm with the probability that gives every arm its share."""
    for i in range(lanes):
        other = u32(below(noise_bits(work.keys[i], step, CHOICE_STREAM + 3), arms))
        chance = unit(noise_bits(work.keys[i], step, CHOICE_STREAM + 2))
        work.chosen[i] = other if chance < f32(arms * share) else work.chosen[i]
