"""A PostgreSQL server of one's own, on a socket in a folder of its own: for tests and benchmarks."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def _program(name: str) -> str | None:
    """A program of the server, which Debian keeps off the path."""
    several = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(several[-1]) if several else None)


class Postgres:
    """A server that can be stopped and started; it refuses to run as root."""

    def __init__(self, folder: Path, *, fsync: bool) -> None:
        self.folder = folder
        self.user = pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:
            known = {entry.pw_name for entry in pwd.getpwall()}
            self.user = "postgres" if "postgres" in known else "nobody"
            shutil.chown(folder, self.user)
        self.data = folder / "data"
        durable = "on" if fsync else "off"
        self.options = (
            f"-k {folder} -c listen_addresses='' -c fsync={durable} -c max_connections=60"
        )
        self._run("initdb", "-D", self.data, "-U", "metabandit", "-A", "trust", "-E", "UTF8", "-N")
        self.start()

    def _run(self, program: str, *arguments: object) -> None:
        before = ["runuser", "-u", self.user, "--"] if os.getuid() == 0 else []
        done = subprocess.run(
            [*before, str(_program(program)), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
        )
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)

    def start(self) -> None:
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.data, "-o", self.options, "-l", log, "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    @property
    def address(self) -> str:
        return f"host={self.folder} dbname=postgres user=metabandit"

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://metabandit@/postgres?host={self.folder}"


@contextmanager
def postgresql(*, fsync: bool) -> Iterator[Postgres | None]:
    """A server; None where PostgreSQL is not installed. Without fsync it survives kills, but no power cut."""
    if _program("initdb") is None:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="mb-pg-"))
    try:
        server = Postgres(folder, fsync=fsync)
        yield server
        server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
