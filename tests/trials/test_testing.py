"""Tests at the end of a trial, against scipy, statsmodels and published constants."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import metabandit as mb
from metabandit.trials.stopping import p_values
from metabandit.trials.testing import chi_squared, read_test, z_pooled, z_unpooled

TESTS = (
    "fisher",
    "z-pooled",
    "z-unpooled",
    "chi-squared",
    "barnard",
    "boschloo",
    "bayes",
    "exact",
    "exact-conditional",
)
ADAPTIVE = ("thompson", "optimal", "gittins", "ucb1", "crdp:degree=0.9,minimum=6")


NULLS = [(p, p) for p in np.linspace(0.01, 0.99, 99)]


def all_tables(n1, n2):
    """All outcomes of two arms: plays and successes, [arm, state]."""
    wins = np.indices((n1 + 1, n2 + 1), np.int32).reshape(2, -1)
    return np.repeat([[n1], [n2]], wins.shape[1], axis=1).astype(np.int32), wins


def as_scipy(n, s):
    """Arm 2 first, so that `greater` means the same."""
    return [[s[1], s[0]], [n[1] - s[1], n[0] - s[0]]]


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize(("n1", "n2"), [(7, 9), (1, 5), (20, 4)])
def test_fisher_is_scipys(n1, n2, alternative):
    plays, wins = all_tables(n1, n2)
    found = read_test(f"fisher:alternative={alternative}", 2).p_value(plays, wins)
    for n, s, p in zip(plays.T, wins.T, found, strict=True):
        expected = stats.fisher_exact(as_scipy(n, s), alternative=alternative)[1]
        assert p == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("name", ["barnard", "boschloo"])
def test_barnard_and_boschloo_are_scipys(name, alternative):
    plays, wins = all_tables(7, 9)
    found = read_test(f"{name}:alternative={alternative}", 2).p_value(plays, wins)
    scipys = {"barnard": stats.barnard_exact, "boschloo": stats.boschloo_exact}[name]
    apart = []
    for n, s, p in list(zip(plays.T, wins.T, found, strict=True))[::3]:
        apart.append(p - scipys(as_scipy(n, s), alternative=alternative).pvalue)
    # scipy refines the worst common rate, which makes up to 2e-5. It takes some statistics that are
    # equal but for rounding for different ones, which makes its p-value too small.
    assert min(apart) > -2e-5
    assert np.mean(np.array(apart) < 2e-5) > 0.8


def test_equal_statistics_count_in_barnards_test():
    """One success of 7 and 4 of 9 is as extreme as 6 of 7 and 5 of 9, which scipy does not see."""
    plays, wins = all_tables(7, 9)
    z = np.abs(z_pooled(plays, wins))
    found = read_test("barnard", 2).p_value(plays, wins)
    at = int(np.flatnonzero((wins[0] == 1) & (wins[1] == 4))[0])
    common = np.linspace(0.0, 1.0, 2001)[:, None]
    chance = stats.binom.pmf(wins[0], 7, common) * stats.binom.pmf(wins[1], 9, common)
    expected = (chance * (z >= z[at] - 1e-9)).sum(axis=1).max()
    assert found[at] == pytest.approx(expected, abs=2e-5)
    assert found[at] > stats.barnard_exact(as_scipy((7, 9), (1, 4))).pvalue + 4e-5


def test_bayes_is_an_integral():
    plays, wins = all_tables(3, 5)
    found = read_test("bayes:alternative=greater", 2).p_value(plays, wins)
    x, weight = np.polynomial.legendre.leggauss(20)
    x = 0.5 * (x + 1.0)
    for n, s, p in zip(plays.T, wins.T, found, strict=True):
        first = stats.beta.sf(x, 1 + s[0], 1 + n[0] - s[0])
        expected = 0.5 * weight @ (first * stats.beta.pdf(x, 1 + s[1], 1 + n[1] - s[1]))
        assert p == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_statistics_are_statsmodels():
    from statsmodels.stats.proportion import proportions_ztest
    from statsmodels.stats.proportion import test_proportions_2indep as unpooled

    plays, wins = all_tables(8, 6)
    z, wald, pearson = (of(plays, wins) for of in (z_pooled, z_unpooled, chi_squared))
    for n, s, a, b, c in zip(plays.T, wins.T, z, wald, pearson, strict=True):
        if 0 < s.sum() < n.sum():
            assert a == pytest.approx(-proportions_ztest(s, n)[0], abs=1e-12)
            assert c == pytest.approx(a * a, abs=1e-12)
        if 0 < s[0] < n[0] or 0 < s[1] < n[1]:
            expected = unpooled(s[1], n[1], s[0], n[0], method="wald", compare="diff").statistic
            assert b == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", [test for test in TESTS if not test.startswith("exact")])
def test_an_arm_without_patients_is_no_evidence(name):
    plays, wins = all_tables(0, 12)
    rejects = read_test(name, 2).rejects(plays, wins, 0.05)
    if name == "bayes":  # it has a prior of that arm
        assert rejects.mean() < 1.0
    else:
        assert not rejects.any()


@pytest.mark.parametrize("rates", [(0.3, 0.6), (0.45, 0.45)])
@pytest.mark.parametrize("test", ["fisher", "z-pooled", "z-unpooled"])
def test_equal_numbers_are_a_fixed_design(test, rates):
    """Power and type-I error are sums over two binomials, with scipy's p-values."""
    n = 12
    trial = mb.operating_characteristics("equal", [rates], horizon=2 * n, test=test)
    power = 0.0
    for s1 in range(n + 1):
        for s2 in range(n + 1):
            x1, x2, x = s1 / n, s2 / n, (s1 + s2) / (2 * n)
            if test == "fisher":
                p = stats.fisher_exact(as_scipy((n, n), (s1, s2)))[1]
            else:
                variance = x1 * (1 - x1) / n + x2 * (1 - x2) / n
                if test == "z-pooled":
                    variance = 2 * x * (1 - x) / n
                size = np.inf if x1 != x2 else 0.0
                p = 2 * stats.norm.sf(abs(x2 - x1) / variance**0.5 if variance else size)
            if p <= 0.05:
                power += stats.binom.pmf(s1, n, rates[0]) * stats.binom.pmf(s2, n, rates[1])
    assert trial["equal"][0].rejection == pytest.approx(power, abs=1e-12)


