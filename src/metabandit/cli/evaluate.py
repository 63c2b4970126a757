"""`metabandit evaluate`: the regret of policies on problems drawn from a prior."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from ..files import check_new, written
from .display import progress_bar, say, show_json, show_table
from .options import Arms, Json, Prior, Seed, Threads
from .workers import Scheduler, Workers, go_on, joined

if TYPE_CHECKING:
    from ..engine import Comparison


def evaluate(
    policies: Annotated[
        list[str],
        typer.Argument(
            help="Names such as ucb1:C=0.17 (see `metabandit policies`), or expressions in quotes, "
            "such as 'r + 3/(n + 2)'. If one begins with a minus, write all options first, then --.",
            show_default=False,
        ),
    ],
    prior: Prior = "bernoulli",
    arms: Arms = None,
    horizon: Annotated[
        list[int] | None,
        typer.Option(help="Plays of an episode; may be given several times.", show_default="100"),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="exact (no noise; Bernoulli arms, two or three), monte-carlo (simulation), or auto: "
            "exact where it is cheaper than simulating to 0.1 %, unless --episodes or --runs is given."
        ),
    ] = "auto",
    episodes: Annotated[
        int | None,
        typer.Option(
            help="Episodes that are simulated for each policy.",
            show_default="100000 if it is simulated",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(help="Episodes for each problem that is drawn.", show_default="1"),
    ] = None,
    seed: Seed = 0,
    start: Annotated[
        str | None,
        typer.Option(
            help="How index policies begin: each-once, prior-counts, or such as "
            "prior-counts:plays=2,sum=1. Others, such as thompson, have their own start.",
            show_default="each-once",
        ),
    ] = None,
    floor: Annotated[
        bool | None,
        typer.Option(
            "--floor/--no-floor",
            help="Whether to show the Bayes-optimal regret, which no policy can beat.",
            show_default="where it takes about a second",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the result to this .json file, too; what is done so far is kept beside it."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the evaluation of --out that was stopped.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what --out names.")] = False,
    threads: Threads = None,
    cluster: Scheduler = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """The regret of policies on problems drawn from a prior: exactly, or estimated with the same luck."""
    from ..bayes.optimum import has_optimum
    from ..policies import policy
    from ..priors import prior as read_prior
    from ..settings import check_horizon

    # Everything that can be refused is refused before anything is computed.
    known = read_prior(prior, arms=arms)
    horizons = list(dict.fromkeys(check_horizon(plays) for plays in horizon or [100]))
    made = [policy(text, start=start) for text in policies]
    files = _files(out, horizons, resume=resume, force=force)
    for plays in horizons:
        for item in made:
            item.check(known, plays)

    from ..engine import evaluate as run

    results = []
    try:
        with joined(cluster, workers, kept=lambda: go_on(out, *files.values())) as others:
            for plays in horizons:
                with progress_bar(f"{plays} plays", others) as progress:
                    results.append(
                        run(
                            made,
                            known,
                            plays,
                            method=method,
                            episodes=episodes,
                            runs=runs,
                            seed=seed,
                            start=start,
                            floor=floor,
                            threads=threads,
                            executor=others,
                            keep=files.get(plays),
                            # Of several horizons, those after the one that was stopped have no file yet.
                            resume=resume and files[plays].exists(),
                            progress=progress,
                            announce=say,
                        )
                    )
    except KeyboardInterrupt:
        say(f"stopped: {go_on(out, *files.values())}")
        raise
    objects = [result.to_dict() for result in results]
    everything = objects[0] if len(objects) == 1 else {"results": objects}
    if out is not None:
        with written(out, "the result") as file:
            file.write(json.dumps(everything, indent=2).encode() + b"\n")
        for path in files.values():
            path.unlink(missing_ok=True)
    if as_json:
        show_json(everything)
        return
    for result in results:
        hint = ""
        if floor is None and result.floor is None and has_optimum(known):
            hint = "The Bayes-optimal floor takes a while at this horizon: add it with --floor"
        show_comparison(result, begin=f", start {result.start}" if start else "", hint=hint)


def _files(out: Path | None, horizons: list[int], *, resume: bool, force: bool) -> dict[int, Path]:
    """Where what is done for each horizon is kept until the result is written."""
    if out is None:
        if resume or force:
            raise InputError("--resume and --force need a file: give --out")
        return {}
    check_new(out, (".json",), "the file of an evaluation", force=force)
    files = {plays: out.with_name(f"{out.stem}.{plays}.npz") for plays in horizons}
    there = [path for path in files.values() if path.exists()]
    if resume and not there:
        raise InputError(
            f"there is nothing to resume: {files[horizons[0]]} does not exist; begin without --resume"
        )
    if there and force and not resume:
        for path in there:
            path.unlink()
    elif there and not resume:
        raise InputError(
            f"{there[0]} is there, of an evaluation that did not end: go on with it (--resume), or begin "
            f"anew (--force)"
        )
    return files


def show_comparison(result: Comparison, *, begin: str = "", hint: str = "") -> None:
    """The table of a comparison, with what it is about."""
    how = "exact"
    if result.method != "exact":
        times = f" ({result.runs} of each problem)" if result.runs > 1 else ""
        how = f"{result.episodes:,} episodes{times}, seed {result.seed}"
    caption = (
        f"Regret after {result.horizon} plays: the reward lost by not always playing the best "
        f"arm; less is better\n{result.arms} arms, {result.prior}, "
        f"{how}{begin}"
    )
    if result.floor is not None:
        hint = "Bayes-optimal: the least that any policy can have on these problems"
    rows = result.rows()
    cells = [list(row.values()) for row in rows]
    caption = f"{caption}\n{hint}" if hint else caption
    show_table(list(rows[0]), cells, align="lr", caption=caption)
