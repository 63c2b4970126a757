"""The range that the value of each part of an expression lies in."""

from __future__ import annotations

from collections.abc import Mapping

from . import ranges
from .operators import OPERATORS
from .ranges import Range
from .tree import Apply, Constant, Name, Tree


def as_product(tree: Apply) -> Apply:
    """A square as a product, which any number has; other powers are of numbers >= 0.

    Squares inside stay as they are, or the tree would double with each.
    """
    if tree.operator == "power" and tree.operands[1] == Constant(2.0):
        return Apply("multiply", (tree.operands[0], tree.operands[0]))
    return tree


def value_ranges(tree: Tree, known: Mapping[str, Range]) -> dict[Tree, Range]:
    """The range of each part, parts before what they are in; `known` has those of the variables."""
    found: dict[Tree, Range] = {}

    def visit(node: Tree) -> None:
        if node in found:
            return
        if isinstance(node, Constant):
            low, high = node.value, node.value
        elif isinstance(node, Name):
            low, high = known.get(node.name, ranges.ALL)
        else:
            for operand in node.operands:
                visit(operand)
            made = as_product(node)
            bounds = ranges.total if made.operator == "sum" else OPERATORS[made.operator].bounds
            low, high = bounds(*(found[operand] for operand in made.operands))
            if made.operator == "multiply" and made.operands[0] == made.operands[1]:
                low = max(low, 0.0)
        # What could be nan can be anything.
        found[node] = (low, high) if low == low and high == high else ranges.ALL

    visit(tree)
    return found
