"""What a report is made of: sections with text, tables and figures; no layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import floor, log10
from typing import Any

from ..showing import Shown, alignment

# What a run wrote, as data.
Run = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    value: what it is sorted by, if not by its text; None comes last
    mark: how it stands out: good, known, off
    note: a remark on it
    """

    text: str
    value: float | str | None = None
    mark: str = ""
    note: str = ""


Cells = tuple[Cell, ...]
# Of pictures, in the order in which text prefers them.
FORMATS = ("svg", "png", "pdf")


@dataclass(frozen=True)
class ReportTable:
    """A table; `align` has one letter per column, l for text and r for numbers, the last for all that follow."""

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Cells, ...]
    align: str = "lr"
    caption: str = ""
    folded: bool = False

    @property
    def sides(self) -> str:
        """How each column is set: l or r."""
        return alignment(self.align, len(self.columns))


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
    """A part of a report, under a heading; `code` is what to type, with what it is for."""

    id: str
    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    code: tuple[tuple[str, str], ...] = ()


def section(
    name: str,
    title: str,
    tables: Iterable[ReportTable | None] = (),
    figures: Iterable[Figure | None] = (),
    paragraphs: tuple[str, ...] = (),
) -> Section:
    """A section of those tables and figures that there are."""
    some = tuple(table for table in tables if table is not None and table.rows)
    return Section(name, title, paragraphs, some, tuple(filter(None, figures)))


def filled(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The sections that show something."""
    return tuple(item for item in sections if item.tables or item.figures)


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """A report: what it is about in a line or two, its facts, its sections."""

    title: str
    summary: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    sections: tuple[Section, ...] = ()

    def headline(self) -> str:
        parts = len(self.sections), len(self.tables()), len(self.figures())
        return f"{self.title}: {parts[0]} sections, {parts[1]} tables, {parts[2]} pictures"

    def tables(self) -> list[ReportTable]:
        return [table for section in self.sections for table in section.tables]

    def figures(self) -> list[Figure]:
        return [figure for section in self.sections for figure in section.figures]


def row(*values: Cell | str | int | None) -> Cells:
    """A row of a table: cells as they are, texts, counts, or nothing."""
    return tuple(
        value if isinstance(value, Cell)
        else Cell("") if value is None
        else Cell(value) if isinstance(value, str)
        else Cell(f"{value:,}", value)
        for value in values
    )  # fmt: skip


def significant(value: float, digits: int) -> str:
    """A number with the given number of significant digits, never with an exponent."""
    if value == 0.0:
        return "0"
    return f"{value:.{max(0, digits - 1 - floor(log10(abs(value))))}f}"


def number(
    value: float | None, digits: int = 4, *, half: float | None = None, sign: str = "", **more: Any
) -> Cell:
    """A number with the given number of significant digits, half its interval if it has one, and a sign."""
    if value is None:
        return Cell("", None, **more)
    return Cell(f"{significant(value, digits)}{_noise(half)} {sign}".rstrip(), value, **more)


def percent(
    share: float | None, decimals: int = 1, *, half: float | None = None, sign: bool = True
) -> Cell:
    """A share as a percentage, and half its interval if it has one."""
    if share is None:
        return Cell("")
    rounded = round(100.0 * share, decimals) + 0.0  # no minus before a zero
    noise = _noise(None if half is None else 100.0 * half)
    return Cell(f"{rounded:{'+' if sign else ''}.{decimals}f}{noise} %", share)


def _noise(half: float | None) -> str:
    return "" if half is None else f" ± {significant(half, 2)}"
