"""The picture of the README: how far policies are above the floor, by the number of plays."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

import metabandit as mb

POLICIES = {
    "ucb1": "ucb1",
    "thompson": "thompson",
    "kl-ucb": "kl-ucb",
    "ucb1-tuned": "ucb1-tuned",
    "r + 1/(n + 1/2)": "r + 1/(n + 1/2)",
    "r + 1/(n + 1/2), start prior-counts": mb.policy("r + 1/(n + 1/2)", start="prior-counts"),
}
LEARNED = "Power-1, learned for 100 plays"
HORIZONS = (5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 300)
# Okabe and Ito's colours, which can be told apart without colour vision.
COLOURS = ["#000000", "#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#0072B2"]
STYLES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), "-"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    path = parser.parse_args().path
    matplotlib.rcParams.update({"svg.hashsalt": "metabandit", "font.size": 11})
    prior = mb.Bernoulli(arms=2)
    policies = {**POLICIES, LEARNED: mb.learn("power-1", prior, 100).policy}
    results = [
        mb.evaluate([*policies.values()], prior, horizon, method="exact", floor=True)
        for horizon in HORIZONS
    ]
    figure, axes = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
    for position, (label, colour, style) in enumerate(zip(policies, COLOURS, STYLES, strict=True)):
        above = [100.0 * (result.above_floor(position) or 0.0) for result in results]
        axes.plot(HORIZONS, above, color=colour, linestyle=style, linewidth=2, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(0.01, 500.0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g} %"))
    axes.set_xlabel("plays")
    axes.set_ylabel("regret above the Bayes optimum")
    axes.set_title("Two Bernoulli arms, uniform means: exact values", loc="left")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="lower right")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
