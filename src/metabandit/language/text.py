"""Reading expressions: text to tree. An error points at the character."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from ..errors import InputError, nearest
from .operators import HIGHEST_DEGREE, OPERATORS, VARIABLES, polynomial_degree
from .tree import Apply, Constant, Name, Tree

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<symbol>\*\*|[-+*/^(),]))"
)
_DEEPEST = 50
_LONGEST = 200
# Characters on either side of the place that an error points at.
_AROUND = 80


class ExpressionError(InputError):
    """An expression that cannot be read; the message shows where."""

    def __init__(self, problem: str, expression: str, position: int) -> None:
        self.expression = expression
        self.position = position
        line = "".join(" " if character.isspace() else character for character in expression)
        # Of a long one, what is around the place.
        first = max(0, position - _AROUND) if len(line) > 2 * _AROUND else 0
        begin = "... " if first else ""
        end = " ..." if len(line) > first + 2 * _AROUND else ""
        part = f"{begin}{line[first : first + 2 * _AROUND]}{end}"
        mark = " " * (position - first + len(begin))
        super().__init__(f"{problem}, at character {position + 1:,}:\n  {part}\n  {mark}^")


class _Reader:
    """A recursive-descent reader; each method reads one level of precedence."""

    def __init__(self, expression: str, parameters: tuple[str, ...]) -> None:
        self.expression = expression
        self.parameters = parameters
        self.functions = {name: item for name, item in OPERATORS.items() if not item.symbol}
        self.tokens: list[tuple[str, str, int]] = []
        self.names: list[tuple[str, int]] = []
        self.next = 0
        self.depth = 0
        position = 0
        end = len(expression.rstrip())
        while position < end:
            match = _TOKEN.match(expression, position)
            if match is None:
                position += len(expression[position:]) - len(expression[position:].lstrip())
                self.fail(f"the character {expression[position]!r} has no meaning here", position)
            kind = str(match.lastgroup)
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            position = match.end()
        self.tokens.append(("end", "", end))

    def fail(self, problem: str, position: int) -> NoReturn:
        raise ExpressionError(problem, self.expression, position)

    def accept(self, *symbols: str) -> str:
        kind, value, _ = self.tokens[self.next]
        if kind == "symbol" and value in symbols:
            self.next += 1
            return value
        return ""

    def close(self, what: str) -> None:
        if not self.accept(")"):
            _, value, position = self.tokens[self.next]
            self.fail(f"expected ')' to close {what}, found {value or 'the end'!r}", position)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Trees are walked by recursion, so their depth must have a limit."""
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"nested more than {_DEEPEST} deep", self.tokens[self.next][2])
        yield
        self.depth -= 1

    def chain(
        self, symbols: tuple[str, str], part: Callable[[], Tree]
    ) -> Iterator[tuple[str, Tree]]:
        """What follows the first operand in a sum or product: symbol and operand."""
        for _ in range(_LONGEST):
            symbol = self.accept(*symbols)
            if not symbol:
                return
            yield symbol, part()
        self.fail(f"more than {_LONGEST} operands in a row", self.tokens[self.next][2])

    def sum(self) -> Tree:
        with self.deeper():
            tree = self.product()
            for symbol, right in self.chain(("+", "-"), self.product):
                tree = Apply("add" if symbol == "+" else "subtract", (tree, right))
            return tree

    def product(self) -> Tree:
        tree = self.sign()
        for symbol, right in self.chain(("*", "/"), self.sign):
            if symbol == "*":
                tree = Apply("multiply", (tree, right))
            elif tree == Constant(1.0):
                tree = Apply("invert", (right,))
            else:
                tree = Apply("divide", (tree, right))
        return tree

    def sign(self) -> Tree:
        negative = False
        while symbol := self.accept("+", "-"):
            negative ^= symbol == "-"
        tree = self.power()
        return Apply("negate", (tree,)) if negative else tree

    def power(self) -> Tree:
        base = self.atom()
        if self.accept("^", "**"):
            with self.deeper():
                return Apply("power", (base, self.sign()))
        return base

    def atom(self) -> Tree:
        kind, value, position = self.tokens[self.next]
        self.next += 1
        if kind == "number":
            if float(value) == float("inf"):
                self.fail(f"the number {value} is too large", position)
            return Constant(float(value))
        if kind == "name":
            if self.accept("("):
                return self.call(value, position)
            if value in self.functions and value not in self.parameters:
                self.fail(f"the function {value} needs its arguments in parentheses", position)
            self.names.append((value, position))
            return Name(value)
        if value == "(":
            tree = self.sum()
            self.close("the parenthesis")
            return tree
        self.fail(f"expected a number, a variable or '(', found {value or 'the end'!r}", position)

    def call(self, name: str, position: int) -> Tree:
        if name not in self.functions:
            self.fail(f"unknown function {name!r}; {nearest(name, self.functions)}", position)
        arguments = [self.sum()]
        while self.accept(","):
            arguments.append(self.sum())
        self.close(f"the arguments of {name}")
        arity = self.functions[name].arity
        if arity is None:
            if polynomial_degree(len(arguments)) is None:
                self.fail(
                    f"{name} takes 4 values and (degree + 1)^4 weights, degree 1 to "
                    f"{HIGHEST_DEGREE}; here it has {len(arguments)} arguments",
                    position,
                )
        elif len(arguments) != arity:
            self.fail(f"{name} takes {arity} arguments, here it has {len(arguments)}", position)
        return Apply(name, tuple(arguments))


def parse(expression: str, *, parameters: tuple[str, ...] | None = ()) -> Tree:
    """Read an expression.

    Names other than variables must be in `parameters`; with None, any name is a parameter.

    >>> from metabandit.language import length, parse, text
    >>> tree = parse("r + sqrt(2 * ln(t) / n)")
    >>> text(tree), length(tree)
    ('r + sqrt(2 * ln(t)/n)', 9)
    """
    reader = _Reader(expression, parameters or ())
    if len(reader.tokens) == 1:
        reader.fail("the expression is empty", 0)
    tree = reader.sum()
    kind, value, position = reader.tokens[reader.next]
    if kind != "end":
        reader.fail(f"expected an operator or the end, found {value!r}", position)
    for name, place in reader.names:
        if parameters is not None and name not in (*VARIABLES, *parameters):
            known = ", ".join([*VARIABLES, *parameters])
            reader.fail(f"unknown variable {name!r} (known: {known})", place)
    return tree
