"""Which method `evaluate` takes, and what it refuses."""

from __future__ import annotations

import pytest

import metabandit as mb


def test_auto_takes_what_is_cheaper():
    def method(policy, prior, horizon, **options):
        return mb.evaluate(policy, prior, horizon, floor=False, **options).method

    uniform = mb.Bernoulli()
    assert method("ucb1", uniform, 100) == "exact"
    assert method("ucb1", mb.Bernoulli(3), 30) == "exact"
    assert method("ucb1", uniform, 100, episodes=1000) == "monte-carlo"
    assert method("ucb1", uniform, 100, runs=10) == "monte-carlo"
    assert method(["ucb1", "ucb2"], uniform, 100) == "monte-carlo"
    assert method("ucb1", uniform, 1000) == "monte-carlo"
    assert method("ucb1", mb.Bernoulli(3), 100) == "monte-carlo"
    assert method("ucb1", mb.Bernoulli(5), 10) == "monte-carlo"
    assert method("ucb1", mb.Gaussian(), 10) == "monte-carlo"
    rule = mb.ChoicePolicy("first", lambda n, r, s, t, h, u: 0)
    assert method(rule, uniform, 10) == "monte-carlo"


@pytest.mark.parametrize(
    ("policy", "prior", "horizon", "message"),
    [
        ("ucb2", mb.Bernoulli(), 10, "UCB2 keeps a memory beyond the counts"),
        ("ucb1", mb.Gaussian(), 10, "for Bernoulli arms"),
        ("ucb1", mb.Bernoulli(4), 10, "up to 3 arms"),
        ("ucb1", mb.Table([[0.1, 0.2, 0.3, 0.4]]), 10, "up to 3 arms"),
        ("thompson", mb.Bernoulli(3, alpha=0.5), 10, "whole numbers"),
        ("ucb1", mb.Bernoulli(), 5000, "up to 4096 plays"),
        (mb.ChoicePolicy("mine", max), mb.Bernoulli(), 10, "can only be simulated"),
    ],
)
def test_what_has_no_exact_method_is_refused(policy, prior, horizon, message):
    with pytest.raises(mb.InputError, match=message):
        mb.evaluate(policy, prior, horizon, method="exact")


def test_refusals_come_before_any_work(monkeypatch):
    def work(*arguments, **options):
        raise AssertionError("this should have been refused")

    monkeypatch.setattr("metabandit.engine.engine.Engine.evaluate_by_simulation", work)
    monkeypatch.setattr("metabandit.bayes.optimum.solve", work)
    monkeypatch.setattr("metabandit.bayes.bounds.lower_bound", work)
    with pytest.raises(mb.InputError, match="no floor under regret is known"):
        mb.evaluate("ucb1", mb.BetaRewards(9), 10, floor=True)
    with pytest.raises(mb.InputError, match="the effort must be greater than 0"):
        mb.evaluate("ucb1", mb.Bernoulli(9), 10, floor=True, floor_effort=0)
    with pytest.raises(mb.InputError, match="unknown method"):
        mb.evaluate("optimal", mb.Bernoulli(), 10, method="guess")
    with pytest.raises(mb.InputError, match="has no episodes: leave that out"):
        mb.evaluate("optimal", mb.Bernoulli(), 10, method="exact", episodes=10)
    with pytest.raises(mb.InputError, match="at least 2"):
        mb.evaluate(["optimal", "ucb1"], mb.Bernoulli(), 1)


def test_compilation_is_announced_for_the_kernels_that_are_used(monkeypatch):
    from metabandit.engine import exact
    from metabandit.kernels import batches, forward, jit

    asked, said = [], []
    monkeypatch.setattr(jit, "is_cached", lambda kernel: asked.append(kernel) or kernel is not None)
    exact.announce_compilation(2, 100, said.append)
    exact.announce_compilation(2, 1000, said.append)
    exact.announce_compilation(2, 100, said.append, mb.Feedback(batch=5))
    assert asked == [forward.run_two, forward.run_part, batches.advance]
    assert said == []
