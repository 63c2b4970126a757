"""How results show themselves: a short repr, a table in text and in notebooks, and a data frame.

A class that is `Shown` says in one line what it is (`headline`), and has `rows`, texts for people, and
`records`, numbers for programs, as far as it holds any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import InputError, shown


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


# Characters of a repr at the most.
_MOST = 190


class Shown:
    """What shows itself in a prompt, in a notebook and as a data frame."""

    # How the columns of `rows` are set; see `tables.alignment`.
    _align = "lr"

    def headline(self) -> str:
        """What this is, in one line."""
        return str(self)

    def rows(self) -> list[dict[str, str]]:
        """The table, one dict of cells per row."""
        return []

    def records(self) -> list[dict[str, Any]]:
        """The same as numbers, one dict per row; None where there is no number."""
        return []

    def remarks(self) -> list[str]:
        """What a reader must know besides."""
        return []

    def table(self) -> str:
        """The table as text."""
        rows = self.rows()
        if not rows:
            return ""
        return text_table(list(rows[0]), [list(row.values()) for row in rows], align=self._align)

    def to_frame(self) -> Any:
        """The records as a pandas data frame, numbers as numbers."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise InputError(
                "a data frame needs pandas: pip install 'metabandit[notebook]'; `records()` has the same as "
                "plain data"
            ) from None
        missing = float("nan")
        return pandas.DataFrame(
            [
                {key: missing if value is None else value for key, value in record.items()}
                for record in self.records()
            ]
        )

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name} {shown(self.headline(), _MOST - len(name) - 3)}>"

    def _repr_html_(self) -> str:
        from html import escape

        parts = [
            f"<p><b>{escape(type(self).__name__)}</b> {escape(shown(self.headline(), 500))}</p>"
        ]
        rows = self.rows()
        if rows:
            parts.append(_html_table(rows, self._align))
        parts += [f"<p>{escape(remark)}</p>" for remark in self.remarks()]
        return "\n".join(parts)


def _html_table(rows: Sequence[Mapping[str, str]], align: str) -> str:
    from html import escape

    sides = ["left" if side == "l" else "right" for side in alignment(align, len(rows[0]))]

    def line(cells: Sequence[str], tag: str) -> str:
        made = (
            f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{''.join(made)}</tr>"

    body = "\n".join(line(list(row.values()), "td") for row in rows)
    return (
        f"<table>\n<thead>{line(list(rows[0]), 'th')}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    )
