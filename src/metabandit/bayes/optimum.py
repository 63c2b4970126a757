"""The Bayes-optimal policy for Bernoulli arms with Beta means: the floor under every regret."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..errors import InputError, nearest
from ..priors import Bernoulli, Prior, check_prior
from ..settings import check_horizon
from .induction import EACH_ONCE, FREE, Progress, solve


@dataclass(frozen=True)
class Optimum:
    """What the best of all policies gets: no policy has less expected regret on this prior.

    `start` says whether all play is free, or each arm must be played once first.
    """

    prior: str
    arms: int
    horizon: int
    start: str
    expected_reward: float
    regret: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def has_optimum(prior: Prior) -> bool:
    """Whether backward induction can be done for a prior."""
    return type(prior) is Bernoulli and prior.arms <= 3


def check_solvable(prior: Prior, what: str) -> Bernoulli:
    """The prior, if backward induction can be done for it."""
    check_prior(prior)
    if type(prior) is not Bernoulli:
        raise InputError(
            f"{what} is for Bernoulli arms with Beta means (the prior bernoulli), not for {prior}; "
            f"no floor is known for others"
        )
    if not has_optimum(prior):
        raise InputError(
            f"{what} is for 2 or 3 arms, not {prior.arms}: the states are too many; the policy "
            f"gittins is a strong reference for more arms, though no bound"
        )
    return prior


def optimal(
    prior: Prior,
    horizon: int,
    *,
    start: str = FREE,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Optimum:
    """The reward and the regret of the Bayes-optimal policy, for two or three Bernoulli arms.

    start: `free`, or `each-once` if each arm must be played once first
    progress: called as progress(states done, states in all)

    >>> import metabandit as mb
    >>> round(mb.optimal(mb.Bernoulli(arms=2), horizon=10).regret, 6)
    0.644881
    """
    known = check_solvable(prior, "the optimum")
    horizon = check_horizon(horizon)
    check_start(start, known.arms, horizon)
    reward, _ = solve(known, horizon, start=start, keep=False, threads=threads, progress=progress)
    regret = horizon * known.expected_best() - reward
    return Optimum(str(known), known.arms, horizon, start, reward, regret)


def check_start(start: str, arms: int, horizon: int) -> None:
    if start not in (FREE, EACH_ONCE):
        raise InputError(
            f"unknown start {start!r} of the optimum; {nearest(start, (FREE, EACH_ONCE))}"
        )
    if start == EACH_ONCE and horizon < arms:
        raise InputError(
            f"the start each-once plays each of the {arms} arms, so the horizon must be at least "
            f"{arms}, not {horizon}; choose a longer one, or the start free"
        )
