"""What arms, and fixed shares of them, are worth per play, from a log of choices with known probabilities.

Let play t of the log have arm a_t, reward r_t and the probability p_t with which a_t was chosen, given all that
the logger knew. For fixed shares pi of the arms, with value V = sum_k pi_k mu_k, let w_t = pi(a_t) / p_t, and

    inverse propensity      V1 = mean of w_t r_t
    self-normalised         V2 = sum of w_t r_t / sum of w_t
    doubly robust           V3 = mean of sum_k pi_k m_t(k) + w_t (r_t - m_t(a_t)),

m_t(k) the mean of the rewards of arm k before play t (of all arms if it had none). Whatever the logger did with
earlier rewards, the expectation of each term of V1 and V3 is V, given all that was before it: m_t is known
then, and E[w_t (r_t - m_t(a_t))] = sum_k pi_k (mu_k - m_t(k)). Hence both are unbiased also for adaptive
loggers, such as Thompson sampling, provided that each arm with a share had some chance at every play. Their
terms have one mean and are uncorrelated, so that sd / sqrt(n) estimates their standard error without bias; V2 is
consistent, and its error is sqrt(sum w_t^2 (r_t - V2)^2) / sum w_t. Intervals are normal ones, too
short where few plays carry most of the weight: the effective number of plays, (sum w)^2 / sum w^2, tells.

Plays whose arm was certain (p_t = 1) say nothing of other arms: they inform m_t only. Whether a play is one of
these is known before its arm is drawn, so leaving them out is no selection by results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .engine.results import interval_95
from .errors import InputError, about
from .logs import Log
from .play import ArmName
from .settings import read_number

IPS, SNIPS, DR = "inverse propensity", "self-normalised", "doubly robust"
# A choice at least so probable was certain.
CERTAIN = 1.0 - 1e-9
# Effective plays below which intervals are not to be relied on.
_FEW = 30.0
# Weights average 1; more standard errors away than this do not happen by chance.
_FAR = 4.0


@dataclass(frozen=True)
class Estimate:
    """The value per play of fixed shares of the arms.

    Attributes
    ----------
    shares
        The probability of each arm; those that are left out have none.
    method
        "inverse propensity", "self-normalised" or "doubly robust".
    value, standard_error, interval
        The estimate with its standard error and 95 % interval.
    effective
        The effective number of plays that it rests on.
    """

    target: str
    shares: dict[ArmName, float]
    method: str
    value: float
    standard_error: float
    interval: tuple[float, float]
    effective: float


@about("shares")
def check_shares(shares: Mapping[ArmName, float], arms: Sequence[ArmName]) -> dict[ArmName, float]:
    """Shares of arms that the log has, which sum to 1."""
    if not isinstance(shares, Mapping) or not shares:
        raise InputError(f"shares are a mapping from arms to probabilities, not {shares!r}")
    found = {}
    for arm, share in shares.items():
        if arm not in arms:
            known = ", ".join(map(str, arms[:10]))
            raise InputError(f"the log has no arm {arm!r} to have a share; its arms are {known}")
        found[arm] = read_number(share, f"the share of {arm}")
        if not 0.0 <= found[arm] <= 1.0:
            raise InputError(f"the share of {arm} is between 0 and 1, not {share!r}")
    total = sum(found.values())
    if abs(total - 1.0) > 1e-6:
        raise InputError(f"shares sum to 1, not to {total:g}")
    return found


def _running_means(rewards: NDArray[np.float64], mine: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Before each play, the mean of the rewards of an arm; that of all arms if it had none."""
    number = np.cumsum(mine.astype(float)) - mine
    total = np.cumsum(rewards * mine) - rewards * mine
    before = np.arange(len(rewards))
    overall = (np.cumsum(rewards) - rewards) / np.maximum(before, 1)
    return np.where(number > 0, total / np.maximum(number, 1), overall)


