"""`metabandit replay`: how policies would have done, and what arms are worth, from a log of random plays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ..errors import InputError
from . import options
from .display import progress_bar, say, show_json, show_rows, told

if TYPE_CHECKING:
    from ..replaying import Replay


def command(
    log: Annotated[
        Path,
        Argument(
            help="A CSV file of random plays, in order, with the columns arm, reward and, if known, probability (of "
            "the choice). Without probabilities, all arms must have been equally likely.",
            show_default=False,
        ),
    ],
    feedback: options.Feedback,
    policies: Annotated[
        list[str] | None,
        Option(
            "--policy",
            help="A policy file, a name such as ucb1-tuned or an expression; may be given several "
            "times.",
            show_default=False,
        ),
    ] = None,
    shares: Annotated[
        list[str] | None,
        Option(
            "--shares",
            help="A fixed mix of arms whose worth is estimated, such as red=0.7,green=0.3, for logs with "
            "probabilities; may be given several times.",
            show_default=False,
        ),
    ] = None,
    least: Annotated[
        float | None,
        "The least probability that any arm had at any play of the log: the --min-share of its policy.",
        "the smallest probability in the log",
    ] = None,
    horizon: Annotated[
        int | None, "Plays per test (episode).", "the horizon of the first learned policy"
    ] = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Estimate how policies would have done, from a log of random plays."""
    from ..replaying import replay

    targets = [_read_shares(text) for text in shares or ()]
    with progress_bar("replaying") as progress:
        result = replay(
            log, policies or [], horizon=horizon, seed=seed, feedback=feedback, shares=targets,
            least=least, progress=progress,
        )  # fmt: skip
    if as_json:
        show_json(result.to_dict())
    else:
        _show(result, told(feedback))


def _show(result: Replay, feedback: str) -> None:
    if result.policies:
        caption = (
            f"Reward of {result.horizon} plays, replayed from {result.plays:,} random plays of "
            f"{result.arms} arms; more is better\n{result.log}, seed {result.seed}{feedback}"
        )
        show_rows(result.rows(), align="lr", caption=caption)
    if result.estimates:
        caption = f"Reward per play of fixed shares of the arms, from the probabilities of {result.plays:,} plays"
        show_rows(result.estimate_rows(), align="llr", caption=caption)
    for warning in result.warnings():
        say(f"note: {warning}")


def _read_shares(text: str) -> dict[str | int, float]:
    """Shares as people write them: red=0.7,green=0.3."""
    found: dict[str | int, float] = {}
    for part in text.split(","):
        arm, sign, share = part.rpartition("=")
        try:
            value = float(share)
        except ValueError:
            sign = ""
        if not sign or not arm.strip() or arm.strip() in found:
            raise InputError(f"--shares must be such as red=0.7,green=0.3, not {text!r}")
        found[arm.strip()] = value
    return found
