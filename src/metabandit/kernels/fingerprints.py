"""Fingerprints of formulas: of their values on sample points, and of how they rank arms.

A formula F is computed on points x[k, g]: arm k of group g, whose arms share a moment. With random odd
64-bit keys and all sums modulo 2^64,

    values(F) = sum over points i of  mix(bits of F(x[i])) * key[i]
    ranks(F)  = sum over groups g, arms j < k of  order(F(x[k, g]), F(x[j, g])) * key[jk, g]

where order is 0 for equal numbers, 1 for larger and 2 for smaller. Equal values(F) make one node of an
enumeration; equal ranks(F) make one class (steps 3 and 4 of Section 5.2 of the paper).

A node is an operation and one or two nodes that it is applied to. Nodes short enough to be an operand of
longer ones have a row of values. Those of any other node are computed when they are needed: a node without
a row has at most one operand without one.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from .jit import jit, lane, part
from .machine import run_lanes
from .opcodes import LANE_VARIABLES, SCRATCH, WIDTH

u64 = np.uint64

# What stands in place of a fingerprint.
INVALID = u64(0)
SKIPPED = u64(1)

# Lanes that are computed together: a formula that is not valid is mostly found out in the first.
_BLOCK = 512
# The operand of the first row: no row is an arm variable here.
_FIRST = len(LANE_VARIABLES)
_MIX = u64(0x9E3779B97F4A7C15)
_EXPONENT = u64(0x7FF0000000000000)
_HALF = u64(32)
# Rows after the stored ones: a formula under construction, its result, the machine's own.
_SPARE = 2 + SCRATCH
_DEEPEST = 64

Nodes = namedtuple("Nodes", "operation left right")
Nodes.__doc__ = "int32 arrays with one entry per node: the operation, and what it is applied to."

Keys = namedtuple("Keys", "arms groups values ranks tolerance")
Keys.__doc__ = """What makes a fingerprint of a row: first all groups of arm 0, then those of arm 1, ...

values: uint64[arms * groups]; ranks: uint64[pairs of arms, groups]: random odd numbers
tolerance: values are equal if they differ by at most this share of the larger one
"""

Rows = namedtuple("Rows", "values points stored code scalars path")
Rows.__doc__ = """One thread's rows of values, `points` numbers each, and what the machine needs.

stored: how many nodes have a row
"""

Combination = namedtuple("Combination", "first last small end variants same")
Combination.__doc__ = """All formulas made of a node first, ..., last - 1 and a node small, ..., end - 1.

variants: int32[variant, 2], an operation and whether the small node comes second
same: whether both are of one length: then each pair is taken once
"""


def make_rows(values: Any, points: int) -> Any:
    """Rows of a thread that begin with these values."""
    room = np.concatenate([values, np.zeros(_SPARE * points)])
    code, path = np.zeros((1, WIDTH), np.int32), np.zeros(_DEEPEST, np.int64)
    return Rows(room, points, len(values) // points, code, np.zeros(1), path)


def make_keys(arms: int, groups: int, tolerance: float) -> Any:
    """Random keys for the points of a sample, always the same."""
    rng = np.random.default_rng(2012)

    def odd(*shape: int) -> Any:
        return rng.integers(0, 2**63, shape, dtype=u64) * u64(2) + u64(1)

    values, ranks = odd(arms * groups), odd(arms * (arms - 1) // 2, groups)
    return Keys(arms, groups, values, ranks, tolerance)


@lane
def _mixed(bits):
    bits = u64(bits * _MIX)
    return u64(bits ^ u64(bits >> _HALF))


@part
def _add(row, keys, state):
    """Add a row to a fingerprint; INVALID if a value is not finite."""
    total = state
    wrong = u64(0)
    for i in range(row.shape[0]):
        bits = np.float64(row[i]).view(np.uint64)
        bits = u64(0) if row[i] == 0.0 else bits  # also -0
        wrong = u64(wrong | (u64(1) if u64(bits & _EXPONENT) == _EXPONENT else u64(0)))
        total = u64(total + u64(_mixed(bits) * keys[i]))
    return INVALID if wrong else max(total, u64(2))


@part
def _apply(operation, x, y, out, begin, lanes, rows):
    """Apply an operation to rows x and y, from one point on."""
    rows.code[0, 0] = operation
    rows.code[0, 2] = _FIRST + x
    rows.code[0, 3] = _FIRST + y
    scratch = rows.stored + 2
    values = rows.values[begin:]
    run_lanes(rows.code, rows.scalars, values, 0, 0, out, rows.points, lanes, scratch, values[:0])


@part
def _fill(operation, x, y, out, rows):
    for begin in range(0, rows.points, _BLOCK):
        _apply(operation, x, y, out, begin, min(_BLOCK, rows.points - begin), rows)


@part
def _row_of(node, nodes, rows):
    """The row that has a node's values, which are computed if need be."""
    if node < rows.stored:
        return node
    depth = 0
    while node >= rows.stored:
        rows.path[depth] = node
        depth += 1
        node = max(nodes.left[node], nodes.right[node])
    spare = np.int64(rows.stored)
    for level in range(depth - 1, -1, -1):
        at = rows.path[level]
        x = np.int64(nodes.left[at])
        y = np.int64(nodes.right[at])
        x = x if x < rows.stored else spare
        y = y if y < rows.stored else spare
        _fill(nodes.operation[at], x, y, spare, rows)
    return spare


