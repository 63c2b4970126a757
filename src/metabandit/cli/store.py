"""`metabandit store`: the tables of a database in which players keep their counts."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from .display import say, show_table


def command(
    action: Annotated[str, Argument(help="init (make the tables) or list (the experiments).")],
    url: Annotated[
        str,
        Argument(
            help="The database, as in sqlite:///bandit.db or postgresql+psycopg://user@host/db."
        ),
    ],
) -> None:
    """Make the tables of a store, or list the experiments in it."""
    from ..errors import InputError
    from ..play.store import Store

    if action not in ("init", "list"):
        raise InputError(f"a store can init or list, not {action!r}")
    store = Store(url)
    if action == "init":
        made = store.create()
        say(f"the tables are {'made' if made else 'there'}: {store.name}, version {store.version}")
        return
    rows = [[name, policy, str(arms), str(plays)] for name, policy, arms, plays in store.overview()]
    show_table(["experiment", "policy", "arms", "rewards"], rows)
