"""Decisions that are no index (see decisions.py): one `decide` function each (jit.DECIDE)."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .. import numerics
from .counts import TIE as FINE_TIE
from .jit import DECIDE, lane, part, pointer
from .random import ARM_STREAM, CHOICE_STREAM, TIE_STREAM, below, noise_bits, unit
from .rows import SLOT, STRIDE, blend
from .special import _ln_positive, ln32

f32 = np.float32
i32 = np.int32
u32 = np.uint32
N, R, S, W = 0, 1, 2, 3
# The statistics may be float32 sums; the values computed from them are float64. In float64 lanes both are,
# and ties those of exact evaluation.
TIE = 1e-9
NO_ARM = np.uint32(0xFFFFFFFF)
# What a lane of UCB2 does (bit 0: it needs a new epoch), and how close its indices are, relative to
# their size, if only float64 can tell them apart.
GOES_ON, BEGINS, DOUBTFUL = np.uint32(0), np.uint32(1), np.uint32(3)
DOUBT = np.float32(1e-5)
# Where Dixon's cm first is 0 (see numerics.py).
PERIOD = np.float32(1.7666387502854499573)
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
def _cube_root(x):
    """The cube root of a normal, positive float32: Halley's method, from a third of the exponent."""
    third = i32(f32(i32(np.float32(x).view(u32))) * f32(1 / 3))
    y = u32(i32(third + i32(709958130))).view(f32)
    for _ in range(2):
        cube = y * y * y
        y *= (cube + x + x) / (cube + cube + x)
    return y


@lane
def _mode(a, b):
    """For Beta(a, b): A, B and, at the mode of y, s, c, y and the spread of the normal variate."""
    A, B = f32(3) * a - f32(1), f32(3) * b - f32(1)
    n = A + B
    p = min(A, B) / n
    s = _cube_root(p)
    # (1 - p)^(1/3) and y / s, for p up to 1/2.
    c = f32(-0.08459412) + p * (f32(0.07887595) - p * f32(0.14010183))
    c = f32(0.99999987) + p * (
        f32(-0.33330882) + p * (f32(-0.11185752) + p * (f32(-0.05335222) + p * c))
    )
    y = f32(0.01569899) + p * (f32(0.09967933) + p * (f32(-0.12477777) + p * f32(0.14490926)))
    y = s * (f32(1) + p * (f32(0.16667097) + p * (f32(0.07919192) + p * (f32(0.05200469) + p * y))))
    spread = f32(1) / np.sqrt(f32(3) * n * s * c)
    swapped = A > B
    y = PERIOD - y if swapped else y
    return A, B, (c if swapped else s), (s if swapped else c), y, spread


# Rows that Thompson sampling works in: a, b and the four of a mode (`_find_modes`), the draw, whether it is open, and
# the list of lanes in which it is; then the four of each arm's mode.
_B, _MODE, _KEY, _Y, _DRAW, _OPEN, _LISTED, _ARMS = (
    row * STRIDE for row in (1, 2, 4, 5, 6, 7, 8, 9)
)


@lane
def _shapes(parameters, stats, sums, k, i):
    """The posterior Beta(a, b) of arm k in lane i."""
    total = sums[k, 0, i]
    rest = (stats[k, N, i] - stats[k, W, i]) - total
    # Rounding may leave a little less than nothing.
    return parameters[2 * k + 1] + total, parameters[2 * k + 2] + max(rest, f32(0))


@part
def _find_modes(own, lanes):
    """What draws need to know of a and b: y and spread of the mode, and how skewed both sides are."""
    for i in range(lanes):
        A, B, _, _, y, spread = _mode(own[i], own[_B + i])
        own[_MODE + i] = y
        own[_MODE + STRIDE + i] = spread
        own[_MODE + 2 * STRIDE + i] = f32(1) / np.sqrt(f32(3) * A)
        own[_MODE + 3 * STRIDE + i] = f32(1) / np.sqrt(f32(3) * B)


@part
def _follow_two(parameters, rows, sums, chosen, own):
    """The mode of the arm that each lane has played, of two arms: by masks, where `chosen` would gather."""
    for i in range(chosen.shape[0]):
        second = u32(u32(0) - chosen[i])
        total = blend(sums[i], sums[2 * STRIDE + i], second)
        n = blend(rows[i], rows[SLOT * STRIDE + i], second)
        w = blend(rows[W * STRIDE + i], rows[(SLOT + W) * STRIDE + i], second)
        a = (parameters[3] if chosen[i] else parameters[1]) + total
        b = (parameters[4] if chosen[i] else parameters[2]) + max((n - w) - total, f32(0))
        A, B, _, _, y, spread = _mode(f32(a), f32(b))
        e, f = f32(1) / np.sqrt(f32(3) * A), f32(1) / np.sqrt(f32(3) * B)
        y0, spread0 = own[_ARMS + i], own[_ARMS + STRIDE + i]
        e0, f0 = own[_ARMS + 2 * STRIDE + i], own[_ARMS + 3 * STRIDE + i]
        y1, spread1 = own[_ARMS + 4 * STRIDE + i], own[_ARMS + 5 * STRIDE + i]
        e1, f1 = own[_ARMS + 6 * STRIDE + i], own[_ARMS + 7 * STRIDE + i]
        own[_ARMS + i] = blend(y, y0, second)
        own[_ARMS + STRIDE + i] = blend(spread, spread0, second)
        own[_ARMS + 2 * STRIDE + i] = blend(e, e0, second)
        own[_ARMS + 3 * STRIDE + i] = blend(f, f0, second)
        own[_ARMS + 4 * STRIDE + i] = blend(y1, y, second)
        own[_ARMS + 5 * STRIDE + i] = blend(spread1, spread, second)
        own[_ARMS + 6 * STRIDE + i] = blend(e1, e, second)
        own[_ARMS + 7 * STRIDE + i] = blend(f1, f, second)


