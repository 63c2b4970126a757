"""`metabandit learn`: the best policy of a space for problems drawn from a prior."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from . import options
from .display import next_command, progress_bar, say, show_comparison, show_facts, show_json
from .running import go_on, joined, stopping

if TYPE_CHECKING:
    from ..learning import Generation, Learned


Space = Annotated[
    str,
    Option(
        help="power-1, power-2, ...; a policy with parameters (see `metabandit policies`), such "
        "as ucb1, or ucb-v:c=1 to learn zeta only; or an expression in quotes whose unknown names "
        "are learned, such as 'r + a/(n + b)'."
    ),
]
V1 = Annotated[
    str | None,
    Option(
        help="What power-P reads first: h (plays left) or t (plays made).",
        show_default="h; t in the paper's protocol",
    ),
]
Initial = Annotated[
    str | None, Option(help="Values to begin with, such as a=1,b=0.5, or a policy file.")
]
Optimizer = Annotated[
    str | None,
    Option(
        help="cma or eda, with settings such as cma:population=24.",
        show_default="cma; eda in the paper's protocol",
    ),
]
Protocol = Annotated[
    str,
    Option(
        help="default, or paper: 100 problems drawn once, 100 runs each, 100 generations, the "
        "candidate with the lowest value ever observed; paper:problems=50,runs=10 for others."
    ),
]
Generations = Annotated[int | None, Option(help="Generations, instead of what the effort allows.")]
Out = Annotated[
    Path | None,
    Option(help="Write the policy to this .json file, and the trace of the search beside it."),
]


def command(
    space: Space = "power-1",
    prior: options.Prior = "bernoulli",
    arms: options.Arms = None,
    horizon: options.Horizon = 100,
    objective: options.Objective = "regret",
    reference: options.Reference = None,
    start: options.Start = None,
    v1: V1 = None,
    initial: Initial = None,
    optimizer: Optimizer = None,
    protocol: Protocol = "default",
    seed: options.Seed = 0,
    effort: options.Effort = 1.0,
    generations: Generations = None,
    time_limit: options.TimeLimit = None,
    out: Out = None,
    resume: options.Resume = False,
    force: options.Force = False,
    threads: options.Threads = None,
    cluster: options.Scheduler = None,
    workers: options.WorkerCount = None,
    as_json: options.Json = False,
) -> None:
    """Learn the numbers of a policy for your problems, and compare it with the classics and the floor."""
    given = options.arguments(locals())
    from ..learning import learn
    from ..learning.trace import trace_path

    traces = [] if out is None else [trace_path(out)]
    with (
        stopping("nothing was learned yet"),
        joined(cluster, workers, kept=lambda: go_on(out, *traces)) as executor,
        progress_bar("learning", executor) as bar,
    ):

        def progress(generation: Generation) -> None:
            bar(generation.share, 1.0, _describe(generation, horizon))

        learned = learn(**given, executor=executor, progress=progress, announce=say)
    if as_json:
        show_json(learned.to_dict())
    else:
        _show(learned, out)
    if learned.stopped == "interrupted":
        raise typer.Exit(130)


def _describe(generation: Generation, horizon: int) -> str:
    """Say in one line how far the search is."""
    text = f"generation {generation.number}: {generation.best:.5g}"
    if generation.noise:
        text += f" on {generation.problems:,} problems"
    if generation.above_floor is not None:
        text += f", {100 * generation.above_floor:.2f} % above the floor"
    if generation.horizon != horizon:
        text = f"first for {generation.horizon} plays, {text}"
    return text


def _show(learned: Learned, out: Path | None) -> None:
    origin = learned.file.learned
    assert origin is not None
    facts: list[tuple[str, object]] = []
    if learned.comparison is not None:
        show_comparison(learned.comparison)
        evaluation = learned.evaluation
        if evaluation is not None and evaluation is not learned.comparison[0]:
            regret, above = evaluation.mean_regret, ""
            if learned.floor:
                above = f", {100 * (regret / learned.floor - 1):.2f} % above the floor"
            facts.append(("regret", f"{regret:.6f} (exact{above})"))
    if origin.objective != "regret" and learned.objective is not None:
        shown = f"{learned.objective:.6f}"
        if origin.reference:
            won = 100 * (1 - learned.objective)
            shown = f"{won:.2f} % of problems won against {origin.reference}"
        facts.append((origin.objective, f"{shown} (fresh problems)"))
    facts.append(("policy", learned.policy.name))
    start = getattr(learned.policy, "start", None)
    if start is not None:
        facts.append(("start", start))
    searched = f"{origin.generations} generations, {origin.evaluations:,} candidates"
    facts.append(("search", f"{searched}, {learned.seconds:.0f} s; ended: {learned.stopped}"))
    if out is not None:
        from ..learning.trace import trace_path

        again = next_command(out, "ucb1-tuned", origin.prior, origin.arms, origin.horizon)
        facts += [("written", f"{out}, {trace_path(out)}"), ("next", again)]
    show_facts(facts)
