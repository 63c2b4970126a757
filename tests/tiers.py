"""How much the tests look at: `make check` leaves out what is slow, and takes fewer examples of the rest."""

from __future__ import annotations

# Whether slow tests are left out; conftest.py knows.
quick = False


def some(few: int, many: int) -> int:
    """So many in the quick tier, and so many where everything is run."""
    return few if quick else many
