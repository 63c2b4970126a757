"""The workers of a cluster: their threads, their versions, and their signs of life."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

from ..errors import WorkerError
from ..workers import compare, describe

# Seconds without a worker, or without an answer from the scheduler, after which the cluster is lost.
PATIENCE = 6.0
# Seconds without a sign of a worker after which people are told.
_SILENCE = 12.0


class Members:
    """The workers that the scheduler knows, as of the last look."""

    def __init__(self, client: Any, announce: Callable[[str], None]) -> None:
        self.threads: dict[str, int] = {}
        self.checked: set[str] = set()
        self._client = client
        self._announce = announce
        self._processors: set[str] = set()
        self._warned = False
        # When each was last seen, by the scheduler's clock; the same, and when we noticed it.
        self._seen: dict[str, float] = {}
        self._heard: dict[str, tuple[float, float]] = {}
        self._silent: set[str] = set()

    def look(self) -> bool:
        """Ask the scheduler for its workers; return whether there are any."""
        known = self._client.sync(self._client.scheduler.identity, callback_timeout=PATIENCE / 2)
        found = known["workers"]
        self.threads = {str(name): int(worker["nthreads"]) for name, worker in found.items()}
        self._seen = {str(name): float(worker["last_seen"]) for name, worker in found.items()}
        return bool(found)

    def answer(self) -> bool:
        """Look; no answer counts as no workers."""
        with contextlib.suppress(OSError):
            return self.look()
        return False

    def check_new(self) -> None:
        """Refuse new workers whose figures would differ."""
        new = [name for name in self.threads if name not in self.checked]
        if not new:
            return
        for name, found in self._client.sync(self._describe, new).items():
            who = f"the worker {name}"
            if isinstance(found, OSError):
                continue  # it is gone again, or hangs
            if not isinstance(found, dict):
                raise WorkerError(
                    f"{who} cannot run metabandit ({type(found).__name__}: {found}); install the "
                    f"version that this process has there"
                )
            own = describe()
            self._processors |= {found.pop("processor"), own.pop("processor")}
            compare(own, found, who)
            self.checked.add(name)
        if len(self._processors) > 1 and not self._warned:
            self._warned = True
            kinds = ", ".join(sorted(self._processors))
            self._announce(
                f"processors differ ({kinds}): the last digits may depend on who did what; "
                f"NUMBA_CPU_NAME=generic in the environment of all processes makes that rare"
            )

    async def _describe(self, names: list[str]) -> dict[str, Any]:
        """Return what each worker has installed, or an OSError if it is gone or does not answer."""

        async def ask(name: str) -> Any:
            try:
                async with asyncio.timeout(PATIENCE / 2):
                    found = await self._client._run(describe, workers=[name], on_error="return")
                return found.get(name, OSError("gone"))
            except OSError as error:  # TimeoutError is one
                return error

        return dict(zip(names, await asyncio.gather(*map(ask, names)), strict=True))

    def listen(self) -> None:
        """Tell people once if a worker is silent: the work it was given waits for it."""
        now = time.monotonic()
        for name, moment in self._seen.items():
            before = self._heard.get(name)
            if before is None or before[0] != moment:
                self._heard[name] = moment, now
                self._silent.discard(name)
            elif now - before[1] > _SILENCE and name not in self._silent:
                self._silent.add(name)
                self._announce(
                    f"the worker {name} has not been heard of for {_SILENCE:.0f} s: end it if it hangs, and others do "
                    f"its work"
                )
