"""Export: an index policy as source code of a language, with no need of metabandit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..errors import InputError, nearest
from ..policies import Policy, Start
from . import latex, program
from .policy import ExportedPolicy, read_exported


@dataclass(frozen=True)
class Target:
    """A language to export to, and how its files may end.

    `plays` says that what is written chooses arms, and so needs every number.
    """

    write: Callable[[ExportedPolicy], str]
    suffixes: tuple[str, ...]
    plays: bool = True


TARGETS = {
    "python": Target(partial(program.write, language="python"), (".py",)),
    "javascript": Target(partial(program.write, language="javascript"), (".mjs", ".js")),
    "c": Target(partial(program.write, language="c"), (".c", ".h")),
    "sql": Target(program.write_sql, (".sql",)),
    "latex": Target(latex.write, (".tex",), plays=False),
}


def find_target(to: str) -> Target:
    """The language of that name."""
    if to not in TARGETS:
        raise InputError(f"no export to {to!r}; {nearest(str(to), TARGETS)}")
    return TARGETS[to]


def export(
    policy: str | Policy,
    to: str = "python",
    *,
    horizon: int | None = None,
    start: str | Start | None = None,
) -> str:
    """Write an index policy as a program that needs nothing but its language.

    Parameters
    ----------
    policy
        An index policy: its text, its file or the policy itself.
    to
        The language: python, javascript, c, sql or latex.
    horizon
        The number of plays in all, for indices that read h; a learned policy file knows it.
    start
        How the policy begins, if it has no start of its own.

    Returns
    -------
    str
        The program.

    Examples
    --------
    >>> import metabandit as mb
    >>> "return r + math.sqrt(2 * math.log(t) / n)" in mb.export("ucb1")
    True
    """
    target = find_target(to)
    return target.write(read_exported(policy, start, horizon, play=target.plays))


__all__ = ["TARGETS", "Target", "export", "find_target"]
