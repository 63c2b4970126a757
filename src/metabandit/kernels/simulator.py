"""The simulator: blocks of episodes, played in step.

An episode is a lane. A block of lanes plays step t together: the machine computes the index of
each arm (or a `decide` function names the arm), the best arm is chosen, a reward is drawn, and the
arm's statistics are updated. Two arms have loops of their own, which select by masks and so are
vectorised; for more arms the loops go by the lane's arm.

Regret needs nothing at each step: it is the sum over arms of plays times gap, at the checkpoints.

Rows of `file`: slots of n, r, s for each arm, one slot for the arm just played, an index row for
each arm, the index of the arm just played, then the program's registers.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from .best import choose, choose_of_two
from .jit import DECIDE, jit, pointer
from .machine import run_lanes, run_step, spread_scalars
from .opcodes import SCRATCH
from .random import WEYL, draw_bits, episode_bits, slot_word, unit
from .rows import STRIDE, all_below, all_between, blend, f32, u32
from .statistics import (
    copy_of_two,
    deviate,
    deviate_two,
    deviation,
    update,
    update_two,
    update_two_binary,
)

# What became of a simulation.
DONE = 0
INDEX_NOT_FINITE = 1
NO_SUCH_ARM = 2
REWARD_NOT_POSSIBLE = 3

Run = namedtuple("Run", "seed first_episode runs horizon lanes")
Run.__doc__ = (
    """seed; number of the first episode; episodes a problem; plays an episode; lanes a block."""
)
Problems = namedtuple("Problems", "parameters means binary low high")
Problems.__doc__ = """What is played.

parameters[problem, arm, parameter]; means[problem, arm], that regret is counted against; whether
rewards are 0 or 1; the least and the largest reward
"""
Rule = namedtuple("Rule", "each_once counts by_index parameters memory")
Rule.__doc__ = """How a policy begins and decides.

each_once: play every arm once, in order, before the first decision
counts: float64[3, arms], the pseudo-plays, their reward sum and their sum of squares
by_index: whether the machine decides; otherwise `decide` does, with `parameters` and so many
rows of `memory`
"""


Workspace = namedtuple(
    "Workspace",
    "file stats sums totals words parameters gaps memory scalars "
    "picked uniform reward lost keys chosen best check low tied",
)
Workspace.__doc__ = """The arrays that `simulate` works in; `workspace` makes them.

file: rows as above; stats: the same as [slot, (n, r, s), lane]
sums: reward sum and sum of squares of each arm; totals: the same as [arm, which, lane]
words, parameters, gaps: of each arm; memory: the policy's own; scalars: the step program's
the others: one number a lane, for the step at hand
"""


def _aligned(count: int, kind: Any) -> Any:
    """Zeros that begin at a cache line: rows that straddle lines cost a tenth of the speed."""
    size = np.dtype(kind).itemsize
    raw = np.zeros(count + 64 // size, kind)
    start = -raw.ctypes.data % 64 // size
    return raw[start : start + count]


def workspace(problems: Any, rule: Any, program: Any, lanes: int) -> Any:
    """Room for a simulation. Made here, in Python: in the kernel it would double its compilation."""
    _, arms, width = problems.parameters.shape
    slots = 3 * (arms + 1)
    file = _aligned((slots + arms + 1 + program.registers) * STRIDE, f32)
    sums = _aligned(2 * arms * STRIDE, f32)
    return Workspace(
        file=file,
        stats=file[: slots * STRIDE].reshape(arms + 1, 3, STRIDE),
        sums=sums,
        totals=sums.reshape(arms, 2, STRIDE),
        words=_aligned(arms * STRIDE, u32),
        parameters=_aligned(arms * width * STRIDE, f32),
        gaps=_aligned(arms * STRIDE, np.float64),
        memory=_aligned(max(rule.memory, 1) * STRIDE, f32).reshape(-1, STRIDE),
        scalars=program.scalars.copy(),
        picked=_aligned(width * lanes, f32).reshape(width, lanes),
        uniform=_aligned(lanes, f32),
        reward=_aligned(lanes, f32),
        lost=_aligned(lanes, np.float64),
        keys=_aligned(lanes, u32),
        chosen=_aligned(lanes, u32),
        best=_aligned(lanes, f32),
        check=_aligned(lanes, f32),
        low=_aligned(lanes, u32),
        tied=np.zeros(arms + 1, u32),
    )


@pointer(DECIDE)
def idle(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """What stands in for `decide` where the machine decides."""


@jit
def _pick_two(words, parameters, width, keys, chosen, uniform, picked, lanes):
    """Two arms: the uniform number of each lane's pull, and the parameters of its arm."""
    for i in range(lanes):
        mask = u32(u32(0) - chosen[i])
        a = words[i]
        b = words[STRIDE + i]
        uniform[i] = unit(draw_bits(u32(u32(b & mask) | u32(a & u32(~mask))), keys[i]))
        words[i] = u32(a + u32(WEYL & u32(~mask)))
        words[STRIDE + i] = u32(b + u32(WEYL & mask))
    for p in range(width):
        first = parameters[p * STRIDE : p * STRIDE + lanes]
        second = parameters[(width + p) * STRIDE : (width + p) * STRIDE + lanes]
        target = picked[p]
        for i in range(lanes):
            x = first[i]
            y = second[i]
            target[i] = x if chosen[i] == u32(0) else y


