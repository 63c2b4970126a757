"""What a player knows of an arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# An arm is called by a text or a whole number.
ArmName = str | int


@dataclass(slots=True)
class Arm:
    """The rewards of an arm so far, pseudo-observations included.

    plays, total: how many rewards, and their sum; mean and deviation follow from them
    spread: the sum of squared differences from the mean
    rewarded: plays that were rewarded, without pseudo-observations
    open: selections that wait for a reward; waits: how many of them the policy counts as plays
    memory: what the rule keeps about the arm
    """

    name: ArmName
    plays: float = 0.0
    total: float = 0.0
    spread: float = 0.0
    rewarded: int = 0
    open: int = 0
    retired: bool = False
    memory: tuple[int, ...] = ()
    mean: float = 0.0
    deviation: float = 0.0
    waits: int = 0

    @classmethod
    def begin(cls, name: ArmName, counts: Sequence[float]) -> Arm:
        """An arm with pseudo-observations: plays, sum of rewards, sum of squared rewards."""
        plays, total, squares = counts
        spread = max(0.0, squares - total * total / plays) if plays else 0.0
        arm = cls(name, plays, total, spread)
        arm.follow()
        return arm

    def follow(self) -> None:
        """Bring mean and deviation up to date."""
        if self.plays:
            self.mean = self.total / self.plays
            self.deviation = math.sqrt(max(self.spread / self.plays, 0.0))

    def add(self, reward: float) -> None:
        """Count a reward."""
        before = self.mean
        self.plays += 1.0
        self.rewarded += 1
        self.total += reward
        self.mean = mean = self.total / self.plays
        # Welford's way: no difference of large squares.
        self.spread += (reward - before) * (reward - mean)
        if self.spread < 0.0:  # by rounding
            self.spread = 0.0
        self.deviation = math.sqrt(self.spread / self.plays)
        if self.open:
            self.end_waiting(1)

    def replace(self, before: float, reward: float) -> None:
        """Count a reward instead of one that was counted."""
        old = self.mean
        self.total += reward - before
        self.mean = mean = self.total / self.plays
        self.spread = max(0.0, self.spread + (reward - before) * (reward + before - mean - old))
        self.deviation = math.sqrt(self.spread / self.plays)

    def add_counts(self, plays: int, total: float, squares: float) -> None:
        """Count rewards of which the number, the sum and the sum of squares are known."""
        apart = total / plays - self.mean if self.plays else 0.0
        within = max(0.0, squares - total * total / plays)
        self.spread += within + apart * apart * self.plays * plays / (self.plays + plays)
        self.plays += plays
        self.rewarded += plays
        self.total += total
        self.follow()
        self.end_waiting(min(plays, self.open))

    def end_waiting(self, plays: int) -> None:
        """These selections wait no longer."""
        self.open -= plays
        self.waits = min(self.waits, self.open)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "name": self.name,
            "plays": self.plays,
            "total": self.total,
            "spread": self.spread,
            "rewarded": self.rewarded,
            "open": self.open,
            "retired": self.retired,
            "memory": list(self.memory),
        }
