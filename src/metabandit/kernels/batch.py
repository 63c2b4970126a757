"""Many index policies in one call: thousands of programs, evaluated exactly or simulated.

What the policies have in common (prior, start, horizon, room to work in) is set up once, in Python;
the programs lie one after the other in flat arrays.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from .counts import ZERO, pair
from .forward import DONE, MOST_PLAYS, TINY, Judged, fold, set_tables, step_two, totals
from .jit import jit, lane
from .machine import Program
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


def pack(compiled: Sequence[Any]) -> Any:
    """Compiled expressions in one set of arrays."""

    def joined(name: str) -> tuple[Any, Any]:
        parts = [getattr(item, name) for item in compiled]
        ends = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        return np.concatenate(parts), ends.astype(np.int64)

    def each(name: str, kind: Any) -> Any:
        return np.array([getattr(item, name) for item in compiled], kind)

    return Programs(
        *joined("lane_code"),
        *joined("step_code"),
        *joined("scalars"),
        *joined("spread"),
        each("constants", np.int64),
        each("registers", np.int64),
        each("uses_s", np.bool_),
        each("varies", np.bool_),
    )


def take(programs: Any, which: Any) -> Any:
    """Some of the programs, in their own arrays."""

    def some(values: Any, ends: Any) -> tuple[Any, Any]:
        lengths = ends[which + 1] - ends[which]
        begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(begins[-1]) + np.repeat(ends[which] - begins[:-1], lengths)
        return values[places], begins

    return Programs(
        *some(programs.lane_code, programs.lane_ends),
        *some(programs.step_code, programs.step_ends),
        *some(programs.scalars, programs.scalar_ends),
        *some(programs.spread, programs.spread_ends),
        *(values[which] for values in programs[8:]),
    )


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


@jit
def _load(source, target):
    for i in range(source.shape[0]):
        target[i] = source[i]


SharedEpisodes = namedtuple("SharedEpisodes", "run problems behaviour draw decide outcome")
SharedEpisodes.__doc__ = (
    """What policies that play the same episodes have in common (see simulator.py)."""
)

Game = namedtuple("Game", "begin clock best positions weights work sums")
Game.__doc__ = """What policies that are evaluated exactly have in common.

begin: plays before the first choice; clock, work: see forward.py; best: the expected best mean
positions, weights: the states before the first choice, as n, s1, s2, and how likely they are
"""


Screened = namedtuple("Screened", "regret reached choices")


@lane
def _mixed(x):
    x = u64(x * u64(0x9E3779B97F4A7C15))
    x = u64(x ^ u64(x >> u64(29)))
    x = u64(x * u64(0xBF58476D1CE4E5B9))
    return u64(x ^ u64(x >> u64(32)))


@jit
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


@jit
def _begin(game, slice):
    for i in range(game.weights.shape[0]):
        n = game.positions[i, 0]
        s1 = game.positions[i, 1]
        slice.weight[slice.offset[n] + s1 * slice.stride[n] + game.positions[i, 2]] = game.weights[
            i
        ]
        slice.first[pair(n, s1)] = 0
        slice.last[pair(n, s1)] = n


@jit
def _clear(m, slice):
    """Empty what m plays can have filled."""
    top = m // 2 if slice.mirror else m
    top = min(top + 1, slice.offset.shape[0] - 1)
    for i in range(slice.offset[top]):
        slice.weight[i] = 0.0
    for i in range(min(pair(top + 1, 0), slice.first.shape[0])):
        slice.first[i] = MOST_PLAYS
        slice.last[i] = -1


@jit
def _advance(m, end, slice, policy, game, fingerprinted):
    """From m plays to `end`: plays made, less than `end` at a fault, and a fingerprint of all choices."""
    clock, varies = game.clock, policy.program.varies
    fingerprint = u64(0)
    finite = varies or set_tables(m, clock, policy, max(end - 1, 0))
    while m < end:
        if varies:
            finite = set_tables(m, clock, policy, m)
        if fingerprinted:
            fingerprint = u64(fingerprint + _choices(m, slice, policy.tables))
        blocks = (m // 2 if slice.mirror else m) + 1
        if step_two(m, ZERO, blocks, slice, policy, finite, game.work) != DONE:
            break
        m += 1
        fold(m, slice)
    return m, fingerprint


@jit
def evaluate_many(programs, which, limits, points, game, slice, policy, found):
    """The exact regret of index policies of two arms.

    After points[0], points[1], ... plays a policy whose regret is above its limit is given up: regret
    only grows. found.regret[i] is what it was when found.reached[i] plays were made; it is infinite for
    a policy whose index is not finite somewhere. found.choices[i], if there is room for it, is a
    fingerprint of all choices up to there.
    """
    fingerprinted = found.choices.shape[0] > 0
    for i in range(which.shape[0]):
        program = _program(programs, which[i])
        _load(program.scalars, policy.tables.scalars)
        this = Judged(policy.choice, program, policy.tables)
        _begin(game, slice)
        m = game.begin
        fingerprint = u64(0)
        found.regret[i] = np.inf
        for position in range(points.shape[0]):
            end = points[position]
            m, part = _advance(m, end, slice, this, game, fingerprinted)
            fingerprint = u64(fingerprint + part)
            if m < end:
                found.regret[i] = np.inf
                break
            totals(m, slice, game.sums)
            found.regret[i] = m * game.best - game.sums[0]
            if found.regret[i] > limits[i]:
                break
        found.reached[i] = m
        if fingerprinted:
            found.choices[i] = fingerprint
        _clear(m + 1, slice)


@jit
def simulate_many(programs, which, first, row, task, work, simple, out):
    """The regret of index policies in every episode, out[policy, episode]; infinite if one fails.

    Policy which[i] plays the episodes from number first[i] on, of the problems from row[i] on.
    """
    run, problems, outcome = task.run, task.problems, task.outcome
    count = out.shape[1] // run.runs
    for i in range(which.shape[0]):
        program = _program(programs, which[i])
        _load(program.scalars, work.scalars)
        status = simulate(
            Run(run.seed, first[i], run.runs, run.horizon, run.lanes),
            Problems(
                problems.parameters[row[i] : row[i] + count],
                problems.means[row[i] : row[i] + count],
                problems.binary,
                problems.low,
                problems.high,
            ),
            task.behaviour,
            program,
            task.draw,
            task.decide,
            work,
            outcome,
        )
        regret = outcome.regret[1] if simple else outcome.regret[0]
        for j in range(out.shape[1]):
            out[i, j] = regret[j] if status == SIMULATED else np.inf
