"""Learning: spaces, optimisers, objectives, judges, the search, its trace, policy files."""

import math

import numpy as np
import pytest

import metabandit as mb
from metabandit.policies.power import feature, matters, power_tree, powers, weight_names

from . import naive

TWO = mb.Bernoulli(arms=2)


# Power-P ---------------------------------------------------------------------------------------


def test_power_features_are_those_of_the_paper():
    assert len(powers(1)) == 16
    assert len(powers(2)) == 81
    assert sum(map(matters, powers(1))) == 14
    assert sum(map(matters, powers(2))) == 78
    assert [feature(item) for item in ((0, 0, 0, 0), (1, 0, 0, 2), (0, 1, 1, 0))] == [
        "1",
        "v1*v4^2",
        "v2*v3",
    ]


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("v1", ["t", "h"])
def test_power_index_is_the_sum_over_its_features(degree, v1):
    """The machine's index, by way of a whole exact evaluation, against one written as a long sum."""
    rng = np.random.default_rng(degree)
    names = weight_names(degree)
    weights = dict(zip(names, rng.normal(size=len(names)) / (1 + degree) ** 2, strict=True))
    power = mb.IndexPolicy(power_tree(degree, v1), parameters=weights, name="power")
    value = {"t": "sqrt(ln(t))", "h": "sqrt(ln(h + 1))"}[v1]
    values = (value, "(1/sqrt(n))", "r", "s")
    total = "0"
    for exponents, name in zip(powers(degree), names, strict=True):
        factors = [
            item for item, power_of in zip(values, exponents, strict=True) for _ in range(power_of)
        ]
        total = f"({total}) + ({weights[name]!r})" + "".join(f"*{item}" for item in factors)
        if total.count("(") > 60:  # the reader has a limit on depth: let it begin again
            total = total.replace("(0) + ", "")
    expected = naive.regret_of_index(
        lambda n, r, s, t, h: sum(
            weights[name]
            * math.sqrt(math.log(t if v1 == "t" else h + 1)) ** i
            * n ** (-j / 2)
            * r**k
            * s**el
            for (i, j, k, el), name in zip(powers(degree), names, strict=True)
        ),
        horizon=7,
    )
    found = mb.evaluate([power], TWO, horizon=7, method="exact")[0]
    assert found.mean_regret == pytest.approx(expected, abs=1e-10)
    simulated = mb.evaluate([power], TWO, horizon=7, episodes=20_000)[0]
    assert abs(simulated.mean_regret - expected) < 4 * simulated.standard_error
