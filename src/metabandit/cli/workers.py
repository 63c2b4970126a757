"""`--cluster` and `--workers`: other processes that do the work of a command."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import WorkerError
from .display import say

if TYPE_CHECKING:
    from ..cluster import Cluster

Scheduler = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Hand the work to the workers of a running Dask scheduler, such as tcp://host:8786.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(help="Start so many worker processes on this machine for the run, through Dask."),
]


@contextmanager
def joined(
    address: str | None, workers: int | None, *, kept: Callable[[], str]
) -> Iterator[Cluster | None]:
    """The cluster that was asked for, until the work is done.

    kept: says what a person can do if it is lost on the way
    """
    if address is None and workers is None:
        yield None
        return
    from ..cluster import Cluster

    # What Dask has to say of connections is for its own logs; people hear of it in our words.
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
            # Whatever is still being done, nobody waits for it.
            cluster.shutdown(wait=False)


def go_on(out: Path | None, *states: Path) -> str:
    """How a run goes on that was stopped, or lost its workers.

    states: the files that it would go on from, one of them at least
    """
    if out is None:
        return "what was done is lost; with --out it would have been kept"
    if not any(path.exists() for path in states):
        return "nothing was done yet: give the same options to begin again"
    return "what was done is kept: give the same options and --resume to go on"
