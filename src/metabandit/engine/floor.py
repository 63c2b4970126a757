"""The floor under every regret: the Bayes optimum or a lower bound, known now or computed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from ..bayes.bounds import Bound, bound_seconds, has_bound, kept_bound
from ..bayes.optimum import Optimum, has_optimum, optimal, solved_feedback
from ..errors import InputError
from ..feedback import Feedback
from ..memory import duration, free_memory
from ..policies import Progress
from ..priors import Prior
from ..workers import Job, Pending, Workers
from .costs import CORES, optimum_memory, optimum_seconds
from .limits import TimeLimit

# A comparison shows the floor where it takes less than about a second, a search where it takes a minute.
_QUICK = 1.0
_PATIENCE = 60.0
# More than any optimum takes, which is infinite where there is none.
_SOLVABLE = 1e300
# The share of a time limit that the floor may take.
_SHARE = 0.15
# Seconds after which a search says how far the floor is.
_SILENCE = 5.0


@dataclass
class Floor:
    """The least possible regret: known, or still being computed by a worker."""

    known: Optimum | Bound | None
    pending: Pending | None = None

    def now(self) -> Optimum | Bound | None:
        """The floor if it is there already."""
        if self.pending is not None and not self.pending.done():
            return None
        return self.wait()

    def wait(self) -> Optimum | Bound | None:
        """The floor as soon as it is there; None if no memory is large enough."""
        if self.pending is not None:
            pending, self.pending = self.pending, None
            with suppress(InputError):
                self.known = pending.result()
        return self.known


def solving_seconds(prior: Prior, horizon: int, feedback: Feedback) -> float:
    """About how long backward induction takes for a floor; infinite if there is none (see `optimal`)."""
    return optimum_seconds(prior, horizon, solved_feedback(prior, horizon, feedback))


def _bound(
    prior: Prior,
    horizon: int,
    feedback: Feedback,
    effort: float,
    *,
    threads: int = 1,
    compute: bool = True,
    progress: Progress | None = None,
) -> Bound | None:
    """The bound for immediate feedback, which holds for any."""
    found = kept_bound(
        prior, horizon, effort=effort, threads=threads, compute=compute, progress=progress
    )
    return None if found is None else replace(found, feedback=str(feedback))


def _telling(announce: Callable[[str], None], what: str) -> Progress:
    """A progress that says every few seconds how far it is."""
    last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > _SILENCE:
            last = time.monotonic()
            announce(f"computing {what}: {100 * done // max(total, 1)} % ...")

    return progress


def floor_of_comparison(
    prior: Prior,
    horizon: int,
    wanted: bool | None,
    *,
    feedback: Feedback,
    effort: float = 1.0,
    threads: int,
    progress: Progress | None,
) -> Optimum | Bound | None:
    """The least possible regret, if it is wanted; None asks for it where it is quick, or known."""
    seconds = solving_seconds(prior, horizon, feedback)
    if wanted or (wanted is None and seconds <= _QUICK):
        seen = progress if wanted else None
        return optimal(
            prior, horizon, feedback=feedback, effort=effort, threads=threads, progress=seen
        )
    if wanted is None and has_bound(prior) and not has_optimum(prior):
        return _bound(prior, horizon, feedback, effort, compute=False)
    return None


def floor_of_search(
    prior: Prior,
    horizon: int,
    workers: Workers,
    announce: Callable[[str], None],
    *,
    wanted: bool,
    feedback: Feedback,
    effort: float,
    limit: TimeLimit,
) -> Floor | None:
    """The least possible regret: the optimum where it takes a minute at most, else a bound.

    With a time limit only what takes a small share of it; however long it takes if it is `wanted`.
    """
    seconds, what = solving_seconds(prior, horizon, feedback), "the Bayes-optimal floor"
    find: Callable[..., Optimum | Bound | None] = partial(
        optimal, prior, horizon, feedback=feedback
    )
    fits = not has_bound(prior) or optimum_memory(prior, horizon, feedback) <= free_memory()
    if not fits or seconds > (_SOLVABLE if wanted else _PATIENCE):
        if not has_bound(prior):
            return None
        if known := _bound(prior, horizon, feedback, effort, compute=False):
            return Floor(known)
        seconds, what = bound_seconds(prior, horizon, effort) / CORES, "a lower bound on regret"
        find = partial(_bound, prior, horizon, feedback, effort)
        if not wanted and seconds > max(1.0, effort) * _PATIENCE:
            announce(
                f"no floor: {what} for {horizon:,} plays takes about {duration(seconds)}; once "
                f"metabandit optimal has computed it, it is shown"
            )
            return None
    if not wanted and seconds > _SHARE * limit.seconds:
        announce(
            f"no floor: {what} takes about {duration(seconds)}, too much of the time limit; "
            f"`metabandit optimal` computes it"
        )
        return None
    if seconds > 2.0:
        if workers.executor is not None:
            # A worker does it meanwhile: nothing waits for it before the end.
            tool = partial(partial, find, threads=1)
            return Floor(None, workers.submit(tool, "__call__", Job((), seconds)))
        announce(f"computing {what} for {horizon} plays, up to {seconds:.0f} s ...")
    try:
        told = _telling(announce, what)
        return Floor(find(threads=workers.threads, progress=told))
    except InputError:  # more memory than there is
        if wanted:
            raise
        return None
