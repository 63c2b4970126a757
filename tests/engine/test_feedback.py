"""Batches, delays and minimum shares: against twins, exact values, and each other."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit.engine.exact import Exact
from metabandit.engine.simulated import Sampling, Simulation
from metabandit.feedback import IMMEDIATE, Feedback
from tests import naive
from tests.naive import feedback as twin
from tests.tiers import some

TWO = mb.Bernoulli(arms=2)
UNLIKE = mb.Bernoulli(alpha=[1, 3], beta=[2, 1])
COUNTED = "prior-counts"


def exact(policy, prior, horizon, feedback, start=None, points=None):
    plan = mb.policy(policy, start=start).plan(prior, horizon)
    return Exact(prior, horizon, feedback=feedback).evaluate(plan, points or [horizon])


def simulated(policy, prior, horizon, feedback, start=None, episodes=40_000, seed=1):
    """Mean regret and its standard error."""
    plan = mb.policy(policy, start=start).plan(prior, horizon)
    simulation = Simulation(prior, horizon, Sampling(seed=seed), [plan], feedback=feedback)
    sums = simulation.chunk(0, episodes)
    mean = sums["total"][0, -2] / episodes
    return mean, math.sqrt((sums["squares"][0, -2] / episodes - mean**2) / episodes)


# Exactly ----------------------------------------------------------------------------------------


def index_shares(policy, prior, horizon, feedback):
    """What the twin takes: the share of each arm by the index of what is known and what waits."""
    plan = policy.plan(prior, horizon)
    counts, decision = plan.counts, plan.decision

    def shares(known, waiting):
        made = sum(n for n, _ in known) + sum(waiting)
        had = [n for n, _ in known]
        chosen = None
        moment = {"t": counts[0].sum() + made, "h": horizon - made, "K": 2}
        if plan.each_once and min(had) == 0 and sum(had) < 20:
            arm = min((0, 1), key=lambda k: (waiting[k], had[k] > 0, k))
            chosen = [Fraction(int(k == arm)) for k in (0, 1)]
        if chosen is None:
            values = []
            for arm, (n, s) in enumerate(known):
                w = waiting[arm] if feedback.pending == "count" else 0
                plays = counts[0, arm] + n
                r = (counts[1, arm] + s) / plays
                deviation = math.sqrt(max((counts[2, arm] + s) / plays - r * r, 0.0))
                state = {**moment, "n": plays + w, "r": r, "s": deviation, "w": w}
                values.append(naive.value(decision.bound, state))
            chosen = naive.shares_of(values)
            if decision.rate is not None:
                rate = Fraction(naive.value(decision.bound_rate, moment))
                chosen = [rate / 2 + (1 - rate) * share for share in chosen]
        least = Fraction(feedback.min_share)
        return [least + (1 - 2 * least) * share for share in chosen]

    return shares


@pytest.mark.parametrize("prior", [TWO, UNLIKE], ids=str)
@pytest.mark.parametrize("start", [None, COUNTED])
@pytest.mark.parametrize(
    "policy", ["r + 1/(n + w + 1)", "ucb1", "eps_n-greedy:c=0.3", "r + s/(n - w)"]
)
@pytest.mark.parametrize(
    "feedback",
    [
        Feedback(batch=2),
        Feedback(batch=3),
        Feedback(batch=3, pending="ignore"),
        Feedback(batch=(1, 3, 2), min_share=0.125),
        Feedback(min_share=0.25),
    ],
    ids=str,
)
def test_exact_regret_is_that_of_the_twin(policy, feedback, start, prior):
    made = mb.policy(policy, start=start)
    if start == COUNTED and policy.startswith("eps"):
        made = made.with_start(COUNTED)
    chance = naive.beta_chance(prior.alpha, prior.beta)
    sizes = np.diff([0, *feedback.ends(6)]).tolist()
    reward = twin.batched_reward(index_shares(made, prior, 6, feedback), chance, sizes)
    found = Exact(prior, 6, feedback=feedback).evaluate(made.plan(prior, 6), [6])
    assert found.mean_regret == pytest.approx(6 * prior.expected_best() - float(reward), abs=1e-12)


@pytest.mark.parametrize("prior", [TWO, UNLIKE], ids=str)
@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 3), (1, 2, 3), (6,), (1,) * 6])
@pytest.mark.parametrize("start", ["free", "each-once"])
@pytest.mark.parametrize("share", [0, Fraction(1, 8), Fraction(1, 2)], ids=str)
def test_floor_is_that_of_the_twin(share, sizes, start, prior):
    chance = naive.beta_chance(prior.alpha, prior.beta)
    reward = twin.best_batched_reward(
        chance, sizes, each_once=start == "each-once", min_share=share
    )
    feedback = Feedback(batch=sizes, min_share=float(share))
    found = mb.optimal(prior, 6, start=start, feedback=feedback, threads=2)
    assert found.expected_reward == pytest.approx(float(reward), abs=1e-12)
    assert (found.kind, found.feedback) == ("optimum", str(feedback))


def test_known_values_of_batches_of_ten():
    """The floor and two policies, as an independent program computed them.

    It breaks ties towards the arm with fewer plays, which matters if waiting plays are ignored.
    """
    feedback = Feedback(batch=10)
    assert mb.optimal(TWO, 100, feedback=feedback).regret == pytest.approx(2.6982, abs=1e-4)
    index = "r + 1.007/max(n, 2.9)"
    counted = exact(index, TWO, 100, feedback, COUNTED).mean_regret
    assert counted == pytest.approx(2.7105, abs=1e-4)
    ignored = "r + 1.007/max(n - w, 2.9)"
    towards_fewer = exact(f"{ignored} - 0.0000001*n", TWO, 100, feedback, COUNTED).mean_regret
    assert towards_fewer == pytest.approx(2.7704, abs=1e-4)
    split = exact(index, TWO, 100, Feedback(batch=10, pending="ignore"), COUNTED).mean_regret
    assert split == pytest.approx(
        exact(ignored, TWO, 100, feedback, COUNTED).mean_regret, abs=1e-12
    )


@pytest.mark.parametrize("policy", ["thompson", "ucb1", "eps_n-greedy", "gittins", "ucb1-normal"])
def test_batches_of_one_are_immediate(policy):
    """The same figures from the recursion over batches, the curve included."""
    points = [1, 2, 3, 20, 40]
    at_once = exact(policy, TWO, 40, IMMEDIATE, points=points)
    batched = exact(policy, TWO, 40, Feedback(batch=(1,) * 40), points=points)
    assert np.allclose(batched.curve, at_once.curve, atol=1e-11)
    assert np.allclose(batched.plays, at_once.plays, atol=1e-10)
    assert batched.simple_regret == pytest.approx(at_once.simple_regret, abs=1e-12)


def test_curve_inside_a_batch():
    """Checkpoints between batch ends are those of a batch that ends there."""
    inside = exact("ucb1", TWO, 20, Feedback(batch=8), points=[3, 8, 11, 20])
    cut = exact("ucb1:C=2", TWO, 11, Feedback(batch=(8, 3)), points=[3, 8, 11])
    assert np.allclose(inside.curve[:3], cut.curve, atol=1e-12)


@pytest.mark.parametrize("size", [2, 5, 10, 25])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_no_policy_is_below_the_floor(share, size):
    feedback = Feedback(batch=size, min_share=share)
    floor = mb.optimal(TWO, 50, feedback=feedback).regret
    for policy in ("r + 1/(n + 1)", "thompson", "gittins", "kl-ucb", "bayes-ucb"):
        assert exact(policy, TWO, 50, feedback).mean_regret >= floor - 1e-12
    # Fewer looks cost something.
    finer = mb.optimal(TWO, 50, feedback=Feedback(batch=1)).regret
    assert floor > finer


def test_given_problems_in_batches():
    table = mb.Table([[0.2, 0.6], [0.7, 0.65], [0.5, 0.0]])
    feedback = Feedback(batch=5, min_share=0.1)
    found = exact("ucb1-tuned", table, 30, feedback)
    mean, error = simulated("ucb1-tuned", table, 30, feedback)
    assert abs(found.mean_regret - mean) < 4 * error


# Simulated against exact ------------------------------------------------------------------------

EIGHT = [
    "ucb1",
    "kl-ucb",
    "thompson",
    "gittins",
    "eps_n-greedy",
    "ucb1-tuned",
    "r + 1/(n + 1)",
    "r + (1 + 0.2*w)/(n + 1)",
]


@pytest.mark.parametrize("policy", EIGHT)
@pytest.mark.parametrize(
    "size",
    [pytest.param(size, marks=[] if size == 7 else [pytest.mark.slow]) for size in (2, 7, 10, 30)],
)
def test_simulated_batches_agree_with_exact_ones(policy, size):
    for feedback in (Feedback(batch=size), Feedback(batch=size, pending="ignore", min_share=0.05)):
        mean, error = simulated(policy, UNLIKE, 60, feedback)
        assert abs(mean - exact(policy, UNLIKE, 60, feedback).mean_regret) < 3.5 * error


# Move by move -----------------------------------------------------------------------------------

DELAYED = [
    Feedback(delay=7),
    Feedback(batch=6),
    Feedback(batch=6, delay=4, pending="ignore"),
    Feedback(delay="geometric:mean=5"),
    Feedback(batch=4, delay="geometric:mean=8", min_share=0.03),
    Feedback(batch="geometric:growth=1.3", min_share=0.05),
]


def choice_with_w(policy, prior, horizon):
    """The twin's rule, which may read w."""
    if not isinstance(policy, mb.IndexPolicy):
        return naive.choice_of(policy, prior, horizon)

    def choose(play):
        moment = {"t": play.t, "h": play.horizon - play.step, "K": play.arms}
        if policy.rate is not None:
            rate = naive.value(policy._index.bound_rate, moment)
            if naive.unit(naive.noise_bits(play.key, play.step, 2)) < rate:
                return twin.below(naive.noise_bits(play.key, play.step, 3), play.arms)
        values = []
        for arm in range(play.arms):
            n, r, s = play.statistics(arm)
            state = {**moment, "n": n, "r": r, "s": s, "w": play.waits(arm)}
            values.append(naive.value(policy.bound, state))
        return play.best(values)

    return choose


