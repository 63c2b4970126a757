"""How policies choose that are not an index of (r, s, n, t): one `decide` function each (see jit.DECIDE)."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .jit import DECIDE, jit, lane, pointer
from .random import ARM_STREAM, CHOICE_STREAM, TIE_STREAM, below, noise_bits, unit
from .special import ln32, normal_quantile

f32 = np.float32
u32 = np.uint32
N, R, S = 0, 1, 2
# The statistics are float32 sums, the values computed from them float64.
TIE = 1e-9
NO_ARM = np.uint32(0xFFFFFFFF)
REJECTED = np.float32(np.inf)


@pointer(DECIDE)
def uniform(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """Any arm, with equal probability."""
    for i in range(chosen.shape[0]):
        chosen[i] = below(noise_bits(keys[i], step, CHOICE_STREAM), sums.shape[0])


@jit
def _best(values, key, step):
    """The position of the largest value, ties at random, and whether there was a tie."""
    best = values[0]
    for k in range(1, values.shape[0]):
        best = max(best, values[k])
    slack = TIE * abs(best)
    ties = 0
    for k in range(values.shape[0]):
        ties += 1 if values[k] >= best - slack else 0
    wanted = below(noise_bits(key, step, TIE_STREAM), ties)
    for k in range(values.shape[0]):
        if values[k] >= best - slack:
            if wanted == 0:
                return k, ties > 1
            wanted -= 1
    return 0, False


@pointer(DECIDE)
def epsilon_greedy(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """eps_n-greedy (Auer et al. 2002): any arm with probability min(1, c K / (d^2 (t + 1)))."""
    arms = sums.shape[0]
    rate = min(1.0, parameters[0] * arms / (parameters[1] ** 2 * (t + 1.0)))
    means = np.empty(arms)
    for i in range(chosen.shape[0]):
        if unit(noise_bits(keys[i], step, CHOICE_STREAM)) < rate:
            chosen[i] = below(noise_bits(keys[i], step, CHOICE_STREAM + 1), arms)
        else:
            for k in range(arms):
                means[k] = np.float64(sums[k, 0, i]) / np.float64(stats[k, N, i])
            chosen[i] = _best(means, keys[i], step)[0]


@pointer(DECIDE)
def ucb1_normal(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """UCB1-Normal (Auer et al. 2002): an arm with fewer than ceil(8 ln t) plays, else the index."""
    arms = sums.shape[0]
    needed = np.ceil(8.0 * np.log(t))
    values = np.empty(arms)
    for i in range(chosen.shape[0]):
        behind = False
        for k in range(arms):
            if stats[k, N, i] < needed:
                behind = True
        for k in range(arms):
            n = np.float64(stats[k, N, i])
            if behind:
                values[k] = -n
            else:
                s = np.float64(stats[k, S, i])
                spread = 16.0 * n * s * s / (n - 1.0) * np.log(t - 1.0) / n
                values[k] = np.float64(sums[k, 0, i]) / n + np.sqrt(spread)
        chosen[i] = _best(values, keys[i], step)[0]


@pointer(DECIDE)
def ucb2(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """UCB2 (Auer et al. 2002): the arm of the best index is played for an epoch of tau(r+1) - tau(r).

    Epochs with the same tau make a level: all but the last have length zero. Parameters: alpha,
    then for each level tau, ln tau and how many of its epochs have length zero. Memory rows: the
    level of each arm, how many empty epochs of that level it went through, the current arm, how
    often it is still to be played. An empty epoch is skipped at once and the choice made again:
    without a tie it falls on the same arm, for tau and so the index is the same all through a level.
    """
    arms = sums.shape[0]
    base = 1.0 + parameters[0]
    ln_t = np.log(t)
    values = np.empty(arms)
    for i in range(chosen.shape[0]):
        if memory[2 * arms + 1, i] > f32(0):
            memory[2 * arms + 1, i] -= f32(1)
            chosen[i] = u32(memory[2 * arms, i])
            continue
        for k in range(arms):
            level = 1 + 3 * np.int64(memory[k, i])
            bonus = base * (1.0 + ln_t - parameters[level + 1]) / (2.0 * parameters[level])
            values[k] = np.float64(sums[k, 0, i]) / np.float64(stats[k, N, i]) + np.sqrt(bonus)
        arm, tied = _best(values, keys[i], step)
        attempt = step
        while tied and memory[arms + arm, i] < parameters[3 + 3 * np.int64(memory[arm, i])]:
            memory[arms + arm, i] += f32(1)
            attempt += horizon
            arm, _ = _best(values, keys[i], attempt)
        level = 1 + 3 * np.int64(memory[arm, i])
        memory[arm, i] += f32(1)
        memory[arms + arm, i] = f32(0)
        memory[2 * arms, i] = f32(arm)
        memory[2 * arms + 1, i] = f32(parameters[level + 3] - parameters[level] - 1.0)
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


@jit
def _gamma_row(shape, keys, step, stream, out):
    """The logarithm of a Gamma variate a lane: one vectorised trial, then the lanes it rejected.

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


