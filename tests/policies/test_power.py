"""Power-P: its features, and its index as the sum over them."""

import math

import numpy as np
import pytest

import metabandit as mb
from metabandit.policies.power import feature, matters, power_tree, powers, weight_names
from tests import naive

TWO = mb.Bernoulli(arms=2)


def test_power_features_are_those_of_the_paper():
    assert [len(powers(degree)) for degree in (1, 2)] == [16, 81]
    assert [sum(map(matters, powers(degree))) for degree in (1, 2)] == [14, 78]
    some = [(0, 0, 0, 0), (1, 0, 0, 2), (0, 1, 1, 0)]
    assert [feature(item) for item in some] == ["1", "v1*v4^2", "v2*v3"]


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("v1", ["t", "h"])
@pytest.mark.parametrize("start", ["each-once", "prior-counts"])
def test_power_index_is_the_sum_over_its_features(degree, v1, start):
    rng = np.random.default_rng(degree)
    names = weight_names(degree)
    weights = dict(zip(names, rng.normal(size=len(names)).tolist(), strict=True))
    power = mb.IndexPolicy(power_tree(degree, v1), parameters=weights, start=start, name="power")
    horizon = 6

    def index(n, r, s, t, h):
        value = math.sqrt(math.log(t if v1 == "t" else h + 1))
        return sum(
            weights[name] * value**i * n ** (-j / 2) * r**k * s**power_of_s
            for (i, j, k, power_of_s), name in zip(powers(degree), names, strict=True)
        )

    counts = power.plan(TWO, horizon).counts

    def shares(plays, wins):
        values = []
        for arm in (0, 1):
            n = counts[0, arm] + plays[arm]
            r = (counts[1, arm] + wins[arm]) / n
            t = counts[0].sum() + sum(plays)
            values.append(index(n, r, math.sqrt(max(r - r * r, 0.0)), t, horizon - sum(plays)))
        return naive.shares_of(values)

    reward = naive.expected_reward(
        naive.by_shares(shares),
        naive.beta_chance((1, 1), (1, 1)),
        2,
        horizon,
        start == "each-once",
    )
    found = mb.evaluate([power], TWO, horizon, method="exact")[0]
    assert found.mean_regret == pytest.approx(horizon * 2 / 3 - float(reward), abs=1e-10)
