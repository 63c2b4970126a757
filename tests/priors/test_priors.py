"""Priors must draw the problems, and families the rewards, that they promise; bad input is named."""

import math

import numba
import numpy as np
import pytest
import scipy.stats

import metabandit as mb
from metabandit.priors.families import truncated_gaussian_family

PROBLEMS = 40_000
uniform = scipy.stats.uniform


def column(prior, arm, parameter):
    drawn = prior.draw(np.random.default_rng(7), PROBLEMS)
    assert drawn.shape == (PROBLEMS, prior.arms, len(prior.family.parameters))
    return drawn[:, arm, parameter]


def check_moments(sample, distribution):
    """Mean and variance, each within five of its standard errors."""
    mean, variance, _, kurtosis = (float(x) for x in distribution.stats(moments="mvsk"))
    assert abs(sample.mean() - mean) <= 5 * math.sqrt(variance / len(sample))
    error = math.sqrt(variance**2 * (kurtosis + 2) / len(sample))
    assert abs(sample.var() - variance) <= 5 * error


WIDE = mb.TruncatedGaussian(
    arms=3, low=-1, high=3, mean_low=0, mean_high=1, deviation_low=0.5, deviation_high=2
)


@pytest.mark.parametrize(
    ("prior", "arm", "parameter", "expected"),
    [
        (mb.Bernoulli(arms=3), 2, 0, uniform(0, 1)),
        (mb.Bernoulli(arms=2, alpha=2, beta=5), 1, 0, scipy.stats.beta(2, 5)),
        (mb.Bernoulli(alpha=[3, 1], beta=[2, 1]), 0, 0, scipy.stats.beta(3, 2)),
        (mb.Bernoulli(alpha=[3, 1], beta=[2, 1]), 1, 0, scipy.stats.beta(1, 1)),
        (mb.Bernoulli(alpha=[3, 1, 2], beta=0.5), 2, 0, scipy.stats.beta(2, 0.5)),
        (mb.TruncatedGaussian(arms=2), 0, 0, uniform(0, 1)),
        (mb.TruncatedGaussian(arms=2), 1, 1, uniform(0, 1)),
        (WIDE, 2, 0, uniform(0, 1)),
        (WIDE, 2, 1, uniform(0.5, 1.5)),
        (mb.Gaussian(arms=2, mean=-1, spread=3), 1, 0, scipy.stats.norm(-1, 3)),
    ],
)
def test_draws_have_the_right_mean_and_variance(prior, arm, parameter, expected):
    check_moments(column(prior, arm, parameter), expected)


def test_arms_are_drawn_independently():
    for prior in (mb.Bernoulli(arms=2), mb.TruncatedGaussian(arms=2), mb.Gaussian(arms=2)):
        first, second = column(prior, 0, 0), column(prior, 1, 0)
        assert abs(np.corrcoef(first, second)[0, 1]) <= 5 / math.sqrt(PROBLEMS)


def test_constant_parameters():
    assert set(column(mb.Gaussian(arms=2, noise=2.5), 0, 1)) == {2.5}
    prior = mb.BetaRewards(arms=2, alpha=2, beta=3, concentration=7)
    a, b = column(prior, 1, 0), column(prior, 1, 1)
    assert np.allclose(a + b, 7)
    check_moments(a / 7, scipy.stats.beta(2, 3))
    assert set(column(WIDE, 0, 4)) == {-1.0}
    assert set(column(WIDE, 0, 5)) == {3.0}


def test_table_draws_every_row_as_often(tmp_path):
    path = tmp_path / "means.csv"
    path.write_text("0.1,0.2\n0.3,0.4\n0.5,0.6\n0.7,0.8\n")
    drawn = mb.Table(path).draw(np.random.default_rng(7), PROBLEMS)[..., 0]
    assert np.allclose(drawn[:, 1] - drawn[:, 0], 0.1), "a problem is a row"
    counts = np.bincount(((drawn[:, 0] - 0.1) / 0.2).round().astype(int))
    assert len(counts) == 4
    assert (np.abs(counts / PROBLEMS - 0.25) <= 5 * math.sqrt(0.25 * 0.75 / PROBLEMS)).all()


