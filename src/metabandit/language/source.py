"""Expressions as source text of a programming language: the arithmetic only, for programs to embed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..settings import write_number
from .operators import ATOM, OPERATORS
from .tree import Apply, Constant, Name, Tree, variables

# What is written between operands, and how closely it binds, in every language that we know.
_INFIX = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "invert": "{one} / {0}",
    "negate": "-{0}",
}
# Terms of these can go on lines of their own, so that they need no names.
_LISTS = ("add", "subtract", "sum")
# Nested deeper than this, an operand gets a name: parsers have limits, and so have readers.
_DEEPEST = 24


@dataclass(frozen=True)
class Language:
    """How a language writes an expression: a template for each operator that is a function there.

    The operators that are left out are written with signs. `names` gives variables other names. The
    values of the operators in `alone` always get a name.
    """

    functions: Mapping[str, str]
    names: Mapping[str, str] = field(default_factory=dict)
    number: Callable[[float], str] = repr
    alone: frozenset[str] = frozenset()


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


class _Writer:
    def __init__(
        self,
        tree: Tree,
        language: Language,
        *,
        hoist: bool,
        width: int | None,
        known: Mapping[Tree, str],
    ) -> None:
        self.language = language
        self.hoist = hoist
        self.width = width
        self.known = known
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
            return self.language.number(tree.value), ATOM, 0
        if isinstance(tree, Name):
            return self.language.names.get(tree.name, tree.name), ATOM, 0
        if tree in self.named:
            return self.named[tree], ATOM, 0
        moment = of_the_moment(tree)
        written = [self.write(item, inside_moment=moment) for item in tree.operands]
        text, binds = self.apply(tree.operator, written)
        while self.width is not None and tree.operator not in _LISTS and len(text) > self.width:
            longest = max(range(len(written)), key=lambda position: len(written[position][0]))
            operand = tree.operands[longest]
            if not isinstance(operand, Apply) or operand in self.named:
                break
            written[longest] = self.name(operand, written[longest][0]), ATOM, 0
            text, binds = self.apply(tree.operator, written)
        depth = 1 + max(item[2] for item in written)
        hoisted = self.hoist and moment and not inside_moment
        hoisted = hoisted or tree.operator in self.language.alone
        number = tree.operator == "negate" and isinstance(tree.operands[0], Constant)
        if not number and (hoisted or self.uses[tree] > 1 or depth > _DEEPEST):
            return self.name(tree, text), ATOM, 0
        return text, binds, depth

    def name(self, tree: Tree, text: str) -> str:
        name = self.known.get(tree) or f"x{len(self.named) + 1}"
        self.named[tree] = name
        self.assignments.append(Assignment(name, text, of_the_moment(tree)))
        return name

    def apply(self, name: str, written: list[tuple[str, int, int]]) -> tuple[str, int]:
        if name == "sum":
            first, *more = (text for text, _, _ in written)
            signed = (f" - {text[1:]}" if text[0] == "-" else f" + {text}" for text in more)
            return first + "".join(signed), 1
        if name in self.language.functions:
            return self.language.functions[name].format(*(item[0] for item in written)), ATOM
        binds = OPERATORS[name].precedence
        parts = []
        for position, (text, closely, _) in enumerate(written):
            # Of operators that bind alike the left one is done first; a sign always gets parentheses.
            least = binds + (1 if position or name == "invert" else 0)
            if name == "negate":
                # -a * b is -(a * b) to the last bit.
                least, binds = 2, min(binds, closely)
            alone = closely >= least and not (text.startswith("-") and (position or binds > 1))
            parts.append(text if alone else f"({text})")
        return _INFIX[name].format(*parts, one=self.language.number(1.0)), binds


def write_source(
    tree: Tree,
    language: Language,
    *,
    hoist: bool = False,
    width: int | None = None,
    known: Mapping[Tree, str] | None = None,
) -> tuple[list[Assignment], str]:
    """Values to compute first, each with a name, and the text of the expression.

    Subtrees that appear more than once get names, those in `known` these; with `hoist` also those that
    are the same for all arms, and with `width` those that make a line longer than that, if it is no sum:
    sums can be broken. The tree has no parameters, and no polynomials (see `polynomials`).
    """
    writer = _Writer(tree, language, hoist=hoist, width=width, known=known or {})
    for value in known or {}:
        if writer.uses[value] > 1:
            writer.write(value, inside_moment=False)
    text, _, _ = writer.write(tree, inside_moment=False)
    return writer.assignments, text


def real(value: float) -> str:
    """A number that no language takes for a whole one."""
    text = write_number(value)
    return f"{text}.0" if text.lstrip("-").isdecimal() else text
