"""Pictures of what a policy does: its index over plays and mean, and where it chooses an arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..bayes.optimum import OptimalPolicy
from ..language.values import evaluate_tree
from ..policies import IndexPolicy, Policy
from ..priors import Bernoulli
from ..priors.families import Array
from .content import Figure
from .drawing import Line, choice_map, index_map

# The optimal policy is drawn where it is solved in no time.
_LONGEST = 300
# The other arm of the picture of choices.
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


def _threshold(chosen: npt.NDArray[np.bool_], means: Array) -> float:
    """The least mean from which on the arm is chosen; 1 if it never is."""
    refused = np.flatnonzero(~chosen)
    place = 0 if not len(refused) else int(refused[-1]) + 1
    return float(means[place]) if place < len(means) else 1.0


def _thresholds(policy: Policy, prior: Bernoulli, horizon: int, most: int) -> Line:
    """For each number of plays of an arm, the mean from which on it is chosen, ties included."""
    there, won = _OTHER
    levels = []
    for plays in range(1, most + 1):
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
        levels.append(_threshold(chosen, wins / plays))
    return Line(policy.name, list(range(1, most + 1)), levels)


def policy_maps(
    policies: Mapping[str, IndexPolicy], horizon: int, prior: Bernoulli, *, prefix: str
) -> tuple[Figure, ...]:
    """The index of each policy as a map, then where each chooses an arm, beside the optimum."""
    moment = min(max(horizon // 2, 4), horizon - 1)
    figures = [
        _index_figure(label, policy, horizon, prior, moment, f"{prefix}-index-{place}")
        for place, (label, policy) in enumerate(policies.items())
    ]
    if horizon <= _LONGEST and horizon > _OTHER[0] + 2:
        figures.append(_choice_figure(policies, horizon, prior, f"{prefix}-choices"))
    return tuple(figures)


def _index_figure(
    label: str, policy: IndexPolicy, horizon: int, prior: Bernoulli, moment: int, name: str
) -> Figure:
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
        f"After {moment} of {horizon} plays, for an arm with so many plays and this mean reward. Bright is "
        f"high; along a white line the index is the same, so arms there are as good as each other.",
        draw,
        narrow=True,
    )


def _choice_figure(
    policies: Mapping[str, IndexPolicy], horizon: int, prior: Bernoulli, name: str
) -> Figure:
    there, won = _OTHER

    def draw() -> object:
        most = min(40, horizon - there - 1)
        best = _thresholds(OptimalPolicy(prior, horizon), prior, horizon, most)
        lines: Sequence[Line] = [
            Line(f"{label}: from this line up", line.x, line.y)
            for label, policy in policies.items()
            for line in [_thresholds(policy, prior, horizon, most)]
        ]
        return choice_map(
            lines,
            Line("the Bayes-optimal policy chooses the arm", best.x, best.y),
            x="plays of the arm",
            y="mean reward of the arm",
            title=f"against an arm with {won} of {there}",
        )

    return Figure(
        name,
        "Which arm is chosen",
        f"Of {horizon} plays; the other arm was played {there} times and won {won} times. The arm is "
        f"chosen in the shaded area by the Bayes-optimal policy, and from its line up by each index.",
        draw,
        narrow=True,
    )
