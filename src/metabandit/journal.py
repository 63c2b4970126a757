"""Lines of JSON in a file, each on disk before anything else happens; one writer at a time."""

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
    """The values of a file; ValueError if one is damaged. Half a line at the end is left out."""
    return _whole(path.read_bytes())[0]


def _whole(content: bytes) -> tuple[list[Any], int]:
    """The values of all whole lines, and how many bytes they are."""
    # A writer that is killed may leave half a line, without its end.
    length = content.rfind(b"\n") + 1
    values = []
    for number, line in enumerate(content[:length].splitlines(), 1):
        try:
            values.append(json.loads(line))
        except ValueError:
            raise ValueError(f"line {number} is damaged") from None
    return values, length


class Journal:
    """A file that is written line by line; a second writer is refused while the first is at it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # The bytes that count, where the file may have more: half a line, or one that was not confirmed.
        self.length: int | None = None
        self.unconfirmed = False
        self.process = os.getpid()
        self.file = self._open(path)
        try:
            # Whoever had the file may have put another in its place before letting go of it.
            if not _same_file(self.file, path):
                raise BlockingIOError
        except OSError:
            self.file.close()
            raise InputError(f"another run is writing {path}; wait for its end") from None
        sync_folder(path)

    @staticmethod
    def _open(path: Path) -> io.FileIO:
        """The file, ours alone."""
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
        """The values so far; half a line at the end is left out. ValueError if one is damaged."""
        self.file.seek(0)
        content = self.file.readall()
        values, self.length = _whole(content)
        if content and not values and not b'{"format": '.startswith(content[:11]):
            raise ValueError("no line of ours")
        return values

    def append(self, value: Any, *, sync: bool = True) -> None:
        """Add a value, on disk when this returns; without `sync` only safe from our own end."""
        self._check()
        content = json.dumps(value).encode() + b"\n"
        before = self.length
        try:
            if self.length is not None:
                # Only now that the file is known to be ours is half a line dropped.
                self.file.truncate(self.length)
                self.length, self.unconfirmed = None, False
            before = os.fstat(self.file.fileno()).st_size
            _write(self.file, content, sync=sync)
        except BaseException as error:
            # What was written is dropped before the next line, or at the end.
            self.length, self.unconfirmed = before, before is not None
            if isinstance(error, OSError):
                raise InputError(f"{self.path} cannot be written: {error.strerror}") from None
            raise

    def rewrite(self, values: Iterable[Any]) -> None:
        """Put these values in place of all others: a kill leaves the old ones or the new ones."""
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
        """Forget all values."""
        self.file.truncate(0)
        self.length = None

    def close(self) -> None:
        """Let others write."""
        if self.unconfirmed and not self.file.closed and os.getpid() == self.process:
            with suppress(OSError):
                self.file.truncate(self.length)
        self.file.close()


def _same_file(file: io.FileIO, path: Path) -> bool:
    return os.path.samestat(os.fstat(file.fileno()), os.stat(path))


def _write(file: io.FileIO, content: bytes, *, sync: bool = True) -> None:
    """Write bytes to a file that is not buffered, and see them on disk."""
    while content:
        content = content[file.write(content) or 0 :]
    if sync:
        os.fsync(file.fileno())
