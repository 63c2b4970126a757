"""`metabandit search`: the best small formula for problems drawn from a prior."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .display import progress_bar, say, show_json, show_table
from .evaluate import show_comparison
from .formulas import Constants, Operators, Variables
from .learn import Effort, Objective, Reference, TimeLimit, read_seconds, stopping
from .options import Arms, Json, Prior, Seed, Threads
from .workers import Scheduler, Workers, go_on, joined

if TYPE_CHECKING:
    from ..formulas import Found


def search(
    prior: Prior = "bernoulli",
    arms: Arms = None,
    horizon: Annotated[int, typer.Option(help="Plays of an episode.")] = 100,
    length: Annotated[
        int | None, typer.Option(help="Symbols of the longest formulas.", show_default="7")
    ] = None,
    constants: Constants = None,
    operators: Operators = None,
    variables: Variables = None,
    classes: Annotated[
        Path | None,
        typer.Option(
            help="A file that `metabandit formulas` wrote.",
            show_default="made, and kept, if needed",
        ),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            help="exact (every class, nothing left to chance), halving (all on the same problems, the "
            "worse half goes), ucb1-tuned (as in the paper), or auto: the surest within the time."
        ),
    ] = "auto",
    pulls: Annotated[int, typer.Option(help="Episodes of the strategy ucb1-tuned.")] = 10_000_000,
    objective: Objective = "regret",
    reference: Reference = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="How play begins: each-once, prior-counts, or such as prior-counts:plays=2,sum=1.",
            show_default="prior-counts if the prior has counts, else each-once",
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="How many of the best to rank.")] = 50,
    refine: Annotated[
        int, typer.Option(help="Learn the constants of so many of the best, too.")
    ] = 0,
    seed: Seed = 0,
    effort: Effort = 1.0,
    time_limit: TimeLimit = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the best to this .json file, as a policy.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw regret against length to this .svg, .png or .pdf file."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the search of --out that was stopped.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite what --out and --plot name.")
    ] = False,
    threads: Threads = None,
    cluster: Scheduler = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Find the best small formula for your problems, and show it against the classics and the floor."""
    from ..formulas import Grammar
    from ..formulas import search as run
    from ..formulas.searcher import state_path
    from ..priors import prior as read_prior

    known = read_prior(prior, arms=arms)
    limit = None if time_limit is None else read_seconds(time_limit)
    grammar = None
    if not constants is operators is variables is None:
        grammar = Grammar.read(operators=operators, variables=variables, constants=constants)
    if plot is not None:
        from ..report.drawing import check_picture

        check_picture(plot, force=force)
    if (resume or force) and out is None and plot is None:
        raise InputError("--resume and --force need a file: give --out")
    states = [] if out is None else [state_path(out)]
    with (
        stopping("nothing was found yet"),
        joined(cluster, workers, kept=lambda: go_on(out, *states)) as others,
        progress_bar("searching", others) as bar,
    ):
        found = run(
            known,
            horizon,
            length=length,
            classes=classes,
            grammar=grammar,
            strategy=strategy,
            pulls=pulls,
            objective=objective,
            reference=reference,
            start=start,
            top=top,
            refine=refine,
            seed=seed,
            effort=effort,
            time_limit=limit,
            threads=threads,
            executor=others,
            out=out,
            resume=resume,
            force=force and out is not None,
            progress=lambda share, doing: bar(share, 1.0, doing),
            announce=say,
        )
    if plot is not None:
        from .. import studies  # noqa: F401 (the picture shows formulas that they published)
        from ..report.drawing import save
        from ..report.runs import length_figure

        save(length_figure(found.to_dict()), plot)
    if as_json:
        show_json(found.to_dict())
    else:
        _show(found, out, plot)
    if found.stopped == "interrupted":
        raise typer.Exit(130)


def _show(found: Found, out: Path | None, plot: Path | None) -> None:
    origin = found.file.learned
    assert origin is not None
    rows = found.rows()
    caption = (
        f"The best formulas after {origin.horizon} plays, of {found.classes:,} classes\n{origin.arms} "
        f"arms, {origin.prior}, strategy {found.strategy}; measured anew"
    )
    cells = [list(row.values()) for row in rows]
    show_table(list(rows[0]), cells, align="llr", caption=caption)
    for entry in found.entries:
        if entry.refined is not None:
            numbers = ", ".join(
                f"{key}={value:.6g}" for key, value in entry.refined.parameters.items()
            )
            error = (
                "exact"
                if entry.refined.standard_error == 0.0
                else f"±{1.96 * entry.refined.standard_error:.4f}"
            )
            typer.echo(
                f"refined      {entry.formula}: {entry.refined.before.evaluation.mean_regret:.5f} -> {entry.refined.regret:.5f} "
                f"({error}): {entry.refined.expression} with {numbers}"
            )
    if found.comparison is not None:
        show_comparison(found.comparison)
    lines = [
        f"policy       {found.policy.name}",
        f"start        {getattr(found.policy, 'start', '')}",
        f"LaTeX        {getattr(found.policy, 'latex', '')}",
        f"search       {found.strategy}, {found.classes:,} classes, {found.seconds:.0f} s; ended: "
        f"{found.stopped}",
    ]
    written = [str(item) for item in (out, plot) if item is not None]
    if written:
        lines.append(f"written      {', '.join(written)}")
    if out is not None:
        lines.append(
            f"next         metabandit evaluate {shlex.quote(str(out))} ucb1-tuned --prior {origin.prior} "
            f"--arms {origin.arms} --horizon {origin.horizon}"
        )
    typer.echo("\n".join(lines))
