"""`metabandit evaluate`: the regret of policies on problems drawn from a prior."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from ..errors import InputError
from ..files import check_new, reserving, written
from . import options
from .display import check_show, progress_bar, say, show_comparison, show_json
from .running import go_on, joined, stopping

if TYPE_CHECKING:
    from ..engine import Comparison


@reserving
def command(
    *,
    policies: Annotated[
        list[str],
        Argument(
            help="Names such as ucb1:C=0.17 (see `metabandit policies`), expressions in quotes, such as "
            "'r + 3/(n + 2)', or policy files. If one begins with a minus, write all options first, then --.",
            show_default=False,
        ),
    ],
    task: options.Task,
    horizon: Annotated[
        list[int] | None, "Plays per test (episode); may be given several times.", "100"
    ] = None,
    method: Annotated[
        str,
        "exact (no noise; two or three Bernoulli arms), monte-carlo (simulation), or auto: exact if it is "
        "cheaper than simulating to 0.1 %, unless --episodes or --runs is given.",
    ] = "auto",
    episodes: Annotated[
        int | None, "Episodes to simulate per policy.", "100000 if simulated"
    ] = None,
    runs: Annotated[int | None, "Episodes to simulate per problem.", "1"] = None,
    start: Annotated[
        str | None,
        "How index policies begin: each-once (play each arm once first), prior-counts (pseudo-observations from "
        "the prior), or pseudo-observations of your own, such as prior-counts:plays=2,sum=1. Other policies, "
        "such as thompson, begin in their own way.",
        "each-once",
    ] = None,
    out: Annotated[
        Path | None,
        "Also write the result to this .json file; unfinished work is kept next to it.",
    ] = None,
    resume: options.Resume = False,
    force: options.Force = False,
    resources: options.Resources,
    show: options.Show = None,
    as_json: options.Json = False,
) -> None:
    """Compute the regret of policies on problems drawn from a prior, exactly or by simulation with the same rewards for all."""
    # Long because its options are its signature; the body is short.
    given = options.arguments(locals())
    check_show(show, task["prior"])
    from ..policies import policy
    from ..settings import check_horizon

    # Everything that can be refused is refused before anything is computed.
    horizons = list(dict.fromkeys(check_horizon(plays) for plays in horizon or [100]))
    given["policies"] = [policy(text, start=start) for text in policies]
    files = _files(out, horizons, resume=resume, force=force)
    for plays in horizons:
        for item in given["policies"]:
            item.check(task["prior"], plays)
    for name in ("out", "force"):
        del given[name]

    results = _evaluate(
        given, horizons, resources, files, resume=resume, kept=lambda: go_on(out, *files.values())
    )
    objects = [result.to_dict() for result in results]
    everything = objects[0] if len(objects) == 1 else {"results": objects}
    if out is not None:
        with written(out, "the result") as file:
            file.write(json.dumps(everything, indent=2).encode() + b"\n")
        for path in files.values():
            path.unlink(missing_ok=True)
    if as_json:
        show_json(everything)
    else:
        _show(results, task, start, show)


def _evaluate(
    given: dict[str, Any],
    horizons: list[int],
    resources: options.Resources,
    files: dict[int, Path],
    *,
    resume: bool,
    kept: Callable[[], str],
) -> list[Comparison]:
    """One comparison per horizon; `kept` says what is left of them if a person stops the command."""
    from ..engine import evaluate

    results = []
    with stopping(kept), joined(resources, kept=kept) as executor:
        given |= {"threads": resources[0], "executor": executor, "announce": say}
        for plays in horizons:
            given |= {"horizon": plays, "keep": files.get(plays)}
            # Of several horizons, those after the one that was stopped have no file yet.
            given["resume"] = resume and files[plays].exists()
            with progress_bar(f"{plays} plays", executor) as progress:
                results.append(evaluate(**given, progress=progress))
    return results


def _show(
    results: list[Comparison], task: dict[str, Any], start: str | None, show: str | None
) -> None:
    from ..bayes.bounds import has_bound

    for result in results:
        hint = ""
        if task["floor"] is None and result.floor is None and has_bound(task["prior"]):
            hint = "The least possible regret takes a while to compute: add it with --floor"
        begun = f", start {result.start}" if start else ""
        show_comparison(result, start=begun, hint=hint, show=show)


def _files(out: Path | None, horizons: list[int], *, resume: bool, force: bool) -> dict[int, Path]:
    """Return the files that keep what is done for each horizon until the result is written."""
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
    if there and not resume and not force:
        raise InputError(
            f"{there[0]} is there, of an evaluation that did not end: go on with it (--resume), or start "
            f"from scratch (--force)"
        )
    if not resume:
        for path in there:
            path.unlink()
    return files
