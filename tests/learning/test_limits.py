"""What learning and search return: nothing that was not judged for the task, in the time given."""

import numpy as np
import pytest

import metabandit as mb
from metabandit.engine.limits import TimeLimit
from metabandit.kernels import jit
from metabandit.learning import judges, measure, search

TWO = mb.Bernoulli(arms=2)


def test_a_classic_is_the_result_if_the_space_has_nothing_better(tmp_path):
    said = []
    out = tmp_path / "best.json"
    # An index that does not read rewards can only stay with an arm or change it at every play.
    found = mb.learn("a*n", TWO, 60, generations=2, out=out, announce=said.append)
    assert found.unbeaten == found.policy.name == found.comparison[0].policy
    assert found.unbeaten in ("ucb1-tuned", "kl-ucb", "thompson")
    assert any("is better than the best that was found" in text for text in said)
    best = min(item.mean_regret for item in found.comparison)
    assert found.evaluation.mean_regret == best
    assert found.file.learned.regret.mean == best
    again = mb.evaluate(mb.load(out), TWO, 60)[0]
    assert again.mean_regret == pytest.approx(best, rel=0.05)
    assert found.to_dict()["unbeaten"] == found.unbeaten


@pytest.mark.parametrize("prior", [TWO, mb.Bernoulli(arms=5)])
def test_the_point_to_begin_with_is_a_candidate_to_the_end(prior):
    # Candidates so far away that none is as good.
    found = mb.learn(
        "r + a/(n + b)",
        prior,
        50,
        start="each-once",
        initial={"a": 0.6, "b": 0.5},
        optimizer="cma:deviation=1e5",
        generations=1,
        measured=False,
    )
    assert found.unbeaten == "start"
    assert found.parameters == {"a": 0.6, "b": 0.5}
    assert found.file.policy.parameters == {"a": 0.6, "b": 0.5}


def test_a_classic_is_the_result_for_other_objectives_too():
    found = mb.learn("a*n", TWO, 30, objective="quantile:q=0.9", generations=1)
    assert found.unbeaten is not None
    assert found.unbeaten == found.comparison[0].policy
    judge = judges.Judge(
        mb.engine.task.read_task(TWO, 30, objective="quantile:q=0.9"), "problems", seed=5
    )
    values, _ = judge.judge([found.policy, mb.policy("n", start="each-once")], 0)
    assert values[0] < values[1]
    assert found.objective == pytest.approx(values[0], rel=0.1)


def test_no_time_for_a_generation_is_said_at_once(monkeypatch):
    monkeypatch.setattr(judges.Judge, "pace", lambda self, example: 1e6)
    said = []
    found = mb.learn("power-1", TWO, 100, time_limit=60, announce=said.append)
    assert found.stopped == "time limit"
    assert found.trace == []
    assert "leaves no time to learn" in said[0] or "leaves no time to learn" in said[1]
    assert any("time limit of" in text and "would do" in text for text in said)
    # What is returned is the best of what is known: the point to begin with is the greedy index.
    assert found.unbeaten is not None
    assert found.evaluation.mean_regret <= min(item.mean_regret for item in found.comparison) * 1.01


def test_stages_share_the_time(monkeypatch):
    seconds = iter(np.arange(0.0, 1e5, 0.5))
    monkeypatch.setattr(TimeLimit, "passed", property(lambda self: next(seconds)))
    found = mb.learn("r + a/(n + b)", TWO, 400, time_limit=60, measured=False)
    assert found.stopped == "time limit"
    assert {record["horizon"] for record in found.trace} == {40, 400}
    assert found.unbeaten is None


def test_a_run_that_is_stopped_before_the_horizon_asked_for_has_no_result(tmp_path):
    def stop(generation):
        assert generation.horizon == 40
        raise KeyboardInterrupt

    out = tmp_path / "none.json"
    with pytest.raises(KeyboardInterrupt):
        mb.learn("r + a/(n + b)", TWO, 400, out=out, progress=stop)
    assert not out.exists()


