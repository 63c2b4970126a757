"""Services that a test kills: a fork of this process, which has imported everything."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TextIO


@contextmanager
def forked(service: Callable, *arguments) -> Iterator[tuple[int, TextIO]]:
    """Run service(*arguments, say) in a process of its own: its id, and what it says, line by line."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            with open(writer, "w") as output:
                service(*arguments, partial(print, file=output, flush=True))
        finally:
            os._exit(1)
    os.close(writer)
    try:
        with open(reader) as said:
            yield child, said
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
