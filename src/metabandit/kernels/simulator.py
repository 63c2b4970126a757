"""The simulator: blocks of episodes, played in step.

An episode is a lane. A block of lanes plays step t together: the machine computes the index of
each arm (or a `decide` function names the arm), the best arm is chosen, a reward is drawn, and the
arm's statistics are updated. Two arms have loops of their own, which select by masks and so are
vectorised; for more arms the loops go by the lane's arm.

Regret needs nothing at each step: it is the sum over arms of plays times gap, at the checkpoints.

Rows of `rows`: slots of n, r, s for each arm, one slot for the arm just played, an index row for
each arm, the index of the arm just played, then the program's registers.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from .best import choose, choose_of_two
from .jit import DECIDE, jit, lane, pointer
from .machine import run_lanes, run_step, spread_scalars
from .opcodes import SCRATCH
from .random import (
    CHOICE_STREAM,
    WEYL,
    below,
    draw_bits,
    episode_bits,
    noise_bits,
    slot_word,
    unit,
)
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
    """seed; number of the first episode; episodes per problem; plays per episode; lanes."""
)
Problems = namedtuple("Problems", "parameters means binary low high")
Problems.__doc__ = """What is played.

parameters[problem, arm, parameter]; means[problem, arm], that regret is counted against; whether
rewards are 0 or 1; the least and the largest reward
"""
Behaviour = namedtuple("Behaviour", "each_once counts by_index rate needed parameters memory")
Behaviour.__doc__ = """How a policy begins and decides.

each_once: play every arm once, in order, before the first decision
counts: float64[3, arms], the pseudo-plays, their reward sum and their sum of squares
by_index: whether the machine decides; otherwise `decide` does, with `parameters` and this many
    rows of `memory`
rate: float64[step], the probability with which any arm is played instead; empty if there is none
needed: float64[step], plays that every arm must have before the index counts; empty if none are needed
"""
Outcome = namedtuple("Outcome", "checkpoints regret final plays fault")
Outcome.__doc__ = """What `simulate` fills in.

regret[c, episode]: the pseudo-regret after checkpoints[c] plays; its last row is the simple regret
final[0, arm, episode], final[1, arm, episode]: how often the arm was played and the sum of its
    rewards, if there is room for them
plays[arm]: grows by the plays of each arm
fault: the state that stopped the simulation
"""


Workspace = namedtuple(
    "Workspace",
    "rows stats sums totals words parameters gaps memory scalars "
    "picked uniform reward lost keys chosen best check low tied",
)
Workspace.__doc__ = """The arrays that `simulate` works in; `workspace` makes them.

rows: rows as above; stats: the same as [slot, (n, r, s), lane]
sums: reward sum and sum of squares of each arm; totals: the same as [arm, which, lane]
words, parameters, gaps: of each arm; memory: the policy's own; scalars: the step program's
the others: one number per lane, for the step at hand
"""


def _aligned(count: int, kind: Any) -> Any:
    """Zeros that begin at a cache line: rows that straddle lines cost a tenth of the speed."""
    size = np.dtype(kind).itemsize
    raw = np.zeros(count + 64 // size, kind)
    start = -raw.ctypes.data % 64 // size
    return raw[start : start + count]


def workspace(problems: Any, behaviour: Any, program: Any, lanes: int) -> Any:
    """Room for a simulation. Made here, in Python: in the kernel it would double its compilation."""
    _, arms, width = problems.parameters.shape
    slots = 3 * (arms + 1)
    rows = _aligned((slots + arms + 1 + program.registers) * STRIDE, f32)
    sums = _aligned(2 * arms * STRIDE, f32)
    return Workspace(
        rows=rows,
        stats=rows[: slots * STRIDE].reshape(arms + 1, 3, STRIDE),
        sums=sums,
        totals=sums.reshape(arms, 2, STRIDE),
        words=_aligned(arms * STRIDE, u32),
        parameters=_aligned(arms * width * STRIDE, f32),
        gaps=_aligned(arms * STRIDE, np.float64),
        memory=_aligned(max(behaviour.memory, 1) * STRIDE, f32).reshape(-1, STRIDE),
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


@lane
def _pick_two(width, work, lanes):
    """Two arms: the uniform number of each lane's pull, and the parameters of its arm."""
    words, parameters, keys = work.words, work.parameters, work.keys
    chosen, uniform, picked = work.chosen, work.uniform, work.picked
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


