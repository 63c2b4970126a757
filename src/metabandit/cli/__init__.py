"""The command line: one file a command. Heavy imports happen inside the commands."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ..errors import InputError, WorkerError
from . import (
    advise,
    evaluate,
    export,
    formulas,
    learn,
    optimal,
    policies,
    priors,
    replay,
    report,
    reproduce,
    search,
)

app = typer.Typer(
    name="metabandit",
    help="The best exploration/exploitation strategy for your kind of bandit problem.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("advise")(advise.advise)
app.command("evaluate")(evaluate.evaluate)
app.command("export")(export.export)
app.command("formulas")(formulas.formulas)
app.command("learn")(learn.learn)
app.command("optimal")(optimal.optimal)
app.command("policies")(policies.policies)
app.command("priors")(priors.priors)
app.command("replay")(replay.replay)
app.command("report")(report.report)
app.command("reproduce")(reproduce.reproduce)
app.command("search")(search.search)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; bad input ends with a message and exit code 2."""
    try:
        app()
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(2) from None
    except WorkerError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        raise SystemExit(130) from None
    except BrokenPipeError:
        # The reader of our output went away, as `head` does; nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        sys.stderr.write(f"error: the output cannot be written: {error}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
