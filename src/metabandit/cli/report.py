"""`metabandit report`: records become one page, tables and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..progress import progress_bar
from . import options


def command(
    records: Annotated[
        list[Path],
        typer.Argument(
            help="An advice; the folder or records.jsonl of a reproduction; or files with what evaluate, "
            "learn, search or trial printed with --json.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        "The page to write (.html, with everything in it), or its text and tables (.md).",
        "report.html, unless --tables or --figures is given",
    ] = None,
    tables: Annotated[Path | None, "A folder for each table as Markdown and LaTeX."] = None,
    figures: Annotated[Path | None, "A folder for each picture."] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--format", help="svg, png or pdf; may be given several times.", show_default="svg"
        ),
    ] = None,
    force: options.Force = False,
) -> None:
    """Make a report from records: a page that stands alone, tables, pictures. Nothing is computed again."""
    from .. import studies  # noqa: F401 (their reports are registered)
    from ..report import load_report, write_report
    from ..report.build import check_targets

    if kinds and figures is None:
        raise InputError("--format is for pictures: give --figures, a folder for them")
    if out is None and tables is None and figures is None:
        out = Path("report.html")
    check_targets(out, tables, figures, force=force)
    made = load_report(records)
    with progress_bar("drawing") as bar:
        formats = kinds or ["svg"]
        written = write_report(
            made, out, tables=tables, figures=figures, formats=formats, force=force, progress=bar
        )
    typer.echo("written      " + ", ".join(map(str, written)))
