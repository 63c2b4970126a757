"""Text tables, for pipes, files and notebooks."""

from __future__ import annotations

from collections.abc import Sequence


def alignment(align: str, columns: int) -> str:
    """Return one letter per column, l or r; the last one given is repeated."""
    return (align + align[-1] * (columns - len(align)))[:columns]


def text_table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, align: str) -> str:
    """Return a table in plain text; `align` as in `alignment`: "lr" for text, then numbers."""
    cells = [list(titles), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(titles))]
    sides = alignment(align, len(titles))

    def line(row: Sequence[str]) -> str:
        parts = [
            cell.ljust(width) if side == "l" else cell.rjust(width)
            for side, cell, width in zip(sides, row, widths, strict=True)
        ]
        return "  ".join(parts).rstrip()

    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([line(cells[0]), rule, *(line(row) for row in cells[1:])])
