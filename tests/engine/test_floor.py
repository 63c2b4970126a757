"""The floor: the optimum where it is known, else a lower bound, in tables and results."""

from __future__ import annotations

import json

import pytest

import metabandit as mb
from metabandit.bayes.optimum import solved_feedback
from metabandit.engine.floor import floor_of_search
from metabandit.engine.limits import TimeLimit
from metabandit.workers import make_workers
from tests.commands import answer

pytestmark = pytest.mark.usefixtures("short_reports")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_optimal_says_whether_it_is_the_optimum_or_a_bound():
    best = mb.optimal(mb.Bernoulli(2), 10)
    assert (best.kind, best.standard_error, best.to_dict()["kind"]) == ("optimum", 0.0, "optimum")
    bound = mb.optimal(mb.Bernoulli(6), 12, effort=0.02)
    assert bound.kind == bound.to_dict()["kind"] == "bound"
    ceiling = 12 * mb.Bernoulli(6).expected_best()
    assert bound.expected_reward == pytest.approx(ceiling - bound.regret)
    assert mb.optimal(mb.Gaussian(2), 12, effort=0.02).kind == "bound"
    with pytest.raises(mb.InputError, match="no floor"):
        mb.optimal(mb.TruncatedGaussian(2), 10)


@pytest.mark.parametrize(
    ("prior", "feedback"),
    [
        (mb.Bernoulli(2), mb.Feedback(delay=4)),
        (mb.Table([[0.2, 0.7], [0.6, 0.5]]), mb.Feedback(batch=3, min_share=0.1)),
        (mb.Bernoulli(3), mb.Feedback(batch=5)),
    ],
    ids=str,
)
def test_the_optimum_of_immediate_feedback_is_a_bound_for_other_feedback(prior, feedback):
    """Where backward induction is known for immediate feedback only."""
    at_once = mb.optimal(prior, 12)
    bound = mb.optimal(prior, 12, feedback=feedback, start="each-once")
    assert (bound.kind, bound.feedback) == ("bound", str(feedback))
    assert (bound.regret, bound.standard_error) == (at_once.regret, 0.0)
    found = mb.evaluate("gittins", prior, 12, feedback=feedback, episodes=2000)
    assert found.floor.regret == bound.regret
    assert found["gittins"].mean_regret > bound.regret
    assert json.loads(json.dumps(found.to_dict()))["floor"]["kind"] == "bound"


def test_a_bound_is_computed_once_for_all_feedback():
    prior, feedback = mb.Bernoulli(5), mb.Feedback(batch=5, delay=2)
    at_once = mb.optimal(prior, 15, effort=0.02)
    bound = mb.optimal(prior, 15, feedback=feedback, effort=0.02)
    assert (bound.regret, bound.seconds) == (at_once.regret, at_once.seconds)
    assert (at_once.feedback, bound.feedback) == ("immediate", str(feedback))
    options = {"feedback": feedback, "episodes": 2000, "floor_effort": 0.02}
    assert mb.evaluate("thompson", prior, 15, **options).floor == bound
    learned = mb.learn("r + a/n", prior, 15, feedback=feedback, effort=0.02, generations=1)
    assert learned.comparison.floor == bound
    gaussian = mb.optimal(mb.Gaussian(2), 12, feedback={"delay": 3}, effort=0.02)
    assert (gaussian.kind, gaussian.feedback) == ("bound", "delay 3")


def test_two_arms_in_batches_have_an_optimum():
    best = mb.optimal(mb.Bernoulli(2), 12, feedback=mb.Feedback(batch=4))
    assert (best.kind, best.feedback) == ("optimum", "batches of 4")
    assert best.regret > mb.optimal(mb.Bernoulli(2), 12).regret


def test_a_floor_keeps_to_the_batches_and_the_share_where_rewards_are_late():
    """A delay on top of batches only hides rewards: the optimum without it is a bound."""
    prior, batches = mb.Bernoulli(2), mb.Feedback(batch=4, min_share=0.1)
    best = mb.optimal(prior, 12, feedback=batches)
    assert best.kind == "optimum"
    assert best.regret > mb.optimal(prior, 12, feedback=mb.Feedback(batch=4)).regret
    late = mb.optimal(prior, 12, feedback=mb.Feedback(batch=4, min_share=0.1, delay=2))
    assert (late.kind, late.method) == ("bound", "batches of 4, minimum share 0.1")
    assert (late.regret, late.feedback) == (best.regret, "batches of 4, delay 2, minimum share 0.1")


