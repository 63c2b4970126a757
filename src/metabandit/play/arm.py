"""Arms of a player: their names, what is known of each, and what a person sees of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..settings import check_whole

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


@dataclass(frozen=True)
class ArmView:
    """An arm as a player sees it.

    Attributes
    ----------
    index : float or None
        The number that the policy compares; None if it compares none, or the arm awaits its first reward.
    mean, deviation, plays : float
        Mean, standard deviation and number of the arm's rewards, including the pseudo-observations of the
        start. An arm without rewards shows the mean by which it is judged.
    rewarded, open : int
        Rewards so far, and selections that still wait for theirs.
    """

    arm: ArmName
    index: float | None
    mean: float
    deviation: float
    plays: float
    rewarded: int
    open: int
    retired: bool


def read_arms(arms: object) -> tuple[ArmName, ...]:
    """The names of arms: texts or whole numbers, all different; a number of arms stands for 0, 1, ..."""
    if isinstance(arms, int) and not isinstance(arms, bool):
        return tuple(range(check_whole(arms, "the number of arms", 1, most=1_000_000)))
    unordered = isinstance(arms, (set, frozenset))
    if isinstance(arms, (str, bytes)) or unordered or not isinstance(arms, Iterable):
        raise InputError(f"arms are a list of names, in order, or how many there are; not {arms!r}")
    names = tuple(check_arm(arm) for arm in arms)
    if not names:
        raise InputError("there must be at least one arm; arms is empty")
    seen: set[ArmName] = set()
    for name in names:
        if name in seen:
            raise InputError(f"the names of arms must be different; {name!r} is there twice")
        seen.add(name)
    return names


def check_arm(arm: object) -> ArmName:
    """The name of an arm, or an error."""
    if isinstance(arm, str):
        try:
            arm.encode()
        except UnicodeEncodeError:
            raise InputError(f"the name of an arm must be valid Unicode, not {arm!r}") from None
        return str(arm)
    whole = hasattr(arm, "__index__") and not isinstance(arm, bool)
    if not whole or getattr(arm, "ndim", 0) != 0:
        raise InputError(f"an arm is called by a text or a whole number, not {arm!r}")
    return check_whole(arm, "the number of an arm", -(2**63), most=2**63 - 1)
