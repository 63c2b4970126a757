"""Policies that know the prior: what they believe where the prior says it, and where it does not."""

import pytest

import metabandit as mb
from metabandit.decisions import BetaBelief, NormalBelief
from metabandit.language import text
from tests.engine.test_exact import regret


def believed(policy, prior):
    return mb.policy(policy).plan(prior, 20).decision.belief


def test_thompson_believes_what_the_prior_says():
    unlike = mb.Bernoulli(alpha=[1, 2], beta=[9, 3])
    assert believed("thompson", unlike) == BetaBelief(((1.0, 9.0), (2.0, 3.0)))
    assert believed("thompson:a=1,b=1", unlike) == BetaBelief(((1.0, 1.0),) * 2)
    assert believed("thompson:b=4", unlike) == BetaBelief(((1.0, 4.0),) * 2)
    means = mb.BetaRewards(alpha=2, beta=5)
    assert believed("thompson", means) == BetaBelief(((2.0, 5.0),) * 2)
    gaussian = mb.Gaussian(mean=3, spread=0.5, noise=2)
    assert believed("thompson", gaussian) == NormalBelief(3.0, 16.0, 2.0)
    assert believed("thompson:sigma=1", gaussian) == NormalBelief(0.0, 0.0, 1.0)
    assert believed("thompson:mean=1,spread=2,sigma=4", gaussian) == NormalBelief(1.0, 4.0, 4.0)


@pytest.mark.parametrize(
    "prior",
    [
        mb.TruncatedGaussian(),
        mb.Table([(0.2, 0.4), (0.6, 0.1)]),
        mb.Hierarchical(mean=0.1, between=0.05, within=0.02),
    ],
    ids=lambda prior: type(prior).__name__,
)
def test_other_priors_say_nothing_that_is_believed(prior):
    assert believed("thompson", prior) == BetaBelief(((1.0, 1.0),) * 2)
    assert mb.policy("bayes-ucb").plan(prior, 20).decision.parameters == {"c": 0, "a": 1, "b": 1}


def test_other_priors_of_real_rewards_say_nothing_that_is_believed():
    wide = mb.TruncatedGaussian(low=-3.0, high=5.0)
    assert believed("thompson", wide) == NormalBelief()
    assert mb.policy("thompson").plan(wide, 20).each_once
    assert not mb.policy("thompson").plan(mb.Gaussian(), 20).each_once


def test_mean_and_spread_go_together():
    with pytest.raises(mb.InputError, match="give both"):
        mb.evaluate("thompson:mean=1", mb.Gaussian(), 20, episodes=10)


def test_the_index_of_bayes_ucb_knows_the_prior():
    policy = mb.policy("bayes-ucb")
    uniform, known = mb.policy("bayes-ucb:a=1,b=1"), mb.policy("bayes-ucb:a=2,b=5")
    alike = mb.Bernoulli(alpha=2, beta=5)
    assert regret(policy, alike, 20) == regret(known, alike, 20) < regret(uniform, alike, 20)
    assert regret(policy, mb.Bernoulli(), 20) == regret(uniform, mb.Bernoulli(), 20)
    gaussian = mb.policy("bayes-ucb").plan(mb.Gaussian(mean=2, spread=0.5), 20).decision
    assert text(gaussian.bound) == (
        "r + 4/(n + 4) * (2 - r) + 1/sqrt(n + 4) * normal_quantile(1 - 1/((t + 1) * ln(t + h)^0))"
    )


def test_arms_that_differ_a_little_are_almost_alike():
    """Those have pseudo-observations instead of numbers in the formula."""
    for policy in ("bayes-ucb", "thompson"):
        alike = regret(policy, mb.Bernoulli(alpha=2, beta=5), 20)
        nearly = regret(policy, mb.Bernoulli(alpha=[2, 2 + 1e-7], beta=5), 20)
        assert nearly == pytest.approx(alike, rel=1e-5)
        assert nearly != alike


def test_bayes_ucb_has_its_own_start():
    with pytest.raises(mb.InputError, match="its own start"):
        mb.policy("bayes-ucb:start=prior-counts")


@pytest.mark.parametrize(
    "prior", [mb.Bernoulli(alpha=[1, 4], beta=[9, 2]), mb.Gaussian(mean=3.0, spread=0.1)], ids=str
)
@pytest.mark.parametrize("name", ["thompson", "bayes-ucb", "gittins"])
def test_players_remember_what_is_believed(name, prior, tmp_path):
    player = mb.policy(name).player(2, horizon=60, prior=prior, seed=4)
    for reward in (1, 0, 1, 1):
        player.update(player.select(), reward)
    player.save(tmp_path / "player.json")
    again = mb.load_player(tmp_path / "player.json")
    assert [again.select() for _ in range(20)] == [player.select() for _ in range(20)]


def test_what_is_believed_lowers_regret():
    """The figures of a trial run: 36.3 matched, 49.5 with the uniform prior."""
    prior = mb.Bernoulli(10, alpha=1, beta=9)
    found = mb.evaluate(["thompson", "thompson:a=1,b=1"], prior, 1000, episodes=600, floor=False)
    for item, figure in zip(found, (36.3, 49.5), strict=True):
        assert abs(item.mean_regret - figure) < 4.0 * item.standard_error
