"""How pictures are drawn and saved: one style, colours that differ without colour vision, too."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..files import check_new, written
from ..priors.families import Array
from .content import Figure

# Text and axes; a page puts its own colour there.
INK = "#010203"
# Okabe and Ito's colours, which people without full colour vision can tell apart.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PINK, GREY = "#56B4E9", "#CC79A7", "#888888"
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PINK, SKY, GREY, INK)
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 3)), "-", "--")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
FORMATS = (".svg", ".png", ".pdf")

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "metabandit",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
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
    room = io.StringIO()
    _render(figure, room, "svg")
    return room.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Write the picture to a .svg, .png or .pdf file."""
    with written(path, "the picture") as file:
        if path.suffix != ".svg":
            _render(figure, file, path.suffix[1:])
            return
        # Pages may be dark where the file is shown, so it brings its own background.
        head, rest = svg(figure).replace(INK, "#222222").split("<defs>", 1)
        white = '<rect width="100%" height="100%" fill="#ffffff"/>\n <defs>'
        file.write((head + white + rest).encode())


def check_picture(path: str | Path, *, force: bool) -> Path:
    """The path of a picture to draw; refused where something is, or nothing can be written."""
    return check_new(path, FORMATS, "a picture", force=force)


def _axes(width: float = 6.2, height: float = 4.4, **options: Any) -> tuple[Any, Any]:
    # Not by pyplot, which would change what a person's notebook draws with.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**options)


def _short(label: str) -> str:
    """A label that fits; matplotlib leaves out those that begin with _."""
    label = label if len(label) <= 40 else f"{label[:38]} …"
    return f" {label}" if label.startswith("_") else label


def _logarithmic(axes: Any, unit: str = "") -> None:
    """A logarithmic axis with numbers as people write them; to be called once everything is drawn."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    decades = np.log10(high / low)
    if decades < 0.7:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    elif decades < 2.5:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}{unit}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _whole(axis: Any) -> None:
    """Whole numbers at the ticks."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


