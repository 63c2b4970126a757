"""What if the prior is wrong: priors that are near to a given one, and other horizons."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..engine.task import Task, stream
from ..errors import InputError
from ..priors import (
    Bernoulli,
    BetaRewards,
    Counts,
    Empirical,
    Gaussian,
    Hierarchical,
    Prior,
    Revenue,
    Table,
    TruncatedGaussian,
)
from ..priors.families import BETA, GAUSSIAN

CLOSER, APART, LOWER = "means closer together", "means further apart", "means a third as high"
_SMALLEST, _LARGEST = 1e-9, 1e9

# What differs, in words and as parameters of the prior.
_Ways = Iterator[tuple[str, dict[str, Any]]]


def has_neighbours(prior: Prior) -> bool:
    """Whether near priors are known, and not only other horizons."""
    return type(prior) in _WAYS


def neighbours(task: Task) -> list[tuple[str, Task]]:
    """Near priors, where the kind of prior is known, and half and double the plays; with labels."""
    prior, horizon = task.prior, task.horizon
    near: list[tuple[str, Prior, int]] = []
    if has_neighbours(prior):
        for label, changes in _WAYS[type(prior)](prior, stream(task.seed, 9)):
            try:
                near.append((label, _but(prior, changes), horizon))
            except InputError:
                continue  # beyond what the prior allows
    if horizon > 1:
        near.append(("half the plays", prior, horizon // 2))
    near.append(("twice the plays", prior, 2 * horizon))
    return [
        (label, replace(task, prior=other, horizon=plays, checkpoints=()))
        for label, other, plays in near
    ]


def _but(prior: Prior, changes: dict[str, Any]) -> Prior:
    """A prior of the same kind with other parameters."""
    given = {key: getattr(prior, key) for key in inspect.signature(type(prior)).parameters}
    if "family" in given:
        given["family"] = prior.family.name
    if isinstance(prior, Empirical):
        given["path"] = prior.rewards
    made: Prior = type(prior)(**given | changes)
    return made


def _beta_means(prior: Bernoulli | BetaRewards | Revenue, seed: int) -> _Ways:
    """Other Beta distributions of the means (or shares of rewards that are not 0), arm by arm."""
    a, b = np.array(prior.alpha), np.array(prior.beta)
    for label, alpha, beta in (
        (f"{CLOSER} (3 times as concentrated)", 3.0 * a, 3.0 * b),
        (f"{APART} (a third as concentrated)", a / 3.0, b / 3.0),
        (LOWER, a / 3.0, b + 2.0 * a / 3.0),
    ):
        pair = {"alpha": alpha, "beta": beta}
        yield label, {key: np.clip(item, _SMALLEST, _LARGEST) for key, item in pair.items()}
    if isinstance(prior, Revenue):
        yield "amounts twice as spread", {"value_sd": 2.0 * prior.value_sd}


def _counts(prior: Counts, seed: int) -> _Ways:
    shape, rate = np.array(prior.shape), np.array(prior.rate)
    yield f"{CLOSER} (3 times as concentrated)", {"shape": 3.0 * shape, "rate": 3.0 * rate}
    yield f"{APART} (a third as concentrated)", {"shape": shape / 3.0, "rate": rate / 3.0}
    yield LOWER, {"rate": 3.0 * rate}


def _truncated_gaussian(prior: TruncatedGaussian, seed: int) -> _Ways:
    if prior.mean_low < prior.mean_high:
        middle = (prior.mean_low + prior.mean_high) / 2.0
        quarter = (prior.mean_high - prior.mean_low) / 4.0
        ends = {"mean_low": middle - quarter, "mean_high": middle + quarter}
        yield f"{CLOSER} (half the range)", ends
    if prior.deviation_high > 0.0:
        most = 10.0 * (prior.high - prior.low)
        for label, factor in (("half", 0.5), ("twice", 2.0)):
            deviations = {
                key: min(factor * getattr(prior, key), most)
                for key in ("deviation_low", "deviation_high")
            }
            yield f"{label} the deviation of rewards", deviations


def _table(prior: Table, seed: int) -> _Ways:
    """Rows moved together, arms mixed among rows, and lower means or more noise."""
    means = prior.means
    middle = means.mean(axis=1, keepdims=True)
    yield f"{CLOSER} (halfway to their row's mean)", {"path": (means + middle) / 2.0}
    # A row's weight says nothing of an arm in another.
    if len(means) > 1 and prior.even:
        mixed = np.random.default_rng(seed).permuted(means, axis=0)
        yield "arms independent (each column in another order)", {"path": mixed}
    if prior.family == GAUSSIAN:
        yield "twice the noise", {"path": means, "noise": 2.0 * prior.noise}
    elif prior.family == BETA or prior.family.binary:
        yield LOWER, {"path": means / 3.0}


# Priors whose neighbours have some parameters multiplied: what differs, and the factors.
_FACTORS: dict[type, dict[str, dict[str, float]]] = {
    Gaussian: {
        f"{CLOSER} (half the spread)": {"spread": 0.5},
        f"{APART} (twice the spread)": {"spread": 2.0},
        "twice the noise": {"noise": 2.0},
    },
    Empirical: {
        f"{CLOSER} (half as far)": {"factor": 0.5, "shift": 0.5},
        f"{APART} (twice as far)": {"factor": 2.0, "shift": 2.0},
    },
    Hierarchical: {
        f"{CLOSER} (half the spread within)": {"within": 0.5},
        f"{APART} (twice the spread within)": {"within": 2.0},
        "levels further apart (twice the spread between)": {"between": 2.0},
    },
}


def _multiplied(prior: Prior, seed: int) -> _Ways:
    for label, factors in _FACTORS[type(prior)].items():
        yield label, {key: times * getattr(prior, key) for key, times in factors.items()}


_WAYS: dict[type, Callable[..., _Ways]] = {
    Bernoulli: _beta_means,
    BetaRewards: _beta_means,
    Revenue: _beta_means,
    Counts: _counts,
    TruncatedGaussian: _truncated_gaussian,
    Table: _table,
    **dict.fromkeys(_FACTORS, _multiplied),
}
