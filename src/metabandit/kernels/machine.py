"""The machine: runs an index program on rows of lanes.

A program is a list of instructions (opcodes.py says what is in one). The lane program works on rows:
operands 0 to 3 are the rows n, r, s, w of one arm, operand 4 + j is register row j.
The step program works on single float64 numbers that are the same for every lane (t, h, K,
constants and whatever is computed from them); its results are spread over register rows.

The machine does not know what a lane is. `rows` is one flat array of rows `stride` apart, so that
the rows of one arm can be chosen by an offset, and its type sets the precision.

`run_lanes` and `run_step` are long: one branch per operation, which the compiler turns into a jump.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from ..numerics import LOST
from . import opcodes as op
from .jit import OPERATOR, jit, lane, part, pointer, separate_jit
from .special import (
    beta_optimist,
    beta_quantile,
    exp,
    kl_upper32,
    kl_upper64,
    ln,
    normal_optimist,
    normal_quantile64,
)

_VARIABLES = len(op.LANE_VARIABLES)

Program = namedtuple(
    "Program", "lane_code step_code scalars spread constants registers uses_s varies"
)
Program.__doc__ = """What the machine runs.

lane_code, step_code: int32[instructions, opcodes.WIDTH]
scalars: float64, the step program's numbers: t, h, K, the constants, then room for its results
spread: int32, the scalars that register rows 0, 1, ... hold
constants: how many of these never change within a play (they come first)
registers: how many register rows the program needs, scratch rows included
uses_s: whether the standard deviation is read
varies: whether the index of an arm can change while the arm is not played
"""


def load(compiled: Any, uses_s: bool) -> Any:
    """A compiled expression as a program; None is the program of a policy without an index."""
    if compiled is not None:
        return Program(*(getattr(compiled, field) for field in Program._fields))
    code = np.zeros((0, op.WIDTH), np.int32)
    return Program(code, code, np.zeros(3), np.zeros(0, np.int32), 0, op.SCRATCH, uses_s, True)


# Loops with longer bodies are functions of their own: inside run_lanes they would be slower.
@part
def _ln(a, out):
    for i in range(out.shape[0]):
        out[i] = ln(a[i])


@part
def _exp(a, out):
    for i in range(out.shape[0]):
        out[i] = exp(a[i])


@lane
def power(a, b, one):
    """a to the power b; `one` has the type of a lane."""
    value = exp(b * ln(a))
    value = a * a if b == one + one else value
    return one if b == one - one and a == one - one else value


@part
def _power(a, b, out):
    for i in range(out.shape[0]):
        out[i] = power(a[i], b[i], out.dtype.type(1))


@part
def _difference(a, b, out):
    kind = out.dtype.type
    # In float32 that is as far as indices are told apart (best.py).
    lost = kind(LOST) if out.itemsize == 8 else kind(2e-6)
    for i in range(out.shape[0]):
        value = a[i] - b[i]
        out[i] = kind(0) if abs(value) < lost * (abs(a[i]) + abs(b[i])) else value


@part
def copy(a, out):
    for i in range(a.shape[0]):
        out[i] = a[i]


@lane
def _remembered(x, y, z, memory):
    """Where in the memory a value of these three operands would stand: x, y, z, value; -1 without memory."""
    slots = memory.shape[0] // 4
    if slots == 0:
        return -1
    mixed = (
        np.int64(y * 64.0) * 73856093 ^ np.int64(z * 64.0) * 19349663 ^ np.int64(x * 1e9) * 83492791
    )
    mixed ^= mixed >> 17
    return (mixed & np.int64(slots - 1)) * 4


@lane
def _is_known(x, y, z, memory, at):
    return at >= 0 and memory[at] == x and memory[at + 1] == y and memory[at + 2] == z


@lane
def _remember(x, y, z, value, memory, at):
    if at >= 0:
        memory[at], memory[at + 1], memory[at + 2], memory[at + 3] = x, y, z, value


@part
def _beta_quantile(p, a, b, out, memory):
    """Episodes in step have the same counts again and again: a value is computed once while it is remembered."""
    for i in range(out.shape[0]):
        at = _remembered(np.float64(p[i]), np.float64(a[i]), np.float64(b[i]), memory)
        if _is_known(p[i], a[i], b[i], memory, at):
            out[i] = memory[at + 3]
        else:
            out[i] = beta_quantile(np.float64(p[i]), np.float64(a[i]), np.float64(b[i]))
            _remember(p[i], a[i], b[i], out[i], memory, at)


@part
def _normal_quantile(p, out):
    for i in range(out.shape[0]):
        out[i] = normal_quantile64(np.float64(p[i]))


@part
def _beta_optimist(discount, a, b, out, memory):
    for i in range(out.shape[0]):
        at = _remembered(np.float64(discount[i]), np.float64(a[i]), np.float64(b[i]), memory)
        if _is_known(discount[i], a[i], b[i], memory, at):
            out[i] = memory[at + 3]
        else:
            out[i] = beta_optimist(np.float64(discount[i]), np.float64(a[i]), np.float64(b[i]))
            _remember(discount[i], a[i], b[i], out[i], memory, at)


@part
def _normal_optimist(discount, out):
    for i in range(out.shape[0]):
        out[i] = normal_optimist(np.float64(discount[i]))


@lane
def polynomial_1(c, x, y, z):
    """A polynomial of degree 1 in three values."""
    low = (c[0] + c[1] * z) + (c[2] + c[3] * z) * y
    high = (c[4] + c[5] * z) + (c[6] + c[7] * z) * y
    return low + high * x


@part
def _polynomial_1(c, x, y, z, out):
    kind = out.dtype.type
    weights = (
        kind(c[0]), kind(c[1]), kind(c[2]), kind(c[3]),
        kind(c[4]), kind(c[5]), kind(c[6]), kind(c[7]),
    )  # fmt: skip
    for i in range(out.shape[0]):
        out[i] = polynomial_1(weights, x[i], y[i], z[i])


@lane
def _nine(c, first, out):
    """Nine coefficients in the type of a row, by value: for all the compiler knows `out` could overlap c."""
    kind = out.dtype.type
    return (
        kind(c[first]), kind(c[first + 1]), kind(c[first + 2]),
        kind(c[first + 3]), kind(c[first + 4]), kind(c[first + 5]),
        kind(c[first + 6]), kind(c[first + 7]), kind(c[first + 8]),
    )  # fmt: skip


@lane
def _square(c, y, z):
    """A polynomial of degree 2 in two values."""
    low = c[0] + (c[1] + c[2] * z) * z
    middle = c[3] + (c[4] + c[5] * z) * z
    high = c[6] + (c[7] + c[8] * z) * z
    return low + (middle + high * y) * y


@lane
def polynomial_2(c, x, y, z):
    """A polynomial of degree 2 in three values."""
    low = _square(c[:9], y, z)
    middle = _square(c[9:18], y, z)
    high = _square(c[18:], y, z)
    return low + (middle + high * x) * x


@part
def _polynomial_2(c, x, y, z, out):
    weights = _nine(c, 0, out) + _nine(c, 9, out) + _nine(c, 18, out)
    for i in range(out.shape[0]):
        out[i] = polynomial_2(weights, x[i], y[i], z[i])


@part
def _horner(x, b, out):
    # One name for what is read and written: with two the compiler must fear that they overlap.
    for i in range(out.shape[0]):
        out[i] = out[i] * x[i] + b[i]


@part
def _horner_number(x, c, out):
    b = out.dtype.type(c)
    for i in range(out.shape[0]):
        out[i] = out[i] * x[i] + b


@part
def _polynomial(c, degree, x, y, z, out, high, middle, low):
    """The sum of c[j, k, l] x^j y^k z^l, all powers up to `degree`, by Horner's rule."""
    side = degree + 1
    if degree == 1:
        _polynomial_1(c, x, y, z, out)
        return
    if degree == 2:
        _polynomial_2(c, x, y, z, out)
        return
    for j in range(degree, -1, -1):
        for k in range(degree, -1, -1):
            first = (j * side + k) * side
            low[:] = low.dtype.type(c[first + degree])
            for power in range(degree - 1, -1, -1):
                _horner_number(z, c[first + power], low)
            if k == degree:
                copy(low, middle)
            else:
                _horner(y, low, middle)
        if j == degree:
            copy(middle, high)
        else:
            _horner(x, middle, high)
    copy(high, out)


