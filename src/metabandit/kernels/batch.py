"""Many index policies in one call: thousands of programs, evaluated exactly or simulated.

What the policies have in common (prior, start, horizon, room to work in) is set up once, in Python;
the programs lie one after the other in flat arrays.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from .counts import pair
from .forward import DONE, MOST_PLAYS, TINY, Judged, set_tables, step_two, totals
from .jit import jit, lane, part
from .machine import Program, copy
from .simulator import DONE as SIMULATED
from .simulator import Problems, Run, simulate

u64 = np.uint64

Programs = namedtuple(
    "Programs",
    "lane_code lane_ends step_code step_ends scalars scalar_ends spread spread_ends "
    "constants registers uses_s varies",
)
Programs.__doc__ = (
    """Programs one after the other; those of number i are x[x_ends[i] : x_ends[i + 1]]."""
)

# What a program has several of, and its single numbers.
_CUT = ("lane_code", "step_code", "scalars", "spread")
_EACH = (
    ("constants", np.int64),
    ("registers", np.int64),
    ("uses_s", np.bool_),
    ("varies", np.bool_),
)


def pack(compiled: Sequence[Any]) -> Any:
    """Compiled expressions in one set of arrays."""

    def joined(name: str) -> tuple[Any, Any]:
        parts = [getattr(item, name) for item in compiled]
        ends = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        return np.concatenate(parts), ends.astype(np.int64)

    parts = [item for name in _CUT for item in joined(name)]
    parts += [np.array([getattr(item, name) for item in compiled], kind) for name, kind in _EACH]
    return Programs(*parts)


def take(programs: Any, which: Any) -> Any:
    """Some of the programs, in their own arrays."""

    def some(values: Any, ends: Any) -> tuple[Any, Any]:
        lengths = ends[which + 1] - ends[which]
        begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(begins[-1]) + np.repeat(ends[which] - begins[:-1], lengths)
        return values[places], begins

    cut = chain.from_iterable(map(some, programs[:8:2], programs[1:8:2]))
    return Programs(*cut, *(values[which] for values in programs[8:]))


@lane
def _program(programs, i):
    return Program(
        programs.lane_code[programs.lane_ends[i] : programs.lane_ends[i + 1]],
        programs.step_code[programs.step_ends[i] : programs.step_ends[i + 1]],
        programs.scalars[programs.scalar_ends[i] : programs.scalar_ends[i + 1]],
        programs.spread[programs.spread_ends[i] : programs.spread_ends[i + 1]],
        programs.constants[i],
        programs.registers[i],
        programs.uses_s[i],
        programs.varies[i],
    )


@lane
def _mixed(x):
    x = u64(x * u64(0x9E3779B97F4A7C15))
    x = u64(x ^ u64(x >> u64(29)))
    x = u64(x * u64(0xBF58476D1CE4E5B9))
    return u64(x ^ u64(x >> u64(32)))


@part
def _choices(m, slice, tables):
    """A fingerprint of what is chosen in every state that play reaches after m plays."""
    value = tables.value[tables.which[0]]
    upper = tables.upper[tables.which[1]]
    lower = tables.lower[tables.which[1]]
    total = u64(0)
    top = m // 2 if slice.mirror else m
    for n1 in range(top + 1):
        seconds = pair(m - n1, 0)
        for s1 in range(n1 + 1):
            at = pair(n1, s1)
            begin = slice.offset[n1] + s1 * slice.stride[n1]
            key = _mixed(u64(u64(m) * u64(1 << 24) + u64(at)))
            for s2 in range(slice.first[at], slice.last[at] + 1):
                if slice.weight[begin + s2] > TINY:
                    code = u64(1) if value[at] >= lower[seconds + s2] else u64(0)
                    code = u64(2) if value[at] > upper[seconds + s2] else code
                    total = u64(total + u64(code * _mixed(u64(key + u64(s2)))))
    return total


@part
def _begin(first, slice):
    """Fill in the states before the first choice."""
    positions, weights = first
    for i in range(weights.shape[0]):
        n, s1, s2 = positions[i, 0], positions[i, 1], positions[i, 2]
        slice.weight[slice.offset[n] + s1 * slice.stride[n] + s2] = weights[i]
        slice.first[pair(n, s1)] = 0
        slice.last[pair(n, s1)] = n


@part
def _clear(m, slice):
    """Empty what m plays can have filled."""
    top = m // 2 if slice.mirror else m
    top = min(top + 1, slice.offset.shape[0] - 1)
    for i in range(slice.offset[top]):
        slice.weight[i] = 0.0
    for i in range(min(pair(top + 1, 0), slice.first.shape[0])):
        slice.first[i] = MOST_PLAYS
        slice.last[i] = -1


@part
def _advance(m, end, clock, slice, policy, work, fingerprinted):
    """From m plays to `end`: plays made, less than `end` at a fault, and a fingerprint of all choices."""
    varies = policy.program.varies
    fingerprint = u64(0)
    finite = varies or set_tables(m, clock, policy, max(end - 1, 0))
    while m < end:
        if varies:
            finite = set_tables(m, clock, policy, m)
        if fingerprinted:
            fingerprint = u64(fingerprint + _choices(m, slice, policy.tables))
        if step_two(m, slice, policy, finite, work) != DONE:
            break
        m += 1
    return m, fingerprint


@part
def _wins(m, slice, ratio):
    """Expected successes of both arms, each state's weight times its ratio."""
    total = 0.0
    for n1 in range(m + 1):
        for s1 in range(n1 + 1):
            at = pair(n1, s1)
            begin = slice.offset[n1] + s1 * slice.stride[n1]
            for s2 in range(slice.first[at], slice.last[at] + 1):
                total += slice.weight[begin + s2] * ratio[begin + s2] * (s1 + s2)
    return total


