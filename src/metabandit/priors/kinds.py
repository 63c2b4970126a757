"""Priors over problems.

A *problem* gives every arm the parameters of one reward family; a *prior* is a distribution over
problems: it draws parameters. To add one, subclass `Prior` and write `draw`; docs/extending.md
shows how.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, nearest
from ..settings import check_keys, check_whole, read_number, read_settings, write_number
from .families import BERNOULLI, BETA, GAUSSIAN, Array, Family, truncated_gaussian_family
from .past import read_means


class Prior(ABC):
    """A distribution over problems with `arms` arms of one family.

    Subclasses set `family` and `arms` and write `draw`. `regret_means` and `counts` have defaults.
    """

    family: Family
    arms: int

    @abstractmethod
    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        """Parameters of so many problems, as an array [problem, arm, parameter]."""

    def regret_means(self, parameters: Array) -> Array:
        """The mean rewards that regret is counted against, as an array [problem, arm]."""
        return self.family.mean(parameters)

    def counts(self) -> Array | None:
        """Pseudo-observations that say the same as the prior, or None if it has none.

        Rows: plays, reward sum, sum of squared rewards; one column an arm.
        """
        return None

    def __str__(self) -> str:
        return type(self).__name__


def _check_arms(arms: object) -> int:
    return check_whole(arms, "the number of arms (--arms)", 2, most=10_000)


def _positive(value: float, what: str) -> float:
    number = read_number(value, what)
    if number <= 0.0:
        raise InputError(f"{what} must be greater than 0, not {number:g}")
    return number


def _per_arm(value: float | Sequence[float], arms: int, what: str) -> tuple[float, ...]:
    numbers = tuple(_positive(item, what) for item in np.atleast_1d(value))
    for number in numbers:
        if not 1e-9 <= number <= 1e9:
            raise InputError(f"{what} must be between 1e-9 and 1e9, not {number:g}")
    if len(numbers) == 1:
        return numbers * arms
    if len(numbers) != arms:
        raise InputError(f"{what} has {len(numbers)} values for {arms} arms; give 1 or {arms}")
    return numbers


def _write(values: Sequence[float]) -> str:
    same = len(set(values)) == 1
    return ":".join(write_number(value) for value in (values[:1] if same else values))


def _draw_beta(
    rng: np.random.Generator, alpha: Sequence[float], beta: Sequence[float], problems: int
) -> Array:
    if set(alpha) == {1.0} and set(beta) == {1.0}:
        return rng.random((problems, len(alpha)))
    return rng.beta(np.array(alpha), np.array(beta), (problems, len(alpha)))


def _count_arms(arms: int | None, *values: object) -> int:
    """The number of arms: as given, else as many as the longest list, else 2."""
    if arms is not None:
        return _check_arms(arms)
    lists = [len(value) for value in values if isinstance(value, (list, tuple, np.ndarray))]
    return max([length for length in lists if length > 1], default=2)


class Bernoulli(Prior):
    """Arms that pay 0 or 1, with Beta(alpha, beta) means; uniform by default.

    `alpha` and `beta` are one number for all arms or one number an arm.
    """

    family = BERNOULLI

    def __init__(
        self,
        arms: int | None = None,
        *,
        alpha: float | Sequence[float] = 1.0,
        beta: float | Sequence[float] = 1.0,
    ) -> None:
        self.arms = _count_arms(arms, alpha, beta)
        self.alpha = _per_arm(alpha, self.arms, "alpha of the Bernoulli prior")
        self.beta = _per_arm(beta, self.arms, "beta of the Bernoulli prior")

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        return _draw_beta(rng, self.alpha, self.beta, problems)[..., None]

    def expected_best(self) -> float:
        """The mean of the best arm's mean: what always playing it would get from a play."""
        from scipy.special import betainc

        # The integral of P(best > x), by the tanh-sinh rule, which does not mind what happens at the
        # ends of an interval; the steepest place is made an end.
        steep = float(np.max(np.array(self.alpha) / np.add(self.alpha, self.beta)))
        t = np.linspace(-4.0, 4.0, 1025)
        near = 1.0 / (1.0 + np.exp(np.pi * np.sinh(t)))  # the distance to the nearer end, of 1
        weight = np.pi * np.cosh(t) * near * near[::-1] * (t[1] - t[0])
        total = 0.0
        for low, high in ((0.0, steep), (steep, 1.0)):
            x = low + (high - low) * near
            below = np.prod(
                [betainc(a, b, x) for a, b in zip(self.alpha, self.beta, strict=True)], axis=0
            )
            total += (high - low) * float(weight @ (1.0 - below))
        return total

    def counts(self) -> Array:
        alpha, beta = np.array(self.alpha), np.array(self.beta)
        return np.stack([alpha + beta, alpha, alpha])

    def __str__(self) -> str:
        return f"bernoulli:alpha={_write(self.alpha)},beta={_write(self.beta)}"


