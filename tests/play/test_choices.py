"""Choices with an id and a probability: how probable they are, and that each reward counts once."""

import json
import math
import random

import numpy as np
import pytest
from scipy import stats

import metabandit as mb
from metabandit.journal import seal
from metabandit.play.chances import (
    beta_draw,
    chances_of_a_race,
    chances_of_the_largest,
    normal_draw,
)
from metabandit.play.rules import BeliefRule
from tests.play.test_state import World

# Probability ---------------------------------------------------------------------------------------


def with_counts(policy, counts, **options):
    player = mb.policy(policy).player(len(counts), **options)
    for arm, (plays, total) in enumerate(counts):
        if plays:
            player.update(arm, plays=plays, total=float(total), squares=float(total))
    return player


def own_rule(n, r, s, t, h, u):
    return int(u * u * len(n))


APART = [(9, 3), (12, 5), (7, 2), (20, 9)]
KINDS = {
    "an index": ("ucb1", APART, {}),
    "equal indices": ("ucb1", [(9, 3), (9, 3), (7, 0), (9, 3)], {}),
    "kl-ucb, equal": ("kl-ucb", [(9, 3), (9, 3), (7, 0)], {}),
    "uniform": ("uniform", APART, {}),
    "eps_n-greedy": ("eps_n-greedy:c=2,d=0.9", APART, {}),
    "eps_n-greedy, equal": ("eps_n-greedy:c=3,d=0.7", [(9, 3), (9, 3), (7, 0)], {}),
    "minimum share": ("ucb1", APART, {"min_share": 0.07}),
    "rate and share": ("eps_n-greedy:c=2,d=0.9", APART, {"min_share": 0.07}),
    "share at the start": ("ucb1", [(3, 1), (0, 0), (0, 0)], {"min_share": 0.1}),
    "needed plays": ("ucb1-normal", [(3, 1), (200, 70), (3, 2)], {"rewards": (None, None)}),
    "thompson": ("thompson", APART, {}),
    "thompson, few plays": ("thompson", [(1, 0), (1, 1), (2, 1)], {}),
    "thompson, far apart": ("thompson", [(2, 1), (4000, 1900), (300, 160)], {"min_share": 0.02}),
    "thompson, Gaussian": ("thompson", APART, {"rewards": (None, None), "prior": "gaussian"}),
    "ids": ("ids", APART, {}),
    "ttts": ("ttts:keep=0.6", APART, {}),
    "ttts, Gaussian": ("ttts", APART, {"rewards": (None, None), "prior": "gaussian"}),
    "kg, equal": ("kg-star", [(9, 3), (9, 3), (7, 0)], {"horizon": 60}),
    "ada-ucb": ("ada-ucb", [(9, 3), (9, 3), (7, 0)], {"horizon": 60}),
    "ucb2": ("ucb2:alpha=0.3", APART, {}),
    "ucb2, equal": ("ucb2:alpha=0.1", [(9, 3), (9, 3), (9, 3)], {}),
    "gittins": ("gittins", [(2, 1), (2, 1), (5, 1)], {"horizon": 30}),
    "optimal": ("optimal", [(3, 1), (3, 1)], {"horizon": 30}),
    "optimal, beyond": ("optimal", [(20, 9), (20, 9)], {"horizon": 30}),
    "gittins, Gaussian": (
        "gittins",
        [(2, 1), (2, 1), (5, 1)],
        {"horizon": 30, "rewards": (None, None), "prior": "gaussian"},
    ),
    "constrained": (mb.ConstrainedPolicy(degree=0.8, minimum=5), [(3, 1), (3, 2)], {"horizon": 30}),
    "constrained, equal": (mb.ConstrainedPolicy(degree=0.8), [(3, 1), (3, 1)], {"horizon": 30}),
    "split": ("split", [(3, 1), (4, 2), (3, 3)], {}),
    "a test that runs": ("ab-test", [(9, 3), (10, 4), (9, 5)], {"horizon": 1000}),
    "a test that ended": ("ab-test", [(90, 3), (95, 80), (91, 30)], {"horizon": 1000}),
    "the winner, equal": (
        "split-then-winner:share=0.03",
        [(10, 3), (10, 5), (10, 5)],
        {"horizon": 1000},
    ),
    "constrained, shared": (
        mb.ConstrainedPolicy(degree=0.9, minimum=5),
        [(9, 7), (3, 1)],
        {"horizon": 30, "min_share": 0.07},
    ),
    "constrained, beyond": (
        mb.ConstrainedPolicy(degree=0.6),
        [(20, 9), (20, 9)],
        {"horizon": 30},
    ),
    "a test without a clear winner": ("ab-test", [(40, 20), (40, 21), (41, 22)], {}),
    "a test with equal leaders": ("ab-test", [(40, 30), (40, 30), (40, 2)], {}),
    "the winner, shared": (
        "split-then-winner",
        [(9, 5), (9, 5), (9, 4)],
        {"horizon": 100, "min_share": 0.07},
    ),
    "a rule of one's own": (mb.ChoicePolicy("squares", own_rule), APART, {"horizon": 99}),
}


