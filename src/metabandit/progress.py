"""Progress of long work: a bar with the time left, in terminals and in notebooks.

A bar shows after two seconds, and is gone when the work is done. Where standard error is neither a
terminal nor a notebook there is none; commands tell how far they are in a line now and then instead.
Functions that call each other share the bar of the first.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# The argument `progress` of a function: what to call, None for a bar, or False for neither.
Told = Any

_PATIENCE = 2.0  # seconds before progress is worth showing
_PAUSE = 0.25  # seconds between pictures in a notebook
_SILENCE = 12.0  # seconds between lines where there is no bar
_EARLY = 0.05  # the share before which the time so far says nothing of the rest

# A function to call as progress(work done, work in all).
Progress = Callable[[int, int], None]
# Called as bar(done, total) or, with another description, bar(done, total, what).
Bar = Callable[..., None]


def is_compiling() -> bool:
    """Whether kernels have been compiled for a while now: nothing else goes on meanwhile."""
    compiler = sys.modules.get("metabandit.kernels.jit")
    # A thread may look while another imports the module.
    seconds_at_it = getattr(compiler, "seconds_at_it", None)
    return seconds_at_it is not None and seconds_at_it() > _PATIENCE


def _told(what: str) -> str:
    """What goes on, in words."""
    return f"{what}: compiling for this machine, once" if is_compiling() else what


def _left(share: float, began: float) -> str:
    """The time left, as far as the time so far tells; what comes after the last step is not in it."""
    if not _EARLY < share < 1.0:
        return ""
    seconds = round((time.monotonic() - began) * (1.0 - share) / share)
    return f", about {seconds // 60}:{seconds % 60:02} left"


class _Notebook:
    """A bar in the output of a notebook's cell, called as one of rich is."""

    task_ids = (0,)

    def __init__(self, what: str) -> None:
        self.what, self.share = what, 0.0
        self.over = threading.Event()
        self.began = self.drawn = time.monotonic()
        self.handle: Any = None

    def start(self) -> None:
        from IPython.display import display

        self.handle = display(self._picture(), display_id=True)
        threading.Thread(target=self._watch_compiler, daemon=True).start()

    def _watch_compiler(self) -> None:
        """While kernels are compiled, nobody calls update."""
        while not self.over.wait(1.0):
            if is_compiling():
                self.handle.update(self._picture())

    def update(self, _: int, completed: float, total: float, description: str) -> None:
        self.share, self.what = completed / total if total else 0.0, description
        if self.handle is not None and time.monotonic() - self.drawn > _PAUSE:
            self.drawn = time.monotonic()
            self.handle.update(self._picture())

    def stop(self) -> None:
        self.over.set()
        if self.handle is not None:
            from IPython.display import HTML

            self.handle.update(HTML(""))

    def _picture(self) -> Any:
        from html import escape

        from IPython.display import HTML

        return HTML(
            f'<progress value="{self.share:.4f}" max="1"></progress> {100 * self.share:.0f} %'
            f"{_left(self.share, self.began)}: {escape(_told(self.what))}"
        )


class _Lines:
    """Lines instead of a bar, for logs and pipes."""

    task_ids = (0,)

    def __init__(self, what: str, tell: Callable[[str], None]) -> None:
        self.what, self.tell = what, tell
        self.share: float | None = None
        self.over = threading.Event()
        self.began = time.monotonic()
        self.thread = threading.Thread(target=self._write, daemon=True)

    def start(self) -> None:
        self.thread.start()

    def _write(self) -> None:
        while not self.over.wait(_SILENCE):
            far = f"{time.monotonic() - self.began:.0f} s so far"
            if self.share is not None:
                far = f"{100 * self.share:.0f} %, {far}{_left(self.share, self.began)}"
            # Nobody may be there to read it.
            with suppress(OSError, ValueError):
                self.tell(f"{_told(self.what)}: {far} ...")

    def update(self, _: int, completed: float, total: float, description: str) -> None:
        self.share, self.what = completed / total if total else 0.0, description

    def stop(self) -> None:
        self.over.set()
        if self.thread.is_alive():
            self.thread.join()


def _terminal(what: str, others: object) -> Any:
    """A bar on standard error; `others` says how far other workers are."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Doing(ProgressColumn):
        """What goes on, looked at whenever the bar is drawn."""

        def render(self, task: Task) -> Text:
            return Text(_told(task.description))

    bar = Progress(
        Doing(),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        TextColumn("" if others is None else "({task.fields[others]})"),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(what, total=None, others=others)
    return bar


# Held by the function whose bar it is.
_in_use = threading.Lock()


@contextmanager
def progress_bar(
    what: str, others: object = None, tell: Callable[[str], None] | None = None
) -> Iterator[Bar]:
    """Show progress if the work takes over two seconds: by a bar, or where nobody would see it by `tell`."""
    bar: Any = None
    mine = _in_use.acquire(blocking=False)
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    try:
        if mine and getattr(shell, "kernel", None) is not None:
            bar = _Notebook(what)
        elif mine and sys.stderr.isatty():
            bar = _terminal(what, others)
        elif mine and tell is not None:
            bar = _Lines(what, tell)
        if bar is None:
            yield lambda done, total, what=what, /: None
            return
        showing = threading.Timer(_PATIENCE, bar.start)
        showing.daemon = True
        showing.start()
        try:
            yield lambda done, total, what=what, /: bar.update(
                bar.task_ids[0], completed=done, total=total, description=what
            )
        finally:
            showing.cancel()
            showing.join()
            bar.stop()
    finally:
        if mine:
            _in_use.release()


def shares(bar: Bar) -> Callable[[float, str], None]:
    """The progress of a function that tells the share that is done and what is going on."""
    return lambda share, doing: bar(share, 1.0, doing)


def with_progress(
    what: str, told: Callable[[Bar], Callable[..., None]] = lambda bar: bar
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a function a bar if nobody says what to do with its progress.

    `told` makes what the function calls from a bar.
    """

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def run(*args: P.args, **given: P.kwargs) -> R:
            progress = given.get("progress")
            if progress is False:
                given["progress"] = None
            elif progress is None or progress is True:
                with progress_bar(what) as bar:
                    given["progress"] = told(bar)
                    return function(*args, **given)
            return function(*args, **given)

        return run

    return wrap
