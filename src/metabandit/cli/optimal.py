"""`metabandit optimal`: the least regret that any policy can have, and the policy that has it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from . import options
from .display import progress_bar, say, show_json, show_table

Prior = Annotated[str, Option(help="What problems are like: bernoulli, with two or three arms.")]
Start = Annotated[str, Option(help="free, or each-once if each arm must be played once first.")]
Save = Annotated[
    Path | None,
    Option(
        help="Write the policy to this .npz file (two arms), to evaluate it or play it later.",
        show_default=False,
    ),
]


def command(
    prior: Prior = "bernoulli",
    arms: options.Arms = None,
    horizon: options.Horizon = 100,
    start: Start = "free",
    save: Save = None,
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Solve for the Bayes-optimal policy for Bernoulli arms with Beta means: its reward and regret."""
    from ..bayes.optimum import check_solvable, optimal
    from ..policies.solved import OptimalPolicy, check_target
    from ..priors import prior as read_prior
    from ..settings import check_horizon

    known = check_solvable(read_prior(prior, arms=arms), "the optimum")
    check_horizon(horizon)
    if save is not None:
        check_target(save)
    with progress_bar(f"{horizon} plays") as progress:
        if save is None:
            result = optimal(known, horizon, start=start, threads=threads, progress=progress)
        else:
            policy = OptimalPolicy(known, horizon, start=start, threads=threads, progress=progress)
            policy.save(save)
            say(f"saved the policy to {save}; try: metabandit evaluate {save} --horizon {horizon}")
            result = policy.optimum
    if as_json:
        show_json(result.to_dict())
        return
    caption = (
        f"The best that any policy can do in {horizon} plays, start {start}\n"
        f"{result.arms} arms, {result.prior}, exact"
    )
    cells = [f"{result.expected_reward:.6f}", f"{result.regret:.6f}"]
    show_table(["expected reward", "regret"], [cells], align="r", caption=caption)
