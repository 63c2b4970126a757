"""A real Dask scheduler and real workers on this machine, each a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


def until(holds, what, seconds=60.0):
    """Wait for something that must happen."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)  # looking takes time, too
    return found


def wait_for(path):
    """A piece of work that lasts until a file is there."""
    while not path.exists():
        time.sleep(0.02)


def what_it_is():
    """A function that asks a worker what any run asks it first; made here, since not all workers find the tests."""

    def describe():
        from metabandit import workers

        workers.describe()

    return describe


def figures(value):
    """Everything but times."""
    if isinstance(value, dict):
        return {
            key: figures(item)
            for key, item in value.items()
            if "seconds" not in key and key not in ("threads", "played")
        }
    return [figures(item) for item in value] if isinstance(value, list) else value


def exports():
    """The environment that the guide proposes for schedulers and workers."""
    guide = (Path(__file__).parent.parent / "docs" / "cluster.md").read_text("utf-8")
    return dict(re.findall(r"^    export (\w+)=(\S+)$", guide, re.MULTILINE))


class Site:
    """A scheduler and its workers, without anyone to start them again."""

    def __init__(self, folder: Path, workers: int = 0, threads: int = 1) -> None:
        from distributed import Client

        self.folder = folder
        self.threads = threads
        self.workers: list[subprocess.Popen] = []
        self.started = 0
        log = folder / "scheduler.log"
        self.scheduler = self._start(log, "dask_scheduler", "--port", "0", "--host", "127.0.0.1")
        pattern = re.compile(r"Scheduler at:\s+(tcp://\S+)")
        found = until(lambda: pattern.search(log.read_text()), "the scheduler")
        self.address = found.group(1)
        self.client = Client(self.address, set_as_default=False)
        self.before: dict[str, int] = {}
        self.have(workers)

    def _start(self, log, module, *options, path=None):
        path = path or Path(__file__).parent.parent
        # The package that the tests import may itself come from PYTHONPATH.
        paths = os.pathsep.join(filter(None, (str(path), os.environ.get("PYTHONPATH"))))
        env = {**os.environ, **exports(), "PYTHONPATH": paths}
        with log.open("w") as output:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *options, "--no-dashboard"],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=self.folder,
            )

    def add(self, workers=1, *, path=None):
        """Start workers, which find the modules on `path` first; the tests by default."""
        if not workers:
            return
        known = self.client.nthreads()
        wanted = len(known) + workers
        for _ in range(workers):
            self.started += 1
            log = self.folder / f"worker{self.started}.log"
            options = (self.address, "--nthreads", str(self.threads), "--no-nanny")
            self.workers.append(self._start(log, "dask_worker", *options, path=path))
        until(lambda: len(self.client.nthreads()) == wanted, "the workers")
        # A run does not wait long for what they say of themselves, and on a busy machine imports take longer.
        self.client.run(
            what_it_is(), workers=[name for name in self.client.nthreads() if name not in known]
        )

    def have(self, workers):
        """Have so many, all of them of this version, and count pieces from now on."""
        alive = [worker for worker in self.workers if worker.poll() is None]
        for worker in alive[workers:]:
            worker.kill()
        self.workers = alive[:workers]
        until(lambda: len(self.client.nthreads()) == len(self.workers), "what is left")
        self.add(workers - len(self.workers))
        self.before = self._done()

    def _done(self):
        return self.client.run(lambda dask_worker: dask_worker.state.executed_count)

    def least(self):
        """Pieces that were done by the worker that did fewest."""
        done = self._done()
        return min((count - self.before.get(name, 0) for name, count in done.items()), default=0)

    def clients(self):
        """How many have joined, this one included."""
        return self.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.clients) - 1)

    def close(self):
        with suppress(Exception):
            self.client.close(timeout=1)
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
