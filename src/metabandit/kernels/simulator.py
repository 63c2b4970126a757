"""The simulator: blocks of episodes, played in step.

An episode is a lane. A block of lanes plays step t together: the machine computes the index of
each arm (or a `decide` function names the arm), the best arm is chosen, a reward is drawn, and the
arm's statistics are updated. Two arms have loops of their own, which select by masks and so are
vectorised; for more arms the loops go by the lane's arm.

Regret needs nothing at each step: it is the sum over arms of plays times gap, at the checkpoints.

Rows of `rows`: slots of n, r, s, w for each arm, one slot for the arm just played, an index row for
each arm, the index of the arm just played, then the program's registers.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from . import waiting as later
from .best import choose, choose_of_two
from .jit import DECIDE, jit_as, lane, part, pointer, separate_jit, spliced
from .machine import run_lanes, run_step, spread_scalars
from .opcodes import BETA_OPTIMIST, BETA_QUANTILE, SCRATCH
from .random import (
    CHOICE_STREAM,
    TIE_STREAM,
    WEYL,
    below,
    episode_bits,
    noise_bits,
    reward_unit,
    slot_word,
    unit,
)
from .rows import SLOT, STRIDE, all_below, all_between, blend, f32, i32, u32
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
Behaviour = namedtuple(
    "Behaviour", "each_once counts by_index rate needed parameters memory waiting"
)
Behaviour.__doc__ = """How a policy begins and decides.

each_once: play every arm once, in order, before the first decision
counts: float64[3, arms], the pseudo-plays, their reward sum and their sum of squares
by_index: whether the machine decides; otherwise `decide` does, with `parameters` and this many
    rows of `memory`
rate: float64[step], the probability with which any arm is played instead; empty if there is none
needed: float64[step], plays that every arm must have before anything else counts; empty if none are needed
waiting: when rewards become known (waiting.py)
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
    "rows stats sums totals words parameters gaps memory saved scalars "
    "picked uniform reward lost keys chosen best check low tied "
    "played changes kept_arms kept_rewards heads following lacks wanted",
)
Workspace.__doc__ = """The arrays that `simulate` works in; `workspace` makes them.

rows: rows as above; stats: the same as [slot, (n, r, s, w), lane]
sums: reward sum and sum of squares of each arm; totals: the same as [arm, which, lane]
words, parameters, gaps: of each arm; memory: the policy's own; scalars: the step program's
played, changes, kept_arms, kept_rewards, heads, following: of plays that wait (waiting.py)
the others: one number per lane, for the step at hand
"""


# Numbers of the machine's memory, four per value: two megabytes of float32.
_MEMORY = 4 << 17


