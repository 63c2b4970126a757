"""Reach a Dask scheduler, or start one with its workers on this machine."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..errors import InputError, WorkerError, about

# Seconds to reach the scheduler, and to find a first worker.
REACH = 8.0
# By default Dask's processes monitor themselves up to a hundred times a second, about 3 % of a core each.
CALM = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.worker.profile.enabled": False,
}

_ADDRESS = re.compile(r"((tcp|tls)://)?(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(\d{1,5})")


@about("cluster")
def check_address(address: object) -> None:
    """Refuse what cannot be the address of a scheduler."""
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if found is None or not 0 < int(found[4]) < 2**16:
        raise InputError(
            f"the address of a scheduler is such as tcp://host:8786, with the port, not {address!r}"
        )


def gone(address: str, how: str) -> WorkerError:
    """Return the error for a scheduler that is lost."""
    return WorkerError(f"the scheduler {address} {how}: it ended, or cannot be reached")


def join(address: str | None, workers: int | None) -> tuple[Any, Any]:
    """Return a client of the scheduler, and the cluster that was started for it, if any."""
    distributed: Any
    try:
        import dask
        import distributed
    except ImportError:
        raise InputError(
            "a cluster needs Dask, which is not installed: pip install 'metabandit[cluster]'"
        ) from None
    local = None
    with warnings.catch_warnings(), dask.config.set(CALM):
        # Versions are compared by us, where they matter.
        warnings.simplefilter("ignore")
        if workers is not None:
            local = _start(distributed, workers)
            address = str(local.scheduler_address)
        assert address is not None
        _reach(distributed, address)
        try:
            return distributed.Client(address, timeout=REACH, set_as_default=False), local
        except OSError as error:
            raise gone(address, f"was lost at once ({error})") from None


def _start(distributed: Any, workers: int) -> Any:
    try:
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
            preload=[__name__],
        )
    except Exception as error:
        raise WorkerError(
            f"workers cannot be started on this machine: {str(error).rstrip('.')}. (They import the script "
            f'that starts them: it must do so below `if __name__ == "__main__":`)'
        ) from None


def dask_setup(worker: Any) -> None:
    """Ignore Ctrl-C; Dask calls this in workers that we start, and the main process handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _reach(distributed: Any, address: str) -> None:
    """Check that a scheduler answers: Dask's client would wait forever for anything else."""
    secured = distributed.Security().get_connection_args("client")
    if address.startswith("tls://") and not secured.get("ssl_context"):
        raise InputError(
            "a scheduler at tls:// needs the certificates of Dask's configuration "
            "(distributed.comm.tls): see its documentation"
        )

    async def ask() -> None:
        async with asyncio.timeout(REACH):
            async with distributed.rpc(address, connection_args=secured) as scheduler:
                known = await scheduler.identity()
        if known.get("type") != "Scheduler":
            raise OSError("what answers there is not a scheduler")

    try:
        # In a thread: in notebooks this one already runs a loop.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(ask())).result()
    except Exception as error:
        why = "no scheduler answers" if isinstance(error, TimeoutError) else str(error).rstrip(".")
        raise InputError(
            f"the scheduler {address} cannot be reached: {why}; start it with `dask scheduler`, and give the "
            f"address that it prints, such as tcp://host:8786"
        ) from None
