"""Keys of fingerprints, and numbers for them: what enumeration and classification share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .sample import Sample

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Fingerprints = npt.NDArray[np.uint64]

# Values that differ by this share of the larger one are equal.
TOLERANCE = 1e-12


def make_keys(sample: Sample, tolerance: float) -> Any:
    """Random keys for the points of a sample, always the same (kernels.fingerprints.Keys)."""
    from ..kernels import fingerprints

    rng = np.random.default_rng(2012)
    pairs = sample.arms * (sample.arms - 1) // 2

    def odd(*shape: int) -> Fingerprints:
        return rng.integers(0, 2**63, shape, dtype=np.uint64) * np.uint64(2) + np.uint64(1)

    values, ranks = odd(sample.arms * sample.groups), odd(pairs, sample.groups)
    return fingerprints.Keys(sample.arms, sample.groups, values, ranks, tolerance)


class Numbering:
    """Numbers for fingerprints, in the order of their first appearance: a hash table that grows."""

    def __init__(self) -> None:
        self.count = 0
        self.table = np.zeros(1 << 16, np.uint64)
        self.number_of = np.zeros(1 << 16, np.int32)

    def add(self, fingerprints: Fingerprints) -> tuple[Numbers, Ints]:
        """The number of each (-1 if invalid, -2 if skipped), and the positions of the new ones."""
        size = len(self.table)
        while size < 2 * (self.count + len(fingerprints)):
            size *= 2
        if size > len(self.table):
            used = np.flatnonzero(self.table)
            known = self.table[used[np.argsort(self.number_of[used])]]
            self.table, self.number_of = np.zeros(size, np.uint64), np.zeros(size, np.int32)
            self._assign(known, 0)
        before = self.count
        self.count, numbers, fresh = self._assign(fingerprints, before)
        return numbers, fresh[: self.count - before]

    def _assign(self, fingerprints: Fingerprints, count: int) -> tuple[int, Numbers, Ints]:
        from ..kernels.fingerprints import assign_numbers

        numbers = np.empty(len(fingerprints), np.int32)
        fresh = np.empty(len(fingerprints), np.int64)
        count = assign_numbers(fingerprints, self.table, self.number_of, count, numbers, fresh)
        return count, numbers, fresh
