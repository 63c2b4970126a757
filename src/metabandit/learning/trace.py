"""The trace of a run: one line of JSON for its settings, then one per generation.

A run is resumed from it. An optimiser is deterministic, so asking it and telling it the recorded values
again brings it to the state in which it was stopped; nothing is judged twice.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np

from ..checkpoint import check_resumable, check_same
from ..data import read_data
from ..errors import InputError
from ..journal import Journal
from ..priors.families import Array

VERSION = 1


def digest(candidates: Array) -> str:
    """A fingerprint of candidates, bit for bit."""
    return hashlib.sha256(np.ascontiguousarray(candidates).tobytes()).hexdigest()[:16]


def trace_path(out: Path) -> Path:
    """Where the trace of a policy file is: policy.json has policy.trace.jsonl beside it."""
    return out.parent / f"{out.stem}.trace.jsonl"


def write_values(values: Array) -> list[float | None]:
    """Values for JSON, which has no infinity."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def read_values(values: list[float | None]) -> Array:
    return np.array([math.inf if value is None else value for value in values], dtype=np.float64)


# What a generation is resumed from, with its types.
_RECORD: dict[str, Any] = {
    "values": tuple[float | None, ...],
    "space": str,
    "horizon": int,
    "noise": float,
    "problems": int,
    "runs": int,
    "work": float,
    "seconds": float,
    "candidates": str,
}


class Trace:
    """The records of a run, in memory and, with a path, on disk as they come."""

    def __init__(self, settings: dict[str, Any], path: Path | None, *, resume: bool) -> None:
        self.settings = settings
        self.path = path
        self.records: list[dict[str, Any]] = []
        self.replayed = 0
        self.journal: Journal | None = None
        if path is None:
            return
        if resume:
            check_resumable(path)
        self.journal = Journal(path)
        if resume:
            self._load(path, self.journal)
        else:
            self.journal.clear()
            self.journal.append({"trace": VERSION, "settings": settings})

    def _load(self, path: Path, journal: Journal) -> None:
        try:
            values = journal.read()
            header = values[0]
            saved, version = dict(header["settings"]), header["trace"]
            for record in values[1:]:
                for name, kind in _RECORD.items():
                    read_data(kind, record[name])
        except (ValueError, LookupError, TypeError):
            raise self._damaged() from None
        if version != VERSION:
            raise InputError(f"the trace {path} has version {version!r}, not {VERSION}")
        check_same(saved, self.settings, path, "run")
        self.records = values[1:]
        self.replayed = len(self.records)

    def _damaged(self) -> InputError:
        return InputError(
            f"the trace {self.path} is damaged and cannot be resumed; start over with --force"
        )

    def close(self) -> None:
        """Let go of the file; one without any generation is removed."""
        if self.journal is not None:
            if not self.records:
                self.journal.path.unlink(missing_ok=True)
            self.journal.close()
            self.journal = None

    def recall(self, generation: int, candidates: Array) -> dict[str, Any] | None:
        """The record of a generation that was judged before, if these are its candidates."""
        if generation >= self.replayed:
            return None
        record = self.records[generation]
        if record.get("candidates") != digest(candidates):
            raise InputError(
                f"{self.path} cannot be resumed: generation {generation} had other candidates, so "
                f"it was made by another version or on another kind of machine; start over "
                f"with --force"
            )
        if len(record["values"]) != len(candidates):
            raise self._damaged()
        return record

    def add(self, record: dict[str, Any]) -> None:
        """Keep the record of a generation, on disk before anything else happens."""
        self.records.append(record)
        if self.journal is not None:
            self.journal.append(record)

    @property
    def seconds(self) -> float:
        """How long the generations took, in this run and in those before it was resumed."""
        return float(sum(record["seconds"] for record in self.records))
