"""How much the tests look at: `make check` leaves out what is slow, and takes fewer examples of the rest."""

from __future__ import annotations

# Whether slow tests are left out; conftest.py knows.
quick = False


def some(few: int, many: int) -> int:
    """Return `few` in the quick tier, and `many` when everything runs."""
    return few if quick else many
