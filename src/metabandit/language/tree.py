"""Expressions as trees: printing, counting, naming and setting parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..settings import write_number
from .operators import ATOM, OPERATORS, VARIABLE_LATEX, VARIABLES, register_operator


@dataclass(frozen=True)
class Constant:
    """A number that is not negative; a negative one is the opposite of it."""

    value: float


@dataclass(frozen=True)
class Name:
    """A variable, or a parameter that a policy gives a value."""

    name: str


@dataclass(frozen=True)
class Apply:
    """An operator, by its name in the table, and its operands."""

    operator: str
    operands: tuple[Tree, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        # A person's own operator goes along to other processes.
        operator = OPERATORS.get(self.operator)
        if operator is None or operator.own is None:
            return Apply, (self.operator, self.operands)
        return _apply_own, (operator.declared, self.operands)


def _apply_own(declared: Mapping[str, Any], operands: tuple[Tree, ...]) -> Apply:
    register_operator(**declared)
    return Apply(declared["name"], operands)


Tree = Constant | Name | Apply


def walk(tree: Tree) -> Iterator[Tree]:
    """The tree and all trees in it, each before its operands, from left to right."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Apply):
            waiting += reversed(node.operands)


def length(tree: Tree) -> int:
    """Symbols in the expression, as the paper counts them: `1/x` and `-x` have one operator."""
    return sum(1 for _ in walk(tree))


def names(tree: Tree) -> list[str]:
    """The names that are no variables, in the order of their first appearance."""
    found = (node.name for node in walk(tree) if isinstance(node, Name))
    return list(dict.fromkeys(name for name in found if name not in VARIABLES))


def variables(tree: Tree) -> set[str]:
    """The variables that the expression reads."""
    return {node.name for node in walk(tree) if isinstance(node, Name) and node.name in VARIABLES}


def operators(tree: Tree) -> set[str]:
    """The names of the operators in the expression."""
    return {node.operator for node in walk(tree) if isinstance(node, Apply)}


def signed(value: float) -> Tree:
    """A number of any sign as a tree."""
    return Constant(value) if value >= 0 else Apply("negate", (Constant(-value),))


def bind(tree: Tree, values: Mapping[str, float]) -> Tree:
    """The tree with numbers in place of the parameters in `values`."""
    if isinstance(tree, Name) and tree.name in values:
        return signed(values[tree.name])
    if isinstance(tree, Apply):
        return Apply(tree.operator, tuple(bind(operand, values) for operand in tree.operands))
    return tree


def _precedence(tree: Tree) -> int:
    return OPERATORS[tree.operator].precedence if isinstance(tree, Apply) else ATOM


def text(tree: Tree) -> str:
    """The expression as a person writes it; `parse` reads it back as the same tree."""
    if isinstance(tree, Constant):
        return write_number(tree.value)
    if isinstance(tree, Name):
        return tree.name
    operator = OPERATORS[tree.operator]
    parts = [text(operand) for operand in tree.operands]
    if not operator.symbol:
        return f"{operator.name}({', '.join(parts)})"

    def part(position: int, least: int) -> str:
        enough = _precedence(tree.operands[position]) >= least
        return parts[position] if enough else f"({parts[position]})"

    level = operator.precedence
    if operator.name == "negate":
        return f"-{part(0, level + 1)}"
    if operator.name == "invert":
        return f"1/{part(0, level + 1)}"
    if operator.name == "power":
        return f"{part(0, level + 1)}^{part(1, level + 1)}"
    space = "" if operator.name == "divide" else " "
    return f"{part(0, level)}{space}{operator.symbol}{space}{part(1, level + 1)}"


def latex(tree: Tree) -> str:
    """The expression as LaTeX, for mathematics mode."""
    if isinstance(tree, Constant):
        mantissa, e, exponent = write_number(tree.value).partition("e")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if e else mantissa
    if isinstance(tree, Name):
        if tree.name in VARIABLE_LATEX:
            return VARIABLE_LATEX[tree.name]
        return tree.name if len(tree.name) == 1 else rf"\mathrm{{{tree.name}}}".replace("_", r"\_")
    operator = OPERATORS[tree.operator]
    parts = [latex(operand) for operand in tree.operands]
    if operator.arity is None:
        return operator.latex.format(", ".join(parts))
    if operator.own is not None and operator.declared.get("latex"):
        # A template of a person's own says nothing of parentheses.
        for position, operand in enumerate(tree.operands):
            if isinstance(operand, Apply) and OPERATORS[operand.operator].symbol:
                parts[position] = rf"\left({parts[position]}\right)"
    if not operator.symbol or operator.name in ("divide", "invert"):
        return operator.latex.format(*parts)
    for position, operand in enumerate(tree.operands):
        level = operator.precedence + (position if len(parts) == 2 else 1)
        if isinstance(operand, Apply) and operand.operator in ("divide", "invert"):
            # A fraction has its own bars; only as a base does it need parentheses.
            inside = operator.name == "power" and position == 0
        elif operator.name == "power":
            inside = position == 0 and isinstance(operand, Apply)
        else:
            negative = isinstance(operand, Apply) and operand.operator == "negate"
            inside = _precedence(operand) < level or (negative and position == 1)
        if inside:
            parts[position] = rf"\left({parts[position]}\right)"
    if operator.name == "multiply" and parts[1][0].isdigit():
        return rf"{parts[0]} \cdot {parts[1]}"
    return operator.latex.format(*parts)