def remembered(function):
    """A function of a moment's counts and time, computed for the first moment only."""
    known = {}

    def compute(moment):
        key = moment.t, moment.h, *((arm.name, arm.plays, arm.total) for arm in moment.arms)
        if key not in known:
            known[key] = function(moment)
        return known[key]

    return compute


def frequencies(player, count):
    """How often each arm is chosen, if only the random numbers differ.

    What a rule believes is the same each time, and computed once: some take a millisecond for it.
    """
    rule = player._rule
    if isinstance(rule, BeliefRule):
        rule.indices, rule._shares = remembered(rule.indices), remembered(rule._shares)
    memory = player._memory()
    found = dict.fromkeys(player.arms, 0)
    for step in range(count):
        player.selections = step
        found[player._choose().name] += 1
        player._restore(memory)
    return found


def check(kind, count):
    policy, counts, options = KINDS[kind]
    if "prior" in options:
        options = options | {"prior": mb.Gaussian(arms=len(counts))}
    player = with_counts(policy, counts, seed=1, **options)
    chances = player.probabilities()
    assert sum(chances.values()) == pytest.approx(1.0, abs=1e-9)
    found = frequencies(player, count)
    for arm, chance in chances.items():
        error = math.sqrt(chance * (1.0 - chance) / count)
        # Quadrature and tried random numbers have an error of their own.
        slack = {"thompson": 1e-5, "a rule": 2e-3}.get(kind.split(",")[0][:8].strip(), 0.0)
        assert abs(found[arm] / count - chance) <= 3.0 * error + slack, (kind, arm, found, chances)
    return chances


@pytest.mark.parametrize("kind", KINDS)
def test_arms_are_chosen_as_often_as_is_said(kind):
    check(kind, 3000)


# The others are of a kind with one of these.
QUICK_ONLY = (
    "an index",
    "kl-ucb, equal",
    "thompson, few plays",
    "thompson, far apart",
    "gittins, Gaussian",
    "constrained, equal",
    "split",
    "a test that ended",
    "constrained, beyond",
    "a test without a clear winner",
    "a test with equal leaders",
    "the winner, shared",
    "ids",
    "ttts",
    "ttts, Gaussian",
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in QUICK_ONLY])
def test_a_hundred_thousand_choices_are_as_often_as_is_said(kind):
    check(kind, 100_000)


def test_probabilities_that_are_known():
    assert with_counts("ucb1", APART).probabilities() == {0: 0.0, 1: 0.0, 2: 1.0, 3: 0.0}
    equal = with_counts("ucb1", [(9, 3), (9, 3), (9, 0)]).probabilities()
    assert equal == {0: 0.5, 1: 0.5, 2: 0.0}
    shared = with_counts("ucb1", [(9, 3), (9, 3), (9, 0)], min_share=0.1).probabilities()
    assert shared == pytest.approx({0: 0.45, 1: 0.45, 2: 0.1})
    # The constrained optimum of degree 0.8 plays the worse of two arms with probability 0.2.
    worse = mb.ConstrainedPolicy(degree=0.8)
    clear = with_counts(worse, [(9, 1), (9, 8)], horizon=30).probabilities()
    assert clear == pytest.approx({0: 0.2, 1: 0.8})
    # A test without a winner plays the arms with the fewest plays, one that ended its winner.
    running = with_counts("ab-test", [(40, 20), (40, 21), (41, 22)]).probabilities()
    assert running == {0: 0.5, 1: 0.5, 2: 0.0}
    ended = with_counts("ab-test", [(40, 10), (50, 40), (40, 12)]).probabilities()
    assert ended == {0: 0.0, 1: 1.0, 2: 0.0}
    equal = [(9, 5), (9, 5), (9, 4)]
    first = with_counts("split-then-winner", equal, horizon=100)
    assert first.probabilities() == {0: 0.5, 1: 0.5, 2: 0.0}
    # Its winner is for good, whatever comes.
    winner = first.select()
    first.update(winner, plays=20, total=0.0, squares=0.0)
    assert first.probabilities() == {arm: float(arm == winner) for arm in range(3)}
    # eps_n-greedy:c=2,d=1 plays any of 3 arms with probability 6/(t + 1).
    greedy = with_counts("eps_n-greedy:c=2,d=1", [(9, 3), (10, 3), (10, 9)]).probabilities()
    assert greedy == pytest.approx({0: 0.2 / 3, 1: 0.2 / 3, 2: 0.8 + 0.2 / 3})


