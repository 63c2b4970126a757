"""What a report is made of: sections with text, tables and figures; no layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..tables import alignment


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    value: what it is sorted by, if not by its text; None is last
    mark: how it stands out: good, noise, known, off
    note: what is to be said about it
    """

    text: str
    value: float | str | None = None
    mark: str = ""
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table; `align` has a letter a column, l for text and r for numbers, the last for all further ones."""

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: str = "lr"
    caption: str = ""
    folded: bool = False

    def side(self, column: int) -> str:
        """How a column is set: l or r."""
        return alignment(self.align, len(self.columns))[column]


@dataclass(frozen=True)
class Figure:
    """A picture: how it is drawn, and what it shows, for those who cannot see it."""

    id: str
    title: str
    caption: str
    draw: Callable[[], Any]
    narrow: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a report, under a heading."""

    id: str
    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Report:
    """A report: what it is about in a line or two, its facts, its sections."""

    title: str
    summary: tuple[str, ...]
    facts: tuple[tuple[str, str], ...] = ()
    sections: tuple[Section, ...] = field(default=())

    def tables(self) -> list[Table]:
        return [table for section in self.sections for table in section.tables]

    def figures(self) -> list[Figure]:
        return [figure for section in self.sections for figure in section.figures]


def number(value: float | None, digits: int = 4, **more: Any) -> Cell:
    """A number as a cell: at least so many significant digits; nothing if there is none."""
    if value is None:
        return Cell("", None, **more)
    return Cell(significant(value, digits), value, **more)


def significant(value: float, digits: int) -> str:
    """A number with so many significant digits, never with an exponent."""
    if value == 0.0:
        return "0"
    from math import floor, log10

    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    return f"{value:.{decimals}f}"


def percent(share: float | None, decimals: int = 1, *, sign: bool = True, **more: Any) -> Cell:
    """A share as a percentage."""
    if share is None:
        return Cell("", None, **more)
    rounded = round(100.0 * share, decimals) + 0.0  # no minus before a zero
    return Cell(f"{rounded:{'+' if sign else ''}.{decimals}f} %", share, **more)
