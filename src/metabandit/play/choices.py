"""Choices with an id: which are open, what reward each has had, and which have waited too long."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from .arm import ArmName

REFUSE, REPLACE = "refuse", "replace"
# Choices are forgotten when they are so many times as old as one that waits too long.
FORGET = 2.0


@dataclass(frozen=True)
class Choice:
    """An arm that was chosen.

    Attributes
    ----------
    arm
        The arm to play.
    id : str
        The id with which its reward is reported.
    probability : float
        The probability with which the arm was chosen, given what was known.
    time : float
        When it was chosen, in seconds since 1970 (UTC).
    """

    arm: ArmName
    id: str
    probability: float
    time: float


def check_second(on_duplicate: str, choice: str, before: float | None, value: float) -> bool:
    """Whether a reward for a choice that has had one (or none, and expired) is counted."""
    if value == before:
        return False
    if on_duplicate == REFUSE:
        had = "expired without a reward" if before is None else f"has had the reward {before:g}"
        raise InputError(
            f"the choice {choice!r} {had}; the reward {value:g} was not counted. To count the "
            f'latest, make the player with on_duplicate="replace"'
        )
    return True


def new_id() -> str:
    """An id that no other choice has, in whatever process."""
    return os.urandom(12).hex()


def unknown(choice: object) -> InputError:
    return InputError(
        f"there is no choice with the id {choice!r}; ids are those that choose() gave. Nothing was counted"
    )


@dataclass(slots=True)
class ChoiceRecord:
    """A choice and what became of it: closed if it has had its reward, or has expired."""

    arm: ArmName
    probability: float
    time: float
    reward: float | None = None
    closed: bool = False


class Ledger:
    """The choices of a player, by id, in the order of their times."""

    def __init__(self, rows: Iterable[tuple[Any, ...]] = ()) -> None:
        self.entries = {name: ChoiceRecord(*more) for name, *more in rows}
        self.open = deque(name for name, entry in self.entries.items() if not entry.closed)

    def add(self, choice: Choice) -> None:
        self.entries[choice.id] = ChoiceRecord(choice.arm, choice.probability, choice.time)
        self.open.append(choice.id)

    def find(self, choice: object) -> ChoiceRecord:
        entry = self.entries.get(choice) if isinstance(choice, str) else None
        if entry is None:
            raise unknown(choice)
        return entry

    def overdue(self, now: float, expire: float) -> list[str]:
        """The ids of open choices that are too old; those that are closed and older are forgotten."""
        found = []
        while self.open:
            entry = self.entries.get(self.open[0])
            if entry is not None and not entry.closed:
                if entry.time > now - expire:
                    break
                found.append(self.open[0])
            self.open.popleft()
        for name, entry in list(self._old(now - FORGET * expire)):
            if entry.closed:
                del self.entries[name]
        return found

    def _old(self, time: float) -> Iterable[tuple[str, ChoiceRecord]]:
        for name, entry in self.entries.items():
            if entry.time > time:
                return
            yield name, entry

    def rows(self) -> list[list[Any]]:
        """Plain data, for JSON."""
        return [
            [name, entry.arm, entry.probability, entry.time, entry.reward, entry.closed]
            for name, entry in self.entries.items()
        ]