@jit
def _pick(words, parameters, width, keys, chosen, word, uniform, picked, lanes):
    """Any number of arms: the same by the lane's arm."""
    for i in range(lanes):
        at = np.int64(chosen[i]) * STRIDE + i
        word[i] = words[at]
        words[at] = u32(words[at] + WEYL)
    for i in range(lanes):
        uniform[i] = unit(draw_bits(word[i], keys[i]))
    for p in range(width):
        for i in range(lanes):
            picked[p, i] = parameters[(np.int64(chosen[i]) * width + p) * STRIDE + i]


@jit
def _begin(run, problems, rule, first, lanes, file, sums, words, keys, parameters, gaps):
    """Set the lanes to the start of episodes first, first + 1, ... of this run."""
    arms = problems.parameters.shape[1]
    width = problems.parameters.shape[2]
    for i in range(lanes):
        # Lanes beyond the last episode repeat it: all blocks have whole vectors.
        position = min(first + i, problems.parameters.shape[0] * run.runs - 1)
        problem = position // run.runs if run.runs > 1 else position
        bits = episode_bits(run.seed, run.first_episode + position)
        keys[i] = slot_word(bits, 0)
        best = problems.means[problem, 0]
        for arm in range(1, arms):
            best = max(best, problems.means[problem, arm])
        for arm in range(arms):
            gaps[arm * STRIDE + i] = best - problems.means[problem, arm]
            words[arm * STRIDE + i] = slot_word(bits, 1 + arm)
            for p in range(width):
                parameters[(arm * width + p) * STRIDE + i] = problems.parameters[problem, arm, p]
    for arm in range(arms):
        n = f32(rule.counts[0, arm])
        total = f32(rule.counts[1, arm])
        squares = f32(rule.counts[2, arm])
        r = total / n if n > f32(0) else f32(0)
        if not problems.binary:
            squares -= total * r
        s = deviation(n, squares, r, problems.binary) if n > f32(0) else f32(0)
        for i in range(lanes):
            file[3 * arm * STRIDE + i] = n
            file[(3 * arm + 1) * STRIDE + i] = r
            file[(3 * arm + 2) * STRIDE + i] = s
            sums[2 * arm * STRIDE + i] = total
            sums[(2 * arm + 1) * STRIDE + i] = squares


@jit
def _keep_index(file, index, arms, chosen, lanes):
    """Move the index of the arm just played to that arm's row."""
    for i in range(lanes):
        file[(index + np.int64(chosen[i])) * STRIDE + i] = file[(index + arms) * STRIDE + i]


