"""`metabandit search`: the best small formula for problems drawn from a prior."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ..errors import InputError
from . import options
from .display import (
    next_command,
    progress_bar,
    say,
    show_comparison,
    show_facts,
    show_json,
    show_rows,
)
from .running import go_on, joined, stopping

if TYPE_CHECKING:
    from ..formulas import Found


Length = Annotated[int | None, Option(help="Symbols of the longest formulas.", show_default="7")]
Classes = Annotated[
    Path | None,
    Option(
        help="A file that `metabandit formulas` wrote.", show_default="made, and kept, if needed"
    ),
]
Strategy = Annotated[
    str,
    Option(
        help="exact (every class, nothing left to chance), halving (all on the same problems, the "
        "worse half goes), ucb1-tuned (as in the paper), or auto: the surest within the time."
    ),
]
Pulls = Annotated[int, Option(help="Episodes of the strategy ucb1-tuned.")]
Top = Annotated[int, Option(help="How many of the best to rank.")]
Refine = Annotated[int, Option(help="Also learn the constants of this many of the best.")]
Out = Annotated[Path | None, Option(help="Write the best to this .json file, as a policy.")]
Plot = Annotated[
    Path | None, Option(help="Draw regret against length to this .svg, .png or .pdf file.")
]


def command(
    prior: options.Prior = "bernoulli",
    arms: options.Arms = None,
    horizon: options.Horizon = 100,
    length: Length = None,
    constants: options.Constants = None,
    operators: options.Operators = None,
    variables: options.Variables = None,
    classes: Classes = None,
    strategy: Strategy = "auto",
    pulls: Pulls = 10_000_000,
    objective: options.Objective = "regret",
    reference: options.Reference = None,
    start: options.Start = None,
    top: Top = 50,
    refine: Refine = 0,
    seed: options.Seed = 0,
    effort: options.Effort = 1.0,
    time_limit: options.TimeLimit = None,
    out: Out = None,
    plot: Plot = None,
    resume: options.Resume = False,
    force: options.Force = False,
    threads: options.Threads = None,
    cluster: options.Scheduler = None,
    workers: options.WorkerCount = None,
    as_json: options.Json = False,
) -> None:
    """Find the best small formula for your problems, and compare it with the classics and the floor."""
    given = options.arguments(locals())
    from ..formulas import Grammar, search
    from ..formulas.searcher import state_path

    del given["plot"]
    symbols = {name: given.pop(name) for name in ("operators", "variables", "constants")}
    if any(value is not None for value in symbols.values()):
        given["grammar"] = Grammar.read(**symbols)
    if plot is not None:
        from ..report.drawing import check_picture

        check_picture(plot, force=force)
    if (resume or force) and out is None and plot is None:
        raise InputError("--resume and --force need a file: give --out")
    given["force"] = force and out is not None
    states = [] if out is None else [state_path(out)]
    with (
        stopping("nothing was found yet"),
        joined(cluster, workers, kept=lambda: go_on(out, *states)) as executor,
        progress_bar("searching", executor) as bar,
    ):
        given["progress"] = lambda share, doing: bar(share, 1.0, doing)
        found = search(**given, executor=executor, announce=say)
    if plot is not None:
        _draw(found, plot)
    if as_json:
        show_json(found.to_dict())
    else:
        _show(found, out, plot)
    if found.stopped == "interrupted":
        raise typer.Exit(130)


def _draw(found: Found, plot: Path) -> None:
    from .. import studies  # noqa: F401  (the picture shows formulas that they published)
    from ..report.drawing import save
    from ..report.runs import length_figure

    save(length_figure(found.to_dict()), plot)


def _show(found: Found, out: Path | None, plot: Path | None) -> None:
    origin = found.file.learned
    assert origin is not None
    show_rows(
        found.rows(),
        align="llr",
        caption=f"The best formulas after {origin.horizon} plays, of {found.classes:,} classes\n"
        f"{origin.arms} arms, {origin.prior}, strategy {found.strategy}; measured again",
    )
    for entry in found.entries:
        if (refined := entry.refined) is not None:
            numbers = ", ".join(f"{key}={value:.6g}" for key, value in refined.parameters.items())
            error = f"±{1.96 * refined.standard_error:.4f}" if refined.standard_error else "exact"
            typer.echo(
                f"refined      {entry.formula}: {refined.before.evaluation.mean_regret:.5f} -> "
                f"{refined.regret:.5f} ({error}): {refined.expression} with {numbers}"
            )
    if found.comparison is not None:
        show_comparison(found.comparison)
    searched = f"{found.strategy}, {found.classes:,} classes"
    facts = [
        ("policy", found.policy.name),
        ("start", getattr(found.policy, "start", "")),
        ("LaTeX", getattr(found.policy, "latex", "")),
        ("search", f"{searched}, {found.seconds:.0f} s; ended: {found.stopped}"),
    ]
    written = [str(item) for item in (out, plot) if item is not None]
    if written:
        facts.append(("written", ", ".join(written)))
    if out is not None:
        again = next_command(out, "ucb1-tuned", origin.prior, origin.arms, origin.horizon)
        facts.append(("next", again))
    show_facts(facts)
