"""The record of a run: one line of JSON for its settings, then one for each generation.

The lines are also what a run is resumed from. An optimiser is deterministic, so asking it and telling
it the recorded values again brings it to the state in which it was stopped; nothing is judged twice.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..families import Array

VERSION = 1


def digest(candidates: Array) -> str:
    """A fingerprint of candidates, bit for bit."""
    return hashlib.sha256(np.ascontiguousarray(candidates).tobytes()).hexdigest()[:16]


def trace_path(out: Path) -> Path:
    """Where the trace of a policy file is: policy.json has policy.trace.jsonl beside it."""
    return out.with_name(f"{out.stem}.trace.jsonl")


def write_values(values: Array) -> list[float | None]:
    """Values for JSON, which has no infinity."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def read_values(values: list[float | None]) -> Array:
    return np.array([math.inf if value is None else value for value in values], dtype=np.float64)


class Trace:
    """The records of a run, in memory and, with a path, on disk as they come."""

    def __init__(self, settings: dict[str, Any], path: Path | None, *, resume: bool) -> None:
        self.settings = settings
        self.path = path
        self.records: list[dict[str, Any]] = []
        self.replayed = 0
        if path is None:
            return
        if resume:
            self._load(path)
        else:
            self._write([{"trace": VERSION, "settings": settings}])

    def _load(self, path: Path) -> None:
        try:
            content = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InputError(
                f"there is nothing to resume: {path} does not exist; begin without --resume"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the trace {path} cannot be read: {error}") from None
        # A run that is killed may leave half a line, without its end.
        lines = content.split("\n")[:-1]
        try:
            values = [json.loads(line) for line in lines]
            header = values[0]
            saved, version = header["settings"], header["trace"]
        except (ValueError, LookupError, TypeError):
            raise InputError(
                f"the trace {path} is damaged and cannot be resumed; begin anew with --force"
            ) from None
        if version != VERSION:
            raise InputError(f"the trace {path} has version {version!r}, not {VERSION}")
        for key, value in self.settings.items():
            if saved.get(key) != value:
                raise InputError(
                    f"{path} is of another run: its {key} is {saved.get(key)!r}, not {value!r}; "
                    f"give the same options to resume it, or begin anew with --force"
                )
        self.records = values[1:]
        self.replayed = len(self.records)
        self._write(values)

    def _write(self, values: list[dict[str, Any]]) -> None:
        assert self.path is not None
        aside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            aside.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
            os.replace(aside, self.path)
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror}") from None
        finally:
            aside.unlink(missing_ok=True)

    def recall(self, generation: int, candidates: Array) -> dict[str, Any] | None:
        """The record of a generation that was judged before, if these are its candidates."""
        if generation >= self.replayed:
            return None
        record = self.records[generation]
        if record.get("candidates") != digest(candidates):
            raise InputError(
                f"{self.path} cannot be resumed: generation {generation} had other candidates, so "
                f"it was made by another version or on another kind of machine; begin anew with "
                f"--force"
            )
        return record

    def add(self, record: dict[str, Any]) -> None:
        """Keep the record of a generation, on disk before anything else happens."""
        self.records.append(record)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
                file.flush()
                os.fsync(file.fileno())

    @property
    def seconds(self) -> float:
        """How long the generations took, in this run and in those before it was resumed."""
        return float(sum(record["seconds"] for record in self.records))
