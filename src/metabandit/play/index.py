"""An index as a Python function of all arms: made from its expression at once, with nothing to compile."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ..language import OPERATORS, Apply, Tree, variables
from ..language.polynomials import plain
from ..language.source import write_source
from ..language.tree import walk
from .arm import Arm

# values(arms, t, h, K) gives the index of each arm.
Values = Callable[[Sequence[Arm], float, float, int], list[float]]

_FIELDS = {"n": "arm.plays + arm.waits", "r": "arm.mean", "s": "arm.deviation", "w": "arm.waits"}


def _is_own(tree: Tree) -> bool:
    return isinstance(tree, Apply) and OPERATORS[tree.operator].own is not None


def _make(tree: Tree, *, safe: bool) -> Values:
    """The function; if it is safe, as the machine has it: nothing raises.

    Else an operation without a value may raise an error, where the machine has infinity, or no number.
    """
    tree = plain(tree, nested=True)
    # A person's own operator is called, whatever its exported text is.
    called = {part for part in walk(tree) if safe or _is_own(part)}
    assignments, text = write_source(tree, "python", hoist=True, safe=called)
    lines = ["def values(arms, t, h, K):"]
    lines += [f"    {name} = {value}" for name, value, moment in assignments if moment]
    lines += ["    result = []", "    for arm in arms:"]
    used = variables(tree)
    lines += [f"        {name} = {field}" for name, field in _FIELDS.items() if name in used]
    lines += [f"        {name} = {value}" for name, value, moment in assignments if not moment]
    lines += [f"        result.append({text})", "    return result"]
    made: Values = _run(lines, "values", safe=safe)
    return made


def _run(lines: list[str], name: str, *, safe: bool) -> Any:
    """What a function's source makes, where the functions of all operators are known."""
    scope: dict[str, Any] = {"math": math}
    for operator in OPERATORS.values():
        if operator.own is not None:
            scope[operator.helper] = operator.function if safe else operator.own
        elif hasattr(operator.function, "__name__"):
            scope[operator.function.__name__] = operator.function
    exec("\n".join(lines), scope)
    return scope[name]


@lru_cache(maxsize=64)
def moment_value(tree: Tree) -> Callable[[float, float, int], float]:
    """A value that is the same for all arms, as a function of t, h and K."""
    tree = plain(tree, nested=True)
    own = {part for part in walk(tree) if _is_own(part)}
    bodies = []
    for called in (own, set(walk(tree))):
        assignments, text = write_source(tree, "python", safe=called)
        steps = [f"{name} = {value}" for name, value, _ in assignments]
        bodies.append([f"        {step}" for step in (*steps, f"return {text}")])
    quick, safe = bodies
    lines = ["def value(t, h, K):", "    try:", *quick]
    lines += ["    except (ArithmeticError, ValueError, TypeError):", *safe]
    made: Callable[[float, float, int], float] = _run(lines, "value", safe=True)
    return made


@lru_cache(maxsize=64)
def index_values(tree: Tree) -> Values:
    """The function that gives the index of every arm; infinite, or no number, where there is none."""
    # The first may raise an error where an operation has no value; the second is as the machine has it.
    quick, safe = _make(tree, safe=False), _make(tree, safe=True)

    def values(arms: Sequence[Arm], t: float, h: float, K: int) -> list[float]:
        try:
            result = quick(arms, t, h, K)
        except (ArithmeticError, ValueError, TypeError):
            return safe(arms, t, h, K)
        return result if math.isfinite(sum(result)) else safe(arms, t, h, K)

    return values
