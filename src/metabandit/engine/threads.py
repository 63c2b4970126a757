"""Work for several threads; the kernels run without Python's lock."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from ..workers import interrupts_later

Item = TypeVar("Item")
Result = TypeVar("Result")


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
                _let_this_thread_limit()
                self.limit = _libraries().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                _let_this_thread_limit()
                self.limit.restore_original_limits()
                _let_this_thread_limit()


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _let_this_thread_limit() -> None:
    # Since threadpoolctl 3.8 limits belong to the first thread that sets one; those of others do nothing.
    for library in _libraries().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


one_blas_thread = _OneBlasThread()


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, ahead: int | None = None
) -> Iterator[Result]:
    """The results in the order of the items. After an error, or Ctrl-C, nothing more is begun.

    `ahead` is how many are begun at most, counted from the one that is due.
    """
    if threads == 1:
        for item in items:
            with interrupts_later():
                result = work(item)
            yield result
        return
    pool = ThreadPoolExecutor(threads)
    rest, begun = iter(items), deque[Future[Result]]()
    try:
        while True:
            more = None if ahead is None else ahead - len(begun)
            begun.extend(pool.submit(work, item) for item in islice(rest, more))
            if not begun:
                return
            yield begun.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """The same, all at once."""
    return list(in_order(work, items, threads))
