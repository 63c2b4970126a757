"""What clients send: JSON, read into dataclasses that check it and that the docs are made from.

The type of a field is `Annotated[type, what the docs say of it]`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from ..data import read_data
from ..errors import InputError
from ..play import ArmName

T = TypeVar("T")

# What one request may ask for.
MOST_CHOICES = 10_000
MOST_ARMS = 1_000
LONGEST_NAME = 200


def _limited(name: object) -> None:
    if isinstance(name, str) and len(name) > LONGEST_NAME:
        raise ValueError(f"the name of an arm has at most {LONGEST_NAME} letters, not {len(name)}")


def _not_too_many(items: tuple[Any, ...], what: str) -> None:
    if not 1 <= len(items) <= MOST_CHOICES:
        raise ValueError(f"{what}: 1 to {MOST_CHOICES:,} at a time, not {len(items):,}")


@dataclass(frozen=True, kw_only=True)
class New:
    """An experiment to begin; what is left out is as in `Policy.player`."""

    policy: Annotated[
        str | dict[str, Any],
        "A name such as ucb1-tuned, an expression such as r + 1/(n + 2), or the content of a policy file.",
    ]
    arms: Annotated[tuple[ArmName, ...], "The names of the arms: texts or whole numbers."]
    seed: Annotated[int, "For ties and for policies that play at random."] = 0
    horizon: Annotated[int | None, "Plays in all, for policies that read it."] = None
    prior: Annotated[str | None, "What is known of the arms, as in bernoulli:alpha=1,beta=9."] = (
        None
    )
    rewards: Annotated[
        Literal["binary"] | tuple[float | None, float | None] | None,
        "binary (0 and 1), or the smallest and the largest reward.",
    ] = None
    min_share: Annotated[float | None, "The probability that every arm keeps."] = None
    pending: Annotated[
        Literal["count", "ignore"] | None,
        "Whether choices that wait for their reward count as plays.",
    ] = None
    on_duplicate: Annotated[
        Literal["refuse", "replace"], "What a second, different reward for an id does."
    ] = "refuse"
    expire: Annotated[float | None, "Seconds after which a choice waits no longer."] = None
    expired: Annotated[float | None, "The reward that then counts; none by default."] = None

    def __post_init__(self) -> None:
        if len(self.arms) > MOST_ARMS:
            raise ValueError(
                f"an experiment has at most {MOST_ARMS:,} arms here, not {len(self.arms):,}"
            )
        for name in self.arms:
            _limited(name)


@dataclass(frozen=True, kw_only=True)
class Choose:
    """How many choices to make."""

    count: Annotated[int | None, "So many choices; one if it is left out."] = None

    def __post_init__(self) -> None:
        if self.count is not None and not 1 <= self.count <= MOST_CHOICES:
            raise ValueError(f"count: 1 to {MOST_CHOICES:,}, not {self.count:,}")


@dataclass(frozen=True, kw_only=True)
class Reward:
    """The reward of a choice."""

    id: Annotated[str, "The id of the choice."]
    value: Annotated[float, "Its reward."]


@dataclass(frozen=True, kw_only=True)
class RewardMany:
    """The rewards of many choices: all are counted, or none if one is refused."""

    rewards: Annotated[tuple[Reward, ...], "Pairs of id and value."]

    def __post_init__(self) -> None:
        _not_too_many(self.rewards, "rewards")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch of plays to spread over the arms."""

    plays: Annotated[int, "The plays of the batch."]

    def __post_init__(self) -> None:
        if not 1 <= self.plays <= 100 * MOST_CHOICES:
            raise ValueError(f"plays: 1 to {100 * MOST_CHOICES:,}, not {self.plays:,}")


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Rewards of an arm by their number and sum."""

    arm: Annotated[ArmName, "The arm."]
    plays: Annotated[int, "How many rewards."]
    total: Annotated[float, "Their sum."]
    squares: Annotated[
        float | None, "The sum of their squares; not needed for rewards of 0 and 1."
    ] = None


@dataclass(frozen=True, kw_only=True)
class CountMany:
    """Counts of arms, such as a warehouse has: all are counted, or none if one is refused."""

    counts: Annotated[tuple[Counted, ...], "The counts, an entry per arm."]

    def __post_init__(self) -> None:
        _not_too_many(self.counts, "counts")


def read_body(kind: type[T], content: bytes) -> T:
    """The body of a request, or an error that says what is wrong with it."""
    try:
        value = json.loads(content or b"{}", parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is no JSON: {error}") from None
    try:
        return read_data(kind, value, "the body")
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number in JSON")
