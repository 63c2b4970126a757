"""Objectives and judges: a value for every candidate of a generation."""

import math

import numpy as np
import pytest

import metabandit as mb
from metabandit.engine.engine import Engine
from metabandit.engine.objectives import read_objective
from metabandit.engine.task import read_task
from metabandit.learning import judges
from metabandit.workers import Workers

TWO = mb.Bernoulli(arms=2)


def test_objectives():
    regret = np.array([[1.0, 2.0, 3.0, 10.0], [2.0, 2.0, 2.0, 2.0]])
    other = np.array([2.0, 2.0, 2.0, 2.0])

    def value(text):
        return read_objective(text, reference="x" if text == "wins" else None).value(regret, other)

    assert value("regret").tolist() == [4.0, 2.0]
    assert value("worst").tolist() == [10.0, 2.0]
    assert value("quantile:q=0.5").tolist() == [2.5, 2.0]
    assert value("wins").tolist() == [0.625, 0.5], "the share that the reference wins"


@pytest.mark.parametrize(
    "text",
    [
        "regret",
        "simple",
        *(pytest.param(text, marks=pytest.mark.slow) for text in ("wins", "worst")),
        "quantile:q=0.9",
    ],
)
def test_judges_agree_whether_exact_or_simulated(text):
    reference = mb.policy("ucb1-tuned") if text == "wins" else None
    objective = read_objective(text, reference=reference)
    candidates = [mb.policy(item) for item in ("ucb1", "greedy", "r + 1/n")]
    problems = mb.Table(TWO.draw(np.random.default_rng(1), 200)[..., 0])
    method = "exact" if objective.mean else "problems"

    def judge(prior, method):
        task = read_task(prior, 20, objective=text, reference=reference, threads=2)
        return judges.Judge(task, method, seed=3)

    exactly, noise = judge(problems, method).judge(candidates, 0)
    assert noise == 0.0
    simulated = judge(problems, "simulated")
    simulated.problems, simulated.runs = 20_000, 1 if objective.mean else 100
    found, noise = simulated.judge(candidates, 0)
    assert noise > 0.0
    # Averages over 100 runs are still noisy: they blur wins and widen the tails.
    slack = {"regret": 0.05, "simple": 0.002, "wins": 0.12, "quantile:q=0.9": 0.5, "worst": 2.5}
    assert np.abs(found - exactly).max() < slack[text]
    assert np.argmin(found) == np.argmin(exactly)


def test_exact_judges_are_evaluate():
    candidates = [mb.policy(item) for item in ("ucb1", "thompson", "optimal", "eps_n-greedy")]
    plans = [item.plan(TWO, 20) for item in candidates]
    engine = Engine(TWO, 20, Workers(2))
    expected = mb.evaluate(candidates, TWO, 20, method="exact")
    for simple, name in ((False, "mean_regret"), (True, "simple_regret")):
        found = engine.exact_regret(plans, simple=simple)
        assert found[:, 0].tolist() == pytest.approx(
            [getattr(item, name) for item in expected], abs=1e-12
        )
    broken = mb.policy("r + ln(r - 0.5)")
    assert np.isinf(engine.exact_regret([broken.plan(TWO, 20)])).all()


def test_more_problems_are_drawn_when_noise_hides_the_differences():
    judge = judges.Judge(read_task(TWO, 20, threads=1), "simulated", seed=1)
    before = judge.problems
    judge.adapt(np.array([1.0, 2.0, 3.0, 4.0]), 0.01)
    assert judge.problems == before
    judge.adapt(np.array([1.0, 1.001, 1.002, 1.003]), 0.01)
    assert judge.problems > before


def test_candidates_that_cannot_be_played_come_last():
    found = mb.learn("r + ln(a + r)", TWO, 10, effort=0.2)
    assert any(None in record["values"] for record in found.trace)
    assert math.isfinite(found.evaluation.mean_regret)
    with pytest.raises(mb.InputError, match="not a number"):
        mb.learn("r + a*ln(0 - n)", TWO, 10)
