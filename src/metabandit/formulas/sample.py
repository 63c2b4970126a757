"""Sample points: groups of arms that share a moment, on which formulas are compared.

An index is only ever compared with the indices of other arms at the same moment. So a group is some
arms with their own r, s and n, and the t (and h, K) that they have in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ..policies import Start
from ..priors import Prior, check_prior
from ..priors.families import Array
from ..settings import check_horizon, check_whole

_MOST_STATES = 60_000
GROUPS = 1024
ARMS = 5


@dataclass(frozen=True, eq=False)
class Sample:
    """Values of the variables, [arm, group] each; `description` says where they come from."""

    values: dict[str, Array]
    description: dict[str, Any]

    @property
    def arms(self) -> int:
        return int(self.values["r"].shape[0])

    @property
    def groups(self) -> int:
        return int(self.values["r"].shape[1])


def check_sample(sample: object) -> Sample:
    """The sample, or the general one if there is none."""
    if sample is None:
        return general_sample()
    if not isinstance(sample, Sample):
        raise InputError(f"a sample is what general_sample gives, not {sample!r}")
    return sample


def problems_of(prior: Prior, horizon: int, start: Start) -> str:
    """What a sample is for, in words."""
    return f"{prior.arms} arms of {prior}, {horizon} plays, start {start.resolve(prior)}"


def general_sample(*, groups: int = GROUPS, arms: int = ARMS, seed: int = 0) -> Sample:
    """Points for any problem with rewards in [0, 1], up to 100,000 plays.

    The bounds go a little beyond the domains and are clipped, so that 0, 1 and n = t appear often.
    """
    groups = check_whole(groups, "the number of groups", 1, most=1_000_000)
    arms = check_whole(arms, "the number of arms of a group", 2, most=100)
    rng = np.random.default_rng(check_whole(seed, "the seed", 0))

    def moment() -> Array:
        drawn = np.maximum(1.0, np.floor(10.0 ** rng.uniform(-0.1, 5.0, groups)))
        return np.broadcast_to(drawn, (arms, groups))

    def share() -> Array:
        return rng.uniform(-0.1, 1.1, (arms, groups))

    t = moment()
    values = {
        "r": np.clip(share(), 0.0, 1.0),
        "s": np.clip(share(), 0.0, 1.0),
        "n": np.clip(np.floor(t * share()), 1.0, t),
        "t": t,
        "h": moment(),
        "K": np.broadcast_to(np.floor(10.0 ** rng.uniform(0.31, 2.0, groups)), (arms, groups)),
    }
    return Sample(values, {"domain": "general", "groups": groups, "arms": arms, "seed": seed})


def reachable_sample(
    prior: Prior,
    horizon: int,
    *,
    start: str | Start | None = None,
    groups: int = GROUPS,
    seed: int = 0,
) -> Sample:
    """Points that play can reach with problems of a prior: all arms at a random moment.

    The moment is even on a logarithmic scale, the plays are divided among the arms at random, and the
    rewards are drawn from the prior.
    """
    horizon = check_horizon(horizon)
    groups = check_whole(groups, "the number of groups", 1, most=1_000_000)
    rng = np.random.default_rng(check_whole(seed, "the seed", 0))
    begin = Start.read(start)
    counts = begin.counts(check_prior(prior))
    least = 1 if begin.each_once else 0
    arms = prior.arms
    if horizon <= arms * least:
        raise InputError(
            f"with {horizon} plays of {arms} arms there is nothing to choose after each was played "
            f"once; raise the horizon"
        )
    first = arms * least
    scale = rng.uniform(np.log(first + 1), np.log(horizon), groups)
    made = np.clip(np.floor(np.exp(scale)), max(first, 0), horizon - 1).astype(np.int64)
    # A random division of the plays that each arm has beyond its first.
    shares = rng.dirichlet(np.ones(arms), groups)
    plays = np.stack(
        [rng.multinomial(total - first, share) for total, share in zip(made, shares, strict=True)],
        axis=1,
    )
    plays += least
    parameters = np.asarray(prior.draw(rng, groups), dtype=np.float64)
    sums, squares = _rewards(prior, parameters, plays, rng)
    total = plays + counts[0][:, None]
    mean = np.divide(sums + counts[1][:, None], total, out=np.zeros(total.shape), where=total > 0)
    second = np.divide(
        squares + counts[2][:, None], total, out=np.zeros(total.shape), where=total > 0
    )
    shape = (arms, groups)
    values = {
        "r": mean,
        "s": np.sqrt(np.maximum(second - mean**2, 0.0)),
        "n": total,
        "t": np.broadcast_to(made + counts[0].sum(), shape),
        "h": np.broadcast_to((horizon - made).astype(np.float64), shape),
        "K": np.full(shape, float(arms)),
    }
    return Sample(
        values,
        {
            "domain": "reachable",
            "problems": problems_of(prior, horizon, begin),
            "groups": groups,
            "arms": arms,
            "seed": seed,
        },
    )


def every_state(prior: Prior, horizon: int, *, start: str | Start | None = None) -> Sample:
    """Every state that play of two Bernoulli arms can reach before its last choice: each is a group.

    Formulas that are in one class on this sample choose the same arm in all of them.
    """
    horizon = check_horizon(horizon)
    begin = Start.read(start)
    check_prior(prior)
    if not prior.family.binary or prior.arms != 2:
        raise InputError(
            f"all states (--sharp) are known for two Bernoulli arms, not for {prior}; compare on a "
            f"sample instead"
        )
    least = 1 if begin.each_once else 0
    if horizon <= 2 * least or math.comb(horizon + 3, 4) > _MOST_STATES:
        raise InputError(
            f"all states (--sharp) are compared for {2 * least + 1} to {_most_plays()} plays, not "
            f"{horizon}; compare on a sample instead"
        )
    counts = begin.counts(prior)
    states = [
        (n1, s1, n2, s2)
        for plays in range(2 * least, horizon)
        for n1 in range(least, plays - least + 1)
        for n2 in (plays - n1,)
        for s1 in range(n1 + 1)
        for s2 in range(n2 + 1)
    ]
    if (counts[:, 0] == counts[:, 1]).all():
        # Exchanging the arms exchanges the choice.
        states = [state for state in states if state[:2] <= state[2:]]
    n1, s1, n2, s2 = np.array(states).T
    plays, wins = np.stack([n1, n2]), np.stack([s1, s2])
    n = plays + counts[0][:, None]
    r = (wins + counts[1][:, None]) / n
    variance = (wins + counts[2][:, None]) / n - r**2
    made = plays.sum(axis=0)
    values = {
        "r": r,
        "s": np.sqrt(np.maximum(variance, 0.0)),
        "n": n,
        "t": np.broadcast_to(made + counts[0].sum(), n.shape),
        "h": np.broadcast_to((horizon - made).astype(np.float64), n.shape),
        "K": np.full(n.shape, 2.0),
    }
    problems = problems_of(prior, horizon, begin)
    return Sample(values, {"domain": "every state", "problems": problems, "arms": 2})


def _most_plays() -> int:
    return max(plays for plays in range(100) if math.comb(plays + 3, 4) <= _MOST_STATES)


def _rewards(
    prior: Prior, parameters: Array, plays: np.ndarray[Any, Any], rng: np.random.Generator
) -> tuple[Array, Array]:
    """Sum and sum of squares of so many rewards of each arm, [arm, group]."""
    arms, groups = plays.shape
    sums, squares = np.zeros((arms, groups)), np.zeros((arms, groups))
    if prior.family.binary:
        wins = rng.binomial(plays, parameters[:, :, 0].T).astype(np.float64)
        return wins, wins
    for arm in range(arms):
        for group in range(groups):
            uniform = rng.uniform(size=int(plays[arm, group]))
            rewards = prior.family.rewards(uniform, parameters[group, arm])
            sums[arm, group] = rewards.sum()
            squares[arm, group] = (rewards**2).sum()
    return sums, squares
