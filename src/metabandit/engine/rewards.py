"""The rewards of one episode, one pull at a time: those that the simulator would draw.

The reward of an arm's j-th pull is a function of (seed, episode, arm, j), so that whoever plays the
episode meets the same rewards.
"""

from __future__ import annotations

import numpy as np

from .. import numerics
from ..errors import InputError
from ..priors.families import Array, Family

# Rewards of an arm that are drawn at first; then twice as many each time.
_FIRST = 32


def _uniform(word: int, key: int, first: int, count: int) -> Array:
    """As kernels/random.py: unit(draw_bits(word + j * WEYL, key)) for pulls j from `first` on."""
    x = np.arange(first, first + count, dtype=np.uint32) * np.uint32(numerics.WEYL_32)
    x += np.uint32(word)
    x ^= x >> np.uint32(16)
    x *= np.uint32(numerics.HASH_A)
    x ^= x >> np.uint32(15)
    x ^= np.uint32(key)
    x *= np.uint32(numerics.HASH_B)
    x ^= x >> np.uint32(16)
    return ((x >> np.uint32(9)).astype(np.float64) + 0.5) * 2.0**-23


class EpisodeRewards:
    """What each pull of each arm pays in one episode.

    parameters: [arm, parameter], of the family
    seed: the episode's own (`numerics.episode_seed`)
    """

    def __init__(self, family: Family, parameters: Array, seed: int) -> None:
        self.family = family
        self.parameters = parameters
        self._key = numerics.word_of(seed, 0)
        self._words = [numerics.word_of(seed, 1 + arm) for arm in range(len(parameters))]
        self._drawn: list[list[float]] = [[] for _ in parameters]

    def reward(self, arm: int, pull: int) -> float:
        """The reward of an arm's pull; pulls are counted from 0."""
        drawn = self._drawn[arm]
        while pull >= len(drawn):
            uniform = _uniform(self._words[arm], self._key, len(drawn), max(_FIRST, len(drawn)))
            rewards = self.family.rewards(uniform, self.parameters[arm])
            low, high = self.family.support
            if not (rewards.min() >= low and rewards.max() <= high):
                raise InputError(
                    f"the family {self.family.name} drew a reward that is not a finite number "
                    f"between {low:g} and {high:g}; correct its quantile or its support"
                )
            drawn += rewards.tolist()
        return drawn[pull]
