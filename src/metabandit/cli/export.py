"""`metabandit export`: an index policy as source code that needs nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .display import say


def export(
    policy: Annotated[
        str,
        typer.Argument(
            help="A policy file, a policy of the catalogue such as ucb1:C=0.17, or a formula in quotes."
        ),
    ],
    to: Annotated[
        str, typer.Option(help="python, javascript, c, sql (for SQLite) or latex.")
    ] = "python",
    horizon: Annotated[
        int | None,
        typer.Option(
            help="Plays in all, for indices that read h, the plays left.",
            show_default="what the policy was learned for",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="How the policy begins: each-once, or such as prior-counts:plays=2,sum=1,squares=1.",
            show_default="each-once; a policy file has its own",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write to this file instead of standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what --out names.")] = False,
) -> None:
    """Write an index policy as source code of another language, with no dependency."""
    from ..exporting import export as write
    from ..exporting import find_target
    from ..files import check_new, written

    suffixes = find_target(to).suffixes
    target = None
    if out is not None:
        target = check_new(out, suffixes, f"a file for {to}", force=force)
    text = write(policy, to, horizon=horizon, start=start)
    if target is None:
        sys.stdout.write(text)
        return
    with written(target, "the program") as file:
        file.write(text.encode())
    say(f"written to {target}")
