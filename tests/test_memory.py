"""Memory: how much is free, and what needs more is refused."""

from __future__ import annotations

import pytest

import metabandit as mb
from metabandit import memory


def test_too_much_memory_is_refused_before_it_is_allocated(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 10**6)
    for call in (
        lambda: mb.optimal(mb.Bernoulli(), 200),
        lambda: mb.optimal(mb.Bernoulli(3), 60),
        lambda: mb.OptimalPolicy(mb.Bernoulli(), 200),
        lambda: mb.evaluate("ucb1", mb.Bernoulli(), 200, method="exact"),
        lambda: mb.evaluate("gittins", mb.Bernoulli(9), 200, episodes=10),
    ):
        with pytest.raises(mb.InputError, match=r"needs about .* GB of memory, 0\.001 GB are free"):
            call()


def test_free_memory_is_a_sensible_number():
    assert 10**7 < memory.free_memory() < 10**14