@jit
def combine(formulas, nodes, rows, keys, out):
    """values(F) of the formulas of a Combination, one entry per node, small node and variant."""
    variants = formulas.variants
    result = rows.stored + 1
    position = 0
    for node in range(formulas.first, formulas.last):
        row = _row_of(node, nodes, rows)
        for other in range(formulas.small, formulas.end):
            for v in range(variants.shape[0]):
                swapped = variants[v, 1] == 1
                if formulas.same and (other > node or (other == node and swapped)):
                    out[position] = SKIPPED
                    position += 1
                    continue
                x = row if swapped else other
                y = other if swapped else row
                state = u64(0)
                for begin in range(0, rows.points, _BLOCK):
                    lanes = min(_BLOCK, rows.points - begin)
                    _apply(variants[v, 0], x, y, result, begin, lanes, rows)
                    at = result * rows.points + begin
                    state = _add(
                        rows.values[at : at + lanes], keys.values[begin : begin + lanes], state
                    )
                    if state == INVALID:
                        break
                out[position] = state
                position += 1


@part
def _order(x, y, tolerance, keys):
    """The part of ranks(F) that is due to two arms."""
    total = u64(0)
    for i in range(x.shape[0]):
        a = x[i]
        b = y[i]
        slack = tolerance * max(abs(a), abs(b))
        code = u64(1) if a - b > slack else u64(0)
        code = u64(2) if b - a > slack else code
        total = u64(total + u64(code * keys[i]))
    return total


@jit
def rank(first, last, nodes, rows, keys, out):
    """ranks(F) of the nodes first, ..., last - 1."""
    groups = keys.groups
    for node in range(first, last):
        begin = _row_of(node, nodes, rows) * rows.points
        total = u64(0)
        pair = 0
        for one in range(1, keys.arms):
            x = begin + one * groups
            for two in range(one):
                y = begin + two * groups
                compared = _order(
                    rows.values[x : x + groups],
                    rows.values[y : y + groups],
                    keys.tolerance,
                    keys.ranks[pair],
                )
                total = u64(total + compared)
                pair += 1
        out[node - first] = max(total, u64(2))


@jit
def store(first, last, nodes, rows):
    """Fill the rows of the nodes first, ..., last - 1, whose operands have theirs."""
    for node in range(first, last):
        x = np.int64(nodes.left[node])
        y = np.int64(nodes.right[node])
        _fill(nodes.operation[node], x, y, node, rows)


@jit
def _assign(fingerprints, table, number_of, count, numbers, fresh):
    """Number fingerprints by their first appearance, from `count` on; returns the new count.

    table[place] is a fingerprint of a hash table with a power of two of places, number_of[place] its
    number. numbers[i] is that of fingerprints[i], or -1 for INVALID and -2 for SKIPPED; `fresh` gets the
    positions of those that are new.
    """
    mask = u64(table.shape[0] - 1)
    new = 0
    for i in range(fingerprints.shape[0]):
        key = fingerprints[i]
        if key <= SKIPPED:
            numbers[i] = -1 if key == INVALID else -2
            continue
        place = u64(_mixed(key) & mask)
        while table[place] != key and table[place] != INVALID:
            place = u64(u64(place + u64(1)) & mask)
        if table[place] == INVALID:
            table[place] = key
            number_of[place] = count + new
            fresh[new] = i
            new += 1
        numbers[i] = number_of[place]
    return count + new


class Numbering:
    """Numbers for fingerprints, in the order of their first appearance: a hash table that grows."""

    def __init__(self) -> None:
        self.count = 0
        self.table = np.zeros(1 << 16, u64)
        self.number_of = np.zeros(1 << 16, np.int32)

    def add(self, fingerprints: Any) -> tuple[Any, Any]:
        """The number of each (-1 if invalid, -2 if skipped), and the positions of the new ones."""
        size = len(self.table)
        while size < 2 * (self.count + len(fingerprints)):
            size *= 2
        if size > len(self.table):
            used = np.flatnonzero(self.table)
            known = self.table[used[np.argsort(self.number_of[used])]]
            self.table, self.number_of = np.zeros(size, u64), np.zeros(size, np.int32)
            self._assign(known, 0)
        before = self.count
        self.count, numbers, fresh = self._assign(fingerprints, before)
        return numbers, fresh[: self.count - before]

    def _assign(self, fingerprints: Any, count: int) -> tuple[int, Any, Any]:
        numbers = np.empty(len(fingerprints), np.int32)
        fresh = np.empty(len(fingerprints), np.int64)
        count = _assign(fingerprints, self.table, self.number_of, count, numbers, fresh)
        return count, numbers, fresh
