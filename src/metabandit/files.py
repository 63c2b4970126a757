"""Write files whole or not at all, and never over others by accident."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from .errors import InputError


def check_new(path: str | Path, suffixes: Sequence[str], what: str, *, force: bool = False) -> Path:
    """Check the path of a file to write: its ending, its folder, and that nothing is overwritten."""
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
    """Read a text file; an error names it."""
    try:
        return Path(path).read_text(encoding=encoding)
    except FileNotFoundError:
        raise InputError(f"the file {path} does not exist") from None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"the file {path} cannot be read as text: {error}") from None


def real_path(path: Path) -> Path:
    """Return the file itself if the path is a link."""
    return Path(os.path.realpath(path))


def aside_of(path: Path) -> Path:
    """Return the name of a temporary file beside a file, one per writer."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")


def keep_mode(path: Path, descriptor: int) -> None:
    """Give a new file the permissions of the old one, if any."""
    with suppress(OSError):
        os.fchmod(descriptor, path.stat().st_mode & 0o7777)


def sync_folder(path: Path) -> None:
    """Make a file's name survive a power cut, if the system can."""
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def written(path: Path, what: str) -> Iterator[IO[bytes]]:
    """Open a file that replaces the one at `path` in the end: a crash leaves the old one, or none."""
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