@lane
def _pick(width, work, lanes):
    """Any number of arms: the same by the lane's arm."""
    words, parameters, keys, word = work.words, work.parameters, work.keys, work.low
    chosen, uniform, picked = work.chosen, work.uniform, work.picked
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
def _begin(run, problems, behaviour, first, work):
    """Set the lanes to the start of episodes first, first + 1, ... of this run."""
    lanes, rows, sums = run.lanes, work.rows, work.sums
    words, parameters, gaps = work.words, work.parameters, work.gaps
    arms = problems.parameters.shape[1]
    width = problems.parameters.shape[2]
    for i in range(lanes):
        # Lanes beyond the last episode repeat it: all blocks have whole vectors.
        position = min(first + i, problems.parameters.shape[0] * run.runs - 1)
        problem = position // run.runs if run.runs > 1 else position
        bits = episode_bits(run.seed, run.first_episode + position)
        work.keys[i] = slot_word(bits, 0)
        best = problems.means[problem, 0]
        for arm in range(1, arms):
            best = max(best, problems.means[problem, arm])
        for arm in range(arms):
            gaps[arm * STRIDE + i] = best - problems.means[problem, arm]
            words[arm * STRIDE + i] = slot_word(bits, 1 + arm)
            for p in range(width):
                parameters[(arm * width + p) * STRIDE + i] = problems.parameters[problem, arm, p]
    for arm in range(arms):
        n = f32(behaviour.counts[0, arm])
        total = f32(behaviour.counts[1, arm])
        squares = f32(behaviour.counts[2, arm])
        r = total / n if n > f32(0) else f32(0)
        if not problems.binary:
            squares -= total * r
        s = deviation(n, squares, r, problems.binary) if n > f32(0) else f32(0)
        for i in range(lanes):
            rows[3 * arm * STRIDE + i] = n
            rows[(3 * arm + 1) * STRIDE + i] = r
            rows[(3 * arm + 2) * STRIDE + i] = s
            sums[2 * arm * STRIDE + i] = total
            sums[(2 * arm + 1) * STRIDE + i] = squares


@jit
def _keep_index(rows, index, arms, chosen, lanes):
    """Move the index of the arm just played to that arm's row."""
    for i in range(lanes):
        rows[(index + np.int64(chosen[i])) * STRIDE + i] = rows[(index + arms) * STRIDE + i]


@jit
def _keep_index_of_two(rows, chosen, lanes):
    for i in range(lanes):
        mask = u32(u32(0) - chosen[i])
        new = rows[11 * STRIDE + i]
        rows[9 * STRIDE + i] = blend(new, rows[9 * STRIDE + i], mask)
        rows[10 * STRIDE + i] = blend(rows[10 * STRIDE + i], new, mask)


@jit
def _add_up(rows, gaps, counts, lost):
    """Regret so far: the plays of each arm times its gap."""
    lost[:] = 0.0
    for arm in range(counts.shape[1]):
        n = rows[3 * arm * STRIDE : 3 * arm * STRIDE + lost.shape[0]]
        gap = gaps[arm * STRIDE : arm * STRIDE + lost.shape[0]]
        for i in range(lost.shape[0]):
            lost[i] += np.rint(n[i] - counts[0, arm]) * gap[i]


@jit
def _recommend(rows, gaps, counts, lost):
    """Simple regret: the gap of the arm with the best mean; of several such arms, their average gap.

    An arm that was never played has no mean.
    """
    arms = counts.shape[1]
    for i in range(lost.shape[0]):
        best = f32(-np.inf)
        for arm in range(arms):
            if rows[3 * arm * STRIDE + i] > f32(0):
                best = max(best, rows[(3 * arm + 1) * STRIDE + i])
        total = 0.0
        count = 0
        for arm in range(arms):
            if rows[3 * arm * STRIDE + i] > f32(0) and rows[(3 * arm + 1) * STRIDE + i] == best:
                total += gaps[arm * STRIDE + i]
                count += 1
        lost[i] = total / count


@jit
def _report(rows, index, arms, t, lanes, fault):
    """Write down the first state whose index is not finite: n, r, s, t, index."""
    for i in range(lanes):
        for arm in range(arms):
            value = rows[(index + arm) * STRIDE + i]
            # Beyond this, the difference of two indices may overflow.
            if not abs(value) < f32(1e38):
                for v in range(3):
                    fault[v] = rows[(3 * arm + v) * STRIDE + i]
                fault[3] = t
                fault[4] = value
                return


