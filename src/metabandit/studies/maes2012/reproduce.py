"""`reproduce`: do the pieces of the paper's experiments, each once, and keep their records."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, nearest
from ...settings import check_whole
from ...workers import Job, Pending, make_workers
from .plan import PARTS, Piece, pieces
from .records import Records
from .scales import SCALES

if TYPE_CHECKING:
    from .work import Workshop

RECORDS = "records.jsonl"
# A folder for what is half done.
UNFINISHED = ".unfinished"
# Pieces that read all formula classes, and those that take longer, in seconds on two cores, are done here
# with the help of others; the others are handed out whole.
_SHARED = ("classes", "search", "better", "sooner")
_LONGEST = 60.0


def default_folder(scale: str) -> Path:
    """Where a reproduction goes if nobody says."""
    return Path(f"reproduction-{scale}")


def reproduce(
    part: str = "all",
    *,
    scale: str = "quick",
    out: str | Path | None = None,
    seed: int = 0,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[float, str], None] | None = None,
    announce: Callable[[str], None] | None = None,
) -> Records:
    """Do the paper's experiments anew, beside today's policies and our own.

    part: `table1`, `table2`, `classes` (of formulas), `curves` (of learning), `times`, or `all`
    scale: `quick` (minutes) or `paper` (its budgets; about two hours on two cores)
    out: a folder for the records, reproduction-SCALE by default. Pieces that have a record there are not done again, so a run that
        was stopped goes on where it was
    executor: hands pieces of the work to other processes (docs/cluster.md); changes no result
    progress: called with the share that is done and what is going on; announce: called with messages
    """
    if part not in PARTS:
        raise InputError(f"there is no part {part!r} to reproduce; {nearest(str(part), PARTS)}")
    if scale not in SCALES:
        raise InputError(f"unknown scale {scale!r}; {nearest(str(scale), SCALES)}")
    seed = check_whole(seed, "the seed", 0, most=2**62)
    workers = make_workers(threads, executor)
    folder = default_folder(scale) if out is None else Path(out)
    _make(folder)
    # What is heavy is loaded only now that everything was checked.
    from ...engine.task import silent, versions
    from .work import Workshop

    todo = pieces(part, SCALES[scale], seed)
    records = Records.open(folder / RECORDS, scale, seed)
    work = folder / UNFINISHED
    try:
        work.mkdir(exist_ok=True)
        for piece in todo:
            if piece.id in records and records[piece.id]["settings"] != piece.settings:
                raise InputError(
                    f"{folder / RECORDS} was made by another version of metabandit: {piece.id} has other "
                    f"settings there; choose another folder (--out)"
                )
        shop = Workshop(records, work, workers, announce or silent)
        _Run(shop, todo, versions(), progress).run()
        shutil.rmtree(work, ignore_errors=True)
    finally:
        records.close()
    records.sort([piece.id for piece in todo])
    return records


class _Run:
    """Pieces that are worked on, here or by others, until each has its record."""

    def __init__(
        self,
        shop: Workshop,
        todo: Sequence[Piece],
        versions: dict[str, str],
        progress: Callable[[float, str], None] | None,
    ) -> None:
        from .work import Helper

        self.shop = shop
        self.todo = todo
        self.versions = versions
        self.progress = progress
        self.helper = partial(Helper, shop.records.scale, shop.records.seed)
        self.whole = sum(piece.weight for piece in todo)
        self.away: list[tuple[Piece, Pending]] = []

    def run(self) -> None:
        """All pieces that have no record, each after those that it needs."""
        records = self.shop.records
        workers = self.shop.workers
        try:
            for piece in self.todo:
                if piece.id in records:
                    continue
                self._collect(piece.needs)
                if workers.executor is not None and _goes_away(piece):
                    needed = [records[name] for name in piece.needs]
                    weight = 2.0 * piece.weight  # of one core
                    asked = workers.submit(self.helper, "do", Job((piece, needed), weight))
                    self.away.append((piece, asked))
                else:
                    self._report(piece, 0.0, "")
                    found = self.shop.do(piece, partial(self._report, piece))
                    self._keep(piece, found, max(workers.threads, workers.slots))
                self._collect()
            while self.away:
                self._report(None, 0.0, f"{len(self.away)} pieces are being worked on")
                self._collect([self.away[0][0].id])
        finally:
            for piece, asked in self.away:
                asked.cancel()
                # What had come back before something went wrong is kept; what went wrong is known.
                with suppress(Exception, CancelledError):
                    if asked.done():
                        self._keep(piece, asked.result(), 1)

    def _collect(self, names: Sequence[str] = ()) -> None:
        """Keep what has come back, and wait for these."""
        for item in list(self.away):
            piece, asked = item
            if piece.id in names or asked.done():
                self._keep(piece, asked.result(), 1)
                self.away = [other for other in self.away if other is not item]

    def _keep(self, piece: Piece, found: tuple[dict[str, Any], float], threads: int) -> None:
        result, seconds = found
        records = self.shop.records
        records.add(
            {
                "id": piece.id,
                "kind": piece.kind,
                "settings": dict(piece.settings),
                "seed": records.seed,
                "threads": threads,
                "versions": self.versions,
                "seconds": round(seconds, 3),
                "result": result,
            }
        )

    def _report(self, piece: Piece | None, share: float, doing: str) -> None:
        if self.progress is None:
            return
        done = sum(item.weight for item in self.todo if item.id in self.shop.records)
        if piece is not None:
            done += share * piece.weight
            doing = f"{piece.id}: {doing}"
        self.progress(done / self.whole, doing)


def _goes_away(piece: Piece) -> bool:
    """Whether a piece is handed out as it is; parts of the others are."""
    return piece.kind not in _SHARED and piece.weight <= _LONGEST


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
