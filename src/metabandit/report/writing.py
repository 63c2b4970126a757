"""Tables as Markdown and LaTeX; a whole report as Markdown, or as one HTML page that needs nothing else.

The pictures of a report are rendered and saved here.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..drawing import GREY, INK
from ..errors import about
from ..files import check_new, written
from .content import FORMATS, Figure, Report, ReportTable

_LATEX = {
    **{letter: rf"\{letter}" for letter in "&%$#_{}"},
    **{letter: f"${letter}$" for letter in "<>|"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "≤": r"$\le$",
    "≈": r"$\approx$",
    "×": r"$\times$",
}


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _escape_markdown(text: str) -> str:
    """Text that stays text: no table cell, emphasis, tag or link begins or ends in it."""
    return re.sub(r"([\\|*_<]|\](?=[(\[:]))", r"\\\1", text).replace("\n", " ")


def markdown(table: ReportTable) -> str:
    """The table as Markdown."""
    lines = [
        [_escape_markdown(title) for title in table.columns],
        ["---" if side == "l" else "---:" for side in table.sides],
        *([_escape_markdown(cell.text) for cell in row] for row in table.rows),
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def latex(table: ReportTable) -> str:
    """The table as LaTeX (booktabs)."""
    caption = f"{table.title}. {table.caption}" if table.caption else table.title
    head, *rows = (
        " & ".join(map(_escape_latex, cells)) + r" \\"
        for cells in (table.columns, *([cell.text for cell in row] for row in table.rows))
    )
    lines = [
        r"\begin{table}",
        rf"\caption{{{_escape_latex(caption)}}}",
        rf"\label{{table:{table.id}}}",
        rf"\begin{{tabular}}{{{table.sides}}}",
        r"\toprule",
        head,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def as_markdown(report: Report, pictures: Mapping[str, str] | None = None) -> str:
    """The whole report as Markdown; `pictures` says where the picture of each figure is, if it has one."""
    links = pictures or {}
    say = _escape_markdown
    parts = [f"# {say(report.title)}\n", *(f"{say(text)}\n" for text in report.summary)]
    if report.facts:
        parts.append("".join(f"- {say(name)}: {say(value)}\n" for name, value in report.facts))
    for section in report.sections:
        drawn = [figure for figure in section.figures if figure.id in links]
        if not (drawn or section.tables or section.paragraphs or section.code):
            continue
        parts.append(f"## {say(section.title)}\n")
        parts += [f"{say(text)}\n" for text in section.paragraphs]
        parts += [f"{say(text)}:\n\n    {code}\n" for text, code in section.code]
        for figure in drawn:
            parts.append(f"![{say(figure.title)}]({links[figure.id]})\n\n{say(figure.caption)}\n")
        for table in section.tables:
            parts.append(f"### {say(table.title)}\n")
            if table.caption:
                parts.append(f"{say(table.caption)}\n")
            parts.append(markdown(table))
    return "\n".join(parts)


def _inline(figure: Figure) -> str:
    """The picture as SVG: names of its own, text in the colour of the page, a description."""
    from markupsafe import Markup

    text = svg(figure)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    for pattern in (r'\bid="()', r'href="(#)', r"url\((#)"):
        text = re.sub(pattern, lambda found: f"{found.group(0)}{figure.id}-", text)
    text = text.replace(INK, "currentColor")
    head, rest = text.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None
    opened = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {box.group(0)} role="img" aria-labelledby="{figure.id}-says">'
    described = Markup('<title id="{}-says">{}</title>').format(figure.id, figure.title)
    return Markup(opened) + described + Markup(rest)


def as_page(report: Report, progress: Callable[[int, int], None] | None = None) -> str:
    """The report as HTML; `progress` is called with how many pictures are drawn, and how many there are."""
    from jinja2 import Environment, PackageLoader, select_autoescape

    figures = report.figures()
    pictures = {}
    for figure in figures:
        pictures[figure.id] = _inline(figure)
        if progress is not None:
            progress(len(pictures), len(figures))
    environment = Environment(
        loader=PackageLoader("metabandit.report", "."),
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(report=report, pictures=pictures)


_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "metabandit",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GREY,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "text.parse_math": False,
}


def _render(figure: Figure, target: Any, kind: str) -> None:
    from matplotlib import rc_context

    with rc_context(_STYLE):
        drawn = figure.draw()
        options: dict[str, Any] = {"format": kind, "transparent": kind == "svg", "dpi": 160}
        if kind in ("svg", "pdf"):
            options["metadata"] = {"Date" if kind == "svg" else "CreationDate": None}
        drawn.savefig(target, **options)


def svg(figure: Figure) -> str:
    """The picture as SVG."""
    drawn = io.StringIO()
    _render(figure, drawn, "svg")
    return drawn.getvalue()


def save(figure: Figure, path: Path) -> Path:
    """Write the picture to a .svg, .png or .pdf file."""
    with written(path, "the picture") as file:
        if path.suffix != ".svg":
            _render(figure, file, path.suffix[1:])
        else:
            # The file may be shown on a dark page, so it brings its own background.
            head, rest = svg(figure).replace(INK, "#222222").split("<defs>", 1)
            white = '<rect width="100%" height="100%" fill="#ffffff"/>\n <defs>'
            file.write((head + white + rest).encode())
    return path


@about("plot")
def check_picture(path: str | Path, *, force: bool) -> Path:
    """The path of a picture to draw; refused where a file is, or nothing can be written."""
    return check_new(path, [f".{name}" for name in FORMATS], "a picture", force=force)
