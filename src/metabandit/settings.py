"""Read and check settings: `name:key=value,key=value`, numbers, threads, seeds, horizons."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from .errors import InputError, about, nearest


def read_settings(text: str, kind: str) -> tuple[str, dict[str, str]]:
    """Split `name:key=value,key=value` into the name and its settings."""
    if not isinstance(text, str):
        raise InputError(f"{kind} must be a text, not {text!r}")
    name, colon, rest = text.partition(":")
    settings: dict[str, str] = {}
    if colon and not rest:
        raise InputError(f"{kind} {text!r}: nothing follows the colon; write {name}:key=value")
    for item in rest.split(",") if rest else []:
        key, equals, value = item.partition("=")
        key, value = key.strip(), value.strip()
        if not (equals and key and value):
            raise InputError(f"{kind} {text!r}: {item!r} is not of the form key=value")
        if key in settings:
            raise InputError(f"{kind} {text!r}: {key} is given twice")
        settings[key] = value
    return name.strip(), settings


def check_keys(settings: Collection[str], known: Collection[str], what: str) -> None:
    """Refuse settings that `what` does not have."""
    for key in settings:
        if key not in known:
            hint = nearest(key, known) if known else "it has none"
            raise InputError(f"{what} has no parameter {key!r}; {hint}")


def read_number(value: str | float, what: str) -> float:
    """Read a finite number; an error names it."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a number, not {value!r}") from None
    if number != number or number in (float("inf"), float("-inf")):
        raise InputError(f"{what} must be a finite number, not {value!r}")
    return number


@about("grid")
def read_grid(text: str) -> list[float]:
    """The success rates of a grid that is given as first:last:step, such as 0.1:0.9:0.1."""
    parts = text.split(":") if isinstance(text, str) else []
    if len(parts) != 3:
        raise InputError(f"a grid is first:last:step, such as 0.1:0.9:0.1; not {text!r}")
    first, last, step = (read_number(part, "a number of the grid") for part in parts)
    if not (0.0 <= first <= last <= 1.0 and step > 0.0):
        raise InputError(
            f"a grid goes from 0 or more to 1 or less, by steps greater than 0; {text} does not"
        )
    if step < 1e-6:
        raise InputError(f"the steps of a grid are at least 0.000001, not {step:g}")
    count = int((last - first) / step + 1e-9) + 1
    # As people write them: 0.3, not 0.30000000000000004.
    return [round(first + place * step, 12) for place in range(count)]


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def write_number(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def check_whole(value: object, what: str, least: int, *, most: int | None = None) -> int:
    """Check a whole number from `least` to `most`; an error names it."""
    if isinstance(value, bool) or (not isinstance(value, int) and not hasattr(value, "__index__")):
        raise InputError(f"{what} must be a whole number, not {value!r}")
    number = int(value)
    if number < least:
        raise InputError(f"{what} must be at least {least}, not {_whole_text(number)}")
    if most is not None and number > most:
        raise InputError(f"{what} must be at most {most:,}, not {_whole_text(number)}")
    return number


def _whole_text(number: int) -> str:
    """A whole number of any size, for people; the digits of a huge one take long to compute."""
    return f"{number:,}" if abs(number) < 10**50 else "a number of more than 50 digits"


@about("threads")
def check_threads(threads: object) -> int:
    """Check a number of threads; None means all cores."""
    given = (os.cpu_count() or 1) if threads is None else threads
    return check_whole(given, "the number of threads", 1, most=1024)


@about("seed")
def check_seed(seed: object) -> int:
    """Check a seed."""
    return check_whole(seed, "the seed", 0, most=2**63 - 1)


@about("horizon")
def check_horizon(horizon: object) -> int:
    """Check a number of plays; float32 counts exactly up to 2^24."""
    return check_whole(horizon, "the horizon", 1, most=2**24)


@about("time_limit")
def read_seconds(text: str) -> float:
    """Read a time as people write it, in seconds: 90, 90s, 5m, 1.5h."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([smh]?)\s*", text)
    if match is None:
        raise InputError(
            f"a time limit must be a number of seconds, or such as 90s, 5m or 1h, not {text!r}"
        )
    if float(match.group(1)) == 0.0:
        raise InputError(
            f"a time limit must be greater than 0 seconds, not {text!r}; give such as 90s, 5m or 1h, or "
            f"leave it out for no limit"
        )
    return float(match.group(1)) * {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}[match.group(2)]