@lane
def _normal(word):
    """The standard normal variate of a word's upper 23 bits: special.normal_quantile with two divisions."""
    p = unit(word)
    q = p - f32(0.5)
    c = f32(0.180625) - q * q
    above = f32(159.29113202) + c * f32(59.109374720)
    above = q * (f32(3.3871327179) + c * (f32(50.434271938) + c * above))
    below = f32(1) + c * (f32(17.895169469) + c * (f32(78.757757664) + c * f32(67.187563600)))
    d = np.sqrt(-_ln_positive(min(p, f32(1) - p))) - f32(1.6)
    outer = f32(2.7568153900) + d * (f32(1.3067284816) + d * f32(0.17023821103))
    outer = f32(1.4234372777) + d * outer
    outer = -outer if q < f32(0) else outer
    beyond = f32(1) + d * (f32(0.73700164250) + d * f32(0.12021132975))
    central = abs(q) <= f32(0.425)
    return (above if central else outer) / (below if central else beyond)


@part
def _propose(arm, keys, step, stream, own):
    """A draw for each lane, and whether it is open if it counts.

    The logarithm of the ratio of the densities is at least -(e^2 + f^2) z^4 / (12 (1 - 0.88 v)) for v up to 0.92,
    where e and f are the skews and v is |z| times that of z's side.
    """
    bits = own.view(u32)
    for i in range(keys.shape[0]):
        word = noise_bits(keys[i], step, stream)
        z = _normal(word)
        own[_DRAW + i] = arm[i] + arm[STRIDE + i] * z
        e, f = arm[2 * STRIDE + i], arm[3 * STRIDE + i]
        v = abs(z) * (e if z < f32(0) else f)
        loss = (e * e + f * f) * f32(1 / 12) * (z * z) * (z * z)
        left = f32(i32(u32(511) - u32(word & u32(511)))) * f32(1 / 512) * (f32(1) - f32(0.88) * v)
        left = left if v < f32(0.92) else f32(0)
        bits[_OPEN + i] = u32(0) if left > loss else u32(1)


@part
def _list(own, lanes):
    """The lanes that are open, one after the other, and how many."""
    bits = own.view(u32)
    count = u32(0)
    for i in range(lanes):
        bits[_LISTED + np.int64(count)] = u32(i)
        count = u32(count + bits[_OPEN + i])
    return np.int64(count)


@lane
def _rest_of_ln(x):
    """ln(1 + x) - x, to its own precision."""
    m = max(f32(1) + x, f32(1e-30))
    shifted = u32(np.float32(m).view(u32) + u32(0x3F800000 - 0x3F3504F3))
    exponent = f32(i32(i32(u32(shifted >> u32(23))) - i32(127)))
    mantissa = u32(u32(shifted & u32(0x007FFFFF)) + u32(0x3F3504F3)).view(f32)
    v = x if exponent == f32(0) else mantissa - f32(1)
    r = v / (f32(2) + v)
    w = r * r
    series = f32(2 / 3) + w * (f32(2 / 5) + w * (f32(2 / 7) + w * (f32(2 / 9) + w * f32(2 / 11))))
    return (exponent * f32(0.6931471805599453) + (v - x)) + (r * w * series - v * r)


