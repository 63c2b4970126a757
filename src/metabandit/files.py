"""Write files whole or not at all, and never over others by accident."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from .errors import InputError, shown

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

P = ParamSpec("P")
T = TypeVar("T")


def check_new(path: object, suffixes: Sequence[str], what: str, *, force: bool = False) -> Path:
    """Check the path of a file to write: its ending, its folder, and that nothing is overwritten."""
    if not isinstance(path, (str, Path)):
        raise InputError(f"{what} is named by a text or a Path, not {path!r}")
    target = Path(path)
    name = shown(str(path) or "an empty name")
    if target.suffix not in suffixes:
        example = f"{shown(target.stem) or 'name'}{suffixes[0]}"
        raise InputError(f"{what} must end in {' or '.join(suffixes)}, as in {example}, not {name}")
    try:
        if not target.parent.is_dir():
            raise InputError(f"the folder of {name} does not exist; make it first")
        there = target.exists()
        if target.is_dir():
            raise InputError(f"{name} is a folder; choose another name")
        # The ways of a path that cannot be are many; looking for the file meets them.
        os.path.realpath(target).encode()
        with suppress(FileNotFoundError):
            target.stat()
    except (OSError, UnicodeError) as error:
        raise InputError(f"{name} cannot be written: {_reason(error)}") from None
    if there and not force:
        raise InputError(f"{name} exists; choose another name, or overwrite it with --force")
    return target


def _reason(error: Exception) -> str:
    """What the system says of a path, without the path."""
    if isinstance(error, UnicodeError):
        return "its name is not valid Unicode"
    return shown(str(getattr(error, "strerror", None) or error))


def read_text(path: str | Path, *, encoding: str = "utf-8") -> str:
    """Read a text file; an error names it."""
    try:
        with open(path, encoding=encoding) as file:
            # A device such as /dev/zero has no end; a pipe, or what a person types, has.
            if stat.S_ISCHR(os.fstat(file.fileno()).st_mode) and not file.isatty():
                raise OSError(errno.EINVAL, "it is a device")
            return file.read()
    except FileNotFoundError:
        raise InputError(f"the file {shown(path)} does not exist") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"the file {shown(path)} cannot be read as text: {error}; save it as UTF-8, which Excel "
            f"calls CSV UTF-8"
        ) from None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"the file {shown(path)} cannot be read as text: {_reason(error)}"
        ) from None


def read_json(path: str | Path, what: str) -> Any:
    """Read a file of JSON; an error names it, and says what it should have been, as in "a policy file"."""
    try:
        return json.loads(read_text(path))
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        reason = str(error)
    raise InputError(
        f"{shown(path)} is damaged, or not {what}: it is not valid JSON ({reason})"
    ) from None


def kept_path(name: str, header: Any, suffix: str) -> Path:
    """Where something is kept between runs: in the user's cache folder, by all that identifies it."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()[:16]
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "metabandit" / f"{name}-{digest}{suffix}"


def real_path(path: Path) -> Path:
    """Return the file itself if the path is a link."""
    return Path(os.path.realpath(path))


def sync_folder(path: Path) -> None:
    """Make a file's name survive a power cut, if the system can."""
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def lock(file: io.FileIO) -> None:
    """Lock a file, or raise BlockingIOError if another process has."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_file(path: Path) -> io.FileIO:
    """Open a file to append to it, with a lock that another process cannot have at the same time."""
    try:
        file = io.FileIO(path, "a+")
    except (OSError, ValueError) as error:
        raise InputError(f"{shown(path)} cannot be written: {_reason(error)}") from None
    try:
        lock(file)
        # The last one to lock it may have replaced or removed the file before it let go.
        if not same_file(file, path):
            raise BlockingIOError
    except OSError:
        file.close()
        raise InputError(f"another run is writing {shown(path)}; wait for its end") from None
    return file


def same_file(file: io.FileIO, path: Path) -> bool:
    """Whether an open file is the one that a path names."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


@contextmanager
def reserved(out: object) -> Iterator[None]:
    """Let one run at a time write to a path: a file beside it, with .lock at its end, is locked.

    What is no path of a new file is left to `check_new`, which comes next.
    """
    beside = _lock_of(out)
    if beside is None:
        yield
        return
    file = lock_file(beside)
    try:
        yield
    finally:
        beside.unlink(missing_ok=True)
        file.close()


def _lock_of(out: object) -> Path | None:
    if not isinstance(out, (str, Path)) or not Path(out).name:
        return None
    try:
        path = real_path(Path(out))
        return path.with_name(f"{path.name}.lock") if path.parent.is_dir() else None
    except (OSError, ValueError):
        return None


def reserving(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function with a keyword `out`, the file that it writes in the end."""

    @wraps(function)
    def run(*given: P.args, **named: P.kwargs) -> T:
        with reserved(named.get("out")):
            return function(*given, **named)

    return run


@contextmanager
def replacing(path: Path) -> Iterator[io.FileIO]:
    """Open a file that takes the place of the one at `path` in the end; it stays open then.

    Until then it has no name where the system can do without, so that a kill leaves nothing; a kill between
    the two calls that give it one leaves a locked name, which the next process to write there removes.
    """
    _sweep(path.parent)
    aside = path.with_name(f".metabandit.{os.getpid()}.{threading.get_ident()}")
    aside.unlink(missing_ok=True)
    nameless = _open_nameless(path.parent)
    file = io.FileIO(aside, "x+") if nameless is None else nameless
    try:
        with suppress(OSError):
            lock(file)
        with suppress(OSError):  # the permissions of the old one, if any
            os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
        yield file
        os.fsync(file.fileno())
        if nameless is not None:
            # With a descriptor, which an absolute path does not need, Python makes the call that follows
            # the link to the file itself.
            number = file.fileno()
            os.link(f"/proc/self/fd/{number}", aside, src_dir_fd=number, follow_symlinks=True)
        os.replace(aside, path)
    finally:
        if not same_file(file, path):
            file.close()
        aside.unlink(missing_ok=True)
    sync_folder(path)


# Folders that were looked through for what killed processes left.
_SWEPT: set[Path] = set()


def _sweep(folder: Path) -> None:
    """Remove what was to replace a file and belongs to no process any more: nobody has it locked."""
    if fcntl is None or folder in _SWEPT:
        return
    _SWEPT.add(folder)
    for left in folder.glob(".metabandit.*"):
        with suppress(OSError), io.FileIO(left, "r+") as file:
            lock(file)
            left.unlink()


def _open_nameless(folder: Path) -> io.FileIO | None:
    """A new file of a folder without a name, if the system has such files."""
    if not hasattr(os, "O_TMPFILE") or not os.path.exists("/proc/self/fd"):
        return None
    try:
        return io.FileIO(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), "r+")
    except OSError:
        return None


@contextmanager
def written(path: Path, what: str) -> Iterator[IO[bytes]]:
    """Open a file that replaces the one at `path` in the end: a crash leaves the old one, or none."""
    path = real_path(path)
    try:
        with replacing(path) as raw:
            file = io.BufferedRandom(raw)
            try:
                yield file
            finally:
                file.detach()  # what is still in its buffer is written
        raw.close()
    except OSError as error:
        raise InputError(f"{what} cannot be written to {shown(path)}: {_reason(error)}") from None
