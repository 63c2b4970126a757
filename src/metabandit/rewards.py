"""The rewards that an arm can pay: their range, and whether they are 0 or 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .errors import InputError
from .settings import check_whole, read_number

# What float() would read, but no reward should be.
_TEXTS = (str, bytes, bytearray, memoryview)
# Squares of larger ones cannot be summed.
_LARGEST = 1e150


@dataclass(frozen=True)
class Rewards:
    """The rewards that can come: all numbers from low to high, or 0 and 1 only."""

    low: float = 0.0
    high: float = 1.0
    binary: bool = False

    @classmethod
    def read(cls, given: object) -> Rewards:
        """`"binary"`, or a pair (low, high); None for a side without limit."""
        if isinstance(given, Rewards):
            return given
        if given == "binary":
            return cls(binary=True)
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise InputError(
                f'rewards are "binary" (0 and 1), or the pair of the smallest and the largest, such '
                f"as (0, 1); not {given!r}"
            )
        low, high = (
            side * math.inf if value is None else read_number(value, "the range of rewards")
            for side, value in zip((-1.0, 1.0), given, strict=True)
        )
        if not low < high:
            raise InputError(f"the smallest reward must be below the largest, not {given!r}")
        return cls(low, high)

    @property
    def in_unit_interval(self) -> bool:
        return self.low >= 0.0 and self.high <= 1.0

    def check(self, reward: Any) -> float:
        """The reward as a number, or an error."""
        try:
            value = math.nan if isinstance(reward, _TEXTS) else float(reward)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not math.isfinite(value):
            raise InputError(f"a reward is a finite number, not {reward!r}; nothing was counted")
        if abs(value) > _LARGEST:
            raise InputError(
                f"a reward must be at most {_LARGEST:g} in size, not {reward!r}, or sums have no value; "
                f"nothing was counted"
            )
        if self.binary and value not in (0.0, 1.0):
            raise InputError(
                f"the policy is for rewards of 0 and 1, not {reward!r}; nothing was counted. For "
                f"rewards between 0 and 1 make the player with rewards=(0, 1)"
            )
        if not self.low <= value <= self.high:
            raise InputError(
                f"the policy is for rewards between {self.low:g} and {self.high:g}, not {reward!r}; "
                f"nothing was counted. Scale the rewards, or make the player with rewards=(low, high)"
            )
        return value

    def check_counts(self, plays: float, total: float, what: str) -> None:
        """Refuse a sum of rewards that so many plays cannot have."""
        # Sums have rounding of their own.
        slack = 1e-6 * max(1.0, abs(total))
        # 0 plays times no limit is no number, and no limit.
        if plays and not self.low * plays - slack <= total <= self.high * plays + slack:
            raise InputError(
                f"the rewards of {plays:g} plays lie between {self.low:g} and {self.high:g} each, so "
                f"their sum cannot be {total:g} ({what})"
            )

    def read_counts(
        self, plays: object, total: object, squares: object
    ) -> tuple[int, float, float]:
        """The number, the sum and the sum of squares of rewards, or an error."""
        if plays is None or total is None:
            raise InputError("counts are plays= and total= together; nothing was counted")
        number = check_whole(plays, "plays", 0, most=2**53)
        amount = read_number(total, "total")  # type: ignore[arg-type]
        if not number:
            what = f"the sum 0, not {amount:g}" if amount else f"no squares, not {squares}"
            raise InputError(f"0 plays have {what}; nothing was counted")
        self.check_counts(number, amount, "nothing was counted")
        if self.binary and amount != int(amount):
            raise InputError(
                f"the sum of rewards of 0 and 1 is a whole number, not {amount:g}; nothing was counted"
            )
        if squares is None and not self.binary:
            raise InputError(
                "rewards that are not only 0 and 1 need squares=, the sum of their squares, too; "
                "nothing was counted"
            )
        spread = amount if squares is None else read_number(squares, "squares")  # type: ignore[arg-type]
        least = amount * amount / number
        if (self.binary and spread != amount) or spread < least * (1.0 - 1e-9):
            raise InputError(
                f"{number} rewards with the sum {amount:g} have a sum of squares of at least {least:g} "
                f"(and equal to the sum for rewards of 0 and 1), not {spread:g}; nothing was counted"
            )
        return number, amount, spread

    def to_list(self) -> str | list[float | None]:
        """As `read` takes it."""
        sides = [side if math.isfinite(side) else None for side in (self.low, self.high)]
        return "binary" if self.binary else sides
