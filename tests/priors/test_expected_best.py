"""The expected best mean of a prior."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.stats

import metabandit as mb


@pytest.mark.parametrize("alpha", [1.0, 2.0, 0.3, [3.0, 1.0], [0.05, 40.0]])
@pytest.mark.parametrize("beta", [1.0, 0.02, 200.0])
def test_expected_best(alpha, beta):
    prior = mb.Bernoulli(2, alpha=alpha, beta=beta)
    first, second = (scipy.stats.beta(a, b) for a, b in zip(prior.alpha, prior.beta, strict=True))
    # E max = E p1 + E (p2 - p1)+, by a sum over quantiles of both.
    u = (np.arange(2000) + 0.5) / 2000
    x, y = first.ppf(u), second.ppf(u)
    gain = np.maximum(y[None, :] - x[:, None], 0.0).mean()
    assert prior.expected_best() == pytest.approx(first.mean() + gain, abs=2e-4)


def test_expected_best_of_many_uniform_means():
    assert mb.Bernoulli(9).expected_best() == pytest.approx(0.9, abs=1e-12)


# Closed forms in high precision ----------------------------------------------------------------


def ln_beta(a, b):
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def best_of_two_alike(a, b):
    """The mean and half of Gini's mean difference of Beta(a, b)."""
    a, b = mp.mpf(a), mp.mpf(b)
    difference = 4 / (a + b) * mp.exp(ln_beta(a + b, a + b) - ln_beta(a, a) - ln_beta(b, b))
    return a / (a + b) + difference / 2


def best_beside_powers(a, b, powers):
    """Beta(a, b) beside Beta(c_i, 1), whose best is at most x with probability x^c, c = sum of c_i.

    The integral of 1 - F(x) x^c is 1 - E (1 - X^(c + 1)) / (c + 1).
    """
    a, b, c = mp.mpf(a), mp.mpf(b), mp.fsum(map(mp.mpf, powers))
    return 1 - (1 - mp.exp(ln_beta(a + c + 1, b) - ln_beta(a, b))) / (c + 1)


def best_beside_arcsine(a, b):
    """Beta(a, b) beside Beta(1/2, 1/2): the density of one times E max(y, X), by tanh-sinh quadrature."""
    a, b = mp.mpf(a), mp.mpf(b)
    mean, deviation = a / (a + b), mp.sqrt(a * b / (a + b + 1)) / (a + b)

    def density(y):
        return mp.exp((a - 1) * mp.log(y) + (b - 1) * mp.log1p(-y) - ln_beta(a, b))

    def best(y):
        angle = mp.asin(mp.sqrt(y))
        return (2 * y * angle + mp.pi / 2 - angle + mp.sin(2 * angle) / 2) / mp.pi

    cuts = [min(mean + step * deviation, mp.mpf(1)) for step in range(-14, 15, 2)]
    return mp.quad(lambda y: density(y) * best(y), cuts)


def extremes(rng):
    """alpha and beta from 1e-9 to 1e9; of every three the first is well known."""
    for count in range(10**9):
        a, b = 10.0 ** rng.uniform(-9.0, 9.0, 2)
        if count % 3 == 0:
            a = 10.0 ** rng.uniform(3.0, 8.0)
            b = a * rng.uniform(0.1, 10.0)
        yield a, b


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_expected_best_of_any_arms(count):
    rng = np.random.default_rng(count)
    with mp.workdps(50):
        for (a, b), turn in zip(extremes(rng), range(count), strict=False):
            found = mb.Bernoulli(2, alpha=a, beta=b).expected_best()
            assert found == pytest.approx(float(best_of_two_alike(a, b)), abs=1e-12)
            powers = 10.0 ** rng.uniform(-9.0, 9.0 if turn % 2 else 1.0, 1 + turn % 2)
            alpha, beta = [a, *powers], [b, *np.ones(len(powers))]
            found = mb.Bernoulli(alpha=alpha, beta=beta).expected_best()
            assert found == pytest.approx(float(best_beside_powers(a, b, powers)), abs=1e-12)


@pytest.mark.parametrize(
    ("alpha", "beta"), [(220_000, 780_000), (280_000, 720_000), (9e4, 10.0), (3e8, 7e8)]
)
def test_expected_best_of_an_arm_that_is_well_known(alpha, beta):
    prior = mb.Bernoulli(alpha=[alpha, 0.5], beta=[beta, 0.5])
    with mp.workdps(30):
        expected = float(best_beside_arcsine(alpha, beta))
    assert prior.expected_best() == pytest.approx(expected, abs=1e-12)
