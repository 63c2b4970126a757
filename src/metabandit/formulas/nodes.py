"""What an enumeration keeps its formulas in: numbers for fingerprints, operations and operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .sample import Sample

Ints = npt.NDArray[np.int64]


class Index:
    """Numbers for fingerprints, in the order of their first appearance."""

    def __init__(self) -> None:
        from ..kernels import vectors

        self.kernel = vectors
        self.count = 0
        self.table = self._empty(1 << 16)

    def _empty(self, size: int) -> Any:
        return self.kernel.Index(np.zeros(size, np.uint64), np.zeros(size, np.int32))

    def add(self, fingerprints: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int32], Ints]:
        """The number of each, and the positions of those that are new."""
        size = len(self.table.keys)
        while size < 2 * (self.count + len(fingerprints)):
            size *= 2
        if size > len(self.table.keys):
            old = self.table
            used = np.flatnonzero(old.keys)
            order = used[np.argsort(old.numbers[used])]
            self.table = self._empty(size)
            nothing = np.empty(len(order), np.int32)
            self.kernel.intern(
                old.keys[order], self.table, 0, nothing, np.empty(len(order), np.int64)
            )
        numbers = np.empty(len(fingerprints), np.int32)
        fresh = np.empty(len(fingerprints), np.int64)
        before = self.count
        self.count = self.kernel.intern(fingerprints, self.table, before, numbers, fresh)
        return numbers, fresh[: self.count - before]


class Nodes:
    """Growing arrays: the operation of each node and its operands."""

    def __init__(self) -> None:
        self.operation = np.zeros(1024, np.int32)
        self.left = np.zeros(1024, np.int32)
        self.right = np.zeros(1024, np.int32)
        self.count = 0

    def add(self, operation: Any, left: Any, right: Any) -> None:
        size = self.count + len(left)
        for name, values in (("operation", operation), ("left", left), ("right", right)):
            array = getattr(self, name)
            if len(array) < size:
                array = np.concatenate([array, np.zeros(max(len(array), size), np.int32)])
                setattr(self, name, array)
            array[self.count : size] = values
        self.count = size


def kernel_sample(sample: Sample, tolerance: float, *, stored: int) -> Any:
    """The sample as kernels/vectors.py takes it, with random odd numbers for the fingerprints."""
    from ..kernels import vectors

    keys = np.random.default_rng(2012)
    pairs = sample.arms * (sample.arms - 1) // 2

    def odd(shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
        return keys.integers(0, 2**63, shape, dtype=np.uint64) * np.uint64(2) + np.uint64(1)

    points = sample.arms * sample.groups
    return vectors.Sample(
        points,
        sample.arms,
        sample.groups,
        stored,
        odd((points,)),
        odd((pairs, sample.groups)),
        tolerance,
    )
