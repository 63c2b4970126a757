"""Operating characteristics: published figures, priors, simulation, tables and refusals."""

from __future__ import annotations

import csv
import io
import math
from fractions import Fraction

import numpy as np
import pytest

import metabandit as mb
from metabandit.feedback import Feedback
from tests.naive import trials as twin
from tests.trials.test_twin import exactly, index_shares

pytestmark = pytest.mark.usefixtures("short_reports")

TWO = mb.Bernoulli(2)


def test_published_figures_of_the_optimal_design():
    """BinaryBandit.jl: 60 patients, ties split evenly."""
    (point,) = mb.operating_characteristics("optimal", [(0.3, 0.5)], horizon=60)["optimal"]
    assert point.successes == pytest.approx(27.667781619675154, abs=1e-9)
    assert point.successes_sd**2 == pytest.approx(23.650456467947, abs=1e-9)


def test_functions_of_the_final_counts():
    final = mb.final_states("thompson", 20, minimum=3)
    assert final.arms == 2
    assert final.mean(lambda n, s: n.sum(axis=0), (0.3, 0.5)) == pytest.approx(20.0, abs=1e-12)
    assert final.mean(lambda n, s: n.min(axis=0) >= 3, TWO) == pytest.approx(1.0, abs=1e-12)
    assert final.weight.sum() == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(mb.InputError, match="one number per state"):
        final.mean(lambda n, s: 1.0, (0.3, 0.5))


def test_a_prior_is_the_average_over_it():
    """Against a product rule over both halves of the square, without error for polynomials."""
    x, weight = np.polynomial.legendre.leggauss(9)
    x, weight = 0.5 * (x + 1.0), 0.5 * weight
    points, weights = [], []
    for high, a in zip(x, weight, strict=True):
        for share, b in zip(x, weight, strict=True):
            points += [(high, high * share), (high * share, high)]
            weights += [a * b * high] * 2
    prior = mb.Bernoulli(alpha=[1, 2], beta=[1, 1])
    weights = np.array(weights) * [2.0 * p2 for _, p2 in points]
    *found, whole = mb.operating_characteristics(
        "ucb1", [*points, prior], horizon=9, test="fisher", level=0.2, fewer_than=3
    )["ucb1"]
    for key in ("successes", "plays", "correct_selection", "wrong_imbalance", "rejection", "bias",
                "mse", "difference_bias", "difference_mse", "fewer"):  # fmt: skip
        expected = weights @ np.array([getattr(point, key) for point in found])
        np.testing.assert_allclose(getattr(whole, key), expected, atol=1e-12, err_msg=key)
    squares = weights @ np.array([p.successes**2 + p.successes_sd**2 for p in found])
    assert whole.successes_sd == pytest.approx(math.sqrt(squares - whole.successes**2), abs=1e-10)


def test_a_table_is_the_average_over_its_rows():
    rows = [(0.3, 0.5), (0.6, 0.2)]
    first, second, both = mb.operating_characteristics(
        "thompson", [*rows, mb.Table(np.array(rows))], horizon=15
    )["thompson"]
    for key in ("successes", "correct_selection", "wrong_imbalance", "rejection"):
        mean = 0.5 * (getattr(first, key) + getattr(second, key))
        assert getattr(both, key) == pytest.approx(mean, abs=1e-12)


def test_regret_of_evaluate_is_what_successes_lack():
    for policy in ("optimal", "thompson", "ucb1", "crdp:degree=0.8,minimum=5"):
        made = mb.ConstrainedPolicy(degree=0.8, minimum=5) if "crdp" in policy else policy
        regret = mb.evaluate(made, TWO, 30, method="exact")[0].mean_regret
        (point,) = mb.operating_characteristics(policy, [TWO], horizon=30)[policy]
        assert point.successes == pytest.approx(30 * TWO.expected_best() - regret, abs=1e-9)


# Simulations make about a hundred comparisons below; one in 16,000 is off by more than this many
# standard errors by chance, one in 370 by more than three.
MANY = 4.0


def within(one, other, key, error):
    assert abs(getattr(one, key) - getattr(other, key)) < MANY * error, key


