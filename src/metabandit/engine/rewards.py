"""The rewards of one episode, one pull at a time: those that the simulator would draw.

The reward of an arm's j-th pull is a function of (seed, episode, arm, j), so that whoever plays the
episode meets the same rewards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import numerics
from ..errors import InputError
from ..priors.families import Array, Family

# Rewards of an arm that are drawn at first; then twice as many each time.
_FIRST = 32


def _draw_bits(word: npt.NDArray[np.uint32], key: int) -> npt.NDArray[np.uint32]:
    """As kernels/random.py."""
    x = word ^ (word >> np.uint32(16))
    x *= np.uint32(numerics.HASH_A)
    x ^= x >> np.uint32(15)
    x ^= np.uint32(key)
    x *= np.uint32(numerics.HASH_B)
    x ^= x >> np.uint32(16)
    return x


def _uniform(word: int, key: int, first: int, count: int, kind: Any = np.float32) -> Array:
    """As kernels/random.py: the uniform numbers of pulls, for lanes of this kind."""
    words = np.arange(first, first + count, dtype=np.uint32) * np.uint32(numerics.WEYL_32)
    words += np.uint32(word)
    bits = _draw_bits(words, key)
    if kind is np.float32:
        return ((bits >> np.uint32(9)).astype(np.float64) + 0.5) * 2.0**-23
    more = _draw_bits(words ^ np.uint32(numerics.FINE), key) >> np.uint32(12)
    return (bits.astype(np.float64) * 2.0**20 + more + 0.5) * 2.0**-52


class EpisodeRewards:
    """What each pull of each arm pays in one episode.

    parameters: [arm, parameter], of the family
    seed: the episode's own (`numerics.episode_seed`)
    kind: the type of lanes in which the simulator would play the episode (precision.py)
    """

    def __init__(
        self, family: Family, parameters: Array, seed: int, *, kind: Any = np.float32
    ) -> None:
        self.kind = kind
        self.family = family
        self.parameters = parameters
        self._key = numerics.word_of(seed, 0)
        self._words = [numerics.word_of(seed, 1 + arm) for arm in range(len(parameters))]
        self._drawn: list[list[float]] = [[] for _ in parameters]

    def plays_at_random(self, step: int, share: float) -> int | None:
        """The arm that is played at random so that each arm keeps its share, or None."""
        arms = len(self.parameters)
        if numerics.unit(self._key, step, numerics.CHOICES + 2) < arms * share:
            return numerics.below(self._key, step, numerics.CHOICES + 3, arms)
        return None

    def lateness(self, arm: int, pull: int) -> float:
        """The uniform number from which the random delay of a reward follows."""
        return float(_uniform(self._words[arm], self._key ^ numerics.DELAY, pull, 1)[0])

    def reward(self, arm: int, pull: int) -> float:
        """The reward of an arm's pull; pulls are counted from 0."""
        drawn = self._drawn[arm]
        while pull >= len(drawn):
            count = max(_FIRST, len(drawn))
            uniform = _uniform(self._words[arm], self._key, len(drawn), count, self.kind)
            rewards = self.family.rewards(uniform, self.parameters[arm], self.kind)
            low, high = self.family.support
            if not (rewards.min() >= low and rewards.max() <= high):
                raise InputError(
                    f"the family {self.family.name} drew a reward that is not a finite number "
                    f"between {low:g} and {high:g}; correct its quantile or its support"
                )
            drawn += rewards.tolist()
        return drawn[pull]
