"""Pictures of what a policy does: its index over plays and mean, and where it chooses an arm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..language.values import evaluate_tree
from ..policies import IndexPolicy, OptimalPolicy, Policy
from ..policies import policy as read_policy
from ..priors import Bernoulli
from ..priors.families import Array
from .content import Figure
from .drawing import Line, choice_map, index_map

# The optimal policy is drawn where it is solved in no time.
_LONGEST = 300
# Plays and wins of the other arm in the picture of choices.
_OTHER = (10, 5)


def indices(
    policy: IndexPolicy, prior: Bernoulli, horizon: int, plays: Array, wins: Array
) -> Array:
    """The index of each arm, [arm, state], after so many plays and wins of each arm."""
    pseudo = policy.start.counts(prior)
    count = plays + pseudo[0][:, None]
    total = wins + pseudo[1][:, None]
    squares = wins + pseudo[2][:, None]
    with np.errstate(all="ignore"):
        mean = total / count
        spread = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
    made = plays.sum(axis=0)
    values = {
        "n": count,
        "r": mean,
        "s": spread,
        "t": made + pseudo[0].sum(),
        "h": horizon - made,
        "K": float(prior.arms),
    }
    return np.broadcast_to(evaluate_tree(policy.bound, values), plays.shape)


def _thresholds(label: str, policy: Policy, prior: Bernoulli, horizon: int) -> Line:
    """For each number of plays of an arm, the mean from which on it is chosen, ties included."""
    there, won = _OTHER
    x = range(1, min(40, horizon - there - 1) + 1)
    levels = []
    for plays in x:
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
    return Line(label, x, levels)


def policy_maps(
    label: str, learned: Policy, prior: Bernoulli, horizon: int, *, prefix: str
) -> tuple[Figure, ...]:
    """The index of a policy and of UCB1-Tuned as maps, then where each chooses an arm, beside the optimum."""
    policies = {label: learned, "UCB1-Tuned": read_policy("ucb1-tuned")}
    indexed = {name: item for name, item in policies.items() if isinstance(item, IndexPolicy)}
    if len(indexed) < len(policies):
        return ()
    figures = [
        _index_figure(name, item, prior, horizon, f"{prefix}-index-{place}")
        for place, (name, item) in enumerate(indexed.items())
    ]
    if _OTHER[0] + 2 < horizon <= _LONGEST:
        figures.append(_choice_figure(indexed, prior, horizon, f"{prefix}-choices"))
    return tuple(figures)


def _index_figure(
    label: str, policy: IndexPolicy, prior: Bernoulli, horizon: int, name: str
) -> Figure:
    moment = min(max(horizon // 2, 4), horizon - 1)

    def draw() -> object:
        plays = np.unique(np.geomspace(1, moment - 1, 60).round())
        means = np.linspace(0.0, 1.0, 101)
        count, mean = np.meshgrid(plays, means)
        arm = np.stack([count.ravel(), moment - count.ravel()])
        wins = np.stack([(count * mean).ravel(), 0.5 * arm[1]])
        index = indices(policy, prior, horizon, arm, wins)[0].reshape(count.shape)
        return index_map(index, plays, means, title=f"{label}, t = {moment}")

    return Figure(
        name,
        f"The index of {label}",
        f"After {moment} of {horizon} plays, by the arm's plays and mean reward. Bright is high; the "
        f"index is the same along a white line, so arms on it are equally good.",
        draw,
        narrow=True,
    )


def _choice_figure(
    policies: Mapping[str, IndexPolicy], prior: Bernoulli, horizon: int, name: str
) -> Figure:
    there, won = _OTHER

    def draw() -> object:
        best = OptimalPolicy(prior, horizon)
        return choice_map(
            [
                _thresholds(f"{label}: from this line up", item, prior, horizon)
                for label, item in policies.items()
            ],
            _thresholds("the Bayes-optimal policy chooses the arm", best, prior, horizon),
            title=f"against an arm with {won} of {there}",
        )

    return Figure(
        name,
        "Which arm is chosen",
        f"For {horizon} plays, against an arm that won {won} of its {there}. The Bayes-optimal policy "
        f"chooses the arm in the shaded area; each index chooses it from its line up.",
        draw,
        narrow=True,
    )