@numba.njit
def call_draw(draw, numbers, parameters, reward):
    draw(numbers, parameters, reward)


def rewards(family, parameters, count=50_000):
    """Rewards at the uniform numbers (i + 1/2) / count, for one arm's parameters."""
    numbers = ((np.arange(count) + 0.5) / count).astype(np.float32)
    rows = np.repeat(np.array(parameters, np.float32)[:, None], count, axis=1)
    reward = np.full(count, np.nan, np.float32)
    call_draw(family.draw_kernel(), numbers, np.ascontiguousarray(rows), reward)
    return numbers.astype(float), reward.astype(float)


def truncated(mean, deviation, low, high):
    """The distribution, and the parameters of the family as the prior draws them."""
    ends = (low - mean) / deviation, (high - mean) / deviation
    under, up_to = scipy.stats.norm.cdf(ends)
    distribution = scipy.stats.truncnorm(*ends, loc=mean, scale=deviation)
    return distribution, (mean, deviation, under, up_to - under, low, high)


TRUNCATED = [(0.5, 0.3, 0, 1), (0.0, 0.2, 0, 1), (0.9, 1.0, 0, 1), (0.3, 0.01, 0, 1), (1, 8, -1, 3)]


@pytest.mark.parametrize(
    ("family", "parameters", "distribution"),
    [
        (mb.GAUSSIAN, (0.0, 1.0), scipy.stats.norm()),
        (mb.GAUSSIAN, (-3.0, 0.2), scipy.stats.norm(-3, 0.2)),
        (mb.BETA, (2.0, 1.0), scipy.stats.beta(2, 1)),
        (mb.BETA, (1.0, 1.0), scipy.stats.beta(1, 1)),
        (mb.BETA, (0.5, 0.5), scipy.stats.beta(0.5, 0.5)),
        (mb.BETA, (0.25, 1.0), scipy.stats.beta(0.25, 1)),
        (mb.BETA, (7.0, 3.0), scipy.stats.beta(7, 3)),
        (mb.BETA, (200.0, 600.0), scipy.stats.beta(200, 600)),
        *(
            (truncated_gaussian_family(*item[2:]), truncated(*item)[1], truncated(*item)[0])
            for item in TRUNCATED
        ),
    ],
)
def test_rewards_follow_the_distribution(family, parameters, distribution):
    numbers, reward = rewards(family, parameters)
    # The inverse distribution function at float32 numbers, known to a few roundings of the reward.
    slack = 1e-6 * (np.abs(distribution.mean()) + distribution.std() + np.abs(reward))
    assert (distribution.cdf(reward - slack) <= numbers + 1e-6).all()
    assert (distribution.cdf(reward + slack) >= numbers - 1e-6).all()
    assert scipy.stats.kstest(reward, distribution.cdf).statistic <= 0.5 / len(reward) + 2e-4
    low, high = family.support
    assert low <= reward.min() <= reward.max() <= high
    assert family.mean(np.array(parameters)) == pytest.approx(distribution.mean(), rel=1e-9)


@pytest.mark.parametrize("p", [0.0, 0.003, 0.5, 0.81, 1.0])
def test_bernoulli_rewards(p):
    _, reward = rewards(mb.BERNOULLI, (p,))
    assert set(reward) <= {0.0, 1.0}
    assert abs(reward.mean() - p) <= 1 / len(reward)
    assert mb.BERNOULLI.mean(np.array([p])) == p


def test_truncated_gaussian_without_spread_pays_its_mean():
    prior = mb.TruncatedGaussian(arms=2, deviation_high=0)
    parameters = prior.draw(np.random.default_rng(1), 50)
    assert np.array_equal(prior.family.mean(parameters), parameters[..., 0])
    _, reward = rewards(prior.family, parameters[0, 0])
    assert np.allclose(reward, parameters[0, 0, 0], rtol=1e-6)


