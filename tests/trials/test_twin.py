"""Every characteristic against all sequences listed, in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import metabandit as mb
from metabandit.feedback import Feedback
from tests import naive
from tests.engine.test_feedback import index_shares
from tests.naive import trials as twin

POINTS = [(0.3, 0.5), (0.5, 0.5), (0.9, 0.2), (0.0, 1.0)]
TWO = mb.Bernoulli(2)


def exactly(rates):
    return [Fraction(str(rate)) for rate in rates]


def same(found, expected):
    """Whether characteristics agree with the twin's to 1e-12."""
    known = found.to_dict()
    for key, value in expected.items():
        if isinstance(value, dict):
            assert known[key] == value, key
            continue
        several = value if isinstance(value, list) else [value]
        got = known[key] if isinstance(known[key], tuple) else [known[key]]
        for one, other in zip(got, several, strict=True):
            if other is None:
                assert one is None, key
            else:
                assert one == pytest.approx(float(other), abs=1e-12, rel=1e-12), key


def index_of(text, arms, horizon, **more):
    plan = mb.policy(text).plan(mb.Bernoulli(arms), horizon)
    shares = naive.decision_shares(plan.decision, plan.counts, horizon)
    return twin.known_shares(shares, each_once=plan.each_once, **more)


def designs(horizon):
    """Designs for two arms: what the library takes, its minimum, and the twin's shares."""
    degree = Fraction(9, 10)
    crdp = twin.constrained_shares(horizon, degree, 2, horizon)
    return {
        "equal": (0, twin.known_shares(lambda n, s: naive.shares_of([-x for x in n]))),
        "uniform": (0, twin.known_shares(naive.uniform_shares)),
        "thompson": (0, twin.known_shares(naive.thompson_shares((1, 1), (1, 1)))),
        "thompson:a=2,b=1": (
            2,
            twin.known_shares(naive.thompson_shares((2, 2), (1, 1)), minimum=2),
        ),
        "ucb1": (0, index_of("ucb1", 2, horizon)),
        "greedy": (2, index_of("greedy", 2, horizon, minimum=2)),
        "crdp:degree=0.9,minimum=2": (0, twin.known_shares(crdp)),
    }


def by_fisher(n, s):
    return twin.fisher_p(n, s) <= Fraction(1, 4)


def by_bayes(n, s):
    better = twin.second_is_better(n, s)
    return max(better, 1 - better) > Fraction(4, 5)


# The others are of a kind with one of these.
QUICK = ("equal", "thompson:a=2,b=1", "ucb1", "crdp:degree=0.9,minimum=2")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in designs(6)],
)
def test_two_arms(name):
    horizon = 6
    minimum, shares = designs(horizon)[name]
    trials = [
        mb.operating_characteristics(
            name, POINTS, horizon=horizon, test=test, level=0.25, minimum=minimum, fewer_than=2
        )
        for test in ("fisher", "bayes:c=0.8")
    ]
    for place, point in enumerate(POINTS):
        final = twin.final_distribution(shares, exactly(point), horizon, Feedback())
        for trial, rejects in zip(trials, (by_fisher, by_bayes), strict=True):
            expected = twin.characteristics(
                final, exactly(point), rejects, imbalance=Fraction(1, 10), fewer_than=2
            )
            same(trial[name][place], expected)
            assert trial.method == "exact"


@pytest.mark.slow
def test_eight_patients():
    _, shares = designs(8)["thompson"]
    rates = exactly((0.3, 0.5))
    final = twin.final_distribution(shares, rates, 8, Feedback())
    states = mb.final_states("thompson", 8)
    probability = states.probability((0.3, 0.5))
    known = dict(
        zip(
            zip(
                map(tuple, states.plays.T.tolist()),
                map(tuple, states.successes.T.tolist()),
                strict=True,
            ),
            probability.tolist(),
            strict=True,
        )
    )
    assert known.keys() == final.keys()
    for state, chance in final.items():
        assert known[state] == pytest.approx(float(chance), rel=1e-12)
    (found,) = mb.operating_characteristics(
        "thompson", [(0.3, 0.5)], horizon=8, level=0.25, fewer_than=2
    )["thompson"]
    expected = twin.characteristics(
        final, rates, by_fisher, imbalance=Fraction(1, 10), fewer_than=2
    )
    same(found, expected)


@pytest.mark.parametrize("policy", ["r + 1/(n + 1)", "ucb1"])
def test_three_arms(policy):
    horizon, rates = 8, (0.3, 0.5, 0.5)
    shares = index_of(policy, 3, horizon)
    final = twin.final_distribution(shares, exactly(rates), horizon, Feedback())
    reject = lambda n, s: int(max(s) == 3)  # noqa: E731
    expected = twin.characteristics(
        final, exactly(rates), reject, imbalance=Fraction(1, 10), fewer_than=2
    )
    trial = mb.operating_characteristics(
        policy, [rates], horizon=horizon, test=lambda n, s: s.max(axis=0) == 3, fewer_than=2
    )
    same(trial[policy][0], expected)


