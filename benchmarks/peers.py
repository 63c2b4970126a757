"""Other ways to simulate the same policies, so that speed.py has something to compare with.

Each peer is a function (episodes, horizon, seed) that draws its own problems, two Bernoulli arms
with uniform means, plays them and returns the regret of every episode. UCB1 is the same in all:
each arm once, then the largest r + sqrt(2 ln(t)/n), t the plays already made, ties at random.
"""

from __future__ import annotations

import random
from typing import Any

import numba
import numpy as np
from river import bandit

from metabandit.kernels.random import TIE_STREAM, WEYL, draw_bits, episode_word, noise_bits
from metabandit.kernels.simulate import MOST_LANES as LANES
from metabandit.kernels.simulate import STRIDE, TIE

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

# ------------------------------------------------------------------ NumPy and plain Python


def numpy_ucb1(episodes: int, horizon: int, seed: int, size: int = 10_000) -> np.ndarray:
    """Vectorised NumPy, 10,000 episodes at once."""
    rng = np.random.default_rng(seed)
    regret = np.empty(episodes)
    for first in range(0, episodes, size):
        count = min(size, episodes - first)
        means = rng.random((2, count))
        plays = np.ones((2, count))
        sums = (rng.random((2, count)) < means).astype(float)
        for t in range(2, horizon):
            index = sums / plays + np.sqrt(2.0 * np.log(t) / plays)
            second = np.where(index[0] == index[1], rng.random(count) < 0.5, index[1] > index[0])
            reward = rng.random(count) < np.where(second, means[1], means[0])
            plays[1] += second
            plays[0] += ~second
            sums[1] += reward & second
            sums[0] += reward & ~second
        gaps = means.max(axis=0) - means
        regret[first : first + count] = (gaps * plays).sum(axis=0)
    return regret


def river_ucb1(episodes: int, horizon: int, seed: int) -> np.ndarray:
    """river's UCB with delta = 1, which is UCB1: one pull and one update a step."""
    rng = random.Random(seed)
    regret = np.empty(episodes)
    arms = [0, 1]
    for episode in range(episodes):
        means = [rng.random(), rng.random()]
        plays = [0, 0]
        policy = bandit.UCB(delta=1, seed=rng.randrange(2**31))
        for _ in range(horizon):
            arm = policy.pull(arms)
            policy.update(arm, 1.0 if rng.random() < means[arm] else 0.0)
            plays[arm] += 1
        regret[episode] = sum(n * (max(means) - mean) for n, mean in zip(plays, means, strict=True))
    return regret


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


@lane
def _second_arm(x, y, key, step):
    """All ones where the second arm is played: its index is larger, or the coin says so."""
    better = u32(0xFFFFFFFF) if y > x else u32(0)
    coin = u32(u32(0) - u32(noise_bits(key, step, TIE_STREAM) >> u32(31)))
    return coin if abs(x - y) <= TIE * max(abs(x), abs(y)) else better


@jit
def choose(state, keys, masks, step, c):
    """The index as it is written: r + sqrt(c / n), c = 2 ln t."""
    for i in range(LANES):
        x = state[R0 + i] + np.sqrt(c / state[N0 + i])
        y = state[R1 + i] + np.sqrt(c / state[N1 + i])
        masks[i] = _second_arm(x, y, keys[i], step)


@jit
def choose_rearranged(state, keys, masks, step, c):
    """The same as r + c q, c = sqrt(2 ln t) and q = 1/sqrt(n), which changes with n only."""
    for i in range(LANES):
        x = state[R0 + i] + c * state[Q0 + i]
        y = state[R1 + i] + c * state[Q1 + i]
        masks[i] = _second_arm(x, y, keys[i], step)


@jit
def draw(words, limits, keys, masks, reward):
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
def update(state, masks, reward, plays):
    for i in range(LANES):
        mask = masks[i]
        x = reward[i]
        x1 = _number(u32(_bits(x) & mask))
        n1 = state[N1 + i] + _number(u32(ONE & mask))
        n0 = plays - n1
        s0 = state[S0 + i] + (x - x1)
        s1 = state[S1 + i] + x1
        r = _blend(s0, s1, mask) / _blend(n0, n1, mask)
        state[N0 + i] = n0
        state[N1 + i] = n1
        state[S0 + i] = s0
        state[S1 + i] = s1
        state[R0 + i] = _blend(r, state[R0 + i], mask)
        state[R1 + i] = _blend(state[R1 + i], r, mask)