@lane
def _try_beta(a, b, key, step, stream):
    """numerics.beta_draw in float32: y of one trial, and whether it is rejected."""
    A, B, s, c, y, spread = _mode(a, b)
    word = noise_bits(key, step, stream)
    z = _normal(word)
    d = spread * z
    half = min(max(f32(0.5) * d, f32(-0.85)), f32(0.85))
    # sine: sm; less: 1 - cm.
    w = half * half * half
    sine = f32(13 / 2268) - w * f32(23 / 22113)
    sine = half * (f32(1) - w * (f32(1 / 6) - w * (f32(2 / 63) - w * sine)))
    less = f32(23 / 2268) - w * (f32(25 / 13608) - w * f32(619 / 1857492))
    less = w * (f32(1 / 3) - w * (f32(1 / 18) - w * less))
    cosine = f32(1) - less
    w = sine * sine * sine
    below = f32(1) / (cosine * (f32(1) + w))
    less = (w * (f32(1) + cosine) + cosine * less * (f32(2) - less)) * below
    sine *= (f32(1) + cosine * cosine * cosine) * below
    over = c * c / s * sine * (f32(1) - less)
    under = -less * (f32(2) - less) - s * s / c * sine
    share = s * c * sine * sine - less
    # What is linear in these three, added up.
    cube = c * c * c
    rest = less * (f32(1) - s * s * c * c * sine - cube * (f32(2) - less)) - s * c * sine * sine
    ratio = (A + B) * (rest - _rest_of_ln(share)) + f32(0.5) * z * z
    ratio += A * _rest_of_ln(over) + B * _rest_of_ln(under)
    u = (f32(i32(u32(word & u32(511)))) + unit(noise_bits(key, step, stream + 1))) * f32(1 / 512)
    inside = over > f32(-1) and under > f32(-1) and abs(d) < f32(1.7)
    return y + d, (u32(0) if inside and ln32(u) < ratio else u32(1))


@part
def _settle(count, parameters, stats, sums, k, keys, step, own):
    """Draw again in the first `count` lanes of the list, until all have a draw that counts."""
    bits = own.view(u32)
    stream = ARM_STREAM + 8 * k
    while count > 0:
        for j in range(count):
            i = np.int64(bits[_LISTED + j])
            own[j], own[_B + j] = _shapes(parameters, stats, sums, k, i)
            bits[_KEY + j] = keys[i]
        # Whole vectors; what lies beyond the list is drawn in vain.
        for j in range((count + 7) // 8 * 8):
            y, again = _try_beta(own[j], own[_B + j], bits[_KEY + j], step, stream)
            own[_Y + j] = y
            bits[_OPEN + j] = again
        left = 0
        for j in range(count):
            i = bits[_LISTED + j]
            own[_DRAW + np.int64(i)] = own[_Y + j]
            bits[_LISTED + left] = i
            left += np.int64(bits[_OPEN + j])
        count = left
        stream += 1 << 16


@part
def _prefer(draw, best, chosen, arm):
    for i in range(chosen.shape[0]):
        mask = u32(u32(0) - (u32(1) if draw[i] > best[i] else u32(0)))
        chosen[i] = u32(u32(chosen[i] & u32(~mask)) | u32(arm & mask))
        best[i] = max(best[i], draw[i])


@part
def _beta_exactly(step, stats, sums, parameters, keys, chosen):
    """Thompson sampling in float64."""
    for i in range(chosen.shape[0]):
        best = -np.inf
        for k in range(sums.shape[0]):
            a, b = _shapes(parameters, stats, sums, k, i)
            odds = numerics.beta_draw(a, b, np.int64(keys[i]), step, ARM_STREAM + 8 * k)
            if odds > best:
                best = odds
                chosen[i] = u32(k)


@pointer(DECIDE)
def thompson_beta(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """Thompson sampling for rewards in [0, 1]: the largest draw from Beta(a + sum, b + n - w - sum).

    The draws are those of numerics.beta_draw, compared by y. All lanes draw at once; where the draw may have to
    be rejected, they look more closely.
    parameters: whether only the arm that was played has changed, then a and b of each arm
    """
    if stats.itemsize == 8:
        _beta_exactly(step, stats, sums, parameters, keys, chosen)
        return
    lanes, arms = chosen.shape[0], sums.shape[0]
    own = memory.reshape(-1)
    begun = own[_ARMS + STRIDE] > f32(0)
    if parameters[0] > 0.0 and begun and arms == 2:
        _follow_two(parameters, stats.reshape(-1), sums.reshape(-1), chosen, own)
    elif parameters[0] > 0.0 and begun:
        for i in range(lanes):
            own[i], own[_B + i] = _shapes(parameters, stats, sums, np.int64(chosen[i]), i)
        _find_modes(own, lanes)
        for i in range(lanes):
            at = _ARMS + 4 * STRIDE * np.int64(chosen[i]) + i
            for row in range(4):
                own[at + row * STRIDE] = own[_MODE + row * STRIDE + i]
    else:
        for k in range(arms):
            for i in range(lanes):
                own[i], own[_B + i] = _shapes(parameters, stats, sums, k, i)
            _find_modes(own, lanes)
            at = _ARMS + 4 * STRIDE * k
            own[at : at + 4 * STRIDE] = own[_MODE : _MODE + 4 * STRIDE]
    best = np.full(lanes, f32(-np.inf))
    for k in range(arms):
        _propose(own[_ARMS + 4 * STRIDE * k :], keys, step, ARM_STREAM + 8 * k, own)
        _settle(_list(own, lanes), parameters, stats, sums, k, keys, step, own)
        _prefer(own[_DRAW : _DRAW + lanes], best, chosen, u32(k))


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
            z = _normal(noise_bits(keys[i], step, ARM_STREAM + k))
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
