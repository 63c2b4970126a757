"""A policy in live use: it selects arms, and takes rewards as they come."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, overload

from ..errors import InputError
from ..feedback import COUNT, PATIENCE
from ..files import check_new, written
from ..journal import Journal, seal
from ..numerics import CHOICES, below, key_of, unit
from ..policies.file import PLAYER_FORMAT as FORMAT
from ..settings import check_whole
from ..showing import Shown
from .arm import Arm, ArmName, ArmView, check_arm
from .choices import Choice, Ledger, check_second, new_id
from .counts import NOTHING, Counts, is_frame, is_nothing, read_columns, read_counts, read_pairs
from .rule import Moment, Rule
from .terms import Terms

VERSION = 1
# Selections of a batch at the most.
_MOST = 10_000_000
# What may stand in a journal: the operations of a player, by their first word.
SELECT, UPDATE, COUNTS = "select", "update", "counts"
CANCEL, ADD, RETIRE = "cancel", "add", "retire"
CHOOSE, REWARD, EXPIRE = "choose", "reward", "expire"


class Player(Shown):
    """A policy in live use. `Policy.player` makes one, `load_player` brings one back.

    `select()` names the arm to play, `update(arm, reward)` tells what came of it. Rewards may come
    late, in any order, in batches, or for arms that were not selected here; several selections may
    be open at once. What a policy makes of open selections is what the evaluator assumes of plays that
    wait for their reward (docs/feedback.md). Threads may share a player.
    """

    # Whether what is done is written down (`_log`) before it counts.
    _kept = False

    def __init__(
        self,
        rule: Rule,
        arms: Sequence[Arm],
        terms: Terms,
        selections: int = 0,
        choices: Iterable[tuple[Any, ...]] = (),
    ) -> None:
        self.terms = terms
        self.name = terms.name
        self.seed = terms.seed
        self.horizon = terms.horizon
        self.rewards = terms.rewards
        self.selections = selections
        self._rule = rule
        self._key = key_of(terms.seed)
        self._counts = terms.pending == COUNT
        self._take(arms)
        self._choices = Ledger(choices)
        self._journal: Journal | None = None
        self._lock = threading.RLock()

    def _take(self, arms: Sequence[Arm]) -> None:
        """Go on from these arms."""
        self._by_name = {arm.name: arm for arm in arms}
        self._active = [arm for arm in arms if not arm.retired]
        self._rewarded = sum(arm.rewarded for arm in arms)
        # Plays made, with pseudo-plays and open selections.
        self._made = sum(arm.plays + arm.open for arm in arms)
        self._pseudo = sum(arm.plays - arm.rewarded for arm in arms)
        for arm in arms:
            arm.waits = arm.open if self._counts else 0
        self._all_rewarded = False

    def _fresh(self) -> None:
        """Bring the counts up to date, where others change them, too."""

    def _take_number(self, more: int = 1) -> None:
        """Number the next of so many selections, where others select, too."""

    # Play ------------------------------------------------------------------------------------

    @overload
    def select(self) -> ArmName: ...

    @overload
    def select(self, count: int) -> dict[ArmName, int]: ...

    def select(self, count: int | None = None) -> ArmName | dict[ArmName, int]:
        """The arm to play now, or how often to play each arm in a batch of `count` plays.

        A batch is `count` selections, one after the other. Rewards are told by `update`, or their
        absence by `cancel`.
        """
        if count is not None:
            return self._select_batch(self._check_batch(count))
        with self._lock:
            if not self._kept:
                return self._note_selection(self._choose())
            self._fresh()
            self._take_number()
            # If the journal cannot be written, the selection was not made.
            before = self._memory()
            arm = self._choose()
            try:
                self._log([SELECT, arm.name], sync=False)
            except BaseException:
                self._restore(before)
                raise
            return self._note_selection(arm)

    @staticmethod
    def _check_batch(count: object) -> int:
        return check_whole(count, "the plays of a batch", 1, most=_MOST)

    def _select_batch(self, count: int) -> dict[ArmName, int]:
        with self._lock:
            self._fresh()
            before, made, selections = self._memory(), self._made, self.selections
            chosen = []
            try:
                for left in range(count, 0, -1):
                    self._take_number(left)
                    arm = self._choose()
                    self._note_selection(arm)
                    chosen.append(arm)
                if self._kept:
                    self._log([SELECT, *(arm.name for arm in chosen)], sync=False)
            except BaseException:
                for arm in chosen:
                    arm.end_waiting(1)
                self._made, self.selections = made, selections
                self._restore(before)
                raise
            found = Counter(arm.name for arm in chosen)
            return {arm.name: found[arm.name] for arm in self._active}

    @overload
    def choose(self) -> Choice: ...

    @overload
    def choose(self, count: int) -> list[Choice]: ...

    def choose(self, count: int | None = None) -> Choice | list[Choice]:
        """The arm to play now, with an id for its reward and the probability of the choice.

        The arm is the one that `select` would have named. `reward(id, value)` tells what came of it. With
        `count`, so many choices, one after the other.
        """
        if count is not None:
            return [self.choose() for _ in range(self._check_batch(count))]
        with self._lock:
            now = time.time()
            self._expire(now)
            chances = self._chances()
            before = self._memory()
            arm = self._choose()
            choice = Choice(arm.name, new_id(), chances[self._active.index(arm)], now)
            try:
                self._log([CHOOSE, choice.id, arm.name, choice.probability, now], sync=False)
            except BaseException:
                self._restore(before)
                raise
            self._choices.add(choice)
            self._note_selection(arm)
            return choice

    def reward(self, id: str, value: float) -> bool:
        """Count the reward of a choice; False if it was counted before.

        A reward counts once, however often it is told. One that differs from what was counted, or that comes
        after the choice expired, is refused, or replaces the first with on_duplicate="replace".
        """
        return self.reward_many([(id, value)]) == 1

    def reward_many(self, rewards: Iterable[tuple[str, float]]) -> int:
        """Count the rewards of many choices, pairs (id, reward): all, or none if one is refused.

        Returns how many were counted; the others had been before.
        """
        pairs = read_pairs(rewards, "id")
        with self._lock:
            self._expire(time.time())
            had: dict[str, float | None] = {}
            counted: list[Any] = []
            for choice, given in pairs:
                entry, value = self._choices.find(choice), self.rewards.check(given)
                closed = entry.closed or choice in had
                before = had.get(choice, entry.reward)
                if not closed or check_second(self.terms.on_duplicate, choice, before, value):
                    counted += [choice, value]
                    had[choice] = value
            if counted:
                self._log([REWARD, *counted])
            for choice, value in zip(counted[::2], counted[1::2], strict=True):
                self._note_reward(choice, value)
            return len(counted) // 2

    def probabilities(self) -> dict[ArmName, float]:
        """The probability of each arm to be chosen next, given what is known.

        Exact for indices (ties, random plays and minimum shares included), within 1e-5 for Thompson
        sampling, and from 1001 random numbers for a rule of your own.
        """
        with self._lock:
            self._fresh()
            names = [arm.name for arm in self._active]
            return dict(zip(names, self._chances(), strict=True))

    def _expire(self, now: float) -> None:
        """Close the choices that have waited too long."""
        terms = self.terms
        if terms.expire is None:
            return
        overdue = self._choices.overdue(now, terms.expire)
        if overdue:
            self._log([EXPIRE, terms.expired, *overdue], sync=False)
            self._note_expired(terms.expired, overdue)

    def _note_expired(self, value: float | None, ids: Iterable[str]) -> None:
        for choice in ids:
            if value is not None:
                self._note_reward(choice, value)
                continue
            entry = self._choices.find(choice)
            entry.closed = True
            arm = self._by_name[entry.arm]
            if arm.open:
                self._made -= 1
                arm.end_waiting(1)

    def _note_reward(self, choice: str, value: float) -> None:
        entry = self._choices.find(choice)
        arm = self._by_name[entry.arm]
        if entry.reward is None:
            self._count(arm, value)
        else:
            arm.replace(entry.reward, value)
        entry.reward, entry.closed = value, True

    def update(
        self,
        arm: ArmName,
        reward: float | None = None,
        *,
        plays: int | None = None,
        total: float | None = None,
        squares: float | None = None,
    ) -> None:
        """Count a reward of an arm, or many by their number, sum and sum of squares.

        The sum of squares may be left out for rewards of 0 and 1. No plays (plays=0, total=0) are
        nothing to count. What is refused changes nothing.
        """
        with self._lock:
            found = self._find(arm)
            if plays is None and total is None and squares is None:
                value = self.rewards.check(reward)
                if self._kept:
                    self._log([UPDATE, found.name, value])
                self._count(found, value)
                return
            if reward is not None:
                raise InputError("give one reward, or plays= and total=; not both")
            if not is_nothing(plays, total, squares):
                self._count_many([(found, self.rewards.read_counts(plays, total, squares))])

    def update_many(self, rewards: Any) -> None:
        """Count many rewards: all of them, or none if one is refused.

        Parameters
        ----------
        rewards : iterable of (arm, reward), mapping or data frame
            Pairs of an arm and a reward; or counts: a mapping from arms to (plays, total) or (plays, total,
            squares). A data frame has the columns arm and reward, or arm, plays, total and squares. The sum
            of squares may be left out for rewards of 0 and 1.
        """
        if is_frame(rewards):
            columns = read_columns(rewards)
            if "arm" in columns and "reward" in columns:
                rewards = zip(columns["arm"], columns["reward"], strict=True)
        if isinstance(rewards, Mapping) or is_frame(rewards):
            counts = read_counts(rewards, self.rewards)
            with self._lock:
                known = [(self._find(arm), item) for arm, item in counts]
                if played := [(arm, item) for arm, item in known if item != NOTHING]:
                    self._count_many(played)
            return
        given = read_pairs(rewards, "arm")  # whoever makes them may want to select meanwhile
        with self._lock:
            pairs = [(self._find(arm), self.rewards.check(reward)) for arm, reward in given]
            if self._kept and pairs:
                self._log([UPDATE, *(item for arm, value in pairs for item in (arm.name, value))])
            for arm, value in pairs:
                self._count(arm, value)

    def _count_many(self, counts: Sequence[tuple[Arm, Counts]]) -> None:
        """Count rewards of arms by their number, sum and sum of squares."""
        self._log([COUNTS, *(item for arm, values in counts for item in (arm.name, *values))])
        for arm, values in counts:
            self._made += max(0, values[0] - arm.open)
            self._rewarded += values[0]
            arm.add_counts(*values)

    def cancel(self, arm: ArmName) -> None:
        """A selection of this arm will get no reward."""
        with self._lock:
            found = self._find(arm)
            if not found.open:
                raise InputError(f"the arm {arm!r} has no open selection to cancel")
            self._log([CANCEL, found.name])
            self._made -= 1
            found.end_waiting(1)

    def add(self, arm: ArmName) -> None:
        """A new arm, or one that was retired, with the rewards that it has had."""
        with self._lock:
            name = check_arm(arm)
            known = self._by_name.get(name)
            if known is not None and not known.retired:
                raise InputError(f"the arm {name!r} is there already")
            if known is None and self.terms.begin is None:
                raise InputError(
                    f"the start of {self.name} has a number for each of its arms, so none is known "
                    f"for the arm {name!r}; begin again with a start for all arms"
                )
            arms, share = [*self.arms, name], self.terms.min_share
            if len(arms) * share > 1.0 + 1e-12:
                raise InputError(
                    f"{len(arms)} arms cannot each keep a share of {share:g}; retire another arm before "
                    f"you add {name!r}, or begin again with a smaller min_share"
                )
            self._rule.check(arms)
            self._log([ADD, name])
            if known is None:
                assert self.terms.begin is not None
                known = self._by_name[name] = Arm.begin(name, self.terms.begin)
                self._made += known.plays
                self._pseudo += known.plays
            known.retired = False
            self._note_arms()

    def retire(self, arm: ArmName) -> None:
        """Select an arm no more; rewards that are still to come are counted."""
        with self._lock:
            found = self._find(arm)
            if found.retired:
                raise InputError(f"the arm {arm!r} is retired already")
            if len(self._active) == 1:
                raise InputError(f"{arm!r} is the last arm; add another before you retire it")
            self._rule.check([name for name in self.arms if name != found.name])
            self._log([RETIRE, found.name])
            found.retired = True
            self._note_arms()

    # Looking at it ---------------------------------------------------------------------------

    @property
    def arms(self) -> tuple[ArmName, ...]:
        """The arms that can be selected."""
        with self._lock:
            self._fresh()
            return tuple(arm.name for arm in self._active)

    def __contains__(self, arm: object) -> bool:
        """Whether the arm is known, retired or not."""
        try:
            return arm in self._by_name
        except TypeError:
            return False

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise InputError(
            "a player cannot be copied or pickled: there is one of it. Save it, and load the copy"
        )

    @property
    def plays(self) -> int:
        """Rewards so far, of all arms."""
        with self._lock:
            self._fresh()
            return self._rewarded

    def indices(self) -> tuple[ArmView, ...]:
        """What the next choice rests on, an entry for each arm; those that are retired come last."""
        with self._lock:
            self._fresh()
            known = self._active
            if self._wanted() is not None:
                known = [arm for arm in known if arm.plays]
            # One arm alone is compared with none, and an index may have no value there.
            values = self._rule.indices(self._moment(known)) if len(known) > 1 else None
            index = dict(zip((arm.name for arm in known), values or (), strict=False))
            retired = [arm for arm in self._by_name.values() if arm.retired]
            return tuple(
                ArmView(
                    arm.name,
                    index.get(arm.name),
                    arm.mean,
                    arm.deviation,
                    arm.plays,
                    arm.rewarded,
                    arm.open,
                    arm.retired,
                )
                for arm in [*self._active, *retired]
            )

    def log(self) -> list[tuple[ArmName, float, float]]:
        """The choices that have had a reward, in order: arm, reward, probability; `replay` takes it.

        Those that still wait, or expired without a reward, are left out, and so are those that were forgotten
        (see `expire`). That is right if whether a reward comes does not depend on what it is.
        """
        with self._lock:
            return [
                (entry.arm, entry.reward, entry.probability)
                for entry in self._choices.entries.values()
                if entry.reward is not None
            ]

    def headline(self) -> str:
        return f"{self.name}: {len(self._active)} arms, {self.plays} rewards"

    def rows(self) -> list[dict[str, str]]:
        """The arms, as texts."""
        return [
            {
                "arm": f"{view.arm} (retired)" if view.retired else str(view.arm),
                "index": "" if view.index is None else f"{view.index:.6g}",
                "mean": f"{view.mean:.6g}",
                "plays": f"{view.plays:g}",
                "open": str(view.open),
            }
            for view in self.indices()
        ]

    def records(self) -> list[dict[str, Any]]:
        """The arms, as `indices` has them."""
        return [asdict(view) for view in self.indices()]

    def __str__(self) -> str:
        waiting = sum(arm.open for arm in self._by_name.values())
        counted = f"{self.plays} reward{'' if self.plays == 1 else 's'}"
        return f"{self.name}: {counted}, {waiting} waiting\n{self.table()}"

    # Keeping it ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All that is needed to go on, as plain data."""
        if self.terms.policy is None:
            raise InputError(
                f"{self.name} is a rule of your own, which no file can hold; what it has seen is in "
                f"indices()"
            )
        with self._lock:
            return {
                "format": FORMAT,
                "version": VERSION,
                **self.terms.policy,
                "name": self.name,
                "seed": self.seed,
                "horizon": self.horizon,
                "rewards": self.rewards.to_list(),
                "selections": self.selections,
                "began": list(self.terms.began),
                "begin": None if self.terms.begin is None else list(self.terms.begin),
                "memory": None if self._rule.memory is None else dict(self._rule.memory),
                "arms": [arm.to_dict() for arm in self._by_name.values()],
                "min_share": self.terms.min_share,
                "pending": self.terms.pending,
                "on_duplicate": self.terms.on_duplicate,
                "expire": self.terms.expire,
                "expired": self.terms.expired,
                "choices": self._choices.rows(),
                "warm": None if self.terms.warm is None else [list(row) for row in self.terms.warm],
            }

    def save(self, path: str | Path) -> Path:
        """Write the player to a .json file, over the one that is there; `load_player` reads it.

        A kill in the middle leaves the old file or the new one.
        """
        target = check_new(path, (".json",), "the file of a player", force=True)
        if target.exists() and not _is_player(target):
            raise InputError(f"{target} exists and is not a player's file; choose another name")
        # With the lock, so that of several threads the last one's state is what stays.
        with self._lock, written(target, "the player") as file:
            file.write((seal(json.dumps(self.to_dict(), indent=1))[0] + "\n").encode())
        return target

    def compact(self) -> None:
        """Start the journal again from the present state, so that it stays short."""
        with self._lock:
            if self._journal is None:
                raise InputError("the player has no journal to compact")
            self._journal.rewrite([self.to_dict()])

    def close(self) -> None:
        """Let go of the journal; nothing more can be counted in it."""
        with self._lock:
            if self._journal is not None:
                self._journal.close()

    # What it is made of ----------------------------------------------------------------------

    def _log(self, operation: list[Any], *, sync: bool = True) -> None:
        """Write down what is about to be done."""
        if self._journal is not None:
            self._journal.append(operation, sync=sync)

    def _find(self, name: ArmName) -> Arm:
        try:
            return self._by_name[name]
        except (KeyError, TypeError):
            known = ", ".join(repr(item) for item in list(self._by_name)[:10])
            raise InputError(
                f"there is no arm {name!r}; the arms are {known}"
                f"{', ...' if len(self._by_name) > 10 else ''}. Nothing was counted"
            ) from None

    def _count(self, arm: Arm, reward: float) -> None:
        if not arm.open:
            self._made += 1
        arm.add(reward)
        self._rewarded += 1

    def _note_selection(self, arm: Arm) -> ArmName:
        self.selections += 1
        self._made += 1
        arm.open += 1
        if self._counts:
            arm.waits += 1
        return arm.name

    def _note_arms(self) -> None:
        self._active = [arm for arm in self._by_name.values() if not arm.retired]
        self._all_rewarded = False

    def _moment(self, arms: Sequence[Arm]) -> Moment:
        made = self._made - self._pseudo
        left = 1.0 if self.horizon is None else max(1.0, self.horizon - made)
        return Moment(arms, self._made, left, self._key, self.selections)

    def _wanted(self) -> Arm | None:
        """The arm to play because nothing is known of some arm; None if the rule is to decide."""
        if self._all_rewarded or not self.terms.each_once:
            return None
        active = self._active
        # Pseudo-observations are no rewards; those of a history are.
        warm = self.terms.warm or ()
        had = {name for name, (plays, *_) in zip(self.terms.began, warm, strict=False) if plays}
        without = [arm for arm in active if not arm.rewarded and arm.name not in had]
        if not without:
            self._all_rewarded = True
            return None
        if self._rewarded < PATIENCE * len(active) or not self._counts:
            return min(active, key=lambda arm: 2 * arm.open + (arm not in without))
        for arm in without:
            if not arm.open:
                return arm
            if not arm.plays:
                total = sum(item.total for item in active)
                arm.mean = total / max(1.0, sum(item.plays for item in active))
        return None

    def _choose(self) -> Arm:
        active = self._active
        if len(active) == 1:
            return active[0]
        if not active:
            raise InputError("the player's state has no arm that can be played; it is damaged")
        arm = self._wanted()
        if arm is None:
            arm = active[self._rule.choose(self._moment(active))]
        if self.terms.min_share:
            key, step, count = self._key, self.selections, len(active)
            if unit(key, step, CHOICES + 2) < count * self.terms.min_share:
                arm = active[below(key, step, CHOICES + 3, count)]
        return arm

    def _chances(self) -> list[float]:
        """The probability of each arm that can be selected, as _choose would."""
        active = self._active
        if len(active) == 1:
            return [1.0]
        wanted = self._wanted()
        if wanted is not None:
            chances = [float(arm is wanted) for arm in active]
        else:
            chances = self._rule.chances(self._moment(active))
        # Of arms that several processes added at once there may be too many.
        share = min(self.terms.min_share, 1.0 / len(active))
        return [share + (1.0 - len(active) * share) * chance for chance in chances]

    def _memory(self) -> tuple[dict[str, Any], list[tuple[int, ...]]] | None:
        """What the rule remembers, as it is now."""
        if self._rule.memory is None:
            return None
        return dict(self._rule.memory), [arm.memory for arm in self._by_name.values()]

    def _restore(self, memory: tuple[dict[str, Any], list[tuple[int, ...]]] | None) -> None:
        if memory is not None:
            self._rule.memory = memory[0]
            for arm, kept in zip(self._by_name.values(), memory[1], strict=True):
                arm.memory = kept

    # Going on --------------------------------------------------------------------------------

    def attach(self, journal: Journal, operations: Sequence[Any]) -> None:
        """Do again what a journal says, then write to it."""
        for number, operation in enumerate(operations, start=2):
            try:
                self._redo(operation)
            except (InputError, LookupError, TypeError, ValueError) as error:
                raise InputError(f"{journal.path}, line {number}: {error}") from None
        self._journal, self._kept = journal, True

    def _redo(self, operation: Any) -> None:
        word, *values = operation
        if word == SELECT:
            for value in values:
                arm = self._find(value)
                if self._rule.memory is not None:
                    arm = self._choose()
                if arm.name != value:
                    raise InputError(f"another arm was selected than {value!r}; it is damaged")
                self._note_selection(arm)
        elif word == UPDATE:
            self.update_many(zip(values[::2], values[1::2], strict=True))
        elif word == CHOOSE:
            name, arm_name, probability, at = values
            self._redo([SELECT, arm_name])
            self._choices.add(Choice(arm_name, name, probability, at))
        elif word == REWARD:
            for choice, value in zip(values[::2], values[1::2], strict=True):
                self._note_reward(choice, self.rewards.check(value))
        elif word == EXPIRE:
            self._note_expired(values[0], values[1:])
        elif word == COUNTS:
            rows = zip(*(values[place::4] for place in range(4)), strict=True)
            self._count_many(
                [(self._find(arm), self.rewards.read_counts(*counts)) for arm, *counts in rows]
            )
        else:
            {CANCEL: self.cancel, ADD: self.add, RETIRE: self.retire}[word](values[0])


def _is_player(path: Path) -> bool:
    try:
        return f'"{FORMAT}"' in path.read_text(encoding="utf-8")[:200]
    except (OSError, UnicodeDecodeError):
        return False
