"""Index policies on many episodes at once, in NumPy's float64: what the simulator plays, without a kernel.

Rewards of 0 and 1. The random words are those of randomness.py; uniform numbers have 52 bits.
"""

from __future__ import annotations

import numpy as np

from metabandit.language.values import evaluate_tree
from tests.naive.randomness import FINE, MASK32, WEYL, episode_word

TIE = 1e-11


def _draw_bits(word, key):
    x = (word ^ (word >> 16)) * 0x7FEB352D & MASK32
    x = (x ^ (x >> 15) ^ key) * 0x846CA68B & MASK32
    return x ^ (x >> 16)


def _noise_bits(key, step, stream):
    return _draw_bits((key + step * WEYL + stream * 0x85EBCA6B) & MASK32, key ^ 0x68BC21EB)


def _best(values, bits, tie):
    """The position of the largest value in each row, ties at random."""
    top = values.max(axis=1, keepdims=True)
    tied = np.abs(values - top) <= tie * np.maximum(np.abs(values), np.abs(top))
    wanted = bits * tied.sum(axis=1) >> 32
    return (tied.cumsum(axis=1) > wanted[:, None]).argmax(axis=1)


def play_lanes(plan, means, horizon, seed, tie=TIE):
    """How often each arm is played in each episode, [episode, arm]; episode e has the means means[e]."""
    episodes, arms = means.shape
    lanes = np.arange(episodes)
    words = np.array(
        [[episode_word(seed, e, slot) for slot in range(arms + 1)] for e in range(episodes)]
    )
    key, words = words[:, 0], words[:, 1:]
    plays = np.zeros((episodes, arms), np.int64)
    wins = np.zeros((episodes, arms))
    pseudo_plays, total, squares = plan.counts
    rate, needed = plan.exceptions(horizon)
    for step in range(horizon):
        moment = {"t": pseudo_plays.sum() + step, "h": horizon - step, "K": arms}
        n = pseudo_plays + plays
        if plan.each_once and step < arms:
            arm = np.full(episodes, step)
        else:
            r = (total + wins) / np.maximum(n, 1e-300)
            s = np.sqrt(np.maximum((squares + wins) / np.maximum(n, 1e-300) - r * r, 0.0))
            values = evaluate_tree(plan.decision.bound, {"n": n, "r": r, "s": s, **moment})
            values = np.broadcast_to(values, n.shape)
            lacks = np.zeros(episodes, bool)
            if len(needed):
                lacks = n.min(axis=1) < needed[step]
                values = np.where(lacks[:, None], -n, values)
            assert np.isfinite(values).all(), "the simulator refuses this"
            arm = _best(values, _noise_bits(key, step, 1), tie)
            if len(rate):
                chance = ((_noise_bits(key, step, 2) >> 9) + 0.5) / 2**23
                other = _noise_bits(key, step, 3) * arms >> 32
                arm = np.where((chance < rate[step]) & ~lacks, other, arm)
        word = (words[lanes, arm] + plays[lanes, arm] * WEYL) & MASK32
        upper, lower = _draw_bits(word, key), _draw_bits(word ^ FINE, key)
        u = (upper * 2.0**20 + (lower >> 12) + 0.5) / 2**52
        plays[lanes, arm] += 1
        wins[lanes, arm] += u < means[lanes, arm]
    return plays
