"""Sums of many rewards of one arm at once: exact samplers, keyed by where the block of pulls begins.

A block is `count` pulls of an arm in a row. Its first uniform number is that of its first pull, so that a
block of one pull is that pull; what more is needed comes from the same word with other keys. Sums depend
on (seed, episode, arm, first pull, count) only.

- Rewards of 0 and 1: binomial, by inversion where few are expected of the rarer kind, else by transformed
  rejection (BTRS; Hörmann 1993, "The generation of binomial random variates").
- Gaussian: the sum is Gaussian, and the sum of squared deviations from the block's mean is independent of
  it: sigma^2 times chi-squared with count - 1 degrees, a gamma variate (Marsaglia and Tsang 2000).
"""

from __future__ import annotations

import math

import numpy as np

from .. import numerics
from .jit import allocating_jit, jit, part
from .random import draw_bits, fine_unit, u32
from .special import normal_quantile

_FINE, _STREAM, _BLOCK = u32(numerics.FINE), u32(numerics.STREAM), u32(numerics.BLOCK)
# Expected rewards of the rarer kind up to which inversion is quicker.
_FEW = 10.0


@jit
def more(word, key, number):
    """A uniform number of a block, the `number`-th besides the first."""
    other = u32(u32(u32(key) ^ _BLOCK) + u32(u32(number) * _STREAM))
    return fine_unit(draw_bits(word, other), draw_bits(u32(u32(word) ^ _FINE), other))


@part
def _invert(count, p, u):
    """The binomial quantile for p up to 1/2 and few successes: chances are added up from 0 on."""
    ratio = p / (1.0 - p)
    chance = math.exp(count * math.log1p(-p))
    x = 0
    while u > chance and x < count:
        u -= chance
        x += 1
        chance *= ratio * (count - x + 1) / x
    return x


@part
def _reject(count, p, word, key):
    """A binomial variate for p up to 1/2 and count p of 10 or more: BTRS, with the names of the paper."""
    spq = math.sqrt(count * p * (1.0 - p))
    b = 1.15 + 2.53 * spq
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = count * p + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spq
    lpq = math.log(p / (1.0 - p))
    m = math.floor((count + 1) * p)
    h = math.lgamma(m + 1.0) + math.lgamma(count - m + 1.0)
    number = 1
    while True:
        u = more(word, key, number) - 0.5
        v = more(word, key, number + 1)
        number += 2
        us = 0.5 - abs(u)
        k = math.floor((2.0 * a / us + b) * u + c)
        if k < 0 or k > count:
            continue
        if us >= 0.07 and v <= v_r:
            return k
        v = math.log(v * alpha / (a / (us * us) + b))
        if v <= h - math.lgamma(k + 1.0) - math.lgamma(count - k + 1.0) + (k - m) * lpq:
            return k


@jit
def binomial(count, p, word, key, first):
    """Successes of `count` pulls that pay 1 with probability p; first: the uniform number of the first pull."""
    if count == 1:
        return 1 if first < p else 0
    rarer = min(p, 1.0 - p)
    if rarer <= 0.0:
        return count if p > 0.5 else 0
    if count * rarer < _FEW:
        found = _invert(count, rarer, more(word, key, 0))
    else:
        found = _reject(count, rarer, word, key)
    return found if p <= 0.5 else count - found


@part
def chi_squared(degrees, word, key):
    """A chi-squared variate with this many degrees of freedom, 1 or more."""
    if degrees == 1:
        z = normal_quantile(more(word, key, 1))
        return z * z
    d = 0.5 * degrees - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    number = 1
    while True:
        x = normal_quantile(more(word, key, number))
        u = more(word, key, number + 1)
        number += 2
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return 2.0 * d * v


@allocating_jit
def draw_many(words, key, count, p, degrees):
    """Binomial (or, with degrees, chi-squared) variates of many words, for tests."""
    found = np.empty(len(words))
    for i in range(len(words)):
        if degrees > 0:
            found[i] = chi_squared(degrees, words[i], key)
        else:
            first = fine_unit(draw_bits(words[i], key), draw_bits(u32(words[i] ^ _FINE), key))
            found[i] = binomial(count, p, words[i], key, first)
    return found