def test_regret_is_counted_against_the_true_mean_or_the_parent():
    for regret in ("true", "parent"):
        prior = mb.TruncatedGaussian(arms=2, regret=regret)
        parameters = prior.draw(np.random.default_rng(1), 200)
        means = prior.regret_means(parameters)
        if regret == "parent":
            assert np.array_equal(means, parameters[..., 0])
        else:
            expected = [
                [truncated(mean, deviation, 0, 1)[0].mean() for mean, deviation in problem]
                for problem in parameters[..., :2]
            ]
            assert np.allclose(means, expected, atol=1e-9)


def test_counts_say_the_same_as_the_prior():
    prior = mb.Bernoulli(alpha=[3, 1], beta=[2, 1])
    assert prior.counts().tolist() == [[5, 2], [3, 1], [3, 1]]
    assert mb.Gaussian(arms=2).counts() is None


def same(one, other):
    mine, theirs = vars(one), vars(other)
    assert type(one) is type(other)
    assert mine.keys() == theirs.keys()
    return all(np.array_equal(mine[key], theirs[key]) for key in mine)


@pytest.mark.parametrize(
    "prior",
    [
        mb.Bernoulli(arms=4),
        mb.Bernoulli(alpha=[3, 1, 2], beta=[2, 1, 0.5]),
        mb.Bernoulli(arms=2, alpha=1 / 3, beta=1234567.5),
        mb.TruncatedGaussian(arms=3, regret="parent", mean_high=2 / 3),
        WIDE,
        mb.Gaussian(arms=2, mean=-math.pi * 1e-9, spread=1e-9, noise=0.1),
        mb.BetaRewards(arms=2, alpha=[1, 1 / 7], beta=2, concentration=1e6 - 1),
    ],
)
def test_text_reads_back_as_the_same_prior(prior):
    assert same(mb.prior(str(prior), arms=prior.arms), prior)


@pytest.mark.parametrize(
    "settings", [{}, {"family": "gaussian", "noise": 1 / 3}, {"family": "beta"}]
)
def test_text_of_a_table_reads_back(settings, tmp_path):
    path = tmp_path / "means.csv"
    path.write_text("0.1,0.2\n")
    prior = mb.Table(path, **settings)
    assert same(mb.prior(str(prior)), prior)


def test_weights_of_a_table(tmp_path):
    path = tmp_path / "means.csv"
    path.write_text("test,a,b,Weight\none,0.1,0.2,3\ntwo,0.6,0.5,1\n")
    for prior in (mb.Table(path), mb.Table([[0.1, 0.2], [0.6, 0.5]], weights=[0.3, 0.1])):
        assert prior.arms == 2
        assert np.allclose(prior.weights, [0.75, 0.25])
        assert prior.expected_best() == pytest.approx(0.3)
        drawn = prior.draw(np.random.default_rng(7), PROBLEMS)[:, 0, 0]
        share = np.mean(drawn == 0.1)
        assert abs(share - 0.75) <= 5 * math.sqrt(0.75 * 0.25 / PROBLEMS)
    rows = np.random.default_rng(0).uniform(size=(30, 2))
    part = mb.Table(rows, weights=np.arange(1, 31)).split()
    for some in (part, part.held_out):
        assert some.weights.sum() == pytest.approx(1.0)
        numbers = [1 + int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in some.means]
        assert np.allclose(some.weights, np.array(numbers) / sum(numbers))
    assert mb.Table(rows, weights=np.full(30, 0.7)).even
    for weights, words in (
        ([1], "one weight per problem"),
        ([1, 0], "greater than 0"),
        ([1, math.nan], "finite"),
        (["x", 1], "numbers"),
    ):
        with pytest.raises(mb.InputError, match=words):
            mb.Table([[0.1, 0.2], [0.6, 0.5]], weights=weights)
    with pytest.raises(mb.InputError, match="title weight"):
        mb.Table(path, weights=[1, 2])
    with pytest.raises(mb.InputError, match="weights"):
        mb.prior(f"table:path={path},weights=1")


