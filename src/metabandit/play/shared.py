"""A player whose counts are in a store, which any number of processes share.

What it decides by is at most `refresh` seconds old, and includes what the process itself has done since. A
reward, a count and a choice with an id are in the database before the call returns. Selections without an id
are written with what comes next, or when the counts are read again. Selections are numbered for
the random numbers of ties and draws; a process takes the numbers in blocks, so that no two processes use the same.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .arm import Arm, ArmName
from .choices import FORGET, Choice, new_id
from .counts import read_pairs
from .player import ADD, CANCEL, COUNTS, RETIRE, SELECT, UPDATE, Player
from .rule import Rule
from .terms import Terms

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .experiment import Experiment

# Numbers of selections that a process takes at a time.
_BLOCK = 64


class SharedPlayer(Player):
    """A `Player` whose counts are in a database. `Policy.player(..., store=...)` makes one."""

    _kept = True

    def __init__(
        self, rule: Rule, arms: Sequence[Arm], terms: Terms, experiment: Experiment, refresh: float
    ) -> None:
        super().__init__(rule, arms, terms)
        self.experiment = experiment
        self.refresh = refresh
        self._unwritten: Counter[int] = Counter()
        self._end = 0
        self._read_at = -float("inf")
        self._expired_at = -float("inf")
        self._process = os.getpid()

    # Choices with an id ------------------------------------------------------------------------

    def choose(self, count: int | None = None) -> Any:
        """See `Player.choose`; a choice is in the store before the call returns."""
        with self._lock:
            self._sweep()
            self._fresh()
            chosen: list[tuple[Choice, Arm]] = []
            made, selections = self._made, self.selections
            try:
                for left in range(1 if count is None else self._check_batch(count), 0, -1):
                    self._take_number(left)
                    chances = self._chances()
                    arm = self._choose()
                    chance = chances[self._active.index(arm)]
                    chosen.append((Choice(arm.name, new_id(), chance, time.time()), arm))
                    self._note_selection(arm)
                with self._writing() as connection:
                    places = [self._place(arm.name) for _, arm in chosen]
                    self.experiment.choose(connection, [choice for choice, _ in chosen], places)
                    self.experiment.open(connection, Counter(places))
            except BaseException:
                for _, arm in chosen:
                    arm.end_waiting(1)
                self._made, self.selections = made, selections
                raise
            choices = [choice for choice, _ in chosen]
            return choices[0] if count is None else choices

    def reward_many(self, rewards: Iterable[tuple[str, float]]) -> int:
        values = [(name, self.rewards.check(value)) for name, value in read_pairs(rewards, "id")]
        return self._reward(values, refuse=True).count(True)

    def reward_each(self, rewards: Sequence[tuple[str, float]]) -> list[bool | InputError]:
        """Count the rewards of many choices in one transaction, each by itself.

        For each, whether it was counted now, or why it was refused. Values have been checked.
        """
        return self._reward(rewards, refuse=False)

    def _reward(
        self, rewards: Sequence[tuple[str, float]], *, refuse: bool
    ) -> list[bool | InputError]:
        with self._lock:
            self._sweep()
            with self._writing() as connection:
                counted = self.experiment.reward(connection, rewards, self.terms.on_duplicate)
                for result in counted if refuse else ():
                    if isinstance(result, InputError):
                        raise result
            # What was counted is read again: the choice may be that of another process.
            self._read_at = -float("inf")
            return counted

    def log(self) -> list[tuple[ArmName, float, float]]:
        return [
            (arm, reward, chance)
            for arm, reward, chance, _ in self.experiment.log()
            if reward is not None
        ]

    def _sweep(self) -> None:
        """Close the choices that have waited too long, now and then."""
        limit = self.terms.expire
        now = time.monotonic()
        if limit is None or now - self._expired_at < min(1.0, 0.1 * limit):
            return
        self._expired_at = now
        with self.experiment.store.transaction() as connection:
            at = time.time()
            while self.experiment.expire(connection, at - limit, self.terms.expired):
                self._read_at = -float("inf")
            self.experiment.forget(connection, at - FORGET * limit)

    def compact(self) -> None:
        raise InputError("the player has a store, and no journal to compact")

    def close(self) -> None:
        """Write what is not written; numbers that were not used are for others."""
        with self._lock:
            self.flush()
            if self.selections < self._end:
                self.experiment.give_back(self.selections, self._end)
            self._end = self.selections

    # Keeping up with the store -------------------------------------------------------------------

    def _log(self, operation: list[Any], *, sync: bool = True) -> None:
        """What others write to a journal is done in the store."""
        word, *values = operation
        if word == SELECT:
            self._unwritten.update(self._place(name) for name in values)
            return
        experiment = self.experiment
        with self._writing() as connection:
            if word == UPDATE:
                rewards: dict[int, list[float]] = {}
                for name, value in zip(values[::2], values[1::2], strict=True):
                    rewards.setdefault(self._place(name), []).append(value)
                for place in sorted(rewards):
                    experiment.add(connection, place, rewards[place])
            elif word == COUNTS:
                places = [self._place(name) for name in values[::4]]
                rows = zip(values[1::4], values[2::4], values[3::4], strict=True)
                for place, counts in sorted(zip(places, rows, strict=True)):
                    experiment.add_counts(connection, place, counts)
            elif word == CANCEL:
                experiment.open(connection, {self._place(values[0]): -1})
            elif word == ADD:
                self._write_arm(connection, values[0])
            elif word == RETIRE:
                experiment.retire(connection, self._place(values[0]))

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction, with the selections that are not in the store yet."""
        with self.experiment.store.transaction() as connection:
            self.experiment.open(connection, self._unwritten)
            yield connection
        self._unwritten.clear()

    def _fresh(self) -> None:
        if os.getpid() != self._process:
            # A child: what the parent has not written is the parent's.
            self._process = os.getpid()
            self._unwritten.clear()
            self._end = self.selections
            self._read_at = -float("inf")
        if time.monotonic() - self._read_at < self.refresh:
            return
        self.flush()
        self._take(self.experiment.read()[1])
        self._read_at = time.monotonic()

    def _take_number(self, more: int = 1) -> None:
        """The number of the next selection, if so many are to come."""
        if self.selections >= self._end:
            count = max(_BLOCK, more)
            with self.experiment.store.transaction() as connection:
                self.selections = self.experiment.number(connection, count)
            self._end = self.selections + count

    def _find(self, name: ArmName) -> Arm:
        if name not in self:
            self._read_at = -float("inf")
            self._fresh()  # another process may have added it
        return super()._find(name)

    def _place(self, name: ArmName) -> int:
        """Where an arm is in the store."""
        return list(self._by_name).index(name)

    def flush(self) -> None:
        """Write the selections that are not in the store yet."""
        with self._lock:
            if self._unwritten:
                with self._writing():
                    pass

    def _write_arm(self, connection: Connection, name: ArmName) -> None:
        known = self._by_name.get(name)
        fresh = None
        if known is None:
            assert self.terms.begin is not None
            fresh = Arm.begin(name, self.terms.begin)
        place = len(self._by_name) if known is None else self._place(name)
        self.experiment.add_arm(connection, fresh, place)