@jit
def _index(program, scalars, rows, arm, target, arms, lanes):
    """Let the machine compute the index of the arm in a slot, into an index row."""
    first = 3 * (arms + 1)
    scratch = program.registers - SCRATCH
    run_lanes(
        program.lane_code,
        scalars,
        rows,
        3 * arm,
        first + arms + 1,
        first + target,
        STRIDE,
        lanes,
        scratch,
    )


@jit
def _set_step(program, scalars, rows, arms, t, left, lanes, first):
    """Compute what depends on the moment alone; fill the register rows from `first` on with it."""
    scalars[0] = t
    scalars[1] = left
    scalars[2] = arms
    run_step(program.step_code, scalars)
    registers = 3 * (arms + 1) + arms + 1
    spread_scalars(program.spread, scalars, rows, registers, STRIDE, lanes, first)


@jit
def _bring_up(rows, index, arms, needed, lanes):
    """Where an arm has fewer plays than needed, the one with the fewest shall have the largest index."""
    for i in range(lanes):
        fewest = rows[i]
        for arm in range(1, arms):
            fewest = min(fewest, rows[3 * arm * STRIDE + i])
        if fewest < needed:
            for arm in range(arms):
                rows[(index + arm) * STRIDE + i] = -rows[3 * arm * STRIDE + i]


@jit
def _play_at_random(rate, needed, step, arms, work, lanes):
    """Any arm instead of the chosen one with a probability, where no arm lacks needed plays."""
    keys, chosen = work.keys, work.chosen
    if needed <= 0.0:
        for i in range(lanes):
            other = u32(below(noise_bits(keys[i], step, CHOICE_STREAM + 1), arms))
            chance = unit(noise_bits(keys[i], step, CHOICE_STREAM))
            chosen[i] = other if chance < rate else chosen[i]
        return
    for i in range(lanes):
        if unit(noise_bits(keys[i], step, CHOICE_STREAM)) < rate:
            fewest = work.rows[i]
            for arm in range(1, arms):
                fewest = min(fewest, work.rows[3 * arm * STRIDE + i])
            if fewest >= needed:
                chosen[i] = below(noise_bits(keys[i], step, CHOICE_STREAM + 1), arms)


@lane
def _choose_by_index(run, behaviour, program, work, step, t, fault):
    """The arm of each lane by its index; false if an index is not finite."""
    arms = behaviour.counts.shape[1]
    index = 3 * (arms + 1)
    lanes, rows = run.lanes, work.rows
    rate = behaviour.rate[step] if behaviour.rate.shape[0] > 0 else 0.0
    needed = behaviour.needed[step] if behaviour.needed.shape[0] > 0 else 0.0
    if rate >= 1.0 and needed <= 0.0:  # nothing is compared
        _play_at_random(rate, needed, step, arms, work, lanes)
        return True
    if program.varies:
        left = run.horizon - step
        _set_step(program, work.scalars, rows, arms, t, left, lanes, program.constants)
        for arm in range(arms):
            _index(program, work.scalars, rows, arm, arm, arms, lanes)
    if needed > 0.0:
        _bring_up(rows, index, arms, needed, lanes)
    if arms == 2:
        finite = choose_of_two(rows, index, work.keys, step, work.chosen, lanes)
    else:
        finite = choose(rows, index, arms, work, step, lanes)
    if not finite:
        _report(rows, index, arms, t, lanes, fault)
        return False
    if rate > 0.0:
        _play_at_random(rate, needed, step, arms, work, lanes)
    return True


@lane
def _count(problems, program, work, squares_follow, lanes):
    """Add the rewards of a step to what is known of the arms."""
    rows, sums, reward, chosen = work.rows, work.sums, work.reward, work.chosen
    arms = problems.parameters.shape[1]
    if arms == 2 and squares_follow:
        update_two_binary(rows, sums, reward, chosen, lanes)
        if not program.varies:
            for row in range(3):
                copy_of_two(rows, row, 6 + row, chosen, lanes)
    elif arms == 2:
        if program.uses_s and not problems.binary:
            copy_of_two(rows, 1, 8, chosen, lanes)
        update_two(rows, sums, reward, chosen, lanes)
        if program.uses_s or not program.varies:
            copy_of_two(rows, 0, 6, chosen, lanes)
            copy_of_two(rows, 1, 7, chosen, lanes)
        if program.uses_s:
            deviate_two(rows, sums, reward, chosen, problems.binary, lanes)
    else:
        update(rows, sums, arms, reward, chosen, lanes)
        if program.uses_s:
            deviate(rows, sums, arms, reward, chosen, problems.binary, lanes)


