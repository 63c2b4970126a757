"""`reproduce`: do the steps of the paper's experiments, each once, and keep their records."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, nearest
from ...progress import Told, shares, with_progress
from ...settings import check_whole
from ...workers import Job, Pending, make_workers
from .plan import PARTS, SCALES, Step, steps
from .records import Records

if TYPE_CHECKING:
    from .work import Runner

RECORDS = "records.jsonl"
# A folder for what is half done.
UNFINISHED = ".unfinished"
# Steps that read all formula classes, and those that take longer (seconds on two cores), are done here
# with the help of other processes; all others are handed out whole.
_SHARED = ("classes", "search", "better", "sooner")
_LONGEST = 60.0


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
    _make(folder)
    records = Records.open(folder / RECORDS, scale, seed)
    todo = steps(part, SCALES[scale], seed)
    try:
        for step in todo:
            if step.id in records and records[step.id]["settings"] != step.settings:
                raise InputError(
                    f"{folder / RECORDS} was made by another version of metabandit: {step.id} has other "
                    f"settings there; choose another folder (--out)"
                )
        unfinished = folder / UNFINISHED
        unfinished.mkdir(exist_ok=True)
        # What is heavy is loaded only now that everything is checked.
        from .work import Runner

        runner = Runner(records, unfinished, workers, announce or (lambda message: None))
        _do(todo, runner, progress or (lambda share, doing: None))
        shutil.rmtree(unfinished, ignore_errors=True)
    finally:
        records.close()
    records.sort([step.id for step in todo])
    return records


def _do(todo: Sequence[Step], runner: Runner, progress: Callable[[float, str], None]) -> None:
    """Do the steps that have no record, each after those that it needs, here or in other processes."""
    from .work import remote_runner

    records, workers = runner.records, runner.workers
    remote = partial(remote_runner, records.scale, records.seed)
    pending: dict[str, tuple[Step, Pending]] = {}
    everything = sum(step.weight for step in todo)

    def tell(step: Step | None, share: float, doing: str) -> None:
        done = sum(item.weight for item in todo if item.id in records)
        if step is not None:
            done += share * step.weight
            doing = f"{step.id}: {doing}"
        progress(done / everything, doing)

    def collect(names: Sequence[str] = ()) -> None:
        """Keep what has come back, and wait for these."""
        for name, (step, asked) in list(pending.items()):
            if name in names or asked.done():
                _keep(runner, step, asked.result(), 1)
                del pending[name]

    try:
        for step in todo:
            if step.id in records:
                continue
            collect(step.needs)
            whole = step.kind not in _SHARED and step.weight <= _LONGEST
            if workers.executor is not None and whole:
                needed = [records[name] for name in step.needs]
                job = Job((step, needed), 2.0 * step.weight)  # seconds of one core
                pending[step.id] = step, workers.submit(remote, "do_alone", job)
            else:
                tell(step, 0.0, "")
                found = runner.do(step, partial(tell, step))
                _keep(runner, step, found, max(workers.threads, workers.slots))
            collect()
        while pending:
            tell(None, 0.0, f"{len(pending)} steps are being worked on")
            collect([next(iter(pending))])
    finally:
        for step, asked in pending.values():
            asked.cancel()
            # What had come back before something went wrong is kept; what went wrong is known.
            with suppress(Exception, CancelledError):
                if asked.done():
                    _keep(runner, step, asked.result(), 1)


def _keep(runner: Runner, step: Step, found: tuple[dict[str, Any], float], threads: int) -> None:
    result, seconds = found
    runner.records.add(
        {
            "id": step.id,
            "kind": step.kind,
            "settings": dict(step.settings),
            "seed": runner.records.seed,
            "threads": threads,
            "versions": runner.versions,
            "seconds": round(seconds, 3),
            "result": result,
        }
    )


def _make(folder: Path) -> None:
    """Make the folder of a reproduction, or see that it is one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [item for item in folder.iterdir() if item.name != RECORDS]
    except OSError as error:
        raise InputError(
            f"the folder {folder} cannot be made or read: {error.strerror}; choose another one (--out)"
        ) from None
    if others and not (folder / RECORDS).exists():
        raise InputError(
            f"the folder {folder} holds other files, {others[0].name} among them; a reproduction needs a "
            f"folder of its own (--out)"
        )