@pytest.mark.parametrize("seed", range(6))
def test_the_largest_of_beta_draws(seed):
    rng = np.random.default_rng(seed)
    arms = int(rng.integers(2, 5))
    n = np.floor(10 ** rng.uniform(0, 4, arms))
    a = 0.5 + np.floor(rng.uniform(0, 1, arms) * (n + 1))
    b = 1.0 + n - a
    found = chances_of_the_largest([beta_draw(*item) for item in zip(a, b, strict=True)])
    # The slow way: the distributions of SciPy on very many points.
    u = np.concatenate([10.0 ** np.arange(-12, -2, 0.01), np.linspace(0.01, 0.99, 5000)])
    u = np.concatenate([u, 1.0 - u])
    points = np.unique(
        np.concatenate([stats.beta(*item).ppf(u) for item in zip(a, b, strict=True)])
    )
    below = np.array([stats.beta(*item).cdf(points) for item in zip(a, b, strict=True)])
    for arm in range(arms):
        others = np.prod(np.delete(below, arm, 0), axis=0)
        slow = np.sum(np.diff(below[arm]) * 0.5 * (others[1:] + others[:-1]))
        assert found[arm] == pytest.approx(slow, abs=2e-5)


def test_closed_forms():
    two = chances_of_the_largest([normal_draw(0.0, 1.0), normal_draw(1.0, 2.0)])
    assert two[0] == pytest.approx(stats.norm.cdf(-1.0 / math.sqrt(5.0)), abs=1e-6)
    even = chances_of_the_largest([beta_draw(2.0, 3.0)] * 5)
    assert even == pytest.approx([0.2] * 5, abs=1e-9)
    # Beta(1, 1) against Beta(1, b): the first is larger with probability b/(b + 1).
    assert chances_of_the_largest([beta_draw(1, 1), beta_draw(1, 9)])[0] == pytest.approx(
        0.9, abs=1e-5
    )
    # Drawn once of two before the other is drawn twice: 3/4.
    assert chances_of_a_race([1, 2]) == pytest.approx([0.75, 0.25], abs=1e-5)


# Ids -----------------------------------------------------------------------------------------------


def test_a_choice_is_what_select_would_name():
    for policy in ("ucb1", "thompson", "eps_n-greedy", "ucb2", "uniform"):
        one, two = (mb.policy(policy).player(list("abc"), seed=4) for _ in range(2))
        world = World(3)
        seen = set()
        for _ in range(60):
            choice, arm = one.choose(), two.select()
            assert choice.arm == arm
            assert 0.0 < choice.probability <= 1.0
            seen.add(choice.id)
            value = float(world.reward(arm))
            assert one.reward(choice.id, value) is True
            two.update(arm, value)
        assert len(seen) == 60
        assert [vars_of(view) for view in one.indices()] == [vars_of(v) for v in two.indices()]


def vars_of(view):
    return view.arm, view.mean, view.deviation, view.plays, view.open


def make(**options):
    return mb.policy("ucb1").player(list("ab"), seed=1, rewards=(0, 1), **options)


def test_a_reward_counts_once():
    player = make()
    first, second = player.choose(), player.choose()
    assert player.reward(second.id, 0.25) is True
    assert player.reward(first.id, 1) is True
    for _ in range(3):
        assert player.reward(first.id, 1.0) is False
    assert player.plays == 2
    with pytest.raises(
        mb.InputError, match=r"has had the reward 1; the reward 0.5 was not counted"
    ):
        player.reward(first.id, 0.5)
    for unknown in ("nobody", None, 3, first):
        with pytest.raises(mb.InputError, match="no choice with the id"):
            player.reward(unknown, 0.5)
    with pytest.raises(mb.InputError, match="between 0 and 1"):
        player.reward(player.choose().id, 7)
    assert player.plays == 2
    assert [view.mean for view in player.indices()] == [1.0, 0.25]


