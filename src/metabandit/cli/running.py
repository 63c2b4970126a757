"""Long commands: the processes that do their work, and what happens when they are stopped."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import WorkerError
from .display import say

if TYPE_CHECKING:
    from ..cluster import Cluster


@contextmanager
def stopping(nothing: str) -> Iterator[None]:
    """Exit with code 130 and a message if a person stops what has no result yet.

    SIGTERM, which batch systems send, is treated like Ctrl-C.
    """

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        say(f"stopped: {nothing}")
        raise typer.Exit(130) from None


@contextmanager
def joined(
    address: str | None, workers: int | None, *, kept: Callable[[], str]
) -> Iterator[Cluster | None]:
    """Join the cluster of `--cluster` or `--workers`, if any, until the work is done.

    `kept` says what a person can do if the cluster is lost on the way.
    """
    if address is None and workers is None:
        yield None
        return
    from ..cluster import Cluster

    # What Dask logs about connections is for its own logs; people read our messages.
    logging.disable(logging.CRITICAL)
    with Cluster(address, workers=workers, announce=say) as cluster:
        at = "this machine" if address is None else cluster.address
        plural = "" if cluster.slots == 1 else "s"
        say(f"workers      {cluster.workers} at {at}, {cluster.slots} piece{plural} at once")
        try:
            yield cluster
        except WorkerError as error:
            raise WorkerError(f"{error}\n{kept()}") from error
        finally:
            # Nobody waits for what is still running.
            cluster.shutdown(wait=False)


def go_on(out: Path | None, *states: Path) -> str:
    """Say how to continue a run that was stopped or lost its workers, from one of `states`."""
    if out is None:
        return "what was done is lost; with --out it would have been kept"
    if not any(path.exists() for path in states):
        return "nothing was done yet: give the same options to begin again"
    return "what was done is kept: give the same options and --resume to go on"
