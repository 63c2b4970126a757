"""The paper's way: a bandit whose arms are the classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.task import Task
from ...errors import InputError
from .base import Ints, Strategy


class Ucb1Tuned(Strategy):
    """The paper's way: classes are arms, one episode is a pull, UCB1-Tuned says which is next.

    The j-th pull of a class plays training problem 1 + j mod N; a reward is minus the regret of the
    episode. The pulls are those of one after the other, though episodes are played in blocks ahead of
    time: what a class's next episodes give does not depend on when they are played.
    """

    name = "ucb1-tuned"
    TRAINING = 100
    _EPOCH = 1000
    _SIZES = (16, 64, 256)

    @staticmethod
    def obstacle(task: Task) -> str | None:
        """Why it cannot be used, or None."""
        if task.objective.name != "regret":
            return f"the strategy ucb1-tuned is for the objective regret, not {task.objective.name}"
        return None

    def __init__(self, *arguments: Any, pulls: int = 10_000_000, **options: Any) -> None:
        from ...kernels import ucb1_tuned

        super().__init__(*arguments, **options)
        self.kernel = ucb1_tuned
        if pulls < self.programs.count:
            raise InputError(
                f"{pulls:,} pulls are too few: each of the {self.programs.count:,} classes is pulled once "
                f"before the first choice; raise --pulls"
            )
        self.pulls = pulls
        count = self.programs.count
        self.now_pulled = 0
        self.now_count = np.zeros(count, np.int64)
        self.now_total = np.zeros(count)
        self.now_squares = np.zeros(count)
        self._forget()

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._forget()

    def _forget(self) -> None:
        """Nothing is ready: what comes next is played when it is needed."""
        count = self.programs.count
        self.table = self.kernel.Pulls(
            self.now_count,
            self.now_total,
            self.now_squares,
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.zeros((count, self._SIZES[-1]), np.float32),
        )

    def _prepare(self, which: Ints) -> None:
        """Play the next episodes of classes: more of those that were pulled often."""
        done = self.now_count[which]
        size = np.where(done < 16, 0, np.where(done < 256, 1, 2))
        for position, episodes in enumerate(self._SIZES):
            group = which[size == position]
            if len(group):
                regret = self.programs.next_regrets(
                    group, self.now_count[group], episodes, training=self.TRAINING, seed=self.seed
                )
                # A class that cannot be played is pulled once and never again.
                self.table.buffer[group, :episodes] = -np.minimum(regret, 1e9)
                self.table.ready[group] = episodes
                self.table.taken[group] = 0

    def step(self) -> float:
        count = self.programs.count
        if not self.now_pulled:
            self._prepare(np.arange(count))
            first = self.table.buffer[:, 0].astype(np.float64)
            self.table.taken[:] = 1
            self.now_count += 1
            self.now_total += first
            self.now_squares += first**2
            self.now_pulled = count
        end = min(self.now_pulled + 200 * self._EPOCH, self.pulls)
        while self.now_pulled < end:
            self._epoch(min(self._EPOCH, end - self.now_pulled))
        return self.now_pulled / self.pulls

    def _epoch(self, most: int) -> None:
        """Some pulls. At any time one of the `most` best at the outset was not pulled yet, and its index
        has only grown; so only classes that can come up to the least of these can be pulled.
        """
        kernel, count = self.kernel, self.programs.count
        index, later = np.empty(count), np.empty(count)
        kernel.upper_bounds(self.table, self.now_pulled, index)
        kernel.upper_bounds(self.table, self.now_pulled + most, later)
        place = max(count - most, 0)
        least = np.partition(index, place)[place]
        self._prepare(np.flatnonzero((index >= least) & (self.table.taken == self.table.ready)))
        candidates = np.flatnonzero(later >= least)
        mean, scale = np.empty(len(candidates)), np.empty(len(candidates))
        end = self.now_pulled + most
        while self.now_pulled < end:
            these = candidates.copy()
            self.now_pulled += kernel.pull(
                end - self.now_pulled, self.now_pulled, these, mean, scale, self.table
            )
            if self.now_pulled < end:
                self._prepare(these[:1])

    def found(self) -> Ints:
        order = np.argsort(-self.now_total / self.now_count, kind="stable")
        return self._with_lengths(order, 4 * self.top)

    @property
    def doing(self) -> str:
        if not self.now_pulled:
            return "pulling each class once"
        best = int(np.argmax(self.now_total / self.now_count))
        return (
            f"{self.now_pulled:,} of {self.pulls:,} pulls, best "
            f"{-self.now_total[best] / self.now_count[best]:.4g} ({self.now_count[best]:,} pulls)"
        )
