"""Text tables, for pipes, files and notebooks."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: int) -> str:
    """A table in plain text; the last `numbers` columns are set to the right."""
    cells = [list(titles), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(titles))]
    left = len(titles) - numbers

    def line(row: Sequence[str]) -> str:
        parts = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(parts).rstrip()

    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([line(cells[0]), rule, *(line(row) for row in cells[1:])])
