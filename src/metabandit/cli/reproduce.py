"""`metabandit reproduce`: published experiments again, as records and a report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .display import progress_bar, say, show_json, show_table
from .running import working

if TYPE_CHECKING:
    from ..report.content import Section

_MINUTE = 60.0


def command(
    *,
    part: Annotated[
        str,
        typer.Argument(
            help="The part of the paper: table1, table2, classes (of formulas), curves (of learning), times, or all; "
            "or today, a study of more recent policies."
        ),
    ] = "all",
    scale: Annotated[
        str, "quick (small budgets; minutes) or paper (full budgets; hours on two cores)."
    ] = "quick",
    out: Annotated[
        Path | None,
        "A folder for records and report; steps that are on record there are not repeated.",
        "reproduction-SCALE or today-SCALE",
    ] = None,
    seed: options.Seed = 0,
    resources: options.Resources,
    as_json: options.Json = False,
) -> None:
    """Reproduce the paper's experiments, and show them next to the paper's figures.

    A run that was stopped goes on where it was if it is started again.
    """
    from ..report import load_report, write_report
    from ..studies.run import default_folder, reproduce

    folder = default_folder(part, scale) if out is None else out
    again = f"started again with the same options, it goes on from the records in {folder}"
    with working("reproducing", resources, stopped=again, kept=lambda: again) as (who, tell):
        options = {"scale": scale, "out": folder, "seed": seed, **who, "progress": _often(tell)}
        records = reproduce(part, **options)
    report = load_report([folder])
    with progress_bar("drawing the report") as bar:
        written = write_report(report, folder / "report.html", force=True, progress=bar)
    if as_json:
        show_json({"scale": scale, "seed": seed, "records": list(records.values())})
        return
    for section in report.sections:
        _show(section)
    typer.echo(f"written      {folder / 'records.jsonl'}, {written[0]}")


def _show(section: Section) -> None:
    """The tables of a section that are not folded, then its text."""
    for table in section.tables:
        if table.rows and not table.folded:
            cells = [[cell.text for cell in row] for row in table.rows]
            caption = f"{table.title}\n{table.caption}".rstrip()
            show_table(table.columns, cells, align=table.align, caption=caption)
    for text in section.paragraphs:
        typer.echo(f"{text}\n")


def _often(tell: Callable[[float, str], None]) -> Callable[[float, str], None]:
    """Progress as a bar; where nobody sees it, as a line per minute."""
    last = time.monotonic()

    def told(share: float, doing: str) -> None:
        nonlocal last
        tell(share, doing)
        if not sys.stderr.isatty() and time.monotonic() - last > _MINUTE:
            last = time.monotonic()
            say(f"{100.0 * share:.0f} % done, {doing}")

    return told
