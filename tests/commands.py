"""The command line as a person meets it: exit code, output and errors.

`call` runs a command in this process, which suits nearly all tests; `run` starts a real process,
`begin` one that the test stops. A command is text whose arguments are set apart by `|`, or a list.
"""

from __future__ import annotations

import contextlib
import io
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

from metabandit.cli import main


def arguments_of(command) -> list[str]:
    if isinstance(command, str):
        return [item.strip() for item in command.split("|")]
    return [str(item) for item in command]


def call(command, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a command does, in this process; an error that would be a traceback is raised."""
    arguments = arguments_of(command)
    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    code = 0
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
            mock.patch.object(sys, "argv", ["metabandit", *arguments]),
        ):
            main()
    except SystemExit as end:
        code = 0 if end.code is None else end.code
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    said = []
    for stream in (output, errors):
        stream.flush()
        said.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(arguments, code, *said)


def answer(command, folder: Path) -> str:
    """What a command that must succeed prints."""
    done = call(command, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(command, folder: Path, *words: str) -> None:
    """A command must end with exit code 2, print nothing, and say these words."""
    done = call(command, folder)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert [word for word in words if word not in done.stderr] == [], done.stderr


def run(command, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a command does in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "metabandit", *arguments_of(command)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder,
        check=False,
    )


def started(before: str = "") -> list[str]:
    """How a process is started that runs the command line, after some lines of Python."""
    if not before:
        return [sys.executable, "-m", "metabandit"]
    return [sys.executable, "-c", f"{before}\nfrom metabandit.cli import main\nmain()"]


# As the fixture `short_reports` does in this process.
SHORT_REPORTS = "from metabandit.learning import measure\nmeasure._MOST_EPISODES = 20_000"


@contextlib.contextmanager
def begin(command, folder: Path, before: str = ""):
    """A command that goes on in a process of its own; it is killed at the end of the block."""
    process = subprocess.Popen(
        [*started(before), *arguments_of(command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        # Tests that run in the background ignore SIGINT, and what they start would, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