def _kl_upper(mean, bound, out, scratch_a, scratch_b):
    raise TypeError("only compiled code calls this")


@overload(_kl_upper)
def _kl_upper_rows(mean, bound, out, scratch_a, scratch_b):
    if mean.dtype == types.float32:
        return lambda mean, bound, out, scratch_a, scratch_b: kl_upper32(
            mean, bound, out, scratch_a, scratch_b
        )

    def rows64(mean, bound, out, scratch_a, scratch_b):
        for i in range(out.shape[0]):
            out[i] = kl_upper64(mean[i], bound[i])

    return rows64


@intrinsic
def _call(_, address, x, y, z):
    """The value of a person's own operator at an address (see jit.OPERATOR)."""

    def code(context, builder, signature, arguments):
        double = ir.DoubleType()
        kind = ir.FunctionType(double, [double, double, double])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), list(arguments[1:]))

    return types.float64(types.int64, types.float64, types.float64, types.float64), code


@lane
def _address(code, j):
    return (np.int64(code[j, 5]) << 32) | np.int64(np.uint32(code[j, 6]))


@part
def _external(address, a, b, c, out):
    for i in range(out.shape[0]):
        out[i] = _call(address, np.float64(a[i]), np.float64(b[i]), np.float64(c[i]))


def compile_operator(function: Any, arity: int) -> Any:
    """A scalar function of `arity` numbers as the machine calls it; keep it while its address is used."""
    compiled = numba.njit(function, error_model="numpy")

    @numba.njit(error_model="numpy")
    def value(*operands):
        return np.float64(compiled(*operands))

    def call(x, y, z):
        # An error cannot leave a function that is called by its address.
        try:
            return value(*(x, y, z)[:arity])
        except Exception:
            return np.nan

    return pointer(OPERATOR, cache=False)(call)()


