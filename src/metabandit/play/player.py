"""A policy in live use: it selects arms, and takes rewards as they come."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import check_new, written
from ..journal import Journal
from ..numerics import key_of
from ..policies.file import PLAYER_FORMAT as FORMAT
from ..rewards import Rewards
from ..settings import check_whole
from ..tables import text_table
from .arm import Arm, ArmName
from .rules import Moment, Rule

VERSION = 1
_PATIENCE = 10
# What may stand in a journal: the operations of a player, by their first word.
SELECT, UPDATE, CANCEL, ADD, RETIRE = "select", "update", "cancel", "add", "retire"


@dataclass(frozen=True)
class ArmView:
    """An arm as a player sees it.

    index: what the policy compares, None if it compares nothing, or the arm awaits its first reward
    mean, deviation, plays: of its rewards, the start's pseudo-observations included
    rewarded: rewards so far; open: selections that have had none yet
    """

    arm: ArmName
    index: float | None
    mean: float
    deviation: float
    plays: float
    rewarded: int
    open: int
    retired: bool


def read_arms(arms: object) -> tuple[ArmName, ...]:
    """The names of arms: texts or whole numbers, all different; a number of arms stands for 0, 1, ..."""
    if isinstance(arms, int) and not isinstance(arms, bool):
        return tuple(range(check_whole(arms, "the number of arms", 1, most=1_000_000)))
    unordered = isinstance(arms, (set, frozenset))
    if isinstance(arms, (str, bytes)) or unordered or not isinstance(arms, Iterable):
        raise InputError(f"arms are a list of names, in order, or how many there are; not {arms!r}")
    names = tuple(check_arm(arm) for arm in arms)
    if not names:
        raise InputError("there must be at least one arm; arms is empty")
    seen: set[ArmName] = set()
    for name in names:
        if name in seen:
            raise InputError(f"the names of arms must be different; {name!r} is there twice")
        seen.add(name)
    return names


def check_arm(arm: object) -> ArmName:
    """The name of an arm, or an error."""
    if isinstance(arm, str):
        try:
            arm.encode()
        except UnicodeEncodeError:
            raise InputError(f"the name of an arm must be valid Unicode, not {arm!r}") from None
        return str(arm)
    whole = hasattr(arm, "__index__") and not isinstance(arm, bool)
    if not whole or getattr(arm, "ndim", 0) != 0:
        raise InputError(f"an arm is called by a text or a whole number, not {arm!r}")
    return check_whole(arm, "the number of an arm", -(2**63), most=2**63 - 1)


@dataclass(frozen=True)
class Terms:
    """What a player was made with, and keeps.

    policy: the policy as its file has it, and the prior; None for a person's own rule
    each_once: whether each arm is played once before the rule is asked
    horizon: plays in all, if known; rewards: those that can come
    begin: the pseudo-observations of an arm that is added; None if arms begin differently
    began: the arms that it began with
    """

    name: str
    policy: dict[str, Any] | None
    each_once: bool
    seed: int
    horizon: int | None
    rewards: Rewards
    begin: Sequence[float] | None
    began: tuple[ArmName, ...]


class Player:
    """A policy in live use. `Policy.player` makes one, `load_player` brings one back.

    `select()` names the arm to play, `update(arm, reward)` tells what came of it. Rewards may come
    late, in any order, in batches, or for arms that were not selected here; several selections may
    be open at once. An arm is judged by the rewards that it has had: open selections count only
    while each arm is to be played once. Threads may share a player.
    """

    def __init__(self, rule: Rule, arms: Sequence[Arm], terms: Terms, selections: int = 0) -> None:
        self.terms = terms
        self.name = terms.name
        self.seed = terms.seed
        self.horizon = terms.horizon
        self.rewards = terms.rewards
        self.selections = selections
        self._rule = rule
        self._key = key_of(terms.seed)
        self._by_name = {arm.name: arm for arm in arms}
        self._active = [arm for arm in arms if not arm.retired]
        self._plays = sum(arm.plays for arm in arms)
        self._rewarded = sum(arm.rewarded for arm in arms)
        self._all_rewarded = False
        self._journal: Journal | None = None
        self._lock = threading.RLock()

    # Play ------------------------------------------------------------------------------------

    def select(self) -> ArmName:
        """The arm to play now. Its reward is told by `update`, or its absence by `cancel`."""
        with self._lock:
            if self._journal is None:
                return self._note_selection(self._choose())
            # If the journal cannot be written, the selection was not made.
            before = self._memory()
            arm = self._choose()
            try:
                self._journal.append([SELECT, arm.name], sync=False)
            except BaseException:
                self._restore(before)
                raise
            return self._note_selection(arm)

    def update(self, arm: ArmName, reward: float) -> None:
        """Count a reward of an arm; one that is refused changes nothing."""
        with self._lock:
            found = self._find(arm)
            value = self.rewards.check(reward)
            if self._journal is not None:
                self._journal.append([UPDATE, found.name, value])
            self._count(found, value)

    def update_many(self, rewards: Iterable[tuple[ArmName, float]]) -> None:
        """Count many rewards, pairs (arm, reward): all of them, or none if one is refused."""
        if not isinstance(rewards, Iterable):
            raise InputError(f"rewards are pairs (arm, reward), not {rewards!r}")
        given = list(rewards)  # whoever makes them may want to select meanwhile
        with self._lock:
            pairs = []
            for pair in given:
                if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                    raise InputError(
                        f"rewards are pairs (arm, reward), not {pair!r}; nothing was counted"
                    )
                pairs.append((self._find(pair[0]), self.rewards.check(pair[1])))
            if self._journal is not None and pairs:
                items = (item for arm, value in pairs for item in (arm.name, value))
                self._journal.append([UPDATE, *items])
            for arm, value in pairs:
                self._count(arm, value)

    def cancel(self, arm: ArmName) -> None:
        """A selection of this arm will get no reward."""
        with self._lock:
            found = self._find(arm)
            if not found.open:
                raise InputError(f"the arm {arm!r} has no open selection to cancel")
            self._log([CANCEL, found.name])
            found.open -= 1

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
            self._rule.check([*self.arms, name])
            self._log([ADD, name])
            if known is None:
                assert self.terms.begin is not None
                known = self._by_name[name] = Arm.begin(name, self.terms.begin)
                self._plays += known.plays
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
        return self._rewarded

    def indices(self) -> tuple[ArmView, ...]:
        """What the next choice rests on, an entry for each arm; those that are retired come last."""
        with self._lock:
            known = self._known()
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

    def __str__(self) -> str:
        rows = [
            [
                f"{view.arm} (retired)" if view.retired else str(view.arm),
                "" if view.index is None else f"{view.index:.6g}",
                f"{view.mean:.6g}",
                f"{view.plays:g}",
                str(view.open),
            ]
            for view in self.indices()
        ]
        table = text_table(["arm", "index", "mean", "plays", "open"], rows, align="lr")
        return f"{self.name}: {self.plays} rewards, {self.selections} selections\n{table}"

    def __repr__(self) -> str:
        return f"<Player {self.name}: {len(self._active)} arms, {self.plays} rewards>"

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
            }

    def save(self, path: str | Path) -> Path:
        """Write the player to a .json file, over the one that is there; `load_player` reads it.

        A kill in the middle leaves the old file or the new one.
        """
        target = check_new(path, (".json",), "the file of a player", force=True)
        if target.exists() and not _is_player(target):
            raise InputError(f"{target} is there and is no player's file; choose another name")
        # With the lock, so that of several threads the last one's state is what stays.
        with self._lock, written(target, "the player") as file:
            file.write((json.dumps(self.to_dict(), indent=1) + "\n").encode())
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

    def _log(self, operation: list[Any]) -> None:
        if self._journal is not None:
            self._journal.append(operation)

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
        arm.add(reward)
        self._plays += 1.0
        self._rewarded += 1

    def _note_selection(self, arm: Arm) -> ArmName:
        self.selections += 1
        arm.open += 1
        return arm.name

    def _note_arms(self) -> None:
        self._active = [arm for arm in self._by_name.values() if not arm.retired]
        self._all_rewarded = False

    def _known(self) -> list[Arm]:
        """The arms that the rule can judge."""
        if not self.terms.each_once:
            return self._active
        return [arm for arm in self._active if arm.rewarded]

    def _moment(self, arms: list[Arm]) -> Moment:
        left = 1.0 if self.horizon is None else max(1.0, float(self.horizon - self._rewarded))
        return Moment(arms, self._plays, left, len(self._active), self._key, self.selections)

    def _choose(self) -> Arm:
        active = self._active
        if len(active) == 1:
            return active[0]
        known = active
        if self.terms.each_once and not self._all_rewarded:
            known = self._known()
            self._all_rewarded = len(known) == len(active)
            for arm in active:
                # Its reward may be lost: after 10 rewards of each arm it comes round again, after 30, ...
                patience = _PATIENCE * len(active) * ((1 << min(arm.open, 60)) - 1)
                if not arm.rewarded and self._rewarded >= patience:
                    return arm
            if len(known) < 2:
                # There is nothing to compare: the arm with the fewest open selections, in order.
                return known[0] if known else min(active, key=lambda arm: arm.open)
        return known[self._rule.choose(self._moment(known))]

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
        self._journal = journal

    def _redo(self, operation: Any) -> None:
        word, *values = operation
        if word == SELECT:
            arm = self._find(values[0])
            if self._rule.memory is not None:
                arm = self._choose()
            if arm.name != values[0]:
                raise InputError(f"another arm was selected than {values[0]!r}; it is damaged")
            self._note_selection(arm)
        elif word == UPDATE:
            self.update_many(zip(values[::2], values[1::2], strict=True))
        else:
            {CANCEL: self.cancel, ADD: self.add, RETIRE: self.retire}[word](values[0])


def _is_player(path: Path) -> bool:
    try:
        return f'"{FORMAT}"' in path.read_text(encoding="utf-8")[:200]
    except (OSError, UnicodeDecodeError):
        return False
