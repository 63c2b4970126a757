"""A Dask cluster as an executor: joined, watched over, and left.

Dask does the work again that a killed worker had, and gives work to a worker that joins late. What it
would wait for without end is noticed here: a scheduler that is gone, a cluster without workers; and a
worker that would give other figures is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import signal
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from .errors import InputError, WorkerError
from .settings import check_whole
from .workers import compare, describe

# In seconds: to reach the scheduler, and a first worker; between two looks; without a worker, or without
# an answer of the scheduler, until all is taken for lost; without a sign of a worker, until people hear of it.
_REACH = 8.0
_LOOK = 1.0
_PATIENCE = 6.0
_SILENCE = 12.0
# Dask's processes look after themselves up to a hundred times a second, which takes each some 3 % of a core.
_CALM = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.worker.profile.enabled": False,
}

_ADDRESS = re.compile(r"((tcp|tls)://)?(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(\d{1,5})")


def _is_address(text: str) -> bool:
    found = _ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found[4]) < 2**16


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError(
            "a cluster needs Dask, which is not installed: pip install 'metabandit[cluster]'"
        ) from None
    return distributed


def _start(distributed: Any, **settings: Any) -> Any:
    try:
        return distributed.LocalCluster(**settings)
    except Exception as error:
        raise WorkerError(
            f"workers cannot be started on this machine: {str(error).rstrip('.')}. (They import the script "
            f'that starts them: it must do so below `if __name__ == "__main__":`)'
        ) from None


def _reach(distributed: Any, address: str) -> None:
    """See that a scheduler answers: Dask's client would wait without end for what is none."""
    secured = distributed.Security().get_connection_args("client")
    if address.startswith("tls://") and not secured.get("ssl_context"):
        raise InputError(
            "a scheduler at tls:// needs the certificates of Dask's configuration "
            "(distributed.comm.tls): see its documentation"
        )

    async def ask() -> None:
        async with asyncio.timeout(_REACH):
            async with distributed.rpc(address, connection_args=secured) as scheduler:
                known = await scheduler.identity()
        if known.get("type") != "Scheduler":
            raise OSError("what answers there is not a scheduler")

    try:
        # In a thread: notebooks have a loop of their own in this one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(ask())).result()
    except Exception as error:
        why = "no scheduler answers" if isinstance(error, TimeoutError) else str(error).rstrip(".")
        raise InputError(
            f"the scheduler {address} cannot be reached: {why}; start it with `dask scheduler`, and give the "
            f"address that it prints, such as tcp://host:8786"
        ) from None


