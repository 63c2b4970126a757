"""Real databases for tests: a PostgreSQL server of their own, DuckDB and SQLite."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager

import pytest
from benchmarks.postgres import postgresql


@contextmanager
def postgres_server():
    with postgresql(fsync=False) as server:  # tests kill clients, not the machine
        if server is None:
            pytest.skip("PostgreSQL is not installed")
        yield server


class Database:
    """Runs queries over a table of arms: rows of lists, for `given` columns."""

    def __init__(self, dialect, connection, mark):
        self.dialect, self.connection, self.mark = dialect, connection, mark

    def run(self, query, rows, columns=("plays", "total", "squares", "waiting"), u=None):
        """The answer for arms with these counts; a row is the name of the arm, then its numbers."""
        cursor = self.connection.cursor()
        kind = "INTEGER" if all(isinstance(row[0], int) for row in rows) else "VARCHAR(100)"
        real = "DOUBLE PRECISION"
        given = columns[: len(rows[0]) - 1]
        cursor.execute("DROP TABLE IF EXISTS arms")
        listed = ", ".join(f"{name} {real}" for name in given)
        cursor.execute(f"CREATE TABLE arms (arm {kind}, {listed})")
        marks = ", ".join([self.mark] * len(rows[0]))
        cursor.executemany(f"INSERT INTO arms VALUES ({marks})", [list(row) for row in rows])
        if u is None:
            cursor.execute(query)
        elif self.dialect == "postgresql":
            cursor.execute(query.replace(":u", repr(u)))
        else:
            cursor.execute(query, {"u": u})
        found = [tuple(row) for row in cursor.fetchall()]
        self.connection.commit()
        return found


@contextmanager
def open_database(dialect, server=None):
    """A connection to one of the databases that tests run queries in."""
    if dialect == "sqlite":
        connection, mark = sqlite3.connect(":memory:"), "?"
        try:
            connection.execute("SELECT ln(2), exp(1), sqrt(2), pow(2, 3), floor(1.5)")
        except sqlite3.OperationalError as error:
            pytest.skip(f"SQLite {sqlite3.sqlite_version} lacks mathematical functions: {error}")
    elif dialect == "duckdb":
        connection, mark = pytest.importorskip("duckdb").connect(":memory:"), "?"
    else:
        connection, mark = pytest.importorskip("psycopg").connect(server.address), "%s"
    try:
        yield Database(dialect, connection, mark)
    finally:
        connection.close()
