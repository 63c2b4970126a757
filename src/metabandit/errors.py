"""The one error that a person can cause: it says what came, what the rule is, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Input that breaks a rule. The command line prints the message and ends with exit code 2."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name: the nearest known names, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}? (known: {', '.join(names)})"
    return f"known: {', '.join(names)}"
