"""What a strategy is: steps of a second or so, and a state from which a killed search goes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...engine.programs import ManyPrograms
from ...engine.task import Task, stream

Ints = npt.NDArray[np.int64]

# The best of each length are kept to the end, for the picture of regret against length.
OF_EACH_LENGTH = 2


class Strategy(ABC):
    """Looks for the classes with the lowest value of the objective.

    lengths: of the formulas; top: how many of the best are wanted
    """

    name: ClassVar[str]

    def __init__(self, task: Task, programs: ManyPrograms, lengths: Ints, *, top: int) -> None:
        self.task = task
        self.objective = task.objective
        self.programs = programs
        self.lengths = lengths
        self.top = min(top, programs.count)
        self.seed = stream(task.seed, 1)
        self.now_share = 0.0
        self.now_seconds = 0.0

    @staticmethod
    def obstacle(task: Task) -> str | None:
        """Why it cannot be used, or None."""
        return None

    @abstractmethod
    def step(self) -> float:
        """Go on for a while; the share that is done, 1 at the end."""

    @abstractmethod
    def found(self) -> Ints:
        """The best classes so far: the first is the best."""

    @property
    @abstractmethod
    def doing(self) -> str:
        """What is going on, for people to see."""

    def state(self) -> dict[str, Any]:
        """Arrays and numbers from which `restore` can go on."""
        return {key: value for key, value in vars(self).items() if key.startswith("now_")}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for key, value in state.items():
            known = getattr(self, key)
            setattr(self, key, value if value.ndim else type(known)(value.item()))

    def _with_lengths(self, order: Ints, count: int) -> Ints:
        """The first of an order, and the best few of each length."""
        kept = order[:count].tolist()
        for length in np.unique(self.lengths[order]):
            kept += order[self.lengths[order] == length][:OF_EACH_LENGTH].tolist()
        chosen = set(kept)
        return np.array([item for item in order.tolist() if item in chosen], np.int64)
