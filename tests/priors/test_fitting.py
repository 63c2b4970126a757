"""Priors from past tests: estimates, intervals that cover the truth, checks and warnings."""

import json
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from typer.testing import CliRunner

import metabandit as mb
from metabandit.cli import app
from metabandit.priors.history import read_history
from metabandit.priors.likelihood import BetaBinomial, BetaLevels, Maximum, NormalLevels


def draw_history(prior, tests, plays, seed):
    """Counts of past tests on problems of a prior."""
    rng = np.random.default_rng(seed)
    means = prior.draw(rng, tests)[..., 0]
    return {
        "test": np.repeat(np.arange(tests), prior.arms),
        "variant": np.tile(list("ABCDEFGH"[: prior.arms]), tests),
        "sent": np.full(means.size, plays),
        "clicks": rng.binomial(plays, means).ravel(),
    }


def draw_means(prior, tests, plays, seed):
    """The same for Gaussian rewards: means with standard errors."""
    rng = np.random.default_rng(seed)
    drawn = prior.draw(rng, tests)
    error = drawn[..., 1] / math.sqrt(plays)
    return {
        "test": np.repeat(np.arange(tests), prior.arms),
        "n": np.full(error.size, plays),
        "mean": rng.normal(drawn[..., 0], error).ravel(),
        "se": error.ravel(),
    }


TRUE = mb.Bernoulli(arms=4, alpha=3, beta=90)
MEAN = 3 / 93
SPREAD = math.sqrt(MEAN * (1 - MEAN) / 94)


def truth_is_covered(model, truth, histories):
    """In how many histories the interval of each parameter holds the truth."""
    covered = np.zeros(len(truth))
    for history in histories:
        estimates = Maximum(model(read_history(history))).estimates()
        covered += [
            each.low <= value <= each.high for each, value in zip(estimates, truth, strict=True)
        ]
    return covered


@pytest.mark.slow
def test_intervals_cover_the_truth():
    count = 200
    histories = (draw_history(TRUE, 40, 1250, seed) for seed in range(count))
    covered = truth_is_covered(BetaBinomial, (MEAN, SPREAD), histories)
    # 93 to 97 %, but for what chance does to a share of 200.
    error = math.sqrt(0.95 * 0.05 / count)
    assert (np.abs(covered / count - 0.95) < 0.02 + 2 * error).all(), covered / count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "prior", "draw"),
    [
        (BetaLevels, mb.Hierarchical(4, mean=0.03, between=0.01, within=0.005), draw_history),
        (NormalLevels, mb.Hierarchical(4, mean=3, between=1, within=0.5, family="gaussian", noise=9), draw_means),
    ],
)  # fmt: skip
def test_intervals_of_levels_cover_the_truth(model, prior, draw):
    count = 8 if model is BetaLevels else 40
    truth = (prior.mean, prior.between, prior.within)
    covered = truth_is_covered(model, truth, (draw(prior, 20, 1250, seed) for seed in range(count)))
    # No more misses than chance has in one of 1000 such tests.
    assert (scipy.stats.binom.cdf(covered, count, 0.95) > 1e-3).all(), covered


def test_estimates_maximise_the_likelihood():
    history = read_history(draw_history(TRUE, 40, 1250, seed=2))
    found = Maximum(BetaBinomial(history))

    def loss(a, b):
        return -scipy.stats.betabinom.logpmf(history.total, history.plays, a, b).sum()

    mean, spread = found.values["mean"], found.values["spread"]
    total = mean * (1 - mean) / spread**2 - 1
    a, b = mean * total, (1 - mean) * total
    for factor in (0.99, 1.01):
        assert loss(a, b) < min(
            loss(factor * a, b), loss(a, factor * b), loss(factor * a, factor * b)
        )
    # Ends of the intervals: the best of all priors there is less likely by half of F's quantile.
    low, high = found.estimates()[0].low, found.estimates()[0].high
    for end in (low, high):
        totals = np.geomspace(total / 2, total * 2, 400)
        best = min(loss(end * each, (1 - end) * each) for each in totals)
        allowed = scipy.stats.f.ppf(0.95, 1, len(history.plays) - 2) / 2
        assert best - loss(a, b) == pytest.approx(allowed, rel=0.02)


def test_the_likelihood_of_levels_is_the_integral():
    past = {"test": [1, 1, 2, 2, 3], "sent": [200, 150, 90, 1000, 40], "clicks": [9, 4, 0, 33, 1]}
    history = read_history(past)
    mean, between, within = 0.04, 0.015, 0.01
    a, b = (x * (mean * (1 - mean) / between**2 - 1) for x in (mean, 1 - mean))
    concentration = mean * (1 - mean) / within**2 - 1
    expected = 0.0
    for test in range(3):
        mine = history.problem == test
        n, s = history.plays[mine], history.total[mine]

        def at(level, n=n, s=s):
            each = scipy.stats.betabinom.pmf(
                s, n, concentration * level, concentration * (1 - level)
            )
            return scipy.stats.beta.pdf(level, a, b) * each.prod()

        expected += math.log(scipy.integrate.quad(at, 0, 0.3, epsabs=0, epsrel=1e-10, limit=200)[0])
    # The model leaves out what does not depend on the prior.
    n, s = history.plays, history.total
    constant = (scipy.special.gammaln(n + 1) - scipy.special.gammaln(s + 1) - scipy.special.gammaln(n - s + 1)).sum()  # fmt: skip
    found = BetaLevels(history).log_likelihood((mean, between, within))
    assert found + constant == pytest.approx(expected, abs=2e-5)


