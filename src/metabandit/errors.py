"""Errors that a person can cause: they say what came, what the rule is, and what to do."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class InputError(ValueError):
    """Input that breaks a rule. The command line prints the message and ends with exit code 2."""


class IndexFault(InputError):
    """An index that is not a finite number in a state that play can reach."""

    def __init__(self, policy: str, state: Sequence[float], *, uses_s: bool) -> None:
        n, r, s, t, value = state
        spread = f", s={s:.6g}" if uses_s else ""
        self.policy = policy
        self.state = {"n": n, "r": r, "s": s if uses_s else math.nan, "t": t}
        kind = "not a number" if value != value else "infinite or too large"
        super().__init__(
            f"the index of {policy} is {kind} where an arm has n={n:g}, r={r:.6g}{spread} "
            f"at t={t:g}; an index must be a finite number wherever play can lead, so guard "
            f"divisions and logarithms, as in 1/max(s, 0.01) or ln(max(t, 1)), or begin with more plays"
        )
        self._given = policy, tuple(state), uses_s

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is pickled as its message alone; this one also comes from workers.
        return _index_fault, self._given


def _index_fault(policy: str, state: Sequence[float], uses_s: bool) -> IndexFault:
    return IndexFault(policy, state, uses_s=uses_s)


class WorkerError(RuntimeError):
    """Workers that cannot do their work, or whose figures would differ.

    What was finished is kept, as after Ctrl-C. The command line prints the message and ends with exit
    code 1.
    """


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint for a misspelt name: the nearest known names, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}? (known: {', '.join(names)})"
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
