"""Real databases for tests: a PostgreSQL server of their own, DuckDB and SQLite."""

from __future__ import annotations

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest


def _program(name):
    """A program of the server, which Debian keeps off the path."""
    found = shutil.which(name)
    if found is not None:
        return found
    several = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(several[-1]) if several else None


class Postgres:
    """A server on a socket in a folder of its own; the server refuses to run as root."""

    def __init__(self, folder):
        self.folder = folder
        self.user = pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:
            known = {entry.pw_name for entry in pwd.getpwall()}
            self.user = "postgres" if "postgres" in known else "nobody"
            shutil.chown(folder, self.user)
        self.data = folder / "data"
        # Tests kill clients, not the machine.
        quick = "-c fsync=off -c max_connections=60"
        self.options = f"-k {folder} -c listen_addresses='' {quick}"
        self._run("initdb", "-D", self.data, "-U", "metabandit", "-A", "trust", "-E", "UTF8", "-N")
        self.start()

    def _run(self, program, *arguments):
        before = ["runuser", "-u", self.user, "--"] if os.getuid() == 0 else []
        done = subprocess.run(
            [*before, _program(program), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self):
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.data, "-o", self.options, "-l", log, "-w", "start")

    def stop(self, mode="fast"):
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    @property
    def address(self):
        return f"host={self.folder} dbname=postgres user=metabandit"

    @property
    def url(self):
        return f"postgresql+psycopg://metabandit@/postgres?host={self.folder}"


@contextmanager
def postgres_server():
    if _program("initdb") is None:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="mb-pg-"))
    try:
        server = Postgres(folder)
        yield server
        server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
