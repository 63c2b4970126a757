"""Rows of lanes: how they lie in memory, and what loops over them share.

Lanes are float32, or float64 where a task asks for it (engine/precision.py): the loops are compiled for
both, so constants are written as float32 and widen by themselves.

Rows are STRIDE apart in flat arrays: with the stride a constant the compiler sees that rows do not
overlap, and vectorises the loops. For the same reason loops blend bits by masks and never store
under a condition: a masked store takes tens of cycles on some processors.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from .jit import lane, part
from .opcodes import LANE_VARIABLES

MOST_LANES = 512
# Not a power of two: rows 2048 bytes apart would compete for the same lines of the cache.
STRIDE = 528
# Rows of an arm: the lane variables n, r, s, w.
SLOT = len(LANE_VARIABLES)

f32 = np.float32
i32 = np.int32
u32 = np.uint32


@lane
def _bits(x):
    return np.float32(x).view(np.uint32)


@lane
def _blend_bits(kept, new, mask):
    return np.uint32(u32(_bits(kept) & u32(~mask)) | u32(_bits(new) & mask)).view(np.float32)


def blend(kept, new, mask):
    """`new` where the mask's bits are set, else `kept`. Bits, because a conditional store is slow."""
    raise TypeError("only compiled code calls this")


@overload(blend)
def _blend(kept, new, mask):
    if kept == types.float32:
        return lambda kept, new, mask: _blend_bits(kept, new, mask)
    return lambda kept, new, mask: new if mask != u32(0) else kept


@part
def all_between(row, low, high):
    """Whether every number is finite and lies between two limits, which may be infinite."""
    wrong = u32(0)
    for i in range(row.shape[0]):
        outside = u32(0) if row[i] >= low else u32(1)
        outside = u32(outside | (u32(0) if row[i] <= high else u32(1)))
        outside = u32(outside | (u32(0) if abs(row[i]) < f32(np.inf) else u32(1)))
        wrong = u32(wrong | outside)
    return wrong == u32(0)


@part
def all_below(row, limit):
    largest = u32(0)
    for i in range(row.shape[0]):
        largest = max(largest, row[i])
    return largest < limit
