"""Rows of lanes: how they lie in memory, and what loops over them share.

Rows are STRIDE apart in flat arrays: with the stride a constant the compiler sees that rows do not
overlap, and vectorises the loops. For the same reason loops blend bits by masks and never store
under a condition: a masked store takes tens of cycles on some processors.
"""

from __future__ import annotations

import numpy as np

from .jit import jit, lane

MOST_LANES = 512
# Not a power of two: rows 2048 bytes apart would compete for the same lines of the cache.
STRIDE = 528

f32 = np.float32
i32 = np.int32
u32 = np.uint32


@lane
def _bits(x):
    return np.float32(x).view(np.uint32)


@lane
def blend(kept, new, mask):
    """`new` where the mask's bits are set, else `kept`. Bits, because a conditional store is slow."""
    return np.uint32(u32(_bits(kept) & u32(~mask)) | u32(_bits(new) & mask)).view(np.float32)


@jit
def all_between(row, low, high):
    """Whether every number is finite and lies between two limits, which may be infinite."""
    wrong = u32(0)
    for i in range(row.shape[0]):
        outside = u32(0) if row[i] >= low else u32(1)
        outside = u32(outside | (u32(0) if row[i] <= high else u32(1)))
        outside = u32(outside | (u32(0) if abs(row[i]) < f32(np.inf) else u32(1)))
        wrong = u32(wrong | outside)
    return wrong == u32(0)


@jit
def all_below(row, limit):
    largest = u32(0)
    for i in range(row.shape[0]):
        largest = max(largest, row[i])
    return largest < limit
