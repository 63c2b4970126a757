"""`metabandit compile`: compile what people run first, so that no first result waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from ..errors import WorkerError
from .display import progress_bar, say

# Commands as people give them, as small as can be, that need different kernels: those that take
# longest come first. What two of them need is compiled by one.
_FIRST = (
    "evaluate greedy --arms 3 --horizon 20 --method monte-carlo --episodes 1 --no-floor",
    "optimal --arms 4 --horizon 20 --floor-effort 0.01",
    "search --horizon 4 --length 3",
    "evaluate greedy --prior bernoulli:beta=100000 --method monte-carlo --episodes 1 --no-floor",
    "evaluate ids kg ttts --arms 4 --horizon 5 --episodes 1 --no-floor",
    "evaluate greedy thompson gittins --horizon 10 --batch 2",
    "evaluate greedy thompson gittins whittle --arms 3 --horizon 5",
    "advise --arms 4 --horizon 500 --time-limit 1",
    "learn --arms 4 --horizon 10000 --effort 0.001 --floor-effort 0.01 --out learned.json",
    "optimal --prior gaussian --arms 4 --horizon 20 --floor-effort 0.01",
)


def _run(words: str, cache: str) -> None:
    """Run one command in a process of its own, whose results nobody keeps."""
    done = subprocess.run(
        [sys.executable, "-m", "metabandit", *words.split()],
        env={**os.environ, "XDG_CACHE_HOME": cache},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        told = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise WorkerError(f"`metabandit {words}` failed, so not all is compiled: {told}")


def command() -> None:
    """Compile what the commands need for this machine; once after every installation."""
    begun = time.monotonic()
    with (
        progress_bar("compiling") as bar,
        tempfile.TemporaryDirectory() as cache,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        running = [pool.submit(_run, words, cache) for words in _FIRST]
        try:
            for done, future in enumerate(as_completed(running), 1):
                future.result()
                bar(done, len(_FIRST))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    say(f"compiled for this machine, in {time.monotonic() - begun:.0f} s; later runs need not wait")
