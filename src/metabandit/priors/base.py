"""What a prior is: a distribution over problems, each with the parameters of all arms' rewards.

To add one, subclass `Prior` and write `draw`; docs/extending.md shows how.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError, about
from ..settings import check_whole, read_number, write_number
from ..showing import Shown
from .families import Array, Family

# Means that are drawn to show a prior, and arms that are shown.
_DRAWN, _SHOWN = 200_000, 12


class Prior(Shown, ABC):
    """A distribution over problems with arms of one family.

    Subclasses set `family` and `arms` and write `draw`. `regret_means` and `counts` have defaults.

    Attributes
    ----------
    family : Family
        The kind of rewards.
    arms : int
        The number of arms.

    Examples
    --------
    >>> import metabandit as mb
    >>> class Even(mb.Prior):
    ...     family = mb.BERNOULLI
    ...     def __init__(self, arms):
    ...         self.arms = arms
    ...     def draw(self, rng, problems):
    ...         return np.full((problems, self.arms, 1), 0.5)
    >>> mb.evaluate("ucb1", Even(arms=3), horizon=10, episodes=100)[0].mean_regret
    0.0
    """

    family: Family
    arms: int
    # Of priors that have a text: its name and what it sets, of which some are one number per arm, or texts.
    text_name = ""
    keys: tuple[str, ...] = ()
    keys_per_arm: tuple[str, ...] = ()
    text_keys: tuple[str, ...] = ()

    @abstractmethod
    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        """Parameters of this many problems, as an array [problem, arm, parameter]."""

    def regret_means(self, parameters: Array) -> Array:
        """The mean rewards that regret is counted against, as an array [problem, arm]."""
        return self.family.mean(parameters)

    def counts(self) -> Array | None:
        """Pseudo-observations that say the same as the prior, or None if it has none.

        Rows: plays, reward sum, sum of squared rewards; one column per arm.
        """
        return None

    def settings(self) -> dict[str, Any]:
        """What the text of the prior sets."""
        return {key: getattr(self, key) for key in self.keys}

    def __str__(self) -> str:
        """The prior as `prior` reads it; numbers that are the same for all arms are written once."""
        parts = []
        for key, value in self.settings().items():
            if not isinstance(value, str):
                each = [value] if isinstance(value, float) else list(value)
                value = ":".join(map(write_number, each[:1] if len(set(each)) == 1 else each))
            parts.append(f"{key}={value}")
        return f"{self.text_name}:{','.join(parts)}" if self.text_name else type(self).__name__

    def headline(self) -> str:
        return f"{self}, {self.arms} arms"

    def _means(self) -> Array:
        """Means of problems that show what the prior is like, [problem, arm]."""
        problems = max(_DRAWN // self.arms, 20)
        return self.family.mean(self.draw(np.random.default_rng(0), problems))

    def records(self) -> list[dict[str, Any]]:
        """For each arm: mean and standard deviation of its mean reward, and nine means in ten."""
        means = self._means()
        low, high = np.quantile(means, (0.05, 0.95), axis=0)
        columns = (means.mean(axis=0), means.std(axis=0), low, high)
        names = ("mean", "sd", "low", "high")
        return [
            {"arm": arm, **dict(zip(names, map(float, each), strict=True))}
            for arm, each in enumerate(zip(*columns, strict=True), 1)
        ]

    def rows(self) -> list[dict[str, str]]:
        return [
            {
                "arm": str(each["arm"]),
                "mean reward": f"{each['mean']:.3g}",
                "standard deviation": f"{each['sd']:.2g}",
                "nine in ten": f"{each['low']:.3g} to {each['high']:.3g}",
            }
            for each in self.records()[:_SHOWN]
        ]

    def remarks(self) -> list[str]:
        return [f"... and {self.arms - _SHOWN} arms more"] if self.arms > _SHOWN else []

    def plot(self, axes: Any = None) -> Any:
        """Draw how the mean rewards of arms, and of the best arm, are distributed.

        Returns matplotlib's axes.
        """
        from ..drawing import density, plot_axes

        means = self._means()
        error = means.std(axis=0).max() / np.sqrt(len(means))
        alike = np.ptp(means.mean(axis=0)) <= 8.0 * error
        lines = {"any arm": means.ravel()}
        if not alike:
            lines = {f"arm {arm}": each for arm, each in enumerate(means.T[:6], 1)}
        axes = plot_axes(axes)
        density(axes, {**lines, "the best arm": means.max(axis=1)}, x="mean reward")
        axes.set_title(self.headline(), fontsize=9)
        return axes


def check_prior(prior: object) -> Prior:
    """The prior, or an error if it is something else."""
    if not isinstance(prior, Prior):
        raise InputError(
            f"the prior must be a Prior such as Bernoulli(arms=2), or a text such as bernoulli; not {prior!r}"
        )
    return prior


@about("arms")
def check_arms(arms: object) -> int:
    """The number of arms as a person gave it."""
    return check_whole(arms, "the number of arms", 2, most=10_000)


def check_positive(value: float, what: str) -> float:
    """A number greater than 0."""
    number = read_number(value, what)
    if number <= 0.0:
        raise InputError(f"{what} must be greater than 0, not {number:g}")
    return number


def count_arms(arms: int | None, *values: object) -> int:
    """The number of arms: as given, else as many as the longest list, else 2."""
    if arms is not None:
        return check_arms(arms)
    lists = [value for value in values if isinstance(value, (list, tuple, np.ndarray))]
    return max((len(value) for value in lists if len(value) > 1), default=2)


def per_arm(value: float | Sequence[float], arms: int, what: str) -> tuple[float, ...]:
    """One positive number for all arms, or one number per arm."""
    numbers = tuple(check_positive(item, what) for item in np.atleast_1d(value))
    for number in numbers:
        if not 1e-9 <= number <= 1e9:
            raise InputError(f"{what} must be between 1e-9 and 1e9, not {number:g}")
    if len(numbers) == 1:
        return numbers * arms
    if len(numbers) != arms:
        raise InputError(f"{what} has {len(numbers)} values for {arms} arms; give 1 or {arms}")
    return numbers


def check_scale(value: float, what: str) -> float:
    """A number greater than 0 of a size that rewards, squared and summed in float32, can have."""
    number = check_positive(value, what)
    if not 1e-9 <= number <= 1e9:
        raise InputError(
            f"{what} must be between 1e-9 and 1e9, not {number:g}; measure rewards in another unit, as "
            f"regret is in the same"
        )
    return number


def check_precision(size: float, detail: float) -> None:
    """Refuse rewards that float32, which they go through, cannot tell apart."""
    if size > 1000.0 * detail:
        raise InputError(
            f"rewards of size {size:g} that differ by {detail:g} are too alike for the simulator's "
            f"precision (at most 1000 to 1); subtract what is common to all, as regret does not "
            f"depend on it"
        )
