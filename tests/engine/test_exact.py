"""Exact evaluation: against fractions, reference values and the simulator."""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import metabandit as mb
from metabandit.engine import costs, exact, states
from metabandit.language import parse
from tests import naive
from tests.studies.test_table1 import EXACT
from tests.tiers import some

REFERENCE = Path(__file__).parents[1] / "reference"
# Whole numbers and halves, so that fractions are exact; one prior is the same for all arms.
PRIORS = {
    2: [((1, 1), (1, 1)), ((3, 1), (2, 1)), ((0.5, 2.5), (1.5, 1))],
    3: [((1, 1, 1), (1, 1, 1)), ((3, 1, 0.5), (2, 1, 1.5))],
}
CASES = [(arms, prior) for arms, priors in PRIORS.items() for prior in priors]


def regret(policy, prior, horizon, **options):
    result = mb.evaluate(policy, prior, horizon, method="exact", floor=False, **options)
    assert result.method == "exact"
    assert result[0].standard_error == 0.0
    assert math.isclose(result[0].plays.sum(), horizon, rel_tol=1e-12)
    assert result[0].curve[-1] == result[0].mean_regret
    return result[0].mean_regret


def fractions(numbers):
    return tuple(Fraction(number) for number in numbers)


def naive_regret(shares, arms, alpha, beta, horizon, *, each_once):
    chance = naive.beta_chance(fractions(alpha), fractions(beta))
    reward = naive.expected_reward(naive.by_shares(shares), chance, arms, horizon, each_once)
    best = mb.Bernoulli(arms, alpha=list(alpha), beta=list(beta)).expected_best()
    return horizon * best - float(reward)


# Against fractions ---------------------------------------------------------------------------


# With and without t, rising and falling in r, with ties, with s.
INDICES = [
    "r",
    "r + sqrt(2*ln(t)/n)",
    "r + 3/(n + 2)",
    "sqrt(n) * (r - 1/2)",
    "abs(r - 1/(n + t))",
    "s - r + h/n",
    "1",
    "kl_upper(r, ln(t)/n)",
]


