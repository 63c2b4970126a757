"""The expected best mean of a prior."""

from __future__ import annotations

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
