"""What if the prior is wrong: priors that are near to a given one, and other horizons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..errors import InputError
from ..priors import Bernoulli, BetaRewards, Gaussian, Prior, Table, TruncatedGaussian
from ..priors.families import BETA, GAUSSIAN, Array

CLOSER, APART, LOWER = "means closer together", "means further apart", "means a third as high"
_SMALLEST, _LARGEST = 1e-9, 1e9


@dataclass(frozen=True)
class Neighbour:
    """Problems other than those that were asked about; `label` says in which way."""

    label: str
    prior: Prior
    horizon: int


def has_neighbours(prior: Prior) -> bool:
    """Whether near priors are known, and not only other horizons."""
    return type(prior) in _WAYS


def neighbours(prior: Prior, horizon: int, *, seed: int) -> list[Neighbour]:
    """Near priors, where the kind of prior is known, and half and double the plays."""
    found = []
    vary = _WAYS.get(type(prior))
    if vary is not None:
        for label, make in vary(prior, seed):
            try:
                found.append(Neighbour(label, make(), horizon))
            except InputError:
                continue  # beyond what the prior allows
    if horizon > 1:
        found.append(Neighbour("half the plays", prior, horizon // 2))
    found.append(Neighbour("twice the plays", prior, 2 * horizon))
    return found


_Ways = Iterator[tuple[str, Callable[[], Prior]]]


def _beta_pairs(
    alpha: Sequence[float], beta: Sequence[float]
) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Other Beta distributions of the means, arm by arm."""
    a, b = np.array(alpha), np.array(beta)

    def pair(first: Array, second: Array) -> dict[str, list[float]]:
        limited = [np.clip(item, _SMALLEST, _LARGEST).tolist() for item in (first, second)]
        return {"alpha": limited[0], "beta": limited[1]}

    yield f"{CLOSER} (3 times as concentrated)", pair(3.0 * a, 3.0 * b)
    yield f"{APART} (a third as concentrated)", pair(a / 3.0, b / 3.0)
    yield LOWER, pair(a / 3.0, b + 2.0 * a / 3.0)


def _bernoulli(prior: Bernoulli, seed: int) -> _Ways:
    for label, pair in _beta_pairs(prior.alpha, prior.beta):
        yield label, partial(Bernoulli, prior.arms, **pair)


def _beta_rewards(prior: BetaRewards, seed: int) -> _Ways:
    same = partial(BetaRewards, prior.arms, concentration=prior.concentration)
    for label, pair in _beta_pairs(prior.alpha, prior.beta):
        yield label, partial(same, **pair)


def _truncated_gaussian(prior: TruncatedGaussian, seed: int) -> _Ways:
    def other(means: float, deviations: float) -> Callable[[], Prior]:
        middle = (prior.mean_low + prior.mean_high) / 2.0
        half = means * (prior.mean_high - prior.mean_low) / 2.0
        most = 10.0 * (prior.high - prior.low)
        return lambda: TruncatedGaussian(
            prior.arms,
            low=prior.low,
            high=prior.high,
            mean_low=middle - half,
            mean_high=middle + half,
            deviation_low=min(deviations * prior.deviation_low, most),
            deviation_high=min(deviations * prior.deviation_high, most),
            regret=prior.regret,
        )

    if prior.mean_low < prior.mean_high:
        yield f"{CLOSER} (half the range)", other(0.5, 1.0)
    if prior.deviation_high > 0.0:
        yield "half the deviation of rewards", other(1.0, 0.5)
        yield "twice the deviation of rewards", other(1.0, 2.0)


def _gaussian(prior: Gaussian, seed: int) -> _Ways:
    def other(spread: float, noise: float) -> Callable[[], Prior]:
        return lambda: Gaussian(
            prior.arms, mean=prior.mean, spread=spread * prior.spread, noise=noise * prior.noise
        )

    yield f"{CLOSER} (half the spread)", other(0.5, 1.0)
    yield f"{APART} (twice the spread)", other(2.0, 1.0)
    yield "twice the noise", other(1.0, 2.0)


def _table(prior: Table, seed: int) -> _Ways:
    """Rows moved together, arms mixed among rows, and lower means or more noise."""

    def other(means: Array, noise: float = 1.0) -> Callable[[], Prior]:
        return lambda: Table(
            means,
            family=prior.family.name,
            noise=noise * prior.noise,
            concentration=prior.concentration,
        )

    middle = prior.means.mean(axis=1, keepdims=True)
    yield f"{CLOSER} (halfway to their row's mean)", other((prior.means + middle) / 2.0)
    if len(prior.means) > 1:
        rng = np.random.default_rng(seed)
        mixed = rng.permuted(prior.means, axis=0)
        yield "arms independent (each column in another order)", other(mixed)
    if prior.family == GAUSSIAN:
        yield "twice the noise", other(prior.means, 2.0)
    elif prior.family == BETA or prior.family.binary:
        yield LOWER, other(prior.means / 3.0)


_WAYS: dict[type, Callable[..., _Ways]] = {
    Bernoulli: _bernoulli,
    BetaRewards: _beta_rewards,
    TruncatedGaussian: _truncated_gaussian,
    Gaussian: _gaussian,
    Table: _table,
}
