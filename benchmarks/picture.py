"""The picture of the README: regret curves of several policies, with their 95 % bands."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

import metabandit as mb

POLICIES = ["ucb1", "kl-ucb", "thompson", "ucb1-tuned", "ucb1:C=0.17", "r + 3/(n + 2)"]
# Okabe and Ito's colours, which can be told apart without colour vision.
COLOURS = ["#000000", "#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#D55E00"]
STYLES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    path = parser.parse_args().path
    matplotlib.rcParams.update({"svg.hashsalt": "metabandit", "font.size": 11})
    result = mb.evaluate(POLICIES, mb.Bernoulli(arms=2), 1000, episodes=200_000, seed=1)
    figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    for evaluation, colour, style in zip(result, COLOURS, STYLES, strict=True):
        x, y, error = evaluation.checkpoints, evaluation.curve, 1.96 * evaluation.curve_error
        axes.plot(x, y, color=colour, linestyle=style, linewidth=2, label=evaluation.policy)
        axes.fill_between(x, y - error, y + error, color=colour, alpha=0.2, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("plays")
    axes.set_ylabel("mean regret")
    axes.set_title("Two Bernoulli arms, uniform means: 200,000 problems", loc="left")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
