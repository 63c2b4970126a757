"""`metabandit formulas`: all small formulas, in classes that rank arms alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..files import reserving
from . import options
from .display import progress_bar, show_json, show_table

if TYPE_CHECKING:
    from ..formulas import Classes


@reserving
def command(
    *,
    length: Annotated[int, "Length of the longest formulas, in symbols."] = 7,
    prior: Annotated[
        str | None,
        "Compare formulas in states that play can reach on problems of this prior.",
        "states that suit any problem with rewards in [0, 1]",
    ] = None,
    arms: options.Arms = None,
    horizon: Annotated[int | None, "Plays per test (episode), with --prior."] = None,
    start: options.Start = None,
    grammar: options.Grammar,
    sharp: Annotated[
        bool,
        "With --prior (two Bernoulli arms): put formulas in one class only if they choose the same arm in every "
        "state that play can reach.",
    ] = False,
    groups: Annotated[int, "Number of groups of arms on which formulas are compared."] = 1024,
    tolerance: Annotated[
        float, "Relative difference below which values are equal; 0 compares bit for bit."
    ] = 1e-12,
    seed: options.Seed = 0,
    out: Annotated[
        Path | None, "Write the classes to this .npz file.", "kept for later searches"
    ] = None,
    force: options.Force = False,
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Count all formulas up to a length, and sort them into classes that rank the arms in the same order."""
    # Long because its options are its signature; the body is short.
    from ..formulas import (
        Grammar,
        every_state,
        general_sample,
        kept_classes,
        reachable_sample,
        sharpen,
    )
    from ..formulas.classes import check_path, path_of

    grammar = grammar or Grammar()
    if out is not None:
        check_path(out, force=force)
    elif force:
        raise InputError("--force is for what --out names: give --out")
    sample = general_sample(groups=groups, seed=seed)
    task = _task(prior, arms=arms, horizon=horizon, start=start, sharp=sharp)
    if sharp:
        sample = every_state(**task)
    elif task:
        sample = reachable_sample(**task, groups=groups, seed=seed)
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
            classes = sharpen(classes, **task, threads=threads, progress=bar)
    path = out or (None if sharp else path_of(length, grammar, sample.description, tolerance))
    if out is not None:
        classes.save(out, force=force)
    compared = f"compared on {sample.groups:,} groups of {sample.arms} arms"
    _show(classes, f"{grammar}\n{compared}", path, as_json=as_json)


def _task(text: str | None, **given: Any) -> dict[str, Any]:
    """The task whose play reaches the values that formulas are compared on, if there is one."""
    from ..policies.start import default_start
    from ..priors import prior

    if text is None:
        for name, value in given.items():
            if value not in (None, False):
                raise InputError(
                    f"--{name} is for values that play can reach: give --prior and --horizon"
                )
        return {}
    if given["horizon"] is None:
        raise InputError("--prior needs --horizon, the plays of an episode")
    known = prior(text, arms=given["arms"])
    start = given["start"] or default_start(known)
    return {"prior": known, "horizon": given["horizon"], "start": start}


def _show(classes: Classes, what: str, path: Path | None, *, as_json: bool) -> None:
    counts = classes.counts()
    totals = {key: sum(row[key] for row in counts) for key in counts[0] if key != "length"}
    if as_json:
        file = None if path is None else str(path)
        show_json({**classes.header, "counts": counts, "totals": totals, "file": file})
        return
    rows = [[f"{value:,}" for value in row.values()] for row in counts]
    rows.append(["all", *(f"{value:,}" for value in totals.values())])
    caption = (
        f"Formulas of {what}; invalid: a value is not finite; distinct: values that no shorter or "
        f"earlier formula has"
    )
    show_table(list(counts[0]), rows, align="lr", caption=caption)
    unwritten = "not written: give --out to keep the sharpest partition"
    typer.echo(unwritten if path is None else f"written  {path}")
