"""Problems that differ in level: a level per problem, and arms around it.

    level  ~ Beta with mean `mean` and deviation `between`,     arm ~ Beta(c level, c (1 - level)),
    level  ~ N(mean, between^2),                                arm ~ N(level, within^2)

for rewards of 0 and 1 and for Gaussian ones. c = mean (1 - mean)/within^2 - 1, so that arms differ by
`within` at a level of `mean`, and by less where nearly all rewards are alike. Arms of one problem are
correlated, by about between^2/(between^2 + within^2), which Beta(a, b) per arm cannot say.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import InputError, nearest
from ..settings import read_number
from .base import Prior, check_positive, check_precision, count_arms, write_prior
from .families import BERNOULLI, GAUSSIAN, Array
from .likelihood import beta_of

_FAMILIES = {family.name: family for family in (BERNOULLI, GAUSSIAN)}


class Hierarchical(Prior):
    """A level per problem, and arms around it.

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
        if family not in _FAMILIES:
            raise InputError(f"unknown family {family!r} {what}; {nearest(family, _FAMILIES)}")
        self.family = _FAMILIES[family]
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
            return np.stack([means, np.full_like(means, self.noise)], axis=-1)
        level = rng.beta(*beta_of(self.mean, self.between), (problems, 1))
        concentration = self.mean * (1.0 - self.mean) / self.within**2 - 1.0
        # A level of 0 or 1 has no Beta distribution, and draws may be rounded to it.
        level = np.clip(level, 1e-12, 1.0 - 1e-12)
        return rng.beta(concentration * level, concentration * (1.0 - level), shape)[..., None]

    def __str__(self) -> str:
        values = {"mean": self.mean, "between": self.between, "within": self.within}
        more = {"noise": self.noise} if self.family == GAUSSIAN else {}
        return write_prior("hierarchical", **values, family=self.family.name, **more)