def compare(simulated, exact):
    """Whether simulated characteristics are within the standard errors that they have."""
    count = simulated.episodes
    within(simulated, exact, "successes", exact.successes_sd / math.sqrt(count))
    for key in ("rejection", "correct_selection", "wrong_imbalance"):
        p = getattr(exact, key)
        within(simulated, exact, key, math.sqrt(max(p * (1 - p), 1e-6) / count))
    for arm in (0, 1):
        error = math.sqrt(exact.mse[arm] / count)
        assert abs(simulated.bias[arm] - exact.bias[arm]) < MANY * error
        assert abs(simulated.plays[arm] - exact.plays[arm]) < MANY * exact.plays_sd[
            arm
        ] / math.sqrt(count)


SIMULATED = {
    "plain": {},
    "minimum": {"minimum": 4},
    "blocks": {"feedback": Feedback(batch=6)},
    "random plays": {"feedback": Feedback(min_share=0.1)},
}
# A table of dynamic programming has no exact evaluation with feedback that is not immediate.
COMPARED = [
    *((policy, kind) for policy in ("thompson", "ucb1", "gittins") for kind in SIMULATED),
    ("crdp:degree=0.8,minimum=5", "plain"),
    ("crdp:degree=0.8,minimum=5", "minimum"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "kind"), COMPARED)
def test_simulation_agrees(policy, kind):
    options = SIMULATED[kind]
    exact, simulated = (
        mb.operating_characteristics(
            policy, [(0.3, 0.6)], horizon=30, method=method, seed=5, level=0.1, **options
        )[policy][0]
        for method in ("exact", "monte-carlo")
    )
    assert (exact.episodes, simulated.episodes) == (0, 100_000)
    compare(simulated, exact)


def test_simulated_delays_agree_with_all_sequences():
    feedback, horizon, rates = Feedback(delay=2), 7, (0.3, 0.6)
    policy = mb.policy("r + 1/(n - w + 1)")
    shares = index_shares(policy, TWO, horizon, feedback)
    final = twin.final_distribution(shares, exactly(rates), horizon, feedback)
    expected = twin.characteristics(
        final, exactly(rates), lambda n, s: twin.fisher_p(n, s) <= Fraction(1, 4),
        imbalance=Fraction(1, 10), fewer_than=2,
    )  # fmt: skip
    trial = mb.operating_characteristics(
        policy, [rates], horizon=horizon, feedback=feedback, level=0.25
    )
    assert trial.method == "monte-carlo"
    (found,) = trial[policy.name]
    for key, error in (
        ("successes", expected["successes_sd"]),
        ("rejection", 0.5),
        ("correct_selection", 0.5),
    ):
        assert abs(getattr(found, key) - float(expected[key])) < 3.0 * error / math.sqrt(
            found.episodes
        )


@pytest.mark.slow
def test_a_minimum_is_simulated_for_every_policy():
    for policy in ("optimal", "thompson", "gittins", "ucb1-tuned", "crdp:degree=0.9"):
        trial = mb.operating_characteristics(
            policy,
            [(0.1, 0.9)],
            horizon=20,
            minimum=6,
            method="monte-carlo",
            episodes=5000,
            fewer_than=6,
        )
        assert trial[policy][0].fewer == (0.0, 0.0)


def test_threads_change_nothing():
    designs = ["equal", "thompson", "ucb1"]
    one, two = (
        mb.operating_characteristics(designs, grid="0.2:0.8:0.2", horizon=25, threads=threads)
        for threads in (1, 2)
    )
    assert one.to_dict() == two.to_dict()


def test_constrained_dynamic_programming_trades_successes_for_power():
    degrees = (0.5, 0.7, 0.9, 1.0)
    names = [f"crdp:degree={degree},minimum=6" for degree in degrees]
    trial = mb.operating_characteristics(names, [(0.3, 0.6)], horizon=50, test="exact-conditional")
    successes = [trial[name][0].successes for name in names]
    power = [trial[name][0].rejection for name in names]
    assert sorted(successes) == successes
    assert sorted(power, reverse=True) == power
    assert successes[0] == pytest.approx(22.5, abs=0.2)


def test_a_penalty_buys_the_minimum():
    names = [f"crdp:degree=0.9,minimum=10,penalty={penalty}" for penalty in (0, 1, 30)]
    trial = mb.operating_characteristics(names, [TWO], horizon=30, fewer_than=10)
    short = [sum(trial[name][0].fewer) for name in names]
    assert short[0] > short[1] > short[2]
    # Without a penalty the minimum does not matter.
    (free,) = mb.operating_characteristics("crdp:degree=0.9", [TWO], horizon=30).designs.values()
    assert trial[names[0]][0].successes == pytest.approx(free[0].successes, abs=1e-12)
    assert (
        mb.ConstrainedPolicy(minimum=10, penalty=2).name == "crdp:degree=0.9,minimum=10,penalty=2"
    )


