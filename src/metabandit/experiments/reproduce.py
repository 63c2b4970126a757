"""`reproduce`: do the pieces of the paper's experiments, each once, and keep their records."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from ..errors import InputError, nearest
from ..settings import check_threads, check_whole
from .plan import PARTS, pieces
from .records import Records
from .scales import SCALES

RECORDS = "records.jsonl"
# A folder for what is half done.
UNFINISHED = ".unfinished"


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
    progress: Callable[[float, str], None] | None = None,
    announce: Callable[[str], None] | None = None,
) -> Records:
    """Do the paper's experiments anew, beside today's policies and our own.

    part: `table1`, `table2`, `classes` (of formulas), `curves` (of learning), `times`, or `all`
    scale: `quick` (minutes) or `paper` (its budgets; about two hours on two cores)
    out: a folder for the records, reproduction-SCALE by default. Pieces that have a record there are not done again, so a run that
        was stopped goes on where it was
    progress: called with the share that is done and what is going on; announce: called with messages
    """
    if part not in PARTS:
        raise InputError(f"there is no part {part!r} to reproduce; {nearest(str(part), PARTS)}")
    if scale not in SCALES:
        raise InputError(f"unknown scale {scale!r}; {nearest(str(scale), SCALES)}")
    seed = check_whole(seed, "the seed", 0, most=2**62)
    threads = check_threads(threads)
    folder = default_folder(scale) if out is None else Path(out)
    _make(folder)
    # What is heavy is loaded only now that everything was checked.
    from ..learning.aim import silent, versions
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
        shop = Workshop(records, work, threads, announce or silent)
        whole = sum(piece.weight for piece in todo)
        done = 0.0
        for piece in todo:
            if piece.id not in records:

                def report(
                    share: float,
                    doing: str,
                    done: float = done,
                    weight: float = piece.weight,
                    name: str = piece.id,
                ) -> None:
                    if progress is not None:
                        progress((done + share * weight) / whole, f"{name}: {doing}")

                report(0.0, "")
                result, seconds = shop.do(piece, report)
                records.add(
                    {
                        "id": piece.id,
                        "kind": piece.kind,
                        "settings": dict(piece.settings),
                        "seed": seed,
                        "threads": threads,
                        "versions": versions(),
                        "seconds": round(seconds, 3),
                        "result": result,
                    }
                )
            done += piece.weight
        shutil.rmtree(work, ignore_errors=True)
    finally:
        records.close()
    return records


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
