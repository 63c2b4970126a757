"""An index policy as a program: the template of a language, filled in.

A template is in templates/, one file per language; what is here is the same for all of them: the
expressions as statements, the functions that these call, and lines that are not too long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..language import Apply, Name, Tree, variables
from ..language.polynomials import plain
from ..language.source import Assignment, raising, real, squares, write_source
from ..settings import write_number
from .policy import ExportedPolicy
from .translation import helpers

if TYPE_CHECKING:
    from jinja2 import Template

# Lines are no longer than this, and statements that are no sums somewhat shorter.
_WIDTH = 100
_STATEMENT = 80
_INDENT = {"python": "    ", "javascript": "  ", "c": "  "}
_ASSIGN = {"python": "", "javascript": "const ", "c": "const double "}
_SQL_FUNCTIONS = ("ln", "exp", "sqrt", "abs", "pow", "min", "max")


@cache
def _template(language: str) -> Template:
    from jinja2 import Environment, StrictUndefined

    source = files(__package__).joinpath("templates", f"{language}.jinja").read_text("utf-8")
    rules = Environment(trim_blocks=True, undefined=StrictUndefined, keep_trailing_newline=True)
    return rules.from_string(source)


# Lines -----------------------------------------------------------------------------------------


def _terms(text: str) -> list[str]:
    """A sum as its terms, each but the first with its sign in front."""
    found, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and text[place : place + 3] in (" + ", " - "):
            found.append(text[begin:place])
            begin = place + 1
    return [*found, text[begin:]]


def _statement(head: str, text: str, end: str, *, indent: str, brackets: bool) -> list[str]:
    """`head text end` on a line, or with one term of the sum per line where that is too long."""
    line = f"{indent}{head}{text}{end}"
    terms = _terms(text)
    if len(line) <= _WIDTH or len(terms) == 1:
        return [line]
    inner = [f"{indent}{indent or '    '}{term}" for term in terms]
    if brackets:
        return [f"{indent}{head}(", *inner, f"{indent}){end}"]
    inner[-1] += end
    return [f"{indent}{head.rstrip()}", *inner] if head else inner


def _block_comment(notes: Iterable[str]) -> str:
    """Notes as lines of a comment of C or JavaScript; a name in them may not end it."""
    safe = (note.replace("*/", "* /").replace("/*", "/ *") for note in notes)
    return "\n".join(f" * {note}".rstrip() for note in safe)


# Expressions -----------------------------------------------------------------------------------


def _value_names(tree: Tree) -> dict[Tree, str]:
    """Names for the values of the polynomials in a tree: v1, v2, ..."""
    found: dict[Tree, str] = {}

    def visit(node: Tree) -> None:
        if not isinstance(node, Apply):
            return
        for operand in node.operands:
            visit(operand)
        if node.operator == "polynomial":
            for place, value in enumerate(node.operands[:4], start=1):
                if not isinstance(value, Name):
                    key = squares(value)
                    taken = f"v{place}" in found.values()
                    found.setdefault(key, f"v{len(found) + 5}" if taken else f"v{place}")

    visit(tree)
    return found


def _source(
    tree: Tree, language: str, least_plays: float, names: str = "x"
) -> tuple[list[Assignment], str]:
    """The statements that compute a tree: short lines, or sums that can be broken."""
    simple = plain(squares(tree), nested=False)
    return write_source(
        simple,
        language,
        number=real if language in ("c", "sql") else write_number,
        width=_STATEMENT,
        known=_value_names(tree),
        safe=raising(simple, least_plays) if language == "python" else (),
        names=names,
    )


def _body(tree: Tree | None, language: str, least_plays: float) -> str:
    """The lines of a function that returns a tree's value; empty without a tree."""
    if tree is None:
        return ""
    assignments, text = _source(tree, language, least_plays)
    indent, end = _INDENT[language], "" if language == "python" else ";"
    lines = []
    for item in assignments:
        head = f"{_ASSIGN[language]}{item.name} = "
        lines += _statement(head, item.text, end, indent=indent, brackets=language == "python")
    return "\n".join(lines + _statement("return ", text, end, indent=indent, brackets=True))


