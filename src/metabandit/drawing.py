"""Pictures: one look, in colours that people without full colour vision can tell apart.

What is drawn for a report is saved by report/writing.py; `plot` of a result draws into the axes of a
person, or into new ones of pyplot, which a notebook shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Text and axes; a page puts its own colour there.
INK = "#010203"
# Okabe and Ito's colours.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PINK, GREY = "#56B4E9", "#CC79A7", "#888888"
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PINK, SKY, GREY, INK)
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 3)), "-", "--")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def new_axes(width: float = 6.2, height: float = 4.4, **options: Any) -> tuple[Any, Any]:
    # Not by pyplot, which would change what a person's notebook draws with.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**options)


def _axes(axes: Any, width: float, height: float) -> tuple[Any, Any]:
    """A new figure with its axes, or no figure and the axes that were given."""
    return new_axes(width, height) if axes is None else (None, axes)


def plot_axes(axes: Any, width: float = 6.2, height: float = 4.4) -> Any:
    """The axes that `plot` draws into: those given, or new ones that a notebook shows."""
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def _short(label: str) -> str:
    """A label that fits; matplotlib leaves out those that begin with _."""
    label = label if len(label) <= 40 else f"{label[:38]} …"
    return f" {label}" if label.startswith("_") else label


def logarithmic(axes: Any, unit: str = "") -> None:
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


def _whole(axes: Any) -> None:
    """Whole numbers along the axis."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


# A line of a picture: its label, x, y, and half the width of its band if it has one.
Line = tuple[str, Sequence[float], Sequence[float], Sequence[float] | None]


def curves(
    lines: Sequence[Line],
    *,
    x: str,
    y: str,
    axis: str = "",
    steps: bool = False,
    levels: Mapping[str, float] | None = None,
    top: float | None = None,
    title: str = "",
    width: float = 6.2,
    axes: Any = None,
) -> Any:
    """Lines with their bands, and levels across; the x axis is plain, `log` or `whole` (numbers).

    Into new axes, or into those given.
    """
    figure, axes = _axes(axes, width, 4.6)
    for place, (label, at, values, half) in enumerate(lines):
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(
            at,
            values,
            color=colour,
            linestyle=LINES[place % len(LINES)],
            marker=MARKERS[place % len(MARKERS)],
            markersize=4,
            markevery=max(1, len(at) // 8),
            drawstyle="steps-post" if steps else "default",
            label=_short(label),
        )
        if half is not None:
            low, high = np.subtract(values, half), np.add(values, half)
            step = "post" if steps else None
            axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0, step=step)
    for place, (label, level) in enumerate((levels or {}).items()):
        axes.axhline(level, color=INK, linewidth=1.2, linestyle=("-", "--", ":")[place % 3])
        where = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        text = f"{label} {level:.4g}"
        axes.annotate(text, (1.0, level), xytext=(0, 3), ha="right", fontsize=8, **where)
    if axis == "log":
        logarithmic(axes)
    elif axis == "whole":
        _whole(axes)
    if top is not None:
        axes.set_ylim(top=top)
    axes.set(xlabel=x, ylabel=y, title=title)
    if figure is None:
        axes.legend(fontsize=9)
    else:
        figure.legend(loc="outside lower center", ncols=2 if width > 5 else 1)
    return figure


# A row of a picture of intervals: its label, a number, and the ends of its interval if it has one.
IntervalRow = tuple[str, float, tuple[float, float] | None]


def intervals(axes: Any, series: Mapping[str, Sequence[IntervalRow]], *, x: str) -> None:
    """One row per label, the first on top, with a mark and an interval for each series."""
    labels = list(dict.fromkeys(label for rows in series.values() for label, _, _ in rows))
    for number, (name, rows) in enumerate(series.items()):
        shift = 0.15 * (number - (len(series) - 1) / 2.0)
        places = [labels.index(label) + shift for label, _, _ in rows]
        look = {"color": COLOURS[number % len(COLOURS)], "label": _short(name)}
        marker = MARKERS[number % len(MARKERS)]
        axes.plot([value for _, value, _ in rows], places, marker, **look)
        for (_, _, ends), place in zip(rows, places, strict=True):
            if ends is not None:
                axes.plot(ends, (place, place), color=look["color"])
    axes.set_yticks(range(len(labels)), [_short(label) for label in labels])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel(x)
    axes.grid(axis="x", alpha=0.3)
    if len(series) > 1:
        axes.legend(fontsize=9)


# A row of a dot plot: its label, its group, and a number per series, if there is one.
DotRow = tuple[str, str, Sequence[float | None]]


# Where what is less is drawn, in percent.
_LEAST = 0.01


