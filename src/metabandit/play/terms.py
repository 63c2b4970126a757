"""What a player was made with, and keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, about, nearest
from ..feedback import COUNT
from ..rewards import Rewards
from ..settings import read_number
from .arm import ArmName
from .choices import REFUSE, REPLACE


@dataclass(frozen=True)
class Terms:
    """What a player was made with, and keeps.

    policy: the policy as its file has it, and the prior; None for a person's own rule
    each_once: whether each arm is played once before the rule is asked
    horizon: plays in all, if known; rewards: those that can come
    begin: the pseudo-observations of an arm that is added; None if arms begin differently
    began: the arms that it began with
    on_duplicate: whether a second, different reward for a choice is refused or replaces the first
    expire: seconds after which a choice waits no longer, None: it waits for ever; expired: the reward that
        it then has had, None: none
    warm: the counts of a history that the arms began with, weighted; None if there was none
    min_share: the probability that every arm keeps; pending: whether selections that wait for their
        reward count as plays of their arm (feedback.py)
    """

    name: str
    policy: dict[str, Any] | None
    each_once: bool
    seed: int
    horizon: int | None
    rewards: Rewards
    begin: Sequence[float] | None
    began: tuple[ArmName, ...]
    min_share: float = 0.0
    pending: str = COUNT
    on_duplicate: str = REFUSE
    expire: float | None = None
    expired: float | None = None
    warm: tuple[tuple[float, float, float], ...] | None = None

    def __post_init__(self) -> None:
        ways = (REFUSE, REPLACE)
        if self.on_duplicate not in ways:
            raise InputError(
                f"unknown choice {self.on_duplicate!r} for on_duplicate; "
                f"{nearest(str(self.on_duplicate), ways)}"
            )
        with about("expire"):
            if self.expire is not None:
                object.__setattr__(self, "expire", read_number(self.expire, "expire"))
                if self.expire <= 0.0:
                    raise InputError(f"expire is a number of seconds above 0, not {self.expire!r}")
        if self.expired is not None and self.expire is None:
            raise InputError("expired is the reward of choices that expire; give expire=, too")
