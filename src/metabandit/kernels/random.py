"""Random numbers that are functions of where they are used, not of when.

The reward of the j-th pull of arm k in episode e is `draw_bits(word + j * WEYL, key)`, where
`word` depends on (seed, e, k) and `key` on (seed, e). Every policy therefore meets the same rewards,
and no result depends on threads or block size. All other randomness of an episode (ties, random
plays) is `noise_bits(key, step, stream)`.

numba promotes small integers in arithmetic; every operation is cast back to 32 bits, without
which the lanes would be twice as wide and the generator another one.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from .. import numerics
from .jit import lane

u32 = np.uint32
u64 = np.uint64
WEYL = np.uint32(numerics.WEYL_32)
TIE_STREAM = numerics.TIES
CHOICE_STREAM = numerics.CHOICES
ARM_STREAM = numerics.ARMS
_MIX_A, _MIX_B = np.uint64(numerics.MIX_A), np.uint64(numerics.MIX_B)
_WEYL_64, _SLOT = np.uint64(numerics.WEYL_64), np.uint64(numerics.SLOT)
_HASH_A, _HASH_B = np.uint32(numerics.HASH_A), np.uint32(numerics.HASH_B)
DELAY, _FINE = np.uint32(numerics.DELAY), np.uint32(numerics.FINE)
_STREAM, _NOISE = np.uint32(numerics.STREAM), np.uint32(numerics.NOISE)


@lane
def mix64(x):
    """The finaliser of SplitMix64: a bijection of 64 bits in which every input bit moves all others."""
    x = u64(x)
    x = u64(u64(x ^ u64(x >> u64(30))) * _MIX_A)
    x = u64(u64(x ^ u64(x >> u64(27))) * _MIX_B)
    return u64(x ^ u64(x >> u64(31)))


@lane
def episode_bits(seed, episode):
    """64 bits that depend on the seed and the episode."""
    return mix64(u64(u64(seed) + u64(u64(episode) * _WEYL_64)))


@lane
def slot_word(bits, slot):
    """32 bits of an episode for a slot (0: the episode's key; 1 + k: arm k)."""
    return u32(mix64(u64(bits + u64(u64(slot) * _SLOT))) >> u64(32))


@lane
def draw_bits(word, key):
    """A keyed hash of 32 bits: two multiplications, with the key between them."""
    x = u32(word)
    x = u32(x ^ u32(x >> u32(16)))
    x = u32(x * _HASH_A)
    x = u32(x ^ u32(x >> u32(15)))
    x = u32(x ^ u32(key))
    x = u32(x * _HASH_B)
    return u32(x ^ u32(x >> u32(16)))


@lane
def noise_bits(key, step, stream):
    """Random bits of an episode that are not rewards, by step and stream."""
    word = u32(u32(u32(key) + u32(u32(step) * WEYL)) + u32(u32(stream) * _STREAM))
    return draw_bits(word, u32(u32(key) ^ _NOISE))


@lane
def below(bits, limit):
    """A whole number from 0 to limit - 1."""
    return np.int64((u64(bits) * u64(limit)) >> u64(32))


@lane
def unit(bits):
    """A uniform number strictly between 0 and 1, on the 24 bits that float32 can hold."""
    # 23 bits and a half step: (2^23 - 1/2) / 2^23 is the largest float32 below 1.
    return (np.float32(np.int32(u32(bits >> u32(9)))) + np.float32(0.5)) * np.float32(2.0**-23)


@lane
def fine_unit(bits, more):
    """A uniform number strictly between 0 and 1, on the 53 bits that float64 can hold."""
    whole = np.float64(bits) * 2.0**20 + np.float64(u32(more >> u32(12)))
    return (whole + 0.5) * 2.0**-52


def reward_unit(word, key, row):
    """The uniform number of a reward, as precise as the row that it is for."""
    raise TypeError("only compiled code calls this")


@overload(reward_unit)
def _reward_unit(word, key, row):
    if row.dtype == types.float32:
        return lambda word, key, row: unit(draw_bits(word, key))
    return lambda word, key, row: fine_unit(
        draw_bits(word, key), draw_bits(u32(u32(word) ^ _FINE), key)
    )