def test_the_likelihood_of_normal_levels_is_that_of_a_normal_vector():
    prior = mb.Hierarchical(3, mean=3, between=1, within=0.5, family="gaussian", noise=9)
    history = read_history(draw_means(prior, 4, 100, seed=1))
    expected = 0.0
    for test in range(4):
        mine = history.problem == test
        covariance = 1.1**2 + np.diag(0.4**2 + history.error[mine] ** 2)
        expected += scipy.stats.multivariate_normal([2.5] * 3, covariance).logpdf(
            history.mean[mine]
        )
    constant = -0.5 * len(history.plays) * math.log(2 * math.pi)
    assert NormalLevels(history).log_likelihood((2.5, 1.1, 0.4)) + constant == pytest.approx(
        expected
    )


def test_a_good_history_gives_the_prior_without_a_warning():
    fitted = mb.fit_prior(draw_history(TRUE, 80, 1250, seed=5))
    told = fitted.to_dict()
    assert told["prior"] == str(fitted.prior) == str(mb.prior(told["prior"], arms=4))
    assert told["arms"] == fitted.prior.arms == 4
    mean, spread = (told["parameters"][name] for name in ("mean", "spread"))
    for each, truth in ((mean, MEAN), (spread, SPREAD)):
        assert abs(each["value"] - truth) < 5 * (each["high"] - each["low"]) / 3.92
    assert fitted.warnings() == []
    assert fitted.plausible > 0.05
    raw = fitted.shrinkage
    assert raw["spread"] < raw["raw_spread"]
    assert raw["kept"] == pytest.approx(SPREAD**2 / (SPREAD**2 + MEAN * (1 - MEAN) / 1250), rel=0.2)
    json.dumps(told)


def test_means_are_fitted_with_their_noise():
    prior = mb.Gaussian(arms=3, mean=5, spread=2, noise=10)
    fitted = mb.fit_prior(draw_means(prior, 60, 50, seed=3))
    mean, spread = fitted.estimates[""]
    assert mean.low < 5 < mean.high
    assert spread.low < 2 < spread.high
    assert fitted.prior.noise == pytest.approx(10)
    assert isinstance(fitted.prior, mb.Gaussian)


def test_arms_of_their_own():
    prior = mb.Bernoulli(alpha=[30, 90], beta=[970, 910])
    history = draw_history(prior, 40, 500, seed=4)
    together = mb.fit_prior(history)
    assert together.differ < 1e-6
    assert any("--per-arm" in warning for warning in together.warnings())
    fitted = mb.fit_prior(history, per_arm=True)
    assert fitted.prior.arms == 2
    means = np.array(fitted.prior.alpha) / np.add(fitted.prior.alpha, fitted.prior.beta)
    assert np.allclose(means, [0.03, 0.09], rtol=0.15)
    assert set(fitted.to_dict()["parameters"]) == {"A", "B"}
    assert fitted.rows()[0]["arm"] == "A"


def test_tests_that_differ_in_level():
    prior = mb.Hierarchical(4, mean=0.03, between=0.01, within=0.003)
    history = draw_history(prior, 30, 1000, seed=6)
    assert any("--hierarchical" in warning for warning in mb.fit_prior(history).warnings())
    fitted = mb.fit_prior(history, hierarchical=True)
    assert isinstance(fitted.prior, mb.Hierarchical)
    assert fitted.prior.between > 2 * fitted.prior.within
    assert str(mb.prior(str(fitted.prior), arms=4)) == str(fitted.prior)


def test_a_history_of_noise_says_so():
    rng = np.random.default_rng(7)
    history = {
        "test": np.repeat(range(6), 2),
        "sent": [300] * 12,
        "clicks": rng.binomial(300, 0.05, 12),
    }
    fitted = mb.fit_prior(history)
    spread = fitted.estimates[""][1]
    assert spread.low == 0.0
    assert spread.high > 0.0
    words = " ".join(fitted.warnings())
    assert "only 6 tests" in words
    assert "noise alone could explain" in words


def test_groups_of_arms_and_outliers_are_implausible():
    rng = np.random.default_rng(8)
    groups = rng.permutation(np.repeat([0.02, 0.08], 60))
    outlier = rng.beta(40, 960, 120)
    outlier[7] = 0.4
    for means in (groups, outlier):
        past = {
            "test": np.repeat(range(40), 3),
            "sent": [2000] * 120,
            "clicks": rng.binomial(2000, means),
        }
        fitted = mb.fit_prior(past)
        assert fitted.plausible < 0.02
        assert any("does not fit this prior well" in warning for warning in fitted.warnings())


