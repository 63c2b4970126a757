"""Functions that the machine and the rewards need: logarithm, exponential, quantiles.

In float32 each is a polynomial without branches, so that a loop over lanes becomes vector code;
the library's logarithm would be one scalar call per lane. In float64 they are the library's own, and
those of numerics.py. `ln` and `exp` pick the version by the type of their argument.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import overload

from .. import numerics
from .jit import jit, lane, part, separate_jit

f32 = np.float32
i32 = np.int32
u32 = np.uint32
_LN2_HIGH = f32(0.693359375)
_LN2_LOW = f32(-2.12194440e-4)
_TINY = f32(1.17549435e-38)


@lane
def _ln_positive(x):
    """ln x for a normal, positive float32: x = m 2^e, m near 1, ln m = 2 artanh((m - 1) / (m + 1))."""
    bits = np.float32(x).view(np.uint32)
    # Adding this offset moves the exponent's boundary from 1 to sqrt(2).
    shifted = u32(bits + u32(0x3F800000 - 0x3F3504F3))
    exponent = f32(i32(i32(u32(shifted >> u32(23))) - i32(127)))
    mantissa = np.uint32(u32(u32(shifted & u32(0x007FFFFF)) + u32(0x3F3504F3))).view(np.float32)
    z = (mantissa - f32(1)) / (mantissa + f32(1))
    w = z * z
    series = f32(2 / 7) + w * (f32(2 / 9) + w * f32(2 / 11))
    series = z * w * (f32(2 / 3) + w * (f32(2 / 5) + w * series))
    return exponent * _LN2_HIGH + (exponent * _LN2_LOW + (series + f32(2) * z))


@lane
def exp_bounded(x):
    """exp x for -87 <= x <= 88: x = k ln 2 + y with |y| <= ln(2)/2, and a polynomial for exp y."""
    k = np.floor(x * f32(1.4426950408889634) + f32(0.5))
    y = (x - k * _LN2_HIGH) - k * _LN2_LOW
    value = f32(1 / 120) + y * (f32(1 / 720) + y * f32(1 / 5040))
    value = f32(1 / 2) + y * (f32(1 / 6) + y * (f32(1 / 24) + y * value))
    value = f32(1) + y * (f32(1) + y * value)
    return value * np.uint32(u32(i32(i32(k) + i32(127))) << u32(23)).view(np.float32)


@lane
def ln32(x):
    """ln x for float32; subnormal numbers count as zero."""
    value = _ln_positive(x)
    value = value if x < f32(np.inf) else x
    value = value if x >= _TINY else f32(-np.inf)
    return value if x >= f32(0) else f32(np.nan)


@lane
def exp32(x):
    """exp x for float32; 0 below -87, infinite above 88."""
    value = exp_bounded(min(max(x, f32(-87)), f32(88)))
    value = value if x <= f32(88) else f32(np.inf)
    value = value if x >= f32(-87) else f32(0)
    return value if x == x else x


def ln(x):
    """The logarithm in the precision of its argument."""
    return math.log(x)


def exp(x):
    """The exponential in the precision of its argument."""
    return math.exp(x)


@overload(ln)
def _ln(x):
    if x == types.float32:
        return lambda x: ln32(x)
    return lambda x: np.log(x)


@overload(exp)
def _exp(x):
    if x == types.float32:
        return lambda x: exp32(x)
    return lambda x: np.exp(x)


@lane
def normal_quantile(p):
    """The standard normal quantile to about 1e-7 (Wichura 1988, Algorithm AS 241, PPND7)."""
    q = p - f32(0.5)
    c = f32(0.180625) - q * q
    above = f32(159.29113202) + c * f32(59.109374720)
    above = q * (f32(3.3871327179) + c * (f32(50.434271938) + c * above))
    below = f32(1) + c * (f32(17.895169469) + c * (f32(78.757757664) + c * f32(67.187563600)))
    tail = min(p, f32(1) - p)
    root = np.sqrt(-ln32(max(tail, f32(1e-37))))
    d = root - f32(1.6)
    near = f32(2.7568153900) + d * (f32(1.3067284816) + d * f32(0.17023821103))
    near = (f32(1.4234372777) + d * near) / (
        f32(1) + d * (f32(0.73700164250) + d * f32(0.12021132975))
    )
    e = root - f32(5)
    far = f32(3.0812263860) + e * (f32(0.42868294337) + e * f32(0.017337203997))
    far = (f32(6.6579051150) + e * far) / (
        f32(1) + e * (f32(0.24197894225) + e * f32(0.012258202635))
    )
    outer = near if root <= f32(5) else far
    outer = -outer if q < f32(0) else outer
    return above / below if abs(q) <= f32(0.425) else outer


@part
def _kl_start(mean, bound, y, ln_mean, ln_rest):
    for i in range(y.shape[0]):
        m = min(max(mean[i], f32(1e-12)), f32(1))
        rest = max(f32(1) - m, f32(1e-12))
        b = max(bound[i], f32(1e-12))
        ln_mean[i] = _ln_positive(m)
        ln_rest[i] = _ln_positive(rest)
        # Right for mean 0 and for small bounds, and close in between.
        y[i] = max(ln_rest[i] - b - np.sqrt(f32(2) * b * m / rest), f32(-80))


@part
def _kl_step(mean, bound, y, ln_mean, ln_rest):
    for i in range(y.shape[0]):
        m = mean[i]
        b = max(bound[i], f32(1e-12))
        q = f32(1) - exp_bounded(y[i])
        rest = (f32(1) - m) * (ln_rest[i] - y[i])
        divergence = max(m * (ln_mean[i] - _ln_positive(max(q, f32(1e-30)))) + rest, f32(0))
        step = f32(2) * (divergence - np.sqrt(b * divergence)) * q / max(q - m, f32(1e-7))
        # Never below the mean itself, where rounding could lead for small bounds.
        y[i] = max(min(y[i] + step, ln_rest[i]), f32(-80))


@part
def _kl_finish(mean, bound, y):
    for i in range(y.shape[0]):
        m = mean[i]
        value = max(f32(1) - exp_bounded(min(y[i], f32(0))), m)
        # Pinsker's inequality, which is sharp where small bounds leave only rounding.
        value = min(value, m + np.sqrt(f32(0.5) * max(bound[i], f32(0))))
        value = value if m < f32(1) else f32(1)
        value = value if bound[i] > f32(0) else m
        value = value if bound[i] == bound[i] else bound[i]
        y[i] = value if abs(m - f32(0.5)) <= f32(0.500001) else f32(np.nan)


@separate_jit
def kl_upper32(mean, bound, out, ln_mean, ln_rest):
    """The largest q in [mean, 1] with kl(mean, q) <= bound, for rows of float32.

    Newton's method for sqrt(kl) = sqrt(bound) in y = ln(1 - q), in which the divergence is linear
    for mean 0 and nearly so for large bounds: three steps reach 1e-6. A pass over the row for each
    step leaves the processor independent work; all steps in one loop take three times as long.
    """
    _kl_start(mean, bound, out, ln_mean, ln_rest)
    for _ in range(3):
        _kl_step(mean, bound, out, ln_mean, ln_rest)
    _kl_finish(mean, bound, out)


@separate_jit
def kl_upper64(mean, bound):
    """The same for two numbers of float64: 0.77 of the time of Newton's method in q itself."""
    return numerics.kl_upper(mean, bound)


@separate_jit
def beta_quantile(p, a, b):
    """The quantile of Beta(a, b): 0.6 to 1.03 of the time of Halley's method in x itself."""
    return numerics.beta_quantile(p, a, b)


@jit
def normal_quantile64(p):
    """The standard normal quantile in float64."""
    return numerics.normal_quantile(p)


@separate_jit
def beta_optimist(discount, a, b):
    """The optimistic Gittins index of an arm with a Beta(a, b) mean."""
    return numerics.beta_optimist(discount, a, b)


@jit
def normal_optimist(discount):
    """The optimistic Gittins index of an arm with a standard normal mean."""
    return numerics.normal_optimist(discount)
