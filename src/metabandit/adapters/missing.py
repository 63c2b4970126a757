"""What to say where the library that an adapter is for is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import InputError


@contextmanager
def needs(library: str) -> Iterator[None]:
    """Imports of the library go here; if it is not there, the error names the way to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise
        raise InputError(
            f"{library} is not installed: pip install 'metabandit[{library}]'"
        ) from None
