"""An index as a Python function of all arms: made from its expression at once, with nothing to compile."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from ..language import Tree, variables
from ..language.polynomials import plain
from ..language.source import Language, squares, write_source
from . import special
from .arm import Arm

# values(arms, t, h, K) gives the index of each arm.
Values = Callable[[Sequence[Arm], float, float, int], list[float]]

_SHARED = {
    "power": "power({0}, {1})",
    "abs": "abs({0})",
    # Python's own forget a value that is no number.
    "min": "minimum({0}, {1})",
    "max": "maximum({0}, {1})",
    "kl_upper": "kl_upper({0}, {1})",
    "beta_quantile": "beta_quantile({0}, {1}, {2})",
}
# Quick: an operation without a value raises an error.
_QUICK = Language(
    {
        **_SHARED,
        "sqrt": "math.sqrt({0})",
        "ln": "math.log({0})",
        "exp": "math.exp({0})",
    }
)
# As the machine has it: an operation without a value gives infinity, or no number.
_SAFE = Language(
    {
        **_SHARED,
        "divide": "divide({0}, {1})",
        "invert": "divide(1.0, {0})",
        "sqrt": "sqrt({0})",
        "ln": "ln({0})",
        "exp": "exp({0})",
    }
)
_FIELDS = {"n": "plays", "r": "mean", "s": "deviation"}
_NAMES = {
    name: getattr(special, name)
    for name in [
        "power",
        "kl_upper",
        "beta_quantile",
        "divide",
        "minimum",
        "maximum",
        "sqrt",
        "ln",
        "exp",
    ]
}


def _make(tree: Tree, language: Language) -> Values:
    assignments, text = write_source(squares(plain(tree, nested=True)), language, hoist=True)
    lines = ["def values(arms, t, h, K):"]
    lines += [f"    {item.name} = {item.text}" for item in assignments if item.moment]
    lines += ["    result = []", "    for arm in arms:"]
    used = variables(tree)
    lines += [f"        {name} = arm.{field}" for name, field in _FIELDS.items() if name in used]
    lines += [f"        {item.name} = {item.text}" for item in assignments if not item.moment]
    lines += [f"        result.append({text})", "    return result"]
    scope: dict[str, object] = {"math": math, **_NAMES}
    exec("\n".join(lines), scope)
    made: Values = scope["values"]  # type: ignore[assignment]
    return made


@lru_cache(maxsize=64)
def index_values(tree: Tree) -> Values:
    """The function that gives the index of every arm; infinite, or no number, where there is none."""
    quick, safe = _make(tree, _QUICK), _make(tree, _SAFE)

    def values(arms: Sequence[Arm], t: float, h: float, K: int) -> list[float]:
        try:
            result = quick(arms, t, h, K)
        except (ArithmeticError, ValueError):
            return safe(arms, t, h, K)
        return result if math.isfinite(sum(result)) else safe(arms, t, h, K)

    return values
