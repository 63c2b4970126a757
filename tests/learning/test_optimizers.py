"""Optimisers: the paper's algorithm, and what each of them finds."""

import math

import numpy as np
import pytest

import metabandit as mb
from metabandit.learning.optimizers import OPTIMIZERS
from metabandit.learning.optimizers.base import make_optimizer
from tests import naive

TWO = mb.Bernoulli(arms=2)


def bowl(candidate):
    return sum((position + 1) * (x - position) ** 2 for position, x in enumerate(candidate))


@pytest.mark.parametrize("dimensions", [1, 3, 6])
def test_the_eda_is_the_papers_algorithm(dimensions):
    """The same draws give the same Gaussians and the same best candidate as the naive twin."""
    center = np.zeros(dimensions)
    optimizer = make_optimizer("eda", center, 1.0, seed=11, noisy=False)
    history, (lowest, best) = naive.eda(bowl, center.tolist(), 15, 11)
    seen = []
    for mean, variance in history:
        candidates = optimizer.ask()
        assert len(candidates) == max(8 * dimensions, 40)
        values = np.array([bowl(candidate) for candidate in candidates])
        seen += zip(values.tolist(), candidates.tolist(), strict=True)
        optimizer.tell(candidates, values)
        assert np.allclose(optimizer.mean, mean, rtol=1e-9, atol=1e-12)
        assert np.allclose(optimizer.variance, variance, rtol=1e-9, atol=1e-15)
    found = min(seen, key=lambda item: item[0])
    assert found[0] == pytest.approx(lowest, rel=1e-9)
    assert found[1] == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@pytest.mark.parametrize("noisy", [False, True])
def test_every_optimizer_finds_the_bottom_of_a_bowl(name, noisy):
    optimizer, again = (
        make_optimizer(name, np.array([0.5, 0.5, 1.5]), 1.0, seed=5, noisy=noisy) for _ in range(2)
    )
    for _ in range(60):
        candidates = optimizer.ask()
        assert np.array_equal(candidates, again.ask()), "one seed, one result"
        values = np.array([bowl(item) if item[0] > -3 else math.inf for item in candidates])
        optimizer.tell(candidates, values)
        again.tell(candidates, values)
    assert optimizer.center == pytest.approx([0.0, 1.0, 2.0], abs=0.02)


def test_cma_begins_again_when_it_stands_still():
    optimizer = make_optimizer("cma:population=6", np.zeros(2), 1.0, seed=5, noisy=False)
    sizes = set()
    for _ in range(200):
        candidates = optimizer.ask()
        sizes.add(len(candidates))
        optimizer.tell(candidates, np.ones(len(candidates)))
    assert {6, 12, 24} <= sizes


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("adam", "unknown optimizer"),
        ("eda:size=3", "no parameter"),
        ("eda:population=1", "from 2 to"),
        ("cma:population=1e9", "to 10000"),
        ("cma:population=0", "from 4"),
        ("cma:deviation=1e300", "at most 1e6"),
        ("cma:adapt=2", "from 0 to 1"),
        ("eda:population=8,best=8", "less than"),
        ("cma:population=2.5", "whole number"),
        ("cma:deviation=-1", "greater than 0"),
    ],
)
def test_optimizers_that_make_no_sense_are_refused(text, word):
    with pytest.raises(mb.InputError, match=word):
        mb.learn("ucb1", TWO, 10, optimizer=text)


def test_a_persons_own_optimizer():
    class Walk(mb.Optimizer):
        name = "walk"
        meaning = "the best of random steps"

        def begin(self):
            self.rng = np.random.default_rng(self.seed)
            self.at = self.initial

        def ask(self):
            return self.at + self.deviation * self.rng.normal(size=(6, len(self.at)))

        def tell(self, candidates, values):
            self.at = candidates[np.argmin(values)]

        @property
        def center(self):
            return self.at

    mb.register_optimizer(Walk)
    try:
        found = mb.learn("ucb1", TWO, 10, optimizer="walk", generations=5)
    finally:
        del OPTIMIZERS["walk"]
    assert found.file.learned.optimizer == "walk"
    assert found.evaluation.mean_regret < 1.0
