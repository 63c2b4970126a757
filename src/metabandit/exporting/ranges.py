"""Where Python's own functions do: in what range the operands of an index lie.

Python raises where IEEE arithmetic gives inf or nan. Operators that could come there are renamed
("safe ln"), so that only these are written as calls of the helpers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..language import Apply, Constant, Name, Tree

Range = tuple[float, float]
_ALL = (-math.inf, math.inf)
# Not quite the largest number: some room for rounding.
_LARGEST_EXPONENT = 700.0


def _product(x: Range, y: Range) -> Range:
    # An infinite bound is never reached, so that 0 times it is 0.
    ends = [0.0 if 0.0 in (a, b) else a * b for a in x for b in y]
    return min(ends), max(ends)


def _invert(x: Range) -> Range:
    if x[0] <= 0.0 <= x[1]:
        return (0.0, math.inf) if x[0] == 0.0 else _ALL
    return 1.0 / x[1], 1.0 / x[0]


def _increasing(function: Callable[[float], float], x: Range, least: float) -> Range:
    return tuple(end if end == math.inf else function(max(end, least)) for end in x)  # type: ignore[return-value]


def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf


def _exp(x: float) -> float:
    return math.exp(x) if x < _LARGEST_EXPONENT else math.inf


def _combine(tree: Apply, ranges: list[Range]) -> Range:
    name = tree.operator
    x, y = ranges[0], ranges[-1]
    if name == "add" or name == "sum":
        return sum(item[0] for item in ranges), sum(item[1] for item in ranges)
    if name == "subtract":
        return x[0] - y[1], x[1] - y[0]
    if name == "negate":
        return -x[1], -x[0]
    if name == "multiply":
        low, high = _product(x, y)
        return (max(low, 0.0), high) if tree.operands[0] == tree.operands[1] else (low, high)
    if name == "divide":
        return _product(x, _invert(y))
    if name == "invert":
        return _invert(x)
    if name == "min":
        return min(x[0], y[0]), min(x[1], y[1])
    if name == "max":
        return max(x[0], y[0]), max(x[1], y[1])
    if name == "sqrt":
        return _increasing(math.sqrt, x, 0.0)
    if name == "ln":
        return _increasing(_log, x, 0.0)
    if name == "exp":
        return _increasing(_exp, x, -math.inf)
    if name == "abs":
        return max(x[0], -x[1], 0.0), max(x[1], -x[0])
    if name == "power" or name == "beta_quantile":
        return 0.0, math.inf
    return _ALL


def _raises(name: str, ranges: list[Range]) -> bool:
    """Whether Python could raise for operands in these ranges."""
    low, high = ranges[-1]
    if name in ("divide", "invert"):
        return low <= 0.0 <= high
    if name == "sqrt":
        return not low >= 0.0
    if name == "ln":
        return not low > 0.0
    return name == "exp" and not high < _LARGEST_EXPONENT


def guarded(tree: Tree, least_plays: float) -> Tree:
    """The tree with operators renamed "safe ..." where Python's own would raise."""
    start: dict[str, Range] = {
        "r": _ALL,
        "s": (0.0, math.inf),
        "n": (least_plays, math.inf),
        "t": (least_plays, math.inf),
        "h": (1.0, math.inf),
        "K": (1.0, math.inf),
    }

    def visit(node: Tree) -> tuple[Tree, Range]:
        if isinstance(node, Constant):
            return node, (node.value, node.value)
        if isinstance(node, Name):
            return node, start[node.name]
        pairs = [visit(operand) for operand in node.operands]
        ranges = [pair[1] for pair in pairs]
        name = f"safe {node.operator}" if _raises(node.operator, ranges) else node.operator
        low, high = _combine(node, ranges)
        # What could be nan can be anything.
        known = low == low and high == high
        return Apply(name, tuple(pair[0] for pair in pairs)), (low, high) if known else _ALL

    return visit(tree)[0]
