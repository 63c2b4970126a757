"""Sample points: groups of arms that share a moment, on which formulas are compared.

The paper ranks d = 1024 random points (r, s, n, t) with each formula (Section 5.2, steps 2 and 3). But an
index is only ever compared with the indices of other arms at the same moment. So points come in groups
here: some arms with their own r, s and n, and the t (and h, K) that they have in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, about
from ..policies import Start
from ..priors import Prior, check_prior
from ..priors.families import Array
from ..settings import check_horizon, check_seed, check_whole
from ..showing import Shown

_MOST_STATES = 60_000


@dataclass(frozen=True, eq=False, repr=False)
class Sample(Shown):
    """Values of the variables, [arm, group] each; `description` says where they come from."""

    values: dict[str, Array]
    description: dict[str, Any]

    def headline(self) -> str:
        return f"{self.groups:,} groups of {self.arms} arms; {self.description}"

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


def problems_of(prior: Prior, horizon: int, start: Start, *, waiting: bool = False) -> str:
    """What a sample is for, in words."""
    late = ", with plays that wait for their reward" if waiting else ""
    return f"{prior.arms} arms of {prior}, {horizon} plays, start {start.resolve(prior)}{late}"


@about("groups")
def _check_groups(groups: object) -> int:
    return check_whole(groups, "the number of groups", 1, most=1_000_000)


def general_sample(*, groups: int = 1024, arms: int = 5, seed: int = 0) -> Sample:
    """Points that suit any problem with rewards in [0, 1], up to 100,000 plays.

    The bounds go a little beyond the domains and are clipped, so that 0, 1 and n = t appear often.

    Parameters
    ----------
    groups, arms, seed : int
        Number of groups, arms per group, and seed of the random numbers.

    Returns
    -------
    Sample
        For `make_classes` and `classify`.

    Examples
    --------
    >>> import metabandit as mb
    >>> mb.classify(["r", "2*r"], sample=mb.general_sample(groups=64))
    [0, 0]
    """
    groups = _check_groups(groups)
    arms = check_whole(arms, "the number of arms of a group", 2, most=100)
    rng = np.random.default_rng(check_seed(seed))

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
    values["w"] = np.clip(np.floor(values["n"] * share()), 0.0, values["n"] - 1.0)
    return Sample(values, {"domain": "general", "groups": groups, "arms": arms, "seed": seed})


def reachable_sample(
    prior: Prior,
    horizon: int,
    *,
    start: str | Start | None = None,
    waiting: bool = False,
    groups: int = 1024,
    seed: int = 0,
) -> Sample:
    """Points that play can reach with problems of a prior: all arms at a random moment.

    The moment is uniform on a logarithmic scale, the plays are divided among the arms at random, and the
    rewards are drawn from the prior.

    Parameters
    ----------
    prior, horizon : Prior, int
        The problems, and the plays per episode.
    start : str or Start, optional
        How play begins; by default each arm is played once.
    waiting : bool
        Whether some plays have had no reward yet, as in batches or with a delay.
    groups, seed : int
        Number of groups, and seed of the random numbers.

    Returns
    -------
    Sample
        For `make_classes` and `classify`.

    Examples
    --------
    >>> import metabandit as mb
    >>> sample = mb.reachable_sample(mb.Gaussian(arms=2), horizon=50, groups=64)
    >>> mb.classify(["r", "r/2"], sample=sample)
    [0, 0]
    """
    horizon = check_horizon(horizon)
    groups = _check_groups(groups)
    rng = np.random.default_rng(check_seed(seed))
    with about("start"):
        begin = Start.read(start)
    counts = begin.counts(check_prior(prior))
    arms = prior.arms
    least = int(begin.each_once)
    if horizon <= arms * least:
        raise InputError(
            f"with {horizon} plays of {arms} arms there is nothing to choose after each was played "
            f"once; raise the horizon"
        )
    plays = _random_plays(rng, arms, least, horizon, groups)
    waits = np.zeros_like(plays)
    if waiting:
        some = rng.random(plays.shape) < 0.5
        waits = np.where(some, rng.integers(0, np.maximum(plays - least, 0) + 1), 0)
    sums, squares = _rewards(prior, plays - waits, rng)
    problems = problems_of(prior, horizon, begin, waiting=waiting)
    drawn = {"groups": groups, "arms": arms, "seed": seed}
    values = variables_after(plays, waits, sums, squares, counts, horizon)
    return Sample(values, {"domain": "reachable", "problems": problems, **drawn})


def every_state(prior: Prior, horizon: int, *, start: str | Start | None = None) -> Sample:
    """Every state that play of two Bernoulli arms can reach before its last choice, one per group.

    Formulas of one class on this sample choose the same arm in all of them.

    Parameters
    ----------
    prior, horizon : Prior, int
        Two Bernoulli arms, and the plays per episode, at most 33.
    start : str or Start, optional
        How play begins; by default each arm is played once.

    Returns
    -------
    Sample
        For `make_classes` and `classify`.

    Examples
    --------
    >>> import metabandit as mb
    >>> mb.every_state(mb.Bernoulli(arms=2), horizon=5).groups
    23
    """
    horizon = check_horizon(horizon)
    with about("start"):
        begin = Start.read(start)
    check_prior(prior)
    if not prior.family.binary or prior.arms != 2:
        raise InputError(
            f"all states (--sharp) are known for two Bernoulli arms, not for {prior}; compare on a "
            f"sample instead"
        )
    least = int(begin.each_once)
    if horizon <= 2 * least or math.comb(horizon + 3, 4) > _MOST_STATES:
        longest = max(plays for plays in range(100) if math.comb(plays + 3, 4) <= _MOST_STATES)
        raise InputError(
            f"all states (--sharp) are compared for {2 * least + 1} to {longest} plays, not "
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
    wins = np.stack([s1, s2])
    plays = np.stack([n1, n2])
    values = variables_after(plays, np.zeros_like(plays), wins, wins, counts, horizon)
    problems = problems_of(prior, horizon, begin)
    return Sample(values, {"domain": "every state", "problems": problems, "arms": 2})


def _random_plays(
    rng: np.random.Generator, arms: int, least: int, horizon: int, groups: int
) -> np.ndarray[Any, Any]:
    """Plays of each arm at random moments, no fewer than a minimum, [arm, group]."""
    first = arms * least
    scale = rng.uniform(np.log(first + 1), np.log(horizon), groups)
    made = np.clip(np.floor(np.exp(scale)), first, horizon - 1).astype(np.int64)
    shares = rng.dirichlet(np.ones(arms), groups)
    divided = [
        rng.multinomial(total - first, share) for total, share in zip(made, shares, strict=True)
    ]
    return least + np.stack(divided, axis=1)


def _rewards(
    prior: Prior, plays: np.ndarray[Any, Any], rng: np.random.Generator
) -> tuple[Array, Array]:
    """Sum and sum of squares of the rewards of these plays of each arm, on drawn problems, [arm, group]."""
    arms, groups = plays.shape
    parameters = np.asarray(prior.draw(rng, groups), dtype=np.float64)
    if prior.family.binary:
        wins = rng.binomial(plays, parameters[:, :, 0].T).astype(np.float64)
        return wins, wins
    sums, squares = np.zeros((arms, groups)), np.zeros((arms, groups))
    for arm in range(arms):
        for group in range(groups):
            uniform = rng.uniform(size=int(plays[arm, group]))
            rewards = prior.family.rewards(uniform, parameters[group, arm])
            sums[arm, group] = rewards.sum()
            squares[arm, group] = (rewards**2).sum()
    return sums, squares


def variables_after(
    plays: np.ndarray[Any, Any],
    waits: np.ndarray[Any, Any],
    sums: Any,
    squares: Any,
    counts: Array,
    horizon: int,
) -> dict[str, Array]:
    """What formulas read after these plays with these rewards, beside the pseudo-observations."""
    n = plays + counts[0][:, None]
    r = (sums + counts[1][:, None]) / (n - waits)
    variance = (squares + counts[2][:, None]) / (n - waits) - r**2
    made = plays.sum(axis=0)
    return {
        "r": r,
        "s": np.sqrt(np.maximum(variance, 0.0)),
        "n": n,
        "w": waits.astype(np.float64),
        "t": np.broadcast_to(made + counts[0].sum(), n.shape),
        "h": np.broadcast_to((horizon - made).astype(np.float64), n.shape),
        "K": np.full(n.shape, float(len(plays))),
    }
