"""CSV files as people have them: any usual separator, decimal commas, percent signs, blanks, Excel's mark.

Cells are separated by tabs, semicolons, bars or commas, whichever the first line has, in this order. How
numbers are written is found out once for the whole file: with decimal points (1,250.5) or with
decimal commas (1.250,5). If all numbers could be either, as 1.250 could, the file is refused.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

from .errors import InputError
from .files import read_text

POINT, COMMA = ".", ","
# What messages call columns that are given by name.
_HISTORY = "the history"
# What programs write into a cell that has no value.
_BLANK = {"", "-", "–", "na", "n/a", "nan", "nat", "<na>", "null", "none", "#n/a", "#div/0!"}
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'"})
_SIGNS = "$€£¥"
# In the order in which they are looked for.
_SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas"}


def _pattern(decimal: str) -> re.Pattern[str]:
    between = "[, ']" if decimal == POINT else "[. ']"
    whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{between}\d{{3}})+)"
    mark = re.escape(decimal)
    return re.compile(rf"[+-]?(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?")


_NUMBER = {decimal: _pattern(decimal) for decimal in (POINT, COMMA)}


def _value(cell: str, decimal: str) -> float | None:
    """The number in a cell, or None if there is none in this way of writing."""
    text = cell.translate(_SPACES).strip().strip(_SIGNS).strip()
    scale = 1.0
    if text.endswith("%"):
        text, scale = text[:-1].rstrip(), 100.0
    if not _NUMBER[decimal].fullmatch(text):
        return None
    for mark in " '" + (COMMA if decimal == POINT else POINT):
        text = text.replace(mark, "")
    value = float(text.replace(decimal, POINT)) / scale
    return value if value < math.inf else None


def is_blank(cell: str) -> bool:
    """Whether a cell has no value."""
    return cell.strip().lower() in _BLANK


@dataclass(frozen=True)
class Sheet:
    """The cells of a file.

    name: what messages call it
    titles: of the columns; empty if the file has none
    rows: the cells below, without blank rows; lines: the line that each row is on
    decimal: the decimal mark of its numbers
    """

    name: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    decimal: str = POINT

    @property
    def width(self) -> int:
        return len(self.titles or self.rows[0]) if self.titles or self.rows else 0

    @cached_property
    def columns(self) -> list[int]:
        """The columns that hold anything."""
        return [
            column
            for column in range(self.width)
            if self.title(column) or any(row[column] for row in self.rows)
        ]

    def title(self, column: int) -> str:
        return self.titles[column] if self.titles else ""

    def where(self, row: int, column: int) -> str:
        """The place of a cell, for messages."""
        title = f" ({self.title(column)})" if self.title(column) else ""
        return f"{self.name}, line {self.lines[row]}, column {column + 1}{title}"

    def text(self, row: int, column: int, what: str) -> str:
        """The text of a cell that must have one."""
        cell = self.rows[row][column]
        if is_blank(cell):
            shown = f" ({cell!r})" if cell else ""
            raise InputError(f"{self.where(row, column)}: the cell is empty{shown}; {what}")
        return cell

    def number(self, row: int, column: int, what: str) -> float:
        """The number in a cell that must have one; `what` says what is needed there."""
        cell = self.text(row, column, what)
        value = _value(cell, self.decimal)
        if value is None:
            mark = "points" if self.decimal == POINT else "commas"
            raise InputError(
                f"{self.where(row, column)}: {cell!r} is not a number; {what} (this file has decimal {mark})"
            )
        return value

    def is_text(self, column: int) -> bool:
        """Whether a column has something, and no number."""
        cells = [row[column] for row in self.rows if not is_blank(row[column])]
        return bool(cells) and all(_value(cell, self.decimal) is None for cell in cells)


def read_sheet(path: str | Path) -> Sheet:
    """Read a CSV file; an error names the line and what to do."""
    content = read_text(path, encoding=_encoding(path))
    # Lines that programs put before the titles are made empty, so that the others keep their numbers.
    given = re.match(r"sep=(.)(?=\r?\n)", content)
    content = re.sub(r"\A(?:sep=.(?=\r?\n)|# [^\n]*)", "", content)
    lines = content.splitlines()
    first = next((line for line in lines if line.strip(" ,;|\t\"'")), "")
    bare = re.sub(r'"[^"]*"', "", first)
    separator = given[1] if given else next((mark for mark in _SEPARATORS if mark in bare), ",")
    found: list[tuple[int, tuple[str, ...]]] = []
    reader = csv.reader(StringIO(content, newline=""), delimiter=separator)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                found.append((line, tuple(cell.strip() for cell in cells)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"the file {path} is no CSV file, line {line}: {error}") from None
    return _arrange(str(path), found, separator)


def _encoding(path: str | Path) -> str:
    """UTF-8, or what Excel calls Unicode text; a spreadsheet is refused."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(4)
    except (OSError, ValueError, TypeError):
        return "utf-8"  # reading it says what is wrong
    if head == b"PK\x03\x04":
        raise InputError(f"{path} is a spreadsheet or an archive; export it as a CSV file")
    return "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def make_sheet(columns: Mapping[str, Iterable[Any]]) -> Sheet:
    """The same from columns by name, such as those of a data frame."""
    cells = {str(title): [_cell(item) for item in columns[title]] for title in columns.keys()}  # noqa: SIM118
    lengths = {title: len(column) for title, column in cells.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns of {_HISTORY} must be of one length, not {lengths}")
    rows = tuple(zip(*cells.values(), strict=True))
    return Sheet(_HISTORY, tuple(cells), rows, tuple(range(1, len(rows) + 1)))


def _cell(item: Any) -> str:
    return repr(float(item)) if isinstance(item, float) else str(item).strip()


def _arrange(name: str, found: list[tuple[int, tuple[str, ...]]], separator: str) -> Sheet:
    """Tell titles from rows, check the number of cells, and find the decimal mark."""
    if not found:
        return Sheet(name, (), (), ())
    head = found[0][1]
    titled = not any(_value(cell, mark) is not None for cell in head for mark in (POINT, COMMA))
    width = len(head)
    if " " in head[0] and not any(head[1:]) and len(found) > 1 and sum(map(bool, found[1][1])) > 1:
        raise InputError(
            f"{name}, line {found[0][0]}: {head[0]!r} is a heading, and the first line must hold the titles "
            f"of the columns; remove what stands above them"
        )
    rows: list[tuple[str, ...]] = []
    for line, cells in found:
        # Spreadsheets leave separators behind the last column.
        while len(cells) > width and not cells[-1]:
            cells = cells[:-1]
        if len(cells) != width:
            raise InputError(
                f"{name}, line {line}: {len(cells)} cells, the first line has {width}; every line needs "
                f"as many, and cells with {_SEPARATORS.get(separator, repr(separator))} in them need quotes"
            )
        rows.append(cells)
    begin = 1 if titled else 0
    lines = tuple(line for line, _ in found[begin:])
    sheet = Sheet(name, head if titled else (), tuple(rows[begin:]), lines)
    return replace(sheet, decimal=_decimal_mark(sheet, separator))


def _decimal_mark(sheet: Sheet, separator: str) -> str:
    """How the numbers of a file are written."""
    doubtful = None
    points = commas = 0
    for position, row in enumerate(sheet.rows):
        for column, cell in enumerate(row):
            with_point, with_comma = _value(cell, POINT), _value(cell, COMMA)
            if with_point == with_comma:
                continue
            if with_comma is None:
                points += 1
            elif with_point is None:
                commas += 1
            elif doubtful is None:
                doubtful = (position, column)
    if points and commas:
        # Columns may hold other things, such as versions 1.2.3: the cell that is read says so.
        return POINT if points >= commas else COMMA
    if points or commas:
        return POINT if points else COMMA
    if doubtful is not None and separator != ",":
        cell = sheet.rows[doubtful[0]][doubtful[1]]
        raise InputError(
            f"{sheet.where(*doubtful)}: {cell!r} can be read with a decimal mark or with one of "
            f"thousands, and nothing else in the file tells which; write numbers without marks of "
            f"thousands, and at least one with another number of decimals"
        )
    return POINT
