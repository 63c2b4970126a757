"""Files that are written whole or not at all, and never over others by accident."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from .errors import InputError


def check_new(path: str | Path, suffixes: Sequence[str], what: str, *, force: bool = False) -> Path:
    """The path of a file to write; refused where something is, or where nothing can be written."""
    if not isinstance(path, (str, Path)):
        raise InputError(f"{what} is named by a text or a Path, not {path!r}")
    target = Path(path)
    if target.suffix not in suffixes:
        example = f"{target.stem or 'name'}{suffixes[0]}"
        raise InputError(f"{what} ends in {' or '.join(suffixes)}, as in {example}; not {target}")
    if not target.parent.is_dir():
        raise InputError(f"the folder {target.parent} of {target} does not exist; make it first")
    if target.exists() and not force:
        raise InputError(f"{target} exists; choose another name, or overwrite it with --force")
    return target


def read_text(path: str | Path, *, encoding: str = "utf-8") -> str:
    """The text of a file, or an error that names it."""
    try:
        return Path(path).read_text(encoding=encoding)
    except FileNotFoundError:
        raise InputError(f"the file {path} does not exist") from None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"the file {path} cannot be read as text: {error}") from None


def real_path(path: Path) -> Path:
    """The file itself, where the path is a link to it."""
    return Path(os.path.realpath(path))


def aside_of(path: Path) -> Path:
    """A name beside a file for what is to take its place, one for each writer."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")


def keep_mode(path: Path, descriptor: int) -> None:
    """Let a new file be read and written by those who may the old one, if there is one."""
    with suppress(OSError):
        os.fchmod(descriptor, path.stat().st_mode & 0o7777)


def sync_folder(path: Path) -> None:
    """Let a file's name survive a power cut, where the system can do that."""
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def written(path: Path, what: str) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place in the end: a crash leaves the old one, or none."""
    path = real_path(path)
    aside = aside_of(path)
    try:
        with aside.open("wb") as file:
            keep_mode(path, file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        sync_folder(path)
    except OSError as error:
        raise InputError(f"{what} cannot be written to {path}: {error.strerror}") from None
    finally:
        aside.unlink(missing_ok=True)
