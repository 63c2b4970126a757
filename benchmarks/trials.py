"""The tables and the picture of docs/trials.md: tests of adaptive designs, and what randomisation buys.

Run `python benchmarks/trials.py` from the top of the repository; it takes about a minute.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import metabandit as mb
from metabandit.drawing import BLUE, VERMILION, new_axes
from metabandit.report.content import Figure
from metabandit.report.drawing import save
from metabandit.tables import text_table

PATIENTS, MINIMUM = 75, 11
DESIGNS = ("equal", "thompson", "optimal", "gittins", "ucb1", f"crdp:degree=0.9,minimum={MINIMUM}")
TESTS = ("fisher", "boschloo", "z-pooled", "z-unpooled", "exact", "exact-conditional")
RATES = (0.2, 0.5)
DEGREES = tuple(np.round(np.arange(0.5, 1.001, 0.05), 2).tolist())


def compare_tests() -> list[dict[str, Any]]:
    """Type-I error at the worst of 99 common rates, and power, for each test and design."""
    nulls = [(p, p) for p in np.linspace(0.01, 0.99, 99).round(2).tolist()]
    found = []
    for test in TESTS:
        trial = mb.operating_characteristics(DESIGNS, [RATES, *nulls], horizon=PATIENTS, test=test)
        for name in DESIGNS:
            power, *under = trial[name]
            worst = max(point.rejection for point in under)
            found.append({"test": test, "design": name, "type_1": worst, "power": power.rejection})
    return found


def compare_degrees() -> list[dict[str, float]]:
    """Successes and power of constrained randomised dynamic programming, by its degree."""
    names = [f"crdp:degree={degree},minimum={MINIMUM}" for degree in DEGREES]
    points = [RATES, (0.4, 0.4)]
    trial = mb.operating_characteristics(
        names, points, horizon=PATIENTS, test="exact-conditional", fewer_than=MINIMUM
    )
    rows = []
    for degree, name in zip(DEGREES, names, strict=True):
        point, null = trial[name]
        rows.append(
            {
                "degree": degree,
                "successes": point.successes,
                "power": point.rejection,
                "type_1": null.rejection,
                "better_arm": point.plays[1] / PATIENTS,
                "short": sum(point.fewer or ()),
            }
        )
    return rows


def draw(rows: list[dict[str, float]]) -> Any:
    """Successes and power against the degree."""
    figure, (left, right) = new_axes(8.0, 3.4, ncols=2)
    degrees = [row["degree"] for row in rows]
    left.plot(degrees, [row["successes"] for row in rows], "o-", color=BLUE)
    left.set(xlabel="degree of randomisation", ylabel=f"expected successes of {PATIENTS}")
    right.plot(degrees, [row["power"] for row in rows], "s--", color=VERMILION)
    right.set(
        xlabel="degree of randomisation", ylabel="power of the design's own test", ylim=(0, 1)
    )
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--picture", type=Path, default=Path("docs/trials.svg"))
    options = parser.parse_args()
    tests, degrees = compare_tests(), compare_degrees()
    cells = {
        (row["test"], row["design"]): f"{row['type_1']:.3f}, {row['power']:.3f}" for row in tests
    }
    rows = [[name, *(cells[test, name] for test in TESTS)] for name in DESIGNS]
    print(
        f"Worst type-I error of 99 common rates, and power at {RATES}; {PATIENTS} patients, level 0.05"
    )
    print(text_table(["design", *TESTS], rows, align="lr"))
    print()
    keys = list(degrees[0])
    print(text_table(keys, [[f"{row[key]:.3f}" for key in keys] for row in degrees], align="r"))
    save(Figure("crdp", "", "", lambda: draw(degrees)), options.picture)
    if options.json is not None:
        options.json.write_text(json.dumps({"tests": tests, "degrees": degrees}, indent=2) + "\n")


if __name__ == "__main__":
    main()
