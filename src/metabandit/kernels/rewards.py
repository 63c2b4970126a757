"""Rewards: for each family, the inverse distribution function at one uniform number per lane."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .. import numerics
from .jit import DRAW, jit, pointer
from .special import beta_quantile, exp32, normal_quantile

f32 = np.float32


@pointer(DRAW)
def bernoulli(uniform, parameters, reward):
    """Parameters: the probability of a reward of 1."""
    probability = parameters[0]
    for i in range(reward.shape[0]):
        reward[i] = f32(1) if uniform[i] < probability[i] else f32(0)


@pointer(DRAW)
def gaussian(uniform, parameters, reward):
    """Parameters: mean, standard deviation."""
    mean = parameters[0]
    deviation = parameters[1]
    for i in range(reward.shape[0]):
        reward[i] = mean[i] + deviation[i] * normal_quantile(uniform[i])


@pointer(DRAW)
def truncated_gaussian(uniform, parameters, reward):
    """Parameters: mean and standard deviation of the parent, its probability below the interval
    and inside it, the interval's ends."""
    mean = parameters[0]
    deviation = parameters[1]
    under = parameters[2]
    inside = parameters[3]
    low = parameters[4]
    high = parameters[5]
    for i in range(reward.shape[0]):
        z = normal_quantile(under[i] + uniform[i] * inside[i])
        reward[i] = min(max(mean[i] + deviation[i] * z, low[i]), high[i])


@pointer(DRAW)
def beta(uniform, parameters, reward):
    """Parameters: a, b."""
    for i in range(reward.shape[0]):
        reward[i] = beta_quantile(
            np.float64(uniform[i]), np.float64(parameters[0, i]), np.float64(parameters[1, i])
        )


@pointer(DRAW)
def counts(uniform, parameters, reward):
    """Parameters: the mean of a Poisson variate."""
    for i in range(reward.shape[0]):
        reward[i] = numerics.poisson_quantile(np.float64(uniform[i]), np.float64(parameters[0, i]))


@pointer(DRAW)
def revenue_lognormal(uniform, parameters, reward):
    """Parameters: the share of zeros, mean and standard deviation of the other rewards' logarithm."""
    zeros = parameters[0]
    mean = parameters[1]
    deviation = parameters[2]
    for i in range(reward.shape[0]):
        v = (uniform[i] - zeros[i]) / (f32(1) - zeros[i])
        value = exp32(mean[i] + deviation[i] * normal_quantile(max(v, f32(1e-7))))
        reward[i] = value if uniform[i] >= zeros[i] else f32(0)


@pointer(DRAW)
def revenue_gamma(uniform, parameters, reward):
    """Parameters: the share of zeros, shape and scale of the other rewards' gamma distribution."""
    for i in range(reward.shape[0]):
        zeros = np.float64(parameters[0, i])
        u = np.float64(uniform[i])
        reward[i] = f32(0)
        if u > zeros:
            v = min(max((u - zeros) / (1.0 - zeros), 1e-9), 1.0 - 1e-9)
            reward[i] = parameters[2, i] * numerics.gamma_quantile(v, np.float64(parameters[1, i]))


@jit
def call(draw, uniform, parameters, reward):
    """Call a draw function from Python."""
    draw(uniform, parameters, reward)


def compile_quantile(quantile: Any, width: int, kind: Any = f32) -> Any:
    """A draw function for a person's own quantile(u, first, second, ...), compiled once per process."""
    compiled = numba.njit(quantile, error_model="numpy")
    if width == 1:

        def draw(uniform, parameters, reward):
            for i in range(reward.shape[0]):
                reward[i] = compiled(np.float64(uniform[i]), np.float64(parameters[0, i]))

    elif width == 2:

        def draw(uniform, parameters, reward):
            for i in range(reward.shape[0]):
                reward[i] = compiled(
                    np.float64(uniform[i]),
                    np.float64(parameters[0, i]),
                    np.float64(parameters[1, i]),
                )

    else:

        def draw(uniform, parameters, reward):
            for i in range(reward.shape[0]):
                reward[i] = compiled(np.float64(uniform[i]), parameters[:, i])

    return pointer(DRAW, cache=False)(draw)(kind)


def compile_list(values: Any, kind: Any) -> Any:
    """A draw function for rewards from a list, times a factor, plus a shift: parameters 0 and 1."""
    listed = np.array(values, dtype=np.float64)
    count = len(listed)

    def draw(uniform, parameters, reward):
        for i in range(reward.shape[0]):
            place = min(np.int64(uniform[i] * count), count - 1)
            reward[i] = parameters[0, i] * listed[place] + parameters[1, i]

    return pointer(DRAW, cache=False)(draw)(kind)
