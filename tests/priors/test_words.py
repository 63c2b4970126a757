"""Priors in words mean what they say."""

import numpy as np
import pytest
import scipy.stats

import metabandit as mb


@pytest.mark.parametrize(
    ("text", "distribution"),
    [
        ("bernoulli:low=0.005,high=0.02", lambda p: scipy.stats.beta(p.alpha[0], p.beta[0])),
        ("bernoulli:low=0.001,high=0.999", lambda p: scipy.stats.beta(p.alpha[0], p.beta[0])),
        ("bernoulli:low=0.4,high=0.41", lambda p: scipy.stats.beta(p.alpha[0], p.beta[0])),
        ("beta:low=0.2,high=0.9", lambda p: scipy.stats.beta(p.alpha[0], p.beta[0])),
        ("counts:low=0.5,high=6", lambda p: scipy.stats.gamma(p.shape[0], scale=1 / p.rate[0])),
        ("gaussian:low=-1,high=3", lambda p: scipy.stats.norm(p.mean, p.spread)),
        (
            "revenue:share_low=0.03,share_high=0.08",
            lambda p: scipy.stats.beta(p.alpha[0], p.beta[0]),
        ),
    ],
)
def test_nine_means_in_ten_lie_between_low_and_high(text, distribution):
    low, high = (float(item.partition("=")[2]) for item in text.partition(":")[2].split(","))
    known = distribution(mb.prior(text))
    assert known.cdf([low, high]) == pytest.approx([0.05, 0.95], abs=2e-5)


@pytest.mark.parametrize(
    "text", ["bernoulli:mean=0.03,sd=0.01", "beta:mean=0.7,sd=0.2", "counts:mean=2,sd=0.5"]
)
def test_means_have_the_mean_and_deviation_that_were_asked_for(text):
    mean, sd = (float(item.partition("=")[2]) for item in text.partition(":")[2].split(","))
    prior = mb.prior(text, arms=4)
    means = prior.family.mean(prior.draw(np.random.default_rng(1), 50_000)).ravel()
    error = sd / np.sqrt(len(means))
    assert abs(means.mean() - mean) < 5 * error
    # The kurtosis of these distributions is below 6.
    assert abs(means.std() - sd) < 5 * error * np.sqrt(5 / 4)


def test_words_are_read_per_arm_and_read_back():
    prior = mb.prior("bernoulli:mean=0.1:0.2,sd=0.05")
    assert prior.arms == 2
    assert np.allclose(np.array(prior.alpha) / np.add(prior.alpha, prior.beta), [0.1, 0.2])
    assert str(mb.prior(str(prior))) == str(prior)
    assert str(mb.prior("gaussian:mean=1,sd=2")) == "gaussian:mean=1,spread=2,noise=1"
    assert str(mb.prior("gaussian:mean=1")) == "gaussian:mean=1,spread=1,noise=1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bernoulli:low=0.3", ["mean and sd together, or low and high", "not low"]),
        ("bernoulli:mean=0.3,high=0.4", ["not mean and high"]),
        ("bernoulli:low=0.5,high=0.2", ["low=0.5", "0 < low < high < 1"]),
        ("bernoulli:low=0,high=0.2", ["low=0", "0 < low"]),
        ("bernoulli:mean=0.5,sd=0.6", ["less than 0.5", "0.6"]),
        ("bernoulli:mean=1.5,sd=0.6", ["between 0 and 1", "1.5"]),
        ("bernoulli:mean=0.5,sd=0.1,alpha=2", ["mean and sd", "alpha", "one or the other"]),
        ("gaussian:mean=1,sd=2,spread=3", ["spread", "one or the other"]),
        ("counts:mean=0,sd=1", ["mean", "greater than 0"]),
        ("counts:low=3,high=1", ["low=3"]),
        ("gaussian:low=3,high=1", ["low < high"]),
        ("bernoulli:low=x,high=1", ["low", "'x'"]),
        ("bernoulli:low=0.1:0.2,high=0.3:0.4:0.5", ["different numbers of arms"]),
        ("truncated-gaussian:mean=0.5,sd=0.1", ["no parameter 'mean'"]),
    ],
)
def test_words_that_say_nothing_are_refused(text, words):
    with pytest.raises(mb.InputError) as caught:
        mb.prior(text)
    assert [word for word in words if word not in str(caught.value)] == []