@dataclass(frozen=True)
class Line:
    """A line of a picture, with half the width of its band if it has one."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    half: Sequence[float] | None = None
    steps: bool = False


def curves(
    lines: Sequence[Line],
    *,
    x: str,
    y: str,
    levels: Mapping[str, float] | None = None,
    log_x: bool = False,
    top: float | None = None,
    title: str = "",
    width: float = 6.2,
    whole: bool = False,
) -> Any:
    """Lines with their bands, and levels across."""
    figure, axes = _axes(width, 4.6)
    for place, line in enumerate(lines):
        colour = COLOURS[place % len(COLOURS)]
        style = LINES[place % len(LINES)]
        marker = MARKERS[place % len(MARKERS)]
        axes.plot(
            line.x,
            line.y,
            color=colour,
            linestyle=style,
            marker=marker,
            markersize=4,
            markevery=max(1, len(line.x) // 8),
            drawstyle="steps-post" if line.steps else "default",
            label=_short(line.label),
        )
        if line.half is not None:
            low, high = np.subtract(line.y, line.half), np.add(line.y, line.half)
            axes.fill_between(
                line.x,
                low,
                high,
                color=colour,
                alpha=0.2,
                linewidth=0,
                step="post" if line.steps else None,
            )
    for place, (label, level) in enumerate((levels or {}).items()):
        axes.axhline(level, color=INK, linewidth=1.2, linestyle=("-", "--", ":")[place % 3])
        axes.annotate(
            f"{label} {level:.4g}",
            (1.0, level),
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
    if log_x:
        _logarithmic(axes)
    if whole:
        _whole(axes.xaxis)
    if top is not None:
        axes.set_ylim(top=top)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    columns = 2 if width > 5 else 1
    figure.legend(loc="outside lower center", ncols=columns)
    return figure


@dataclass(frozen=True)
class Dots:
    """A row of a dot plot: a label, its group, and a number for each series, if there is one."""

    label: str
    group: str
    values: Sequence[float | None]


def dots(rows: Sequence[Dots], series: Sequence[str], *, x: str, least: float) -> Any:
    """One row a policy, one mark a series, on a logarithmic axis; what is below `least` stands there."""
    figure, axes = _axes(height=1.2 + 0.25 * len(rows))
    places = np.arange(len(rows))[::-1]
    for number, name in enumerate(series):
        shown = [
            (max(value, least), place)
            for row, place in zip(rows, places, strict=True)
            if (value := row.values[number]) is not None
        ]
        axes.scatter(
            [value for value, _ in shown],
            [place for _, place in shown],
            s=46,
            color=COLOURS[number],
            marker=MARKERS[number],
            label=name,
            zorder=3,
        )
    for place, row in zip(places, rows, strict=True):
        known = [max(value, least) for value in row.values if value is not None]
        if len(known) > 1:
            axes.plot([min(known), max(known)], [place, place], color=GREY, linewidth=1, zorder=2)
    previous = None
    for place, row in zip(places, rows, strict=True):
        if previous is not None and row.group != previous:
            axes.axhline(place + 0.5, color=INK, linewidth=0.6)
        previous = row.group
    _logarithmic(axes, " %")
    axes.set_yticks(places, [_short(row.label) for row in rows])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(x)
    axes.grid(axis="y", alpha=0.15)
    figure.legend(loc="outside upper center", ncols=len(series))
    return figure


def heat_maps(
    maps: Mapping[str, Array], labels: Sequence[str], *, x: str, y: str, unit: str
) -> Any:
    """Squares with numbers in them, one panel a name; darker is worse, on a logarithmic scale."""
    columns = min(2, len(maps))
    lines = -(-len(maps) // columns)
    figure, panels = _axes(height=0.4 + 2.9 * lines, nrows=lines, ncols=columns, squeeze=False)
    everything = np.concatenate(
        [np.log10(np.maximum(values, 0.1)).ravel() for values in maps.values()]
    )
    low, high = everything.min(), everything.max()
    for place, panel in enumerate(panels.ravel()):
        if place >= len(maps):
            panel.set_axis_off()
            continue
        name, values = list(maps.items())[place]
        shade = np.log10(np.maximum(values, 0.1))
        panel.imshow(shade, cmap="cividis_r", vmin=low, vmax=high)
        for (row, column), value in np.ndenumerate(values):
            dark = (shade[row, column] - low) / (high - low) > 0.45
            panel.text(
                column,
                row,
                f"{value:.0f}{unit}" if value >= 99.5 else f"{value:.3g}{unit}",
                ha="center",
                va="center",
                fontsize=9,
                color="white" if dark else "black",
                weight="bold" if row == column else "normal",
            )
        panel.set_xticks(range(len(labels)), labels)
        panel.set_yticks(range(len(labels)), labels)
        panel.set_xlabel(x)
        panel.set_ylabel(y)
        panel.set_title(name)
        panel.grid(visible=False)
        for spine in panel.spines.values():
            spine.set_visible(False)
    return figure


def index_map(index: Array, plays: Array, means: Array, *, title: str) -> Any:
    """The order of an index over plays and mean: only the order says what is chosen."""
    figure, axes = _axes(4.6, 3.9)
    # Equal indices have the same rank; what is not finite is left blank.
    known = np.isfinite(index)
    _, place, count = np.unique(index[known], return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - 0.5 * (count + 1)
    shade = np.full(index.shape, np.nan)
    shade[known] = (middle / max(known.sum() - 1, 1))[place.ravel()]
    drawn = axes.pcolormesh(plays, means, shade, cmap="cividis", shading="nearest", rasterized=True)
    axes.contour(
        plays, means, shade, levels=np.linspace(0.1, 0.9, 9), colors="white", linewidths=0.7
    )
    axes.set_xlim(1, plays[-1])
    _logarithmic(axes)
    axes.set_xlabel("plays of the arm")
    axes.set_ylabel("mean reward of the arm")
    axes.set_title(title)
    axes.grid(visible=False)
    bar = figure.colorbar(drawn, ticks=[0, 0.5, 1])
    bar.set_ticklabels(["lowest", "middle", "highest"])
    bar.outline.set_visible(False)
    return figure


def choice_map(lines: Sequence[Line], chosen: Line, *, x: str, y: str, title: str) -> Any:
    """Where an arm is chosen: shaded for the optimum, lines for the others."""
    figure, axes = _axes(4.6, 3.9)
    axes.fill_between(
        chosen.x, chosen.y, 1.0, step="mid", color=SKY, alpha=0.35, linewidth=0, label=chosen.label
    )
    for place, line in enumerate(lines):
        axes.plot(line.x, line.y, color=(BLUE, VERMILION, INK)[place % 3], linestyle=("-", "--", "-.")[place % 3],
                  drawstyle="steps-mid", label=line.label)  # fmt: skip
    axes.plot(chosen.x, chosen.y, color=INK, linewidth=3, drawstyle="steps-mid", zorder=1)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlim(1, chosen.x[-1])
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    figure.legend(loc="outside lower center", ncols=1, fontsize=8)
    return figure


@dataclass(frozen=True)
class Formula:
    """A formula as a point: its text, its length, its regret."""

    text: str
    length: int
    regret: float


def lengths(
    best: Sequence[Formula],
    *,
    paper: Sequence[Formula] = (),
    paper_label: str = "found in the paper (each arm played once)",
    levels: Mapping[str, float] | None = None,
    refined: Formula | None = None,
    floor: float | None = None,
    horizon: int,
    title: str,
) -> Any:
    """Regret against length: simplicity has a price, and here it is."""
    figure, axes = _axes(height=4.9)
    highest = 2.2 * min(item.regret for item in best)
    shown = [item for item in best if item.regret <= highest]
    searched = max(item.length for item in best)
    last = max(item.length for item in (*best, *paper))
    front: list[Formula] = []
    for item in best:
        if not front or item.regret < front[-1].regret:
            front.append(item)
    steps = [item for item in front if item.regret <= highest]
    axes.plot([item.length for item in shown], [item.regret for item in shown], "o", color=SKY,
              label="best formula of each length")  # fmt: skip
    axes.step([item.length for item in steps] + [searched], [item.regret for item in steps] + [steps[-1].regret],
              where="post", color=BLUE, linewidth=2, label="best up to a length")  # fmt: skip
    for item in steps:
        axes.annotate(item.text, (item.length, item.regret), xytext=(5, 7), textcoords="offset points",
                      fontsize=8)  # fmt: skip
    seen = [item for item in paper if item.regret <= highest]
    if seen:
        axes.plot([item.length for item in seen], [item.regret for item in seen], "^", color=VERMILION,
                  label=paper_label)  # fmt: skip
    for place, item in enumerate(sorted(seen, key=lambda item: item.regret)):
        axes.annotate(item.text, (item.length, item.regret), xytext=(7, 6 if place else -12),
                      textcoords="offset points", fontsize=8)  # fmt: skip
    if refined is not None:
        axes.axhline(
            refined.regret,
            color=PINK,
            linestyle="-.",
            label=f"with learned numbers: {refined.text}",
        )
    for label, level in (levels or {}).items():
        if level <= highest:
            axes.axhline(level, color=GREY, linewidth=1, linestyle="--")
            axes.annotate(
                label, (last + 1.4, level), fontsize=8, ha="right", va="bottom", color=INK
            )
    if floor is not None:
        axes.axhline(floor, color=INK, linewidth=1.5, label="Bayes-optimal floor")
    axes.set_xlim(0.5, last + 1.5)
    _whole(axes.xaxis)
    axes.set_xlabel("length of the formula (symbols)")
    axes.set_ylabel(f"regret after {horizon} plays")
    axes.set_title(title)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return figure
