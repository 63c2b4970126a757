"""The command line: one file per command. Heavy imports happen inside the commands."""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperCommand

from ..errors import InputError, StoreError, WorkerError, shown
from .options import with_groups

# What people do, in the order in which they do it: the commands, each with an example.
_STORY = {
    "Once, after installation": {
        "compile": "metabandit compile",
    },
    "Describe your problem": {
        "fit": "metabandit fit history.csv --plot fit.svg",
        "priors": "metabandit priors",
    },
    "Get advice": {
        "advise": "metabandit advise --prior bernoulli:low=0.01,high=0.06 --arms 4 --horizon 5000 --batch 500 --out advice.json",
        "report": "metabandit report advice.json --out advice.html",
    },
    "Find a better policy": {
        "learn": "metabandit learn --prior bernoulli --arms 10 --horizon 200 --out policy.json",
        "search": "metabandit search --horizon 100 --length 5 --out formula.json",
        "formulas": "metabandit formulas --length 5",
    },
    "Measure": {
        "evaluate": "metabandit evaluate ucb1 thompson 'r + 3/(n + 2)' --horizon 100",
        "optimal": "metabandit optimal --arms 2 --horizon 100",
        "trial": "metabandit trial thompson equal --at 0.3,0.5 --at 0.5,0.5 --horizon 75 --test fisher",
        "replay": "metabandit replay log.csv --policy ucb1 --policy thompson",
        "policies": "metabandit policies",
    },
    "Put it to work": {
        "export": "metabandit export policy.json --to sql --dialect postgresql",
        "store": "metabandit store init sqlite:///bandit.db",
        "serve": "metabandit serve --store sqlite:///bandit.db --experiment buttons --policy policy.json --arms red,green",
    },
    "Reproduce the paper": {
        "reproduce": "metabandit reproduce table1 --scale quick --out build/quick",
    },
}

# The Ctrl-C that ends the process at once; `learn` knows what to do with two.
_PATIENCE = 3

app = typer.Typer(
    name="metabandit",
    help="Find the best strategy for your kind of bandit problem.\n\nStart with `fit`, which turns past tests "
    "into a prior (what you know about the arms in advance), and `advise`, which says which policy to use and "
    "what it gains. `learn` and `search` look for a better policy. `evaluate` measures its regret (the reward "
    "lost by not always playing the best arm), and `optimal` the least regret that is possible. `export` and "
    "`serve` put the policy to work.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


class _Command(TyperCommand):
    """A command that refuses a second value for an option that takes one, and names the option at fault."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for item in order:
            if item.param_type_name == "option" and not item.multiple and order.count(item) > 1:
                raise InputError(
                    f"{item.opts[0]} was given {order.count(item)} times, and takes one value; run the "
                    f"command once for each"
                )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run it; an error about an argument names its option, if a person gave that."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            for item in self.params:
                if item.name == error.about and item.param_type_name == "option":
                    given = ctx.get_parameter_source(item.name).name == "COMMANDLINE"
                    if given and item.opts[0] not in str(error):
                        error.args = (f"{item.opts[0]}: {error}",)
            raise


for _panel, _commands in _STORY.items():
    for _name, _example in _commands.items():
        _made = with_groups(import_module(f"{__name__}.{_name}").command)
        _epilog = f"Example: `{_example}`"
        app.command(_name, cls=_Command, rich_help_panel=_panel, epilog=_epilog)(_made)


def _show_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; bad input ends with a message and exit code 2."""
    _check_streams()
    stopped = 0

    def stop(*_: Any) -> None:
        nonlocal stopped
        stopped += 1
        if stopped >= _PATIENCE:
            os._exit(130)  # compiled code may not end for long
        raise KeyboardInterrupt

    # A process in the background may ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, stop)
    before, sys.unraisablehook = sys.unraisablehook, _explain_unraisable
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, Exception) as error:
        code = _explain(KeyboardInterrupt() if stopped else error)
    finally:
        sys.unraisablehook = before
    raise SystemExit(code)


def _explain_unraisable(found: Any) -> None:
    """A second Ctrl-C may come while the first one is cleaned up after, and needs no traceback."""
    if not issubclass(found.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(found)


def _explain(error: BaseException) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, KeyboardInterrupt):
        # Whatever an interrupt became on its way, as in the middle of an import.
        sys.stderr.write("stopped\n")
        return 130
    if isinstance(error, (InputError, StoreError, WorkerError)):
        sys.stderr.write(f"error: {error}\n")
        return 2 if isinstance(error, InputError) else 1
    if isinstance(error, MemoryError):
        sys.stderr.write(
            "error: there is not enough memory; choose a shorter horizon, fewer arms or fewer episodes\n"
        )
        return 2
    if isinstance(error, OSError) and error.filename is not None:
        sys.stderr.write(f"error: {shown(error.filename)}: {error.strerror}\n")
        return 2
    if isinstance(error, OSError):
        # The reader of our output may have gone, as `head` does; that needs no message.
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"error: the output cannot be written: {error}\n")
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if not hasattr(error, "format_message"):
        raise error
    return _explain_usage(error)


def _explain_usage(error: Any) -> int:
    """Say what Typer says of options that it cannot read."""
    error.message = str(InputError(error.message))
    try:
        from typer.rich_utils import rich_format_error
    except ImportError:  # without rich
        error.show()
    else:
        rich_format_error(error)
    return int(error.exit_code)


def _check_streams() -> None:
    """Let any text be written, and refuse to work for nobody."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (it stays open)
    if sys.stdout is None:
        sys.stderr.write("error: standard output is closed, so no result could be shown\n")
        raise SystemExit(2)
    for stream in (sys.stdout, sys.stderr):
        # Names of files may have bytes that are no Unicode; a terminal may know few characters.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
