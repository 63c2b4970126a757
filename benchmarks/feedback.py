"""What late rewards cost: the picture and the tables of docs/feedback.md.

    python benchmarks/feedback.py docs/feedback.svg docs/feedback-results.md

The picture is exact. The tables learn a policy per batch size and measure everything on fresh problems;
the e-mail case is also played through live players that select whole batches.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FuncFormatter

import metabandit as mb
from metabandit.engine.external import EpisodeRewards
from metabandit.engine.problems import draw_problems
from metabandit.numerics import episode_seed

SIZES = (1, 2, 5, 10, 20, 25, 50)
INDEX = "r + 1.007/max(n, 2.9)"
# Okabe and Ito's colours, which can be told apart without colour vision.
COLOURS = ["#000000", "#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#0072B2"]
STYLES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1))]


def batches(size: int, **others: object) -> mb.Feedback | None:
    return None if size == 1 and not others else mb.Feedback(batch=size, **others)


def picture(path: Path) -> None:
    """Regret against batch size, two arms, 100 plays, exact."""
    matplotlib.rcParams.update({"svg.hashsalt": "metabandit", "font.size": 11})
    prior = mb.Bernoulli(arms=2)
    index = mb.policy(INDEX, start="prior-counts")
    ignoring = mb.policy("r + 1.007/max(n - w, 2.9)", start="prior-counts")
    policies = {
        "ucb1-tuned": "ucb1-tuned",
        "thompson": "thompson",
        "gittins": "gittins",
        f"{INDEX}, waiting plays counted": index,
        "the same, waiting plays ignored": ignoring,
    }
    results = [
        mb.evaluate(
            [*policies.values()], prior, 100, method="exact", floor=True, feedback=batches(size)
        )
        for size in SIZES
    ]
    figure, axes = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
    for position, (label, colour, style) in enumerate(zip(policies, COLOURS, STYLES, strict=False)):
        regret = [result[position].mean_regret for result in results]
        axes.plot(SIZES, regret, color=colour, linestyle=style, linewidth=2, label=label)
    floors = [result.floor.regret for result in results if result.floor is not None]
    axes.plot(SIZES, floors, color=COLOURS[6], linewidth=3, alpha=0.6, label="floor: best possible")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(SIZES)
    axes.minorticks_off()
    axes.set_yticks((2, 3, 4, 6, 8, 10))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("plays per batch")
    axes.set_ylabel("regret after 100 plays")
    axes.set_title("Two Bernoulli arms, uniform means: exact values", loc="left")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def ten_arms() -> list[str]:
    """Ten uniform Bernoulli arms, 200 plays."""
    prior, index = mb.Bernoulli(arms=10), mb.policy("r + 2/(n + 3)", start="prior-counts")
    lines = [
        "| plays per batch | `r + 2/(n + 3)`, waiting plays counted | ignored | Thompson sampling | "
        "`r + a/(n + b*w + c)`, learned |",
        "| --- | --- | --- | --- | --- |",
    ]
    for size in (5, 10, 20):
        feedback = batches(size)
        learned = mb.learn(
            "r + a/(n + b*w + c)", prior, 200, feedback=feedback, initial={"a": 2.0, "c": 3.0},
            effort=0.3, measured=False,
        ).policy  # fmt: skip
        options = {"episodes": 200_000, "seed": 7, "floor": False}
        found = mb.evaluate([index, "thompson", learned], prior, 200, feedback=feedback, **options)
        ignoring = mb.evaluate(
            index, prior, 200, feedback=batches(size, pending="ignore"), **options
        )
        cells = [found[0], ignoring[0], found[1], found[2]]
        shown = [f"{item.mean_regret:.2f} ± {1.96 * item.standard_error:.2f}" for item in cells]
        lines.append(f"| {size} | {' | '.join(shown)} (`{found[2].policy}`) |")
    return lines


def email() -> list[str]:
    """Four subject lines, 5,000 mails in ten batches of 500."""
    prior, feedback = mb.Bernoulli(arms=4, alpha=3, beta=90), mb.Feedback(batch=500)
    learned = mb.learn("power-1", prior, 5000, feedback=feedback, effort=0.1, measured=False).policy
    advised = mb.advise(prior, 5000, feedback=feedback).recommended.policy
    split = mb.IndexPolicy("-n", name="equal split")
    policies = [learned, advised, mb.policy("kl-ucb+"), mb.policy("thompson"), split]
    found = mb.evaluate(
        policies, prior, 5000, feedback=feedback, episodes=40_000, seed=11, floor=False
    )
    lines = [
        "| policy | regret | less than kl-ucb+ | through `player.select(500)`, 300 episodes |",
        "| --- | --- | --- | --- |",
    ]
    for position, item in enumerate(found):
        apart = found.difference(2, position)
        live, error = play_live(policies[position], prior, 300)
        name = (
            ("learned power-1", f"advised: `{item.policy}`")[position]
            if position < 2
            else item.policy
        )
        less = "" if position == 2 else f"{apart.mean:+.2f} ± {1.96 * apart.standard_error:.2f}"
        lines.append(
            f"| {name} | {item.mean_regret:.2f} ± {1.96 * item.standard_error:.2f} | {less} | "
            f"{live:.2f} ± {1.96 * error:.2f} |"
        )
    return lines


def play_live(policy: mb.Policy, prior: mb.Prior, episodes: int) -> tuple[float, float]:
    """Mean regret of live players that select batches of 500 and are told counts."""
    problems = draw_problems(prior, 11, episodes)
    regret = np.empty(episodes)
    for number, parameters in enumerate(problems):
        seed = episode_seed(11, number)
        rewards = EpisodeRewards(prior.family, parameters, seed)
        player = policy.player(prior.arms, seed=seed, horizon=5000, prior=prior)
        pulls = [0] * prior.arms
        for _ in range(10):
            for arm, count in player.select(500).items():
                wins = sum(rewards.reward(arm, pulls[arm] + pull) for pull in range(count))
                pulls[arm] += count
                if count:
                    player.update(arm, plays=count, total=wins)
        gaps = parameters[:, 0].max() - parameters[:, 0]
        regret[number] = (np.array(pulls) * gaps).sum()
    return float(regret.mean()), float(regret.std(ddof=1)) / math.sqrt(episodes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("markdown", type=Path)
    given = parser.parse_args()
    picture(given.picture)
    parts = [
        "# What late rewards cost: results",
        "Made by `make feedback` (benchmarks/feedback.py). Intervals are 95 % intervals; differences are paired.",
        "## Ten uniform Bernoulli arms, 200 plays",
        "\n".join(ten_arms()),
        "## An e-mail test: 4 arms, Beta(3, 90) means, 5,000 mails, ten batches of 500",
        "\n".join(email()),
    ]
    given.markdown.write_text("\n\n".join(parts) + "\n", "utf-8")


if __name__ == "__main__":
    main()