@pytest.mark.slow
def test_large_fixed_designs_have_the_power_of_statsmodels():
    """The normal approximation of statsmodels is closest where patients are many."""
    from statsmodels.stats.proportion import power_proportions_2indep

    trial = mb.operating_characteristics(
        "equal", [(0.5, 0.7)], horizon=200, test="z-pooled:alternative=greater"
    )
    expected = power_proportions_2indep(0.2, 0.5, 100, alternative="larger", alpha=0.05).power
    assert trial["equal"][0].rejection == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    "test",
    [
        pytest.param("exact", marks=pytest.mark.slow),
        "exact-conditional",
        pytest.param("exact:statistic=bayes", marks=pytest.mark.slow),
    ],
)
def test_the_designs_own_test_keeps_its_level(test):
    found = mb.operating_characteristics(ADAPTIVE, NULLS, horizon=40, test=test)
    for name in ADAPTIVE:
        assert max(point.rejection for point in found[name]) <= 0.05 + 1e-9


def test_the_usual_test_does_not():
    usual = mb.operating_characteristics(ADAPTIVE, NULLS, horizon=40, test="z-pooled")
    for name in ADAPTIVE:
        assert max(point.rejection for point in usual[name]) > 0.06


def test_the_designs_own_test_has_power_where_fishers_has_none():
    found, fisher = (
        mb.operating_characteristics("optimal", [(0.2, 0.6)], horizon=60, test=test)["optimal"][0]
        for test in ("exact-conditional", "fisher")
    )
    assert found.rejection > 2.0 * fisher.rejection