def test_a_constrained_policy_can_be_played_live():
    design, chosen = mb.ConstrainedPolicy(degree=0.7, minimum=3), []
    for seed in range(400):
        player = design.player(2, horizon=30, rewards="binary", seed=seed)
        for arm, reward in ((0, 1), (1, 0), (0, 1), (1, 0)):
            while player.select() != arm:
                player.update(1 - arm, 1 - reward)
            player.update(arm, reward)
        chosen.append(player.select())
    # Arm 0 has won and arm 1 has lost: the better one is played with probability 0.7.
    assert abs(np.mean(chosen) - 0.3) < 4.0 * math.sqrt(0.3 * 0.7 / len(chosen))


def test_tables_as_text_and_data():
    trial = mb.operating_characteristics(["equal", "ucb1"], [(0.3, 0.5), TWO], horizon=12)
    assert len(trial.rows()) == 4
    rows = list(csv.DictReader(io.StringIO(trial.csv())))
    assert [row["policy"] for row in rows] == ["equal", "equal", "ucb1", "ucb1"]
    assert float(rows[2]["plays_1"]) + float(rows[2]["plays_2"]) == pytest.approx(12.0)
    plain = trial.to_dict()
    assert [item["policy"] for item in plain["designs"]] == ["equal", "ucb1"]
    assert {
        "rates",
        "successes",
        "successes_sd",
        "plays",
        "rejection",
        "correct_selection",
        "bias",
    } <= set(plain["designs"][0]["points"][0])


def test_learning_with_the_power_of_a_trial():
    """A policy that must show a difference explores more, and shows it."""
    objective = "power:p1=0.1,p2=0.7,least=0.8,test=exact-conditional"
    # Power has several local optima: a search begins best with a policy that explores a lot.
    options = {"generations": 12, "seed": 1, "initial": {"a": 6.0}}
    space = "r + a/(n + 1)"
    free = mb.learn(space, TWO, 30, measured=False, **options)
    bound = mb.learn(space, TWO, 30, objective=objective, **options)
    trial = mb.operating_characteristics(
        [free.policy, bound.policy], [(0.1, 0.7)], horizon=30, test="exact-conditional"
    )
    power = [points[0].rejection for points in trial.designs.values()]
    assert power[0] < 0.8 - 0.05
    assert bound.power == pytest.approx(power[1], abs=1e-12)
    assert free.power is None
    lacking = max(0.8 - power[1], 0.0)
    assert lacking < 0.02
    assert bound.objective == pytest.approx(bound.evaluation.mean_regret + 30 * lacking, abs=1e-9)


def test_learning_for_the_worst_of_a_grid():
    """All points of the grid count, exactly, whatever the prior is."""
    options = {"generations": 8, "seed": 1}
    learned = mb.learn("r + a/(n + b)", TWO, 20, objective="worst:grid=0.1:0.9:0.2", **options)
    rates = np.linspace(0.1, 0.9, 5).round(1)
    points = [(one, other) for one in rates for other in rates]

    def worst(policy):
        trial = mb.operating_characteristics(policy, points, horizon=20, test=None)
        (found,) = trial.designs.values()
        return max(20 * max(p.rates) - p.successes for p in found)

    assert learned.objective == pytest.approx(worst(learned.policy), abs=1e-9)
    assert learned.objective < worst("ucb1-tuned")


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ("worst:grid=0.1:0.9", "first:last:step"),
        ("worst:grid=0.1:1.9:0.1", "1 or less"),
        ("worst:q=1", "no parameter 'q'"),
        ("power", "needs the success rates"),
        ("power:p1=0.1,p2=3", "p2 of the objective power must lie between 0 and 1, not 3"),
        ("power:p1=0.1,p2=0.3,test=fischer", "did you mean fisher"),
        ("power:p1=0.1,p2=0.3,least=0.8,q=1", "no parameter 'q'"),
    ],
)
def test_bad_objectives_are_refused(objective, words):
    with pytest.raises(mb.InputError, match=words):
        mb.learn("r + a/n", TWO, 20, objective=objective)


