"""Calls that arrive while one is under way are made together, in one transaction.

A database takes a few milliseconds to make a transaction durable, however much is in it. With many clients
waiting, one transaction serves all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool

A = TypeVar("A")
B = TypeVar("B")

# Calls that are made together at the most.
_MOST = 500


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