def test_a_share_is_left_out_of_a_floor_where_it_would_take_long():
    feedback = mb.Feedback(batch=40, min_share=0.05)
    solved = solved_feedback(mb.Bernoulli(2), 300, feedback)
    assert solved == mb.Feedback(batch=40)
    assert solved_feedback(mb.Bernoulli(2), 2000, feedback) == mb.Feedback()
    assert solved_feedback(mb.Bernoulli(3), 30, feedback) == mb.Feedback()


def test_a_comparison_shows_the_bound_when_it_is_wanted_or_known():
    task = (["gittins", "ucb1"], mb.Bernoulli(5), 15)
    options = {"episodes": 2000, "floor_effort": 0.02}
    assert mb.evaluate(*task, **options).floor is None
    wanted = mb.evaluate(*task, floor=True, **options)
    assert wanted.floor.kind == "bound"
    assert 0.0 < wanted.floor.regret < wanted["gittins"].mean_regret
    rows = wanted.rows()
    assert rows[-1]["policy"] == "lower bound"
    assert rows[0]["above the floor"].startswith("at most +")
    assert mb.evaluate(*task, **options).floor == wanted.floor
    assert mb.evaluate(*task, floor=False, **options).floor is None


@pytest.mark.slow
def test_what_is_learned_stands_on_the_bound():
    learned = mb.learn("r + a/n", mb.Bernoulli(5), 15, effort=0.02, generations=1)
    assert learned.comparison.floor.kind == "bound"
    assert 0.0 < learned.floor < learned.evaluation.mean_regret


def test_learning_ends_with_the_distance_to_the_best_possible(tmp_path):
    task = "learn | --space | r + a/n | --arms | 5 | --horizon | 15 | --effort | 0.02 | --generations | 1"
    assert "% above the best possible" in answer(task, tmp_path)


def test_the_command_says_which_floor_it_is(tmp_path):
    text = answer(
        "optimal | --arms | 5 | --horizon | 10 | --floor-effort | 0.02 | --json", tmp_path
    )
    found = json.loads(text)
    assert found["kind"] == "bound"
    assert 0.0 < found["regret"] < 10.0
    assert found["standard_error"] >= 0.0
    shown = answer("optimal | --arms | 5 | --horizon | 10 | --floor-effort | 0.02", tmp_path)
    assert "regret, at least" in shown
    shown = answer("optimal | --arms | 3 | --horizon | 10 | --batch | 5", tmp_path)
    assert "regret, at least" in shown
    assert "batches of 5" in shown
    assert "no sampling error" in shown
    assert "expected reward" in answer("optimal | --horizon | 10 | --batch | 5", tmp_path)


def test_a_wanted_floor_is_a_bound_where_the_optimum_needs_too_much_memory(monkeypatch):
    monkeypatch.setattr("metabandit.engine.floor.free_memory", lambda: 1000)
    task = ("r + a/n", mb.Bernoulli(2), 30)
    found = mb.learn(*task, generations=1, effort=0.02, floor=True, floor_effort=0.02)
    assert found.comparison.floor.kind == "bound"
    assert 0.0 < found.floor < mb.optimal(mb.Bernoulli(2), 30).regret


def test_a_search_has_the_floor_that_is_wanted():
    def learn(**given):
        return mb.learn("r + a/n", mb.Bernoulli(2), 10, generations=1, effort=0.01, **given)

    least = mb.optimal(mb.Bernoulli(2), 10).regret
    assert learn().floor == learn(floor=True).floor == least
    without = learn(floor=False)
    assert without.floor is without.comparison.floor is None
    found = mb.search(mb.Bernoulli(2), 10, length=3, floor=False)
    assert found.floor is found.comparison.floor is None


def test_a_wanted_floor_takes_more_than_its_share_of_the_time():
    options = {"feedback": mb.Feedback(), "effort": 0.02, "limit": TimeLimit(1e-6)}
    for prior in (mb.Bernoulli(2), mb.Bernoulli(5)):
        said = []
        asked = (prior, 12, make_workers(1), said.append)
        assert floor_of_search(*asked, wanted=False, **options) is None
        assert "too much of the time limit" in said[0]
        found = floor_of_search(*asked, wanted=True, **options).wait()
        assert found.regret == mb.optimal(prior, 12, effort=0.02).regret
