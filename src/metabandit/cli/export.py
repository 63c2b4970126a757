"""`metabandit export`: an index policy as source code that needs nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument

from . import options
from .display import say


def command(
    policy: Annotated[
        str,
        Argument(
            help="A policy file, a policy of the catalogue such as ucb1:C=0.17, or a formula in quotes."
        ),
    ],
    to: Annotated[str, "The language: python, javascript, c, sql or latex."] = "python",
    horizon: Annotated[
        int | None,
        "Plays per test, for indices that read h, the plays left.",
        "the horizon that the policy was learned for",
    ] = None,
    start: Annotated[
        str | None,
        "How the policy begins: each-once, or pseudo-observations such as prior-counts:plays=2,sum=1,squares=1.",
        "each-once; a policy file has its own",
    ] = None,
    dialect: Annotated[
        str | None,
        "For sql: postgresql, sqlite, duckdb, bigquery, snowflake or mysql.",
        "sqlite",
    ] = None,
    batch: Annotated[
        int | None,
        "For sql: divide this many plays among the arms, instead of choosing the next arm.",
    ] = None,
    out: Annotated[Path | None, "Write to this file instead of standard output."] = None,
    force: options.Force = False,
) -> None:
    """Write an index policy as source code in another language, with no dependencies."""
    from ..exporting import TARGETS, check_target, export
    from ..files import check_new, written

    suffixes = TARGETS[check_target(to)]
    if out is not None:
        check_new(out, suffixes, f"a file for {to}", force=force)
    text = export(policy, to, horizon=horizon, start=start, dialect=dialect, batch=batch)
    if out is None:
        sys.stdout.write(text)
        return
    with written(out, "the program") as file:
        file.write(text.encode())
    say(f"written to {out}")
