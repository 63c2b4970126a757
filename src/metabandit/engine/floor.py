"""The floor under every regret: what the Bayes-optimal policy has, known now or computed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from ..bayes.optimum import Optimum, has_optimum, optimal
from ..errors import InputError
from ..policies import Progress
from ..priors import Prior
from ..workers import Job, Pending, Workers
from .costs import optimum_seconds

# A comparison shows the floor where it takes less than about a second, a search where it takes a minute.
_QUICK = 1.0
_PATIENCE = 60.0


class Floor:
    """What the Bayes-optimal policy has: known, or still being computed by a worker."""

    def __init__(self, known: Optimum | None, pending: Pending | None = None) -> None:
        self.known = known
        self.pending = pending

    def now(self) -> Optimum | None:
        """The optimum if it is there already."""
        if self.pending is not None and not self.pending.done():
            return None
        return self.wait()

    def wait(self) -> Optimum | None:
        """The optimum as soon as it is there; None if no memory is large enough."""
        if self.pending is not None:
            pending, self.pending = self.pending, None
            with suppress(InputError):
                self.known = pending.result()
        return self.known


class _Induction:
    """Backward induction as a job for another process."""

    def __init__(self, prior: Prior, horizon: int) -> None:
        self.prior = prior
        self.horizon = horizon

    def solve(self) -> Optimum:
        return optimal(self.prior, self.horizon, threads=1)


def floor_of_comparison(
    prior: Prior, horizon: int, wanted: bool | None, *, threads: int, progress: Progress | None
) -> Optimum | None:
    """What the Bayes-optimal policy has, if it is wanted; None asks for it where it is quick."""
    quick = has_optimum(prior) and optimum_seconds(prior, horizon) <= _QUICK
    if wanted or (wanted is None and quick):
        return optimal(prior, horizon, threads=threads, progress=progress if wanted else None)
    return None


def floor_of_search(
    prior: Prior, horizon: int, workers: Workers, announce: Callable[[str], None]
) -> Floor | None:
    """The Bayes-optimal regret, where it takes a minute at most."""
    if not has_optimum(prior):
        return None
    seconds = optimum_seconds(prior, horizon)
    if seconds > _PATIENCE:
        return None
    if seconds > 2.0:
        if workers.executor is not None:
            # A worker does it meanwhile: nothing waits for it before the end.
            tool = partial(_Induction, prior, horizon)
            return Floor(None, workers.submit(tool, "solve", Job((), seconds)))
        announce(
            f"computing the Bayes-optimal floor for {horizon} plays, up to {seconds:.0f} s ..."
        )
    try:
        return Floor(optimal(prior, horizon, threads=workers.threads))
    except InputError:  # more memory than there is
        return None
