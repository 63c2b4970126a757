"""Where Python's own functions raise: the range in which the value of each operator lies.

Python raises where IEEE arithmetic gives inf or nan. The functions here take one range per operand;
`language/operators.py` says which belongs to which operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Range = tuple[float, float]
ALL: Range = (-math.inf, math.inf)
NOT_NEGATIVE: Range = (0.0, math.inf)
# Not quite the largest number: some room for rounding.
_LARGEST_EXPONENT = 700.0


def anything(*ranges: Range) -> Range:
    return ALL


def not_negative(*ranges: Range) -> Range:
    return NOT_NEGATIVE


def total(*ranges: Range) -> Range:
    return sum(item[0] for item in ranges), sum(item[1] for item in ranges)


def difference(x: Range, y: Range) -> Range:
    return x[0] - y[1], x[1] - y[0]


def opposite(x: Range) -> Range:
    return -x[1], -x[0]


def product(x: Range, y: Range) -> Range:
    # An infinite bound is never reached, so that 0 times it is 0.
    ends = [0.0 if 0.0 in (a, b) else a * b for a in x for b in y]
    return min(ends), max(ends)


def inverse(x: Range) -> Range:
    if x[0] <= 0.0 <= x[1]:
        return NOT_NEGATIVE if x[0] == 0.0 else ALL
    return 1.0 / x[1], 1.0 / x[0]


def quotient(x: Range, y: Range) -> Range:
    return product(x, inverse(y))


def smaller(x: Range, y: Range) -> Range:
    return min(x[0], y[0]), min(x[1], y[1])


def larger(x: Range, y: Range) -> Range:
    return max(x[0], y[0]), max(x[1], y[1])


def size(x: Range) -> Range:
    return max(x[0], -x[1], 0.0), max(x[1], -x[0])


def increasing(function: Callable[[float], float], least: float) -> Callable[..., Range]:
    """The range of an increasing function of numbers from `least` on."""

    def of(x: Range) -> Range:
        low, high = (end if end == math.inf else function(max(end, least)) for end in x)
        return low, high

    return of


# Whether Python could raise for operands in these ranges.


def never(*ranges: Range) -> bool:
    return False


def by_zero(*ranges: Range) -> bool:
    return ranges[-1][0] <= 0.0 <= ranges[-1][1]


def below_zero(x: Range) -> bool:
    return not x[0] >= 0.0


def not_positive(x: Range) -> bool:
    return not x[0] > 0.0


def too_large(x: Range) -> bool:
    return not x[1] < _LARGEST_EXPONENT
