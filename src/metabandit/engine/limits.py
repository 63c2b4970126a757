"""The time limit of a command."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, field


def _compiling() -> float:
    """Seconds that this process has spent on compiling; none if it has not loaded the compiler."""
    module = sys.modules.get("metabandit.kernels.jit")
    return 0.0 if module is None else float(module.seconds_compiling())


@dataclass(frozen=True)
class TimeLimit:
    """The seconds that a command may take from when this is made; compiling, done once, does not count."""

    seconds: float = math.inf
    began: float = field(default_factory=lambda: time.monotonic() - _compiling(), compare=False)

    def since(self, seconds: float) -> TimeLimit:
        """The same limit, begun this many seconds earlier."""
        return TimeLimit(self.seconds, self.began - seconds)

    @property
    def given(self) -> bool:
        """Whether there is a limit."""
        return self.seconds < math.inf

    @property
    def passed(self) -> float:
        """Seconds since the command began."""
        return time.monotonic() - _compiling() - self.began

    @property
    def left(self) -> float:
        """Seconds that are left; never less than 0."""
        return max(0.0, self.seconds - self.passed)

    def allows(self, seconds: float) -> bool:
        """Whether what takes this long ends in time."""
        return seconds <= self.seconds - self.passed

    def part(self, share: float) -> TimeLimit:
        """A limit for this share of what is left."""
        return TimeLimit(share * self.left)
