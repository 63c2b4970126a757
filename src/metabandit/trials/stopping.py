"""Looks before the end of a trial: at which p-values it stops (Pocock, O'Brien-Fleming, or given).

With looks at shares t_1 < ... < t_K = 1 of the patients, the statistics Z_k of a test behave like
B(t_k)/sqrt(t_k), B being Brownian motion, if patients are many. A trial stops where |Z_k| >= c_k,

    Pocock            c_k = C,
    O'Brien-Fleming   c_k = C / sqrt(t_k),

with C such that the probability to stop at all is the level. The test then rejects at look k if its
p-value is at most that of c_k. For small and for adaptive trials this is an approximation, whose
type-I error is computed exactly; the test `exact` scales the boundary until the level holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from ..errors import InputError, about, nearest
from ..priors.families import Array
from ..settings import check_whole, is_number, read_number

POCOCK, OBRIEN_FLEMING = "pocock", "obrien-fleming"
_SHAPES = (POCOCK, OBRIEN_FLEMING)
# Beyond this many standard deviations nothing happens.
_FAR = 9.0
_NODES = 128


@about("look_every")
def read_looks(every: object, horizon: int, ends: Sequence[int]) -> tuple[int, ...]:
    """The numbers of patients at which a trial may end, of those after which outcomes are known."""
    if every is None:
        return (horizon,)
    step = check_whole(every, "the patients between looks", 1, most=horizon)
    looks = (*range(step, horizon, step), horizon)
    known = set(ends)
    for look in looks:
        if look not in known:
            raise InputError(
                f"a look after {look} patients lies within a block, whose outcomes are not known yet; "
                f"look after a multiple of the block"
            )
    return looks


@about("boundary")
def read_boundary(given: str | Sequence[float], looks: Sequence[int]) -> str | tuple[float, ...]:
    """The name of a boundary, or the p-value at which a trial stops at each look."""
    if isinstance(given, str) and not is_number(given.partition(",")[0]):
        if given not in _SHAPES:
            raise InputError(
                f"unknown boundary {given!r}; {nearest(given, _SHAPES)}, or one p-value per look"
            )
        return given
    items = given.split(",") if isinstance(given, str) else given
    levels = tuple(read_number(item, "the p-value of a boundary") for item in items)
    if len(levels) != len(looks):
        raise InputError(
            f"the boundary has {len(levels)} p-values, but there are {len(looks)} looks"
        )
    for level in levels:
        if not 0.0 <= level < 1.0:
            raise InputError(
                f"the p-value of a boundary must be at least 0 and below 1, not {level:g}"
            )
    return levels


def shape(boundary: str, looks: Sequence[int]) -> Array:
    """c_k / C at each look."""
    shares = np.array(looks) / looks[-1]
    return np.ones(len(looks)) if boundary == POCOCK else 1.0 / np.sqrt(shares)


@cache
def p_values(boundary: str, looks: tuple[int, ...], level: float, *, two_sided: bool) -> Array:
    """The p-values at which a trial stops at each look, such that it does with probability `level`."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    shares, form = np.array(looks) / looks[-1], shape(boundary, looks)

    def excess(constant: float) -> float:
        return _crossing(shares, constant * form, two_sided=two_sided) - level

    constant = brentq(excess, 1e-3, _FAR, xtol=1e-10)
    return np.asarray((2.0 if two_sided else 1.0) * norm.sf(constant * form))


def _crossing(shares: Array, bounds: Array, *, two_sided: bool) -> float:
    """The probability that B(t)/sqrt(t) reaches a bound at some look."""
    from scipy.stats import norm

    unit, weight = np.polynomial.legendre.leggauss(_NODES)
    at, density, before = np.zeros(1), np.ones(1), 0.0
    for share, bound in zip(shares, bounds, strict=True):
        deviation, high = math.sqrt(share - before), bound * math.sqrt(share)
        low = -high if two_sided else -_FAR * math.sqrt(share)
        high = min(high, _FAR * math.sqrt(share))
        low = max(low, -_FAR * math.sqrt(share))
        nodes = 0.5 * (high - low) * unit + 0.5 * (high + low)
        kernel = norm.pdf(nodes[:, None], at[None, :], deviation)
        density = (kernel @ density) * 0.5 * (high - low) * weight
        at, before = nodes, share
    return 1.0 - float(density.sum())
