"""Counts, revenue and a list of one's own: what priors draw, and rewards by their distribution."""

import math
import pickle

import numpy as np
import pytest
import scipy.stats

import metabandit as mb
from metabandit import numerics
from metabandit.priors.amounts import COUNTS, REVENUES
from tests.priors.test_priors import check_moments, column, rewards, same

NUMBERS = [*(np.arange(400) + 0.5) / 400, 1e-7, 1e-5, 1 - 1e-5, 1 - 1e-7]
REVENUE = mb.prior("revenue:share=0.05,share_sd=0.01,value=40,value_sd=30,spread=4", arms=3)


def test_normal_quantile():
    found = [numerics.normal_quantile(p) for p in NUMBERS]
    assert np.allclose(found, scipy.stats.norm.ppf(NUMBERS), rtol=1e-13, atol=1e-14)
    ends = [numerics.normal_quantile(p) for p in (0.0, 1.0, -0.1)]
    assert ends[:2] == [-math.inf, math.inf]
    assert math.isnan(ends[2])


@pytest.mark.parametrize("shape", [0.01, 0.3, 1.0, 2.5, 40.0, 1e4])
def test_gamma_quantile(shape):
    found = [numerics.gamma_quantile(p, shape) for p in NUMBERS]
    # scipy itself is right to about 1e-10 here.
    assert np.allclose(found, scipy.stats.gamma.ppf(NUMBERS, shape), rtol=2e-10, atol=1e-290)


@pytest.mark.parametrize("mean", [0.0, 0.01, 1.0, 7.3, 60.0, 500.0])
def test_poisson_quantile(mean):
    found = [numerics.poisson_quantile(p, mean) for p in NUMBERS]
    assert found == np.maximum(scipy.stats.poisson.ppf(NUMBERS, mean), 0).tolist()


def test_what_has_no_quantile_is_no_number():
    assert math.isnan(numerics.gamma_quantile(0.5, -1.0))
    assert math.isnan(numerics.poisson_quantile(0.5, 1000.0))


@pytest.mark.parametrize("mean", [0.2, 3.0, 90.0])
def test_counts_are_poisson(mean):
    numbers, reward = rewards(COUNTS, (mean,), count=5000)
    known = scipy.stats.poisson(mean)
    assert (known.cdf(reward) >= numbers - 1e-6).all()
    assert (known.cdf(reward - 1) <= numbers + 1e-6).all()
    assert COUNTS.mean(np.array([mean])) == mean


@pytest.mark.parametrize(
    ("shape", "parameters", "known"),
    [
        ("lognormal", (0.95, 3.0, 0.7), scipy.stats.lognorm(0.7, scale=math.exp(3.0))),
        ("lognormal", (0.0, -1.0, 1.5), scipy.stats.lognorm(1.5, scale=math.exp(-1.0))),
        ("gamma", (0.95, 2.0, 20.0), scipy.stats.gamma(2.0, scale=20.0)),
        ("gamma", (0.5, 0.4, 3.0), scipy.stats.gamma(0.4, scale=3.0)),
    ],
)
def test_revenue_has_a_share_of_zeros_and_amounts(shape, parameters, known):
    family = REVENUES[shape]
    numbers, reward = rewards(family, parameters, count=20_000)
    zeros = parameters[0]
    assert (reward[numbers < zeros - 1e-6] == 0).all()
    paid = numbers > zeros + 1e-4
    inside = (numbers[paid] - zeros) / (1 - zeros)
    # u goes through float32: near zero and one a rounding of it moves the share by 2e-7/(1 - zeros).
    slack = 4e-7 / (1 - zeros) + 1e-6
    assert np.abs(known.cdf(reward[paid]) - inside).max() < slack
    assert family.mean(np.array(parameters)) == pytest.approx((1 - zeros) * known.mean(), rel=1e-12)


def test_priors_of_amounts_draw_what_they_promise():
    counts = mb.Counts(shape=[4, 9], rate=[2, 3])
    check_moments(column(counts, 1, 0), scipy.stats.gamma(9, scale=1 / 3))
    check_moments(1 - column(REVENUE, 2, 0), scipy.stats.beta(REVENUE.alpha[2], REVENUE.beta[2]))
    drawn = REVENUE.draw(np.random.default_rng(1), 40_000)
    paid = REVENUE.family.mean(drawn) / (1 - drawn[..., 0])
    variance = math.log1p(0.1**2)
    check_moments(paid[:, 0], scipy.stats.lognorm(math.sqrt(variance), scale=40 * math.exp(-variance / 2)))  # fmt: skip
    gamma = mb.Revenue(shape="gamma", value=40, value_sd=30)
    _, shape, scale = gamma.draw(np.random.default_rng(1), 1)[0, 0]
    known = scipy.stats.gamma(shape, scale=scale)
    assert (known.mean(), known.std()) == pytest.approx((40, 30))


