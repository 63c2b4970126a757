"""How a study is run: its steps, each done once, here or in other processes, and kept as records."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..engine.task import silent, versions
from ..errors import InputError
from ..formulas.searcher import state_path
from ..learning import Learned, learn
from ..learning.trace import trace_path
from ..policies import Policy
from ..priors import Prior
from ..workers import Job, Pending, Workers
from .records import Records

RECORDS = "records.jsonl"
# A folder for what is half done.
UNFINISHED = ".unfinished"
# Steps that take longer (seconds on two cores) are done here with the help of other processes; others
# are handed out whole.
_LONGEST = 60.0

Progress = Callable[[float, str], None]
# How a kind of step is done: kind(runner, step, progress) returns its result, as JSON has it.
Kind = Callable[[Any, "Step", Progress], Any]


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


class StepRunner:
    """Does steps, one at a time.

    records: of the steps done so far
    folder: for what is half done
    workers: the threads and processes that do the work
    kinds: how each kind of step is done
    """

    # Kinds of steps that are never handed out whole.
    shared: tuple[str, ...] = ()

    def __init__(
        self,
        records: Records,
        folder: Path,
        workers: Workers,
        announce: Callable[[str], None],
        kinds: Mapping[str, Kind],
    ) -> None:
        self.kinds = kinds
        self.records = records
        self.folder = folder
        self.workers = workers
        self.who: dict[str, Any] = {"threads": workers.threads, "executor": workers.executor}
        self.announce = announce
        self._policies: dict[str, Policy] = {}
        self.versions = versions()

    def do(self, step: Step, progress: Progress) -> tuple[dict[str, Any], float]:
        """The result of a step, and the seconds it took, also in runs that were stopped."""
        begun = time.monotonic()
        out = self.unfinished(step)
        half = [path for path in (out, trace_path(out), state_path(out)) if path.exists()]
        try:
            result: dict[str, Any] = self.kinds[step.kind](self, step, progress)
        except InputError as error:
            if not half:
                raise
            # Made by another version, say, or damaged by a crash: nothing but time is lost.
            self.announce(f"{step.id} was half done and starts from scratch: {error}")
            for path in half:
                path.unlink(missing_ok=True)
            result = self.kinds[step.kind](self, step, progress)
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

    def policy(self, given: Mapping[str, Any]) -> Policy:
        """A policy as settings name it; made once."""
        key = str(given.get("text", given))
        if key not in self._policies:
            self._policies[key] = self.records.policy(given)
        return self._policies[key]


def make_runner(
    records: Records, folder: Path, workers: Workers, announce: Callable[[str], None]
) -> StepRunner:
    """What does the steps of a study; its module, which is heavy, is loaded only now."""
    work = import_module(f".{records.study}.work", __package__)
    runner: StepRunner = work.Runner(records, folder, workers, announce)
    return runner


def remote_runner(scale: str, seed: int, study: str) -> StepRunner:
    """What does whole steps in another process."""
    return make_runner(Records(scale, seed, study), Path(), Workers(1), silent)


def run_steps(
    todo: Sequence[Step],
    records: Records,
    folder: Path,
    workers: Workers,
    progress: Progress | None,
    announce: Callable[[str], None] | None,
) -> Records:
    """Do the steps that have no record in the folder."""
    try:
        for step in todo:
            if step.id in records and records[step.id]["settings"] != step.settings:
                raise InputError(
                    f"{folder / RECORDS} was made by another version of metabandit: {step.id} has other "
                    f"settings there; choose another folder (--out)"
                )
        unfinished = folder / UNFINISHED
        unfinished.mkdir(exist_ok=True)
        runner = make_runner(records, unfinished, workers, announce or silent)
        _do(todo, runner, progress or (lambda share, doing: None))
        shutil.rmtree(unfinished, ignore_errors=True)
    finally:
        records.close()
    records.sort([step.id for step in todo])
    return records


def _do(todo: Sequence[Step], runner: StepRunner, progress: Progress) -> None:
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
            whole = step.kind not in runner.shared and step.weight <= _LONGEST
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


def _keep(
    runner: StepRunner, step: Step, found: tuple[dict[str, Any], float], threads: int
) -> None:
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


def make_folder(folder: Path) -> None:
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
