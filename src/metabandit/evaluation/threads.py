"""Work for several threads; the kernels run without Python's lock."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C in the main thread takes effect at the end of the block.

    Within numba's lookup of a function to call it would come out as another error.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *given: caught.append(given))
    try:
        yield
    finally:
        # None is a handler that was not set from Python.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
    if caught:
        raise KeyboardInterrupt


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """The results in the order of the items. After an error, or Ctrl-C, nothing more is begun."""
    if threads == 1:
        results = []
        for item in items:
            with _interrupts_later():
                results.append(work(item))
        return results
    pool = ThreadPoolExecutor(threads)
    try:
        return [future.result() for future in [pool.submit(work, item) for item in items]]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