def moves_of_the_simulator(policy, prior, horizon, feedback, episodes, seed, lanes=64):
    """Regret after every play, with the problems that were played."""
    sampling = Sampling(seed=seed, checkpoints=tuple(range(1, horizon + 1)), lanes=lanes)
    plan = policy.plan(prior, horizon)
    simulation = Simulation(prior, horizon, sampling, [plan], feedback=feedback)
    problems = simulation.problems(0, episodes)
    regret = np.empty((horizon + 1, episodes))
    simulation.play(0, problems, 0, regret, np.zeros(prior.arms))
    return regret[:-1], problems


@pytest.mark.parametrize("feedback", DELAYED, ids=str)
@pytest.mark.parametrize(
    "name", ["ucb1", "r + s/(n + w)", "thompson", "ucb2:alpha=0.3", "eps_n-greedy", "gittins"]
)
@pytest.mark.parametrize(
    "prior",
    [
        mb.Bernoulli(arms=2),
        pytest.param(mb.Bernoulli(arms=4), marks=pytest.mark.slow),
        pytest.param(mb.Gaussian(arms=3), marks=pytest.mark.slow),
    ],
    ids=lambda prior: f"{prior.arms} {prior.family.name}",
)
def test_plays_are_those_of_the_twin(name, feedback, prior):
    policy = mb.policy(name)
    if name == "ucb2:alpha=0.3" and feedback.pending == "ignore":
        with pytest.raises(mb.InputError, match="epochs count all plays"):
            moves_of_the_simulator(policy, prior, 40, feedback, 1, 0)
        return
    if name in ("thompson", "gittins"):
        choose = naive.choice_of(policy, prior, 40)
    else:
        choose = choice_with_w(policy, prior, 40)
    horizon, episodes, seed = 40, 12, 5
    regret, problems = moves_of_the_simulator(policy, prior, horizon, feedback, episodes, seed)
    gaps = problems.means.max(axis=1, keepdims=True) - problems.means
    same = 0
    for episode in range(episodes):
        moves = twin.play_with_feedback(
            choose,
            policy.plan(prior, horizon),
            prior.family.name,
            problems.parameters[episode],
            horizon,
            seed,
            episode,
            feedback,
        )
        same += np.allclose(regret[:, episode], np.cumsum(gaps[episode][moves]), atol=1e-9)
    assert same >= (episodes if prior.family.binary else episodes - 1)


