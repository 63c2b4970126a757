"""Rewards: for each family, the inverse distribution function at one uniform number per lane."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .jit import DRAW, jit, pointer
from .special import beta_quantile, normal_quantile

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


@jit
def call(draw, uniform, parameters, reward):
    """Call a draw function from Python."""
    draw(uniform, parameters, reward)


def compile_quantile(quantile: Any, width: int) -> Any:
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

    return pointer(DRAW, cache=False)(draw)()
