"""`metabandit replay`: how policies would have done, from a log of random plays."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ..progress import progress_bar
from . import options
from .display import say, show_json, show_rows, told


def command(
    log: Annotated[
        Path,
        Argument(
            help="A CSV file with the columns arm and reward: plays made at random, in order.",
            show_default=False,
        ),
    ],
    policies: Annotated[
        list[str],
        Option(
            "--policy",
            help="A policy file, a name such as ucb1-tuned or an expression; may be given several "
            "times.",
            show_default=False,
        ),
    ],
    feedback: options.Feedback,
    horizon: Annotated[
        int | None, "Plays per episode.", "what the first learned policy was trained for"
    ] = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Estimate how policies would have done, from a log of uniformly random plays."""
    from ..replaying import replay

    with progress_bar("replaying") as progress:
        result = replay(
            log, policies, horizon=horizon, seed=seed, feedback=feedback, progress=progress
        )
    if as_json:
        show_json(result.to_dict())
        return
    caption = (
        f"Reward of {result.horizon} plays, replayed from {result.plays:,} random plays of "
        f"{result.arms} arms; more is better\n{result.log}, seed {result.seed}{told(feedback)}"
    )
    show_rows(result.rows(), align="lr", caption=caption)
    for warning in result.warnings():
        say(f"note: {warning}")