@pytest.mark.parametrize("feedback", DELAYED, ids=str)
def test_lanes_change_nothing(feedback):
    for name in ("ucb1", "r + 1/(n + 1)", "ucb2:alpha=0.3"):
        if name.startswith("ucb2") and feedback.pending == "ignore":
            continue
        policy = mb.policy(name)
        few, _ = moves_of_the_simulator(policy, mb.Bernoulli(arms=3), 60, feedback, 200, 2, 64)
        many, _ = moves_of_the_simulator(policy, mb.Bernoulli(arms=3), 60, feedback, 200, 2, 512)
        assert np.array_equal(few, many)


@pytest.mark.parametrize("feedback", DELAYED, ids=str)
@pytest.mark.parametrize(
    ("name", "prior"),
    [
        *(
            (name, mb.Bernoulli(arms=3))
            for name in ("ucb1", "thompson", "kl-ucb", "gittins", "ucb2:alpha=0.3", "r + w/(n + 1)")
        ),
        ("gittins", mb.Gaussian(arms=3, mean=1.0, spread=2.0)),
    ],
    ids=str,
)
def test_live_play_is_that_of_the_simulator(name, prior, feedback):
    """A player that gets its rewards as late makes the plays of the simulator."""
    policy, horizon, seed = mb.policy(name), 60, 9
    if name.startswith("ucb2") and feedback.pending == "ignore":
        return
    regret, problems = moves_of_the_simulator(policy, prior, horizon, feedback, 1, seed)
    player = policy.player(
        prior.arms, seed=seed, horizon=horizon, prior=prior,
        min_share=feedback.min_share, pending=feedback.pending,
    )  # fmt: skip
    key = naive.episode_word(seed, 0, 0)
    words = [naive.episode_word(seed, 0, 1 + arm) for arm in range(prior.arms)]
    pulls, due, moves = [0] * prior.arms, {}, []
    for step in range(horizon):
        arm = player.select()
        word = (words[arm] + pulls[arm] * naive.WEYL) & naive.MASK32
        pulls[arm] += 1
        uniform = naive.unit(naive.draw_bits(word, key))
        reward = naive.quantile(prior.family.name, uniform, problems.parameters[0, arm])
        late = naive.unit(naive.draw_bits(word, key ^ twin.DELAY))
        due.setdefault(twin.comes_after(feedback, step + 1, horizon, late), []).append(
            (arm, reward)
        )
        moves.append(arm)
        player.update_many(due.pop(step + 1, []))
    gaps = problems.means.max() - problems.means[0]
    assert np.allclose(regret[:, 0], np.cumsum(gaps[moves]), atol=1e-9)


