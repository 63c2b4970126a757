"""Errors that a person can cause: they say what came, what the rule is, and what to do."""

from __future__ import annotations

import difflib
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

# Characters of the input that a message repeats at the most.
_MOST = 200
# What is quoted, or has no space in it, and is longer; and long lists.
_LONG = re.compile(
    rf"'[^'\n]{{{_MOST},}}'|\"[^\"\n]{{{_MOST},}}\"|\S{{{_MOST},}}|(?:[^\s,]+, ){{60,}}[^\s,]+"
)


def shown(value: object, most: int = _MOST) -> str:
    """What came, as a message shows it: without its middle if it is long, and on any screen."""
    text = str(value).encode("utf-8", "backslashreplace").decode()
    if len(text) <= most:
        return text
    kept = most // 2 - 20
    return f"{text[:kept]} ... ({len(text):,} characters) ... {text[-kept:]}"


def _readable(message: str) -> str:
    text = message.encode("utf-8", "backslashreplace").decode()
    return _LONG.sub(lambda match: shown(match.group()), text)


class InputError(ValueError):
    """Input that breaks a rule. The command line prints the message and ends with exit code 2.

    Long words and long texts in quotes come from the input, and are cut. `about` is the argument that
    breaks the rule, if it is known: the command line names its option.
    """

    def __init__(self, message: str, *, about: str | None = None) -> None:
        super().__init__(_readable(message))
        self.about = about


@contextmanager
def about(argument: str) -> Iterator[None]:
    """Say of errors inside which argument they are about, unless they say it themselves."""
    try:
        yield
    except InputError as error:
        error.about = error.about or argument
        raise


class IndexFault(InputError):
    """An index that is not a finite number in a state that play can reach."""

    def __init__(self, policy: str, state: Sequence[float], *, uses_s: bool) -> None:
        n, r, s, t, value = state
        spread = f", s={s:.6g}" if uses_s else ""
        self.policy = policy
        self.state = {"n": n, "r": r, "s": s if uses_s else math.nan, "t": t}
        kind = "not a number" if value != value else "infinite or too large"
        super().__init__(
            f"the index of {shown(policy)} is {kind} where an arm has n={n:g}, r={r:.6g}{spread} "
            f"at t={t:g}; an index must be a finite number wherever play can lead, so guard "
            f"divisions and logarithms, as in 1/max(s, 0.01) or ln(max(t, 1)), or begin with more plays"
        )
        self._again = partial(IndexFault, policy, tuple(state), uses_s=uses_s)

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is pickled as its message alone; this one also comes from workers.
        return self._again, ()


class WorkerError(RuntimeError):
    """Workers that cannot do their work, or whose figures would differ.

    What was finished is kept, as after Ctrl-C. The command line prints the message and ends with exit
    code 1.
    """


class StoreError(RuntimeError):
    """A store that cannot be reached, or does not answer. The command line ends with exit code 1."""

    def __init__(self, message: str) -> None:
        super().__init__(_readable(message))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint for a misspelt name: the nearest known names and some others, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    if close:
        others = textwrap.shorten(", ".join(names), 120, placeholder=" ...")
        return f"did you mean {' or '.join(close)}? (known: {others})"
    return f"known: {', '.join(names)}"


@contextmanager
def compiling(what: str) -> Iterator[None]:
    """Turn what goes wrong with a person's own function into an error that names the function."""
    try:
        yield
    except Exception as error:  # numba's own errors, and those of what it looks at
        raise InputError(
            f"{what} cannot be compiled; numba supports numbers, arrays, math and numpy "
            f"functions, loops and conditions. It says:\n{error}"
        ) from None
