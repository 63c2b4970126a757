"""Spaces: what is learned, and where it begins."""

import numpy as np
import pytest

import metabandit as mb
from metabandit.learning.spaces import make_space
from tests.language.test_text import listed

TWO = mb.Bernoulli(arms=2)


def test_spaces():
    space = make_space("r + a/(n + b)", TWO, initial={"b": 2.0})
    assert space.free == ("a", "b")
    assert space.center.tolist() == [0.0, 2.0]
    candidate = space.policy(np.array([3.0, 2.0]))
    assert candidate.formula == "r + 3/(n + 2)"
    assert str(candidate.start) == "prior-counts:plays=2,sum=1,squares=1"
    assert space.label(np.array([3.00004, 2.0])) == "r + 3/(n + 2)"
    assert make_space("ucb-v:c=1", TWO).free == ("zeta",)
    assert make_space("ucb2", TWO).center.tolist() == [-3.0]
    assert make_space("ucb2", TWO).parameters(np.array([-2.0])) == {"alpha": pytest.approx(0.01)}
    assert len(make_space("power-1", TWO).free) == 14
    assert len(make_space("power-1", TWO, paper=True).free) == 16
    assert len(make_space("power-2", TWO, paper=True).free) == 81
    assert not make_space("power-1", TWO, paper=True).center.any()
    assert str(make_space("power-1", mb.Gaussian(arms=2)).start) == "each-once"


def test_power_spaces_are_scaled_and_grow():
    small, large = make_space("power-1", TWO), make_space("power-2", TWO)
    inner = large.smaller()
    assert inner is not None
    assert inner.free == small.free
    coordinates = np.random.default_rng(0).normal(size=len(small.free))
    scaled = small.normalise(coordinates)
    assert np.mean(scaled**2) == pytest.approx(1.0)
    policies = [
        small.policy(coordinates),
        small.policy(scaled),
        large.policy(large.grow(inner, coordinates)),
    ]
    regrets = [item.mean_regret for item in mb.evaluate(policies, TWO, 30, method="exact")]
    assert regrets == pytest.approx([regrets[0]] * 3, abs=1e-12)


@pytest.mark.parametrize("prior", [TWO, mb.TruncatedGaussian(arms=2), mb.Gaussian(arms=2)])
def test_pseudo_observations_can_be_learned(prior):
    space = make_space("power-1", prior, start="prior-counts:learn")
    extra = 2 if prior.family.binary else 3
    assert len(space.free) == 14 + extra
    start = space.policy(space.center).start
    assert start.plays == pytest.approx(2.0)
    if prior is TWO:
        assert start.reward_sum == pytest.approx(1.0)
    counts = start.counts(prior)
    assert np.isfinite(counts).all()
    found = mb.learn(
        "r + a/n",
        prior,
        20,
        start="prior-counts:learn",
        generations=3,
        episodes=2000,
        measured=False,
    )
    assert set(found.parameters) >= {"a", "start_plays", "start_mean"}
    assert found.policy.start.plays == pytest.approx(found.parameters["start_plays"])


BAD_SPACES = """ucb1-tuned : no parameters | ucb1:C=1 : left free | r + 1/n : no free parameter
| power1 : unknown space | power-9 : 1 to 4 | power-x : 1 to 4 | a + t : nothing of an arm | ucb1:D=3 : no parameter
| r + : character | start_mean + r : taken | optimal : no parameters"""


@pytest.mark.parametrize("case", listed(BAD_SPACES))
def test_spaces_that_make_no_sense_are_refused(case):
    text, word = case.rsplit(" : ", 1)
    with pytest.raises(mb.InputError, match=word):
        mb.learn(text, TWO, 10)
