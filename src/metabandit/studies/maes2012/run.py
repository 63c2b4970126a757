"""`reproduce`: do the steps of the paper's experiments, each once, and keep their records."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from ...errors import InputError, nearest
from ...progress import Told, shares, with_progress
from ...settings import check_whole
from ...workers import make_workers
from ..records import Records
from ..steps import RECORDS, StepRunner, make_folder, run_steps
from .plan import PARTS, SCALES, steps


def default_folder(scale: str) -> Path:
    """Where a reproduction goes if nobody says."""
    return Path(f"reproduction-{scale}")


@with_progress("reproducing", shares)
def reproduce(
    part: str = "all",
    *,
    scale: str = "quick",
    out: str | Path | None = None,
    seed: int = 0,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Told = None,
    announce: Callable[[str], None] | None = None,
) -> Records:
    """Reproduce the paper's experiments, beside today's policies and our own.

    Parameters
    ----------
    part : str
        ``table1``, ``table2``, ``classes`` (formulas), ``curves`` (learning), ``times`` or ``all``.
    scale : str
        ``quick`` (minutes) or ``paper`` (its budgets; about two hours on two cores).
    out : path, optional
        A folder for the records, ``reproduction-SCALE`` by default. Steps that have a record there
        are not done again, so a run that was stopped goes on where it was.
    seed : int
        Seed of everything random.
    threads : int, optional
        Threads to use; all cores by default. Results do not depend on it.
    executor : Executor, optional
        Hands parts of the work to other processes (docs/cluster.md); changes no result.
    progress : callable, optional
        Called with the share that is done and with what is going on.
    announce : callable, optional
        Called with messages.

    Returns
    -------
    Records
        The result of each step; `load_report` makes a report from their folder.

    Examples
    --------
    >>> import metabandit as mb
    >>> records = mb.reproduce("curves", out="curves")  # doctest: +SKIP
    >>> report = mb.load_report("curves")  # doctest: +SKIP
    """
    if part not in PARTS:
        raise InputError(f"there is no part {part!r} to reproduce; {nearest(str(part), PARTS)}")
    if scale not in SCALES:
        raise InputError(f"unknown scale {scale!r}; {nearest(str(scale), SCALES)}")
    seed = check_whole(seed, "the seed", 0, most=2**62)
    workers = make_workers(threads, executor)
    folder = default_folder(scale) if out is None else Path(out)
    make_folder(folder)
    records = Records.open(folder / RECORDS, scale, seed)
    todo = steps(part, SCALES[scale], seed)

    def make_runner() -> type[StepRunner]:
        # What is heavy is loaded only now that everything is checked.
        from .work import Runner

        return Runner

    return run_steps(todo, records, folder, make_runner, workers, progress, announce)
