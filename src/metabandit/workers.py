"""Who does the work: the threads of this process or, through an executor, other processes.

Work for other processes is split into jobs. A job names a tool (a class with its settings), one of
its methods, and the arguments: programs and seeds, not samples. A process makes the tool once and
keeps it, with everything compiled for it. A job's result depends on nothing else, so results are the
same wherever and in whatever order jobs run.
"""

from __future__ import annotations

import hashlib
import math
import platform
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from .errors import InputError, WorkerError
from .settings import check_threads

# Seconds per job. Jobs are only as short as it takes to give every slot about _EACH of them.
_LONGEST = 2.0
_SHORTEST = 0.1
_EACH = 3
# Work that takes fewer seconds in all stays in this process.
_WORTH = 0.1
# Jobs per slot that are handed out ahead of the one that is waited for.
_AHEAD = 8
# The most bytes that go with every job, and the most bytes of policy tables that are sent at all.
_MOST_PACKED = 8_000_000
_MOST_SENT = 1_000_000
# Packages on which figures depend to the last bit.
_PACKAGES = ("numpy", "scipy", "numba")


@lru_cache(maxsize=1)
def stamp() -> dict[str, str]:
    """Return what must be the same in all processes for the figures to be the same."""
    from importlib.metadata import version

    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        if "__pycache__" in path.parts:
            continue  # code that kernels/fused.py wrote: it changes no figure
        digest.update(f"{path.relative_to(folder).as_posix()}\n".encode() + path.read_bytes())
    return {
        "metabandit": f"{version('metabandit')} ({digest.hexdigest()[:8]})",
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in _PACKAGES},
    }


def describe() -> dict[str, str]:
    """Return the stamp of this process and the kind of processor it compiles for."""
    import llvmlite.binding as llvm
    from numba.core import config

    chosen = getattr(config, "CPU_NAME", None)
    return {**stamp(), "processor": str(chosen or llvm.get_host_cpu_name())}


def compare(wanted: dict[str, str], found: dict[str, str], who: str) -> None:
    """Refuse a process whose figures would differ."""
    apart = [
        f"{name} {found.get(name, 'none')} instead of {version}"
        for name, version in wanted.items()
        if found.get(name) != version
    ]
    if apart:
        raise WorkerError(
            f"{who} has {', '.join(apart)}; figures are the same only with the same versions "
            f"everywhere: install what this process has there, and start the worker again"
        )


def _pack(value: Any, what: str) -> bytes:
    """Pickle a value; if cloudpickle is installed, functions of a script or notebook, too."""
    try:
        from cloudpickle import dumps
    except ImportError:
        from pickle import dumps
    try:
        packed: bytes = dumps(value)
    except Exception as error:
        raise InputError(
            f"{what} cannot be sent to other processes: {error}; define its functions and classes in a "
            f"module that workers can import, or leave the executor out"
        ) from None
    return packed


def _unpack(packed: bytes) -> Any:
    from pickle import loads

    try:
        return loads(packed)
    except (ImportError, AttributeError) as error:
        raise WorkerError(
            f"a worker on {platform.node()} cannot read what it is asked to do: {error}; the modules of "
            f"your own policies and priors must be installed there, too"
        ) from None


@lru_cache(maxsize=4)
def _make(tool: bytes) -> Any:
    return _unpack(tool)()


def perform(
    wanted: dict[str, str], tool: bytes, method: str, arguments: bytes
) -> tuple[Any, float]:
    """Run a job in a worker process; return its result and the seconds it took."""
    compare(wanted, stamp(), f"a worker on {platform.node()}")
    made, given = _make(tool), _unpack(arguments)
    begun = time.perf_counter()
    result = getattr(made, method)(*given)
    return result, time.perf_counter() - begun


@dataclass(frozen=True)
class Job:
    """Arguments for a method, and an estimate of the seconds one core needs."""

    arguments: tuple[Any, ...]
    seconds: float = 1.0


