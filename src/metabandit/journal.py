"""Lines of JSON in a file, each on disk before anything else happens; one writer at a time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO, Any

from .errors import InputError

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
        self.length: int | None = None
        try:
            self.file: IO[bytes] = path.open("a+b")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None
        try:
            if fcntl is not None:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            raise InputError(f"another run is writing {path}; wait for its end") from None

    def read(self) -> list[Any]:
        """The values so far; half a line at the end is left out. ValueError if one is damaged."""
        self.file.seek(0)
        content = self.file.read()
        values, self.length = _whole(content)
        if content and not values and not b'{"format": '.startswith(content[:11]):
            raise ValueError("no line of ours")
        return values

    def append(self, value: Any) -> None:
        """Add a value, on disk when this returns."""
        if self.length is not None:
            # Only now that the file is known to be ours is half a line dropped.
            self.file.truncate(self.length)
            self.length = None
        self.file.write(json.dumps(value).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def clear(self) -> None:
        """Forget all values."""
        self.file.truncate(0)
        self.length = None

    def close(self) -> None:
        """Let others write."""
        self.file.close()
