"""Priors that draw the arms' parameters from a distribution."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError, nearest
from ..settings import read_number
from .base import (
    Prior,
    check_positive,
    check_precision,
    check_scale,
    count_arms,
    per_arm,
)
from .families import (
    BERNOULLI,
    BETA,
    GAUSSIAN,
    Array,
    beta_parameters,
    gaussian_parameters,
    truncated_gaussian_family,
)
from .likelihood import beta_of

_ENDS = 0.5 ** np.arange(1.0, 45.0)
_DEVIATIONS = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 14.0, 20.0])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)

_LEVEL_FAMILIES = {family.name: family for family in (BERNOULLI, GAUSSIAN)}


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
    text_name = "bernoulli"
    keys = keys_per_arm = ("alpha", "beta")

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
        return _expected_best(self.alpha, self.beta)

    def counts(self) -> Array:
        alpha, beta = np.array(self.alpha), np.array(self.beta)
        return np.stack([alpha + beta, alpha, alpha])


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

    text_name = "truncated-gaussian"
    keys = (
        "low", "high", "mean_low", "mean_high", "deviation_low", "deviation_high", "regret",
    )  # fmt: skip
    text_keys = ("regret",)

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
    text_name = "gaussian"
    keys = ("mean", "spread", "noise")

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
        return gaussian_parameters(means, self.noise)


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
    text_name = "beta"
    keys = ("alpha", "beta", "concentration")
    keys_per_arm = ("alpha", "beta")

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


class Hierarchical(Prior):
    """A level per problem, and arms around it.

        level  ~ Beta with mean `mean` and deviation `between`,     arm ~ Beta(c level, c (1 - level)),
        level  ~ N(mean, between^2),                                arm ~ N(level, within^2)

    for rewards of 0 and 1 and for Gaussian ones. c = mean (1 - mean)/within^2 - 1, so that arms differ by
    `within` at a level of `mean`, and by less where nearly all rewards are alike. Arms of one problem are
    correlated, by about between^2/(between^2 + within^2), which Beta(a, b) per arm cannot say.

    Parameters
    ----------
    arms : int, optional
        The number of arms, 2 by default.
    mean : float
        The mean of all levels.
    between, within : float
        Standard deviations: of the levels of problems, and of arms around their problem's level.
    family : {"bernoulli", "gaussian"}
        What the rewards are.
    noise : float
        Standard deviation of Gaussian rewards.

    Examples
    --------
    >>> import metabandit as mb
    >>> str(mb.Hierarchical(arms=4, mean=0.03, between=0.01, within=0.004))
    'hierarchical:mean=0.03,between=0.01,within=0.004,family=bernoulli'
    """

    text_name = "hierarchical"
    keys = ("mean", "between", "within", "family", "noise")
    text_keys = ("family",)

    def __init__(
        self,
        arms: int | None = None,
        *,
        mean: float = 0.5,
        between: float = 0.2,
        within: float = 0.1,
        family: str = "bernoulli",
        noise: float = 1.0,
    ) -> None:
        what = "of the hierarchical prior"
        if family not in _LEVEL_FAMILIES:
            raise InputError(
                f"unknown family {family!r} {what}; {nearest(family, _LEVEL_FAMILIES)}"
            )
        self.family = _LEVEL_FAMILIES[family]
        self.arms = count_arms(arms)
        self.mean = read_number(mean, f"mean {what}")
        self.between = check_positive(between, f"between {what}")
        self.within = check_positive(within, f"within {what}")
        self.noise = check_positive(noise, f"noise {what}")
        if self.family == GAUSSIAN:
            check_precision(abs(self.mean), min(self.within, self.noise))
            return
        if not 0.0 < self.mean < 1.0:
            raise InputError(f"mean {what} must lie between 0 and 1, not {self.mean:g}")
        most = math.sqrt(self.mean * (1.0 - self.mean))
        for name, value in (("between", self.between), ("within", self.within)):
            if not value < most:
                raise InputError(
                    f"{name} {what} must be less than {most:.4g} for a mean of {self.mean:g}, "
                    f"not {value:g}"
                )

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        shape = (problems, self.arms)
        if self.family == GAUSSIAN:
            level = rng.normal(self.mean, self.between, (problems, 1))
            means = level + rng.normal(0.0, self.within, shape)
            return gaussian_parameters(means, self.noise)
        level = rng.beta(*beta_of(self.mean, self.between), (problems, 1))
        concentration = self.mean * (1.0 - self.mean) / self.within**2 - 1.0
        # A level of 0 or 1 has no Beta distribution, and draws may be rounded to it.
        level = np.clip(level, 1e-12, 1.0 - 1e-12)
        return rng.beta(concentration * level, concentration * (1.0 - level), shape)[..., None]

    def settings(self) -> dict[str, Any]:
        values = {key: getattr(self, key) for key in ("mean", "between", "within")}
        more = {"noise": self.noise} if self.family == GAUSSIAN else {}
        return {**values, "family": self.family.name, **more}


def _expected_best(alpha: Sequence[float], beta: Sequence[float]) -> float:
    """The expected best of independent Beta variates, by piecewise Gauss quadrature.

        E max(X_1, ..., X_K) = integral over [0, 1] of  1 - F_1(x) ... F_K(x)  dx

    with the distribution functions F_k of Beta(a_k, b_k). F_k changes where X_k lies, which can be anywhere
    and as narrow as 1e-5 (1e-9 beside an end), and behaves like a power at the ends. So [0, 1] is cut

    - at 2^-j and 1 - 2^-j, up to j = 44: what is left at the ends is below 1e-13;
    - at the mean of every variate and at multiples of its standard deviation.

    On each piece 16 Gauss nodes leave less than the rounding of F. Above 1/2 everything is a function of
    1 - x, which keeps its digits there.
    """
    arms = Counter(zip(alpha, beta, strict=True))
    return _half_of_best(arms, upper=False) + _half_of_best(arms, upper=True)


def _half_of_best(arms: Counter[tuple[float, float]], *, upper: bool) -> float:
    """The integral over [0, 1/2], or over [1/2, 1] as a function of the distance to 1."""
    from scipy.special import betainc

    cuts = [np.array([0.0]), _ENDS]
    for a, b in arms:
        n = a + b
        near, far = (b, a) if upper else (a, b)
        spread = np.sqrt(near / n * (far / n) / (n + 1.0)) * _DEVIATIONS
        cuts += [near / n - spread, near / n + spread, np.array([near / n])]
    every = np.unique(np.concatenate(cuts))
    ends = every[(every >= 0.0) & (every <= 0.5)]
    half = 0.5 * np.diff(ends)[:, None]
    x = ((ends[:-1, None] + half) + half * _NODES).ravel()
    below = np.ones_like(x)
    for (a, b), count in arms.items():
        # Beta variates are closer to their means than 4.6 / sqrt(n + 1), but for 1e-18 (Hoeffding's bound).
        far = 4.6 / np.sqrt(a + b + 1.0)
        mean = b / (a + b) if upper else a / (a + b)
        low, high = np.searchsorted(x, [mean - far, mean + far])
        inside = 1.0 - betainc(b, a, x[low:high]) if upper else betainc(a, b, x[low:high])
        below[low:high] *= inside**count
        below[slice(high, None) if upper else slice(low)] = 0.0
    return float((half * _WEIGHTS).ravel() @ (1.0 - below))
