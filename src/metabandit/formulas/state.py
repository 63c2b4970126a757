"""The state of a search on disk, from which it goes on after a kill."""

from __future__ import annotations

import json
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..files import written
from .strategies import Strategy

# A state is written this often, in seconds.
_WRITTEN = 2.0


def state_path(out: Path) -> Path:
    """Where a search that writes best.json keeps its state: best.search.npz beside it."""
    return out.with_name(f"{out.stem}.search.npz")


class State:
    """The state of a search on disk, from which it can go on."""

    def __init__(self, settings: dict[str, Any], path: Path | None) -> None:
        self.settings = json.dumps(settings, sort_keys=True)
        self.path = path
        self.written = time.monotonic()

    def write(self, strategy: Strategy, *, at_once: bool = False) -> None:
        """Keep the state, if the last one is a while old; a crash leaves the old one."""
        recent = time.monotonic() - self.written < _WRITTEN
        if self.path is None or (recent and not at_once):
            return
        settings = np.frombuffer(self.settings.encode(), np.uint8)
        with written(self.path, "the state of the search") as file:
            np.savez(file, settings=settings, **strategy.state())
        self.written = time.monotonic()

    def read(self, strategy: Strategy) -> None:
        """Go on from the state on disk."""
        assert self.path is not None
        if not self.path.exists():
            raise InputError(
                f"there is nothing to resume: {self.path} does not exist; begin without --resume"
            )
        try:
            with np.load(self.path, allow_pickle=False) as content:
                saved = json.loads(bytes(content["settings"]))
                state = {key: content[key] for key in content.files if key != "settings"}
            known = strategy.state()
            if set(state) != set(known):
                raise ValueError
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            raise InputError(
                f"the state {self.path} is damaged and cannot be resumed; begin anew with --force"
            ) from None
        for key, value in json.loads(self.settings).items():
            if saved.get(key) != value:
                raise InputError(
                    f"{self.path} is of another search: its {key} is {saved.get(key)!r}, not {value!r}; "
                    f"give the same options to resume it, or begin anew with --force"
                )
        strategy.restore(state)

    def remove(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)