@dataclass
class Workers:
    """The threads of this process, and the executor that reaches other processes, if any."""

    threads: int
    executor: Executor | None = None
    # Per method: the seconds that jobs took, and their estimates.
    _pace: dict[str, tuple[float, float]] = field(default_factory=dict)
    _packed: deque[tuple[Any, bytes]] = field(default_factory=lambda: deque(maxlen=4))

    @property
    def slots(self) -> int:
        """The number of jobs that run at once."""
        executor = self.executor
        if executor is None:
            return self.threads
        for name in ("slots", "num_workers", "_max_workers"):
            known = getattr(executor, name, None)
            if isinstance(known, int) and known > 0:
                return known
        client = getattr(executor, "_client", None)
        if client is not None:  # Dask's own executor
            return max(1, sum(int(number) for number in client.nthreads().values()))
        return 8

    def able_to_send(self, size: int) -> Workers:
        """Return workers for policies with tables of `size` bytes: local if that is too much to send."""
        return self if size <= _MOST_SENT else Workers(self.threads)

    def worth(self, seconds: float, method: str) -> bool:
        """Whether work of this many core seconds is worth handing out."""
        return self.executor is not None and self._likely(seconds, method) > _WORTH

    def knows(self, method: str) -> bool:
        """Whether the method has run before, so that its time is known."""
        return method in self._pace

    def _likely(self, seconds: float, method: str) -> float:
        """Correct an estimate by what the method took so far."""
        taken, thought = self._pace.get(method, (1.0, 1.0))
        return seconds * taken / max(thought, 1e-9)

    def count(self, seconds: float, method: str) -> int:
        """The number of jobs to split work of this many core seconds into."""
        likely = self._likely(seconds, method)
        size = min(max(likely / (_EACH * self.slots), _SHORTEST), _LONGEST)
        return max(1, math.ceil(likely / size))

    def cut(self, items: int, seconds: float, method: str) -> list[tuple[int, int]]:
        """Split 0, ..., items - 1 into ranges, one per job."""
        return split(items, self.count(seconds, method))

    def submit(self, tool: Callable[[], Any], method: str, job: Job) -> Pending:
        """Hand out a job.

        `tool` makes the object that has the method; a process makes it once per `tool` object.
        """
        packed, arguments = self._pack_tool(tool), _pack(job.arguments, "work")
        assert self.executor is not None
        try:
            with interrupts_later():
                future = self.executor.submit(perform, stamp(), packed, method, arguments)
        except WorkerError:
            raise
        except RuntimeError as error:  # BrokenExecutor is one
            raise WorkerError(f"the executor takes no more work: {error}") from error
        return Pending(self, method, job, future)

    def run(self, tool: Callable[[], Any], method: str, jobs: Iterable[Job]) -> Iterator[Any]:
        """Hand out jobs, taken from the iterable as others finish; yield results in their order."""
        pending: deque[Pending] = deque()
        waiting = iter(jobs)
        try:
            while True:
                # Not all at once: each carries its pickled tool.
                for job in islice(waiting, max(_AHEAD * self.slots - len(pending), 1)):
                    pending.append(self.submit(tool, method, job))
                if not pending:
                    return
                yield pending[0].result()
                # Only now, so that an unfinished job is cancelled in the end.
                pending.popleft()
        finally:
            for item in pending:
                item.cancel()

    def _pack_tool(self, tool: Callable[[], Any]) -> bytes:
        for known, packed in self._packed:
            if known is tool:
                return packed
        packed = _pack(tool, "a policy, or the prior,")
        if len(packed) > _MOST_PACKED:
            raise InputError(
                f"policies and prior are {len(packed) / 1e6:.1f} MB, which goes with every piece of work: at "
                f"most {_MOST_PACKED / 1e6:g} MB can be sent. Use a table with fewer problems, or leave the "
                f"executor out"
            )
        self._packed.append((tool, packed))
        return packed

    def record(self, method: str, job: Job, seconds: float) -> None:
        """Note what a job took; it decides the size of the next ones."""
        taken, thought = self._pace.get(method, (0.0, 0.0))
        # Older jobs count less and less.
        self._pace[method] = 0.9 * taken + seconds, 0.9 * thought + job.seconds


@dataclass
class Pending:
    """A job that was handed out."""

    workers: Workers
    method: str
    job: Job
    future: Future[tuple[Any, float]]

    def done(self) -> bool:
        """Whether there is a result, or an error."""
        return self.future.done()

    def cancel(self) -> None:
        """Cancel the job: nobody waits for it any more."""
        with interrupts_later():
            self.future.cancel()

    def result(self) -> Any:
        """Wait for the result."""
        try:
            result, seconds = self.future.result()
        except BrokenExecutor as error:
            raise WorkerError(
                f"a worker process died, and the executor cannot replace it: {error}"
            ) from error
        except CancelledError as error:
            raise WorkerError("work was cancelled: the executor was shut down") from error
        self.workers.record(self.method, self.job, seconds)
        return result


def split(items: int, parts: int) -> list[tuple[int, int]]:
    """Split 0, ..., items - 1 into at most `parts` ranges of about the same length."""
    parts = max(1, min(parts, items))
    ends = [items * part // parts for part in range(parts + 1)]
    return list(pairwise(ends))


def make_workers(threads: object, executor: object = None) -> Workers:
    """Check the number of threads and the executor."""
    if executor is not None and not isinstance(executor, Executor):
        hint = ""
        if hasattr(executor, "get_executor"):
            hint = "; of a Dask client, give client.get_executor()"
        raise InputError(
            f"the executor must be a concurrent.futures.Executor, such as ProcessPoolExecutor(), not "
            f"{type(executor).__name__}{hint}"
        )
    return Workers(check_threads(threads), executor)


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
