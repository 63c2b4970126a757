"""All on the same problems; the worse half goes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...engine import costs
from ...engine.programs import ManyPrograms
from ...interrupts import interrupts_later
from ...priors.families import Array
from .base import Ints, Strategy


class Halving(Strategy):
    """Rounds in which all that are left play the same new problems with the same rewards.

    After each round the worse half goes, by the mean over all problems so far, and the number of problems
    doubles: every round takes about the same time. Of classes with the same regret on all of many
    problems, which play alike for all one can see, the first stays.
    """

    name = "halving"
    # So many problems show which classes play alike; before, more are kept.
    _MANY = 1000
    _MORE = 8

    def __init__(self, *arguments: Any, episodes: int = 64, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.first = episodes
        self.runs = 1 if self.objective.mean else 20
        self.episodes: dict[str, Any] = {"runs": self.runs, "seed": self.seed}
        self.now_left = np.arange(self.programs.count)
        self.now_round = 0
        self.now_problems = 0
        # Sums for means; every single regret where the objective needs it.
        self.now_sums = np.zeros(self.programs.count)
        self.now_regret = np.zeros((self.programs.count, 0), np.float32)
        self.last = max(2 * self.top, 16)
        self.rounds = self._rounds(self.programs.count, self.last, self.first)

    @classmethod
    def _rounds(cls, count: int, last: int, episodes: int) -> int:
        """Enough to come down to the last, and to see which play alike."""
        down = math.ceil(math.log2(max(count / last, 1.0))) + 1
        return max(down, math.ceil(math.log2(20 * cls._MANY / episodes)))

    @classmethod
    def seconds(cls, programs: ManyPrograms, episodes: int, top: int) -> float:
        """About how long it takes."""
        rounds = cls._rounds(programs.count, 2 * top, episodes)
        played = rounds * programs.count * episodes
        seconds = costs.simulation_seconds(programs.prior, programs.horizon, played)
        return seconds / costs.CORES

    def step(self) -> float:
        new = max(1, (self.first << self.now_round) // self.runs)
        first, last = self.now_problems, self.now_problems + new
        left, sums, regret = self.now_left, self.now_sums, self.now_regret
        if self.objective.mean:
            simple = self.objective.simple
            sums = (
                sums + self.programs.moments(left, first, last, simple=simple, **self.episodes)[0]
            )
            values = sums / last
        else:
            played = self.programs.regret(left, first, last, **self.episodes)
            regret = np.concatenate([regret, played.astype(np.float32)], axis=1)
            values = self._values(regret, last)
        order = np.lexsort((left, values))
        least = self.last
        if last * self.runs >= self._MANY:
            alike = sums if self.objective.mean else regret.sum(axis=1)
            _, places = np.unique(alike[order], return_index=True)
            order = order[np.sort(places)]
        else:
            least = self._MORE * self.last
        done = self.now_round + 1
        if done < self.rounds:
            kept = set(self._with_lengths(left[order], max(least, len(order) // 2)).tolist())
            order = np.array([place for place in order if int(left[place]) in kept])
        # All at once: a state that is written is of one round.
        with interrupts_later():
            self.now_round, self.now_problems = done, last
            self.now_left, self.now_sums, self.now_regret = left[order], sums[order], regret[order]
        return done / self.rounds

    def _values(self, regret: npt.NDArray[np.float32], problems: int) -> Array:
        reference = None
        if self.task.reference is not None:
            reference = self.programs.regret_of_other(
                self.task.reference, problems, **self.episodes
            )
        return self.objective.value(regret.astype(np.float64), reference)

    def found(self) -> Ints:
        return self.now_left

    @property
    def doing(self) -> str:
        return (
            f"round {self.now_round + 1} of {self.rounds}: {len(self.now_left):,} classes, "
            f"{self.first << self.now_round:,} episodes each"
        )
