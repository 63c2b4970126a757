"""Rewards that are counts or amounts: Poisson counts, revenue with many zeros, and a list of one's own.

counts     Poisson(mu), mu ~ Gamma(shape, rate)
revenue    0 with probability 1 - q, else an amount of mean w and deviation d (log-normal or gamma);
           q ~ Beta(alpha, beta), w = value exp(N(0, v^2) - v^2/2), v^2 = ln(1 + (spread/value)^2);
           d/w is the same for all arms
empirical  f x + c, x any reward of the list, f = exp(N(0, v^2) - v^2/2) with v^2 = ln(1 + factor^2)
           and c ~ N(0, shift^2)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, nearest
from ..settings import read_number
from ..sheets import read_sheet
from .base import Prior, check_positive, check_precision, count_arms, per_arm
from .families import Array, Family, first_parameter
from .history import REWARD, role_of

_MOST_COUNT = 500.0
_MOST_LISTED = 100_000


def _lognormal_mean(parameters: Array) -> Array:
    zeros, mean, deviation = np.moveaxis(parameters, -1, 0)
    return np.asarray((1.0 - zeros) * np.exp(mean + 0.5 * deviation**2))


def _gamma_mean(parameters: Array) -> Array:
    zeros, shape, scale = np.moveaxis(parameters, -1, 0)
    return np.asarray((1.0 - zeros) * shape * scale)


def _listed_mean(parameters: Array) -> Array:
    factor, shift, center = np.moveaxis(parameters, -1, 0)
    return np.asarray(factor * center + shift)


_AMOUNTS = (0.0, math.inf)
COUNTS = Family("counts", ("mean",), None, first_parameter, _AMOUNTS)
REVENUES = {
    "lognormal": Family(
        "revenue-lognormal", ("zeros", "log_mean", "log_sd"), None, _lognormal_mean, _AMOUNTS
    ),
    "gamma": Family("revenue-gamma", ("zeros", "shape", "scale"), None, _gamma_mean, _AMOUNTS),
}


class Counts(Prior):
    """Rewards that count something (0, 1, 2, ...): Poisson, with Gamma(shape, rate) means.

    Parameters
    ----------
    arms : int, optional
        The number of arms; by default as many as `shape` or `rate` have numbers, or 2.
    shape, rate : float or sequence of float
        Of the arms' means, which are shape/rate on average.

    Examples
    --------
    >>> import metabandit as mb
    >>> str(mb.prior("counts:mean=2,sd=0.5"))
    'counts:shape=16,rate=8'
    """

    family = COUNTS
    text_name = "counts"
    keys = keys_per_arm = ("shape", "rate")

    def __init__(
        self,
        arms: int | None = None,
        *,
        shape: float | Sequence[float] = 1.0,
        rate: float | Sequence[float] = 1.0,
    ) -> None:
        self.arms = count_arms(arms, shape, rate)
        self.shape = per_arm(shape, self.arms, "shape of the counts prior")
        self.rate = per_arm(rate, self.arms, "rate of the counts prior")
        largest = max(
            (a + 6.0 * math.sqrt(a)) / b for a, b in zip(self.shape, self.rate, strict=True)
        )
        if largest > _MOST_COUNT:
            raise InputError(
                f"the counts prior has means up to about {largest:.3g}, and Poisson rewards are drawn for "
                f"means up to {_MOST_COUNT:g}; larger counts are as good as gaussian"
            )

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        scale = 1.0 / np.array(self.rate)
        means = rng.gamma(np.array(self.shape), scale, (problems, self.arms))
        return np.minimum(means, _MOST_COUNT)[..., None]


class Revenue(Prior):
    """Amounts with many zeros: a share of rewards is not 0, and has log-normal or gamma amounts.

    Parameters
    ----------
    arms : int, optional
        The number of arms; by default as many as `alpha` or `beta` have numbers, or 2.
    alpha, beta : float or sequence of float
        Of the arms' share of rewards that are not 0; in words: share and share_sd, or share_low and
        share_high.
    value, value_sd : float
        Mean and standard deviation of the rewards of an arm that are not 0.
    spread : float
        Standard deviation of `value` between arms.
    shape : {"lognormal", "gamma"}
        The distribution of the rewards that are not 0.

    Examples
    --------
    >>> import metabandit as mb
    >>> str(mb.prior("revenue:share=0.05,share_sd=0.01,value=40,value_sd=30"))
    'revenue:alpha=23.7,beta=450.3,value=40,value_sd=30,spread=0,shape=lognormal'
    """

    text_name = "revenue"
    keys = ("alpha", "beta", "value", "value_sd", "spread", "shape")
    keys_per_arm = ("alpha", "beta")
    text_keys = ("shape",)

    def __init__(
        self,
        arms: int | None = None,
        *,
        alpha: float | Sequence[float] = 2.0,
        beta: float | Sequence[float] = 38.0,
        value: float = 1.0,
        value_sd: float = 1.0,
        spread: float = 0.0,
        shape: str = "lognormal",
    ) -> None:
        what = "of the revenue prior"
        if shape not in REVENUES:
            raise InputError(f"unknown shape {shape!r} {what}; {nearest(shape, REVENUES)}")
        self.shape = shape
        self.family = REVENUES[shape]
        self.arms = count_arms(arms, alpha, beta)
        self.alpha = per_arm(alpha, self.arms, f"alpha {what}")
        self.beta = per_arm(beta, self.arms, f"beta {what}")
        self.value = check_positive(value, f"value {what}")
        self.value_sd = check_positive(value_sd, f"value_sd {what}")
        self.spread = read_number(spread, f"spread {what}")
        if self.spread < 0.0:
            raise InputError(f"spread {what} must be at least 0, not {self.spread:g}")
        if self.value_sd > 20.0 * self.value:
            raise InputError(
                f"value_sd {what} must be at most 20 times value, not {self.value_sd:g} and "
                f"{self.value:g}; so wide a distribution hardly ever shows its mean"
            )

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        size = (problems, self.arms)
        share = rng.beta(np.array(self.alpha), np.array(self.beta), size)
        zeros = np.minimum(1.0 - share, 1.0 - 1e-6)
        means = self.value * _factors(rng, self.spread / self.value, size)
        ratio2 = (self.value_sd / self.value) ** 2
        if self.shape == "gamma":
            return np.stack([zeros, np.full(size, 1.0 / ratio2), means * ratio2], axis=-1)
        variance = math.log1p(ratio2)
        log_sd = np.full(size, math.sqrt(variance))
        return np.stack([zeros, np.log(means) - variance / 2.0, log_sd], axis=-1)


def _factors(rng: np.random.Generator, spread: float, size: tuple[int, int]) -> Array:
    """Log-normal factors of mean 1 and this standard deviation."""
    variance = math.log1p(spread**2)
    return np.exp(rng.normal(0.0, math.sqrt(variance), size) - variance / 2.0)


class Empirical(Prior):
    """Rewards from a list of one's own; arms differ by a factor or a shift.

    Parameters
    ----------
    path : str, Path or array
        A CSV file with one reward per row, in a column called reward, revenue, value or amount, or the
        only column of numbers; or an array of rewards.
    arms : int, optional
        The number of arms, 2 by default.
    factor : float
        Standard deviation of the arms' factors, whose mean is 1: 0.1 if arms differ by about 10 %.
    shift : float
        Standard deviation of what is added to all rewards of an arm.

    Examples
    --------
    >>> import metabandit as mb
    >>> str(mb.Empirical([0, 0, 0, 12.5, 40], factor=0.2))
    'empirical:rewards=5,factor=0.2,shift=0'
    """

    text_name = "empirical"
    keys = ("path", "factor", "shift")
    text_keys = ("path",)

    def __init__(
        self,
        path: str | Path | npt.ArrayLike,
        *,
        arms: int | None = None,
        factor: float = 0.0,
        shift: float = 0.0,
    ) -> None:
        what = "of the empirical prior"
        self.path = Path(path) if isinstance(path, str | Path) else None
        self.arms = count_arms(arms)
        self.factor = read_number(factor, f"factor {what}")
        self.shift = read_number(shift, f"shift {what}")
        if min(self.factor, self.shift) < 0.0 or max(self.factor, self.shift) == 0.0:
            raise InputError(
                f"the empirical prior needs to know how much arms differ: factor=0.1 if by about 10 %, or "
                f"shift= in units of the reward; not factor={self.factor:g} and shift={self.shift:g}"
            )
        values = _read_rewards(self.path) if self.path else _check_rewards(path)
        self.rewards = np.sort(values.astype(np.float32)).astype(np.float64)
        center, deviation = float(self.rewards.mean()), float(self.rewards.std())
        if deviation == 0.0:
            raise InputError(
                f"all rewards {what} are {center:g}; a list needs at least two that differ"
            )
        if self.factor and not self.shift and center == 0.0:
            raise InputError(
                "the rewards of the empirical prior have the mean 0, which no factor changes; give shift="
            )
        check_precision(abs(center), deviation)
        positive = self.shift == 0.0 and self.rewards[0] >= 0.0
        self.family = Family(
            "empirical", ("factor", "shift", "center"), None, _listed_mean,
            (0.0 if positive else -math.inf, math.inf), tuple(self.rewards.tolist()),
        )  # fmt: skip

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        size = (problems, self.arms)
        factor = _factors(rng, self.factor, size)
        shift = rng.normal(0.0, self.shift, size) if self.shift else np.zeros(size)
        return np.stack([factor, shift, np.full(size, self.rewards.mean())], axis=-1)

    def settings(self) -> dict[str, Any]:
        source = {"path": str(self.path)} if self.path else {"rewards": str(len(self.rewards))}
        return {**source, "factor": self.factor, "shift": self.shift}


def _read_rewards(path: Path) -> Array:
    """One reward per row."""
    sheet = read_sheet(path)
    numeric = [column for column in sheet.columns if sheet.rows and not sheet.is_text(column)]
    named = [column for column in numeric if role_of(sheet.title(column)) == REWARD]
    chosen = named if len(named) == 1 else numeric
    if len(chosen) != 1:
        titles = ", ".join(filter(None, sheet.titles)) or f"{sheet.width} columns"
        raise InputError(
            f"{path} needs one column of rewards, called reward if there are others; it has: {titles}"
        )
    rows = range(len(sheet.rows))
    return _check_rewards(
        [sheet.number(row, chosen[0], "every row needs its reward") for row in rows]
    )


def _check_rewards(given: Any) -> Array:
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("rewards must be a file or an array of numbers") from None
    if values.ndim != 1 or not 2 <= len(values) <= _MOST_LISTED or not np.isfinite(values).all():
        raise InputError(
            f"a list of rewards has from 2 to {_MOST_LISTED:,} finite numbers in one column; this one has "
            f"the shape {values.shape}"
        )
    return values