def test_a_list_of_rewards_is_drawn_from_evenly(tmp_path):
    path = tmp_path / "rewards.csv"
    path.write_text("order;revenue\n1;0\n2;0\n3;12,5\n4;€ 40,00\n")
    prior = mb.prior(f"empirical:path={path},factor=0.2", arms=3)
    assert prior.rewards.tolist() == [0, 0, 12.5, 40]
    _, drawn = rewards(prior.family, (2.0, 0.0, 13.125), count=4000)
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [0, 25, 80]
    assert counts.tolist() == [2000, 1000, 1000]
    factors = column(prior, 1, 0)
    variance = math.log1p(0.2**2)
    check_moments(factors, scipy.stats.lognorm(math.sqrt(variance), scale=math.exp(-variance / 2)))
    assert prior.family.mean(np.array([2.0, 1.0, 13.125])) == 27.25
    assert same(mb.prior(str(prior), arms=3), prior)
    shifted = mb.Empirical([1.0, 2.0, -1.0], shift=0.5)
    check_moments(column(shifted, 0, 1), scipy.stats.norm(0, 0.5))
    assert shifted.family.support == (-math.inf, math.inf)


@pytest.mark.parametrize(
    "prior",
    [
        mb.Counts(arms=3, shape=20, rate=10),
        REVENUE,
        mb.Revenue(arms=2, shape="gamma", value=5, value_sd=8),
        mb.Empirical([0, 0, 0, 1, 2, 8.5], arms=3, factor=0.3),
        mb.Hierarchical(arms=3, mean=0.1, between=0.05, within=0.02),
        mb.Hierarchical(mean=3, between=1, within=0.5, family="gaussian", noise=2),
    ],
    ids=str,
)
def test_policies_play_for_such_rewards(prior):
    """A split earns the mean of all arms: what is drawn has the means that are promised."""
    plays, problems = 40, 4000
    result = mb.evaluate(["split", "uniform", "greedy"], prior, plays, episodes=problems, seed=3)
    drawn = prior.draw(np.random.default_rng(8), 20_000)
    means = prior.family.mean(drawn)
    gap = means.max(axis=1) - means.mean(axis=1)
    split = result["split"]
    error = math.hypot(split.standard_error, plays * gap.std() / math.sqrt(len(gap)))
    assert abs(split.mean_regret - plays * gap.mean()) < 5 * error
    assert result["greedy"].mean_regret < split.mean_regret
    if "rewards=" not in str(prior):
        assert str(mb.prior(str(prior), arms=prior.arms)) == str(prior)
    again = pickle.loads(pickle.dumps(prior))
    assert again.family == prior.family


def test_rewards_have_the_mean_that_is_promised():
    for prior in (REVENUE, mb.Counts(), mb.Empirical([0, 0, 3, 9], factor=0.2)):
        parameters = prior.draw(np.random.default_rng(4), 1)[0, 0]
        reward = rewards(prior.family, parameters, count=200_000)[1]
        mean = float(prior.family.mean(parameters))
        # At evenly spread numbers the mean is off by less than at random ones.
        assert abs(reward.mean() - mean) < 3 * reward.std() / math.sqrt(len(reward))


def test_levels_make_arms_alike():
    prior = mb.Hierarchical(arms=2, mean=0.1, between=0.03, within=0.02)
    drawn = prior.draw(np.random.default_rng(5), 60_000)[..., 0]
    assert abs(drawn.mean() - 0.1) < 5 * 0.036 / math.sqrt(60_000)
    # Var(arm) = between^2 + E[level (1 - level)]/(c + 1), Cov(arms) = between^2.
    concentration = 0.1 * 0.9 / 0.02**2 - 1
    variance = 0.03**2 + (0.1 * 0.9 - 0.03**2) / (concentration + 1)
    correlation = np.corrcoef(drawn.T)[0, 1]
    assert abs(correlation - 0.03**2 / variance) < 5 / math.sqrt(60_000)
    assert drawn.var() == pytest.approx(variance, rel=0.03)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mb.Counts(shape=1e6, rate=1), ["up to 500", "gaussian"]),
        (lambda: mb.Revenue(shape="normal"), ["'normal'", "gamma, lognormal"]),
        (lambda: mb.Revenue(value_sd=30), ["20 times value", "30"]),
        (lambda: mb.Revenue(spread=-1), ["spread", "at least 0"]),
        (lambda: mb.Empirical([1, 2]), ["factor=0.1", "how much arms differ"]),
        (lambda: mb.Empirical([2, 2], factor=1), ["differ", "2"]),
        (lambda: mb.Empirical([-1, 1], factor=1), ["mean 0", "shift="]),
        (lambda: mb.Empirical([[1, 2]], factor=1), ["one column", "(1, 2)"]),
        (lambda: mb.Empirical(["x"], factor=1), ["numbers"]),
        (lambda: mb.prior("empirical"), ["empirical:path=rewards.csv"]),
        (lambda: mb.Hierarchical(mean=2), ["mean", "between 0 and 1"]),
        (lambda: mb.Hierarchical(mean=0.01, between=0.2), ["between", "less than 0.0995", "0.2"]),
        (lambda: mb.Hierarchical(family="beta"), ["'beta'", "bernoulli, gaussian"]),
    ],
)
def test_bad_amounts_are_refused(make, words):
    with pytest.raises(mb.InputError) as caught:
        make()
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_file_with_several_columns_needs_to_say_which(tmp_path):
    path = tmp_path / "rewards.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(mb.InputError, match="one column of rewards, called reward"):
        mb.Empirical(path, factor=0.1)
