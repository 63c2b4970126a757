"""With which probability an arm is chosen: what off-policy evaluation needs to know of each selection.

The largest of independent draws is that of arm k with probability

    P_k = integral of g_k(y) prod_{j != k} F_j(y) dy,

g the densities and F the distributions of the draws. A Beta(a, b) draw x is taken as y = ln(x / (1 - x)),
whose density x^a (1 - x)^b / B(a, b) is smooth and falls like exp(-a|y|) and exp(-b y) to the sides,
however small a and b are. The integrals are by Simpson's rule on points that are dense where some g_k
is; F comes from the same parabolas as the integral. What is left out, and the error, is below 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

# Steps in standard deviations, and how far they go to both sides.
_STEP, _FAR = 0.4, 7.0
# Tails are followed down to exp(-32) in so many steps.
_TAIL, _TAIL_STEPS = 32.0, 20


@dataclass(frozen=True)
class Draw:
    """The distribution of a draw: its density, where it is largest, how wide, and where it ends."""

    density: Callable[[float], float]
    centre: float
    width: float
    low: float
    high: float

    def points(self) -> list[tuple[float, float]]:
        """Points at which the density must be known, each with the distance to the next."""
        count = math.ceil(_FAR / _STEP)
        step = _STEP * self.width
        found = [(self.centre + place * step, step) for place in range(-count, count + 1)]
        for end, side in ((self.low, -1.0), (self.high, 1.0)):
            far = self.centre + side * _FAR * self.width
            step = (end - far) / _TAIL_STEPS
            if side * step > 0.0:
                found += [(far + (i + 1) * step, abs(step)) for i in range(_TAIL_STEPS)]
        return found


def beta_draw(a: float, b: float) -> Draw:
    """ln(x / (1 - x)) of a Beta(a, b) variate."""
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    both = a + b

    def density(y: float) -> float:
        rest = math.log1p(math.exp(-abs(y))) + max(y, 0.0)
        return math.exp(scale + a * y - both * rest)

    centre, width = math.log(a / b), math.sqrt(1.0 / a + 1.0 / b)
    low = centre - _FAR * width - _TAIL / a
    return Draw(density, centre, width, low, centre + _FAR * width + _TAIL / b)


def normal_draw(mean: float, deviation: float) -> Draw:
    """A normal variate."""
    scale = 1.0 / (deviation * math.sqrt(2.0 * math.pi))

    def density(y: float) -> float:
        z = (y - mean) / deviation
        return scale * math.exp(-0.5 * z * z)

    far = _FAR * deviation
    return Draw(density, mean, deviation, mean - far, mean + far)


def _grid(draws: Sequence[Draw]) -> list[float]:
    """The points of all draws, without those that lie closer than they need."""
    # Below the largest lower end some draw is certainly larger.
    least = max(draw.low for draw in draws)
    kept = [least]
    for point, step in sorted(item for draw in draws for item in draw.points()):
        if point - kept[-1] >= 0.5 * step:
            kept.append(point)
    return kept


def chances_of_the_largest(draws: Sequence[Draw]) -> list[float]:
    """The probability of each draw to be the largest."""
    grid = _grid(draws)
    found = [0.0] * len(draws)
    # Simpson's rule for what lies below the first point is not needed: F is taken from its own low end.
    below = [_mass(draw, grid[0]) for draw in draws]
    ends = [draw.density(grid[0]) for draw in draws]
    for left, right in pairwise(grid):
        width = right - left
        middle = 0.5 * (left + right)
        halves, rights = [], []
        for place, draw in enumerate(draws):
            if right < draw.low or left > draw.high:
                halves.append((0.0, below[place]))
                rights.append((0.0, below[place]))
                continue
            g0, g1, g2 = ends[place], draw.density(middle), draw.density(right)
            start = below[place]
            halves.append((g1, start + width * (5.0 * g0 + 8.0 * g1 - g2) / 24.0))
            rights.append((g2, start + width * (g0 + 4.0 * g1 + g2) / 6.0))
        lefts = list(zip(ends, below, strict=True))
        for weight, values in ((1.0, lefts), (4.0, halves), (1.0, rights)):
            product = 1.0
            for _, chance in values:
                product *= chance
            if product > 0.0:
                for place, (density, chance) in enumerate(values):
                    found[place] += weight * width / 6.0 * density * product / chance
        ends = [density for density, _ in rights]
        below = [chance for _, chance in rights]
    total = sum(found)
    return [value / total for value in found]


def _mass(draw: Draw, end: float) -> float:
    """The probability of a draw to lie below a point."""
    points = [point for point, _ in sorted(draw.points()) if point < end]
    total = 0.0
    points = [*points, end] if points else []
    for left, right in pairwise(points):
        middle = draw.density(0.5 * (left + right))
        total += (right - left) * (draw.density(left) + 4.0 * middle + draw.density(right)) / 6.0
    return total


def chances_of_a_race(needed: Sequence[int]) -> list[float]:
    """Who is first to be drawn as often as it needs, if all are equally likely at every draw.

    Seen as Poisson processes, arm k arrives after a Gamma(e_k, 1) time; the first arrival wins. The
    logarithm of such a time has the density x^e exp(-x) / Gamma(e). The largest of -ln(time) is first.
    """
    if len(set(needed)) == 1:
        return [1.0 / len(needed)] * len(needed)

    def arrival(e: int) -> Draw:
        scale = -math.lgamma(e)

        def density(y: float) -> float:
            return math.exp(scale - e * y - math.exp(-y)) if y > -700.0 else 0.0

        centre, width = -math.log(e), 1.0 / math.sqrt(e)
        far = _FAR * width
        return Draw(density, centre, width, centre - far, centre + far + _TAIL / e)

    return chances_of_the_largest([arrival(e) for e in needed])