@pytest.mark.parametrize(
    "start",
    [
        "each-once",
        "prior-counts",
        pytest.param("prior-counts:plays=3,sum=1", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("text", INDICES)
@pytest.mark.parametrize(("arms", "means"), CASES)
def test_index_policies_are_those_of_fractions(arms, means, text, start):
    alpha, beta = means
    prior = mb.Bernoulli(arms, alpha=list(alpha), beta=list(beta))
    policy = mb.policy(text, start=start)
    for horizon in (arms, 5, 6):
        plan = policy.plan(prior, horizon)
        shares = naive.index_shares(parse(text), plan.counts, horizon)
        expected = naive_regret(shares, arms, alpha, beta, horizon, each_once=plan.each_once)
        assert regret(policy, prior, horizon) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("arms", "means"), CASES)
def test_other_policies_are_those_of_fractions(arms, means):
    alpha, beta = means
    prior = mb.Bernoulli(arms, alpha=list(alpha), beta=list(beta))
    rules = {
        "eps_n-greedy": (naive.epsilon_greedy_shares(1, 1), True),
        "eps_n-greedy:c=0.25,d=0.5": (naive.epsilon_greedy_shares(0.25, 0.5), True),
        "ucb1-normal": (naive.ucb1_normal_shares, True),
        "uniform": (naive.uniform_shares, False),
    }
    if arms == 2:
        if all(number == int(number) for number in (*alpha, *beta)):
            rules["thompson"] = naive.thompson_shares(alpha, beta), False
        rules["thompson:a=1,b=1"] = naive.thompson_shares((1, 1), (1, 1)), False
        rules["thompson:a=2,b=3"] = naive.thompson_shares((2, 2), (3, 3)), False
    for text, (shares, each_once) in rules.items():
        expected = naive_regret(shares, arms, alpha, beta, 6, each_once=each_once)
        assert regret(text, prior, 6) == pytest.approx(expected, abs=1e-12), text


@pytest.mark.slow
def test_ucb1_normal_beyond_its_forced_plays():
    """With few arms its index is first read after some sixty plays: compare with the simulator."""
    prior = mb.Bernoulli()
    result = mb.evaluate("ucb1-normal", prior, 300, episodes=200_000, seed=1, floor=False)[0]
    assert abs(regret("ucb1-normal", prior, 300) - result.mean_regret) < 3 * result.standard_error


@pytest.mark.parametrize("text", ["ucb1", "thompson", "eps_n-greedy", "s - r"])
def test_regret_on_given_problems_is_that_of_fractions(text):
    problems = [(0.25, 0.75), (0.75, 0.25), (0.5, 0.5), (0.0, 1.0), (1.0, 0.125)]
    horizon = 6
    result = mb.evaluate(text, mb.Table(problems), horizon, method="exact")[0]
    policy = mb.policy(text)
    plan = policy.plan(mb.Bernoulli(), horizon)
    shares = {
        "thompson": naive.thompson_shares((1, 1), (1, 1)),
        "eps_n-greedy": naive.epsilon_greedy_shares(1, 1),
    }.get(text) or naive.index_shares(policy.bound, plan.counts, horizon)
    for problem, found in zip(problems, result.problem_regret, strict=True):
        means = fractions(problem)
        reward = naive.expected_reward(
            naive.by_shares(shares),
            lambda arm, n, s, means=means: means[arm],
            2,
            horizon,
            plan.each_once,
        )
        assert found == pytest.approx(float(horizon * max(means) - reward), abs=1e-12)
    assert result.mean_regret == pytest.approx(result.problem_regret.mean())


# Against reference values --------------------------------------------------------------------


def reference_values():
    with open(REFERENCE / "exact_values.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield row["policy"], int(row["horizon"]), float(row["bayes_regret"])


@pytest.mark.parametrize(("name", "horizon", "value"), list(reference_values()))
def test_reference_values(name, horizon, value):
    prior = mb.Bernoulli()
    if name.startswith("Bayes-optimal"):
        start = "each-once" if "once" in name else "free"
        assert mb.optimal(prior, horizon, start=start).regret == pytest.approx(value, abs=1e-6)
    elif (name, horizon) == ("eps_n-greedy c=1 d=1", 100):
        # The reference compares s * (1/n) in floating point, where rounding breaks true ties.
        assert epsilon_greedy_regret(horizon, rounded=True) == pytest.approx(value, abs=1e-5)
        expected = epsilon_greedy_regret(horizon, rounded=False)
        assert regret(EXACT[name], prior, horizon) == pytest.approx(expected, abs=1e-10)
    else:
        assert regret(EXACT.get(name, name), prior, horizon) == pytest.approx(value, abs=2e-5)


def epsilon_greedy_regret(horizon, *, rounded):
    """eps_n-greedy with c = d = 1 on uniform means, ties by whole numbers or by rounded quotients."""
    weights = {1: np.full((2, 2), 0.25)}
    reward = 1.0
    for m in range(2, horizon):
        rate = min(1.0, 2.0 / (m + 1))
        after = {n: np.zeros((n + 1, m + 2 - n)) for n in range(1, m + 1)}
        for n1, weight in weights.items():
            n2 = m - n1
            s1, s2 = np.arange(n1 + 1)[:, None], np.arange(n2 + 1)[None, :]
            x, y = (s1 * (1.0 / n1), s2 * (1.0 / n2)) if rounded else (s1 * n2, s2 * n1)
            one = weight * (rate / 2 + (1 - rate) * ((x > y) + 0.5 * (x == y)))
            two = weight - one
            p1, p2 = (1 + s1) / (2 + n1), (1 + s2) / (2 + n2)
            reward += (one * p1 + two * p2).sum()
            after[n1 + 1][1:] += one * p1
            after[n1 + 1][:-1] += one * (1 - p1)
            after[n1][:, 1:] += two * p2
            after[n1][:, :-1] += two * (1 - p2)
        weights = after
    return horizon * 2 / 3 - reward


# Against the simulator -----------------------------------------------------------------------

TEN = [
    "ucb1",
    "ucb1-tuned",
    "kl-ucb",
    "moss",
    "ucb-v",
    "thompson",
    "eps_n-greedy",
    "ucb1-normal",
    "r + 3/(n + 2)",
    "gittins",
]


# The curve is compared at every checkpoint, so a longer horizon looks at the shorter ones, too.
@pytest.mark.parametrize(
    ("prior", "horizon"),
    [
        (mb.Bernoulli(alpha=[3, 1], beta=[2, 1]), 10),
        pytest.param(mb.Bernoulli(), 100, marks=pytest.mark.slow),
        pytest.param(mb.Bernoulli(alpha=[3, 1], beta=[2, 1]), 60, marks=pytest.mark.slow),
        pytest.param(mb.Bernoulli(alpha=0.5, beta=4), 37, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_exact_is_what_simulation_estimates(prior, horizon):
    simulated = mb.evaluate(TEN, prior, horizon, episodes=300_000, seed=2, floor=False)
    computed = mb.evaluate(TEN, prior, horizon, method="exact", floor=False)
    for estimate, truth in zip(simulated, computed, strict=True):
        error = estimate.mean_regret - truth.mean_regret
        assert abs(error) < 3 * estimate.standard_error, estimate.policy
        assert np.allclose(estimate.plays, truth.plays, rtol=0.01, atol=0.02)
        assert (np.abs(estimate.curve - truth.curve) <= 5 * estimate.curve_error + 1e-9).all()


@pytest.mark.parametrize(
    ("one", "two"),
    [((0.5, 1.5), (2.5, 1.0)), ((0.01, 3.0), (4.0, 0.2)), ((40.5, 60.0), (1.0, 2.0))],
)
def test_the_chance_of_the_larger_draw(one, two):
    a, b = np.linspace(0.0, 1.0, 200_001)[1:-1], stats.beta(*two)
    u = stats.beta(*one).ppf(a)
    expected = np.trapezoid(np.append(np.insert(b.cdf(u), 0, 0.0), 1.0), dx=1 / 200_000)
    assert states._first_is_better(one, two) == pytest.approx(expected, abs=2e-5)
    assert states._first_is_better(one, two) + states._first_is_better(two, one) == pytest.approx(
        1.0, abs=1e-12
    )


@pytest.mark.parametrize("a", [1e-6, 1e-3, 0.5, 30.0])
@pytest.mark.parametrize("c", [1e-5, 0.03, 2.0, 1e6])
def test_the_chance_of_the_larger_draw_near_0_and_1(a, c):
    """Powers of uniform numbers, U^(1/a) > V^(1/c), most of which are below the least number of float64."""
    expected = pytest.approx(a / (a + c), abs=1e-12)
    assert states._first_is_better((a, 1.0), (c, 1.0)) == expected
    assert states._first_is_better((1.0, c), (1.0, a)) == expected


@pytest.mark.parametrize(
    ("one", "two"), [((5.4e-5, 2.5e8), (8.5, 0.0012)), ((1e3, 1e-3), (1e-3, 0.5))], ids=str
)
def test_the_chance_of_the_larger_draw_of_extreme_arms(one, two):
    """By drawing log-odds, which Gamma variates have without underflow: G(a) = G(a + 1) U^(1/a)."""
    rng = np.random.default_rng(3)

    def log_gamma(a):
        return np.log(rng.gamma(a + 1.0, size=100_000)) + np.log(rng.random(100_000)) / a

    (a, b), (c, d) = one, two
    larger = (log_gamma(a) - log_gamma(b) > log_gamma(c) - log_gamma(d)).mean()
    found = states._first_is_better(one, two)
    error = math.sqrt(max(found * (1.0 - found), 0.0) / 100_000)
    assert abs(found - larger) <= 4 * error + 1e-12


@pytest.mark.parametrize("text", ["thompson:a=0.001,b=0.001", "thompson:a=0.2,b=5"])
def test_thompson_with_odd_numbers_is_what_simulation_estimates(text):
    simulated = mb.evaluate(text, mb.Bernoulli(), 30, episodes=some(50_000, 200_000), seed=2)[0]
    error = simulated.mean_regret - regret(text, mb.Bernoulli(), 30)
    assert abs(error) < 3 * simulated.standard_error


def test_bayes_ucb_is_what_simulation_estimates():
    simulated = mb.evaluate("bayes-ucb", mb.Bernoulli(), 40, episodes=50_000, seed=2)[0]
    error = simulated.mean_regret - regret("bayes-ucb", mb.Bernoulli(), 40)
    assert abs(error) < 3 * simulated.standard_error


# What must not change a result ---------------------------------------------------------------

ALL = ["ucb1", "r", "s - r", "thompson", "eps_n-greedy", "ucb1-normal", "gittins", "optimal"]


@pytest.mark.parametrize(
    "prior",
    [mb.Bernoulli(), pytest.param(mb.Bernoulli(alpha=[3, 1], beta=2), marks=pytest.mark.slow)],
    ids=str,
)
def test_parts_and_threads_change_nothing(monkeypatch, prior):
    options = {"method": "exact", "floor": False}
    whole = mb.evaluate(ALL, prior, 60, **options)
    assert mb.evaluate(ALL, prior, 60, threads=1, **options).to_dict() == whole.to_dict()
    monkeypatch.setattr(states, "LONG", 20)
    monkeypatch.setattr(exact, "LONG", 20)
    monkeypatch.setattr(costs, "LONG", 20)
    monkeypatch.setattr(states, "_SHARED", 10)
    alone = mb.evaluate(ALL, prior, 60, threads=1, **options)
    for threads in (2, 3):
        shared = mb.evaluate(ALL, prior, 60, threads=threads, **options)
        assert shared.to_dict() == alone.to_dict()
    monkeypatch.setattr(states, "_STEPS", 1)
    one_by_one = mb.evaluate(ALL, prior, 60, threads=1, **options)
    for one, other in zip([*whole, *whole], [*alone, *one_by_one], strict=True):
        assert one.mean_regret == pytest.approx(other.mean_regret, abs=1e-11)


@pytest.mark.parametrize("long", [400, 20])
def test_progress_ends_at_the_end(monkeypatch, long):
    monkeypatch.setattr(states, "LONG", long)
    monkeypatch.setattr(exact, "LONG", long)
    monkeypatch.setattr(costs, "LONG", long)
    seen = []
    mb.evaluate(
        ["ucb1", "uniform", "optimal"],
        mb.Bernoulli(),
        40,
        method="exact",
        floor=True,
        progress=lambda *done: seen.append(done),
    )
    ends = [done for done, total in seen if done == total]
    assert len(ends) == 3, "the optimal policy, the evaluation, the floor"
    assert all(0 < done <= total for done, total in seen)


def test_a_mirrored_prior_needs_no_mirror(monkeypatch):
    """Both halves computed apart give what one half gives."""
    prior = mb.Bernoulli(alpha=2)
    half = mb.evaluate(ALL, prior, 41, method="exact", floor=False)
    optimum = mb.optimal(prior, 41)
    monkeypatch.setattr(states, "mirrors", lambda plan, prior: False)
    monkeypatch.setattr("metabandit.bayes.induction.is_mirrored", lambda prior: False)
    whole = mb.evaluate(ALL, prior, 41, method="exact", floor=False)
    for one, other in zip(half, whole, strict=True):
        assert np.allclose(one.curve, other.curve, rtol=0, atol=1e-12)
        assert np.allclose(one.plays, other.plays, rtol=0, atol=1e-11)
    assert mb.optimal(prior, 41).regret == pytest.approx(optimum.regret, abs=1e-12)


# Properties ----------------------------------------------------------------------------------


@settings(max_examples=some(8, 25), deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=5))
def test_problems_can_be_turned_round(problems):
    """Exchanging the arms of a problem changes nothing for a policy that does not know them."""
    turned = [problem[::-1] for problem in problems]
    for text in ("kl-ucb", "thompson", "s - r"):
        one, other = (
            mb.evaluate(text, mb.Table(some), 15, method="exact")[0] for some in (problems, turned)
        )
        assert np.allclose(one.problem_regret, other.problem_regret, rtol=0, atol=1e-10)
        assert (one.problem_regret >= -1e-10).all()


def test_the_prior_is_the_mean_of_its_problems():
    """Expected plays are polynomials of the means, so Gauss's nodes on p1 < p2 and p1 > p2 are exact."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    nodes, weights = (nodes + 1) / 2, weights / 2
    larger, share = (grid.ravel() for grid in np.meshgrid(nodes, nodes))
    weight = np.outer(weights, weights).ravel() * larger  # the triangle narrows towards 0
    for text in ("ucb1", "thompson"):
        total = 0.0
        for order in (1, -1):
            problems = np.stack([larger * share, larger], axis=1)[:, ::order]
            total += weight @ mb.evaluate(text, mb.Table(problems), 12)[0].problem_regret
        assert total == pytest.approx(regret(text, mb.Bernoulli(), 12), abs=1e-12)


@pytest.mark.parametrize(("number", "horizon"), [(200, 100), (2000, 30)])
def test_shares_of_wins(number, horizon):
    problems = mb.Table(mb.Bernoulli().draw(np.random.default_rng(1), number)[..., 0])
    result = mb.evaluate(["ucb1", "kl-ucb", "greedy"], problems, horizon)
    assert result.method == "exact"
    wins = result.share_of_wins("kl-ucb", "ucb1")
    assert wins > 0.9
    assert result.share_of_wins("ucb1", "kl-ucb") == pytest.approx(1 - wins)
    assert result.share_of_wins("ucb1", "ucb1") == 0.5
    with pytest.raises(mb.InputError, match="draw problems"):
        mb.evaluate(["ucb1", "greedy"], mb.Bernoulli(), 20).share_of_wins(0, 1)


# Faults --------------------------------------------------------------------------------------


def test_an_index_that_is_no_number_is_reported_where_play_can_lead():
    for arms in (2, 3):
        with pytest.raises(mb.IndexFault) as caught:
            mb.evaluate("1/s", mb.Bernoulli(arms), 10, method="exact")
        assert caught.value.state == {"n": 1.0, "r": 0.0, "s": 0.0, "t": float(arms)}
    # An arm without a success is never left with a play more than the other here.
    assert regret("ln(max(r, 0.01))", mb.Bernoulli(), 10) > 0