@pytest.mark.parametrize("objective", ["power:p1=0.1,p2=0.5", "worst:grid=0.1:0.9:0.1"])
def test_exact_objectives_are_for_learning_with_two_arms(objective):
    with pytest.raises(mb.InputError, match="for learn"):
        mb.search(TWO, 20, length=2, objective=objective)
    with pytest.raises(mb.InputError, match="computed exactly"):
        mb.learn("r + a/n", TWO, 20, objective=objective, feedback={"delay": 2})
    with pytest.raises(mb.InputError, match="leave the protocol out"):
        mb.learn("r + a/n", TWO, 20, objective=objective, protocol="paper")
    with pytest.raises(mb.InputError, match="2 arms, not 3"):
        mb.learn("r + a/n", mb.Bernoulli(3), 20, objective=objective)
    with pytest.raises(mb.InputError, match=r"0 or 1|Bernoulli arms"):
        mb.learn("r + a/n", mb.Gaussian(2), 20, objective=objective)


def test_successes_stand_beside_regret():
    result = mb.evaluate(["ucb1", "greedy"], TWO, 20)
    (point,) = mb.operating_characteristics("ucb1", [TWO], horizon=20)["ucb1"]
    assert result.successes("ucb1") == pytest.approx(point.successes, abs=1e-9)
    assert list(result.rows(successes=True)[0])[:3] == ["policy", "regret", "successes"]
    assert mb.evaluate("ucb1", mb.Gaussian(2), 20, episodes=100).successes(0) is None


def test_long_trials_can_be_simulated():
    trial = mb.operating_characteristics(
        "equal", [(0.3, 0.35)], horizon=3000, test="z-pooled", method="monte-carlo", episodes=200
    )
    assert trial["equal"][0].plays == pytest.approx((1500.0, 1500.0))
    with pytest.raises(mb.InputError, match="simulation"):
        mb.operating_characteristics("equal", [(0.3, 0.35)], horizon=3000)


REFUSED = [
    ({"arms": [(0.3, 1.2)]}, "between 0 and 1, not 1.2"),
    ({"arms": [(0.3, 0.5), (0.1, 0.2, 0.3)]}, "3 success rates"),
    ({"arms": []}, "no success rates"),
    ({"arms": [0.3]}, "one number per arm"),
    ({"arms": [mb.Gaussian(2)]}, "bernoulli or a table"),
    ({"prior": mb.Gaussian(2)}, "successes or failures"),
    ({"level": 0.0}, "level of a test must lie between 0 and 1, not 0"),
    ({"level": 5}, "not 5"),
    ({"test": "fischer"}, "did you mean fisher"),
    ({"test": "fisher", "arms": [(0.1, 0.2, 0.3)]}, "compares 2 arms, not 3"),
    ({"test": "bayes:c=0.2"}, "at least 0.5"),
    ({"test": "fisher:alternative=better"}, "alternative"),
    ({"test": "exact:statistic=t"}, "unknown statistic"),
    ({"test": lambda n, s: s}, "one number per state"),
    ({"test": lambda n, s: n[0]}, "rejects"),
    ({"grid": "0.1-0.9"}, "first:last:step"),
    ({"grid": "0:1:0.0001", "horizon": 300}, "hours; choose a coarser grid"),
    ({"minimum": 20}, "at most 10"),
    ({"policies": "crdp:degree=0.3"}, "between 0.5 and 1, not 0.3"),
    ({"policies": "crdp:minimum=2.5"}, "whole number"),
    ({"policies": "crdp:degre=0.9"}, "no parameter 'degre'"),
    ({"policies": ["ucb1", "ucb1"]}, "same name"),
    ({"look_every": 5, "boundary": "pokok"}, "did you mean pocock"),
    ({"look_every": 5, "boundary": [0.01, 0.02]}, "2 p-values, but there are 4 looks"),
    ({"look_every": 5, "feedback": {"batch": 4}}, "within a block"),
    ({"boundary": "pocock"}, "how often to look .--look-every 25"),
    ({"look_every": 5, "test": None}, "by a test"),
    ({"look_every": 5, "test": "exact-conditional"}, "test exact"),
    ({"feedback": {"delay": 3}, "test": "exact"}, "exact distribution"),
    ({"feedback": {"delay": 3}, "method": "exact"}, "delays are simulated"),
    ({"feedback": {"delay": 3}, "look_every": 5}, "exactly only"),
    ({"method": "exact", "episodes": 5}, "leave them out"),
    ({"imbalance": 2}, "below 1, not 2"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_bad_input_is_refused(given, words):
    asked = {"policies": "ucb1", "arms": [(0.3, 0.5)], "horizon": 20} | given
    with pytest.raises(mb.InputError, match=words):
        mb.operating_characteristics(**asked)
