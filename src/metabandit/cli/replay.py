"""`metabandit replay`: how policies would have done, from a log of random plays."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .display import progress_bar, say, show_json, show_table
from .options import Json, Seed


def replay(
    log: Annotated[
        Path,
        typer.Argument(
            help="A CSV file with the columns arm and reward: plays made at random, in their order.",
            show_default=False,
        ),
    ],
    policies: Annotated[
        list[str],
        typer.Option(
            "--policy",
            help="A policy file, a name such as ucb1-tuned or an expression; may be given several times.",
            show_default=False,
        ),
    ],
    horizon: Annotated[
        int | None,
        typer.Option(
            help="Plays of an episode.", show_default="what the first learned policy is for"
        ),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Estimate how policies would have done, from a log of uniformly random plays."""
    from ..replaying import replay as run

    with progress_bar("replaying") as progress:
        result = run(log, policies, horizon=horizon, seed=seed, progress=progress)
    if as_json:
        show_json(result.to_dict())
        return
    caption = (
        f"Reward of {result.horizon} plays, replayed from {result.plays:,} random plays of "
        f"{result.arms} arms; more is better\n{result.log}, seed {result.seed}"
    )
    rows = result.rows()
    show_table(list(rows[0]), [list(row.values()) for row in rows], align="lr", caption=caption)
    for warning in result.warnings():
        say(f"note: {warning}")
