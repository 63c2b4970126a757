"""An experiment that is served: its player, and what a page shows of it.

Calls that arrive while one is under way are made together: a database takes a few milliseconds to make a
transaction durable, however much is in it, and with many clients waiting one transaction serves all of them.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from starlette.concurrency import run_in_threadpool

from ..errors import InputError
from ..play import ArmName, ArmView, Choice
from ..play.shared import SharedPlayer

A = TypeVar("A")
B = TypeVar("B")

# Parts of the time that shares are shown for.
_PARTS = 48
# Counting all choices takes long where there are many: it is done again after so many times as long.
_REST = 20.0
_NORMAL = 1.959963984540054
# Calls that are made together at the most.
_MOST = 500


def interval(view: ArmView, *, binary: bool) -> tuple[float, float] | None:
    """A 95 % interval of an arm's mean: Wilson's for rewards of 0 and 1, else mean +- 1.96 errors."""
    n, mean = view.plays, view.mean
    if binary and n > 0.0:
        z = _NORMAL * _NORMAL / n
        half = _NORMAL * math.sqrt(mean * (1.0 - mean) / n + 0.25 * z / n)
        middle = mean + 0.5 * z
        return max(0.0, (middle - half) / (1.0 + z)), min(1.0, (middle + half) / (1.0 + z))
    if n <= 1.0:
        return None
    half = _NORMAL * view.deviation / math.sqrt(n - 1.0)
    return mean - half, mean + half


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


class Gathering(Generic[A, B]):
    """Makes calls of a function that takes many arguments and gives as many answers."""

    def __init__(self, work: Callable[[Sequence[A]], Sequence[B]]) -> None:
        self._work = work
        self._waiting: list[tuple[A, asyncio.Future[B]]] = []
        self._task: asyncio.Task[None] | None = None

    async def call(self, argument: A) -> B:
        """The answer for one argument."""
        answer: asyncio.Future[B] = asyncio.get_running_loop().create_future()
        self._waiting.append((argument, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._go_on())
        return await answer

    async def _go_on(self) -> None:
        while self._waiting:
            now, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            try:
                found = await run_in_threadpool(self._work, [argument for argument, _ in now])
            except Exception as error:
                for _, answer in now:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_, answer), value in zip(now, found, strict=True):
                if not answer.done():  # its client may have gone
                    answer.set_result(value)
        self._task = None


class Served:
    """An experiment of the store."""

    def __init__(self, player: SharedPlayer) -> None:
        self.player = player
        self.name = player.experiment.name
        self.choosing = Gathering(self._choose)
        self.rewarding = Gathering(player.reward_each)
        self._history: dict[str, Any] = {}
        self._history_until = -math.inf

    def _choose(self, asked: Sequence[None]) -> list[Choice]:
        choices: list[Choice] = self.player.choose(len(asked))
        return choices

    def batch(self, plays: int) -> dict[ArmName, int]:
        """How often to play each arm; it is in the store before the call returns."""
        found = self.player.select(plays)
        self.player.flush()
        return found

    def indices(self) -> list[dict[str, Any]]:
        """Each arm with its index, and the probability that it is chosen next."""
        player = self.player
        views = player.indices()
        chances = player.probabilities()
        return [
            {
                "arm": view.arm,
                "index": _finite(view.index),
                "probability": chances.get(view.arm, 0.0),
                "retired": view.retired,
            }
            for view in views
        ]

    def state(self) -> dict[str, Any]:
        """What is known of the experiment, and what the policy would do next."""
        player, terms = self.player, self.player.terms
        views = player.indices()
        try:
            chances, problem = player.probabilities(), None
        except InputError as error:  # an index without a value
            chances, problem = {}, str(error)
        rows = [
            {
                "arm": view.arm,
                "chosen": view.rewarded + view.open,
                "plays": view.plays,
                "rewarded": view.rewarded,
                "open": view.open,
                "mean": view.mean if view.plays else None,
                "deviation": view.deviation if view.plays else None,
                "interval": interval(view, binary=terms.rewards.binary),
                "index": _finite(view.index),
                "probability": chances.get(view.arm),
                "retired": view.retired,
            }
            for view in views
        ]
        return {
            "experiment": self.name,
            "policy": player.name,
            "horizon": player.horizon,
            "rewards": terms.rewards.to_list(),
            "seed": player.seed,
            "min_share": terms.min_share,
            "pending": terms.pending,
            "on_duplicate": terms.on_duplicate,
            "expire": terms.expire,
            "expired": terms.expired,
            "rewarded": sum(view.rewarded for view in views),
            "open": sum(view.open for view in views),
            "arms": rows,
            "problem": problem,
            "time": time.time(),
        }

    def history(self) -> dict[str, Any]:
        """How often each arm was chosen, in equal parts of the time."""
        began = time.monotonic()
        if began < self._history_until:
            return self._history
        first, last, counts = self.player.experiment.shares(_PARTS)
        names = list(self.player._by_name)
        self._history = {
            "begin": first,
            "end": last,
            "parts": _PARTS,
            "arms": [
                {"arm": names[place], "choices": counts[place]}
                for place in sorted(counts)
                if place < len(names)
            ],
        }
        now = time.monotonic()
        self._history_until = now + _REST * (now - began)
        return self._history
