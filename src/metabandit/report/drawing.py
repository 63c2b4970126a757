"""How the pictures of a report are rendered and saved."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ..drawing import GREY, INK
from ..files import check_new, written
from .content import FORMATS, Figure

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


def check_picture(path: str | Path, *, force: bool) -> Path:
    """The path of a picture to draw; refused where a file is, or nothing can be written."""
    return check_new(path, [f".{name}" for name in FORMATS], "a picture", force=force)
