"""Expressions as source text of a programming language: the arithmetic only, for programs to embed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ..errors import InputError
from ..settings import write_number
from . import ranges
from .operators import ATOM, LANGUAGES, OPERATORS
from .ranges import Range
from .tree import Apply, Constant, Name, Tree, variables

# Terms of these can go on lines of their own, so that they need no names.
_LISTS = ("add", "subtract", "sum")
# Nested deeper than this, an operand gets a name: parsers have limits, and so have readers.
_DEEPEST = 24


@dataclass(frozen=True)
class Assignment:
    """A value that is given a name; `moment` says that it is the same for all arms."""

    name: str
    text: str
    moment: bool


def squares(tree: Tree) -> Tree:
    """The tree with products for squares, which any number has; other powers are of numbers >= 0."""
    if not isinstance(tree, Apply):
        return tree
    operands = tuple(squares(operand) for operand in tree.operands)
    if tree.operator == "power" and operands[1] == Constant(2.0):
        return Apply("multiply", (operands[0], operands[0]))
    return Apply(tree.operator, operands)


def of_the_moment(tree: Tree) -> bool:
    """Whether the value is the same for all arms."""
    return not variables(tree) & {"r", "s", "n"}


def parts(tree: Tree) -> set[Tree]:
    """The tree and all trees in it."""
    if not isinstance(tree, Apply):
        return {tree}
    return {tree}.union(*map(parts, tree.operands))


def raising(tree: Tree, least_plays: float) -> set[Tree]:
    """The parts of a tree for which Python's own operations could raise (see `ranges`)."""
    start: dict[str, Range] = {
        "r": ranges.ALL,
        "s": ranges.NOT_NEGATIVE,
        "n": (least_plays, math.inf),
        "t": (least_plays, math.inf),
        "h": (1.0, math.inf),
        "K": (1.0, math.inf),
    }
    found: set[Tree] = set()

    def visit(node: Tree) -> Range:
        if isinstance(node, Constant):
            return node.value, node.value
        if isinstance(node, Name):
            return start[node.name]
        inside = [visit(operand) for operand in node.operands]
        if node.operator == "sum":
            low, high = ranges.total(*inside)
        else:
            operator = OPERATORS[node.operator]
            if operator.raises(*inside):
                found.add(node)
            low, high = operator.bounds(*inside)
        if node.operator == "multiply" and node.operands[0] == node.operands[1]:
            low = max(low, 0.0)
        # What could be nan can be anything.
        return (low, high) if low == low and high == high else ranges.ALL

    visit(tree)
    return found


class _Writer:
    def __init__(
        self,
        tree: Tree,
        language: str,
        *,
        number: Callable[[float], str],
        hoist: bool,
        width: int | None,
        known: Mapping[Tree, str],
        safe: Collection[Tree],
        names: str,
    ) -> None:
        self.language = language
        self.number = number
        self.hoist = hoist
        self.width = width
        self.known = known
        self.safe = safe
        self.names = names
        self.uses: Counter[Tree] = Counter()
        self.count(tree)
        self.named: dict[Tree, str] = {}
        self.assignments: list[Assignment] = []

    def count(self, tree: Tree) -> None:
        self.uses[tree] += 1
        if isinstance(tree, Apply) and self.uses[tree] == 1:
            for operand in tree.operands:
                self.count(operand)

    def write(self, tree: Tree, *, inside_moment: bool) -> tuple[str, int, int]:
        """The text, how closely it binds, and how deeply it is nested."""
        if isinstance(tree, Constant):
            return self.number(tree.value), ATOM, 0
        if isinstance(tree, Name):
            return tree.name, ATOM, 0
        if tree in self.named:
            return self.named[tree], ATOM, 0
        moment = of_the_moment(tree)
        written = [self.write(item, inside_moment=moment) for item in tree.operands]
        text, binds = self.apply(tree, written)
        while self.width is not None and tree.operator not in _LISTS and len(text) > self.width:
            longest = max(range(len(written)), key=lambda position: len(written[position][0]))
            operand = tree.operands[longest]
            if not isinstance(operand, Apply) or operand in self.named:
                break
            written[longest] = self.name(operand, written[longest][0]), ATOM, 0
            text, binds = self.apply(tree, written)
        depth = 1 + max(item[2] for item in written)
        hoisted = self.hoist and moment and not inside_moment
        number = tree.operator == "negate" and isinstance(tree.operands[0], Constant)
        # A text of several lines is an assignment of its own.
        if not number and (hoisted or "\n" in text or self.uses[tree] > 1 or depth > _DEEPEST):
            return self.name(tree, text), ATOM, 0
        return text, binds, depth

    def name(self, tree: Tree, text: str) -> str:
        name = self.known.get(tree) or f"{self.names}{len(self.named) + 1}"
        self.named[tree] = name
        self.assignments.append(Assignment(name, text, of_the_moment(tree)))
        return name

    def apply(self, tree: Apply, written: list[tuple[str, int, int]]) -> tuple[str, int]:
        if tree.operator == "sum":
            first, *more = (text for text, _, _ in written)
            signed = (f" - {text[1:]}" if text[0] == "-" else f" + {text}" for text in more)
            return first + "".join(signed), 1
        operator = OPERATORS[tree.operator]
        safe = tree in self.safe
        form = operator.form(self.language, safe=safe)
        if form is None:
            others = [name for name in LANGUAGES if operator.form(name) is not None]
            raise InputError(
                f"the operator {operator.name} cannot be exported to {self.language}: "
                f"{operator.refused.get(self.language, 'it has no form there')}; export to "
                f"{', '.join(others)}, or choose another index"
            )
        if operator.own is not None and not safe and self.language in operator.forms:
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
        return form.format(*placed, one=self.number(1.0)), binds


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

    Subtrees that appear more than once get names, those in `known` these; with `hoist` also those that
    are the same for all arms, and with `width` those that make a line longer than that, if it is no sum:
    sums can be broken. Other names are `names` and a number. Those in `safe` are written so that they
    do not raise. The tree has no parameters, and no polynomials (see `polynomials`).
    """
    writer = _Writer(
        tree, language, number=number, hoist=hoist, width=width, known=known or {}, safe=safe,
        names=names,
    )  # fmt: skip
    for value in known or {}:
        if writer.uses[value] > 1:
            writer.write(value, inside_moment=False)
    text, _, _ = writer.write(tree, inside_moment=False)
    return writer.assignments, text


def real(value: float) -> str:
    """A number that no language takes for a whole one."""
    text = write_number(value)
    return f"{text}.0" if text.lstrip("-").isdecimal() else text