class TruncatedGaussian(Prior):
    """Gaussian rewards restricted to [low, high], as in the paper.

    The parent's mean is uniform on [mean_low, mean_high] (the interval by default), its standard
    deviation on [deviation_low, deviation_high] (0 to the interval's length by default). Regret is
    counted against the arm's true mean after truncation; with regret="parent" against the mean of
    the parent, which is what the paper's Table 1 shows.
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
        self.arms = _count_arms(arms)
        self.low = read_number(low, f"low {what}")
        self.high = read_number(high, f"high {what}")
        if not self.low < self.high:
            raise InputError(f"low {what} must be less than high, not {low} and {high}")
        length = self.high - self.low
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
        return (
            f"truncated-gaussian:low={write_number(self.low)},high={write_number(self.high)},mean_low={write_number(self.mean_low)},"
            f"mean_high={write_number(self.mean_high)},deviation_low={write_number(self.deviation_low)},"
            f"deviation_high={write_number(self.deviation_high)},regret={self.regret}"
        )


def _check_precision(size: float, detail: float) -> None:
    """Rewards go through float32, which must still tell arms apart."""
    if size > 1000.0 * detail:
        raise InputError(
            f"rewards of size {size:g} that differ by {detail:g} are too alike for the simulator's "
            f"precision (at most 1000 to 1); subtract what is common to all, as regret does not "
            f"depend on it"
        )


class Gaussian(Prior):
    """Gaussian rewards of standard deviation `noise`; arm means from N(mean, spread^2)."""

    family = GAUSSIAN

    def __init__(
        self, arms: int | None = None, *, mean: float = 0.0, spread: float = 1.0, noise: float = 1.0
    ) -> None:
        self.arms = _count_arms(arms)
        self.mean = read_number(mean, "mean of the Gaussian prior")
        self.spread = _positive(spread, "spread of the Gaussian prior")
        self.noise = _positive(noise, "noise of the Gaussian prior")
        _check_precision(abs(self.mean), min(self.spread, self.noise))

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        means = rng.normal(self.mean, self.spread, (problems, self.arms))
        return np.stack([means, np.full_like(means, self.noise)], axis=-1)

    def __str__(self) -> str:
        return f"gaussian:mean={write_number(self.mean)},spread={write_number(self.spread)},noise={write_number(self.noise)}"


class BetaRewards(Prior):
    """Beta-distributed rewards: mean from Beta(alpha, beta), and a + b = concentration."""

    family = BETA

    def __init__(
        self,
        arms: int | None = None,
        *,
        alpha: float | Sequence[float] = 1.0,
        beta: float | Sequence[float] = 1.0,
        concentration: float = 10.0,
    ) -> None:
        self.arms = _count_arms(arms, alpha, beta)
        self.alpha = _per_arm(alpha, self.arms, "alpha of the Beta-rewards prior")
        self.beta = _per_arm(beta, self.arms, "beta of the Beta-rewards prior")
        self.concentration = _positive(concentration, "concentration of the Beta-rewards prior")

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        return _beta_parameters(
            _draw_beta(rng, self.alpha, self.beta, problems), self.concentration
        )

    def __str__(self) -> str:
        return (
            f"beta:alpha={_write(self.alpha)},beta={_write(self.beta)},"
            f"concentration={write_number(self.concentration)}"
        )


def _beta_parameters(means: Array, concentration: float) -> Array:
    means = np.clip(means, 1e-6, 1.0 - 1e-6)
    return np.stack([means * concentration, (1.0 - means) * concentration], axis=-1)


def _given(means: Any, family: Family) -> Array:
    """Problems that are given as an array [problem, arm]."""
    try:
        array = np.array(means, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("problems must be a file or an array of numbers [problem, arm]") from None
    low, high = family.support
    if array.ndim != 2 or not len(array) or array.shape[1] < 2:
        raise InputError(
            f"an array of problems has one row a problem and at least 2 columns, one an arm; "
            f"its shape is {array.shape}"
        )
    if np.isnan(array).any():
        raise InputError("every arm of every problem needs its mean reward; some are not a number")
    if not (np.isfinite(array).all() and array.min() >= low and array.max() <= high):
        raise InputError(
            f"means of {family.name} rewards must lie between {low:g} and {high:g}; those given "
            f"reach from {array.min():g} to {array.max():g}"
        )
    return array


class Table(Prior):
    """Past problems from a CSV file: one row a problem, one column an arm's mean reward.

    A first row that holds no number is taken as column names; in Python an array [problem, arm] will
    do instead of a file. Problems are drawn from the rows with equal probability. `family` says what the rewards are: bernoulli, gaussian (with standard
    deviation `noise`) or beta (with `concentration`).
    """

    def __init__(
        self,
        path: str | Path | npt.ArrayLike,
        *,
        arms: int | None = None,
        family: str = "bernoulli",
        noise: float = 1.0,
        concentration: float = 10.0,
    ) -> None:
        self.path = Path(path) if isinstance(path, (str, Path)) else None
        families = {"bernoulli": BERNOULLI, "gaussian": GAUSSIAN, "beta": BETA}
        if family not in families:
            raise InputError(f"unknown family {family!r} for a table; {nearest(family, families)}")
        self.family = families[family]
        self.noise = _positive(noise, "noise of the table")
        self.concentration = _positive(concentration, "concentration of the table")
        self.means = read_means(self.path, self.family) if self.path else _given(path, self.family)
        self.arms = self.means.shape[1]
        if self.family == GAUSSIAN:
            _check_precision(float(np.abs(self.means).max()), self.noise)
        if arms is not None and _check_arms(arms) != self.arms:
            raise InputError(
                f"{self.path or 'the table'} has {self.arms} columns, so its problems have {self.arms} arms, "
                f"not {arms}; leave out --arms"
            )

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        means = self.means[rng.integers(0, len(self.means), problems)]
        if self.family == GAUSSIAN:
            return np.stack([means, np.full_like(means, self.noise)], axis=-1)
        if self.family == BETA:
            return _beta_parameters(means, self.concentration)
        return means[..., None]

    def __str__(self) -> str:
        extra = {"gaussian": f",noise={write_number(self.noise)}"}
        extra["beta"] = f",concentration={write_number(self.concentration)}"
        name = self.family.name
        which = f"path={self.path}" if self.path else f"problems={len(self.means)}"
        return f"table:{which},family={name}{extra.get(name, '')}"


PRIORS: dict[str, Callable[..., Prior]] = {
    "bernoulli": Bernoulli,
    "truncated-gaussian": TruncatedGaussian,
    "gaussian": Gaussian,
    "beta": BetaRewards,
    "table": Table,
}
PRIOR_KEYS = {
    "bernoulli": ("alpha", "beta"),
    "truncated-gaussian": (
        "low",
        "high",
        "mean_low",
        "mean_high",
        "deviation_low",
        "deviation_high",
        "regret",
    ),
    "gaussian": ("mean", "spread", "noise"),
    "beta": ("alpha", "beta", "concentration"),
    "table": ("path", "family", "noise", "concentration"),
}
_TEXT_KEYS = ("path", "family", "regret")


def prior(text: str, *, arms: int | None = None) -> Prior:
    """Read a prior as the command line writes it, such as `bernoulli:alpha=1,beta=1`.

    A value for each arm is written with colons between: `bernoulli:alpha=3:1,beta=2:1`.
    """
    name, settings = read_settings(text, "prior")
    if name.endswith(".csv"):
        raise InputError(f"a file of past problems is the prior table:path={name}")
    if name not in PRIORS:
        raise InputError(f"unknown prior {name!r}; {nearest(name, PRIORS)}")
    check_keys(settings, PRIOR_KEYS[name], f"the prior {name}")
    if name == "table" and "path" not in settings:
        raise InputError("the prior table needs its file: table:path=problems.csv")
    values: dict[str, Any] = {"arms": arms}
    for key, value in settings.items():
        if key in _TEXT_KEYS:
            values[key] = value
        else:
            numbers = [read_number(item, f"{key} of the prior {name}") for item in value.split(":")]
            values[key] = numbers[0] if len(numbers) == 1 else numbers
            if len(numbers) > 1 and key not in ("alpha", "beta"):
                raise InputError(f"{key} of the prior {name} is one number, not {value!r}")
    return PRIORS[name](**values)


def check_prior(prior: object) -> Prior:
    """The prior, or an error if it is something else."""
    if not isinstance(prior, Prior):
        raise InputError(f"the prior must be a Prior such as Bernoulli(arms=2), not {prior!r}")
    return prior
