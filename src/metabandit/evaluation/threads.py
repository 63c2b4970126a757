"""Work for several threads; the kernels run without Python's lock."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
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


class _OneBlasThread:
    """While anyone is inside, products of matrices are made by one thread each.

    With more their last bits depend on how many there are; and threads of ours would compete with them.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.limit: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.limit = _libraries().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limit.restore_original_limits()


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


one_blas_thread = _OneBlasThread()


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
