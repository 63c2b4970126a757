"""Polynomials (Power-P) in plain operators: as a sum of terms to read, or nested to compute."""

from __future__ import annotations

from .operators import polynomial_degree, weighted_powers
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


def _sum(tree: Apply) -> Tree:
    """The sum of the terms whose weight is not zero: weight * v1 * ... each."""
    found = []
    for weight, powers in weighted_powers(tree.operands):
        term = weight
        for value, power in zip(tree.operands, powers, strict=False):
            for _ in range(power):
                term = _times(term, value)
        if term != _ZERO:
            found.append(term)
    if len(found) < 2:
        return found[0] if found else _ZERO
    # Not one addition in another: a few hundred would be deeper than Python goes.
    return Apply("sum", tuple(found))


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
    if not nested:
        return _sum(tree)
    degree = polynomial_degree(len(tree.operands))
    assert degree is not None, len(tree.operands)
    return _nest(tree.operands[:4], tree.operands[4:], degree)