@lane
def _begin(operand, arm, registers, stride):
    """Where the row of an operand begins: one of the arm's own, or a register."""
    return (arm + operand if operand < _VARIABLES else registers + operand - _VARIABLES) * stride


@separate_jit
def run_lanes(code, scalars, rows, arm, registers, out, stride, lanes, scratch, memory):
    """Run a lane program for one arm.

    `arm` is the row of the arm's n (r, s and w follow), `registers` the row of register 0, `out` the
    row that takes the index; the last instruction writes there. `scratch` is a register row from
    which opcodes.SCRATCH rows are free. `memory` keeps values that take long: a power of two times four
    numbers, not numbers at first, or nothing.
    """
    # Long because it has a branch per operation.
    last = code.shape[0] - 1
    one = rows.dtype.type(1)  # a literal 1 would widen float32 lanes to float64
    for j in range(code.shape[0]):
        operation = code[j, 0]
        x = _begin(code[j, 2], arm, registers, stride)
        y = _begin(code[j, 3], arm, registers, stride)
        a = rows[x : x + lanes]
        b = rows[y : y + lanes]
        target = (out if j == last else registers + code[j, 1] - _VARIABLES) * stride
        o = rows[target : target + lanes]
        if operation == op.ADD:
            for i in range(lanes):
                o[i] = a[i] + b[i]
        elif operation == op.SUBTRACT:
            for i in range(lanes):
                o[i] = a[i] - b[i]
        elif operation == op.MULTIPLY:
            for i in range(lanes):
                o[i] = a[i] * b[i]
        elif operation == op.DIVIDE:
            for i in range(lanes):
                o[i] = a[i] / b[i]
        elif operation == op.SQRT:
            for i in range(lanes):
                o[i] = np.sqrt(a[i])
        elif operation == op.INVERT:
            for i in range(lanes):
                o[i] = one / a[i]
        elif operation == op.INVERT_SQRT:
            for i in range(lanes):
                o[i] = one / np.sqrt(a[i])
        elif operation == op.LN:
            _ln(a, o)
        elif operation == op.MIN:
            # Written so that a first operand that is not a number stays one, as the second does.
            for i in range(lanes):
                p, q = a[i], b[i]
                o[i] = q if q < p or q != q else p
        elif operation == op.MAX:
            for i in range(lanes):
                p, q = a[i], b[i]
                o[i] = q if q > p or q != q else p
        elif operation == op.ABS:
            for i in range(lanes):
                o[i] = abs(a[i])
        elif operation == op.NEGATE:
            for i in range(lanes):
                o[i] = -a[i]
        elif operation == op.COPY:
            for i in range(lanes):
                o[i] = a[i]
        elif operation == op.EXP:
            _exp(a, o)
        elif operation == op.POWER:
            _power(a, b, o)
        else:
            c = rows[_begin(code[j, 4], arm, registers, stride) :][:lanes]
            s = (registers + scratch) * stride
            high = rows[s : s + lanes]
            middle = rows[s + stride : s + stride + lanes]
            low = rows[s + 2 * stride : s + 2 * stride + lanes]
            if operation == op.KL_UPPER:
                _kl_upper(a, b, o, high, middle)
            elif operation == op.BETA_QUANTILE:
                _beta_quantile(a, b, c, o, memory)
            elif operation == op.POLYNOMIAL:
                _polynomial(scalars[code[j, 5] :], code[j, 6], a, b, c, o, high, middle, low)
            elif operation == op.EXTERNAL:
                _external(_address(code, j), a, b, c, o)
            elif operation == op.NORMAL_QUANTILE:
                _normal_quantile(a, o)
            elif operation == op.BETA_OPTIMIST:
                _beta_optimist(a, b, c, o, memory)
            elif operation == op.NORMAL_OPTIMIST:
                _normal_optimist(a, o)
            elif operation == op.DIFFERENCE:
                _difference(a, b, o)