def dots(rows: Sequence[DotRow], series: Sequence[str], *, x: str) -> Any:
    """One row per policy, one mark per series, on a logarithmic axis from 0.01 % on."""
    figure, axes = new_axes(height=1.2 + 0.25 * len(rows))
    places = np.arange(len(rows))[::-1]
    shown = [
        [None if value is None else max(value, _LEAST) for value in values] for _, _, values in rows
    ]
    for number, name in enumerate(series):
        marks = [(values[number], y) for values, y in zip(shown, places, strict=True)]
        axes.scatter(
            [value for value, _ in marks if value is not None],
            [y for value, y in marks if value is not None],
            s=46,
            color=COLOURS[number],
            marker=MARKERS[number],
            label=name,
            zorder=3,
        )
    for values, y in zip(shown, places, strict=True):
        known = [value for value in values if value is not None]
        if len(known) > 1:
            axes.plot([min(known), max(known)], [y, y], color=GREY, linewidth=1, zorder=2)
    for (_, above, _), (_, group, _), y in zip(rows, rows[1:], places[1:], strict=False):
        if group != above:
            axes.axhline(y + 0.5, color=INK, linewidth=0.6)
    logarithmic(axes, " %")
    axes.set_yticks(places, [_short(label) for label, _, _ in rows])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(x)
    axes.grid(axis="y", alpha=0.15)
    figure.legend(loc="outside upper center", ncols=len(series))
    return figure


def _with_sign(value: float) -> str:
    """A number with its sign and about three digits, never with an exponent."""
    digits = 0 if value == 0.0 else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:+,.{digits}f}" if value else "0"


# A row of a picture of gains: its label, the gain, its interval, and whether it stands out.
GainRow = tuple[str, float, tuple[float | None, float | None], bool]


def gains(rows: Sequence[GainRow], *, x: str, axes: Any = None) -> Any:
    """One row per policy, best first: its gain with its interval, and zero as a line.

    Into new axes, or into those given.
    """
    figure, axes = _axes(axes, 5.6, 1.1 + 0.36 * len(rows))
    places = np.arange(len(rows))[::-1]
    for (_, mean, (low, high), chosen), y in zip(rows, places, strict=True):
        colour = BLUE if chosen else GREY
        axes.barh(y, mean, height=0.55, color=colour, alpha=0.85 if chosen else 0.45, zorder=2)
        if low is not None and high is not None:
            axes.plot(
                [low, high], [y, y], color=INK, linewidth=1.6, solid_capstyle="butt", zorder=3
            )
        where = {"textcoords": "offset points", "va": "center", "fontsize": 9}
        end = max(mean if high is None else high, 0.0)
        axes.annotate(
            _with_sign(mean), (end, y), xytext=(6, 0),
            weight="bold" if chosen else "normal", **where,
        )  # fmt: skip
    axes.axvline(0.0, color=INK, linewidth=1.0)
    axes.set_yticks(places, [_short(label) for label, *_ in rows])
    for tick, (*_, chosen) in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_weight("bold" if chosen else "normal")
    axes.margins(x=0.14)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(x)
    axes.grid(axis="y", visible=False)
    return figure


def heat_map(
    panel: Any, shades: Array, texts: Any, *, dark: float, fontsize: int, **look: Any
) -> Any:
    """Squares, darker for more, with texts in them if there are any: white on those above `dark`."""
    drawn = panel.imshow(shades, cmap="cividis_r", **look)
    for (row, column), text in np.ndenumerate(texts):
        panel.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=fontsize,
            color="white" if shades[row, column] > dark else "black",
            weight="bold" if row == column else "normal",
        )
    panel.grid(visible=False)
    panel.spines[:].set_visible(False)
    return drawn


