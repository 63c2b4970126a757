"""Long commands: the processes that do their work, and what happens when they are stopped."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import WorkerError
from .display import progress_bar, say
from .options import Resources

if TYPE_CHECKING:
    from ..cluster import Cluster


@contextmanager
def stopping(message: Callable[[], str]) -> Iterator[None]:
    """Exit with code 130 and a message if a person stops what has no result yet.

    SIGTERM, which batch systems send, is treated like Ctrl-C.
    """

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        say(f"stopped: {message()}")
        raise typer.Exit(130) from None


@contextmanager
def joined(resources: Resources, *, kept: Callable[[], str]) -> Iterator[Cluster | None]:
    """Join the cluster of `--cluster` or `--workers`, if any, until the work is done.

    `kept` says what a person can do if the cluster is lost on the way.
    """
    _, address, workers = resources
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


@contextmanager
def working(
    what: str, resources: Resources, *, stopped: str, kept: Callable[[], str]
) -> Iterator[tuple[dict[str, Any], Callable[[float, str], None]]]:
    """Do long work that can be stopped: yield who works, as keyword arguments, and a progress bar.

    The bar is called with the share that is done and what is going on; `stopped` is said if a person
    ends what has no result yet, `kept` if the cluster is lost.
    """
    with (
        stopping(lambda: stopped),
        joined(resources, kept=kept) as executor,
        progress_bar(what, executor) as bar,
    ):
        given = {"threads": resources[0], "executor": executor, "announce": say}
        yield given, lambda share, doing: bar(share, 1.0, doing)


def seconds_so_far() -> float:
    """How long this process has been running, which a time limit includes."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        begun = float(fields[19]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - begun)
    except (OSError, ValueError, IndexError, AttributeError):  # not on every system
        return time.process_time()


def go_on(out: Path | None, *states: Path) -> str:
    """Say how to continue a run that was stopped or lost its workers, from one of `states`."""
    if out is None:
        return "what was done is lost; with --out it would have been kept"
    if not any(path.exists() for path in states):
        return "nothing was done yet: give the same options to begin again"
    return "what was done is kept: give the same options and --resume to go on"