def _aligned(count: int, kind: Any) -> Any:
    """Zeros that begin at a cache line: rows that straddle lines cost a tenth of the speed."""
    size = np.dtype(kind).itemsize
    raw = np.zeros(count + 64 // size, kind)
    start = -raw.ctypes.data % 64 // size
    return raw[start : start + count]


def workspace(problems: Any, behaviour: Any, program: Any, lanes: int, kind: Any = f32) -> Any:
    """Room for a simulation in lanes of this kind. Made here, in Python: in the kernel it would double its compilation."""
    _, arms, width = problems.parameters.shape
    slots = SLOT * (arms + 1)
    waiting, horizon = (
        behaviour.waiting,
        max(len(behaviour.waiting.known), len(behaviour.waiting.ends)),
    )
    random, waits = len(waiting.ends) > 0, horizon > 0
    memory = max(behaviour.memory, 1) * STRIDE
    count = (slots + arms + 1 + program.registers) * STRIDE
    rows = _aligned(count + (_MEMORY if remembers(program) else 0), kind)
    rows[count:] = np.nan
    sums = _aligned(2 * arms * STRIDE, kind)
    return Workspace(
        rows=rows,
        stats=rows[: slots * STRIDE].reshape(arms + 1, SLOT, STRIDE),
        sums=sums,
        totals=sums.reshape(arms, 2, STRIDE),
        words=_aligned(arms * STRIDE, u32),
        parameters=_aligned(arms * width * STRIDE, kind),
        gaps=_aligned(arms * STRIDE, np.float64),
        memory=_aligned(memory, kind).reshape(-1, STRIDE),
        saved=_aligned(memory, kind).reshape(-1, STRIDE),
        scalars=program.scalars.copy(),
        picked=_aligned(width * lanes, kind).reshape(width, lanes),
        uniform=_aligned(lanes, kind),
        reward=_aligned(lanes, kind),
        lost=_aligned(lanes, np.float64),
        keys=_aligned(lanes, u32),
        chosen=_aligned(lanes, u32),
        best=_aligned(lanes, kind),
        check=_aligned(lanes, kind),
        low=_aligned(lanes, u32),
        tied=np.zeros(arms + 1, u32),
        played=_aligned(arms * STRIDE if waits else 1, kind),
        changes=_aligned(2 * arms * STRIDE if waits else 1, kind),
        kept_arms=_aligned(max(window(waiting), 1) * lanes, u32),
        kept_rewards=_aligned(max(window(waiting), 1) * lanes, kind),
        heads=_aligned((horizon + 1) * lanes if random else 1, i32),
        following=_aligned(horizon * lanes if random else 1, i32),
        lacks=_aligned(lanes, u32),
        wanted=_aligned(lanes, u32),
    )


def remembers(program: Any) -> bool:
    """Whether a program has operations whose values are worth remembering."""
    return bool(np.isin(program.lane_code[:, 0], (BETA_QUANTILE, BETA_OPTIMIST)).any())


def window(waiting: Any) -> int:
    """Plays that are put aside at the same time, at the most."""
    if waiting.together or not len(waiting.known) + len(waiting.ends):
        return 0
    if len(waiting.ends):
        return len(waiting.ends) - 1
    return int((np.arange(len(waiting.known)) - waiting.known).max()) + 1


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
        word = u32(u32(b & mask) | u32(a & u32(~mask)))
        uniform[i] = reward_unit(word, keys[i], uniform)
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
        uniform[i] = reward_unit(word[i], keys[i], uniform)
    for p in range(width):
        for i in range(lanes):
            picked[p, i] = parameters[(np.int64(chosen[i]) * width + p) * STRIDE + i]


@part
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
        n = rows.dtype.type(behaviour.counts[0, arm])
        total = rows.dtype.type(behaviour.counts[1, arm])
        squares = rows.dtype.type(behaviour.counts[2, arm])
        r = total / n if n > f32(0) else n
        if not problems.binary:
            squares -= total * r
        s = deviation(n, squares, r, problems.binary) if n > f32(0) else n
        for i in range(lanes):
            rows[SLOT * arm * STRIDE + i] = n
            rows[(SLOT * arm + 1) * STRIDE + i] = r
            rows[(SLOT * arm + 2) * STRIDE + i] = s
            sums[2 * arm * STRIDE + i] = total
            sums[(2 * arm + 1) * STRIDE + i] = squares


@part
def _keep_index(rows, index, arms, chosen, lanes):
    """Move the index of the arm just played to that arm's row."""
    for i in range(lanes):
        rows[(index + np.int64(chosen[i])) * STRIDE + i] = rows[(index + arms) * STRIDE + i]


@part
def _keep_index_of_two(rows, chosen, lanes):
    for i in range(lanes):
        mask = u32(u32(0) - chosen[i])
        new = rows[(3 * SLOT + 2) * STRIDE + i]
        rows[3 * SLOT * STRIDE + i] = blend(new, rows[3 * SLOT * STRIDE + i], mask)
        rows[(3 * SLOT + 1) * STRIDE + i] = blend(rows[(3 * SLOT + 1) * STRIDE + i], new, mask)


@part
def _add_up(behaviour, work):
    """Regret so far: the plays of each arm times its gap."""
    lost, counts = work.lost, behaviour.counts
    lost[:] = 0.0
    for arm in range(counts.shape[1]):
        gap = work.gaps[arm * STRIDE : arm * STRIDE + lost.shape[0]]
        if behaviour.waiting.counted:
            n = work.rows[SLOT * arm * STRIDE : SLOT * arm * STRIDE + lost.shape[0]]
            for i in range(lost.shape[0]):
                lost[i] += np.rint(n[i] - counts[0, arm]) * gap[i]
        else:
            n = work.played[arm * STRIDE : arm * STRIDE + lost.shape[0]]
            for i in range(lost.shape[0]):
                lost[i] += n[i] * gap[i]


@part
def _recommend(rows, gaps, counts, lost):
    """Simple regret: the gap of the arm with the best mean; of several such arms, their average gap.

    An arm that was never played has no mean.
    """
    arms = counts.shape[1]
    for i in range(lost.shape[0]):
        best = rows.dtype.type(-np.inf)
        for arm in range(arms):
            if rows[SLOT * arm * STRIDE + i] > f32(0):
                best = max(best, rows[(SLOT * arm + 1) * STRIDE + i])
        total = 0.0
        count = 0
        for arm in range(arms):
            if (
                rows[SLOT * arm * STRIDE + i] > f32(0)
                and rows[(SLOT * arm + 1) * STRIDE + i] == best
            ):
                total += gaps[arm * STRIDE + i]
                count += 1
        lost[i] = total / count


@part
def _report(rows, index, arms, t, lanes, fault):
    """Write down the first state whose index is not finite: n, r, s, t, index."""
    limit = np.finfo(rows.dtype).max / f32(3)
    for i in range(lanes):
        for arm in range(arms):
            value = rows[(index + arm) * STRIDE + i]
            # Beyond this, the difference of two indices may overflow.
            if not abs(value) < limit:
                for v in range(3):
                    fault[v] = rows[(SLOT * arm + v) * STRIDE + i]
                fault[3] = t
                fault[4] = value
                return


@part
def _index(program, scalars, rows, arm, target, arms, lanes):
    """Let the machine compute the index of the arm in a slot, into an index row."""
    first = SLOT * (arms + 1)
    scratch = program.registers - SCRATCH
    run_lanes(
        program.lane_code,
        scalars,
        rows,
        SLOT * arm,
        first + arms + 1,
        first + target,
        STRIDE,
        lanes,
        scratch,
        rows[(first + arms + 1 + program.registers) * STRIDE :],
    )


@part
def _set_step(program, scalars, rows, arms, t, left, lanes, first):
    """Compute what depends on the moment alone; fill the register rows from `first` on with it."""
    scalars[0] = t
    scalars[1] = left
    scalars[2] = arms
    run_step(program.step_code, scalars)
    registers = SLOT * (arms + 1) + arms + 1
    spread_scalars(program.spread, scalars, rows, registers, STRIDE, lanes, first)


@part
def _bring_up(rows, index, arms, needed, lanes):
    """Where an arm has fewer plays than needed, the one with the fewest shall have the largest index."""
    for i in range(lanes):
        fewest = rows[i]
        for arm in range(1, arms):
            fewest = min(fewest, rows[SLOT * arm * STRIDE + i])
        if fewest < needed:
            for arm in range(arms):
                rows[(index + arm) * STRIDE + i] = -rows[SLOT * arm * STRIDE + i]


@part
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
                fewest = min(fewest, work.rows[SLOT * arm * STRIDE + i])
            if fewest >= needed:
                chosen[i] = below(noise_bits(keys[i], step, CHOICE_STREAM + 1), arms)


@part
def _play_needed(needed, step, arms, work, lanes):
    """Where an arm has fewer plays than needed, one with the fewest, ties at random."""
    for i in range(lanes):
        fewest = work.rows[i]
        for arm in range(1, arms):
            fewest = min(fewest, work.rows[SLOT * arm * STRIDE + i])
        if fewest < needed:
            ties = 0
            for arm in range(arms):
                ties += 1 if work.rows[SLOT * arm * STRIDE + i] == fewest else 0
            wanted = below(noise_bits(work.keys[i], step, TIE_STREAM), ties)
            for arm in range(arms):
                if work.rows[SLOT * arm * STRIDE + i] == fewest:
                    if wanted == 0:
                        work.chosen[i] = arm
                    wanted -= 1


@part
def _hide(rows, index, arms, lacks, lanes):
    """Lanes that do not choose have indices that are finite."""
    for arm in range(arms):
        for i in range(lanes):
            if lacks[i] != u32(0):
                rows[(index + arm) * STRIDE + i] = f32(0)


@spliced
def _choose_by_index(run, behaviour, program, work, moment, stale, lacking, fault):
    """The arm of each lane by its index; false if an index is not finite.

    moment: plays made in the episode, and with pseudo-plays; stale: whether indices that do not vary
    are to be computed again; lacking: lanes that do not choose (waiting.find_lacking)
    """
    step, t = moment
    arms = behaviour.counts.shape[1]
    index = SLOT * (arms + 1)
    lanes, rows = run.lanes, work.rows
    rate = behaviour.rate[step] if behaviour.rate.shape[0] > 0 else 0.0
    needed = behaviour.needed[step] if behaviour.needed.shape[0] > 0 else 0.0
    if rate >= 1.0 and needed <= 0.0:  # nothing is compared
        _play_at_random(rate, needed, step, arms, work, lanes)
        return True
    if program.varies:
        left = run.horizon - step
        _set_step(program, work.scalars, rows, arms, t, left, lanes, program.constants)
    if program.varies or stale:
        for arm in range(arms):
            _index(program, work.scalars, rows, arm, arm, arms, lanes)
    if needed > 0.0:
        _bring_up(rows, index, arms, needed, lanes)
    if lacking > 0:
        _hide(rows, index, arms, work.lacks, lanes)
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


@part
def _save(work, lanes):
    for row in range(work.memory.shape[0]):
        for i in range(lanes):
            work.saved[row, i] = work.memory[row, i]


@part
def _restore(work, lanes):
    """Lanes that did not choose remember what they did before."""
    for row in range(work.memory.shape[0]):
        for i in range(lanes):
            if work.lacks[i] != u32(0):
                work.memory[row, i] = work.saved[row, i]


@spliced
def _choose(run, behaviour, program, decide, work, moment, stale, lacking, fault):
    """The arm of each lane; DONE, or what is wrong."""
    step, t = moment
    arms = behaviour.counts.shape[1]
    if lacking == run.lanes:
        pass  # no lane chooses
    elif behaviour.by_index:
        if not _choose_by_index(run, behaviour, program, work, moment, stale, lacking, fault):
            return INDEX_NOT_FINITE
    else:
        if lacking > 0:
            _save(work, run.lanes)
        decide(
            step, t, run.horizon, work.stats, work.totals, work.memory, behaviour.parameters,
            work.keys, work.chosen,
        )  # fmt: skip
        if lacking > 0:
            _restore(work, run.lanes)
        if behaviour.needed.shape[0] > 0:
            _play_needed(behaviour.needed[step], step, arms, work, run.lanes)
    if lacking > 0:
        later.play_wanted(work, run.lanes)
    if behaviour.waiting.share > 0.0:
        later.keep_shares(behaviour.waiting.share, step, arms, work, run.lanes)
    if not behaviour.by_index and not all_below(work.chosen, u32(arms)):
        fault[3] = t
        return NO_SUCH_ARM
    return DONE


@spliced
def _count(problems, program, work, squares_follow, lanes):
    """Add the rewards of a step to what is known of the arms."""
    rows, sums, reward, chosen = work.rows, work.sums, work.reward, work.chosen
    arms = problems.parameters.shape[1]
    if arms == 2 and squares_follow:
        update_two_binary(rows, sums, reward, chosen, lanes)
        if not program.varies:
            for row in range(3):
                copy_of_two(rows, row, 2 * SLOT + row, chosen, lanes)
    elif arms == 2:
        if program.uses_s and not problems.binary:
            copy_of_two(rows, 1, 2 * SLOT + 2, chosen, lanes)
        update_two(rows, sums, reward, chosen, lanes)
        if program.uses_s or not program.varies:
            copy_of_two(rows, 0, 2 * SLOT, chosen, lanes)
            copy_of_two(rows, 1, 2 * SLOT + 1, chosen, lanes)
        if program.uses_s:
            deviate_two(rows, sums, reward, chosen, problems.binary, lanes)
    else:
        update(rows, sums, arms, reward, chosen, lanes)
        if program.uses_s:
            deviate(rows, sums, arms, reward, chosen, problems.binary, lanes)


@spliced
def _let_rewards_come(run, problems, behaviour, program, work, made, came):
    """Count the rewards that are known after `made` plays; how many have come in all.

    With random delays, whether any has come.
    """
    waiting, lanes = behaviour.waiting, run.lanes
    arms, binary = problems.parameters.shape[1], problems.binary
    before = came
    if waiting.ends.shape[0] > 0:
        came += 1 if later.collect(made, binary, waiting.counted, work, lanes) else 0
    else:
        size = work.kept_arms.shape[0] // lanes
        due = waiting.known[made] if made <= run.horizon else run.horizon
        while came < due:
            later.add_rewards(arms, binary, waiting.counted, work, came % size, lanes)
            came += 1
    if came > before:
        later.settle(arms, binary, program.uses_s, work, lanes)
    return came


@spliced
def _play_block(run, problems, behaviour, program, draw, decide, work, outcome, first):
    """Play the episodes first, first + 1, ... in step; their regret at the checkpoints."""
    # Long because it is the order of play, for all kinds of feedback; what each step does is elsewhere.
    arms, width = problems.parameters.shape[1], problems.parameters.shape[2]
    lanes, rows, chosen, waiting = run.lanes, work.rows, work.chosen, behaviour.waiting
    # Rewards must lie in the family's support, but for rounding.
    low = rows.dtype.type(problems.low - 1e-5 * abs(problems.low)) - f32(1e-6)
    high = rows.dtype.type(problems.high + 1e-5 * abs(problems.high)) + f32(1e-6)
    pseudo_plays = 0.0
    # With rewards of 0 and 1 the sum of squares is the reward sum, unless the start says otherwise.
    squares_follow = problems.binary and program.uses_s
    for arm in range(arms):
        squares_follow = squares_follow and behaviour.counts[1, arm] == behaviour.counts[2, arm]
        pseudo_plays += behaviour.counts[0, arm]
    kept = behaviour.by_index and not program.varies
    if behaviour.by_index:
        _set_step(program, work.scalars, rows, arms, pseudo_plays, run.horizon, lanes, 0)
    random = waiting.ends.shape[0] > 0
    waits = random or waiting.known.shape[0] > 0
    reads_w = not behaviour.by_index or later.reads_waiting(program.lane_code)
    # Differences from the mean are turned into sums with the number of plays that waited.
    reads_w = reads_w or not problems.binary
    # While nothing is random before the first rewards, all lanes play alike.
    alike = not random and waiting.share == 0.0
    spreads = behaviour.each_once and (waits or waiting.share > 0.0)
    if waits or spreads:
        later.begin(arms, work, lanes)
    stale = kept and (waits or not behaviour.each_once)
    came = 0
    checkpoint = 0
    for step in range(run.horizon):
        lacking = 0
        if spreads:
            stale = kept
            lacking, without = later.find_lacking(arms, waiting, work, 1 if alike else lanes)
            spreads = without > 0
            if alike and lacking > 0:
                work.lacks[:] = u32(1)
                work.wanted[:] = work.wanted[0]
                lacking = lanes
        if behaviour.each_once and step < arms and not (waits or waiting.share > 0.0):
            chosen[:] = u32(step)
        else:
            moment = (step, pseudo_plays + step)
            status = _choose(
                run, behaviour, program, decide, work, moment, stale, lacking, outcome.fault
            )
            if status != DONE:
                return status
            stale = spreads
        if arms == 2:
            _pick_two(width, work, lanes)
        else:
            _pick(width, work, lanes)
        draw(work.uniform, work.picked, work.reward)
        if not problems.binary and not all_between(work.reward, low, high):
            return REWARD_NOT_POSSIBLE
        if waiting.together:
            with_w = reads_w or spreads
            later.play_in_batch(arms, problems.binary, with_w, work, lanes)
            if waiting.known[step + 1] == step + 1:
                later.end_batch(arms, problems.binary, program.uses_s, with_w, work, lanes)
                stale = kept
            if kept and not stale:
                later.copy_played(arms, program.uses_s, with_w, work, lanes)
        elif waits:
            later.note_play(arms, work, waiting.counted, lanes)
            later.put_aside(work, step % (work.kept_arms.shape[0] // lanes), lanes)
            if random:
                later.send_out(step, run.horizon, waiting, work, lanes)
            before = came
            came = _let_rewards_come(run, problems, behaviour, program, work, step + 1, came)
            stale = stale or (kept and came > before)
            if kept and not stale:
                later.copy_played(arms, program.uses_s, True, work, lanes)
        else:
            _count(problems, program, work, squares_follow, lanes)
        if kept and not stale:
            _index(program, work.scalars, rows, arms, arms, arms, lanes)
            if arms == 2:
                _keep_index_of_two(rows, chosen, lanes)
            else:
                _keep_index(rows, SLOT * (arms + 1), arms, chosen, lanes)
        if step + 1 == outcome.checkpoints[checkpoint]:
            _add_up(behaviour, work)
            _write(work.lost, outcome.regret[checkpoint], first)
            checkpoint += 1
    if waits and not waiting.together:  # at the end all rewards are known
        _let_rewards_come(run, problems, behaviour, program, work, run.horizon + 1, came)
    return DONE


@part
def _write(lost, regret, first):
    for i in range(min(lost.shape[0], regret.shape[0] - first)):
        regret[first + i] = lost[i]


@part
def _finish(behaviour, work, outcome, first):
    """Simple regret, and how often each arm was played."""
    regret, plays, final = outcome.regret, outcome.plays, outcome.final
    _recommend(work.rows, work.gaps, behaviour.counts, work.lost)
    _write(work.lost, regret[regret.shape[0] - 1], first)
    for i in range(min(work.lost.shape[0], regret.shape[1] - first)):
        for arm in range(plays.shape[0]):
            n = np.rint(work.rows[SLOT * arm * STRIDE + i] - behaviour.counts[0, arm])
            plays[arm] += n
            if final.shape[2] > 0:
                final[0, arm, first + i] = n
                final[1, arm, first + i] = (
                    work.sums[2 * arm * STRIDE + i] - behaviour.counts[1, arm]
                )


@separate_jit
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


# With lanes of float64: under a name of its own, so that one sees if it is compiled.
simulate_precisely = jit_as("simulate_precisely", simulate)
