"""What people see: tables, facts, and progress with the time left."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import progress
from ..errors import InputError, about
from ..feedback import Feedback
from ..showing import alignment, text_table

if TYPE_CHECKING:
    from ..engine import Comparison
    from ..policies.file import Origin
    from ..priors import Prior

# What a table can show beside regret.
SUCCESSES = "successes"


def show_json(value: Any) -> None:
    """Write one JSON value to standard output."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def show_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = "l", caption: str = ""
) -> None:
    """Show a table, aligned as by `text_table`; in plain text unless a terminal reads it."""
    if not sys.stdout.isatty():
        flat = [[cell.replace("\n", "; ") for cell in row] for row in rows]
        text = text_table(titles, flat, align=align)
        sys.stdout.write(f"{caption}\n{text}\n\n" if caption else f"{text}\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=caption or None, title_justify="left", title_style="bold")
    for side, title in zip(alignment(align, len(titles)), titles, strict=True):
        table.add_column(title, justify="left" if side == "l" else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def show_rows(rows: Sequence[Mapping[str, str]], *, align: str, caption: str) -> None:
    """Show rows with the same keys as a table."""
    show_table(list(rows[0]), [list(row.values()) for row in rows], align=align, caption=caption)


@about("show")
def check_show(show: str | None, prior: Prior) -> None:
    """Refuse what no table can show beside regret, before anything is computed."""
    if show is None:
        return
    if show != SUCCESSES:
        raise InputError(f"--show takes {SUCCESSES}, not {show!r}")
    from ..engine.evaluation import expected_best
    from ..engine.results import check_successes

    check_successes(expected_best(prior), prior)


def show_comparison(
    result: Comparison, *, start: str = "", hint: str = "", show: str | None = None
) -> None:
    """Show the table of a comparison, with the task above it."""
    how = "exact"
    if result.method != "exact":
        times = f" ({result.runs} of each problem)" if result.runs > 1 else ""
        how = f"{result.episodes:,} episodes{times}, seed {result.seed}"
    if result.floor is not None:
        hint = "Bayes-optimal: the least that any policy can have on these problems"
        if result.floor.kind == "bound":
            hint = "lower bound: no policy can have less on these problems"
    caption = (
        f"Regret after {result.horizon} plays: the reward lost by not always playing the best "
        f"arm; less is better\n{result.arms} arms, {result.prior}, {how}{start}"
        f"{told(result.feedback)}"
    )
    rows = result.rows(successes=show == SUCCESSES)
    show_rows(rows, align="lr", caption=f"{caption}\n{hint}".rstrip())


def show_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Show labelled facts, one per line."""
    sys.stdout.write("\n".join(f"{label:12} {fact}" for label, fact in facts) + "\n")


def told(feedback: Feedback) -> str:
    """Return the feedback as the end of a caption; nothing if it is immediate."""
    return "" if feedback == Feedback() else f"\nFeedback: {feedback}"


def next_command(path: Path, rival: str, task: Comparison | Origin) -> str:
    """Return the command that evaluates a policy file beside a rival on the same task."""
    return (
        f"metabandit evaluate {shlex.quote(str(path))} {rival} --prior {shlex.quote(task.prior)} "
        f"--arms {task.arms} --horizon {task.horizon}{task.feedback.options()}"
    )


def progress_bar(what: str, others: object = None) -> AbstractContextManager[progress.Bar]:
    """Show progress by a bar, or by lines where standard error is no terminal."""
    return progress.progress_bar(what, others, say)


def say(message: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(message + "\n")
    sys.stderr.flush()
