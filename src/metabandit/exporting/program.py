"""An index policy as a program: the template of a language, filled in.

A template is in templates/, one file per language; what is here is the same for all of them:
expressions as statements with lines that are not too long, and the functions that these call.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..feedback import PATIENCE
from ..language import Apply, Name, Tree, guarded, variables
from ..language.polynomials import plain
from ..language.source import Assignment, raising, real, write_source
from ..settings import write_number
from .policy import ExportedPolicy
from .translation import helpers

if TYPE_CHECKING:
    from jinja2 import Template

# Lines are no longer than this, and statements that are no sums somewhat shorter.
WIDTH = 100
_STATEMENT = 80


def _terms(text: str) -> list[str]:
    """A sum as its terms, each but the first with its sign in front."""
    found, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and text[place : place + 3] in (" + ", " - "):
            found.append(text[begin:place])
            begin = place + 1
    return [*found, text[begin:]]


def statement(head: str, text: str, end: str, *, indent: str, brackets: bool) -> list[str]:
    """`head text end` on a line, or with one term of the sum per line where that is too long."""
    line = f"{indent}{head}{text}{end}"
    terms = _terms(text)
    if len(line) <= WIDTH or len(terms) == 1:
        return [line]
    inner = [f"{indent}{indent or '    '}{term}" for term in terms]
    if brackets:
        return [f"{indent}{head}(", *inner, f"{indent}){end}"]
    inner[-1] += end
    return [f"{indent}{head.rstrip()}", *inner] if head else inner


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
                    taken = f"v{place}" in found.values()
                    found.setdefault(value, f"v{len(found) + 5}" if taken else f"v{place}")

    visit(tree)
    return found


def source_of(
    tree: Tree, language: str, least_plays: float, names: str = "x"
) -> tuple[list[Assignment], str]:
    """The statements that compute a tree: short lines, or sums that can be broken."""
    simple = plain(guarded(tree), nested=False)
    return write_source(
        simple,
        language,
        number=real if language in ("c", "sql") else write_number,
        width=_STATEMENT,
        known=_value_names(tree),
        safe=raising(simple, least_plays) if language in ("python", "sql") else (),
        names=names,
    )


_INDENT = {"python": "    ", "javascript": "  ", "c": "  "}
_ASSIGN = {"python": "", "javascript": "const ", "c": "const double "}


@cache
def _template(language: str) -> Template:
    from jinja2 import Environment, StrictUndefined

    source = files(__package__).joinpath("templates", f"{language}.jinja").read_text("utf-8")
    rules = Environment(trim_blocks=True, undefined=StrictUndefined, keep_trailing_newline=True)
    return rules.from_string(source)


def _block_comment(notes: Iterable[str]) -> str:
    """Notes as lines of a comment of C or JavaScript; a name in them may not end it."""
    safe = (note.replace("*/", "* /").replace("/*", "/ *") for note in notes)
    return "\n".join(f" * {note}".rstrip() for note in safe)


def _body(tree: Tree | None, language: str, least_plays: float) -> str:
    """The lines of a function that returns a tree's value; empty without a tree."""
    if tree is None:
        return ""
    assignments, text = source_of(tree, language, least_plays)
    indent, end = _INDENT[language], "" if language == "python" else ";"
    lines = []
    for name, value, _ in assignments:
        head = f"{_ASSIGN[language]}{name} = "
        lines += statement(head, value, end, indent=indent, brackets=language == "python")
    return "\n".join(lines + statement("return ", text, end, indent=indent, brackets=True))


# Programs --------------------------------------------------------------------------------------


def _context(policy: ExportedPolicy, number: Any) -> dict[str, Any]:
    """What every template reads."""
    rows = [[number(value) for value in row] for row in policy.counts or ()]
    each = "" if policy.arms is None else "[arm]"
    wanted = ("plays", "sum", "squares") if policy.reads("s") else ("plays", "sum")
    waiting = policy.waiting
    rewarded = "n" if rows else "plays[arm]"
    return {
        "waiting": waiting,
        "waits": " + waiting[arm]" if waiting else "",
        # The arguments that C hands on, and the plays of an arm with those that wait.
        "more": (", waiting" + ("" if rows else ", total / rewarded")) if waiting else "",
        "n": f"{rewarded} + waiting[arm]" if waiting else "n",
        "patience": PATIENCE,
        "min_share": number(policy.min_share) if policy.min_share else "",
        "reads_w": policy.reads("w"),
        "horizon": policy.horizon,
        "arms": policy.arms,
        "each": each,
        "pseudo": f" + START_PLAYS{each}" if rows else "",
        "starts": [(name, ", ".join(row)) for name, row in zip(wanted, rows, strict=False)],
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
