"""Tables as Markdown and LaTeX, and a whole report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..tables import alignment
from .content import Report, Table

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "≤": r"$\le$",
    "≈": r"$\approx$",
    "×": r"$\times$",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
}


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _escape_markdown(text: str) -> str:
    return re.sub(r"([|*_<])", r"\\\1", text).replace("\n", " ")


def markdown(table: Table) -> str:
    """The table as Markdown."""
    lines = [
        "| " + " | ".join(_escape_markdown(title) for title in table.columns) + " |",
        "| "
        + " | ".join(
            "---" if side == "l" else "---:" for side in alignment(table.align, len(table.columns))
        )
        + " |",
    ]
    for row in table.rows:
        lines.append("| " + " | ".join(_escape_markdown(cell.text) for cell in row) + " |")
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """The table as LaTeX (booktabs)."""
    columns = alignment(table.align, len(table.columns))
    caption = f"{table.title}. {table.caption}" if table.caption else table.title
    lines = [
        r"\begin{table}",
        rf"\caption{{{_escape_latex(caption)}}}",
        rf"\label{{table:{table.id}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(_escape_latex(title) for title in table.columns) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        lines.append(" & ".join(_escape_latex(cell.text) for cell in row) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def as_markdown(report: Report, pictures: Mapping[str, str] | None = None) -> str:
    """The whole report as Markdown; `pictures` says where those of the figures are that have one."""
    links = pictures or {}
    say = _escape_markdown
    parts = [f"# {say(report.title)}\n", *(f"{say(text)}\n" for text in report.summary)]
    if report.facts:
        facts = [f"- {say(name)}: {say(value)}" for name, value in report.facts]
        parts.append("\n".join(facts) + "\n")
    for section in report.sections:
        drawn = [figure for figure in section.figures if figure.id in links]
        if not drawn and not section.tables and not section.paragraphs:
            continue
        parts.append(f"## {say(section.title)}\n")
        parts += [f"{say(text)}\n" for text in section.paragraphs]
        for figure in drawn:
            parts.append(f"![{say(figure.title)}]({links[figure.id]})\n\n{say(figure.caption)}\n")
        for table in section.tables:
            parts.append(f"### {say(table.title)}\n")
            if table.caption:
                parts.append(f"{say(table.caption)}\n")
            parts.append(markdown(table))
    return "\n".join(parts)