def test_prior_text():
    prior = mb.prior("bernoulli:alpha=3:1,beta=2:1")
    assert (prior.arms, prior.alpha, prior.beta) == (2, (3.0, 1.0), (2.0, 1.0))
    assert mb.prior("bernoulli").arms == 2
    assert mb.prior(" bernoulli : alpha = 2 ", arms=3).alpha == (2.0, 2.0, 2.0)
    assert mb.prior("truncated-gaussian:regret=parent").regret == "parent"
    assert mb.prior("gaussian:noise=0.5,mean=-1").mean == -1.0


@pytest.mark.parametrize("number", [np.int64(3), np.float32(3), np.float64(3), 3])
def test_numbers_of_numpy_are_numbers(number):
    assert mb.Bernoulli(arms=2, alpha=number).alpha == (3.0, 3.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mb.prior("bernouli"), ["'bernouli'", "did you mean bernoulli?"]),
        (lambda: mb.prior("bernoulli:"), ["nothing follows the colon"]),
        (lambda: mb.prior("bernoulli:alpha"), ["'alpha'", "key=value"]),
        (lambda: mb.prior("bernoulli:alpha=1,alpha=2"), ["alpha is given twice"]),
        (lambda: mb.prior("bernoulli:gamma=1"), ["'gamma'", "alpha, beta"]),
        (lambda: mb.prior("bernoulli:alpha=x"), ["alpha", "number", "'x'"]),
        (lambda: mb.prior("bernoulli:alpha=nan"), ["alpha", "finite", "'nan'"]),
        (lambda: mb.prior("bernoulli:alpha=0"), ["alpha", "greater than 0", "0"]),
        (lambda: mb.prior("bernoulli:alpha=1:2:3", arms=2), ["alpha", "3 values for 2 arms"]),
        (lambda: mb.prior("gaussian:noise=1:2"), ["noise", "one number", "'1:2'"]),
        (lambda: mb.prior("gaussian:spread=-2"), ["spread", "greater than 0", "-2"]),
        (lambda: mb.prior("beta:concentration=0"), ["concentration", "greater than 0", "0"]),
        (lambda: mb.prior("table"), ["table:path="]),
        (lambda: mb.prior("truncated-gaussian:low=2"), ["low", "less than high", "2"]),
        (lambda: mb.prior("truncated-gaussian:mean_high=1.5"), ["mean_high <= high", "1.5"]),
        (lambda: mb.prior("truncated-gaussian:deviation_high=11"), ["deviation_high", "11"]),
        (lambda: mb.prior("truncated-gaussian:deviation_low=-1"), ["0 <= deviation_low", "-1"]),
        (lambda: mb.prior("truncated-gaussian:regret=none"), ["true or parent", "'none'"]),
        (lambda: mb.Bernoulli(arms=1), ["at least 2", "1"]),
        (lambda: mb.Bernoulli(arms=2.5), ["arms", "2.5"]),
        (lambda: mb.Bernoulli(arms=10**9), ["arms", "at most 10,000"]),
        (lambda: mb.Gaussian(mean=1e5), ["1000 to 1", "subtract"]),
        (lambda: mb.prior("past.csv"), ["table:path=past.csv"]),
        (lambda: mb.Bernoulli(alpha=[1, -3]), ["alpha", "greater than 0", "-3"]),
        (lambda: mb.Bernoulli(alpha=[1, 2, 3], beta=[1, 2]), ["beta", "2 values for 3 arms"]),
    ],
)
def test_bad_input_names_the_value_and_the_rule(make, words):
    with pytest.raises(mb.InputError) as caught:
        make()
    assert [word for word in words if word not in str(caught.value)] == []


