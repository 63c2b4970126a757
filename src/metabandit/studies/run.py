"""`reproduce`: do the steps of a study, each once, here or in other processes, and keep their records."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Executor
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..engine.task import silent, versions
from ..errors import InputError, about, nearest
from ..formulas.searcher import state_path
from ..learning import Learned, learn
from ..learning.trace import trace_path
from ..policies import Policy
from ..priors import Prior
from ..progress import Told, shares, with_progress
from ..settings import check_whole
from ..workers import Job, Pending, Workers, make_workers
from .records import FORMATS, Records

__all__ = ["Records", "default_folder", "reproduce"]

RECORDS = "records.jsonl"
# A folder for what is half done.
UNFINISHED = ".unfinished"
# Steps that take longer (seconds on two cores) are done here with the help of other processes; others
# are handed out whole.
_LONGEST = 60.0

Progress = Callable[[float, str], None]


def counted(progress: Progress, doing: str) -> Callable[[int, int], None]:
    """Progress by how many are done, of how many."""
    return lambda done, total: progress(done / total, doing)


def default_folder(part: str, scale: str) -> Path:
    """Where a study goes if nobody says."""
    return Path(f"{'today' if part == 'today' else 'reproduction'}-{scale}")


@dataclass(frozen=True)
class Step:
    """A step of the work, with an id and everything that its result depends on.

    id: begins with its kind, which says how it is done
    parts: the parts of the study that show it
    needs: the steps whose results it uses
    weight: about how many seconds it takes on two cores, to tell how far a run is
    """

    id: str
    settings: Mapping[str, Any]
    parts: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    weight: float = field(default=1.0, compare=False)

    @property
    def kind(self) -> str:
        return self.id.partition("/")[0]


class Runner:
    """Does steps, one at a time.

    records: of the steps done so far
    folder: for what is half done
    workers: the threads and processes that do the work
    """

    def __init__(
        self, records: Records, folder: Path, workers: Workers, announce: Callable[[str], None]
    ) -> None:
        self.study: Any = import_module(f".{records.study}", __package__)
        self.records = records
        self.folder = folder
        self.workers = workers
        self.who: dict[str, Any] = {"threads": workers.threads, "executor": workers.executor}
        self.announce = announce
        self.versions = versions()
        # What several steps use, and is made once.
        self.kept: dict[Any, Any] = {}

    def do(self, step: Step, progress: Progress) -> tuple[dict[str, Any], float]:
        """The result of a step, and the seconds it took, also in runs that were stopped."""
        begun = time.monotonic()
        out = self.unfinished(step)
        half = [path for path in (out, trace_path(out), state_path(out)) if path.exists()]
        kind = self.study.KINDS[step.kind]
        try:
            result: dict[str, Any] = kind(self, step, progress)
        except InputError as error:
            if not half:
                raise
            # Made by another version, say, or damaged by a crash: nothing but time is lost.
            self.announce(f"{step.id} was half done and starts from scratch: {error}")
            for path in half:
                path.unlink(missing_ok=True)
            result = kind(self, step, progress)
        seconds = time.monotonic() - begun
        return result, float(result.pop("seconds", seconds))

    def do_alone(self, step: Step, needed: list[dict[str, Any]]) -> tuple[dict[str, Any], float]:
        """The same in another process, from the records that the step needs."""
        for record in needed:
            self.records.add(record)
        # A folder of its own: another thread may do the same step for someone else.
        with TemporaryDirectory(prefix="metabandit-") as folder:
            runner = copy(self)
            runner.folder = Path(folder)
            return runner.do(step, lambda share, doing: None)

    def learn(self, step: Step, problems: Prior, progress: Progress, **options: Any) -> Learned:
        """The policy that a step learns, going on where it was stopped; nothing half done is left."""
        out = self.unfinished(step)
        trace = trace_path(out)
        found = learn(
            step.settings["space"],
            problems,
            step.settings["horizon"],
            **options,
            **self.who,
            measured=False,
            out=out,
            resume=trace.exists(),
            force=not trace.exists(),
            progress=lambda generation: progress(
                generation.share, f"generation {generation.number}, {generation.best:.5g}"
            ),
            announce=self.announce,
        )
        for path in (out, trace):
            path.unlink()
        return found

    def unfinished(self, step: Step) -> Path:
        """The policy file of a step that is being worked on."""
        return self.folder / f"{step.id.replace('/', '-')}.json"

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What is kept under a key, made if it is not there yet."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def policy(self, given: Mapping[str, Any]) -> Policy:
        """A policy as settings name it; made once."""
        found: Policy = self.once(str(given), partial(self.records.policy, given))
        return found


def remote_runner(scale: str, seed: int, study: str) -> Runner:
    """What does whole steps in another process."""
    return Runner(Records(scale, seed, study), Path(), Workers(1), silent)


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
    studies = {name: import_module(f".{name}", __package__) for name in FORMATS}
    parts = {part: study for study in studies for part in studies[study].PARTS}
    if part not in parts:
        raise InputError(f"there is no part {part!r} to reproduce; {nearest(str(part), parts)}")
    study = studies[parts[part]]
    if scale not in study.SCALES:
        raise InputError(
            f"unknown scale {scale!r}; {nearest(str(scale), study.SCALES)}", about="scale"
        )
    with about("seed"):
        seed = check_whole(seed, "the seed", 0, most=2**62)
    workers = make_workers(threads, executor)
    folder = default_folder(part, scale) if out is None else Path(out)
    _make_folder(folder)
    records = Records.open(folder / RECORDS, scale, seed, parts[part])
    todo: list[Step] = study.steps(part, study.SCALES[scale], seed)
    try:
        for step in todo:
            if step.id in records and records[step.id]["settings"] != step.settings:
                raise InputError(
                    f"{folder / RECORDS} was made by another version of metabandit: {step.id} has other "
                    f"settings there; choose another folder (--out)"
                )
        unfinished = folder / UNFINISHED
        unfinished.mkdir(exist_ok=True)
        runner = Runner(records, unfinished, workers, announce or silent)
        _do(todo, runner, progress or (lambda share, doing: None))
        shutil.rmtree(unfinished, ignore_errors=True)
    finally:
        records.close()
    records.sort([step.id for step in todo])
    return records


def _do(todo: Sequence[Step], runner: Runner, progress: Progress) -> None:
    """Do the steps that have no record, each after those that it needs, here or in other processes."""
    records, workers = runner.records, runner.workers
    remote = partial(remote_runner, records.scale, records.seed, records.study)
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
            whole = step.kind not in runner.study.SHARED and step.weight <= _LONGEST
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


def _make_folder(folder: Path) -> None:
    """Make the folder of a study, or see that it is one."""
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
