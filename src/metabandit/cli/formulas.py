"""`metabandit formulas`: all small formulas, in classes that rank arms alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ..errors import InputError
from . import options
from .display import progress_bar, show_json, show_table

if TYPE_CHECKING:
    from ..formulas import Classes


Length = Annotated[int, Option(help="Symbols of the longest formulas.")]
Prior = Annotated[
    str | None,
    Option(
        help="Compare formulas on values that play can reach with problems of this prior.",
        show_default="values that suit any problem with rewards in [0, 1]",
    ),
]
Horizon = Annotated[int | None, Option(help="Plays per episode, with --prior.")]
Sharp = Annotated[
    bool,
    Option(
        "--sharp",
        help="With --prior (two Bernoulli arms): one class for all formulas that choose the same "
        "arm in every state that play can reach.",
    ),
]
Groups = Annotated[int, Option(help="Groups of arms that formulas are compared on.")]
Tolerance = Annotated[
    float, Option(help="Values that differ by this share are equal; 0 compares bit for bit.")
]
Out = Annotated[
    Path | None,
    Option(help="Write the classes to this .npz file.", show_default="kept for later searches"),
]


def command(
    length: Length = 7,
    constants: options.Constants = None,
    operators: options.Operators = None,
    variables: options.Variables = None,
    prior: Prior = None,
    arms: options.Arms = None,
    horizon: Horizon = None,
    start: options.Start = None,
    sharp: Sharp = False,
    groups: Groups = 1024,
    tolerance: Tolerance = 1e-12,
    seed: options.Seed = 0,
    out: Out = None,
    force: options.Force = False,
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Count all formulas up to a length, and sort them into classes that rank arms alike."""
    given = dict(locals())
    from ..formulas import Grammar, kept_classes, sharpen
    from ..formulas.classes import check_path
    from ..formulas.kept import kept_path

    grammar = Grammar.read(operators=operators, variables=variables, constants=constants)
    if out is not None:
        check_path(out, force=force)
    elif force:
        raise InputError("--force is for what --out names: give --out")
    sample, task = _sample(given)
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
    path = out or (None if sharp else kept_path(length, grammar, sample.description, tolerance))
    if out is not None:
        classes.save(out, force=force)
    compared = f"compared on {sample.groups:,} groups of {sample.arms} arms"
    _show(classes, f"{grammar}\n{compared}", path, as_json=as_json)


def _sample(given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the values to compare formulas on, and the task whose play reaches them, if any."""
    from ..formulas import every_state, general_sample, reachable_sample
    from ..policies.start import default_start
    from ..priors import prior

    if given["prior"] is None:
        for name in ("sharp", "horizon", "start", "arms"):
            if given[name] not in (None, False):
                raise InputError(
                    f"--{name} is for values that play can reach: give --prior and --horizon"
                )
    elif given["horizon"] is None:
        raise InputError("--prior needs --horizon, the plays of an episode")
    sample = general_sample(groups=given["groups"], seed=given["seed"])
    if given["prior"] is None:
        return sample, {}
    known = prior(given["prior"], arms=given["arms"])
    start = given["start"] or default_start(known)
    task = {"prior": known, "horizon": given["horizon"], "start": start}
    if given["sharp"]:
        return every_state(**task), task
    return reachable_sample(**task, groups=given["groups"], seed=given["seed"]), task


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
