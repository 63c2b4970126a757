"""Priors that draw an arm's parameters from a distribution: one class per reward family."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from ..settings import read_number
from .base import (
    Prior,
    check_positive,
    check_precision,
    check_scale,
    count_arms,
    per_arm,
    write_prior,
)
from .best import expected_best
from .families import BERNOULLI, BETA, GAUSSIAN, Array, beta_parameters, truncated_gaussian_family


def _draw_beta(
    rng: np.random.Generator, alpha: Sequence[float], beta: Sequence[float], problems: int
) -> Array:
    if set(alpha) == {1.0} and set(beta) == {1.0}:
        return rng.random((problems, len(alpha)))
    return rng.beta(np.array(alpha), np.array(beta), (problems, len(alpha)))


class Bernoulli(Prior):
    """Arms that pay 0 or 1, with Beta(alpha, beta) means; uniform by default.

    Parameters
    ----------
    arms : int, optional
        The number of arms; by default as many as `alpha` or `beta` have numbers, or 2.
    alpha, beta : float or sequence of float
        One number for all arms, or one number per arm.

    Examples
    --------
    >>> import metabandit as mb
    >>> str(mb.Bernoulli(alpha=[3, 1], beta=1))
    'bernoulli:alpha=3:1,beta=1'
    """

    family = BERNOULLI

    def __init__(
        self,
        arms: int | None = None,
        *,
        alpha: float | Sequence[float] = 1.0,
        beta: float | Sequence[float] = 1.0,
    ) -> None:
        self.arms = count_arms(arms, alpha, beta)
        self.alpha = per_arm(alpha, self.arms, "alpha of the Bernoulli prior")
        self.beta = per_arm(beta, self.arms, "beta of the Bernoulli prior")

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        return _draw_beta(rng, self.alpha, self.beta, problems)[..., None]

    def expected_best(self) -> float:
        """The expected mean reward of the best arm: what always playing it would earn per play."""
        return expected_best(self.alpha, self.beta)

    def counts(self) -> Array:
        alpha, beta = np.array(self.alpha), np.array(self.beta)
        return np.stack([alpha + beta, alpha, alpha])

    def __str__(self) -> str:
        return write_prior("bernoulli", alpha=self.alpha, beta=self.beta)


class TruncatedGaussian(Prior):
    """Gaussian rewards restricted to [low, high], as in the paper.

    Parameters
    ----------
    arms : int, optional
        The number of arms, 2 by default.
    low, high : float
        The interval.
    mean_low, mean_high : float, optional
        The parent's mean is uniform between these, by default on the interval.
    deviation_low, deviation_high : float
        The parent's standard deviation is uniform between these, by default from 0 to the interval's
        length.
    regret : {"true", "parent"}
        Whether regret is counted against the arm's mean after truncation, or against that of the parent
        as in the paper's Table 1.

    Examples
    --------
    >>> import metabandit as mb
    >>> mb.evaluate("ucb1", mb.TruncatedGaussian(arms=2), horizon=50, episodes=1000)[0].policy
    'ucb1'
    """

    def __init__(
        self,
        arms: int | None = None,
        *,
        low: float = 0.0,
        high: float = 1.0,
        mean_low: float | None = None,
        mean_high: float | None = None,
        deviation_low: float = 0.0,
        deviation_high: float | None = None,
        regret: str = "true",
    ) -> None:
        what = "of the truncated Gaussian prior"
        self.arms = count_arms(arms)
        self.low = read_number(low, f"low {what}")
        self.high = read_number(high, f"high {what}")
        if not self.low < self.high:
            raise InputError(f"low {what} must be less than high, not {low} and {high}")
        length = check_scale(self.high - self.low, f"high - low {what}")
        self.mean_low = read_number(self.low if mean_low is None else mean_low, f"mean_low {what}")
        self.mean_high = read_number(
            self.high if mean_high is None else mean_high, f"mean_high {what}"
        )
        if not self.low <= self.mean_low <= self.mean_high <= self.high:
            raise InputError(
                f"the parent's means must lie in the interval: "
                f"low <= mean_low <= mean_high <= high, "
                f"not {self.low:g}, {self.mean_low:g}, {self.mean_high:g}, {self.high:g}"
            )
        self.deviation_low = read_number(deviation_low, f"deviation_low {what}")
        self.deviation_high = read_number(
            length if deviation_high is None else deviation_high, f"deviation_high {what}"
        )
        if not 0.0 <= self.deviation_low <= self.deviation_high <= 10.0 * length:
            raise InputError(
                f"deviations {what} must satisfy 0 <= deviation_low <= deviation_high <= 10 * "
                f"(high - low), not {self.deviation_low:g} and {self.deviation_high:g}; "
                f"a wider parent is uniform on the interval, to the precision of the rewards"
            )
        if regret not in ("true", "parent"):
            raise InputError(f"regret {what} must be true or parent, not {regret!r}")
        self.regret = regret
        self.family = truncated_gaussian_family(self.low, self.high)

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        from scipy.special import ndtr

        shape = (problems, self.arms)
        mean = rng.uniform(self.mean_low, self.mean_high, shape)
        deviation = rng.uniform(self.deviation_low, self.deviation_high, shape)
        safe = np.maximum(deviation, 1e-12)
        under = ndtr((self.low - mean) / safe)
        inside = ndtr((self.high - mean) / safe) - under
        ends = np.broadcast_to([self.low, self.high], (*shape, 2))
        return np.concatenate([np.stack([mean, deviation, under, inside], axis=-1), ends], axis=-1)

    def regret_means(self, parameters: Array) -> Array:
        return parameters[..., 0] if self.regret == "parent" else self.family.mean(parameters)

    def __str__(self) -> str:
        names = (
            "low",
            "high",
            "mean_low",
            "mean_high",
            "deviation_low",
            "deviation_high",
            "regret",
        )
        return write_prior("truncated-gaussian", **{name: getattr(self, name) for name in names})


class Gaussian(Prior):
    """Gaussian rewards of standard deviation `noise`; arm means from N(mean, spread^2).

    Parameters
    ----------
    arms : int, optional
        The number of arms, 2 by default.
    mean, spread : float
        Mean and standard deviation of the arms' means.
    noise : float
        Standard deviation of the rewards of an arm.

    Examples
    --------
    >>> import metabandit as mb
    >>> str(mb.Gaussian(arms=3, spread=0.5))
    'gaussian:mean=0,spread=0.5,noise=1'
    """

    family = GAUSSIAN

    def __init__(
        self, arms: int | None = None, *, mean: float = 0.0, spread: float = 1.0, noise: float = 1.0
    ) -> None:
        self.arms = count_arms(arms)
        self.mean = read_number(mean, "mean of the Gaussian prior")
        self.spread = check_scale(spread, "spread of the Gaussian prior")
        self.noise = check_scale(noise, "noise of the Gaussian prior")
        check_precision(abs(self.mean), min(self.spread, self.noise))

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        means = rng.normal(self.mean, self.spread, (problems, self.arms))
        return np.stack([means, np.full_like(means, self.noise)], axis=-1)

    def __str__(self) -> str:
        return write_prior("gaussian", mean=self.mean, spread=self.spread, noise=self.noise)


class BetaRewards(Prior):
    """Beta-distributed rewards: mean from Beta(alpha, beta), and a + b = concentration.

    Parameters
    ----------
    arms : int, optional
        The number of arms; by default as many as `alpha` or `beta` have numbers, or 2.
    alpha, beta : float or sequence of float
        Of the arms' means: one number for all arms, or one number per arm.
    concentration : float
        The larger, the closer an arm's rewards are to its mean.

    Examples
    --------
    >>> import metabandit as mb
    >>> str(mb.BetaRewards(arms=2, concentration=4))
    'beta:alpha=1,beta=1,concentration=4'
    """

    family = BETA

    def __init__(
        self,
        arms: int | None = None,
        *,
        alpha: float | Sequence[float] = 1.0,
        beta: float | Sequence[float] = 1.0,
        concentration: float = 10.0,
    ) -> None:
        self.arms = count_arms(arms, alpha, beta)
        self.alpha = per_arm(alpha, self.arms, "alpha of the Beta-rewards prior")
        self.beta = per_arm(beta, self.arms, "beta of the Beta-rewards prior")
        self.concentration = check_positive(
            concentration, "concentration of the Beta-rewards prior"
        )
        if not 1e-6 <= self.concentration <= 1e6:
            raise InputError(
                f"concentration of the Beta-rewards prior must be between 1e-6 and 1e6, not "
                f"{self.concentration:g}; rewards that are all but their mean, or all but 0 and 1, are "
                f"close to those at the ends"
            )

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        means = _draw_beta(rng, self.alpha, self.beta, problems)
        return beta_parameters(means, self.concentration)

    def __str__(self) -> str:
        return write_prior(
            "beta", alpha=self.alpha, beta=self.beta, concentration=self.concentration
        )
