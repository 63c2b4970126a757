"""What to say where the library that an adapter is for is not installed."""

from __future__ import annotations

from ..errors import InputError


def not_installed(library: str) -> InputError:
    """The error that names the way to install it."""
    return InputError(f"{library} is not installed: pip install 'metabandit[{library}]'")