def estimate(
    log: Log, targets: Mapping[str, Mapping[ArmName, float]]
) -> tuple[list[Estimate], list[str]]:
    """Estimate the values of fixed shares; and reasons not to trust them.

    targets: shares of arms by the name of the target
    """
    assert log.probabilities is not None
    chances = np.minimum(np.array(log.probabilities), 1.0)
    free = chances < CERTAIN
    count = int(free.sum())
    if count < 2:
        raise InputError(
            f"{log.name} cannot be used: {'only one choice' if count else 'no choice'} in it was random; "
            f"the {'others' if count else 'choices'} have the probability 1, as those of most index policies do. Such "
            f"a log says nothing about what other choices would have brought. Keep a chance for every arm "
            f"when you log: `metabandit serve --min-share 0.05`, or in Python player(..., min_share=0.05)"
        )
    rewards = np.array(log.rewards)
    names = list(dict.fromkeys(log.arms))
    number_of = {name: number for number, name in enumerate(names)}
    played = np.array([number_of[arm] for arm in log.arms])
    terms = {name: np.zeros(count) for name in targets}
    weights = {name: np.zeros(count) for name in targets}
    doubtful = []
    for number, name in enumerate(names):
        mine = played == number
        model = _running_means(rewards, mine)[free]
        weight = (mine / chances)[free]
        if not _averages_one(weight):
            doubtful.append(name)
        term = model + weight * (rewards[free] - model)
        for target, shares in targets.items():
            share = shares.get(name, 0.0)
            terms[target] += share * term
            weights[target] += share * weight
    found = []
    for target, shares in targets.items():
        found += _three(target, dict(shares), weights[target], rewards[free], terms[target])
    return found, _warnings(found, doubtful, len(log) - count)


def _averages_one(weights: NDArray[np.float64]) -> bool:
    """Whether the weights of an arm can be what they should be: 1 on average."""
    error = float(np.std(weights, ddof=1)) / math.sqrt(len(weights))
    return abs(float(np.mean(weights)) - 1.0) <= _FAR * error


def _three(
    target: str,
    shares: dict[ArmName, float],
    weights: NDArray[np.float64],
    rewards: NDArray[np.float64],
    terms: NDArray[np.float64],
) -> list[Estimate]:
    sum_of_weights = float(weights.sum())
    if sum_of_weights == 0.0:
        raise InputError(
            f"{target}: no play of these arms was made at random; the log says nothing of them"
        )
    effective = sum_of_weights**2 / float((weights**2).sum())
    normalised = float((weights * rewards).sum()) / sum_of_weights
    spread = float((weights**2 * (rewards - normalised) ** 2).sum())
    figures = [
        (IPS, *_mean(weights * rewards)),
        (SNIPS, normalised, math.sqrt(spread) / sum_of_weights),
        (DR, *_mean(terms)),
    ]
    return [
        Estimate(
            target,
            shares,
            method,
            value,
            error,
            interval_95(value, error),
            effective,
        )
        for method, value, error in figures
    ]


def _mean(values: NDArray[np.float64]) -> tuple[float, float]:
    """The mean with its standard error."""
    return float(values.mean()), float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _warnings(found: Sequence[Estimate], doubtful: Sequence[ArmName], certain: int) -> list[str]:
    notes = []
    if certain:
        notes.append(
            f"{certain:,} plays of the log were certain (probability 1), and say nothing of other arms: "
            f"they were left out of the estimates"
        )
    if doubtful:
        shown = ", ".join(map(str, doubtful[:5])) + (", ..." if len(doubtful) > 5 else "")
        notes.append(
            f"The probabilities of {shown} do not fit how often they were chosen (1/probability should "
            f"average 1 over all plays). Either they are wrong, or an arm had no chance at some plays, or "
            f"too small a chance to have been chosen at all: do not trust the figures of these arms"
        )
    few = sorted({item.target for item in found if item.effective < _FEW})
    if few:
        notes.append(
            f"Fewer than {_FEW:.0f} effective plays carry the figures of {', '.join(few[:5])}: their "
            f"intervals are too short. Log with a larger --min-share next time"
        )
    return notes
