"""`metabandit export`: an index policy as source code that needs nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from . import options
from .display import say

Policy = Annotated[
    str,
    Argument(
        help="A policy file, a policy of the catalogue such as ucb1:C=0.17, or a formula in quotes."
    ),
]
To = Annotated[str, Option(help="python, javascript, c, sql (for SQLite) or latex.")]
Horizon = Annotated[
    int | None,
    Option(
        help="Plays in all, for indices that read h, the plays left.",
        show_default="what the policy was learned for",
    ),
]
Start = Annotated[
    str | None,
    Option(
        help="How the policy begins: each-once, or such as prior-counts:plays=2,sum=1,squares=1.",
        show_default="each-once; a policy file has its own",
    ),
]
Out = Annotated[Path | None, Option(help="Write to this file instead of standard output.")]


def command(
    policy: Policy,
    to: To = "python",
    horizon: Horizon = None,
    start: Start = None,
    out: Out = None,
    force: options.Force = False,
) -> None:
    """Write an index policy as source code in another language, with no dependencies."""
    from ..exporting import export, find_target
    from ..files import check_new, written

    suffixes = find_target(to).suffixes
    if out is not None:
        check_new(out, suffixes, f"a file for {to}", force=force)
    text = export(policy, to, horizon=horizon, start=start)
    if out is None:
        sys.stdout.write(text)
        return
    with written(out, "the program") as file:
        file.write(text.encode())
    say(f"written to {out}")