@jit
def _keep_index_of_two(file, chosen, lanes):
    for i in range(lanes):
        mask = u32(u32(0) - chosen[i])
        new = file[11 * STRIDE + i]
        file[9 * STRIDE + i] = blend(new, file[9 * STRIDE + i], mask)
        file[10 * STRIDE + i] = blend(file[10 * STRIDE + i], new, mask)


@jit
def _add_up(file, gaps, counts, lost):
    """Regret so far: the plays of each arm times its gap."""
    lost[:] = 0.0
    for arm in range(counts.shape[1]):
        n = file[3 * arm * STRIDE : 3 * arm * STRIDE + lost.shape[0]]
        gap = gaps[arm * STRIDE : arm * STRIDE + lost.shape[0]]
        for i in range(lost.shape[0]):
            lost[i] += np.rint(n[i] - counts[0, arm]) * gap[i]


@jit
def _recommend(file, gaps, counts, lost):
    """Simple regret: the gap of the arm with the best mean; of several such arms, their average gap.

    An arm that was never played has no mean.
    """
    arms = counts.shape[1]
    for i in range(lost.shape[0]):
        best = f32(-np.inf)
        for arm in range(arms):
            if file[3 * arm * STRIDE + i] > f32(0):
                best = max(best, file[(3 * arm + 1) * STRIDE + i])
        total = 0.0
        count = 0
        for arm in range(arms):
            if file[3 * arm * STRIDE + i] > f32(0) and file[(3 * arm + 1) * STRIDE + i] == best:
                total += gaps[arm * STRIDE + i]
                count += 1
        lost[i] = total / count


@jit
def _report(file, index, arms, t, lanes, fault):
    """Write down the first state whose index is not finite: n, r, s, t, index."""
    for i in range(lanes):
        for arm in range(arms):
            value = file[(index + arm) * STRIDE + i]
            # Beyond this, the difference of two indices may overflow.
            if not abs(value) < f32(1e38):
                for v in range(3):
                    fault[v] = file[(3 * arm + v) * STRIDE + i]
                fault[3] = t
                fault[4] = value
                return


@jit
def _index(program, scalars, file, arm, target, arms, lanes):
    """Let the machine compute the index of the arm in a slot, into an index row."""
    first = 3 * (arms + 1)
    scratch = program.registers - SCRATCH
    run_lanes(
        program.lane_code,
        scalars,
        file,
        3 * arm,
        first + arms + 1,
        first + target,
        STRIDE,
        lanes,
        scratch,
    )


@jit
def _set_step(program, scalars, file, arms, t, left, lanes, first):
    """Compute what depends on the moment alone; fill the register rows from `first` on with it."""
    scalars[0] = t
    scalars[1] = left
    scalars[2] = arms
    run_step(program.step_code, scalars)
    registers = 3 * (arms + 1) + arms + 1
    spread_scalars(program.spread, scalars, file, registers, STRIDE, lanes, first)