@jit
def _prefer(draw, best, chosen, arm):
    for i in range(chosen.shape[0]):
        mask = u32(u32(0) - (u32(1) if draw[i] > best[i] else u32(0)))
        chosen[i] = u32(u32(chosen[i] & u32(~mask)) | u32(arm & mask))
        best[i] = max(best[i], draw[i])


@pointer(DECIDE)
def thompson_beta(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """Thompson sampling for rewards in [0, 1]: the largest draw from Beta(a + sum, b + n - sum).

    A Beta variate is X / (X + Y) with Gamma variates X and Y; ln X - ln Y orders them alike.
    """
    lanes = chosen.shape[0]
    shape = np.empty(lanes, f32)
    wins = np.empty(lanes, f32)
    losses = np.empty(lanes, f32)
    best = np.full(lanes, f32(-np.inf))
    a = f32(parameters[0])
    b = f32(parameters[1])
    for k in range(sums.shape[0]):
        total = sums[k, 0, :lanes]
        n = stats[k, N, :lanes]
        for i in range(lanes):
            shape[i] = a + total[i]
        _gamma_row(shape, keys, step, ARM_STREAM + 8 * k, wins)
        for i in range(lanes):
            shape[i] = max(b + n[i] - total[i], f32(1e-6))
        _gamma_row(shape, keys, step, ARM_STREAM + 8 * k + 4, losses)
        for i in range(lanes):
            wins[i] -= losses[i]
        _prefer(wins, best, chosen, u32(k))


@pointer(DECIDE)
def thompson_gaussian(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """Thompson sampling for other rewards: the largest draw from N(mean, sigma^2 / n)."""
    lanes = chosen.shape[0]
    sigma = f32(parameters[0])
    draw = np.empty(lanes, f32)
    best = np.full(lanes, f32(-np.inf))
    for k in range(sums.shape[0]):
        n = stats[k, N, :lanes]
        r = stats[k, R, :lanes]
        for i in range(lanes):
            z = normal_quantile(unit(noise_bits(keys[i], step, ARM_STREAM + k)))
            draw[i] = r[i] + sigma * z / np.sqrt(n[i])
        _prefer(draw, best, chosen, u32(k))


@pointer(DECIDE)
def by_cuts(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """Two arms, by a table: arm 0 while the successes of arm 1 are below a cut, ties below another.

    parameters[entry] holds both cuts, the second one times 2^16, for each number of plays made and
    each pair (plays, successes) of arm 0.
    """
    slice = step * (step + 1) * (step + 2) // 6
    for i in range(chosen.shape[0]):
        n = np.int64(stats[0, N, i])
        entry = slice + n * (n + 1) // 2 + np.int64(sums[0, 0, i])
        cuts = np.int64(parameters[entry])
        wins = np.int64(sums[1, 0, i])
        if wins < cuts & 0xFFFF:
            chosen[i] = u32(0)
        elif wins < cuts >> 16:
            chosen[i] = below(noise_bits(keys[i], step, TIE_STREAM), 2)
        else:
            chosen[i] = u32(1)


@pointer(DECIDE)
def by_table(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """The largest index from a table by plays made and pair (plays, reward sum), ties at random.

    parameters: for each arm where its table begins, then the tables. Between whole reward sums the
    index is interpolated.
    """
    arms = sums.shape[0]
    slice = step * (step + 1) * (step + 2) // 6
    values = np.empty(arms)
    for i in range(chosen.shape[0]):
        for k in range(arms):
            n = np.int64(stats[k, N, i])
            total = min(max(np.float64(sums[k, 0, i]), 0.0), np.float64(n))
            whole = np.int64(total)
            entry = np.int64(parameters[k]) + slice + n * (n + 1) // 2 + whole
            part = total - whole
            values[k] = parameters[entry]
            if part > 0.0:
                values[k] += part * (parameters[entry + 1] - parameters[entry])
        chosen[i] = _best(values, keys[i], step)[0]


def compile_choice(choose: Any) -> Any:
    """A decide function for a person's own choose(n, r, s, t, h, u), compiled once a process."""
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

    return pointer(DECIDE, cache=False)(decide)()
