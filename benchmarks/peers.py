"""Other ways to simulate the same policies, so that speed.py has something to compare with.

Each peer is a function (episodes, horizon, seed) that draws its own problems, two Bernoulli arms
with uniform means, plays them and returns the regret of every episode. UCB1 is the same in all:
each arm once, then the largest r + sqrt(2 ln(t)/n), t the plays already made, ties at random.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from metabandit.kernels.best import TIE
from metabandit.kernels.random import (
    TIE_STREAM,
    WEYL,
    draw_bits,
    episode_bits,
    noise_bits,
    slot_word,
)
from metabandit.kernels.rows import MOST_LANES as LANES
from metabandit.kernels.rows import STRIDE

# The flags of metabandit.kernels.jit, but nothing is kept on disk: numba would not notice that a
# function of another file has changed.
_FLAGS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"nsz", "contract"},
}
jit = numba.njit(**_FLAGS)
lane = numba.njit(forceinline=True, **_FLAGS)

f32 = np.float32
i32 = np.int32
u32 = np.uint32
u64 = np.uint64

# ------------------------------------------------------------------ one episode at a time


@lane
def _next(state):
    """The next state of xorshift64."""
    state = u64(state ^ u64(state << u64(13)))
    state = u64(state ^ u64(state >> u64(7)))
    return u64(state ^ u64(state << u64(17)))


@lane
def _uniform(state):
    return np.float64(u64(state >> u64(11))) * 2.0**-53


@jit
def _kl_upper(mean, bound):
    """The largest q with kl(mean, q) <= bound, by bisection to 1e-4."""
    low = mean
    high = 1.0
    entropy = 0.0
    if mean > 0.0:
        entropy += mean * np.log(mean)
    if mean < 1.0:
        entropy += (1.0 - mean) * np.log(1.0 - mean)
    while high - low > 1e-4:
        q = 0.5 * (low + high)
        if entropy - mean * np.log(q) - (1.0 - mean) * np.log(1.0 - q) > bound:
            high = q
        else:
            low = q
    return low


@lane
def _ucb1_index(mean, n, log_t):
    return mean + np.sqrt(2.0 * log_t / n)


@lane
def _kl_index(mean, n, log_t):
    return _kl_upper(mean, log_t / n)


def _one_by_one(index: Any) -> Any:
    """A scalar loop in float64 for a policy with this index."""

    @jit
    def play(episodes, horizon, seed, regret):
        state = u64(u64(seed) * u64(0x9E3779B97F4A7C15) + u64(88172645463325252))
        means = np.empty(2)
        plays = np.empty(2)
        sums = np.empty(2)
        for episode in range(episodes):
            for k in range(2):
                state = _next(state)
                means[k] = _uniform(state)
                state = _next(state)
                plays[k] = 1.0
                sums[k] = 1.0 if _uniform(state) < means[k] else 0.0
            for t in range(2, horizon):
                log_t = np.log(t)
                first = index(sums[0] / plays[0], plays[0], log_t)
                second = index(sums[1] / plays[1], plays[1], log_t)
                arm = 1 if second > first else 0
                if first == second:
                    state = _next(state)
                    arm = np.int64(state >> u64(63))
                state = _next(state)
                plays[arm] += 1.0
                if _uniform(state) < means[arm]:
                    sums[arm] += 1.0
            best = max(means[0], means[1])
            regret[episode] = plays[0] * (best - means[0]) + plays[1] * (best - means[1])

    def peer(episodes: int, horizon: int, seed: int) -> np.ndarray:
        regret = np.empty(episodes)
        play(episodes, horizon, seed, regret)
        return regret

    return peer


scalar_ucb1 = _one_by_one(_ucb1_index)
scalar_kl_ucb = _one_by_one(_kl_index)

# ------------------------------------------------------------------ by hand, in metabandit's blocks
# 512 lanes, rows STRIDE apart, float32, the same random numbers and the same ties as in
# kernels/simulate.py. Three short loops a step are faster than one long one: its chain of
# dependent operations is too long for the processor to overlap many lanes.

# The rows of `state`: plays, reward sum, mean and 1/sqrt(plays) of both arms.
N0, N1, S0, S1, R0, R1, Q0, Q1 = (row * STRIDE for row in range(8))
ONE = u32(0x3F800000)  # the bits of 1.0


@lane
def _bits(x):
    return np.float32(x).view(np.uint32)


@lane
def _number(bits):
    return np.uint32(bits).view(np.float32)


@lane
def _mix(zero, one, mask):
    """The bits of `one` where the mask is set, else those of `zero`."""
    return u32(u32(zero & u32(~mask)) | u32(one & mask))


@lane
def _blend(zero, one, mask):
    return _number(_mix(_bits(zero), _bits(one), mask))


@jit
def _draw(words, limits, keys, masks, reward):
    """A Bernoulli reward is one comparison of whole numbers: no float is needed."""
    for i in range(LANES):
        mask = masks[i]
        first = words[i]
        second = words[STRIDE + i]
        bits = draw_bits(_mix(first, second, mask), keys[i])
        words[i] = u32(first + u32(WEYL & u32(~mask)))
        words[STRIDE + i] = u32(second + u32(WEYL & mask))
        limit = _mix(limits[i], limits[STRIDE + i], mask)
        reward[i] = f32(1) if i32(bits >> u32(9)) < i32(limit) else f32(0)


@jit
def _begin(seed, number, means, first, state, words, limits, keys):
    """Both arms once, in the lanes of problems first, first + 1, ...; problem 0 has this number."""
    for i in range(LANES):
        problem = min(first + i, means.shape[0] - 1)
        bits = episode_bits(seed, number + problem)
        key = slot_word(bits, 0)
        keys[i] = key
        for k in range(2):
            word = slot_word(bits, 1 + k)
            # (bits + 1/2) / 2^23 < p, as whole numbers.
            limit = u32(np.int64(np.ceil(np.float64(f32(means[problem, k])) * 2.0**23 - 0.5)))
            # The sign of a difference, because a branch would be mispredicted.
            x = f32(i32(u32(u32(draw_bits(word, key) >> u32(9)) - limit) >> u32(31)))
            words[k * STRIDE + i] = u32(word + WEYL)
            limits[k * STRIDE + i] = limit
            state[N0 + k * STRIDE + i] = f32(1)
            state[S0 + k * STRIDE + i] = x
            state[R0 + k * STRIDE + i] = x
            state[Q0 + k * STRIDE + i] = f32(1)


def _in_chunks(play: Any) -> Any:
    """Problems are drawn as metabandit draws them, some thousands at a time."""

    def peer(episodes: int, horizon: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        regret = np.empty(episodes)
        for first in range(0, episodes, 8192):
            part = regret[first : first + 8192]
            play(u64(seed), first, rng.random((part.size, 2)), horizon, part)
        return regret

    return peer


def _in_blocks(rearranged: bool) -> Any:
    """UCB1 and nothing else.

    As written, the index is r + sqrt(c/n) with c = 2 ln t. Rearranged, it is r + sqrt(c) q with
    q = 1/sqrt(n), which only the arm just played needs anew.
    """

    @jit
    def choose(state, keys, masks, step):
        c = f32(2.0 * np.log(step))
        root = f32(np.sqrt(2.0 * np.log(step)))
        for i in range(LANES):
            if rearranged:
                x = state[R0 + i] + root * state[Q0 + i]
                y = state[R1 + i] + root * state[Q1 + i]
            else:
                x = state[R0 + i] + np.sqrt(c / state[N0 + i])
                y = state[R1 + i] + np.sqrt(c / state[N1 + i])
            better = u32(0xFFFFFFFF) if y > x else u32(0)
            coin = u32(u32(0) - u32(noise_bits(keys[i], step, TIE_STREAM) >> u32(31)))
            tied = abs(x - y) <= TIE * max(abs(x), abs(y))
            masks[i] = coin if tied else better

    @jit
    def update(state, masks, reward, step):
        plays = f32(step + 1)
        for i in range(LANES):
            mask = masks[i]
            x = reward[i]
            x1 = _number(u32(_bits(x) & mask))
            n1 = state[N1 + i] + _number(u32(ONE & mask))
            n0 = plays - n1
            s0 = state[S0 + i] + (x - x1)
            s1 = state[S1 + i] + x1
            n = _blend(n0, n1, mask)
            s = _blend(s0, s1, mask)
            state[N1 + i] = n1
            state[S0 + i] = s0
            state[S1 + i] = s1
            if rearranged:
                inverse = f32(1) / n
                r = s * inverse
                q = np.sqrt(inverse)
                state[Q0 + i] = _blend(q, state[Q0 + i], mask)
                state[Q1 + i] = _blend(state[Q1 + i], q, mask)
            else:
                r = s / n
                state[N0 + i] = n0
            state[R0 + i] = _blend(r, state[R0 + i], mask)
            state[R1 + i] = _blend(state[R1 + i], r, mask)

    @jit
    def play(seed, number, means, horizon, regret):
        state = np.zeros(8 * STRIDE, f32)
        words = np.zeros(2 * STRIDE, u32)
        limits = np.zeros(2 * STRIDE, u32)
        keys = np.zeros(STRIDE, u32)
        masks = np.zeros(STRIDE, u32)
        reward = np.zeros(STRIDE, f32)
        for first in range(0, means.shape[0], LANES):
            _begin(seed, number, means, first, state, words, limits, keys)
            for step in range(2, horizon):
                choose(state, keys, masks, step)
                _draw(words, limits, keys, masks, reward)
                update(state, masks, reward, step)
            for i in range(min(LANES, means.shape[0] - first)):
                gap = means[first + i, 0] - means[first + i, 1]
                n1 = np.float64(state[N1 + i])
                regret[first + i] = max(gap, 0.0) * n1 + max(-gap, 0.0) * (horizon - n1)

    return _in_chunks(play)


hand_ucb1 = _in_blocks(rearranged=False)
hand_ucb1_rearranged = _in_blocks(rearranged=True)


@jit
def _add_rewards(words, limits, keys, total):
    for i in range(LANES):
        bits = draw_bits(words[i], keys[i])
        words[i] = u32(words[i] + WEYL)
        total[i] += f32(1) if i32(bits >> u32(9)) < i32(limits[i]) else f32(0)


@jit
def _draw_blocks(seed, number, means, horizon, surplus):
    state = np.zeros(8 * STRIDE, f32)
    words = np.zeros(2 * STRIDE, u32)
    limits = np.zeros(2 * STRIDE, u32)
    keys = np.zeros(STRIDE, u32)
    total = np.zeros(STRIDE, f32)
    for first in range(0, means.shape[0], LANES):
        _begin(seed, number, means, first, state, words, limits, keys)
        total[:] = f32(0)
        for _ in range(horizon):
            _add_rewards(words, limits, keys, total)
        for i in range(min(LANES, means.shape[0] - first)):
            surplus[first + i] = total[i] - horizon * means[first + i, 0]


# The first arm's rewards added up, less what is expected: no choice, no statistics. Nothing that
# draws its rewards this way is faster.
draws_only = _in_chunks(_draw_blocks)
