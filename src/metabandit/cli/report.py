"""`metabandit report`: records become one page, tables and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from . import options
from .display import progress_bar


def command(
    records: Annotated[
        list[Path],
        typer.Argument(
            help="The file of an advice; the folder of a reproduction, or its records.jsonl; or output of evaluate, "
            "learn, search or trial with --json.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        "The page to write: .html, with everything in it, or .md, with text and tables.",
        "report.html, unless --tables or --figures is given",
    ] = None,
    tables: Annotated[Path | None, "A folder for the tables, as Markdown and LaTeX."] = None,
    figures: Annotated[Path | None, "A folder for the pictures."] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="Format of pictures: svg, png or pdf; may be given several times.",
            show_default="svg",
        ),
    ] = None,
    force: options.Force = False,
) -> None:
    """Make a report from results: a page in one file, tables, pictures. Nothing is computed again."""
    from .. import studies  # noqa: F401 (their reports are registered)
    from ..report import load_report, write_report
    from ..report.build import check_targets

    if formats and figures is None:
        raise InputError("--format is for pictures: give --figures, a folder for them")
    if out is None and tables is None and figures is None:
        out = Path("report.html")
    check_targets(out, tables, figures, force=force)
    made = load_report(records)
    with progress_bar("drawing") as bar:
        written = write_report(
            made,
            out,
            tables=tables,
            figures=figures,
            formats=formats or ["svg"],
            force=force,
            progress=bar,
        )
    typer.echo("written      " + ", ".join(map(str, written)))