@jit
def _play_block(run, problems, behaviour, program, draw, decide, work, outcome, first):
    """Play the episodes first, first + 1, ... in step; their regret at the checkpoints."""
    arms, width = problems.parameters.shape[1], problems.parameters.shape[2]
    lanes, rows, chosen = run.lanes, work.rows, work.chosen
    # Rewards must lie in the family's support, but for rounding.
    low = f32(problems.low - 1e-5 * abs(problems.low)) - f32(1e-6)
    high = f32(problems.high + 1e-5 * abs(problems.high)) + f32(1e-6)
    pseudo_plays = 0.0
    # With rewards of 0 and 1 the sum of squares is the reward sum, unless the start says otherwise.
    squares_follow = problems.binary and program.uses_s
    for arm in range(arms):
        squares_follow = squares_follow and behaviour.counts[1, arm] == behaviour.counts[2, arm]
        pseudo_plays += behaviour.counts[0, arm]
    kept = behaviour.by_index and not program.varies
    if behaviour.by_index:
        _set_step(program, work.scalars, rows, arms, pseudo_plays, run.horizon, lanes, 0)
        if not program.varies and not behaviour.each_once:
            for arm in range(arms):
                _index(program, work.scalars, rows, arm, arm, arms, lanes)
    checkpoint = 0
    for step in range(run.horizon):
        t = pseudo_plays + step
        if behaviour.each_once and step < arms:
            chosen[:] = u32(step)
        elif behaviour.by_index:
            if not _choose_by_index(run, behaviour, program, work, step, t, outcome.fault):
                return INDEX_NOT_FINITE
        else:
            decide(
                step, t, run.horizon, work.stats, work.totals, work.memory, behaviour.parameters,
                work.keys, chosen,
            )  # fmt: skip
            if not all_below(chosen, u32(arms)):
                outcome.fault[3] = t
                return NO_SUCH_ARM
        if arms == 2:
            _pick_two(width, work, lanes)
        else:
            _pick(width, work, lanes)
        draw(work.uniform, work.picked, work.reward)
        if not problems.binary and not all_between(work.reward, low, high):
            return REWARD_NOT_POSSIBLE
        _count(problems, program, work, squares_follow, lanes)
        if kept:
            _index(program, work.scalars, rows, arms, arms, arms, lanes)
            if arms == 2:
                _keep_index_of_two(rows, chosen, lanes)
            else:
                _keep_index(rows, 3 * (arms + 1), arms, chosen, lanes)
        if step + 1 == outcome.checkpoints[checkpoint]:
            _add_up(rows, work.gaps, behaviour.counts, work.lost)
            _write(work.lost, outcome.regret[checkpoint], first)
            checkpoint += 1
    return DONE


@jit
def _write(lost, regret, first):
    for i in range(min(lost.shape[0], regret.shape[0] - first)):
        regret[first + i] = lost[i]


@jit
def _finish(behaviour, work, outcome, first):
    """Simple regret, and how often each arm was played."""
    regret, plays, final = outcome.regret, outcome.plays, outcome.final
    _recommend(work.rows, work.gaps, behaviour.counts, work.lost)
    _write(work.lost, regret[regret.shape[0] - 1], first)
    for i in range(min(work.lost.shape[0], regret.shape[1] - first)):
        for arm in range(plays.shape[0]):
            n = np.rint(work.rows[3 * arm * STRIDE + i] - behaviour.counts[0, arm])
            plays[arm] += n
            if final.shape[2] > 0:
                final[0, arm, first + i] = n
                final[1, arm, first + i] = (
                    work.sums[2 * arm * STRIDE + i] - behaviour.counts[1, arm]
                )


@jit
def simulate(run, problems, behaviour, program, draw, decide, work, outcome):
    """Play every episode of `problems`, in blocks of lanes, and fill in the outcome.

    Returns DONE, or what went wrong, with the state in outcome.fault.
    """
    for first in range(0, outcome.regret.shape[1], run.lanes):
        _begin(run, problems, behaviour, first, work)
        work.memory[:] = f32(0)
        status = _play_block(run, problems, behaviour, program, draw, decide, work, outcome, first)
        if status != DONE:
            return status
        _finish(behaviour, work, outcome, first)
    return DONE