@jit
def update_rearranged(state, masks, reward, plays):
    """One division and one root, of the arm just played."""
    for i in range(LANES):
        mask = masks[i]
        x = reward[i]
        x1 = _number(u32(_bits(x) & mask))
        n1 = state[N1 + i] + _number(u32(ONE & mask))
        s0 = state[S0 + i] + (x - x1)
        s1 = state[S1 + i] + x1
        inverse = f32(1) / _blend(plays - n1, n1, mask)
        r = _blend(s0, s1, mask) * inverse
        q = np.sqrt(inverse)
        state[N1 + i] = n1
        state[S0 + i] = s0
        state[S1 + i] = s1
        state[R0 + i] = _blend(r, state[R0 + i], mask)
        state[R1 + i] = _blend(state[R1 + i], r, mask)
        state[Q0 + i] = _blend(q, state[Q0 + i], mask)
        state[Q1 + i] = _blend(state[Q1 + i], q, mask)


@jit
def _begin(seed, means, first, state, words, limits, keys):
    """Both arms once, in the lanes of episodes first, first + 1, ..."""
    for i in range(LANES):
        episode = min(first + i, means.shape[0] - 1)
        key = episode_word(seed, episode, 0)
        keys[i] = key
        for k in range(2):
            word = episode_word(seed, episode, 1 + k)
            # (bits + 1/2) / 2^23 < p, as whole numbers.
            limit = u32(np.int64(np.ceil(np.float64(f32(means[episode, k])) * 2.0**23 - 0.5)))
            x = f32(1) if u32(draw_bits(word, key) >> u32(9)) < limit else f32(0)
            words[k * STRIDE + i] = u32(word + WEYL)
            limits[k * STRIDE + i] = limit
            state[N0 + k * STRIDE + i] = f32(1)
            state[S0 + k * STRIDE + i] = x
            state[R0 + k * STRIDE + i] = x
            state[Q0 + k * STRIDE + i] = f32(1)


@jit
def play_blocks(seed, means, horizon, rearranged, regret):
    state = np.zeros(8 * STRIDE, f32)
    words = np.zeros(2 * STRIDE, u32)
    limits = np.zeros(2 * STRIDE, u32)
    keys = np.zeros(STRIDE, u32)
    masks = np.zeros(STRIDE, u32)
    reward = np.zeros(STRIDE, f32)
    for first in range(0, means.shape[0], LANES):
        _begin(seed, means, first, state, words, limits, keys)
        for step in range(2, horizon):
            if rearranged:
                choose_rearranged(state, keys, masks, step, f32(np.sqrt(2.0 * np.log(step))))
                draw(words, limits, keys, masks, reward)
                update_rearranged(state, masks, reward, f32(step + 1))
            else:
                choose(state, keys, masks, step, f32(2.0 * np.log(step)))
                draw(words, limits, keys, masks, reward)
                update(state, masks, reward, f32(step + 1))
        for i in range(min(LANES, means.shape[0] - first)):
            gap = means[first + i, 0] - means[first + i, 1]
            second = np.float64(state[N1 + i])
            regret[first + i] = gap * second if gap > 0.0 else -gap * (horizon - second)


def hand_ucb1(episodes: int, horizon: int, seed: int, rearranged: bool = False) -> np.ndarray:
    """UCB1 and nothing else, in blocks."""
    means = np.random.default_rng(seed).random((episodes, 2))
    regret = np.empty(episodes)
    play_blocks(u64(seed), means, horizon, rearranged, regret)
    return regret


def hand_ucb1_rearranged(episodes: int, horizon: int, seed: int) -> np.ndarray:
    """The same with 1/sqrt(n) kept, which only someone who knows the formula can do."""
    return hand_ucb1(episodes, horizon, seed, rearranged=True)


@jit
def add_rewards(words, limits, keys, total):
    for i in range(LANES):
        bits = draw_bits(words[i], keys[i])
        words[i] = u32(words[i] + WEYL)
        total[i] += f32(1) if i32(bits >> u32(9)) < i32(limits[i]) else f32(0)


@jit
def _draw_blocks(seed, means, horizon, regret):
    state = np.zeros(8 * STRIDE, f32)
    words = np.zeros(2 * STRIDE, u32)
    limits = np.zeros(2 * STRIDE, u32)
    keys = np.zeros(STRIDE, u32)
    total = np.zeros(STRIDE, f32)
    for first in range(0, means.shape[0], LANES):
        _begin(seed, means, first, state, words, limits, keys)
        total[:] = f32(0)
        for _ in range(horizon):
            add_rewards(words, limits, keys, total)
        for i in range(min(LANES, means.shape[0] - first)):
            regret[first + i] = horizon * means[first + i, 0] - total[i]


def draws_only(episodes: int, horizon: int, seed: int) -> np.ndarray:
    """The first arm's rewards, added up: no simulator of this kind can be faster. (Mean 0.)"""
    means = np.random.default_rng(seed).random((episodes, 2))
    regret = np.empty(episodes)
    _draw_blocks(u64(seed), means, horizon, regret)
    return regret
