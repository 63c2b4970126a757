"""Files that are written whole or not at all, and never over others by accident."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .errors import InputError


def check_new(path: str | Path, suffixes: Sequence[str], what: str, *, force: bool = False) -> Path:
    """The path of a file to write; refused where something is, or where nothing can be written."""
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


@contextmanager
def written(path: Path, what: str) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place in the end: a crash leaves the old one, or none."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as error:
        raise InputError(f"{what} cannot be written to {path}: {error.strerror}") from None
    finally:
        aside.unlink(missing_ok=True)
