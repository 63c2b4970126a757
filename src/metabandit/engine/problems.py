"""Problems by number: those that policies play, and checks of what a prior draws."""

from __future__ import annotations

import threading

import numpy as np

from ..errors import InputError
from ..priors import Prior
from ..priors.families import Array

# Problems are drawn in groups of this many, so that the first problems of a large evaluation are
# those of a small one.
GROUP = 8192


def check_problems(prior: Prior, drawn: object, count: int) -> Array:
    """What a prior drew as an array [problem, arm, parameter], or an error."""
    array = np.asarray(drawn, dtype=np.float64)
    expected = (count, prior.arms, len(prior.family.parameters))
    if array.shape != expected:
        raise InputError(
            f"draw of the prior {prior} gave an array of shape {array.shape}, "
            f"not (problems, arms, parameters) = {expected}"
        )
    if not np.isfinite(array).all():
        raise InputError(f"draw of the prior {prior} gave parameters that are not finite")
    low, high = prior.family.support
    means = prior.family.mean(array)
    if not (means.min() >= low and means.max() <= high):
        raise InputError(
            f"draw of the prior {prior} gave arms with means from {means.min():g} to "
            f"{means.max():g}; rewards of the family {prior.family.name} lie between "
            f"{low:g} and {high:g}"
        )
    return array


def regret_means(prior: Prior, parameters: Array) -> Array:
    """The means that regret is counted against, [problem, arm], or an error."""
    means = np.ascontiguousarray(prior.regret_means(parameters), dtype=np.float64)
    if means.shape != parameters.shape[:2] or not np.isfinite(means).all():
        raise InputError(f"regret_means of the prior {prior} must give one finite number per arm")
    return means


class ProblemSource:
    """Problems by number: group g comes from a stream of its own."""

    def __init__(self, prior: Prior, seed: int) -> None:
        self.prior = prior
        self.seed = seed
        self.last: tuple[int, Array] | None = None
        self.lock = threading.Lock()

    def group(self, number: int) -> Array:
        with self.lock:
            if self.last is not None and self.last[0] == number:
                return self.last[1]
        rng = np.random.default_rng(np.random.SeedSequence((self.seed, number)))
        drawn = check_problems(self.prior, self.prior.draw(rng, GROUP), GROUP)
        with self.lock:
            self.last = (number, drawn)
        return drawn

    def take(self, first: int, last: int) -> Array:
        groups = range(first // GROUP, (last - 1) // GROUP + 1)
        drawn = np.concatenate([self.group(number) for number in groups])
        offset = groups[0] * GROUP
        return np.ascontiguousarray(drawn[first - offset : last - offset])


def draw_problems(prior: Prior, seed: int, problems: int) -> Array:
    """The parameters of the first problems of a seed: those that policies play."""
    return ProblemSource(prior, seed).take(0, problems)