def test_conditional_and_fisher_agree_where_nothing_adapts():
    """Given the successes, a fixed design is hypergeometric."""
    points = [(0.2, 0.5), (0.4, 0.4)]
    found, fisher = (
        mb.operating_characteristics("equal", points, horizon=30, test=test)["equal"]
        for test in ("exact-conditional", "fisher")
    )
    for one, other in zip(found, fisher, strict=True):
        assert one.rejection == pytest.approx(other.rejection, abs=1e-12)


@pytest.mark.parametrize(
    "test",
    [
        pytest.param("exact", marks=pytest.mark.slow),
        "exact-conditional",
        pytest.param("exact:statistic=z-unpooled", marks=pytest.mark.slow),
    ],
)
def test_a_p_value_for_the_outcome(test):
    """The test rejects where it is at most the level; for equal numbers it is Fisher's or Barnard's."""
    horizon = 5
    final = mb.final_states("thompson", horizon)
    region = [
        final.p_value(n, s, test=test) <= 0.25
        for n, s in zip(final.plays.T, final.successes.T, strict=True)
    ]
    for rates in ((0.1, 0.9), (0.4, 0.4)):
        trial = mb.operating_characteristics(
            "thompson", [rates], horizon=horizon, test=test, level=0.25
        )
        assert final.mean(lambda n, s: region, rates) == pytest.approx(
            trial["thompson"][0].rejection, abs=1e-12
        )
    assert any(region)


def test_p_values_of_equal_numbers():
    final = mb.final_states("equal", 20)
    found = [final.p_value((10, 10), (2, 7), test=test) for test in ("exact-conditional", "exact")]
    table = as_scipy((10, 10), (2, 7))
    assert found[0] == pytest.approx(stats.fisher_exact(table)[1], abs=1e-12)
    assert found[1] == pytest.approx(stats.barnard_exact(table).pvalue, abs=2e-5)
    for outcome, words in [
        (((5, 15), (1, 2)), "never ends with 5, 15 patients"),
        (((10, 10, 0), (1, 2, 0)), "each of the 2 arms"),
    ]:
        with pytest.raises(mb.InputError, match=words):
            final.p_value(*outcome)
    with pytest.raises(mb.InputError, match="not fisher"):
        final.p_value((10, 10), (2, 7), test="fisher")


def test_constants_of_boundaries_are_the_published_ones():
    """Jennison and Turnbull (2000), Tables 2.1 and 2.3: level 0.05, two-sided, equal groups."""
    for looks, pocock, obrien in ((2, 2.178, 1.977), (5, 2.413, 2.040), (10, 2.555, 2.087)):
        at = tuple(range(1, looks + 1))
        for name, constant in (("pocock", pocock), ("obrien-fleming", obrien)):
            found = p_values(name, at, 0.05, two_sided=True)
            assert stats.norm.isf(found[-1] / 2.0) == pytest.approx(constant, abs=6e-4)


@pytest.mark.parametrize(
    "boundary", [pytest.param("pocock", marks=pytest.mark.slow), "obrien-fleming"]
)
def test_exact_boundaries_keep_the_level_and_no_smaller_one_does(boundary):
    points = [*NULLS, (0.2, 0.6)]
    for name in ("equal", "ucb1"):
        options = {"horizon": 40, "look_every": 10}
        trial = mb.operating_characteristics(
            name, points, test="exact", boundary=boundary, **options
        )

        def rejects(plays, successes, scale=trial.critical[name]):
            share = plays.sum(axis=0) / 40.0
            form = 1.0 if boundary == "pocock" else 1.0 / np.sqrt(share)
            return np.abs(z_pooled(plays, successes)) >= scale * form - 1e-10

        def smaller(plays, successes, scale=trial.critical[name] - 2e-4, rejects=rejects):
            return rejects(plays, successes, scale)

        same, beyond = (
            mb.operating_characteristics(name, points, test=test, **options)[name]
            for test in (rejects, smaller)
        )
        *under, power = trial[name]
        assert max(point.rejection for point in under) <= 0.05 + 1e-9
        assert max(point.rejection for point in beyond[:-1]) > 0.05
        assert power.rejection == same[-1].rejection > 0.2
        assert power.patients == same[-1].patients < 40.0