# What it means ----------------------------------------------------------------------------------


def test_a_first_batch_is_spread_over_all_arms():
    player = mb.policy("ucb1").player(["a", "b", "c", "d"])
    assert player.select(10) == {"a": 3, "b": 3, "c": 2, "d": 2}


@settings(max_examples=some(15, 60), deadline=None)
@given(
    st.integers(1, 300),
    st.one_of(st.integers(1, 50), st.floats(1.01, 3.0).map(lambda g: f"geometric:growth={g!r}")),
    st.integers(0, 60),
)
def test_what_is_known_when(horizon, batch, delay):
    feedback = Feedback(batch=min(batch, horizon) if isinstance(batch, int) else batch, delay=delay)
    ends = feedback.ends(horizon)
    assert ends[-1] == horizon
    assert all(before < after for before, after in pairwise(ends))
    known = feedback.known(horizon)
    for made in range(horizon + 1):
        looked = max((end for end in ends if end <= made), default=0)
        assert known[made] == max(looked - delay, 0)
        assert feedback.next_end(horizon)[made] == min(end for end in ends if end >= made)


def test_feedback_of_a_shorter_horizon():
    assert Feedback(batch=500, delay=30).scaled(0.1) == Feedback(batch=50, delay=3)
    assert Feedback(batch=(10, 30, 60)).scaled(0.1) == Feedback(batch=(1, 3, 6))
    assert Feedback(delay="geometric:mean=50").scaled(0.1) == Feedback(delay="geometric:mean=5")
    assert Feedback(batch=4, min_share=0.1).scaled(0.1) == Feedback(min_share=0.1)


def test_shares_are_kept():
    """Greedy play on very different arms: the worse one is played as often as its share says.

    It is played once or twice more at the beginning, and never less.
    """
    table = mb.Table([[0.9, 0.1]])
    found = exact("r", table, 100, Feedback(min_share=0.1))
    assert 10.0 <= found.plays[1] <= 11.5
    assert exact("r", table, 50, Feedback(min_share=0.5)).plays[0] == pytest.approx(25.0, abs=1e-9)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"batch": 0}, "must be at least 1, not 0"),
        ({"batch": "ten"}, "a whole number of plays"),
        ({"batch": "geometric:growth=1"}, "greater than 1"),
        ({"batch": "geometric:mean=2"}, "no parameter 'mean'"),
        ({"batch": ()}, "sizes of batches are missing"),
        ({"delay": -1}, "must be at least 0, not -1"),
        ({"delay": "geometric:mean=0"}, "greater than 0"),
        ({"min_share": 1.5}, "between 0 and 1"),
        ({"min_share": float("nan")}, "finite number"),
        ({"pending": "maybe"}, "unknown choice"),
    ],
)
def test_feedback_that_cannot_be(given_, message):
    with pytest.raises(mb.InputError, match=message):
        Feedback(**given_)


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        (Feedback(batch=101), "does not fit the horizon of 100"),
        (Feedback(batch=(50, 40)), "90 plays together, but the horizon is 100"),
        (Feedback(delay=100), "no reward is known within the horizon"),
        (Feedback(min_share=0.6), "2 arms cannot each keep a share of 0.6"),
    ],
)
def test_feedback_that_does_not_fit(feedback, message):
    with pytest.raises(mb.InputError, match=message):
        feedback.check(2, 100)


def test_the_optimal_table_is_for_immediate_feedback():
    with pytest.raises(mb.InputError, match="rewards that are known at once"):
        simulated("optimal", TWO, 20, Feedback(batch=5))
