"""A time limit: how much is left, and what still fits."""

from __future__ import annotations

import math
import time


class Clock:
    """The seconds that are left; without a limit, any number."""

    def __init__(self, seconds: float | None = None) -> None:
        self.end = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self.end < math.inf

    @property
    def left(self) -> float:
        """Seconds to the end; negative after it."""
        return self.end - time.monotonic()

    def allows(self, seconds: float) -> bool:
        """Whether what takes this long ends in time."""
        return seconds <= self.left

    def part(self, share: float) -> Clock:
        """A clock for this share of what is left."""
        return Clock(share * max(self.left, 0.0)) if self.limited else Clock()
