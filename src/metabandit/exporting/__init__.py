"""Export: an index policy as source code of a language, with no need of metabandit."""

from __future__ import annotations

from ..errors import InputError, nearest
from ..policies import Policy, Start
from . import latex, program, sql
from .policy import ExportedPolicy, read_exported

# The languages to export to, and how their files may end.
TARGETS = {
    "python": (".py",),
    "javascript": (".mjs", ".js"),
    "c": (".c", ".h"),
    "sql": (".sql",),
    "latex": (".tex",),
}


def check_target(to: str) -> str:
    """A language to export to, or an error that names those there are."""
    if to not in TARGETS:
        raise InputError(f"no export to {to!r}; {nearest(str(to), TARGETS)}", about="to")
    return to


def write(
    policy: ExportedPolicy, to: str, dialect: str | None = None, batch: int | None = None
) -> str:
    """The text of a policy in one of the languages."""
    if to == "sql":
        return sql.write(policy, dialect or "sqlite", batch)
    for value, option in ((dialect, "dialect"), (batch, "batch")):
        if value is not None:
            raise InputError(
                f"{option} is for queries; export to sql, or leave it out for {to}", about=option
            )
    return latex.write(policy) if to == "latex" else program.write(policy, to)


def export(
    policy: str | Policy,
    to: str = "python",
    *,
    horizon: int | None = None,
    start: str | Start | None = None,
    dialect: str | None = None,
    batch: int | None = None,
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
    dialect
        For sql: postgresql, sqlite (the default), duckdb, bigquery, snowflake or mysql.
    batch
        For sql: a query for the arms of this many plays, instead of the next one.

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
    # LaTeX shows the index; the others choose arms, and so need every number.
    play = check_target(to) != "latex"
    return write(read_exported(policy, start, horizon, play=play), to, dialect, batch)


__all__ = ["TARGETS", "check_target", "export", "write"]
