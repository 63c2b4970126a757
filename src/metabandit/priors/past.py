"""Reading a person's past problems from a CSV file: one row a problem, one column an arm's mean."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..files import read_text
from ..settings import is_number, read_number
from .families import Array, Family


def _read_cells(path: Path, content: str) -> list[list[str]]:
    try:
        return list(csv.reader(content.splitlines()))
    except csv.Error as error:
        raise InputError(f"the file {path} is no CSV file: {error}") from None


def read_means(path: Path, family: Family) -> Array:
    """Mean rewards [problem, arm] from a CSV file, each checked against the family's support."""
    content = read_text(path, encoding="utf-8-sig")
    rows: list[list[float]] = []
    width = 0
    low, high = family.support
    for number, cells in enumerate(_read_cells(path, content), start=1):
        if not any(cell.strip() for cell in cells):
            continue
        if not width:
            width = len(cells)
            if not any(is_number(cell) for cell in cells):
                continue
        if len(cells) != width:
            raise InputError(
                f"{path}, line {number}: {len(cells)} cells, the first line has {width}"
            )
        row = []
        for column, cell in enumerate(cells, start=1):
            where = f"{path}, line {number}, column {column}"
            if not cell.strip():
                raise InputError(f"{where}: the cell is empty; every arm needs its mean reward")
            value = read_number(cell, where)
            if not low <= value <= high:
                raise InputError(
                    f"{where}: {value:g} is no mean of a {family.name} reward, "
                    f"which lies between {low:g} and {high:g}"
                )
            row.append(value)
        rows.append(row)
    if not rows:
        raise InputError(
            f"{path} holds no problem: one row a problem, one column an arm is expected"
        )
    if width < 2:
        raise InputError(f"{path} has 1 column; a problem has at least 2 arms, one column each")
    return np.array(rows)
