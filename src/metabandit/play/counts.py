"""Counts of arms as people have them: a mapping, a data frame, or the columns of a CSV file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..rewards import Rewards
from .arm import ArmName

Counts = tuple[int, float, float]
NOTHING: Counts = (0, 0.0, 0.0)  # of an arm without plays
# What the columns of a table hold.
_COLUMNS = ("plays", "total", "squares")


def is_frame(given: object) -> bool:
    """Whether this is a data frame: it has columns by name."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def read_columns(given: Any) -> dict[str, list[Any]]:
    """The columns of a data frame, as lists."""
    return {str(name).strip().lower(): list(given[name]) for name in given.columns}


def is_nothing(plays: Any, total: Any, squares: Any) -> bool:
    """Whether counts are those of an arm without plays, as a batch may have it."""
    numbers = [plays, total, 0 if squares is None else squares]
    return all(
        isinstance(item, Real) and not isinstance(item, bool) and item == 0 for item in numbers
    )


def read_counts(given: object, rewards: Rewards) -> list[tuple[ArmName, Counts]]:
    """The number, the sum and the sum of squares of the rewards of arms.

    given: a mapping from arms to (plays, total), (plays, total, squares) or a mapping with these names; or a
        data frame, or a CSV file, with the columns arm, plays, total and perhaps squares
    """
    found: list[tuple[ArmName, Counts]] = []
    for arm, counts in _rows(given):
        try:
            found.append((arm, NOTHING if is_nothing(*counts) else rewards.read_counts(*counts)))
        except InputError as error:
            raise InputError(f"the counts of the arm {arm!r}: {error}") from None
    if not found:
        raise InputError("there are no counts; give plays and total for at least one arm")
    return found


def read_pairs(rewards: Any, what: str) -> list[tuple[Any, Any]]:
    """Pairs of what was played, an `arm` or the `id` of a choice, and its reward."""
    pairs = list(rewards) if isinstance(rewards, Iterable) else [rewards]
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError(
                f"rewards are pairs ({what}, reward), not {pair!r}; nothing was counted"
            )
    return [(played, reward) for played, reward in pairs]


def _rows(given: object) -> Iterable[tuple[Any, tuple[Any, Any, Any]]]:
    if isinstance(given, (str, Path)):
        yield from _file_rows(given)
    elif is_frame(given):
        columns = read_columns(given)
        _check_columns(columns, "the data frame")
        squares = columns.get("squares", [None] * len(columns["arm"]))
        for arm, *counts in zip(
            columns["arm"], columns["plays"], columns["total"], squares, strict=True
        ):
            yield arm, tuple(counts)
    elif isinstance(given, Mapping):
        for arm, value in given.items():
            yield arm, _entry(arm, value)
    else:
        raise InputError(
            f"counts are a mapping from arms to (plays, total), a data frame or a CSV file, not {given!r}"
        )


def _entry(arm: object, value: object) -> tuple[Any, Any, Any]:
    if isinstance(value, Mapping):
        unknown = [key for key in value if key not in _COLUMNS]
        if unknown:
            raise InputError(
                f"the counts of the arm {arm!r} are plays, total and squares, not {unknown[0]!r}"
            )
        plays, total, squares = (value.get(key) for key in _COLUMNS)
        return plays, total, squares
    if isinstance(value, (tuple, list)) and len(value) in (2, 3):
        plays, total, *more = value
        return plays, total, more[0] if more else None
    raise InputError(
        f"the counts of the arm {arm!r} are (plays, total) or (plays, total, squares), not {value!r}"
    )


def _check_columns(titles: Iterable[str], where: str) -> None:
    known = list(titles)
    for wanted in ("arm", "plays", "total"):
        if wanted not in known:
            raise InputError(
                f"{where} has no column {wanted!r}; counts have the columns arm, plays, total and, unless "
                f"rewards are 0 or 1, squares"
            )


def _file_rows(path: str | Path) -> Iterable[tuple[Any, tuple[Any, Any, Any]]]:
    from ..sheets import read_sheet

    sheet = read_sheet(path)
    titles = [title.lower() for title in sheet.titles]
    _check_columns(titles, str(path))
    for row in range(len(sheet.rows)):
        arm = sheet.text(row, titles.index("arm"), "every row needs its arm")
        counts = [
            sheet.number(row, titles.index(name), f"every arm needs its {name}")
            if name in titles
            else None
            for name in _COLUMNS
        ]
        yield arm, (_whole(counts[0]), counts[1], counts[2])


def _whole(number: float | None) -> float | int | None:
    return int(number) if number is not None and number == int(number) else number
