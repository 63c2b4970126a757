"""`reproduce`: do the steps of a study, each once, and keep their records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from ..errors import InputError, nearest
from ..progress import Told, shares, with_progress
from ..settings import check_whole
from ..workers import make_workers
from . import maes2012, today
from .records import Records
from .steps import RECORDS, make_folder, run_steps

__all__ = ["Records", "default_folder", "reproduce"]

# The part that is a study of its own; all others are parts of the paper.
TODAY = "today"


def default_folder(part: str, scale: str) -> Path:
    """Where a study goes if nobody says."""
    return Path(f"{TODAY if part == TODAY else 'reproduction'}-{scale}")


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
    """Reproduce published experiments: the paper's, or those of today's policies.

    Parameters
    ----------
    part : str
        ``table1``, ``table2``, ``classes`` (formulas), ``curves`` (learning), ``times`` or ``all`` of
        the paper's experiments; or ``today``, today's policies on the problems that they were published
        with, beside a learned policy and the floor.
    scale : str
        ``quick`` (minutes, rough figures) or ``paper`` (full budgets; hours on two cores).
    out : path, optional
        A folder for the records, ``reproduction-SCALE`` or ``today-SCALE`` by default. Steps that have
        a record there are not done again, so a run that was stopped goes on where it was.
    seed : int
        Seed of everything random.
    threads : int, optional
        Threads to use; all cores by default. Results do not depend on it.
    executor : Executor, optional
        Other processes that share the work (docs/cluster.md); the result is the same.
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
    parts = (*maes2012.PARTS, TODAY)
    if part not in parts:
        raise InputError(f"there is no part {part!r} to reproduce; {nearest(str(part), parts)}")
    study = TODAY if part == TODAY else "maes2012"
    scales: Mapping[str, Any] = today.SCALES if part == TODAY else maes2012.SCALES
    if scale not in scales:
        raise InputError(f"unknown scale {scale!r}; {nearest(str(scale), scales)}")
    seed = check_whole(seed, "the seed", 0, most=2**62)
    workers = make_workers(threads, executor)
    folder = default_folder(part, scale) if out is None else Path(out)
    make_folder(folder)
    records = Records.open(folder / RECORDS, scale, seed, study)
    if part == TODAY:
        todo = today.steps(scales[scale], seed)
    else:
        todo = maes2012.steps(part, scales[scale], seed)
    return run_steps(todo, records, folder, workers, progress, announce)
