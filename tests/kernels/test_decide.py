"""Draws from Beta posteriors: what numerics.beta_draw says of itself, and its distribution."""

import math

import numpy as np
import pytest
from scipy import special, stats

from metabandit import numerics
from tests.tiers import some

PERIOD = special.beta(1 / 3, 1 / 3) / 3
SHAPES = [1e-6, 0.01, 0.3, 0.5, 1.0, 2.5, 40.0, 1e4, 1e9]


def shares(odds, a, b):
    """The distribution function of Beta(a, b) where ln(x / (1 - x)) is `odds`, far out too."""
    lower = special.betainc(a, b, special.expit(odds))
    upper = special.betainc(b, a, special.expit(-odds))
    found = np.where(odds < 0, lower, 1 - upper)
    # There x^a / (a B(a, b)) is all that counts.
    constant = special.betaln(a, b)
    low, high = np.minimum(odds, -600), np.maximum(odds, 600)
    found = np.where(odds < -600, np.exp(a * low - math.log(a) - constant), found)
    return np.where(odds > 600, 1 - np.exp(-b * high - math.log(b) - constant), found)


@pytest.mark.parametrize("a", SHAPES)
def test_draws_have_the_distribution_of_the_posterior(a):
    """Kolmogorov's test, at a level of 1e-4 for all shapes together."""
    count = some(500, 4000)
    key = numerics.key_of(round(1000 * math.log(a)) + 2**30)
    for b in SHAPES:
        odds = np.array([numerics.beta_draw(a, b, key, step, 16) for step in range(count)])
        found = stats.kstest(shares(odds, a, b), "uniform")
        assert found.pvalue > 1e-4 / len(SHAPES) ** 2, (a, b)


def ratio(a, b, z):
    """The logarithm of the ratio of the densities of y, at z spreads from the mode."""
    A, B = 3 * a - 1, 3 * b - 1
    p = A / (A + B)
    spread = 1 / math.sqrt(3 * (A + B) * (p * (1 - p)) ** (1 / 3))
    y = special.betainc(1 / 3, 1 / 3, p) + spread * z / PERIOD
    inside = (y > 0) & (y < 1)
    y = np.where(inside, y, 0.5)
    x, rest = special.betaincinv(1 / 3, 1 / 3, y), special.betaincinv(1 / 3, 1 / 3, 1 - y)
    value = A / 3 * np.log(x / p) + B / 3 * np.log(rest / (1 - p)) + z * z / 2
    return np.where(inside, value, -np.inf)


@pytest.mark.parametrize("a", [0.5, 0.6, 1, 2, 5, 30, 1000])
@pytest.mark.parametrize("b", [0.5, 0.75, 1, 3, 10, 100, 5000])
def test_the_normal_density_is_above_and_the_bound_of_the_kernel_below(a, b):
    z = np.linspace(-5.4, 5.4, 2000)
    z = z[abs(z) > 0.2]
    found = ratio(a, b, z)
    assert found.max() < 1e-9
    e, f = 1 / math.sqrt(9 * a - 3), 1 / math.sqrt(9 * b - 3)
    v = abs(z) * np.where(z < 0, e, f)
    bound = -(e * e + f * f) * z**4 / (12 * (1 - 0.88 * v))
    # The kernel takes no draw at once where the bound is -1 or less.
    near = (v < 0.92) & (bound > -1)
    assert np.all(found[near] >= bound[near] - 1e-12)
