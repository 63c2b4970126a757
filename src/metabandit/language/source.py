"""Expressions as source text of a programming language: the arithmetic only, for programs to embed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from ..errors import InputError
from ..settings import write_number
from . import ranges
from .bounds import as_product, value_ranges
from .operators import ARM_VARIABLES, ATOM, LANGUAGES, OPERATORS
from .ranges import Range
from .tree import Apply, Constant, Name, Tree, variables

# Terms of these can go on lines of their own, so that they need no names.
_LISTS = ("add", "subtract", "sum")
# Nested deeper than this, an operand gets a name: parsers have limits, and so have readers.
_DEEPEST = 24


# A value that is given a name: the name, its text, and whether it is the same for all arms.
Assignment = tuple[str, str, bool]


def of_the_moment(tree: Tree) -> bool:
    """Whether the value is the same for all arms."""
    return not variables(tree) & ARM_VARIABLES


def raising(tree: Tree, least_plays: float) -> set[Tree]:
    """The parts of a tree for which Python's own operations could raise (see `ranges`)."""
    known: dict[str, Range] = {
        "r": ranges.ALL,
        "s": ranges.NOT_NEGATIVE,
        "n": (least_plays, math.inf),
        "w": ranges.NOT_NEGATIVE,
        "t": (least_plays, math.inf),
        "h": (1.0, math.inf),
        "K": (1.0, math.inf),
    }
    found = value_ranges(tree, known)

    def raises(node: Apply) -> bool:
        made = as_product(node)
        inside = (found[operand] for operand in made.operands)
        return made.operator != "sum" and OPERATORS[made.operator].raises(*inside)

    return {node for node in found if isinstance(node, Apply) and raises(node)}


def write_source(
    tree: Tree,
    language: str,
    *,
    number: Callable[[float], str] = repr,
    hoist: bool = False,
    width: int | None = None,
    known: Mapping[Tree, str] | None = None,
    safe: Collection[Tree] = (),
    names: str = "x",
) -> tuple[list[Assignment], str]:
    """Values to compute first, each with a name, and the text of the expression.

    Named are subtrees that appear more than once, and operands that a form repeats; with `hoist` also what
    is the same for all arms, and with `width` what makes a line longer than that, unless it is a sum, which
    can be broken. Names are those in `known`, else `names` and a number. What is in `safe` is written so
    that it does not raise. The tree has no parameters, and no polynomials (see `polynomials`).
    """
    known = known or {}
    uses = _uses(tree)
    named: dict[Tree, str] = {}
    assignments: list[Assignment] = []

    def name(tree: Tree, text: str) -> str:
        named[tree] = known.get(tree) or f"{names}{len(named) + 1}"
        assignments.append((named[tree], text, of_the_moment(tree)))
        return named[tree]

    def write(tree: Tree, *, inside_moment: bool) -> tuple[str, int, int]:
        """The text, how closely it binds, and how deeply it is nested."""
        if isinstance(tree, Constant):
            return number(tree.value), ATOM, 0
        if isinstance(tree, Name):
            return tree.name, ATOM, 0
        if tree in named:
            return named[tree], ATOM, 0
        moment, made = of_the_moment(tree), as_product(tree)
        written = [write(item, inside_moment=moment) for item in made.operands]
        for place in _repeated(made, language, safe=tree in safe):
            operand = made.operands[place]
            if isinstance(operand, Apply) and operand not in named and not _is_number(operand):
                written[place] = name(operand, written[place][0]), ATOM, 0
        text, binds = _apply(made, written, language, safe=tree in safe, one=number(1.0))
        while width is not None and tree.operator not in _LISTS and len(text) > width:
            longest = max(range(len(written)), key=lambda position: len(written[position][0]))
            operand = made.operands[longest]
            if not isinstance(operand, Apply) or operand in named:
                break
            written[longest] = name(operand, written[longest][0]), ATOM, 0
            text, binds = _apply(made, written, language, safe=tree in safe, one=number(1.0))
        depth = 1 + max(item[2] for item in written)
        hoisted = hoist and moment and not inside_moment
        # A text of several lines is an assignment of its own.
        if not _is_number(tree) and (hoisted or "\n" in text or uses[tree] > 1 or depth > _DEEPEST):
            return name(tree, text), ATOM, 0
        return text, binds, depth

    for value in known:
        if uses[value] > 1:
            write(value, inside_moment=False)
    text, _, _ = write(tree, inside_moment=False)
    return assignments, text


def _uses(tree: Tree) -> Counter[Tree]:
    """How often the text has each part of a tree, if parts that come again are named."""
    uses: Counter[Tree] = Counter()

    def count(part: Tree) -> None:
        uses[part] += 1
        if isinstance(part, Apply) and uses[part] == 1:
            for operand in as_product(part).operands:
                count(operand)

    count(tree)
    return uses


def _is_number(tree: Apply) -> bool:
    return tree.operator == "negate" and isinstance(tree.operands[0], Constant)


def _repeated(tree: Apply, language: str, *, safe: bool) -> list[int]:
    """The places of the operands that the text of the operator has more than once."""
    known = OPERATORS.get(tree.operator)
    form = known and known.form(language, safe=safe)
    if not form:
        return []
    return [place for place in range(len(tree.operands)) if form.count(f"{{{place}}}") > 1]


def _apply(
    tree: Apply, written: list[tuple[str, int, int]], language: str, *, safe: bool, one: str
) -> tuple[str, int]:
    """An operator's text from its operands' texts, and how closely it binds."""
    if tree.operator == "sum":
        first, *more = (text for text, _, _ in written)
        signed = (f" - {text[1:]}" if text[0] == "-" else f" + {text}" for text in more)
        return first + "".join(signed), 1
    operator = OPERATORS[tree.operator]
    form = operator.form(language, safe=safe)
    if form is None:
        others = [name for name in LANGUAGES if operator.form(name) is not None]
        raise InputError(
            f"the operator {operator.name} cannot be exported to {language}: "
            f"{operator.refused.get(language, 'it has no form there')}; export to "
            f"{', '.join(others)}, or choose another index"
        )
    if operator.own is not None and not safe and language in operator.forms:
        # A person's text may have any operation in it.
        texts = [text if binds == ATOM else f"({text})" for text, binds, _ in written]
        return f"({form.format(*texts)})", ATOM
    if not form.startswith(("{", "-")):
        return form.format(*(text for text, _, _ in written)), ATOM
    binds = operator.precedence
    placed = []
    for position, (text, closely, _) in enumerate(written):
        # Of operators that bind alike the left one is done first; a sign always gets parentheses.
        least = binds + (1 if position or operator.name == "invert" else 0)
        if operator.name == "negate":
            # -a * b is -(a * b) to the last bit.
            least, binds = 2, min(binds, closely)
        alone = closely >= least and not (text.startswith("-") and (position or binds > 1))
        placed.append(text if alone else f"({text})")
    return form.format(*placed, one=one), binds


def real(value: float) -> str:
    """A number that no language takes for a whole one."""
    text = write_number(value)
    return f"{text}.0" if text.lstrip("-").isdecimal() else text