def _columns(
    assignments: Iterable[Assignment], source: str
) -> tuple[list[tuple[str, str, str]], str]:
    """SQL: a table per assignment, each with one column more than the one before; and the last one."""
    tables = []
    for item in assignments:
        lines = _statement("SELECT *, ", item.text, f" AS {item.name}", indent="", brackets=False)
        shown = "\n".join(f"    {line}" for line in "\n".join(lines).splitlines())
        tables.append((item.name, shown, source))
        source = f"with_{item.name}"
    return tables, source


# Programs --------------------------------------------------------------------------------------


def _context(policy: ExportedPolicy, number: Any) -> dict[str, Any]:
    """What every template reads."""
    rows = [[number(value) for value in row] for row in policy.counts or ()]
    each = "" if policy.arms is None else "[arm]"
    wanted = ("plays", "sum", "squares") if policy.reads("s") else ("plays", "sum")
    return {
        "horizon": policy.horizon,
        "arms": policy.arms,
        "each": each,
        "pseudo": f" + START_PLAYS{each}" if rows else "",
        "starts": [(name, ", ".join(row)) for name, row in zip(wanted, rows, strict=False)],
        "rows": list(zip(*rows, strict=True)),
        "reads_h": policy.reads("h"),
        "reads_s": policy.reads("s"),
        "rate": "",
        "needed": "",
    }


def write(policy: ExportedPolicy, language: str) -> str:
    """A policy as a program in Python, JavaScript or C."""
    least = policy.least_plays
    trees = {"index": policy.tree, "rate": policy.rate, "needed": policy.needed}
    bodies = {name: _body(tree, language, least) for name, tree in trees.items()}
    reads = {f"{name}_reads": variables(tree) for name, tree in trees.items() if tree is not None}
    if language == "python":
        notes = "\n".join(policy.notes()).replace("\\", "\\\\").replace('"""', "'''")
    else:
        notes = _block_comment(policy.notes())
    number = real if language == "c" else write_number
    return _template(language).render(
        **_context(policy, number)
        | bodies
        | reads
        | {"notes": notes, "helpers": helpers("\n".join(bodies.values()), language)}
    )


def write_sql(policy: ExportedPolicy) -> str:
    """A policy as a query for SQLite over a table of arms."""
    least = policy.least_plays
    moments: list[Assignment] = []
    for name, tree in (("rate", policy.rate), ("needed", policy.needed)):
        if tree is not None:
            assignments, text = _source(tree, "sql", least, names=f"{name}_x")
            moments += [*assignments, Assignment(name, text, moment=True)]
    assignments, text = _source(policy.tree, "sql", least)
    before, moment = _columns(moments, "moment")
    values, last = _columns(assignments, "observed")
    query = _template("sql").render(
        **_context(policy, real)
        | {"rate": policy.rate is not None, "needed": policy.needed is not None}
        | {"moments": before, "moment": moment, "values": values, "last": last}
        | {"index": "\n".join(_statement("", text, ' AS "index"', indent="  ", brackets=False))}
    )
    used = [name for name in _SQL_FUNCTIONS if re.search(rf"\b{name}\(", query)]
    notes = [
        *policy.notes(),
        "",
        "A query over a table arms(arm, plays, total, squares): the number of each arm, from 0,",
        "its plays, the sum of its rewards and the sum of their squares. The first row is the",
        "arm to play." + (" Arms without plays come first." if policy.counts is None else ""),
        *([] if policy.arms is None else [f"The arms must be 0 to {policy.arms - 1}."]),
        *([] if policy.rate is None else ["Bind :u to a random number, uniform in [0, 1)."]),
        f"For SQLite 3.35 or later; the functions used are {', '.join(used)}. Elsewhere min",
        "and max of two numbers may be called least and greatest. Division by zero and ln of",
        "what is not positive are NULL in SQLite, where other languages have infinity or nan; an",
        "index that is NULL comes last.",
    ]
    head = "\n".join(f"-- {note}".rstrip() for note in notes)
    return f"{head}\n\n{query}"
