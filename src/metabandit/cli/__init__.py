"""The command line: one file per command. Heavy imports happen inside the commands."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated

import typer
from typer import Option

from ..errors import InputError, WorkerError

_COMMANDS = (
    "advise",
    "evaluate",
    "export",
    "formulas",
    "learn",
    "optimal",
    "policies",
    "priors",
    "replay",
    "report",
    "reproduce",
    "search",
)

app = typer.Typer(
    name="metabandit",
    help="The best exploration/exploitation strategy for your kind of bandit problem.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _name in _COMMANDS:
    app.command(_name)(import_module(f"{__name__}.{_name}").command)


def _show_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; bad input ends with a message and exit code 2."""
    try:
        app()
    except (InputError, WorkerError) as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(2 if isinstance(error, InputError) else 1) from None
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        raise SystemExit(130) from None
    except OSError as error:
        # The reader of our output may have gone, as `head` does; that needs no message.
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"error: the output cannot be written: {error}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