@jit
def evaluate_many(programs, which, limits, points, ratios, game, slice, policy, found):
    """The exact regret of index policies of two arms.

    game: plays before the first choice, clock (see forward.py), the expected best mean, the states before
    the first choice (as n, s1, s2, and their weights), room for a step and for sums.
    ratios: float64[point, position], if problems are listed: how much more likely a state is with the list
    than with the slice's weights; else it is empty

    After points[0], points[1], ... plays a policy whose regret is above its limit is given up: regret
    only grows. found: regret[i] is what it was when reached[i] plays were made; it is infinite for
    a policy whose index is not finite somewhere. choices[i], if there is room for it, is a fingerprint
    of all choices up to there.
    """
    begin, clock, best, first, work, sums = game
    regret, reached, choices = found
    fingerprinted = choices.shape[0] > 0
    for i in range(which.shape[0]):
        program = _program(programs, which[i])
        copy(program.scalars, policy.tables.scalars)
        this = Judged(policy.choice, program, policy.tables)
        _begin(first, slice)
        m = begin
        fingerprint = u64(0)
        for position in range(points.shape[0]):
            end = points[position]
            m, part = _advance(m, end, clock, slice, this, work, fingerprinted)
            fingerprint = u64(fingerprint + part)
            regret[i] = np.inf
            if m < end:
                break
            totals(m, slice, sums)
            won = sums[0] if ratios.shape[0] == 0 else _wins(m, slice, ratios[position])
            regret[i] = m * best - won
            if regret[i] > limits[i]:
                break
        reached[i] = m
        if fingerprinted:
            choices[i] = fingerprint
        _clear(m + 1, slice)


@jit
def simulate_many(programs, which, first, row, shared, work, simple, out):
    """The regret of index policies in every episode, out[policy, episode]; infinite if one fails.

    Policy which[i] plays the episodes from number first[i] on, of the problems from row[i] on. shared:
    run, problems, behaviour, draw, decide and outcome, as simulator.py takes them.
    """
    run, problems, behaviour, draw, decide, outcome = shared
    count = out.shape[1] // run.runs
    for i in range(which.shape[0]):
        program = _program(programs, which[i])
        copy(program.scalars, work.scalars)
        status = simulate(
            Run(run.seed, first[i], run.runs, run.horizon, run.lanes),
            Problems(
                problems.parameters[row[i] : row[i] + count],
                problems.means[row[i] : row[i] + count],
                problems.binary,
                problems.low,
                problems.high,
            ),
            behaviour,
            program,
            draw,
            decide,
            work,
            outcome,
        )
        regret = outcome.regret[1] if simple else outcome.regret[0]
        for j in range(out.shape[1]):
            out[i, j] = regret[j] if status == SIMULATED else np.inf
