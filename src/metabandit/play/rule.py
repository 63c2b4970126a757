"""What every rule of live play has in common: the moment of a selection, and what a rule answers then."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from .. import numerics
from ..errors import InputError
from .arm import Arm, ArmName

# Values closer than this, relative to their size, are equal.
TIE = 1e-9


@dataclass(slots=True)  # frozen ones take longer to make
class Moment:
    """A selection to make: the arms that can be played, and what is known of the time.

    t counts pseudo-plays, and plays that wait for their reward; h is at least 1; step counts selections.
    """

    arms: Sequence[Arm]
    t: float
    h: float
    key: int
    step: int

    def best(self, values: Sequence[float], step: int | None = None) -> tuple[int, bool]:
        """The position of the largest value, ties at random, and whether there was a tie."""
        tied = self.tied(values)
        if len(tied) == 1:
            return tied[0], False
        at = self.step if step is None else step
        return tied[numerics.below(self.key, at, numerics.TIES, len(tied))], True

    def tied(self, values: Sequence[float]) -> list[int]:
        """The positions of the largest value."""
        top = max(values)
        least = top - TIE * abs(top)
        return [position for position, value in enumerate(values) if value >= least]

    def share(self, positions: Sequence[int]) -> list[float]:
        """The chance of each arm if one of these positions is drawn at random."""
        found = [0.0] * len(self.arms)
        for position in positions:
            found[position] = 1.0 / len(positions)
        return found


class Rule:
    """How a decision is made, arm by arm."""

    # What it remembers beyond the counts; most remember nothing.
    memory: dict[str, Any] | None = None
    # Whether an arm may have had half a play.
    fractions = False
    # The arms that it knows, if they differ, so that nothing is known of another one.
    only: Container[ArmName] | None = None

    def choose(self, moment: Moment) -> int:
        """The position of the arm to play."""
        values = self.indices(moment)
        assert values is not None, "a rule that compares nothing has a choose of its own"
        return moment.best(values)[0]

    def indices(self, moment: Moment) -> list[float] | None:
        """What is compared, one number per arm; None if nothing is."""
        return None

    def chances(self, moment: Moment) -> list[float]:
        """The probability of each arm to be chosen, before the random numbers of the moment are known."""
        values = self.indices(moment)
        assert values is not None, "a rule that compares nothing has chances of its own"
        return moment.share(moment.tied(values))

    def check(self, arms: Sequence[ArmName]) -> None:
        """Refuse arms that the rule cannot play."""
        for arm in arms:
            if self.only is not None and arm not in self.only:
                raise InputError(
                    f"the arms have means of different distributions, so nothing is known of another "
                    f"arm, {arm!r}; begin again with a prior for all arms"
                )

    def check_memory(self, arms: Sequence[Arm]) -> None:
        """Refuse, with a ValueError, what the rule cannot remember of these arms."""
