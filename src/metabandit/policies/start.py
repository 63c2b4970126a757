"""How a policy begins: by playing each arm once, or with pseudo-observations of every arm."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ..errors import InputError, nearest
from ..settings import check_keys, read_number, read_settings, write_number

if TYPE_CHECKING:
    from ..priors import Prior
    from ..priors.families import Array

# A number for all arms, or one per arm.
Numbers = float | tuple[float, ...]

EACH_ONCE: Literal["each-once"] = "each-once"
PRIOR_COUNTS: Literal["prior-counts"] = "prior-counts"
FREE: Literal["free"] = "free"
_KEYS = ("plays", "sum", "squares")


@dataclass(frozen=True)
class Start:
    """The start of a policy.

    `each-once` plays every arm once, in order. `prior-counts` gives every arm pseudo-observations
    instead, so that its index is defined before it was ever played: those of the prior, or else
    the given numbers of plays, sum of their rewards and sum of their squared rewards, for all arms
    or one number per arm. `free` begins with nothing, for policies that need nothing to decide.
    `each-once` may have pseudo-observations, too, of policies that know what they believe.
    """

    kind: str = EACH_ONCE
    plays: Numbers | None = None
    reward_sum: Numbers | None = field(default=None, metadata={"key": "sum"})
    square_sum: Numbers | None = field(default=None, metadata={"key": "squares"})

    def __post_init__(self) -> None:
        if self.kind not in (EACH_ONCE, PRIOR_COUNTS, FREE):
            hint = nearest(self.kind, (EACH_ONCE, PRIOR_COUNTS))
            raise InputError(f"unknown start {self.kind!r}; {hint}")
        values = (self.plays, self.reward_sum, self.square_sum)
        if self.kind == FREE and values != (None, None, None):
            raise InputError(f"the start {self.kind} has no parameters; prior-counts has")
        if (self.plays is None) != (self.reward_sum is None) or (
            self.plays is None and self.square_sum is not None
        ):
            raise InputError(
                "the start prior-counts takes plays and sum together, and squares only with them: "
                "prior-counts:plays=2,sum=1"
            )
        each = self.plays if isinstance(self.plays, tuple) else (self.plays,)
        if any(plays is not None and plays <= 0.0 for plays in each):
            raise InputError(f"plays of the start must be greater than 0, not {self.plays}")
        if len({len(value) for value in values if isinstance(value, tuple)}) > 1:
            raise InputError("plays, sum and squares of the start must be for the same arms")

    @staticmethod
    def read(text: str | Start | None) -> Start:
        """A start as the command line writes it: `each-once`, `prior-counts:plays=2,sum=1`."""
        if text is None:
            return Start()
        if isinstance(text, Start):
            return text
        name, settings = read_settings(text, "start")
        if name == FREE:
            raise InputError(
                "the start free is for policies that decide without any play, which have it by "
                "themselves; use each-once or prior-counts"
            )
        check_keys(settings, _KEYS, f"the start {name}")
        if name == EACH_ONCE and settings:
            raise InputError(f"the start {name} has no parameters; prior-counts has")
        numbers: dict[str, Numbers] = {}
        for key, value in settings.items():
            each = tuple(read_number(item, f"{key} of the start") for item in value.split(":"))
            numbers[key] = each[0] if len(each) == 1 else each
        return Start(name, numbers.get("plays"), numbers.get("sum"), numbers.get("squares"))

    @property
    def each_once(self) -> bool:
        return self.kind == EACH_ONCE

    @property
    def arms(self) -> int | None:
        """For how many arms it has numbers; None if for any."""
        values = (self.plays, self.reward_sum, self.square_sum)
        return next((len(value) for value in values if isinstance(value, tuple)), None)

    def counts(self, prior: Prior) -> Array:
        """The pseudo-observations: rows plays, reward sum, sum of squares; one column per arm."""
        import numpy as np

        if self.plays is None and self.kind != PRIOR_COUNTS:
            return np.zeros((3, prior.arms))
        if self.plays is None:
            given = prior.counts()
            if given is None:
                raise InputError(
                    f"the prior {prior} does not say what pseudo-observations to start from; "
                    f"give them: prior-counts:plays=2,sum=1 (and squares= for policies that read s)",
                    about="start",
                )
            counts = np.array(given, dtype=np.float64)
        elif self.arms not in (None, prior.arms):
            raise InputError(
                f"the start {self} is for {self.arms} arms, the prior {prior} has {prior.arms}; give "
                f"one number for all arms, or another prior",
                about="start",
            )
        else:
            rows = self.complete(binary=prior.family.binary).for_arms(prior.arms)
            counts = np.stack(rows, axis=1, dtype=np.float64)
        return _check_counts(counts, prior)

    def complete(self, *, binary: bool) -> Start:
        """The same start with its squares, if it does not say them: of rewards that do not vary."""
        if self.plays is None or self.square_sum is not None:
            return self
        if binary:  # a square is the reward itself
            return replace(self, square_sum=self.reward_sum)
        rows = self.for_arms(self.arms or 1)
        squares = tuple(total * total / plays for plays, total, _ in rows)
        return replace(self, square_sum=squares if self.arms else squares[0])

    def for_arms(self, arms: int) -> list[tuple[float, float, float]]:
        """The pseudo-observations of each arm: plays, sum of rewards and of their squares."""
        if self.arms not in (None, arms):
            raise InputError(
                f"the start {self} is for {self.arms} arms, but there are {arms}; give one number "
                f"for all arms",
                about="start",
            )
        values = (self.plays, self.reward_sum, self.square_sum)
        columns = [each if isinstance(each, tuple) else (each or 0.0,) * arms for each in values]
        return list(zip(*columns, strict=True))

    def resolve(self, prior: Prior) -> Start:
        """The same start with its pseudo-observations written out, so that it needs no prior."""
        if self.plays is None and self.kind != PRIOR_COUNTS:
            return self
        rows = []
        for row in self.counts(prior).tolist():
            rows.append(row[0] if len(set(row)) == 1 else tuple(row))
        return Start(self.kind, *rows)

    def __str__(self) -> str:
        values = zip(_KEYS, (self.plays, self.reward_sum, self.square_sum), strict=True)
        given = ",".join(
            f"{key}={':'.join(map(write_number, value if isinstance(value, tuple) else [value]))}"
            for key, value in values
            if value is not None
        )
        return f"{self.kind}:{given}" if given else self.kind


def _check_counts(counts: Array, prior: Prior) -> Array:
    import numpy as np

    if counts.shape != (3, prior.arms):
        raise InputError(
            f"counts of the prior {prior} must have the shape (3, {prior.arms}): plays, reward "
            f"sum and sum of squares of each arm; it is {counts.shape}"
        )
    plays, total, squares = counts
    low, high = prior.family.support
    if not np.isfinite(counts).all() or (plays <= 0.0).any():
        raise InputError("pseudo-observations must be finite, with plays greater than 0")
    if (total < low * plays - 1e-9).any() or (total > high * plays + 1e-9).any():
        raise InputError(
            f"the sum of the start must be between {low:g} and {high:g} times its plays, as "
            f"rewards are; not {total.tolist()} for {plays.tolist()} plays",
            about="start",
        )
    if (squares < total**2 / plays * (1.0 - 1e-9)).any():
        raise InputError(
            f"squares of the start must be at least sum^2 / plays = "
            f"{(total**2 / plays).tolist()}, not {squares.tolist()}",
            about="start",
        )
    return counts


def default_start(prior: Prior) -> str:
    """How learned policies begin if nothing is said: with the prior's counts if it has any."""
    return EACH_ONCE if prior.counts() is None else PRIOR_COUNTS
