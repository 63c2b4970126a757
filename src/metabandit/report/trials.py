"""Reports of trials: what `metabandit trial` prints with --json, as tables and maps over the rates."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..drawing import heat_map, new_axes
from ..errors import InputError
from ..priors.families import Array
from ..trials.measures import rates_text
from .content import Cell, Figure, ReportTable, Run, Section, number, row, section

# Squares per side that still have room for numbers.
_NUMBERED = 11


def trial_sections(value: Run, prefix: str) -> list[Section]:
    """The sections of a trial."""
    figures: list[Figure] = []
    if _sides(value) is not None:
        figures = [power_figure(value, prefix), _successes_figure(value, prefix)]
    title = f"Trials of {value['horizon']} patients"
    return [section(f"{prefix}-trial", title, [_table(value, prefix)], figures)]


def power_figure(value: Run, prefix: str = "trial") -> Figure:
    """The probability that the test rejects, over the success rates of two arms."""
    test = value["test"]
    if test is None:
        raise InputError("a picture of power needs a test: leave out --test none")
    said = f"test {test}\nchance to reject (diagonal: type-I error)"
    return Figure(
        f"{prefix}-power",
        "Type-I error and power",
        f"Probability that the test {test} rejects equal rates; on the diagonal, where they are equal, "
        f"that is its type-I error.",
        partial(_maps, value, "rejection", f"{value['horizon']} patients, {said}"),
    )


def _successes_figure(value: Run, prefix: str) -> Figure:
    """Expected successes, as a share of the patients."""
    said = "expected successes per patient"
    return Figure(
        f"{prefix}-successes",
        "Successes",
        "Expected successes per patient.",
        partial(_maps, value, "successes", f"{value['horizon']} patients\n{said}"),
    )


def _sides(value: Run) -> list[float] | None:
    """The rates of a full grid of two arms, or None."""
    points = {
        tuple(point["rates"])
        for point in value["designs"][0]["points"]
        if not isinstance(point["rates"], str)
    }
    firsts = sorted({point[0] for point in points})
    seconds = sorted({point[1] for point in points if len(point) == 2})
    # Points beside the grid are in the table.
    inside = [rate for rate in firsts if all((rate, other) in points for other in seconds)]
    inside = [rate for rate in inside if all((other, rate) in points for other in inside)]
    return inside if len(inside) > 1 else None


def _maps(value: Run, key: str, title: str) -> Any:
    """One panel per design, arm 1 upwards and arm 2 to the right; darker is more."""
    rates = _sides(value)
    if rates is None:
        raise InputError("a map needs all combinations of some rates of two arms: give --grid")
    designs = value["designs"]
    columns = 2 if len(designs) == 4 else min(3, len(designs))
    lines = -(-len(designs) // columns)
    numbered = len(rates) <= _NUMBERED
    figure, panels = new_axes(
        max(4.0, 3.4 * columns) + (0.0 if numbered else 0.6), 0.7 + 3.2 * lines,
        nrows=lines, ncols=columns, squeeze=False,
    )  # fmt: skip
    figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    for panel in panels.ravel()[len(designs) :]:
        panel.set_axis_off()
    for panel, item in zip(panels.ravel(), designs, strict=False):
        shades = _values(item["points"], rates, key)
        texts = [[f"{shade:.2f}".replace("0.", ".", 1) for shade in line] for line in shades]
        drawn = heat_map(
            panel, shades, texts if numbered else [], dark=0.5, fontsize=7, vmin=0.0, vmax=1.0,
            origin="lower",
        )  # fmt: skip
        ticks = range(0, len(rates), -(-len(rates) // _NUMBERED))
        labels = [f"{rates[place]:g}" for place in ticks]
        panel.set_xticks(ticks, labels, fontsize=7)
        panel.set_yticks(ticks, labels, fontsize=7)
        panel.set(
            xlabel="success rate of arm 2", ylabel="success rate of arm 1", title=item["policy"]
        )
    if not numbered:
        figure.colorbar(drawn, ax=panels, shrink=0.8)
    return figure


def _values(points: Any, rates: list[float], key: str) -> Array:
    found = np.full((len(rates), len(rates)), np.nan)
    for point in points:
        where = tuple(point["rates"])
        if not isinstance(point["rates"], str) and all(rate in rates for rate in where):
            shown = point[key]
            if key == "successes":
                shown /= point["patients"]
            found[rates.index(where[0]), rates.index(where[1])] = shown
    return found


def _table(value: Run, prefix: str) -> ReportTable:
    rows = []
    for item in value["designs"]:
        for point in item["points"]:
            text = rates_text(point["rates"])
            rows.append(
                row(
                    Cell(text, text),
                    item["policy"],
                    number(point["successes"], 5),
                    number(point["successes_sd"], 3),
                    " / ".join(f"{n:.1f}" for n in point["plays"]),
                    number(point["patients"], 4),
                    number(point["rejection"], 4),
                    number(point["correct_selection"], 4),
                    " / ".join(
                        "" if b is None else f"{round(b, 4) + 0.0:+.4f}" for b in point["bias"]
                    ),
                )
            )
    test = "no test" if value["test"] is None else f"test {value['test']}, level {value['level']:g}"
    how = "exact" if value["method"] == "exact" else "simulated"
    return ReportTable(
        f"{prefix}-characteristics",
        "Operating characteristics",
        ("rates", "design", "successes", "sd", "patients per arm", "patients", "rejects",
         "chooses the best", "bias of the rates"),
        tuple(rows),
        align="llrrrr",
        caption=f"{test}; {how}.",
    )  # fmt: skip
