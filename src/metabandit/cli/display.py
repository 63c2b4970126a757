"""What people see: tables, and progress with the time left."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..tables import alignment, text_table

if TYPE_CHECKING:
    from ..cluster import Cluster

_PATIENCE = 2.0  # seconds before progress is worth showing


def show_json(value: Any) -> None:
    """One JSON value on standard output."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def show_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = "l", caption: str = ""
) -> None:
    """A table, aligned as `text_table` has it. Plain text unless a terminal reads it."""
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


def say(message: str) -> None:
    """A line on standard error."""
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


@contextmanager
def progress_bar(what: str, others: Cluster | None = None) -> Iterator[Callable[..., None]]:
    """A progress bar on standard error for anything longer than two seconds, on a terminal only.

    It is called with what is done, what there is in all and, if that changes, what is going on. Beside
    it are the others that do the work, if there are any.
    """
    if not sys.stderr.isatty():
        yield lambda done, total, what=what: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Beside(TextColumn):
        def render(self, task: Task) -> Text:
            return Text("" if others is None else f"({others.tell()})")

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        Beside(""),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what, total=None)
    showing = threading.Timer(_PATIENCE, bar.start)
    showing.daemon = True
    showing.start()
    try:
        yield lambda done, total, what=what: bar.update(
            task, completed=done, total=total, description=what
        )
    finally:
        showing.cancel()
        bar.stop()
