"""The simulator on a coarse clock: arms are played in blocks that grow with what is known of them.

An arm with n plays (pseudo-plays included) is played max(1, growth n) times at once when it is chosen,
and the sum of these rewards is drawn at once (blocks.py). So where one block of an arm ends and the next
begins depends on its plays only, and rewards are those of (seed, episode, arm, pull) for every policy. The clock,
that is t and h, moves less often than that, and shows the middle of the time for which it stands still; meanwhile a
lane plays block after block until its plays are beyond. A growth of 0 plays one at a time.

For index policies without random plays and immediate feedback: what they choose does not change until
something becomes known or time passes. Lanes do not depend on each other.
"""

from __future__ import annotations

import numpy as np

from .best import choose, choose_of_two
from .blocks import binomial, chi_squared
from .jit import jit, part
from .random import WEYL, reward_unit
from .rows import SLOT, STRIDE, f32, u32
from .simulator import (
    DONE,
    INDEX_NOT_FINITE,
    _add_up,
    _begin,
    _finish,
    _index,
    _keep_index,
    _report,
    _set_step,
    _write,
)
from .special import normal_quantile
from .statistics import deviation

# The clock stands still for this many times the growth of the plays made, or left if those are fewer.
_CLOCK, _END = 4.0, 10.0


@part
def _play(run, problems, program, growth, work, until):
    """Play a block of the chosen arm in the lanes that have made fewer plays than `until`.

    work.wanted has the plays that lanes have made. Returns how many lanes have not come that far.
    """
    rows, sums, words, made = work.rows, work.sums, work.words, work.wanted
    arms, width = problems.parameters.shape[1], problems.parameters.shape[2]
    slot = SLOT * arms * STRIDE
    kind = rows.dtype.type
    behind = 0
    for i in range(run.lanes):
        arm = np.int64(work.chosen[i])
        at = SLOT * arm * STRIDE + i
        if np.int64(made[i]) < until:
            n = np.float64(rows[at])
            count = max(1, np.int64(growth * n))
            count = min(count, run.horizon - np.int64(made[i]))
            word = words[arm * STRIDE + i]
            key = work.keys[i]
            uniform = reward_unit(word, key, work.uniform)
            parameter = arm * width * STRIDE + i
            first = np.float64(work.parameters[parameter])
            n1 = n + count
            total = sums[2 * arm * STRIDE + i]
            squares = sums[(2 * arm + 1) * STRIDE + i]
            if problems.binary:
                wins = kind(binomial(count, first, word, key, np.float64(uniform)))
                total += wins
                squares += wins
            else:
                spread = np.float64(work.parameters[parameter + STRIDE])
                mean = first + spread * np.float64(normal_quantile(uniform)) / np.sqrt(count)
                apart = mean - np.float64(rows[at + STRIDE])
                total += kind(count * mean)
                if program.uses_s:
                    grown = apart * apart * n * count / n1
                    if count > 1:
                        grown += spread * spread * chi_squared(count - 1, word, key)
                    squares += kind(grown)
            r = total / kind(n1)
            words[arm * STRIDE + i] = u32(word + u32(WEYL * u32(count)))
            sums[2 * arm * STRIDE + i] = total
            sums[(2 * arm + 1) * STRIDE + i] = squares
            rows[at] = kind(n1)
            rows[at + STRIDE] = r
            if program.uses_s:
                rows[at + 2 * STRIDE] = deviation(kind(n1), squares, r, problems.binary)
            made[i] = u32(made[i] + u32(count))
            behind += 1 if np.int64(made[i]) < until else 0
        for row in range(SLOT):
            rows[slot + row * STRIDE + i] = rows[at + row * STRIDE]
    return behind


@part
def _play_block(run, problems, behaviour, program, growth, times, work, outcome, first):
    """Play the episodes first, first + 1, ...; times: the plays after which the clock moves."""
    arms, lanes, rows = problems.parameters.shape[1], run.lanes, work.rows
    index = SLOT * (arms + 1)
    pseudo_plays = 0.0
    for arm in range(arms):
        pseudo_plays += behaviour.counts[0, arm]
        for i in range(lanes):
            rows[(SLOT * arm + 3) * STRIDE + i] = f32(0)
    work.wanted[:] = u32(0)
    _set_step(program, work.scalars, rows, arms, pseudo_plays, run.horizon, lanes, 0)
    begin = 0
    if behaviour.each_once:
        begin = arms
        for arm in range(arms):
            work.chosen[:] = u32(arm)
            _play(run, problems, program, 0.0, work, arm + 1)
    for turn in range(times.shape[0] - 1):
        t, until = times[turn], times[turn + 1]
        if until <= begin:
            continue
        if program.varies:
            now = pseudo_plays + 0.5 * (t + until - 1)
            left = run.horizon - 0.5 * (t + until - 1)
            _set_step(program, work.scalars, rows, arms, now, left, lanes, program.constants)
        if program.varies or t <= begin:
            for arm in range(arms):
                _index(program, work.scalars, rows, arm, arm, arms, lanes)
        behind = 0
        for i in range(lanes):
            behind += 1 if np.int64(work.wanted[i]) < until else 0
        block = 0
        while behind > 0:
            step = turn + (block << 20)  # what ties are broken by
            if arms == 2:
                finite = choose_of_two(rows, index, work.keys, step, work.chosen, lanes)
            else:
                finite = choose(rows, index, arms, work, step, lanes)
            if not finite:
                _report(rows, index, arms, pseudo_plays + t, lanes, outcome.fault)
                return INDEX_NOT_FINITE
            behind = _play(run, problems, program, growth, work, until)
            # Nothing but the arm just played has another index now.
            _index(program, work.scalars, rows, arms, arms, arms, lanes)
            _keep_index(rows, index, arms, work.chosen, lanes)
            block += 1
    _add_up(behaviour, work)
    _write(work.lost, outcome.regret[0], first)
    return DONE


@jit
def simulate_coarsely(run, problems, behaviour, program, growth, times, work, outcome):
    """As `simulate`, on a coarse clock; there is one checkpoint, the horizon."""
    for first in range(0, outcome.regret.shape[1], run.lanes):
        _begin(run, problems, behaviour, first, work)
        status = _play_block(run, problems, behaviour, program, growth, times, work, outcome, first)
        if status != DONE:
            return status
        _finish(behaviour, work, outcome, first)
    return DONE


def clock(horizon: int, pseudo_plays: float, growth: float) -> np.ndarray:
    """The plays after which t and h are read: 0, ..., horizon."""
    times = [0]
    while times[-1] < horizon:
        made, left = times[-1], horizon - times[-1]
        # Indices change with the logarithm or the root of the time; they matter less near the end.
        step = growth * min(_CLOCK * (made + pseudo_plays), _END * left)
        times.append(min(horizon, made + max(1, int(step))))
    return np.array(times, np.int64)
