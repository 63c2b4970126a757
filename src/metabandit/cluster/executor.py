"""The executor: jobs to the workers of a Dask cluster and their results back, and a watch over it.

Dask repeats the work of a worker that was killed, and uses workers that join late. What it would wait
for forever is noticed here: a lost scheduler, or a cluster without workers. Workers whose figures
would differ are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from functools import partial
from typing import Any

from ..errors import InputError, WorkerError, about
from ..settings import check_whole
from ..workers import compare, describe
from .joining import REACH, check_address, gone, join

# Seconds without a worker, or without an answer from the scheduler, after which the cluster is lost.
PATIENCE = 6.0
# Seconds without a sign of a worker after which people are told.
_SILENCE = 12.0
# Seconds between two looks at the cluster.
_LOOK = 1.0


class Members:
    """The workers that the scheduler knows, as of the last look."""

    def __init__(self, client: Any, announce: Callable[[str], None]) -> None:
        self.threads: dict[str, int] = {}
        self.checked: set[str] = set()
        self._client = client
        self._announce = announce
        self._processors: set[str] = set()
        self._warned = False
        # When each was last seen, by the scheduler's clock; the same, and when we noticed it.
        self._seen: dict[str, float] = {}
        self._heard: dict[str, tuple[float, float]] = {}
        self._silent: set[str] = set()

    def look(self) -> bool:
        """Ask the scheduler for its workers; return whether there are any."""
        known = self._client.sync(self._client.scheduler.identity, callback_timeout=PATIENCE / 2)
        found = known["workers"]
        self.threads = {str(name): int(worker["nthreads"]) for name, worker in found.items()}
        self._seen = {str(name): float(worker["last_seen"]) for name, worker in found.items()}
        return bool(found)

    def answer(self) -> bool:
        """Look; no answer counts as no workers."""
        with contextlib.suppress(OSError):
            return self.look()
        return False

    def check_new(self) -> None:
        """Refuse new workers whose figures would differ."""
        new = [name for name in self.threads if name not in self.checked]
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
            own = describe()
            self._processors |= {found.pop("processor"), own.pop("processor")}
            compare(own, found, who)
            self.checked.add(name)
        if len(self._processors) > 1 and not self._warned:
            self._warned = True
            kinds = ", ".join(sorted(self._processors))
            self._announce(
                f"processors differ ({kinds}): the last digits may depend on who did what; "
                f"NUMBA_CPU_NAME=generic in the environment of all processes makes that rare"
            )

    async def _describe(self, names: list[str]) -> dict[str, Any]:
        """Return what each worker has installed, or an OSError if it is gone or does not answer."""

        async def ask(name: str) -> Any:
            try:
                async with asyncio.timeout(PATIENCE / 2):
                    found = await self._client._run(describe, workers=[name], on_error="return")
                return found.get(name, OSError("gone"))
            except OSError as error:  # TimeoutError is one
                return error

        return dict(zip(names, await asyncio.gather(*map(ask, names)), strict=True))

    def listen(self) -> None:
        """Tell people once if a worker is silent: the work it was given waits for it."""
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


class Cluster(Executor):
    """The workers of a Dask scheduler, for `executor=` of learn, search, evaluate and reproduce.

    A job takes one thread: a worker runs as many at once as it has threads
    (`dask worker --nthreads`).

    Parameters
    ----------
    address
        The address of a running scheduler, such as tcp://host:8786.
    workers
        Instead of an address: how many processes to start on this machine, with one thread each, until
        the cluster is closed.
    announce
        Called with messages for people.

    Examples
    --------
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
            with about("workers"):
                workers = check_whole(workers, "the number of workers", 1, most=1024)
        else:
            check_address(address)
        self._lock = threading.Lock()
        # Our futures, and Dask's once they are sent.
        self._open: dict[Future[Any], Any] = {}
        self._unsent: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._busy: set[Future[Any]] = set()
        self._fault: WorkerError | None = None
        self._ended = threading.Event()
        self.submitted = 0
        self.done = 0
        self._client, self._local = join(address, workers)
        self.address = str(self._local.scheduler_address if address is None else address)
        self._members = Members(self._client, announce or (lambda message: None))
        try:
            self._find_workers()
        except BaseException:
            self._leave()
            raise
        threading.Thread(target=self._watch, name="metabandit-cluster", daemon=True).start()

    def _find_workers(self) -> None:
        """Wait for the first worker, and check the versions of all."""
        members = self._members
        end = time.monotonic() + REACH
        while not members.answer():
            if time.monotonic() > end:
                raise InputError(
                    f"the scheduler {self.address} has no worker; start some with `dask worker "
                    f"{self.address}`"
                )
            time.sleep(0.1)
        found = set(members.threads)
        try:
            members.check_new()
        except WorkerError as error:
            raise InputError(str(error)) from None
        hanging = sorted(found - members.checked)
        # Those that have left meanwhile do no harm.
        if hanging and members.answer() and (left := [x for x in hanging if x in members.threads]):
            raise InputError(
                f"the worker {left[0]} does not answer; what it is given would wait for it: end it, or start it again"
            )

    @property
    def workers(self) -> int:
        """The number of workers."""
        return len(self._members.threads)

    @property
    def slots(self) -> int:
        """The number of jobs that run at once: the threads of all workers."""
        return max(1, sum(self._members.threads.values()))

    def tell(self) -> str:
        """Return one line on workers and jobs."""
        plural = "" if self.workers == 1 else "s"
        return f"{self.workers} worker{plural}, {self.done} of {self.submitted} pieces"

    __str__ = tell

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; end it if it was started here."""
        if wait and not cancel_futures and self._fault is None:
            for future in list(self._open):
                with contextlib.suppress(Exception, CancelledError):
                    future.result()
        self._leave()

    def __exit__(self, kind: Any, *_: object) -> None:
        # After an error nobody waits for what is still running.
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

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Hand out a call.

        Only as many are sent as workers have threads: Dask would queue others behind long ones.
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
            self.submitted += 1
        future.add_done_callback(self._forget)
        self._send()
        return future

    def _send(self) -> None:
        """Send waiting calls to workers that are free."""
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
        """Tell Dask that nobody waits for a cancelled call."""
        if future.cancelled():
            future.set_running_or_notify_cancel()  # wakes those that wait for it
            inner = self._open.get(future)
            if self._close(future) and inner is not None:
                with contextlib.suppress(Exception):
                    inner.cancel()
                self._send()

    def _settle(self, future: Future[Any], inner: Any) -> None:
        """Pass on the outcome of a call."""
        with self._lock:
            self._busy.discard(future)
        # The worker need not wait until its result has arrived.
        self._send()
        try:
            if inner.status == "error":
                result, error = None, _explain(inner.exception())
            elif inner.status == "cancelled":
                if future.cancelled():
                    return
                result, error = None, gone(self.address, "has forgotten the work that it was given")
            else:
                # Finished; or lost with its worker, and then repeated by another.
                result, error = inner.result(), None
        except (OSError, CancelledError):
            result, error = None, gone(self.address, "was lost while it sent a result")
        except Exception as problem:
            result, error = None, _explain(problem)
        self._set(future, result, error)

    def _set(self, future: Future[Any], result: Any, error: BaseException | None) -> None:
        if not self._close(future) or not future.set_running_or_notify_cancel():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def _close(self, future: Future[Any]) -> bool:
        """Return whether it was open: whoever closes it sets its outcome."""
        with self._lock:
            if future not in self._open:
                return False
            del self._open[future]
            self._busy.discard(future)
            self.done += 1
            return True

    def _watch(self) -> None:
        """Fail the open calls once nobody will run them."""
        answered = had_workers = time.monotonic()
        fault: WorkerError | None = None
        while fault is None:
            if self._ended.wait(_LOOK):
                return
            now = time.monotonic()
            try:
                if self._members.look():
                    had_workers = now
                answered = now
                self._members.check_new()
                self._send()
                self._members.listen()
            except WorkerError as error:
                fault = error
                break
            except Exception:
                pass  # no answer
            if now - answered > PATIENCE:
                fault = gone(self.address, "does not answer any more")
            elif now - had_workers > PATIENCE and answered == now:
                fault = WorkerError(
                    f"the cluster at {self.address} has lost its last worker; start others with "
                    f"`dask worker {self.address}`"
                )
        with self._lock:
            self._fault = fault
        self._members.threads = {}
        for future in list(self._open):
            self._set(future, None, fault)


def _explain(error: BaseException) -> BaseException:
    """Return the error with a remedy, if it is about workers."""
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
