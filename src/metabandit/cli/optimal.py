"""`metabandit optimal`: the least regret that any policy can have, or a lower bound on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ..errors import InputError
from ..feedback import IMMEDIATE
from . import options
from .display import progress_bar, say, show_json, show_table, told

if TYPE_CHECKING:
    from ..bayes.bounds import Bound
    from ..bayes.optimum import Optimum


def command(
    prior: options.Prior,
    feedback: options.Feedback,
    horizon: options.Horizon = 100,
    start: Annotated[
        str, "free, or each-once for policies that must play each arm once first."
    ] = "free",
    save: Annotated[
        Path | None,
        Option(
            help="Write the policy (two or three arms) to this .npz file, to evaluate or play it later.",
            show_default=False,
        ),
    ] = None,
    floor_effort: options.FloorEffort = None,
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Compute the floor, which no policy can beat: exactly for two or three Bernoulli arms, otherwise a lower bound."""
    from ..bayes.bounds import bound_seconds
    from ..bayes.optimum import check_floor, has_optimum, optimal
    from ..engine.costs import announce_time, optimum_memory
    from ..engine.floor import solving_seconds
    from ..policies.solved import OptimalPolicy, check_target
    from ..settings import check_horizon, check_threads

    check_floor(prior)
    check_horizon(horizon)
    if save is not None:
        check_target(save)
        if feedback != IMMEDIATE:
            raise InputError(
                f"the optimal policy is saved for immediate feedback only, not for {feedback}; leave "
                f"--save out for its regret"
            )
    effort = 1.0 if floor_effort is None else floor_effort
    seconds = solving_seconds(prior, horizon, feedback)
    if not has_optimum(prior):
        seconds = bound_seconds(prior, horizon, effort)
    memory = optimum_memory(prior, horizon, feedback) if save is None else 0
    announce_time(seconds, check_threads(threads), say, memory=memory)
    with progress_bar(f"{horizon} plays") as progress:
        if save is None:
            result = optimal(
                prior,
                horizon,
                start=start,
                feedback=feedback,
                effort=effort,
                threads=threads,
                progress=progress,
            )
        else:
            policy = OptimalPolicy(prior, horizon, start=start, threads=threads, progress=progress)
            policy.save(save)
            say(f"saved the policy to {save}; try: metabandit evaluate {save} --horizon {horizon}")
            result = policy.optimum
    if as_json:
        show_json(result.to_dict())
    else:
        _show(result, horizon, start, told(feedback))


def _show(result: Bound | Optimum, horizon: int, start: str, feedback: str) -> None:
    from ..engine.results import NORMAL_95

    if result.kind == "bound":
        half = NORMAL_95 * result.standard_error
        noise = f"95 % interval: ± {half:.2g}" if half else "no sampling error"
        caption = (
            f"What no policy can beat in {horizon} plays: a lower bound on regret\n"
            f"{result.arms} arms, {result.prior}; {noise}{feedback}"
        )
        cells = [f"{result.expected_reward:.4f}", f"{result.regret:.4f}"]
        show_table(["reward, at most", "regret, at least"], [cells], align="r", caption=caption)
        return
    caption = (
        f"The best that any policy can do in {horizon} plays, start {start}\n"
        f"{result.arms} arms, {result.prior}, exact{feedback}"
    )
    cells = [f"{result.expected_reward:.6f}", f"{result.regret:.6f}"]
    show_table(["expected reward", "regret"], [cells], align="r", caption=caption)
