"""The value of an expression at one state, operator by operator."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import optimize, special

from metabandit.language import Apply, Constant, Name, Tree


def kl(p: float, q: float) -> float:
    first = p * math.log(p / q) if p > 0.0 else 0.0
    return first + (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else first


def kl_upper(mean: float, bound: float) -> float:
    if math.isnan(bound) or not 0.0 <= mean <= 1.0:
        return math.nan
    if bound <= 0.0 or mean == 1.0:
        return mean
    low, high = mean, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        if middle < 1.0 and kl(mean, middle) <= bound:
            low = middle
        else:
            high = middle
    return low


def polynomial(values: list[float], weights: list[float]) -> float:
    """The sum of all weights times products of powers of the four values."""
    degree = round(len(weights) ** 0.25) - 1
    powers = [[value**power for power in range(degree + 1)] for value in values]
    products = map(math.prod, itertools.product(*powers))
    return sum(weight * product for weight, product in zip(weights, products, strict=True))


# Of the first value and the last, as NumPy's numbers, and of all as they are.
def _break_even(discount, mean, larger, low, high):
    """The v with v = (1 - discount) mean + discount larger(v); larger(v) is E[max(v, u)]."""
    if not 0 <= discount < 1:
        return math.nan

    def excess(v):
        return v - (1 - discount) * mean - discount * larger(v)

    if excess(high) <= 0.0:  # by rounding
        return high
    return optimize.brentq(excess, low, high, xtol=1e-15)


def beta_optimist(discount, a, b):
    if not (a > 0 and b > 0 and math.isfinite(a + b)):
        return math.nan
    mean = a / (a + b)

    def larger(v):
        return v * special.betainc(a, b, v) + mean * special.betaincc(a + 1, b, v)

    return _break_even(discount, mean, larger, 0.0, 1.0)


def normal_optimist(discount):
    def larger(v):
        return v * special.ndtr(v) + math.exp(-v * v / 2) / math.sqrt(2 * math.pi)

    return _break_even(discount, 0.0, larger, -1.0, 50.0)


_OPERATIONS = {
    "add": lambda x, y, values: x + y,
    "subtract": lambda x, y, values: x - y,
    "multiply": lambda x, y, values: x * y,
    "difference": lambda x, y, values: 0.0 if abs(x - y) < 1e-13 * (abs(x) + abs(y)) else x - y,
    "divide": lambda x, y, values: x / y,
    "invert": lambda x, y, values: 1.0 / x,
    "negate": lambda x, y, values: -x,
    "power": lambda x, y, values: (
        x * x if y == 2.0 else 1.0 if x == y == 0.0 else np.exp(y * np.log(x))
    ),
    "min": lambda x, y, values: min(values[0], values[-1]),
    "max": lambda x, y, values: max(values[0], values[-1]),
    "sqrt": lambda x, y, values: np.sqrt(x),
    "ln": lambda x, y, values: np.log(x),
    "exp": lambda x, y, values: np.exp(x),
    "abs": lambda x, y, values: abs(x),
    "kl_upper": lambda x, y, values: kl_upper(values[0], values[-1]),
    "beta_optimist": lambda x, y, values: beta_optimist(*values),
    "normal_optimist": lambda x, y, values: normal_optimist(values[0]),
    "normal_quantile": lambda x, y, values: special.ndtri(x),
    "beta_quantile": lambda x, y, values: special.betaincinv(values[1], values[2], values[0]),
    "polynomial": lambda x, y, values: polynomial(values[:4], values[4:]),
}


def apply(name: str, values: list[float]) -> float:
    with np.errstate(all="ignore"):
        return _apply(name, values)


def _apply(name: str, values: list[float]) -> float:
    for value in values:
        if value != value:
            return math.nan
    return float(_OPERATIONS[name](np.float64(values[0]), np.float64(values[-1]), values))


def value(tree: Tree, state: dict[str, float]) -> float:
    """The value of an expression at a state {n, r, s, t, h, K}."""
    with np.errstate(all="ignore"):  # once: it takes longer than an operator
        return _value(tree, state)


def _value(tree: Tree, state: dict[str, float]) -> float:
    if isinstance(tree, Constant):
        return tree.value
    if isinstance(tree, Name):
        return state[tree.name]
    assert isinstance(tree, Apply)
    return _apply(tree.operator, [_value(operand, state) for operand in tree.operands])
