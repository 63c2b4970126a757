"""Polynomials (Power-P) in plain operators: as a sum of terms to read, or nested to compute."""

from __future__ import annotations

from itertools import product

from .operators import polynomial_degree
from .tree import Apply, Constant, Tree

_ZERO = Constant(0.0)


def _add(left: Tree, right: Tree) -> Tree:
    if left == _ZERO:
        return right
    if right == _ZERO:
        return left
    if isinstance(right, Apply) and right.operator == "negate":
        return Apply("subtract", (left, right.operands[0]))
    return Apply("add", (left, right))


def _times(left: Tree, right: Tree) -> Tree:
    """The product, with a sign in front: -(a * b), not (-a) * b."""
    if _ZERO in (left, right):
        return _ZERO
    if isinstance(left, Apply) and left.operator == "negate":
        return Apply("negate", (_times(left.operands[0], right),))
    return right if left == Constant(1.0) else Apply("multiply", (left, right))


def _split(tree: Apply) -> tuple[tuple[Tree, ...], tuple[Tree, ...], int]:
    degree = polynomial_degree(len(tree.operands))
    assert degree is not None, len(tree.operands)
    return tree.operands[:4], tree.operands[4:], degree


def terms(tree: Apply) -> list[Tree]:
    """The terms of a polynomial whose weight is not zero: weight * v1 * ... each."""
    values, weights, degree = _split(tree)
    found = []
    for weight, powers in zip(weights, product(range(degree + 1), repeat=4), strict=True):
        term = weight
        for value, power in zip(values, powers, strict=True):
            for _ in range(power):
                term = _times(term, value)
        if term != _ZERO:
            found.append(term)
    return found


def _sum(parts: list[Tree]) -> Tree:
    if len(parts) < 2:
        return parts[0] if parts else _ZERO
    # Not one addition in another: a few hundred would be deeper than Python goes.
    return Apply("sum", tuple(parts))


def _nest(values: tuple[Tree, ...], weights: tuple[Tree, ...], degree: int) -> Tree:
    """Horner's scheme in the last value, with coefficients that are polynomials in the others."""
    if not values:
        return weights[0]
    step = degree + 1
    coefficients = [_nest(values[:-1], weights[power::step], degree) for power in range(degree + 1)]
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = _add(coefficient, _times(total, values[-1]))
    return total


def plain(tree: Tree, *, nested: bool) -> Tree:
    """The tree without polynomials: nested for speed, or sums of terms for people.

    Such a sum is the operator "sum", which `write_source` knows.
    """
    if not isinstance(tree, Apply):
        return tree
    tree = Apply(tree.operator, tuple(plain(operand, nested=nested) for operand in tree.operands))
    if tree.operator != "polynomial":
        return tree
    return _nest(*_split(tree)) if nested else _sum(terms(tree))
