"""Reward families: the kinds of distribution that an arm's rewards can have.

To add one, make a `Family` from its quantile function and its mean; docs/extending.md shows how.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import compiling

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """A kind of reward distribution.

    Parameters
    ----------
    name : str
        What messages call it.
    parameters : tuple of str
        The names of an arm's parameters.
    quantile : callable
        quantile(u, first, second, ...) for one uniform number u in (0, 1), with one or two parameters;
        with more, quantile(u, parameters). It is compiled with numba, once per process.
    mean : callable
        The expected reward, from an array whose last axis holds the parameters.
    support : tuple of float
        The smallest and the largest reward.
    values : tuple of float, optional
        A list that rewards are drawn from, times the first parameter and plus the second, instead of a
        quantile.

    Examples
    --------
    >>> import metabandit as mb
    >>> uniform = mb.Family("uniform", ("top",), lambda u, top: u * top, lambda p: p[..., 0] / 2)
    >>> uniform.in_unit_interval
    True
    """

    name: str
    parameters: tuple[str, ...]
    quantile: Callable[..., float] | None = field(repr=False)
    mean: Callable[[Array], Array] = field(repr=False)
    support: tuple[float, float] = (0.0, 1.0)
    values: tuple[float, ...] = field(default=(), repr=False)

    @property
    def binary(self) -> bool:
        """Whether every reward is 0 or 1."""
        # Not `is`: a copy of a prior, or one that was pickled, has a family of its own.
        return self == BERNOULLI

    @property
    def in_unit_interval(self) -> bool:
        """Whether every reward lies in [0, 1]."""
        return self.support[0] >= 0.0 and self.support[1] <= 1.0

    def draw_kernel(self, kind: Any = np.float32) -> Any:
        """The compiled function that draws rewards for lanes of this kind (kernels.jit.DRAW)."""
        from ..kernels import rewards

        if self.quantile is None and not self.values:
            return getattr(rewards, self.name.replace("-", "_"))(kind)
        if (self, kind) not in _COMPILED:
            if self.values:
                made = rewards.compile_list(self.values, kind)
            else:
                with compiling(f"the quantile of the family {self.name}"):
                    made = rewards.compile_quantile(self.quantile, len(self.parameters), kind)
            _COMPILED[self, kind] = made
        return _COMPILED[self, kind]

    def rewards(self, uniform: Array, parameters: Array, kind: Any = np.float32) -> Array:
        """The rewards of an arm at uniform numbers between 0 and 1, as lanes of this kind have them."""
        from ..kernels import rewards

        drawn = np.empty(len(uniform), kind)
        each = np.repeat(parameters.astype(kind)[:, None], len(uniform), axis=1)
        rewards.call(self.draw_kernel(kind), uniform.astype(kind), each, drawn)
        return drawn.astype(np.float64)


_COMPILED: dict[tuple[Family, Any], Any] = {}


def first_parameter(parameters: Array) -> Array:
    """The mean of rewards whose first parameter it is."""
    return parameters[..., 0]


def _beta_mean(parameters: Array) -> Array:
    return parameters[..., 0] / (parameters[..., 0] + parameters[..., 1])


def gaussian_parameters(means: Array, noise: float) -> Array:
    """The parameters of Gaussian rewards with these means."""
    return np.stack([means, np.full_like(means, noise)], axis=-1)


def beta_parameters(means: Array, concentration: float) -> Array:
    """The parameters of Beta rewards with these means and a + b = concentration."""
    means = np.clip(means, 1e-6, 1.0 - 1e-6)
    return np.stack([means * concentration, (1.0 - means) * concentration], axis=-1)


def _normal_density(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi))


def _truncated_mean(parameters: Array) -> Array:
    mean, deviation, _, inside, low, high = np.moveaxis(parameters, -1, 0)
    safe = np.maximum(deviation, 1e-12)
    difference = _normal_density((low - mean) / safe) - _normal_density((high - mean) / safe)
    clipped: Array = np.clip(mean + deviation * difference / inside, low, high)
    return clipped


# The built-in families' quantiles are in kernels/rewards.py, compiled to disk.
BERNOULLI = Family("bernoulli", ("p",), None, first_parameter)
GAUSSIAN = Family("gaussian", ("mean", "deviation"), None, first_parameter, (-math.inf, math.inf))
BETA = Family("beta", ("a", "b"), None, _beta_mean)


def truncated_gaussian_family(low: float, high: float) -> Family:
    """The family of Gaussian rewards restricted to [low, high]."""
    names = ("mean", "deviation", "under", "inside", "low", "high")
    return Family("truncated-gaussian", names, None, _truncated_mean, (low, high))