def test_three_arms_that_stop_early():
    policy, horizon, rates = "r + 1/(n + 1)", 8, (0.3, 0.5, 0.7)
    reject = lambda n, s: int(max(s) >= 3)  # noqa: E731
    shares, looks = index_of(policy, 3, horizon), (3, 6, 8)
    final = twin.final_distribution(shares, exactly(rates), horizon, Feedback(), looks, reject)
    expected = twin.characteristics(
        final, exactly(rates), reject, imbalance=Fraction(1, 10), fewer_than=2
    )
    trial = mb.operating_characteristics(
        policy, [rates], horizon=horizon, test=lambda n, s: s.max(axis=0) >= 3, fewer_than=2,
        look_every=3,
    )  # fmt: skip
    same(trial[policy][0], expected)
    assert expected["patients"] < horizon - 0.5


@pytest.mark.parametrize(
    "feedback", [Feedback(batch=3), Feedback(batch=(1, 4, 2)), Feedback(min_share=0.25)], ids=str
)
def test_blocks_and_random_plays(feedback):
    horizon, rates = 7 if feedback.batch == (1, 4, 2) else 6, (0.3, 0.5)
    policy = mb.policy("r + 1/(n + w + 1)")
    shares = index_shares(policy, TWO, horizon, feedback)
    final = twin.final_distribution(shares, exactly(rates), horizon, feedback)
    expected = twin.characteristics(
        final, exactly(rates), by_fisher, imbalance=Fraction(1, 10), fewer_than=2
    )
    trial = mb.operating_characteristics(
        policy, [rates], horizon=horizon, level=0.25, feedback=feedback, fewer_than=2
    )
    same(trial[policy.name][0], expected)


@pytest.mark.parametrize("batch", [1, 2])
def test_early_stopping(batch):
    horizon, rates, feedback = 7 if batch == 1 else 8, (0.1, 0.9), Feedback(batch=batch)
    levels = {2: Fraction(2, 5), 4: Fraction(2, 5), 6: Fraction(2, 5), horizon: Fraction(1, 4)}
    policy = mb.policy("r + 1/(n + w + 1)")
    shares = index_shares(policy, TWO, horizon, feedback)

    def rejects(n, s):
        return twin.fisher_p(n, s) <= levels[sum(n)]

    final = twin.final_distribution(shares, exactly(rates), horizon, feedback, levels, rejects)
    expected = twin.characteristics(
        final, exactly(rates), rejects, imbalance=Fraction(1, 10), fewer_than=2
    )
    trial = mb.operating_characteristics(
        policy, [rates], horizon=horizon, feedback=feedback, fewer_than=2,
        look_every=2, boundary=[float(level) for level in levels.values()],
    )  # fmt: skip
    same(trial[policy.name][0], expected)
    ends = [sum(p for (n, _), p in final.items() if sum(n) == look) for look in levels]
    np.testing.assert_allclose(trial[policy.name][0].stopped, [float(p) for p in ends], atol=1e-12)
    assert expected["patients"] < horizon - 1


@pytest.mark.parametrize(
    "name",
    ["thompson", pytest.param("crdp:degree=0.9,minimum=2", marks=pytest.mark.slow), "greedy"],
)
def test_the_conditional_test_of_the_design(name):
    horizon = 7
    minimum, shares = designs(horizon)[name]
    region = twin.conditional_rejections(shares, horizon, Feedback(), Fraction(3, 10))
    trial = mb.operating_characteristics(
        name, POINTS[:3], horizon=horizon, test="exact-conditional", level=0.3, minimum=minimum
    )
    for point, found in zip(POINTS, trial[name], strict=False):
        final = twin.final_distribution(shares, exactly(point), horizon, Feedback())
        power = sum(p for state, p in final.items() if state in region)
        assert found.rejection == pytest.approx(float(power), abs=1e-12)
    assert region


def test_the_unconditional_test_of_the_design():
    horizon, name, level = 7, "thompson", Fraction(1, 10)
    _, shares = designs(horizon)[name]
    trial = mb.operating_characteristics(
        name, [(0.2, 0.9)], horizon=horizon, test="exact", level=0.1
    )
    critical = trial.critical[name]
    nulls = [Fraction(k, 24) for k in range(25)]
    even = twin.final_distribution(shares, [Fraction(1, 2)] * 2, horizon, Feedback())
    finals = {
        p: {
            (n, s): chance * 2**horizon * p ** sum(s) * (1 - p) ** (horizon - sum(s))
            for (n, s), chance in even.items()
        }
        for p in nulls
    }
    values = sorted({twin.squared_z(*state) for state in even})
    at = next(place for place, value in enumerate(values) if float(value) ** 0.5 > critical - 1e-6)

    def worst(least):
        return twin.largest_null(finals.get, lambda n, s: twin.squared_z(n, s) >= least, nulls)

    # It keeps the level; with the next smaller value it would not.
    assert worst(values[at]) <= level < worst(values[at - 1])
    final = twin.final_distribution(shares, exactly((0.2, 0.9)), horizon, Feedback())
    power = sum(p for state, p in final.items() if twin.squared_z(*state) >= values[at])
    assert trial[name][0].rejection == pytest.approx(float(power), abs=1e-12)
