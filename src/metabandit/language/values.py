"""The value of an expression on arrays, in NumPy: a few states at a time, with nothing to compile."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from .operators import OPERATORS
from .tree import Constant, Name, Tree

Array = npt.NDArray[np.float64]


def evaluate_tree(tree: Tree, variables: Mapping[str, npt.ArrayLike]) -> Array:
    """The value of an expression without parameters; not a number, or infinite, where it has none."""
    if isinstance(tree, Constant):
        return np.asarray(tree.value, dtype=np.float64)
    if isinstance(tree, Name):
        return np.asarray(variables[tree.name], dtype=np.float64)
    operator = OPERATORS[tree.operator]
    function = operator.function
    if operator.array is None:
        function = np.vectorize(function, otypes=[np.float64])
    elif operator.array:
        function = getattr(np, operator.array)
    with np.errstate(all="ignore"):
        return np.asarray(function(*(evaluate_tree(item, variables) for item in tree.operands)))