@part
def _reduce(target, x, weights, degree):
    """The coefficients that remain when the first value is x: sums of weights[i, ...] x^i."""
    count = (degree + 1) ** 3
    for c in range(count):
        total = weights[degree * count + c]
        for i in range(degree - 1, -1, -1):
            total = total * x + weights[i * count + c]
        target[c] = total


@separate_jit
def run_step(code, scalars):
    """Run a step program: one float64 number per instruction."""
    for j in range(code.shape[0]):
        operation = code[j, 0]
        if operation == op.REDUCE:
            _reduce(scalars[code[j, 1] :], scalars[code[j, 2]], scalars[code[j, 5] :], code[j, 6])
            continue
        a = scalars[code[j, 2]]
        b = scalars[code[j, 3]]
        if operation == op.ADD:
            value = a + b
        elif operation == op.SUBTRACT:
            value = a - b
        elif operation == op.MULTIPLY:
            value = a * b
        elif operation == op.DIVIDE:
            value = a / b
        elif operation == op.SQRT:
            value = np.sqrt(a)
        elif operation == op.INVERT:
            value = 1.0 / a
        elif operation == op.INVERT_SQRT:
            value = 1.0 / np.sqrt(a)
        elif operation == op.LN:
            value = np.log(a)
        elif operation == op.MIN:
            value = b if b < a or b != b else a
        elif operation == op.MAX:
            value = b if b > a or b != b else a
        elif operation == op.ABS:
            value = abs(a)
        elif operation == op.NEGATE:
            value = -a
        elif operation == op.EXP:
            value = np.exp(a)
        elif operation == op.POWER:
            value = np.exp(b * np.log(a)) if a != 0.0 or b != 0.0 else 1.0
            value = a * a if b == 2.0 else value
        elif operation == op.KL_UPPER:
            value = kl_upper64(a, b)
        elif operation == op.BETA_QUANTILE:
            value = beta_quantile(a, b, scalars[code[j, 4]])
        elif operation == op.EXTERNAL:
            value = _call(_address(code, j), a, b, scalars[code[j, 4]])
        elif operation == op.NORMAL_QUANTILE:
            value = normal_quantile64(a)
        elif operation == op.BETA_OPTIMIST:
            value = beta_optimist(a, b, scalars[code[j, 4]])
        elif operation == op.NORMAL_OPTIMIST:
            value = normal_optimist(a)
        elif operation == op.DIFFERENCE:
            value = 0.0 if abs(a - b) < LOST * (abs(a) + abs(b)) else a - b
        else:
            value = a
        scalars[code[j, 1]] = value


@jit
def spread_scalars(spread, scalars, rows, registers, stride, lanes, first):
    """Fill the register rows from `first` on with the scalars that they hold."""
    for j in range(first, spread.shape[0]):
        row = (registers + j) * stride
        rows[row : row + lanes] = scalars[spread[j]]
