"""Indices of all pairs (plays, successes) of an arm: in exact evaluation a lane is such a pair.

Pairs lie in one row: first those with no play, then those with one, and so on; `pair(n, s)` is the
position. All pairs with up to m plays are a prefix of the row.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .jit import jit, lane, part
from .machine import run_lanes, run_step, spread_scalars
from .opcodes import SCRATCH
from .rows import MOST_LANES, SLOT, STRIDE

# Indices closer than this, relative to their size, are ties: thousands of roundings of float64.
TIE = 1e-11

Tables = namedtuple("Tables", "which statistics value lower upper rising scalars rows")
Tables.__doc__ = """Indices by pair, one row for each different arm.

which: int64[arm], the row of an arm
statistics: float64[row, n r s, pair]
value: float64[row, pair], the index; lower and upper: where a tie with it begins and ends
rising: bool[row, n], whether the index of an arm with n plays grows with its successes
scalars, rows: room for the machine
"""


@lane
def pair(n, s):
    return n * (n + 1) // 2 + s


@jit
def fill_statistics(counts, statistics):
    """n, r and s of every pair, on top of pseudo-observations: plays, reward sum, sum of squares."""
    n = 0
    s = 0
    for i in range(statistics.shape[1]):
        plays = counts[0] + n
        mean = (counts[1] + s) / plays if plays > 0.0 else 0.0
        variance = (counts[2] + s) / plays - mean * mean if plays > 0.0 else 0.0
        statistics[0, i] = plays
        statistics[1, i] = mean
        statistics[2, i] = np.sqrt(max(variance, 0.0))
        s += 1
        if s > n:
            n += 1
            s = 0


@part
def _mark_ends(value, lower, upper):
    wrong = 0
    for i in range(value.shape[0]):
        slack = TIE * abs(value[i])
        lower[i] = value[i] - slack
        upper[i] = value[i] + slack
        wrong += 0 if slack < np.inf else 1
    return wrong == 0


@part
def _rises(value, lower):
    falls = 0
    for i in range(1, value.shape[0]):
        falls += 0 if value[i] >= lower[i - 1] else 1
    return falls == 0


@part
def mark_ties(tables, row, plays):
    """Where ties with the indices of up to `plays` plays begin and end; false if one is not finite."""
    count = pair(plays + 1, 0)
    value, lower, upper = tables.value[row], tables.lower[row], tables.upper[row]
    finite = _mark_ends(value[1:count], lower[1:count], upper[1:count])
    # The program's index of an arm without any play, not even pseudo-plays, is never asked for.
    first = _mark_ends(value[:1], lower[:1], upper[:1])
    finite = finite and (first or tables.statistics[row, 0, 0] == 0.0)
    for n in range(plays + 1):
        begin = pair(n, 0)
        end = begin + n + 1
        tables.rising[row, n] = _rises(value[begin:end], lower[begin:end])
    return finite


@part
def _copy(source, target):
    for i in range(source.shape[0]):
        target[i] = source[i]


@part
def fill_indices(program, tables, arms, t, left, plays):
    """The indices of all pairs with up to `plays` plays; false if one is not finite."""
    pairs = pair(plays + 1, 0)
    registers = SLOT + 1
    scalars = tables.scalars
    scalars[0] = t
    scalars[1] = left
    scalars[2] = arms
    run_step(program.step_code, scalars)
    spread_scalars(program.spread, scalars, tables.rows, registers, STRIDE, MOST_LANES, 0)
    scratch = program.registers - SCRATCH
    finite = True
    for row in range(tables.value.shape[0]):
        for first in range(0, pairs, MOST_LANES):
            last = min(first + MOST_LANES, pairs)
            lanes = last - first
            for v in range(3):
                _copy(tables.statistics[row, v, first:last], tables.rows[v * STRIDE :])
            run_lanes(
                program.lane_code, scalars, tables.rows, 0, registers, SLOT, STRIDE, lanes, scratch,
                tables.rows[:0],
            )  # fmt: skip
            _copy(tables.rows[SLOT * STRIDE :][:lanes], tables.value[row, first:])
        finite = mark_ties(tables, row, plays) and finite
    return finite


def chances(alpha: Sequence[float], beta: Sequence[float], horizon: int) -> Any:
    """float64[arm, pair]: the probability of success after each pair, with Beta(alpha, beta) means."""
    n, s = np.tril_indices(horizon + 1)
    return np.stack([(a + s) / (a + b + n) for a, b in zip(alpha, beta, strict=True)])


def layout(horizon: int, mirror: bool) -> tuple[Any, Any]:
    """Where the blocks of two arms begin, with the end of the last, and how far their rows are apart."""
    blocks = np.arange(horizon // 2 + 1 if mirror else horizon + 1)
    stride = horizon + 1 - np.arange(horizon + 2)
    sizes = (blocks + 1) * stride[: len(blocks)]
    return np.concatenate([[0], np.cumsum(sizes)]), stride


def parts(m: int, mirror: bool, count: int) -> list[tuple[int, int]]:
    """Cut the blocks after m plays into parts of about equal work: pairs (low, high)."""
    blocks = np.arange(m // 2 + 1 if mirror else m + 1)
    work = np.cumsum((blocks + 1) * (m - blocks + 1))
    ends = np.searchsorted(work, work[-1] * np.arange(1, count) / count, side="right")
    cuts = sorted({0, *ends.tolist(), len(blocks)})
    return list(pairwise(cuts))
