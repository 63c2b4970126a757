"""`metabandit compile`: compile what people run first, so that no first result waits for it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from ..errors import WorkerError
from .display import progress_bar, say

# Clocks of long horizons, on which `learn` and `search` play, in place of a command: measuring what
# they find takes longer than compiling.
_COARSE_CLOCK = "coarse clock"
# Commands as people give them, as small as can be, that need different kernels: those that take
# longest come first. What two of them need is compiled by one.
_FIRST = (
    "evaluate greedy --arms 3 --horizon 20 --method monte-carlo --episodes 1 --no-floor",
    "optimal --arms 4 --horizon 20 --floor-effort 0.01",
    "evaluate greedy --prior bernoulli:beta=100000 --method monte-carlo --episodes 1 --no-floor",
    "search --horizon 4 --length 3",
    "evaluate ids kg ttts --arms 4 --horizon 5 --episodes 1 --no-floor",
    _COARSE_CLOCK,
    "evaluate greedy thompson gittins --horizon 10 --batch 2",
    "evaluate greedy thompson gittins whittle --arms 3 --horizon 5",
    "advise --arms 4 --horizon 500 --time-limit 1",
    "optimal --prior gaussian --arms 4 --horizon 20 --floor-effort 0.01",
)


def _start(cache: str) -> None:
    """Prepare this process, which ends when the first one does, and whose results nobody keeps."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["XDG_CACHE_HOME"] = cache
    # Looking for garbage takes a twentieth of the time.
    gc.set_threshold(100_000)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)


def _run(words: str) -> str:
    """Run one command; what went wrong, if anything did."""
    from . import app

    try:
        if words == _COARSE_CLOCK:
            _play_coarsely()
        elif code := app(words.split(), standalone_mode=False):
            return f"exit code {code}"
    except (Exception, SystemExit) as error:
        return str(error) or type(error).__name__
    return ""


def _play_coarsely() -> None:
    from ..engine.simulated import Sampling, Simulation
    from ..policies import policy
    from ..priors import Bernoulli

    prior, horizon = Bernoulli(arms=4), 10
    plan = policy("ucb1").plan(prior, horizon)
    Simulation(prior, horizon, Sampling(growth=0.1), [plan]).chunk(0, 1)


def command() -> None:
    """Compile what the commands need for this machine; once after every installation."""
    begun = time.monotonic()
    with progress_bar("compiling") as bar, tempfile.TemporaryDirectory() as cache:
        # Each process runs many: it loads modules, and compiles what kernels share, once.
        pool = ProcessPoolExecutor(
            os.cpu_count(), multiprocessing.get_context("spawn"), _start, (cache,)
        )
        running = {pool.submit(_run, words): words for words in _FIRST}
        try:
            for done, future in enumerate(as_completed(running), 1):
                if told := future.result():
                    words = running[future]
                    raise WorkerError(
                        f"`metabandit {words}` failed, so not all is compiled: {told}"
                    )
                bar(done, len(_FIRST))
        except BrokenProcessPool:
            raise WorkerError(
                "a process that compiled was ended, so not all is compiled; the machine may have too "
                "little memory"
            ) from None
        finally:
            # After an error or Ctrl-C nobody waits for what is running.
            if pending := any(not future.done() for future in running):
                for process in multiprocessing.active_children():
                    process.kill()
            pool.shutdown(wait=not pending, cancel_futures=True)
    say(f"compiled for this machine, in {time.monotonic() - begun:.0f} s; later runs need not wait")
