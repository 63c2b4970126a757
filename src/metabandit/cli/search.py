"""`metabandit search`: the best small formula for problems drawn from a prior."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from . import options
from .display import check_show, next_command, show_comparison, show_facts, show_json, show_rows
from .running import go_on, working

if TYPE_CHECKING:
    from ..formulas import Found


def command(
    *,
    run: options.Run,
    length: Annotated[int | None, "Length of the longest formulas, in symbols.", "7"] = None,
    grammar: options.Grammar,
    classes: Annotated[
        Path | None, "A file of classes from `metabandit formulas`.", "made once and kept"
    ] = None,
    strategy: Annotated[
        str,
        "exact (evaluate every class exactly), halving (simulate, and drop the worse half again and again), "
        "ucb1-tuned (as in the paper), or auto: exact if time allows, otherwise halving.",
    ] = "auto",
    pulls: Annotated[
        int | None, "Episodes to simulate, for --strategy ucb1-tuned.", "10 million"
    ] = None,
    top: Annotated[int, "How many formulas to rank."] = 50,
    refine: Annotated[
        int, "How many of the best formulas to refine, by learning their constants."
    ] = 0,
    out: Annotated[Path | None, "Write the best formula to this .json file, as a policy."] = None,
    plot: Annotated[
        Path | None, "Draw regret against length to this .svg, .png or .pdf file."
    ] = None,
    resources: options.Resources,
    show: options.Show = None,
    as_json: options.Json = False,
) -> None:
    """Find the best small formula for your problems, and compare it with the classics and the floor."""
    given = options.arguments(locals())
    check_show(show, run["prior"])
    from ..formulas import search
    from ..formulas.searcher import state_path

    del given["plot"]
    if plot is not None:
        from ..report.writing import check_picture

        check_picture(plot, force=run["force"])
    if (run["resume"] or run["force"]) and out is None and plot is None:
        raise InputError("--resume and --force need a file: give --out")
    given["force"] = run["force"] and out is not None
    states = [] if out is None else [state_path(out)]
    with working(
        "searching", resources, stopped="nothing was found yet", kept=lambda: go_on(out, *states)
    ) as (who, tell):
        found = search(**given, **who, progress=tell)
    if plot is not None:
        _draw(found, plot)
    if as_json:
        show_json(found.to_dict())
    else:
        _show(found, out, plot, show)
    if found.stopped == "interrupted":
        raise typer.Exit(130)


def _draw(found: Found, plot: Path) -> None:
    from .. import studies  # noqa: F401  (the picture shows formulas that they published)
    from ..report.runs import length_figure
    from ..report.writing import save

    save(length_figure(found.to_dict()), plot)


def _show(found: Found, out: Path | None, plot: Path | None, show: str | None) -> None:
    origin = found.file.learned
    assert origin is not None
    show_rows(
        found.rows(successes=show is not None),
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
        show_comparison(found.comparison, show=show)
    searched = f"{found.strategy}, {found.classes:,} classes"
    facts = (
        []
        if found.unbeaten is None
        else [("result", f"no formula is better than {found.unbeaten}")]
    )
    facts += [
        ("policy", found.policy.name),
        ("start", getattr(found.policy, "start", "")),
        ("LaTeX", getattr(found.policy, "latex", "")),
        ("search", f"{searched}, {found.seconds:.0f} s; ended: {found.stopped}"),
    ]
    written = [str(item) for item in (out, plot) if item is not None]
    if written:
        facts.append(("written", ", ".join(written)))
    if out is not None:
        facts.append(("next", next_command(out, "ucb1-tuned", origin)))
    show_facts(facts)
