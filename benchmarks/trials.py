"""The tables and pictures of docs/trials.md: tests of adaptive designs, and what randomisation buys.

Run `make trials`, or `python benchmarks/trials.py` from the top of the repository; it takes about half a
minute. Tables stand in docs/trials.md between lines such as `<!-- tests -->` and `<!-- end -->`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import metabandit as mb
from metabandit.drawing import BLUE, VERMILION, new_axes
from metabandit.report.content import Figure
from metabandit.report.trials import power_figure
from metabandit.report.writing import save

PATIENTS, MINIMUM, LEVEL = 75, 11, 0.05
CRDP = f"crdp:degree=0.9,minimum={MINIMUM}"
DESIGNS = ("equal", "thompson", "optimal", "gittins", "ucb1", CRDP)
TESTS = ("fisher", "boschloo", "z-pooled", "z-unpooled", "exact", "exact-conditional")
RATES = (0.2, 0.5)
DEGREES = tuple(np.round(np.arange(0.5, 1.001, 0.05), 2).tolist())
Rows = list[list[str]]


def compare_tests() -> Rows:
    """Type-I error at the worst of 99 common rates, and power, for each test and design."""
    nulls = [(p, p) for p in np.linspace(0.01, 0.99, 99).round(2).tolist()]
    rows = [[f"`{name}`"] for name in DESIGNS]
    for test in TESTS:
        trial = mb.operating_characteristics(DESIGNS, [RATES, *nulls], horizon=PATIENTS, test=test)
        for row, name in zip(rows, DESIGNS, strict=True):
            power, *under = trial[name]
            worst = max(point.rejection or 0.0 for point in under)
            shown = f"**{worst:.3f}**" if worst > LEVEL else f"{worst:.3f}"
            row.append(f"{shown}, {power.rejection:.3f}")
    return [["design", *TESTS], *rows]


def compare_degrees() -> tuple[Rows, Any]:
    """What constrained randomised dynamic programming does, by its degree; and the picture."""
    designs = {f"{degree:g}": f"crdp:degree={degree},minimum={MINIMUM}" for degree in DEGREES}
    # For comparison: dynamic programming without constraints, and equal numbers.
    designs |= {"`optimal`": "optimal", "`equal`": "equal"}
    trial = mb.operating_characteristics(
        list(designs.values()),
        [RATES],
        horizon=PATIENTS,
        test="exact-conditional",
        fewer_than=MINIMUM,
    )
    rows = [
        [
            "degree",
            "successes",
            "on the better arm",
            f"fewer than {MINIMUM}",
            "power",
            "bias of the difference",
        ]
    ]
    for label, name in designs.items():
        (point,) = trial[name]
        share, short = point.plays[1] / PATIENTS, sum(point.fewer or ())
        bias = round(point.difference_bias or 0.0, 4) + 0.0
        rows.append(
            [label, f"{point.successes:.2f}", f"{100 * share:.0f} %", f"{100 * short:.1f} %",
             f"{point.rejection:.3f}", f"{bias:+.4f}"]
        )  # fmt: skip

    def draw() -> Any:
        figure, (left, right) = new_axes(8.0, 3.4, ncols=2)
        points = [trial[name][0] for name in list(designs.values())[: len(DEGREES)]]
        left.plot(DEGREES, [point.successes for point in points], "o-", color=BLUE)
        left.set(xlabel="degree of randomisation", ylabel=f"expected successes of {PATIENTS}")
        right.plot(DEGREES, [point.rejection for point in points], "s--", color=VERMILION)
        right.set(
            xlabel="degree of randomisation", ylabel="power of the design's own test", ylim=(0, 1)
        )
        for panel, key in ((left, "successes"), (right, "rejection")):
            for name, line in (("optimal", ":"), ("equal", "-.")):
                level = getattr(trial[name][0], key)
                panel.axhline(level, color="#888888", linestyle=line, linewidth=1)
                panel.annotate(
                    name, (1.0, level), xytext=(0, 3), textcoords="offset points", ha="right",
                    fontsize=8, color="#555555",
                )  # fmt: skip
        return figure

    return rows, draw


def map_power() -> tuple[float, Any]:
    """Seconds for all characteristics of three designs and 200 patients at 81 points, and a map of power."""
    designs = ["equal", "thompson", "crdp:degree=0.9,minimum=30"]
    begun = time.perf_counter()
    trial = mb.operating_characteristics(
        designs, grid="0.1:0.9:0.1", horizon=200, test="exact-conditional", fewer_than=30
    )
    return time.perf_counter() - begun, power_figure(trial.to_dict()).draw


def markdown(rows: Rows) -> str:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    rule = f"| {' | '.join('---' for _ in rows[0])} |"
    return "\n".join([head, rule, *rest])


def put(text: str, name: str, made: str) -> str:
    """The page with a part made again."""
    first, rest = text.split(f"<!-- {name} -->\n")
    return f"{first}<!-- {name} -->\n{made}\n<!-- end -->{rest.split('<!-- end -->', 1)[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, default=Path("docs/trials.md"))
    parser.add_argument("--degrees", type=Path, default=Path("docs/trials.svg"))
    parser.add_argument("--power", type=Path, default=Path("docs/trials-power.svg"))
    options = parser.parse_args()
    page = put(options.page.read_text("utf-8"), "tests", markdown(compare_tests()))
    degrees, draw = compare_degrees()
    page = put(page, "degrees", markdown(degrees))
    save(Figure("crdp", "", "", draw), options.degrees)
    seconds, draw_power = map_power()
    save(Figure("power", "", "", draw_power), options.power)
    options.page.write_text(page, encoding="utf-8")
    print(f"81 points, three designs, 200 patients, all characteristics: {seconds:.1f} s")


if __name__ == "__main__":
    main()
