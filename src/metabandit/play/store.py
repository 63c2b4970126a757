"""A database in which the counts of players are kept, so that any number of processes share them.

Four tables: the version of the schema, an experiment per row (what its player was made with, and how many
selections were numbered), an arm per row with its counts, and a choice per row with its reward. Counts are
added by the database, in the transaction that closes the choice, so that a reward counts once whatever
process tells it, how often, or is killed. A sum of squared differences from the mean is kept as
players keep it (Welford): what SQL adds is to the last bit what `Arm` adds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import InputError, StoreError

try:
    import sqlalchemy as sa
except ImportError:
    raise InputError(
        "a store needs SQLAlchemy: install it with pip install 'metabandit[store]'"
    ) from None

VERSION = 1
LONGEST_NAME = 200
# What PostgreSQL says where a table is missing.
_NO_TABLE = "42P01"
# Seconds that SQLite waits for another process.
_PATIENCE = 60


def _tables() -> dict[str, sa.Table]:
    meta = sa.MetaData()
    double, text, whole = sa.Double, sa.Text, sa.BigInteger
    name = sa.String(LONGEST_NAME)
    return {
        "schema": sa.Table(
            "metabandit_schema", meta, sa.Column("version", sa.Integer, primary_key=True)
        ),
        "experiments": sa.Table(
            "metabandit_experiments",
            meta,
            sa.Column("name", name, primary_key=True),
            sa.Column("state", text, nullable=False),
            sa.Column("selections", whole, nullable=False),
        ),
        "arms": sa.Table(
            "metabandit_arms",
            meta,
            sa.Column("experiment", name, primary_key=True),
            sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("arm", text, nullable=False),
            sa.Column("plays", double, nullable=False),
            sa.Column("total", double, nullable=False),
            sa.Column("spread", double, nullable=False),
            sa.Column("rewarded", whole, nullable=False),
            sa.Column("open", whole, nullable=False),
            sa.Column("retired", sa.Boolean, nullable=False),
        ),
        "choices": sa.Table(
            "metabandit_choices",
            meta,
            sa.Column("experiment", name, primary_key=True),
            sa.Column("id", sa.String(40), primary_key=True),
            sa.Column("place", sa.Integer, nullable=False),
            sa.Column("probability", double, nullable=False),
            sa.Column("time", double, nullable=False),
            sa.Column("reward", double),
            sa.Column("closed", sa.Boolean, nullable=False),
            sa.Index("metabandit_waiting", "experiment", "closed", "time"),
        ),
    }


class Store:
    """A database with the tables of players."""

    version = VERSION

    def __init__(self, url: str) -> None:
        if not isinstance(url, str):
            raise InputError(f"a store is named by a URL such as sqlite:///bandit.db, not {url!r}")
        try:
            url.encode()
            self.url = sa.make_url(url)
            self.dialect = self.url.get_backend_name()
        except (sa.exc.ArgumentError, UnicodeError):
            raise InputError(
                f"{url!r} is not the URL of a database; write sqlite:///bandit.db or "
                f"postgresql+psycopg://user@host/database"
            ) from None
        if self.dialect not in ("sqlite", "postgresql"):
            raise InputError(f"a store is in SQLite or PostgreSQL, not in {self.dialect}")
        if self.dialect == "sqlite" and self.url.database in (None, "", ":memory:"):
            raise InputError(
                "a store in SQLite is a file that processes share: sqlite:///bandit.db"
            )
        self.name = self.url.render_as_string(hide_password=True)
        self.tables = _tables()
        self._made: tuple[int, sa.Engine] | None = None

    @property
    def engine(self) -> sa.Engine:
        """The connections of this process; a child of it has its own."""
        if self._made is None or self._made[0] != os.getpid():
            if self._made is not None:
                self._made[1].dispose(close=False)
            self._made = os.getpid(), self._connect()
        return self._made[1]

    def _connect(self) -> sa.Engine:
        try:
            if self.dialect == "postgresql":
                return sa.create_engine(self.url, pool_pre_ping=True, pool_size=2)
            # Python's own transactions begin too late to keep others from writing in between.
            engine = sa.create_engine(
                self.url, connect_args={"timeout": _PATIENCE, "isolation_level": None}
            )
        except ImportError as error:
            raise InputError(
                f"the driver of {self.name} is not installed: {error}; for PostgreSQL install psycopg"
            ) from None

        @sa.event.listens_for(engine, "connect")
        def _settings(connection: Any, _: Any) -> None:
            for setting in (
                "journal_mode=WAL",
                "synchronous=FULL",
                f"busy_timeout={1000 * _PATIENCE}",
            ):
                connection.execute(f"PRAGMA {setting}").close()

        @sa.event.listens_for(engine, "begin")
        def _begin(connection: Any) -> None:
            reading = connection.get_execution_options().get("reading")
            connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

        return engine

    def _is_missing(self) -> bool:
        """Whether there is no file yet, which SQLite would make."""
        plain = self.dialect == "sqlite" and "uri" not in self.url.query
        return plain and not os.path.exists(str(self.url.database))

    @property
    def _no_tables(self) -> str:
        return (
            f"{self.name} has no tables of metabandit: make them with "
            f"`metabandit store init {self.name}`"
        )

    @contextmanager
    def transaction(
        self, *, reading: bool = False, making: bool = False
    ) -> Iterator[sa.Connection]:
        """All that is done within, or none of it; one that only reads keeps nobody waiting."""
        if not making and self._is_missing():
            raise InputError(self._no_tables)
        try:
            engine = self.engine.execution_options(reading=reading)
            with engine.begin() as connection:
                yield connection
        except sa.exc.TimeoutError as error:
            raise StoreError(
                f"the store {self.name} has no connection to spare: {error}. Try again"
            ) from error
        except UnicodeDecodeError as error:  # SQLite's own message names what is damaged
            raise self.damaged("its schema is no text") from error
        except sa.exc.DBAPIError as error:
            missing = getattr(error.orig, "sqlstate", None) == _NO_TABLE
            if missing or "no such table" in str(error.orig):
                raise InputError(self._no_tables) from None
            reason = " ".join(str(error.orig).split())
            raise StoreError(
                f"the store {self.name} does not answer: {reason}. Try again: by its id a reward counts "
                f"once, however often it is told"
            ) from error

    def damaged(self, reason: str) -> StoreError:
        """The error for a database that holds what no player has written."""
        return StoreError(
            f"the store {self.name} is damaged: {reason}. Restore the database from a backup, or choose "
            f"another"
        )

    @contextmanager
    def sound(self, what: str) -> Iterator[None]:
        """Values of the database are read within: what cannot be read is damaged."""
        try:
            yield
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
            raise self.damaged(f"{what} cannot be read ({error})") from error

    def create(self) -> bool:
        """Make the tables; False if they are there."""
        schema = self.tables["schema"]
        with self.transaction(making=True) as connection:
            if self.dialect == "postgresql":  # one at a time
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(7203948)"))
            if sa.inspect(connection).has_table(schema.name):
                self.check_version(connection)
                return False
            schema.metadata.create_all(connection)
            connection.execute(schema.insert().values(version=VERSION))
            return True

    def check(self) -> None:
        """Raise an error if the database does not answer, or has no tables of this version."""
        with self.transaction(reading=True) as connection:
            self.check_version(connection)

    def check_version(self, connection: sa.Connection) -> None:
        """Refuse tables of another version."""
        found = connection.execute(self.tables["schema"].select()).scalar()
        if found != VERSION:
            raise InputError(
                f"{self.name} has tables of version {found}; this metabandit reads version {VERSION}. "
                f"Update metabandit, or choose another database"
            )

    def overview(self) -> list[tuple[str, str, int, int]]:
        """The experiments: name, policy, arms and rewards."""
        arms, experiments = self.tables["arms"], self.tables["experiments"]
        query = (
            sa.select(
                experiments.c.name,
                experiments.c.state,
                sa.func.count(arms.c.place),
                sa.func.sum(arms.c.rewarded),
            )
            .join(arms, arms.c.experiment == experiments.c.name)
            .group_by(experiments.c.name, experiments.c.state)
            .order_by(experiments.c.name)
        )
        with self.transaction(reading=True) as connection:
            self.check_version(connection)
            rows = connection.execute(query).all()
        found = []
        for name, state, count, plays in rows:
            with self.sound(f"the experiment {name!r}"):
                found.append((str(name), str(json.loads(state)["name"]), int(count), int(plays)))
        return found
