"""Formulas by their values on sample points: which are valid, which are equal, how they rank arms.

A formula is a node: an operation and one or two nodes that it is applied to. `file` has one row of
values for each of the first nodes, those short enough to be an operand of longer ones, and some rows
of room after them. The values of any other node are computed when they are needed: a node that is not
in the file has at most one operand that is not.

Sample points come in groups of arms that share a moment; a row has the points of the first arm, one
a group, then those of the second arm, and so on.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from .jit import jit, lane
from .machine import run_lanes
from .opcodes import SCRATCH, WIDTH

u64 = np.uint64

# What stands in place of a fingerprint.
INVALID = u64(0)
SKIPPED = u64(1)

# Lanes that are computed together: a formula that is not valid is mostly found out in the first.
_BLOCK = 512
_MIX = u64(0x9E3779B97F4A7C15)
_EXPONENT = u64(0x7FF0000000000000)
_HALF = u64(32)

Nodes = namedtuple("Nodes", "operation left right")
Nodes.__doc__ = (
    """int32 arrays, one entry a node: the operation, and the nodes that it is applied to."""
)

Sample = namedtuple("Sample", "points arms groups stored keys rank_keys tolerance")
Sample.__doc__ = """What formulas are compared on.

points: numbers a row; arms times groups of them are sample points
stored: how many nodes have a row in the file
keys: uint64[points]; rank_keys: uint64[pairs of arms, groups]: random odd numbers for fingerprints
tolerance: values are equal if they differ by this share of the larger one at most
"""

# Rows of room after the stored ones: a formula under construction, its result, the machine's own.
ROOM = 2 + SCRATCH
_DEEPEST = 64


@lane
def _mixed(bits):
    bits = u64(bits * _MIX)
    return u64(bits ^ u64(bits >> _HALF))


@jit
def _fingerprint(row, keys, state):
    """Add a row to a fingerprint; INVALID if a value is not finite."""
    total = state
    wrong = u64(0)
    for i in range(row.shape[0]):
        bits = np.float64(row[i]).view(np.uint64)
        bits = u64(0) if row[i] == 0.0 else bits  # also -0
        wrong = u64(wrong | (u64(1) if u64(bits & _EXPONENT) == _EXPONENT else u64(0)))
        total = u64(total + u64(_mixed(bits) * keys[i]))
    return INVALID if wrong else max(total, u64(2))


@jit
def _run(operation, x, y, out, begin, lanes, sample, file, code, scalars):
    """Apply an operation to rows x and y, from one point on."""
    code[0, 0] = operation
    code[0, 2] = 3 + x
    code[0, 3] = 3 + y
    scratch = sample.stored + 2
    run_lanes(code, scalars, file[begin:], 0, 0, out, sample.points, lanes, scratch)


@jit
def _run_all(operation, x, y, out, sample, file, code, scalars):
    for begin in range(0, sample.points, _BLOCK):
        lanes = min(_BLOCK, sample.points - begin)
        _run(operation, x, y, out, begin, lanes, sample, file, code, scalars)


@jit
def _row_of(node, nodes, sample, file, code, scalars, path):
    """The row that has a node's values, which are computed if need be."""
    if node < sample.stored:
        return node
    depth = 0
    while node >= sample.stored:
        path[depth] = node
        depth += 1
        node = max(nodes.left[node], nodes.right[node])
    room = np.int64(sample.stored)
    for level in range(depth - 1, -1, -1):
        at = path[level]
        x = np.int64(nodes.left[at])
        y = np.int64(nodes.right[at])
        x = x if x < sample.stored else room
        y = y if y < sample.stored else room
        _run_all(nodes.operation[at], x, y, room, sample, file, code, scalars)
    return room


@jit
def expand(first, last, small, end, variants, same, nodes, sample, file, room, out):
    """Fingerprints of all formulas made of a node first, ..., last - 1 and one small, ..., end - 1.

    variants[v] is an operation and whether the small node comes second. With `same`, both are of one
    length: then each pair is taken once. out has one entry for each node, small node and variant.
    """
    code, scalars, path = room.code, room.scalars, room.path
    result = sample.stored + 1
    position = 0
    for node in range(first, last):
        row = _row_of(node, nodes, sample, file, code, scalars, path)
        for other in range(small, end):
            for v in range(variants.shape[0]):
                swapped = variants[v, 1] == 1
                if same and (other > node or (other == node and swapped)):
                    out[position] = SKIPPED
                    position += 1
                    continue
                x = row if swapped else other
                y = other if swapped else row
                state = u64(0)
                for begin in range(0, sample.points, _BLOCK):
                    lanes = min(_BLOCK, sample.points - begin)
                    _run(variants[v, 0], x, y, result, begin, lanes, sample, file, code, scalars)
                    at = result * sample.points + begin
                    state = _fingerprint(
                        file[at : at + lanes], sample.keys[begin : begin + lanes], state
                    )
                    if state == INVALID:
                        break
                out[position] = state
                position += 1


@jit
def _compare(x, y, tolerance, keys):
    """A fingerprint of which values of two arms are smaller, equal or larger."""
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
def rank(which, nodes, sample, file, room, out):
    """Fingerprints of how nodes order the arms of every group."""
    for position in range(which.shape[0]):
        row = _row_of(which[position], nodes, sample, file, room.code, room.scalars, room.path)
        begin = row * sample.points
        total = u64(0)
        pair = 0
        for one in range(1, sample.arms):
            x = begin + one * sample.groups
            for two in range(one):
                y = begin + two * sample.groups
                compared = _compare(
                    file[x : x + sample.groups],
                    file[y : y + sample.groups],
                    sample.tolerance,
                    sample.rank_keys[pair],
                )
                total = u64(total + compared)
                pair += 1
        out[position] = max(total, u64(2))


@jit
def store(first, last, nodes, sample, file, room):
    """Fill the rows of the nodes first, ..., last - 1, whose operands have theirs."""
    for node in range(first, last):
        x = np.int64(nodes.left[node])
        y = np.int64(nodes.right[node])
        _run_all(nodes.operation[node], x, y, node, sample, file, room.code, room.scalars)


Room = namedtuple("Room", "code scalars path")
Room.__doc__ = """What a thread works with beside its file; `room` makes it."""


def room() -> Any:
    return Room(np.zeros((1, WIDTH), np.int32), np.zeros(1), np.zeros(_DEEPEST, np.int64))


Index = namedtuple("Index", "keys numbers")
Index.__doc__ = (
    """A hash table from fingerprint to number: uint64 and int32, a power of two of entries."""
)


@jit
def intern(fingerprints, index, count, numbers, fresh):
    """Number fingerprints by their first appearance, from `count` on; returns the new count.

    numbers[i] is that of fingerprints[i], or -1 for INVALID and -2 for SKIPPED; `fresh` gets the
    positions of those that are new.
    """
    mask = u64(index.keys.shape[0] - 1)
    new = 0
    for i in range(fingerprints.shape[0]):
        key = fingerprints[i]
        if key <= SKIPPED:
            numbers[i] = -1 if key == INVALID else -2
            continue
        place = u64(_mixed(key) & mask)
        while index.keys[place] != key and index.keys[place] != INVALID:
            place = u64(u64(place + u64(1)) & mask)
        if index.keys[place] == INVALID:
            index.keys[place] = key
            index.numbers[place] = count + new
            fresh[new] = i
            new += 1
        numbers[i] = index.numbers[place]
    return count + new
