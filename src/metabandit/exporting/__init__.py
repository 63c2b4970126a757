"""Export: an index policy as source code of a language, with no need of metabandit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from ..errors import InputError, nearest
from ..policies import Policy, Start
from .program import Program, read_program


@dataclass(frozen=True)
class Target:
    """A language to export to: the module that writes it, and how its files may end.

    `plays` says that what is written chooses arms, and so needs every number.
    """

    module: str
    suffixes: tuple[str, ...]
    plays: bool = True

    def write(self, program: Program) -> str:
        writer: Callable[[Program], str] = import_module(f".{self.module}", __name__).write
        return writer(program)


TARGETS = {
    "python": Target("python", (".py",)),
    "javascript": Target("javascript", (".mjs", ".js")),
    "c": Target("c", (".c", ".h")),
    "sql": Target("sql", (".sql",)),
    "latex": Target("latex", (".tex",), plays=False),
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
    """An index policy as a program in `to`: python, javascript, c, sql or latex.

    >>> import metabandit as mb
    >>> "return r + math.sqrt(2 * math.log(t) / n)" in mb.export("ucb1")
    True

    `horizon` is the number of plays in all, for indices that read h; a learned policy file knows it.
    """
    target = find_target(to)
    return target.write(read_program(policy, start, horizon, play=target.plays))


__all__ = ["TARGETS", "Target", "export", "find_target"]
