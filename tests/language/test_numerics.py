"""The special functions in plain Python against scipy and slow ones, and as kernels compile them."""

import itertools
import math

import numpy as np
import pytest
import scipy.special

from metabandit import numerics
from metabandit.kernels import random, special
from tests.kernels.compiled import callable_lane
from tests.kernels.test_machine import slow_kl_upper

NAN, INF = math.nan, math.inf
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.0, 3.0, 1e300, -1e300, 1e-300, 710.0, INF, -INF, NAN]


def same(one, two):
    return one == two or (one != one and two != two)


def test_kl_upper_has_the_bound_as_its_divergence():
    rng = np.random.default_rng(1)
    count = 4000
    means = np.concatenate(
        [
            rng.uniform(0, 1, count),
            10 ** rng.uniform(-9, 0, count),
            1 - 10 ** rng.uniform(-9, 0, count),
        ]
    )
    bounds = 10 ** rng.uniform(-10, 2, 3 * count)
    for mean, bound, slow in zip(means, bounds, slow_kl_upper(means, bounds), strict=True):
        q = numerics.kl_upper(mean, bound)
        assert mean <= q <= 1
        # The slow one's divergence rounds to 1e-16, which moves q by that / sqrt(bound).
        assert abs(q - slow) <= 1e-14 + 1e-15 / math.sqrt(bound), (mean, bound, q, slow)
        assert abs(q - special.kl_upper64(mean, bound)) <= 1e-15


def test_kl_upper_for_small_bounds_is_the_normal_approximation():
    for mean, bound in itertools.product([0.01, 0.3, 0.5, 0.99], [1e-20, 1e-18, 1e-16]):
        expected = math.sqrt(2 * bound * mean * (1 - mean))
        assert numerics.kl_upper(mean, bound) - mean == pytest.approx(
            expected, rel=1e-6, abs=1.2e-16
        )


def test_kl_upper_at_the_edges():
    means = [0.0, 1e-320, 1e-12, 0.3, 1 - 1e-16, 1.0, 1 + 1e-13, -1e-13, -0.1, 1.1, NAN, INF, -INF]
    bounds = [-1.0, 0.0, 5e-324, 1e-300, 1e-5, 0.1, 1.0, 30.0, 700.0, 1e308, INF, -INF, NAN]
    for mean, bound in itertools.product(means, bounds):
        expected = float(slow_kl_upper(np.float64(mean), np.float64(bound)))
        if 0.0 < bound < 1e-200 and expected == expected:
            expected = min(max(mean, 0.0), 1.0)  # the slow divergence is 0 over 1e-8 there
        for result in (numerics.kl_upper(mean, bound), special.kl_upper64(mean, bound)):
            assert same(result, expected) or abs(result - expected) < 1e-13, (mean, bound)


@pytest.mark.parametrize(
    ("low", "high", "p", "relative"),
    [
        # scipy itself is off by some 1e-13 where both shapes are large.
        (1.0, 1e6, lambda rng, size: rng.uniform(0, 1, size), 1e-12),
        (1.0, 1e4, lambda rng, size: 1 - 10 ** rng.uniform(-9, -1, size), 1e-13),
        (0.1, 1e4, lambda rng, size: 10 ** rng.uniform(-9, -1, size), 1e-12),
        # A rounding of p moves x = p^(1/a) by that divided by a.
        (1e-3, 2.0, lambda rng, size: rng.uniform(0, 1, size), 1e-11),
        (1e-3, 1e6, lambda rng, size: rng.uniform(0, 1, size), 1e-11),
    ],
)
def test_beta_quantile(low, high, p, relative):
    rng = np.random.default_rng(2)
    size = 1500
    a, b = np.exp(rng.uniform(math.log(low), math.log(high), (2, size)))
    chances = p(rng, size)
    expected = scipy.special.betaincinv(a, b, chances)
    result = np.array(list(map(numerics.beta_quantile, chances, a, b)))
    error = np.abs(result - expected)
    close = error <= relative * expected + 1e-290
    assert close.all(), np.stack([a, b, chances, result, expected], axis=1)[~close]
    compiled = np.array(list(map(special.beta_quantile, chances, a, b)))
    close = np.abs(compiled - result) <= relative * expected + 1e-290
    assert close.all(), np.stack([a, b, chances, result, compiled], axis=1)[~close]


def test_beta_quantile_at_the_edges():
    assert numerics.beta_quantile(0.0, 2.0, 3.0) == 0.0
    assert numerics.beta_quantile(1.0, 2.0, 3.0) == 1.0
    for wrong in [(-0.1, 1, 1), (1.1, 1, 1), (0.5, 0, 1), (0.5, 1, -1), (NAN, 1, 1), (0.5, NAN, 1)]:
        assert math.isnan(numerics.beta_quantile(*wrong)), wrong
    shapes = [1e-3, 0.5, 1.0, 2.0, 50.0, 1e6, 1e9]
    chances = [5e-324, 1e-300, 1e-20, 0.5, 1 - 1e-6, 1 - 1e-16]
    for p, a, b in itertools.product(chances, shapes, shapes):
        assert 0.0 <= numerics.beta_quantile(p, a, b) <= 1.0, (p, a, b)


def test_what_python_raises_for_is_what_numpy_says():
    with np.errstate(all="ignore"):
        for x, y in itertools.product(EDGES, EDGES):
            assert same(numerics.divide(x, y), float(np.divide(x, y))), (x, y)
            assert same(numerics.minimum(x, y), float(np.minimum(x, y))), (x, y)
            assert same(numerics.maximum(x, y), float(np.maximum(x, y))), (x, y)
            power = float(np.exp(np.float64(y) * np.log(np.float64(x))))
            power = x * x if y == 2.0 else 1.0 if x == y == 0.0 else power
            result = numerics.power(x, y)
            assert same(result, power) or result == pytest.approx(power, rel=1e-12), (x, y)
        for x in [*EDGES, 709.7, 709.79, -750.0]:
            assert same(numerics.sqrt(x), float(np.sqrt(x))), x
            assert same(numerics.ln(x), float(np.log(x))), x
            assert same(numerics.exp(x), float(np.exp(x))), x


def test_random_numbers_are_those_of_the_simulator():
    episode_bits, slot_word = callable_lane(random.episode_bits), callable_lane(random.slot_word)
    noise_bits, below = callable_lane(random.noise_bits), callable_lane(random.below)
    unit = callable_lane(random.unit)
    for seed, episode, step, stream in [(0, 0, 0, 1), (7, 3, 12, 2), (2**63 + 5, 99, 2**31, 40)]:
        mine = numerics.episode_seed(seed, episode)
        bits = episode_bits(np.uint64(seed), np.uint64(episode))
        for slot in range(3):
            assert numerics.word_of(mine, slot) == slot_word(np.uint64(bits), np.uint64(slot))
        key = numerics.key_of(mine)
        noise = noise_bits(np.uint32(key), np.uint32(step & 0xFFFFFFFF), np.uint32(stream))
        assert numerics.bits(key, step, stream) == noise
        assert numerics.below(key, step, stream, 7) == below(np.uint32(noise), 7)
        assert numerics.unit(key, step, stream) == unit(np.uint32(noise))