@jit
def simulate(
    run, problems, rule, program, draw, decide, work, checkpoints, regret, final, plays, fault
):
    """Play every episode of `problems` and fill in what came of it.

    regret[c, episode] is the pseudo-regret after checkpoints[c] plays, and its last row the simple
    regret. final[0, arm, episode] is how often the arm was played and final[1, arm, episode] the sum of
    its rewards, if there is room for them; plays[arm] grows by the plays of each arm. Returns DONE, or what went wrong, with the state in `fault`.
    """
    arms = problems.parameters.shape[1]
    width = problems.parameters.shape[2]
    episodes = regret.shape[1]
    index = 3 * (arms + 1)
    two = arms == 2

    file, sums, words, parameters = work.file, work.sums, work.words, work.parameters
    keys, chosen, uniform, picked = work.keys, work.chosen, work.uniform, work.picked
    reward, scalars = work.reward, work.scalars
    lanes = run.lanes
    # Rewards must lie in the family's support, but for rounding.
    low = f32(problems.low - 1e-5 * abs(problems.low)) - f32(1e-6)
    high = f32(problems.high + 1e-5 * abs(problems.high)) + f32(1e-6)
    pseudo_plays = 0.0
    # With rewards of 0 and 1 the sum of squares is the reward sum, unless the start says otherwise.
    simple = problems.binary and program.uses_s
    for arm in range(arms):
        simple = simple and rule.counts[1, arm] == rule.counts[2, arm]
    for arm in range(arms):
        pseudo_plays += rule.counts[0, arm]

    for first in range(0, episodes, lanes):
        _begin(run, problems, rule, first, lanes, file, sums, words, keys, parameters, work.gaps)
        work.memory[:] = f32(0)
        if rule.by_index:
            _set_step(program, scalars, file, arms, pseudo_plays, run.horizon, lanes, 0)
            if not program.varies and not rule.each_once:
                for arm in range(arms):
                    _index(program, scalars, file, arm, arm, arms, lanes)
        checkpoint = 0
        for step in range(run.horizon):
            t = pseudo_plays + step
            if rule.each_once and step < arms:
                chosen[:] = u32(step)
            elif rule.by_index:
                if program.varies:
                    left = run.horizon - step
                    _set_step(program, scalars, file, arms, t, left, lanes, program.constants)
                    for arm in range(arms):
                        _index(program, scalars, file, arm, arm, arms, lanes)
                if two:
                    finite = choose_of_two(file, index, keys, step, chosen, lanes)
                else:
                    finite = choose(file, index, arms, work, step, lanes)
                if not finite:
                    _report(file, index, arms, t, lanes, fault)
                    return INDEX_NOT_FINITE
            else:
                decide(
                    step,
                    t,
                    run.horizon,
                    work.stats,
                    work.totals,
                    work.memory,
                    rule.parameters,
                    keys,
                    chosen,
                )
                if not all_below(chosen, u32(arms)):
                    fault[3] = t
                    return NO_SUCH_ARM

            if two:
                _pick_two(words, parameters, width, keys, chosen, uniform, picked, lanes)
            else:
                _pick(words, parameters, width, keys, chosen, work.low, uniform, picked, lanes)
            draw(uniform, picked, reward)
            if not problems.binary and not all_between(reward, low, high):
                return REWARD_NOT_POSSIBLE
            if two and simple:
                update_two_binary(file, sums, reward, chosen, lanes)
                if not program.varies:
                    for row in range(3):
                        copy_of_two(file, row, 6 + row, chosen, lanes)
            elif two:
                if program.uses_s and not problems.binary:
                    copy_of_two(file, 1, 8, chosen, lanes)
                update_two(file, sums, reward, chosen, lanes)
                if program.uses_s or not program.varies:
                    copy_of_two(file, 0, 6, chosen, lanes)
                    copy_of_two(file, 1, 7, chosen, lanes)
                if program.uses_s:
                    deviate_two(file, sums, reward, chosen, problems.binary, lanes)
            else:
                update(file, sums, arms, reward, chosen, lanes)
                if program.uses_s:
                    deviate(file, sums, arms, reward, chosen, problems.binary, lanes)

            if rule.by_index and not program.varies:
                _index(program, scalars, file, arms, arms, arms, lanes)
                if two:
                    _keep_index_of_two(file, chosen, lanes)
                else:
                    _keep_index(file, index, arms, chosen, lanes)

            if step + 1 == checkpoints[checkpoint]:
                _add_up(file, work.gaps, rule.counts, work.lost)
                for i in range(min(lanes, episodes - first)):
                    regret[checkpoint, first + i] = work.lost[i]
                checkpoint += 1
        _recommend(file, work.gaps, rule.counts, work.lost)
        for i in range(min(lanes, episodes - first)):
            regret[checkpoint, first + i] = work.lost[i]
        for i in range(min(lanes, episodes - first)):
            for arm in range(arms):
                n = np.rint(file[3 * arm * STRIDE + i] - rule.counts[0, arm])
                plays[arm] += n
                if final.shape[2] > 0:
                    final[0, arm, first + i] = n
                    final[1, arm, first + i] = sums[2 * arm * STRIDE + i] - rule.counts[1, arm]
    return DONE
