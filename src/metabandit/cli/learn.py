"""`metabandit learn`: the best policy of a space for problems drawn from a prior."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .display import progress_bar, say, show_json
from .evaluate import show_comparison
from .options import Arms, Json, Prior, Seed, Threads
from .workers import Scheduler, Workers, go_on, joined

if TYPE_CHECKING:
    from ..learning import Generation, Learned


Objective = Annotated[
    str,
    typer.Option(
        help="regret (its mean over problems), wins (against --reference), quantile:q=0.9, "
        "worst (the largest over problems), or simple (regret of the arm chosen at the end)."
    ),
]
Reference = Annotated[
    str | None, typer.Option(help="The policy that the objective wins compares with.")
]
Effort = Annotated[
    float, typer.Option(help="How long to search: 2 is twice as long, 0.5 half as long.")
]
TimeLimit = Annotated[
    str | None,
    typer.Option(help="End the search after this time, such as 90s, 5m or 1h."),
]


def read_seconds(text: str) -> float:
    """A time as people write it: 90, 90s, 5m, 1.5h."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([smh]?)\s*", text)
    if match is None or float(match.group(1)) == 0.0:
        raise InputError(f"a time limit is seconds, or such as 90s, 5m or 1h; not {text!r}")
    return float(match.group(1)) * {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}[match.group(2)]


def learn(
    space: Annotated[
        str,
        typer.Option(
            help="power-1, power-2, ...; a policy with parameters (see `metabandit policies`), such "
            "as ucb1, or ucb-v:c=1 to learn zeta only; or an expression in quotes whose unknown names "
            "are learned, such as 'r + a/(n + b)'."
        ),
    ] = "power-1",
    prior: Prior = "bernoulli",
    arms: Arms = None,
    horizon: Annotated[int, typer.Option(help="Plays of an episode.")] = 100,
    objective: Objective = "regret",
    reference: Reference = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="How candidates begin: each-once, prior-counts, such as prior-counts:plays=2,sum=1, "
            "or prior-counts:learn to learn these numbers too.",
            show_default="prior-counts if the prior has counts, else each-once",
        ),
    ] = None,
    v1: Annotated[
        str | None,
        typer.Option(
            help="What power-P reads first: h (plays left) or t (plays made).",
            show_default="h; t in the paper's protocol",
        ),
    ] = None,
    initial: Annotated[
        str | None,
        typer.Option(help="Values to begin with, such as a=1,b=0.5, or a policy file."),
    ] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(
            help="cma or eda, with settings such as cma:population=24.",
            show_default="cma; eda in the paper's protocol",
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="default, or paper: 100 problems drawn once, 100 runs each, 100 generations, the "
            "candidate with the lowest value ever observed; paper:problems=50,runs=10 for others."
        ),
    ] = "default",
    seed: Seed = 0,
    effort: Effort = 1.0,
    generations: Annotated[
        int | None, typer.Option(help="Generations, instead of what the effort allows.")
    ] = None,
    time_limit: TimeLimit = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the policy to this .json file, and the trace of the search beside."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run of --out that was stopped.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what --out names.")] = False,
    threads: Threads = None,
    cluster: Scheduler = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Learn the numbers of a policy for your problems, and show it against the classics and the floor."""
    from ..learning import learn as run
    from ..learning.trace import trace_path
    from ..priors import prior as read_prior

    known = read_prior(prior, arms=arms)
    limit = None if time_limit is None else read_seconds(time_limit)
    states = [] if out is None else [trace_path(out)]
    with (
        stopping("nothing was learned yet"),
        joined(cluster, workers, kept=lambda: go_on(out, *states)) as others,
        progress_bar("learning", others) as bar,
    ):

        def progress(generation: Generation) -> None:
            bar(generation.share, 1.0, _describe(generation, horizon))

        learned = run(
            space,
            known,
            horizon,
            objective=objective,
            reference=reference,
            start=start,
            v1=v1,
            initial=initial,
            optimizer=optimizer,
            protocol=protocol,
            seed=seed,
            effort=effort,
            generations=generations,
            time_limit=limit,
            threads=threads,
            executor=others,
            out=out,
            resume=resume,
            force=force,
            progress=progress,
            announce=say,
        )
    if as_json:
        show_json(learned.to_dict())
    else:
        _show(learned, out, objective)
    if learned.stopped == "interrupted":
        raise typer.Exit(130)


@contextmanager
def stopping(nothing: str) -> Iterator[None]:
    """Say so if a person stops what has no result yet.

    A polite request to end, as batch systems send it, is treated like Ctrl-C.
    """

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        say(f"stopped: {nothing}")
        raise typer.Exit(130) from None


def _describe(generation: Generation, horizon: int) -> str:
    """One line on how far the search is."""
    text = f"generation {generation.number}: {generation.best:.5g}"
    if generation.noise:
        text += f" on {generation.problems:,} problems"
    if generation.above_floor is not None:
        text += f", {100 * generation.above_floor:.2f} % above the floor"
    if generation.horizon != horizon:
        text = f"first for {generation.horizon} plays, {text}"
    return text


def _show(learned: Learned, out: Path | None, objective: str) -> None:
    origin = learned.file.learned
    assert origin is not None
    if learned.comparison is not None:
        show_comparison(learned.comparison)
    evaluation = learned.evaluation
    lines = []
    if evaluation is not None and learned.comparison is not None:
        if evaluation is not learned.comparison[0]:
            above = ""
            if learned.floor:
                above = (
                    f", {100 * (evaluation.mean_regret / learned.floor - 1):.2f} % above the floor"
                )
            lines.append(f"regret       {evaluation.mean_regret:.6f} (exact{above})")
    if objective != "regret" and learned.objective is not None:
        shown = (
            f"{100 * (1 - learned.objective):.2f} % of problems won against {origin.reference}"
            if origin.reference
            else f"{learned.objective:.6f}"
        )
        lines.append(f"{origin.objective:12} {shown} (fresh problems)")
    label = learned.policy.name
    lines.append(f"policy       {label}")
    begin = getattr(learned.policy, "start", None)
    if begin is not None:
        lines.append(f"start        {begin}")
    lines.append(
        f"search       {origin.generations} generations, {origin.evaluations:,} candidates, "
        f"{learned.seconds:.0f} s; ended: {learned.stopped}"
    )
    if out is not None:
        from ..learning.trace import trace_path

        lines.append(f"written      {out}, {trace_path(out)}")
        lines.append(
            f"next         metabandit evaluate {shlex.quote(str(out))} ucb1-tuned --prior {origin.prior} "
            f"--arms {origin.arms} --horizon {origin.horizon}"
        )
    typer.echo("\n".join(lines))
