"""`metabandit advise`: what is worth using on problems drawn from a prior, and what it brings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..progress import shares
from ..settings import read_seconds
from . import options
from .display import (
    SUCCESSES,
    check_show,
    progress_bar,
    say,
    show_facts,
    show_json,
    show_rows,
    told,
)
from .running import seconds_so_far, stopping

if TYPE_CHECKING:
    from ..advice import Advice

_REGRET = "regret"


def command(
    problems: options.HistoryTask,
    horizon: options.Horizon = 100,
    today: Annotated[
        str | None,
        "What you do today, the baseline of all gains: split-then-winner:share=0.2, ab-test, thompson, or any "
        "other policy.",
        "split, an equal split",
    ] = None,
    unit: Annotated[str, "What rewards are called, such as clicks."] = "rewards",
    value: Annotated[float | None, "The worth of a reward in money, such as 0.35."] = None,
    effort: Annotated[
        float | None,
        "How long to compute: 2 takes about twice as long, 0.5 half as long.",
        "1, or what the time limit allows",
    ] = None,
    time_limit: Annotated[str | None, "Time for the whole command, such as 60s or 5m."] = None,
    show: Annotated[
        str | None,
        "regret: also show regret; successes: call rewards of 0 and 1 successes.",
    ] = None,
    out: Annotated[
        Path | None,
        "Write the advice to this .json file: `metabandit report` makes a page of it, and every other command "
        "takes it as the recommended policy.",
    ] = None,
    force: options.Force = False,
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Recommend a policy for your problems (a classic, a formula or a learned one), and say what it gains."""
    given = options.arguments(locals())
    if show == SUCCESSES:
        prior: Any = problems["prior"]
        check_show(show, getattr(prior, "prior", prior))
        given["unit"] = SUCCESSES
    elif show not in (None, _REGRET):
        raise InputError(f"--show takes regret or {SUCCESSES}, not {show!r}")
    if time_limit is not None:
        from ..engine.limits import TimeLimit

        given["time_limit"] = TimeLimit(read_seconds(time_limit)).since(seconds_so_far())
    from ..advice import advise

    with progress_bar("advising") as bar, stopping(lambda: "there is no advice yet"):
        advice = advise(**given, progress=shares(bar), announce=say)
    if as_json:
        show_json(advice.to_dict())
    else:
        _show(advice, regret=show == _REGRET)
    if advice.stopped == "interrupted":
        raise typer.Exit(130)


def _show(advice: Advice, *, regret: bool) -> None:
    typer.echo(f"{advice.summary()}\n")
    most = max(item.episodes for item in advice.policies)
    how = f"up to {most:,} episodes that no search has seen, seed {advice.seed}"
    show_rows(
        advice.rows(regret=regret),
        align="llr",
        caption=f"{advice.unit} per test of {advice.horizon:,} plays: {advice.arms} arms, {advice.prior}, "
        f"{how if most else 'exact'}{told(advice.feedback)}",
    )
    if advice.scenarios:
        show_rows(
            advice.scenario_rows(),
            align="lr",
            caption=f"Gain over {advice.today.name} if the prior is wrong: policies that were made for the prior "
            f"above, on other problems",
        )
    for note in advice.notes:
        typer.echo(note)
    facts: list[tuple[str, Any]] = [
        ("not ranked", f"{name}: {why}") for name, why in advice.skipped
    ]
    start = getattr(advice.recommended.policy, "start", None)
    if start is not None:
        facts.append(("start", start))
    facts.append(("time", f"{advice.seconds:.0f} s; ended: {advice.stopped}"))
    if advice.written is not None:
        facts.append(("written", f"{advice.written}; metabandit report {advice.written}"))
        facts += [("next", text) for _, text in advice.next_steps()]
    show_facts(facts)
