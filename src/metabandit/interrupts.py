"""Delay Ctrl-C until it does no harm."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Let Ctrl-C in the main thread take effect at the end of the block.

    Inside numba's dispatcher it would surface as another error; inside Dask it could be lost.
    """
    here = threading.current_thread() is threading.main_thread()
    # A process in the background may ignore Ctrl-C.
    if not here or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    caught: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *given: caught.append(given))
    try:
        yield
    finally:
        # None stands for a handler that was not set from Python.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
    if caught:
        raise KeyboardInterrupt
