"""The executor: jobs to the workers of a Dask cluster and their results back, and a watch over it.

Dask repeats the work of a worker that was killed, and uses workers that join late. What it would wait
for forever is noticed here: a lost scheduler, or a cluster without workers. Workers whose figures
would differ are refused.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from functools import partial
from typing import Any

from ..errors import InputError, WorkerError
from ..settings import check_whole
from .joining import REACH, check_address, gone, join
from .members import PATIENCE, Members

# Seconds between two looks at the cluster.
_LOOK = 1.0


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
