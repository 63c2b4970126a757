"""Sums whose terms cancel: what is left of `s*s + r*r - r`, which is 0 for rewards of 0 and 1, is rounding.

Ties are relative to the size of an index, so rounding errors of an index that is 0 would rank the arms.
`guarded` writes such a sum as the operator `difference`, which is 0 where it is lost beside its terms.
Every engine takes the guarded tree: what is exact, simulated, played live and exported agree. Only the classes
of formulas (formulas/) rank trees as they are, thousands in a second; what they find is measured guarded. Exports
look at the numbers of parameters themselves, where the others take made-up ones.

A sum whose terms have one sign cannot cancel, which ranges show (rewards are taken for positive there).
The others are tried in the states of an arm with few plays: one is guarded if in some state it is not 0,
but lost. So an index of the usual kind stays as it is. Polynomials are left alone; their weights are
learned, and cancel by chance only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from . import ranges
from .bounds import value_ranges
from .operators import OPERATORS, VARIABLES
from .ranges import Range
from .tree import Apply, Constant, Name, Tree

_SUMS = ("add", "subtract")
# Plays of the arms that sums are tried with.
_PLAYS = (*range(1, 13), 17, 20, 30, 50)
_RANGES: dict[str, Range] = {
    "r": ranges.NOT_NEGATIVE,
    "s": ranges.NOT_NEGATIVE,
    "n": ranges.NOT_NEGATIVE,
    "w": ranges.NOT_NEGATIVE,
    "t": ranges.NOT_NEGATIVE,
    "h": (1.0, math.inf),
    "K": (1.0, math.inf),
}


def _suspects(known: Mapping[Tree, Range]) -> list[Apply]:
    """The sums that could be 0 although their terms are not, by the ranges of these."""
    found = []
    for node in known:
        if isinstance(node, Apply) and node.operator in _SUMS:
            first, second = (known[operand] for operand in node.operands)
            if node.operator == "add":
                second = ranges.opposite(second)
            least, most = max(first[0], second[0]), min(first[1], second[1])
            if least <= most and (least < 0.0 or most > 0.0):
                found.append(node)
    return found


def _states() -> Iterator[Mapping[str, float]]:
    """Arms whose rewards are 0 or 1, some that have other rewards, at various moments."""
    number = 0
    for n in _PLAYS:
        for wins in range(n + 1):
            r = wins / n
            s = math.sqrt(max(wins / n - r * r, 0.0))
            t, h, K = ((2.0 * n, 40.0, 2.0), (3.0 * n + 1.0, 17.0, 3.0), (n + 5.0, 90.0, 5.0))[
                number % 3
            ]
            yield {"n": float(n), "r": r, "s": s, "w": float(number % 2), "t": t, "h": h, "K": K}
            number += 1
        other = {"r": 1.37 / n - 0.7, "s": 0.83 + 0.11 / n}
        yield {"n": float(n), **other, "w": 0.0, "t": 2.0 * n + 3.0, "h": 23.0, "K": 4.0}


@lru_cache(maxsize=1)
def _tried() -> dict[str, list[float]]:
    states = list(_states())
    return {name: [state[name] for state in states] for name in VARIABLES}


def _lost(parts: Iterable[Tree], suspects: list[Apply]) -> set[Apply]:
    """The suspects that are not 0 in some state, but lost beside their terms."""
    tried, wanted = _tried(), set(suspects)
    count = len(tried["n"])
    values: dict[Tree, list[float]] = {}
    found = set()
    for node in parts:
        if isinstance(node, Constant):
            values[node] = [node.value] * count
        elif isinstance(node, Name) and node.name in tried:
            values[node] = tried[node.name]
        elif isinstance(node, Name):
            # A parameter: some number that is hardly a mean or a quotient of plays.
            values[node] = [
                0.5 + (1 + sum(map(ord, node.name)) % 97) / 89.0 * math.sqrt(0.5)
            ] * count
        else:
            function = OPERATORS[node.operator].function
            rows = [values[operand] for operand in node.operands]
            if node in wanted:
                sign = -1.0 if node.operator == "add" else 1.0
                after = []
                for x, y in zip(*rows, strict=True):
                    plain, safe = function(x, y), OPERATORS["difference"].function(x, sign * y)
                    if plain != 0.0 and safe == 0.0:
                        found.add(node)
                    after.append(safe)
                values[node] = after
            else:
                values[node] = [_value(function, *item) for item in zip(*rows, strict=True)]
    return found


def _value(function: object, *operands: float) -> float:
    """What is no number where Python's own operations raise."""
    try:
        return float(function(*operands))  # type: ignore[operator]
    except (ArithmeticError, ValueError):
        return math.nan


def _rewrite(parts: Iterable[Tree], lost: set[Apply]) -> dict[Tree, Tree]:
    """What each part becomes; parts come before what they are in."""
    made: dict[Tree, Tree] = {}
    for node in parts:
        made[node] = node
        if isinstance(node, Apply):
            operands = tuple(made[operand] for operand in node.operands)
            if node in lost and node.operator == "add":
                made[node] = Apply("difference", (operands[0], Apply("negate", operands[1:])))
            elif node in lost:
                made[node] = Apply("difference", operands)
            elif operands != node.operands:
                made[node] = Apply(node.operator, operands)
    return made


@lru_cache(maxsize=256)
def guarded(tree: Tree) -> Tree:
    """The tree with sums that cancel written as differences; itself where none does."""
    known = value_ranges(tree, _RANGES)
    suspects = _suspects(known)
    lost = _lost(known, suspects) if suspects else set()
    return _rewrite(known, lost)[tree] if lost else tree
