"""Decisions that are no index (see decisions.py): one `decide` function each (jit.DECIDE)."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .counts import TIE as FINE_TIE
from .jit import DECIDE, lane, part, pointer
from .random import ARM_STREAM, CHOICE_STREAM, TIE_STREAM, below, noise_bits, unit
from .rows import SLOT, STRIDE
from .special import ln32, normal_quantile

f32 = np.float32
u32 = np.uint32
N, R, S, W = 0, 1, 2, 3
# The statistics may be float32 sums; the values computed from them are float64. In float64 lanes both are,
# and ties those of exact evaluation.
TIE = 1e-9
NO_ARM = np.uint32(0xFFFFFFFF)
REJECTED = np.float32(np.inf)
# What a lane of UCB2 does (bit 0: it needs a new epoch), and how close its indices are, relative to
# their size, if only float64 can tell them apart.
GOES_ON, BEGINS, DOUBTFUL = np.uint32(0), np.uint32(1), np.uint32(3)
DOUBT = np.float32(1e-5)
# Where the levels of UCB2 begin in its parameters.
FIRST_LEVEL = 2


@part
def best_of(values, key, step, tie):
    """The position of the largest value, ties at random, and whether there was a tie."""
    best = values[0]
    first = 0
    for k in range(1, values.shape[0]):
        if values[k] > best:
            best = values[k]
            first = k
    slack = tie * abs(best)
    ties = 0
    for k in range(values.shape[0]):
        ties += 1 if values[k] >= best - slack else 0
    if ties == 1:
        # As mostly: nothing to draw.
        return first, False
    wanted = below(noise_bits(key, step, TIE_STREAM), ties)
    for k in range(values.shape[0]):
        if values[k] >= best - slack:
            if wanted == 0:
                return k, ties > 1
            wanted -= 1
    return 0, False


@part
def _ucb2_index(ln_t, stats, sums, memory, parameters, k, i):
    """The index of arm k in lane i, from the rewards that have come."""
    level = FIRST_LEVEL + 3 * np.int64(memory[k, i])
    bonus = (1.0 + parameters[0]) * (1.0 + ln_t - parameters[level + 1]) / (2.0 * parameters[level])
    had = np.float64(stats[k, N, i]) - np.float64(stats[k, W, i])
    mean = np.float64(sums[k, 0, i]) / had if had > 0.0 else np.float64(stats[k, R, i])
    return mean + np.sqrt(max(bonus, 0.0))


@part
def _coins(key, step, horizon, first, count):
    """How often arm 1 comes up in draws first, first + 1, ... of a tie at this step."""
    ones = u32(0)
    for draw in range(first, first + count):
        ones = u32(ones + u32(noise_bits(key, step + draw * horizon, TIE_STREAM) >> u32(31)))
    return np.int64(ones)


@part
def _break_tie_of_two(step, horizon, memory, parameters, key, i):
    """Two arms: the choices of a tie, many at a time, for there may be hundreds.

    Each draw uses up an empty epoch of the arm it names, and the first arm named that has none left
    is played. While both have some left, so many draws cannot be the last, and are counted only.
    """
    empty0 = np.int64(parameters[FIRST_LEVEL + 2 + 3 * np.int64(memory[0, i])])
    empty1 = np.int64(parameters[FIRST_LEVEL + 2 + 3 * np.int64(memory[1, i])])
    left0 = empty0 - np.int64(memory[2, i])
    left1 = empty1 - np.int64(memory[3, i])
    drawn = 0
    while left0 >= 0 and left1 >= 0:
        count = max(min(left0, left1), 1)
        ones = _coins(key, step, horizon, drawn, count)
        left0 -= count - ones
        left1 -= ones
        drawn += count
    # What the arm that is played went through starts again at zero with its next level.
    memory[2, i] = f32(empty0 - left0)
    memory[3, i] = f32(empty1 - left1)
    return u32(0) if left0 < 0 else u32(1)


@part
def _settle_doubt(step, ln_t, horizon, stats, sums, memory, parameters, keys, i):
    """Two arms: the choice of lane i in float64, as for more arms."""
    x = _ucb2_index(ln_t, stats, sums, memory, parameters, 0, i)
    y = _ucb2_index(ln_t, stats, sums, memory, parameters, 1, i)
    best = max(x, y)
    if min(x, y) >= best - TIE * abs(best):
        return _break_tie_of_two(step, horizon, memory, parameters, keys[i], i)
    return u32(1) if y > x else u32(0)


@part
def _compare_of_two(half_base, ln_et, rows, own, chosen, state):
    """Two arms: go on with epochs, and compare the indices in float32 for lanes without one.

    Exact enough: of `size`, the difference has errors below 2e-6 (logarithms below 32 have errors
    below 1e-6, and 1 + ln(t / tau) is at least 1), and beyond DOUBT there is no tie in float64.
    n stands for tau: as every arm began with one play, they are equal between epochs.
    """
    for i in range(chosen.shape[0]):
        n0 = rows[i]
        n1 = rows[SLOT * STRIDE + i]
        r0 = rows[STRIDE + i]
        r1 = rows[(SLOT + 1) * STRIDE + i]
        # One division for both arms: divisions and roots take most of the time here.
        scale = half_base / (n0 * n1)
        bonus0 = np.sqrt((ln_et - own[5 * STRIDE + i]) * n1 * scale)
        bonus1 = np.sqrt((ln_et - own[6 * STRIDE + i]) * n0 * scale)
        lead = (r0 + bonus0) - (r1 + bonus1)
        size = (abs(r0) + bonus0) + (abs(r1) + bonus1)
        decided = BEGINS if abs(lead) > DOUBT * size else DOUBTFUL
        left = own[4 * STRIDE + i]
        change = -f32(1) if left > f32(0) else f32(1)
        change = change if left != f32(0) else f32(0)
        favour = left if left != f32(0) else lead
        own[4 * STRIDE + i] = left + change
        state[i] = GOES_ON if left != f32(0) else decided
        chosen[i] = u32(1) if favour < f32(0) else u32(0)


@part
def _ucb2_of_two(step, ln_t, horizon, stats, sums, memory, parameters, keys, chosen):
    """Two arms: a vectorised pass over all lanes, then only those that begin an epoch.

    Memory rows: levels and empty epochs as below; plays left of the epoch, below zero if it is arm
    1 that is played; ln tau of each arm; work rows.
    """
    lanes = chosen.shape[0]
    own = memory.reshape(-1)
    bits = own.view(u32)
    state = bits[7 * STRIDE : 7 * STRIDE + lanes]
    begins = bits[8 * STRIDE : 8 * STRIDE + lanes]
    half_base = f32(0.5 * (1.0 + parameters[0]))
    _compare_of_two(half_base, f32(1.0 + ln_t), stats.reshape(-1), own, chosen, state)
    # A list instead of a branch, which would often be mispredicted.
    count = u32(0)
    for i in range(lanes):
        begins[count] = u32(i)
        count = u32(count + u32(state[i] & u32(1)))
    for j in range(count):
        i = np.int64(begins[j])
        if state[i] == DOUBTFUL:
            chosen[i] = _settle_doubt(step, ln_t, horizon, stats, sums, memory, parameters, keys, i)
        arm = np.int64(chosen[i])
        at = arm * STRIDE + i
        level = FIRST_LEVEL + 3 * np.int64(u32(np.int32(own[at])))
        own[at] += f32(1)
        own[2 * STRIDE + at] = f32(0)
        left = f32(parameters[level + 3] - parameters[level] - 1.0)
        # The sign by a product: a condition would become a branch.
        own[4 * STRIDE + i] = left * f32(1 - 2 * arm)
        own[5 * STRIDE + at] = f32(parameters[level + 4])


@pointer(DECIDE)
def ucb2(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """UCB2 (Auer et al. 2002): the arm of the best index is played for an epoch of tau(r+1) - tau(r).

    Epochs with the same tau make a level: all but the last have length zero. Parameters: alpha, whether
    n is tau between epochs (it is if each arm was played once before, and nothing came between), then
    for each level tau, ln tau and how many of its epochs have length zero. Memory rows: the
    level of each arm, how many empty epochs of that level it went through, the current arm, how
    often it is still to be played. An empty epoch is skipped at once and the choice made again:
    without a tie it falls on the same arm, for tau and so the index is the same all through a level.
    """
    arms = sums.shape[0]
    ln_t = np.log(t)
    if arms == 2 and parameters[1] > 0.0:
        _ucb2_of_two(step, ln_t, horizon, stats, sums, memory, parameters, keys, chosen)
        return
    values = np.empty(arms)
    for i in range(chosen.shape[0]):
        if memory[2 * arms + 1, i] > f32(0):
            memory[2 * arms + 1, i] -= f32(1)
            chosen[i] = u32(memory[2 * arms, i])
            continue
        for k in range(arms):
            values[k] = _ucb2_index(ln_t, stats, sums, memory, parameters, k, i)
        arm, tied = best_of(values, keys[i], step, TIE)
        attempt = step
        while (
            tied
            and memory[arms + arm, i] < parameters[FIRST_LEVEL + 2 + 3 * np.int64(memory[arm, i])]
        ):
            memory[arms + arm, i] += f32(1)
            attempt += horizon
            arm, _ = best_of(values, keys[i], attempt, TIE)
        level = FIRST_LEVEL + 3 * np.int64(memory[arm, i])
        memory[arm, i] += f32(1)
        memory[arms + arm, i] = f32(0)
        memory[2 * arms, i] = f32(arm)
        memory[2 * arms + 1, i] = parameters[level + 3] - parameters[level] - 1.0
        chosen[i] = u32(arm)


@lane
def _try_gamma(shape, key, step, stream):
    """The logarithm of a Gamma variate of shape >= 1 by one trial of Marsaglia and Tsang (2000)."""
    d = shape - f32(1 / 3)
    z = normal_quantile(unit(noise_bits(key, step, stream)))
    root = f32(1) + z / np.sqrt(f32(9) * d)
    v = root * root * root
    safe = max(v, f32(1e-30))
    ln_u = ln32(unit(noise_bits(key, step, stream + 1)))
    ln_v = ln32(safe)
    taken = ln_u < f32(0.5) * z * z + d - d * safe + d * ln_v
    value = ln32(d) + ln_v if taken else REJECTED
    return value if root > f32(0) else REJECTED


@lane
def _at_least_one(shape):
    """Gamma(a) is Gamma(a + 1) times U^(1/a), which serves shapes below 1."""
    return shape + (f32(1) if shape < f32(1) else f32(0))


@part
def _gamma_row(shape, keys, step, stream, out):
    """The logarithm of a Gamma variate per lane: one vectorised trial, then the lanes it rejected.

    Logarithms, because variates of small shape are smaller than any float.
    """
    again = u32(0)
    small = u32(0)
    for i in range(out.shape[0]):
        value = _try_gamma(_at_least_one(shape[i]), keys[i], step, stream)
        out[i] = value
        again = u32(again | (u32(1) if value == REJECTED else u32(0)))
        small = u32(small | (u32(1) if shape[i] < f32(1) else u32(0)))
    if again != u32(0):
        for i in range(out.shape[0]):
            attempt = stream
            while out[i] == REJECTED:
                attempt += 1 << 16
                out[i] = _try_gamma(_at_least_one(shape[i]), keys[i], step, attempt)
    if small != u32(0):
        for i in range(out.shape[0]):
            if shape[i] < f32(1):
                u = unit(noise_bits(keys[i], step, stream + 2))
                out[i] += ln32(u) / shape[i]


@part
def _prefer(draw, best, chosen, arm):
    for i in range(chosen.shape[0]):
        mask = u32(u32(0) - (u32(1) if draw[i] > best[i] else u32(0)))
        chosen[i] = u32(u32(chosen[i] & u32(~mask)) | u32(arm & mask))
        best[i] = max(best[i], draw[i])


@pointer(DECIDE)
def thompson_beta(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """Thompson sampling for rewards in [0, 1]: the largest draw from Beta(a + sum, b + n - w - sum).

    A Beta variate is X / (X + Y) with Gamma variates X and Y; ln X - ln Y orders them alike.
    parameters: a and b of each arm.
    """
    lanes = chosen.shape[0]
    shape = np.empty(lanes, f32)
    wins = np.empty(lanes, f32)
    losses = np.empty(lanes, f32)
    best = np.full(lanes, f32(-np.inf))
    for k in range(sums.shape[0]):
        a = f32(parameters[2 * k])
        b = f32(parameters[2 * k + 1])
        total = sums[k, 0, :lanes]
        n = stats[k, N, :lanes]
        w = stats[k, W, :lanes]
        for i in range(lanes):
            shape[i] = a + total[i]
        _gamma_row(shape, keys, step, ARM_STREAM + 8 * k, wins)
        for i in range(lanes):
            shape[i] = max(b + (n[i] - w[i]) - total[i], f32(1e-6))
        _gamma_row(shape, keys, step, ARM_STREAM + 8 * k + 4, losses)
        for i in range(lanes):
            wins[i] -= losses[i]
        _prefer(wins, best, chosen, u32(k))


@pointer(DECIDE)
def thompson_gaussian(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """Thompson sampling for other rewards: the largest draw from the normal posteriors.

    parameters: mean, plays and noise of what is believed (see decisions.NormalBelief).
    """
    lanes = chosen.shape[0]
    kind = stats.dtype.type
    mean, plays, noise = kind(parameters[0]), kind(parameters[1]), kind(parameters[2])
    draw = np.empty(lanes, stats.dtype)
    best = np.full(lanes, kind(-np.inf))
    for k in range(sums.shape[0]):
        n = stats[k, N, :lanes]
        w = stats[k, W, :lanes]
        r = stats[k, R, :lanes]
        for i in range(lanes):
            z = normal_quantile(unit(noise_bits(keys[i], step, ARM_STREAM + k)))
            both = plays + (n[i] - w[i])
            weight = plays / both if plays > 0 else plays
            draw[i] = r[i] + weight * (mean - r[i]) + noise * z / np.sqrt(both)
        _prefer(draw, best, chosen, u32(k))


@pointer(DECIDE)
def by_cuts(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """Two arms, by a table: arm 0 while the successes of arm 1 are below a cut, ties below another.

    parameters[0] is the probability with which any arm is played instead; parameters[1 + entry] holds
    both cuts, the second one times 2^16, for each number of plays made and each pair (plays, successes)
    of arm 0.
    """
    rate = parameters[0]
    slice = 1 + step * (step + 1) * (step + 2) // 6
    for i in range(chosen.shape[0]):
        n = np.int64(stats[0, N, i])
        entry = slice + n * (n + 1) // 2 + np.int64(sums[0, 0, i])
        cuts = np.int64(parameters[entry])
        wins = np.int64(sums[1, 0, i])
        if rate > 0.0 and unit(noise_bits(keys[i], step, CHOICE_STREAM)) < rate:
            chosen[i] = below(noise_bits(keys[i], step, CHOICE_STREAM + 1), 2)
        elif wins < cuts & 0xFFFF:
            chosen[i] = u32(0)
        elif wins < cuts >> 16:
            chosen[i] = below(noise_bits(keys[i], step, TIE_STREAM), 2)
        else:
            chosen[i] = u32(1)


@lane
def _choose_2(n):
    return n * (n - 1) // 2


@lane
def _choose_3(n):
    return n * (n - 1) * (n - 2) // 6


@lane
def _choose_4(n):
    return _choose_3(n) * (n - 3) // 4


@lane
def _choose_5(n):
    return _choose_4(n) * (n - 4) // 5


@pointer(DECIDE)
def by_states(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """Three arms, by a table of the best ones in each state (decisions.py: ByStates), ties at random.

    parameters: 16 entries per number, 3 bits each
    """
    m = np.int64(step)
    begin = _choose_5(m + 5) * m // 6 + _choose_5(m + 5)
    for i in range(chosen.shape[0]):
        n1, n2 = np.int64(stats[0, N, i]), np.int64(stats[1, N, i])
        later = m - n1
        rest = later - n2
        entry = begin - _choose_5(later + 5) - n1 * _choose_4(later + 4)
        entry += (n1 + 1) * (_choose_3(later + 3) - _choose_3(rest + 3) - n2 * _choose_2(rest + 2))
        wins = np.int64(sums[0, 0, i]) * (n2 + 1) + np.int64(sums[1, 0, i])
        entry += wins * (rest + 1) + np.int64(sums[2, 0, i])
        bits = np.int64(parameters[entry // 16]) >> (3 * (entry % 16)) & 7
        ties = (bits & 1) + (bits >> 1 & 1) + (bits >> 2)
        wanted = np.int64(below(noise_bits(keys[i], step, TIE_STREAM), ties)) if ties > 1 else 0
        for k in range(3):
            if bits >> k & 1:
                if wanted == 0:
                    chosen[i] = u32(k)
                    break
                wanted -= 1


@pointer(DECIDE)
def by_table(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """The largest index from a table by plays made and pair (plays, reward sum), ties at random.

    parameters: for each arm where its table begins and the Beta distribution (a, b) of its mean; for
    N = 0, ..., horizon where in a table those arms begin that can have N plays in all; then the tables.
    Between whole reward sums the index is interpolated. A play that waits counts as if it had paid the
    posterior mean.
    """
    arms = sums.shape[0]
    levels = parameters[3 * arms + horizon - step :]
    tie = TIE if stats.itemsize == 4 else FINE_TIE
    values = np.empty(arms)
    for i in range(chosen.shape[0]):
        for k in range(arms):
            n = np.int64(stats[k, N, i])
            w = np.float64(stats[k, W, i])
            total = np.float64(sums[k, 0, i])
            if w > 0.0:
                a = parameters[3 * k + 1]
                total += w * (a + total) / (a + parameters[3 * k + 2] + n - w)
            total = min(max(total, 0.0), np.float64(n))
            whole = np.int64(total)
            # Whole numbers, as float64 too.
            entry = np.int64(parameters[3 * k] + levels[n]) + n * (n + 1) // 2 + whole
            part = total - whole
            values[k] = parameters[entry]
            if part > 0.0:
                values[k] += part * (parameters[entry + 1] - parameters[entry])
        chosen[i] = best_of(values, keys[i], step, tie)[0]


@pointer(DECIDE)
def by_bonus(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """The largest posterior mean and bonus of Gaussian arms, ties at random.

    parameters: the mean of the arms' means, their precision and that of a reward; for N = 0, ...,
    horizon where the bonuses of arms begin that can have N plays in all; then the bonuses by plays. A
    play that waits counts as if it had paid the posterior mean, which it leaves as it is.
    """
    arms = sums.shape[0]
    mean, prior, reward = parameters[0], parameters[1], parameters[2]
    tie = TIE if stats.itemsize == 4 else FINE_TIE
    values = np.empty(arms)
    for i in range(chosen.shape[0]):
        for k in range(arms):
            n = np.int64(stats[k, N, i])
            begin = np.int64(parameters[3 + n + horizon - step])
            had = np.float64(n) - np.float64(stats[k, W, i])
            values[k] = (mean * prior + sums[k, 0, i] * reward) / (prior + had * reward)
            values[k] += parameters[begin + n]
        chosen[i] = best_of(values, keys[i], step, tie)[0]


def compile_choice(choose: Any, kind: Any = f32) -> Any:
    """A decide function for a person's own choose(n, r, s, t, h, u), compiled once per process."""
    compiled = numba.njit(choose, error_model="numpy")

    def decide(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
        arms = sums.shape[0]
        n = np.empty(arms)
        r = np.empty(arms)
        s = np.empty(arms)
        for i in range(chosen.shape[0]):
            for k in range(arms):
                n[k] = stats[k, N, i]
                r[k] = stats[k, R, i]
                s[k] = stats[k, S, i]
            u = np.float64(unit(noise_bits(keys[i], step, CHOICE_STREAM)))
            arm = np.int64(compiled(n, r, s, t, np.float64(horizon - step), u))
            chosen[i] = u32(arm) if 0 <= arm < arms else NO_ARM

    return pointer(DECIDE, cache=False)(decide)(kind)
