"""A file of JSON lines, each on disk before the next step; one writer at a time."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import InputError
from .files import aside_of, keep_mode, real_path, sync_folder

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]


def read_lines(path: Path) -> list[Any]:
    """Return the values of a file without a partial last line; ValueError if a line is damaged."""
    return _whole(path.read_bytes())[0]


def _whole(content: bytes) -> tuple[list[Any], int]:
    """Return the values of all whole lines, and their length in bytes."""
    # A writer that is killed may leave a partial line, without its end.
    length = content.rfind(b"\n") + 1
    values = []
    for number, line in enumerate(content[:length].splitlines(), 1):
        try:
            values.append(json.loads(line))
        except ValueError:
            raise ValueError(f"line {number} is damaged") from None
    return values, length


class Journal:
    """A file that is written line by line; a second writer at the same time is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # The bytes that count, if the file may have more: a partial line, or one that was not confirmed.
        self.length: int | None = None
        self.unconfirmed = False
        self.process = os.getpid()
        self.file = self._open(path)
        try:
            # The last writer may have replaced the file before it released the lock.
            if not _same_file(self.file, path):
                raise BlockingIOError
        except OSError:
            self.file.close()
            raise InputError(f"another run is writing {path}; wait for its end") from None
        sync_folder(path)

    @staticmethod
    def _open(path: Path) -> io.FileIO:
        """Open the file and lock it."""
        try:
            file = io.FileIO(path, "a+")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise InputError(f"another run is writing {path}; wait for its end") from None
        return file

    def read(self) -> list[Any]:
        """Return the values so far, without a partial last line; ValueError if a line is damaged."""
        self.file.seek(0)
        content = self.file.readall()
        values, self.length = _whole(content)
        if content and not values and not b'{"format": '.startswith(content[:11]):
            raise ValueError("no line of ours")
        return values

    def append(self, value: Any, *, sync: bool = True) -> None:
        """Append a value, on disk when this returns; without `sync` it survives only our own death."""
        self._check()
        content = json.dumps(value).encode() + b"\n"
        before = self.length
        try:
            if self.length is not None:
                # Only now is the file known to be ours, and a partial line dropped.
                self.file.truncate(self.length)
                self.length, self.unconfirmed = None, False
            before = os.fstat(self.file.fileno()).st_size
            _write(self.file, content, sync=sync)
        except BaseException as error:
            # What was written is dropped before the next line, or on closing.
            self.length, self.unconfirmed = before, before is not None
            if isinstance(error, OSError):
                raise InputError(f"{self.path} cannot be written: {error.strerror}") from None
            raise

    def rewrite(self, values: Iterable[Any]) -> None:
        """Replace all values: a kill leaves the old ones or the new ones."""
        self._check()
        lines = b"".join(json.dumps(value).encode() + b"\n" for value in values)
        path = real_path(self.path)
        aside = aside_of(path)
        aside.unlink(missing_ok=True)
        old, file = self.file, self._open(aside)
        interrupted: BaseException | None = None
        try:
            keep_mode(path, file.fileno())
            _write(file, lines)
            os.replace(aside, path)
        except BaseException as error:
            if not _same_file(file, path):
                file.close()
                aside.unlink(missing_ok=True)
                if isinstance(error, OSError):
                    raise InputError(f"{path} cannot be written: {error.strerror}") from None
                raise
            interrupted = error  # too late: the new file is in place
        self.file, self.length, self.unconfirmed = file, None, False
        old.close()
        sync_folder(path)
        if interrupted is not None:
            raise interrupted

    def _check(self) -> None:
        if self.file.closed:
            raise InputError(f"{self.path} is closed; open it again to go on")
        if os.getpid() != self.process:
            raise InputError(
                f"{self.path} was opened by the process that this one was forked from, and has one "
                f"writer; let this process open a file of its own"
            )

    def clear(self) -> None:
        """Remove all values."""
        self.file.truncate(0)
        self.length = None

    def close(self) -> None:
        """Close the file, so that others can write."""
        if self.unconfirmed and not self.file.closed and os.getpid() == self.process:
            with suppress(OSError):
                self.file.truncate(self.length)
        self.file.close()


def _same_file(file: io.FileIO, path: Path) -> bool:
    return os.path.samestat(os.fstat(file.fileno()), os.stat(path))


def _write(file: io.FileIO, content: bytes, *, sync: bool = True) -> None:
    """Write bytes to an unbuffered file and, with `sync`, to disk."""
    while content:
        content = content[file.write(content) or 0 :]
    if sync:
        os.fsync(file.fileno())
