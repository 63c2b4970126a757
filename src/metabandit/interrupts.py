"""Ctrl-C at a moment when it does no harm."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Ctrl-C in the main thread takes effect at the end of the block.

    Within numba's lookup of a function to call it would come out as another error, and within Dask's
    bookkeeping it could be lost.
    """
    here = threading.current_thread() is threading.main_thread()
    # What runs in the background may ignore Ctrl-C.
    if not here or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
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
