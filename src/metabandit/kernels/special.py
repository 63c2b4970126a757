"""Functions that the machine and the rewards need: logarithm, exponential, quantiles.

In float32 each is a polynomial without branches, so that a loop over lanes becomes vector code;
the library's logarithm would be one scalar call a lane. In float64 they are the library's own.
`ln` and `exp` pick the version by the type of their argument.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import overload

from .jit import jit, lane

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


@jit
def _kl_start(mean, bound, y, ln_mean, ln_rest):
    for i in range(y.shape[0]):
        m = min(max(mean[i], f32(1e-12)), f32(1))
        rest = max(f32(1) - m, f32(1e-12))
        b = max(bound[i], f32(1e-12))
        ln_mean[i] = _ln_positive(m)
        ln_rest[i] = _ln_positive(rest)
        # Right for mean 0 and for small bounds, and close in between.
        y[i] = max(ln_rest[i] - b - np.sqrt(f32(2) * b * m / rest), f32(-80))


@jit
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


@jit
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


@jit
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


@jit
def kl_upper64(mean, bound):
    """The largest q in [mean, 1] with kl(mean, q) <= bound, for Bernoulli distributions."""
    if not (-1e-12 <= mean <= 1.0 + 1e-12) or bound != bound:
        return np.nan
    if bound <= 0.0:
        return mean
    if mean >= 1.0:
        return 1.0
    if mean <= 0.0:
        return -math.expm1(-bound)
    # Newton's method on a convex function, from the right of the root: it comes down to it. Two
    # bounds are right of the root: kl is at least (q - mean)^2 / (2 v), with v the largest x (1 - x)
    # on the way (1/4 to begin with), and at least its part in 1 - q.
    entropy = mean * math.log(mean) + (1.0 - mean) * math.log1p(-mean)
    tail = -math.expm1((entropy - bound) / (1.0 - mean))
    q = min(mean + math.sqrt(0.5 * bound), tail)
    if q >= 1.0:
        return 1.0
    for _ in range(2):
        if mean >= 0.5 or q <= 0.5:
            x = max(mean, min(q, 0.5))
            q = min(q, mean + math.sqrt(2.0 * bound * x * (1.0 - x)))
    for _ in range(60):
        excess = entropy - mean * math.log(q) - (1.0 - mean) * math.log1p(-q) - bound
        if not excess > 0.0:
            break
        step = excess * q * (1.0 - q) / (q - mean)
        q -= step
        # The error after a step is about its square.
        if step < 1e-7 * min(q - mean, 1.0 - q):
            break
    return max(q, mean)


@jit
def _beta_fraction(x, a, b):
    """The continued fraction of the incomplete Beta function, by Lentz's method."""
    tiny = 1e-300
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 400):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 + even * d
        c = 1.0 + even / c
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = c if abs(c) > tiny else tiny
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 + odd * d
        c = 1.0 + odd / c
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = c if abs(c) > tiny else tiny
        value *= d * c
        if abs(d * c - 1.0) < 1e-13:
            break
    return value


@jit
def _stirling_rest(x):
    """ln gamma(x + 1) less Stirling's (x + 1/2) ln x - x + ln(2 pi)/2."""
    if x < 10.0:
        return math.lgamma(x + 1.0) - (x + 0.5) * math.log(x) + x - 0.5 * math.log(2.0 * math.pi)
    v = 1.0 / (x * x)
    rest = 1.0 / 1260.0 - v * (
        1.0 / 1680.0 - v * (1.0 / 1188.0 - v * (691.0 / 360360.0 - v / 156.0))
    )
    return (1.0 / 12.0 - v * (1.0 / 360.0 - v * rest)) / x


@jit
def _beta_front(x, a, b, constant):
    """x^a (1 - x)^b / B(a, b).

    By the deviance of x from the mean: three logarithms of the gamma function would cancel, and
    leave a relative error of 1e-12 for shapes in the thousands. `constant` is the part without x.
    """
    n = a + b
    d = b * x - a * (1.0 - x)
    # a ln(n x / a) + b ln(n (1 - x) / b), where n x = a + d and n (1 - x) = b - d.
    first = math.log1p(d / a) if abs(d) < 0.5 * a else math.log(x * (n / a))
    second = math.log1p(-d / b) if abs(d) < 0.5 * b else math.log1p(-x) + math.log(n / b)
    return math.exp(a * first + b * second + constant)


@jit
def beta_quantile(p, a, b):
    """The quantile of Beta(a, b): Halley's method inside a bracket, from the normal approximation."""
    if not (p >= 0.0 and p <= 1.0 and a > 0.0 and b > 0.0):
        return np.nan
    if p == 0.0 or p == 1.0:
        return p
    mean = a / (a + b)
    constant = 0.5 * math.log(a / (2.0 * math.pi) * (1.0 - mean))
    constant += _stirling_rest(a + b) - _stirling_rest(a) - _stirling_rest(b)
    spread = math.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    if a >= 1.0 and b >= 1.0:
        z = float(normal_quantile(f32(p)))
        # On the logit scale the normal approximation never leaves (0, 1).
        x = 1.0 / (1.0 + (1.0 - mean) / mean * math.exp(-z * spread / (mean * (1.0 - mean))))
    else:
        ln_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        left = math.exp((math.log(p) + math.log(a) + ln_beta) / a)
        x = left if left < mean else 0.5 * (mean + 1.0)
    low, high = 0.0, 1.0
    x = min(max(x, 1e-300), 1.0 - 1e-16)
    for _ in range(100):
        front = _beta_front(x, a, b, constant)
        if x < (a + 1.0) / (a + b + 2.0):
            excess = front * _beta_fraction(x, a, b) / a - p
        else:
            excess = (1.0 - p) - front * _beta_fraction(1.0 - x, b, a) / b
        if excess > 0.0:
            high = x
        else:
            low = x
        density = front / (x * (1.0 - x))
        newton = excess / density if density > 0.0 else np.inf
        curvature = (a - 1.0) / x - (b - 1.0) / (1.0 - x)
        step = newton / (1.0 - 0.5 * min(1.0, max(-1.0, newton * curvature)))
        # Halley's method triples the digits: after a step this small the next changes nothing.
        if abs(step) <= min(1e-5 * x, 1e-5 * (1.0 - x), 1e-4 * spread):
            return x - step
        following = x - step
        x = following if low < following < high else 0.5 * (low + high)
    return x
