"""Work for several threads; the kernels run without Python's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """The results in the order of the items. After an error, or Ctrl-C, nothing more is begun."""
    if threads == 1:
        return [work(item) for item in items]
    pool = ThreadPoolExecutor(threads)
    try:
        return [future.result() for future in [pool.submit(work, item) for item in items]]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
