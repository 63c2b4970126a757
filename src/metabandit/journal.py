"""A file of JSON lines, each on disk before the next step; one writer at a time.

The lines of a sealed file end with a checksum: of the line, and of all lines before it. A line stays
valid JSON: an object gets the key "check", a list one item more.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import InputError, shown
from .files import lock, lock_file, real_path, replacing, same_file, sync_folder


def seal(text: str, before: int = 0) -> tuple[str, int]:
    """Return the JSON text of an object or a list with its checksum in it, and the checksum.

    before: the checksum of what it follows
    """
    check = zlib.crc32(text.encode(), before)
    # An object may be on lines of its own.
    close = "\n}" if text.endswith("\n}") else text[-1]
    comma = ",\n " if len(close) > 1 else ", "
    key = '"check": ' if text[-1] == "}" else ""
    return f'{text[: -len(close)]}{comma}{key}"{check:08x}"{close}', check


def unseal(text: str, before: int = 0) -> tuple[str, int]:
    """Return what was sealed, and its checksum; ValueError if it is not what it was."""
    close = "\n}" if text.endswith("\n}") else text[-1:]
    key = '"check": ' if close.endswith("}") else ""
    body = text[: -len(f', {key}"01234567"') - (len(close) > 1) - len(close)] + close
    if close not in ("}", "]", "\n}") or seal(body, before)[0] != text:
        raise ValueError("it is not what was written: the checksum differs")
    return body, seal(body, before)[1]


def read_lines(path: Path) -> list[Any]:
    """Return the values of a file without a partial last line; ValueError if a line is damaged."""
    return _whole(path.read_bytes(), sealed=False)[0]


def _whole(content: bytes, *, sealed: bool) -> tuple[list[Any], int, int]:
    """Return the values of all whole lines, their length in bytes, and their checksum."""
    # A writer that is killed may leave a partial line, without its end.
    *lines, rest = content.split(b"\n")
    values, check = [], 0
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode()
            if sealed:
                text, check = unseal(text, check)
            values.append(json.loads(text))
        except (ValueError, RecursionError):
            raise ValueError(f"line {number} is damaged") from None
    if sealed and len(rest) > 1:
        # Nobody who is killed leaves a whole line with another character than its end.
        try:
            unseal(rest[:-1].decode(), check)
        except ValueError:
            pass
        else:
            raise ValueError(f"line {len(lines) + 1} is damaged")
    return values, len(content) - len(rest), check


class Journal:
    """A file that is written line by line; a second writer at the same time is refused.

    sealed: whether its lines have checksums, so that no change of the file goes unnoticed
    """

    def __init__(self, path: Path, *, sealed: bool = False) -> None:
        self.path = path
        self.sealed = sealed
        # The bytes that count, if the file may have more: a partial line, or one that was not confirmed.
        self.length: int | None = None
        self.unconfirmed = False
        self.check = 0
        self.process = os.getpid()
        self.file = lock_file(path)
        sync_folder(path)

    def read(self) -> list[Any]:
        """Return the values so far, without a partial last line; ValueError if a line is damaged."""
        self.file.seek(0)
        content = self.file.readall()
        values, self.length, self.check = _whole(content, sealed=self.sealed)
        if content and not values and not b'{"format": '.startswith(content[:11]):
            raise ValueError("no line of ours")
        return values

    def _line(self, value: Any, before: int) -> tuple[bytes, int]:
        text = json.dumps(value)
        check = before
        if self.sealed:
            text, check = seal(text, before)
        return text.encode() + b"\n", check

    def append(self, value: Any, *, sync: bool = True) -> None:
        """Append a value, on disk when this returns; without `sync` it survives only our own death."""
        self._check()
        content, check = self._line(value, self.check)
        before = self.length
        try:
            if self.length is not None:
                # Only now is the file known to be ours, and a partial line dropped.
                self.file.truncate(self.length)
                self.length, self.unconfirmed = None, False
            before = os.fstat(self.file.fileno()).st_size
            _write(self.file, content, sync=sync)
            self._check_place()
        except BaseException as error:
            # What was written is dropped before the next line, or on closing.
            self.length, self.unconfirmed = before, before is not None
            if isinstance(error, OSError):
                raise InputError(f"{self.path} cannot be written: {error.strerror}") from None
            raise
        self.check = check

    def rewrite(self, values: Iterable[Any]) -> None:
        """Replace all values: a kill leaves the old ones or the new ones."""
        self._check()
        self._check_place()
        lines, check = [], 0
        for value in values:
            line, check = self._line(value, check)
            lines.append(line)
        path, old = real_path(self.path), self.file
        file: io.FileIO | None = None
        interrupted: BaseException | None = None
        try:
            with replacing(path) as file:
                lock(file)
                _write(file, b"".join(lines))
                self._check_place()
        except BaseException as error:
            if file is None or file.closed:
                if isinstance(error, OSError):
                    raise InputError(f"{path} cannot be written: {error.strerror}") from None
                raise
            interrupted = error  # too late: the new file is in place
        assert file is not None
        self.file, self.length, self.unconfirmed, self.check = file, None, False, check
        old.close()
        if interrupted is not None:
            raise interrupted

    def _check_place(self) -> None:
        """Refuse to go on in a file that nobody will find."""
        if not same_file(self.file, self.path):
            raise InputError(
                f"{shown(self.path)} was renamed, replaced or deleted while it was in use, so nothing more "
                f"is counted; put it back, or open it again where it is now"
            )

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
        self.length, self.check = None, 0

    def close(self) -> None:
        """Close the file, so that others can write."""
        if self.unconfirmed and not self.file.closed and os.getpid() == self.process:
            with suppress(OSError):
                self.file.truncate(self.length)
        self.file.close()


def _write(file: io.FileIO, content: bytes, *, sync: bool = True) -> None:
    """Write bytes to an unbuffered file and, with `sync`, to disk."""
    while content:
        content = content[file.write(content) or 0 :]
    if sync:
        os.fsync(file.fileno())
