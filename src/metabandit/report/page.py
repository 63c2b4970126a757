"""A report as one HTML page that needs nothing else: styles, script and pictures are in it."""

from __future__ import annotations

import re
from collections.abc import Callable

from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup

from .content import Figure, Report
from .drawing import INK, svg


def _inline(figure: Figure) -> Markup:
    """The picture as SVG: names of its own, text in the colour of the page, a description."""
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