def heat_maps(
    maps: Mapping[str, Array], labels: Sequence[str], *, x: str, y: str, unit: str
) -> Any:
    """Squares with numbers in them, one panel per name; darker is worse, on a logarithmic scale."""
    columns = min(2, len(maps))
    lines = -(-len(maps) // columns)
    figure, panels = new_axes(height=0.4 + 2.9 * lines, nrows=lines, ncols=columns, squeeze=False)
    shades = [np.log10(np.maximum(values, 0.1)) for values in maps.values()]
    low, high = np.min(shades), np.max(shades)
    look = {"dark": low + 0.45 * (high - low), "fontsize": 9, "vmin": low, "vmax": high}
    for panel in panels.ravel()[len(maps) :]:
        panel.set_axis_off()
    for panel, (name, values), shade in zip(panels.ravel(), maps.items(), shades, strict=False):
        texts = [
            [f"{v:.0f}{unit}" if v >= 99.5 else f"{v:.3g}{unit}" for v in row] for row in values
        ]
        heat_map(panel, shade, texts, **look)
        panel.set_xticks(range(len(labels)), labels)
        panel.set_yticks(range(len(labels)), labels)
        panel.set(xlabel=x, ylabel=y, title=name)
    return figure


def density(
    axes: Any, samples: Mapping[str, Array], *, x: str, inside: Sequence[float] | Array = ()
) -> Array:
    """How samples are distributed: a line for each; returns the ends of the bins.

    The picture shows all but one in a thousand of them, and all of `inside`.
    """
    everything = [np.quantile(values, (0.001, 0.999)) for values in samples.values()]
    shown = np.concatenate([*everything, inside])
    # Few different values, as in a table, fill few bins.
    distinct = min(
        len(np.unique(values)) for values in (*samples.values(), *([inside] if len(inside) else []))
    )
    bins = int(np.clip(2.0 * np.sqrt(distinct), 6, 40))
    ends = np.linspace(shown.min(), shown.max(), bins + 1)
    middle = (ends[1:] + ends[:-1]) / 2.0
    for place, (label, values) in enumerate(samples.items()):
        heights, _ = np.histogram(values, ends, density=True)
        look = {"color": COLOURS[place % len(COLOURS)], "linestyle": LINES[place % len(LINES)]}
        axes.plot(middle, heights, label=label, **look)
    axes.set(xlabel=x, ylabel="density")
    axes.legend(fontsize=8)
    return ends


# Formulas as they stand in a ranking, with formula, length and regret.
Formulas = Sequence[Mapping[str, Any]]


def _points(axes: Any, items: Formulas, marker: str, colour: str, label: str) -> None:
    x, y = [item["length"] for item in items], [item["regret"] for item in items]
    axes.plot(x, y, marker, color=colour, label=label)


def _name_points(axes: Any, items: Formulas, offsets: Sequence[tuple[int, int]]) -> None:
    for item, offset in zip(items, offsets, strict=True):
        where = {"xytext": offset, "textcoords": "offset points", "fontsize": 8}
        axes.annotate(item["formula"], (item["length"], item["regret"]), **where)


def lengths(
    found: Mapping[str, Any],
    *,
    published: Mapping[str, Formulas],
    levels: Mapping[str, float],
    floor: float | None,
    horizon: int,
    title: str,
    axes: Any = None,
) -> Any:
    """Regret against length: what simplicity costs; into new axes, or into those given.

    found: of a search, the best formula of each length, and the ranking; published: formulas of
    others, by what to call them
    """
    best: Formulas = found["best_of_length"]
    figure, axes = _axes(axes, 6.2, 4.9)
    highest = 2.2 * min(item["regret"] for item in best)
    shown = [item for item in best if item["regret"] <= highest]
    front: list[Mapping[str, Any]] = []
    for item in shown:
        if not front or item["regret"] < front[-1]["regret"]:
            front.append(item)
    _points(axes, shown, "o", SKY, "best formula of each length")
    end = {**front[-1], "length": max(item["length"] for item in best)}
    x, y = zip(*((item["length"], item["regret"]) for item in (*front, end)), strict=True)
    axes.step(x, y, where="post", color=BLUE, linewidth=2, label="best up to a length")
    _name_points(axes, front, [(5, 7)] * len(front))
    for label, items in published.items():
        seen = [item for item in items if item["regret"] <= highest]
        if seen:
            _points(axes, seen, "^", VERMILION, label)
            seen.sort(key=lambda item: item["regret"])
            _name_points(axes, seen, [(7, -12), *[(7, 6)] * (len(seen) - 1)])
    refined = next((item["refined"] for item in found["ranking"] if item["refined"]), None)
    if refined is not None:
        label = f"with learned numbers: {refined['expression']}"
        axes.axhline(refined["regret"], color=PINK, linestyle="-.", label=label)
    last = max(item["length"] for items in (best, *published.values()) for item in items)
    for label, level in levels.items():
        if level <= highest:
            axes.axhline(level, color=GREY, linewidth=1, linestyle="--")
            where = (last + 1.4, level)
            axes.annotate(label, where, fontsize=8, ha="right", va="bottom", color=INK)
    if floor is not None:
        axes.axhline(floor, color=INK, linewidth=1.5, label="Bayes-optimal floor")
    axes.set_xlim(0.5, last + 1.5)
    _whole(axes)
    y_label = f"regret after {horizon} plays"
    axes.set(xlabel="length of the formula (symbols)", ylabel=y_label, title=title)
    if figure is None:
        axes.legend(fontsize=8)
    else:
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return figure
