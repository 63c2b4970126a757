"""`metabandit advise`: what is worth using on problems drawn from a prior, in about a minute."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .display import progress_bar, say, show_json, show_table
from .learn import Effort, stopping
from .options import Arms, Json, Prior, Seed, Threads

if TYPE_CHECKING:
    from ..advice import Advice


def advise(
    prior: Prior = "bernoulli",
    arms: Arms = None,
    horizon: Annotated[int, typer.Option(help="Plays of an episode.")] = 100,
    seed: Seed = 0,
    effort: Effort = 1.0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the recommended policy to this .json file, unless it is a classic."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what --out names.")] = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Say what is worth using on your problems: a classic, a readable formula, or a learned policy."""
    from ..advice import advise as run
    from ..priors import prior as read_prior

    known = read_prior(prior, arms=arms)
    with progress_bar("advising") as bar, stopping("there is no advice yet"):
        advice = run(
            known,
            horizon,
            seed=seed,
            effort=effort,
            threads=threads,
            out=out,
            force=force,
            progress=lambda share, doing: bar(share, 1.0, doing),
            announce=say,
        )
    if as_json:
        show_json(advice.to_dict())
    else:
        _show(advice, out, prior)


def _show(advice: Advice, out: Path | None, prior: str) -> None:
    comparison = advice.comparison
    rival = advice.candidates[advice.classic].policy.name
    typer.echo(f"{advice.summary()}\n")
    how = (
        "exact"
        if comparison.method == "exact"
        else f"{comparison.episodes:,} episodes that no search has seen, seed {advice.seed}"
    )
    rows = advice.rows()
    show_table(
        list(rows[0]),
        [list(row.values()) for row in rows],
        align="llr",
        caption=f"After {comparison.horizon} plays: {comparison.arms} arms, {comparison.prior}, {how}\nIn plays: the "
        f"extra reward divided by what a play with {rival} brings",
    )
    rows = advice.scenario_rows()
    show_table(
        list(rows[0]),
        [list(row.values()) for row in rows],
        align="lr",
        caption="Regret if the prior is wrong: policies that were made for the prior above, on other problems",
    )
    for note in advice.notes:
        typer.echo(note)
    lines = [f"not ranked   {name}: {why}" for name, why in advice.skipped]
    chosen = advice.recommended.policy
    begin = getattr(chosen, "start", None)
    if begin is not None and advice.recommended.file is not None:
        lines.append(f"start        {begin}")
    if advice.written is not None:
        lines.append(f"written      {advice.written}")
        lines.append(
            f"next         metabandit evaluate {shlex.quote(str(advice.written))} {rival} --prior "
            f"{shlex.quote(prior)} --arms {comparison.arms} --horizon {comparison.horizon}"
        )
    elif out is not None:
        lines.append(
            f"written      nothing: {chosen.name} is a policy of the catalogue, known by its name"
        )
    typer.echo("\n".join(lines))