def test_weights_that_drift_apart_are_scaled_back(monkeypatch):
    """A positive factor of all weights changes no policy, and noise drives them apart."""
    monkeypatch.setattr(search, "_FAR", 2.0)
    found = mb.learn("power-1", mb.Bernoulli(arms=4), 20, effort=0.05, measured=False)
    sizes = [float(np.abs(record["best_candidate"]).max()) for record in found.trace]
    assert len(sizes) > 20
    assert max(sizes) < 20.0
    free = mb.evaluate([found.policy, "greedy"], mb.Bernoulli(arms=4), 20, episodes=20_000)
    assert free[0].mean_regret < 0.9 * free[1].mean_regret


def test_a_search_takes_what_its_numbers_need_and_begins_with_few_problems():
    found = mb.learn("r + a/(n + b)", mb.Bernoulli(arms=4), 20, effort=0.01, measured=False)
    work = [record["work"] for record in found.trace]
    # Two numbers; the expected regret of Beta means has little noise.
    most = 0.01 * search.mean_work(2, 20, noisy=False)
    assert sum(work[:-1]) < most <= sum(work)
    problems = [record["problems"] for record in found.trace]
    assert problems[0] == 1000
    assert problems == sorted(problems)
    assert problems[-1] > 2000


def test_the_measurement_follows_a_low_effort():
    def episodes(effort):
        return mb.learn(
            "r + a/n", mb.Bernoulli(arms=4), 20, effort=effort, generations=1, floor_effort=0.02
        ).comparison.episodes

    assert episodes(0.002) == 0.002 * measure._REPORT_WORK / (4 * 20)
    # Fewer would not say whether the result is better than the classics.
    assert episodes(1e-6) == 2000


def test_compiling_does_not_count():
    limit = TimeLimit(100.0)
    with jit._SPENT:
        with jit._SPENT:
            pass
        jit._SPENT.begun -= 1000.0
    assert limit.passed < 50.0
    assert limit.given
    assert not TimeLimit().given
    assert TimeLimit(1e-9).left == 0.0


def test_an_evaluation_with_a_time_limit_plays_the_first_problems(monkeypatch):
    seconds = iter(np.arange(0.0, 1e5, 1.0))
    monkeypatch.setattr(TimeLimit, "passed", property(lambda self: next(seconds)))
    prior = mb.Bernoulli(arms=3)
    part = mb.evaluate(["ucb1", "thompson"], prior, 20, time_limit=6, episodes=50_000, threads=2)
    assert 128 <= part.episodes < 50_000
    whole = mb.evaluate(["ucb1", "thompson"], prior, 20, episodes=part.episodes)
    for one, other in zip(part, whole, strict=True):
        assert np.array_equal(one.problem_regret, other.problem_regret)
        assert one.mean_regret == pytest.approx(other.mean_regret, rel=1e-12)
        assert one.standard_error == pytest.approx(other.standard_error, rel=1e-9)
    with pytest.raises(mb.InputError, match="no time limit: leave that out"):
        mb.evaluate("ucb1", TWO, 20, method="exact", time_limit=1)


@pytest.mark.slow
def test_a_search_of_formulas_returns_a_classic_if_no_formula_is_better():
    found = mb.search(TWO, 200, length=1, start="each-once")
    assert found.unbeaten == "ucb1-tuned"
    assert found.policy.name == found.comparison[0].policy == "ucb1-tuned"
    assert found.file.learned.regret.mean == found.comparison[0].mean_regret
    assert found.entries[0].regret > found.comparison[0].mean_regret


def test_formulas_without_time_for_one_round_are_refused(monkeypatch):
    monkeypatch.setattr("metabandit.formulas.searcher._slowness", lambda task, programs: 1e9)
    with pytest.raises(
        mb.InputError, match="choose a shorter --length, a shorter horizon, or a time limit of"
    ):
        mb.search(mb.Bernoulli(arms=3), 50, length=3, time_limit=5)