def table(tmp_path, content, **settings):
    path = tmp_path / "means.csv"
    path.write_bytes(content.encode())
    return mb.Table(path, **settings)


@pytest.mark.parametrize(
    "content",
    [
        "0.1,0.2\n0.3,0.4\n",
        "left,right\n0.1,0.2\n0.3,0.4",
        "\ufeffleft,right\r\n0.1,0.2\r\n0.3,0.4\r\n",
        "\ufeff0.1,0.2\n0.3,0.4\n",
        '"left","right"\n\n 0.1 , 0.2\n,\n0.3,4e-1\n\n',
    ],
)
def test_tables_with_and_without_header(content, tmp_path):
    prior = table(tmp_path, content)
    assert prior.arms == 2
    assert prior.means.tolist() == [[0.1, 0.2], [0.3, 0.4]]


@pytest.mark.parametrize(
    ("content", "settings", "words"),
    [
        ("0.1,0.2\n0.3,\n", {}, ["line 2, column 2", "empty"]),
        ("a,b\n0.1,0.2\n ,0.3\n", {}, ["line 3, column 1", "empty"]),
        ("0.1,0.2\n0.3\n", {}, ["line 2", "1 cells", "2"]),
        ("a,b\n0.3,0.1,0.2\n", {}, ["line 2", "3 cells", "2"]),
        ("0.1,1.2\n", {}, ["line 1, column 2", "1.2", "between 0 and 1"]),
        ("-0.1,0.2\n", {"family": "beta"}, ["line 1, column 1", "-0.1", "between 0 and 1"]),
        ("0.1,high\n", {}, ["line 1, column 2", "'high'"]),
        ("0.1,nan\n", {}, ["line 1, column 2", "'nan'"]),
        ("0.1,inf\n", {"family": "gaussian"}, ["line 1, column 2", "'inf'"]),
        ("a\n0.1\n0.2\n", {}, ["1 column", "at least 2"]),
        ("", {}, ["no problem"]),
        ("a,b\n", {}, ["no problem"]),
        ("a,b,weight\n0.1,0.2,0\n", {}, ["line 2, column 3", "greater than 0"]),
        ("a,b,weight\n0.1,0.2,\n", {}, ["line 2, column 3", "empty"]),
        ("a,weight\n0.1,1\n", {}, ["1 column", "at least 2"]),
        ("a,b,weight,weight\n0.1,0.2,1,1\n", {}, ["2 columns", "weight"]),
        ("0.1,0.2\n", {"arms": 3}, ["2 columns", "3"]),
        ("0.1,0.2\n", {"family": "poisson"}, ["'poisson'", "bernoulli, beta, gaussian"]),
        ("0.1,0.2\n", {"noise": 0}, ["noise", "greater than 0"]),
        ("0.1," + "9" * 200_000, {}, ["means.csv"]),
    ],
)
def test_bad_tables_say_where(content, settings, words, tmp_path):
    with pytest.raises(mb.InputError) as caught:
        table(tmp_path, content, **settings)
    assert [word for word in words if word not in str(caught.value)] == []


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(mb.InputError, match=r"nowhere\.csv does not exist"):
        mb.prior(f"table:path={tmp_path}/nowhere.csv")
    with pytest.raises(mb.InputError, match="cannot be read"):
        mb.Table(tmp_path)
    (tmp_path / "image.csv").write_bytes(b"\xff\xfe\x00\xff")
    with pytest.raises(mb.InputError, match=r"image\.csv"):
        mb.Table(tmp_path / "image.csv")


def test_gaussian_tables_take_any_mean(tmp_path):
    prior = table(tmp_path, "-5,1e3\n", family="gaussian", noise=2)
    assert prior.draw(np.random.default_rng(1), 1).tolist() == [[[-5.0, 2.0], [1000.0, 2.0]]]
