"""Pictures of what a policy does: its index over plays and mean, and where it chooses an arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..drawing import BLUE, INK, LINES, SKY, VERMILION, logarithmic, new_axes
from ..formulas.sample import variables_after
from ..language.cancelling import guarded
from ..language.values import evaluate_tree
from ..policies import IndexPolicy, OptimalPolicy, Policy, Setting
from ..policies import policy as read_policy
from ..priors import Bernoulli
from ..priors.families import Array
from .content import Figure

# The optimal policy is drawn where it is solved in no time.
_LONGEST = 300
# Plays and wins of the other arm in the picture of choices.
_OTHER = (10, 5)
_LABELS = {"xlabel": "plays of the arm", "ylabel": "mean reward of the arm"}


def indices(
    policy: IndexPolicy, prior: Bernoulli, horizon: int, plays: Array, wins: Array
) -> Array:
    """The index of each arm, [arm, state], after so many plays and wins of each arm."""
    policy = policy.on(Setting.of(prior, horizon))
    counts = policy.start.counts(prior)
    with np.errstate(all="ignore"):
        values = variables_after(plays, np.zeros_like(plays), wins, wins, counts, horizon)
    return np.broadcast_to(evaluate_tree(guarded(policy.bound), values), plays.shape)


def _thresholds(
    policy: Policy, prior: Bernoulli, horizon: int, counts: Sequence[int]
) -> list[float]:
    """For each number of plays of an arm, the mean from which on it is chosen, ties included."""
    there, won = _OTHER
    levels = []
    for plays in counts:
        wins = np.arange(plays + 1.0)
        if isinstance(policy, OptimalPolicy):
            chosen = np.array(
                [0 in policy.choose([plays, there], [int(item), won]) for item in wins]
            )
        else:
            assert isinstance(policy, IndexPolicy)
            both = np.stack([wins, np.full_like(wins, won)])
            count = np.stack([np.full_like(wins, plays), np.full_like(wins, there)])
            first, second = indices(policy, prior, horizon, count, both)
            chosen = first >= second - 1e-12 * np.abs(second)
        # The least mean above all that are refused; 1 if there is none.
        least = max(np.flatnonzero(~chosen), default=-1) + 1
        levels.append(float(least / plays) if least <= plays else 1.0)
    return levels


def policy_maps(
    label: str, learned: Policy, prior: Bernoulli, horizon: int, *, prefix: str
) -> tuple[Figure, ...]:
    """The index of a policy and of UCB1-Tuned as maps, then where each chooses an arm, beside the optimum."""
    policies = {label: learned, "UCB1-Tuned": read_policy("ucb1-tuned")}
    indexed = {name: item for name, item in policies.items() if isinstance(item, IndexPolicy)}
    if len(indexed) < len(policies):
        return ()
    moment = min(max(horizon // 2, 4), horizon - 1)
    figures = [
        Figure(
            f"{prefix}-index-{place}",
            f"The index of {name}",
            f"After {moment} of {horizon} plays, by the arm's plays and mean reward. Bright is high; the "
            f"index is the same along a white line, so arms on it are equally good.",
            partial(_index_map, name, item, prior, horizon, moment),
            narrow=True,
        )
        for place, (name, item) in enumerate(indexed.items())
    ]
    there, won = _OTHER
    if there + 2 < horizon <= _LONGEST:
        figures.append(
            Figure(
                f"{prefix}-choices",
                "Which arm is chosen",
                f"For {horizon} plays, against an arm that won {won} of its {there}. The Bayes-optimal policy "
                f"chooses the arm in the shaded area; each index chooses it from its line up.",
                partial(_choice_map, indexed, prior, horizon),
                narrow=True,
            )
        )
    return tuple(figures)


def _index_map(label: str, policy: IndexPolicy, prior: Bernoulli, horizon: int, moment: int) -> Any:
    """The order of an index over plays and mean: only the order decides which arm is played."""
    plays = np.unique(np.geomspace(1, moment - 1, 60).round())
    means = np.linspace(0.0, 1.0, 101)
    count, mean = np.meshgrid(plays, means)
    arm = np.stack([count.ravel(), moment - count.ravel()])
    wins = np.stack([(count * mean).ravel(), 0.5 * arm[1]])
    index = indices(policy, prior, horizon, arm, wins)[0].reshape(count.shape)
    # Equal indices have the same rank; what is not finite is left blank.
    known = np.isfinite(index)
    _, place, size = np.unique(index[known], return_inverse=True, return_counts=True)
    middle = np.cumsum(size) - 0.5 * (size + 1)
    shade = np.full(index.shape, np.nan)
    shade[known] = (middle / max(known.sum() - 1, 1))[place.ravel()]
    figure, axes = new_axes(4.6, 3.9)
    drawn = axes.pcolormesh(plays, means, shade, cmap="cividis", shading="nearest", rasterized=True)
    levels = np.linspace(0.1, 0.9, 9)
    axes.contour(plays, means, shade, levels=levels, colors="white", linewidths=0.7)
    axes.set_xlim(1, plays[-1])
    logarithmic(axes)
    axes.set(title=f"{label}, t = {moment}", **_LABELS)
    axes.grid(visible=False)
    bar = figure.colorbar(drawn, ticks=[0, 0.5, 1])
    bar.set_ticklabels(["lowest", "middle", "highest"])
    bar.outline.set_visible(False)
    return figure


def _choice_map(policies: Mapping[str, IndexPolicy], prior: Bernoulli, horizon: int) -> Any:
    """Where an arm is chosen: shaded for the optimum, lines for the others."""
    there, won = _OTHER
    plays = range(1, min(40, horizon - there - 1) + 1)
    best = _thresholds(OptimalPolicy(prior, horizon), prior, horizon, plays)
    figure, axes = new_axes(4.6, 3.9)
    label = "the Bayes-optimal policy chooses the arm"
    shaded = {"color": SKY, "alpha": 0.35, "linewidth": 0, "label": label}
    axes.fill_between(plays, best, 1.0, step="mid", **shaded)
    for place, (label, item) in enumerate(policies.items()):
        levels = _thresholds(item, prior, horizon, plays)
        style = {"color": (BLUE, VERMILION)[place], "linestyle": LINES[place]}
        label = f"{label}: from this line up"
        axes.plot(plays, levels, drawstyle="steps-mid", label=label, **style)
    axes.plot(plays, best, color=INK, linewidth=3, drawstyle="steps-mid", zorder=1)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlim(1, plays[-1])
    axes.set(title=f"against an arm with {won} of {there}", **_LABELS)
    figure.legend(loc="outside lower center", ncols=1, fontsize=8)
    return figure
