"""Refuse what does not fit in memory, or in a month, before anything is allocated."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import InputError

# Seconds of one core that anything may take: 30 days.
LONGEST = 30 * 86400.0


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None


def free_memory() -> int:
    """Return the bytes that are free on the machine, or in its container."""
    free = []
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    free.append(1024 * int(line.split()[1]))
                    break
    except OSError:
        pass
    if not free:
        free.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    limit, used = _number("/sys/fs/cgroup/memory.max"), _number("/sys/fs/cgroup/memory.current")
    if limit is not None and used is not None:
        free.append(limit - used)
    return min(free)


def check_memory(needed: int, what: str, remedy: str) -> None:
    """Refuse what needs more memory than is free."""
    free = free_memory()
    if needed > free:
        raise InputError(
            f"{what} needs about {needed / 1e9:.3g} GB of memory, {free / 1e9:.3g} GB are free; "
            f"{remedy}"
        )


def check_time(seconds: float, what: str, remedy: str) -> None:
    """Refuse what takes one core longer than a month."""
    if not seconds <= LONGEST:
        raise InputError(
            f"{what} would take about {duration(seconds)} on one core, and "
            f"{duration(LONGEST)} are the most; {remedy}"
        )


def duration(seconds: float) -> str:
    """Return a time as people say it."""
    for unit, size in (
        ("years", 365.25 * 86400),
        ("days", 86400),
        ("hours", 3600),
        ("minutes", 60),
    ):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} seconds"