def test_a_second_reward_may_replace_the_first():
    rng = random.Random(2)
    player, plain = make(on_duplicate="replace"), make()
    for _ in range(40):
        choice, arm = player.choose(), plain.select()
        player.reward(choice.id, rng.random())
        value = rng.random()
        assert player.reward(choice.id, value) is True
        assert player.reward(choice.id, value) is False
        plain.update(arm, value)
    for one, two in zip(player.indices(), plain.indices(), strict=True):
        assert (one.mean, one.deviation) == pytest.approx((two.mean, two.deviation))
        assert (one.plays, one.open) == (two.plays, two.open)


@pytest.fixture
def clock(monkeypatch):
    from metabandit.play import player

    now = [1000.0]
    monkeypatch.setattr(player.time, "time", lambda: now[0])
    return now


@pytest.mark.parametrize("expired", [None, 0.0])
def test_choices_expire(clock, expired):
    player = make(expire=60, expired=expired)
    late, good = player.choose(), player.choose()
    clock[0] += 59
    player.reward(good.id, 1.0)
    assert player.plays == 1
    clock[0] += 2
    third = player.choose()
    assert player.plays == (1 if expired is None else 2)
    assert sum(view.open for view in player.indices()) == 1
    had = "expired without a reward" if expired is None else "has had the reward 0"
    with pytest.raises(mb.InputError, match=had):
        player.reward(late.id, 1.0)
    clock[0] += 30
    assert player.reward(third.id, 1.0) is True
    # Long after that the ids are forgotten, and what comes for them is refused.
    clock[0] += 200
    player.choose()
    assert len(player.to_dict()["choices"]) == 1
    with pytest.raises(mb.InputError, match="no choice with the id"):
        player.reward(good.id, 1.0)


@pytest.mark.parametrize("expired", [None, 0.0])
def test_a_late_reward_may_replace_what_expired(clock, expired):
    player = make(expire=60, expired=expired, on_duplicate="replace")
    late = player.choose()
    clock[0] += 61
    assert player.reward(late.id, 1.0) is True
    assert player.reward(late.id, 1.0) is False
    assert (player.plays, player.indices()[0].mean) == (1, 1.0)


def test_ids_survive_in_files_and_journals(clock, tmp_path):
    def start():
        return make(
            journal=tmp_path / "plays.jsonl", expire=60, expired=0.0, on_duplicate="replace"
        )

    player, rng, waiting = start(), random.Random(5), []
    for step in range(120):
        waiting.append(player.choose().id)
        clock[0] += 1
        if rng.random() < 0.8:
            player.reward(rng.choice(waiting[-30:]), rng.random())
        if step % 40 == 17:
            before = player.to_dict()
            if step > 50:
                player.compact()
            player.close()
            player = start()
            assert player.to_dict() == before
    player.save(tmp_path / "player.json")
    again = mb.load_player(tmp_path / "player.json")
    assert again.to_dict() == player.to_dict()
    assert again.reward(waiting[-1], 0.125) == player.reward(waiting[-1], 0.125)
    assert again.to_dict() == player.to_dict()
    assert again.choose().arm == player.choose().arm


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_duplicate": "keep"}, "unknown choice 'keep' for on_duplicate"),
        ({"expire": 0}, "seconds above 0, not 0"),
        ({"expire": "soon"}, "expire"),
        ({"expired": 0.0}, "give expire="),
        ({"expire": 5, "expired": 2.0}, "between 0 and 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(mb.InputError, match=message):
        make(**options)


def test_a_damaged_file_of_choices_is_refused(tmp_path):
    player = make()
    player.choose()
    player.save(tmp_path / "player.json")
    content = json.loads((tmp_path / "player.json").read_text())
    content["choices"][0][1] = "nobody"
    del content["check"]
    (tmp_path / "player.json").write_text(seal(json.dumps(content))[0] + "\n")
    with pytest.raises(mb.InputError, match="of an arm 'nobody' that is not there"):
        mb.load_player(tmp_path / "player.json")
