"""What adapters share: a player whose arms come and go, and an import that may be missing.

Other libraries name the arms with each pull, give rewards of arms that were never pulled, replay logs
in which most pulls get no reward, and copy or pickle a policy in the middle of play.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import InputError
from ..play import ArmName, Player
from ..play.players import restore_player
from ..policies import Policy, policy


@contextmanager
def needs(library: str) -> Iterator[None]:
    """Import a library in this block: if it is missing, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise
        raise InputError(
            f"{library} is not installed: pip install 'metabandit[{library}]'"
        ) from None


class LatePlayer:
    """A player that is made when its arms are known; earlier rewards wait for it.

    `settings` are the keyword arguments of `Policy.player`.
    """

    def __init__(self, policy: str | Policy, **settings: Any) -> None:
        self.player: Player | None = None
        self._policy = policy
        self._settings = settings
        self._offered: tuple[ArmName, ...] = ()
        self._early: list[tuple[ArmName, float]] = []

    def pull(self, arms: Iterable[ArmName]) -> ArmName:
        """Return the arm to play, of those that are offered.

        A pull is a question: only rewards count, which in a replayed log may never come.
        """
        player = self.offer(arms)
        arm = player.select()
        player.cancel(arm)
        return arm

    def offer(self, arms: Iterable[ArmName]) -> Player:
        """Return the player with exactly these arms to select from."""
        offered = tuple(arms)
        if self.player is None:
            player = policy(self._policy).player(offered, **self._settings)
            for _, reward in self._early:
                player.rewards.check(reward)
            early, self._early = self._early, []
            self.player = player
            for arm, reward in early:
                self.update(arm, reward)
        if offered != self._offered:
            wanted = dict.fromkeys(offered)
            active = self.player.arms
            for arm in wanted:
                if arm not in active:
                    self.player.add(arm)
            for arm in active:
                if arm not in wanted:
                    self.player.retire(arm)
            self._offered = offered
        return self.player

    def check(self, reward: float) -> None:
        """Refuse a reward that does not suit the policy, if that is known already."""
        if self.player is not None:
            self.player.rewards.check(reward)

    def update(self, arm: ArmName, reward: float) -> None:
        """Count a reward of any arm."""
        if self.player is None:
            self._early.append((arm, reward))
            return
        self.player.rewards.check(reward)
        # An arm that was never offered is known by its rewards from now on, and not selected.
        new = arm not in self.player
        if new:
            self.player.add(arm)
        self.player.update(arm, reward)
        if new:
            self.player.retire(arm)

    def update_many(
        self, arms: Iterable[ArmName], results: Iterable[tuple[ArmName, float]]
    ) -> None:
        """Offer the arms, and count rewards of theirs: all of them, or none if one is refused."""
        self.offer(arms).update_many(results)

    def __getstate__(self) -> dict[str, Any]:
        # A player holds a lock and compiled code; what it needs to go on is plain data.
        state = dict(self.__dict__)
        state["player"] = None if self.player is None else json.dumps(self.player.to_dict())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if state["player"] is not None:
            self.player = restore_player(json.loads(state["player"]), "the copied player")
