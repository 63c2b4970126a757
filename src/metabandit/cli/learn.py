"""`metabandit learn`: the best policy of a space for problems drawn from a prior."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .display import check_show, next_command, show_comparison, show_facts, show_json
from .running import go_on, working

if TYPE_CHECKING:
    from ..learning import Generation, Learned


def command(
    *,
    space: Annotated[
        str,
        "The family of policies to learn from: power-1, power-2, ...; a policy with parameters (see "
        "`metabandit policies`), such as ucb1, or ucb-v:c=1 to learn only zeta; or an expression in quotes, "
        "whose unknown names are learned, such as 'r + a/(n + b)'.",
    ] = "power-1",
    run: options.Run,
    v1: Annotated[
        str | None,
        "The first feature of power-P: from h (plays left) or t (plays made).",
        "h; t in the paper's protocol",
    ] = None,
    v4: Annotated[
        str | None,
        "The last feature of power-P: s (standard deviation) or w (share of plays that wait for their reward).",
        "s",
    ] = None,
    initial: Annotated[
        str | None, "Where the search begins: values such as a=1,b=0.5, or a policy file."
    ] = None,
    optimizer: Annotated[
        str | None,
        "The optimiser: cma or eda, with settings such as cma:population=24.",
        "cma; eda in the paper's protocol",
    ] = None,
    protocol: Annotated[
        str,
        "default, or paper: 100 problems drawn once, 100 runs each, 100 generations, and the candidate with the "
        "lowest value ever observed; paper:problems=50,runs=10 changes these numbers.",
    ] = "default",
    generations: Annotated[
        int | None, "Number of generations, instead of what the effort allows."
    ] = None,
    out: Annotated[
        Path | None, "Write the policy to this .json file, and a trace of the search next to it."
    ] = None,
    resources: options.Resources,
    show: options.Show = None,
    as_json: options.Json = False,
) -> None:
    """Learn the parameters of a policy for your problems, and compare it with the classics and the floor."""
    # Long because its options are its signature; the body is short.
    given = options.arguments(locals())
    check_show(show, run["prior"])
    from ..learning import learn
    from ..learning.trace import trace_path

    traces = [] if out is None else [trace_path(out)]
    with working(
        "learning", resources, stopped="nothing was learned yet", kept=lambda: go_on(out, *traces)
    ) as (who, tell):

        def progress(generation: Generation) -> None:
            tell(generation.share, str(generation))

        learned = learn(**given, **who, progress=progress)
    if as_json:
        show_json(learned.to_dict())
    else:
        _show(learned, out, show)
    if learned.stopped == "interrupted":
        raise typer.Exit(130)


def _show(learned: Learned, out: Path | None, show: str | None) -> None:
    from ..engine.objectives import read_objective

    origin = learned.file.learned
    assert origin is not None
    facts: list[tuple[str, object]] = []
    if learned.comparison is not None:
        show_comparison(learned.comparison, show=show)
        evaluation = learned.evaluation
        if evaluation is not None and evaluation is not learned.comparison[0]:
            regret, above = evaluation.mean_regret, ""
            if learned.floor:
                above = f", {100 * (regret / learned.floor - 1):.2f} % above the floor"
            facts.append(("regret", f"{regret:.6f} (exact{above})"))
        floor = learned.comparison.floor
        if evaluation is not None and floor is not None and floor.kind == "bound" and floor.regret:
            above = f"{100 * (evaluation.mean_regret / floor.regret - 1):.1f}"
            facts.append(("floor", f"at most {above} % above the best possible"))
    if origin.objective != "regret" and learned.objective is not None:
        shown = f"{learned.objective:.6f}"
        if origin.reference:
            won = 100 * (1 - learned.objective)
            shown = f"{won:.2f} % of problems won against {origin.reference}"
        exact = read_objective(origin.objective, reference=origin.reference).exact
        facts.append((origin.objective, f"{shown} ({'exact' if exact else 'fresh problems'})"))
    if learned.power is not None:
        facts.append(("power", f"{learned.power:.4f} (exact)"))
    if learned.unbeaten == "start":
        facts.append(("result", "nothing better was found than what learning began with"))
    elif learned.unbeaten is not None:
        facts.append(("result", f"nothing better was found than {learned.unbeaten}"))
    facts.append(("policy", learned.policy.name))
    start = getattr(learned.policy, "start", None)
    if start is not None:
        facts.append(("start", start))
    if (clock := learned.coarse) is not None:
        apart = 100.0 * (clock.coarse / clock.full - 1.0)
        error = 196.0 * clock.standard_error / clock.full
        facts.append(
            (
                "clock",
                f"candidates were judged in blocks of {100.0 * clock.growth:g} % of an arm's plays, which "
                f"changes the result's value by {apart:+.2f} ± {error:.2f} %",
            )
        )
    searched = f"{origin.generations} generations, {origin.evaluations:,} candidates"
    facts.append(("search", f"{searched}, {learned.seconds:.0f} s; ended: {learned.stopped}"))
    if out is not None:
        from ..learning.trace import trace_path

        facts.append(("written", f"{out}, {trace_path(out)}"))
        facts.append(("next", next_command(out, "ucb1-tuned", origin)))
    show_facts(facts)
