"""What is done so far, as arrays in one file, from which a run goes on after a kill."""

from __future__ import annotations

import json
import time
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InputError
from .files import written

# It is written this often, in seconds; more rarely if that takes its time.
_WRITTEN = 2.0
_SHARE = 0.05


class Checkpoint:
    """The file of a run: its settings, and the state that it has reached.

    settings: what a run must have in common with the one that it goes on with
    path: None if nothing is to be kept
    run: what it is, for messages: "search"
    """

    def __init__(self, settings: Mapping[str, Any], path: Path | None, run: str) -> None:
        self.settings = json.dumps(settings, sort_keys=True)
        self.path = path
        self.run = run
        self.next = time.monotonic() + _WRITTEN

    def write(self, state: Callable[[], Mapping[str, Any]], *, at_once: bool = False) -> None:
        """Keep a state, if the last one is a while old; a crash leaves the old one."""
        if self.path is None or (time.monotonic() < self.next and not at_once):
            return
        begun = time.monotonic()
        settings = np.frombuffer(self.settings.encode(), np.uint8)
        with written(self.path, f"the state of the {self.run}") as file:
            np.savez(file, settings=settings, **state())
        now = time.monotonic()
        self.next = now + max(_WRITTEN, (now - begun) / _SHARE)

    def read(self, names: Collection[str]) -> dict[str, npt.NDArray[Any]]:
        """The state on disk, which has these arrays."""
        assert self.path is not None
        if not self.path.exists():
            raise InputError(
                f"there is nothing to resume: {self.path} does not exist; begin without --resume"
            )
        try:
            with np.load(self.path, allow_pickle=False) as content:
                saved = json.loads(bytes(content["settings"]))
                state = {key: content[key] for key in content.files if key != "settings"}
            if set(state) != set(names):
                raise ValueError
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            raise InputError(
                f"the state {self.path} is damaged and cannot be resumed; begin anew with --force"
            ) from None
        for key, value in json.loads(self.settings).items():
            if saved.get(key) != value:
                raise InputError(
                    f"{self.path} is of another {self.run}: its {key} is {saved.get(key)!r}, not "
                    f"{value!r}; give the same options to resume it, or begin anew with --force"
                )
        return state

    def remove(self) -> None:
        """What is finished needs no state."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
