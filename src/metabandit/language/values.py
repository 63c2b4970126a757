"""The value of an expression on arrays, in NumPy: a few states at a time, with nothing to compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from .operators import polynomial_degree
from .tree import Constant, Name, Tree

Array = npt.NDArray[np.float64]

# Halvings of the interval that holds KL-UCB's index: to the last bit.
_HALVINGS = 60


def _kl_upper(mean: Array, bound: Array) -> Array:
    """The largest q with kl(mean, q) <= bound, for Bernoulli distributions."""
    from scipy.special import rel_entr

    p = np.clip(mean, 0.0, 1.0)
    low, high = p, np.ones_like(p)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        under = rel_entr(p, middle) + rel_entr(1.0 - p, 1.0 - middle) <= bound
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    known = (mean >= -1e-12) & (mean <= 1.0 + 1e-12) & (bound == bound)
    return np.where(known, np.where(bound > 0.0, low, mean), np.nan)


def _power(base: Array, exponent: Array) -> Array:
    """As the machine has it: the square of any number, other powers of what is not negative."""
    return np.where((base < 0.0) & (exponent != 2.0), np.nan, np.power(base, exponent))


def _beta_quantile(p: Array, a: Array, b: Array) -> Array:
    from scipy.special import betaincinv

    return np.asarray(betaincinv(a, b, p))


def _polynomial(*operands: Array) -> Array:
    degree = polynomial_degree(len(operands))
    assert degree is not None
    values, weights = operands[:4], operands[4:]
    total: Array = np.zeros(np.broadcast_shapes(*(item.shape for item in values)))
    for weight, powers in zip(weights, product(range(degree + 1), repeat=4), strict=True):
        term = weight
        for value, power in zip(values, powers, strict=True):
            if power:
                term = term * value**power
        total = total + term
    return total


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "invert": np.reciprocal,
    "negate": np.negative,
    "power": _power,
    "min": np.minimum,
    "max": np.maximum,
    "sqrt": np.sqrt,
    "ln": np.log,
    "exp": np.exp,
    "abs": np.abs,
    "kl_upper": _kl_upper,
    "beta_quantile": _beta_quantile,
    "polynomial": _polynomial,
}


def evaluate_tree(tree: Tree, variables: Mapping[str, npt.ArrayLike]) -> Array:
    """The value of an expression without parameters; not a number, or infinite, where it has none."""
    if isinstance(tree, Constant):
        return np.asarray(tree.value, dtype=np.float64)
    if isinstance(tree, Name):
        return np.asarray(variables[tree.name], dtype=np.float64)
    with np.errstate(all="ignore"):
        operands = [evaluate_tree(operand, variables) for operand in tree.operands]
        return np.asarray(_FUNCTIONS[tree.operator](*operands))
