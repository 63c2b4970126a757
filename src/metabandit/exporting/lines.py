"""Expressions as statements of a program: the names they need, and lines that are not too long."""

from __future__ import annotations

from ..language import Apply, Name, Tree
from ..language.polynomials import plain
from ..language.source import Assignment, raising, real, write_source
from ..settings import write_number

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
    simple = plain(tree, nested=False)
    return write_source(
        simple,
        language,
        number=real if language in ("c", "sql") else write_number,
        width=_STATEMENT,
        known=_value_names(tree),
        safe=raising(simple, least_plays) if language in ("python", "sql") else (),
        names=names,
    )
