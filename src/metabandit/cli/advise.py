"""`metabandit advise`: what is worth using on problems drawn from a prior, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..progress import progress_bar
from . import options
from .display import check_show, next_command, say, show_facts, show_json, show_rows, told
from .running import stopping

if TYPE_CHECKING:
    from ..advice import Advice


def command(
    task: options.Task,
    horizon: options.Horizon = 100,
    effort: options.Effort = 1.0,
    out: Annotated[
        Path | None, "Write the recommended policy to this .json file, unless it is a classic."
    ] = None,
    force: options.Force = False,
    threads: options.Threads = None,
    show: options.Show = None,
    as_json: options.Json = False,
) -> None:
    """Say what is worth using on your problems: a classic, a readable formula, or a learned policy."""
    given = options.arguments(locals())
    check_show(show, task["prior"])
    from ..advice import advise

    with progress_bar("advising") as bar, stopping(lambda: "there is no advice yet"):
        advice = advise(**given, progress=lambda share, doing: bar(share, 1.0, doing), announce=say)
    if as_json:
        show_json(advice.to_dict())
    else:
        _show(advice, out, show)


def _show(advice: Advice, out: Path | None, show: str | None) -> None:
    task = advice.comparison
    rival = advice.name(advice.classic)
    typer.echo(f"{advice.summary()}\n")
    how = f"{task.episodes:,} episodes that no search has seen, seed {advice.seed}"
    show_rows(
        advice.rows(successes=show is not None),
        align="llr",
        caption=f"After {task.horizon} plays: {task.arms} arms, {task.prior}, "
        f"{'exact' if task.method == 'exact' else how}{told(task.feedback)}\n"
        f"In plays: the extra reward divided by what a play with {rival} brings",
    )
    show_rows(
        advice.scenario_rows(),
        align="lr",
        caption="Regret if the prior is wrong: policies that were made for the prior above, on other problems",
    )
    for note in advice.notes:
        typer.echo(note)
    facts = [("not ranked", f"{name}: {why}") for name, why in advice.skipped]
    chosen = advice.recommended.policy
    start = getattr(chosen, "start", None)
    if start is not None and advice.recommended.file is not None:
        facts.append(("start", start))
    if advice.written is not None:
        facts.append(("written", str(advice.written)))
        facts.append(("next", next_command(advice.written, rival, task)))
    elif out is not None:
        facts.append(
            ("written", f"nothing: {chosen.name} is a policy of the catalogue, known by its name")
        )
    show_facts(facts)
