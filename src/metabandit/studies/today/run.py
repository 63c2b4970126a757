"""`reproduce`: do the steps of the study, each once, and keep their records."""

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
from .plan import SCALES, steps


class TodayRecords(Records):
    """The records of the study, by the id of their step."""

    format = "metabandit study today"


def default_folder(scale: str) -> Path:
    """Where the study goes if nobody says."""
    return Path(f"today-{scale}")


@with_progress("reproducing", shares)
def reproduce(
    *,
    scale: str = "quick",
    out: str | Path | None = None,
    seed: int = 0,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Told = None,
    announce: Callable[[str], None] | None = None,
) -> Records:
    """Play the settings that policies of today were published with, beside a learned policy and the floor.

    Parameters
    ----------
    scale : str
        ``quick`` (a minute; short horizons, rough figures) or ``paper`` (hours on two cores).
    out : path, optional
        A folder for the records, ``today-SCALE`` by default. Steps that have a record there are not
        done again.
    seed : int
        Seed of everything random.
    threads, executor, progress, announce
        As for the paper's experiments.

    Returns
    -------
    Records
        The result of each step; `load_report` makes a report from their folder.
    """
    if scale not in SCALES:
        raise InputError(f"unknown scale {scale!r}; {nearest(str(scale), SCALES)}")
    seed = check_whole(seed, "the seed", 0, most=2**62)
    workers = make_workers(threads, executor)
    folder = default_folder(scale) if out is None else Path(out)
    make_folder(folder)
    records = TodayRecords.open(folder / RECORDS, scale, seed)

    def make_runner() -> type[StepRunner]:
        from .work import TodayRunner

        return TodayRunner

    todo = steps(SCALES[scale], seed)
    return run_steps(todo, records, folder, make_runner, workers, progress, announce)
