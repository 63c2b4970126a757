"""`metabandit formulas`: all small formulas, in classes that rank arms alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .display import progress_bar, show_json, show_table
from .options import Arms, Json, Seed, Threads

Constants = Annotated[
    str | None,
    typer.Option(help="Numbers in formulas, with commas between.", show_default="1,2,3,5,7"),
]
Operators = Annotated[
    str | None,
    typer.Option(
        help="Operators in formulas: add, subtract, multiply, divide, min, max, sqrt, ln, abs, negate, "
        "invert; also exp, power and kl_upper.",
        show_default="all but the last three",
    ),
]
Variables = Annotated[
    str | None,
    typer.Option(
        help="Variables in formulas: r, s, n, t; also h (plays left) and K (arms).",
        show_default="r,s,n,t",
    ),
]


def formulas(
    length: Annotated[int, typer.Option(help="Symbols of the longest formulas.")] = 7,
    constants: Constants = None,
    operators: Operators = None,
    variables: Variables = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="Compare formulas on values that play can reach with problems of this prior.",
            show_default="values that suit any problem with rewards in [0, 1]",
        ),
    ] = None,
    arms: Arms = None,
    horizon: Annotated[
        int | None, typer.Option(help="Plays of an episode, together with --prior.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="How play begins, together with --prior.",
            show_default="prior-counts if the prior has counts, else each-once",
        ),
    ] = None,
    sharp: Annotated[
        bool,
        typer.Option(
            "--sharp",
            help="Together with --prior (two Bernoulli arms): one class for all formulas that choose "
            "the same arm in every state that play can reach.",
        ),
    ] = False,
    groups: Annotated[
        int, typer.Option(help="Groups of arms that formulas are compared on.")
    ] = 1024,
    tolerance: Annotated[
        float,
        typer.Option(help="Values that differ by this share are equal; 0 compares bit for bit."),
    ] = 1e-12,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the classes to this .npz file.", show_default="kept for later searches"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what --out names.")] = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Count all formulas up to a length, and sort them into classes that rank arms alike."""
    from ..formulas import (
        Grammar,
        every_state,
        general_sample,
        kept_classes,
        reachable_sample,
        sharpen,
    )
    from ..formulas.classes import check_path
    from ..formulas.kept import kept_path
    from ..policies.start import default_start
    from ..priors import prior as read_prior

    grammar = Grammar.read(operators=operators, variables=variables, constants=constants)
    if out is not None:
        check_path(out, force=force)
    elif force:
        raise InputError("--force is for what --out names: give --out")
    given = [
        name for name, value in (("--horizon", horizon), ("--start", start)) if value is not None
    ]
    if prior is None and (given or arms is not None or sharp):
        option = "--sharp" if sharp else (given or ["--arms"])[0]
        raise InputError(f"{option} is for values that play can reach: give --prior and --horizon")
    if prior is not None and horizon is None:
        raise InputError("--prior needs --horizon, the plays of an episode")
    sample = general_sample(groups=groups, seed=seed)
    if prior is not None and horizon is not None:
        known = read_prior(prior, arms=arms)
        start = start or default_start(known)
        if sharp:
            sample = every_state(known, horizon, start=start)
        else:
            sample = reachable_sample(known, horizon, start=start, groups=groups, seed=seed)
    with progress_bar("formulas") as bar:
        classes = kept_classes(
            length,
            grammar=grammar,
            sample=sample,
            tolerance=tolerance,
            threads=threads,
            progress=bar,
        )
        if sharp:
            assert horizon is not None
            classes = sharpen(classes, known, horizon, start=start, threads=threads, progress=bar)
    path = out or kept_path(length, grammar, sample.description, tolerance)
    if out is not None:
        classes.save(out, force=force)
    counts = classes.counts()
    totals = {key: sum(row[key] for row in counts) for key in counts[0] if key != "length"}
    if as_json:
        shown = {**classes.header, "counts": counts, "totals": totals}
        show_json({**shown, "file": None if sharp and out is None else str(path)})
        return
    rows = [[f"{value:,}" for value in row.values()] for row in counts]
    rows.append(["all", *(f"{value:,}" for value in totals.values())])
    how = f"{sample.groups:,} groups of {sample.arms} arms"
    caption = (
        f"Formulas of {grammar}\ncompared on {how}; invalid: a value is not finite; distinct: values "
        f"that no shorter or earlier formula has"
    )
    show_table(list(counts[0]), rows, align="lr", caption=caption)
    if out is not None or not sharp:
        typer.echo(f"written  {path}")
    else:
        typer.echo("not written: give --out to keep the sharpest partition")