def dask_setup(worker: Any) -> None:
    """Called by Dask in a worker that `Cluster` starts: Ctrl-C is for the process that asks for work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Cluster(Executor):
    """The workers of a Dask scheduler, for `executor=` of learn, search, evaluate and reproduce.

    address: of a running scheduler, such as tcp://host:8786
    workers: or how many processes to start on this machine, with one thread each, until it is closed
    announce: called with messages

    A piece of work takes one thread: a worker does as many at once as it has threads
    (`dask worker --nthreads`).

    >>> import metabandit as mb
    >>> with mb.Cluster(workers=2) as cluster:  # doctest: +SKIP
    ...     learned = mb.learn("power-2", mb.Bernoulli(arms=2), 1000, executor=cluster)
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        if (address is None) == (workers is None):
            raise InputError(
                "a cluster is joined by its address (--cluster tcp://host:8786), or started on this "
                "machine with a number of workers (--workers 4): give one of them"
            )
        if workers is not None:
            workers = check_whole(workers, "the number of workers", 1, most=1024)
        elif not isinstance(address, str) or not _is_address(address):
            raise InputError(
                f"the address of a scheduler is such as tcp://host:8786, with the port, not {address!r}"
            )
        self._announce = announce or (lambda message: None)
        self._lock = threading.Lock()
        # What is waited for, and Dask's own name for it once it is sent.
        self._open: dict[Future[Any], Any] = {}
        self._unsent: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._busy: set[Future[Any]] = set()
        self._fault: WorkerError | None = None
        self._ended = threading.Event()
        self._threads: dict[str, int] = {}
        self._checked: set[str] = set()
        self._processors: set[str] = set()
        self._said = False
        # When workers were last heard of: by the scheduler's clock; the same, and when it was noticed here.
        self._seen: dict[str, float] = {}
        self._heard: dict[str, tuple[float, float]] = {}
        self._silent: set[str] = set()
        self.asked = 0
        self.done = 0
        self._local: Any = None
        self._client = self._join(address, workers)
        try:
            self._find_workers()
        except BaseException:
            self._leave()
            raise
        threading.Thread(target=self._watch, name="metabandit-cluster", daemon=True).start()

    # Joining and leaving -------------------------------------------------------------------------

    def _join(self, address: str | None, workers: int | None) -> Any:
        distributed = _distributed()
        import dask

        with warnings.catch_warnings(), dask.config.set(_CALM):
            # Versions are compared here, where they matter.
            warnings.simplefilter("ignore")
            if workers is not None:
                self._local = _start(
                    distributed,
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address=None,
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                    preload=[__name__],
                )
                address = self._local.scheduler_address
            self.address = str(address)
            _reach(distributed, self.address)
            try:
                return distributed.Client(address, timeout=_REACH, set_as_default=False)
            except OSError as error:
                raise self._gone(f"was lost at once ({error})") from None

    def _find_workers(self) -> None:
        """Wait for the first worker, and see that all are of the same version."""
        end = time.monotonic() + _REACH
        while not self._answers():
            if time.monotonic() > end:
                raise InputError(
                    f"the scheduler {self.address} has no worker; start some with `dask worker "
                    f"{self.address}`"
                )
            time.sleep(0.1)
        asked = set(self._threads)
        try:
            self._check_new()
        except WorkerError as error:
            raise InputError(str(error)) from None
        hanging = sorted(asked - self._checked)
        # Those that have gone meanwhile do no harm.
        if hanging and self._answers() and (left := [x for x in hanging if x in self._threads]):
            raise InputError(
                f"the worker {left[0]} does not answer; what it is given would wait for it: end it, or start it again"
            )

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            return self._look()
        return False

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self._threads)

    @property
    def slots(self) -> int:
        """Threads of all workers: pieces that are worked on at once."""
        return max(1, sum(self._threads.values()))

    def tell(self) -> str:
        """One line on workers and pieces."""
        plural = "" if self.workers == 1 else "s"
        return f"{self.workers} worker{plural}, {self.done} of {self.asked} pieces"

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; one that was started for the run ends."""
        if wait and not cancel_futures and self._fault is None:
            for future in list(self._open):
                with contextlib.suppress(Exception, CancelledError):
                    future.result()
        self._leave()

    def __exit__(self, kind: Any, *_: object) -> None:
        # After an error nobody waits for what is still being done.
        self.shutdown(wait=kind is None)

    def _leave(self) -> None:
        if self._ended.is_set():
            return
        self._ended.set()
        for future in list(self._open):
            future.cancel()
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)
        if self._local is not None:
            with contextlib.suppress(Exception):
                self._local.close(timeout=5)

    # Work ----------------------------------------------------------------------------------------

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Hand out a call.

        Only as many are sent as workers have threads: Dask would let others wait behind long ones.
        """
        future: Future[Any] = Future()
        key = f"metabandit-{uuid.uuid4().hex}"
        call = partial(self._client.submit, fn, *args, **kwargs, pure=False, key=key)
        with self._lock:
            if self._fault is not None:
                raise self._fault
            if self._ended.is_set():
                raise WorkerError("the cluster was left: it takes no more work")
            self._open[future] = None
            self._unsent.append((future, call))
            self.asked += 1
        future.add_done_callback(self._forget)
        self._send()
        return future

    def _send(self) -> None:
        """Send what waits, as far as workers have time for it."""
        while True:
            with self._lock:
                if not self._unsent or len(self._busy) >= self.slots or self._ended.is_set():
                    return
                future, call = self._unsent.popleft()
                if future not in self._open:
                    continue
                self._busy.add(future)
            try:
                inner = call()
                with self._lock:
                    if future in self._open:
                        self._open[future] = inner
                inner.add_done_callback(partial(self._settle, future))
            except Exception as error:
                self._set(future, None, WorkerError(f"the scheduler takes no work: {error}"))

    def _forget(self, future: Future[Any]) -> None:
        """Tell Dask that nobody waits for a call any more."""
        if future.cancelled():
            future.set_running_or_notify_cancel()  # wakes who waits for it
            inner = self._open.get(future)
            if self._close(future) and inner is not None:
                with contextlib.suppress(Exception):
                    inner.cancel()
                self._send()

    def _settle(self, future: Future[Any], inner: Any) -> None:
        """Pass on how a call ended."""
        with self._lock:
            self._busy.discard(future)
        # A worker need not wait until its result has come here.
        self._send()
        try:
            if inner.status == "error":
                result, error = None, self._explain(inner.exception())
            elif inner.status == "cancelled":
                if future.cancelled():
                    return
                result, error = None, self._gone("has forgotten the work that it was given")
            else:
                # Finished; or lost with its worker, and then done again by another.
                result, error = inner.result(), None
        except (OSError, CancelledError):
            result, error = None, self._gone("was lost while it sent a result")
        except Exception as problem:
            result, error = None, self._explain(problem)
        self._set(future, result, error)

    def _set(self, future: Future[Any], result: Any, error: BaseException | None) -> None:
        if not self._close(future) or not future.set_running_or_notify_cancel():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def _close(self, future: Future[Any]) -> bool:
        """Whether it was open: who closes it says how it ended."""
        with self._lock:
            if future not in self._open:
                return False
            del self._open[future]
            self._busy.discard(future)
            self.done += 1
            return True

    def _gone(self, how: str) -> WorkerError:
        return WorkerError(f"the scheduler {self.address} {how}: it ended, or cannot be reached")

    @staticmethod
    def _explain(error: BaseException) -> BaseException:
        """The error in our words, if it is about workers."""
        if isinstance(error, (InputError, WorkerError)):
            return error
        if type(error).__name__ == "KilledWorker" or isinstance(error, MemoryError):
            return WorkerError(
                "a piece of work needs more memory than workers have, or they died of it for another "
                "reason (see their logs): give them more (`dask worker --memory-limit`)"
            )
        if isinstance(error, ModuleNotFoundError) or "deserialize" in str(error).lower():
            return WorkerError(
                f"a worker cannot read what it is asked to do ({type(error).__name__}: {error}); "
                f"install the same metabandit there"
            )
        return error

    # The watch -----------------------------------------------------------------------------------

    def _look(self) -> bool:
        """See who is there; whether there is anyone."""
        known = self._client.sync(self._client.scheduler.identity, callback_timeout=_PATIENCE / 2)
        found = known["workers"]
        self._threads = {str(name): int(worker["nthreads"]) for name, worker in found.items()}
        self._seen = {str(name): float(worker["last_seen"]) for name, worker in found.items()}
        return bool(found)

    def _check_new(self) -> None:
        """Refuse workers that would give other figures."""
        new = [name for name in self._threads if name not in self._checked]
        if not new:
            return
        for name, found in self._client.sync(self._describe, new).items():
            who = f"the worker {name}"
            if isinstance(found, OSError):
                continue  # it is gone again, or hangs
            if not isinstance(found, dict):
                raise WorkerError(
                    f"{who} cannot run metabandit ({type(found).__name__}: {found}); install the "
                    f"version that this process has there"
                )
            self._processors.add(found.pop("processor"))
            own = describe()
            self._processors.add(own.pop("processor"))
            compare(own, found, who)
            self._checked.add(name)
        if len(self._processors) > 1 and not self._said:
            self._said = True
            kinds = ", ".join(sorted(self._processors))
            self._announce(
                f"processors differ ({kinds}): the last digits may depend on who did what; "
                f"NUMBA_CPU_NAME=generic in the environment of all processes makes that rare"
            )

    async def _describe(self, names: list[str]) -> dict[str, Any]:
        """What each worker has; an error of those that have gone, or do not answer."""

        async def ask(name: str) -> Any:
            try:
                async with asyncio.timeout(_PATIENCE / 2):
                    found = await self._client._run(describe, workers=[name], on_error="return")
                return found.get(name, OSError("gone"))
            except OSError as error:  # TimeoutError is one
                return error

        return dict(zip(names, await asyncio.gather(*map(ask, names)), strict=True))

    def _listen(self) -> None:
        """Say once if a worker has not been heard of for a while: what it was given waits for it."""
        now = time.monotonic()
        for name, moment in self._seen.items():
            before = self._heard.get(name)
            if before is None or before[0] != moment:
                self._heard[name] = moment, now
                self._silent.discard(name)
            elif now - before[1] > _SILENCE and name not in self._silent:
                self._silent.add(name)
                self._announce(
                    f"the worker {name} has not been heard of for {_SILENCE:.0f} s: end it if it hangs, and others do "
                    f"its work"
                )

    def _watch(self) -> None:
        """Fail what is waited for once nobody will do it."""
        answered = had_workers = time.monotonic()
        while not self._ended.wait(_LOOK):
            now = time.monotonic()
            try:
                if self._look():
                    had_workers = now
                answered = now
                self._check_new()
                self._send()
                self._listen()
            except WorkerError as error:
                self._fail(error)
                return
            except Exception:
                pass  # no answer
            if now - answered > _PATIENCE:
                self._fail(self._gone("does not answer any more"))
                return
            if now - had_workers > _PATIENCE and answered == now:
                self._fail(
                    WorkerError(
                        f"the cluster at {self.address} has lost its last worker; start others with "
                        f"`dask worker {self.address}`"
                    )
                )
                return

    def _fail(self, fault: WorkerError) -> None:
        with self._lock:
            self._fault = fault
        self._threads = {}
        for future in list(self._open):
            self._set(future, None, fault)
