"""The state of a run, as arrays in one file, from which it can resume after a kill."""

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

# Seconds between two writes, and the most of the time that writing may take.
_WRITTEN = 2.0
_SHARE = 0.05


class Checkpoint:
    """The file of a run: its settings and its state.

    A run can only resume one with the same `settings`. With no `path` nothing is kept. `run` names the
    kind of run in messages, as in "search".
    """

    def __init__(self, settings: Mapping[str, Any], path: Path | None, run: str) -> None:
        self.settings = json.dumps(settings, sort_keys=True)
        self.path = path
        self.run = run
        self.next = time.monotonic() + _WRITTEN

    def write(self, state: Callable[[], Mapping[str, Any]], *, at_once: bool = False) -> None:
        """Write the state if it is time to; a crash leaves the old one."""
        if self.path is None or (time.monotonic() < self.next and not at_once):
            return
        begun = time.monotonic()
        settings = np.frombuffer(self.settings.encode(), np.uint8)
        with written(self.path, f"the state of the {self.run}") as file:
            np.savez(file, settings=settings, **state())
        now = time.monotonic()
        self.next = now + max(_WRITTEN, (now - begun) / _SHARE)

    def read(self, names: Collection[str]) -> dict[str, npt.NDArray[Any]]:
        """Read the state, which must consist of these arrays."""
        assert self.path is not None
        check_resumable(self.path)
        try:
            with np.load(self.path, allow_pickle=False) as content:
                saved = json.loads(bytes(content["settings"]))
                state = {key: content[key] for key in content.files if key != "settings"}
            if set(state) != set(names):
                raise ValueError
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            raise InputError(
                f"the state {self.path} is damaged and cannot be resumed; start over with --force"
            ) from None
        check_same(saved, json.loads(self.settings), self.path, self.run)
        return state


def check_resumable(path: Path) -> None:
    """Refuse to resume a run that left no file."""
    if not path.exists():
        raise InputError(
            f"there is nothing to resume: {path} does not exist; begin without --resume"
        )


def check_same(saved: Mapping[str, Any], settings: Mapping[str, Any], path: Path, run: str) -> None:
    """Refuse to resume a run that was saved with other settings."""
    for key, value in settings.items():
        if saved.get(key) != value:
            raise InputError(
                f"{path} is of another {run}: its {key} is {saved.get(key)!r}, not {value!r}; give "
                f"the same options to resume it, or start over with --force"
            )
