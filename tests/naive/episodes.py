"""One episode at a time: rewards, and the arms that a policy plays in order."""

from __future__ import annotations

import numpy as np
from scipy import special

from tests.naive.policies import Play
from tests.naive.randomness import (
    FINE,
    MASK32,
    WEYL,
    draw_bits,
    episode_word,
    fine_unit,
    unit,
)


def quantile(family: str, u: float, parameters: np.ndarray) -> float:
    """The reward of a family at a uniform number; Bernoulli pays 1 for small numbers."""
    if family == "bernoulli":
        return float(u < parameters[0])
    if family == "gaussian":
        return float(parameters[0] + parameters[1] * special.ndtri(u))
    if family == "beta":
        return float(special.betaincinv(parameters[0], parameters[1], u))
    mean, deviation, _, _, low, high = parameters
    under = special.ndtr((low - mean) / deviation)
    inside = special.ndtr((high - mean) / deviation) - under
    return float(mean + deviation * special.ndtri(under + u * inside))


def play_episode(
    choose, each_once, counts, family, parameters, horizon, seed, episode, *, fine=False
):
    """The arms played in an episode, in order; `fine` is for what the simulator plays in float64."""
    arms = len(parameters)
    play = Play(arms, horizon, episode_word(seed, episode, 0), counts)
    words = [episode_word(seed, episode, 1 + arm) for arm in range(arms)]
    moves = []
    for step in range(horizon):
        arm = step if each_once and step < arms else choose(play)
        word = (words[arm] + len(play.rewards[arm]) * WEYL) & MASK32
        bits = draw_bits(word, play.key)
        u = fine_unit(bits, draw_bits(word ^ FINE, play.key)) if fine else unit(bits)
        reward = quantile(family, u, parameters[arm])
        play.receive(arm, reward)
        moves.append(arm)
    return moves
