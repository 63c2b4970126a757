"""`metabandit store`: the tables of a database in which players keep their counts."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from ..errors import InputError
from . import options
from .display import say, show_table

if TYPE_CHECKING:
    from ..play.store import Store


def command(
    action: Annotated[
        str,
        Argument(
            help="init (make the tables), list (the experiments) or log (the choices of one, with their "
            "probabilities and rewards, as `metabandit replay` reads them)."
        ),
    ],
    url: Annotated[
        str,
        Argument(
            help="The database, as in sqlite:///bandit.db or postgresql+psycopg://user@host/db."
        ),
    ],
    experiment: Annotated[str | None, "The experiment to write the log of."] = None,
    out: Annotated[Path | None, "The CSV file to write the log to."] = None,
    force: options.Force = False,
) -> None:
    """Set up a store (a database for many workers), list its experiments, or write the log of one."""
    from ..play.store import Store

    if action not in ("init", "list", "log"):
        raise InputError(f"unknown action {action!r}; known: init, list, log")
    if action != "log" and (experiment is not None or out is not None or force):
        raise InputError("--experiment, --out and --force are for `metabandit store log`")
    store = Store(url)
    if action == "init":
        made = store.create()
        say(f"the tables are {'made' if made else 'there'}: {store.name}, version {store.version}")
    elif action == "list":
        rows = [
            [name, policy, str(arms), str(plays)] for name, policy, arms, plays in store.overview()
        ]
        show_table(["experiment", "policy", "arms", "rewards"], rows)
    else:
        if experiment is None or out is None:
            raise InputError("a log is of an experiment, in a file: give --experiment and --out")
        _write_log(store, experiment, out, force)


def _write_log(store: Store, name: str, out: Path, force: bool) -> None:
    from ..files import check_new, written
    from ..play.experiment import Experiment

    target = check_new(out, (".csv",), "a log", force=force)
    found = Experiment(store, name)
    if found.state() is None:
        raise InputError(f"there is no experiment {name!r} in {store.name}")
    choices = found.log()
    rewarded = [row for row in choices if row[1] is not None]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", "arm", "probability", "reward"])
    for arm, reward, chance, time in rewarded:
        writer.writerow([f"{time:.6f}", arm, repr(chance), repr(reward)])
    with written(target, "the log") as file:
        file.write(text.getvalue().encode())
    left = len(choices) - len(rewarded)
    say(
        f"{target}: {len(rewarded):,} choices with their rewards; {left:,} have none, and were left out"
    )
