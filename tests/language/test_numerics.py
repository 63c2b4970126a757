"""The special functions in plain Python against scipy, the machine, and each other's edges."""

import itertools
import math

import numpy as np
import pytest
import scipy.special

from metabandit.kernels import special as kernels
from metabandit.play import special

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
    for mean, bound in zip(means, bounds, strict=True):
        q = special.kl_upper(mean, bound)
        assert mean <= q <= 1
        machine = kernels.kl_upper64(mean, bound)
        # The machine's divergence rounds to 1e-16, which moves q by that / sqrt(bound).
        assert abs(q - machine) <= 1e-14 + 1e-15 / math.sqrt(bound), (mean, bound, q, machine)


def test_kl_upper_for_small_bounds_is_the_normal_approximation():
    for mean, bound in itertools.product([0.01, 0.3, 0.5, 0.99], [1e-20, 1e-18, 1e-16]):
        expected = math.sqrt(2 * bound * mean * (1 - mean))
        assert special.kl_upper(mean, bound) - mean == pytest.approx(
            expected, rel=1e-6, abs=1.2e-16
        )


def test_kl_upper_at_the_edges():
    means = [0.0, 1e-320, 1e-12, 0.3, 1 - 1e-16, 1.0, 1 + 1e-13, -1e-13, -0.1, 1.1, NAN, INF, -INF]
    bounds = [-1.0, 0.0, 5e-324, 1e-300, 1e-5, 0.1, 1.0, 30.0, 700.0, 1e308, INF, -INF, NAN]
    for mean, bound in itertools.product(means, bounds):
        expected = kernels.kl_upper64(mean, bound)
        result = special.kl_upper(mean, bound)
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
    result = np.array(list(map(special.beta_quantile, chances, a, b)))
    error = np.abs(result - expected)
    close = error <= relative * expected + 1e-290
    assert close.all(), np.stack([a, b, chances, result, expected], axis=1)[~close]


def test_beta_quantile_at_the_edges():
    assert special.beta_quantile(0.0, 2.0, 3.0) == 0.0
    assert special.beta_quantile(1.0, 2.0, 3.0) == 1.0
    for wrong in [(-0.1, 1, 1), (1.1, 1, 1), (0.5, 0, 1), (0.5, 1, -1), (NAN, 1, 1), (0.5, NAN, 1)]:
        assert math.isnan(special.beta_quantile(*wrong)), wrong
    shapes = [1e-3, 0.5, 1.0, 2.0, 50.0, 1e6, 1e9]
    chances = [5e-324, 1e-300, 1e-20, 0.5, 1 - 1e-6, 1 - 1e-16]
    for p, a, b in itertools.product(chances, shapes, shapes):
        assert 0.0 <= special.beta_quantile(p, a, b) <= 1.0, (p, a, b)


def test_what_python_raises_for_is_what_numpy_says():
    with np.errstate(all="ignore"):
        for x, y in itertools.product(EDGES, EDGES):
            assert same(special.divide(x, y), float(np.divide(x, y))), (x, y)
            assert same(special.minimum(x, y), float(np.minimum(x, y))), (x, y)
            assert same(special.maximum(x, y), float(np.maximum(x, y))), (x, y)
            power = float(np.exp(np.float64(y) * np.log(np.float64(x))))
            power = x * x if y == 2.0 else 1.0 if x == y == 0.0 else power
            result = special.power(x, y)
            assert same(result, power) or result == pytest.approx(power, rel=1e-12), (x, y)
        for x in [*EDGES, 709.7, 709.79, -750.0]:
            assert same(special.sqrt(x), float(np.sqrt(x))), x
            assert same(special.ln(x), float(np.log(x))), x
            assert same(special.exp(x), float(np.exp(x))), x
