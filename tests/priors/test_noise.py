"""Tables say when their means must be noisy."""

import warnings

import numpy as np
import pytest

import metabandit as mb
from metabandit.priors.table import find_plays, noise_share

pytestmark = pytest.mark.usefixtures("short_reports")


def shares(plays, seed=0, problems=40):
    rng = np.random.default_rng(seed)
    return rng.binomial(plays, rng.beta(3, 90, (problems, 4))) / plays


@pytest.mark.parametrize("plays", [1250, 1300, 999])
@pytest.mark.parametrize("decimals", [4, 6, 17])
def test_plays_show_in_shares(plays, decimals):
    assert find_plays(shares(plays).round(decimals)) == plays


def test_plays_may_differ_between_tests_and_arms():
    rng = np.random.default_rng(1)
    for shape in ((40, 1), (40, 4)):
        plays = rng.integers(500, 3000, shape)
        found = find_plays(shares(plays))
        # Fractions in lowest terms: fewer plays than there were, for some.
        assert 0.5 * np.median(plays) < found < 1.3 * np.median(plays)


def test_means_that_are_no_shares_raise_no_alarm():
    """At the level of one in a million, none of these may."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        means = rng.beta(3, 90, (rng.integers(2, 50), rng.integers(2, 6)))
        assert find_plays(means) is None
        assert find_plays(means.round(int(rng.integers(2, 7)))) is None
    grid = np.array([[a / 20, b / 20] for a in range(21) for b in range(21)])
    for means in (
        grid,
        np.array([[0.0, 1.0], [1.0, 0.0]]),
        np.array([[1 / 3, 0.5], [0.25, 2 / 3]]),
    ):
        assert find_plays(means) is None


def test_the_share_of_noise_is_what_was_put_in():
    rng = np.random.default_rng(3)
    true = rng.beta(30, 970, (4000, 4))
    means = rng.binomial(1250, true) / 1250
    expected = 1.0 - true.var() / means.var()
    # 16,000 means: their variance is known to about 1 %.
    assert noise_share(means, 1250) == pytest.approx(expected, rel=0.1)


def test_a_person_is_told_once():
    table = mb.Table(shares(1250))
    words = r"shares of about 1,250 plays, so \d+ % .* metabandit fit"
    with pytest.warns(UserWarning, match=words) as seen:
        mb.evaluate("split", table, 10, episodes=64, floor=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mb.evaluate("split", table, 10, episodes=64, floor=False)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    said = []
    mb.evaluate("split", mb.Table(shares(1250)), 10, episodes=64, announce=said.append)
    assert [text for text in said if "shares of about" in text]
    assert "shares of about" in table._repr_html_()


def test_a_table_is_split_into_a_part_to_learn_on_and_a_part_to_report_on():
    means = np.random.default_rng(4).random((30, 2))
    said = []
    learned = mb.learn(
        "r + a/n", mb.Table(means), 10, generations=1, episodes=64, announce=said.append
    )
    assert "learned on 15 problems of the table, measured on the other 15" in said
    part = mb.Table(means).split()
    held = mb.evaluate(learned.policy, part.held_out, 10, method="exact")
    assert learned.evaluation.mean_regret == pytest.approx(held[0].mean_regret)
    said.clear()
    mb.learn("r + a/n", mb.Table(means[:9]), 10, generations=1, episodes=64, announce=said.append)
    assert any("9 problems only" in text for text in said)