@pytest.mark.filterwarnings("error")
def test_a_history_that_is_further_than_any_drawn_in_every_entry():
    clicks = [30 + 7 * place for place in range(12)]
    past = {"test": np.repeat(range(6), 2), "sent": [10**15] * 12, "clicks": clicks}
    assert mb.fit_prior(past).plausible < 0.02


def test_other_histories_of_the_same_tests():
    fitted = mb.fit_prior(draw_history(TRUE, 40, 1250, seed=9))
    priors = fitted.resampled(40, seed=1)
    assert [str(prior) for prior in priors[:5]] == [str(p) for p in fitted.resampled(5, seed=1)]
    spread = np.std([prior.alpha[0] / (prior.alpha[0] + prior.beta[0]) for prior in priors])
    mean = fitted.estimates[""][0]
    # The standard error of the mean, twice from the same tests.
    assert spread == pytest.approx((mean.high - mean.low) / 3.92, rel=0.5)


@pytest.mark.parametrize(
    ("history", "options", "words"),
    [
        ({"test": [1, 1], "sent": [9, 9], "clicks": [1, 2]}, {}, ["2 arms in all", "describe the prior"]),
        ({"test": [1, 1, 2], "sent": [9] * 3, "clicks": [0] * 3}, {}, ["no success", "describe the prior"]),
        ({"test": [1, 1, 2], "sent": [9] * 3, "clicks": [9] * 3}, {}, ["no failure"]),
        ({"test": [1, 1, 2], "sent": [9] * 3, "clicks": [1, 2, 3]}, {"hierarchical": True}, ["3 tests"]),
        ({"test": [1, 1, 2], "sent": [9] * 3, "clicks": [1, 2, 3]}, {"per_arm": True}, ["fewer than 3"]),
        ({"test": [1, 1, 2], "sent": [9] * 3, "clicks": [1, 2, 3]}, {"per_arm": True, "hierarchical": True}, ["not both"]),
    ],
)  # fmt: skip
def test_histories_that_say_too_little_are_refused(history, options, words):
    with pytest.raises(mb.InputError) as caught:
        mb.fit_prior(history, **options)
    assert [word for word in words if word not in str(caught.value)] == []


def test_the_command(tmp_path):
    columns = draw_history(TRUE, 12, 500, seed=1)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    path = tmp_path / "history.csv"
    path.write_text(
        "mailing;name;mails;answers\n" + "\n".join(";".join(map(str, row)) for row in rows)
    )
    roles = "problem=mailing,arm=name,plays=mails,successes=answers"
    run = CliRunner()
    picture = tmp_path / "fit.png"
    shown = run.invoke(app, ["fit", str(path), "--columns", roles, "--plot", str(picture)])
    assert shown.exit_code == 0, shown.output
    assert picture.read_bytes()[:4] == b"\x89PNG"
    told = json.loads(run.invoke(app, ["fit", str(path), "--columns", roles, "--json"]).stdout)
    assert told["prior"] in shown.output
    assert told["arms"] == 4
    assert told["parameters"]["spread"]["low"] < told["parameters"]["spread"]["value"]
    for given, words in (("plays", "plays=Mails"), ("plays=x", "no column 'x'")):
        refused = run.invoke(app, ["fit", str(path), "--columns", given])
        assert isinstance(refused.exception, mb.InputError)
        assert words in str(refused.exception)


@pytest.mark.slow
def test_the_promised_gain_is_the_real_one():
    """What knowing the best arm is worth above a split, where noise is as large as the spread."""

    def gain(prior):
        return prior.expected_best() - prior.alpha[0] / (prior.alpha[0] + prior.beta[0])

    true = mb.Bernoulli(arms=4, alpha=30, beta=970)
    covered, fitted_gains, raw_gains, count = 0, [], [], 20
    for seed in range(count):
        history = draw_history(true, 40, 1250, seed)
        fitted = mb.fit_prior(history)
        promised = gain(fitted.prior)
        error = np.std([gain(prior) for prior in fitted.resampled(20, seed=seed)], ddof=1)
        covered += abs(promised - gain(true)) <= 1.96 * error
        raw = (history["clicks"] / 1250).reshape(40, 4)
        fitted_gains.append(promised)
        raw_gains.append((raw.max(axis=1) - raw.mean(axis=1)).mean())
    # One in 1000 such shares is further off; intervals from 20 histories cover a little less than 95 %.
    assert scipy.stats.binom.cdf(covered, count, 0.93) > 1e-3
    for gains, right in ((fitted_gains, True), (raw_gains, False)):
        off = np.mean(gains) - gain(true)
        assert (abs(off) < 5 * np.std(gains, ddof=1) / math.sqrt(count)) == right
