"""Whether the means of a table are shares of counted plays, and so noisy.

A share of n plays is a multiple of 1/n. Means of d decimals are multiples of 10^-d anyway, and close to
multiples of 1/n for any large n; but that m means are all within h = 10^-d/2 of multiples of 1/n by chance has
the probability (2 n h)^m, for one n. If it is tiny for the least such n, the means are shares of n plays. With
many decimals a row, or even a single mean, is enough; plays may then differ between tests or arms.

The noise of such a mean has the variance x (1 - x)/n on average.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

from .families import Array

# Plays that are looked for: fewer could be a grid that a person made up. A smaller chance is none.
_LEAST_PLAYS, _MOST_PLAYS, _CHANCE = 100, 20_000, 1e-6
# Problems, and single means, that are looked at.
_MOST_PROBLEMS, _MOST_MEANS = 100, 200
# Decimals of a number as computers keep them.
_MOST_DECIMALS = 15


def _decimals(means: Array) -> int:
    """Decimals with which means were written."""
    found = (-int(Decimal(repr(mean)).as_tuple().exponent) for mean in means.ravel().tolist())
    return min(max(found, default=0), _MOST_DECIMALS)


def _plays(means: Array, decimals: int) -> int | None:
    """The least number of plays of which all means are shares; None if that may be chance."""
    shares = np.unique(means)
    shares = shares[(shares > 0.0) & (shares < 1.0)]
    half = 0.5000001 * 10.0**-decimals
    # Multiples of 10^-d are as close to those of most finer grids.
    left = np.arange(2, min(_MOST_PLAYS, math.floor(0.4 * 10.0**decimals)) + 1)
    for share in shares:
        left = left[np.abs(share * left - np.rint(share * left)) <= half * left]
    plays = int(left[0]) if len(left) else 0
    # Each number of plays is a try of its own.
    chance = plays * (2.0 * plays * half) ** len(shares)
    return plays if plays >= _LEAST_PLAYS and chance <= _CHANCE else None


def find_plays(means: Array) -> float | None:
    """About the plays behind each mean of a table, [problem, arm]; None if they do not show."""
    means = means[:_MOST_PROBLEMS]
    decimals = _decimals(means)
    for parts in ([means], means, means.ravel()[:_MOST_MEANS]):
        each = [_plays(part, decimals) for part in parts]
        known = [plays for plays in each if plays is not None]
        # Some, such as 0 or 1/2, do not tell.
        if len(known) > 0.8 * len(each):
            return float(np.median(known))
    return None


def noise_share(means: Array, plays: float) -> float:
    """How much of the variance of means is noise, if each mean is the share of wins in this many plays."""
    variance = float(means.var())
    return float((means * (1.0 - means)).mean()) / plays / variance if variance else 1.0
