"""`metabandit advise`: what is worth using on problems drawn from a prior, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from . import options
from .display import next_command, progress_bar, say, show_facts, show_json, show_rows
from .running import stopping

if TYPE_CHECKING:
    from ..advice import Advice


Out = Annotated[
    Path | None,
    Option(help="Write the recommended policy to this .json file, unless it is a classic."),
]


def command(
    prior: options.Prior = "bernoulli",
    arms: options.Arms = None,
    horizon: options.Horizon = 100,
    seed: options.Seed = 0,
    effort: options.Effort = 1.0,
    out: Out = None,
    force: options.Force = False,
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Say what is worth using on your problems: a classic, a readable formula, or a learned policy."""
    given = options.arguments(locals())
    from ..advice import advise

    with progress_bar("advising") as bar, stopping("there is no advice yet"):
        advice = advise(**given, progress=lambda share, doing: bar(share, 1.0, doing), announce=say)
    if as_json:
        show_json(advice.to_dict())
    else:
        _show(advice, out, prior)


def _show(advice: Advice, out: Path | None, prior: str) -> None:
    task = advice.comparison
    rival = advice.candidates[advice.classic].policy.name
    typer.echo(f"{advice.summary()}\n")
    how = f"{task.episodes:,} episodes that no search has seen, seed {advice.seed}"
    show_rows(
        advice.rows(),
        align="llr",
        caption=f"After {task.horizon} plays: {task.arms} arms, {task.prior}, "
        f"{'exact' if task.method == 'exact' else how}\n"
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
        facts.append(("next", next_command(advice.written, rival, prior, task.arms, task.horizon)))
    elif out is not None:
        facts.append(
            ("written", f"nothing: {chosen.name} is a policy of the catalogue, known by its name")
        )
    show_facts(facts)
